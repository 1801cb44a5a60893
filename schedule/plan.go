package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Planner writes the due times of jobs down as idle tasks, a little ahead of time.
type Planner struct {
	DB      *sql.DB
	Session Session
	Lookout *Lookout
	Soon    func() // called when a task was planned that is within the look-ahead of claims
	Log     *slog.Logger

	fit      int                    // how many jobs like those of the last transaction fit one; zero: nobody knows
	crowded  bool                   // there are more jobs to plan than one transaction takes
	more     bool                   // the last look left jobs of its batch for the next one
	behind   job.Micros             // the earliest cursor of the last look, if that left some for the next one; else zero
	busy     int                    // how many jobs of the last look somebody else had locked
	kept     map[int64]job.Micros   // by job whose row somebody keeps: until when it is not waited for again
	paused   bool                   // it saw that an app or the cluster is paused, or was a moment ago
	released bool                   // it has released a held job since this was taken back
	held     map[string]heldApp     // by app: how far it has come with the held jobs that nothing covers
	stopped  map[string]stoppingApp // by app: how far it has come with the pauses that last
}

const (
	planPeriod = time.Second
	planBatch  = 800 // as many as are claimed at once: of fewer a burst makes as many small claims, starts and ends
	// planRows is how many tasks one transaction writes at most, give or take those of one job: for as long as it
	// takes nothing of its jobs can be started. So jobs that would not fit are not locked.
	planRows = 2000
	// shortest is the least that jobs are planned ahead while others wait, see shared.
	shortest = 5 * time.Second
	// orphaned is how near the cursor of a job is when anybody plans it: its preferred node seems not to.
	orphaned = 12 * time.Second
	// keptPause is after a job's row was locked for longer than MySQL waits, until it is waited for again.
	keptPause = 10 * time.Second
)

// errKept is a lock wait that has lasted too long: somebody keeps the row.
var errKept = errors.New("somebody keeps a row locked")

// waitOnce is a transaction that is not run again after it waited for a lock in vain.
func waitOnce(fn func(tx *sql.Tx) error) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		err := fn(tx)
		if sql.IsLockWait(err) {
			return fmt.Errorf("%w: %v", errKept, err)
		}
		return err
	}
}

// lockJobs locks the rows of jobs: those that nobody else has locked, or all if it is to wait for the others.
func lockJobs(tx *sql.Tx, ids []int64, wait bool) (jobs map[int64]*sql.JobRow, busy map[int64]bool, err error) {
	if wait {
		jobs, err = tx.LockJobs(ids)
		return jobs, nil, err
	}
	return tx.LockFreeJobs(ids)
}

// Run plans until ctx ends.
func (p *Planner) Run(ctx context.Context) error {
	wait := rand.N(planPeriod / 4)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		if wait = planPeriod; p.nothing() {
			continue
		}
		_, err := p.plan(ctx, p.Session.Now())
		switch {
		case err != nil && ctx.Err() == nil:
			p.Log.Warn("cannot plan due times, trying again", "error", err)
		case p.more:
			p.Lookout.sawCursor(p.Session.Now())
			wait = 0 // there is more
		}
	}
}

// nothing tells whether there was nothing to plan a moment ago.
func (p *Planner) nothing() bool {
	g, ok := p.Lookout.seen()
	return ok && !p.more && !p.paused && !g.Pauses && !g.Held && (g.FirstCursor == 0 || g.FirstCursor > p.Session.Now().Add(planWindow))
}

