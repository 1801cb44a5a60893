package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
)

// Starter moves tasks from prepare to executing just before they are due.
type Starter struct {
	Exclusion *lock.Exclusion
	Session   Session
	Prepared  *Prepared
	Executing interface {
		Free() int
		HasEnded(jobID int64) bool // does an attempt of the job wait for its outcome to be written?
		Add(job.Started)
	}
	Slots int                       // attempts that may execute at once
	Flush func(ctx context.Context) // writes the outcomes that wait
	Freed func()                    // called when tasks were forgotten whose rows are still ours
	Log   *slog.Logger

	lead  *lead
	wake  wake
	batch int
	full  bool // the last look found no free slot
	rest  bool // and there is nothing to do until one becomes free, or a little later
}

const (
	startBatch = 500
	// gather is how much further than the lead a look reaches: what is due within it shares one transaction.
	gather = 15 * time.Millisecond
	// crowded is how long a due task waits for a free slot here before it is given back, so that another node
	// may have one. As many as there are slots stay.
	crowded = 500 * time.Millisecond
	// stalePause is between looks at whether the lease is fresh again.
	stalePause = 50 * time.Millisecond
	// retryPause is after a start of which nothing stands.
	retryPause = 20 * time.Millisecond
	// retryLook is between looks at whether a retry is still overlapped.
	retryLook = time.Second
	// refusedPause is after MySQL refused one task alone.
	refusedPause = time.Second
)

// NewStarter sets what has no useful zero value.
func NewStarter(s Starter) *Starter {
	s.lead, s.wake, s.batch = new(lead), newWake(), startBatch
	return &s
}

// Wake asks for a look now: a slot is free, or the clock has moved.
func (s *Starter) Wake() { s.wake.up() }

// Lead is how long before their due instant starts are committed now.
func (s *Starter) Lead() time.Duration { return s.lead.get() }

// Run starts tasks until ctx ends.
func (s *Starter) Run(ctx context.Context) error {
	for {
		// A wake only asks for how long there is nothing to do: looking before the first task's time would make
		// many small batches.
		if wait := s.pause(); wait > 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(wait):
			case <-s.wake:
			case <-s.Prepared.changed:
			}
			s.rest = false
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.start(ctx, s.Session.Now())
	}
}

// pause is how long until the next task is to be looked at.
func (s *Starter) pause() time.Duration {
	at, ok := s.Prepared.Next(s.lead.get())
	if !ok {
		return time.Minute // Add wakes us
	}
	wait := at.Sub(s.Session.Now())
	switch {
	case wait > 0:
		return wait
	case !s.Session.Fresh():
		return stalePause
	case s.rest && s.Executing.Free() <= 0:
		return crowded / 4 // a slot that becomes free wakes us before
	}
	return 0
}

// verdict says what a start does with one task.
type verdict int

const (
	forget verdict = iota // its row is not ours any more
	hold                  // look again at its due instant
	begin                 // start it
	refuse                // write a run that says why it was not started
)

// decision is one task's part of a start transaction.
type decision struct {
	task job.Task
	verdict
	until   job.Micros // of a hold: when to look again, if later than the due instant
	run     job.Run    // of a refusal
	attempt job.Started
}

// start takes one batch. A refused task is that task's affair; a transaction that fails changes nothing and is
// tried again, with half as many tasks if MySQL refused it.
func (s *Starter) start(ctx context.Context, now job.Micros) {
	begun, full := now, s.full
	tasks, waited := s.take(now)
	if len(tasks) == 0 {
		return
	}
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	if slices.ContainsFunc(tasks, func(t job.Task) bool { return s.Executing.HasEnded(t.JobID) }) {
		s.Flush(ctx) // an outcome that waits here must not look like a run that overlaps
	}
	var decided []decision
	err := s.Exclusion.Do(ctx, lock.Change{
		Name: "start",
		Rows: func(tx *sql.Tx) (err error) {
			now = s.Session.Now()
			decided, err = s.decide(tx, tasks, ids, now)
			if err != nil {
				return err
			}
			return s.write(tx, decided, now)
		},
		Settle: func(tx *sql.Tx) error {
			rows, err := tx.LockTasks(ids)
			if err != nil {
				return err
			}
			for i := range decided {
				decided[i].settle(rows)
			}
			return nil
		},
		// If we die before this, the started rows have an owner that is gone and end lost, although nothing was
		// spawned for them: nobody can know.
		Sets: func() { s.apply(decided) },
	})
	if err != nil {
		s.failed(ctx, tasks, err)
		return
	}
	s.batch = min(startBatch, 2*s.batch)
	if !full {
		s.lead.measure(waited + s.Session.Now().Sub(begun))
	}
}

