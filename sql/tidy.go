package sql

import (
	"context"
	"slices"

	"go-crontab/job"
)

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
