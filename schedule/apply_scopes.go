package schedule

import (
	"context"
	"errors"

	"go-crontab/job"
	"go-crontab/sql"
)

// appliedRetention is the retention rule of an app, or with "" of the cluster.
type appliedRetention struct {
	app  string
	rule job.Retention
	was  *job.Retention // nil: there is none
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

// sameRetention tells whether a rule says what there is; no rule says the same as an empty one.
func sameRetention(was *job.Retention, rule job.Retention) bool {
	if was == nil {
		was = &job.Retention{}
	}
	return *was == rule
}

// appliedPause is the pause of an app, or with "" of the cluster.
type appliedPause struct {
	app  string
	want job.PauseRequest
	was  *sql.PauseRow // that lasts; nil: there is none
	over bool          // it has ended by itself: there is nothing to do
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

// lookAtScopes finds out what is to be done about retention and pauses.
func (a *applying) lookAtScopes(ctx context.Context) error {
	if len(a.want.Retention) > 0 {
		rules, err := a.DB.Retentions(ctx)
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
	if len(a.want.Pauses) > 0 {
		rows, err := a.DB.Pauses(ctx)
		if err != nil {
			return err
		}
		for i := range a.want.Pauses {
			w := &a.want.Pauses[i]
			o := appliedPause{app: w.App, want: w.Request(), was: thePause(rows, w.App, a.now)}
			o.over = o.want.Until != 0 && o.want.Until <= a.now
			a.pauses = append(a.pauses, o)
		}
	}
	return nil
}

// thePause returns the pause of an app, or with "" of the cluster, that lasts; nil if there is none.
func thePause(rows []sql.PauseRow, app string, now job.Micros) *sql.PauseRow {
	for i := range rows {
		if r := &rows[i]; r.App == app && !r.Ended && !r.Over(now) {
			return r
		}
	}
	return nil
}

// writePauses writes the pauses that are another now, in the order of their apps, before this transaction shares all.
func (a *applying) writePauses(ctx context.Context, tx *sql.Tx) error {
	for _, o := range a.pauses {
		if o.over {
			continue
		}
		row, err := tx.LockPause(o.app)
		if err != nil && !errors.Is(err, sql.ErrNotFound) {
			return err
		}
		var is *sql.PauseRow
		if err == nil {
			is = thePause([]sql.PauseRow{row}, o.app, a.now)
		}
		if (is == nil) != (o.was == nil) || is != nil && *is != *o.was {
			return errApplyMoved
		}
		if o.tell().Action == job.Unchanged {
			continue
		}
		_, line, err := a.beginPause(ctx, tx, row, o.app, o.want, a.now)
		if err != nil {
			return err
		}
		a.lines = append(a.lines, line)
	}
	return nil
}

// writeRetention writes the rules that are another now, in the order of their apps. Nobody who has locked one waits for
// anything else.
func (a *applying) writeRetention(ctx context.Context, tx *sql.Tx) error {
	for _, o := range a.retention {
		is, err := tx.LockRetention(o.app)
		switch {
		case err != nil:
			return err
		case (is == nil) != (o.was == nil) || is != nil && *is != *o.was:
			return errApplyMoved
		case sameRetention(is, o.rule):
			continue
		}
		if err := tx.PutRetention(o.app, o.rule, job.ActorOf(ctx).Who, a.now); err != nil {
			return err
		}
		a.lines = append(a.lines, retentionLine(o.app, is, o.rule))
	}
	return nil
}

// pausesPassed waits until nothing starts any more that has not seen the pauses.
func (a *applying) pausesPassed(ctx context.Context) error {
	for _, o := range a.pauses {
		if o.over {
			continue
		}
		if err := a.afterPause(ctx, o.app); err != nil || o.app == "" {
			return err // that of the cluster, which is the first, covers all
		}
	}
	return nil
}
