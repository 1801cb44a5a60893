package schedule

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Stops knows the stops: pauses of apps and of the cluster, disabled handlers, a restored
// database. A loop of its own reads the stops, so starts need no query for them. A node that has
// not read the stops for two seconds starts nothing. So the writer of a stop needs no answer from
// any node: once StopsSeen has passed, nothing starts against the stop.
//
// A nil Stops has no stops.
type Stops struct {
	StopsConfig

	mu   sync.Mutex
	rows []trip.Stop
	read time.Time // when the latest successful look began
}

// StopsConfig configures Stops.
type StopsConfig struct {
	DB          *sql.DB
	Session     interface{ Now() job.Micros }
	Prepared    *Prepared // while Prepared is empty, looks are rarer
	Pauses      Pauses
	Node        string    // name of this node, for the audit
	WakeClaimer loop.Wake // the stops have changed: jobs may have become claimable
	Log         *slog.Logger
}

// Pauses removes pauses that have ended by themselves.
type Pauses interface {
	EndPauses(ctx context.Context, node string) error
}

// NewStops returns stops that are not read yet. The caller runs them.
func NewStops(cfg StopsConfig) *Stops { return &Stops{StopsConfig: cfg} }

const (
	stopsPeriod = 500 * time.Millisecond
	stopsValid  = 2 * time.Second
)

// StopsSeen returns how long after the commit of a stop a node may still spawn a run against the
// stop, if the node has this spawn window.
func StopsSeen(window time.Duration) time.Duration { return stopsValid + maxLead + together + window }

// Run reads until ctx is over.
func (s *Stops) Run(ctx context.Context) error {
	return loop.Loop{Log: s.Log, Failed: "cannot read pauses and disabled handlers, trying again"}.Run(ctx, s.step)
}

// step looks once, and returns the pause until the next look. A node without prepared runs can look
// less often.
func (s *Stops) step(ctx context.Context, _ bool) (pause time.Duration, err error) {
	err = s.look(ctx)
	if s.isOver() {
		if err := s.Pauses.EndPauses(ctx, s.Node); err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot remove ended pauses, trying again", "error", err)
		}
	}

	if s.Prepared.Len() == 0 {
		return 2 * stopsPeriod, err
	}
	return stopsPeriod, err
}

func (s *Stops) look(ctx context.Context) error {
	began := time.Now()
	rows, err := trip.Stops(s.DB.Reader(ctx))
	if err != nil {
		return err
	}

	s.mu.Lock()
	changed := !slices.Equal(rows, s.rows)
	s.rows, s.read = rows, began
	s.mu.Unlock()
	if changed {
		s.WakeClaimer.Up()
	}

	return nil
}

// isOver reports whether a pause has ended by itself.
func (s *Stops) isOver() bool {
	rows, _ := s.now()
	now := s.Session.Now()
	return slices.ContainsFunc(rows, func(x trip.Stop) bool {
		return (x.Kind == trip.StopCluster || x.Kind == trip.StopApp) && x.Until != 0 && x.Until <= now
	})
}

// Any reports whether there was a stop when this node looked last.
func (s *Stops) Any() bool {
	rows, _ := s.now()
	return len(rows) > 0
}

// now returns the stops, and reports whether they are fresh enough to rely on.
func (s *Stops) now() (rows []trip.Stop, fresh bool) {
	if s == nil {
		return nil, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows, !s.read.IsZero() && time.Since(s.read) < stopsValid
}

// unclaimed lists the apps whose due times must not be claimed, and reports whether this holds for
// all apps.
func unclaimed(stops []trip.Stop, now job.Micros) (apps []int32, all bool) {
	for i := range stops {
		switch s := &stops[i]; {
		case !s.Pauses(s.AppID, now):
		case s.Kind == trip.StopCluster:
			return nil, true
		default:
			apps = append(apps, s.AppID)
		}
	}
	return apps, false
}

// resumption is the end of a pause, with the reason code of due times that the pause stopped.
type resumption struct {
	at   job.Micros
	code job.ReasonCode
}

// resumedWith returns the end of the last pause of the cluster or of the whole app. It returns
// zero if there is no row of an ended pause. Such rows stay for a day.
func resumedWith(stops []trip.Stop, app int32, now job.Micros) (last resumption) {
	for i := range stops {
		s := &stops[i]
		if s.Over(now) && (s.Kind == trip.StopCluster || s.AppID == app) && s.Until > last.at {
			last = resumption{s.Until, pauseCode(s)}
		}
	}
	return last
}

func pauseCode(s *trip.Stop) job.ReasonCode {
	if s.Kind == trip.StopCluster {
		return job.ReasonClusterPaused
	}
	return job.ReasonAppPaused
}

// pausedJob: runs of the schedule are refused in a pause, runs of backfills are postponed, and
// manual runs start.
func pausedJob(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	why := j.pause(r.AppID, now)
	switch {
	case why.Code == "" || r.Kind == trip.Manual:
		return nil
	case r.Kind == trip.Backfill:
		return &verdict{action: postpone, at: now.Add(restPeriod)}
	}
	return refusal(job.Skipped, why.Code, "%s", why.Text)
}

// restPeriod is the time between two looks at a backfill's run during a pause.
const restPeriod = 10 * time.Second

// pause returns the reason why the job is paused; zero: it is not paused.
func (j *jobScene) pause(app int32, now job.Micros) job.Reason {
	if j.Paused {
		return job.Reason{Code: job.ReasonJobPaused, Text: "the job is paused"}
	}

	for i := range j.stops {
		s := &j.stops[i]
		switch {
		case !s.Pauses(app, now):
		case s.Kind == trip.StopCluster:
			return job.Reason{Code: pauseCode(s), Text: "the cluster is paused" + s.Words()}
		default:
			return job.Reason{Code: pauseCode(s), Text: "app " + s.Name + " is paused" + s.Words()}
		}
	}

	return job.Reason{}
}

// restoredDatabase: due times before a restore of the database are skipped, because nobody knows
// whether they ran. A restore in the future does not count: after that restore, MySQL's clock was
// put back.
func restoredDatabase(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	for i := range j.stops {
		s := &j.stops[i]
		if s.Kind == trip.StopRestored && due(r) && r.Due < s.Until && s.Until <= now {
			return refusal(job.Skipped, job.ReasonDatabaseRestored,
				"due before the database was restored at %s: it may have run already; see docs/backup.md", s.Until)
		}
	}
	return nil
}

// disabledHandler: a job with a disabled handler starts no runs.
func disabledHandler(_ *trip.Run, j *jobScene, _ job.Micros) *verdict {
	handler := j.def.Spec.Handler
	if handler == "" {
		return nil
	}
	for i := range j.stops {
		if s := &j.stops[i]; s.Kind == trip.StopHandler && s.Name == handler {
			return refusal(job.Skipped, job.ReasonHandlerDisabled, "handler %s is disabled%s", handler, s.Words())
		}
	}
	return nil
}
