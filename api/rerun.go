package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// reruns are the due times that run again.
type reruns struct {
	rows    []read.Run
	next    *read.RunPlace
	refused []view.RerunItem // named ids that cannot run again
	dry     bool
}

// bulkRerun: POST /api/v1/bulk/rerun
//
// The answer is kept in the transaction of the change: see Server.bulk.
func (s *Server) bulkRerun(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}

	found, err := s.findReruns(r)
	if err != nil {
		return err
	}
	if found.dry {
		return answer(w, http.StatusOK, found.view(edit.Asked{}))
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	past := make([]edit.Past, len(found.rows))
	for i := range found.rows {
		past[i] = edit.Past{Run: found.rows[i].ID, JobID: found.rows[i].JobID, Due: found.rows[i].Due}
	}
	if len(past) == 0 {
		return answer(w, http.StatusOK, found.view(edit.Asked{}))
	}

	var asked edit.Asked
	answerKnown(r, http.StatusOK, func() (any, string) { return found.view(asked), "" })
	asked, err = e.Rerun(r.Context(), past, func(a edit.Asked) { asked = a })
	if err != nil {
		return lookAt(err, "GET /api/v1/audit shows what was requested. You can safely repeat the request if it had an %s.",
			keyHeader)
	}
	return answer(w, http.StatusOK, found.view(asked))
}

// findReruns reads the query and the runs that it selects.
func (s *Server) findReruns(r *http.Request) (*reruns, error) {
	q, p := newQuery(r), auth.Of(r.Context())
	from, to := q.between(dueFromParam, dueBeforeParam)
	f := read.RunFilter{
		JobID: q.number(ofJobParam), App: q.text(ofAppParam), Node: q.text(onNodeParam), Outcomes: q.outcomes(rerunOutcome),
		From: job.MicrosOf(from), To: job.MicrosOf(to),
		Last: true, Limit: int(q.number(rerunLimit)), Apps: p.In(operator),
	}
	if f.Outcomes == nil {
		f.Outcomes = []job.Outcome{job.Failed, job.TimedOut, job.Lost}
	}
	if c := q.cursor("reruns"); c != nil {
		f.After = &c.RunPlace
	}

	dry := q.word(dryRunParam) == "true"
	filters := []parameter{
		ofJobParam, ofAppParam, onNodeParam, rerunOutcome, dueFromParam, dueBeforeParam, rerunLimit, pageParam,
	}
	ids := q.onlyIDs(rerunIDs, filters)
	if ids == nil && q.given(dueFromParam.name) == "" {
		q.wrong(dueFromParam.name, problem.Missing.Advise("give a time such as 2027-01-31T03:00:00Z, or ids"))
	}
	if err := q.err(); err != nil {
		return nil, err
	}

	if f.App != "" && !p.MayIn(operator, f.App) {
		return nil, forbid(p, "This needs the role %s in app %s", operator, cutShort(f.App))
	}
	if ids != nil {
		out, err := s.namedReruns(r.Context(), ids, dry)
		if err != nil {
			return nil, err
		}
		return out, s.refuseMoved(r.Context(), out)
	}

	page, err := s.cfg.DB.RunPage(r.Context(), f)
	if err != nil {
		return nil, err
	}
	out := &reruns{rows: page.Rows, next: page.Next, dry: dry}
	return out, s.refuseMoved(r.Context(), out)
}

// refuseMoved refuses runs whose job has moved to an app in which the caller is no operator. To
// this caller the job looks deleted, as in all other requests. The editor refuses deleted jobs.
func (s *Server) refuseMoved(ctx context.Context, x *reruns) error {
	p := auth.Of(ctx)
	if p.In(operator) == nil {
		return nil
	}

	ids := make([]int64, len(x.rows))
	for i := range x.rows {
		ids[i] = x.rows[i].JobID
	}
	apps, err := s.cfg.DB.AppsOfJobs(ctx, ids)
	if err != nil {
		return err
	}

	x.rows = slices.DeleteFunc(x.rows, func(run read.Run) bool {
		app, living := apps[run.JobID]
		moved := living && !p.MayIn(operator, app)
		if moved {
			x.refuse(&run, problem.JobDeleted.Of())
		}
		return moved
	})
	return nil
}

// namedReruns reads runs by id. Each id is accepted or refused on its own. A run that the caller
// cannot see looks like a missing run.
func (s *Server) namedReruns(ctx context.Context, ids []int64, dry bool) (*reruns, error) {
	rows, err := s.cfg.DB.RunsByID(ctx, ids)
	if err != nil {
		return nil, err
	}

	last, err := trip.LastRuns(s.cfg.DB.Reader(ctx), ids)
	if err != nil {
		return nil, err
	}

	p, out := auth.Of(ctx), &reruns{dry: dry}
	for _, id := range ids {
		run, ok := rows[id]
		if !ok || !p.MayIn(viewer, run.App) {
			run = read.Run{ID: id}
			out.refuse(&run, problem.NoSuchRun.Of())
			continue
		}

		switch {
		case !p.MayIn(operator, run.App):
			out.refuse(&run, problem.RoleNeeded.Of(operator))
		case !run.Outcome.Wrong() && run.Outcome != job.Killed || run.Count > 1:
			out.refuse(&run, problem.RunDidNotFail.Of(run.Outcome))
		case !last[id]:
			out.refuse(&run, problem.RunFollowed.Of())
		default:
			out.rows = append(out.rows, run)
		}
	}

	return out, nil
}

func (x *reruns) refuse(run *read.Run, why problem.Text) {
	item := rerunItem(run)
	item.Result, item.Why = job.BulkRefused, &why
	x.refused = append(x.refused, item)
}

func rerunItem(r *read.Run) view.RerunItem {
	v := view.RerunItem{RunID: job.RunID(r.ID), Result: job.BulkChanged}
	if r.JobID != 0 {
		v.JobID, v.App, v.Name = strconv.FormatInt(r.JobID, 10), r.App, r.Job
		v.Due, v.Outcome = instant(r.Due), r.Outcome
	}
	return v
}

// view shows the result. For a dry run it shows what the request would do.
func (x *reruns) view(asked edit.Asked) *view.Rerun {
	v := &view.Rerun{DryRun: x.dry, Items: []view.RerunItem{}}
	for i := range x.rows {
		item := rerunItem(&x.rows[i])
		if !x.dry {
			if d := asked.Done[i]; d.Result != job.BulkChanged {
				why := whyNotAgain(d.Err).Cut(maxMessage)
				item.Result, item.Why = job.BulkRefused, &why
			}
		}

		if item.Result == job.BulkChanged {
			v.Started++
		} else {
			v.Refused++
		}
		v.Items = append(v.Items, item)
	}

	if !x.dry && v.Started > 0 {
		v.Request = strconv.FormatInt(asked.Request, 10)
	}
	v.Items, v.Refused = append(v.Items, x.refused...), v.Refused+len(x.refused)
	if x.next != nil {
		v.Next = runCursor("reruns", false, x.next)
	}
	return v
}

func whyNotAgain(err error) problem.Text {
	switch {
	case errors.Is(err, edit.ErrRanAgain):
		return problem.RunFollowed.Of()
	case errors.Is(err, sql.ErrNotFound):
		return problem.JobDeleted.Of()
	}
	return problem.Of(err)
}
