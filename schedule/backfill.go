package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Feeder gives backfills their tasks, a few at a time: as many as may run at once. Any node may feed any backfill; its
// job's row and its own keep two of them apart.
type Feeder struct {
	DB      *sql.DB
	Session Session
	Limits  *Limiter // of apps; nil: none has any
	Soon    func()   // called when a task was planned that is due at once
	Log     *slog.Logger

	wake wake
	busy bool // the last look found one that is busy
}

const (
	feedBatch = 100
	// feedLooks bounds how many due times one transaction looks at that need no task, feedLook how many at once: their job's
	// row is locked meanwhile.
	feedLooks, feedLook = 1000, 500
)

// NewFeeder sets what has no useful zero value.
func NewFeeder(f Feeder) *Feeder {
	f.wake = newWake()
	return &f
}

// Wake asks for a look now: a task of a backfill has ended, or a sweep has found a backfill.
func (f *Feeder) Wake() { f.wake.up() }

// Run feeds whenever it is woken, until ctx ends.
func (f *Feeder) Run(ctx context.Context) error {
	pause, again := busyPause, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-f.wake:
			pause = busyPause
		case <-again:
			pause *= 2
		}
		if again = nil; !f.Session.Fresh() {
			continue
		}
		if err := f.feedAll(ctx); err != nil && ctx.Err() == nil {
			f.Log.Warn("cannot go on with backfills, trying again", "error", err)
		}
		if f.busy && pause <= maxBusyPause { // mostly for an instant; another feeder may have counted what has ended by now
			again = time.After(pause)
		}
	}
}

func (f *Feeder) feedAll(ctx context.Context) error {
	planned := 0
	f.busy = false
	var errs []error
	for after := int64(0); ctx.Err() == nil; {
		hungry, err := f.DB.HungryBackfills(ctx, after, feedBatch)
		if err != nil {
			errs = append(errs, err)
			break
		}
		for _, b := range hungry {
			n, busy := 0, false
			err := f.DB.Tx(ctx, func(tx *sql.Tx) (err error) {
				if n, err = feed(tx, &b, f.Session.Now(), f.Limits); errors.Is(err, errBusy) {
					busy, err = true, nil
				}
				return err
			})
			if err != nil && !sql.IsUnknown(err) {
				errs = append(errs, fmt.Errorf("backfill %d: %w", b.ID, err)) // one bad job does not hold up the others
			}
			planned, after, f.busy = planned+n, b.ID, f.busy || busy
		}
		if len(hungry) < feedBatch {
			break
		}
	}
	if planned > 0 {
		f.Soon()
	}
	return errors.Join(errs...)
}

// errBusy says that somebody has the row of a backfill locked, or its job's.
var errBusy = errors.New("the backfill is locked")

// feed plans the next due times of a backfill, so many that as many as it may have are live. One that somebody has locked, or
// whose job, is busy, and left to a further look: it holds up no other. If we die before the commit nothing has happened;
// behind it the cursor has moved with the tasks.
func feed(tx *sql.Tx, b *job.Backfill, now job.Micros, limits *Limiter) (planned int, err error) {
	jobs, busy, err := tx.LockFreeJobs([]int64{b.JobID})
	if err == nil && busy[b.JobID] {
		err = errBusy
	}
	if err != nil {
		return 0, err
	}
	locked, err := tx.LockFreeBackfill(b.ID)
	if errors.Is(err, sql.ErrNotFound) {
		return 0, errBusy
	}
	if err != nil {
		return 0, err
	}
	if err := tx.LearnCalendars(jobs[b.JobID]); err != nil {
		return 0, err
	}
	*b = locked
	j := jobs[b.JobID]
	switch {
	case b.State != job.Backfilling:
		return 0, nil
	case j == nil || j.Deleted:
		b.State, b.NextDue, b.Updated = job.BackfillCancelled, 0, now
		return 0, tx.UpdateBackfill(b)
	case j.SpecErr != nil || j.PauseAt(now) != nil:
		return 0, nil // it goes on once the job does
	case !limits.mayFeed(j.Spec.App, now):
		return 0, nil // the sweeper has it looked at once a second
	}
	live, err := tx.CountBackfillTasks(b)
	if err != nil {
		return 0, err
	}
	free := b.Parallel - live
	if b.NextDue == 0 && live > 0 || b.NextDue != 0 && free <= 0 {
		return 0, nil
	}
	tasks, err := nextOf(tx, j, b, free, now)
	if err != nil {
		return 0, err
	}
	if b.NextDue == 0 && live+len(tasks) == 0 {
		b.State = job.BackfillDone
	}
	b.Updated = now
	if err := tx.InsertTasks(tasks); err != nil {
		return 0, err
	}
	return len(tasks), tx.UpdateBackfill(b)
}