// take picks the tasks to look at, as many as there are slots, and tells how long the first has been waiting.
// Due tasks for which there is no slot are given back after a while, if there is somebody to take them.
func (s *Starter) take(now job.Micros) ([]job.Task, time.Duration) {
	if !s.Session.Fresh() {
		return nil, 0
	}
	free := s.Executing.Free()
	s.full = free <= 0
	if s.rest = s.full; s.full {
		s.giveBack(now)
		return nil, 0
	}
	tasks, waited := s.Prepared.Take(now, s.lead.get()+gather, min(free, s.batch))
	return tasks, waited - gather
}

// giveBack forgets the tasks that wait for a slot, but for those that come next.
func (s *Starter) giveBack(now job.Micros) {
	if _, of, _ := s.Session.Share(); of <= 1 {
		return
	}
	tasks, _ := s.Prepared.Take(now, -crowded, s.Slots+startBatch)
	for i, t := range tasks {
		if i < s.Slots {
			s.Prepared.Return(t, t.DueNow)
		} else {
			s.Prepared.Drop(t)
		}
	}
	if len(tasks) > s.Slots {
		s.Freed()
	}
}

// decide locks the jobs and the tasks and looks at each task, the earliest due first.
func (s *Starter) decide(tx *sql.Tx, tasks []job.Task, ids []int64, now job.Micros) ([]decision, error) {
	jobIDs := make([]int64, 0, len(tasks))
	for _, t := range tasks {
		jobIDs = append(jobIDs, t.JobID)
	}
	slices.Sort(jobIDs)
	jobIDs = slices.Compact(jobIDs)
	jobs, err := tx.LockJobs(jobIDs)
	if err != nil {
		return nil, err
	}
	rows, err := tx.LockTasks(ids)
	if err != nil {
		return nil, err
	}
	latest := now // of what may be executing: later than now, if MySQL's clock was put back
	for _, j := range jobs {
		latest = max(latest, j.LastDue)
	}
	executing, err := tx.Siblings(jobIDs, latest.Add(maxLead+time.Second))
	if err != nil {
		return nil, err
	}
	out := make([]decision, len(tasks))
	for i, t := range tasks {
		d := decision{task: t}
		if r, ok := rows[t.ID]; ok && r.Is(t.Launch, job.Prepare) {
			d = decide(t, jobs[t.JobID], executing[t.JobID], now)
		}
		if d.verdict == begin {
			r := rows[t.ID]
			executing[t.JobID] = append(executing[t.JobID], r) // for the later ones of the same job
		}
		out[i] = d
	}
	return out, nil
}