// plan takes one batch of jobs whose cursor is near.
func (p *Planner) plan(ctx context.Context, now job.Micros) (int, error) {
	p.more = false
	if !p.Session.Fresh() {
		return 0, nil
	}
	pauses, err := p.DB.Pauses(ctx)
	if err != nil {
		return 0, err
	}
	p.paused = len(pauses) > 0
	// Those that somebody keeps locked come first each time: they take the place of no others.
	// With enough to do, what prefers others is left to them, unless it is older: see Claimer.claim.
	others := now.Add(orphaned)
	if p.behind != 0 {
		others = min(others, p.behind.Add(-neglected))
	}
	limit := planBatch + p.busy
	ids, first, err := p.DB.DueJobs(ctx, preferred(p.Session, now.Add(planWindow)), others, limit)
	if err != nil {
		return 0, err
	}
	if p.behind = 0; len(ids) == limit && p.busy == 0 { // else the first may be one that somebody keeps
		p.behind = first
	}
	p.busy = 0
	_, err = p.planInParts(ctx, ids, false, now)
	unstopped, stopErr := p.stopAhead(ctx, pauses, now)
	unreleased, releaseErr := p.releaseHeld(ctx, pauses, now)
	p.more = p.more || unstopped || unreleased
	return len(ids), errors.Join(err, stopErr, releaseErr)
}

// planInParts plans jobs, as many in each transaction as are likely to fit; others tells whether there are more than these to
// be planned. It returns how many of them it came to. Jobs that somebody has locked hold up no others: it comes back to them
// when the others are planned.
func (p *Planner) planInParts(ctx context.Context, ids []int64, others bool, now job.Micros) (looked int, err error) {
	p.crowded = others || len(ids) >= planBatch || p.fit > 0 && p.fit < len(ids)
	defer func() { p.crowded = false }()
	looked, busy, err := p.planFree(ctx, ids, now)
	left, busyErr := p.planBusy(ctx, busy)
	p.busy += len(left)
	p.more = p.more || (p.crowded || looked < len(ids)) && looked > len(left) // where all stay locked, looking again at once does not help
	return looked, errors.Join(err, busyErr)
}

// planFree plans those of the jobs that nobody else has locked. It returns how many it came to, and which of these are locked.
func (p *Planner) planFree(ctx context.Context, ids []int64, now job.Micros) (looked int, busy []int64, err error) {
	for end := now.Add(planPeriod); looked < len(ids); now = p.Session.Now() {
		if now > end || !p.Session.Fresh() { // somebody may have looked after them, or paused them
			break
		}
		part := ids[looked:min(looked+planBatch, len(ids))]
		if p.fit > 0 {
			part = part[:min(len(part), p.fit)]
		}
		n, locked, partErr := p.planJobs(ctx, part, false, now)
		looked, busy, err = looked+n, append(busy, locked...), errors.Join(err, partErr)
		if n < len(part) || sql.IsAway(partErr) || ctx.Err() != nil {
			break
		}
	}
	return looked, busy, err
}

// planBusy plans jobs that somebody else had locked. It waits for the row of the first: starts do not wait, so who does comes
// before them, and a job that they lock again and again is planned in time all the same. Then most of the others are free as
// well: another planner had them, and has planned them. One that is kept ends the look, and is left out for a while. It
// returns those that it did not come to.
func (p *Planner) planBusy(ctx context.Context, busy []int64) (left []int64, err error) {
	now := p.Session.Now()
	maps.DeleteFunc(p.kept, func(_ int64, until job.Micros) bool { return until <= now })
	busy = slices.DeleteFunc(busy, func(id int64) bool {
		if p.kept[id] != 0 {
			left = append(left, id)
		}
		return p.kept[id] != 0
	})
	for end := now.Add(planPeriod); len(busy) > 0 && now <= end && p.Session.Fresh() && err == nil; now = p.Session.Now() {
		var kept []int64
		if _, kept, err = p.planJobs(ctx, busy[:1], true, now); err != nil {
			break
		}
		if len(kept) > 0 {
			p.Log.Warn("job cannot be planned yet: somebody keeps its row locked, or one that it needs", "job_id", busy[0])
			if p.kept == nil {
				p.kept = map[int64]job.Micros{}
			}
			p.kept[busy[0]] = p.Session.Now().Add(keptPause)
			break
		}
		rest := busy[1:]
		looked, locked, restErr := p.planFree(ctx, rest, p.Session.Now())
		busy, err = append(locked, rest[looked:]...), restErr
	}
	return append(left, busy...), err
}

