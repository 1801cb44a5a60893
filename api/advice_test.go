package api

import (
	"strings"
	"testing"

	"go-crontab/job/problem"
)

func TestAdvised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"99999999h":            "; this duration is too long",
		"2027-02-30T09:00:00Z": "; there is no such day in its month",
		"999999999999d":        "; this duration is too long",
		"tomorrow":             `"7d"`,
		"2 d":                  `"7d"`,
		"":                     `"7d"`,
	} {
		if got := advised(problem.WantUntil, text).Of("x"); !strings.HasSuffix(got.Message, want) ||
			got.Code != problem.WantUntil.Code() || len(got.Values) != 1 {
			t.Errorf("%q: got %+v, want the end %q", text, got, want)
		}
	}
}
