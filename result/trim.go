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

// Trimmer keeps apps within their limit of kept output. If the runs of an app keep more, it
// removes the output of the earliest due times. The runs stay. Only the node that holds the chore
// does this work.
//
//	count new runs ──▶ sum per app ──▶ oldest output of each app over its limit ──▶ remove
//
// Each app with a limit has a sum, so an app within its limit costs only the count of its new
// output. When the Retainer removes output, it subtracts that output from the sums, in the same
// transaction. Package trip ensures that each run is counted once, see trip/kept.go.
//
// Without any limit the Trimmer sends no statement. If we die between two transactions, the next
// node goes on from the rows.
type Trimmer struct {
	TrimmerConfig

	looked bool  // latest is set
	latest int64 // id of the latest note of ends at the last look
}

// TrimmerConfig is what a trimmer works with.
type TrimmerConfig struct {
	DB      *read.DB
	Session interface {
		ID() uuid.UUID
		Fresh() bool
	}
	Lookout Lookout
	Log     *slog.Logger
}

// NewTrimmer returns a trimmer. The caller runs it.
func NewTrimmer(cfg TrimmerConfig) *Trimmer { return &Trimmer{TrimmerConfig: cfg} }

const (
	trimPeriod = time.Minute
	trimFirst  = 10 * time.Second
	trimHold   = 3 * time.Minute // hold of the chore; longer than a look
	// trimPages and trimBatches bound one look. If something is left, the next look comes at once.
	trimPages   = 100 // transactions that count runs
	trimBatches = 50  // for each app, so that apps do not wait for each other
	trimBatch   = 500 // runs that lose their output in one transaction
	trimLongest = time.Minute
)

// Run looks until ctx ends.
func (r *Trimmer) Run(ctx context.Context) error {
	return loop.Loop{
		First:  time.Second + loop.Jitter(trimFirst),
		Period: trimPeriod,
		Log:    r.Log,
		Failed: "cannot remove output of apps over their limit, trying again",
	}.Run(ctx, func(ctx context.Context, _ bool) (pause time.Duration, err error) {
		more, err := r.Look(ctx)
		if more && err == nil {
			pause = restLeast
		}
		return pause, err
	})
}

// Look counts new output and removes surplus output, if this node has the chore. A note may be
// committed after a note with a higher id. So Look counts only up to the latest note of the
// previous look, a minute ago. It reports whether there is more to do.
func (r *Trimmer) Look(ctx context.Context) (more bool, err error) {
	if !r.Session.Fresh() || r.Lookout.NoLimits() {
		return false, loop.ErrSkipped
	}
	limits, err := trip.OutputLimits(r.DB.Reader(ctx))
	if err != nil || len(limits) == 0 {
		return false, err
	}
	mine, _, err := takeChore(ctx, r.DB.DB, choreOutput, r.Session.ID(), trimHold)
	if err != nil || !mine {
		return false, err
	}

	began, upto, looked := time.Now(), r.latest, r.looked
	if r.latest, err = trip.LastNote(r.DB.Reader(ctx)); err != nil {
		return false, err
	}
	if r.looked = true; !looked {
		return false, nil
	}

	sums, err := r.begin(ctx, limits, upto)
	if err != nil {
		return false, err
	}
	counted, err := r.count(ctx, limits, sums.Upto, upto, began)
	if err != nil {
		return false, err
	}

	more = counted < upto
	for _, l := range limits {
		left, err := r.app(ctx, l, began)
		if err != nil {
			return false, err
		}
		more = more || left
	}
	if more {
		r.latest = upto // the next look comes too soon: notes before latest may not be committed yet
	}
	return more, nil
}

// begin starts to count whatever is not counted yet: the notes of ends, if they are not counted
// yet, and apps with a new limit. For apps without a limit, it resets the scan for earlier runs.
func (r *Trimmer) begin(ctx context.Context, limits []trip.OutputLimit, upto int64) (trip.OutputSums, error) {
	sums, err := trip.ReadOutputSums(r.DB.Reader(ctx))
	if err != nil {
		return sums, err
	}
	// The last counted note may have been removed. Still ids never fall, unless rows were removed
	// outside the program.
	ahead := sums.Upto > r.latest && r.latest > 0
	apps := appsOf(limits)
	complete := true
	for _, app := range apps {
		_, is := sums.Apps[app]
		complete = complete && is
	}
	for app, s := range sums.Apps {
		complete = complete && (slices.Contains(apps, app) || !s.All && s.Seen == 0)
	}
	if sums.Counting && !ahead && complete {
		return sums, nil
	}

	err = r.DB.Tx(ctx, func(tx *sql.Tx) error {
		if !sums.Counting || ahead {
			if err := trip.FollowNotes(tx, upto); err != nil {
				return err
			}
		}
		return trip.CountApps(tx, apps)
	})
	if err != nil {
		return sums, err // also after an unknown commit: the next look reads the result
	}
	return trip.ReadOutputSums(r.DB.Reader(ctx))
}