// nextOf makes the next tasks of a backfill and moves its cursor.
func nextOf(tx *sql.Tx, j *sql.JobRow, b *job.Backfill, most int, now job.Micros) ([]job.Task, error) {
	s, err := compile(j)
	if err != nil {
		return nil, err
	}
	next := func(after job.Micros) {
		if b.NextDue = firstAfter(s, after); b.NextDue > b.To {
			b.NextDue = 0
		}
	}
	if b.NextDue != 0 {
		next(b.NextDue - 1) // it may be no due time any more: the job or a calendar was edited
	}
	var tasks []job.Task
	looks := 0
	for look := most; b.NextDue != 0 && len(tasks) < most && looks < feedLooks; look = feedLook { // few may need a task, if the first did not
		var dues []job.Micros
		for b.NextDue != 0 && len(dues) < look {
			dues = append(dues, b.NextDue)
			next(b.NextDue)
		}
		looks += len(dues)
		done := map[job.Micros]bool{}
		if b.Missing {
			if done, err = tx.Succeeded(j.ID, dues); err != nil {
				return nil, err
			}
		}
		for _, due := range dues {
			if done[due] {
				b.LeftOut++
				continue
			}
			if len(tasks) == most {
				b.NextDue = due
				break
			}
			t := task(j, due)
			t.DueNow, t.Origin = max(now, due), b.Origin() // never before due, which starts rely on
			tasks = append(tasks, t)
			b.Planned++
		}
	}
	return tasks, nil
}

// Backfill starts the due times of a job in a range, both ends included, parallel of them at once; with missing only
// those that have no run which succeeded. Where to is the zero time the range ends now, by MySQL's clock. The same key answers with the first request again; key may be empty. Unless
// the job's runs may overlap, they go one after the other, and in turn with the schedule's.
func (e *Editor) Backfill(ctx context.Context, id int64, from, to time.Time, parallel int, missing bool, key string) (job.Backfill, error) {
	now := e.Session.Now()
	end := int64(0) // the same request later is the same
	if to.IsZero() {
		to = now.Time()
	} else {
		end = to.UnixMicro()
	}
	if err := job.CheckBackfill(from, to, parallel, now.Time()); err != nil {
		return job.Backfill{}, err
	}
	if err := e.countable(ctx, id, from, to); err != nil {
		return job.Backfill{}, err
	}
	digest := askedFor(ctx, "backfill %d %d %d %d %t", id, from.UnixMicro(), end, parallel, missing)
	mine := key
	if key == "" {
		mine = uuid.NewString() // so that an unknown commit can be found again
	}
	var out job.Backfill
	find := func(tx *sql.Tx) (bool, error) {
		r, err := tx.LockRequest(mine)
		if errors.Is(err, sql.ErrNotFound) {
			return false, nil
		}
		if err == nil && r.Digest != digest {
			return false, job.ErrKeyReused
		}
		if err != nil {
			return false, err
		}
		out, err = tx.LockBackfill(r.ID)
		return err == nil, err
	}
	err := e.DB.TxOnce(ctx, func(tx *sql.Tx) error {
		rows, err := tx.LockJobs([]int64{id})
		if err != nil {
			return err
		}
		j := rows[id]
		if j == nil || j.Deleted {
			return fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		}
		if there, err := find(tx); err != nil || there {
			return err
		}
		if err := tx.LearnCalendars(j); err != nil {
			return err
		}
		s, err := compile(j)
		if err != nil {
			return job.Problems{{Field: "job", Message: err.Error()}}
		}
		b := job.Backfill{JobID: id, From: job.MicrosOf(from), To: job.MicrosOf(to), Parallel: parallel, Missing: missing,
			Who: job.ActorOf(ctx).Who, Created: now, Updated: now}
		b.Total = s.Count((b.From - 1).Time(), b.To.Time())
		if b.NextDue = firstAfter(s, b.From-1); b.NextDue > b.To {
			b.NextDue = 0
		}
		switch {
		case b.NextDue == 0:
			return job.Problems{{Field: "from", Message: fmt.Sprintf("the job has no due time from %s to %s", b.From, b.To)}}
		case b.Total > job.MaxBackfillDues:
			return job.Problems{{Field: "to", Message: fmt.Sprintf("the range has %d due times, at most %d are taken; give a shorter one", b.Total, job.MaxBackfillDues)}}
		}
		if _, err := limitRun(tx, j.Spec.App, now); err != nil {
			return err
		}
		if b.ID, err = tx.InsertRequest("backfill", mine, digest, id, now); err != nil {
			return err
		}
		tasks, err := nextOf(tx, j, &b, parallel, now)
		if err != nil {
			return err
		}
		if err := tx.InsertBackfill(&b); err != nil {
			return err
		}
		out = b
		if err := tx.InsertTasks(tasks); err != nil {
			return err
		}
		return audit(tx, &job.Entry{Action: job.ActionBackfill, Kind: job.KindJob, Ref: id, App: j.Spec.App, Name: j.Spec.Name, Became: backfillText(&b)}, now)
	}, find)
	if err != nil {
		return job.Backfill{}, e.refusals(err)
	}
	e.Soon()
	return out, nil
}

