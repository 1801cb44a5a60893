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
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		old, err := tx.LockRetention(app)
		if err != nil {
			return nil, err
		}
		if err := job.CheckPrecondition(ctx, old != nil, 0); err != nil {
			return nil, err
		}
		if old == nil && r == (job.Retention{}) || old != nil && *old == r {
			return nil, nil
		}
		return retentionLine(app, old, r), tx.PutRetention(app, r, job.ActorOf(ctx).Who, now)
	})
}

// retentionLine is what the audit says of a rule that took the place of another; nil: of none.
func retentionLine(app string, was *job.Retention, r job.Retention) *job.Entry {
	line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindRetention, App: app, Became: r.Encode()}
	if was != nil {
		line.Was = was.Encode()
	}
	return line
}
