package schedule

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
		HasEnded(jobID int64) bool            // does a start of the job depend on an outcome that waits to be written?
		IsOver(task int64, l job.Launch) bool // has an attempt ended whose outcome waits to be written?
		Over() map[int64]job.Launch           // which have, by task
		Add(job.Started)
		Kill(l job.Launch, replaced bool)
	}
	Places *Places                   // which tasks this node may start; nil: all
	Slots  int                       // attempts that may execute at once
	Flush  func(ctx context.Context) // writes the outcomes that wait
	Freed  func()                    // called when tasks were forgotten whose rows are still ours
	Trip   func() time.Duration      // how long a round trip to MySQL took lately; nil: nobody knows
	Lanes  func() int                // how many starts may be under way, see sql.Lanes; nil: one
	Woken  func()                    // called when tasks that waited became idle
	Limits *Limiter                  // of apps; nil: none has any
	Log    *slog.Logger

	lead     *lead
	wake     wake
	full     bool         // the last look found no free slot
	rest     bool         // and there is nothing to do until one becomes free, or a little later
	scarce   time.Time    // when the last look took a task for each free slot; zero: there was a slot for each task
	promised atomic.Int64 // slots that tasks may need whose start is under way
	perSlot  atomic.Int64 // how many of those that began last share a slot, less one

	mu      sync.Mutex
	batch   int
	busy    map[int64]time.Duration // by task: how long it was put off because somebody had locked its job, or keeps a row that it needs
	patient time.Time               // until then starts set aside what needs such a row, and wait for none
}

const (
	// startBatch bounds a transaction. MariaDB makes a subquery of a list of 1,000 ids, and looks for its rows in another way.
	startBatch = 800
	// gather is how much further than the lead a look reaches: what is due within it shares one transaction.
	gather = 15 * time.Millisecond
	// maxGather is how far it reaches where that is fewer than few: a transaction costs as much for one as for ten.
	maxGather, few = 40 * time.Millisecond, 64
	// crowded is how long a due task waits for a free slot here before it is given back, so that another node
	// may have one. As many as there are slots stay.
	crowded = 500 * time.Millisecond
	// linger is how long tasks that are due wait for more slots to become free while few are: they share transactions then,
	// where each would have one of its own, as the slots become free one by one.
	linger = 20 * time.Millisecond
	// stalePause is between looks at whether the lease is fresh again.
	stalePause = 50 * time.Millisecond
	// busyPause is after the job of a task was found locked, or a round trip if that is longer, and twice as long each time
	// that it is again.
	busyPause, maxBusyPause = 2 * time.Millisecond, 64 * time.Millisecond
	// maxKeptPause is the longest where it is another row that the task needs, and patientFor how long starts wait for none
	// after somebody kept one: who waits begins nothing else meanwhile. Then one waits again: a row that many want looks kept
	// to whoever does not stand in line for it.
	maxKeptPause, patientFor = time.Second, time.Minute
	// retryPause is after a start of which nothing stands.
	retryPause = 20 * time.Millisecond
	// refusedPause is after MySQL refused one task alone.
	refusedPause = time.Second
)

// NewStarter sets what has no useful zero value.
func NewStarter(s *Starter) *Starter {
	s.lead, s.wake, s.batch, s.busy = new(lead), newWake(), startBatch, map[int64]time.Duration{}
	return s
}

// Wake asks for a look now: a slot is free, or the clock has moved.
func (s *Starter) Wake() { s.wake.up() }

// Lead is how long before their due instant starts are committed now.
func (s *Starter) Lead() time.Duration { return s.lead.get() }

