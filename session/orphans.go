package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Orphans frees the tasks of sessions that are dead for good. Any number of nodes may do it at once.
type Orphans struct {
	DB      *sql.DB
	Now     func() job.Micros      // MySQL's clock
	Node    func(uuid.UUID) string // the name of the node that had a session, "" if nobody knows
	By      job.Actor              // who does it, for the audit
	Changed func()                 // called when tasks became idle
	Log     *slog.Logger
}

// Free gives the tasks of a dead session back: those that were only prepared become idle, those that were
// executing end lost. It frees first what nobody has locked, and only then waits for the rest.
func (o *Orphans) Free(ctx context.Context, dead uuid.UUID) error {
	busy, err := o.freeAll(ctx, dead, false)
	if busy > 0 {
		_, more := o.freeAll(ctx, dead, true)
		err = errors.Join(err, more)
	}
	return err
}

// freeAll goes through all tasks of a session, and returns how many it left because somebody had locked a row that they need.
func (o *Orphans) freeAll(ctx context.Context, dead uuid.UUID, wait bool) (busy int, err error) {
	var failed error // of a batch: somebody may have locked one of its rows, which does not keep the others
	for after := int64(0); ; {
		rows, err := o.DB.SessionTasks(ctx, dead, after, batch)
		if err != nil || len(rows) == 0 || ctx.Err() != nil {
			return busy, errors.Join(failed, err)
		}
		after = rows[len(rows)-1].ID
		n, err := o.freeHalves(ctx, dead, rows, wait)
		busy += n
		if err != nil {
			if failed != nil { // it is not that batch: MySQL may be away
				return busy, errors.Join(failed, err)
			}
			failed = err
		}
	}
}

// freeHalves frees rows in one transaction. If MySQL refuses it, halves of it find out which row is to blame. That one ends
// without a record if its due time and attempt have one, and else stays as it is.
func (o *Orphans) freeHalves(ctx context.Context, dead uuid.UUID, rows []sql.TaskRow, wait bool) (busy int, err error) {
	busy, err = o.freeBatch(ctx, dead, rows, wait, false)
	switch {
	case err == nil || !sql.BlamesRows(err):
		return busy, err
	case len(rows) == 1 && sql.IsDuplicate(err):
		o.Log.Error("run is lost without a record: its due time and attempt have one", "task", rows[0].ID, "job_id", rows[0].JobID, "due", rows[0].Due)
		return o.freeBatch(ctx, dead, rows, wait, true)
	case len(rows) == 1:
		o.Log.Error("task of a dead session cannot be freed", "task", rows[0].ID, "job_id", rows[0].JobID, "due", rows[0].Due, "error", err)
		return 0, nil
	}
	half := len(rows) / 2
	one, err := o.freeHalves(ctx, dead, rows[:half], wait)
	two, more := o.freeHalves(ctx, dead, rows[half:], wait)
	return one + two, errors.Join(err, more)
}

// lock locks the jobs, the groups and the rows of tasks. Unless it is to wait, it leaves out the tasks for which somebody else
// has locked one of these, and returns how many these are.
func lock(tx *sql.Tx, rows []sql.TaskRow, wait bool) (jobs map[int64]*sql.JobRow, locked map[int64]sql.TaskRow, busy int, err error) {
	ids := make([]int64, 0, len(rows))
	if wait {
		for _, t := range rows {
			ids = append(ids, t.ID)
		}
		if jobs, err = tx.LockJobs(jobsOf(rows)); err != nil {
			return nil, nil, 0, err
		}
		if _, err = tx.LockGroups(groupsOf(jobs)); err != nil {
			return nil, nil, 0, err
		}
		locked, err = tx.LockTasks(ids)
		return jobs, locked, 0, err
	}
	jobs, busyJobs, err := tx.LockFreeJobs(jobsOf(rows))
	if err != nil {
		return nil, nil, 0, err
	}
	_, busyGroups, err := tx.LockFreeGroups(groupsOf(jobs))
	if err != nil {
		return nil, nil, 0, err
	}
	for _, t := range rows {
		if j := jobs[t.JobID]; !busyJobs[t.JobID] && (j == nil || !busyGroups[j.Spec.Group]) {
			ids = append(ids, t.ID)
		}
	}
	locked, busyTasks, err := tx.LockFreeTasks(ids)
	return jobs, locked, len(rows) - len(ids) + len(busyTasks), err
}

