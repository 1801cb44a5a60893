package sql

import (
	"context"
	"fmt"
	"strconv"
)

// compatibleSince is the oldest schema version whose programs can work with the newest schema: no
// later migration removes or redefines anything that they use. So nodes can be replaced one by one;
// see docs/upgrades.md. If you raise it, all older nodes must be stopped before Migrate. Migrate
// checks that they are stopped.
const compatibleSince = 1

// LetsIn reports whether an older program may use the schema. known is the newest schema version
// that the older program knows.
func (db *DB) LetsIn(ctx context.Context, known int64) (bool, error) {
	since, err := db.compatibleSince(ctx)
	return since > 0 && since <= known, err
}

// compatibleSince returns the oldest schema version whose programs may use the schema. If the
// setting does not exist, it returns 0.
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

// setCompatible records the oldest version whose programs may use the schema. For an existing
// schema it runs before the migrations. If we die before the migrations, older programs cannot join
// although the schema still fits them, and the next migrate continues. For a new schema it runs
// after the migrations.
func (db *DB) setCompatible(ctx context.Context, since int64) error {
	return db.Tx(ctx, func(tx *Tx) error {
		_, err := tx.Exec("write schema compatibility", `
			INSERT INTO setting (name, value)
			VALUES ('compatible_since', ?)
			ON DUPLICATE KEY UPDATE value = IF(CAST(value AS SIGNED) < ?, VALUES(value), value)`,
			strconv.FormatInt(since, 10), since)
		return err
	})
}

// mayMigrate refuses migrations that remove something on which live nodes may depend. A session row
// does not say for which version its node was made. So nodes of any version that the schema lets in
// may be running.
func (db *DB) mayMigrate(ctx context.Context, from, since int64) error {
	oldest, err := db.compatibleSince(ctx)
	if err != nil {
		return err
	}
	if oldest == 0 {
		oldest = from // the schema has let in no older version
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
			"nodes for schema version %d cannot work with the new schema, and %d nodes are running; "+
				"stop all nodes first, see docs/upgrades.md", oldest, n)
	}

	return nil
}
