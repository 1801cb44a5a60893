package testdb

import (
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go-crontab/internal/innodb"
)

// Thread is a connection as the server shows it.
type Thread struct {
	ID     int64
	Schema string
	State  string
	Info   string // the statement that it executes
}

// Threads returns the connections of a server. It does not read information_schema.processlist:
// MySQL refuses to fill that while a connection executes a statement that is not valid text (error
// 3854), such as a statement with session ids.
func Threads(db *sql.DB) ([]Thread, error) {
	rows, err := db.Query("SHOW FULL PROCESSLIST")
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	defer rows.Close()

	names, err := rows.Columns()
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}

	values, into := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}

	var out []Thread
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("list threads: %w", err)
		}

		var t Thread
		for i, name := range names {
			switch v := values[i].String; strings.ToLower(name) {
			case "id":
				t.ID, _ = strconv.ParseInt(v, 10, 64)
			case "db":
				t.Schema = v
			case "state":
				t.State = v
			case "info":
				t.Info = v
			}
		}

		out = append(out, t)
	}

	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}

	return out, nil
}

// Executing counts the connections of db's schema that execute a statement with this beginning and
// are in the given state, or in any.
func Executing(db *sql.DB, statement, state string) (n int, err error) {
	threads, err := here(db)
	for _, t := range threads {
		if strings.HasPrefix(t.Info, statement) && (state == "" || t.State == state) {
			n++
		}
	}
	return n, err
}

// Transactions counts the open transactions of db's schema, and how they divide: waiting is the
// number that wait for a row's lock.
func Transactions(db *sql.DB) (open, waiting int, err error) {
	threads, err := here(db)
	if err != nil {
		return 0, 0, err
	}
	all, err := transactions(db)
	if err != nil {
		return 0, 0, fmt.Errorf("list transactions: %w", err)
	}

	for _, tx := range all {
		if slices.ContainsFunc(threads, func(t Thread) bool { return t.ID == tx.Thread }) {
			if open++; tx.Waiting {
				waiting++
			}
		}
	}

	return open, waiting, nil
}

// transactions returns the open transactions of all schemas, with their threads.
func transactions(db *sql.DB) ([]innodb.Transaction, error) {
	out, err := listed(db)
	if innodb.Refused(err) {
		var kind, name, status string
		err = db.QueryRow("SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status)
		out = innodb.Transactions(status)
	}
	return out, err
}

func listed(db *sql.DB) (out []innodb.Transaction, err error) {
	rows, err := db.Query("SELECT trx_mysql_thread_id, trx_state = 'LOCK WAIT' FROM information_schema.innodb_trx")
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	for rows.Next() {
		var t innodb.Transaction
		if err := rows.Scan(&t.Thread, &t.Waiting); err != nil {
			return nil, err
		}
		out = append(out, t)
	}

	return out, rows.Err()
}

// here returns the connections of db's schema.
func here(db *sql.DB) ([]Thread, error) {
	var schema string
	if err := db.QueryRow("SELECT DATABASE()").Scan(&schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	threads, err := Threads(db)
	return slices.DeleteFunc(threads, func(t Thread) bool { return t.Schema != schema }), err
}
