package job

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// Size is a number of bytes that is read and written as text, such as "512MiB". Its units are
// powers of 1024.
type Size int64

const units = "KMGT"

// String uses the largest unit that gives a whole number.
func (s Size) String() string {
	n, unit := int64(s), ""
	for _, u := range units {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, string(u)+"i"
	}
	return strconv.FormatInt(n, 10) + unit + "B"
}

// ParseSize reads a whole number of bytes. It may have a unit, such as K, Ki or KiB. KB is refused,
// because for some people it means 1000.
func ParseSize(text string) (Size, error) {
	wrong := problem.Errorf(problem.NotASize, text)
	digits := strings.TrimRight(text, "kKMmGgTtiBb ")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, wrong
	}

	unit := strings.ToUpper(strings.TrimSpace(text[len(digits):]))
	if unit == "" || unit == "B" {
		return Size(n), nil
	}

	power := 1 + strings.IndexByte(units, unit[0])
	if power == 0 || n > math.MaxInt64>>(10*power) {
		return 0, wrong
	}

	switch unit[1:] {
	case "", "I", "IB":
		return Size(n << (10 * power)), nil
	case "B":
		return 0, problem.Errorf(problem.SizeUnclear, text, unit, unit[:1])
	}

	return 0, wrong
}

// MarshalText writes String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON takes text, or a number of bytes.
func (s *Size) UnmarshalJSON(b []byte) error {
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}

	v, err := ParseSize(text)
	if err != nil {
		return err
	}

	*s = v
	return nil
}
