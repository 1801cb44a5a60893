package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// The states of a run.
const (
	running = "running"
	ended   = "ended"
)

func viewOfRun(r *read.Run) *view.Run {
	v := &view.Run{
		ID: job.RunID(r.ID), JobID: strconv.FormatInt(r.JobID, 10), Job: r.Job, App: r.App, Due: r.Due.Time(),
		Started: instant(r.Started), Ended: instant(r.Ended), Attempt: r.Attempt, Final: r.Final, State: running,
		ReasonCode: string(r.Reason.Code), Reason: r.Reason.Text, ExitCode: r.ExitCode, HTTPStatus: r.Status, Signal: r.Signal,
		Node: r.Node, Session: r.Session.String(),
		Trigger: string(r.Kind), OutputBytes: r.Output.Bytes,
		OutputTruncated: r.Output.Bytes > r.Kept, OutputRemoved: outputRemoved(r),
	}

	if r.Started != 0 {
		ms := float64(r.Lateness) / 1000
		v.LatenessMS = &ms
	}
	if r.Count > 1 {
		v.Count, v.Until = r.Count, instant(r.Until)
	}
	if !r.Executing {
		v.State, v.Outcome = ended, r.Outcome
	}
	if r.Request > 0 { // a negative request is the run that this run follows
		v.Request = strconv.FormatInt(r.Request, 10)
	}

	v.Upstream = upstreamView(r.Given)
	if r.Given != nil {
		v.Params = r.Given.Params
	}
	return v
}

// paramsOf returns the values of all parameters of a run: the given values, the defaults of the
// run's version, and the names of secrets. If they cannot be computed, it returns only the given
// values.
func (s *Server) paramsOf(ctx context.Context, r *read.Run) (map[string]job.Value, error) {
	var given map[string]job.Value
	if r.Given != nil {
		given = r.Given.Params
	}
	if r.Count > 1 {
		return given, nil // no run
	}

	versions, err := s.cfg.DB.Versions(ctx, r.JobID, int64(r.Version), 1)
	if err != nil || len(versions) == 0 || versions[0].SpecErr != nil || len(versions[0].Spec.Params) == 0 {
		return given, err
	}
	spec := &versions[0].Spec
	values, err := spec.ParamsOf(r.Given, r.Due)
	if err != nil {
		return given, nil
	}

	for name, secret := range spec.ParamSecrets() {
		values[name], _ = job.ValueOf("{{secret." + string(secret) + "}}")
	}
	return values, nil
}

// upstreamView shows the run that a run follows; nil: none.
func upstreamView(g *job.Given) *view.Upstream {
	if g == nil || g.Upstream == nil {
		return nil
	}
	u := g.Upstream
	return &view.Upstream{Job: u.Job, Run: job.RunID(u.Run), Outcome: u.Outcome, Scheduled: u.Scheduled.Time()}
}

// httpView shows the response to the request of a run; nil: it is not known.
func httpView(r *read.Run) *view.HTTPAnswer {
	a := r.Output.Answer
	if a == nil {
		return nil
	}
	ms := func(micros int64) float64 { return float64(micros) / 1000 }
	return &view.HTTPAnswer{
		Status: a.Status, Proto: a.Proto, Headers: a.Headers,
		ConnectedMS: ms(a.Connected), FirstByteMS: ms(a.FirstByte), CompleteMS: ms(a.Complete),
	}
}

// outputRemoved reports whether the output of a run was removed because its app reached its limit.
// In all other cases at least a part of the output is kept.
func outputRemoved(r *read.Run) bool { return !r.Executing && r.Output.Bytes > 0 && r.Kept == 0 }

// runFilter reads the parameters that all lists of runs share.
func runFilter(q *query) read.RunFilter {
	from, to := q.between(dueFromParam, dueBeforeParam)
	return read.RunFilter{
		Outcomes: q.outcomes(endedParam), Kind: job.RunKind(q.word(triggerParam)),
		From: job.MicrosOf(from), To: job.MicrosOf(to),
	}
}

// onlyJob returns the id of the job that the parameter job_id or job names; 0 if none is given.
func (s *Server) onlyJob(ctx context.Context, q *query) (int64, error) {
	id, named := q.number(ofJobParam), q.text(jobNamedParam)
	if named == "" {
		return id, nil
	}

	app, name, _ := strings.Cut(named, "/")
	switch {
	case id != 0:
		q.wrong(jobNamedParam.name, problem.NotWith.Advise("give only one of them"), ofJobParam.name)
	case app == "" || name == "":
		q.wrong(jobNamedParam.name, problem.NotAJobName, cutShort(named))
	}
	if q.problems != nil {
		return 0, nil // the caller refuses the request
	}

	none := notFound.problem("There is no job %q, and there was none.", cutShort(named))
	if !mayRead(ctx, app) {
		return 0, none
	}
	id, err := s.cfg.DB.JobOnceNamed(ctx, app, name)
	if err == sql.ErrNotFound {
		return 0, none
	}
	return id, err
}

