package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Retainer removes expired records with their output, job after job, by the rules of the job, of
// its app, and of the cluster. Only the node that holds the chore removes records. Each batch has
// its own transaction, which locks only the rows that it deletes, and the rules while it commits.
// After each batch the Retainer rests for several times as long as the batch took. If there is an
// archive command, it gets the records before they are deleted.
//
//	look at jobs ──▶ cut of a job ──▶ list ──▶ archive command ──▶ delete ──▶ rest
//
// The transaction that deletes a batch checks that the rules have not changed since the batch was
// listed. If they have, the batch is not deleted, although the archive may have it already. The
// new rules then apply to this job and the following ones.
//
// If we die between the archive and the delete, or if the commit is unknown, the next look hands
// over the remaining records again. So the archive gets each record at least once, and can
// recognise repeated records by the run's id.
//
// If the archive refuses a record, the record itself may be bad, so the Retainer goes on with the
// next job. If the archive refuses records of several jobs in a row, the archive is at fault, and
// the round ends. The next round begins after the last of these jobs, so a bad job cannot block
// the others for good.
type Retainer struct {
	RetainerConfig

	done   choreDone     // not written to the chore's row yet
	bad    int64         // failures of the archive since the last round without a failure
	failed bool          // the archive failed in this round
	row    int           // consecutive jobs whose records the archive refused
	looked time.Duration // spent on looking at jobs in this round
	owed   time.Duration // spent on small batches since the last rest
	held   time.Time     // the chore is ours until at least choreHold after this time
}

// RetainerConfig is what a retainer works with.
type RetainerConfig struct {
	DB      read.Retention
	Session interface {
		ID() uuid.UUID
		Now() job.Micros
		Fresh() bool
	}
	Archive Archive // nil: none
	Jobs    Jobs    // nil: finished jobs stay
	Lookout Lookout
	Names   Names
	Log     *slog.Logger
}

// Jobs deletes jobs that have finished.
type Jobs interface {
	// DeleteFinished deletes jobs in one transaction, if they are still finished and have no live
	// run. It returns the number of deleted jobs.
	DeleteFinished(ctx context.Context, jobs []job.FinishedJob) (int, error)
}

// NewRetainer returns a retainer. The caller runs it.
func NewRetainer(cfg RetainerConfig) *Retainer { return &Retainer{RetainerConfig: cfg} }

// Archive takes records before they are deleted. When it returns nil, it has them.
type Archive func(ctx context.Context, runs []read.Run) error

const (
	retainPeriod = 10 * time.Minute // between rounds over all jobs
	retainTry    = time.Minute      // between tries to take the chore
	choreHold    = 5 * time.Minute  // longer than the archive command may take, see node.Config.ArchiveTimeout
	choreKeep    = 10 * time.Second // between renewals of the chore
	keptJobs     = 2000             // jobs in one look
	finishedJobs = 500              // jobs with a keep_job in one look
	deleteBatch  = 100              // jobs in one transaction
	dropBatch    = 800
	archiveBatch = 200 // a record may have some ten kilobytes of output
	archiveTries = 3   // consecutive refused jobs that end the round

	// After each batch comes a rest of this many times its duration, and at least restLeast. So
	// concurrent commits of starts and ends have the disk to themselves most of the time.
	rest      = 4
	restRound = 50 // the pause after a round, as a multiple of the time spent on looking at jobs
	restLeast = 50 * time.Millisecond
	// restLongest bounds the rest after a batch, even if MySQL was very slow.
	restLongest = time.Minute
	// restMost bounds the extra rest while due times are overdue. Without a bound, a cluster whose
	// slots are all taken would rest for ever, because some due time is always overdue.
	restMost = 20 * time.Second
)

// Run removes until ctx ends.
func (r *Retainer) Run(ctx context.Context) error {
	return loop.Loop{
		First:  time.Second + loop.Jitter(10*time.Second),
		Period: retainTry,
		Log:    r.Log,
		Failed: "cannot remove old records, trying again",
	}.Run(ctx, func(ctx context.Context, _ bool) (pause time.Duration, err error) {
		r.looked = 0
		if !r.Session.Fresh() {
			return 0, loop.ErrSkipped
		}
		mine, err := r.Round(ctx)
		if mine && err == nil {
			pause = max(retainPeriod, restRound*r.looked)
		}
		return pause, err
	})
}

