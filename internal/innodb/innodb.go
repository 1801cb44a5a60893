// Package innodb parses the transactions in SHOW ENGINE INNODB STATUS. They replace
// information_schema.innodb_trx when MySQL refuses to fill that table. MySQL refuses while any
// transaction executes a statement that is not valid text, such as a statement with binary session
// ids.
package innodb

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Refused reports whether MySQL refuses information_schema.innodb_trx for now. err is an error of
// the query or of its rows.
func Refused(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 3854
}

// Transaction is an open transaction.
type Transaction struct {
	Thread  int64
	Seconds int64 // since it began
	Locked  int64 // approximate number of rows that it has locked
	Waiting bool  // waits for a lock
}

var (
	// The first field is the transaction's number, or an address if it has no number.
	active = regexp.MustCompile(`^---TRANSACTION [^,]+, ACTIVE(?: \([A-Z]+\))? (\d+) sec`)
	thread = regexp.MustCompile(`^(?:MySQL|MariaDB) thread id (\d+),`)
	locked = regexp.MustCompile(`(\d+) row lock\(s\)`)
)

// Transactions returns the transactions in a status, except the server's own. MySQL leaves out
// read-only transactions. The text has at most 1 MB, so with thousands of connections, further
// transactions are missing.
func Transactions(status string) []Transaction {
	var out []Transaction
	_, status, _ = strings.Cut(status, "\nTRANSACTIONS\n------------\n")
	var t *Transaction // the transaction of the current lines; nil: skip them
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, "---TRANSACTION ") {
			if t = nil; active.MatchString(line) {
				t = &Transaction{}
				t.Seconds, _ = strconv.ParseInt(active.FindStringSubmatch(line)[1], 10, 64)
			}
			continue
		}

		if t == nil {
			continue
		}

		if m := locked.FindStringSubmatch(line); m != nil {
			t.Locked, _ = strconv.ParseInt(m[1], 10, 64)
			t.Waiting = strings.HasPrefix(line, "LOCK WAIT ")
		}

		if m := thread.FindStringSubmatch(line); m != nil { // last: the statement follows
			t.Thread, _ = strconv.ParseInt(m[1], 10, 64)
			out, t = append(out, *t), nil
		}
	}

	return out
}
