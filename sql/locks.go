package sql

import (
	"fmt"
	"slices"
)

// LockID is a row of table locks. Locks are taken in ascending order.
type LockID int

// The locks.
const (
	LockSessions LockID = 0 // of the session table
	LockAfter    LockID = 1 // of changes of which jobs a job follows
)

// requiredLocks are the rows that table locks must have.
var requiredLocks = map[LockID]string{LockSessions: "session", LockAfter: "after"}

// TakeLocks takes locks until the transaction ends. It writes the rows instead of reading them FOR
// UPDATE, because multi-writer engines certify writes only. A missing row would exclude no other
// transaction, so it is an error.
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
		err = fmt.Errorf("take locks: the table locks has %d of %d rows; restore them: go-crontab migrate", n, len(ids))
	}

	return err
}

// Next returns SQL that increments a column. After the highest number, which only a manual edit can
// write, it restarts at 0. Otherwise the statement would fail, and block every job that needs the
// row.
func Next(column string) string {
	return column + " = IF(" + column + " < 9223372036854775807, " + column + " + 1, 0)"
}

// Added returns SQL that adds an argument to a column. It caps a value written by hand, so that the
// sum fits.
func Added(column string) string { return column + " = LEAST(" + column + ", 4611686018427387904) + ?" }
