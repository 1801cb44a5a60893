package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"go-crontab/job/problem"
)

// Duration is a length of time that is read and written as text, such as "90s", "1h30m" or "10ms".
// The text may also have days and weeks, such as "7d".
type Duration time.Duration

// String returns the text for people, such as "1h" or "365d".
func (d Duration) String() string { return problem.Duration(time.Duration(d)) }

// Text returns the text for programs. It has no days: other programs read "8760h", but not "365d".
func (d Duration) Text() string { return problem.WithoutZeros(time.Duration(d)) }

// MarshalText writes Text.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.Text()), nil }

// UnmarshalJSON accepts only text, because a bare number would not show its unit.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf(`%s is not a duration; write it with its unit in quotes, such as "90s", "1h30m" or "7d"`, b)
	}

	if s == "" {
		*d = 0
		return nil
	}

	v, err := ParseDuration(s)
	if errors.Is(err, ErrTooLong) {
		return problem.Errorf(problem.DurationTooLong, s)
	}
	if err != nil {
		return problem.Errorf(problem.NotADuration, s)
	}

	*d = Duration(v)
	return nil
}

// ErrTooLong is the error for a valid duration that is too long for this program.
var ErrTooLong = errors.New("is too long; the longest duration is about 106000d")

var (
	daysOrWeeks = regexp.MustCompile(`([0-9.]+)[dw]`)
	written     = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)
)

// ParseDuration reads a duration like time.ParseDuration. It also accepts weeks and days of 24
// hours: "7d", "1d12h", "2w".
func ParseDuration(s string) (time.Duration, error) {
	hours := daysOrWeeks.ReplaceAllStringFunc(s, func(part string) string {
		n, err := strconv.ParseInt(part[:len(part)-1], 10, 32)
		if errors.Is(err, strconv.ErrRange) {
			n = 1 << 31 // too long in any unit
		} else if err != nil {
			return part
		}
		length := int64(24)
		if part[len(part)-1] == 'w' {
			length = 7 * 24
		}
		return strconv.FormatInt(n*length, 10) + "h"
	})

	d, err := time.ParseDuration(hours)
	if err != nil && written.MatchString(hours) {
		return 0, ErrTooLong
	}
	return d, err
}