// Run starts tasks until ctx ends, in one transaction at a time, or in some where each mostly waits for MySQL.
func (s *Starter) Run(ctx context.Context) error {
	under, over := 0, make(chan struct{})
	defer func() {
		for ; under > 0; under-- {
			<-over
		}
	}()
	for {
		wait := time.Minute // or until one of them is over
		if under < orOne(s.Lanes) {
			wait = s.pause()
		}
		// A wake only asks for how long there is nothing to do: looking before the first task's time would make
		// many small batches.
		if wait > 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(wait):
			case <-s.wake:
			case <-s.Prepared.changed:
			case <-over:
				under--
			}
			s.rest = false
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := s.Session.Now()
		if t := s.take(now); len(t.tasks) > 0 {
			under++
			go func() {
				s.begin(ctx, now, t)
				over <- struct{}{}
			}()
		}
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
	case s.rest && s.free() <= 0:
		return crowded / 4 // a slot that becomes free wakes us before
	case !s.scarce.IsZero() && s.free() < s.Slots/4:
		return max(0, linger-time.Since(s.scarce))
	}
	return 0
}

// free is how many slots nobody has, nor may need.
func (s *Starter) free() int { return s.Executing.Free() - int(s.promised.Load()) }

// PerSlot is how many of the tasks that come next are likely to share a slot: as many as of those before. Nothing but the row
// of its job tells what a task is, which is read as it starts.
func (s *Starter) PerSlot() int { return 1 + int(s.perSlot.Load()) }

