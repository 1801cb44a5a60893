package schedule

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// ClaimerConfig configures a Claimer.
type ClaimerConfig struct {
	DB          *sql.DB
	Exclusion   *lock.Exclusion
	Session     Session
	Definitions *Definitions
	Prepared    *Prepared
	Stops       *Stops // pauses
	Limits      *Limiter
	Lookout     Lookout
	Starter     *Starter // starts runs that are already due when claimed; nil: the claimer starts none
	Log         *slog.Logger

	LookAhead time.Duration     // runs are made at most this far ahead of now
	Labels    map[string]string // of this node and of its handlers
	Most      int               // the most prepared runs that this session holds
	Node      string            // name of this node, for the audit

	// Wake makes the next look come at once and begin a new round (see round). Changes that may
	// move a cursor into the past, such as the end of a pause, send it. If the node dies before
	// that look, a round of another node finds the cursor within a minute.
	Wake loop.Wake
}

// Claimer turns the due times of jobs into prepared runs of this session.
type Claimer struct {
	ClaimerConfig

	reach   *reach
	slow    *slowLane
	skips   *skipLog
	round   round
	left    atomic.Bool // a look left due times unclaimed; they may be older than the next mark of round
	backlog bool        // the last look found more than one batch
	fed     int64       // the next look at backfills goes on after this id; zero: from the first
}

// NewClaimer returns a claimer. The caller runs it.
func NewClaimer(cfg ClaimerConfig) *Claimer {
	return &Claimer{ClaimerConfig: cfg, slow: newSlowLane(), skips: newSkipLog(cfg.Log), reach: &reach{}}
}

// claimBatch is the number of jobs that one look reads. Larger batches cost less per run, but lock
// the jobs' rows for longer.
const claimBatch = 800

// claim makes one look: it claims due times of the jobs in one slice. It returns the number of jobs
// that it found.
func (c *Claimer) claim(ctx context.Context, now job.Micros, look trip.Slice) (found int, err error) {
	room := c.Most - c.Prepared.Len()
	stops, known := c.Stops.now()
	apps, all := unclaimed(stops, now)
	if !c.Session.Fresh() || !known || all || room <= 0 {
		c.left.Store(true)
		return 0, nil
	}

	look.NotApps = apps
	candidates, err := trip.Candidates(c.DB.Reader(ctx), look, now, min(claimBatch, room)+c.slow.len())
	if err != nil || len(candidates) == 0 {
		return 0, err
	}
	if err := c.learn(ctx, candidates); err != nil {
		return 0, err
	}

	// Schedules are computed here, before any row is locked.
	plans := c.compute(ctx, candidates, now)
	if len(plans) < len(candidates) {
		c.left.Store(true)
	}

	for _, part := range parts(plans) {
		if failed := c.writeHalves(ctx, part, now); failed != nil {
			err = failed
		}
	}

	return len(candidates), err
}

// mostRuns is roughly the number of runs that one claim inserts.
const mostRuns = 2 * claimBatch

// parts cuts plans into parts for one claim each. It counts runs and not jobs, because one job can
// have many runs.
func parts(plans []plan) (out [][]plan) {
	for len(plans) > 0 {
		n, runs := 0, 0
		for n < len(plans) && runs < mostRuns {
			runs += len(plans[n].runs)
			n++
		}
		out, plans = append(out, plans[:n]), plans[n:]
	}
	return out
}

// learn reads the definitions of candidates that are not cached.
func (c *Claimer) learn(ctx context.Context, candidates []trip.Candidate) error {
	var unknown []int64 // jobs
	for _, candidate := range candidates {
		if _, ok := c.Definitions.Get(candidate.JobID, candidate.Version); !ok {
			unknown = append(unknown, candidate.JobID)
		}
	}

	read, err := trip.Definitions(c.DB.Reader(ctx), unknown)
	if err != nil {
		return err
	}

	for _, d := range read {
		c.Definitions.Put(d)
	}

	return nil
}

// plan is the intended claim of a job.
type plan struct {
	trip.Candidate
	dueTimes
	broken    error // why the due times cannot be computed; nil: they can
	rank      int   // the priority of its runs
	elsewhere bool  // this node may not run it
	grouped   bool  // its runs take slots of a group
}

