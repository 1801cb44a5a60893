package sql

import (
	"context"
	stdsql "database/sql"
)

// Rows is the result of a query while it is being read. The alias keeps database/sql out of other
// packages.
type Rows = stdsql.Rows

// Reader reads rows, inside a transaction (Tx) or outside any (DB.Reader).
type Reader interface {
	read(what string, scan func(*Rows) error, query string, args []any) error
}

func (tx *Tx) read(what string, scan func(*Rows) error, query string, args []any) error {
	return tx.query(what, scan, query, args...)
}

// Reader returns a reader outside any transaction. Each of its statements sees everything that is
// committed when the statement begins. When ctx is cancelled, the statements end.
func (db *DB) Reader(ctx context.Context) Reader { return plainReader{db, ctx} }

type plainReader struct {
	db  *DB
	ctx context.Context
}

func (r plainReader) read(what string, scan func(*Rows) error, query string, args []any) error {
	return r.db.query(r.ctx, what, scan, query, args...)
}

// Select reads all rows of a query.
func Select[T any](r Reader, what string, scan func(*Rows) (T, error), query string, args ...any) ([]T, error) {
	var out []T
	collect := func(rows *Rows) error {
		row, err := scan(rows)
		out = append(out, row)
		return err
	}

	if err := r.read(what, collect, query, args); err != nil {
		return nil, err
	}
	return out, nil
}

// Each passes the rows of a query to scan, one at a time.
func Each(r Reader, what string, scan func(*Rows) error, query string, args ...any) error {
	return r.read(what, scan, query, args)
}

// IDs reads a query of a single column.
func IDs(r Reader, what, query string, args ...any) ([]int64, error) {
	return Select(r, what, scanID, query, args...)
}

func scanID(rows *Rows) (id int64, err error) {
	err = rows.Scan(&id)
	return id, err
}
