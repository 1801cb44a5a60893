package api

import (
	"errors"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// advised adds advice to a sentence about a text that is not a valid duration or time. It knows two
// usual mistakes: a duration that is too long, and a day that does not exist.
func advised(s problem.Sentence, text string) problem.Sentence {
	_, tooLong := job.ParseDuration(text)
	_, err := time.Parse(time.RFC3339, text)
	var wrong *time.ParseError
	switch {
	case errors.Is(tooLong, job.ErrTooLong):
		return s.Advise("this duration is too long")
	case errors.As(err, &wrong) && strings.HasSuffix(wrong.Message, "day out of range"):
		return s.Advise("there is no such day in its month")
	}

	return s
}
