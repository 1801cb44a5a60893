package sql

import (
	"context"
	"slices"

	"go-crontab/job"
)

// namesAtOnce is how many names one statement looks for.
const namesAtOnce = 200

// CalendarRows reads those of some calendars that there are, without how many jobs name them.
func (db *DB) CalendarRows(ctx context.Context, names []string) (map[string]CalendarRow, error) {
	out := map[string]CalendarRow{}
	for part := range slices.Chunk(names, namesAtOnce) {
		list, args := In(nil, part)
		rows, err := Select(db.Reader(ctx), "read calendars by name", scanCalendar, "SELECT "+calendarColumns+" FROM calendar WHERE name IN "+list, args...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.Name] = r
		}
	}
	return out, nil
}

// maxAuditBytes is how much one statement writes of the audit, give or take a line.
const maxAuditBytes = 512 << 10

// InsertAudits writes lines of the audit whose ids nobody needs.
func (tx *Tx) InsertAudits(lines []*job.Entry) error {
	var args []any
	size := 0
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := tx.Exec("insert audit", "INSERT INTO audit ("+auditInserted+") VALUES "+Values(len(args)/auditValues, auditValues), args...)
		args, size = nil, 0
		return err
	}
	for _, e := range lines {
		args, size = append(args, auditArgs(e)...), size+len(e.Was)+len(e.Became)
		if size >= maxAuditBytes || len(args) >= 500*auditValues {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
