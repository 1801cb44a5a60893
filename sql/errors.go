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

// Unknown is the error of a transaction whose COMMIT was sent but whose reply was lost. The
// transaction may be committed or not.
type Unknown struct{ Err error }

func (u *Unknown) Error() string { return "the outcome of the commit is unknown: " + u.Err.Error() }
func (u *Unknown) Unwrap() error { return u.Err }

// IsUnknown reports whether err is an Unknown: the transaction may be committed or not.
func IsUnknown(err error) bool {
	var u *Unknown
	return errors.As(err, &u)
}

// Sentinels on which callers branch.
var (
	ErrNotFound = errors.New("not found")
	ErrMoved    = errors.New("the rows have changed meanwhile")
	ErrExists   = errors.New("already exists")
)

// number returns MySQL's error number, or 0.
func number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// retryable reports whether the whole transaction can be run again. Another transaction was in its
// way, and the server has rolled it back or lets us do so.
//
//	1213 deadlock
//	1205 lock timeout (the rest of the transaction would continue, so always roll back)
//	3572 NOWAIT would wait
//	1020 row changed since it was read (MariaDB's snapshot isolation)
//	3101 another group member wrote one of the rows first (Group Replication; Galera says 1213)
func retryable(err error) bool {
	switch number(err) {
	case 1213, 1205, 3572, 1020, 3101:
		return true
	}
	return false
}

// notReady is the error number of a Galera server outside the majority. Such a server answers only
// SET and SHOW.
const notReady = 1047

// commitError classifies an error of COMMIT. The commit is refused only if the server itself says
// that it rolled back. After a lost connection, a timeout or any other number the commit is
// unknown.
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

// notBegun is the error of a transaction that could not begin. Rows are never the cause.
type notBegun struct{ err error }

func (n *notBegun) Error() string { return "begin: " + n.err.Error() }
func (n *notBegun) Unwrap() error { return n.err }

// IsRefused reports whether MySQL was reachable and refused a statement. A retry with fewer rows
// may show which row MySQL refuses.
func IsRefused(err error) bool { return number(err) != 0 && !IsAway(err) && !IsUnknown(err) }

// BlamesRows reports whether MySQL refused a statement because of the contents of its rows, not
// because of the server's state. MySQL will refuse the same rows again.
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

// IsLockWait reports whether a statement failed because of the lock timeout.
func IsLockWait(err error) bool { return number(err) == 1205 && !IsUnknown(err) }

// IsDuplicate reports whether a unique key refused a row that exists already.
func IsDuplicate(err error) bool { return number(err) == 1062 }

// IsAway reports whether an error means that MySQL was unreachable or too busy, so that the same
// statement may work in a moment. This includes every retryable error, and every failure to begin a
// transaction.
//
//	1040, 1203, 1226 too many connections   1053 shutdown in progress
//	1290, 1792, 1836 read-only              1021, 1114 disk or table full
//	1037, 1041 out of memory                1317, 1969, 3024 interrupted
//	1047 cut off from its Galera cluster
//	3797, 3798, 3799 a new primary has not caught up with its group yet
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
	return errors.As(err, &network) || errors.Is(err, errNoWriter) || errors.Is(err, errNotReady) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}

// IsDown reports whether an error shows that MySQL cannot be used at all: it is unreachable, full,
// read-only or cut off. Errors that concern a single statement or transaction do not count, unlike
// for IsAway.
func IsDown(err error) bool {
	switch number(err) {
	case 1317, 1969, 3024: // one statement was interrupted
		return false
	}
	return IsAway(err) && !retryable(err)
}

// IsBroken reports whether a connection broke. MySQL may still be up, because an idle connection
// may have been closed long ago.
func IsBroken(err error) bool {
	return number(err) == 0 && (errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn))
}

// isReadOnly reports whether a server refused a write because it is read-only.
//
//	1290 an option of the server prevents it   1792 read-only transaction   1836 read-only mode
func isReadOnly(err error) bool {
	switch number(err) {
	case 1290, 1792, 1836:
		return true
	}
	return false
}

// readOnlyError is an error of a read-only server. database/sql treats it as a bad connection. It
// drops the connection, and retries a statement outside a transaction on another connection. So
// after a failover we keep no connection to the old primary. The text is the server's.
type readOnlyError struct{ err error }

func (r *readOnlyError) Error() string   { return r.err.Error() }
func (r *readOnlyError) Unwrap() []error { return []error{r.err, driver.ErrBadConn} }

func noRows(err error) bool { return errors.Is(err, stdsql.ErrNoRows) }

func canceled(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// First returns the first of the found rows. If none was found, it returns ErrNotFound.
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
