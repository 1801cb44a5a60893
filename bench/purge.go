package bench

import (
	"context"
	"fmt"
	"time"
)

// purging is steady twice: beside records that nobody removes, and beside as many that retention removes meanwhile. Both have the
// same table, so that what differs is the removal.
func (b *run) purging(ctx context.Context) ([]Result, error) {
	return each([]bool{false, true}, func(removed bool) ([]Result, error) {
		p := &past{jobs: 2000, records: 200, removed: removed}
		if b.hasty {
			p.jobs = 20
		}
		variant := "old records stay"
		if removed {
			variant = "old records go"
		}
		return b.steadily(ctx, steady{Spread: true, Past: p, Variant: variant})
	})
}

// past is what a cluster has done before.
type past struct {
	jobs, records int // of each job
	removed       bool

	last int64 // id of the newest
	left int64 // when the measured span began
}

// fill adds the records of the past, each with a short output, and says whether they are kept.
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
	// A launch is a number of one session that nobody has; its jobs' ids come first, so that rows lie as a run of retention finds them.
	const session = "REPEAT('p', 16)"
	old := now.AddDate(0, 0, -2).UnixMicro()
	for from := 0; from < p.jobs; from += 200 {
		if _, err := c.db.ExecContext(ctx, "INSERT INTO history (job_id, app, due, session_id, launch, outcome, due_last, started, ended, output_bytes, output_kept, node)"+
			" SELECT j.id, CRC32(j.app), ? + i, "+session+", j.id * ? + i, 1, ? + i, ? + i, ? + i, 100, 100, 'bench-0'"+
			" FROM (SELECT id, app FROM job ORDER BY id LIMIT 200 OFFSET ?) j CROSS JOIN "+numbers+" WHERE i < ? ORDER BY j.id, i",
			old, p.records, old, old, old, from, p.records); err != nil {
			return fmt.Errorf("add old records: %w", err)
		}
	}
	if _, err := c.db.ExecContext(ctx, "INSERT INTO output (session_id, launch, head, tail) SELECT session_id, launch, REPEAT('x', 100), '' FROM history"); err != nil {
		return fmt.Errorf("add old output: %w", err)
	}
	if err := c.db.QueryRowContext(ctx, "SELECT MAX(id) FROM history").Scan(&p.last); err != nil {
		return fmt.Errorf("count old records: %w", err)
	}
	return nil
}

// count returns how many of the records are left.
func (p *past) count(ctx context.Context, c *schema) (n int64, err error) {
	if err := c.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM history WHERE id <= ?", p.last).Scan(&n); err != nil {
		return 0, fmt.Errorf("count old records: %w", err)
	}
	return n, nil
}

// begun returns when the removal has begun, which a node does some seconds after it has joined.
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

// ended returns how many a second were removed in the measured span, and complains when that was not going on for all of it.
func (p *past) ended(ctx context.Context, b *run, c *schema, span time.Duration) (removed float64, err error) {
	left, err := p.count(ctx, c)
	if err != nil || !p.removed {
		return 0, err
	}
	removed = float64(p.left-left) / span.Seconds()
	b.Say("%.0f old records a second were removed meanwhile", removed)
	if left == 0 && !b.hasty {
		return 0, fmt.Errorf("all old records were removed before the %s were over: measure for less long (--for)", span)
	}
	return removed, nil
}
