package bench

import (
	"context"
	"fmt"
	"time"

	"go-crontab/job"
)

// record holds the due time and the lateness of a started run, in microseconds.
type record struct{ due, late int64 }

// inSpan is the number of due times in [from, to) that an ended run covers. ofSpan finds the runs
// that cover any such due time. A node with a large backlog ends many due times by one run with a
// count. In a bench the intervals between these due times are equal. Such a run may begin up to an
// hour before the span, or end after it. edges returns the parameters of both expressions.
const (
	interval = `((due_last - due) / (due_count - 1))`
	inSpan   = `CAST(IF(COALESCE(due_count, 1) = 1, 1, LEAST(due_count, CEIL((? - due) / ` + interval + `))
			- GREATEST(0, CEIL((? - due) / ` + interval + `))) AS SIGNED)`
	ofSpan = `
		FROM run
		WHERE owner = -2 AND due_now >= ? AND due >= ? AND due < ? AND COALESCE(due_last, due) >= ?
			AND kind = 'schedule' AND final = 1`
)

func edges(from, to time.Time) []any {
	a, b, early := from.UnixMicro(), to.UnixMicro(), from.Add(-time.Hour).UnixMicro()
	return []any{b, a, early, early, b, a}
}

// account compares the runs of [from, to) with the number of due times in that span. It also
// returns the started runs.
func (c *schema) account(ctx context.Context, from, to time.Time, due int64) (a Account, started []record, err error) {
	const query = `
		SELECT job_id, due, outcome, ` + inSpan + `, started, CAST(started - due AS SIGNED)` + ofSpan
	rows, err := c.db.QueryContext(ctx, query, edges(from, to)...)
	if err != nil {
		return a, nil, err
	}
	defer rows.Close()

	a = Account{Due: due, Other: map[string]int64{}}
	seen := map[[2]int64]bool{}
	for rows.Next() {
		var id, at, count, began, late int64
		var outcome string
		if err := rows.Scan(&id, &at, &outcome, &count, &began, &late); err != nil {
			return a, nil, err
		}

		if seen[[2]int64{id, at}] {
			a.Doubled++
			continue
		}

		seen[[2]int64{id, at}] = true
		a.Once += count
		if outcome != job.Succeeded.String() {
			a.Other[outcome] += count
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

	open, err := c.open(ctx, from, to)
	a.Open = min(open, max(0, due-a.Once))
	a.Missing = max(0, due-a.Once-a.Open)
	return a, started, err
}

// open counts due times of [from, to) that have not ended: claimed due times, which have a run,
// and unclaimed ones. It assumes that a job is due each second, or only once.
func (c *schema) open(ctx context.Context, from, to time.Time) (int64, error) {
	const claimed = `
		SELECT COUNT(*)
		FROM run
		WHERE due >= ? AND due < ? AND kind = 'schedule' AND state <> 'ended'`
	const ahead = `
		SELECT CAST(COALESCE(SUM(CEIL((? - GREATEST(
			next_due,
			next_due + CEIL((? - next_due) / 1000000) * 1000000
		)) / 1000000)), 0) AS SIGNED)
		FROM job
		WHERE next_due < ?`

	var runs, dues int64
	first, end := from.UnixMicro(), to.UnixMicro()
	err := c.db.QueryRowContext(ctx, claimed, first, end).Scan(&runs)
	if err == nil {
		err = c.db.QueryRowContext(ctx, ahead, end, first, end).Scan(&dues)
	}

	return runs + dues, err
}

// began counts runs that were started in [from, to) and have ended.
func (c *schema) began(ctx context.Context, from, to time.Time) (n int64, err error) {
	const query = `
		SELECT COUNT(*)
		FROM run
		WHERE state = 'ended' AND started >= ? AND started < ?`
	err = c.db.QueryRowContext(ctx, query, from.UnixMicro(), to.UnixMicro()).Scan(&n)
	return n, err
}

// awaitRecords returns when ended runs cover all due times of [from, to). due is the number of
// these due times. awaitRecords also returns if no run has ended for longer than patience. Then
// the other due times are open or missing.
func (c *schema) awaitRecords(ctx context.Context, from, to time.Time, due int64) error {
	last, since := int64(-1), time.Now()
	for {
		var n int64
		if err := c.db.QueryRowContext(ctx,
			"SELECT COALESCE(SUM("+inSpan+"), 0) "+ofSpan, edges(from, to)...).Scan(&n); err != nil {
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

// awaitRound returns when a node has looked through all jobs for records to remove. Such a round
// comes at most every ten minutes, and would distort the cost of an idle node.
func (c *schema) awaitRound(ctx context.Context) error {
	for at, moved := int64(0), time.Now(); time.Since(moved) < time.Minute; {
		var ended, now int64
		if err := c.db.QueryRowContext(ctx,
			"SELECT ended, at_id FROM chore WHERE name = 'retention'").Scan(&ended, &now); err != nil || ended != 0 {
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

// patience is longer than the session expiry plus the minute after which a due time is a misfire.
// By then, other nodes have recorded everything that a dead node left.
const patience = time.Minute + expiry + 10*time.Second

// seriesOf groups the starts of a span by second.
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
