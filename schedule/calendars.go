package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// The versions that PutCalendar may be asked for, beside those that a calendar has had.
const (
	AnyVersion = 0
	NoVersion  = -1 // it must not be there yet
)

// PutCalendar makes a calendar, or replaces one that is at the given version (job.ErrChanged if it is at another), and
// tells whether it is new. Once that has been answered, nothing is started any more at due times later than the change
// that the calendar as it is now excludes, on any node; what it opens is planned within a second or so. Due times that
// had passed by then stay as they were. The same definition again changes nothing.
func (e *Editor) PutCalendar(ctx context.Context, spec job.CalendarSpec, version int64) (isNew bool, err error) {
	spec.Defaults()
	c, err := spec.Compile()
	if err != nil {
		return false, err
	}
	var window job.Micros
	err = e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		isNew, window = false, 0
		row, err := tx.LockCalendar(spec.Name)
		now := e.Session.Now()
		if err == nil || errors.Is(err, sql.ErrNotFound) {
			if err := job.CheckPrecondition(ctx, err == nil, row.Version); err != nil {
				return nil, err
			}
		}
		if errors.Is(err, sql.ErrNotFound) {
			if version > 0 {
				return nil, job.ErrChanged
			}
			isNew = true
			return e.newCalendar(tx, c, now)
		}
		switch {
		case err != nil:
			return nil, err
		case version == NoVersion:
			return nil, fmt.Errorf("calendar %q: %w", spec.Name, sql.ErrExists)
		case version > 0 && row.Version != version:
			return nil, job.ErrChanged
		case row.SpecErr == nil && row.Calendar.Digest() == c.Digest():
			window, err = tx.BegunAhead(spec.Name, now, now.Add(longestWindow)) // who asks again must not be answered before who asked first
			return nil, err
		}
		if err := tx.UpdateCalendar(&row, c, max(now, row.Updated+1)); err != nil {
			return nil, err
		}
		if _, err := tx.Replan(spec.Name, now); err != nil {
			return nil, err
		}
		if window, err = tx.BegunAhead(spec.Name, now, now.Add(longestWindow)); err != nil {
			return nil, err
		}
		line := calendarLine(job.ActionUpdate, row.ID, spec.Name)
		line.Became = calendarText(c)
		if row.SpecErr == nil {
			line.Was = calendarText(row.Calendar)
		}
		return line, nil
	})
	if err != nil {
		return false, err
	}
	return isNew, e.passed(ctx, window)
}

func (e *Editor) newCalendar(tx *sql.Tx, c *job.Calendar, now job.Micros) (*job.Entry, error) {
	id, err := tx.InsertCalendar(c, now)
	if err != nil {
		return nil, err
	}
	// A job may name it whose calendar a hand has removed.
	if _, err := tx.Replan(c.Name(), now); err != nil {
		return nil, err
	}
	line := calendarLine(job.ActionCreate, id, c.Name())
	line.Became = calendarText(c)
	return line, nil
}

// DeleteCalendar deletes a calendar that no job names. job.InUse says which do.
func (e *Editor) DeleteCalendar(ctx context.Context, name string) error {
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		row, err := tx.LockCalendar(name)
		if errors.Is(err, sql.ErrNotFound) {
			return nil, fmt.Errorf("calendar %q: %w", name, err)
		}
		if err != nil {
			return nil, err
		}
		users, err := tx.Referrers(sql.RefCalendar, name, 5)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, &job.InUse{Kind: "calendar", Name: name, By: users}
		}
		line := calendarLine(job.ActionDelete, row.ID, name)
		if row.SpecErr == nil {
			line.Was = calendarText(row.Calendar)
		}
		return line, tx.DeleteCalendar(row.ID)
	})
}

func calendarLine(action job.Action, id int64, name string) *job.Entry {
	return &job.Entry{Action: action, Kind: job.KindCalendar, Ref: id, Name: name}
}

// maxAuditedCalendar is how many bytes of a calendar's definition the audit keeps; of a larger one it keeps how many
// days it has.
const maxAuditedCalendar = 16 << 10

func calendarText(c *job.Calendar) string {
	spec := *c.Spec()
	if text, err := spec.Encode(); err == nil && len(text) <= maxAuditedCalendar {
		return text
	}
	digest := c.Digest()
	b, _ := json.Marshal(map[string]any{ // cannot fail
		"name": spec.Name, "excludes": len(spec.Exclude), "includes": len(spec.Include), "digest": fmt.Sprintf("%x", digest[:8]),
	})
	return string(b)
}

