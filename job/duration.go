package job

import (
	"encoding/json"
	"fmt"
	"time"

	"go-crontab/job/problem"
)

// Duration is a length of time that reads and writes as text, such as "90s", "1h30m" or "10ms".
type Duration time.Duration

// String is the shortest usual form: "1h" rather than "1h0m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(s) > len(zero) && s[len(s)-len(zero):] == zero {
			s = s[:len(s)-2]
		}
	}
	return s
}

// MarshalText writes String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON takes only text: a bare number would leave the unit to guesswork.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf(`%s is not a duration; write it with its unit in quotes, such as "90s" or "1h30m"`, b)
	}

	if s == "" {
		*d = 0
		return nil
	}

	v, err := time.ParseDuration(s)
	if err != nil {
		return problem.Errorf(problem.NotADuration, s)
	}

	*d = Duration(v)
	return nil
}