// decide says what becomes of a task that is prepared, given its job's row (locked) and the job's executing tasks.
// A refusal is final only at or after the due instant: before it, what stands in the way may still go.
func decide(t job.Task, j *sql.JobRow, executing []sql.TaskRow, now job.Micros) decision {
	d := decision{task: t}
	no := func(o job.Outcome, format string, args ...any) decision {
		if now < t.DueNow {
			d.verdict = hold
			return d
		}
		d.verdict = refuse
		d.run = job.Run{
			Launch: t.Launch, JobID: t.JobID, Due: t.Due, Until: t.Due, Count: 1, Origin: t.Origin, Attempt: t.Attempt, Final: true, Ended: now,
			Result: job.Result{Outcome: o, Reason: fmt.Sprintf(format, args...)},
		}
		return d
	}
	switch {
	case j == nil || j.Deleted:
		return no(job.Skipped, "job was deleted")
	case j.Paused && t.Origin == 0:
		return no(job.Skipped, "job is paused")
	case j.SpecErr != nil:
		return no(job.Skipped, "%v", j.SpecErr)
	}
	if late := now.Sub(t.DueNow); late > job.MisfireAfter {
		sched, err := compile(j)
		switch {
		case err != nil:
			return no(job.Skipped, "%v", err)
		case t.Origin != 0: // asked for by hand: there is no later due time that takes its place
		case !startsLate(&j.Spec, sched, t.Due, now):
			return no(job.Missed, "nobody could start it within %s; misfire policy %s", job.Duration(job.MisfireAfter), j.Spec.Misfire.Policy)
		}
	}
	if j.Spec.Overlap == job.OverlapSkip && len(executing) > 0 {
		other := executing[0]
		if t.Attempt > 1 {
			// It began before the other one did, and is not over: it waits.
			d.verdict, d.until = hold, max(now, t.DueNow).Add(retryLook)
			return d
		}
		return no(job.Skipped, "overlap: the run due %s is still executing", other.Due)
	}
	d.verdict = begin
	d.attempt = job.Started{Task: t, Spec: &j.Spec, At: now, SpawnBy: max(t.DueNow, now) + job.SpawnWindow}
	return d
}

// write makes the rows say what was decided.
func (s *Starter) write(tx *sql.Tx, decided []decision, now job.Micros) error {
	var (
		begun, refused []int64
		runs           []job.Run
		started        []sql.Mark
	)
	for _, d := range decided {
		switch d.verdict {
		case begin:
			begun = append(begun, d.task.ID)
		case refuse:
			refused = append(refused, d.task.ID)
			d.run.Node = s.Session.Node()
			runs = append(runs, d.run)
		default:
			continue
		}
		started = append(started, markOf(d.task))
	}
	if err := tx.MarkStarted(started); err != nil {
		return err
	}
	if err := tx.Start(s.Session.ID(), begun, now, job.SpawnWindow); err != nil {
		return err
	}
	return tx.End(refused, runs)
}

// markOf says what a start or an end means for last_due: nothing, when somebody asked for the run by hand.
func markOf(t job.Task) sql.Mark {
	if t.Origin != 0 {
		return sql.Mark{JobID: t.JobID}
	}
	return sql.Mark{JobID: t.JobID, Due: t.Due}
}

// settle corrects a decision by what its row says after an unknown commit.
func (d *decision) settle(rows map[int64]sql.TaskRow) {
	r, ok := rows[d.task.ID]
	switch {
	case ok && r.Is(d.task.Launch, job.Executing):
		d.verdict = begin
	case ok && r.Is(d.task.Launch, job.Prepare):
		d.verdict = hold
	default:
		d.verdict = forget
	}
}

// apply makes the sets say what the rows say.
func (s *Starter) apply(decided []decision) {
	for _, d := range decided {
		switch d.verdict {
		case hold:
			s.Prepared.Return(d.task, max(d.task.DueNow, d.until))
			continue
		case begin:
			s.Executing.Add(d.attempt)
		case refuse:
			s.Log.Info("not started", "run", d.task.Launch, "job_id", d.task.JobID, "due", d.task.Due, "outcome", d.run.Outcome, "reason", d.run.Reason)
		}
		s.Prepared.Drop(d.task)
	}
}

// failed puts the tasks back after a transaction of which nothing stands.
func (s *Starter) failed(ctx context.Context, tasks []job.Task, err error) {
	if ctx.Err() != nil {
		return // the session is over, and the set with it
	}
	if sql.IsRefused(err) {
		s.batch = max(1, len(tasks)/2) // one row may be to blame: let the others pass
	}
	s.Log.Warn("start", "tasks", len(tasks), "error", err)
	again := s.Session.Now().Add(retryPause)
	if sql.IsRefused(err) && len(tasks) == 1 {
		again = s.Session.Now().Add(refusedPause)
	}
	for _, t := range tasks {
		s.Prepared.Return(t, again)
	}
}
