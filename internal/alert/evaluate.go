package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/google/uuid"
)

// Session is this node's session.
type Session interface {
	ID() uuid.UUID
	Node() string
	Now() job.Micros // by MySQL's clock
	Fresh() bool     // reports whether the lease is fresh
}

const (
	// Pauses between two steps: active while there is something to evaluate, calm while there is
	// nothing, or while another node evaluates.
	active = time.Second
	calm   = 3 * time.Second

	// tenure is how long a step keeps other nodes from evaluating. A tenure is not a lock: see
	// takeStep.
	tenure = 15 * time.Second
	// staleNothing is the longest time for which Lookout.NothingToWatch may be outdated, that is,
	// still true although there is something to evaluate.
	staleNothing = 4 * time.Second
	// retryPause is the pause before a failed look is tried again.
	retryPause = 20 * time.Second

	batch      = 1000   // runs that one step reads
	linesAhead = 10_000 // a new trail starts this many audit lines before the latest
	endsAhead  = 1000   // the same for transactions that ended runs
	manyFiring = 20_000 // alerts that may fire at once; further ones are only counted
	manyFired  = 2000   // after this many changes of alerts, a step leaves to the next step what that finds again
	jobsKnown  = 15 * time.Second
	manyJobs   = 50_000
)

// Lookout knows whether there was work a moment ago. It reports false when it does not know.
type Lookout interface {
	NothingToWatch() bool // there was no rule, ping or heartbeat
	NothingToSend() bool  // no message was waiting
}

// EvaluatorConfig is what an evaluator works with.
type EvaluatorConfig struct {
	DB         read.Watch
	Session    Session
	Lookout    Lookout
	WakeSender loop.Wake // a message was created
	Log        *slog.Logger
}

// Evaluator evaluates the alert rules. Only one node of a cluster does so at a time.
type Evaluator struct {
	EvaluatorConfig

	state  *state // after the last applied step; nil: must be read
	jobs   jobCache
	unread int   // consecutive steps that could not read which late runs are over
	unsaid int64 // events that were only counted and are not logged yet
}

// NewEvaluator returns an evaluator. The caller runs it.
func NewEvaluator(cfg EvaluatorConfig) *Evaluator { return &Evaluator{EvaluatorConfig: cfg} }

// state holds the data that the evaluator keeps between steps.
type state struct {
	n        int64 // number of the last applied step
	changes  int64 // config includes the definitions up to this number of changes
	config   *config
	position position
	firing   map[[16]byte]*FiredRow
	seen     map[[16]byte]job.Micros // latest due time seen for an alert, as far as this node knows
	lasts    map[[16]byte]finding    // latest finding about an alert that goes on
	next     map[string]job.Micros   // when each periodic look is due; missing: in the next step

	notRun  int64                             // last job that was checked for runs
	late    map[string]read.LatePlace         // last due time that was checked for lateness
	looks   map[int64]map[int64]*read.RunLook // results of the check for runs, by rule and job
	overdue overdue

	begun      map[int64]job.Micros // runs that are already reported as started, with the time when they were last seen
	begunSince job.Micros           // starts up to this time are reported already
}

// These looks may take several steps.
const (
	lateStart  = "late start"
	lateFinish = "late finish"
	backlog    = "backlog"
	notRun     = "not run"
)

// position is the point that evaluation has reached. Each step stores it.
type position struct {
	Since job.Micros            `json:"since"` // start of evaluation; earlier endings are ignored
	Ends  trail.Trail           `json:"ends"`
	Lines trail.Trail           `json:"lines"`
	Gone  map[string]job.Micros `json:"gone,omitempty"` // nodes that vanished, with the time

	// Started is the time of the last step that reported starts; zero while no rule reports them.
	Started job.Micros `json:"started,omitempty"`
}

// config holds the rules, channels and silences.
type config struct {
	rules    map[int64]*rule
	channels map[string]*channel
	silences []job.Silence
	pinged   bool // some job has a ping
	lines    bool // some rule watches nodes
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
	return loop.Loop{
		Period: calm,
		Log:    e.Log,
		Failed: "cannot evaluate alerts, trying again",
	}.Run(ctx, func(ctx context.Context, _ bool) (pause time.Duration, err error) {
		if !e.Session.Fresh() || e.Lookout.NothingToWatch() {
			e.state = nil
			return 0, loop.ErrSkipped
		}

		again, err := e.step(ctx, e.Session.Now())
		if err != nil {
			e.state = nil // whatever was written, the next step reads the state again
			if errors.Is(err, errOvertaken) {
				err = loop.ErrSkipped
			}
			return 0, err
		}
		return max(again, loop.AtOnce), nil
	})
}

