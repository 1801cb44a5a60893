package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
)

// work is what the jobs of a bench do.
type work func(*job.Spec)

// orNoop is what jobs do when nothing else was said.
func (w work) orNoop() work {
	if w == nil {
		return noop
	}
	return w
}

func noop(s *job.Spec)    { s.Command = "true" } // which the executor that does nothing never reads
func bash(s *job.Spec)    { s.Command = "true" }
func handler(s *job.Spec) { s.Handler = "bench" }
func calling(url string) work {
	return func(s *job.Spec) { s.HTTP = &job.HTTP{URL: url} }
}

// everySecond adds jobs that are due once a second from an instant on, spread over the second or all at once.
func (c *schema) everySecond(ctx context.Context, n int, first time.Time, spread bool, w work) error {
	return c.insert(ctx, n, func(i int) job.Spec {
		at := first
		if spread {
			at = at.Add(time.Second * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond)
		}
		s := job.Spec{Name: fmt.Sprint("every-", i), Every: job.Duration(time.Second), Start: &at}
		w(&s)
		return s
	})
}

// once adds jobs that are due at one instant, and never again.
func (c *schema) once(ctx context.Context, n int, at time.Time, w work) error {
	return c.insert(ctx, n, func(i int) job.Spec {
		s := job.Spec{Name: fmt.Sprint("once-", i), At: &at}
		w(&s)
		return s
	})
}

// insert adds jobs as a planner finds them: their first due time known, and not planned yet.
func (c *schema) insert(ctx context.Context, n int, spec func(i int) job.Spec) error {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	for part := range slices.Chunk(numbers, 1000) {
		var args []any
		for _, i := range part {
			s := spec(i)
			first := s.Start
			if first == nil {
				first = s.At
			}
			s.Defaults(*first)
			text, err := s.Encode()
			if err != nil {
				return err
			}
			args = append(args, s.App, s.Name, job.HashOf(s.App, s.Name), text, first.UnixMicro())
		}
		rows := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,1,1,1),", len(part)), ",")
		if _, err := c.db.ExecContext(ctx, "INSERT INTO job (app, name, hash, spec, next_due, created, updated, listed) VALUES "+rows, args...); err != nil {
			return fmt.Errorf("add jobs: %w", err)
		}
	}
	return nil
}

// idle adds jobs that are not due for long, many at a time.
func (c *schema) idle(ctx context.Context, n int, from time.Time) error {
	at := from.AddDate(1, 0, 0)
	s := job.Spec{Name: "NAME", Every: job.Duration(time.Hour), Start: &at, Command: "true"}
	s.Defaults(at)
	text, err := s.Encode()
	if err != nil {
		return err
	}
	for begin := 0; begin < n; begin += 100_000 {
		_, err := c.db.ExecContext(ctx, "INSERT INTO job (app, name, hash, spec, next_due, created, updated, listed)"+
			" SELECT 'idle', CONCAT('idle-', ?+i), (?+i) % 1024, REPLACE(?, 'NAME', CONCAT('idle-', ?+i)), ? + (?+i) * 1000, 1, 1, 1"+
			" FROM "+numbers+" WHERE ?+i < ?",
			begin, begin, text, begin, at.UnixMicro(), begin, begin, n)
		if err != nil {
			return fmt.Errorf("add idle jobs: %w", err)
		}
	}
	return nil
}

// numbers is a table of i from 0 to 99,999: five digits, each from a table of ten, which any server can make.
const (
	digits  = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	numbers = "(SELECT a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d AS i FROM " + digits + " a CROSS JOIN " + digits + " b CROSS JOIN " + digits + " c CROSS JOIN " + digits + " e CROSS JOIN " + digits + " f) numbers"
)
