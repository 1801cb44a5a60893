package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go-crontab/internal/innodb"
	"go-crontab/sql"
)

// variables returns the settings of the server, keyed by name in lower case.
func variables(r sql.Reader) (map[string]string, error) {
	return pairs(r, "read the server's settings", "SHOW GLOBAL VARIABLES")
}

// counters returns some counters of the server, keyed by name in lower case.
func counters(r sql.Reader) (map[string]string, error) {
	return pairs(r, "read the server's counters", `SHOW GLOBAL STATUS
		WHERE Variable_name IN ('Threads_connected', 'Max_used_connections', 'Slaves_connected',
			'Rpl_semi_sync_master_status', 'Rpl_semi_sync_master_clients',
			'Rpl_semi_sync_source_status', 'Rpl_semi_sync_source_clients',
			'wsrep_cluster_size', 'wsrep_cluster_status')`)
}

func pairs(r sql.Reader, what, query string) (map[string]string, error) {
	out := map[string]string{}
	err := sql.Each(r, what, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		out[strings.ToLower(name)] = value
		return err
	}, query)
	return out, err
}

// thread is a connection in the process list.
type thread struct {
	id            int64
	user, command string
}

// threads lists the connections of the server. Without the right PROCESS, the server silently
// lists only the user's own connections. The query avoids information_schema.processlist. MySQL
// refuses to fill that table while a connection executes a statement that is not valid text (error
// 3854), such as a statement with a session id.
func threads(r sql.Reader) ([]thread, error) {
	var out []thread
	err := sql.Each(r, "list threads", func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		var t thread
		var rest any
		into := make([]any, len(names)) // MariaDB has more columns than MySQL
		for i, name := range names {
			switch strings.ToLower(name) {
			case "id":
				into[i] = &t.id
			case "user":
				into[i] = &t.user
			case "command":
				into[i] = &t.command
			default:
				into[i] = &rest
			}
		}
		err = rows.Scan(into...)
		out = append(out, t)
		return err
	}, "SHOW PROCESSLIST")

	return out, err
}

// longTransaction is a transaction that has been open for a while.
type longTransaction struct {
	Thread  int64
	User    string // "": the transaction has ended since
	Seconds int64
	Locked  int64 // locked rows
}

// readTransactions lists the server's transactions that are older than a number of seconds.
// Without the right PROCESS, the server refuses the query. MySQL also refuses it while a
// transaction executes a statement that is not valid text. If MySQL refuses repeatedly, all is
// false, and transactions that only read may be missing from the list.
func readTransactions(ctx context.Context, db *sql.DB, seconds int) (list []longTransaction, all bool, err error) {
	for range 8 {
		if list, err = listLong(db.Reader(ctx), seconds); !innodb.Refused(err) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-time.After(120 * time.Millisecond): // the server refreshes the list at most every 100 ms
		}
	}
	if all = !innodb.Refused(err); !all {
		list, err = longOfStatus(db.Reader(ctx), seconds)
	}
	if err != nil || len(list) == 0 {
		return nil, all, err
	}

	threads, err := threads(db.Reader(ctx))
	for _, t := range threads {
		for i := range list {
			if list[i].Thread == t.id {
				list[i].User = t.user
			}
		}
	}

	return list, all, err
}

// listLong lists the old transactions from information_schema. Their start times are in the time
// zone of the server's machine, not of the connection.
func listLong(r sql.Reader, seconds int) (out []longTransaction, err error) {
	const local = "CONVERT_TZ(NOW(), '+00:00', 'SYSTEM')"
	err = sql.Each(r, "list long transactions", func(rows *sql.Rows) error {
		var t longTransaction
		err := rows.Scan(&t.Thread, &t.Seconds, &t.Locked)
		out = append(out, t)
		return err
	}, `SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, `+local+`), trx_rows_locked
		FROM information_schema.innodb_trx
		WHERE trx_started < `+local+` - INTERVAL ? SECOND AND trx_mysql_thread_id > 0
		ORDER BY trx_started
		LIMIT 10`, seconds)

	return out, err
}

// longOfStatus lists the old transactions from the output of SHOW ENGINE INNODB STATUS, the oldest
// first.
func longOfStatus(r sql.Reader, seconds int) ([]longTransaction, error) {
	var out []longTransaction
	err := sql.Each(r, "read the status of InnoDB", func(rows *sql.Rows) error {
		var kind, name, status string
		err := rows.Scan(&kind, &name, &status)
		for _, t := range innodb.Transactions(status) {
			if t.Seconds > int64(seconds) {
				out = append(out, longTransaction{Thread: t.Thread, Seconds: t.Seconds, Locked: t.Locked})
			}
		}
		return err
	}, "SHOW ENGINE INNODB STATUS")

	slices.SortStableFunc(out, func(a, b longTransaction) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return out[:min(len(out), 10)], err
}

// binlogReaders counts the replicas and other readers of the server's binary log. MySQL has no
// counter for them. Without the right PROCESS, binlogReaders returns an error.
func binlogReaders(r sql.Reader) (n int, err error) {
	// This query only checks for the right PROCESS. Without the right, the server refuses this
	// query, but it would return an incomplete list of threads without an error.
	err = sql.Each(r, "count metrics", func(rows *sql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM information_schema.innodb_metrics")
	if err != nil {
		return 0, err
	}

	threads, err := threads(r)
	n = 0
	for _, t := range threads {
		if strings.HasPrefix(t.command, "Binlog Dump") {
			n++
		}
	}

	return n, err
}