// begin starts what was taken. A refused task is that task's affair; a transaction that fails changes nothing and is
// tried again, with half as many tasks if MySQL refused it.
func (s *Starter) begin(ctx context.Context, now job.Micros, t taken) {
	begun, tasks := now, t.tasks
	defer s.promised.Add(-int64(t.slots))
	if slices.ContainsFunc(tasks, func(t job.Task) bool { return s.Executing.HasEnded(t.JobID) }) {
		s.Flush(ctx) // an outcome that waits here must not look like a run that overlaps
	}
	var decided []decision
	var read time.Time // when the clock was, by which the window is counted
	woken, settled, waited := 0, false, false
	s.mu.Lock()
	patient := time.Now().Before(s.patient)
	s.mu.Unlock()
	var recorded []job.Run // what ends here without a record, since its due time and attempt have one
	again := false
	change := lock.Change{
		Name: "start",
		Rows: func(tx *sql.Tx) (err error) {
			if recorded = nil; again {
				tx.LeaveOutRecorded(&recorded)
			}
			read, now = time.Now(), s.Session.Now()
			window, slack := s.window()
			decided, err = s.decide(tx, tasks, t.slots, now, window-slack, patient)
			if err == nil {
				woken, err = s.write(tx, decided, now, window)
			}
			if sql.IsLockWait(err) { // somebody keeps a row: the next try sets aside what needs it
				waited, patient = true, true
			}
			return err
		},
		Settle: func(tx *sql.Tx) error {
			settled = true
			marks, ids := marksOf(decided)
			if err := tx.MarkStarted(marks); err != nil { // written by the start, too
				return err
			}
			rows, err := tx.LockTasks(ids)
			if err != nil {
				return err
			}
			for i := range decided {
				if d := &decided[i]; !d.aside() {
					d.settle(rows)
				}
			}
			return nil
		},
		// If we die before this, the started rows have an owner that is gone and end lost, although nothing was
		// spawned for them: nobody can know.
		Sets: func() { s.apply(decided) },
	}
	err := s.Exclusion.Do(ctx, change)
	if sql.IsDuplicate(err) { // something that ends here has its record already
		again = true
		err = s.Exclusion.Do(ctx, change)
	}
	if woken > 0 {
		s.Woken()
	}
	if waited {
		s.mu.Lock()
		s.patient = time.Now().Add(patientFor)
		s.mu.Unlock()
	}
	if err != nil {
		s.failed(ctx, tasks, err)
		return
	}
	sayRecorded(s.Log, recorded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(tasks) >= s.batch {
		s.batch = min(startBatch, 2*s.batch)
	}
	if !settled { // else it took as long as MySQL was away, which says nothing of starts
		s.lead.learn(time.Since(read))
	}
	if !t.full && !waited {
		s.lead.measure(t.waited + s.Session.Now().Sub(begun))
	}
}

// window is the spawn window of what is started now, in microseconds, and how much of it is left to others, by whose
// readings of MySQL's clock it may be over so much sooner.
func (s *Starter) window() (window, slack int64) {
	trip := orNone(s.Trip)
	return s.lead.window(trip).Microseconds(), (trip / 2).Microseconds()
}

// taken is what one transaction is to start.
type taken struct {
	tasks  []job.Task
	slots  int           // that it may use
	waited time.Duration // how long the first one has been waiting
	full   bool          // because there was no free slot
}

// take picks the tasks to look at, as many as there are likely to be slots for. Due tasks for which there is no slot are given back after a
// while, if there is somebody to take them.
func (s *Starter) take(now job.Micros) taken {
	if !s.Session.Fresh() {
		return taken{}
	}
	t, free := taken{full: s.full}, s.free()
	s.full = free <= 0
	if s.rest = s.full; s.full {
		s.giveBack(now)
		return taken{}
	}
	s.scarce = time.Time{}
	s.mu.Lock()
	batch := s.batch
	s.mu.Unlock()
	all := free * s.PerSlot()
	most := min(all, batch)
	lead := s.lead.get()
	t.tasks, t.waited = s.Prepared.Take(now, lead+gather, most)
	if n := min(most, few) - len(t.tasks); n > 0 && len(t.tasks) > 0 {
		more, _ := s.Prepared.Take(now, lead+maxGather, n)
		t.tasks = append(t.tasks, more...)
	}
	if len(t.tasks) == all {
		s.scarce = time.Now()
	}
	t.waited -= gather
	// What was set aside is looked at beside them, in place of none, and is promised one slot: most of it needs none now. Where
	// MySQL refused a larger batch it waits until it is known who is to blame.
	room := batch - len(t.tasks)
	if batch == startBatch {
		room = max(room, 1)
	}
	aside := s.Prepared.TakeAside(now, room)
	t.slots = min(free, len(t.tasks)+min(1, len(aside)))
	t.tasks = append(t.tasks, aside...)
	s.promised.Add(int64(t.slots))
	return t
}

// giveBack forgets the tasks that wait for a slot, but for those that come next.
func (s *Starter) giveBack(now job.Micros) {
	if _, of, _ := s.Session.Share(); of <= 1 {
		return
	}
	keep := s.Slots * s.PerSlot() // as many as are claimed, see Claimer.fitting
	tasks, _ := s.Prepared.Take(now, -crowded, keep+startBatch)
	ready := len(tasks)
	tasks = append(tasks, s.Prepared.TakeAside(now, startBatch)...)
	for i, t := range tasks {
		switch {
		case i >= keep:
			s.Prepared.Drop(t)
			s.mu.Lock()
			delete(s.busy, t.ID)
			s.mu.Unlock()
		case i < ready:
			s.Prepared.Return(t, t.DueNow)
		default:
			s.Prepared.SetAside(t, now.Add(maxBusyPause))
		}
	}
	if len(tasks) > keep {
		s.Freed()
	}
}

// decide locks the jobs, the groups and the tasks and looks at each task, the earliest due first. Those for which the slots do
// not suffice are left for later. If it is patient, nothing that somebody else has locked is waited for: what needs it is
// set aside.
func (s *Starter) decide(tx *sql.Tx, tasks []job.Task, slots int, now job.Micros, window int64, patient bool) ([]decision, error) {
	jobIDs := make([]int64, 0, len(tasks))
	for _, t := range tasks {
		jobIDs = append(jobIDs, t.JobID)
	}
	slices.Sort(jobIDs)
	jobIDs = slices.Compact(jobIDs)
	jobs, busy, err := tx.LockFreeJobs(jobIDs)
	if err != nil {
		return nil, err
	}
	out := make([]decision, 0, len(tasks))
	tasks = setAside(tasks, &out, later, func(t job.Task) bool { return busy[t.JobID] })
	jobIDs = slices.DeleteFunc(jobIDs, func(id int64) bool { return busy[id] })
	groups, holders, keptGroups, err := lockGroups(tx, jobs, patient)
	if err != nil {
		return nil, err
	}
	var locked map[int64]sql.TaskRow
	if patient {
		tx.WakeFree()
		tasks = setAside(tasks, &out, kept, func(t job.Task) bool { j := jobs[t.JobID]; return j != nil && keptGroups[j.Spec.Group] })
		var keptTasks map[int64]bool
		if locked, keptTasks, err = tx.LockFreeTasks(taskIDs(tasks)); err != nil {
			return nil, err
		}
		tasks = setAside(tasks, &out, kept, func(t job.Task) bool { return keptTasks[t.ID] })
	}
	rows, others, err := s.around(tx, tasks, locked, jobs, jobIDs, now)
	if err != nil {
		return nil, err
	}
	if err := s.Places.learnOf(tx, jobs); err != nil {
		return nil, err
	}
	if err := tx.LearnCalendars(scheduled(tasks, jobs, now)...); err != nil {
		return nil, err
	}
	off, err := handlersOff(tx, jobs)
	if err != nil {
		return nil, err
	}
	cancelled, err := cancelledBackfills(tx, tasks)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(tasks, func(a, b job.Task) int { // what has the higher priority comes first where slots are short; a job has one
		return cmp.Or(cmp.Compare(priority(jobs[b.JobID]), priority(jobs[a.JobID])), byDue(a, b))
	})
	late := outdated(standing(tasks, rows, jobs), jobs, now)
	room := room{left: slots * job.CallsPerSlot}
	allowances := s.Limits.allowances(now)
	for _, t := range tasks {
		d := decision{task: t}
		r, ok := rows[t.ID]
		if ok && r.Is(t.Launch, job.Prepare) {
			sc := scene{job: jobs[t.JobID], others: others[t.JobID], cancelled: cancelled[-t.Origin], window: window}
			if sc.job != nil {
				sc.allowance = allowances.of(sc.job.Spec.App)
			}
			if sc.job != nil && sc.job.Spec.Group != "" {
				if g, ok := groups[sc.job.Spec.Group]; ok {
					sc.group, sc.idle, sc.executing = &g, holders[g.ID].Idle, holders[g.ID].Executing
					// The slot of one whose place it takes, in this transaction, is its own.
					sc.holders = slices.DeleteFunc(slices.Clone(holders[g.ID].All), func(id int64) bool { return late[id].ID == t.ID })
				}
			}
			if sc.job != nil && sc.job.Spec.Handler != "" {
				sc.off = off[sc.job.Spec.Handler]
			}
			if r.Wish != 0 {
				d = unwanted(t, r.Wish, now)
			} else if place, ok := s.elsewhere(sc.job); ok {
				d = decision{task: t, verdict: giveBack, place: place}
			} else if l, ok := late[t.ID]; ok {
				d = refused(t, job.Superseded, now, "the due time %s took its place", l.Due)
			} else {
				d = decide(t, sc, now)
			}
			if d.verdict == begin && !room.takes(&sc.job.Spec) {
				d = decision{task: t, verdict: noRoom}
			}
			d.holds = slices.Contains(sc.holders, t.ID)
			if err := lockSuperseded(tx, &d, patient); err != nil {
				return nil, err
			}
			if err := takeFrom(tx, &d); err != nil {
				return nil, err
			}
			sc.allowance.take(&d)
			if g := sc.group; g != nil && d.verdict != giveBack { // nobody takes a slot of one that ends here
				sc = sc.without(d.supersedes)
				if d.slot != 0 {
					sc.holders = append(slices.DeleteFunc(sc.holders, func(id int64) bool { return id == d.from || id == t.ID }), t.ID)
					sc.idle = slices.DeleteFunc(sc.idle, func(c sql.Candidate) bool { return c.ID == d.from })
				}
				if d.verdict == begin {
					sc.executing++
				}
				holders[g.ID] = sql.Holders{All: sc.holders, Idle: sc.idle, Executing: sc.executing}
			}
		}
		if j := jobs[t.JobID]; j != nil {
			d.run.App = j.Spec.App
			d.awaited = j.SpecErr == nil && j.Spec.Awaited(t.Origin)
		}
		others[t.JobID] = then(others[t.JobID], d, r)
		out = append(out, d)
	}
	if room.begun > 0 {
		s.perSlot.Store(int64(room.begun*job.CallsPerSlot/room.used - 1))
	}
	return out, lockOthers(tx, out, rows)
}

// priority is that of a job, if there is one.
func priority(j *sql.JobRow) int {
	if j == nil {
		return 0
	}
	return j.Spec.Priority
}

// room is what the slots of one start hold, in what an HTTP request takes of one.
type room struct{ left, used, begun int }

// takes takes the share of one that begins, if there is so much.
func (r *room) takes(s *job.Spec) bool {
	share := job.CallsPerSlot
	if s.HTTP != nil {
		share = 1
	}
	if share > r.left {
		return false
	}
	r.left, r.used, r.begun = r.left-share, r.used+share, r.begun+1
	return true
}

// setAside leaves out tasks that need a row which somebody else has locked; they are to be looked at again. It returns those
// that are left.
func setAside(tasks []job.Task, out *[]decision, v verdict, needs func(t job.Task) bool) []job.Task {
	left := make([]job.Task, 0, len(tasks))
	for _, t := range tasks {
		if needs(t) {
			*out = append(*out, decision{task: t, verdict: v})
		} else {
			left = append(left, t)
		}
	}
	return left
}

// aside tells whether the task was set aside.
func (d *decision) aside() bool { return d.verdict == later || d.verdict == kept }

func taskIDs(tasks []job.Task) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}

