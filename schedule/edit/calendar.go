package edit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Special versions for PutCalendar.
const (
	AnyVersion = 0
	NoVersion  = -1 // the calendar must not exist yet
)

// PutCalendar makes a calendar, or replaces the given version of it. If the calendar is at another
// version, the error is job.ErrChanged. PutCalendar reports whether the calendar is new.
//
// In the same transaction all jobs that name the calendar get a new version. Their runs that have
// not begun are taken back, and their cursors move to the first due time under the new calendar. A
// cursor in the past stays. The next claim goes on from there with the new calendar.
func (e *Editor) PutCalendar(ctx context.Context, spec job.CalendarSpec, version int64) (isNew bool, err error) {
	spec.Defaults()
	c, err := spec.Compile()
	if err != nil {
		return false, err
	}

	_, err = e.apply(ctx, batch{
		all:       true,
		calendars: func() []*job.Calendar { return []*job.Calendar{c} },
		list:      func(ctx context.Context, _ job.Micros) ([]Change, error) { return e.changesOf(ctx, spec.Name) },
		before: func(tx *sql.Tx, b batch) (lines []*job.Entry, err error) {
			var line *job.Entry
			isNew, line, err = putCalendar(ctx, tx, c, version, b.now)
			if err != nil {
				return nil, err
			}
			if line != nil {
				lines = append(lines, line)
			}
			return lines, sameUsers(tx, spec.Name, b)
		},
	})

	return isNew, err
}

// changesOf returns a change for each job that names a calendar.
func (e *Editor) changesOf(ctx context.Context, calendar string) ([]Change, error) {
	jobs, err := trip.Referring(e.DB.Reader(ctx), trip.RefCalendar, calendar)
	changes := make([]Change, len(jobs))
	for i, id := range jobs {
		changes[i] = Change{Action: recalendar, ID: id}
	}
	return changes, err
}

// sameUsers fails with errAgain if the jobs that name the calendar are no longer the jobs of the
// batch. After this check no job can join or leave: every change that names the calendar must
// write the calendar's row, and this transaction has already written that row.
func sameUsers(tx *sql.Tx, calendar string, b batch) error {
	users, err := trip.Referring(tx, trip.RefCalendar, calendar)
	if err == nil && !slices.EqualFunc(users, b.changes, func(id int64, c Change) bool { return id == c.ID }) {
		err = errAgain
	}
	return err
}

// putCalendar writes the row of a calendar, and returns its audit line. The line is nil if the
// calendar is unchanged.
func putCalendar(
	ctx context.Context, tx *sql.Tx, c *job.Calendar, version int64, now job.Micros,
) (isNew bool, line *job.Entry, err error) {
	row, err := trip.LockCalendar(tx, c.Name())
	exists := err == nil
	if err != nil && !errors.Is(err, sql.ErrNotFound) {
		return false, nil, err
	}
	if err := job.CheckPrecondition(ctx, exists, row.Version); err != nil {
		return false, nil, err
	}
	switch {
	case exists && version == NoVersion:
		return false, nil, fmt.Errorf("calendar %q: %w", c.Name(), sql.ErrExists)
	case version > 0 && (!exists || row.Version != version):
		return false, nil, job.ErrChanged
	case !exists:
		id, err := insertCalendar(tx, c, now)
		line = calendarLine(job.ActionCreate, id, c.Name())
		line.Became = calendarText(c)
		return true, line, err
	case row.SpecErr == nil && row.Calendar.Digest() == c.Digest():
		return false, nil, nil
	}

	line = calendarLine(job.ActionUpdate, row.ID, c.Name())
	line.Became = calendarText(c)
	if row.SpecErr == nil {
		line.Was = calendarText(row.Calendar)
	}
	return false, line, updateCalendar(tx, &row, c, max(now, row.Updated+1))
}

