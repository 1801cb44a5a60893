package sql

import (
	"context"
	stdsql "database/sql"
	"hash/crc32"
	"slices"

	"go-crontab/job"

	"github.com/google/uuid"
)

// What lists of runs are filtered by stands in the rows of history, by which three indexes find it: app, outcome and
// what made a run due, node. Most runs of most jobs have succeeded and were made due by the schedule; those that did or
// were not are found by their job in the table notable, so that finding them costs the others nothing.

// Trigger says what made a run due.
type Trigger int8

// The triggers.
const (
	BySchedule Trigger = 0
	ByRequest  Trigger = 1 // somebody asked for it
	ByBackfill Trigger = 2
)

func triggerOf(origin int64) Trigger {
	switch {
	case origin > 0:
		return ByRequest
	case origin < 0:
		return ByBackfill
	}
	return BySchedule
}

// appNumber is what stands for an app in rows of history: short, and the same for all nodes. That two apps share one
// does no harm, since whoever reads compares the names. Zero is none.
func appNumber(app string) uint32 {
	if app == "" {
		return 0
	}
	return max(1, crc32.ChecksumIEEE([]byte(app)))
}

// learnApps reads the apps of runs of which whoever ended them did not have them at hand.
func (tx *Tx) learnApps(runs []job.Run) error {
	var ids []int64
	for i := range runs {
		if runs[i].App == "" {
			ids = append(ids, runs[i].JobID)
		}
	}
	slices.Sort(ids)
	apps := map[int64]string{}
	for part := range slices.Chunk(slices.Compact(ids), 500) {
		list, args := in(nil, part)
		err := tx.query("read apps of jobs", func(rows *stdsql.Rows) error {
			var id int64
			var app string
			err := rows.Scan(&id, &app)
			apps[id] = app
			return err
		}, "SELECT id, app FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
		if err != nil {
			return err
		}
	}
	for i := range runs {
		if runs[i].App == "" {
			runs[i].App = apps[runs[i].JobID]
		}
	}
	return nil
}

// noteRuns writes down which of some runs, written by this transaction, are notable.
func (tx *Tx) noteRuns(runs []job.Run) error {
	bySession := map[uuid.UUID][]int64{}
	for i := range runs {
		if r := &runs[i]; r.Outcome != job.Succeeded || r.Origin != 0 {
			bySession[r.Launch.Session] = append(bySession[r.Launch.Session], r.Launch.N)
		}
	}
	for session, counters := range bySession {
		for part := range slices.Chunk(counters, 500) {
			_, err := tx.exec("note runs", "INSERT INTO notable (job_id, outcome, trig, due, id)"+
				" SELECT h.job_id, h.outcome, h.trig, h.due, h.id FROM "+eachOf+"history h FORCE INDEX (launch) ON h.session_id = ? AND h.launch = n.id",
				numbers(part), session[:])
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// StampRuns writes the app into some runs that do not say theirs, because a version before wrote them, and returns how
// many it looked at. It reads one entry of an index when there are none.
func (db *DB) StampRuns(ctx context.Context, limit int) (int, error) {
	ids, err := db.ids(ctx, "find runs without their app", "SELECT id FROM history FORCE INDEX (by_app) WHERE app = 0 LIMIT ?", limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	list, args := in(nil, ids)
	apps := map[string][]int64{}
	err = db.query(ctx, "read apps of runs", func(rows *stdsql.Rows) error {
		var id int64
		var app string
		err := rows.Scan(&id, &app)
		apps[app] = append(apps[app], id)
		return err
	}, "SELECT h.id, COALESCE(j.app, '?') FROM history h FORCE INDEX (PRIMARY) LEFT JOIN job j ON j.id = h.job_id WHERE h.id IN "+list, args...)
	if err != nil {
		return 0, err
	}
	return len(ids), db.Tx(ctx, func(tx *Tx) error {
		for app, ids := range apps {
			list, args := in([]any{appNumber(app)}, ids)
			if _, err := tx.exec("stamp runs", "UPDATE history FORCE INDEX (PRIMARY) SET app = ? WHERE id IN "+list, args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// movedReach is how many batches StampMoved looks ahead of an attempt that executes.
const movedReach = 40

// StampMoved writes into some of the runs of one job, the first from the given one on that was moved into another app,
// that they belong to that one now. It returns with which job to go on, zero at the end: one that executes stays, and does
// not hold up the others.
func (db *DB) StampMoved(ctx context.Context, from int64, limit int) (next int64, err error) {
	moved, err := db.ids(ctx, "find a moved job", "SELECT job_id FROM moved WHERE job_id >= ? ORDER BY job_id LIMIT 1", from)
	if err != nil || len(moved) == 0 {
		return 0, err
	}
	more := false
	err = db.Tx(ctx, func(tx *Tx) error {
		// Who moves the job once more writes this row: it waits for us and begins anew, or we see where it moved the job.
		var since, last job.Micros
		err := tx.query("lock a move", func(rows *stdsql.Rows) error { return rows.Scan(&since) }, "SELECT due FROM moved WHERE job_id = ? FOR UPDATE", moved[0])
		if err != nil {
			return err
		}
		// Read plainly: a lock on the job or its tasks could wait for somebody who waits for this row. And before its runs: that of
		// an attempt that does not execute any more is among those then.
		var app string
		var executing job.Micros // when the earliest attempt of it is due that executes; never: none does
		err = tx.query("read app of a job", func(rows *stdsql.Rows) error { return rows.Scan(&app, &executing) },
			"SELECT app, COALESCE((SELECT MIN(due) FROM task FORCE INDEX (due) WHERE task.job_id = job.id AND task.state = 2), ?) FROM job WHERE id = ?", int64(never), moved[0])
		if err != nil {
			return err
		}
		reach := limit
		if executing != never { // what it has passed it finds again, see below
			reach = limit * movedReach
		}
		var ids []int64 // of those that do not say so yet
		looked, number := 0, appNumber(app)
		err = tx.query("read runs of a moved job", func(rows *stdsql.Rows) error {
			var id int64
			var due job.Micros
			var stamp uint32
			err := rows.Scan(&id, &due, &stamp)
			if len(ids) == limit {
				return err
			}
			if looked, last = looked+1, due; stamp != number {
				ids = append(ids, id)
			}
			return err
		}, "SELECT id, due, app FROM history FORCE INDEX (attempt) WHERE job_id = ? AND due >= ? ORDER BY due, origin, attempt LIMIT ?", moved[0], int64(since), reach)
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			list, args := in([]any{number}, ids)
			if _, err := tx.exec("stamp runs", "UPDATE history FORCE INDEX (PRIMARY) SET app = ? WHERE id IN "+list, args...); err != nil {
				return err
			}
		}
		// An attempt that executes may have begun under the old app, and will write that: it goes on behind none.
		to := max(since, min(executing, max(last, since+1)))
		full := looked == reach || len(ids) == limit
		switch more = full && (to > since || len(ids) > 0); {
		case full:
			_, err = tx.exec("go on with a move", "UPDATE moved SET due = ? WHERE job_id = ?", int64(to), moved[0])
		case executing == never:
			_, err = tx.exec("end a move", "DELETE FROM moved WHERE job_id = ?", moved[0])
		}
		return err
	})
	if more && err == nil {
		return moved[0], nil
	}
	return moved[0] + 1, err // also behind one that cannot be written
}
