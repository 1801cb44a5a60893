package alert

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go-crontab/internal/trail"
	"go-crontab/job"
)

// changes holds a step's findings.
type changes struct {
	position position
	fired    []*FiredRow            // alerts to write: new or changed
	dirty    map[*FiredRow]bool     // the rows in fired
	firing   map[[16]byte]*FiredRow // how the step changes state.firing; nil: the alert is over
	fresh    int                    // number of alerts that the step begins
	streaks  map[[16]byte]*streak
	notices  map[group][]notice
	unsent   map[group]unsent // keyed by the group of the resolving notice
	pings    map[int64]ping   // by job
	inTime   []inTime         // due times that may end alerts
	beats    []beat
	lost     int64 // events that are only counted
	behind   bool  // there is more to read at once
}

// group identifies the events that share one message.
type group struct {
	channel string
	rule    int64
	target  string
	state   DeliveryState
	alone   *FiredRow // set for a channel that takes one event per message
	what    string    // the kind of that event
}

// notice is one event in a message. A new alert gets its id only when it is written.
type notice struct {
	row  *FiredRow
	what string
	at   job.Micros
	seen int64
	text string
}

type streak struct {
	rule  int64
	times []job.Micros
}

// ping is a call to the monitor of a job.
type ping struct {
	host string // of the monitor
	item job.AlertItem
}

// unsent lists the messages about an alert that no node has tried to send yet.
type unsent struct {
	ids []int64
	all bool // no other message has opened the incident
}

// beat is a heartbeat to send, or the reason to hold it back.
type beat struct {
	channel *channel
	held    string
}

// finder collects a step's changes.
type finder struct {
	*Evaluator
	*changes
	s   *state
	c   *config
	now job.Micros

	again bool // set during looks whose findings a later step finds again
}

// find looks at everything that has happened since the last applied step. In e.state it changes
// only caches and the places and times of the next looks. So if this step is not applied, a later
// step finds the same things again.
//
// Some looks have a position. If one of these fails, the step fails, because the position must not
// move past unread rows. If another look fails, the step goes on, and that look is tried again
// later. So a slow look does not delay the others, and the server gets time to finish its queries.
func (e *Evaluator) find(ctx context.Context, now job.Micros) (*changes, error) {
	s := e.state
	f := &finder{Evaluator: e, s: s, c: s.config, now: now, changes: &changes{
		dirty:   map[*FiredRow]bool{},
		firing:  map[[16]byte]*FiredRow{},
		streaks: map[[16]byte]*streak{},
		notices: map[group][]notice{},
		pings:   map[int64]ping{},
		unsent:  map[group]unsent{},
		position: position{
			Since:   s.position.Since,
			Started: s.position.Started,
			Ends:    s.position.Ends.Clone(),
			Lines:   s.position.Lines.Clone(),
			Gone:    map[string]job.Micros{},
		},
	}}
	for k, v := range s.position.Gone {
		f.position.Gone[k] = v
	}

	// First the looks that have a position.
	if err := f.runs(ctx); err != nil {
		return nil, err
	}
	if f.c.lines {
		if err := f.lines(ctx); err != nil {
			return nil, err
		}
	} else {
		f.position.Lines, f.position.Gone = trail.Trail{}, nil // starts afresh once a rule needs it
	}

	// Then the other looks, each at its own interval.
	f.again = true
	for _, l := range []struct {
		what   string
		period time.Duration // zero: every step
		look   func(context.Context) error
	}{
		{lateStart, 5 * time.Second, f.lateStart},
		{lateFinish, 5 * time.Second, f.lateFinish},
		{backlog, 5 * time.Second, f.backlog},
		{"nodes", 2 * time.Second, f.nodes},
		{"troubles", 10 * time.Second, f.troubles},
		{notRun, 20 * time.Second, f.neverRan},
		{"over", 5 * time.Second, f.withdraw},
		{"quiet", 0, f.quiet},
		{"heartbeats", 0, f.heartbeats},
	} {
		if !s.due(l.what, now, l.period) {
			continue
		}

		if err := l.look(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			if l.period > 0 {
				s.next[l.what] = now.Add(retryPause)
			}
			e.Log.Warn("cannot check some alert conditions, trying again", "what", l.what, "error", err)
		}
	}

	return f.changes, nil
}

// How long ended alerts and messages, and sent pings and heartbeats, are kept.
const (
	Kept      = 30 * 24 * time.Hour
	beatsKept = 24 * time.Hour
)

// tidy removes old rows, in up to 20 transactions. After a failure, it is tried again a minute
// later.
func (e *Evaluator) tidy(ctx context.Context, now job.Micros) error {
	for range 20 {
		if n, err := dropOld(ctx, e.DB.SQL(), now.Add(-Kept), now.Add(-beatsKept), 500); err != nil || n < 500 {
			return err
		}
	}
	return nil
}

