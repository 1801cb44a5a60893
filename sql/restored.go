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

// Watermark records the progress of a cluster's database. A node raises its counter every ten
// seconds, and only a restore lowers it. When an operator accepts a restored database, it gets a
// new Epoch.
type Watermark struct {
	Epoch string `json:"epoch"`
	// Before lists the epochs that Epoch has replaced, latest first, separated by spaces.
	Before string     `json:"before,omitempty"`
	N      int64      `json:"mark"`
	At     job.Micros `json:"at"` // when it was raised, by MySQL's clock
}

// epochsKept bounds the number of known epochs, including the current one. This many fit into the
// row `epoch` of table setting.
const epochsKept = 6

// Lost reports whether the database has lost changes: its mark m is older than seen, which was read
// before. slack allows for marks that a failover loses, or that another member of the cluster does
// not show yet.
func (m Watermark) Lost(seen Watermark) bool {
	const slack = 3
	return m.Epoch == seen.Epoch && m.N+slack < seen.N || slices.Contains(strings.Fields(seen.Before), m.Epoch)
}

// After returns m with the epochs of seen added to m.Before. This process has read the mark seen
// before, and a restore may have made the database forget seen's epochs. If seen belongs to a
// different cluster, After returns m unchanged.
func (m Watermark) After(seen Watermark) Watermark {
	was, before := strings.Fields(seen.Epoch+" "+seen.Before), strings.Fields(m.Before)
	same := func(epoch string) bool { return epoch == m.Epoch || slices.Contains(before, epoch) }
	if !slices.ContainsFunc(was, same) {
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

// ReadWatermark reads the mark. If there is none, it returns the zero Watermark.
func (db *DB) ReadWatermark(ctx context.Context) (m Watermark, err error) {
	var epoch, mark string
	err = db.query(ctx, "read watermark", func(rows *stdsql.Rows) error {
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

// WatermarkOf parses the mark's two rows of table setting. Without an epoch it returns the zero
// Watermark.
func WatermarkOf(epoch, mark string) (m Watermark) {
	if epoch == "" {
		return m
	}
	n, at, _ := strings.Cut(mark, " ")
	m.Epoch, m.Before, _ = strings.Cut(epoch, " ")
	m.N, _ = strconv.ParseInt(n, 10, 64) // anything else was written outside the program and counts as 0
	at64, _ := strconv.ParseInt(at, 10, 64)
	m.At = job.Micros(at64)
	return m
}

// RaiseWatermark adds one to the counter, unless another node has raised the counter since it was
// seen. Like a beat, it is a single statement without a transaction: it changes no other row, and
// even an idle node sends it every ten seconds.
func (db *DB) RaiseWatermark(ctx context.Context, seen Watermark, at job.Micros) error {
	failpoint.Here("before", "raise mark")
	_, err := db.db.ExecContext(ctx, `
		UPDATE setting
		SET value = ?
		WHERE name = 'mark' AND value LIKE ?`, fmt.Sprintf("%d %d", seen.N+1, int64(at)), fmt.Sprintf("%d %%", seen.N))
	if db.meter.sent(err) != nil {
		return fmt.Errorf("raise watermark: %w", err)
	}

	failpoint.Here("behind", "raise mark")
	return nil
}

// RestoredReason is the pause reason of a cluster whose database was restored.
const RestoredReason = "the database was restored: see docs/backup.md"

// livesSkipped is larger than the number of sessions since the backup. The numbers of these
// sessions must not be reused: run ids begin with them, and other systems know runs by their ids.
const livesSkipped = 10_000

// AcceptRestore lets nodes use a restored database. It draws a new epoch and puts it before the
// replaced epochs. It records an instant: no due time before it is started any more. It also pauses
// the cluster, so that nothing starts before an operator has decided which runs may repeat.
// Repeating AcceptRestore is harmless.
func (db *DB) AcceptRestore(ctx context.Context) error {
	const length = len("00000000-0000-0000-0000-000000000000 ")*epochsKept - 1
	return db.Tx(ctx, func(tx *Tx) error {
		if _, err := tx.Exec("write epoch", `
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
		if _, err := tx.Exec("record a restore", note, int64(at), int64(at), RestoredReason); err != nil {
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
