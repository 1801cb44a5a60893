package read

import (
	"context"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/testdb"
)

// BenchmarkFinish ends runs 800 at a time, as a recorder does, including the notes for subscribers.
func BenchmarkFinish(b *testing.B) {
	const batch = 800
	db, err := sql.Open(testdb.DSN(b), sql.MigrateTimeouts, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	if _, _, err := db.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}

	next := int64(1) << 32
	do := func(fn func(*sql.Tx) error) {
		if err := db.Tx(b.Context(), fn); err != nil {
			b.Fatal(err)
		}
	}

	for b.Loop() {
		b.StopTimer()
		runs, launches, ends := make([]trip.Run, batch), make([]trip.Launch, batch), make([]trip.End, batch)
		for i := range runs {
			launches[i] = trip.Launch{Run: next, Claim: 1}
			runs[i] = trip.Run{
				Launch: launches[i], JobID: next % 1000, AppID: 1, Kind: trip.Schedule, Attempt: 1,
				Due: job.Micros(next), DueNow: job.Micros(next), Hash: int(next % 1000),
			}
			ends[i] = trip.End{
				Launch: launches[i], JobID: next % 1000, Outcome: job.Succeeded, Final: true, Started: 1, Ended: 2,
			}
			next++
		}

		do(func(tx *sql.Tx) error { return trip.Insert(tx, 1, runs) })
		do(func(tx *sql.Tx) error { _, err := trip.Start(tx, 1, 0, false, launches, 1, 1); return err })
		b.StartTimer()
		do(func(tx *sql.Tx) error { _, err := trip.FinishAlone(tx, 1, ends); return err })
	}

	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*batch), "µs/run")
}
