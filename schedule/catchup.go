package schedule

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// catchUp plans what a job has come to be due up to now, and moves its cursor behind that, before its definition is
// replaced or its due times are taken away: if nobody planned for a while, as in an outage, those due times would never
// have been, and leave no record. The caller holds the job's row.
func catchUp(tx *sql.Tx, j *sql.JobRow, now job.Micros, s Session) error {
	if j.Paused || j.Held || j.Deleted {
		return nil
	}
	if j.Replan && j.NextDue != 0 {
		return renewed(tx, j, now, s)
	}
	sched, err := compile(j)
	if err != nil {
		return nil // it has no due times that anybody knows
	}
	for j.NextDue != 0 && j.NextDue <= now {
		d := until(j, sched, j.NextDue, now, now, j.Spec.MissedAfter())
		p := plans{cursors: []sql.Cursor{{JobID: j.ID, Version: j.Version, Seen: j.NextDue, Next: d.next, LastDue: d.last}}}
		p.take(d, now, s)
		if err := p.write(tx); err != nil {
			return err
		}
		j.NextDue, j.LastDue = d.next, max(j.LastDue, d.last)
	}
	return nil
}