// planJobs plans jobs in one transaction, and returns how many of them it came to before that was full, and which of those
// somebody else has locked, unless it is to wait for their rows. If MySQL refuses it, halves of it find out which job is to
// blame; that one is marked as broken. Jobs that fail otherwise count as those it came to: they keep nobody behind them
// waiting, and the next look that finds them sees where they stand.
func (p *Planner) planJobs(ctx context.Context, ids []int64, wait bool, now job.Micros) (looked int, locked []int64, err error) {
	soon, more, released, fit := false, false, false, p.fit
	err = p.DB.Tx(ctx, waitOnce(func(tx *sql.Tx) error {
		soon, more, looked, locked = false, false, 0, nil
		left := false
		var plan plans
		if p.paused {
			var err error
			if plan.pauses, err = tx.SharePauses(); err != nil {
				return err
			}
		}
		jobs, busy, err := lockJobs(tx, ids, wait)
		if !wait && sql.IsLockWait(err) { // it waits for no row, so no job is to blame
			return fmt.Errorf("somebody keeps the table locked, as ALTER TABLE does: %v", err)
		}
		if err != nil {
			return err
		}
		if err := tx.LearnCalendars(slices.Collect(maps.Values(jobs))...); err != nil {
			return err
		}
		anew := marked(jobs, slices.Sorted(slices.Values(ids)))
		if plan.live, err = tx.LiveTasksOf(anew, planRows); err != nil {
			return err
		}
		for _, id := range anew {
			if _, looked := plan.live[id]; !looked { // there is too much to change at once
				delete(jobs, id)
				left = true
			}
		}
		plan.horizon = now.Add(planHorizon)
		if p.crowded {
			plan.horizon = shared(jobs, now)
		}
		for _, id := range ids { // the earliest cursor first: where not all fit, none is left behind for ever
			if more = len(plan.tasks) >= planRows; more {
				break
			}
			if j := jobs[id]; j != nil {
				plan.add(j, now, p.Session)
			}
			if busy[id] {
				locked = append(locked, id)
			}
			looked++
		}
		if n, rows := looked-len(locked), max(1, len(plan.tasks)); n > 0 && !wait {
			fit = (n*planRows + rows - 1) / rows
		}
		soon, released = plan.soon, len(plan.released) > 0
		unheld, err := holdJobs(tx, plan.held, p.Session, now)
		if err != nil {
			return err
		}
		more = more || unheld || left
		if err := writeResumed(tx, plan.resumed, p.Session, now); err != nil {
			return err
		}
		return plan.write(tx)
	}))
	kept := errors.Is(err, errKept)
	switch {
	case err == nil:
		p.more, p.released, p.fit = p.more || more, p.released || released, fit
		if soon {
			p.Soon()
		}
		return looked, locked, nil
	case kept && len(ids) == 1:
		return 1, ids, nil
	case kept && p.Session.Now() < now.Add(planHorizon): // a row of one of them: of which?
	case !sql.IsRefused(err), len(ids) == 1 && !sql.BlamesRows(err):
		return len(ids), nil, err // unknown too: the next look sees where the cursor stands
	case len(ids) == 1:
		p.Log.Error("job cannot be planned", "job_id", ids[0], "error", err)
		return 1, nil, p.DB.Tx(ctx, func(tx *sql.Tx) error { return breakJob(tx, ids[0], err, itself(p.Session)) })
	}
	half := len(ids) / 2
	looked, locked, err = p.planJobs(ctx, ids[:half], wait, now)
	further, alsoLocked, furtherErr := p.planJobs(ctx, ids[half:], wait, now)
	if looked == half {
		looked += further
	}
	return looked, append(locked, alsoLocked...), errors.Join(err, furtherErr)
}

// shared is how far jobs are planned while others wait for the planner: as far again as the nearest of them is ahead. When
// many often due jobs come at once, as behind an outage or a pause, those that are planned last are not late for what is due
// of the first ones in half a minute.
func shared(jobs map[int64]*sql.JobRow, now job.Micros) job.Micros {
	nearest := now.Add(planWindow)
	for _, j := range jobs {
		switch {
		case j.Held, j.Paused: // it may be due at once when it is not any more
			nearest = now
		case j.NextDue != 0:
			nearest = min(nearest, max(now, j.NextDue))
		}
	}
	return nearest.Add(max(shortest, nearest.Sub(now)))
}

