package schedule

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Sweeper is the net beside the waking of tasks that wait, and ends those whose start deadline has passed. Whoever ends
// what a task waits for wakes it in the same transaction; what edits, pauses and deaths leave is found here. One node of
// the cluster does it: the first.
type Sweeper struct {
	DB       *sql.DB
	Session  Session
	Lookout  *Lookout
	Places   *Places // which nodes take which tasks; nil: all take all
	Woken    func()  // called when tasks that waited became idle
	Backfill func()  // called when there is a backfill to feed
	Log      *slog.Logger

	rounds int
	looked int64 // the last job that was found stuck, those before it were; 0: from the beginning
	lost   losses
}

const (
	sweepPeriod = time.Second
	sweepBatch  = 200
	// tidyEvery is after how many rounds rows that count for nothing any more are removed.
	tidyEvery = 30
	// startsKept is for how long counts of starts stay, twice as long as they count.
	startsKept = 2 * time.Minute
	// unplacedEvery is after how many rounds tasks that no node takes are looked for whatever is known.
	unplacedEvery = 10
)

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	wait := rand.N(sweepPeriod)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = sweepPeriod
		// Where no node takes work, anybody does it: what waits expires all the same.
		if index, of, _ := s.Session.Share(); index > 0 || index < 0 && of > 0 || !s.Session.Fresh() {
			continue
		}
		now := s.Session.Now()
		if err := errors.Join(s.sweep(ctx, now), s.unplacedIfAny(ctx, now)); err != nil && ctx.Err() == nil {
			s.Log.Warn("cannot look for what waits, trying again", "error", err)
		}
	}
}

// sweep takes one look. What it reads without locks is looked at again under them.
func (s *Sweeper) sweep(ctx context.Context, now job.Micros) error {
	s.rounds++
	g, ok := s.Lookout.seen()
	if !ok {
		var err error
		if g, err = s.DB.Glance(ctx, sql.GlanceOf{}); err != nil {
			return err
		}
	}
	if g.Backfills[0] != 0 {
		s.Backfill()
	}
	if !g.Waiting {
		return s.tidy(ctx, now)
	}
	return errors.Join(s.expire(ctx, now), s.wakeJobs(ctx, now), s.wakeGroups(ctx, now), s.wakeRested(ctx, now), s.tidy(ctx, now))
}

// unplacedIfAny looks for tasks that no node takes, unless nothing waits and nothing is late. Once in a while it looks all the same:
// what this node claims, which it takes for what is due first, may be late by less than what it may not claim.
func (s *Sweeper) unplacedIfAny(ctx context.Context, now job.Micros) error {
	if g, ok := s.Lookout.seen(); ok && s.rounds%unplacedEvery != 0 && !g.Waiting && (g.FirstIdle == 0 || g.FirstIdle > now.Add(-patience)) {
		return nil
	}
	return s.unplaced(ctx, now)
}

func (s *Sweeper) tidy(ctx context.Context, now job.Micros) error {
	if s.rounds%tidyEvery != 0 {
		return nil
	}
	dropStarts := s.DB.DropStarts(ctx, job.SecondOf(now.Add(-startsKept)), job.SecondOf(now.Add(startsKept)))
	return errors.Join(s.DB.Sweep(ctx, now), s.DB.FreeIdleSlots(ctx, now), dropStarts)
}

// expire ends the tasks whose start deadline has passed while they waited.
func (s *Sweeper) expire(ctx context.Context, now job.Micros) error {
	found, err := s.DB.ExpiredWaits(ctx, now, sweepBatch)
	if err != nil || len(found) == 0 {
		return err
	}
	return inHalves(found, func(part []sql.ExpiredWait) error { return s.expireBatch(ctx, part, now) })
}

// inHalves does one transaction about what was found. If MySQL refuses it, halves of it find out which row is to blame; that
// one stays as it is.
func inHalves[T any](found []T, do func(part []T) error) error {
	err := do(found)
	if !sql.BlamesRows(err) || len(found) == 1 {
		return err
	}
	half := len(found) / 2
	return errors.Join(inHalves(found[:half], do), inHalves(found[half:], do))
}

