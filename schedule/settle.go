package schedule

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// marksOf are the jobs of what was decided, as rows to write and nothing to say about them: a start writes them too, so
// that of it and its settling one comes second and is refused. It also returns the tasks. What was set aside is left out:
// nothing was sent of that, and somebody may keep it locked.
func marksOf(decided []decision) (marks []sql.Mark, tasks []int64) {
	for _, d := range decided {
		if !d.aside() {
			marks, tasks = append(marks, sql.Mark{JobID: d.task.JobID}), append(tasks, d.task.ID)
		}
	}
	return marks, tasks
}

// standingClaims are the claims that rows still bear.
func standingClaims(claimed []job.Task, rows map[int64]sql.TaskRow) []job.Task {
	var stand []job.Task
	for _, t := range claimed {
		if r, ok := rows[t.ID]; ok && r.Is(t.Launch, job.Prepare) {
			stand = append(stand, t)
		}
	}
	return stand
}
