package edit

import (
	"context"
	"errors"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// pauseKept is how long the row of an ended pause stays. Claims use the row to judge due times that
// passed during the pause.
const pauseKept = 24 * time.Hour

// EndPauses writes audit lines for pauses of apps and of the cluster that have ended by
// themselves. The lines carry the name of a node. EndPauses removes the rows of pauses that ended
// more than a day ago. Any number of nodes may call it at once. If we die before the commit, other
// nodes do the work.
func (e *Editor) EndPauses(ctx context.Context, node string) error {
	stops, err := trip.Stops(e.DB.Reader(ctx))
	if err != nil {
		return err
	}
	now := e.Session.Now()
	var failed []error
	for _, s := range stops {
		if !s.Over(now) || s.Told() && s.Until > now.Add(-pauseKept) {
			continue
		}
		failed = append(failed, e.endPause(ctx, s.Name, node))
	}
	return errors.Join(failed...)
}

// endPause notes that the pause of an app, or of the cluster with an empty name, has ended. A day
// after the audit line, it removes the row of the pause.
func (e *Editor) endPause(ctx context.Context, app, node string) error {
	return e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := lockPause(tx, app, now)
		if err != nil || was.Kind == "" || was.lasts {
			return nil, err
		}
		if was.Told() {
			if was.Until > now.Add(-pauseKept) { // another node has just written the line
				return nil, nil
			}
			_, err := trip.DropStop(tx, was.Kind, app)
			return nil, err
		}

		line := pauseEnded(was.Stop)
		line.Actor.Origin = node
		return line, trip.EndPause(tx, was.Stop, was.Until)
	})
}
