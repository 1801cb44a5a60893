package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

func zoneData(s *sql.SessionRow) string {
	if s.Zones == "" {
		return "" // of an earlier version
	}
	return s.ZonesFrom + " (" + s.Zones + ")"
}

// clusterNow holds the data from which nodes are shown.
type clusterNow struct {
	sessions []sql.SessionRow
	cordoned []trip.NodeRow
	gone     []read.GoneNode
	loads    map[string]read.Load // by node
	now      job.Micros
	stale    job.Micros // a session whose last beat is this old starts nothing more
}

func (s *Server) clusterNow(ctx context.Context) (*clusterNow, error) {
	now, err := s.now()
	if err != nil {
		return nil, err
	}

	c := &clusterNow{now: job.MicrosOf(now)}
	expiry, err := s.cfg.DB.SessionExpiry(ctx)
	if err != nil {
		return nil, err
	}

	// Sessions become stale after two fifths of their expiry.
	c.stale = job.Micros(expiry.Microseconds() * 4 / 10)
	if c.cordoned, err = trip.CordonedNodes(s.cfg.DB.Reader(ctx)); err != nil {
		return nil, err
	}

	// Read sessions before loads. A session that obeys a cordon when it is read takes no new runs.
	// So it has no more runs than the load that is read afterwards.
	if c.sessions, err = s.cfg.DB.Sessions(ctx); err != nil {
		return nil, err
	}

	// Read gone nodes after sessions. Then a node that comes back between the two reads does not
	// count as gone.
	if c.gone, err = s.cfg.DB.GoneNodes(ctx, c.now.Add(-goneFor)); err != nil {
		return nil, err
	}

	c.loads, err = s.cfg.DB.Loads(ctx)
	return c, err
}

