package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/google/uuid"
)

// Session is the session of the node.
type Session interface {
	ID() uuid.UUID
	Node() string
	Now() job.Micros // MySQL's clock
	Fresh() bool
}

const (
	// active is between steps when there is something to evaluate, calm when there is nothing, or another node does it.
	active = time.Second
	calm   = 3 * time.Second
	// tenure is for how long a step keeps others from evaluating. It is no lock: see takeStep.
	tenure = 15 * time.Second
	// unseen is for how long it may not have been seen that there is something to evaluate again.
	unseen = 4 * time.Second
	// putOff is before a look that has failed is taken again.
	putOff = 20 * time.Second

	batch      = 1000   // runs that one step reads
	linesAhead = 10_000 // lines of the audit before the last one
	endsAhead  = 1000   // transactions that ended runs, before the last one
	manyFiring = 20_000 // alerts that fire at once; what is more is counted
	manyFired  = 2000   // changes of alerts that one step writes
	jobsKnown  = 15 * time.Second
	manyJobs   = 50_000
)

// Evaluator looks for what rules tell of. Of all nodes of a cluster one does it at a time.
type Evaluator struct {
	DB      *read.DB
	Session Session
	Due     func()      // called when a message was made
	Nothing func() bool // tells that nobody wanted to be told of anything a moment ago; nil: nobody knows
	Log     *slog.Logger

	state  *state // as of a step that stands; nil: to be read
	jobs   jobCache
	unread int   // in how many steps in a row it could not be read which late due times are over
	unsaid int64 // what could not be told, and is not logged yet
}

// state is what is known between steps.
type state struct {
	n        int64 // the step that it is as of
	changes  int64
	config   *config
	position position
	firing   map[[16]byte]*FiredRow
	seen     map[[16]byte]job.Micros // the due time for which an alert was seen last, as far as this node knows
	next     map[string]job.Micros   // when to look again at what is looked at now and then; what was looked at in part is not there
	notRun   int64                   // the last job that was looked at whether it runs

	late  map[string]read.LatePlace         // the last due time that was looked at whether it is late
	looks map[int64]map[int64]*read.RunLook // what was read to look whether jobs run, by rule and job

	overdue overdue
}

// What may be looked at in parts, in several steps.
const (
	lateStart  = "late start"
	lateFinish = "late finish"
	backlog    = "backlog"
	notRun     = "not run"
)

// position is how far evaluation has come. It is written down with each step.
type position struct {
	Since job.Micros            `json:"since"` // when it began: what ended before is nobody's
	Ends  trail.Trail           `json:"ends"`
	Lines trail.Trail           `json:"lines"`
	Gone  map[string]job.Micros `json:"gone,omitempty"` // nodes that vanished, and when
}

// config is what people want.
type config struct {
	rules    map[int64]*rule
	channels map[string]*channel
	silences []job.Silence
	pinged   bool // some job has a ping
	lines    bool // some rule wants to know what happens to nodes
}

type rule struct {
	job.AlertRule
	ID    int64
	Since job.Micros
}

type channel struct {
	job.AlertChannel
	ID   int64
	Beat job.Micros
}

// Run evaluates until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		if wait = calm; !e.Session.Fresh() {
			e.state = nil
			continue
		}
		if e.Nothing != nil && e.Nothing() {
			e.state = nil
			continue
		}
		again, err := e.step(ctx, e.Session.Now())
		switch {
		case err != nil:
			e.state = nil // what was written, if anything, is read by the next step
			if ctx.Err() == nil && !errors.Is(err, errOvertaken) {
				e.Log.Warn("cannot look for what alerts tell of, trying again", "error", err)
			}
		default:
			wait = again
		}
	}
}

// errOvertaken tells that another node has taken a step.
var errOvertaken = errors.New("another node evaluates")

