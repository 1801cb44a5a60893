package edit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Asked is the result of a request for runs.
type Asked struct {
	Request int64
	Due     job.Micros
	Done    []Done // one for each job; nil if the request was made before
}

// RunNow is RunWith without values of parameters.
func (e *Editor) RunNow(ctx context.Context, jobs []int64, due job.Micros, key string) (Asked, error) {
	return e.RunWith(ctx, jobs, due, nil, key)
}

// RunWith adds one run of each job, outside its schedule, with values of its parameters. The run
// is due now, or at a past due time. A repeated request with the same key returns the result of
// the first request. The key may be empty.
//
// The jobs are not locked. If a job is deleted meanwhile, its run ends instead of starting.
func (e *Editor) RunWith(
	ctx context.Context, jobs []int64, due job.Micros, params map[string]job.Value, key string,
) (Asked, error) {
	now := e.Session.Now()
	digest := askedFor(ctx, "run %d due %d%s", jobs, int64(due), withParams(params))
	switch {
	case due == 0:
		due = now
	case due > now:
		return Asked{}, job.Wrong("due", problem.DueLiesAhead, due)
	}

	seen, err := trip.SeeJobs(e.DB.Reader(ctx), jobs)
	if err != nil {
		return Asked{}, err
	}

	var out Asked
	err = e.ask(ctx, key, digest, func(tx *sql.Tx, there *sql.Request) (*job.Entry, error) {
		if there != nil {
			out = Asked{Request: there.ID, Due: there.Created}
			return nil, nil
		}
		out = Asked{Due: due}
		var gifts []*job.Given
		if out.Done, gifts, err = runnable(tx, jobs, seen, params, now); err != nil {
			return nil, err
		}

		of := jobs[0]
		if len(jobs) > 1 {
			of = 0
		}
		out.Request, err = tx.InsertRequest("run", key, digest, of, due)
		if err != nil {
			return nil, err
		}
		return e.insertAsked(ctx, tx, out, nil, gifts, seen, now)
	})
	if err == nil {
		e.wake()
		e.refusedOf(out.Done)
	}
	return out, e.refused(err)
}

// refusedOf counts refusals by limits.
func (e *Editor) refusedOf(done []Done) {
	for i := range done {
		e.refused(done[i].Err)
	}
}

// runnable checks which jobs can have another run with these values of parameters, and counts the
// runs against the limits of their apps. It returns what each run is given. If there is only one
// job, its refusal is the error.
func runnable(
	tx *sql.Tx, jobs []int64, seen map[int64]*trip.Seen, params map[string]job.Value, now job.Micros,
) ([]Done, []*job.Given, error) {
	done := runnableOf(jobs, seen)
	gifts := give(done, seen, params)
	if err := limitRuns(tx, done, seen, now); err != nil {
		return nil, nil, err
	}
	if len(done) == 1 && done[0].Err != nil {
		return nil, nil, done[0].Err
	}
	return done, gifts, nil
}

// runnableOf checks which jobs exist and can be read.
func runnableOf(jobs []int64, seen map[int64]*trip.Seen) []Done {
	done := make([]Done, len(jobs))
	for i, id := range jobs {
		s := seen[id]
		done[i] = Done{ID: id, Result: job.BulkChanged}
		if s == nil || s.Deleted {
			done[i].Result, done[i].Err = job.BulkRefused, fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		} else if _, err := job.DecodeSpec(s.Text); err != nil {
			done[i].Result, done[i].Err = job.BulkRefused, job.Problems{{Field: "job", Text: problem.Of(err)}}
		}
	}
	return done
}

