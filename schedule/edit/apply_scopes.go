package edit

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// appliedRetention is the retention rule of an app, or of the cluster with an empty name.
type appliedRetention struct {
	app  string
	rule job.Retention
	was  *job.Retention // nil: no rule yet
}

func (o *appliedRetention) tell() job.AppliedObject {
	out := job.AppliedObject{Name: o.app, Action: job.Updated}
	switch {
	case sameRetention(o.was, o.rule):
		out.Action = job.Unchanged
		return out
	case o.was == nil:
		out.Action = job.Created
	}
	out.Changes = o.was.Diff(&o.rule)
	return out
}

// appliedPause is the pause of an app, or of the cluster with an empty name.
type appliedPause struct {
	app  string
	want job.PauseRequest
	was  *trip.Stop // the current pause; nil: not paused
	over bool       // the wanted pause has ended already: nothing to do
}

func (o *appliedPause) tell() job.AppliedObject {
	out := job.AppliedObject{Name: o.app, Action: job.Created}
	var was *job.PauseRequest
	if o.was != nil {
		was, out.Action = &job.PauseRequest{Reason: o.was.Reason, Until: o.was.Until}, job.Updated
	}
	if o.over || was != nil && *was == o.want {
		out.Action = job.Unchanged
		return out
	}
	out.Changes = was.Diff(&o.want)
	return out
}

// lookAtScopes compares retention and pauses with the current state.
func (a *applying) lookAtScopes(ctx context.Context) error {
	if len(a.want.Retention) > 0 {
		rules, err := trip.Retentions(a.DB.Reader(ctx))
		if err != nil {
			return err
		}
		for i := range a.want.Retention {
			w := &a.want.Retention[i]
			o := appliedRetention{app: w.App, rule: w.Rule()}
			if was, there := rules[w.App]; there {
				o.was = &was
			}
			a.retention = append(a.retention, o)
		}
	}
	if len(a.want.Pauses) == 0 {
		return nil
	}

	stops, err := trip.Stops(a.DB.Reader(ctx))
	if err != nil {
		return err
	}

	var apps []string
	for i := range a.want.Pauses {
		w := &a.want.Pauses[i]
		o := appliedPause{app: w.App, want: w.Request(), was: thePause(stops, w.App, a.now)}
		o.over = o.want.Until != 0 && o.want.Until <= a.now
		a.pauses, apps = append(a.pauses, o), append(apps, w.App)
	}

	if !a.want.DryRun {
		a.apps, err = a.numbersOf(ctx, apps...)
	}
	return err
}

// thePause returns the current pause of an app, or of the cluster with an empty name. It is nil
// without a pause.
func thePause(stops []trip.Stop, app string, now job.Micros) *trip.Stop {
	for i := range stops {
		if s := &stops[i]; s.Kind == scopeOf(app) && s.Name == app && (s.Until == 0 || s.Until > now) {
			return s
		}
	}
	return nil
}

// writePauses writes the pauses that differ, in the order of their apps.
func (a *applying) writePauses(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
	for i := range a.pauses {
		o := &a.pauses[i]
		if o.over {
			continue
		}
		is, err := lockPause(tx, o.app, a.now)
		if err != nil {
			return nil, err
		}
		if is.lasts != (o.was != nil) || is.lasts && is.Stop != *o.was {
			return nil, errAgain
		}
		if o.tell().Action == job.Unchanged {
			continue
		}

		_, more, err := beginPause(b.actor, tx, is, o.app, a.apps[o.app], o.want, a.now)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// writeRetention writes the rules that differ, in the order of their apps. A transaction that has
// locked a rule waits for no other lock, so writeRetention cannot deadlock.
func (a *applying) writeRetention(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
	for i := range a.retention {
		o := &a.retention[i]
		is, err := trip.LockRetention(tx, o.app)
		switch {
		case err != nil:
			return nil, err
		case (is == nil) != (o.was == nil) || is != nil && *is != *o.was:
			return nil, errAgain
		case sameRetention(is, o.rule):
			continue
		}
		if err := trip.PutRetention(tx, o.app, o.rule, b.actor.Who, a.now); err != nil {
			return nil, err
		}
		lines = append(lines, retentionLine(o.app, is, o.rule))
	}

	return lines, nil
}
