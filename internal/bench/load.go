package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
)

// work sets what a job of the bench does.
type work func(*job.Spec)

// orNoop returns w, or noop if none is set.
func (w work) orNoop() work {
	if w == nil {
		return noop
	}
	return w
}

func noop(s *job.Spec)    { s.Command = "true" } // the no-op executor never reads it
func bash(s *job.Spec)    { s.Command = "true" }
func handler(s *job.Spec) { s.Handler = "bench" }
func calling(url string) work {
	return func(s *job.Spec) { s.HTTP = &job.HTTP{URL: url} }
}

// everySecond adds jobs that are due once a second from first on. With spread, their due times are
// spread over the second. Without it, all are due at once.
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

// once adds jobs with a single due time.
func (c *schema) once(ctx context.Context, n int, at time.Time, w work) error {
	return c.insert(ctx, n, func(i int) job.Spec {
		s := job.Spec{Name: fmt.Sprint("once-", i), At: &at}
		w(&s)
		return s
	})
}

// insert adds jobs in the state that a claim expects: with their first due time, and without runs.
func (c *schema) insert(ctx context.Context, n int, spec func(i int) job.Spec) error {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}

	app, err := c.app(ctx, job.DefaultApp)
	if err != nil {
		return err
	}

	for part := range slices.Chunk(numbers, 1000) {
		var jobs, versions []any
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

			c.jobs++
			jobs = append(jobs, c.jobs, app, s.Name, job.HashOf(s.App, s.Name), first.UnixMicro())
			versions = append(versions, c.jobs, text)
		}

		if err := c.values(ctx,
			"INSERT INTO job (id, app_id, name, hash, next_due) VALUES ", "(?,?,?,?,?)", jobs); err != nil {
			return fmt.Errorf("add jobs: %w", err)
		}
		if err := c.values(ctx,
			"INSERT INTO job_version (job_id, version, definition, created) VALUES ", "(?,1,?,1)",
			versions); err != nil {
			return fmt.Errorf("add definitions: %w", err)
		}
	}

	return nil
}

// values inserts rows. row is the placeholder of a single row.
func (c *schema) values(ctx context.Context, insert, row string, args []any) error {
	rows := strings.Repeat(row+",", len(args)/strings.Count(row, "?"))
	_, err := c.db.ExecContext(ctx, insert+strings.TrimSuffix(rows, ","), args...)
	return err
}

// app returns the id of an app, and adds the app if it is missing.
func (c *schema) app(ctx context.Context, name string) (id int64, err error) {
	if _, err := c.db.ExecContext(ctx, "INSERT IGNORE INTO app (name) VALUES (?)", name); err != nil {
		return 0, fmt.Errorf("add an app: %w", err)
	}
	err = c.db.QueryRowContext(ctx, "SELECT id FROM app WHERE name = ?", name).Scan(&id)
	return id, err
}

// idle adds jobs that are first due in a year, 100,000 per statement.
func (c *schema) idle(ctx context.Context, n int, from time.Time) error {
	at := from.AddDate(1, 0, 0)
	s := job.Spec{App: "idle", Name: "NAME", Every: job.Duration(time.Hour), Start: &at, Command: "true"}
	s.Defaults(at)
	text, err := s.Encode()
	if err != nil {
		return err
	}

	app, err := c.app(ctx, "idle")
	if err != nil {
		return err
	}

	const jobs = `
		INSERT INTO job (id, app_id, name, hash, next_due)
		SELECT ? + i, ?, CONCAT('idle-', ? + i), (? + i) % 1024, ? + (? + i) * 1000
		FROM ` + numbers + `
		WHERE i < ?`
	const versions = `
		INSERT INTO job_version (job_id, version, definition, created)
		SELECT ? + i, 1, REPLACE(?, 'NAME', CONCAT('idle-', ? + i)), 1
		FROM ` + numbers + `
		WHERE i < ?`

	for begin := 0; begin < n; begin += 100_000 {
		id, count := c.jobs+1, min(100_000, n-begin)
		if _, err := c.db.ExecContext(ctx, jobs, id, app, begin, begin, at.UnixMicro(), begin, count); err != nil {
			return fmt.Errorf("add idle jobs: %w", err)
		}
		if _, err := c.db.ExecContext(ctx, versions, id, text, begin, count); err != nil {
			return fmt.Errorf("add definitions of idle jobs: %w", err)
		}
		c.jobs += int64(count)
	}

	return nil
}

// numbers is a table with a column i from 0 to 99,999. It joins five tables of ten digits, because
// that works on any server.
const (
	digits = `(
		SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
		UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
	)`
	numbers = `(
		SELECT a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d AS i
		FROM ` + digits + ` a CROSS JOIN ` + digits + ` b CROSS JOIN ` + digits + ` c
		CROSS JOIN ` + digits + ` e CROSS JOIN ` + digits + ` f
	) numbers`
)
