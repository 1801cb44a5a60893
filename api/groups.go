package api

import (
	"errors"
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// groupReadOnly are the fields of a group that a request cannot set. The name comes from the path,
// the other fields from the server.
var groupReadOnly = []string{"name", "starts", "next_start", "executing", "waiting", "jobs", "created", "updated"}

func viewGroup(g *read.Group, now job.Micros) view.Group {
	spec := job.GroupOf(g.Name, g.Slots, g.Rate)
	v := view.Group{
		Name: spec.Name, Slots: spec.Slots, Rate: spec.Rate, Executing: g.Taken, Waiting: g.Waiting, Jobs: g.Jobs,
		Created: g.Created.Time(), Updated: g.Updated.Time(),
	}
	if g.Rate.Any() {
		v.Starts = new(g.Recent(now))
		v.NextStart = instant(nextStart(&g.Group, now))
	}
	return v
}

// nextStart is when a group that has used up its rate admits the next start. It is zero if the
// group admits one now.
func nextStart(g *trip.Group, now job.Micros) job.Micros {
	if at := g.NextStart(now, 0); at > now {
		return at
	}
	return 0
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
		p.Items = append(p.Items, viewGroup(&g, job.MicrosOf(s.cfg.Now())))
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

	return answer(w, http.StatusOK, viewGroup(&rows[0], job.MicrosOf(s.cfg.Now())))
}

func noGroup(name string) error {
	return notFound.problem("There is no group %q; create it with PUT, or with go-crontab group set.", cutShort(name))
}

const lookAtGroup = "GET the group to see its slots and its rate."

// groupFields reads what a group allows.
func groupFields(f *fields, g *job.GroupSpec) {
	f.count("slots", &g.Slots, job.MaxSlots)
	f.text("rate", &g.Rate)
}

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
	want := job.GroupSpec{Name: name}
	groupFields(f, &want)
	f.ignore(groupReadOnly...)
	if body["slots"] == nil && body["rate"] == nil {
		f.wrong("slots", problem.Missing.Advise("give the number of runs that the group's jobs may execute at once, or a rate"))
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
	if _, err := e.PutGroup(ctx, want); err != nil {
		return lookAt(err, lookAtGroup)
	}

	if err := s.getGroup(w, r); err != nil { // the change is committed
		return lookAt(&sql.Unknown{Err: err}, lookAtGroup)
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
