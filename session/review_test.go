package session

import (
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestTheLastCommitOfTheDead: a start whose commit arrives when its session is dead and its tasks have been read, but not
// locked yet, is one that was lost: it is started again if its job says so.
func TestTheLastCommitOfTheDead(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead := f.peer(201)
	r, _ := f.reaper(s)
	id := f.owned(dead, 1, 0)
	f.exec(`UPDATE job SET spec = REPLACE(spec, '"on_lost":"fail"', '"on_lost":"rerun"') WHERE id = ?`, id)
	f.exec("DELETE FROM session WHERE id = ?", dead[:])
	rows, err := f.db.SessionTasks(t.Context(), dead, 0, batch)
	if err != nil || len(rows) != 1 || rows[0].State != job.Prepare {
		t.Fatalf("got %+v, %v; want one task that is prepared", rows, err)
	}
	f.exec("UPDATE task SET state = 2, started = 2000, spawn_by = 3000 WHERE job_id = ?", id) // the commit
	if _, err := r.orphans().freeBatch(t.Context(), dead, rows, true, false); err != nil {
		t.Fatal(err)
	}
	f.want("is to be started again", 1, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0 AND attempt = 2", id)
	runs, err := f.beside.Runs(t.Context(), sql.RunFilter{JobID: id, Limit: 10})
	if err != nil || len(runs) != 1 || runs[0].Outcome != job.Lost || runs[0].Final {
		t.Errorf("got runs %+v, %v; want one that was lost and is not final", runs, err)
	}
}
