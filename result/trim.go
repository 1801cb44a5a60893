package result

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Trimmer holds apps to their limit of kept output: where the runs of an app keep more, the oldest output goes. The records
// of these runs stay. One node at a time does it, the one that has the chore.
//
//	count new records ──▶ sums of apps ──▶ oldest output of each app that is over its limit ──▶ remove
//
// A sum is kept for each app, so an app below its limit costs nothing but that its new records are counted once. Records that
// the Retainer removes leave the sums in its transaction. Both read and write the place up to which records are counted, so no
// record counts twice, or is taken away twice.
//
// While no app has any limits it sends no statement. If we die between two transactions, the next node goes on from the rows.
type Trimmer struct {
	DB      *sql.DB
	Session interface {
		ID() uuid.UUID
		Fresh() bool
	}
	NoLimits func() bool // reports that no app has limits; nil: nobody knows
	Behind   func() bool // reports that due times are overdue, so that it is better to rest a while; nil: nobody knows
	Log      *slog.Logger

	latest int64 // record, as of the look before
}

const (
	trimPeriod = time.Minute
	trimFirst  = 10 * time.Second
	trimHold   = 3 * time.Minute // how long the chore is ours; more than one look takes
	// trimPages and trimBatches bound one look. What is left has its turn in the next look, which then comes at once.
	trimPages   = 100 // of sql.LookMost records each, which are counted
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

// Look counts what is new and removes what is too much, if this node has the chore. It counts only records that the look
// before has seen, a minute ago: a transaction may commit a record behind one with a higher id. It reports whether there is
// more to do.
func (r *Trimmer) Look(ctx context.Context) (more bool, err error) {
	if !r.Session.Fresh() || r.NoLimits != nil && r.NoLimits() {
		return false, nil
	}
	limits, err := r.limits(ctx)
	if err != nil || len(limits) == 0 {
		return false, err
	}
	mine, _, err := r.DB.TakeChore(ctx, sql.ChoreOutput, r.Session.ID(), trimHold)
	if err != nil || !mine {
		return false, err
	}

	began, upto := time.Now(), r.latest
	if r.latest, err = r.DB.LastRecord(ctx); err != nil {
		return false, err
	}
	counted, err := r.count(ctx, upto, began)
	if err != nil {
		return false, err
	}
	if counted > r.latest {
		return true, r.recount(ctx)
	}
	more = counted < upto
	for _, app := range slices.Sorted(maps.Keys(limits)) {
		left, err := r.trim(ctx, app, limits[app])
		if err != nil {
			return false, err
		}
		more = more || left
	}
	if more {
		r.latest = upto // the next look comes too soon to believe that all records up to there are committed
	}
	return more, nil
}

// limits returns the limits of kept output.
func (r *Trimmer) limits(ctx context.Context) (map[string]job.Size, error) {
	all, err := r.DB.Limits(ctx)
	out := map[string]job.Size{}
	for app, l := range all {
		if l.Output > 0 {
			out[app] = l.Output
		}
	}
	return out, err
}

// count adds records up to an id to the sums, and returns how far it came.
func (r *Trimmer) count(ctx context.Context, upto int64, began time.Time) (counted int64, err error) {
	for range trimPages {
		page := time.Now()
		err := r.DB.Tx(ctx, func(tx *sql.Tx) (err error) {
			counted, err = tx.CountOutput(upto)
			return err
		})
		if err != nil {
			return 0, err // unknown too: the row says how far it is counted
		}
		if counted >= upto || time.Since(began) > trimLongest {
			return counted, nil
		}
		restAfter(ctx, time.Since(page), r.Behind)
	}
	return counted, nil
}

// trim removes the oldest output of one app until its limit is kept. It reports whether there is more to remove.
func (r *Trimmer) trim(ctx context.Context, app string, limit job.Size) (more bool, err error) {
	sum, counted, err := r.DB.OutputSum(ctx, app)
	if err != nil {
		return false, err
	}
	runs, bytes := 0, int64(0)
	defer func() {
		if runs > 0 {
			r.Log.Info("removed old output: an app is at its limit", "app", app, "limit", limit, "runs", runs, "bytes", bytes)
		}
	}()

	for range trimBatches {
		over := sum.Bytes - int64(limit)
		if over <= 0 {
			return false, nil
		}
		if sum.Upto >= counted {
			return false, r.recount(ctx)
		}

		began := time.Now()
		old, end, err := r.DB.OldestOutput(ctx, app, sum.Upto, counted, trimBatch)
		if err != nil {
			return false, err
		}
		old, gone, end := enough(old, over, end)
		err = r.DB.Tx(ctx, func(tx *sql.Tx) error { return tx.DropOutput(app, limit, old, end) })
		if errors.Is(err, sql.ErrMoved) {
			return false, nil // the next look goes by the new limit
		}
		if err != nil {
			return false, err // unknown too: the next look reads what stands
		}
		sum.Bytes, sum.Upto = sum.Bytes-gone, end
		runs, bytes = runs+len(old), bytes+gone
		restAfter(ctx, time.Since(began), r.Behind)
	}
	return true, nil
}

// enough returns the first of some runs whose output comes to so many bytes, how many these are, and up to which record the
// app has no output when they are removed.
func enough(old []sql.KeptOutput, over, end int64) (oldest []sql.KeptOutput, bytes, upto int64) {
	for i, o := range old {
		if bytes += o.Bytes; bytes >= over {
			return old[:i+1], bytes, o.ID
		}
	}
	return old, bytes, end
}

// recount is for sums that rows do not bear out: somebody has removed records by hand, or changed the sums.
func (r *Trimmer) recount(ctx context.Context) error {
	r.Log.Warn("counting the kept output of apps again: there is less than was counted")
	return r.DB.Tx(ctx, func(tx *sql.Tx) error { return tx.RecountOutput() })
}