func (s *Sweeper) expireBatch(ctx context.Context, found []sql.ExpiredWait, now job.Micros) error {
	return s.wake(ctx, func(tx *sql.Tx) (int, error) {
		jobs, tasks, err := lockFree(tx, found, func(f sql.ExpiredWait) (int64, int64) { return f.TaskID, f.JobID })
		if err != nil {
			return 0, err
		}
		var ended, anew []int64
		var runs []job.Run
		var marks []sql.Mark
		for _, r := range tasks {
			if r.State != job.Waiting {
				continue
			}
			if j := jobs[r.JobID]; j != nil && j.SpecErr == nil {
				if end := j.Spec.Expires(r.Task); end == 0 || end > now {
					anew = append(anew, r.ID) // the deadline was changed: a start looks at it once more
					continue
				}
			}
			r.Launch = s.Session.Mint()
			run := unstarted(r.Task, job.Missed, "waited until its start deadline", now)
			run.Node = s.Session.Node()
			ended, runs, marks = append(ended, r.ID), append(runs, run), append(marks, sql.MarkOf(r.Task))
		}
		if err := tx.MarkStarted(marks); err != nil {
			return 0, err
		}
		if err := tx.End(ended, runs); err != nil {
			return 0, err
		}
		if err := tx.DropWaits(ended); err != nil {
			return 0, err
		}
		if err := tx.WakeTasks(anew, now); err != nil {
			return 0, err
		}
		woken, err := tx.Wake(jobsOf(tasks), nil, nil, now)
		return woken + len(anew), err
	})
}

// lockFree locks the jobs of what was found, and then the tasks, but for those that somebody else has locked, and the tasks of
// such jobs: the next look finds them again, and meanwhile they hold up no others.
func lockFree[T any](tx *sql.Tx, found []T, of func(T) (task, job int64)) (map[int64]*sql.JobRow, []sql.TaskRow, error) {
	jobIDs := make([]int64, len(found))
	for i, f := range found {
		_, jobIDs[i] = of(f)
	}
	slices.Sort(jobIDs)
	jobs, busy, err := tx.LockFreeJobs(slices.Compact(jobIDs))
	if err != nil {
		return nil, nil, err
	}
	var ids []int64
	for _, f := range found {
		if task, job := of(f); !busy[job] {
			ids = append(ids, task)
		}
	}
	rows, _, err := tx.LockFreeTasks(ids)
	tasks := make([]sql.TaskRow, 0, len(rows))
	for _, id := range ids {
		if r, ok := rows[id]; ok {
			tasks = append(tasks, r)
		}
	}
	return jobs, tasks, err
}

// jobsOf lists, in order, the jobs of tasks.
func jobsOf(tasks []sql.TaskRow) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.JobID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// wakeJobs wakes tasks that wait for runs of their job although none executes.
func (s *Sweeper) wakeJobs(ctx context.Context, now job.Micros) error {
	found, err := s.DB.StuckJobs(ctx, s.looked, sweepBatch)
	if err != nil {
		return err
	}
	s.looked = 0 // what is found may rightly wait: it does not keep others from being found
	if len(found) == sweepBatch {
		s.looked = found[len(found)-1]
	}
	return s.wake(ctx, func(tx *sql.Tx) (int, error) {
		_, busy, err := tx.LockFreeJobs(found)
		if err != nil {
			return 0, err
		}
		return tx.WakeJobs(slices.DeleteFunc(slices.Clone(found), func(id int64) bool { return busy[id] }), nil, now)
	})
}

// slotPatience is how late a task may be that holds a slot of its group and has not begun, the first time. Then another one may have
// it: there may be no node with room for this one for a day.
const slotPatience = 5 * time.Second

const (
	// mostLosses is how many doublings of the patience a task gets for its own losses: then it is about a day.
	mostLosses = 14
	// mostPasses is how many it gets since others lost the slot before it: 40 s. There may be many in a row that no node has room for.
	mostPasses = 3
	// keptLosses is how many losses, and passes, are kept in mind.
	keptLosses = 20_000
)

