package problem

import (
	"fmt"
	"strings"
	"time"
)

// Duration formats a duration for people, in the shortest usual form: "1h" rather than "1h0m0s", and
// "365d" rather than "8760h".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	days := ""
	if d >= 2*day {
		days = fmt.Sprintf("%dd", d/day)
		d %= day
	}
	if days != "" && d == 0 {
		return days
	}

	return days + WithoutZeros(d)
}

// WithoutZeros formats a duration like its String method, without zeros at the end.
func WithoutZeros(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
