package sql

import (
	"fmt"
	"slices"
)

// LockID is the id of a row in table `locks`. Locks are taken in ascending order.
type LockID int

// The locks.
const (
	LockSessions LockID = 0 // of the session table
	LockAfter    LockID = 1 // of changes of which jobs a job follows
)

// requiredLocks are the rows that must exist in table `locks`.
var requiredLocks = map[LockID]string{LockSessions: "session", LockAfter: "after"}

// TakeLocks takes locks that last until the transaction ends. It writes the rows instead of reading
// them FOR UPDATE, because multi-writer engines certify only writes. A missing row is an error: it
// would exclude no other transaction.
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

// Next returns SQL that increments a column. After the highest number, it restarts at 0. Only a
// change outside the program can write that number. Without the restart, the statement would fail,
// and block every job that needs the row.
func Next(column string) string {
	return column + " = IF(" + column + " < 9223372036854775807, " + column + " + 1, 0)"
}

// Added returns SQL that adds an argument to a column. It caps a value that was written outside the
// program, so that the sum fits.
func Added(column string) string { return column + " = LEAST(" + column + ", 4611686018427387904) + ?" }
