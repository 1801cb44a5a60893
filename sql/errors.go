package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
)

// Unknown is the error of a transaction whose COMMIT was sent and whose reply was lost. It may
// stand or not.
type Unknown struct{ Err error }

func (u *Unknown) Error() string { return "commit unknown: " + u.Err.Error() }
func (u *Unknown) Unwrap() error { return u.Err }

// IsUnknown tells whether err leaves open if the transaction stands.
func IsUnknown(err error) bool {
	var u *Unknown
	return errors.As(err, &u)
}

// Sentinels on which callers branch.
var (
	ErrNotFound = errors.New("not found")
	ErrMoved    = errors.New("rows were moved by somebody else")
	ErrExists   = errors.New("exists already")
)

// number returns MySQL's error number, or 0.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// retryable tells whether the whole transaction may simply be run again: the server took none of it and says
// that it was bad luck.
//
//	1213 deadlock            1205 lock wait timeout (the rest of the transaction would go on: always roll back)
//	3572 NOWAIT would wait   1020 row changed since it was read (MariaDB's snapshot isolation)
//	3101 another member of the group was first to write one of the rows (Group Replication; Galera says 1213)
func retryable(err error) bool {
	switch number(err) {
	case 1213, 1205, 3572, 1020, 3101:
		return true
	}
	return false
}

// notReady is what a Galera server answers to all but SET and SHOW while it does not belong to the
// majority.
const notReady = 1047

// commitError says what an error of COMMIT means. Only the server's own word that it rolled back means
// refused; a lost link, a timeout or any other number leaves it open.
//
//	1213 deadlock found at certification (Galera)   3101 rolled back by group replication
//	1290, 1792, 1836 read-only server               1020, 1205 as above
func commitError(err error) error {
	if err == nil {
		return nil
	}
	switch number(err) {
	case 1213, 3101, 1290, 1792, 1836, 1020, 1205:
		return fmt.Errorf("commit: %w", err)
	}
	return &Unknown{err}
}

// notBegun is the error of a transaction that could not begin. Whatever MySQL's reason, no row is
// to blame.
type notBegun struct{ err error }

func (n *notBegun) Error() string { return "begin: " + n.err.Error() }
func (n *notBegun) Unwrap() error { return n.err }

// IsRefused tells whether MySQL itself refused a statement, as opposed to being out of reach:
// trying the same again, with fewer rows, may tell which row is to blame.
func IsRefused(err error) bool { return number(err) != 0 && !IsAway(err) && !IsUnknown(err) }

// BlamesRows tells whether MySQL refused a statement for what its rows say, and not for what the
// server can or may do at the moment: the same rows will be refused again.
func BlamesRows(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) || !IsRefused(err) {
		return false
	}

	switch e.Number {
	// packet too big, out of range, truncated, no default, charset, too long, a check
	case 1153, 1264, 1265, 1292, 1364, 1366, 1406, 3819:
		return true
	}

	class := string(e.SQLState[:2])
	return class == "22" || class == "23" // data exception, integrity constraint
}

// IsLockWait tells whether a row was locked by somebody else for longer than we wait.
func IsLockWait(err error) bool { return number(err) == 1205 && !IsUnknown(err) }

// IsDuplicate tells whether a unique key refused a row: it is there already.
func IsDuplicate(err error) bool { return number(err) == 1062 }

// IsAway tells whether an error means that MySQL was out of reach or too busy: the same may work in a moment.
//
//	1040, 1203, 1226 too many connections   1053 shutdown in progress   1290, 1792, 1836 read-only
//	1021, 1114 disk or table full           1037, 1041 out of memory    1317, 1969, 3024 interrupted
//	1047 cut off from its Galera cluster    3797, 3798, 3799 a new primary has not caught up with its group yet
//
// and what retryable knows, and whatever keeps a transaction from beginning.
func IsAway(err error) bool {
	if begin := (*notBegun)(nil); errors.As(err, &begin) {
		return true
	}

	switch number(err) {
	case 0:
	case 1040, 1203, 1226, 1053, 1290, 1792, 1836, 1021, 1114, 1037, 1041, 1317, 1969, 3024, notReady, 3797, 3798, 3799:
		return true
	default:
		return retryable(err)
	}

	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

func noRows(err error) bool { return errors.Is(err, stdsql.ErrNoRows) }

func canceled(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// First is the first of what was found, or ErrNotFound.
func First[T any](found []T, err error) (T, error) {
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		var none T
		return none, err
	}
	return found[0], nil
}
