package sql

import (
	"context"
	"fmt"
	"strconv"
)

// compatibleSince is the oldest version of the schema whose programs may run beside the newest.
// Migrations up to the newest one take nothing away, and give nothing another meaning, on which a
// program made for that version rests: so nodes are replaced one by one, see docs/upgrades.md.
// Whoever raises it ends that for older nodes: then all must be stopped first, and Migrate sees to
// it.
const compatibleSince = 1

// LetsIn tells whether a program that knows the schema up to a version may use one that is newer.
func (db *DB) LetsIn(ctx context.Context, known int64) (bool, error) {
	since, err := db.compatibleSince(ctx)
	return since > 0 && since <= known, err
}

// compatibleSince is what the schema says, 0 if it says nothing.
func (db *DB) compatibleSince(ctx context.Context) (since int64, err error) {
	err = db.db.QueryRowContext(ctx, `
		SELECT CAST(value AS SIGNED)
		FROM setting
		WHERE name = 'compatible_since'`).Scan(&since)
	if noRows(err) {
		return 0, nil
	}
	if err != nil {
		err = fmt.Errorf("check schema: %w", err)
	}

	return since, err
}

// setCompatible writes since when programs may use the schema. It comes before migrations that end
// it for some: if we die between them, those cannot join a schema that is still theirs, and the
// next migrate goes on. It comes after them for a schema that is new.
func (db *DB) setCompatible(ctx context.Context, since int64) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("write since when the schema is compatible", `
			INSERT INTO setting (name, value)
			VALUES ('compatible_since', ?)
			ON DUPLICATE KEY UPDATE value = IF(CAST(value AS SIGNED) < ?, VALUES(value), value)`,
			strconv.FormatInt(since, 10), since)
		return err
	})
}

// mayMigrate refuses to take from nodes that live what they rest on. For which version each was
// made, their rows do not say: any that the schema has let in so far may be there.
func (db *DB) mayMigrate(ctx context.Context, from, since int64) error {
	oldest, err := db.compatibleSince(ctx)
	if err != nil {
		return err
	}
	if oldest == 0 {
		oldest = from // older ones were let in by no schema
	}
	if oldest >= since {
		return nil
	}

	expiry, err := db.SessionExpiry(ctx)
	if err != nil {
		return err
	}

	var n int
	err = db.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM session WHERE beat_at > "+Clock+" - ?",
		expiry.Microseconds()).Scan(&n)
	if err != nil {
		return fmt.Errorf("look for nodes: %w", err)
	}

	if n > 0 {
		return refuse(
			"nodes made for version %d of the schema cannot run beside the one that this program makes, and %d nodes "+
				"live: stop all nodes first, see docs/upgrades.md", oldest, n)
	}

	return nil
}
