package schedule

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// A task whose job is for nodes of which none lives, or none takes work, must neither be lost from sight nor be looked
// at by every claim. Once it is a little late it waits for a node (its row in waiting says for which), becomes idle
// again, still due when it was, as soon as there is one, and ends missed when the misfire rules of its job say so.

const (
	// patience is how late a task is before it is taken for one that no node matches: members change all the time.
	patience = 2 * time.Second
	// unplacedRounds bounds how many batches of each kind one look takes.
	unplacedRounds = 10
)

// unplaced takes one look at tasks that no node takes. What it reads without locks is looked at again under them.
func (s *Sweeper) unplaced(ctx context.Context, now job.Micros) error {
	if s.Places == nil || !s.Places.ready() {
		return nil
	}
	awaited, err := s.DB.AwaitedPlaces(ctx)
	if err != nil {
		return err
	}
	// Who parked them knew places that may be news here.
	err = s.Places.lookUp(awaited, func(unknown []int) ([]sql.Place, error) { return s.DB.PlacesOf(ctx, unknown) })
	if err != nil {
		return err
	}
	unmatched, matched := s.Places.unmatched(awaited)
	return errors.Join(
		s.inBatches(ctx, s.placed, func() ([]sql.Unplaced, error) { return s.DB.WaitsForPlaces(ctx, matched, sweepBatch) }),
		s.inBatches(ctx, s.missed, func() ([]sql.Unplaced, error) {
			if len(awaited) == 0 {
				return nil, nil
			}
			return s.DB.ExpiredWaitsForNodes(ctx, now, sweepBatch)
		}),
		s.inBatches(ctx, s.park, func() ([]sql.Unplaced, error) {
			return s.DB.OverdueTasks(ctx, unmatched, now.Add(-patience), sweepBatch)
		}))
}

// step changes some tasks of jobs, all locked. It tells how many tasks are idle since.
type step func(tx *sql.Tx, jobs map[int64]*sql.JobRow, tasks []sql.TaskRow, now job.Micros) (idle int, err error)

// inBatches takes steps until there is nothing left to do for them. If one is refused or its end is unknown, the next
// look sees what stands.
func (s *Sweeper) inBatches(ctx context.Context, do step, find func() ([]sql.Unplaced, error)) error {
	for range unplacedRounds {
		found, err := find()
		if err != nil || len(found) == 0 {
			return err
		}
		err = inHalves(found, func(part []sql.Unplaced) error { return s.batch(ctx, do, part) })
		if err != nil || len(found) < sweepBatch {
			return err
		}
	}
	return nil
}

// batch takes a step in one transaction.
func (s *Sweeper) batch(ctx context.Context, do step, found []sql.Unplaced) error {
	return s.wake(ctx, func(tx *sql.Tx) (int, error) {
		jobs, tasks, err := lockFree(tx, found, func(u sql.Unplaced) (int64, int64) { return u.TaskID, u.JobID })
		if err != nil {
			return 0, err
		}
		if err := tx.LearnCalendars(slices.Collect(maps.Values(jobs))...); err != nil {
			return 0, err
		}
		return do(tx, jobs, tasks, s.Session.Now())
	})
}

