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
// does no harm, since whoever reads compares the names, and no job may be in both, see leaveApp. Zero is none.
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
	var moved []int64 // jobs that were in another app before
	for part := range slices.Chunk(slices.Compact(ids), 500) {
		list, args := in(nil, part)
		err := tx.query("read apps of jobs", func(rows *stdsql.Rows) error {
			var id int64
			var app string
			var was bool
			err := rows.Scan(&id, &app, &was)
			if apps[id] = app; was {
				moved = append(moved, id)
			}
			return err
		}, "SELECT id, app, EXISTS (SELECT 1 FROM job_app b WHERE b.job_id = job.id) FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list, args...)
		if err != nil {
			return err
		}
	}
	if err := tx.learnMoved(runs, moved); err != nil {
		return err
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