func appsOf(limits []trip.OutputLimit) []int32 {
	apps := make([]int32, len(limits))
	for i := range limits {
		apps[i] = limits[i].AppID
	}
	return apps
}

// count reads notes of ends up to note upto, and adds their runs to the sums. It returns the last
// note that it counted.
func (r *Trimmer) count(
	ctx context.Context, limits []trip.OutputLimit, from, upto int64, began time.Time,
) (counted int64, err error) {
	apps := appsOf(limits)
	for counted = from; counted < upto && time.Since(began) < trimLongest; {
		page := time.Now()
		err := r.DB.Tx(ctx, func(tx *sql.Tx) (err error) {
			counted, err = trip.CountNotes(tx, apps, from, upto)
			return err
		})
		if err != nil {
			return 0, err // also after an unknown commit: the row has the last note counted
		}
		from = counted
		restAfter(ctx, time.Since(page), r.Lookout)
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}

	return counted, nil
}

// app counts the runs of an app that ended before counting began. Then it removes the app's oldest
// output until the app is within its limit. It reports whether there is more to do.
func (r *Trimmer) app(ctx context.Context, l trip.OutputLimit, began time.Time) (more bool, err error) {
	s, err := r.sum(ctx, l)
	for page := 0; err == nil && !s.All; page++ {
		if page == trimPages || time.Since(began) > trimLongest {
			more = true
			break
		}
		start := time.Now()
		err = r.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.CountOld(tx, s) })
		if err != nil {
			return false, err
		}
		restAfter(ctx, time.Since(start), r.Lookout)
		s, err = r.sum(ctx, l)
	}
	if err != nil {
		return false, err
	}

	left, err := r.trim(ctx, l, s)
	return more || left, err
}

// sum reads the sum of an app.
func (r *Trimmer) sum(ctx context.Context, l trip.OutputLimit) (trip.OutputSum, error) {
	sums, err := trip.ReadOutputSums(r.DB.Reader(ctx))
	s, is := sums.Apps[l.AppID]
	if err == nil && !is {
		err = fmt.Errorf("read the sum of app %q: its row is gone: %w", l.App, sql.ErrMoved)
	}
	return s, err
}

// trim removes the oldest output of an app until it is within its limit. It reports whether there
// is more to remove.
func (r *Trimmer) trim(ctx context.Context, l trip.OutputLimit, s trip.OutputSum) (more bool, err error) {
	runs, bytes := 0, int64(0)
	defer func() {
		if runs > 0 {
			r.Log.Info("removed old output of an app at its limit",
				"app", l.App, "limit", l.Limit, "runs", runs, "bytes", bytes)
		}
	}()

	for range trimBatches {
		over := s.Bytes - int64(l.Limit)
		if over <= 0 {
			return false, nil
		}
		began := time.Now()
		old, end, last, err := trip.OldestOutput(r.DB.Reader(ctx), s, trimBatch)
		if err != nil {
			return false, err
		}
		if last && len(old) == 0 {
			return r.recount(ctx, l, s)
		}

		old, gone, end := enough(old, over, end)
		large := slices.DeleteFunc(slices.Clone(old), func(o trip.KeptOutput) bool { return o.Bytes <= noParts })
		err = dropParts(ctx, r.DB.DB, len(large), func(tx *sql.Tx) (bool, error) {
			return trip.DropPartsOver(tx, l, large)
		})
		if err == nil {
			err = r.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.DropOutput(tx, l, s, old, end) })
		}
		if errors.Is(err, sql.ErrMoved) {
			return false, nil // the next look reads the new state
		}
		if err != nil {
			return false, err // also after an unknown commit: the next look reads the result
		}
		runs, bytes = runs+len(old), bytes+gone
		restAfter(ctx, time.Since(began), r.Lookout)
		if s, err = r.sum(ctx, l); err != nil {
			return false, err
		}
	}
	return true, nil
}

// enough returns the first runs whose output adds up to the surplus, and the size of that output.
// upto is the due time before which the app then has no output.
func enough(
	old []trip.KeptOutput, over int64, end job.Micros,
) (oldest []trip.KeptOutput, bytes int64, upto job.Micros) {
	for i, o := range old {
		if bytes += o.Bytes; bytes >= over {
			return old[:i+1], bytes, o.Due
		}
	}
	return old, bytes, end
}

// recount handles a sum that the rows do not confirm, because runs or the sum were changed outside
// the program. It reports whether there is something to count.
func (r *Trimmer) recount(ctx context.Context, l trip.OutputLimit, was trip.OutputSum) (more bool, err error) {
	s, err := r.sum(ctx, l)
	if err != nil || s != was {
		return false, err // retention has just removed counted output
	}
	r.Log.Warn("recounting the output of an app: it has less than was counted", "app", l.App)
	return true, r.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.CountAgain(tx, s) })
}
