package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// A pause of an app or of the cluster is one row; the planner brings its jobs into line. A job that a pause covers is held
// once its cursor comes near, or at once if something of it is planned already: it loses what lies ahead, and its cursor.
// A job that is due much later stays as it is. A held job that no pause covers any more is released: it gets its due times
// back by the misfire policy, as of the instant at which the pause ended. That is looked for again and again, so it does
// not matter who dies between the steps.

// holdJobs takes the due times from covered jobs, whose rows the transaction has locked. It tells whether some are left for
// the next look, because there is too much to write at once.
func holdJobs(tx *sql.Tx, jobs []*sql.JobRow, s Session, now job.Micros) (more bool, err error) {
	ids, written := make([]int64, 0, len(jobs)), 0
	for i, j := range jobs {
		n, err := catchUpRows(tx, j, now, s)
		if err != nil {
			return false, err
		}
		ids = append(ids, j.ID)
		if written += n; written >= planRows && i+1 < len(jobs) {
			jobs, more = jobs[:i+1], true
			break
		}
	}
	live, err := tx.LiveTasksOf(ids, planRows)
	if err != nil {
		return false, err
	}
	var held []sql.Held
	var all stopping
	for _, j := range jobs {
		tasks, looked := live[j.ID]
		if !looked {
			more = true
			continue
		}
		all.add(stop(j, tasks, job.Longest(j.Covers, j.Spec.App, now).String(), s, now))
		held = append(held, sql.Held{JobID: j.ID, At: now, LastDue: j.LastDue})
	}
	if err := tx.HoldJobs(held); err != nil {
		return false, err
	}
	return more, all.write(tx)
}

// stoppingApp is how far a planner has come with the jobs of one pause that have something planned.
type stoppingApp struct {
	since, until job.Micros // which pause it is
	step         int        // in stoppable
	from         job.Micros // when the tasks that are left are due
}

// stoppable are the states of tasks that a pause ends.
var stoppable = [...]job.State{job.Idle, job.Prepare, job.Waiting}

// stopAhead holds covered jobs of which something is planned: of each pause a batch, until it has come through them all
// once. Without it they would be held a little later, and each of their due times until then would end skipped by itself.
// It tells whether there is more to do at once.
func (p *Planner) stopAhead(ctx context.Context, pauses []sql.PauseRow, now job.Micros) (more bool, err error) {
	if preferred(p.Session, now) == nil {
		return false, nil // others do it
	}
	progress := make(map[string]stoppingApp, len(pauses))
	for _, row := range pauses {
		if row.Ended || row.Over(now) {
			continue
		}
		at := p.stopped[row.App]
		if at.since != row.Since || at.until != row.Until {
			at = stoppingApp{since: row.Since, until: row.Until}
		}
		if at.step < len(stoppable) {
			var batchErr error
			if at, batchErr = p.stopBatch(ctx, row.App, at, now); batchErr != nil {
				err = errors.Join(err, batchErr)
			}
			more = more || at.step < len(stoppable)
		}
		progress[row.App] = at
	}
	p.stopped = progress
	return more && err == nil, err
}

// stopBatch takes one batch and returns how far that is.
func (p *Planner) stopBatch(ctx context.Context, app string, at stoppingApp, now job.Micros) (stoppingApp, error) {
	ids, last, more, err := p.DB.Stoppable(ctx, app, preferred(p.Session, now), stoppable[at.step], at.from, at.until, stopTasks)
	if err != nil {
		return at, err
	}
	for part := range slices.Chunk(ids, planBatch) {
		switch err := p.stopJobs(ctx, part, now); {
		case sql.IsRefused(err), errors.Is(err, errKept):
			p.Log.Error("jobs of a pause cannot be held", "app", app, "error", err)
			last++ // their starts are refused; they do not keep the others from being held
		case err != nil:
			return at, err
		}
	}
	if at.from = last; !more {
		at.step, at.from = at.step+1, 0
	}
	return at, nil
}

// stopTasks is how many tasks one look at what is to be stopped reads.
const stopTasks = 1000