// DeleteCalendar deletes a calendar that no job names. If jobs name it, the error is job.InUse,
// with the names of some jobs.
func (e *Editor) DeleteCalendar(ctx context.Context, name string) error {
	return e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		row, err := trip.LockCalendar(tx, name)
		if err != nil {
			return nil, fmt.Errorf("calendar %q: %w", name, err)
		}

		users, err := trip.Referring(tx, trip.RefCalendar, name)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			names, err := trip.NamesOf(tx, users[:min(len(users), 5)])
			if err != nil {
				return nil, err
			}
			return nil, &job.InUse{Kind: "calendar", Name: name, By: names}
		}

		line := calendarLine(job.ActionDelete, row.ID, name)
		line.At = e.Session.Now()
		if row.SpecErr == nil {
			line.Was = calendarText(row.Calendar)
		}
		return line, deleteCalendar(tx, row.ID)
	})
}

func calendarLine(action job.Action, id int64, name string) *job.Entry {
	return &job.Entry{Action: action, Kind: job.KindCalendar, Ref: id, Name: name}
}

// maxAuditedCalendar is the size in bytes up to which the audit keeps a calendar's definition. For
// a larger calendar it keeps only the numbers of excluded and included days.
const maxAuditedCalendar = 16 << 10

func calendarText(c *job.Calendar) string {
	spec := *c.Spec()
	if text, err := spec.Encode(); err == nil && len(text) <= maxAuditedCalendar {
		return text
	}
	digest := c.Digest()
	b, _ := json.Marshal(map[string]any{ // cannot fail
		"name": spec.Name, "excludes": len(spec.Exclude), "includes": len(spec.Include),
		"digest": fmt.Sprintf("%x", digest[:8]),
	})
	return string(b)
}

// nameCalendars locks calendars for a definition that will name them, and returns the calendars
// that exist. It locks the rows by writing them. Calendars are locked before jobs.
func nameCalendars(tx *sql.Tx, names []string) ([]*job.Calendar, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, args := sql.In(nil, names)
	query := `
		UPDATE calendar
		SET named = named + 1
		WHERE name IN ` + list + `
		ORDER BY id`
	if _, err := tx.Exec("name calendars", query, args...); err != nil {
		return nil, err
	}
	return trip.CalendarsNamed(tx, names)
}

// insertCalendar writes a new calendar and returns its id. If the name is taken, the error is
// sql.ErrExists.
func insertCalendar(tx *sql.Tx, c *job.Calendar, now job.Micros) (int64, error) {
	spec, text, err := encoded(c)
	if err != nil {
		return 0, err
	}
	digest := c.Digest()
	id, err := tx.Insert("insert calendar", `
		INSERT INTO calendar (name, spec, digest, timezone, excludes, includes, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.Name(), text, digest[:], spec.Timezone, len(spec.Exclude), len(spec.Include), int64(now), int64(now))
	if sql.IsDuplicate(err) {
		return 0, fmt.Errorf("calendar %q: %w", c.Name(), sql.ErrExists)
	}
	return id, err
}

// updateCalendar writes the next version of a calendar. The transaction has locked its row.
func updateCalendar(tx *sql.Tx, row *trip.CalendarRow, c *job.Calendar, now job.Micros) error {
	spec, text, err := encoded(c)
	if err != nil {
		return err
	}
	digest := c.Digest()
	n, err := tx.Exec("update calendar", `
		UPDATE calendar
		SET version = version + 1, spec = ?, digest = ?, timezone = ?, excludes = ?, includes = ?, updated = ?
		WHERE id = ? AND version = ?`,
		text, digest[:], spec.Timezone, len(spec.Exclude), len(spec.Include), int64(now), row.ID, row.Version)
	if err == nil && n != 1 {
		err = fmt.Errorf("update calendar %q: %w", row.Name, sql.ErrMoved)
	}
	return err
}

func encoded(c *job.Calendar) (*job.CalendarSpec, string, error) {
	text, err := c.Spec().Encode()
	return c.Spec(), text, err
}

// deleteCalendar deletes a calendar. The transaction has locked its row.
func deleteCalendar(tx *sql.Tx, id int64) error {
	n, err := tx.Exec("delete calendar", "DELETE FROM calendar WHERE id = ?", id)
	if err == nil && n != 1 {
		err = fmt.Errorf("delete calendar %d: %w", id, sql.ErrMoved)
	}
	return err
}
