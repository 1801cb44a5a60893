package sql

import (
	"fmt"
	"slices"
)

// LockID is a row of table locks. Locks are taken in ascending order.
type LockID int

// LockSessions is the lock of the session table.
const LockSessions LockID = 0

// locksThere are the rows that table locks has from the first migration on, by id.
var locksThere = map[LockID]string{LockSessions: "session"}

// TakeLocks takes locks until the transaction ends. A lock is taken by writing its row, not only by
// reading it FOR UPDATE: multi-writer engines certify writes. A row that is not there would exclude
// nobody, so it is an error.
func (tx *Tx) TakeLocks(ids []LockID) error {
	if len(ids) == 0 {
		return nil
	}

	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	list, args := In(nil, ids)
	n, err := tx.Exec("take locks", `
		UPDATE locks FORCE INDEX (PRIMARY)
		SET `+Next("n")+`
		WHERE id IN `+list, args...)
	if err == nil && n != int64(len(ids)) {
		err = fmt.Errorf("take locks: %d of the %d rows exist in table locks; run: go-crontab migrate", n, len(ids))
	}

	return err
}

// Next is SQL that counts a column up. Behind the highest number, which only a hand can have
// written there, it begins anew: a statement that fails would stop whoever needs that row, for all
// jobs.
func Next(column string) string {
	return column + " = IF(" + column + " < 9223372036854775807, " + column + " + 1, 0)"
}

// Added is SQL that adds an argument to a column. What a hand wrote there leaves room for that.
func Added(column string) string { return column + " = LEAST(" + column + ", 4611686018427387904) + ?" }