// stopJobs holds those of some jobs that a pause covers; those that somebody else has locked come last, and are waited for.
func (p *Planner) stopJobs(ctx context.Context, ids []int64, now job.Micros) error {
	for wait := false; len(ids) > 0; {
		var busy map[int64]bool
		left := false
		err := p.DB.Tx(ctx, waitOnce(func(tx *sql.Tx) error {
			pauses, err := tx.SharePauses()
			if err != nil {
				return err
			}
			var rows map[int64]*sql.JobRow
			if rows, busy, err = lockJobs(tx, ids, wait); err != nil {
				return err
			}
			var jobs []*sql.JobRow
			for _, id := range ids {
				if j := rows[id]; j != nil && !j.Paused && !j.Held && !j.Deleted && lasting(pauses, j.Spec.App, now) {
					j.Covers = inForce(pauses)
					jobs = append(jobs, j)
				}
			}
			if err := tx.LearnCalendars(jobs...); err != nil {
				return err
			}
			left, err = holdJobs(tx, jobs, p.Session, now)
			return err
		}))
		if err != nil {
			return err // unknown too: the next look sees what stands
		}
		if !left {
			ids, wait = slices.Collect(maps.Keys(busy)), true
		}
	}
	return nil
}

// resume ends the pause of a job that had its end set.
func (p *plans) resume(j *sql.JobRow, now job.Micros, s Session) error {
	until := j.PauseUntil
	due, err := resumedTo(j, j.PauseAt(now).Words(), until, now, p.horizon)
	if err != nil {
		return err
	}
	p.resumed = append(p.resumed, resumption{j, until})
	for _, d := range due {
		p.take(d, now, s)
	}
	return nil
}

// release gives a held job its due times back, unless a pause covers it still.
func (p *plans) release(j *sql.JobRow, now job.Micros, s Session) error {
	if lasting(p.pauses, j.Spec.App, now) {
		return nil
	}
	why, at := "", now
	if over := lastOver(p.pauses, j.Spec.App, now); over != nil {
		why, at = over.Words(), max(over.Until, j.PausedAt)
	}
	due, err := resumedTo(j, why, at, now, p.horizon)
	if err != nil {
		return err
	}
	p.released = append(p.released, sql.Cursor{JobID: j.ID, Version: j.Version, Next: j.NextDue, LastDue: j.LastDue})
	for _, d := range due {
		p.take(d, now, s)
	}
	return nil
}

// resumption is a job whose pause has ended by itself, and when.
type resumption struct {
	job   *sql.JobRow
	until job.Micros
}

// writeResumed writes such jobs.
func writeResumed(tx *sql.Tx, resumed []resumption, s Session, now job.Micros) error {
	for _, r := range resumed {
		if err := nextVersion(tx, r.job, now); err != nil {
			return err
		}
		if _, err := tx.InsertAudit(resumedLine(r.job, r.until, now, s)); err != nil {
			return err
		}
	}
	return nil
}

// resumedLine is the audit's line of a job's pause that ended by itself.
func resumedLine(j *sql.JobRow, until, now job.Micros, s Session) *job.Entry {
	line := jobLine(job.ActionResume, &j.Job)
	line.At, line.Actor, line.Reason = now, itself(s), fmt.Sprintf("it was paused until %s", until)
	return line
}

// heldApp is how far a planner has come with the held jobs of an app that nothing covers any more.
type heldApp struct {
	last     int64 // the last that it came to, behind those before it; zero: it begins
	released bool  // it has released some since it began
}

// releaseHeld gives held jobs that nothing covers any more their due times back, of each app one batch while there is time, and
// clears away the pauses that are over. It tells whether there may be more to do at once.
func (p *Planner) releaseHeld(ctx context.Context, pauses []sql.PauseRow, now job.Micros) (more bool, err error) {
	apps, err := p.uncovered(ctx, pauses, now)
	if err != nil {
		return false, err
	}
	for _, row := range pauses {
		switch {
		case !row.Ended && row.Over(now):
			err = errors.Join(err, p.endPause(ctx, row, now))
		case row.Ended && !slices.ContainsFunc(apps, func(app string) bool { return row.App == "" || row.App == app }):
			err = errors.Join(err, p.DB.Tx(ctx, func(tx *sql.Tx) error { return tx.DropPause(row.App, row.Until) }))
		}
	}
	rand.Shuffle(len(apps), func(i, j int) { apps[i], apps[j] = apps[j], apps[i] }) // where time is short, none always comes last
	progress, end := make(map[string]heldApp, len(apps)), p.Session.Now().Add(planPeriod)
	for _, app := range apps {
		at, left := p.held[app], true
		if now = p.Session.Now(); now <= end {
			over := lastOver(pauses, app, now)
			var batchErr error
			at, left, batchErr = p.releaseBatch(ctx, app, at, over == nil || over.Until < now.Add(-neglectedHold), len(apps) > 1, now)
			err = errors.Join(err, batchErr)
		}
		more, progress[app] = more || left, at
	}
	p.held = progress
	return more && err == nil, err
}

