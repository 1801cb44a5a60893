package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Retainer removes records that are kept no longer, with their output: job after job, by the rule of the job, of its app,
// and of the cluster. One node at a time does it, the one that has the chore; each batch is a transaction of its own that
// locks nothing but the rows that go, and the rule while it commits, and it rests after each for several times as long as
// that took. Where a command is given, it gets the records before they go.
//
//	look at jobs ──▶ cut of a job ──▶ list ──▶ archive command ──▶ delete ──▶ rest
//
// A batch goes by the rules that stand when it is deleted: when they are not those any more by which it
// was listed, it stays, although the archive may have it, and the jobs that are left are looked at by the new ones.
//
// If we die between the archive and the delete, or that commit is unknown, the records are still there, or not, and the
// next look sees which: what is there is handed over once more. So the archive gets each record at least once, and knows
// by the id of the run which it has.
//
// Records that it does not take may be wrong themselves: it gets those of the next job. When it does not take those of some
// jobs in a row, it is the archive, and the round goes on in a while: behind the last of these, so that none stops it for good.
type Retainer struct {
	DB      *read.DB
	Session interface {
		ID() uuid.UUID
		Now() job.Micros
		Fresh() bool
	}
	Archive Archive     // nil: none
	Behind  func() bool // tells that due times are overdue, so that it is better to rest a while; nil: nobody knows
	Log     *slog.Logger

	done   choreDone     // not told yet
	bad    int64         // failures of the archive since a round over all jobs without any
	failed bool          // it did in this round
	row    int           // jobs in a row whose records it has not taken
	looked time.Duration // at jobs, in this round
	owed   time.Duration // what small batches took for which it has not rested yet
	held   time.Time     // since when the chore is ours for choreHold, at least
}

// Archive takes records before they go: one line of JSON for each. When it returns nil it has them.
type Archive func(ctx context.Context, runs []read.Run) error

const (
	retainPeriod = 10 * time.Minute // between rounds over all jobs
	retainTry    = time.Minute      // between looks whether nobody has the chore
	choreHold    = 5 * time.Minute  // longer than the archive command may take, see node.Config.ArchiveTimeout
	choreKeep    = 10 * time.Second // between taking it again
	keptJobs     = 2000             // whose rules one look reads
	dropBatch    = 800
	archiveBatch = 200 // each may have some ten kilobytes of output
	archiveTries = 3   // jobs in a row whose records the archive does not take, before the round ends
	// rest is how many times as long as a batch took it rests, and restLeast how long at least: a trip that commits at
	// the same time has the disk to itself for most of it.
	rest      = 4
	restRound = 50 // a round that looked for so long is followed by so many times that without one
	restLeast = 50 * time.Millisecond
	// restLongest is the most that a batch makes it rest, however long MySQL took for it.
	restLongest = time.Minute
	// restMost is for how long due times that are overdue keep it from the next batch. Not for ever: on a cluster whose
	// slots are all taken something is overdue all the time.
	restMost = 20 * time.Second
)

// Run removes until ctx ends.
func (r *Retainer) Run(ctx context.Context) error {
	wait := time.Second + rand.N(10*time.Second)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = retainTry
		r.looked = 0
		if !r.Session.Fresh() {
			continue
		}
		mine, err := r.Round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			r.Log.Warn("cannot remove old records, trying again", "error", err)
		case mine:
			wait = max(retainPeriod, restRound*r.looked)
		}
	}
}

// errNoArchive is why a node without the command removes nothing where one is wanted.
var errNoArchive = errors.New("records are to be archived before they go, and this node has no --archive-command")

// errArchive is that the archive command did not take records.
var errArchive = errors.New("archive")

// Round looks at all jobs once, from where the last round was, if nobody else does. It tells whether it did.
func (r *Retainer) Round(ctx context.Context) (mine bool, err error) {
	if _, err := r.rules(ctx); err != nil {
		return false, err
	}
	asked := time.Now()
	mine, at, err := takeChore(ctx, r.DB.DB, choreRetention, r.Session.ID(), choreHold)
	if err != nil || !mine {
		return false, err
	}
	r.held, r.done.At = asked, at
	for last := false; !last && err == nil; {
		last, err = r.page(ctx)
	}
	return true, err
}

