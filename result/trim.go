package result

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Trimmer holds apps to their limit of kept output: where the runs of an app keep more, the output of the earliest due times goes. The
// runs stay. One node at a time does it, the one that has the chore.
//
//	count new runs ──▶ sums of apps ──▶ oldest output of each app that is over its limit ──▶ remove
//
// A sum is kept for each app that has a limit, so an app below its limit costs nothing but that its new output is counted once. Output
// that the Retainer removes leaves the sums in its transaction. Package trip says how each run is counted once, see trip/kept.go.
//
// While no app has any limits it sends no statement. If we die between two transactions, the next node goes on from the rows.
type Trimmer struct {
	DB      *read.DB
	Session interface {
		ID() uuid.UUID
		Fresh() bool
	}
	NoLimits func() bool // reports that no app has limits; nil: nobody knows
	Behind   func() bool // reports that due times are overdue, so that it is better to rest a while; nil: nobody knows
	Log      *slog.Logger

	looked bool  // latest is known
	latest int64 // note of ends, as of the look before
}

const (
	trimPeriod = time.Minute
	trimFirst  = 10 * time.Second
	trimHold   = 3 * time.Minute // how long the chore is ours; more than one look takes
	// trimPages and trimBatches bound one look. What is left has its turn in the next look, which then comes at once.
	trimPages   = 100 // each is a transaction that counts runs
	trimBatches = 50  // for each app, so that none waits for another one
	trimBatch   = 500 // runs whose output goes in one transaction
	trimLongest = time.Minute
)

// Run looks until ctx ends.
func (r *Trimmer) Run(ctx context.Context) error {
	wait := time.Second + rand.N(trimFirst)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}

		more, err := r.Look(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("cannot remove output of apps that are over their limit, trying again", "error", err)
		}
		wait = trimPeriod
		if more && err == nil {
			wait = restLeast
		}
	}
}

// Look counts what is new and removes what is too much, if this node has the chore. It counts only by notes that the look before has
// seen, a minute ago: a transaction may commit a note behind one with a higher id. It reports whether there is more to do.
func (r *Trimmer) Look(ctx context.Context) (more bool, err error) {
	if !r.Session.Fresh() || r.NoLimits != nil && r.NoLimits() {
		return false, nil
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
		r.latest = upto // the next look comes too soon to believe that all notes up to there are committed
	}
	return more, nil
}

// begin begins to count what is not counted yet: notes of ends, if nobody follows them, and apps that have got a limit. Sums of apps
// whose limit is gone are forgotten.
func (r *Trimmer) begin(ctx context.Context, limits []trip.OutputLimit, upto int64) (trip.OutputSums, error) {
	sums, err := trip.ReadOutputSums(r.DB.Reader(ctx))
	if err != nil {
		return sums, err
	}
	// A note that was counted may be gone, but ids do not fall unless somebody has removed rows by hand.
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
		return sums, err // unknown too: the next look reads what stands
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

// count adds runs to the sums by notes of ends, up to a note, and returns how far it came.
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
			return 0, err // unknown too: the row says how far it is counted
		}
		from = counted
		restAfter(ctx, time.Since(page), r.Behind)
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
	return counted, nil
}

// app counts runs of one app that ended before somebody counted, and removes its oldest output until its limit is kept. It reports
// whether there is more to do.
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
		restAfter(ctx, time.Since(start), r.Behind)
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

// trim removes the oldest output of one app until its limit is kept. It reports whether there is more to remove.
func (r *Trimmer) trim(ctx context.Context, l trip.OutputLimit, s trip.OutputSum) (more bool, err error) {
	runs, bytes := 0, int64(0)
	defer func() {
		if runs > 0 {
			r.Log.Info("removed old output: an app is at its limit", "app", l.App, "limit", l.Limit, "runs", runs, "bytes", bytes)
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
		err = r.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.DropOutput(tx, l, s, old, end) })
		if errors.Is(err, sql.ErrMoved) {
			return false, nil // the next look goes by what stands then
		}
		if err != nil {
			return false, err // unknown too: the next look reads what stands
		}
		runs, bytes = runs+len(old), bytes+gone
		restAfter(ctx, time.Since(began), r.Behind)
		if s, err = r.sum(ctx, l); err != nil {
			return false, err
		}
	}
	return true, nil
}

// enough returns the first of some runs whose output comes to so many bytes, how many these are, and up to which due time the
// app has no output when they are removed.
func enough(old []trip.KeptOutput, over int64, end job.Micros) (oldest []trip.KeptOutput, bytes int64, upto job.Micros) {
	for i, o := range old {
		if bytes += o.Bytes; bytes >= over {
			return old[:i+1], bytes, o.Due
		}
	}
	return old, bytes, end
}

// recount is for a sum that rows do not bear out: somebody has removed runs by hand, or changed the sum. It reports whether there is
// something to count.
func (r *Trimmer) recount(ctx context.Context, l trip.OutputLimit, was trip.OutputSum) (more bool, err error) {
	s, err := r.sum(ctx, l)
	if err != nil || s != was {
		return false, err // retention has just removed the output that was counted
	}
	r.Log.Warn("counting the kept output of an app again: there is less than was counted", "app", l.App)
	return true, r.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.CountAgain(tx, s) })
}
