package feed

import (
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/testdb"
)

// BenchmarkLook measures one look of the reader: at an idle cluster, and at one where 5,000 runs of
// 1,000 jobs end between two looks, which is 10,000 a second.
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

			exec("INSERT INTO app (id, name) VALUES (1, 'a')")
			exec(`INSERT INTO job (app_id, name, hash)
				WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 1000)
				SELECT 1, i, 1 FROM k`)
			r := newReader(read.Watch{DB: &read.DB{DB: db}}, func() job.Micros { return job.MicrosOf(time.Now()) })
			if err := r.anchor(b.Context(), time.Now()); err != nil {
				b.Fatal(err)
			}

			for b.Loop() {
				b.StopTimer()
				if runs > 0 {
					var args []any
					for i := range runs {
						id, jobID := minted.Add(1), int64(1+i%1000)
						args = append(args, id, jobID, id)
						exec("INSERT INTO ending (at, runs) VALUES (1, ?)",
							noteOf(trip.Note{Run: id, JobID: jobID, Outcome: job.Succeeded}))
					}
					const row = "(?, ?, 1, ?, 'schedule', 'ended', -2, 1, 1, 1, 'succeeded', 1, 1)"
					exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
							outcome, ended, final)
						VALUES `+row+strings.Repeat(", "+row, runs-1), args...)
				}
				b.StartTimer()

				events, err := r.look(b.Context(), time.Now())
				if err != nil || runs > manyRuns && (len(events) != 1 || len(events[0].Counts) != 1000) ||
					runs <= manyRuns && len(events) != runs {
					b.Fatalf("got %d events, %v", len(events), err)
				}
			}
		})
	}
}