// countable refuses a range whose due times are too expensive to count, before anything is locked. All else that may be
// wrong is found out later, under locks.
func (e *Editor) countable(ctx context.Context, id int64, from, to time.Time) error {
	j, err := e.DB.Job(ctx, id)
	if err != nil || j.SpecErr != nil || len(j.Spec.Calendars) == 0 {
		return nil
	}
	if err := e.DB.LearnCalendars(ctx, &j); err != nil || j.CalendarsErr != nil {
		return nil
	}
	s, err := compile(&j)
	if err != nil {
		return nil
	}
	err = job.Compute(ctx, job.DefiningWork, func(w *job.Work) error {
		w.On(s).Count(from.Add(-time.Microsecond), to)
		return nil
	})
	if errors.Is(err, job.ErrTooExpensive) {
		return job.Problems{{Field: "from", Message: "the due times from there on are too expensive to count; give a shorter range"}}
	}
	return err
}

// backfillText is what the audit says of a backfill.
func backfillText(b *job.Backfill) string {
	return fmt.Sprintf(`{"backfill":"%d","from":"%s","to":"%s","parallel":%d,"missing":%t}`, b.ID, b.From, b.To, b.Parallel, b.Missing)
}

// cancelledBackfill is why a due time of a backfill that has begun is not started once more.
const cancelledBackfill = "the backfill was cancelled"

// CancelBackfill ends a backfill: what it has not begun is not started any more once this has been answered. What
// executes runs to its end, and is not retried.
func (e *Editor) CancelBackfill(ctx context.Context, id int64) (job.Backfill, error) {
	found, err := e.DB.Backfill(ctx, id)
	if err != nil {
		return job.Backfill{}, err
	}

	var b job.Backfill
	var window job.Micros
	err = e.DB.TxOnce(ctx, func(tx *sql.Tx) error {
		// This may run again. Its job is always the one found above: b is no backfill at all after a refused statement.
		window = 0
		jobs, err := tx.LockJobs([]int64{found.JobID})
		if err != nil {
			return err
		}
		if b, err = tx.LockBackfill(id); err != nil {
			return err
		}
		live, err := tx.BackfillTasks(&b)
		if err != nil {
			return err
		}
		for _, t := range live {
			if t.State == job.Executing {
				window = max(window, t.SpawnBy)
			}
		}
		if b.State != job.Backfilling {
			return nil
		}
		b.State, b.NextDue, b.Updated = job.BackfillCancelled, 0, e.Session.Now()
		var st stopping
		for _, t := range live {
			switch {
			case t.State == job.Executing: // if it is given back, or is to be retried, its start is refused
			case t.Attempt > 1 && jobs[b.JobID] != nil:
				st.skip(jobs[b.JobID], t, cancelledBackfill, e.Session, b.Updated)
			default:
				st.ahead = append(st.ahead, t.ID)
				if t.State == job.Waiting {
					st.waiting = append(st.waiting, t.ID)
				}
			}
		}
		if err := st.write(tx); err != nil {
			return err
		}
		if err := tx.UpdateBackfill(&b); err != nil {
			return err
		}
		line := &job.Entry{Action: job.ActionCancel, Kind: job.KindJob, Ref: b.JobID, Was: backfillText(&b)}
		if j := jobs[b.JobID]; j != nil {
			line.App, line.Name = j.Spec.App, j.Spec.Name
		}
		return audit(tx, line, b.Updated)
	}, func(*sql.Tx) (bool, error) { return false, nil }) // once more does no harm
	if err != nil {
		return job.Backfill{}, err
	}
	return b, e.passed(ctx, window)
}
