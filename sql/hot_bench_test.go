package sql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"io"
	"testing"
	"time"

	"go-crontab/job"

	"github.com/google/uuid"
)

// What rows cost a node, without a server: what is sent of 500 runs, and what is made of 500 rows that arrive.
// make bench-compare holds these against bench/baseline.txt.

func BenchmarkInsertRuns(b *testing.B) {
	tx := scripted(b, nil)
	runs := make([]job.Run, 500)
	for i := range runs {
		due := job.Micros(1_790_000_000_000_000 + i)
		runs[i] = job.Run{Launch: job.Launch{Session: uuid.UUID{1}, N: int64(1000 + i)}, JobID: int64(500 + i), App: "default", Due: due, Until: due, Count: 1, Attempt: 1,
			Final: true, Started: due, Ended: due + 900, Lateness: 400, Node: "node-1", Result: job.Result{Outcome: job.Succeeded}}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := tx.InsertRuns(runs); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLockTasks(b *testing.B) {
	var rows [][]driver.Value
	var ids []int64
	session := uuid.UUID{1}
	for i := range int64(500) {
		due := 1_790_000_000_000_000 + i
		ids = append(ids, 1000+i)
		rows = append(rows, []driver.Value{1000 + i, 500 + i, due, int64(0), due, i, int64(0), int64(0), int64(1), int64(1), session[:], 7000 + i, int64(0), int64(0), int64(0)})
	}
	tx := scripted(b, rows)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := tx.LockTasks(ids); err != nil || len(got) != len(ids) {
			b.Fatalf("got %d rows, %v", len(got), err)
		}
	}
}

func BenchmarkLockJobs(b *testing.B) {
	start := time.UnixMicro(1_790_000_000_000_000).UTC()
	spec := job.Spec{App: "default", Name: "every-17", Every: job.Duration(time.Second), Start: &start, Command: "true", Labels: map[string]string{"team": "ops"}}
	spec.Defaults(start)
	text, err := spec.Encode()
	if err != nil {
		b.Fatal(err)
	}
	var rows [][]driver.Value
	var ids []int64
	for i := range int64(500) {
		due := 1_790_000_000_000_000 + i
		ids = append(ids, 1000+i)
		rows = append(rows, []driver.Value{1000 + i, []byte("default"), []byte("every-17"), int64(1), i, int64(0), int64(3), []byte(text), int64(0), int64(0), int64(0), []byte(""), []byte(""), int64(0),
			int64(0), due, due, []byte(""), due, due, nil, nil})
	}
	tx := scripted(b, rows)
	b.ReportAllocs()
	for b.Loop() {
		if got, err := tx.LockJobs(ids); err != nil || len(got) != len(ids) {
			b.Fatalf("got %d rows, %v", len(got), err)
		}
	}
}

// scripted is a transaction of a server that takes every statement, and answers each query with the same rows.
func scripted(b *testing.B, rows [][]driver.Value) *Tx {
	db := stdsql.OpenDB(script{rows})
	b.Cleanup(func() { db.Close() })
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		b.Fatal(err)
	}
	return &Tx{tx: tx, ctx: context.Background(), meter: new(Meter)}
}

type script struct{ rows [][]driver.Value }

func (s script) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s script) Driver() driver.Driver                        { return nil }
func (s script) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (s script) Close() error                                 { return nil }
func (s script) Begin() (driver.Tx, error)                    { return s, nil }
func (s script) Commit() error                                { return nil }
func (s script) Rollback() error                              { return nil }

func (s script) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(len(args)), nil
}

func (s script) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &answer{rows: s.rows}, nil
}

type answer struct{ rows [][]driver.Value }

func (a *answer) Columns() []string { return make([]string, len(a.rows[0])) }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(dest []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(dest, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}