// losses is what the sweeper keeps in mind of slots that were passed on. That of another node begins anew, which costs nothing but time.
//
// The patience doubles each time that a task loses its slot: it is at the end of the line for nodes each time that it is woken,
// and must hold its slot once until it has come to the front. It doubles as well with each one in a row who did not begin: if nodes
// have room for nobody, it helps nobody that all of the group lose their place in the line.
type losses struct {
	times  map[int64]int // by task
	passes map[pass]int  // how many have lost a slot, one after the other, before those who were woken for it then
}

// pass is an instant at which slots of a group were passed on: whoever got one is due then.
type pass struct {
	group int64
	at    job.Micros
}

// patience is how late the holder of a slot may be.
func (l *losses) patience(h sql.LateHolder) time.Duration {
	return slotPatience << max(l.times[h.TaskID], l.passes[pass{h.GroupID, h.DueNow}])
}

// learn keeps in mind who has lost a slot.
func (l *losses) learn(lost []sql.LateHolder, now job.Micros) {
	if l.times == nil || len(l.times) > keptLosses || len(l.passes) > keptLosses {
		l.times, l.passes = map[int64]int{}, map[pass]int{}
	}
	for _, h := range lost {
		l.times[h.TaskID] = min(l.times[h.TaskID]+1, mostLosses)
		p := pass{h.GroupID, now}
		l.passes[p] = max(l.passes[p], min(l.passes[pass{h.GroupID, h.DueNow}]+1, mostPasses))
	}
}

// wakeGroups wakes tasks that wait for a slot of their group although one is free, or nobody uses it.
func (s *Sweeper) wakeGroups(ctx context.Context, now job.Micros) error {
	late := now.Add(-slotPatience)
	found, err := s.DB.StuckGroups(ctx, late)
	if err != nil || len(found) == 0 {
		return err
	}
	var lost []sql.LateHolder
	err = s.wake(ctx, func(tx *sql.Tx) (int, error) {
		groups, err := tx.LockFreeGroupIDs(found)
		if err != nil {
			return 0, err
		}
		lost, err = tx.PassOnSlots(groups, late, func(h sql.LateHolder) bool { return now.Sub(h.DueNow) > s.lost.patience(h) })
		if err != nil {
			return 0, err
		}
		return tx.WakeGroups(groups, now)
	})
	if err == nil {
		s.lost.learn(lost, now)
	}
	return err
}

// wakeRested wakes what is planned of backfills and waited for the end of a pause that is over. If there is another one, it
// waits once more.
func (s *Sweeper) wakeRested(ctx context.Context, now job.Micros) error {
	found, err := s.DB.RestedTasks(ctx, now, sweepBatch)
	if err != nil || len(found) == 0 {
		return err
	}
	return s.wake(ctx, func(tx *sql.Tx) (int, error) {
		_, tasks, err := lockFree(tx, found, func(f sql.RestedTask) (int64, int64) { return f.TaskID, f.JobID })
		if err != nil {
			return 0, err
		}
		ids := idsWhere(tasks, func(t sql.TaskRow) bool { return t.State == job.Waiting })
		return len(ids), tx.WakeTasks(ids, now)
	})
}

// wake runs fn in a transaction that waits for no task to be woken, and tells of those that it woke. What it ends, and has its
// record already, ends without another one.
func (s *Sweeper) wake(ctx context.Context, fn func(*sql.Tx) (int, error)) error {
	woken, again := 0, false
	var recorded []job.Run
	do := func(tx *sql.Tx) (err error) {
		tx.WakeFree()
		if recorded = nil; again {
			tx.LeaveOutRecorded(&recorded)
		}
		woken, err = fn(tx)
		return err
	}
	err := s.DB.Tx(ctx, do)
	if sql.IsDuplicate(err) {
		again = true
		err = s.DB.Tx(ctx, do)
	}
	if err == nil && woken > 0 || sql.IsUnknown(err) {
		s.Woken()
	}
	if err == nil {
		sayRecorded(s.Log, recorded)
	}
	return err
}