// nameCalendars locks and returns the calendars that a definition names which is about to be written. One that is not
// there, or cannot be read, is a problem of its field.
func nameCalendars(tx *sql.Tx, spec *job.Spec) ([]*job.Calendar, error) {
	found, err := tx.NameCalendars(spec.Calendars)
	if err != nil {
		return nil, err
	}
	var p job.Problems
	for i, name := range spec.Calendars {
		if !slices.ContainsFunc(found, func(c *job.Calendar) bool { return c.Name() == name }) {
			p = append(p, job.Problem{Field: fmt.Sprintf("calendars[%d]", i), Message: fmt.Sprintf("there is no calendar %q; make it first", name)})
		}
	}
	if p != nil {
		return nil, p
	}
	return found, nil
}

// referToCalendars writes down which calendars a job names that is changed from one definition to another.
func referToCalendars(tx *sql.Tx, id int64, from, to *job.Spec) error {
	if slices.Equal(from.Calendars, to.Calendars) && !unread(from) {
		return nil
	}
	return tx.SetRefs(sql.RefCalendar, id, to.Calendars)
}

// marked picks the jobs that are to be planned anew because a calendar of theirs was changed. Others get their due
// times by the calendars as they are when their pause ends.
func marked(jobs map[int64]*sql.JobRow, ids []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		j := jobs[id]
		return j == nil || !j.Replan || j.NextDue == 0 || j.Paused || j.Held || j.Deleted
	})
}

// renew plans a job anew of which a calendar was changed, and whose live tasks are given, all locked. What was planned
// for later than the change and is no due time any more goes, unless it has begun; what is one stays as it is; what has
// become one comes. That begins after max(change, last_due, what waits), the change being where Replan has put the cursor, or
// the cursor itself if that was behind already: so what started meanwhile cannot come again. A due time that the change has
// opened is lost only if a later one was started, or refused, or began to wait, in the second or so until a planner came.
func (p *plans) renew(j *sql.JobRow, live []sql.TaskRow, now job.Micros, s Session) error {
	sched, err := compile(j)
	if err != nil {
		return err
	}
	after := max(j.NextDue-1, j.LastDue)
	for _, t := range live {
		if t.Origin == 0 && t.State == job.Waiting {
			after = max(after, t.Due) // it is not to be counted as missed, however long it has to wait
		}
	}
	var d dueTimes
	if first := firstAfter(sched, after); first != 0 {
		d = until(j, sched, first, now, now.Add(planHorizon), j.Spec.MissedAfter())
	}
	due, there := map[job.Micros]bool{}, map[job.Micros]bool{}
	for _, t := range d.tasks {
		due[t.Due] = true
	}
	is := func(t sql.TaskRow) bool { // beyond after others may stand for it: a counted range, or what is planned later
		return due[t.Due] || t.Due <= after && firstAfter(sched, t.Due-1) == t.Due
	}
	for _, t := range live {
		switch {
		case t.Origin != 0:
		case t.State != job.Executing && t.Attempt == 1 && t.Due >= j.NextDue && !is(t):
			// Its node, if it is prepared, finds no row when it starts it and forgets it.
			p.gone.ahead = append(p.gone.ahead, t.ID)
			if t.State == job.Waiting {
				p.gone.waiting = append(p.gone.waiting, t.ID)
			}
		default:
			there[t.Due] = true
		}
	}
	d.tasks = slices.DeleteFunc(d.tasks, func(t job.Task) bool { return there[t.Due] })
	p.cursors = append(p.cursors, sql.Cursor{JobID: j.ID, Version: j.Version, Seen: j.NextDue, Next: d.next, LastDue: d.last, Replan: true})
	j.NextDue, j.LastDue, j.Replan = d.next, max(j.LastDue, d.last), false
	p.take(d, now, s)
	return nil
}

// renewed is renew for one job that is about to be changed, in its transaction.
func renewed(tx *sql.Tx, j *sql.JobRow, now job.Micros, s Session) error {
	live, err := tx.LiveTasks(j.ID)
	if err != nil {
		return err
	}
	var p plans
	if err := p.renew(j, live, now, s); err != nil {
		return nil // it has no due times that anybody knows
	}
	return p.write(tx)
}

// withdrawn tells whether a due time was planned before a calendar of its job was changed, and no planner has been there
// since, and is none any more.
func withdrawn(t job.Task, j *sql.JobRow) (bool, error) {
	if !j.Replan || t.Origin != 0 || t.Attempt > 1 || t.Due < j.NextDue {
		return false, nil
	}
	s, err := compile(j)
	if err != nil {
		return false, err
	}
	return firstAfter(s, t.Due-1) != t.Due, nil
}

// scheduled are the jobs whose schedules a start needs: of a task that is a misfire, or was planned before a calendar of its
// job was changed. For all others it does not read their calendars.
func scheduled(tasks []job.Task, jobs map[int64]*sql.JobRow, now job.Micros) []*sql.JobRow {
	var out []*sql.JobRow
	for _, t := range tasks {
		j := jobs[t.JobID]
		if j != nil && len(j.Spec.Calendars) > 0 && (j.Replan || now.Sub(t.DueNow) > j.Spec.MissedAfter()) && !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}
