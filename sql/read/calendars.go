package read

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// LearnCalendars reads the calendars that the jobs use, and sets them in the jobs. If no job uses a
// calendar, it reads nothing.
func (db *DB) LearnCalendars(ctx context.Context, jobs ...*Job) error {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Spec.Calendars...)
	}

	slices.Sort(names)
	rows, err := trip.CalendarRows(db.Reader(ctx), slices.Compact(names))
	if err != nil {
		return err
	}

	for _, j := range jobs {
		j.Calendars, j.CalendarsErr = nil, nil
		for _, name := range j.Spec.Calendars {
			row, exists := rows[name]
			switch {
			case row.SpecErr != nil:
				j.CalendarsErr = row.SpecErr
			case exists:
				j.Calendars = append(j.Calendars, row.Calendar)
			}
		}
	}

	return nil
}

// CalendarSummary is a calendar in a list.
type CalendarSummary struct {
	ID, Version        int64
	Name, Timezone     string
	Excludes, Includes int   // entries
	Jobs               int64 // living jobs that use it
	Created, Updated   job.Micros
}

// Calendars lists calendars with higher ids, by id.
func Calendars(r sql.Reader, after int64, limit int) ([]CalendarSummary, error) {
	scan := func(rows *sql.Rows) (c CalendarSummary, err error) {
		err = rows.Scan(&c.ID, &c.Name, &c.Version, &c.Timezone, &c.Excludes, &c.Includes, &c.Created, &c.Updated,
			&c.Jobs)
		return c, err
	}

	return sql.Select(r, "list calendars", scan, `
		SELECT id, name, version, timezone, excludes, includes, created, updated,
			(SELECT COUNT(*) FROM job_ref r WHERE r.kind = 2 AND r.name = c.name)
		FROM calendar c
		WHERE id > ?
		ORDER BY id
		LIMIT ?`, after, limit)
}
