package schedule

import (
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestGivenBackAndToBeKilled: a start that was never spawned, and that somebody wanted killed meanwhile, is given back
// and not started again.
func TestGivenBackAndToBeKilled(t *testing.T) {
	f := setUp(t)
	f.claimed(hourly(3)...)
	f.starter.start(t.Context(), t0)
	if len(f.executing.added) != 3 {
		t.Fatalf("%d begun, want 3", len(f.executing.added))
	}
	killed, replaced := f.executing.added[0], f.executing.added[1]
	f.exec("UPDATE task SET kill_requested = ? WHERE id = ?", int(sql.KillIt), killed.ID)
	f.exec("UPDATE task SET kill_requested = ? WHERE id = ?", int(sql.ReplaceIt), replaced.ID)
	var ids []int64
	for _, s := range f.executing.added {
		ids = append(ids, s.ID)
	}
	err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error { // as compensation does
		if _, err := tx.LockTasks(ids); err != nil {
			return err
		}
		return tx.Free(ids)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.executing.added = nil
	if _, err := f.claimer.claim(t.Context(), t0, -neglected); err != nil {
		t.Fatal(err)
	}
	f.session.set(t0 + job.Micros(2*neglected.Microseconds()))
	if _, err := f.claimer.claim(t.Context(), f.session.Now(), -neglected); err != nil {
		t.Fatal(err)
	}
	f.starter.start(t.Context(), f.session.Now())
	if len(f.executing.added) != 1 || f.executing.added[0].ID == killed.ID || f.executing.added[0].ID == replaced.ID {
		t.Errorf("begun again: %+v, want the one that nobody wanted killed", f.executing.added)
	}
	f.want("runs that end killed", 1, "SELECT COUNT(*) FROM history WHERE job_id = ? AND outcome = 4 AND final = 1 AND started = 0", killed.JobID)
	f.want("runs that end superseded", 1, "SELECT COUNT(*) FROM history WHERE job_id = ? AND outcome = 8 AND final = 1 AND started = 0", replaced.JobID)
}