// compute plans the claims of candidates. If a definition is not cached, somebody has just edited
// the job: compute skips the candidate, and the next look finds it again. A candidate with an
// expensive schedule goes to the slow lane.
func (c *Claimer) compute(ctx context.Context, candidates []trip.Candidate, now job.Micros) []plan {
	plans := make([]plan, 0, len(candidates))
	for _, candidate := range candidates {
		d, ok := c.Definitions.Get(candidate.JobID, candidate.Version)
		if !ok || c.slow.has(candidate.JobID) {
			continue
		}
		if d.slow.Load() {
			c.slow.add(candidate)
			continue
		}

		work := job.NewWork(ctx, quickWork)
		p := c.plan(candidate, d, work, now)
		if work.Err() != nil {
			d.slow.Store(true)
			c.slow.add(candidate)
			continue
		}
		plans = append(plans, p)
	}

	return plans
}

// plan computes the due times of a candidate. If work is used up, the due times are invalid, so
// the caller checks work.Err.
func (c *Claimer) plan(candidate trip.Candidate, d *Definition, work *job.Work, now job.Micros) plan {
	p := plan{Candidate: candidate, broken: d.Err, elsewhere: !d.admits(c.Labels)}
	if p.broken == nil && min(candidate.NextDue, candidate.Cursor()) < 0 {
		p.broken = errors.New(
			"its next due time is before 1970, so its row was changed by hand; edit the job to repair it")
	}
	if p.broken == nil {
		p.rank, p.grouped = d.Spec.Priority, d.Spec.Group != ""
		stops, _ := c.Stops.now()
		resumed := resumedWith(stops, candidate.AppID, now)
		if own := candidate.ResumedAt(); own >= resumed.at {
			resumed = resumption{own, job.ReasonJobPaused}
		}

		horizon := now.Add(c.reach.far(c.LookAhead))
		p.dueTimes = dueFrom(d.Spec, work.On(d.Schedule), candidate.Cursor(), resumed, now, horizon)
	}

	return p
}

// write moves the cursors and inserts the runs of plans. It drops plans whose jobs have changed
// since they were read.
func (c *Claimer) write(ctx context.Context, plans []plan, now job.Micros) error {
	if len(plans) == 0 {
		return nil
	}

	now = max(now, c.Session.Now()) // with a slow link to MySQL the look took long, so the caller's now is old
	runs := c.mint(plans, now)
	ids := make([]int64, len(plans))
	for i := range plans {
		ids[i] = plans[i].JobID
	}

	at := c.Starter.newDirect(plans, runs, now)
	defer at.giveBack()
	if ending := at.jobsOf(runs); len(ending) > 0 {
		c.Starter.Ends.Push(ctx, ending) // known ends are written first, as before each start
	}

	var (
		kept    []*plan
		claimed []trip.Run // prepared for this session
	)
	err := c.Exclusion.Do(ctx, lock.Change{
		Name: "claim",
		Rows: func(tx *sql.Tx) error {
			jobs, err := trip.LockJobs(tx, ids)
			if err != nil {
				return err
			}

			var own, idle []trip.Run
			kept, own, idle = asRead(plans, runs, jobs)
			passed := func(p *plan) bool { return p.next != 0 && p.next < now }
			if len(kept) < len(plans) || slices.ContainsFunc(kept, passed) {
				c.left.Store(true)
			}

			// Start the due runs that may start. Prepare the others.
			if claimed, err = at.decide(tx, own, jobs, c.Definitions, now); err != nil {
				return err
			}

			if err := c.writeJobs(tx, kept, at.begun(), now); err != nil {
				return err
			}
			if err := at.write(tx, now); err != nil {
				return err
			}
			if err := trip.Insert(tx, c.Session.Number(), claimed); err != nil {
				return err
			}
			return trip.Insert(tx, trip.NoOwner, idle)
		},
		// After an unknown commit, nobody looks up the prepared runs. If the claim was applied,
		// they become overdue, and any node with a free slot starts them. The started runs must be
		// looked up, because nobody takes over an executing run.
		Settle: func(tx *sql.Tx) error { claimed = nil; return at.settle(tx) },
		// If we die before this, the prepared runs become overdue two seconds after their due
		// times: see overdue.go. The started runs execute for a dead session, and end lost.
		Sets: func() { c.Prepared.Add(claimed); at.apply(now) },
	})
	if err == nil {
		c.skips.noteCounted(kept, c.Definitions)
	}

	return err
}

