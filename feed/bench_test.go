package feed

import (
	"strings"
	"testing"
	"time"

	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// BenchmarkLook is one look of the reader: at a cluster in which nothing happens, and at one in which 5,000 runs of
// 1,000 jobs end between two looks, which is 10,000 in a second.
func BenchmarkLook(b *testing.B) {
	for name, runs := range map[string]int{"idle": 0, "100 runs": 100, "5000 runs": 5000} {
		b.Run(name, func(b *testing.B) {
			db, err := sql.Open(testdb.DSN(b), sql.MigrateTimeouts, 4)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { db.Close() })
			if _, _, err := db.Migrate(b.Context()); err != nil {
				b.Fatal(err)
			}
			exec := func(query string, args ...any) {
				b.Helper()
				if _, err := db.Raw().Exec(query, args...); err != nil {
					b.Fatal(err)
				}
			}
			exec("INSERT INTO job (app, name, hash, spec, created, updated) WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 1000) SELECT 'a', i, 1, '{}', 1, 1 FROM k")
			r := newReader(db, func() job.Micros { return job.MicrosOf(time.Now()) })
			if err := r.anchor(b.Context(), time.Now()); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.StopTimer()
				if runs > 0 {
					session, now := uuid.New(), time.Now().UnixNano()
					var args []any
					for i := range runs {
						args = append(args, 1+i%1000, now+int64(i), session[:], i)
					}
					exec("INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) VALUES (?, ?, ?, ?, 1, 1, 1)"+
						strings.Repeat(", (?, ?, ?, ?, 1, 1, 1)", runs-1), args...)
				}
				b.StartTimer()
				events, err := r.look(b.Context(), time.Now())
				if err != nil || runs > manyRuns && (len(events) != 1 || len(events[0].Counts) != 1000) || runs <= manyRuns && len(events) != runs {
					b.Fatalf("got %d events, %v", len(events), err)
				}
			}
		})
	}
}