// rules reads the rules, if this node can do as they say.
func (r *Retainer) rules(ctx context.Context) (map[string]job.Retention, error) {
	rules, err := trip.Retentions(r.DB.Reader(ctx))
	if err == nil && rules[""].Archive && r.Archive == nil {
		err = errNoArchive
	}
	return rules, err
}

// page looks at the next jobs, by the rules as they are now, and tells whether these jobs were the last.
func (r *Retainer) page(ctx context.Context) (last bool, err error) {
	if err := r.hold(ctx); err != nil {
		return false, err
	}
	began := time.Now()
	rules, err := r.rules(ctx)
	if err != nil {
		return false, err
	}
	jobs, err := r.DB.KeptJobs(ctx, r.done.At, keptJobs)
	if err != nil {
		return false, err
	}
	took := time.Since(began)
	r.looked += took
	for i := range jobs {
		j := &jobs[i]
		switch err := r.shorten(ctx, j, rules); {
		case errors.Is(err, sql.ErrMoved): // rules have changed: this job and those behind it are looked at once more
			r.rest(ctx, took)
			return false, nil
		case sql.IsLockWait(err) || errors.Is(err, read.ErrUnreadable): // the jobs behind it do not wait for that: the next round looks again
			r.Log.Warn("records of a job stay for now", "job_id", j.ID, "error", err)
			if !sql.IsLockWait(err) {
				r.done.Error, r.done.ErrorAt = fmt.Sprintf("records of job %d stay: %v", j.ID, err), r.Session.Now()
			}
		case errors.Is(err, errArchive):
			if r.row++; r.row >= archiveTries {
				r.done.At = j.ID
				return false, errors.Join(err, r.tell(ctx))
			}
		case err != nil:
			return false, err
		}
		r.done.At = j.ID // if we die before this is told, the next one looks at the job once more
	}
	if len(jobs) < keptJobs {
		r.done.At, r.done.Ended = 0, r.Session.Now()
		if !r.failed {
			r.bad = 0
		}
		r.failed = false
		return true, r.tell(ctx)
	}
	r.rest(ctx, took)
	return false, nil
}

// cut finds out which records of a job go.
func (r *Retainer) cut(ctx context.Context, j *read.KeptJob, keep job.Keep) (c read.Cut, err error) {
	now := r.Session.Now()
	c = read.Cut{JobID: j.ID, Failed: now + 1}
	if keep.Age > 0 {
		c.Ended = now.Add(-time.Duration(keep.Age))
	}
	if keep.Failures > 0 {
		c.Failed = now.Add(-time.Duration(keep.Failures))
	}
	if keep.Runs > 0 {
		if c.Surely, err = r.DB.LastDues(ctx, j.ID, keep.Runs); err != nil {
			return c, err
		}
	}
	if keep.Bytes > 0 {
		due, err := r.DB.LastBytes(ctx, j.ID, keep.Bytes)
		if err != nil {
			return c, err
		}
		c.Surely = max(c.Surely, due)
	}
	c.Due = max(c.Ended, c.Surely) // nothing ends before it is due
	return c, nil
}

// shorten removes what goes of one job's records. It returns sql.ErrMoved if the job or a rule has been changed since it was read.
func (r *Retainer) shorten(ctx context.Context, j *read.KeptJob, rules map[string]job.Retention) error {
	rule := j.Rule(rules)
	if j.Oldest == 0 || !rule.Bounded() {
		return nil
	}
	c, err := r.cut(ctx, j, rule.Keep)
	if err != nil || j.Oldest >= c.Due {
		return err
	}
	most := dropBatch
	if r.Archive != nil {
		most = archiveBatch
	}
	for {
		if err := r.hold(ctx); err != nil {
			return err
		}
		n, took, err := r.batch(ctx, j, &c, rules, most)
		if err != nil {
			return err
		}
		if n < most && c.From >= c.Due {
			r.restLater(ctx, took)
			return nil
		}
		if err := r.tell(ctx); err != nil {
			return err
		}
		r.rest(ctx, took)
	}
}