// freeBatch frees rows in one transaction, see lock; recorded ones end without a record.
func (o *Orphans) freeBatch(ctx context.Context, dead uuid.UUID, rows []sql.TaskRow, wait, recorded bool) (busy int, err error) {
	var idle []int64
	var lost []job.Run
	woken := 0
	err = o.DB.Tx(ctx, func(tx *sql.Tx) error {
		idle, lost = nil, nil
		var ended []int64
		var again []sql.Again
		var tried, over []job.Run
		now := o.Now()
		jobs, locked, n, err := lock(tx, rows, wait)
		if busy = n; err != nil {
			return err
		}
		written, err := tx.TakeChunks(dead, executingLaunches(locked, dead))
		if err != nil {
			return err
		}
		for i := range rows {
			id := rows[i].ID
			t, ok := locked[id]
			switch {
			case !ok || t.Launch.Session != dead: // somebody was faster, or has locked it
			case t.State == job.Prepare:
				idle = append(idle, id)
			case t.State == job.Executing:
				run := o.lostRun(t, now)
				run.Output = written[t.Launch.N]
				if t.Wish == 0 && rerun(jobs[t.JobID], t.Attempt) {
					run.Final = false
					again, tried = append(again, sql.Again{ID: id, DueNow: now}), append(tried, run)
				} else {
					ended, over = append(ended, id), append(over, run)
				}
				lost = append(lost, run)
			}
		}
		if recorded {
			tried, over = nil, nil
		}
		if err := tx.Free(idle); err != nil {
			return err
		}
		if err := tx.Retry(again, tried); err != nil {
			return err
		}
		if err := tx.End(ended, over); err != nil {
			return err
		}
		stopped := ended
		for _, a := range again {
			stopped = append(stopped, a.ID)
		}
		if woken, err = wakeBehind(tx, lost, stopped, jobs, now); err != nil || len(idle)+len(lost) == 0 {
			return err
		}
		_, err = tx.InsertAudit(&job.Entry{
			At: now, Actor: o.By, Action: job.ActionReset, Kind: job.KindSession, Name: o.Node(dead),
			Reason: fmt.Sprintf("its session is gone: %d prepared tasks were given back, %d runs are lost, %d of which are started again", len(idle), len(lost), len(again)),
		})
		return err
	})
	if err != nil {
		return 0, err // unknown too: the next look sees what stands
	}
	for _, run := range lost {
		o.Log.Error("run lost: its node vanished", "run", run.Launch, "job_id", run.JobID, "due", run.Due, "node", run.Node, "started_again", !run.Final)
	}
	if len(idle) > 0 {
		o.Log.Info("freed prepared tasks of a dead session", "session", dead, "tasks", len(idle))
	}
	if len(idle)+len(lost)+woken > 0 {
		o.Changed()
	}
	return busy, nil
}

// executingLaunches lists the counters of the attempts that end lost. What they wrote while their node lived is all
// that is known of their output.
func executingLaunches(locked map[int64]sql.TaskRow, dead uuid.UUID) []int64 {
	var counters []int64
	for _, t := range locked {
		if t.Launch.Session == dead && t.State == job.Executing {
			counters = append(counters, t.Launch.N)
		}
	}
	slices.Sort(counters)
	return counters
}

// groupsOf lists, in order, the groups of jobs.
func groupsOf(jobs map[int64]*sql.JobRow) []string {
	var out []string
	for _, j := range jobs {
		if j.Spec.Group != "" {
			out = append(out, j.Spec.Group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wakeBehind wakes who waited for runs that are lost.
func wakeBehind(tx *sql.Tx, lost []job.Run, tasks []int64, jobs map[int64]*sql.JobRow, now job.Micros) (int, error) {
	var awaited, turns []int64
	for _, run := range lost {
		if j := jobs[run.JobID]; j != nil && j.SpecErr == nil && j.Spec.Awaited(run.Origin) {
			awaited = append(awaited, run.JobID)
			if run.Origin >= 0 {
				turns = append(turns, run.JobID)
			}
		}
	}
	slices.Sort(awaited)
	return tx.Wake(slices.Compact(awaited), turns, tasks, now)
}

// jobsOf lists, in order, the jobs of tasks, whose definitions say what becomes of lost runs. A task that was prepared
// when it was read may execute once it is locked: the last commit of a dead node can be on its way still.
func jobsOf(rows []sql.TaskRow) []int64 {
	var ids []int64
	for _, t := range rows {
		ids = append(ids, t.JobID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rerun tells whether a lost attempt is followed by another.
func rerun(j *sql.JobRow, attempt int) bool {
	if j == nil || j.SpecErr != nil {
		return false
	}
	_, ok := j.Spec.Again(attempt, job.Lost, 0)
	return ok
}

func (o *Orphans) lostRun(t sql.TaskRow, now job.Micros) job.Run {
	started := max(t.Started, t.DueNow)
	return job.Run{
		Launch: t.Launch, JobID: t.JobID, Due: t.Due, Until: t.Due, Count: 1, Origin: t.Origin, Attempt: t.Attempt, Final: true,
		Started: started, Ended: max(now, started), Lateness: int64(started - t.DueNow), Node: o.Node(t.Launch.Session),
		Result: job.Result{Outcome: job.Lost, Reason: "its node vanished while it was running"},
	}
}
