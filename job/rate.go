package job

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// Rate bounds how often the runs of a group start: at most Starts times in any period of length
// Period.
type Rate struct {
	Starts int
	Period Micros // a length
}

// Bounds of rates.
const (
	MaxRateStarts = 1000
	minRatePeriod = time.Second
	maxRatePeriod = 24 * time.Hour
)

// parseRate reads a rate such as "10/1m". wrong is the problem of the text, or nil.
func parseRate(text string) (r Rate, wrong *problem.Text) {
	count, period, _ := strings.Cut(text, "/")
	n, notNumber := strconv.Atoi(count)
	d, notPeriod := ParseDuration(period)
	switch {
	case notNumber != nil || notPeriod != nil:
		return r, new(problem.WantRate.Of(text))
	case n < 1 || n > MaxRateStarts:
		return r, new(problem.NotBetween.Advise("it is the number of starts in a period").Of(n, 1, MaxRateStarts))
	case d < minRatePeriod || d > maxRatePeriod:
		return r, new(problem.NotBetween.Advise("it is the period of the rate").
			Of(Duration(d), Duration(minRatePeriod), Duration(maxRatePeriod)))
	}
	return Rate{n, Micros(d.Microseconds())}, nil
}

// Any reports whether there is a rate. Values out of bounds are no rate. They can come from a row
// that was changed outside the program.
func (r Rate) Any() bool {
	return r.Starts > 0 && r.Starts <= MaxRateStarts && r.Period > 0 && r.Period <= Micros(maxRatePeriod.Microseconds())
}

// String returns the text that parseRate reads. Without a rate it returns "".
func (r Rate) String() string {
	if !r.Any() {
		return ""
	}
	return fmt.Sprintf("%d/%s", r.Starts, r.PeriodText())
}

// PeriodText is the period, such as 1m.
func (r Rate) PeriodText() string {
	return Duration(time.Duration(r.Period) * time.Microsecond).String()
}
