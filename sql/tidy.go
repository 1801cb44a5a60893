package sql

import (
	"context"
	stdsql "database/sql"
	"slices"

	"go-crontab/job"
)

// Oldest are the ages of what is removed by its age: when the oldest row of each kind was written, zero if there is none.
type Oldest struct {
	Request job.Micros
	Line    job.Micros // of the audit
	Ending  job.Micros

	FirstStart, LastStart int64 // the first and the last second in which starts of apps are counted
}

// Oldest reads one end of an index for each of its facts, and takes no lock.
func (db *DB) Oldest(ctx context.Context) (o Oldest, err error) {
	const query = `
		SELECT COALESCE((SELECT MIN(created) FROM request FORCE INDEX (created)), 0),
			COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0),
			COALESCE((SELECT at FROM ending FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1), 0),
			COALESCE((SELECT MIN(at) FROM app_start FORCE INDEX (at)), 0),
			COALESCE((SELECT MAX(at) FROM app_start FORCE INDEX (at)), 0)`
	scan := func(rows *stdsql.Rows) error {
		return rows.Scan(&o.Request, &o.Line, &o.Ending, &o.FirstStart, &o.LastStart)
	}
	err = db.query(ctx, "look for old rows", scan, query)
	return o, err
}

// DropRequests removes some requests that were made before an instant, with their keys and answers, and returns how many.
// The runs and backfills that came of them stay.
func (db *DB) DropRequests(ctx context.Context, before job.Micros, limit int) (int, error) {
	const find = `
		SELECT id
		FROM request FORCE INDEX (created)
		WHERE created < ?
		ORDER BY created
		LIMIT ?`
	ids, err := db.ids(ctx, "find old requests", find, int64(before), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	slices.Sort(ids)
	list, args := In(nil, ids)
	query := `
		DELETE r
		FROM request r FORCE INDEX (PRIMARY)
		WHERE r.id IN ` + list
	return len(ids), db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("drop old requests", query, args...)
		return err
	})
}
