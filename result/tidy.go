package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"go-crontab/internal/audit"
	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Tidier removes expired rows: requests with their keys and answers, audit lines, notes of ends,
// and counts of starts. It does not remove runs: see Retainer.
//
// The Tidier works in small batches, and none of its work is urgent. While due times are overdue,
// it waits, for a minute at most. Only the first node of the cluster does this work.
type Tidier struct {
	TidierConfig

	tidied time.Time // time of the last look
	mended time.Time // time of the last look for jobs with a delay that have no due time
	denied time.Time // time of MySQL's last refusal to remove audit lines; zero: never
}

// TidierConfig is what a tidier works with.
type TidierConfig struct {
	DB      *read.DB
	Session interface {
		Share() (index, of int)
		Now() job.Micros // MySQL's clock
		Fresh() bool
	}
	Lookout Lookout
	Audit   time.Duration // audit lines are kept for this time; zero: for ever
	Log     *slog.Logger
}

// Lookout knows which work was waiting a moment ago. It reports false when it does not know.
type Lookout interface {
	Behind() bool   // due times are overdue, so chores should wait
	NoLimits() bool // no app has limits
}

// NewTidier returns a tidier. The caller runs it.
func NewTidier(cfg TidierConfig) *Tidier { return &Tidier{TidierConfig: cfg} }

const (
	tidyPeriod = 2 * time.Second
	// calmPeriod is the pause after a look that found less than a full batch. It is long, so that
	// an idle cluster has few queries.
	calmPeriod = 10 * time.Second
	// tidyRuns bounds the batches of one kind of rows in a look; the next look does the rest.
	tidyRuns  = 20
	tidyBatch = 500
	// tidyPatience bounds the time for which overdue due times postpone a look.
	tidyPatience = time.Minute
	// deniedPeriod is the pause between tries to remove audit lines without the privilege.
	deniedPeriod = time.Hour

	// mendPeriod is the pause between looks for jobs with a delay that have no due time.
	mendPeriod = time.Minute

	// RequestsKept is the lifetime of an Idempotency-Key.
	RequestsKept = 24 * time.Hour
	// NotesKept is how long a follower of ends may pause without missing an end.
	NotesKept = 6 * time.Hour
	// notesHeld bounds the life of notes whose runs are not counted yet for the output of apps.
	// After that time the notes are removed, and a scan of all runs counts the output.
	notesHeld = 24 * time.Hour
	// startsKept is the lifetime of counts of starts, longer than the minute of the limit.
	startsKept = 3 * time.Minute
)

// Run tidies until ctx is over.
func (t *Tidier) Run(ctx context.Context) error {
	t.tidied = time.Now()
	return loop.Loop{
		First:  loop.Jitter(tidyPeriod),
		Period: calmPeriod,
		Log:    t.Log,
		Failed: "cannot remove expired requests, audit lines and counts, trying again",
	}.Run(ctx, t.step)
}

// step tidies if it is this node's turn and no due time is overdue.
func (t *Tidier) step(ctx context.Context, _ bool) (pause time.Duration, err error) {
	if index, of := t.Session.Share(); index > 0 || index < 0 && of > 0 || !t.Session.Fresh() {
		return 0, loop.ErrSkipped
	}
	if time.Since(t.tidied) < tidyPatience && t.Lookout.Behind() {
		return tidyPeriod, loop.ErrSkipped
	}

	t.tidied = time.Now()
	more, err := t.Tidy(ctx, t.Session.Now())
	if more {
		pause = tidyPeriod
	}
	return pause, err
}

// tidyStep removes rows of one kind in batches.
type tidyStep struct {
	what   string
	wanted bool
	batch  func() (removed int, err error)
}

// Tidy takes one look, and reports whether there is more to do. It need not settle an unknown
// commit, because the next look reads the result.
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
		{"jobs with a delay", oldest.Delays && time.Since(t.mended) > mendPeriod, func() (int, error) {
			t.mended = time.Now()
			n, err := mendDelays(ctx, t.DB.DB, now)
			if n > 0 {
				t.Log.Warn("gave due times to jobs with a delay that had lost theirs", "jobs", n)
			}
			return 0, err
		}},
	} { // a failure does not stop the others
		left, err := step.run(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.what, err))
		}
		more = more || left
	}
	return more, errors.Join(errs...)
}

// run removes some batches, and reports whether there may be more.
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
	if sql.IsDenied(err) { // as in the recommended setup: migrate removes the lines, and doctor warns
		t.denied, err = time.Now(), nil
	}
	return n, err
}

// dropNotes removes notes of ends, except for uncounted ones. With overheld, it removes all old
// notes and stops the count of kept output.
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

// dropStarts removes some counts before one second or after another, and returns their number.
// Counts in the future were written before MySQL's clock was put back.
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

// oldest has the time of the oldest row of each kind; zero: there is no row.
type oldest struct {
	Request job.Micros
	Line    job.Micros // of an audit line
	Ending  job.Micros

	FirstStart, LastStart int64 // first and last second with counted starts of apps
	Delays                bool  // some job has a delay
}

// readOldest reads one end of an index for each fact. It takes no lock.
func readOldest(r sql.Reader) (o oldest, err error) {
	const query = `
		SELECT COALESCE((SELECT MIN(created) FROM request FORCE INDEX (created)), 0),
			COALESCE((SELECT MIN(at) FROM audit FORCE INDEX (at)), 0),
			COALESCE((SELECT at FROM ending FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1), 0),
			COALESCE((SELECT MIN(at) FROM app_start FORCE INDEX (at)), 0),
			COALESCE((SELECT MAX(at) FROM app_start FORCE INDEX (at)), 0),
			EXISTS (SELECT 1 FROM job_ref FORCE INDEX (PRIMARY) WHERE kind = 7)`
	scan := func(rows *sql.Rows) error {
		return rows.Scan(&o.Request, &o.Line, &o.Ending, &o.FirstStart, &o.LastStart, &o.Delays)
	}
	err = sql.Each(r, "look for old rows", scan, query)
	return o, err
}

// dropRequests removes some requests from before an instant, with their keys and answers. The runs
// and backfills of these requests stay. dropRequests returns the number of removed requests.
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
