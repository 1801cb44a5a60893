package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go-crontab/internal/failpoint"
)

// Tx is one transaction. After an error of any statement, the whole transaction rolls back.
type Tx struct {
	tx    *stdsql.Tx
	ctx   context.Context
	trail failpoint.Trail
	meter *Meter
	did   tally
}

// maxTries bounds how often a transaction is tried that meets deadlocks or lock timeouts.
const maxTries = 5

// Tx runs fn in one READ COMMITTED transaction. A nil error means applied, *Unknown means that the
// reply to COMMIT was lost, and any other error means that nothing was written. After a deadlock or
// a lock timeout fn runs again from its beginning, so it must reset every variable that it
// captures.
//
// ctx is checked before the transaction begins. After that it does not interrupt the transaction:
// Timeouts.Read bounds each statement, and a cancelled context must not leave a commit in doubt.
func (db *DB) Tx(ctx context.Context, fn func(tx *Tx) error) error {
	for try := 1; ; try++ {
		if err := canceled(ctx); err != nil {
			return err
		}

		err := db.once(context.WithoutCancel(ctx), fn)
		if err == nil || !retryable(err) || IsUnknown(err) || try == maxTries {
			db.meter.outcome(err)
			return err
		}

		db.meter.Retries.Add(1)
		pause := time.Duration(1+rand.Int64N(int64(10<<try))) * time.Millisecond
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (db *DB) once(ctx context.Context, fn func(tx *Tx) error) error {
	tx, err := db.db.BeginTx(context.WithValue(ctx, silent{}, true), nil)
	if err != nil {
		return &notBegun{err}
	}

	// Without the rollback, error 1205 or a panic in fn would leave the transaction open with half
	// its work. If the rollback fails, the connection is dropped. After COMMIT the rollback does
	// nothing.
	defer tx.Rollback()

	t := &Tx{tx: tx, ctx: ctx, meter: &db.meter}
	if err := fn(t); err != nil {
		return err
	}

	t.trail.Commit()
	if err := commitError(tx.Commit()); err != nil {
		return err
	}

	t.trail.Committed()
	db.meter.take(&t.did)
	return nil
}

// Exec runs one statement and returns the number of rows that it matched. Errors name the statement
// by `what`.
func (tx *Tx) Exec(what, query string, args ...any) (int64, error) {
	tx.trail.Before(what)
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if tx.meter.sent(err) != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return r.RowsAffected()
}

// Insert is like Exec, for a row with an AUTO_INCREMENT id. It returns the id.
func (tx *Tx) Insert(what, query string, args ...any) (id int64, err error) {
	tx.trail.Before(what)
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if tx.meter.sent(err) != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return r.LastInsertId()
}

// query reads all rows before it returns: while rows are open, the driver cannot run another
// statement.
func (tx *Tx) query(what string, scan func(*stdsql.Rows) error, query string, args ...any) error {
	rows, err := tx.tx.QueryContext(tx.ctx, query, args...)
	return readAll(what, rows, tx.meter.sent(err), scan)
}

func (db *DB) query(ctx context.Context, what string, scan func(*stdsql.Rows) error, query string, args ...any) error {
	rows, err := db.db.QueryContext(ctx, query, args...)
	return readAll(what, rows, db.meter.sent(err), scan)
}

func readAll(what string, rows *stdsql.Rows, err error, scan func(*stdsql.Rows) error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()

	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}

	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// In returns the placeholders of an IN list, and args with the values appended.
func In[T any](args []any, values []T) (string, []any) {
	for _, v := range values {
		args = append(args, v)
	}
	return "(?" + strings.Repeat(",?", len(values)-1) + ")", args
}

// Values returns the placeholders of n rows of k columns.
func Values(n, k int) string {
	row := "(?" + strings.Repeat(",?", k-1) + ")"
	return row + strings.Repeat(","+row, n-1)
}
