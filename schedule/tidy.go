package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Tidier removes what is kept no longer, and writes down what lists go by where nobody did in time: that a job is
// finished, whose end nobody notices otherwise; the app of runs that were written by who did not know it; what jobs can
// be found by that a version before wrote. All of it in small batches, none of it on the trip of a task, and all of it may
// be late: lists look twice at what is not written down yet. So while due times are overdue it waits, for a minute at most.
// One node of the cluster does it: the first.
type Tidier struct {
	DB      *sql.DB
	Trip    *sql.DB // asked by one statement whether there is anything to do; it has a connection open all the time
	Session Session
	Lookout *Lookout      // nil: it never waits
	Audit   time.Duration // lines of the audit that are older go; zero: none does
	Log     *slog.Logger

	tidied time.Time // when it looked last
	seen   int64     // the last job that was looked at whether it is finished
	denied time.Time // when MySQL last refused to remove audit lines; zero: it did not
}

const (
	tidyPeriod = 2 * time.Second
	// calmPeriod is between looks when the last one found less than it could take: an idle cluster is asked little.
	calmPeriod = 10 * time.Second
	// tidyRuns bounds how many batches of one kind one look takes; what is left is for the next.
	tidyRuns  = 20
	tidyBatch = 500
	tidyJobs  = 100 // whose rows are locked for as long as it takes to write some twenty rows for each
	// tidyPatience is for how long due times that are overdue keep it from looking.
	tidyPatience = time.Minute
	// deniedPeriod is between tries to remove audit lines as a user who may not.
	deniedPeriod = time.Hour
	// RequestsKept is for how long an Idempotency-Key is remembered.
	RequestsKept = 24 * time.Hour
)

// Run tidies until ctx ends.
func (t *Tidier) Run(ctx context.Context) error {
	wait := rand.N(tidyPeriod)
	t.tidied = time.Now()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = calmPeriod
		if index, of, _ := t.Session.Share(); index > 0 || index < 0 && of > 0 || !t.Session.Fresh() {
			continue
		}
		now := t.Session.Now()
		if t.Lookout.Behind(now) && time.Since(t.tidied) < tidyPatience {
			wait = tidyPeriod
			continue
		}
		t.tidied = time.Now()
		more, err := t.tidy(ctx, now)
		if err != nil && ctx.Err() == nil {
			t.Log.Warn("cannot remove what is over, trying again", "error", err)
		}
		if more {
			wait = tidyPeriod
		}
	}
}

// tidy takes one look, and tells whether there is more to do. An unknown commit is as good as none: the next look sees
// what stands.
func (t *Tidier) tidy(ctx context.Context, now job.Micros) (left bool, err error) {
	u, err := t.Trip.Untidy(ctx)
	if err != nil {
		return false, err
	}
	before := now.Add(-RequestsKept)
	audit := now.Add(-t.Audit)
	var errs []error
	for _, step := range []struct { // one that fails does not hold up the others
		wanted bool
		do     func() (more bool, err error)
	}{
		{u.AtEnd, func() (bool, error) {
			last, err := t.DB.FinishJobs(ctx, t.seen, tidyBatch)
			t.seen = last
			return last != 0, wrapped("finish jobs", err)
		}},
		{u.Runs, func() (bool, error) {
			n, err := t.DB.StampRuns(ctx, tidyBatch)
			return n == tidyBatch, wrapped("apps of runs", err)
		}},
		{u.Moved, func() (bool, error) {
			n, err := t.DB.DropRunApps(ctx, tidyBatch)
			return n == tidyBatch, wrapped("apps of attempts", err)
		}},
		{u.Unlisted, func() (bool, error) {
			n, err := t.DB.ListUnlisted(ctx, tidyJobs)
			return n == tidyJobs, wrapped("list jobs", err)
		}},
		{u.Request != 0 && u.Request < before, func() (bool, error) {
			n, err := t.DB.DropRequests(ctx, before, tidyBatch)
			return n == tidyBatch, wrapped("old requests", err)
		}},
		{t.Audit > 0 && u.Line != 0 && u.Line < audit && time.Since(t.denied) > deniedPeriod, func() (bool, error) {
			n, err := t.DB.DropAudit(ctx, audit, tidyBatch)
			if sql.IsDenied(err) { // as it should be: then migrate removes them, and doctor says when it does not
				t.denied, err = time.Now(), nil
			}
			return n >= tidyBatch, wrapped("old audit", err)
		}},
	} {
		for n, more := 0, step.wanted; more && n < tidyRuns && ctx.Err() == nil; n++ {
			var err error
			if more, err = step.do(); err != nil {
				errs, more = append(errs, err), false
			}
			left = left || more
		}
	}
	return left, errors.Join(errs...)
}

func wrapped(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
