package read

import (
	"context"
	"errors"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Fared is an ended run with the fields that statistics need.
type Fared struct {
	Run     int64
	JobID   int64
	Due     job.Micros
	Count   int64 // due times that it covers
	Request int64
	Attempt int
	Outcome job.Outcome
	Took    job.Micros // zero: it was never started
	Final   bool
}

// After reports whether the run f comes after the run o of the same job, in the order of due times.
func (f *Fared) After(o *Fared) bool {
	switch {
	case f.Due != o.Due:
		return f.Due > o.Due
	case f.Request != o.Request:
		return f.Request > o.Request
	}
	return f.Attempt > o.Attempt
}

// Window selects the ended runs that were due in a range of time.
type Window struct {
	App      string
	Apps     []string   // only runs in these apps; nil: all
	From, To job.Micros // both inclusive
	Most     int        // rows to read
}

const faredColumns = `r.id, r.job_id, r.due, COALESCE(r.due_count, 1), r.request, r.attempt, r.outcome,
	IF(r.started > 0, r.ended - GREATEST(r.started, r.due_now), 0), r.final <> 0`

// faredRows runs a query and reads its rows. A row has faredColumns, then whether the row counts,
// then the time by which the rows are ordered.
func faredRows(r sql.Reader, query string, args ...any) (out []Fared, rows int, last job.Micros, err error) {
	err = sql.Each(r, "read runs of a window", func(row *sql.Rows) error {
		var (
			f      Fared
			text   string
			counts bool
		)
		err := row.Scan(&f.Run, &f.JobID, &f.Due, &f.Count, &f.Request, &f.Attempt, &text, &f.Took, &f.Final,
			&counts, &last)
		if err != nil {
			return err
		}

		rows++
		if counts {
			f.Outcome, _ = job.ParseOutcome(text)
			out = append(out, f)
		}
		return nil
	}, query, args...)
	return out, rows, last, err
}

// RunsOfWindow reads the ended runs of a window, the latest first. It has read all runs that are
// due at since or later. If the window has too many runs, since is after the beginning of the
// window.
func (db *DB) RunsOfWindow(ctx context.Context, w Window) (out []Fared, since job.Micros, err error) {
	r := db.Reader(ctx)
	apps, none, err := appsOf(r, w.App, w.Apps)
	if err != nil || none {
		return nil, w.From, err
	}

	type part struct{ from, where, by, order string }
	parts := []part{{"live", "r.owner = -2", "r.due_now", "r.due_now DESC, r.hash DESC, r.id DESC"}}
	left := "r.state = 'ended'"
	if apps != nil && len(apps) < manyRunApps {
		parts = nil
		for _, app := range apps {
			parts = append(parts, part{"by_app", "r.app_id IN " + list([]int32{app}), "r.due", "r.due DESC, r.id DESC"})
		}
	} else if apps != nil {
		left += " AND r.app_id IN " + list(apps)
	}

	since = w.From
	for _, p := range parts {
		most := w.Most / len(parts)
		query := `
			SELECT ` + faredColumns + `, ` + left + `, ` + p.by + `
			FROM run r FORCE INDEX (` + p.from + `)
			WHERE ` + p.where + ` AND ` + p.by + ` BETWEEN ? AND ?
			ORDER BY ` + p.order + `
			LIMIT ?`

		found, rows, last, err := faredRows(r, query, int64(w.From), int64(w.To), most)
		if err != nil {
			return nil, 0, err
		}
		if rows == most {
			since = max(since, last+1)
		}
		out = append(out, found...)
	}

	// A range of due_now also holds retries that begin in the window but were due before it. Leave
	// out runs that are not due in the window.
	return slices.DeleteFunc(out, func(f Fared) bool { return f.Due < since || f.Due > w.To }), since, nil
}

// wrongOutcomes are the outcomes for which job.Outcome.Wrong is true.
var wrongOutcomes = []string{"failed", "timed_out", "lost", "missed"}

// FailuresOfWindow reads the final runs of a window that went wrong. since has the same meaning as
// in RunsOfWindow. Unlike RunsOfWindow, it also finds a few failures among very many successful
// runs.
func (db *DB) FailuresOfWindow(ctx context.Context, w Window) (out []Fared, since job.Micros, err error) {
	r := db.Reader(ctx)
	apps, none, err := appsOf(r, w.App, w.Apps)
	if err != nil || none {
		return nil, w.From, err
	}

	index, where, left, each := "PRIMARY", []string{"TRUE"}, "r.final = 1", wrongOutcomes
	if apps != nil && len(apps) < manyRunApps {
		index, where = "by_app", nil
		for _, app := range apps {
			where = append(where, "n.app_id IN "+list([]int32{app}))
		}
	} else if apps != nil {
		left += " AND n.app_id IN " + list(apps)
	}

	since = w.From
	for _, of := range where {
		for _, outcome := range each {
			most := w.Most / len(where) / len(each)
			query := `
				SELECT ` + faredColumns + `, ` + left + `, n.due
				FROM notable n FORCE INDEX (` + index + `)
				STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.run_id
				WHERE ` + of + ` AND n.outcome = ? AND n.due BETWEEN ? AND ?
				ORDER BY n.due DESC, n.run_id DESC
				LIMIT ?`

			found, rows, last, err := faredRows(r, query, outcome, int64(w.From), int64(w.To), most)
			if err != nil {
				return nil, 0, err
			}
			if rows == most {
				since = max(since, last+1)
			}
			out = append(out, found...)
		}
	}

	return slices.DeleteFunc(out, func(f Fared) bool { return f.Due < since }), since, nil
}

// RunsAndOutput reads runs. For the first most of them it also reads the kept output, as far as
// that is readable.
func (db *DB) RunsAndOutput(ctx context.Context, ids []int64, most int) (map[int64]*Run, error) {
	r := db.Reader(ctx)
	rows, err := runsByID(r, ids)
	if err != nil {
		return nil, err
	}

	first := make(map[int64]*Run, most)
	for _, id := range ids[:min(len(ids), most)] {
		if run := rows[id]; run != nil {
			first[id] = run
		}
	}
	if _, err := readOutputs(r, first); err != nil && !errors.Is(err, ErrUnreadable) {
		return nil, err
	}
	return rows, nil
}

// JobsByID reads living and deleted jobs.
func (db *DB) JobsByID(ctx context.Context, ids []int64) (map[int64]*Job, error) {
	return jobsByID(db.Reader(ctx), ids)
}

// CountExecuting counts the executing runs in some apps, up to most. If apps is nil, it counts them
// in all apps.
func (db *DB) CountExecuting(ctx context.Context, app string, apps []string, most int) (int64, error) {
	rows, err := db.ExecutingRuns(ctx, RunFilter{App: app, Apps: apps, Limit: most})
	return int64(len(rows)), err
}
