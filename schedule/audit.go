package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// record makes a change together with its line of the audit, until it is known to be applied or refused. fn returns
// the line, without who and when unless it knows better, or nil when there was nothing to change. The line is what an
// unknown commit is settled by: it stands if and only if the change does.
func (e *Editor) record(ctx context.Context, fn func(*sql.Tx) (*job.Entry, error)) error {
	var line *job.Entry
	return e.DB.TxOnce(ctx, func(tx *sql.Tx) (err error) {
		if line, err = fn(tx); err != nil || line == nil {
			return err
		}
		return audit(ctx, tx, line, e.Session.Now())
	}, func(tx *sql.Tx) (bool, error) {
		if line == nil {
			return true, nil // it wrote nothing
		}
		return tx.Audited(line)
	})
}

// audit writes a line of the audit in the transaction of its change.
func audit(ctx context.Context, tx *sql.Tx, line *job.Entry, now job.Micros) (err error) {
	if line.Who == "" {
		line.Actor = job.ActorOf(ctx)
	}
	if line.At == 0 {
		line.At = now
	}
	line.ID, err = tx.InsertAudit(line)
	return err
}

// itself is the actor of what a node does on its own.
func itself(s Session) job.Actor { return job.Actor{Who: job.Itself, Origin: s.Node()} }
