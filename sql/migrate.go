package sql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

const (
	versionTable = "schema_version"
	lockTable    = "schema_lock" // goose's lock against concurrent migrates
)

// provider returns goose's provider of the migrations. After stop is cancelled, the provider begins
// no further migration.
func (db *DB) provider(stop context.Context) (*goose.Provider, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}

	var run []*goose.Migration
	for _, m := range all {
		up := func(ctx context.Context, db *stdsql.DB) error {
			if stop.Err() != nil {
				return fmt.Errorf("stopped before %s: %w; run migrate again to continue there",
					m.file, context.Cause(stop))
			}
			return m.run(ctx, db)
		}
		run = append(run, goose.NewGoMigration(m.version, &goose.GoFunc{RunDB: up}, nil))
	}

	locker, err := lock.NewMySQLTableLocker(lock.WithTableName(lockTable))
	if err != nil {
		return nil, err
	}

	return goose.NewProvider(goose.DialectMySQL, db.db, nil, goose.WithGoMigrations(run...),
		goose.WithTableName(versionTable), goose.WithLocker(locker))
}

// Migrate creates or upgrades the schema and returns the versions before and after. Several
// Migrates may run at once. Migrate refuses a schema that is newer than this program. When ctx
// ends, it stops after the current migration. If a migration died in the middle, a later Migrate
// continues it.
func (db *DB) Migrate(ctx context.Context) (from, to int64, err error) {
	if n := db.db.Stats().MaxOpenConnections; n == 1 || n == 2 {
		// Migrations need three connections: for goose, for the statements, and for keeping the
		// lock.
		db.db.SetMaxOpenConns(3)
	}

	p, err := db.provider(ctx)
	if err != nil {
		return 0, 0, err
	}

	newest := newestMigration(p)
	from, err = db.SchemaVersion(ctx)
	if err != nil {
		return 0, 0, err
	}

	if from > newest {
		return from, from, refuse(
			"the schema has version %d, and this program knows versions up to %d; use a newer go-crontab",
			from, newest)
	}

	if from > 0 {
		if err := db.mayMigrate(ctx, from, compatibleSince); err != nil {
			return from, from, err
		}
		if err := db.setCompatible(ctx, compatibleSince); err != nil {
			return from, from, err
		}
	}

	// Do not interrupt a migration: MySQL commits each change of a table separately, and half a
	// migration has no version.
	ctx = context.WithoutCancel(ctx)
	if _, err := p.Up(ctx); err != nil {
		var one *goose.PartialError
		if errors.As(err, &one) {
			err = one.Err
		}
		return from, from, fmt.Errorf("migrate: %w", err)
	}

	to, err = db.SchemaVersion(ctx)
	if err != nil {
		return from, from, err
	}
	if err := db.setCompatible(ctx, compatibleSince); err != nil {
		return from, to, err
	}

	return from, to, db.restoreLocks(ctx)
}

// restoreLocks inserts lock rows that were deleted outside the program.
func (db *DB) restoreLocks(ctx context.Context) error {
	return db.Tx(ctx, func(tx *Tx) error {
		for id, name := range requiredLocks {
			const query = `
				INSERT INTO locks (id, name)
				VALUES (?, ?)
				ON DUPLICATE KEY UPDATE name = VALUES(name)`
			if _, err := tx.Exec("restore lock rows", query, int(id), name); err != nil {
				return err
			}
		}
		return nil
	})
}

func newestMigration(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

// SchemaVersion returns the version of the latest migration. If none ever ran, it returns 0. It
// must not make goose create its own table: serve may lack the right to do so.
func (db *DB) SchemaVersion(ctx context.Context) (int64, error) {
	var n int64
	err := db.db.QueryRowContext(ctx, `
		SELECT COUNT(*)
		FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = ?`, versionTable).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}

	err = db.db.QueryRowContext(ctx, `
		SELECT COALESCE(MAX(version_id), 0)
		FROM `+versionTable+`
		WHERE is_applied`).Scan(&n)

	return n, err
}

func (db *DB) checkSchema(ctx context.Context) error {
	p, err := db.provider(ctx)
	if err != nil {
		return err
	}

	have, err := db.SchemaVersion(ctx)
	if err != nil {
		return fmt.Errorf("check schema: %w", err)
	}

	switch newest := newestMigration(p); {
	case have == 0: // nodes may start before the first migrate
		return errors.New("the schema is empty; waiting for its tables, create them with: go-crontab migrate")
	case have < newest:
		since, err := db.compatibleSince(ctx)
		if err != nil {
			return err
		}

		// Migrate writes this setting after the last step of a new schema. A waiting node may see
		// any earlier step.
		if since == 0 {
			return fmt.Errorf(
				"the schema is incomplete (version %d of %d); waiting until go-crontab migrate has finished",
				have, newest)
		}

		return refuse("the schema has version %d, and this program needs %d; upgrade it: go-crontab migrate",
			have, newest)
	case have > newest:
		if may, err := db.LetsIn(ctx, newest); may || err != nil {
			return err
		}
		return refuse("the schema has version %d, and this program knows versions up to %d; use a newer go-crontab",
			have, newest)
	}

	return nil
}
