package api

import (
	"errors"
	"fmt"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/audit"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// These methods read the past from audit lines.

// ofJob selects lines of the job's audit.
func (x *inquiry) ofJob(actions ...job.Action) audit.Of {
	return audit.Of{Kind: job.KindJob, Ref: x.j.ID, Actions: actions}
}

// optional turns a missing audit line into nil.
func optional(e job.Entry, err error) (*job.Entry, error) {
	if errors.Is(err, sql.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &e, nil
}

func viewOfChange(e *job.Entry) *view.ChangeNote { return &view.ChangeNote{At: e.At.Time(), By: e.Who} }

// findDefinition finds the definition in force at the instant. If the job was changed later, it is
// the old definition (Was) in the first audit line after the instant. Otherwise it is the current
// definition.
func (x *inquiry) findDefinition() error {
	at := job.MicrosOf(x.at)
	x.spec = x.j.Spec
	text := ""
	if at <= x.now {
		next, err := optional(audit.After(x.cfg.DB.Reader(x.ctx), x.ofJob(job.ActionUpdate, job.ActionRollback), at))
		if err != nil {
			return err
		}
		if next != nil && at >= x.j.Created {
			x.e.Changed, text = viewOfChange(next), next.Was
		}
	}

	if text != "" {
		if !mayRead(x.ctx, appIn(text)) {
			x.e.Changed = nil
			x.say(causeEarlier, "The job belonged to another app at that time.")
			return nil
		}
		if spec, err := job.DecodeSpec(text); err == nil {
			x.spec = spec
			return x.makeSchedule()
		}
	}

	if x.j.SpecErr == nil {
		return x.makeSchedule()
	}
	return nil
}

func (x *inquiry) makeSchedule() (err error) {
	if len(x.spec.Calendars) > 0 {
		x.calendars, err = trip.CalendarsNamed(x.cfg.DB.Reader(x.ctx), x.spec.Calendars)
	}
	x.schedule = x.compile(&x.spec)
	return err
}

// wasYounger answers that the job did not exist yet at the instant. It also says when the job was
// created.
func (x *inquiry) wasYounger() error {
	e, err := optional(audit.After(x.cfg.DB.Reader(x.ctx), x.ofJob(job.ActionCreate), job.MicrosOf(x.at)))
	if err != nil {
		return err
	}

	x.e.Created = &view.ChangeNote{At: x.j.Created.Time()}
	created := "it was created"
	if e != nil {
		x.e.Created, created = viewOfChange(e), e.Who+" created it"
	}

	x.say(causeEarlier, "This job did not exist yet: %s at %s.", created, job.MicrosOf(x.e.Created.At))
	return nil
}

// wasDeleted explains an instant after the deletion of the job.
func (x *inquiry) wasDeleted() (bool, error) {
	if !x.j.Deleted {
		return false, nil
	}

	e, err := optional(audit.After(x.cfg.DB.Reader(x.ctx), x.ofJob(job.ActionDelete), x.j.Created-1))
	if err != nil {
		return false, err
	}

	at, by := x.j.Updated, ""
	x.e.Deleted = &view.ChangeNote{At: at.Time()}
	if e != nil {
		at, by = e.At, " by "+e.Who
		x.e.Deleted = viewOfChange(e)
	}

	if job.MicrosOf(x.at) < at {
		return false, nil
	}

	x.say(causeDeleted, "The job had already been deleted, at %s%s.", at, by)
	return true, nil
}

// wasPausedAt reports whether the job, its app or the cluster was paused at an instant. If the
// explanation has no cause yet, the pause becomes the cause.
func (x *inquiry) wasPausedAt(at job.Micros) (bool, error) {
	for _, of := range []audit.Of{
		x.ofJob(job.ActionPause, job.ActionResume),
		{Kind: job.KindApp, App: x.spec.App},
		{Kind: job.KindCluster},
	} {
		of.Actions = []job.Action{job.ActionPause, job.ActionResume}
		p, ended, err := x.pauseInForce(of, at)
		if err != nil {
			return false, err
		}
		if p == nil {
			continue
		}

		x.e.Pause = viewOfPause(p)
		x.e.Pause.Ended = instant(ended)
		if x.e.Cause == "" {
			end := "."
			if ended != 0 {
				end = fmt.Sprintf(", until %s.", ended)
			}
			x.say(causePaused, "%s%s", pauseWords(p, "was paused from"), end)
		}

		return true, nil
	}

	// The pause may have begun before the oldest audit line.
	if p := x.j.PauseAt(x.now); x.e.Cause == "" && p != nil && at >= p.Since {
		x.isPaused(p)
		return true, nil
	}

	return false, nil
}

// pauseInForce returns the pause in force at an instant, and when this pause ended (0: not yet).
func (x *inquiry) pauseInForce(of audit.Of, at job.Micros) (*job.Pause, job.Micros, error) {
	began, err := optional(audit.Before(x.cfg.DB.Reader(x.ctx), of, at))
	if err != nil || began == nil || began.Action != job.ActionPause {
		return nil, 0, err
	}

	p := &job.Pause{
		Scope: job.Scope(of.Kind), App: of.App, By: began.Who, Reason: began.Reason, Since: began.At,
		Until: began.PauseUntil(),
	}
	if p.Over(at) {
		return nil, 0, nil // it had expired by itself
	}

	of.Actions = []job.Action{job.ActionResume}
	ended, err := optional(audit.After(x.cfg.DB.Reader(x.ctx), of, at))
	if err != nil || ended == nil {
		return p, 0, err
	}
	return p, ended.At, nil
}

// maxLives limits how many sessions are read before and after an instant.
const maxLives = 500

// maxSilence is how long after its last beat a session may still be alive.
const maxSilence = 3 * time.Second

// wasDown finds out whether no node was alive at the instant, or when the due time became missed.
func (x *inquiry) wasDown() error {
	lives, err := livesNear(x.cfg.DB.Reader(x.ctx), job.MicrosOf(x.at), maxLives)
	if err != nil {
		return err
	}

	rows, err := x.cfg.DB.Sessions(x.ctx)
	if err != nil {
		return err
	}

	for _, r := range rows {
		lives = append(lives, job.SessionLife{Started: r.Started.Time(), LastBeat: max(r.BeatAt, x.now).Time()})
	}

	for _, at := range []time.Time{x.at, x.at.Add(x.spec.MissedAfter())} {
		if x.e.Down = gapIn(lives, at); x.e.Down != nil {
			return nil
		}
	}

	return nil
}

// gapIn returns the time around an instant in which no session was alive. It returns nil if a
// session was alive at the instant. It also returns nil if no session is known before it or after
// it.
func gapIn(lives []job.SessionLife, at time.Time) *view.Outage {
	var from, to time.Time
	for _, l := range lives {
		end := l.LastBeat.Add(maxSilence)
		switch {
		case l.Started.After(at):
			if to.IsZero() || l.Started.Before(to) {
				to = l.Started
			}
		case end.Before(at):
			if l.LastBeat.After(from) {
				from = l.LastBeat
			}
		default:
			return nil
		}
	}

	if from.IsZero() || to.IsZero() {
		return nil
	}
	return &view.Outage{From: instant(job.MicrosOf(from)), To: instant(job.MicrosOf(to))}
}

func outageWords(d *view.Outage) string {
	return fmt.Sprintf("No node was running from %s to %s.", job.MicrosOf(*d.From), job.MicrosOf(*d.To))
}

// compile makes the schedule of a definition with the present calendars; nil if that fails.
func (x *inquiry) compile(spec *job.Spec) job.Schedule {
	s, err := spec.Compile(x.calendars...)
	if err != nil {
		return nil
	}
	return s
}

// closed returns the calendar that excludes the instant, and the reason.
func (x *inquiry) closed() (name, why string, ok bool) {
	return x.spec.ExcludedBy(x.at, x.calendars...)
}
