package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Members are the sessions that share the work, as of the last look.
type Members struct {
	IDs    []uuid.UUID         // of the sessions
	Labels []map[string]string // of each session in IDs, including the labels of its handlers
	Index  int                 // of this session in IDs; -1 if it is missing
	Seen   int64               // raised with every change of the members; zero before the first look
}

// ReaperConfig configures a Reaper.
type ReaperConfig struct {
	DB      *sql.DB
	Session *Session
	Lookout Lookout
	Cordon  Cordon
	Log     *slog.Logger

	Wake        loop.Wake // sessions have come or gone
	WakeClaimer loop.Wake // the members have changed
	WakeReaper  loop.Wake // a session was buried: its executing runs must be ended
}

// Lookout knows which sessions there were a moment ago.
type Lookout interface {
	// Alone reports whether there was only one session. Then there is no other session to watch.
	// If this is unknown, Alone returns false. When the answer changes, the reaper is woken.
	Alone() bool
}

// Cordon keeps a node from taking work.
type Cordon interface {
	// Obey is called at each look while the node is cordoned. It releases the node's prepared
	// runs.
	Obey()
}

// Reaper buries dead sessions: it deletes their rows. result.Reaper then ends the executing runs
// of sessions without a row.
type Reaper struct {
	ReaperConfig

	names map[string]bool // of the nodes that share the work, as of the last change
	quiet bool            // at the last look, every session had shown a recent beat
	seen  map[uuid.UUID]observation
}

// observation is a beat, and the time on this node's own clock at which it was first seen.
type observation struct {
	beat  int64
	since time.Duration
}

// NewReaper returns a reaper, ready to Run.
func NewReaper(cfg ReaperConfig) *Reaper { return &Reaper{ReaperConfig: cfg} }

// Run looks until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	scan := r.Session.Timings.Scan
	return loop.Loop{
		First:  loop.Jitter(scan),
		Period: scan,
		Wake:   r.Wake,
		Log:    r.Log,
		Failed: "cannot check for dead nodes, trying again",
	}.Run(ctx, func(ctx context.Context, woken bool) (pause time.Duration, err error) {
		if woken { // a session may have come or gone since quiet was set
			r.quiet = false
		}

		err = loop.ErrSkipped
		if r.Session.Fresh() {
			err = r.reap(ctx, boottime.Now)
		}
		if r.quiet {
			pause = 4 * scan
		}
		return pause, err
	})
}

// reap looks at the sessions once, by this node's own clock. The silence of a session begins at
// the end of the look that first showed its latest beat, and ends at the start of the current
// look. So the silence is never overstated, even if looks take long.
func (r *Reaper) reap(ctx context.Context, clock func() time.Duration) error {
	if !r.Session.Fresh() {
		return nil // this node's own session may be dead
	}
	if r.quiet && len(r.seen) == 1 && r.Lookout.Alone() && !r.Session.Cordoned() {
		return nil
	}

	before := clock()
	rows, err := r.DB.Sessions(ctx)
	if err != nil {
		return err
	}

	after := clock()
	alive := make([]sql.SessionRow, 0, len(rows))
	// A failed burial, for example of a locked row, must not prevent the others.
	var failed []error
	for _, row := range rows {
		if r.expired(row, before) {
			failed = append(failed, r.bury(ctx, row))
		} else {
			alive = append(alive, row)
		}
	}

	r.remember(rows, after)
	r.publish(alive)
	r.quiet = len(alive) == len(rows) && r.allBeat(before)
	return errors.Join(failed...)
}

// allBeat reports whether every session has shown a new beat within two beat periods.
func (r *Reaper) allBeat(mono time.Duration) bool {
	for _, s := range r.seen {
		if mono-s.since > 2*r.Session.Timings.Beat {
			return false
		}
	}
	return true
}

