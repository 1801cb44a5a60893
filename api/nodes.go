package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// nodeView is a node as clients see it: its sessions (one, except for moments) and its cordon.
type nodeView struct {
	Name      string            `json:"name" doc:"Its name."`
	State     nodeState         `json:"state" doc:"The state of the node."`
	Labels    map[string]string `json:"labels" doc:"Its labels."`
	Handlers  []string          `json:"handlers" doc:"The handlers that it has registered."`
	Cordoned  bool              `json:"cordoned" doc:"Whether it is cordoned, so that it starts nothing."`
	Draining  bool              `json:"draining" doc:"Whether it is draining, so that it also gives back its prepared runs."`
	Drained   bool              `json:"drained" doc:"Whether it is drained and has no work left."`
	Reason    string            `json:"reason,omitempty" doc:"The reason for the cordon."`
	By        string            `json:"by,omitempty" doc:"Who cordoned it."`
	Since     string            `json:"since,omitempty" format:"date-time" doc:"When it was cordoned."`
	Prepared  int               `json:"prepared" doc:"How many prepared runs it holds."`
	Executing int               `json:"executing" doc:"How many runs it executes."`
	Slots     int               `json:"slots" doc:"How many runs it can execute at once. An HTTP request counts as a sixteenth of one."`
	Sessions  []nodeSession     `json:"sessions" doc:"Its sessions: one, except for short moments."`
}

type nodeSession struct {
	ID        string `json:"id" format:"uuid" doc:"Its id, a UUID."`
	Address   string `json:"address,omitempty" doc:"The address at which the node can be reached."`
	Version   string `json:"version,omitempty" doc:"The version of the program."`
	ZoneData  string `json:"zone_data,omitempty" doc:"The source of its time zone data, and a fingerprint of it. Sessions with the same fingerprint compute the same due times."`
	Started   string `json:"started" format:"date-time" doc:"When it began."`
	BeatAgeMS int64  `json:"beat_age_ms" doc:"The age of its last heartbeat, in milliseconds."`
}

func zoneData(s *sql.SessionRow) string {
	if s.Zones == "" {
		return "" // of an earlier version
	}
	return s.ZonesFrom + " (" + s.Zones + ")"
}

// nodeState is the state of a node in one word.
type nodeState string

// The states of nodes.
const (
	nodeReady     nodeState = "ready"
	nodeCordoning nodeState = "cordoning" // cordoned a moment ago; it may still start something
	nodeCordoned  nodeState = "cordoned"
	nodeDraining  nodeState = "draining"
	nodeDrained   nodeState = "drained"
	nodeStopping  nodeState = "stopping" // the process is about to end
	nodeSilent    nodeState = "silent"   // without fresh heartbeats: it starts nothing
	nodeAbsent    nodeState = "absent"   // without a session
)

// clusterNow holds the data from which nodes are shown.
type clusterNow struct {
	sessions []sql.SessionRow
	cordoned []trip.NodeRow
	loads    map[string]read.Load // by node
	now      job.Micros
	stale    job.Micros // the age of a beat from which on the session starts nothing
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

	// Read sessions before loads: a session that obeys a cordon by then owns no more runs in the
	// counts.
	if c.sessions, err = s.cfg.DB.Sessions(ctx); err != nil {
		return nil, err
	}

	c.loads, err = s.cfg.DB.Loads(ctx)
	return c, err
}

// nodes shows all nodes with a session or a cordon.
func (c *clusterNow) nodes() []*nodeView {
	byName := map[string]*nodeView{}
	node := func(name string) *nodeView {
		v := byName[name]
		if v == nil {
			l := c.loads[name]
			v = &nodeView{
				Name: name, Prepared: l.Prepared, Executing: l.Executing, Labels: map[string]string{},
				Handlers: []string{}, Sessions: []nodeSession{},
			}
			byName[name] = v
		}

		return v
	}

	for _, n := range c.cordoned {
		v := node(n.Name)
		v.Cordoned, v.Draining, v.Reason, v.By, v.Since = true, n.Draining, n.Reason, n.Who, stamp(n.Since)
	}

	for _, x := range c.sessions {
		v := node(x.Node)
		v.Sessions = append(v.Sessions, nodeSession{
			ID: x.ID.String(), Address: x.Address, Version: x.Version, ZoneData: zoneData(&x),
			Started: stamp(x.Started), BeatAgeMS: max(0, c.now.Sub(x.BeatAt).Milliseconds()),
		})

		v.Slots += x.Slots
		if x.Labels != nil {
			v.Labels = x.Labels
		}
		if x.Handlers != nil {
			v.Handlers = x.Handlers
		}
	}

	out := make([]*nodeView, 0, len(byName))
	for _, v := range byName {
		v.State = c.state(v)
		v.Drained = v.State == nodeDrained || v.Draining && v.State == nodeAbsent
		out = append(out, v)
	}

	slices.SortFunc(out, func(a, b *nodeView) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (c *clusterNow) state(v *nodeView) nodeState {
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
		return nodeAbsent
	case silent:
		return nodeSilent
	case v.Cordoned && !obeyed:
		return nodeCordoning
	case v.Draining && v.Executing+v.Prepared > 0:
		return nodeDraining
	case v.Draining:
		return nodeDrained
	case v.Cordoned:
		return nodeCordoned
	case stopping:
		return nodeStopping
	}

	return nodeReady
}

// listNodes: GET /api/v1/nodes
func (s *Server) listNodes(w http.ResponseWriter, r *http.Request) error {
	c, err := s.clusterNow(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, page[*nodeView]{Items: c.nodes()})
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
	if v.State == nodeAbsent && !v.Cordoned {
		return notFound.problem("There is no node %q; GET /api/v1/nodes lists all nodes.", cutShort(name))
	}

	return answer(w, http.StatusOK, v)
}

// node shows one node, which may be absent.
func (s *Server) node(ctx context.Context, name string) (*nodeView, error) {
	c, err := s.clusterNow(ctx)
	if err != nil {
		return nil, err
	}

	for _, v := range c.nodes() {
		if v.Name == name {
			return v, nil
		}
	}

	return &nodeView{
		Name: name, State: nodeAbsent,
		Labels: map[string]string{}, Handlers: []string{}, Sessions: []nodeSession{},
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
// that.
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
