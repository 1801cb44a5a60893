package edit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// usualStopsSeen is schedule.StopsSeen with the usual spawn window, plus a margin for slow commits.
const usualStopsSeen = 3500 * time.Millisecond

// seen waits until no node can start a run against a stop that has just been committed. It asks no
// node, because a node that has not read the stops for two seconds starts nothing.
//
// Nodes far from MySQL have longer spawn windows. Such a node may have started runs before the
// stop, and may spawn them even later. The rows of these runs have the ends of their windows.
func (e *Editor) seen(ctx context.Context, app int32) error {
	wait := e.StopsSeen
	if wait == 0 {
		wait = usualStopsSeen
	}
	select {
	case <-ctx.Done():
		err := context.Cause(ctx)
		return &sql.Unknown{Err: fmt.Errorf("the change is made, but a run that was starting may still begin: %w", err)}
	case <-time.After(wait):
	}

	until, err := trip.SpawnByOf(e.DB.Reader(ctx), app)
	if err != nil {
		return &sql.Unknown{Err: fmt.Errorf("the change is made, but a run that was starting may still begin: %w", err)}
	}
	return e.passed(ctx, until)
}

// PauseApp stops the due times of all jobs of an app, future jobs included, or of the whole
// cluster with an empty name. The pause lasts until somebody resumes the app, or until the end in
// the request. A pause is one row, for any number of jobs. If the app is already paused, PauseApp
// replaces the reason and the end, if either is given.
func (e *Editor) PauseApp(ctx context.Context, app string, r job.PauseRequest) (job.Pause, error) {
	if err := r.Validate(e.Session.Now()); err != nil {
		return job.Pause{}, err
	}
	numbers, err := e.numbersOf(ctx, app)
	if err != nil {
		return job.Pause{}, err
	}

	var p job.Pause
	err = e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := lockPause(tx, app, now)
		if err != nil {
			return nil, err
		}
		if was.lasts && (r == job.PauseRequest{} || r == job.PauseRequest{Reason: was.Reason, Until: was.Until}) {
			p = pauseOf(was.Stop)
			return nil, nil
		}
		var lines []*job.Entry
		p, lines, err = beginPause(job.ActorOf(ctx), tx, was, app, numbers[app], r, now)
		if err != nil {
			return nil, err
		}
		return note(tx, lines, batch{now: now, actor: job.ActorOf(ctx)})
	})
	if err != nil {
		return job.Pause{}, err
	}
	// Wait even if nothing has changed: a repeated request must not return before the original one.
	return p, e.seen(ctx, numbers[app])
}

// numbersOf returns the numbers of apps by their names. The cluster, with an empty name, has number
// zero.
func (e *Editor) numbersOf(ctx context.Context, apps ...string) (map[string]int32, error) {
	var named []string
	for _, app := range apps {
		if app != "" {
			named = append(named, app)
		}
	}
	return e.numbers(ctx, named)
}

// lockedPause is the row of a pause. Without a row it is zero.
type lockedPause struct {
	trip.Stop
	lasts bool // false: the pause has ended by itself, or does not exist
}

// lockPause locks the pause of an app, or of the cluster with an empty name.
func lockPause(tx *sql.Tx, app string, now job.Micros) (p lockedPause, err error) {
	p.Stop, err = trip.LockStop(tx, scopeOf(app), app)
	if errors.Is(err, sql.ErrNotFound) {
		return lockedPause{}, nil
	}
	p.lasts = !p.over(now)
	return p, err
}

func (p *lockedPause) over(now job.Micros) bool { return p.Until != 0 && p.Until <= now }

func scopeOf(app string) trip.StopKind {
	if app == "" {
		return trip.StopCluster
	}
	return trip.StopApp
}

// pauseOf returns the pause in a row.
func pauseOf(s trip.Stop) job.Pause {
	p := job.Pause{Scope: job.ScopeApp, App: s.Name, By: s.Who, Reason: s.Reason, Since: s.Since, Until: s.Until}
	if s.Kind == trip.StopCluster {
		p.Scope = job.ScopeCluster
	}
	return p
}

// beginPause begins a pause, or replaces the current one.
func beginPause(
	by job.Actor, tx *sql.Tx, was lockedPause, app string, number int32, r job.PauseRequest, now job.Micros,
) (job.Pause, []*job.Entry, error) {
	stop := trip.Stop{
		Kind: scopeOf(app), Name: app, AppID: number, Since: now, Until: r.Until, Who: by.Who, Reason: r.Reason,
	}
	var lines []*job.Entry
	switch {
	case was.lasts:
		stop.Since = was.Since
	case was.Kind != "" && !was.Told():
		lines = append(lines, pauseEnded(was.Stop))
	}

	line := appLine(job.ActionPause, app)
	line.Reason, line.Became = r.Reason, untilText(r.Until)
	return pauseOf(stop), append(lines, line), trip.PutStop(tx, stop)
}

// ResumeApp ends the pause of an app, or of the cluster with an empty name. The misfire policies of
// its jobs decide about due times during the pause.
func (e *Editor) ResumeApp(ctx context.Context, app string) error {
	err := e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := lockPause(tx, app, now)
		switch {
		case err != nil || was.Kind == "" || !was.lasts && was.Told():
			return nil, err
		case !was.lasts:
			return pauseEnded(was.Stop), trip.EndPause(tx, was.Stop, was.Until)
		}
		return appLine(job.ActionResume, app), trip.EndPause(tx, was.Stop, now)
	})
	if err == nil {
		e.wake()
	}
	return err
}

// pauseEnded returns the audit line of a pause that ended by itself.
func pauseEnded(s trip.Stop) *job.Entry {
	line := appLine(job.ActionResume, s.Name)
	line.Actor = job.Actor{Who: job.Itself}
	line.Reason = fmt.Sprintf("it was paused until %s", s.Until)
	return line
}

func appLine(action job.Action, app string) *job.Entry {
	if app == "" {
		return &job.Entry{Action: action, Kind: job.KindCluster}
	}
	return &job.Entry{Action: action, Kind: job.KindApp, App: app}
}

// DisableHandler stops all nodes from starting jobs with a handler. Due times of these jobs end
// skipped until the handler is enabled again.
func (e *Editor) DisableHandler(ctx context.Context, key, reason string) error {
	if err := job.ValidateHandler(key, reason); err != nil {
		return err
	}

	err := e.record(ctx, func(tx *sql.Tx, now job.Micros) (*job.Entry, error) {
		was, err := trip.LockStop(tx, trip.StopHandler, key)
		switch {
		case errors.Is(err, sql.ErrNotFound):
			was.Since = now
		case err != nil:
			return nil, err
		case was.Reason == reason:
			return nil, nil
		}
		line := &job.Entry{Action: job.ActionDisable, Kind: job.KindHandler, Name: key, Reason: reason}
		return line, trip.PutStop(tx, trip.Stop{
			Kind: trip.StopHandler, Name: key, Since: was.Since, Who: job.ActorOf(ctx).Who, Reason: reason,
		})
	})
	if err != nil {
		return err
	}

	return e.seen(ctx, 0)
}

// EnableHandler allows jobs with a handler to start again. It does nothing if the handler is not
// disabled.
func (e *Editor) EnableHandler(ctx context.Context, key string) error {
	if err := job.ValidateHandler(key, ""); err != nil {
		return err
	}
	return e.record(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		disabled, err := trip.DropStop(tx, trip.StopHandler, key)
		if err != nil || !disabled {
			return nil, err
		}
		return &job.Entry{Action: job.ActionEnable, Kind: job.KindHandler, Name: key}, nil
	})
}
