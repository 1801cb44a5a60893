package job

import (
	"errors"
	"testing"
	"time"
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
