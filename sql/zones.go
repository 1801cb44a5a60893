package sql

import (
	"context"
	stdsql "database/sql"
	"strings"

	"github.com/google/uuid"
)

// The setting zones says what time zone data all jobs are planned by: its fingerprint, see job.ZoneData, or, from when a node joined
// with other data until all nodes have the same and all jobs were looked at, "?" and the session of the last such node.

// JoinZones notes that a session begins whose node computes with some data, if that is not what all jobs are planned by: from now on
// they may be planned by this one. It belongs into the transaction that inserts the session.
func (tx *Tx) JoinZones(session uuid.UUID, zones string) error {
	if zones == "" {
		return nil
	}
	_, err := tx.Exec("note time zone data", "INSERT INTO setting (name, value) VALUES ('zones', ?) ON DUPLICATE KEY UPDATE value = IF(value = ?, value, VALUES(value))",
		"?"+session.String(), zones)
	return err
}

// Unzoned tells whether all sessions compute with the same time zone data as the caller, and not all jobs were planned by that. seen is
// what the setting says, for PlannedBy.
func (db *DB) Unzoned(ctx context.Context, zones string) (seen string, is bool, err error) {
	others := 0
	err = db.query(ctx, "read time zone data", func(rows *stdsql.Rows) error { return rows.Scan(&seen, &others) },
		"SELECT COALESCE((SELECT value FROM setting WHERE name = 'zones'), ''), (SELECT COUNT(*) FROM session WHERE zones <> ?)", zones)
	return seen, strings.HasPrefix(seen, "?") && others == 0, err
}

// PlannedBy notes that all jobs are planned by some time zone data, unless a node with other data joined since seen was read. It tells
// whether it did.
func (db *DB) PlannedBy(ctx context.Context, seen, zones string) (bool, error) {
	n := int64(0)
	err := db.Tx(ctx, func(tx *Tx) (err error) {
		n, err = tx.Exec("note time zone data", "UPDATE setting SET value = ? WHERE name = 'zones' AND value = ?", zones, seen)
		return err
	})
	return n == 1, err
}
