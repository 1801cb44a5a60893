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

// changes is what one step has found.
type changes struct {
	position position
	fired    []*FiredRow            // that are new, or another now
	dirty    map[*FiredRow]bool     // those in it
	firing   map[[16]byte]*FiredRow // what fires behind it, where that is another than before
	streaks  map[[16]byte]*streak
	told     map[group][]told
	unsent   map[group]unsent // by what is told at the end
	pings    map[int64]ping   // by job
	inTime   []inTime         // what may end alerts
	beats    []beat
	lost     int64
	behind   bool
}

// group is what becomes one message.
type group struct {
	channel string
	rule    int64
	target  string
	state   DeliveryState
	alone   *FiredRow // of channels that take one event a message
	what    string    // of these
}

// told is an event of a message. Its alert may get its id only when it is written.
type told struct {
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

// ping is what the monitor of a job is told.
type ping struct {
	host string // of whom it is
	item job.AlertItem
}

// unsent are messages of an alert that nobody has begun to send.
type unsent struct {
	ids []int64
	all bool // there are no others
}

// beat is a heartbeat that is to be sent, or why it is not.
type beat struct {
	channel *channel
	held    string
}

// finder makes changes of what it sees.
type finder struct {
	*Evaluator
	*changes
	s   *state
	c   *config
	now job.Micros
}

// find looks at all that has happened since the last step that stands. It changes nothing of the state but when to look
// again, where, and what was read: if the step does not stand, nothing was found.
//
// What is followed by a position fails the step, for that must not move. Other looks that fail are left out and put off, so
// that one which is slow keeps nobody else's alerts, and the server has time for what it was asked.
func (e *Evaluator) find(ctx context.Context, now job.Micros) (*changes, error) {
	s := e.state
	f := &finder{Evaluator: e, s: s, c: s.config, now: now, changes: &changes{
		dirty: map[*FiredRow]bool{}, firing: map[[16]byte]*FiredRow{}, streaks: map[[16]byte]*streak{}, told: map[group][]told{}, pings: map[int64]ping{}, unsent: map[group]unsent{},
		position: position{Since: s.position.Since, Ends: s.position.Ends.Clone(), Lines: s.position.Lines.Clone(), Gone: map[string]job.Micros{}},
	}}
	for k, v := range s.position.Gone {
		f.position.Gone[k] = v
	}
	if err := f.runs(ctx); err != nil {
		return nil, err
	}
	if f.c.lines {
		if err := f.lines(ctx); err != nil {
			return nil, err
		}
	} else {
		f.position.Lines, f.position.Gone = trail.Trail{}, nil // begins anew when somebody wants it
	}
	for _, l := range []struct {
		what   string
		period time.Duration // zero: in each step
		look   func(context.Context) error
	}{
		{lateStart, 5 * time.Second, f.lateStart},
		{lateFinish, 5 * time.Second, f.lateFinish},
		{backlog, 5 * time.Second, f.backlog},
		{"nodes", 2 * time.Second, f.nodes},
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
				s.next[l.what] = now.Add(putOff)
			}
			e.Log.Warn("cannot look for some of what alerts tell of, trying again", "what", l.what, "error", err)
		}
	}
	return f.changes, nil
}

// What is kept of what is over.
const (
	Kept      = 30 * 24 * time.Hour
	beatsKept = 24 * time.Hour
)

// tidy removes what is kept no longer. It is done again when the step does not stand.
func (e *Evaluator) tidy(ctx context.Context, now job.Micros) error {
	for range 20 {
		if n, err := dropOld(ctx, e.DB.DB, now.Add(-Kept), now.Add(-beatsKept), 500); err != nil || n < 500 {
			return err
		}
	}
	return nil
}

// subject is the hash of a rule, an event and what it is about.
func subject(rule int64, event job.AlertEvent, about string) (key [16]byte) {
	sum := sha256.Sum256([]byte(strconv.FormatInt(rule, 10) + "\x00" + string(event) + "\x00" + about))
	return [16]byte(sum[:16])
}

func aboutJob(id int64) string { return "job " + strconv.FormatInt(id, 10) }

// current is what fires for a subject, or nil.
func (f *finder) current(key [16]byte) *FiredRow {
	if row, known := f.changes.firing[key]; known {
		return row // nil: it is over
	}
	return f.s.firing[key]
}

// change has a row written. What stands stays as it is until the step does.
func (f *finder) change(row *FiredRow) *FiredRow {
	if !f.dirty[row] {
		c := *row
		row = &c
		f.dirty[row] = true
		f.fired = append(f.fired, row)
	}
	return row
}

// sight is something that a rule tells of.
type sight struct {
	job     *job.AlertJob // nil: it is of no job
	app     string        // of what is of no job
	node    string
	run     string
	at      job.Micros
	due     job.Micros // of what is seen again and again, for which due time, of which later ones come later; zero: it is another each time
	state   bool       // it is a state that lasts: seen again, it has not happened again
	summary string
}

