package api

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go-crontab/job/problem"
)

var (
	daysOrWeeks  = regexp.MustCompile(`^([1-9][0-9]{0,4})([dw])$`)
	durationLike = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)
)

// advised adds to a sentence about a text that is no duration or no time how to correct it, if the
// mistake is a usual one: a unit of days, a duration that is too long, or a day that does not exist.
func advised(s problem.Sentence, text string) problem.Sentence {
	if m := daysOrWeeks.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		hours := map[string]int{"d": 24, "w": 7 * 24}[m[2]] * n
		return s.Advise("write %q for %s", strconv.Itoa(hours)+"h", text)
	}

	_, err := time.Parse(time.RFC3339, text)
	var wrong *time.ParseError
	switch {
	case durationLike.MatchString(text):
		return s.Advise("this duration is too long")
	case errors.As(err, &wrong) && strings.HasSuffix(wrong.Message, "day out of range"):
		return s.Advise("there is no such day in its month")
	}

	return s
}