// errNoArchive means that an archive is required and this node has no command for it.
var errNoArchive = errors.New("the retention rule requires archiving, and this node has no --archive-command")

// errArchive means that the archive command refused records.
var errArchive = errors.New("archive")

// Round looks at all jobs once, beginning where the last round ended. If another node has the
// chore, it does nothing. mine reports whether this node had the chore.
func (r *Retainer) Round(ctx context.Context) (mine bool, err error) {
	if _, err := r.rules(ctx); err != nil {
		return false, err
	}

	asked := time.Now()
	mine, at, err := takeChore(ctx, r.DB.SQL(), choreRetention, r.Session.ID(), choreHold)
	if err != nil || !mine {
		return false, err
	}

	r.held, r.done.At = asked, at
	if err := r.deleteFinished(ctx); err != nil { // the records need not wait for it
		r.Log.Warn("cannot delete finished jobs, trying again later", "error", err)
	}
	for last := false; !last && err == nil; {
		last, err = r.page(ctx)
	}
	return true, err
}

// rules reads the rules. It fails with errNoArchive if this node cannot follow them.
func (r *Retainer) rules(ctx context.Context) (map[string]job.Retention, error) {
	rules, err := trip.Retentions(r.DB.Reader(ctx))
	if err == nil && rules[""].Archive && r.Archive == nil {
		err = errNoArchive
	}
	return rules, err
}

// page looks at the next jobs, by the current rules. last reports whether no job is left.
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
		// The rules have changed: this job and the following ones are looked at again.
		case errors.Is(err, sql.ErrMoved):
			r.rest(ctx, took)
			return false, nil
		// The following jobs need not wait for this one: the next round looks at it again.
		case sql.IsLockWait(err) || errors.Is(err, read.ErrUnreadable):
			r.Log.Warn("cannot remove old records of a job now, trying again later", "job", r.Names.of(j.ID),
				"error", err)
			if !sql.IsLockWait(err) {
				r.done.Error = fmt.Sprintf("cannot remove records of job %d: %v", j.ID, err)
				r.done.ErrorAt = r.Session.Now()
			}
		case errors.Is(err, errArchive):
			if r.row++; r.row >= archiveTries {
				r.done.At = j.ID
				return false, errors.Join(err, r.tell(ctx))
			}
		case err != nil:
			return false, err
		}
		r.done.At = j.ID // if we die before this is written, the next round looks at the job again
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

// deleteFinished deletes jobs that have been finished for as long as their keep_job says. If we
// die, or a commit is unknown, the next round looks at the remaining jobs again.
func (r *Retainer) deleteFinished(ctx context.Context) error {
	if r.Jobs == nil {
		return nil
	}

	for after := int64(0); ; {
		if err := r.hold(ctx); err != nil {
			return err
		}
		began := time.Now()
		jobs, last, err := r.DB.FinishedJobs(ctx, after, finishedJobs)
		if err != nil {
			return err
		}
		took := time.Since(began)
		r.looked += took

		now := r.Session.Now()
		jobs = slices.DeleteFunc(jobs, func(j job.FinishedJob) bool { return j.RemoveAt() > now })
		for some := range slices.Chunk(jobs, deleteBatch) {
			began := time.Now()
			n, err := r.Jobs.DeleteFinished(ctx, some)
			if err != nil {
				return err
			}
			if n > 0 {
				r.Log.Info("deleted finished jobs, as their keep_job says", "jobs", n)
			}
			r.rest(ctx, time.Since(began))
		}

		if last == 0 {
			return nil
		}
		after = last
		r.restLater(ctx, took)
	}
}

// cut computes which records of a job have expired.
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

	c.Due = max(c.Ended, c.Surely) // a run never ends before it is due
	return c, nil
}

// shorten removes the expired records of a job. It returns sql.ErrMoved if the job or a rule has
// changed since it was read.
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