// fire notes that something is so.
func (f *finder) fire(r *rule, event job.AlertEvent, about string, see sight) {
	key := subject(r.ID, event, about)
	row := f.current(key)
	again := row != nil
	known := see.due != 0 && see.due <= f.s.seen[key] // several due times may be seen in turn, at each look
	if !again {
		if len(f.s.firing)+len(f.fired) >= manyFiring || len(f.fired) >= manyFired {
			f.lost++
			return
		}
		row = &FiredRow{Subject: key, Firing: true, RuleID: r.ID, Rule: r.Name, Event: event, Severity: r.Severity, App: see.app, First: see.at, Last: see.at, Seen: 1}
		if see.job != nil {
			row.App, row.JobID, row.Job, row.Owner = see.job.App, see.job.ID, see.job.Name, see.job.Owner
		}
	} else if (see.state || known) && !f.tellable(r, row) {
		return // it goes on, and need not be told again
	}
	row = f.change(row)
	f.changes.firing[key] = row
	if again && !see.state && !known {
		row.Seen++
	}
	if see.due > f.s.seen[key] {
		f.s.seen[key] = see.due // if the step does not stand, it is counted once less at most
	}
	row.Last, row.Node, row.Summary, row.Severity = max(row.Last, see.at), see.node, see.summary, r.Severity
	if see.run != "" {
		row.Run = see.run
	}
	f.tellOf(r, row)
}

// tellable tells whether there is something new to say of what goes on.
func (f *finder) tellable(r *rule, row *FiredRow) bool {
	n := f.silence(row)
	return (row.Told == 0 || f.now-row.Told >= micros(r.Repeat)) && (n == 0 || n != row.Silence)
}

// tellOf tells of what fires, unless it was told a while ago or somebody wants silence.
func (f *finder) tellOf(r *rule, row *FiredRow) {
	if row.Told != 0 && f.now-row.Told < micros(r.Repeat) {
		return
	}
	what := "fired"
	if row.Told != 0 {
		what = "repeated"
	}
	if n := f.silence(row); n != 0 {
		if row.Silence != n {
			row.Silence = n
			f.tell(r, row, what, row.Summary, DeliverySilenced)
		}
		return
	}
	row.Told, row.Silence = f.now, 0
	f.tell(r, row, what, row.Summary, DeliveryPending)
}

// silence returns the silence that covers an alert, 0 if none does.
func (f *finder) silence(row *FiredRow) int64 {
	for i := range f.c.silences {
		if s := &f.c.silences[i]; s.Until > f.now && s.Covers(row.Rule, row.App, row.Job) {
			return s.ID
		}
	}
	return 0
}

// tell has an event become part of messages.
func (f *finder) tell(r *rule, row *FiredRow, what, text string, state DeliveryState) {
	for _, name := range r.Channels {
		ch := f.c.channels[name]
		if ch == nil {
			f.lost++ // a hand has removed its row
			continue
		}
		if what == "resolved" && !r.Has(job.AlertRecovered) && ch.Type != job.ChannelPagerDuty {
			continue // an incident there would stay open
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
		f.told[g] = append(f.told[g], told{row: row, what: what, at: f.now, seen: row.Seen, text: text})
	}
}

// over notes that something is not so any more.
func (f *finder) over(r *rule, event job.AlertEvent, about, why string) {
	key := subject(r.ID, event, about)
	if row := f.current(key); row != nil {
		f.end(r, row, why)
	}
}

func (f *finder) end(r *rule, row *FiredRow, why string) {
	row = f.change(row)
	row.Firing, row.Over, row.Why = false, f.now, why
	f.changes.firing[row.Subject] = nil
	if r == nil || row.Told == 0 || f.silence(row) != 0 {
		return
	}
	f.tell(r, row, "resolved", why, DeliveryPending)
}

// quiet tells of what fires and was not told, because of a silence that has ended, and looks which streaks are over.
func (f *finder) quiet(context.Context) error {
	for _, row := range sorted(f.s.firing) {
		r := f.c.rules[row.RuleID]
		if r == nil || f.current(row.Subject) == nil {
			continue
		}
		if row.Told == 0 {
			cur := f.current(row.Subject)
			if cur.Told == 0 && f.silence(cur) != cur.Silence {
				cur = f.change(cur)
				f.changes.firing[row.Subject] = cur
				f.tellOf(r, cur)
			}
		}
		if row.Event == job.AlertFailures && r.Failures != nil {
			if cur := f.current(row.Subject); f.now-cur.Last > micros(r.Failures.Within) {
				f.end(r, cur, fmt.Sprintf("no further failure for %s", r.Failures.Within))
			}
		}
	}
	return nil
}

// sorted has rows in the order of their ids.
func sorted(m map[[16]byte]*FiredRow) []*FiredRow {
	out := make([]*FiredRow, 0, len(m))
	for _, row := range m {
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b *FiredRow) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// withdraw ends what no rule tells of any more, and what is about jobs that are gone or paused.
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
			f.end(nil, row, "no rule tells of it any more")
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
			f.end(nil, row, "no rule tells of it any more")
		case j.Paused && (row.Event == job.AlertNeverRan || row.Event == job.AlertLateStart):
			f.end(r, row, "the job was paused")
		}
	}
	return nil
}

// known returns jobs.
func (f *finder) known(ctx context.Context, ids []int64) (map[int64]job.AlertJob, error) {
	return f.Evaluator.jobs.of(ctx, f.DB, ids, f.now)
}
