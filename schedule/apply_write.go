package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// write does it, and waits until it holds everywhere.
func (a *applying) write(ctx context.Context) error {
	if !a.changes() {
		// Who asks again must not be answered before who asked first.
		var ids []int64
		for _, j := range a.jobs {
			ids = append(ids, j.old.ID)
		}
		window, err := a.DB.SpawnWindow(ctx, ids)
		if err == nil {
			err = a.passed(ctx, window)
		}
		if err != nil {
			return err
		}
		return a.pausesPassed(ctx)
	}
	if err := a.record(ctx, func(tx *sql.Tx) (*job.Entry, error) { return a.rows(ctx, tx) }); err != nil {
		return err
	}
	// If we die here all of it stands, and planners and claims find it by themselves.
	if a.plans.soon || a.woken > 0 {
		a.Soon()
	}
	if err := a.passed(ctx, a.window); err != nil {
		return err
	}
	return a.pausesPassed(ctx)
}

// rows is the transaction.
func (a *applying) rows(ctx context.Context, tx *sql.Tx) (*job.Entry, error) {
	a.plans, a.window, a.lines, a.woken = plans{}, 0, nil, 0
	if err := a.writeFolder(tx); err != nil {
		return nil, err
	}
	if err := a.writePauses(ctx, tx); err != nil {
		return nil, err
	}
	pauses, err := tx.SharePauses()
	if err != nil {
		return nil, err
	}
	covers := inForce(pauses)
	calendars, err := a.writeCalendars(tx)
	if err != nil {
		return nil, err
	}
	edits := map[int64]*appliedJob{}
	for i := range a.jobs {
		if j := &a.jobs[i]; j.action() == job.Updated {
			edits[j.old.ID] = j
		}
	}
	seen := map[int64]int64{} // versions
	for id, j := range edits {
		seen[id] = j.old.Version
	}
	for _, r := range a.gone {
		seen[r.ID] = r.Version
	}
	ids := slices.Sorted(maps.Keys(seen))
	if err := tx.HoldJobRows(ids, calendars); err != nil {
		return nil, err
	}
	if err := a.replanJobs(tx, calendars); err != nil {
		return nil, err
	}
	locked, err := a.lockJobs(tx, ids, seen, pauses)
	if err != nil {
		return nil, err
	}
	if err := limitJobs(tx, a.adds(), false); err != nil {
		return nil, err
	}
	changed, err := a.writeGroups(tx)
	if err != nil {
		return nil, err
	}
	live, err := tx.LiveTasksOf(ids, math.MaxInt)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := a.writeJob(ctx, tx, locked[id], live[id], edits[id]); err != nil {
			return nil, err
		}
	}
	if err := a.createJobs(ctx, tx, covers); err != nil {
		return nil, err
	}
	if err := a.plans.write(tx); err != nil {
		return nil, err
	}
	if a.woken, err = tx.WakeGroups(changed, a.now); err != nil {
		return nil, err
	}
	if err := a.writeAlerts(ctx, tx); err != nil {
		return nil, err
	}
	if err := a.writeRetention(ctx, tx); err != nil {
		return nil, err
	}
	return a.writeLines(ctx, tx)
}

