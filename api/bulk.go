package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// Limits: the jobs that one request changes, and the jobs and pages that a dry run counts.
const (
	maxBulk      = 200
	maxCounted   = 10_000
	countedPages = 100
)

// bulkPause: POST /api/v1/bulk/pause
func (s *Server) bulkPause(w http.ResponseWriter, r *http.Request) error {
	p, err := s.readPause(r)
	if err != nil {
		return err
	}
	return s.bulk(w, r, operator, &job.Bulk{Action: job.ActionPause, Pause: p})
}

// bulkResume: POST /api/v1/bulk/resume
func (s *Server) bulkResume(w http.ResponseWriter, r *http.Request) error {
	return s.bulkOf(w, r, operator, job.ActionResume)
}

// bulkRun: POST /api/v1/bulk/run
func (s *Server) bulkRun(w http.ResponseWriter, r *http.Request) error {
	return s.bulkOf(w, r, operator, job.ActionRun)
}

// bulkDelete: POST /api/v1/bulk/delete
func (s *Server) bulkDelete(w http.ResponseWriter, r *http.Request) error {
	return s.bulkOf(w, r, admin, job.ActionDelete)
}

func (s *Server) bulkOf(w http.ResponseWriter, r *http.Request, role auth.Role, action job.Action) error {
	if err := readNothing(r); err != nil {
		return err
	}
	return s.bulk(w, r, role, &job.Bulk{Action: action})
}

