package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// export: GET /api/v1/export
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f := read.JobFilter{App: q.text(ofAppParam), Labels: q.label(labelIs), Apps: auth.Of(r.Context()).Sees()}
	limit, id := q.limit(), q.number(ofJobParam)
	if c := q.cursor("export"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	f.Limit = limit + 1 // one more row shows whether there is a next page
	rows, err := s.exported(r.Context(), f, id)
	if err != nil {
		return err
	}

	v := view.Export{Items: []json.RawMessage{}}
	rows, v.Next = oneMore("export", rows, limit, func(r *read.Job) int64 { return r.ID })
	for i := range rows {
		j := &rows[i]
		if j.SpecErr != nil {
			v.Unreadable = append(v.Unreadable, view.UnreadableJob{
				ID: strconv.FormatInt(j.ID, 10), App: j.Spec.App, Name: j.Spec.Name, Error: j.SpecErr.Error(),
			})
			continue
		}

		item, err := manifestOf(j)
		if err != nil {
			return err
		}
		v.Items = append(v.Items, item)
	}

	return answer(w, http.StatusOK, v)
}

// exported reads the jobs to export. With an id, it reads only this job, if the filter admits the
// job.
func (s *Server) exported(ctx context.Context, f read.JobFilter, id int64) ([]read.Job, error) {
	if id == 0 {
		return s.cfg.DB.Jobs(ctx, f)
	}

	j, err := s.jobByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if f.Apps != nil && !slices.Contains(f.Apps, j.Spec.App) {
		return nil, sql.ErrNotFound
	}

	return []read.Job{j}, nil
}

// manifestOf writes a job as in a file.
func manifestOf(j *read.Job) (json.RawMessage, error) {
	text, err := j.Spec.Minimal()
	if err == nil && j.Paused {
		text = append(text[:len(text)-1], `,"paused":true}`...)
	}
	return text, err
}
