package bench

import (
	"context"
	"fmt"
	"time"
)

// purging measures the steady load twice: with old records that stay, and with old records that
// retention removes. Both measurements begin with the same number of records, so only the removal
// differs.
func (b *run) purging(ctx context.Context) ([]Result, error) {
	return each([]bool{false, true}, func(removed bool) ([]Result, error) {
		p := &past{jobs: 2000, records: 200, removed: removed}
		if b.forTests {
			p.jobs = 20
		}

		variant := "old records stay"
		if removed {
			variant = "old records go"
		}

		return b.steadily(ctx, steady{Spread: true, Past: p, Variant: variant})
	})
}

// past is the history of a cluster.
type past struct {
	jobs, records int // records per job
	removed       bool

	last int64 // id of the newest record
	left int64 // records at the start of the measured span
}

// fill adds the records, each with a short output, and the retention rule that keeps or removes
// them.
func (p *past) fill(ctx context.Context, c *schema, now time.Time) error {
	if err := c.idle(ctx, p.jobs, now); err != nil {
		return err
	}

	keep := `{"age":"876000h"}`
	if p.removed {
		keep = `{"age":"24h"}`
	}

	if _, err := c.db.ExecContext(ctx, "REPLACE INTO retention (app, spec) VALUES ('', ?)", keep); err != nil {
		return fmt.Errorf("set the rule of retention: %w", err)
	}

	// The ids are lower than the ids of any session's runs. The records of a job have consecutive
	// ids.
	const insert = `
		INSERT INTO run (
			id, job_id, app_id, due, due_now, kind, state, owner, claim, hash, started, ended, outcome, final,
			output_bytes, output_kept
		)
		SELECT
			j.id * ? + i, j.id, j.app_id, ? + i, ? + i, 'schedule', 'ended', -2, 1, j.hash, ? + i, ? + i,
			'succeeded', 1, 100, 100
		FROM (SELECT id, app_id, hash FROM job ORDER BY id LIMIT 200 OFFSET ?) j
		CROSS JOIN ` + numbers + `
		WHERE i < ?
		ORDER BY j.id, i`

	old := now.AddDate(0, 0, -2).UnixMicro()
	for from := 0; from < p.jobs; from += 200 {
		if _, err := c.db.ExecContext(ctx, insert, p.records, old, old, old, old, from, p.records); err != nil {
			return fmt.Errorf("add old records: %w", err)
		}
	}

	if _, err := c.db.ExecContext(ctx,
		"INSERT INTO output (run_id, head, tail) SELECT id, REPEAT('x', 100), '' FROM run"); err != nil {
		return fmt.Errorf("add old output: %w", err)
	}

	if err := c.db.QueryRowContext(ctx, "SELECT MAX(id) FROM run").Scan(&p.last); err != nil {
		return fmt.Errorf("count old records: %w", err)
	}
	return nil
}

// count returns the number of records that are left.
func (p *past) count(ctx context.Context, c *schema) (n int64, err error) {
	if err := c.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM run WHERE id <= ?", p.last).Scan(&n); err != nil {
		return 0, fmt.Errorf("count old records: %w", err)
	}
	return n, nil
}

// begun returns when the removal has begun, some seconds after the node has joined. If the records
// stay, it returns at once.
func (p *past) begun(ctx context.Context, c *schema) error {
	for until := time.Now().Add(patience); ; {
		var err error
		if p.left, err = p.count(ctx, c); err != nil || !p.removed || p.left < int64(p.jobs*p.records) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("no old record was removed within %s", patience)
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// ended returns the number of removed records per second of the measured span. It returns an error
// if the removal was complete before the end of the span.
func (p *past) ended(ctx context.Context, b *run, c *schema, span time.Duration) (removed float64, err error) {
	left, err := p.count(ctx, c)
	if err != nil || !p.removed {
		return 0, err
	}

	removed = float64(p.left-left) / span.Seconds()
	b.Say("%.0f old records a second were removed meanwhile", removed)
	if left == 0 && !b.forTests {
		return 0, fmt.Errorf(
			"all old records were removed before the %s were over: measure for less long (--for)", span)
	}

	return removed, nil
}
