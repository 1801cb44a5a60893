package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Pauses lists the pauses of the cluster and of apps. An expired pause is listed until its end has
// an audit line.
func (db *DB) Pauses(ctx context.Context) ([]job.Pause, error) {
	return pauses(db.Reader(ctx))
}

func pauses(r sql.Reader) (out []job.Pause, err error) {
	stops, err := trip.Stops(r)
	for i := range stops {
		s := &stops[i]
		p := job.Pause{App: s.Name, By: s.Who, Reason: s.Reason, Since: s.Since, Until: s.Until}
		switch s.Kind {
		case trip.StopCluster:
			p.Scope = job.ScopeCluster
		case trip.StopApp:
			p.Scope = job.ScopeApp
		default:
			continue
		}

		if p.Until == 0 || !s.Told() {
			out = append(out, p)
		}
	}

	return out, err
}

// HandlersOff lists the disabled handlers.
func (db *DB) HandlersOff(ctx context.Context) (out []trip.Stop, err error) {
	stops, err := trip.Stops(db.Reader(ctx))
	for _, s := range stops {
		if s.Kind == trip.StopHandler {
			out = append(out, s)
		}
	}
	return out, err
}

// cover sets, in each job, the pauses of the job's app and of the cluster.
func cover(r sql.Reader, jobs map[int64]*Job) error {
	if len(jobs) == 0 {
		return nil
	}

	covers, err := pauses(r)
	if err != nil || len(covers) == 0 {
		return err
	}

	for _, j := range jobs {
		for _, p := range covers {
			if p.Scope == job.ScopeCluster || p.App == j.Spec.App {
				j.Covers = append(j.Covers, p)
			}
		}
	}

	return nil
}

// pausedApps is the condition that a job's app or the cluster is paused.
const pausedApps = `EXISTS (
		SELECT 1
		FROM stop s
		WHERE (s.kind = 'cluster' OR s.kind = 'app' AND s.app_id = j.app_id)
			AND (s.until = 0 OR s.until > CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)))`

// appsPaused reports whether an app or the cluster is paused. Then some jobs are paused although
// they have no pause of their own.
func (l *jobList) appsPaused() (bool, error) {
	found, err := pauses(l.reader)
	return len(found) > 0, err
}
