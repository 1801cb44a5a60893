package schedule

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
)

// PutRetention says which records an app keeps, or, with "", the cluster. An empty rule leaves it to the wider one, or
// keeps all.
func (e *Editor) PutRetention(ctx context.Context, app string, r job.Retention) error {
	if err := r.Validate(app); err != nil {
		return err
	}
	now := e.Session.Now()
	put := func(tx *sql.Tx) error {
		old, err := tx.LockRetention(app)
		if err != nil {
			return err
		}
		if old == nil && r == (job.Retention{}) || old != nil && *old == r {
			return nil
		}
		if err := tx.PutRetention(app, r, job.ActorOf(ctx).Who, now); err != nil {
			return err
		}
		return audit(tx, retentionLine(app, old, r), now)
	}
	// Writing it once more does no harm: it is the same then.
	return e.DB.TxOnce(ctx, put, func(*sql.Tx) (bool, error) { return false, nil })
}

// retentionLine is what the audit says of a rule that took the place of another; nil: of none.
func retentionLine(app string, was *job.Retention, r job.Retention) *job.Entry {
	line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindRetention, App: app, Became: r.Encode()}
	if was != nil {
		line.Was = was.Encode()
	}
	return line
}
