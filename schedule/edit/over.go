package edit

import (
	"context"
	"errors"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// EndPauses removes pauses of apps and of the cluster that have ended by themselves, and says so in the audit, in the name of a node.
// Any number of nodes may do it at once. If we die before the commit, others do it.
func (e *Editor) EndPauses(ctx context.Context, node string) error {
	stops, err := trip.Stops(e.DB.Reader(ctx))
	if err != nil {
		return err
	}
	now := e.Session.Now()
	var failed []error
	for _, s := range stops {
		if s.Kind != trip.StopCluster && s.Kind != trip.StopApp || s.Until == 0 || s.Until > now {
			continue
		}
		failed = append(failed, e.endPause(ctx, s.Name, node))
	}
	return errors.Join(failed...)
}

// endPause removes the pause of an app, or with "" of the cluster, if it is over.
func (e *Editor) endPause(ctx context.Context, app, node string) error {
	return e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := lockPause(tx, app, now)
		if err != nil || was.Kind == "" || was.lasts {
			return nil, err
		}
		line := pauseEnded(was.Stop)
		line.Actor.Origin = node
		_, err = trip.DropStop(tx, was.Kind, app)
		return line, err
	})
}
