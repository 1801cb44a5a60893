package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Mark is how far a cluster's database is: a counter that a node raises every ten seconds, and that never goes back, but
// with a restore. Epoch is drawn anew when somebody has said that a restored database is to be used.
type Mark struct {
	Epoch string     `json:"epoch"`
	N     int64      `json:"mark"`
	At    job.Micros `json:"at"` // when it was raised, by MySQL's clock
}

// Lost tells whether a database that has the mark m is older than what another mark was read from. What is lost in a
// failover, and what a reader of another member has not seen yet, is less than slack.
func (m Mark) Lost(seen Mark) bool {
	const slack = 3
	return m.Epoch == seen.Epoch && m.N+slack < seen.N
}

// ReadMark reads the mark; the zero Mark where there is none.
func (db *DB) ReadMark(ctx context.Context) (m Mark, err error) {
	err = db.query(ctx, "read mark", func(rows *stdsql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		switch name {
		case "epoch":
			m.Epoch = value
		case "mark":
			n, at, _ := strings.Cut(value, " ")
			m.N, _ = strconv.ParseInt(n, 10, 64) // what a hand wrote is as good as none
			at64, _ := strconv.ParseInt(at, 10, 64)
			m.At = job.Micros(at64)
		}
		return err
	}, "SELECT name, value FROM setting WHERE name IN ('epoch', 'mark')")
	if m.Epoch == "" {
		return Mark{}, err
	}
	return m, err
}

// RaiseMark raises the mark that was seen by one, unless somebody else did.
func (db *DB) RaiseMark(ctx context.Context, seen Mark, at job.Micros) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.exec("raise mark", "UPDATE setting SET value = ? WHERE name = 'mark' AND value LIKE ?", fmt.Sprintf("%d %d", seen.N+1, int64(at)), fmt.Sprintf("%d %%", seen.N))
		return err
	})
}

// RestoredReason is why a cluster is paused whose database was restored.
const RestoredReason = "the database was restored: see docs/backup.md"

// AcceptRestore has nodes use a database that was restored: it draws a new epoch, and pauses the cluster, so that nothing
// starts before somebody has decided what may repeat. Doing it twice does no harm.
func (db *DB) AcceptRestore(ctx context.Context) error {
	return db.Tx(ctx, func(tx *Tx) error {
		if _, err := tx.exec("draw epoch", "INSERT INTO setting (name, value) VALUES ('epoch', ?) ON DUPLICATE KEY UPDATE value = VALUES(value)", uuid.NewString()); err != nil {
			return err
		}
		var at job.Micros
		if err := tx.query("read clock", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT "+now); err != nil {
			return err
		}
		_, err := tx.exec("pause the restored cluster", "INSERT INTO pause (app, who, reason, since) VALUES ('', 'migrate', ?, ?) ON DUPLICATE KEY UPDATE until = 0, ended = 0, reason = VALUES(reason)",
			RestoredReason, int64(at))
		if err != nil {
			return err
		}
		_, err = tx.InsertAudit(&job.Entry{Actor: job.Actor{Who: "migrate", Origin: "program"}, At: at, Action: job.ActionPause, Kind: job.KindCluster, Reason: RestoredReason})
		return err
	})
}

// Repeats is what may happen once more when a restored cluster is resumed.
type Repeats struct {
	Since   job.Micros // the last sign of life in the database; zero: there is none
	Jobs    int64      // jobs with due times since then
	Once    []NamedJob // of them those with a single due time, some of them
	All     []NamedJob // and those that catch up all due times
	Running int64      // attempts that executed at the backup: they end lost
	Rerun   int64      // and those of them that are started again by on_lost
}

// MayRepeat tells what may happen once more in a database that was restored.
func (db *DB) MayRepeat(ctx context.Context) (r Repeats, err error) {
	m, err := db.ReadMark(ctx)
	if err != nil {
		return r, err
	}
	r.Since = m.At
	at, err := db.Now(ctx)
	if err != nil {
		return r, err
	}
	err = db.query(ctx, "count what may repeat", func(rows *stdsql.Rows) error { return rows.Scan(&r.Jobs, &r.Running, &r.Rerun) },
		"SELECT (SELECT COUNT(*) FROM job FORCE INDEX (plan) WHERE next_due IS NOT NULL AND next_due < ?), (SELECT COUNT(*) FROM task FORCE INDEX (slice) WHERE state = 2),"+
			" (SELECT COUNT(*) FROM task t FORCE INDEX (slice) JOIN job j ON j.id = t.job_id WHERE t.state = 2 AND j.spec LIKE '%\"on_lost\":\"rerun\"%')", int64(at))
	if err != nil {
		return r, err
	}
	overdue := "SELECT j.id, j.app, j.name, COALESCE(j.next_due, 0), '' FROM job j WHERE j.living = 1 AND (j.next_due < ? OR EXISTS (SELECT 1 FROM task t FORCE INDEX (due) WHERE t.job_id = j.id)) AND j.spec LIKE ? ORDER BY j.id LIMIT 10"
	if r.Once, err = db.namedJobs(ctx, "list one-shot jobs that may repeat", overdue, int64(at), `%"at":"%`); err != nil {
		return r, err
	}
	r.All, err = db.namedJobs(ctx, "list jobs that may catch up", overdue, int64(at), `%"policy":"all"%`)
	return r, err
}
