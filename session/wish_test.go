package session

import "testing"

// TestLostAndToBeKilled: of jobs whose lost runs are started again, those are not that somebody wanted killed.
func TestLostAndToBeKilled(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead := f.peer(201)
	r, _ := f.reaper(s)
	j := f.owned(dead, 0, 3)
	f.exec(`UPDATE job SET spec = REPLACE(spec, '"on_lost":"fail"', '"on_lost":"rerun"') WHERE id = ?`, j)
	f.exec("UPDATE task SET kill_requested = 1 WHERE due = 1000")
	f.exec("UPDATE task SET kill_requested = 2 WHERE due = 1001")
	f.exec("DELETE FROM session WHERE id = ?", dead[:])
	if err := r.reap(t.Context(), at(1)); err != nil {
		t.Fatal(err)
	}
	f.want("final runs", 2, "SELECT COUNT(*) FROM history WHERE final = 1 AND outcome = 5 AND due IN (1000, 1001)")
	f.want("runs that are started again", 1, "SELECT COUNT(*) FROM history WHERE final = 0 AND due = 1002")
	f.want("tasks", 1, "SELECT COUNT(*) FROM task WHERE state = 0 AND attempt = 2 AND due = 1002")
	f.want("all tasks", 1, "SELECT COUNT(*) FROM task")
}
