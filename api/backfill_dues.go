package api

import (
	"context"
	"errors"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// The states of due times of a backfill. A due time with a run shows the outcome or state of the
// run.
const (
	dueWaiting   = "waiting"
	dueLeftOut   = "left_out"
	duePlanned   = "planned"
	dueCancelled = "cancelled"
	dueNoRecord  = "no_record"
)

// listBackfillDues: GET /api/v1/backfills/{id}/dues
func (s *Server) listBackfillDues(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	state, limit, after := q.word(backfillState), q.limit(), job.Micros(0)
	if c := q.cursor("backfill-dues"); c != nil {
		after = c.Due
	}
	if err := q.err(); err != nil {
		return err
	}

	id, err := backfillID(r)
	if err != nil {
		return err
	}
	b, err := trip.BackfillOf(s.cfg.DB.Reader(r.Context()), id)
	if errors.Is(err, sql.ErrNotFound) {
		return noBackfill(idText(id))
	}
	if err != nil {
		return err
	}

	after = max(after, b.First-1)
	list := s.allDues
	if state != "" {
		list = s.someDues
	}
	items, err := list(r.Context(), &b, state, after, limit+1)
	if err != nil {
		return err
	}

	p := view.Page[view.BackfillDue]{Items: items}
	if len(items) > limit {
		p.Items = items[:limit]
		last := job.MicrosOf(items[limit-1].Due)
		p.Next = (&cursor{list: "backfill-dues", RunPlace: read.RunPlace{Due: last}}).String()
	}
	return answer(w, http.StatusOK, p)
}

// allDues lists due times of the job's current definition, because the backfill uses this
// definition.
func (s *Server) allDues(ctx context.Context, b *trip.BackfillRow, _ string, after job.Micros,
	limit int) ([]view.BackfillDue, error) {
	dues, err := s.backfillDues(ctx, b, after, limit)
	if err != nil {
		return nil, err
	}

	runs, err := s.cfg.DB.BackfillRuns(ctx, b, dues)
	if err != nil {
		return nil, err
	}

	var succeeded map[job.Micros]bool
	if b.Missing {
		if succeeded, err = trip.Succeeded(s.cfg.DB.Reader(ctx), b.JobID, dues); err != nil {
			return nil, err
		}
	}

	items := []view.BackfillDue{}
	for _, due := range dues {
		if run, ok := runs[due]; ok {
			items = append(items, viewBackfillRun(ctx, &run))
		} else {
			items = append(items, view.BackfillDue{Due: due.Time(), State: unstarted(b, due, succeeded[due])})
		}
	}
	return items, nil
}

// someDues lists either the failed due times, or the due times that have not ended.
func (s *Server) someDues(ctx context.Context, b *trip.BackfillRow, state string, after job.Micros,
	limit int) ([]view.BackfillDue, error) {
	runs, err := s.cfg.DB.BackfillRunsIn(ctx, b, state == "failed", after, limit)
	items := []view.BackfillDue{}
	for i := range runs {
		items = append(items, viewBackfillRun(ctx, &runs[i]))
	}
	return items, err
}

// backfillDues computes the next due times of a backfill after an instant.
func (s *Server) backfillDues(ctx context.Context, b *trip.BackfillRow, after job.Micros,
	limit int) (dues []job.Micros, err error) {
	j, err := s.cfg.DB.Job(ctx, b.JobID)
	if err != nil {
		return nil, err
	}
	if j.SpecErr != nil {
		return nil, unreadable.problem("Replace the whole definition of job %d with PUT.", j.ID)
	}

	calendars, err := s.calendarsOf(ctx, &j.Spec)
	if err != nil {
		return nil, err
	}

	err = job.Compute(ctx, job.DefiningWork, func(w *job.Work) error {
		schedule, err := j.Spec.Compile(calendars...)
		if err != nil {
			return err
		}

		dues, schedule = nil, w.On(schedule)
		for at := after.Time(); len(dues) < limit; {
			due, ok := schedule.Next(at)
			if !ok || job.MicrosOf(due) > b.Last {
				break
			}
			dues, at = append(dues, job.MicrosOf(due)), due
		}
		return nil
	})
	return dues, j.Spec.Explain(err, calendars)
}

// viewBackfillRun shows a due time that has a run. The job may have moved to another app since the
// run began. Then only readers of the earlier app see the run.
func viewBackfillRun(ctx context.Context, r *read.Run) view.BackfillDue {
	v := view.BackfillDue{Due: r.Due.Time(), State: dueWaiting}
	switch r.State {
	case trip.Ended:
		v.State = r.Outcome.String()
	case trip.Executing:
		v.State = running
	default:
		return v
	}
	if mayRead(ctx, r.App) {
		v.Run = viewOfRun(r)
	}
	return v
}

// unstarted says why a due time of a backfill has no run.
func unstarted(b *trip.BackfillRow, due job.Micros, succeeded bool) string {
	switch {
	case b.State == trip.Backfilling && b.NextDue != 0 && due >= b.NextDue:
		return duePlanned
	case succeeded:
		return dueLeftOut
	case b.State == trip.BackfillCancelled:
		return dueCancelled
	}
	return dueNoRecord
}