// asRead returns the plans of jobs that have not changed since they were read. It splits their runs
// into runs for this session and idle runs for other nodes.
func asRead(plans []plan, runs [][]trip.Run, jobs map[int64]*trip.Job) (kept []*plan, own, idle []trip.Run) {
	for i := range plans {
		p := &plans[i]
		j := jobs[p.JobID]
		if j == nil || j.Version != p.Version || j.NextDue != p.NextDue || j.Paused != p.Paused || j.Deleted {
			continue
		}
		kept = append(kept, p)
		if p.elsewhere {
			idle = append(idle, runs[i]...)
		} else {
			own = append(own, runs[i]...)
		}
	}

	return kept, own, idle
}

// writeJobs writes everything of the plans except the runs. The transaction has locked the rows of
// the jobs. They have not changed since they were read.
func (c *Claimer) writeJobs(tx *sql.Tx, plans []*plan, begun map[int64]trip.Begun, now job.Micros) error {
	cursors := make([]trip.Cursor, len(plans))
	var counted []trip.Counted
	var resumed []int64
	broken := map[int64]string{}
	for i, p := range plans {
		b := begun[p.JobID]
		if p.Paused {
			resumed = append(resumed, p.JobID)
		}
		if p.broken != nil {
			broken[p.JobID] = p.broken.Error()
		}
		if d := p.counted; d != nil { // these due times must not be claimed again
			b.To = max(b.To, d.last)
			counted = append(counted, trip.Counted{
				Run: c.Session.Mint(1), JobID: p.JobID, AppID: p.AppID, Version: p.Version, Hash: p.Hash,
				First: d.first, Last: d.last, Count: d.count, Outcome: d.outcome, Reason: d.reason,
			})
		}
		cursors[i] = trip.Cursor{JobID: p.JobID, Next: p.next, BegunTo: b.To, Running: b.Running}
	}

	if err := trip.EndPauses(tx, resumed, job.Actor{Who: job.Itself, Origin: c.Node}, now); err != nil {
		return err
	}
	if err := trip.MoveCursors(tx, cursors); err != nil {
		return err
	}
	if err := trip.Break(tx, broken); err != nil {
		return err
	}

	return trip.InsertCounted(tx, counted, now)
}

// mint makes the runs of all plans. Ids of plans that are dropped later stay unused. A run whose
// due time has passed gets due_now = now. With the true due time, it would be overdue at once, and
// other nodes would take it before this node can start it.
func (c *Claimer) mint(plans []plan, now job.Micros) [][]trip.Run {
	n := 0
	for i := range plans {
		n += len(plans[i].runs)
	}

	id := c.Session.Mint(n)
	out := make([][]trip.Run, len(plans))
	all := make([]trip.Run, 0, n)
	for i := range plans {
		p := &plans[i]
		claim := int32(1)
		if p.elsewhere {
			claim = 0 // not claimed yet
		}
		for _, due := range p.runs {
			all = append(all, trip.Run{
				Launch: trip.Launch{Run: id, Claim: claim}, JobID: p.JobID, AppID: p.AppID, Version: p.Version,
				Kind: trip.Schedule, Attempt: 1, Due: due, DueNow: max(due, now), Hash: p.Hash, Rank: p.rank,
			})
			id++
		}
		out[i] = all[len(all)-len(p.runs):]
	}

	return out
}

// jobsOf lists the jobs of runs, each once, in ascending order.
func jobsOf(runs []trip.Run) []int64 {
	jobs := make(map[int64]bool, len(runs))
	for i := range runs {
		jobs[runs[i].JobID] = true
	}
	return slices.Sorted(maps.Keys(jobs))
}
