package api

import (
	"strings"
	"testing"

	"go-crontab/job/problem"
)

func TestAdvised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1d":                   `; write "24h" for 1d`,
		"90d":                  `; write "2160h" for 90d`,
		"2w":                   `; write "336h" for 2w`,
		"99999999h":            "; this duration is too long",
		"2027-02-30T09:00:00Z": "; there is no such day in its month",
		"tomorrow":             `"2h"`,
		"0d":                   `"2h"`,
		"":                     `"2h"`,
	} {
		if got := advised(problem.WantUntil, text).Of("x"); !strings.HasSuffix(got.Message, want) ||
			got.Code != problem.WantUntil.Code() || len(got.Values) != 1 {
			t.Errorf("%q: got %+v, want the end %q", text, got, want)
		}
	}
}
