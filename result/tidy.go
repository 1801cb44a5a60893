package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/internal/audit"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Tidier removes rows that are kept no longer: requests with their keys and answers, audit lines, notes of ends, and counts of starts.
// Runs are the Retainer's affair. It works in small batches, none of them on the trip of a run, and all of it may be late: so while due
// times are overdue it waits, for a minute at most. One node of the cluster does it: the first.
type Tidier struct {
	DB      *read.DB
	Session interface {
		Share() (index, of int)
		Now() job.Micros // MySQL's clock
		Fresh() bool
	}
	Behind func() bool   // reports that due times are overdue; nil: nobody knows
	Audit  time.Duration // lines of the audit that are older go; zero: none does
	Log    *slog.Logger

	tidied time.Time // when it looked last
	denied time.Time // when MySQL last refused to remove audit lines; zero: it did not
}

const (
	tidyPeriod = 2 * time.Second
	// calmPeriod is between looks when the last one found less than it could take: an idle cluster is asked little.
	calmPeriod = 10 * time.Second
	// tidyRuns bounds how many batches of one kind one look takes; what is left is for the next.
	tidyRuns  = 20
	tidyBatch = 500
	// tidyPatience is for how long due times that are overdue keep it from looking.
	tidyPatience = time.Minute
	// deniedPeriod is between tries to remove audit lines as a user who may not.
	deniedPeriod = time.Hour

	// RequestsKept is for how long an Idempotency-Key is remembered.
	RequestsKept = 24 * time.Hour
	// NotesKept is for how long followers of ends may stand still and miss nothing.
	NotesKept = 6 * time.Hour
	// notesHeld is for how long notes are kept from which the output of apps is to be counted yet. Then they go, and it is counted by
	// a look at all runs.
	notesHeld = 24 * time.Hour
	// startsKept is for how long starts of apps are counted: longer than the minute that their limit is about.
	startsKept = 3 * time.Minute
)

// Run tidies until ctx is over.
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
		if index, of := t.Session.Share(); index > 0 || index < 0 && of > 0 || !t.Session.Fresh() {
			continue
		}
		if t.Behind != nil && t.Behind() && time.Since(t.tidied) < tidyPatience {
			wait = tidyPeriod
			continue
		}
		t.tidied = time.Now()
		more, err := t.Tidy(ctx, t.Session.Now())
		if err != nil && ctx.Err() == nil {
			t.Log.Warn("cannot remove what is kept no longer, trying again", "error", err)
		}
		if more {
			wait = tidyPeriod
		}
	}
}

// tidyStep removes rows of one kind, a batch at a time.
type tidyStep struct {
	what   string
	wanted bool
	batch  func() (removed int, err error)
}

// Tidy takes one look, and reports whether there is more to do. An unknown commit is as good as none: the next look sees
// what stands.
func (t *Tidier) Tidy(ctx context.Context, now job.Micros) (more bool, err error) {
	oldest, err := readOldest(t.DB.Reader(ctx))
	if err != nil {
		return false, err
	}
	requests, audit, notes := now.Add(-RequestsKept), now.Add(-t.Audit), now.Add(-NotesKept)
	first, last := job.SecondOf(now.Add(-startsKept)), job.SecondOf(now.Add(startsKept))
	older := func(at, before job.Micros) bool { return at != 0 && at < before }

	var errs []error
	for _, step := range []tidyStep{
		{"old requests", older(oldest.Request, requests), func() (int, error) {
			return dropRequests(ctx, t.DB.DB, requests, tidyBatch)
		}},
		{"old audit", t.Audit > 0 && older(oldest.Line, audit) && time.Since(t.denied) > deniedPeriod, func() (int, error) {
			return t.dropAudit(ctx, audit)
		}},
		{"notes of ends", older(oldest.Ending, notes), func() (int, error) {
			return t.dropNotes(ctx, notes, older(oldest.Ending, now.Add(-notesHeld)))
		}},
		{"counts of starts", oldest.LastStart != 0 && (oldest.FirstStart < first || oldest.LastStart > last), func() (int, error) {
			return dropStarts(ctx, t.DB.DB, first, last, tidyBatch)
		}},
	} { // one that fails does not hold up the others
		left, err := step.run(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.what, err))
		}
		more = more || left
	}
	return more, errors.Join(errs...)
}

