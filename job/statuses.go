package job

import (
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// Expects reports whether a status means success.
func (h *HTTP) Expects(status int) bool {
	for _, item := range h.Expect {
		if from, to, err := parseStatuses(item); err == nil && from <= status && status <= to {
			return true
		}
	}
	return len(h.Expect) == 0 && 200 <= status && status <= 299
}

// parseStatuses parses "2xx", "404" or "200-299".
func parseStatuses(item string) (from, to int, err error) {
	if len(item) == 3 && strings.EqualFold(item[1:], "xx") && '2' <= item[0] && item[0] <= '5' {
		from = int(item[0]-'0') * 100
		return from, from + 99, nil
	}

	first, last, isRange := strings.Cut(item, "-")
	if !isRange {
		last = first
	}

	from, err1 := status(first)
	to, err2 := status(last)
	if err1 != nil || err2 != nil || from > to {
		return 0, 0, problem.Errorf(problem.NotAStatus, item)
	}

	return from, to, nil
}

// status parses a final status. 1xx is not final.
func status(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 200 || n > 599 {
		return 0, fmt.Errorf("%q is not between 200 and 599", text)
	}
	return n, nil
}