// standing leaves out tasks that are not ours any more or no due times: an edit or a calendar has withdrawn them, and they
// take the place of none.
func standing(tasks []job.Task, rows map[int64]sql.TaskRow, jobs map[int64]*sql.JobRow) []job.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t job.Task) bool {
		r, ok := rows[t.ID]
		if !ok || !r.Is(t.Launch, job.Prepare) || jobs[t.JobID] == nil {
			return true
		}
		gone, err := withdrawn(t, jobs[t.JobID])
		return gone || err != nil
	})
}

// cancelledBackfills tells which of the backfills of tasks are cancelled. A cancel holds the job's row, so none comes
// between this and the start.
func cancelledBackfills(tx *sql.Tx, tasks []job.Task) (map[int64]bool, error) {
	var ids []int64
	for _, t := range tasks {
		if t.Origin < 0 {
			ids = append(ids, -t.Origin)
		}
	}
	slices.Sort(ids)
	return tx.CancelledBackfills(slices.Compact(ids))
}

// around reads the tasks, and those of their jobs beside which they are decided: those that execute or have been woken, and of
// jobs for which it matters also the others that are due and have not begun. Where runs may overlap, nothing else matters.
//
// What has ended here and is not written yet does not execute. It is left out where nothing but that matters; for the
// others start has had it written before.
//
// The tasks are locked if a place is to be locked behind them. Rows is what they say if they are already.
func (s *Starter) around(tx *sql.Tx, tasks []job.Task, rows map[int64]sql.TaskRow, jobs map[int64]*sql.JobRow, jobIDs []int64, now job.Micros) (map[int64]sql.TaskRow, map[int64][]sql.TaskRow, error) {
	latest := now // of what may be executing: later than now, if MySQL's clock was put back
	matters, alone, locked := map[int64]bool{}, map[int64]bool{}, rows != nil
	for id, j := range jobs {
		latest = max(latest, j.LastDue)
		matters[id] = j.SpecErr == nil && j.Spec.Orders()
		alone[id] = j.SpecErr == nil && j.Spec.Overlap == job.OverlapAllow && !matters[id]
		locked = locked || j.Spec.Handler != ""
	}
	for _, t := range tasks {
		matters[t.JobID] = matters[t.JobID] || t.Origin < 0
		alone[t.JobID] = alone[t.JobID] && t.Origin >= 0
	}
	beside := slices.DeleteFunc(slices.Clone(jobIDs), func(id int64) bool { return alone[id] })
	ordered := slices.DeleteFunc(slices.Clone(beside), func(id int64) bool { return !matters[id] })
	before := latest.Add(maxLead + time.Second)
	near := before
	if len(ordered) == 0 {
		// What executes and is due later than all these is little, and is found by itself; what does not execute does not
		// matter. Who is behind would else read all that is overdue with each start.
		near = 0
		for _, t := range tasks {
			near = max(near, t.Due+1, t.DueNow+1)
		}
	}
	look := tasks
	if locked {
		look = nil
		if rows == nil {
			var err error
			if rows, err = tx.LockTasks(taskIDs(tasks)); err != nil {
				return nil, nil, err
			}
		}
	}
	over := s.Executing.Over()
	own, others, err := tx.Around(look, beside, ordered, near)
	if err != nil {
		return nil, nil, err
	}
	if !locked {
		rows = own
	}
	var turns []int64 // jobs whose schedule waits for a backfill, which executes or is to
	for id, rows := range others {
		if !matters[id] && slices.ContainsFunc(rows, func(o sql.TaskRow) bool { return isBackfill(o) && o.State != job.Waiting }) {
			turns = append(turns, id)
		}
	}
	for id, rows := range others {
		if !matters[id] {
			others[id] = slices.DeleteFunc(rows, func(o sql.TaskRow) bool {
				return o.State == job.Executing && (over[o.ID] == o.Launch || s.Executing.IsOver(o.ID, o.Launch))
			})
		}
	}
	more, err := tx.Siblings(turns, turns, before)
	maps.Copy(others, more)
	return rows, others, err
}

