package edit

import (
	"fmt"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// verdict is the decision about one job, with the new contents of its rows.
type verdict struct {
	Done
	*view
	row      trip.JobRow
	takeBack []trip.Ahead
	counted  *trip.Counted
	wake     bool // wake the job's waiting runs: their reason to wait may be gone
	again    bool // the row has changed since it was read, so the change must begin again
}

// judge decides about a change. It uses the first reading, the locked row of the job, and the
// future runs of the job's schedule. It never computes a due time.
func judge(v *view, locked *trip.JobRow, ahead []trip.Ahead, now job.Micros) verdict {
	out := verdict{view: v}
	out.ID = v.ID
	switch {
	case v.problem != nil && !(v.Action == recalendar && locked != nil):
		return out.refuse(v.problem)
	case v.Action == job.ActionCreate:
		out.create(now)
		return out
	case locked == nil:
		out.again = true
		return out
	}

	out.row = *locked
	out.Version, out.Changes = locked.Version, locked.Changes
	switch {
	case locked.Deleted:
		return out.refuse(fmt.Errorf("job %d: %w", v.ID, sql.ErrNotFound))
	case v.Change.Changes != 0 && v.Change.Changes != locked.Changes:
		return out.refuse(job.ErrChanged)
	case v.seen.Changes != locked.Changes || v.seen.Paused != locked.Paused: // a pause may end by itself
		out.again = true
		return out
	}

	back, floor := split(ahead, max(now, locked.BegunTo))
	switch v.Action {
	case job.ActionPause:
		out.pause(back)
	case job.ActionResume:
		out.resume(now)
	case job.ActionDelete:
		if v.Finished && (locked.Paused || locked.NextDue != 0 || locked.Error != "" || v.live) {
			return out.refuse(errUnfinished)
		}
		out.delete(back, now)
	case recalendar:
		out.recalendar(back, floor, now)
	default:
		out.change(back, ahead, floor, now)
	}
	if out.Result == job.BulkChanged {
		out.row.Changes++
		out.Version, out.Changes = out.row.Version, out.row.Changes
	}
	return out
}

func (v verdict) refuse(err error) verdict {
	v.Result, v.Err = job.BulkRefused, err
	return v
}

// split divides the runs of a schedule that are due after an instant. back lists the runs that an
// edit takes back. floor is the latest due time of the other runs, or the instant if there are no
// other runs. New due times must come after floor.
func split(ahead []trip.Ahead, after job.Micros) (back []trip.Ahead, floor job.Micros) {
	floor = after
	for _, a := range ahead {
		switch {
		case a.Due <= after:
		case a.Attempt == 1 && (a.State == trip.Idle || a.State == trip.Prepared):
			back = append(back, a)
		default: // the run began before MySQL's clock was put back
			floor = max(floor, a.Due)
		}
	}
	return back, floor
}

func (v *verdict) create(now job.Micros) {
	v.Result, v.Version, v.Changes = job.BulkChanged, 1, 1
	v.row = trip.JobRow{
		AppID: v.appID, Name: v.def.Name, Hash: job.HashOf(v.def.App, v.def.Name), Version: 1, Changes: 1,
		Paused: v.Paused != nil && *v.Paused,
	}
	first, _ := v.next.first(v.next.after)
	if v.def.Delay != 0 {
		first = v.def.FirstDelayed(now)
	}
	v.row.SetCursor(first)
}

// pause takes back runs that have not begun, and parks the cursor at the earliest of their due
// times. It works even if the schedule cannot be computed.
func (v *verdict) pause(back []trip.Ahead) {
	was := v.seen.Pause
	if v.row.Paused &&
		(v.Pause == job.PauseRequest{} || v.Pause == job.PauseRequest{Reason: was.Reason, Until: was.Until}) {
		v.Result = job.BulkUnchanged
		return
	}
	v.Result = job.BulkChanged
	v.park(back)
	v.row.NextDue = v.Pause.Until
}

// park takes back runs that have not begun, and parks the cursor. A paused job has no such runs.
func (v *verdict) park(back []trip.Ahead) {
	if v.row.Paused {
		return
	}
	v.row.Parked = v.row.NextDue
	if len(back) > 0 {
		v.row.Parked = back[0].Due
	}
	v.takeBack = back
	v.row.Paused, v.row.NextDue = true, 0
}

// resume restores the parked cursor. The next claim applies the misfire policy to earlier due
// times.
func (v *verdict) resume(now job.Micros) {
	if !v.row.Paused {
		v.Result = job.BulkUnchanged
		return
	}
	v.Result = job.BulkChanged
	v.unpark(now)
}

func (v *verdict) unpark(now job.Micros) {
	v.row.Resumed = now
	if until := v.row.NextDue; until != 0 {
		v.row.Resumed = min(now, until)
	}
	v.row.Paused, v.row.NextDue, v.row.Parked = false, v.row.Parked, 0
}

// delete takes back runs that have not begun, and counts due times that passed without a run. It
// also works if the schedule cannot be computed. Then the number of due times is unknown.
func (v *verdict) delete(back []trip.Ahead, now job.Micros) {
	v.Result, v.takeBack = job.BulkChanged, back
	if cursor := v.row.Cursor(); cursor != 0 && cursor <= now {
		if v.past == nil || v.past.first != cursor {
			v.past = &past{first: cursor, last: now}
		}
		v.count(job.ReasonJobDeleted, "the job was deleted", now)
	}
	v.row.Deleted, v.row.Paused, v.row.NextDue, v.row.Parked = true, false, 0, 0
}

// change gives the job another definition, and pauses or resumes it if requested. A pause comes
// before update, and a resume after it. So in both cases update moves only the parked cursor.
func (v *verdict) change(back, ahead []trip.Ahead, floor, now job.Micros) {
	if v.Paused != nil && *v.Paused {
		v.park(back)
	}
	v.update(back, ahead, floor, now)
	if v.Paused != nil && !*v.Paused && v.row.Paused {
		v.unpark(now)
	}
}

// pausing returns the effect of a changed definition on the pause: pause, resume, or empty for
// none.
func (v *verdict) pausing() job.Action {
	was := v.seen != nil && v.seen.Paused
	switch {
	case v.def == nil || v.row.Paused == was:
		return ""
	case v.row.Paused:
		return job.ActionPause
	}
	return job.ActionResume
}

// update gives the job another definition. If the due times are the same, the cursor and the runs
// stay, and the runs start under the new definition. If the due times differ, update takes back
// runs that have not begun. It moves the cursor to the first new due time after now and after all
// runs that have begun.
func (v *verdict) update(back, ahead []trip.Ahead, floor, now job.Micros) {
	v.Result = job.BulkChanged
	v.row.Version++
	v.row.AppID, v.row.Name = v.appID, v.def.Name
	v.row.Crowded = v.row.Crowded ||
		v.def.Overlap != job.OverlapAllow && (v.was == nil || v.was.Overlap == job.OverlapAllow)
	v.wake = v.was == nil || v.was.Group != v.def.Group
	if v.sameDues {
		return
	}

	if v.def.Delay != 0 && v.was != nil && v.was.Delay != 0 {
		v.row.SetCursor(v.delayAnew(back, now))
		v.row.Error, v.takeBack = "", back
		return
	}

	if cursor := v.row.Cursor(); cursor != 0 && cursor <= now { // a due time has passed without a claim
		if v.past == nil || v.past.first != cursor {
			v.again = true // a claim has moved the cursor meanwhile
			return
		}
		v.count(job.ReasonScheduleChanged, "the schedule was changed before the due time was claimed", now)
	}

	if v.def.Delay != 0 {
		next := job.Micros(0) // the end of the last run of the old schedule makes it due
		if !v.lives() {
			next = max(v.def.FirstDelayed(now), v.row.BegunTo+1)
		}
		v.row.SetCursor(next)
		v.row.Error, v.takeBack = "", back
		return
	}

	next, known := v.nextAfter(ahead, max(floor, v.row.BegunTo))
	v.row.SetCursor(next)
	v.row.Error, v.takeBack, v.again = "", back, !known
}

// lives reports whether the last run of the job's schedule is not over: it is overdue or has
// begun. If the job has a delay, the end of that run makes the next run due.
func (v *verdict) lives() bool {
	return v.latest != nil && v.latest.State != trip.Ended
}

// delayAnew returns the cursor of a job whose delay or bounds have changed. The new delay counts
// from the same end of a run as the old one.
func (v *verdict) delayAnew(back []trip.Ahead, now job.Micros) job.Micros {
	if v.lives() {
		return 0
	}
	was := v.row.Cursor()
	if len(back) > 0 {
		was = back[0].Due
	}

	next := v.def.FirstDelayed(now)
	switch {
	case v.row.BegunTo == 0: // nothing has run yet
	case was != 0:
		next = max(next, was.Add(time.Duration(v.def.Delay-v.was.Delay)))
	case v.latest != nil:
		next = max(next, v.latest.Ended.Add(time.Duration(v.def.Delay)))
	}
	if v.def.End != nil && next > job.MicrosOf(*v.def.End) {
		return 0
	}
	return max(next, v.row.BegunTo+1)
}

// nextAfter returns the first new due time. A schedule can be a single instant in the past. If
// that instant has no run, it is due at once.
func (v *verdict) nextAfter(ahead []trip.Ahead, floor job.Micros) (next job.Micros, known bool) {
	if v.def.At == nil {
		return v.next.first(floor)
	}
	next, known = v.next.first(v.row.BegunTo)
	for _, a := range ahead {
		if a.Due == next && !(a.Attempt == 1 && next > floor) {
			return 0, known
		}
	}
	return next, known
}

// recalendar makes a new version of the same definition, with the current calendars. It leaves
// passed due times to the next claim.
func (v *verdict) recalendar(back []trip.Ahead, floor, now job.Micros) {
	if v.def == nil || v.problem == nil && v.calendars == v.seen.Calendars {
		v.Result = job.BulkUnchanged
		return
	}
	v.Result = job.BulkChanged
	v.row.Version++
	if cursor := v.row.Cursor(); v.problem == nil && cursor != 0 && cursor <= now {
		return
	}

	v.takeBack = back
	if v.problem != nil {
		v.row.Error = v.problem.Error()
		v.row.SetCursor(0)
		return
	}
	next, known := v.next.first(floor)
	v.row.SetCursor(next)
	v.row.Error, v.again = "", !known
}

// count makes the row for due times that passed without a run. It raises begun_to, so that no
// claim takes these due times again.
func (v *verdict) count(code job.ReasonCode, why string, now job.Micros) {
	outcome := job.Superseded
	if v.seen.Paused {
		outcome, code = job.Skipped, job.ReasonJobPaused
		why = "paused since " + v.seen.Pause.Since.String() + "; " + why
	}
	v.counted = &trip.Counted{
		JobID: v.row.ID, AppID: v.row.AppID, Version: v.seen.Version, Hash: v.row.Hash,
		First: v.past.first, Last: v.past.last, Count: v.past.count, Outcome: outcome,
		Reason: job.Reason{Code: code, Text: why},
	}
	v.row.BegunTo = max(v.row.BegunTo, v.past.last)
}