// releaseBatch releases one batch of held jobs of an app; others tells whether there are some of other apps. It returns how
// far that is, and whether there may be more.
func (p *Planner) releaseBatch(ctx context.Context, app string, at heldApp, neglected, others bool, now job.Micros) (heldApp, bool, error) {
	ids, err := p.heldJobs(ctx, app, at.last, neglected, now)
	if err != nil {
		return at, true, err
	}
	if len(ids) == 0 { // from the beginning, the next time: that is at once unless all that is left is stuck, or for others
		return heldApp{}, at.released, nil
	}
	p.released = false
	looked, err := p.planInParts(ctx, ids, others, now)
	at.released = at.released || p.released
	if looked > 0 {
		at.last = ids[looked-1]
	}
	return at, true, err
}

// uncovered lists the apps with held jobs that no pause covers.
func (p *Planner) uncovered(ctx context.Context, pauses []sql.PauseRow, now job.Micros) ([]string, error) {
	var paused []string
	for _, row := range pauses {
		if row.Ended || row.Over(now) {
			continue
		}
		if row.App == "" {
			return nil, nil // it covers them all
		}
		paused = append(paused, row.App)
	}
	return p.DB.HeldApps(ctx, paused)
}

// neglectedHold is for how long after the end of a pause a held job is left to the node that its bucket prefers.
const neglectedHold = 8 * time.Second

// heldJobs lists the held jobs of an app, behind one of them, that are for this node to release: those that prefer it, and
// when there are none of these and all have been waiting for a while, any.
func (p *Planner) heldJobs(ctx context.Context, app string, behind int64, neglected bool, now job.Micros) ([]int64, error) {
	ids, err := p.DB.HeldJobs(ctx, app, preferred(p.Session, now), behind, planBatch)
	if err == nil && len(ids) == 0 && neglected {
		ids, err = p.DB.HeldJobs(ctx, app, []sql.Slice{everything(now)}, behind, planBatch)
	}
	return ids, err
}

// endPause writes down that a pause is over that had its end set. Of several nodes one does it; unknown is as good as
// not done, because the next look sees what stands.
func (p *Planner) endPause(ctx context.Context, row sql.PauseRow, now job.Micros) error {
	return p.DB.Tx(ctx, func(tx *sql.Tx) error {
		is, err := tx.LockPause(row.App)
		if errors.Is(err, sql.ErrNotFound) || err == nil && (is.Ended || !is.Over(now)) {
			return nil // somebody was faster, or paused it again
		}
		if err != nil {
			return err
		}
		if _, err := tx.EndPause(row.App, is.Until); err != nil {
			return err
		}
		return audit(tx, overdue(is, p.Session), now)
	})
}

// lasting tells whether a pause covers an app now.
func lasting(pauses []sql.PauseRow, app string, now job.Micros) bool {
	return slices.ContainsFunc(pauses, func(p sql.PauseRow) bool { return !p.Ended && !p.Over(now) && (p.App == "" || p.App == app) })
}

// lastOver is the last to end of the pauses of an app that are over; nil when nobody knows of one any more.
func lastOver(pauses []sql.PauseRow, app string, now job.Micros) *sql.PauseRow {
	var out *sql.PauseRow
	for i := range pauses {
		p := &pauses[i]
		if (p.Ended || p.Over(now)) && (p.App == "" || p.App == app) && (out == nil || p.Until > out.Until) {
			out = p
		}
	}
	return out
}

// inForce leaves out the pauses that were ended.
func inForce(rows []sql.PauseRow) []job.Pause {
	var out []job.Pause
	for _, r := range rows {
		if !r.Ended {
			out = append(out, r.Pause)
		}
	}
	return out
}
