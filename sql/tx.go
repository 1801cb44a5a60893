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

// Tx is one transaction. Its methods are the statements of the trip; after any error of any of them
// the whole transaction is rolled back.
type Tx struct {
	tx    *stdsql.Tx
	ctx   context.Context
	trail failpoint.Trail
	meter *Meter
	did   tally
}

// maxTries bounds how often a transaction is run again after a deadlock or a lock wait timeout.
const maxTries = 5

// Tx runs fn in one READ COMMITTED transaction and says how it ended: nil, applied; *Unknown, the
// reply to COMMIT was lost; anything else, nothing of it stands. After a deadlock or a lock wait
// timeout fn is run again from its beginning, so it must set what it returns to its caller anew
// each time.
//
// ctx is looked at before the transaction begins. Once begun it is not interrupted: each statement
// is bounded by Timeouts.Read, and a cancelled context must not leave a commit in doubt.
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

	// 1205 leaves the transaction open with half its work, and so does a panic of fn. If the
	// rollback is lost too, so is the connection. After COMMIT this does nothing.
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

// Exec runs one statement and returns how many rows it matched. What names the statement in errors.
func (tx *Tx) Exec(what, query string, args ...any) (int64, error) {
	tx.trail.Before(what)
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if tx.meter.sent(err) != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return r.RowsAffected()
}

// Insert is Exec for a row that MySQL gives an id, which it returns.
func (tx *Tx) Insert(what, query string, args ...any) (id int64, err error) {
	tx.trail.Before(what)
	r, err := tx.tx.ExecContext(tx.ctx, query, args...)
	if tx.meter.sent(err) != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return r.LastInsertId()
}

// query reads all rows before it returns: the driver cannot run a second statement while rows are
// open.
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

// In writes the placeholders of an IN list and appends its values to args.
func In[T any](args []any, values []T) (string, []any) {
	for _, v := range values {
		args = append(args, v)
	}
	return "(?" + strings.Repeat(",?", len(values)-1) + ")", args
}

// Values writes the placeholders of n rows of k columns each.
func Values(n, k int) string {
	row := "(?" + strings.Repeat(",?", k-1) + ")"
	return row + strings.Repeat(","+row, n-1)
}
