package sql

import (
	"context"
	stdsql "database/sql"
	"slices"

	"go-crontab/job"
)

// Untidy is what there is for a tidier to do.
type Untidy struct {
	AtEnd    bool       // some job may be finished, see FinishJobs
	Runs     bool       // see StampRuns
	Moved    bool       // see DropRunApps
	Unlisted bool       // see ListUnlisted
	Request  job.Micros // when the oldest one was made; zero: there is none
	Line     job.Micros // when the oldest line of the audit was written; zero: there is none
}

// Untidy reads one end of an index for each of its facts, and takes no lock.
func (db *DB) Untidy(ctx context.Context) (u Untidy, err error) {
	err = db.query(ctx, "look for what is untidy", func(rows *stdsql.Rows) error {
		return rows.Scan(&u.AtEnd, &u.Runs, &u.Moved, &u.Unlisted, &u.Request, &u.Line)
	}, "SELECT EXISTS (SELECT 1 FROM job FORCE INDEX (stage) WHERE stage = 1), EXISTS (SELECT 1 FROM history FORCE INDEX (by_app) WHERE app = 0), EXISTS (SELECT 1 FROM run_app),"+
		" EXISTS (SELECT 1 FROM job FORCE INDEX (listed) WHERE listed = 0), COALESCE((SELECT MIN(created) FROM request FORCE INDEX (created)), 0), COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0)")
	return u, err
}

// DropRequests removes some requests that were made before an instant, with their keys and answers, and returns how many.
// The tasks, runs and backfills that came of them stay.
func (db *DB) DropRequests(ctx context.Context, before job.Micros, limit int) (int, error) {
	return db.drop(ctx, "request", "created", before, limit)
}

// drop removes the oldest rows of a table, which has an index of the name of the column that says how old they are.
func (db *DB) drop(ctx context.Context, table, column string, before job.Micros, limit int) (int, error) {
	ids, err := db.ids(ctx, "find old rows of "+table, "SELECT id FROM "+table+" FORCE INDEX ("+column+") WHERE "+column+" < ? ORDER BY "+column+" LIMIT ?", int64(before), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	slices.Sort(ids)
	return len(ids), db.Tx(ctx, func(tx *Tx) error {
		list, args := in(nil, ids)
		_, err := tx.exec("drop old rows of "+table, "DELETE t FROM "+table+" t FORCE INDEX (PRIMARY) WHERE t.id IN "+list, args...)
		return err
	})
}

// FinishJobs writes down of some jobs behind the given one that they are finished: they have no due time to be planned
// and no scheduled task. It returns the last job that it looked at, zero at the end.
func (db *DB) FinishJobs(ctx context.Context, after int64, limit int) (last int64, err error) {
	ids, err := db.ids(ctx, "find jobs at their end", "SELECT id FROM job FORCE INDEX (stage) WHERE stage = 1 AND id > ? ORDER BY id LIMIT ?", after, limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if len(ids) == limit {
		last = ids[limit-1]
	}
	live, err := db.LiveJobs(ctx, ids)
	ids = slices.DeleteFunc(ids, func(id int64) bool { _, is := live[id]; return is })
	if err != nil || len(ids) == 0 {
		return last, err
	}
	return last, db.Tx(ctx, func(tx *Tx) error {
		// Whoever plans a job writes its row: with the rows locked, what is read of its tasks stays so.
		list, args := in(nil, ids)
		var still []int64
		err := tx.query("lock jobs at their end", idRows(&still), "SELECT id FROM job FORCE INDEX (PRIMARY) WHERE id IN "+list+" AND stage = 1 ORDER BY id FOR UPDATE", args...)
		if err != nil || len(still) == 0 {
			return err
		}
		list, args = in(nil, still)
		var live []int64
		err = tx.query("look for tasks", idRows(&live), "SELECT DISTINCT job_id FROM task FORCE INDEX (due) WHERE job_id IN "+list+" AND origin = 0", args...)
		still = slices.DeleteFunc(still, func(id int64) bool { return slices.Contains(live, id) })
		if err != nil || len(still) == 0 {
			return err
		}
		list, args = in(nil, still)
		_, err = tx.exec("finish jobs", "UPDATE job FORCE INDEX (PRIMARY) SET finished = 1 WHERE id IN "+list, args...)
		return err
	})
}
