package job

import (
	"errors"
	"testing"
	"time"

	"go-crontab/job/problem"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1.5h": 90 * time.Minute, "0": 0, "7d": 7 * day, "2w": 14 * day,
		"1d12h": 36 * time.Hour, "1w1d1s": 8*day + time.Second, "-1d": -day, "+2d": 2 * day, "100000d": 100000 * day,
	} {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("%q: got %s and %v, want %s", text, got, err, want)
		}
	}

	for text, tooLong := range map[string]bool{
		"99999999h": true, "9999999999999999999d": true, "400000w": true,
		"1.5d": false, "d": false, "": false, "7 d": false, "7D": false, "7days": false, "1d1": false, "5": false,
	} {
		if got, err := ParseDuration(text); err == nil || errors.Is(err, ErrTooLong) != tooLong {
			t.Errorf("%q: got %s and %v, want an error, too long: %v", text, got, err, tooLong)
		}
	}
}

func TestDurationForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for d, want := range map[time.Duration][2]string{
		0: {"0s", "0s"}, 90 * time.Second: {"1m30s", "1m30s"}, time.Hour: {"1h", "1h"}, day: {"24h", "24h"},
		36 * time.Hour: {"36h", "36h"}, 2 * day: {"2d", "48h"}, 365 * day: {"365d", "8760h"},
		49*time.Hour + time.Minute: {"2d1h1m", "49h1m"}, -7 * day: {"-168h", "-168h"}, 7*day + time.Millisecond: {"7d1ms", "168h0m0.001s"},
	} {
		text := Duration(d).String()
		if got := [2]string{text, Duration(d).Text()}; got != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
		if again, err := ParseDuration(text); again != d || err != nil {
			t.Errorf("%s: %q reads as %s, %v", d, text, again, err)
		}
	}
	if got := problem.NotBetween.Of(400*day, time.Minute, Duration(365*day)); got.Message != problem.NotBetween.Of("400d", "1m", "365d").Message ||
		got.Values[0] != "400d" {
		t.Errorf("got %+v", got)
	}
}
