// Package innodb reads what SHOW ENGINE INNODB STATUS says of transactions, for when MySQL refuses to fill
// information_schema.innodb_trx: a transaction executes a statement that is no text, as those with ids of sessions are.
package innodb

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Refused tells whether MySQL refuses information_schema.innodb_trx for now, by an error of the query or of its rows.
func Refused(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 3854
}

// Transaction is one that is open.
type Transaction struct {
	Thread  int64
	Seconds int64 // since it began
	Locked  int64 // rows that it has locked, about
	Waiting bool  // for a lock
}

var (
	// The number is the transaction's, or an address where it has none.
	active = regexp.MustCompile(`^---TRANSACTION [^,]+, ACTIVE(?: \([A-Z]+\))? (\d+) sec`)
	thread = regexp.MustCompile(`^(?:MySQL|MariaDB) thread id (\d+),`)
	locked = regexp.MustCompile(`(\d+) row lock\(s\)`)
)

// Transactions returns those in a status, but for the server's own. MySQL leaves out those that only read, and a server with
// thousands of connections some, as the text has 1 MB at most.
func Transactions(status string) []Transaction {
	var out []Transaction
	_, status, _ = strings.Cut(status, "\nTRANSACTIONS\n------------\n")
	var t *Transaction // which the lines are about
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
		if m := thread.FindStringSubmatch(line); m != nil { // the statement comes behind it
			t.Thread, _ = strconv.ParseInt(m[1], 10, 64)
			out, t = append(out, *t), nil
		}
	}
	return out
}
