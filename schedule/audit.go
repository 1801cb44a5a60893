package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// record makes a change together with its line of the audit, see sql.DB.Record. The line says when only if it knows better
// than the session's clock.
func (e *Editor) record(ctx context.Context, fn func(*sql.Tx) (*job.Entry, error)) error {
	err := e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		line, err := fn(tx)
		if line != nil && line.At == 0 {
			line.At = e.Session.Now()
		}
		return line, err
	})
	return e.refusals(err)
}

// audit writes one more line of the audit in the transaction of its change.
func audit(tx *sql.Tx, line *job.Entry, now job.Micros) error {
	if line.At == 0 {
		line.At = now
	}
	return tx.Note(line)
}

// itself is the actor of what a node does on its own.
func itself(s Session) job.Actor { return job.Actor{Who: job.Itself, Origin: s.Node()} }