// lockOthers locks the tasks that do not begin but change all the same: with them goes more than one statement, which has
// to find them as they were decided on.
func lockOthers(tx *sql.Tx, decided []decision, rows map[int64]sql.TaskRow) error {
	var ids []int64
	for _, d := range decided {
		if d.verdict == refuse || d.verdict == wait || d.verdict == giveBack {
			ids = append(ids, d.task.ID)
		}
	}
	locked, err := tx.LockTasks(ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if locked[id] != rows[id] {
			return fmt.Errorf("start: task %d: %w", id, sql.ErrMoved)
		}
	}
	return nil
}

// lockGroups locks the groups of jobs and reads who holds their slots. If it is patient it leaves out, and names, those that
// somebody else has locked.
func lockGroups(tx *sql.Tx, jobs map[int64]*sql.JobRow, patient bool) (groups map[string]sql.Group, holders map[int64]sql.Holders, busy map[string]bool, err error) {
	var names []string
	for _, j := range jobs {
		if j.Spec.Group != "" && !slices.Contains(names, j.Spec.Group) {
			names = append(names, j.Spec.Group)
		}
	}
	if patient {
		groups, busy, err = tx.LockFreeGroups(names)
	} else {
		groups, err = tx.LockGroups(names)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var ids []int64
	for _, g := range groups {
		ids = append(ids, g.ID)
	}
	holders, err = tx.SlotHolders(ids)
	return groups, holders, busy, err
}

// lockSuperseded locks the tasks that a decision supersedes and keeps those that nobody has begun. If it is patient, and
// somebody else has locked one of these or of those to be killed, the task is set aside.
func lockSuperseded(tx *sql.Tx, d *decision, patient bool) error {
	ids := make([]int64, len(d.supersedes))
	for i, o := range d.supersedes {
		ids[i] = o.ID
	}
	if patient {
		others := slices.Clone(ids)
		for _, o := range d.replaces {
			others = append(others, o.ID)
		}
		if _, busy, err := tx.LockFreeTasks(others); err != nil || len(busy) > 0 {
			*d = decision{task: d.task, verdict: kept}
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.LockTasks(ids)
	d.supersedes = d.supersedes[:0]
	for _, id := range ids {
		if r, ok := rows[id]; ok && r.State != job.Executing {
			d.supersedes = append(d.supersedes, r)
		}
	}
	return err
}

// takeFrom takes the slot of a task that begins from who has it. If somebody has locked that one, the task is set aside.
func takeFrom(tx *sql.Tx, d *decision) error {
	if d.from == 0 {
		return nil
	}
	lost, err := tx.LoseSlots([]int64{d.from})
	if err == nil && len(lost) == 0 {
		*d = decision{task: d.task, verdict: kept}
	}
	return err
}

// then is what the other tasks of a job look like to those that are decided behind d.
func then(others []sql.TaskRow, d decision, row sql.TaskRow) []sql.TaskRow {
	others = slices.DeleteFunc(others, func(o sql.TaskRow) bool {
		return o.ID == d.task.ID || slices.ContainsFunc(d.supersedes, func(x sql.TaskRow) bool { return x.ID == o.ID })
	})
	switch d.verdict {
	case begin:
		row.State = job.Executing
	case wait:
		row.State = job.Waiting
	case hold, kept:
	default:
		return others
	}
	return append(others, row)
}

// write makes the rows say what was decided, and wakes who waited for what that ends.
func (s *Starter) write(tx *sql.Tx, decided []decision, now job.Micros, window int64) (woken int, err error) {
	var (
		begun              []job.Task
		refused, unslotted []int64
		unwaiting          []int64
		runs               []job.Run
		started            []sql.Mark
		slots              []sql.Slot
		waiting            []sql.Wait
	)
	ended := map[int64]bool{} // jobs of which a task ends here
	heirs := map[int64]int{}  // who waits in place of one that has waited
	for _, d := range decided {
		switch d.verdict {
		case begin:
			begun = append(begun, d.task)
			if d.slot != 0 {
				slots = append(slots, sql.Slot{TaskID: d.task.ID, GroupID: d.slot})
			}
		case refuse:
			refused = append(refused, d.task.ID)
			d.run.Node = s.Session.Node()
			runs = append(runs, d.run)
			ended[d.task.JobID] = ended[d.task.JobID] || d.awaited
		case wait:
			waiting = append(waiting, d.wait)
			// Its job's row is written, as by a start: two nodes do not decide about one job at the same time.
			started = append(started, sql.Mark{JobID: d.task.JobID})
		case giveBack:
			if err := d.handOver(tx); err != nil {
				return 0, err
			}
			continue
		default:
			continue
		}
		if d.verdict == wait || d.verdict != begin && d.holds { // what waits may hold one of a group that it was in before
			unslotted = append(unslotted, d.task.ID)
		}
		if d.verdict == refuse {
			started = append(started, sql.MarkOf(d.task))
		}
		for _, o := range d.supersedes {
			t := o.Task
			if t.Launch.IsZero() {
				t.Launch = s.Session.Mint()
			}
			run := unstarted(t, job.Superseded, fmt.Sprintf("the due time %s took its place", d.task.Due), now)
			run.Node = s.Session.Node()
			refused, runs, unslotted = append(refused, o.ID), append(runs, run), append(unslotted, o.ID)
			started = append(started, sql.MarkOf(t))
			if o.State == job.Waiting {
				unwaiting = append(unwaiting, o.ID)
				if d.verdict == wait {
					heirs[o.ID] = len(waiting) - 1
				}
			}
		}
		if err := tx.Replace(d.replaces); err != nil {
			return 0, err
		}
	}
	if err := tx.MarkStarted(started); err != nil {
		return 0, err
	}
	if err := tx.Start(begun, now, window); err != nil {
		return 0, err
	}
	if err := tx.TakeSlots(slots); err != nil {
		return 0, err
	}
	if err := tx.End(refused, runs); err != nil {
		return 0, err
	}
	places, err := tx.WaitDues(slices.Sorted(maps.Keys(heirs)))
	if err != nil {
		return 0, err
	}
	for id, due := range places { // else it would come behind all others with each due time
		waiting[heirs[id]].Due = min(waiting[heirs[id]].Due, due)
	}
	if err := tx.DropWaits(unwaiting); err != nil {
		return 0, err
	}
	if err := tx.Wait(job.Prepare, waiting); err != nil {
		return 0, err
	}
	maps.DeleteFunc(ended, func(_ int64, awaited bool) bool { return !awaited })
	return tx.Wake(slices.Sorted(maps.Keys(ended)), nil, unslotted, now)
}

// apply makes the sets say what the rows say.
func (s *Starter) apply(decided []decision) {
	s.Limits.took(decided)
	for _, t := range s.settle(decided) {
		s.Log.Warn("task cannot be started yet: somebody keeps its row locked, or that of its group", "run", t.Launch, "job_id", t.JobID, "due", t.Due)
	}
	for _, d := range decided {
		switch d.verdict {
		case wait:
			s.Log.Debug("waits", "job_id", d.task.JobID, "due", d.task.Due, "kind", d.wait.Kind)
		case refuse:
			s.Log.Info("not started", "run", d.task.Launch, "job_id", d.task.JobID, "due", d.task.Due, "outcome", d.run.Outcome, "reason", d.run.Reason)
		}
	}
}

// settle is apply without the log, which is not written under the lock. It returns the tasks that have now been locked by
// somebody else for long.
func (s *Starter) settle(decided []decision) (stuck []job.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range decided {
		if !d.aside() {
			delete(s.busy, d.task.ID)
		}
		switch d.verdict {
		case hold:
			s.Prepared.Return(d.task, d.task.DueNow)
			continue
		case noRoom:
			s.Prepared.Return(d.task, s.Session.Now())
			continue
		case later, kept:
			was, most := s.busy[d.task.ID], maxBusyPause
			if d.verdict == kept {
				most = maxKeptPause
			}
			pause := min(most, max(busyPause, orNone(s.Trip), 2*was))
			s.busy[d.task.ID] = pause
			if was < pause && pause == maxKeptPause {
				stuck = append(stuck, d.task)
			}
			s.Prepared.SetAside(d.task, s.Session.Now().Add(pause))
			continue
		case begin:
			s.Executing.Add(d.attempt)
		case wait:
			for _, o := range d.replaces {
				s.Executing.Kill(o.Launch, true) // if it is ours; else its node reads of it
			}
		}
		s.Prepared.Drop(d.task)
	}
	return stuck
}

// sayRecorded tells of due times that ended without a record: a hand wrote the one that they have, or a restore.
func sayRecorded(log *slog.Logger, runs []job.Run) {
	for _, r := range runs {
		log.Error("due time ends without a record: it has one", "job_id", r.JobID, "due", r.Due, "attempt", r.Attempt, "outcome", r.Outcome, "reason", r.Reason)
	}
}

// failed puts the tasks back after a transaction of which nothing stands.
func (s *Starter) failed(ctx context.Context, tasks []job.Task, err error) {
	if ctx.Err() != nil {
		return // the session is over, and the set with it
	}
	refused := sql.IsRefused(err) || sql.IsLockWait(err)
	if refused {
		s.mu.Lock()
		s.batch = max(1, len(tasks)/2) // one row may be to blame: let the others pass
		s.mu.Unlock()
	}
	s.Log.Warn("cannot start tasks, trying again", "tasks", len(tasks), "error", err)
	again := s.Session.Now().Add(retryPause)
	if refused && len(tasks) == 1 {
		again = s.Session.Now().Add(refusedPause)
	}
	for _, t := range tasks {
		s.Prepared.Return(t, again)
	}
}