// step evaluates once, and tells when to do so again. If we die within it, or its commit is unknown, it stands or not,
// and the next step goes on from what stands.
func (e *Evaluator) step(ctx context.Context, now job.Micros) (again time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil { // one bad row never stops a node
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	w, err := readWork(e.DB.Reader(ctx))
	if err != nil {
		return 0, err
	}
	if w.Holder != e.Session.ID() && w.Until > now && w.Until <= now.Add(tenure) {
		e.state = nil
		return calm, nil
	}
	if err := e.learn(ctx, w, now); err != nil {
		return 0, err
	}
	s := e.state
	if !s.config.wants() && len(s.firing) == 0 {
		e.state = nil // what people want is read again by the next step: whoever begins to want something is not kept waiting
		if w.Position == "" {
			return calm, nil
		}
		w.Position, w.Holder, w.Until = "", e.Session.ID(), now // whoever comes next begins anew
		return calm, e.DB.Tx(ctx, func(tx *sql.Tx) error { return stepped(takeStep(tx, w, 0)) })
	}
	c, err := e.find(ctx, now)
	if err != nil {
		return 0, err
	}
	if err := e.write(ctx, w, c, now); err != nil {
		return 0, err
	}
	if e.unsaid > 0 && s.due("lost", now, time.Minute) {
		e.Log.Warn("more goes wrong than alerts can tell: some of it is only counted", "events", e.unsaid)
		e.unsaid = 0
	}
	if s.due("tidy", now, time.Minute) {
		if err := e.tidy(ctx, now); err != nil && ctx.Err() == nil {
			e.Log.Warn("cannot remove alerts that are kept no longer, trying again", "error", err)
		}
	}
	if c.behind {
		return 0, nil
	}
	return active, nil
}

func stepped(ok bool, err error) error {
	if err == nil && !ok {
		err = errOvertaken
	}
	return err
}

// wants tells whether there is anything to look for.
func (c *config) wants() bool {
	if len(c.rules) > 0 || c.pinged {
		return true
	}
	for _, ch := range c.channels {
		if ch.beats() {
			return true
		}
	}
	return false
}

func (c *channel) beats() bool { return c.Type == job.ChannelHeartbeat && !c.Disabled }

// learn has the state be as of the step that stands.
func (e *Evaluator) learn(ctx context.Context, w work, now job.Micros) error {
	s := e.state
	if s == nil || s.n != w.N {
		s = &state{
			n: w.N, firing: map[[16]byte]*FiredRow{}, seen: map[[16]byte]job.Micros{}, next: map[string]job.Micros{},
			late: map[string]read.LatePlace{}, looks: map[int64]map[int64]*read.RunLook{},
		}
		rows, err := readFiring(e.DB.Reader(ctx), manyFiring)
		if err != nil {
			return err
		}
		for i := range rows {
			s.firing[rows[i].Subject] = &rows[i]
		}
		anchor, err := e.anchor(ctx, now)
		if err != nil {
			return err
		}
		if w.Position == "" || json.Unmarshal([]byte(w.Position), &s.position) != nil {
			s.position = anchor
		}
		s.position.within(anchor, now)
	}
	if s.changes != w.Changes {
		s.overdue = overdue{} // it was counted for other rules
	}
	if s.config == nil || s.changes != w.Changes || s.due("config", now, 10*time.Second) {
		c, err := e.readConfig(ctx, now)
		if err != nil {
			return err
		}
		s.config, s.changes = c, w.Changes
	}
	e.state = s
	return nil
}

// due tells whether it is time for what is done now and then.
func (s *state) due(what string, now job.Micros, period time.Duration) bool {
	if at, known := s.next[what]; known && now < at && at <= now.Add(max(period, putOff)) {
		return false
	}
	s.next[what] = now.Add(period)
	return true
}

// anchor is where to begin: ids just before the last ones may belong to transactions that have not committed yet.
func (e *Evaluator) anchor(ctx context.Context, now job.Micros) (position, error) {
	ending, line, err := e.DB.LastIDs(ctx)
	return position{
		Since: now.Add(-calm - unseen - 2*time.Second),
		Ends:  trail.Trail{High: max(0, ending-endsAhead)},
		Lines: trail.Trail{High: max(0, line-linesAhead)},
	}, err
}

// within takes back what a hand has put where nothing may ever come: it would be looked for in vain, for all rules. The latest
// rows of a table may have been removed, so that a little ahead of them is no sign.
func (p *position) within(anchor position, now job.Micros) {
	if p.Since > now {
		p.Since = anchor.Since
	}
	if p.Ends.High-2*endsAhead > anchor.Ends.High {
		p.Ends = anchor.Ends
	}
	if p.Lines.High-2*linesAhead > anchor.Lines.High {
		p.Lines = anchor.Lines
	}
}

// readConfig reads what people want. What cannot be read is left out: it says so where it is shown.
func (e *Evaluator) readConfig(ctx context.Context, now job.Micros) (*config, error) {
	c := &config{rules: map[int64]*rule{}, channels: map[string]*channel{}}
	rules, err := Definitions(e.DB.Reader(ctx), RuleTable, 0, job.MaxAlertRules)
	if err != nil {
		return nil, err
	}
	for i := range rules {
		r, err := DecodeRule(&rules[i])
		if err != nil || r.Disabled {
			continue
		}
		c.rules[rules[i].ID] = &rule{r, rules[i].ID, rules[i].Updated}
		c.lines = c.lines || r.Has(job.AlertNodeGone)
	}
	channels, err := Definitions(e.DB.Reader(ctx), ChannelTable, 0, job.MaxAlertChannels)
	if err != nil {
		return nil, err
	}
	for i := range channels {
		ch, err := DecodeChannel(&channels[i])
		if err != nil {
			continue
		}
		c.channels[channels[i].Name] = &channel{ch, channels[i].ID, channels[i].Beat}
	}
	if c.silences, err = Silences(e.DB.Reader(ctx), now, 0, job.MaxSilences); err != nil {
		return nil, err
	}
	c.pinged, err = anyPinged(e.DB.Reader(ctx))
	return c, err
}

// jobCache is what is known of jobs for some seconds.
type jobCache struct {
	known map[int64]job.AlertJob
	since job.Micros
}

// forget has jobs be read again.
func (c *jobCache) forget(ids map[int64]bool) {
	for id := range ids {
		delete(c.known, id)
	}
}

// of returns jobs; those that there never were are not among them.
func (c *jobCache) of(ctx context.Context, db *read.DB, ids []int64, now job.Micros) (map[int64]job.AlertJob, error) {
	if c.known == nil || len(c.known) > manyJobs || now-c.since > job.Micros(jobsKnown.Microseconds()) || now < c.since {
		c.known, c.since = map[int64]job.AlertJob{}, now
	}
	var unknown []int64
	asked := map[int64]bool{}
	for _, id := range ids {
		if _, is := c.known[id]; !is && !asked[id] {
			unknown, asked[id] = append(unknown, id), true
		}
	}
	for len(unknown) > 0 {
		part := unknown[:min(len(unknown), 500)]
		unknown = unknown[len(part):]
		found, err := db.AlertJobs(ctx, part)
		if err != nil {
			return nil, err
		}
		for id, j := range found {
			c.known[id] = j
		}
	}
	return c.known, nil
}