// subject hashes a rule, an event, and the job, app or node that the event is about.
func subject(rule int64, event job.AlertEvent, about string) (key [16]byte) {
	sum := sha256.Sum256([]byte(strconv.FormatInt(rule, 10) + "\x00" + string(event) + "\x00" + about))
	return [16]byte(sum[:16])
}

func aboutJob(id int64) string { return "job " + strconv.FormatInt(id, 10) }

// current returns the firing alert of a subject, or nil.
func (f *finder) current(key [16]byte) *FiredRow {
	if row, known := f.changes.firing[key]; known {
		return row // nil: it is over
	}
	return f.s.firing[key]
}

// change marks a row to be written, and returns a copy of the row to edit. The state keeps the old
// row until the step is applied.
func (f *finder) change(row *FiredRow) *FiredRow {
	if !f.dirty[row] {
		c := *row
		row = &c
		f.dirty[row] = true
		f.fired = append(f.fired, row)
	}
	return row
}

// finding is something that a rule reports.
type finding struct {
	job  *job.AlertJob // nil: it concerns no job
	app  string        // for failures counted by app, without a job
	node string
	run  string
	at   job.Micros

	// due is the late due time, for a problem that every look sees again until the problem ends.
	// Only a later due time is another occurrence. Zero: every finding is an occurrence.
	due job.Micros

	state   bool // the problem is a lasting state: a second sighting is no new occurrence
	summary string
}

// fire records that a rule's condition holds.
func (f *finder) fire(r *rule, event job.AlertEvent, about string, found finding) {
	key := subject(r.ID, event, about)
	row := f.current(key)
	fires := row != nil
	known := found.due != 0 && found.due <= f.s.seen[key] // an earlier look has seen this due time or a later one

	switch {
	case fires && (found.state || known): // the alert goes on; quiet repeats its notice from time to time
		found.job = nil
		f.s.lasts[key] = found
		return
	case fires:
	case f.again && len(f.fired) >= manyFired:
		return
	case len(f.s.firing)+f.fresh >= manyFiring:
		f.lost++
		return
	default:
		f.fresh++
		row = &FiredRow{
			Subject: key, Firing: true, RuleID: r.ID, Rule: r.Name, Event: event, Severity: r.Severity,
			App: found.app, First: found.at, Last: found.at, Seen: 1,
		}
		if found.job != nil {
			row.App, row.JobID, row.Job, row.Owner = found.job.App, found.job.ID, found.job.Name, found.job.Owner
		}
	}

	row = f.change(row)
	f.changes.firing[key] = row

	if fires {
		row.Seen++
	}
	if found.due > f.s.seen[key] {
		f.s.seen[key] = found.due // if the step is not applied, the next step reads the state without this
	}
	delete(f.s.lasts, key)
	row.update(&found)
	f.tellOf(r, row)
}

// update describes an alert by its latest finding.
func (r *FiredRow) update(found *finding) {
	r.Last, r.Node, r.Summary = max(r.Last, found.at), found.node, found.summary
	if found.run != "" {
		r.Run = found.run
	}
}

// tellable reports whether it is time to send a notice about a firing alert.
func (f *finder) tellable(r *rule, row *FiredRow) bool {
	if row.Told != 0 && f.now-row.Told < micros(r.Repeat) {
		return false
	}
	n := f.silence(row)
	return n == 0 || n != row.Silence
}

// tellOf sends a notice about a firing alert, unless one was sent recently or a silence covers it.
func (f *finder) tellOf(r *rule, row *FiredRow) {
	if !f.tellable(r, row) {
		return
	}
	row.Severity = r.Severity

	what := "fired"
	if row.Told != 0 {
		what = "repeated"
	}

	if n := f.silence(row); n != 0 {
		row.Silence = n
		f.tell(r, row, what, row.Summary, DeliverySilenced)
		return
	}

	row.Told, row.Silence = f.now, 0
	f.tell(r, row, what, row.Summary, DeliveryPending)
}

// report sends a notice about an event that has no duration. It raises no alert. A silence drops
// the notice.
func (f *finder) report(r *rule, event job.AlertEvent, found finding) {
	row := &FiredRow{
		RuleID: r.ID, Rule: r.Name, Event: event, Severity: r.Severity,
		App: found.job.App, JobID: found.job.ID, Job: found.job.Name, Owner: found.job.Owner,
		Node: found.node, Run: found.run, Summary: found.summary, First: found.at, Last: found.at, Seen: 1,
	}
	if f.silence(row) == 0 {
		f.tell(r, row, "info", row.Summary, DeliveryPending)
	}
}