// placed makes tasks idle for which there is a node again.
func (s *Sweeper) placed(tx *sql.Tx, jobs map[int64]*sql.JobRow, tasks []sql.TaskRow, _ job.Micros) (int, error) {
	byPlace := map[int][]sql.TaskRow{}
	n := 0
	for _, t := range tasks {
		if t.State == job.Waiting {
			place := placeNow(jobs[t.JobID], t)
			byPlace[place] = append(byPlace[place], t)
			n++
		}
	}
	for place, tasks := range byPlace {
		if err := tx.MoveTasks(place, tasks); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// placeNow is what the job of a task wants of nodes now.
func placeNow(j *sql.JobRow, t sql.TaskRow) int {
	if j == nil {
		return t.Place
	}
	return j.Place
}

// park has overdue tasks wait for a node.
func (s *Sweeper) park(tx *sql.Tx, jobs map[int64]*sql.JobRow, tasks []sql.TaskRow, now job.Micros) (idle int, err error) {
	var waits []sql.Wait
	for _, t := range tasks {
		j := jobs[t.JobID]
		switch {
		case t.State != job.Idle: // somebody took it
		case placeNow(j, t) != t.Place: // the job was edited: another node may take it
			if err := tx.PlaceTasks(j.Place, []int64{t.ID}); err != nil {
				return 0, err
			}
			idle++
		default:
			waits = append(waits, sql.Wait{
				TaskID: t.ID, JobID: t.JobID, GroupID: int64(t.Place), Kind: sql.WaitNode, Priority: t.Priority,
				Due: t.Due, Since: now, Expires: lastStart(j, t.Task),
			})
		}
	}
	parked := make([]int64, len(waits))
	for i, w := range waits {
		parked[i] = w.TaskID
	}
	if err := tx.FreeSlots(parked); err != nil { // one that was woken with a slot, of which it makes no use
		return 0, err
	}
	return idle, tx.Wait(job.Idle, waits)
}

// missed ends tasks that waited for a node for too long.
func (s *Sweeper) missed(tx *sql.Tx, jobs map[int64]*sql.JobRow, tasks []sql.TaskRow, now job.Micros) (woken int, err error) {
	tasks, err = tx.WaitingForNodes(tasks)
	if err != nil || len(tasks) == 0 {
		return 0, err
	}
	var (
		ids   []int64
		runs  []job.Run
		marks []sql.Mark
	)
	for _, t := range tasks {
		t.Launch = s.Session.Mint()
		run := unstarted(t.Task, job.Missed, s.noNode(t.Place), now)
		run.Node = s.Session.Node()
		ids, runs, marks = append(ids, t.ID), append(runs, run), append(marks, sql.MarkOf(t.Task))
	}
	if err := tx.MarkStarted(marks); err != nil {
		return 0, err
	}
	if err := tx.End(ids, runs); err != nil {
		return 0, err
	}
	if err := tx.DropWaits(ids); err != nil {
		return 0, err
	}
	return tx.Wake(jobsOf(tasks), nil, nil, now) // what waited behind them
}

// noNode says why no node took the tasks of a place.
func (s *Sweeper) noNode(place int) string {
	if place == 0 {
		return job.NoNode("")
	}
	return job.NoNode(s.Places.text(place))
}

// lastStart is until when a task may be started by the rules of its job; zero: for ever.
func lastStart(j *sql.JobRow, t job.Task) job.Micros {
	if j == nil || j.SpecErr != nil {
		return t.DueNow.Add(job.MisfireAfter)
	}
	end := t.DueNow.Add(j.Spec.MissedAfter())
	switch late, bounded := lateStart(j, t.Due); {
	case t.Origin != 0 || !bounded: // asked for: there is no later due time that takes its place
		end = 0
	default:
		end = max(end, late)
	}
	if deadline := j.Spec.Expires(t); deadline != 0 && (end == 0 || deadline < end) {
		return deadline
	}
	return end
}

// lateStart is until when a misfired due time is still to be started, as startsLate tells it; zero: it is not. False
// means that there is no bound.
func lateStart(j *sql.JobRow, due job.Micros) (until job.Micros, bounded bool) {
	m := &j.Spec.Misfire
	if m.Policy == job.MisfireSkip {
		return 0, true
	}
	for _, age := range []job.Duration{m.MaxAge, j.Spec.StartDeadline} {
		if end := due.Add(time.Duration(age)); age > 0 && (!bounded || end < until) {
			until, bounded = end, true
		}
	}
	sched, err := compile(j)
	if err != nil {
		return 0, true
	}
	later := due // up to the first one that takes its place
	for range j.Spec.CatchUp() {
		if later = firstAfter(sched, later); later == 0 || bounded && later > until {
			return until, bounded
		}
	}
	if m.Policy == job.MisfireAll {
		later = later.Add(j.Spec.MissedAfter())
	}
	if !bounded || later-1 < until {
		until, bounded = later-1, true
	}
	return until, bounded
}