// errOvertaken says that another node has taken a step.
var errOvertaken = errors.New("another node evaluates alerts")

// step evaluates once, and returns the pause until the next step. If we die here, or the commit is
// unknown, the step may or may not be applied. The next step continues from the last applied one.
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

	// Another node holds the work.
	if w.Holder != e.Session.ID() && w.Until > now && w.Until <= now.Add(tenure) {
		e.state = nil
		return calm, nil
	}

	if err := e.learn(ctx, w, now); err != nil {
		return 0, err
	}
	s := e.state

	// Nothing to watch and nothing firing: forget the position, so that the next holder starts at
	// the latest rows.
	if !s.config.wants() && len(s.firing) == 0 {
		e.state = nil // the next step reads the configuration again, so a new rule takes effect at once
		if w.Position == "" {
			return calm, nil
		}
		w.Position, w.Holder, w.Until = "", e.Session.ID(), now
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
		e.Log.Warn("too many alert events, some are only counted and not sent", "events", e.unsaid)
		e.unsaid = 0
	}

	if s.due("tidy", now, time.Minute) {
		if err := e.tidy(ctx, now); err != nil && ctx.Err() == nil {
			e.Log.Warn("cannot remove old alerts, trying again", "error", err)
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

// wants reports whether there is anything to evaluate.
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

// learn brings the state up to the last applied step, and the configuration up to date.
func (e *Evaluator) learn(ctx context.Context, w work, now job.Micros) error {
	s := e.state
	if s == nil || s.n != w.N {

		s = &state{
			n: w.N, firing: map[[16]byte]*FiredRow{}, seen: map[[16]byte]job.Micros{},
			lasts: map[[16]byte]finding{}, next: map[string]job.Micros{},
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
		s.overdue = overdue{} // the old count was for other rules
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

// due reports whether a periodic task must be done now, and sets its next time.
func (s *state) due(what string, now job.Micros, period time.Duration) bool {
	if at, known := s.next[what]; known && now < at && at <= now.Add(max(period, retryPause)) {
		return false
	}
	s.next[what] = now.Add(period)
	return true
}

// anchor returns the position at which evaluation starts. The position is somewhat before the
// latest ids, because transactions with slightly lower ids may not have committed yet.
func (e *Evaluator) anchor(ctx context.Context, now job.Micros) (position, error) {
	ending, line, err := e.DB.LastIDs(ctx)
	return position{
		Since: now.Add(-calm - staleNothing - 2*time.Second),
		Ends:  trail.Trail{High: max(0, ending-endsAhead)},
		Lines: trail.Trail{High: max(0, line-linesAhead)},
	}, err
}

// within corrects a position in the future, where no rule would find anything. Such a position was
// changed outside the program. A position slightly past the last row is normal, because the latest
// rows may have been removed.
func (p *position) within(anchor position, now job.Micros) {
	if p.Since > now {
		p.Since = anchor.Since
	}
	p.Started = min(p.Started, now)
	if p.Ends.High-2*endsAhead > anchor.Ends.High {
		p.Ends = anchor.Ends
	}
	if p.Lines.High-2*linesAhead > anchor.Lines.High {
		p.Lines = anchor.Lines
	}
}

// readConfig reads the configuration. It leaves out definitions that it cannot decode. Their
// errors are in the list of definitions.
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

// jobCache keeps jobs for a few seconds.
type jobCache struct {
	known map[int64]job.AlertJob
	since job.Micros
}

// forget drops jobs from the cache.
func (c *jobCache) forget(ids map[int64]bool) {
	for id := range ids {
		delete(c.known, id)
	}
}

// of returns the jobs by id. A job that never existed is missing. The map may hold other jobs, too.
func (c *jobCache) of(
	ctx context.Context, db read.Watch, ids []int64, now job.Micros,
) (map[int64]job.AlertJob, error) {
	if c.known == nil || len(c.known) > manyJobs ||
		now-c.since > job.Micros(jobsKnown.Microseconds()) || now < c.since {
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