// batch removes some expired records, the earliest first, and advances the cut. It returns the
// number of removed records, and the time that it took without the archive command.
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
	next := c.To // records that are due earlier and stay are not read again
	if len(runs) == most {
		next = runs[most-1].Due // other records may be due at the same instant
	}
	if len(runs) == 0 {
		c.From = next
		return 0, time.Since(began), nil
	}

	archiving, err := r.archive(ctx, j.ID, runs)
	if err != nil {
		return 0, 0, err
	}

	// Once a change of the rules or of the job is answered, the old rules delete no batch.
	hold := func(tx *sql.Tx) error {
		if err := trip.HoldRules(tx, j.App, rules); err != nil {
			return err
		}
		return trip.HoldVersion(tx, j.ID, j.Version)
	}

	large := largeOf(runs)
	err = dropParts(ctx, r.DB.SQL(), len(large), func(tx *sql.Tx) (bool, error) {
		more, err := trip.DropParts(tx, large)
		return more, errors.Join(err, hold(tx))
	})
	if err == nil {
		err = r.DB.Tx(ctx, func(tx *sql.Tx) error {
			if err := trip.DropRuns(tx, runs); err != nil {
				return err
			}
			return hold(tx)
		})
	}
	if err != nil {
		return 0, 0, err // also after an unknown commit: the next round reads the result
	}

	r.done.Removed += int64(len(runs))
	c.From = next
	return len(runs), time.Since(began) - archiving, nil
}

func largeOf(runs []trip.OldRun) (ids []int64) {
	for _, r := range runs {
		if r.Large {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// noParts is the largest size of an output that certainly has no parts.
const noParts = 64 << 10

// dropParts removes the parts of some outputs in small transactions.
func dropParts(ctx context.Context, db *sql.DB, outputs int, drop func(*sql.Tx) (more bool, err error)) error {
	for more := outputs > 0; more; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
			more, err = drop(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hold writes the progress and renews the chore, unless it did so a moment ago. It runs before
// each archive command, and before each batch, after the rest. So the chore is ours for longer
// than the command may take, and no other node archives at the same time.
//
// One case remains: a node is stopped in the middle, or dies while its command goes on. Another
// node takes over once the chore expires. Then two commands may run at once.
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
	mine, _, err := takeChore(ctx, r.DB.SQL(), choreRetention, r.Session.ID(), choreHold)
	if err == nil && !mine {
		err = errTaken
	}
	if err == nil {
		r.held = asked
	}
	return err
}

// restLater is like rest, for small batches (many jobs with few old records each). It adds up the
// durations of the batches, and rests once the rest would be at least restLeast.
func (r *Retainer) restLater(ctx context.Context, took time.Duration) {
	if r.owed += took; rest*r.owed >= restLeast {
		r.rest(ctx, r.owed)
		r.owed = 0
	}
}

// rest pauses after a batch, in proportion to the duration of the batch. While due times are
// overdue, it pauses for longer.
func (r *Retainer) rest(ctx context.Context, took time.Duration) { restAfter(ctx, took, r.Lookout) }

func restAfter(ctx context.Context, took time.Duration, lookout Lookout) {
	for wait, began := min(max(restLeast, rest*took), restLongest), time.Now(); ; wait = restLeast {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if !lookout.Behind() || time.Since(began) > restMost {
			return
		}
	}
}

var errTaken = errors.New("another node does this now, or this node lost its lease")

// archive hands records over, and returns the duration of the command. If the command fails, the
// records stay.
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
		r.Log.Error("the archive command failed, keeping the records",
			"job", r.Names.of(jobID), "records", len(runs), "failures", r.bad, "error", err)
		if err := r.tell(ctx); err != nil {
			return took, err
		}
		return took, fmt.Errorf("%w: %w", errArchive, err)
	}
	r.row = 0
	r.done.Archived += int64(len(runs))
	return took, nil
}

// tell writes the progress to the chore's row. The numbers are only for display, so after an
// unknown commit, records may be counted twice or not at all.
func (r *Retainer) tell(ctx context.Context) error {
	d := r.done
	d.Failures = r.bad
	r.done = choreDone{At: d.At}
	return tellChore(ctx, r.DB.SQL(), r.Session.ID(), d)
}
