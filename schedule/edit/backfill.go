package edit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Range is a request for a backfill. The backfill covers the due times from From to To, both
// included, and runs Parallel of them at once. A zero To is now. With Missing, due times that have
// a successful run are left out. Params are given to each run.
type Range struct {
	From, To time.Time
	Parallel int
	Missing  bool
	Params   map[string]job.Value
}

// Backfill starts the due times of a job in a range. A repeated request with the same key returns
// the backfill of the first request. The key may be empty.
//
// Backfill writes a cursor and no runs. Claims insert the runs, as they do for a schedule. If we
// die before the commit, there is no backfill. If we die after the commit, claims find the
// backfill.
func (e *Editor) Backfill(ctx context.Context, id int64, want Range, key string) (trip.BackfillRow, error) {
	now := e.Session.Now()
	end := int64(0) // stays zero if To is zero: a repeated request must have the same digest
	if want.To.IsZero() {
		want.To = now.Time()
	} else {
		end = want.To.UnixMicro()
	}
	if err := job.CheckBackfill(want.From, want.To, want.Parallel, now.Time()); err != nil {
		return trip.BackfillRow{}, err
	}

	digest := askedFor(ctx, "backfill %d %d %d %d %t%s", id, want.From.UnixMicro(), end, want.Parallel, want.Missing,
		withParams(want.Params))
	seen, err := trip.SeeJobs(e.DB.Reader(ctx), []int64{id})
	if err != nil {
		return trip.BackfillRow{}, err
	}

	planned, refused := e.planBackfill(ctx, id, seen[id], want, now)

	var out trip.BackfillRow
	err = e.ask(ctx, key, digest, func(tx *sql.Tx, there *sql.Request) (line *job.Entry, err error) {
		switch out = planned; {
		case there != nil:
			out, err = trip.BackfillOf(tx, there.ID)
			return nil, err
		case refused != nil:
			return nil, refused
		}
		if err := admitBackfill(tx, seen[id].App, now); err != nil {
			return nil, err
		}
		if out.ID, err = tx.InsertRequest("backfill", key, digest, id, now); err != nil {
			return nil, err
		}

		s := seen[id]
		line = &job.Entry{
			At: now, Action: job.ActionBackfill, Kind: job.KindJob, Ref: id, App: s.App, Name: s.Name,
			Became: backfillText(&out),
		}
		return line, trip.InsertBackfill(tx, &out)
	})
	if err == nil {
		e.wake()
	}
	return out, e.refused(err)
}

// planBackfill computes the number of due times in a range, and the first one.
func (e *Editor) planBackfill(
	ctx context.Context, id int64, seen *trip.Seen, want Range, now job.Micros,
) (b trip.BackfillRow, err error) {
	if seen == nil || seen.Deleted {
		return b, fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
	}
	v := &view{Change: &Change{Action: recalendar, ID: id}, seen: seen}
	if v.open(now); v.problem != nil {
		return b, job.Problems{{Field: "job", Text: problem.Of(v.problem)}}
	}

	if v.def.Manual {
		return b, job.Wrong("job", problem.ManualDueTimes)
	}
	if v.def.Delay != 0 || v.def.After != nil {
		return b, job.Wrong("job", problem.NoDueTimes)
	}

	params, err := v.def.CheckParams(want.Params)
	if err != nil {
		return b, err
	}
	calendars, err := e.calendarsOf(ctx, []*view{v}, batch{})
	if err != nil {
		return b, err
	}

	b = trip.BackfillRow{
		JobID: id, First: job.MicrosOf(want.From), Last: job.MicrosOf(want.To),
		Parallel: want.Parallel, Missing: want.Missing, Given: (&job.Given{Params: params}).Text(),
		State: trip.Backfilling, Who: job.ActorOf(ctx).Who, Created: now, Updated: now,
	}

	b.DoneTo = b.First - 1
	err = job.Compute(ctx, job.DefiningWork, func(work *job.Work) error {
		s, err := compile(work, v.def, calendars)
		if err != nil {
			return job.Problems{{Field: "job", Text: problem.Of(err)}}
		}
		b.Total = s.Count(b.DoneTo.Time(), b.Last.Time())
		if first, ok := s.Next(b.DoneTo.Time()); ok {
			b.NextDue = job.MicrosOf(first)
		}
		return nil
	})
	switch {
	case errors.Is(err, job.ErrTooExpensive):
		return b, job.Wrong("from", problem.BackfillExpensive)
	case err != nil:
		return b, err
	case b.NextDue == 0 || b.NextDue > b.Last:
		return b, job.Wrong("from", problem.BackfillEmpty, b.First, b.Last)
	case b.Total > job.MaxBackfillDues:
		return b, job.Wrong("to", problem.BackfillTooLarge, b.Total, job.MaxBackfillDues)
	}
	return b, nil
}

