package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go-crontab/job"
)

// Backup is an operator's report of the last backup.
type Backup struct {
	At     job.Micros    // zero: no backup was reported
	Within time.Duration // the next backup is expected within this time
}

// LastBackup returns the last backup. If its row cannot be read, because it was changed outside the
// program, that counts as no backup.
func (db *DB) LastBackup(ctx context.Context) (b Backup, err error) {
	err = Each(db.Reader(ctx), "read the last backup", func(rows *Rows) error {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if _, err := fmt.Sscan(text, &b.At, &b.Within); err != nil {
			b = Backup{}
		}
		return nil
	}, "SELECT value FROM setting WHERE name = 'backup'")
	return b, err
}

// BackupDone records that a backup has just been made, with its audit line.
func (db *DB) BackupDone(ctx context.Context, within time.Duration) (b Backup, err error) {
	err = db.RecordAt(ctx, func(tx *Tx, now job.Micros) (*job.Entry, error) {
		b = Backup{now, within}
		_, err := tx.Exec("write the last backup", `INSERT INTO setting (name, value)
			VALUES ('backup', ?)
			ON DUPLICATE KEY UPDATE value = VALUES(value)`,
			fmt.Sprint(int64(now), int64(within)))
		became, _ := json.Marshal(map[string]string{ // cannot fail
			"backup": now.String(), "next_within": within.String(),
		})
		return &job.Entry{Kind: job.KindCluster, Action: job.ActionUpdate, Became: string(became)}, err
	})
	return b, err
}