// plans collects what planning some jobs writes.
type plans struct {
	pauses []sql.PauseRow // of apps and of the cluster

	cursors  []sql.Cursor
	released []sql.Cursor            // of held jobs that no pause covers any more
	resumed  []resumption            // whose own pause has ended
	held     []*sql.JobRow           // to be held
	horizon  job.Micros              // what is due before it is planned
	live     map[int64][]sql.TaskRow // of the jobs that are planned anew
	gone     stopping                // what is planned of them and no due time any more
	tasks    []job.Task
	missed   []job.Run
	broken   map[int64]error
	by       job.Actor // who finds them broken
	stray    []int64   // paused or deleted, and yet with a cursor: a hand did that
	soon     bool
}

// add plans one job, or does what its pause asks for.
func (p *plans) add(j *sql.JobRow, now job.Micros, s Session) {
	var err error
	switch j.Covers = inForce(p.pauses); {
	case j.Deleted && j.NextDue != 0, j.Paused && j.NextDue != 0 && j.PauseUntil == 0:
		p.stray = append(p.stray, j.ID)
	case j.Deleted, j.Paused && (j.NextDue == 0 || j.PauseUntil > now):
	case j.Paused:
		err = p.resume(j, now, s)
	case j.Held:
		err = p.release(j, now, s)
	case j.NextDue == 0:
	case covered(j.Covers, j.Spec.App, j.NextDue, now):
		p.held = append(p.held, j)
	default:
		err = p.goOn(j, now, s)
	}
	if err != nil {
		if p.broken == nil {
			p.broken, p.by = map[int64]error{}, itself(s)
		}
		p.broken[j.ID] = err
	}
}

// goOn plans a job from its cursor on.
func (p *plans) goOn(j *sql.JobRow, now job.Micros, s Session) error {
	sched, err := compile(j)
	if err != nil {
		return err
	}
	if j.Replan {
		return p.renew(j, p.live[j.ID], now, s)
	}
	if j.NextDue > p.horizon {
		return nil // others come first
	}
	d := until(j, sched, j.NextDue, now, p.horizon, j.Spec.MissedAfter())
	p.cursors = append(p.cursors, sql.Cursor{JobID: j.ID, Version: j.Version, Seen: j.NextDue, Next: d.next, LastDue: d.last})
	p.take(d, now, s)
	return nil
}

// take adds what one job's planning came to, but for its cursor.
func (p *plans) take(d dueTimes, now job.Micros, s Session) {
	p.tasks = append(p.tasks, d.tasks...)
	if d.missed != nil {
		d.missed.Launch, d.missed.Node = s.Mint(), s.Node()
		p.missed = append(p.missed, *d.missed)
	}
	p.soon = p.soon || len(d.tasks) > 0 && d.tasks[0].Due < now.Add(planWindow)
}

// breakJob records that a job cannot be planned.
func breakJob(tx *sql.Tx, id int64, why error, by job.Actor) error {
	if err := tx.BreakJob(id, why.Error()); err != nil {
		return err
	}
	return tx.AuditBreak(id, by, why.Error())
}

// write moves the cursors first: who planned from a cursor that has moved fails before it inserts anything.
func (p *plans) write(tx *sql.Tx) error {
	if err := tx.MoveCursors(p.cursors); err != nil {
		return err
	}
	if err := tx.ReleaseJobs(p.released); err != nil {
		return err
	}
	for id, why := range p.broken {
		if err := breakJob(tx, id, why, p.by); err != nil {
			return err
		}
	}
	for _, id := range p.stray {
		if err := tx.BreakJob(id, ""); err != nil {
			return err
		}
	}
	if err := p.gone.write(tx); err != nil {
		return err
	}
	if err := tx.InsertTasks(p.tasks); err != nil {
		return err
	}
	if err := tx.InsertRuns(p.missed); err != nil {
		return fmt.Errorf("missed due times: %w", err)
	}
	return nil
}
