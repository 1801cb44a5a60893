package alert

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// The evaluating node reads without locks and through indexes, and writes no rows of jobs and
// runs.

// work is the state of evaluation: the holder and the position. It is stored in alert_work.
type work struct {
	N        int64 // number of steps; a step is applied only if N has not changed meanwhile
	Holder   uuid.UUID
	Until    job.Micros // until then, other nodes leave the work to the holder
	Position string     // JSON; "": nothing is evaluated
	Changes  int64      // number of changes of definitions
}

// readWork reads the state of evaluation.
func readWork(r sql.Reader) (work, error) {
	var w work
	err := sql.Each(r, "read the state of alerts", func(rows *sql.Rows) error {
		var (
			id       int
			n        int64
			holder   []byte
			until    job.Micros
			position *string
		)
		if err := rows.Scan(&id, &n, &holder, &until, &position); err != nil {
			return err
		}

		if id == 2 {
			w.Changes = n
			return nil
		}

		w.N, w.Until = n, until
		if position != nil {
			w.Position = *position
		}
		copy(w.Holder[:], holder)
		return nil
	}, "SELECT id, n, holder, until, position FROM alert_work")
	return w, err
}

// takeStep writes the holder, its tenure, the position and the number of lost events. If another
// node has taken a step since w was read, takeStep returns false. Then the transaction must be
// rolled back.
func takeStep(tx *sql.Tx, w work, lost int64) (bool, error) {
	n, err := tx.Exec("write the state of alerts", `UPDATE alert_work
		SET `+sql.Next("n")+`, holder = ?, until = ?, position = ?, `+sql.Added("lost")+`
		WHERE id = 1 AND n = ?`,
		w.Holder[:], int64(w.Until), w.Position, lost, w.N)
	return n == 1, err
}

// countLost counts events beyond the limits.
func countLost(tx *sql.Tx, n int64) error {
	_, err := tx.Exec("count lost alerts", "UPDATE alert_work SET "+sql.Added("lost")+" WHERE id = 1", n)
	return err
}

// anyPinged reports whether any living job has a ping.
func anyPinged(r sql.Reader) (bool, error) {
	ids, err := sql.IDs(r, "look for a job with a ping", `SELECT job_id
		FROM job_ref FORCE INDEX (PRIMARY)
		WHERE kind = ?
		LIMIT 1`,
		trip.RefPing)
	return len(ids) > 0, err
}

// pingedJobs returns the living jobs among ids that have a ping.
func pingedJobs(r sql.Reader, ids []int64) (out []int64, err error) {
	for part := range slices.Chunk(ids, 500) {
		list, args := sql.In([]any{trip.RefPing}, part)
		found, err := sql.IDs(r, "pick jobs with a ping", `SELECT job_id
			FROM job_ref FORCE INDEX (PRIMARY)
			WHERE kind = ? AND name = '' AND job_id IN `+list,
			args...)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// templateFailed counts a template that failed.
func templateFailed(tx *sql.Tx) error {
	_, err := tx.Exec("count template", "UPDATE alert_work SET "+sql.Next("template_failures")+" WHERE id = 1")
	return err
}

// dropOld removes a part of the old rows: at most limit rows of each kind. It removes alerts,
// messages, silences and streaks that ended before `before`. It also removes pings and heartbeats
// that were created before `beats`. It returns the number of removed rows.
func dropOld(ctx context.Context, db *sql.DB, before, beats job.Micros, limit int) (int64, error) {
	var total int64
	return total, db.Tx(ctx, func(tx *sql.Tx) error {
		total = 0 // the transaction may run twice

		for _, q := range []struct {
			query string
			args  []any
		}{
			{
				`DELETE FROM alert
				WHERE over_at > 0 AND over_at < ?
				ORDER BY over_at
				LIMIT ?`,
				[]any{int64(before), limit},
			},
			{
				`DELETE FROM delivery
				WHERE created < ? AND state > 1
				ORDER BY created
				LIMIT ?`,
				[]any{int64(before), limit},
			},
			{
				`DELETE FROM delivery
				WHERE created < ? AND state > 1 AND kind IN ('ping', 'heartbeat')
				ORDER BY created
				LIMIT ?`,
				[]any{int64(beats), limit},
			},
			{
				`DELETE FROM alert_silence
				WHERE until < ?
				ORDER BY until
				LIMIT ?`,
				[]any{int64(before), limit},
			},
			{
				`DELETE FROM alert_streak
				WHERE updated < ?
				ORDER BY updated
				LIMIT ?`,
				[]any{int64(before), limit},
			},
		} {
			n, err := tx.Exec("drop old alerts", q.query, q.args...)
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
}
