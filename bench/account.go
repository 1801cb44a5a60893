package bench

import (
	"context"
	"fmt"
	"time"

	"go-crontab/job"
)

// record is one start, as the history has it.
type record struct{ due, late int64 }

// inSpan is how many due times of [from, to) a row of the history stands for, and ofSpan finds the rows that stand for any:
// who is far behind ends due times, which are a steady distance apart, by one row for many of them, and that may reach into the span from
// before it, or out of it. Their parameters are those that edges returns.
const (
	apart  = "((due_last - due) / (due_count - 1))"
	inSpan = "CAST(IF(due_count = 1, 1, LEAST(due_count, CEIL((? - due) / " + apart + ")) - GREATEST(0, CEIL((? - due) / " + apart + "))) AS SIGNED)"
	ofSpan = " FROM history WHERE due >= ? AND due < ? AND due_last >= ? AND origin = 0 AND final = 1"
)

func edges(from, to time.Time) []any {
	a, b := from.UnixMicro(), to.UnixMicro()
	return []any{b, a, from.Add(-time.Hour).UnixMicro(), b, a}
}

// account holds the due times of [from, to) against the records of them: so many were due. It returns what was started,
// too.
func (c *schema) account(ctx context.Context, from, to time.Time, due int64) (a Account, started []record, err error) {
	rows, err := c.db.QueryContext(ctx, "SELECT job_id, due, outcome, "+inSpan+", started, lateness"+ofSpan, edges(from, to)...)
	if err != nil {
		return a, nil, err
	}
	defer rows.Close()
	a = Account{Due: due, Other: map[string]int64{}}
	seen := map[[2]int64]bool{}
	for rows.Next() {
		var id, at, count, began, late int64
		var outcome job.Outcome
		if err := rows.Scan(&id, &at, &outcome, &count, &began, &late); err != nil {
			return a, nil, err
		}
		if seen[[2]int64{id, at}] {
			a.Doubled++
			continue
		}
		seen[[2]int64{id, at}] = true
		a.Once += count
		if outcome != job.Succeeded {
			a.Other[outcome.String()] += count
		}
		if began != 0 {
			started = append(started, record{at, late})
			if late < 0 {
				a.Early++
			}
		}
	}
	if err := rows.Err(); err != nil {
		return a, nil, err
	}
	var tasks, ahead int64
	err = c.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM task WHERE due >= ? AND due < ? AND origin = 0", from.UnixMicro(), to.UnixMicro()).Scan(&tasks)
	if err == nil { // what is not planned yet, of jobs that are due each second or once
		err = c.db.QueryRowContext(ctx, "SELECT CAST(COALESCE(SUM(CEIL((? - GREATEST(next_due, next_due + CEIL((? - next_due) / 1000000) * 1000000)) / 1000000)), 0) AS SIGNED) FROM job WHERE next_due < ?",
			to.UnixMicro(), from.UnixMicro(), to.UnixMicro()).Scan(&ahead)
	}
	a.Open = min(tasks+ahead, max(0, due-a.Once))
	a.Missing = max(0, due-a.Once-a.Open)
	return a, started, err
}

// began counts what was started in [from, to).
func (c *schema) began(ctx context.Context, from, to time.Time) (n int64, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM history WHERE started >= ? AND started < ?", from.UnixMicro(), to.UnixMicro()).Scan(&n)
	return n, err
}

// awaitRecords returns when so many records are there for due times of [from, to), or when nothing has come for a while:
// what is missing then is missing.
func (c *schema) awaitRecords(ctx context.Context, from, to time.Time, due int64) error {
	last, since := int64(-1), time.Now()
	for {
		var n int64
		if err := c.db.QueryRowContext(ctx, "SELECT COALESCE(SUM("+inSpan+"), 0)"+ofSpan, edges(from, to)...).Scan(&n); err != nil {
			return fmt.Errorf("count records: %w", err)
		}
		if n >= due {
			return nil
		}
		if n != last {
			last, since = n, time.Now()
		} else if time.Since(since) > patience {
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// awaitRound returns when a node has been through all jobs for records to remove, as it is each ten minutes or more rarely: it would be
// measured as what it costs to have nothing to do.
func (c *schema) awaitRound(ctx context.Context) error {
	for at, moved := int64(0), time.Now(); time.Since(moved) < time.Minute; {
		var ended, now int64
		if err := c.db.QueryRowContext(ctx, "SELECT ended, at_id FROM chore WHERE name = 'retention'").Scan(&ended, &now); err != nil || ended != 0 {
			return err
		}
		if now != at {
			at, moved = now, time.Now()
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("nobody has gone on through all jobs for a minute")
}

// patience is longer than a session lives, and than it takes until a due time is a misfire (a minute): whoever has taken over has
// recorded what there was by then.
const patience = time.Minute + expiry + 10*time.Second

// seriesOf is what started in each second of a span.
func seriesOf(started []record, from time.Time, seconds int) []Second {
	late := make([][]int64, seconds)
	for _, r := range started {
		i := int((r.due - from.UnixMicro()) / 1e6)
		if i >= 0 && i < seconds {
			late[i] = append(late[i], r.late)
		}
	}
	out := make([]Second, seconds)
	for i, us := range late {
		l := lateOf(us)
		out[i] = Second{At: float64(i), Fires: len(us), P50: l.P50, P99: l.P99, Max: l.Max}
	}
	return out
}
