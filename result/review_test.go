package result

import (
	"testing"

	"go-crontab/job"
)

// TestRetryGivesUpASlotItWasGiven: an attempt whose job was put into a group while it executed holds a slot, of which it
// knows nothing; between two attempts none is held, and who waits for it is woken.
func TestRetryGivesUpASlotItWasGiven(t *testing.T) {
	f := setUp(t)
	all := f.outcomes(1)
	o := all[0]
	f.exec("INSERT INTO grp (name, slots, created, updated) VALUES ('g', 1, 1, 1)")
	f.exec("INSERT INTO slot SELECT ?, id FROM grp", o.Task.ID)
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state) VALUES (2, 500, 500, 0, 3)")
	f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, due, since, expires) SELECT t.id, 2, 2, g.id, 500, 500, 1 << 62 FROM task t JOIN grp g WHERE t.job_id = 2")
	o.Again, o.Run.Final, o.Run.Outcome = 1<<50, false, job.Failed
	f.putAll(all)
	f.recorder.Flush(t.Context())
	f.want("slots of the one to be retried", 0, "SELECT COUNT(*) FROM slot WHERE task_id = ?", o.Task.ID)
	f.want("woken with a slot", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE job_id = 2 AND state = 0")
}
