package sql_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/sql"
)

// BenchmarkClaim claims 500 tasks that are due among many that are not, of as many jobs. What it costs must not
// depend on how many those are.
func BenchmarkClaim(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) { claim(b, jobs) })
	}
}

func claim(b *testing.B, jobs int) {
	const due = 500
	ctx := context.Background()
	server, err := privatedb.Start(ctx, privatedb.Options{Pool: 2048, Redo: 512, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(ctx, "bench"); err != nil {
		b.Fatal(err)
	}
	m, err := sql.Open(server.DSN("bench"), sql.MigrateTimeouts, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	if _, _, err := m.Migrate(ctx); err != nil {
		b.Fatal(err)
	}
	exec := func(query string, args ...any) {
		if _, err := m.Raw().ExecContext(ctx, query, args...); err != nil {
			b.Fatalf("%s: %v", query, err)
		}
	}
	const now, later = 1_000_000_000, 9_000_000_000
	exec(`INSERT INTO job (app, name, hash, spec, next_due, created, updated) VALUES ('a', '1', 0, '{"every":"1h"}', ?, 1, 1)`, later)
	for n := 1; n < jobs; n *= 2 {
		exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) SELECT app, name + ?, (name + ?) MOD 1024, spec, next_due + name, 1, 1 FROM job ORDER BY id LIMIT ?",
			n, n, min(n, jobs-n))
	}
	exec("INSERT INTO task (job_id, due, due_now, hash) SELECT id, next_due, next_due, hash FROM job")
	exec("INSERT INTO task (job_id, due, due_now, hash) SELECT id, ? + id, ? + id, hash FROM job ORDER BY id LIMIT ?", now, now, due)
	exec("ANALYZE TABLE job, task")
	db, err := sql.Open(server.DSN("bench"), sql.DefaultTimeouts, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	session, base := uuid.New(), int64(1)
	b.ResetTimer()
	for b.Loop() {
		found, err := db.IdleTasks(ctx, []sql.Slice{{ToHash: job.Hashes, Before: later - 1}}, due)
		if err != nil || len(found) != due {
			b.Fatalf("found %d, %v", len(found), err)
		}
		ids := make([]int64, len(found))
		for i, f := range found {
			ids[i] = f.ID
		}
		if none, _, err := db.DueJobs(ctx, nil, later-1, 100); err != nil || len(none) != 0 {
			b.Fatalf("%d jobs to plan, %v", len(none), err)
		}
		err = db.Tx(ctx, func(tx *sql.Tx) error {
			if err := tx.TakeLocks([]sql.LockID{sql.BucketLock(0), sql.BucketLock(1)}); err != nil {
				return err
			}
			took, err := tx.Claim(session, base, ids)
			if err == nil && len(took) != due {
				err = fmt.Errorf("took %d", len(took))
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		base += 10 * int64(jobs)
		if err := db.Tx(ctx, func(tx *sql.Tx) error { return tx.Free(ids) }); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/due, "µs/task")
}