// silence returns the id of the silence that covers an alert, or 0.
func (f *finder) silence(row *FiredRow) int64 {
	for i := range f.c.silences {
		if s := &f.c.silences[i]; s.Until > f.now && s.Covers(row.Rule, row.App, row.Job) {
			return s.ID
		}
	}
	return 0
}

// tell adds a notice to the messages for each channel of the rule.
func (f *finder) tell(r *rule, row *FiredRow, what, text string, state DeliveryState) {
	for _, name := range r.Channels {
		ch := f.c.channels[name]
		if ch == nil {
			f.lost++ // the channel's row was removed by hand
			continue
		}
		if what == "info" && ch.Type == job.ChannelPagerDuty {
			continue // an info opens no incident
		}
		if what == "resolved" && !r.Has(job.AlertRecovered) && ch.Type != job.ChannelPagerDuty {
			continue // not an event of the rule: only PagerDuty gets it, so that no incident stays open
		}

		g := group{channel: name, rule: r.ID, state: state}
		if ch.Disabled && state == DeliveryPending {
			g.state = DeliverySuppressed
		}
		if ch.Email != nil && ch.Email.ToOwner {
			g.target = job.Address(row.Owner)
		}
		if ch.Type == job.ChannelPagerDuty && g.state == DeliveryPending {
			g.alone, g.what = row, what
		}
		n := notice{row: row, what: what, at: f.now, seen: row.Seen, text: text}
		f.notices[g] = append(f.notices[g], n)
	}
}

// over ends the alert about a condition of a rule, when the condition no longer holds.
func (f *finder) over(r *rule, event job.AlertEvent, about, why string) {
	key := subject(r.ID, event, about)
	if row := f.current(key); row != nil {
		f.end(r, row, why)
	}
}

// end ends an alert. If r is nil, it sends no notice.
func (f *finder) end(r *rule, row *FiredRow, why string) {
	row = f.change(row)
	row.Firing, row.Over, row.Why = false, f.now, why
	f.changes.firing[row.Subject] = nil

	if r == nil || row.Told == 0 || f.silence(row) != 0 {
		return
	}
	f.tell(r, row, "resolved", why, DeliveryPending)
}

// quiet does three things: it repeats notices of alerts that go on, sends notices that an ended
// silence held back, and ends streaks of failures that have stopped.
func (f *finder) quiet(context.Context) error {
	for _, row := range sorted(f.s.firing) {
		r := f.c.rules[row.RuleID]
		if r == nil || f.current(row.Subject) == nil {
			continue
		}

		// After manyFired changes, leave the rest to the next step.
		if cur := f.current(row.Subject); len(f.fired) < manyFired && f.tellable(r, cur) {
			cur = f.change(cur)
			f.changes.firing[row.Subject] = cur
			if found, lasts := f.s.lasts[row.Subject]; lasts {
				cur.update(&found)
			}
			f.tellOf(r, cur)
		}

		if row.Event == job.AlertFailures && r.Failures != nil {
			if cur := f.current(row.Subject); f.now-cur.Last > micros(r.Failures.Within) {
				f.end(r, cur, fmt.Sprintf("no more failures for %s", r.Failures.Within))
			}
		}
	}
	return nil
}

// sorted returns the rows by id.
func sorted(m map[[16]byte]*FiredRow) []*FiredRow {
	out := make([]*FiredRow, 0, len(m))
	for _, row := range m {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b *FiredRow) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// withdraw ends three kinds of alerts: alerts that no rule covers any more, alerts about deleted
// jobs, and alerts about late or missing runs of paused jobs.
func (f *finder) withdraw(ctx context.Context) error {
	var ids []int64
	for _, row := range f.s.firing {
		if row.JobID != 0 {
			ids = append(ids, row.JobID)
		}
	}
	jobs, err := f.known(ctx, ids)
	if err != nil {
		return err
	}

	for _, row := range sorted(f.s.firing) {
		row = f.current(row.Subject)
		if row == nil {
			continue
		}

		r := f.c.rules[row.RuleID]
		if r == nil || !r.Has(row.Event) {
			f.end(nil, row, "no rule covers it any more")
			continue
		}
		if row.JobID == 0 {
			continue
		}

		j, there := jobs[row.JobID]
		switch {
		case !there || j.Gone:
			f.end(r, row, "the job was deleted")
		case !r.Takes(&j):
			f.end(nil, row, "no rule covers it any more")
		case j.Paused && (row.Event == job.AlertNeverRan || row.Event == job.AlertLateStart):
			f.end(r, row, "the job was paused")
		}
	}
	return nil
}

// known returns the jobs by id.
func (f *finder) known(ctx context.Context, ids []int64) (map[int64]job.AlertJob, error) {
	return f.Evaluator.jobs.of(ctx, f.DB, ids, f.now)
}
