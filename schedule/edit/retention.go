package edit

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// PutRetention sets the retention rule of an app, or of the cluster with an empty name. With an
// empty rule of an app, the cluster's rule applies; with an empty rule of the cluster, all records
// are kept.
func (e *Editor) PutRetention(ctx context.Context, app string, r job.Retention) error {
	if err := r.Validate(app); err != nil {
		return err
	}
	return e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := trip.LockRetention(tx, app)
		if err != nil {
			return nil, err
		}
		if err := job.CheckPrecondition(ctx, was != nil, 0); err != nil {
			return nil, err
		}

		if sameRetention(was, r) {
			return nil, nil
		}
		return retentionLine(app, was, r), trip.PutRetention(tx, app, r, job.ActorOf(ctx).Who, now)
	})
}

// sameRetention reports whether a rule equals the current one. A missing rule equals an empty one.
func sameRetention(was *job.Retention, rule job.Retention) bool {
	if was == nil {
		was = &job.Retention{}
	}
	return *was == rule
}

// retentionLine returns the audit line of a new retention rule.
func retentionLine(app string, was *job.Retention, r job.Retention) *job.Entry {
	line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindRetention, App: app, Became: r.Encode()}
	if was != nil {
		line.Was = was.Encode()
	}
	return line
}
