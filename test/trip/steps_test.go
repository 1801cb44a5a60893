package trip_test

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// BenchmarkSteps measures each statement of a run's steps separately, in transactions of 800 runs:
// the redo log and the server's processor time per run. The purge after a step counts for the steps
// that follow.
func BenchmarkSteps(b *testing.B) {
	const most, batch = 40_000, 800
	server, db := newServer(b)
	fill(b, db, most)

	due := job.MicrosOf(time.Now())
	launch := func(i int) trip.Launch { return trip.Launch{Run: 7<<32 + int64(i), Claim: 1} }
	launches := func(from int) (out []trip.Launch) {
		for i := range batch {
			out = append(out, launch(from+i))
		}
		return out
	}

	for _, step := range []struct {
		name string
		do   func(tx *sql.Tx, from int) error
	}{
		{"lock", func(tx *sql.Tx, from int) error {
			ids := make([]int64, batch)
			for i := range ids {
				ids[i] = int64(from + i + 1)
			}
			_, err := trip.LockJobs(tx, ids)
			return err
		}},
		{"cursor", func(tx *sql.Tx, from int) error {
			cursors := make([]trip.Cursor, batch)
			for i := range cursors {
				cursors[i].JobID = int64(from + i + 1)
			}
			return trip.MoveCursors(tx, cursors)
		}},
		{"insert", func(tx *sql.Tx, from int) error {
			runs := make([]trip.Run, batch)
			for i := range runs {
				id := int64(from + i + 1)
				runs[i] = trip.Run{
					Launch: launch(from + i), JobID: id, AppID: 1, Version: 1, Due: due, DueNow: due,
					Kind:    trip.Schedule,
					Attempt: 1, Hash: int(id * 7919 % job.Hashes),
				}
			}

			return trip.Insert(tx, 7, runs)
		}},
		{"start", func(tx *sql.Tx, from int) error {
			_, err := trip.Start(tx, 7, 0, false, launches(from), due, 1_000_000)
			return err
		}},
		{"mark", func(tx *sql.Tx, from int) error {
			begun := make([]trip.Begun, batch)
			for i := range begun {
				begun[i] = trip.Begun{JobID: int64(from + i + 1), To: due, Running: launch(from + i).Run}
			}
			return trip.MarkBegun(tx, begun)
		}},
		{"finish", func(tx *sql.Tx, from int) error {
			ends := make([]trip.End, batch)
			for i := range ends {
				ends[i] = trip.End{Launch: launch(from + i), JobID: int64(from + i + 1), Outcome: job.Succeeded,
					Final: true, Started: due, Ended: due}
			}
			_, err := trip.FinishAlone(tx, 7, ends)
			return err
		}},
	} {
		log, server0, began := redo(b, db), cpuOf(b, server.PID()), time.Now()
		for from := 0; from < most; from += batch {
			if err := db.Tx(b.Context(), func(tx *sql.Tx) error { return step.do(tx, from) }); err != nil {
				b.Fatalf("%s: %v", step.name, err)
			}
		}
		b.Logf("%-8s redo %4d B, server %5.1f µs, wall %5.1f µs a run", step.name, (redo(b, db)-log)/most,
			float64((cpuOf(b, server.PID())-server0).Microseconds())/most,
			float64(time.Since(began).Microseconds())/most)
	}
}
