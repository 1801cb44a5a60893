package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// viewBackfill shows a backfill with the name of its job and its counts. On an error it returns the
// view without the parts that could not be read.
func (s *Server) viewBackfill(ctx context.Context, b trip.BackfillRow) (view.Backfill, error) {
	names, unnamed := s.cfg.DB.JobNames(ctx, []int64{b.JobID})
	v, err := s.countedBackfill(ctx, b, names[b.JobID])
	return v, errors.Join(unnamed, err)
}

// countedBackfill shows a backfill with its counts. If counting fails, it returns the view without
// counts.
func (s *Server) countedBackfill(ctx context.Context, b trip.BackfillRow, of read.JobName) (view.Backfill, error) {
	v := view.Backfill{
		ID: strconv.FormatInt(b.ID, 10), JobID: strconv.FormatInt(b.JobID, 10), Job: of.Name, App: of.App,
		From: b.First.Time(), To: b.Last.Time(),
		Parallel: b.Parallel, Missing: b.Missing,
		State: string(b.State), Total: b.Total, Started: b.Planned, LeftOut: b.LeftOut, Outcomes: map[string]int64{},
		Who:     b.Who,
		Params:  paramsGiven(b.Given),
		Created: b.Created.Time(), Updated: b.Updated.Time(),
	}

	v.Health = view.BackfillUnknown
	outcomes, nothing, err := s.cfg.DB.BackfillOutcomes(ctx, &b)
	if err != nil {
		return v, err
	}

	for o, n := range outcomes {
		v.Outcomes[o.String()] = n
		v.Ended += n
		if o != job.Succeeded {
			v.Failed += n
		}
	}

	v.Failed -= nothing
	v.Health = backfillHealth(b.State, v.Failed)
	return v, nil
}

func paramsGiven(text string) map[string]job.Value {
	if g := job.ParseGiven(text); g != nil {
		return g.Params
	}
	return nil
}

// backfillHealth sums up the state of a backfill in one word.
func backfillHealth(state trip.BackfillState, failed int64) view.BackfillHealth {
	switch {
	case state == trip.BackfillCancelled:
		return view.BackfillCancelled
	case state == trip.Backfilling && failed > 0:
		return view.BackfillFailing
	case state == trip.Backfilling:
		return view.BackfillRunning
	case failed > 0:
		return view.BackfillFailed
	}
	return view.BackfillSucceeded
}

// startBackfill: POST /api/v1/jobs/{id}/backfill
func (s *Server) startBackfill(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	var from, to *time.Time
	parallel, missing := 1, (*bool)(nil)
	f.instant("from", &from)
	f.instant("to", &to)
	f.count("parallel", &parallel, job.MaxParallel)
	f.boolean("missing", &missing)
	var params map[string]job.Value
	f.values("params", &params)
	if from == nil && body["from"] == nil {
		f.wrong("from", problem.Missing.Advise("give a time such as 2027-01-31T03:00:00Z"))
	}

	if to == nil {
		to = new(time.Time) // now, by MySQL's clock: the client's clock may be ahead
	}
	if err := f.done(); err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	b, err := e.Backfill(r.Context(), id,
		edit.Range{From: *from, To: *to, Parallel: parallel, Missing: missing != nil && *missing, Params: params}, key)
	if err != nil {
		return lookAt(err, "GET /api/v1/backfills?job_id=%d shows whether it has begun.", id)
	}

	v, err := s.viewBackfill(r.Context(), b)
	if err != nil && b.State != trip.Backfilling {
		// The backfill has already ended, so this is a repeated request.
		return lookAt(&sql.Unknown{Err: err}, "The backfill has begun: GET /api/v1/backfills/%s shows its progress.", v.ID)
	}

	w.Header().Set("Location", "/api/v1/backfills/"+v.ID)
	return answer(w, http.StatusAccepted, v)
}

// countFor limits the time in which a list of backfills counts ended runs.
const countFor = 3 * time.Second

// listBackfills: GET /api/v1/backfills
func (s *Server) listBackfills(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	limit, before := q.limit(), int64(0)
	ofJob := q.number(ofJobParam)
	if c := q.cursor("backfills"); c != nil {
		before = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, err := s.cfg.DB.Backfills(r.Context(), ofJob, before, auth.Of(r.Context()).Sees(), limit+1)
	if err != nil {
		return err
	}

	p := view.Page[view.Backfill]{Items: []view.Backfill{}}
	rows, p.Next = oneMore("backfills", rows, limit, func(r *trip.BackfillRow) int64 { return r.ID })

	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].JobID
	}
	names, err := s.cfg.DB.JobNames(r.Context(), ids)
	if err != nil {
		return err
	}

	ctx, stop := context.WithTimeout(r.Context(), countFor)
	defer stop()
	for _, b := range rows {
		v, err := s.countedBackfill(ctx, b, names[b.JobID])
		if err != nil && !sql.IsAway(err) {
			return err
		}
		// v is listed even if its counts are missing: one large backfill must not hide the others.
		p.Items = append(p.Items, v)
	}

	return answer(w, http.StatusOK, p)
}

// backfillID returns the backfill id in the path.
func backfillID(r *http.Request) (int64, error) { return pathID(r, noBackfill) }

func noBackfill(id string) error {
	return notFound.problem("There is no backfill %q; GET /api/v1/backfills lists them.", cutShort(id))
}

// getBackfill: GET /api/v1/backfills/{id}
func (s *Server) getBackfill(w http.ResponseWriter, r *http.Request) error {
	id, err := backfillID(r)
	if err != nil {
		return err
	}
	return s.showBackfill(w, r, id, false, func(ctx context.Context, id int64) (trip.BackfillRow, error) {
		return trip.BackfillOf(s.cfg.DB.Reader(ctx), id)
	})
}

// cancelBackfill: POST /api/v1/backfills/{id}/cancel
func (s *Server) cancelBackfill(w http.ResponseWriter, r *http.Request) error {
	id, err := backfillID(r)
	if err != nil {
		return err
	}
	if err := readNothing(r); err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	return s.showBackfill(w, r, id, true, e.CancelBackfill)
}

func (s *Server) showBackfill(w http.ResponseWriter, r *http.Request, id int64, changes bool,
	get func(context.Context, int64) (trip.BackfillRow, error)) error {
	look := func(err error) error { return lookAt(err, "GET /api/v1/backfills/%d shows its state.", id) }

	b, err := get(r.Context(), id)
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return noBackfill(fmt.Sprint(id))
	case err != nil:
		return look(err)
	}

	v, err := s.viewBackfill(r.Context(), b)
	switch {
	case err != nil && changes: // the change is committed
		return look(&sql.Unknown{Err: err})
	case err != nil:
		return err
	}

	return answer(w, http.StatusOK, v)
}