// bulk changes a page of the selected jobs in one transaction. It refuses a job that was changed
// after bulk read it. So it changes only jobs that still match and that the caller may change.
//
// The answer is stored in the same transaction. If we die after the commit, a repeated request with
// the same Idempotency-Key gets this answer. Without a key, repeating a pause, resume or deletion
// is harmless, but repeating a run starts the jobs again.
func (s *Server) bulk(w http.ResponseWriter, r *http.Request, role auth.Role, want *job.Bulk) error {
	q, err := readBulk(r, role)
	if err != nil {
		return err
	}

	if want.Action == job.ActionPause {
		now, err := s.now()
		if err != nil {
			return err
		}
		if err := want.Pause.Validate(job.MicrosOf(now)); err != nil {
			return err
		}
	}

	found, err := s.bulkJobs(r.Context(), q, role)
	if err != nil {
		return err
	}
	if q.dry {
		return s.tryBulk(w, r, q.JobFilter, want, found)
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	for i := range found.Rows {
		want.Jobs = append(want.Jobs, job.Seen{ID: found.Rows[i].ID, Changes: found.Rows[i].Changes})
	}

	answerKnown(r, http.StatusOK, func() (any, string) { return viewBulk(want, found), "" })
	if err := e.Bulk(r.Context(), want); err != nil {
		return lookAt(err, "GET /api/v1/audit shows what was changed. You can safely repeat the request if it had an %s.",
			keyHeader)
	}

	return answer(w, http.StatusOK, viewBulk(want, found))
}

// bulkQuery selects jobs by ids. If ids is nil, it selects them by the filter.
type bulkQuery struct {
	read.JobFilter
	ids []int64
	dry bool // only report what the request would do
}

// readBulk reads which jobs to change. A filter is limited to the apps where the caller has the
// role.
func readBulk(r *http.Request, role auth.Role) (*bulkQuery, error) {
	q := newQuery(r)
	f := jobFilter(q)
	f.Limit = int(q.number(bulkLimit))

	out := &bulkQuery{dry: q.word(dryRunParam) == "true", ids: q.ids(bulkIDs)}

	some := f.App != "" || f.Name != "" || f.Status != "" || f.Owner != "" || f.Group != "" || f.Calendar != "" ||
		f.Labels != nil
	every := q.word(allParam) == "true"
	if named := q.given(bulkIDs.name) != ""; named {
		for _, p := range slices.Concat(jobFilterParams, []parameter{allParam, bulkLimit, pageParam}) {
			if name := p.self().name; q.given(name) != "" {
				q.wrong(name, problem.NotWith.Advise("give only one of them"),
					problem.Shown(bulkIDs.name, bulkIDs.name+", which already selects the jobs"))
			}
		}
	} else if !some && !every && q.problems == nil {
		q.wrong(allParam.name, problem.EveryJob)
	}

	if c := q.cursor("jobs"); c != nil {
		f.After, f.Part = c.ID, c.part
	}
	if err := q.err(); err != nil {
		return nil, err
	}

	p := auth.Of(r.Context())
	if f.App != "" && !p.MayIn(role, f.App) {
		return nil, forbid(p, "This needs the role %s in app %s", role, cutShort(f.App))
	}

	f.Apps = p.In(role)
	out.JobFilter = f
	return out, nil
}

// bulkJobs are the jobs to change.
type bulkJobs struct {
	read.JobPage
	not []view.BulkItem // named ids of jobs that do not exist or that the caller may not change
}

// bulkJobs reads the selected jobs. Each id is accepted or refused on its own, so a deleted job
// does not stop the others. A job that the caller cannot see looks like a missing job.
func (s *Server) bulkJobs(ctx context.Context, q *bulkQuery, role auth.Role) (*bulkJobs, error) {
	out := &bulkJobs{}
	if q.ids == nil {
		var err error
		out.JobPage, err = s.cfg.DB.JobPage(ctx, q.JobFilter)
		return out, err
	}

	rows, err := s.cfg.DB.LivingJobs(ctx, q.ids)
	if err != nil {
		return nil, err
	}

	p := auth.Of(ctx)
	for _, id := range q.ids {
		j, ok := rows[id]
		item := view.BulkItem{ID: strconv.FormatInt(id, 10), Result: job.BulkRefused}
		switch {
		case !ok || !p.MayIn(viewer, j.Spec.App):
			why := problem.NoSuchJob.Of()
			item.Why = &why
		case !p.MayIn(role, j.Spec.App):
			item.App, item.Name, item.Version = j.Spec.App, j.Spec.Name, j.Version
			why := problem.RoleNeeded.Of(role)
			item.Why = &why
		default:
			out.Rows = append(out.Rows, j)
			continue
		}

		out.not = append(out.not, item)
	}

	return out, nil
}

// tryBulk answers a dry run. The answer says what the request would do to the first page, and how
// many jobs match.
func (s *Server) tryBulk(w http.ResponseWriter, r *http.Request, f read.JobFilter, want *job.Bulk,
	found *bulkJobs) error {
	for i := range found.Rows {
		j := &found.Rows[i]
		want.Done = append(want.Done, want.Of(&j.Job, j.SpecErr))
	}

	v := viewBulk(want, found)
	v.DryRun = true

	n, more, err := s.countJobs(r.Context(), f, found.JobPage)
	if err != nil {
		return err
	}

	v.Matched, v.AtLeast = &n, more
	return answer(w, http.StatusOK, v)
}

// countJobs counts the jobs of a list, starting with the given page, up to maxCounted jobs or
// countedPages pages.
func (s *Server) countJobs(ctx context.Context, f read.JobFilter, p read.JobPage) (n int, more bool, err error) {
	n, f.Limit = len(p.Rows), maxLimit
	for pages := 1; p.Next != nil && n < maxCounted && pages < countedPages; pages++ {
		f.After, f.Part = p.Next.ID, p.Next.Part
		if p, err = s.cfg.DB.JobPage(ctx, f); err != nil {
			return 0, false, err
		}
		n += len(p.Rows)
	}
	return n, p.Next != nil, nil
}

func viewBulk(want *job.Bulk, found *bulkJobs) *view.Bulk {
	v := &view.Bulk{Items: []view.BulkItem{}}
	for i, d := range want.Done {
		j := &found.Rows[i]
		item := view.BulkItem{
			ID: strconv.FormatInt(j.ID, 10), App: j.Spec.App, Name: j.Spec.Name, Result: d.Result, Version: d.Version,
		}

		if d.Why.Code != "" {
			why := d.Why.Cut(maxMessage)
			item.Why = &why
		}

		if d.Request != 0 {
			item.Request = strconv.FormatInt(d.Request, 10)
		}

		switch v.Items = append(v.Items, item); d.Result {
		case job.BulkChanged:
			v.Changed++
		case job.BulkUnchanged:
			v.Unchanged++
		default:
			v.Refused++
		}
	}

	v.Items, v.Refused = append(v.Items, found.not...), v.Refused+len(found.not)
	if n := found.Next; n != nil {
		v.Next = (&cursor{list: "jobs", part: n.Part, RunPlace: read.RunPlace{ID: n.ID}}).String()
	}
	return v
}

// The parameters of all four operations.
var (
	dryRunParam = wordParam{
		declared{"dry_run", "Change nothing; report what would be done to the first jobs, and how many there are.", "true"},
		[]string{"true", "false"},
	}
	allParam = wordParam{
		declared{"all", "Select all jobs. Required if no other filter is given.", "true"}, []string{"true", "false"},
	}
	bulkLimit = numberParam{declared{"limit", "The most jobs that one request changes.", "50"}, maxBulk, maxBulk}
	bulkIDs   = idsParam{
		declared{"ids", "Exactly these jobs: up to 200 ids, separated by commas. Cannot be combined with a filter.",
			"17,23"}, maxBulk,
	}
	bulkParams = slices.Concat(jobFilterParams, []parameter{bulkIDs, allParam, dryRunParam, bulkLimit, pageParam})
)

// The operations.
var (
	aboutBulk = " The request selects the jobs that `GET /api/v1/jobs` lists for the same parameters, in the same " +
		"order, in the apps where you have the role; or the jobs of `ids`, where each unknown id is refused on its " +
		"own. An empty parameter is refused. One request changes up to `limit` jobs in one transaction, and reports " +
		"the result of each. While the answer has a `next`, repeat the request with that as `cursor`. A job is refused " +
		"if it is changed at the same time, or if the action makes no sense for it; that does not affect the other " +
		"jobs. Try the request with `dry_run` first."

	bulkDone     = []reply{{status: http.StatusOK, about: "The result of each job.", of: of[*view.Bulk]()}}
	bulkPauseDoc = operation{
		id: "pauseJobs", tag: tagJobs, once: true, summary: "Pause many jobs", about: "Like pausing each job." +
			aboutBulk,
		query: bulkParams, body: mayLimitPause, replies: bulkDone, changes: true,
	}
	bulkResumeDoc = operation{
		id: "resumeJobs", tag: tagJobs, once: true, summary: "Resume many jobs", about: "Like resuming each job." +
			aboutBulk,
		query: bulkParams, body: emptyBody, replies: bulkDone, changes: true,
	}
	bulkRunDoc = operation{
		id: "runJobs", tag: tagJobs, once: true, summary: "Run many jobs now, once",
		about: "Like running each job. Send an `Idempotency-Key`, a new one with each `cursor`, if you may have to repeat " +
			"a request." + aboutBulk,
		query: bulkParams, body: emptyBody, replies: bulkDone, changes: true,
	}
	bulkDeleteDoc = operation{
		id: "deleteJobs", tag: tagJobs, once: true, summary: "Delete many jobs", about: "Like deleting each job." +
			aboutBulk,
		query: bulkParams, body: emptyBody, replies: bulkDone, changes: true,
	}
)
