package schedule

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// marksOf are the jobs of what was decided, as rows to write and nothing to say about them: a start writes them too, so
// that of it and its settling one comes second and is refused.
func marksOf(decided []decision) []sql.Mark {
	marks := make([]sql.Mark, len(decided))
	for i, d := range decided {
		marks[i].JobID = d.task.JobID
	}
	return marks
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