// insertAsked writes the runs of a request and all audit lines except the last, which it returns.
// dues has the due time of each run; nil: all runs have the due time of the request. With dues,
// the runs have the kind Backfill, so they take turns with the schedule. Manual runs would not do:
// two manual runs of one job cannot wait for each other, so one might end skipped. given has what
// each run is given; nil: nothing.
func (e *Editor) insertAsked(
	ctx context.Context, tx *sql.Tx, a Asked, dues []job.Micros, given []*job.Given, seen map[int64]*trip.Seen,
	now job.Micros,
) (*job.Entry, error) {
	id := e.Session.Mint(len(a.Done))
	var runs []trip.Run
	var lines []*job.Entry
	for i := range a.Done {
		d := &a.Done[i]
		if d.Result != job.BulkChanged {
			continue
		}
		s := seen[d.ID]
		d.Version, d.Changes = s.Version, s.Changes

		kind, due, what := trip.Manual, a.Due, ""
		if dues != nil {
			kind, due = trip.Backfill, dues[i]
		}
		if due != now {
			what = "once more what was due at " + due.String()
		}

		var gift *job.Given
		if given != nil {
			gift = given[i]
		}
		runs = append(runs, trip.Run{
			Launch: trip.Launch{Run: id + int64(i)}, JobID: d.ID, AppID: s.AppID, Version: s.Version, Kind: kind,
			Request: a.Request, Attempt: 1, Given: gift, Due: due, DueNow: now, Hash: s.Hash,
		})
		if gift != nil && gift.Params != nil {
			what = strings.TrimPrefix(what+withParams(gift.Params), " ")
		}
		lines = append(lines, &job.Entry{
			At: now, Actor: job.ActorOf(ctx), Action: job.ActionRun, Kind: job.KindJob,
			Ref: d.ID, App: s.App, Name: s.Name, Reason: cutReason(what),
		})
	}

	if len(lines) == 0 {
		return nil, nil
	}

	last := len(lines) - 1
	if err := tx.InsertAudits(lines[:last]); err != nil {
		return nil, err
	}

	return lines[last], trip.Insert(tx, trip.NoOwner, runs)
}

// ask makes a request under an idempotency key. If the same request was made with this key before,
// do gets the earlier request. If not, do gets nil.
func (e *Editor) ask(
	ctx context.Context, key string, digest [32]byte, do func(*sql.Tx, *sql.Request) (*job.Entry, error),
) error {
	for try := 1; ; try++ {
		err := e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
			there, err := asked(tx, key, digest)
			if err != nil {
				return nil, err
			}
			return do(tx, there)
		})
		if !errors.Is(err, sql.ErrExists) || try == tries {
			return err
		}
		// Another request has just used the same key.
	}
}

// asked returns the request with a key, or nil.
func asked(tx *sql.Tx, key string, digest [32]byte) (*sql.Request, error) {
	if key == "" {
		return nil, nil
	}
	r, err := tx.LockRequest(key)
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return nil, nil
	case err == nil && r.Digest != digest:
		return nil, job.ErrKeyReused
	}
	return &r, err
}

// askedFor returns the digest of a request under an idempotency key. It includes the caller of the
// API. Embedding programs all count as one caller, on any of their nodes.
func askedFor(ctx context.Context, format string, args ...any) [32]byte {
	what := fmt.Appendf(nil, format, args...)
	if caller := job.ActorOf(ctx).Caller; caller != "" {
		what = fmt.Appendf(what, " for %s", caller)
	}
	return sha256.Sum256(what)
}

// Kill requests that an executing run be killed, on any node. sql.ErrNotFound means that the run is
// not executing. Kill may be repeated.
func (e *Editor) Kill(ctx context.Context, l trip.Launch) error {
	return e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		of, err := trip.NameOf(tx, l)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", l, err)
		}

		executes, err := trip.Kill(tx, l)
		if err == nil && !executes {
			err = fmt.Errorf("run %s: %w", l, sql.ErrNotFound)
		}
		return &job.Entry{
			At: e.Session.Now(), Action: job.ActionKill, Kind: job.KindJob, Ref: of.JobID, App: of.App, Name: of.Name,
			Reason: "run " + job.RunID(l.Run),
		}, err
	})
}
