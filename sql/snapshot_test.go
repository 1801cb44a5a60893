package sql

import "testing"

// TestWaitForARowThatChanges: a locking read that waited for a row gets it as it is by then, at once. MariaDB's snapshot
// isolation would refuse it, and a job that is changed often would be refused again and again.
func TestWaitForARowThatChanges(t *testing.T) {
	f := setUp(t)
	id := f.newJob("busy")
	f.exec("INSERT INTO pause (app, since) VALUES ('other', 1)")
	before := f.number("SELECT version FROM job WHERE id = ?", id)
	other, err := f.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback()
	if _, err := other.Exec("UPDATE job SET version = version + 1 WHERE id = ?", id); err != nil {
		t.Fatal(err)
	}
	tries, version := 0, int64(0)
	done := make(chan error, 1)
	go func() {
		done <- f.db.Tx(t.Context(), func(tx *Tx) error {
			tries++
			rows, err := tx.LockJobs([]int64{id})
			if err == nil && rows[id] != nil {
				version = rows[id].Version
			}
			return err
		})
	}()
	f.awaitLockWait()
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || tries != 1 || version != before+1 {
		t.Errorf("got version %d, %v after %d tries; want version %d at the first", version, err, tries, before+1)
	}
}
