package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// definitions reads the definitions of a job from version upTo downwards; 0 means the current
// version. It also reads the definitions of deleted jobs. It never returns an empty list: a missing
// version is an error.
func (s *Server) definitions(ctx context.Context, id, upTo int64, limit int) (read.Job, []read.Version, error) {
	j, err := s.cfg.DB.Job(ctx, id)
	if err != nil {
		return j, nil, err
	}
	if upTo == 0 {
		upTo = j.Version
	}
	if upTo > j.Version && mayRead(ctx, j.Spec.App) {
		return j, nil, notFound.problem("The job is at version %d, and never had version %d.", j.Version, upTo)
	}

	rows, err := s.cfg.DB.Versions(ctx, id, upTo, limit)
	if err == nil && len(rows) == 0 {
		err = notFound.problem("There is no version %d of the job.", upTo)
	}
	return j, rows, err
}

// listVersions: GET /api/v1/jobs/{id}/versions
func (s *Server) listVersions(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	limit, upTo := q.limit(), int64(0)
	if c := q.cursor("versions"); c != nil {
		upTo = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	id, err := jobID(r)
	if err != nil {
		return err
	}

	j, rows, err := s.definitions(r.Context(), id, upTo, limit+1)

	if err != nil {
		return err
	}

	p := view.Page[view.VersionItem]{Items: []view.VersionItem{}}
	for i := range rows {
		if i == limit {
			p.Next = (&cursor{list: "versions", RunPlace: read.RunPlace{ID: rows[i].Version}}).String()
			break
		}

		v := &rows[i]
		if !mayReadVersion(r.Context(), v) {
			continue
		}

		item := view.VersionItem{
			Version: v.Version, At: v.At.Time(), Who: v.Who, Current: i == 0 && upTo == 0 && !j.Deleted,
			Changed: []string{},
		}

		if v.SpecErr != nil {
			item.Error = v.SpecErr.Error()
		}
		if i+1 < len(rows) && mayReadVersion(r.Context(), &rows[i+1]) {
			item.Changed = changedFields(rows[i+1].Spec.Diff(&v.Spec))
		}

		p.Items = append(p.Items, item)
	}

	return answer(w, http.StatusOK, p)
}

func changedFields(changes []job.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Field
	}
	return out
}

// definitionAt reads the definition at the version in the path, and reports whether it is still the
// current one.
func (s *Server) definitionAt(r *http.Request, place string) (v read.Version, current bool, err error) {
	id, err := jobID(r)
	if err != nil {
		return v, false, err
	}

	text, err := param(r, place)
	if err != nil {
		return v, false, err
	}

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != text {
		return v, false, notFound.problem("There is no version %q; versions are numbers from 1.", cutShort(text))
	}
	return s.definitionOf(r.Context(), id, n)
}

func (s *Server) definitionOf(ctx context.Context, id, version int64) (v read.Version, current bool, err error) {
	j, rows, err := s.definitions(ctx, id, version, 1)
	if err != nil {
		return v, false, err
	}
	if !mayReadVersion(ctx, &rows[0]) {
		return v, false, notFound.problem("There is no version %d of the job.", version)
	}
	return rows[0], !j.Deleted && rows[0].SpecText == j.SpecText, nil
}

// mayReadVersion reports whether the caller may read a definition. The app in the definition
// decides, even if the job has moved to another app.
func mayReadVersion(ctx context.Context, v *read.Version) bool {
	return mayRead(ctx, appIn(v.SpecText))
}

// appIn returns the app that a stored definition names. It is "" if the definition cannot be read.
func appIn(spec string) string {
	var s struct {
		App string `json:"app"`
	}
	if json.Unmarshal([]byte(spec), &s) != nil {
		return ""
	}
	return s.App
}

// getVersion: GET /api/v1/jobs/{id}/versions/{version}
func (s *Server) getVersion(w http.ResponseWriter, r *http.Request) error {
	v, current, err := s.definitionAt(r, "version")
	if err != nil {
		return err
	}
	if v.Spec.Labels == nil {
		v.Spec.Labels = map[string]string{}
	}

	out := view.Version{Version: v.Version, At: v.At.Time(), Who: v.Who, Current: current, Definition: &v.Spec}
	if v.SpecErr != nil {
		out.Definition, out.Error = nil, v.SpecErr.Error()
	}
	return answer(w, http.StatusOK, out)
}

// diffVersions: GET /api/v1/jobs/{id}/versions/{version}/diff/{other}
func (s *Server) diffVersions(w http.ResponseWriter, r *http.Request) error {
	a, _, err := s.definitionAt(r, "version")
	if err != nil {
		return err
	}

	b, _, err := s.definitionAt(r, "other")
	if err != nil {
		return err
	}
	if err := errors.Join(a.SpecErr, b.SpecErr); err != nil {
		return unreadable.problem("%v.", err)
	}

	out := view.Diff{From: a.Version, To: b.Version, Changes: a.Spec.Diff(&b.Spec)}
	if out.Changes == nil {
		out.Changes = []job.Change{}
	}
	return answer(w, http.StatusOK, out)
}

// rollbackBody names the version to go back to.
type rollbackBody struct {
	Version int64 `json:"version" doc:"The number of an earlier version, whose definition is restored."`
}

// rollback: POST /api/v1/jobs/{id}/rollback
func (s *Server) rollback(w http.ResponseWriter, r *http.Request) error {
	id, err := jobID(r)
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	f, version := newFields(body), 0
	if _, given := body["version"]; !given {
		f.wrong("version", problem.Missing.Advise("give a version that the job has had"))
	}

	f.count("version", &version, maxVersion)
	if err := f.done(); err != nil {
		return err
	}

	var j *read.Job
	err = s.asWanted(r, id, func(ctx context.Context) (err error) {
		j, err = s.rollBack(ctx, id, int64(version))
		return err
	})
	if err != nil {
		return lookAt(err, "GET /api/v1/jobs/%d shows the current state. You can safely repeat the request.", id)
	}

	return s.answerJob(w, r, http.StatusOK, j)
}

// maxVersion is the largest version in a body.
const maxVersion = 1<<53 - 1

// rollBack restores an earlier definition of a job.
func (s *Server) rollBack(ctx context.Context, id, version int64) (*read.Job, error) {
	old, err := s.jobByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if !auth.Of(ctx).MayIn(admin, old.Spec.App) {
		return nil, sql.ErrNotFound // the job has moved to another app since the request was admitted
	}

	v, _, err := s.definitionOf(ctx, id, version)
	if err != nil {
		return nil, err
	}

	if v.SpecErr != nil {
		return nil, unreadable.problem("Version %d of the job cannot be read: %v.", version, v.SpecErr)
	}
	if err := mayWrite(ctx, v.Spec.App); err != nil {
		return nil, err
	}
	if err := s.checkFree(ctx, id, &v.Spec); err != nil {
		return nil, err
	}
	if old.SpecErr == nil && old.Error == "" && v.Spec.Same(&old.Spec) {
		return &old, nil
	}

	e, err := s.editor()
	if err != nil {
		return nil, err
	}

	done, err := e.Rollback(ctx, id, old.Changes, v.Spec, int32(v.Version))
	if err != nil {
		return nil, err
	}
	return s.jobAfter(ctx, done)
}