// writeCalendars locks all that are wanted or named, and writes those that are another now. It returns their names.
func (a *applying) writeCalendars(tx *sql.Tx) (changed []string, err error) {
	var names []string
	for _, c := range a.calendars {
		names = append(names, c.Name())
	}
	for _, j := range a.jobs {
		if !j.same {
			names = append(names, j.spec.Calendars...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	found, err := tx.NameCalendars(names)
	if err != nil {
		return nil, err
	}
	byName := map[string]*job.Calendar{}
	for _, c := range found {
		byName[c.Name()] = c
	}
	for _, c := range a.calendars {
		if c.same {
			if is := byName[c.Name()]; is == nil || is.Digest() != c.Digest() {
				return nil, errApplyMoved
			}
			continue
		}
		if err := a.writeCalendar(tx, c); err != nil {
			return nil, err
		}
		changed, byName[c.Name()] = append(changed, c.Name()), c.Calendar
	}
	for _, j := range a.jobs { // with what they were looked at
		for _, c := range j.calendars {
			if is := byName[c.Name()]; !j.same && (is == nil || is.Digest() != c.Digest()) {
				return nil, errApplyMoved
			}
		}
	}
	return changed, nil
}

func (a *applying) writeCalendar(tx *sql.Tx, c appliedCalendar) error {
	row, err := tx.LockCalendar(c.Name())
	if errors.Is(err, sql.ErrNotFound) {
		if !c.isNew {
			return errApplyMoved
		}
		id, err := tx.InsertCalendar(c.Calendar, a.now)
		if err != nil {
			return err
		}
		line := calendarLine(job.ActionCreate, id, c.Name())
		line.Became = calendarText(c.Calendar)
		a.lines = append(a.lines, line)
		return nil
	}
	if err != nil {
		return err
	}
	if c.isNew || row.Version != c.was.Version {
		return errApplyMoved
	}
	line := calendarLine(job.ActionUpdate, row.ID, c.Name())
	line.Became = calendarText(c.Calendar)
	if row.SpecErr == nil {
		line.Was = calendarText(row.Calendar)
	}
	a.lines = append(a.lines, line)
	return tx.UpdateCalendar(&row, c.Calendar, max(a.now, row.Updated+1))
}

// replanJobs has the jobs that name changed calendars planned anew. Their rows are locked.
func (a *applying) replanJobs(tx *sql.Tx, calendars []string) error {
	for _, name := range calendars {
		if _, err := tx.Replan(name, a.now); err != nil {
			return err
		}
		window, err := tx.BegunAhead(name, a.now, a.now.Add(longestWindow))
		if err != nil {
			return err
		}
		a.window = max(a.window, window)
	}
	return nil
}

// lockJobs reads the jobs that are to be changed, which must be as they were seen, and plans what they have come to be
// due up to now.
func (a *applying) lockJobs(tx *sql.Tx, ids []int64, seen map[int64]int64, pauses []sql.PauseRow) (map[int64]*sql.JobRow, error) {
	locked, err := tx.LockJobs(ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		j := locked[id]
		if j == nil || j.Deleted || j.Version != seen[id] {
			return nil, errApplyMoved
		}
		j.Covers = inForce(pauses)
	}
	if err := tx.LearnCalendars(slices.Collect(maps.Values(locked))...); err != nil {
		return nil, err
	}
	for _, id := range ids {
		late, err := wakeUpLate(tx, locked[id], pauses, a.now, a.Session)
		if err != nil {
			return nil, err
		}
		a.plans.soon = a.plans.soon || late != nil && late.soon
		if err := catchUp(tx, locked[id], a.now, a.Session); err != nil {
			return nil, err
		}
	}
	return locked, nil
}

// writeGroups locks the groups that are wanted or named, and writes those that are another now. Groups are locked after
// jobs.
func (a *applying) writeGroups(tx *sql.Tx) (changed []sql.Group, err error) {
	found, err := tx.LockGroups(a.named)
	if err != nil {
		return nil, err
	}
	for _, g := range a.groups {
		is := found[g.Name]
		switch {
		case is.ID != g.was.ID || is.Slots != g.was.Slots:
			return nil, errApplyMoved
		case is.Slots == g.Slots:
			continue
		}
		put, _, err := tx.PutGroup(g.Name, g.Slots, a.now)
		if err != nil {
			return nil, err
		}
		changed, found[g.Name] = append(changed, put), put
		line := &job.Entry{Action: job.ActionUpdate, Kind: job.KindGroup, Ref: put.ID, Name: g.Name, Was: slotsText(g.was.Slots), Became: slotsText(g.Slots)}
		if g.was.ID == 0 {
			line.Action, line.Was = job.ActionCreate, ""
		}
		a.lines = append(a.lines, line)
	}
	for _, name := range a.named {
		if _, there := found[name]; !there {
			return nil, errApplyMoved
		}
	}
	return changed, nil
}

func slotsText(slots int) string { return fmt.Sprintf(`{"slots":%d}`, slots) }

// horizon is up to when the next job gets its due times here, behind so many tasks that are not among the plans yet: the
// planner goes on behind it.
func (a *applying) horizon(more int) job.Micros {
	switch n := len(a.plans.tasks) + more; {
	case n < planRows:
		return a.now.Add(planHorizon)
	case n < 5*planRows:
		return a.now.Add(shortHorizon)
	}
	return a.now
}

// take adds what one job's change has come to.
func (a *applying) take(p *plans) {
	a.plans.tasks, a.plans.missed, a.plans.soon = append(a.plans.tasks, p.tasks...), append(a.plans.missed, p.missed...), a.plans.soon || p.soon
}
