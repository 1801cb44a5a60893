package trip

import (
	"fmt"

	"go-crontab/job"
	"go-crontab/sql"
)

// Gap is a range of due times of a job. Both ends are excluded.
type Gap struct {
	JobID         int64
	After, Before job.Micros
}

// Unbegun is the first attempt of a due time of the schedule that has not begun.
type Unbegun struct {
	Run, JobID int64
	Due        job.Micros
}

// UnbegunIn lists first attempts in the gaps that may start now but have not begun, the earliest
// of each job first. Waiting runs are not listed. It takes no lock.
func UnbegunIn(r sql.Reader, gaps []Gap, now job.Micros, limit int) ([]Unbegun, error) {
	if len(gaps) == 0 {
		return nil, nil
	}

	in := ""
	for i, g := range gaps {
		if i > 0 {
			in += " OR "
		}
		in += fmt.Sprintf("job_id = %d AND due > %d AND due < %d", g.JobID, g.After, g.Before)
	}

	query := `
		SELECT id, job_id, due
		FROM run FORCE INDEX (attempt)
		WHERE (` + in + `) AND request = 0 AND attempt = 1 AND state IN ('idle', 'prepared') AND due_now <= ?
		ORDER BY job_id, due
		LIMIT ?`

	scan := func(rows *sql.Rows) (u Unbegun, err error) {
		err = rows.Scan(&u.Run, &u.JobID, &u.Due)
		return u, err
	}
	return sql.Select(r, "list earlier due times", scan, query, int64(now), limit)
}