// expired requires two things. The session has shown the same beat for more than the expiry on
// this node's own clock. And the time of that beat is at least as far from MySQL's present time,
// in the past, or in the future if MySQL's clock was put back.
func (r *Reaper) expired(row sql.SessionRow, mono time.Duration) bool {
	if row.ID == r.Session.id {
		return false
	}
	seen, ok := r.seen[row.ID]
	expiry, now := r.Session.Timings.Expiry, r.Session.Clock.Now()
	far := row.BeatAt < now.Add(-expiry) || row.BeatAt > now.Add(expiry)
	return ok && seen.beat == row.Beat && mono-seen.since > expiry && far
}

func (r *Reaper) remember(rows []sql.SessionRow, mono time.Duration) {
	next := make(map[uuid.UUID]observation, len(rows))
	for _, row := range rows {
		s, ok := r.seen[row.ID]
		if !ok || s.beat != row.Beat {
			s = observation{row.Beat, mono}
		}
		next[row.ID] = s
	}
	r.seen = next
}

func (r *Reaper) publish(alive []sql.SessionRow) {
	m := Members{Index: -1}
	names := map[string]bool{}
	for _, row := range alive {
		mine := row.ID == r.Session.id
		if mine && r.Session.cordon(row.Cordoned) {
			r.Log.Info("cordon changed", "cordoned", row.Cordoned != 0, "since", row.Cordoned)
		}
		if row.Draining || row.Cordoned != 0 {
			continue
		}
		if mine {
			m.Index = len(m.IDs)
		}

		names[row.Node] = true
		m.IDs, m.Labels = append(m.IDs, row.ID), append(m.Labels, row.AllLabels())
	}

	if r.Session.Cordoned() {
		r.Cordon.Obey()
	}

	old := r.Session.members.Load()
	if old.Seen > 0 && old.Index == m.Index && slices.Equal(old.IDs, m.IDs) {
		return // a session's labels never change
	}

	m.Seen = old.Seen + 1
	r.Session.members.Store(&m)
	r.logMembers(names)
	r.WakeClaimer.Up()
}

// logMembers logs which nodes take work, or no longer do. If a node is back with a new session,
// nothing has changed.
func (r *Reaper) logMembers(names map[string]bool) {
	joined, left := missing(names, r.names), missing(r.names, names)
	switch {
	case r.names == nil:
		r.Log.Info("active nodes", "nodes", joined)
	case joined != "" || left != "":
		r.Log.Info("the active nodes have changed", "joined", joined, "left", left, "nodes", len(names))
	}
	r.names = names
}

// missing lists the names that are in the first set and not in the second.
func missing(in, from map[string]bool) string {
	var out []string
	for name := range in {
		if !from[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// bury deletes the row of a dead session. If we die afterwards, the session's runs have an owner
// without a row, and the next look of any node ends them.
func (r *Reaper) bury(ctx context.Context, row sql.SessionRow) error {
	var buried bool
	err := r.DB.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.TakeLocks([]sql.LockID{sql.LockSessions}); err != nil {
			return err
		}

		var err error
		if buried, err = tx.DeleteSession(row.ID, row.Beat); err != nil || !buried {
			return err
		}
		if err := trip.EndLife(tx, row.ID); err != nil {
			return err
		}

		_, err = tx.InsertAudit(r.obituary(row))
		return err
	})
	if err != nil {
		return err // also after an unknown commit: the next look sees whether the row is gone
	}

	if buried {
		r.Log.Warn("declared a node dead", "session", row.ID, "node", row.Node, "last_beat", row.BeatAt)
		r.WakeReaper.Up()
	}

	return nil
}

// obituary returns the audit line of a session that vanished.
func (r *Reaper) obituary(row sql.SessionRow) *job.Entry {
	// This cannot fail.
	life, _ := json.Marshal(job.SessionLife{
		Session:  row.ID.String(),
		Started:  row.Started.Time(),
		LastBeat: row.BeatAt.Time(),
	})

	return &job.Entry{
		At:     r.Session.Clock.Now(),
		Actor:  r.Session.actor(),
		Action: job.ActionReap,
		Kind:   job.KindSession,
		Name:   row.Node,
		Reason: "its last heartbeat was at " + row.BeatAt.String(),
		Was:    string(life),
	}
}
