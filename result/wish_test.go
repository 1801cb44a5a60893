package result

import "testing"

// TestWhatWasToBeKilledIsNotTriedAgain: it failed before its node had read that somebody wanted it killed.
func TestWhatWasToBeKilledIsNotTriedAgain(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(3)
	for _, o := range all {
		o.Again, o.Run.Final = o.Run.Ended+100, false
	}
	f.exec("UPDATE task SET kill_requested = 1 WHERE id = ?", all[0].Task.ID)
	f.exec("UPDATE task SET kill_requested = 2 WHERE id = ?", all[1].Task.ID)
	f.putAll(all)
	f.recorder.Flush(t.Context())
	f.want("final runs", 2, "SELECT COUNT(*) FROM history WHERE final = 1 AND due IN (1000, 1001)")
	f.want("runs behind which there is another", 1, "SELECT COUNT(*) FROM history WHERE final = 0 AND due = 1002")
	f.want("tasks", 1, "SELECT COUNT(*) FROM task WHERE due = 1002 AND attempt = 2 AND state = 0")
	f.want("all tasks", 1, "SELECT COUNT(*) FROM task")
}
