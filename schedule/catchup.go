package schedule

import (
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// wakeUpLate gives a job that is about to be changed its due times back, if the pause that took them has ended and no
// planner has come since: those that have passed since that end would be lost with the definition that they are by. It does
// what the planner would, and returns that, nil when there was nothing to do. The caller holds the rows of the job and of
// the pauses, and writes the next version of a job that resumed.
func wakeUpLate(tx *sql.Tx, j *sql.JobRow, pauses []sql.PauseRow, now job.Micros, s Session) (*plans, error) {
	p, before := plans{pauses: pauses, horizon: now.Add(planHorizon)}, j.Job
	var err error
	switch {
	case j.Deleted:
		return nil, nil
	case j.Paused && j.PauseUntil != 0 && j.PauseUntil <= now:
		err = p.resume(j, now, s)
	case j.Held && !j.Paused && !lasting(pauses, j.Spec.App, now):
		err = p.release(j, now, s)
	default:
		return nil, nil
	}
	if err != nil {
		j.Job = before
		return nil, nil // it has no due times that anybody knows
	}
	for _, r := range p.resumed {
		if _, err := tx.InsertAudit(resumedLine(r.job, r.until, now, s)); err != nil {
			return nil, err
		}
	}
	return &p, p.write(tx)
}

// catchUp plans what a job has come to be due up to now, and moves its cursor behind that, before its definition is
// replaced or its due times are taken away: if nobody planned for a while, as in an outage, those due times would never
// have been, and leave no record. The caller holds the job's row.
func catchUp(tx *sql.Tx, j *sql.JobRow, now job.Micros, s Session) error {
	_, err := catchUpRows(tx, j, now, s)
	return err
}

// catchUpRows is catchUp, and tells how many tasks it wrote.
func catchUpRows(tx *sql.Tx, j *sql.JobRow, now job.Micros, s Session) (rows int, err error) {
	if j.Paused || j.Held || j.Deleted {
		return 0, nil
	}
	if j.Replan && j.NextDue != 0 {
		return 0, renewed(tx, j, now, s)
	}
	sched, err := compile(j)
	if err != nil {
		return 0, nil // it has no due times that anybody knows
	}
	late := j.Spec.MissedAfter()
	for j.NextDue != 0 && j.NextDue <= now {
		if rows >= planRows { // nobody waits for all of these: what is older becomes one record that counts them
			late = min(late, time.Second)
		}
		d := until(j, sched, j.NextDue, now, now, late)
		rows += len(d.tasks)
		p := plans{cursors: []sql.Cursor{{JobID: j.ID, Version: j.Version, Seen: j.NextDue, Next: d.next, LastDue: d.last}}}
		p.take(d, now, s)
		if err := p.write(tx); err != nil {
			return rows, err
		}
		j.NextDue, j.LastDue = d.next, max(j.LastDue, d.last)
	}
	return rows, nil
}