// listRuns: GET /api/v1/runs
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := runFilter(q)
	f.App, f.Node = q.text(ofAppParam), q.text(onNodeParam)
	var err error
	if f.JobID, err = s.onlyJob(r.Context(), q); err != nil {
		return err
	}

	list := "runs"
	if f.JobID != 0 {
		list = "runs-of-job" // it has another order
	}

	state, limit, after := q.word(runStateParam), q.limit(), q.cursor(list)
	if err := q.err(); err != nil {
		return err
	}

	// Executing runs have no outcome yet.
	p, err := s.runs(r.Context(), list, f, state != ended && f.Outcomes == nil, state != running, limit, after)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, p)
}

// history: GET /api/v1/jobs/{id}/history. A deleted job keeps its history.
func (s *Server) history(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := runFilter(q)
	limit, after := q.limit(), q.cursor("history")
	if err := q.err(); err != nil {
		return err
	}

	id, err := jobID(r)
	if err != nil {
		return err
	}
	if _, err := s.cfg.DB.Job(r.Context(), id); err != nil {
		return err
	}

	f.JobID = id
	p, err := s.runs(r.Context(), "history", f, false, true, limit, after)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, p)
}

// runs lists a page of runs: executing runs first, then ended runs, each newest first. No run is
// left out. A run that ends between two pages may be listed twice, on the first page as executing.
func (s *Server) runs(ctx context.Context, list string, f read.RunFilter, withRunning, withEnded bool, limit int,
	after *cursor) (view.Page[*view.Run], error) {
	f.Apps = auth.Of(ctx).Sees()
	var rows []read.Run
	if withRunning && (after == nil || after.executing) {
		f.Limit = limit + 1 // one more row shows whether there is a next page
		if after != nil {
			f.After = &after.RunPlace
		}
		var err error
		if rows, err = s.cfg.DB.ExecutingRuns(ctx, f); err != nil {
			return view.Page[*view.Run]{}, err
		}
	}

	p := view.Page[*view.Run]{Items: []*view.Run{}}
	if len(rows) > limit {
		rows = rows[:limit]
		p.Next = runCursor(list, true, rows[limit-1].Place())
	} else if withEnded {
		f.Limit, f.After = max(1, limit-len(rows)), nil
		if after != nil && !after.executing {
			f.After = &after.RunPlace
		}

		past, err := s.cfg.DB.RunPage(ctx, f)
		if err != nil {
			return view.Page[*view.Run]{}, err
		}
		if rows = appendEnded(rows, past.Rows); past.Next != nil {
			p.Next = runCursor(list, false, past.Next)
		}

		if len(rows) > limit { // the page also has executing runs
			rows = rows[:limit]
			last := &rows[limit-1]
			p.Next = runCursor(list, last.Executing, last.Place())
		}
	}

	for i := range rows {
		p.Items = append(p.Items, viewOfRun(&rows[i]))
	}

	return p, nil
}

func runCursor(list string, executing bool, at *read.RunPlace) string {
	return (&cursor{list: list, executing: executing, RunPlace: *at}).String()
}

// appendEnded adds ended runs. It leaves out runs that rows already holds as executing.
func appendEnded(rows, past []read.Run) []read.Run {
	seen := make(map[int64]bool, len(rows))
	for i := range rows {
		seen[rows[i].ID] = true
	}

	for _, r := range past {
		if !seen[r.ID] {
			rows = append(rows, r)
		}
	}

	return rows
}

func noRun(text string) error { return notFound.problem("There is no run %q.", cutShort(text)) }

// oneRun reads the run that the path names.
func (s *Server) oneRun(r *http.Request) (read.Run, error) {
	text, err := param(r, "id")
	if err != nil {
		return read.Run{}, err
	}

	none := noRun(text)
	id, err := job.ParseRunID(text)
	if err != nil {
		return read.Run{}, none
	}

	run, err := s.cfg.DB.Run(r.Context(), id)
	if err == sql.ErrNotFound {
		return read.Run{}, none
	}
	return run, err
}

// getRun: GET /api/v1/runs/{id}
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	run, err := s.oneRun(r)
	if err != nil {
		return err
	}

	o := runOutput{run: run}
	if o.missing, err = s.missingParts(r.Context(), &run); err != nil {
		return err
	}

	v := viewOfRun(&run)
	if v.Params, err = s.paramsOf(r.Context(), &run); err != nil {
		return err
	}
	v.OutputTruncated = o.truncated()
	if !run.Executing {
		text := run.Output.Text()
		if outputRemoved(&run) {
			text = removedText(&run)
		}
		v.Output = &text
	}

	return answer(w, http.StatusOK, v)
}

// killRun: POST /api/v1/runs/{id}/kill. The answer comes once the request is stored. The run's node
// reads the request afterwards.
func (s *Server) killRun(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}

	run, err := s.oneRun(r)
	if err != nil {
		return err
	}

	if !run.Executing {
		return hasEnded.problem("It ended %s at %s.", run.Outcome, run.Ended)
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	if err := e.Kill(r.Context(), run.Launch); errors.Is(err, sql.ErrNotFound) {
		return hasEnded.problem("It ended before it could be killed.")
	} else if err != nil {
		return lookAt(err, "GET /api/v1/runs/%s shows its state. You can safely repeat the request.",
			job.RunID(run.ID))
	}

	return answer(w, http.StatusAccepted, viewOfRun(&run))
}
