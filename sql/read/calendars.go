package read

import (
	"context"
	"slices"
)

// LearnCalendars reads the calendars that jobs name into the jobs. Where none names one it reads nothing.
func (db *DB) LearnCalendars(ctx context.Context, jobs ...*Job) error {
	var names []string
	for _, j := range jobs {
		names = append(names, j.Spec.Calendars...)
	}
	slices.Sort(names)
	rows, err := db.CalendarRows(ctx, slices.Compact(names))
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