// nodes shows all nodes with a session or a cordon, and nodes that had a session in the last day.
func (c *clusterNow) nodes() []*view.Node {
	byName := map[string]*view.Node{}
	node := func(name string) *view.Node {
		v := byName[name]
		if v == nil {
			l := c.loads[name]
			v = &view.Node{
				Name: name, Prepared: l.Prepared, Executing: l.Executing, Labels: map[string]string{},
				Handlers: []string{}, Sessions: []view.NodeSession{},
			}
			byName[name] = v
		}

		return v
	}

	for _, n := range c.cordoned {
		v := node(n.Name)
		v.Cordoned, v.Draining, v.Reason, v.By, v.Since = true, n.Draining, n.Reason, n.Who, instant(n.Since)
	}

	for _, x := range c.sessions {
		v := node(x.Node)
		v.Sessions = append(v.Sessions, view.NodeSession{
			ID: x.ID.String(), Address: x.Address, Version: x.Version, ZoneData: zoneData(&x),
			Started: x.Started.Time(), BeatAgeMS: max(0, c.now.Sub(x.BeatAt).Milliseconds()),
		})

		v.Slots += x.Slots
		if x.Labels != nil {
			v.Labels = x.Labels
		}
		if x.Handlers != nil {
			v.Handlers = x.Handlers
		}
	}

	died := map[string]bool{}
	for _, g := range c.gone {
		if v := node(g.Node); len(v.Sessions) == 0 {
			v.Gone, v.Lost, died[g.Node] = instant(g.At), g.Lost, g.Died
		}
	}

	out := make([]*view.Node, 0, len(byName))
	for _, v := range byName {
		v.State = c.state(v)
		if v.State == view.NodeAbsent && v.Gone != nil {
			v.State = view.NodeLeft
			if died[v.Name] {
				v.State = view.NodeGone
			}
		}
		v.Drained = v.State == view.NodeDrained || v.Draining && len(v.Sessions) == 0
		out = append(out, v)
	}

	slices.SortFunc(out, func(a, b *view.Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *clusterNow) state(v *view.Node) view.NodeState {
	silent, stopping, obeyed := true, true, true
	for _, x := range c.sessions {
		if x.Node != v.Name {
			continue
		}
		silent = silent && c.now-x.BeatAt > c.stale
		stopping = stopping && x.Draining
		obeyed = obeyed && x.CordonSeen == x.Cordoned
	}

	switch {
	case len(v.Sessions) == 0:
		return view.NodeAbsent
	case silent:
		return view.NodeSilent
	case v.Cordoned && !obeyed:
		return view.NodeCordoning
	case v.Draining && v.Executing+v.Prepared > 0:
		return view.NodeDraining
	case v.Draining:
		return view.NodeDrained
	case v.Cordoned:
		return view.NodeCordoned
	case stopping:
		return view.NodeStopping
	}

	return view.NodeReady
}

// listNodes: GET /api/v1/nodes
func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) error {
	c, err := s.clusterNow(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, view.Page[*view.Node]{Items: c.nodes()})
}

// getNode: GET /api/v1/nodes/{name}
func (s *Server) getNode(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	v, err := s.node(r.Context(), name)
	if err != nil {
		return err
	}
	if v.State == view.NodeAbsent && !v.Cordoned {
		return notFound.problem("There is no node %q; GET /api/v1/nodes lists all nodes.", cutShort(name))
	}

	return answer(w, http.StatusOK, v)
}

// node shows one node, which may be absent.
func (s *Server) node(ctx context.Context, name string) (*view.Node, error) {
	c, err := s.clusterNow(ctx)
	if err != nil {
		return nil, err
	}

	for _, v := range c.nodes() {
		if v.Name == name {
			return v, nil
		}
	}

	return &view.Node{
		Name: name, State: view.NodeAbsent,
		Labels: map[string]string{}, Handlers: []string{}, Sessions: []view.NodeSession{},
	}, nil
}

// readReason reads an optional body with a reason.
func readReason(r *http.Request) (reason string, err error) {
	o, err := readOptional(r)
	if err != nil {
		return "", err
	}

	f := newFields(o)
	f.text("reason", &reason)
	return reason, f.done()
}

// cordonNode: POST /api/v1/nodes/{name}/cordon. A cordon outlives sessions.
func (s *Server) cordonNode(w http.ResponseWriter, r *http.Request) error {
	return s.changeNode(w, r, false)
}

// drainNode: POST /api/v1/nodes/{name}/drain
func (s *Server) drainNode(w http.ResponseWriter, r *http.Request) error {
	return s.changeNode(w, r, true)
}

func (s *Server) changeNode(w http.ResponseWriter, r *http.Request, drain bool) error {
	reason, err := readReason(r)
	if err != nil {
		return err
	}
	return s.onNode(w, r, func(ctx context.Context, e Editor, name string) error {
		return e.Cordon(ctx, name, reason, drain)
	})
}

// uncordonNode: POST /api/v1/nodes/{name}/uncordon
func (s *Server) uncordonNode(w http.ResponseWriter, r *http.Request) error {
	if err := readNothing(r); err != nil {
		return err
	}
	return s.onNode(w, r, func(ctx context.Context, e Editor, name string) error { return e.Uncordon(ctx, name) })
}

func (s *Server) onNode(w http.ResponseWriter, r *http.Request, do func(context.Context, Editor, string) error) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}
	if err := s.knownNode(r, name); err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}
	if err := do(r.Context(), e, name); err != nil {
		return lookAt(err, "GET /api/v1/nodes shows the current state. You can safely repeat the request.")
	}

	v, err := s.node(r.Context(), name)
	if err != nil { // the change is committed
		return &sql.Unknown{Err: err}
	}
	return answer(w, http.StatusOK, v)
}

// knownNode refuses a node that is neither in the cluster nor cordoned, unless the request allows
// unknown nodes.
func (s *Server) knownNode(r *http.Request, name string) error {
	if ok, err := absentOK(r); err != nil || ok {
		return err
	}

	c, err := s.clusterNow(r.Context())
	if err != nil {
		return err
	}

	var names []string
	for _, v := range c.nodes() {
		names = append(names, v.Name)
	}

	if slices.Contains(names, name) {
		return nil
	}
	return notFound.problem(
		"There is no node %q in the cluster%s Add ?absent=ok for a node that will join later.",
		cutShort(name), didYouMean(name, names))
}
