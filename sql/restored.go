package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go-crontab/internal/failpoint"
	"go-crontab/job"

	"github.com/google/uuid"
)

// Watermark is how far a cluster's database is: a counter that a node raises every ten seconds, and
// that never goes back, but with a restore. Epoch is drawn anew when somebody has said that a
// restored database is to be used.
type Watermark struct {
	Epoch string `json:"epoch"`
	// the epochs that it took the place of, the latest first, separated by spaces
	Before string     `json:"before,omitempty"`
	N      int64      `json:"mark"`
	At     job.Micros `json:"at"` // when it was raised, by MySQL's clock
}

// epochsKept is how many epochs are known, the one that counts included: so many the row epoch of
// table setting has room for.
const epochsKept = 6

// Lost tells whether a database that has the mark m is older than what another mark was read from.
// What is lost in a failover, and what a reader of another member has not seen yet, is less than
// slack.
func (m Watermark) Lost(seen Watermark) bool {
	const slack = 3
	return m.Epoch == seen.Epoch && m.N+slack < seen.N || slices.Contains(strings.Fields(seen.Before), m.Epoch)
}

// After is the mark as whoever has seen another one of the same cluster knows it: an epoch that the
// database has forgotten with a restore went before, too. Of another cluster's epochs nothing is
// kept.
func (m Watermark) After(seen Watermark) Watermark {
	was, before := strings.Fields(seen.Epoch+" "+seen.Before), strings.Fields(m.Before)
	if !slices.ContainsFunc(was,
		func(epoch string) bool { return epoch == m.Epoch || slices.Contains(before, epoch) }) {
		return m
	}

	for _, epoch := range was {
		if epoch != m.Epoch && !slices.Contains(before, epoch) {
			before = append(before, epoch)
		}
	}

	m.Before = strings.Join(before[:min(len(before), 2*epochsKept)], " ")
	return m
}

// ReadWatermark reads the mark; the zero Watermark where there is none.
func (db *DB) ReadWatermark(ctx context.Context) (m Watermark, err error) {
	var epoch, mark string
	err = db.query(ctx, "read mark", func(rows *stdsql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		switch name {
		case "epoch":
			epoch = value
		case "mark":
			mark = value
		}
		return err
	}, "SELECT name, value FROM setting WHERE name IN ('epoch', 'mark')")

	return WatermarkOf(epoch, mark), err
}

// WatermarkOf reads what stands in the settings; the zero Watermark where that is nothing.
func WatermarkOf(epoch, mark string) (m Watermark) {
	if epoch == "" {
		return m
	}
	n, at, _ := strings.Cut(mark, " ")
	m.Epoch, m.Before, _ = strings.Cut(epoch, " ")
	m.N, _ = strconv.ParseInt(n, 10, 64) // what a hand wrote is as good as none
	at64, _ := strconv.ParseInt(at, 10, 64)
	m.At = job.Micros(at64)
	return m
}

// RaiseWatermark raises the mark that was seen by one, unless somebody else did. It is a single
// statement without a transaction around it, as a beat is: nothing else changes with it, and an
// idle node does it all day.
func (db *DB) RaiseWatermark(ctx context.Context, seen Watermark, at job.Micros) error {
	failpoint.Here("before", "raise mark")
	_, err := db.db.ExecContext(ctx, `
		UPDATE setting
		SET value = ?
		WHERE name = 'mark' AND value LIKE ?`, fmt.Sprintf("%d %d", seen.N+1, int64(at)), fmt.Sprintf("%d %%", seen.N))
	if db.meter.sent(err) != nil {
		return fmt.Errorf("raise mark: %w", err)
	}

	failpoint.Here("behind", "raise mark")
	return nil
}

// RestoredReason is why a cluster is paused whose database was restored.
const RestoredReason = "the database was restored: see docs/backup.md"

// livesSkipped is how many sessions there were, at most, since the backup. Their numbers are not
// used again: the ids of runs begin with them, and others know runs by their ids.
const livesSkipped = 10_000

// AcceptRestore has nodes use a database that was restored: it draws a new epoch, which stands
// before those that it takes the place of, notes the instant before which no due time is started
// any more, and pauses the cluster, so that nothing starts before somebody has decided what may
// repeat. Doing it twice does no harm.
func (db *DB) AcceptRestore(ctx context.Context) error {
	const length = len("00000000-0000-0000-0000-000000000000 ")*epochsKept - 1
	return db.Tx(ctx, func(tx *Tx) error {
		if _, err := tx.Exec("draw epoch", `
			INSERT INTO setting (name, value)
			VALUES ('epoch', ?)
			ON DUPLICATE KEY UPDATE value = LEFT(CONCAT(VALUES(value), ' ', value), ?)`, uuid.NewString(),
			length); err != nil {
			return err
		}

		at, err := tx.Now()
		if err != nil {
			return err
		}

		const note = `
			REPLACE INTO stop (kind, since, until, who, reason)
			VALUES ('restored', ?, ?, 'migrate', ?)`
		if _, err := tx.Exec("note a restore", note, int64(at), int64(at), RestoredReason); err != nil {
			return err
		}

		const pause = `
			INSERT INTO stop (kind, since, who, reason)
			VALUES ('cluster', ?, 'migrate', ?)
			ON DUPLICATE KEY UPDATE until = 0, reason = VALUES(reason)`
		if _, err := tx.Exec("pause the restored cluster", pause, int64(at), RestoredReason); err != nil {
			return err
		}

		const skip = `
			INSERT INTO life (id, session, node, started, gone)
			SELECT COALESCE(MAX(id), 0) + ?, ?, 'migrate', ?, ? FROM life`
		restored := uuid.New()
		if _, err := tx.Exec("skip numbers of sessions", skip, livesSkipped, restored[:], int64(at),
			int64(at)); err != nil {
			return err
		}

		_, err = tx.InsertAudit(&job.Entry{
			Actor:  job.Actor{Who: "migrate", Origin: "program"},
			At:     at,
			Action: job.ActionPause,
			Kind:   job.KindCluster,
			Reason: RestoredReason,
		})

		return err
	})
}
