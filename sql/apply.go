package sql

import (
	"context"
	stdsql "database/sql"
	"slices"

	"go-crontab/job"
)

// namesAtOnce is how many names one statement looks for.
const namesAtOnce = 200

// JobsNamed reads those of some jobs that there are.
func (db *DB) JobsNamed(ctx context.Context, names []job.Name) (map[job.Name]JobRow, error) {
	byApp := map[string][]string{}
	for _, n := range names {
		byApp[n.App] = append(byApp[n.App], n.Name)
	}
	out := make(map[job.Name]JobRow, len(names))
	for app, names := range byApp {
		for part := range slices.Chunk(names, namesAtOnce) {
			list, args := in([]any{app}, part)
			var rows []JobRow
			if err := db.query(ctx, "read jobs by name", jobRows(&rows), "SELECT "+jobColumns+" FROM job WHERE app = ? AND name IN "+list+" AND living = 1", args...); err != nil {
				return nil, err
			}
			for _, r := range rows {
				out[job.Name{App: r.Spec.App, Name: r.Spec.Name}] = r
			}
		}
	}
	return out, nil
}

// GroupsNamed reads those of some groups that there are.
func (db *DB) GroupsNamed(ctx context.Context, names []string) (map[string]Group, error) {
	out := map[string]Group{}
	for part := range slices.Chunk(names, namesAtOnce) {
		list, args := in(nil, part)
		err := db.query(ctx, "read groups by name", func(rows *stdsql.Rows) error {
			g, err := scanGroup(rows)
			out[g.Name] = g
			return err
		}, "SELECT "+groupColumns+" FROM grp WHERE name IN "+list, args...)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CalendarRows reads those of some calendars that there are, without how many jobs name them.
func (db *DB) CalendarRows(ctx context.Context, names []string) (map[string]CalendarRow, error) {
	out := map[string]CalendarRow{}
	for part := range slices.Chunk(names, namesAtOnce) {
		list, args := in(nil, part)
		var rows []CalendarRow
		if err := db.query(ctx, "read calendars by name", calendarRows(&rows), "SELECT "+calendarColumns+" FROM calendar WHERE name IN "+list, args...); err != nil {
			return nil, err
		}
		for _, r := range rows {
			out[r.Name] = r
		}
	}
	return out, nil
}

// HoldJobRows locks the rows of jobs and of those that name some calendars, in the order of their ids: who has to change
// several jobs for several reasons locks them all before it changes one. The calendars are locked.
func (tx *Tx) HoldJobRows(ids []int64, calendars []string) error {
	all := slices.Clone(ids)
	if len(calendars) > 0 {
		list, args := in([]any{RefCalendar}, calendars)
		err := tx.query("read references", func(rows *stdsql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			all = append(all, id)
			return err
		}, "SELECT job_id FROM job_ref WHERE kind = ? AND name IN "+list, args...)
		if err != nil {
			return err
		}
	}
	slices.Sort(all)
	for part := range slices.Chunk(slices.Compact(all), replanBatch) {
		list, args := in(nil, part)
		err := tx.query("hold jobs", func(rows *stdsql.Rows) error { return rows.Scan(new(int64)) },
			"SELECT id FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list+" ORDER BY id FOR UPDATE", args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// SpawnWindow returns until when an attempt of some jobs that has been started may still be spawned; zero if none is.
func (db *DB) SpawnWindow(ctx context.Context, ids []int64) (window job.Micros, err error) {
	for part := range slices.Chunk(ids, replanBatch) {
		err := db.query(ctx, "look for starts", func(rows *stdsql.Rows) error {
			var until job.Micros
			err := rows.Scan(&until)
			window = max(window, until)
			return err
		}, "SELECT COALESCE(MAX(t.spawn_by), 0) FROM "+eachOf+"task t FORCE INDEX (due) ON t.job_id = n.id WHERE t.state = 2", numbers(part))
		if err != nil {
			return 0, err
		}
	}
	return window, nil
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
		_, err := tx.exec("insert audit", "INSERT INTO audit ("+auditInserted+") VALUES "+values(len(args)/auditValues, auditValues), args...)
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