// batch removes some of the records that go, the earliest first, and moves on in the cut. It returns how many, and how long
// that took without the archive command.
func (r *Retainer) batch(
	ctx context.Context, j *read.KeptJob, c *read.Cut, rules map[string]job.Retention, most int,
) (n int, took time.Duration, err error) {
	began := time.Now()
	if c.From >= c.To {
		if c.To, err = r.DB.LookAhead(ctx, *c); err != nil {
			return 0, 0, err
		}
	}
	runs, err := r.DB.OldRuns(ctx, *c, most)
	if err != nil {
		return 0, 0, err
	}
	next := c.To // what stays before that is not read again
	if len(runs) == most {
		next = runs[most-1].Due // others may be due at the same instant
	}
	if len(runs) == 0 {
		c.From = next
		return 0, time.Since(began), nil
	}
	archiving, err := r.archive(ctx, j.ID, runs)
	if err != nil {
		return 0, 0, err
	}
	err = r.DB.Tx(ctx, func(tx *sql.Tx) error {
		if err := trip.DropRuns(tx, runs); err != nil {
			return err
		}
		// Once a change of the rules or of the job is answered, nothing goes by the old ones.
		if err := trip.HoldRules(tx, j.App, rules); err != nil {
			return err
		}
		return trip.HoldVersion(tx, j.ID, j.Version)
	})
	if err != nil {
		return 0, 0, err // unknown too: the next round sees what stands
	}
	r.done.Removed += int64(len(runs))
	c.From = next
	return len(runs), time.Since(began) - archiving, nil
}

// hold tells what was done, and keeps the chore, unless it was taken a moment ago. It is asked before each batch, after the
// rest, and before each archive command: so the chore is ours for longer than the command may take, and no other node
// archives beside it. What remains is a node that is stopped in the middle, or dies and leaves its command behind: another one
// takes over when the chore expires, and the two commands may run at once.
func (r *Retainer) hold(ctx context.Context) error {
	if !r.Session.Fresh() {
		return errTaken
	}
	if time.Since(r.held) < choreKeep {
		return nil
	}
	if err := r.tell(ctx); err != nil {
		return err
	}
	asked := time.Now()
	mine, _, err := takeChore(ctx, r.DB.DB, choreRetention, r.Session.ID(), choreHold)
	if err == nil && !mine {
		err = errTaken
	}
	if err == nil {
		r.held = asked
	}
	return err
}

// restLater rests after small batches, of many jobs that have few old records each: for as long as after large ones, in
// pieces that are worth it.
func (r *Retainer) restLater(ctx context.Context, took time.Duration) {
	if r.owed += took; rest*r.owed >= restLeast {
		r.rest(ctx, r.owed)
		r.owed = 0
	}
}

// rest is what comes after each batch, which took so long: for longer while due times are overdue.
func (r *Retainer) rest(ctx context.Context, took time.Duration) { restAfter(ctx, took, r.Behind) }

func restAfter(ctx context.Context, took time.Duration, behind func() bool) {
	for wait, began := min(max(restLeast, rest*took), restLongest), time.Now(); ; wait = restLeast {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if behind == nil || !behind() || time.Since(began) > restMost {
			return
		}
	}
}

var errTaken = errors.New("another node does it now, or this one has lost its lease")

// archive hands records over, and returns how long the command took. One that fails keeps them here.
func (r *Retainer) archive(ctx context.Context, jobID int64, old []trip.OldRun) (took time.Duration, err error) {
	if r.Archive == nil {
		return 0, nil
	}
	ids := make([]int64, len(old))
	for i := range old {
		ids[i] = old[i].ID
	}
	runs, err := r.DB.RunsWithOutput(ctx, ids)
	if err != nil {
		return 0, err
	}
	if err := r.hold(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	err = r.Archive(ctx, runs)
	took = time.Since(began)
	if err != nil {
		if ctx.Err() != nil {
			return took, context.Cause(ctx)
		}
		r.bad, r.failed = r.bad+1, true
		r.done.Error, r.done.ErrorAt = fmt.Sprintf("job %d: %v", jobID, err), r.Session.Now()
		r.Log.Error("records stay: the archive command did not take them", "job_id", jobID, "records", len(runs), "failures", r.bad, "error", err)
		if err := r.tell(ctx); err != nil {
			return took, err
		}
		return took, fmt.Errorf("%w: %w", errArchive, err)
	}
	r.row = 0
	r.done.Archived += int64(len(runs))
	return took, nil
}

// tell writes down what was done. Numbers are for people: an unknown commit may count something twice, or not.
func (r *Retainer) tell(ctx context.Context) error {
	d := r.done
	d.Failures = r.bad
	r.done = choreDone{At: d.At}
	return tellChore(ctx, r.DB.DB, r.Session.ID(), d)
}