// backfillText returns the audit text of a backfill.
func backfillText(b *trip.BackfillRow) string {
	text := fmt.Sprintf(`{"backfill":"%d","from":"%s","to":"%s","parallel":%d,"missing":%t`,
		b.ID, b.First, b.Last, b.Parallel, b.Missing)
	if b.Given != "" {
		text += "," + strings.TrimPrefix(b.Given, "{") // its params
		return text
	}
	return text + "}"
}

// CancelBackfill ends a backfill: its waiting runs never start, and its executing runs have no
// retries. It need not find these runs: each start locks the job and reads the cancellation, and
// this transaction locks the job, too.
func (e *Editor) CancelBackfill(ctx context.Context, id int64) (trip.BackfillRow, error) {
	found, err := trip.BackfillOf(e.DB.Reader(ctx), id)
	if err != nil {
		return found, err
	}
	seen, err := trip.SeeJobs(e.DB.Reader(ctx), []int64{found.JobID})
	if err != nil {
		return found, err
	}

	for try, pause := 1, againPause; ; try, pause = try+1, 2*pause {
		b, window, err := e.cancel(ctx, found, seen[found.JobID])
		if err == nil {
			e.wake()
			return b, e.passed(ctx, window)
		}
		if !errors.Is(err, ErrLocked) || try == tries {
			return b, err
		}
		select {
		case <-ctx.Done():
			return b, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// cancel makes one try of CancelBackfill. window is the end of the spawn window of the job's
// running run.
func (e *Editor) cancel(
	ctx context.Context, found trip.BackfillRow, seen *trip.Seen,
) (b trip.BackfillRow, window job.Micros, err error) {
	now := e.Session.Now()
	err = e.DB.Record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		window = 0
		jobs, err := trip.LockToEdit(tx, []int64{found.JobID})
		if err != nil {
			return nil, err
		}
		j := jobs[found.JobID]
		if j == nil && seen != nil {
			return nil, ErrLocked
		}

		if b, err = trip.LockBackfill(tx, found.ID); err != nil {
			return nil, err
		}
		if j != nil && j.Running != 0 {
			if window, err = trip.SpawnBy(tx, []int64{j.Running}, now+job.SpawnWindow); err != nil {
				return nil, err
			}
		}

		if b.State != trip.Backfilling {
			return nil, nil
		}

		b.State, b.NextDue, b.Updated = trip.BackfillCancelled, 0, now
		if err := trip.MoveBackfills(tx, []trip.BackfillRow{b}); err != nil {
			return nil, err
		}
		// Wake the waiting runs of the job: they are judged again, and the backfill's runs end.
		if _, err := trip.WakeAll(tx, []int64{b.JobID}, now); err != nil {
			return nil, err
		}
		line := &job.Entry{
			At: now, Action: job.ActionCancel, Kind: job.KindJob, Ref: b.JobID, Was: backfillText(&found),
		}
		if seen != nil {
			line.App, line.Name = seen.App, seen.Name
		}
		return line, nil
	})
	return b, window, err
}
