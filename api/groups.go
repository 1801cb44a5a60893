package api

import (
	"errors"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// groupReadOnly are the fields of a group that only the server sets, and the name, which the path
// gives.
var groupReadOnly = []string{"name", "executing", "waiting", "jobs", "created", "updated"}

func viewGroup(g read.Group) view.Group {
	return view.Group{
		Name: g.Name, Slots: g.Slots, Executing: g.Taken, Waiting: g.Waiting, Jobs: g.Jobs, Created: g.Created.Time(),
		Updated: g.Updated.Time(),
	}
}

// listGroups: GET /api/v1/groups
func (s *Server) listGroups(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	limit, after := q.limit(), int64(0)
	if c := q.cursor("groups"); c != nil {
		after = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, err := s.cfg.DB.Groups(r.Context(), "", int32(after), limit+1)
	if err != nil {
		return err
	}

	p := view.Page[view.Group]{Items: []view.Group{}}
	rows, p.Next = oneMore("groups", rows, limit, func(r *read.Group) int64 { return int64(r.ID) })
	for _, g := range rows {
		p.Items = append(p.Items, viewGroup(g))
	}

	return answer(w, http.StatusOK, p)
}

// getGroup: GET /api/v1/groups/{name}
func (s *Server) getGroup(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	rows, err := s.cfg.DB.Groups(r.Context(), name, 0, 1)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return noGroup(name)
	}

	return answer(w, http.StatusOK, viewGroup(rows[0]))
}

func noGroup(name string) error {
	return notFound.problem("There is no group %q; create it with PUT, or with go-crontab group set.", cutShort(name))
}

const lookAtSlots = "GET the group to see how many slots it has."

// putGroup: PUT /api/v1/groups/{name}
func (s *Server) putGroup(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	slots := 0
	f.count("slots", &slots, job.MaxSlots)
	f.ignore(groupReadOnly...)
	if _, given := body["slots"]; !given {
		f.wrong("slots", problem.Missing.Advise("give the number of runs that the group's jobs may execute at once"))
	}
	if err := f.done(); err != nil {
		return err
	}

	ctx, err := wanted(r, "group")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if _, err := e.PutGroup(ctx, name, slots); err != nil {
		return lookAt(err, lookAtSlots)
	}

	if err := s.getGroup(w, r); err != nil { // the change is committed
		return lookAt(&sql.Unknown{Err: err}, lookAtSlots)
	}

	return nil
}

// deleteGroup: DELETE /api/v1/groups/{name}
func (s *Server) deleteGroup(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	switch err := e.DeleteGroup(r.Context(), name); {
	case errors.Is(err, sql.ErrNotFound):
		return noGroup(name)
	case err != nil:
		return lookAt(err, "GET the group to see whether it still exists.")
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}
