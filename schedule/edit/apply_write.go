package edit

import (
	"errors"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// before writes the rows that precede jobs in the lock order: the folder, pauses, calendars and
// groups.
func (a *applying) before(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
	if a.folder != nil {
		line, err := a.writeFolder(tx)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	for _, part := range []writing{a.writePauses, a.writeCalendars, a.writeGroups} {
		more, err := part(tx, b)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// after writes the rows that follow jobs in the lock order: alert channels and rules, and
// retention. It also wakes runs that wait for the new slots.
func (a *applying) after(tx *sql.Tx, b batch, _ []Done) (lines []*job.Entry, err error) {
	if err := a.wake(tx); err != nil {
		return nil, err
	}
	for _, part := range []writing{a.writeAlerts, a.writeRetention} {
		more, err := part(tx, b)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// writeCalendars locks the wanted calendars in their order, and writes changed calendars.
func (a *applying) writeCalendars(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
	if len(a.calendars) == 0 {
		return nil, nil
	}
	var names []string
	for _, c := range a.calendars {
		names = append(names, c.Name())
	}
	found, err := nameCalendars(tx, slices.Sorted(slices.Values(names)))
	if err != nil && !errors.As(err, new(*trip.CalendarError)) {
		return nil, err
	}
	are := map[string]*job.Calendar{}
	for _, c := range found {
		are[c.Name()] = c
	}

	for _, c := range a.calendars {
		if c.same {
			if is := are[c.Name()]; is == nil || is.Digest() != c.Digest() {
				return nil, errAgain
			}
			continue
		}
		line, err := a.writeCalendar(tx, c)
		if err != nil {
			return nil, err
		}

		users, err := trip.Referring(tx, trip.RefCalendar, c.Name())
		if err != nil {
			return nil, err
		}
		if !b.planned(users) {
			return nil, errAgain
		}
		lines = append(lines, line)
	}
	return lines, nil
}

func (a *applying) writeCalendar(tx *sql.Tx, c appliedCalendar) (*job.Entry, error) {
	row, err := trip.LockCalendar(tx, c.Name())
	switch {
	case errors.Is(err, sql.ErrNotFound) && c.isNew:
		id, err := insertCalendar(tx, c.Calendar, a.now)
		line := calendarLine(job.ActionCreate, id, c.Name())
		line.Became = calendarText(c.Calendar)
		return line, err
	case errors.Is(err, sql.ErrNotFound):
		return nil, errAgain
	case err != nil:
		return nil, err
	case c.isNew || row.Version != c.was.Version:
		return nil, errAgain
	}

	line := calendarLine(job.ActionUpdate, row.ID, c.Name())
	line.Became = calendarText(c.Calendar)
	if row.SpecErr == nil {
		line.Was = calendarText(row.Calendar)
	}
	return line, updateCalendar(tx, &row, c.Calendar, max(a.now, row.Updated+1))
}

// writeGroups locks the wanted groups in the order of their names, and writes changed groups.
func (a *applying) writeGroups(tx *sql.Tx, _ batch) (lines []*job.Entry, err error) {
	for i := range a.groups {
		g := &a.groups[i]
		is, err := trip.LockGroup(tx, g.Name)
		if err != nil {
			return nil, err
		}
		if (is == nil) != (g.was.ID == 0) ||
			is != nil && (is.ID != g.was.ID || is.Slots != g.was.Slots || is.Rate != g.was.Rate) {
			return nil, errAgain
		}

		_, line, err := putGroup(tx, is, g.GroupSpec, a.now)
		if err != nil {
			return nil, err
		}
		if line != nil {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// wake wakes runs that wait for the new slots and rates of groups. The transaction has locked the
// groups.
func (a *applying) wake(tx *sql.Tx) error {
	var names []string
	for i := range a.groups {
		g := &a.groups[i]
		if slots, rate := g.Limits(); slots > g.was.Slots || rate != g.was.Rate {
			names = append(names, g.Name)
		}
	}
	locked, err := trip.LockGroups(tx, names)
	if err != nil || len(locked) == 0 {
		return err
	}

	groups := make([]*trip.Group, 0, len(locked))
	for _, g := range locked {
		groups = append(groups, g)
	}
	_, err = trip.WakeGroups(tx, groups, a.now)
	return err
}