// run takes some batches, and reports whether there may be more.
func (s *tidyStep) run(ctx context.Context) (more bool, err error) {
	if !s.wanted {
		return false, nil
	}
	for range tidyRuns {
		n, err := s.batch()
		if err != nil || n < tidyBatch {
			return false, err
		}
		if ctx.Err() != nil {
			return false, nil
		}
	}
	return true, nil
}

func (t *Tidier) dropAudit(ctx context.Context, before job.Micros) (int, error) {
	n, err := audit.Drop(ctx, t.DB.DB, before, tidyBatch)
	if sql.IsDenied(err) { // as it should be: then migrate removes them, and doctor says when it does not
		t.denied, err = time.Now(), nil
	}
	return n, err
}

// dropNotes removes notes of ends, but for those from which output is to be counted. Overheld says that some of these are too old.
func (t *Tidier) dropNotes(ctx context.Context, before job.Micros, overheld bool) (removed int, err error) {
	err = t.DB.Tx(ctx, func(tx *sql.Tx) error {
		sums, err := trip.ReadOutputSums(tx)
		if err != nil {
			return err
		}
		upto := int64(math.MaxInt64)
		switch {
		case sums.Counting && overheld:
			if err := trip.ForgetNotes(tx); err != nil {
				return err
			}
		case sums.Counting:
			upto = sums.Upto
		}
		n, err := trip.DropNotes(tx, before, upto, tidyBatch)
		removed = int(n)
		return err
	})
	return removed, err
}

// dropStarts removes some of the counts that are older than a second, or later than another one: MySQL's clock was put
// back since. It returns how many it removed.
func dropStarts(ctx context.Context, db *sql.DB, before, behind int64, limit int) (removed int, err error) {
	const query = `
		DELETE FROM app_start
		WHERE at < ? OR at > ?
		LIMIT ?`
	return removed, db.Tx(ctx, func(tx *sql.Tx) error {
		n, err := tx.Exec("drop old starts", query, before, behind, limit)
		removed = int(n)
		return err
	})
}

// oldest are the ages of what is removed by its age: when the oldest row of each kind was written, zero if there is none.
type oldest struct {
	Request job.Micros
	Line    job.Micros // of the audit
	Ending  job.Micros

	FirstStart, LastStart int64 // the first and the last second in which starts of apps are counted
}

// readOldest reads one end of an index for each of its facts, and takes no lock.
func readOldest(r sql.Reader) (o oldest, err error) {
	const query = `
		SELECT COALESCE((SELECT MIN(created) FROM request FORCE INDEX (created)), 0),
			COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0),
			COALESCE((SELECT at FROM ending FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1), 0),
			COALESCE((SELECT MIN(at) FROM app_start FORCE INDEX (at)), 0),
			COALESCE((SELECT MAX(at) FROM app_start FORCE INDEX (at)), 0)`
	scan := func(rows *sql.Rows) error {
		return rows.Scan(&o.Request, &o.Line, &o.Ending, &o.FirstStart, &o.LastStart)
	}
	err = sql.Each(r, "look for old rows", scan, query)
	return o, err
}

// dropRequests removes some requests that were made before an instant, with their keys and answers, and returns how many.
// The runs and backfills that came of them stay.
func dropRequests(ctx context.Context, db *sql.DB, before job.Micros, limit int) (int, error) {
	const find = `
		SELECT id
		FROM request FORCE INDEX (created)
		WHERE created < ?
		ORDER BY created
		LIMIT ?`
	ids, err := sql.IDs(db.Reader(ctx), "find old requests", find, int64(before), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	slices.Sort(ids)
	list, args := sql.In(nil, ids)
	query := `
		DELETE r
		FROM request r FORCE INDEX (PRIMARY)
		WHERE r.id IN ` + list
	return len(ids), db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec("drop old requests", query, args...)
		return err
	})
}
