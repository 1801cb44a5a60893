package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Members is who shares the work, as of the last look.
type Members struct {
	IDs    []uuid.UUID         // sessions that take work, ascending
	Labels []map[string]string // of each, those of its handlers included
	Index  int                 // of this session among them, -1 when it is not there
	Seen   int64               // changes whenever they do; zero before the first look
}

// Reaper buries sessions that are dead and frees what dead sessions owned.
type Reaper struct {
	DB      *sql.DB
	Session *Session
	Changed func() // called when tasks were freed, or others share the work now
	// Cordoned is called at each look while the node is cordoned: what is prepared is to be given back.
	Cordoned func()
	// Alone tells that there was a single session a moment ago, so that nobody's beat is to be watched; nil: nobody knows.
	Alone func() bool
	Log   *slog.Logger

	wake  chan struct{}
	calm  int  // so many looks need not be close
	quiet bool // at the last of them all had shown a beat lately
	seen  map[uuid.UUID]sighting
	nodes map[uuid.UUID]string // names of sessions seen at some time, for the runs they lost
}

// sighting is since when, on this node's own clock, a session shows the same beat.
type sighting struct {
	beat  int64
	since time.Duration
}

// NewReaper sets what has no useful zero value.
func NewReaper(r Reaper) *Reaper {
	r.wake = make(chan struct{}, 1)
	return &r
}

// Wake asks for a look now: sessions have come or gone.
func (r *Reaper) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// batch bounds one transaction.
const batch = 200

// Run looks until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	wait := rand.N(r.Session.Timings.Scan) // so that nodes do not march in step
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-r.wake:
			r.calm = 0
		}
		wait = r.Session.Timings.Scan
		if err := r.reap(ctx, boottime.Now); err != nil && ctx.Err() == nil {
			r.Log.Warn("cannot look for dead nodes, trying again", "error", err)
		}
		if r.calm > 0 && r.quiet {
			wait *= 4
		}
	}
}

// reap takes one look by this node's own clock. How long a beat stands still is counted from behind the look that
// showed it first until before the one that shows it still: looks may take long.
func (r *Reaper) reap(ctx context.Context, clock func() time.Duration) error {
	if !r.Session.Fresh() {
		return nil // who cannot be sure of its own life buries nobody
	}
	if r.calm > 0 && len(r.seen) == 1 && r.Alone != nil && r.Alone() && !r.Session.Cordoned() {
		r.calm--
		return nil // whoever came since then, or changed this session's row, wakes it
	}
	if r.calm > 0 {
		before := clock()
		rows, err := r.DB.Sessions(ctx)
		if err != nil {
			return err
		}
		if r.same(rows, before) {
			r.calm--
			r.remember(rows, clock())
			r.quiet = r.allBeat(before)
			r.publish(rows)
			return nil
		}
	}
	r.calm = 0 // until all of this look is done
	if err := r.lookClosely(ctx, clock); err != nil {
		return err
	}
	r.calm, r.quiet = calmLooks, true
	return nil
}

// calmLooks is after how many looks at which nobody came or went those are looked for whose session is gone and who own
// tasks still: whoever buries a session frees them at once, unless it dies.
const calmLooks = 4

// allBeat tells whether every session has shown another beat not longer ago than it takes it to.
func (r *Reaper) allBeat(mono time.Duration) bool {
	for _, s := range r.seen {
		if mono-s.since > 2*r.Session.Timings.Beat {
			return false
		}
	}
	return true
}

// same tells whether the sessions are those of the last look, and all of them live.
func (r *Reaper) same(rows []sql.SessionRow, mono time.Duration) bool {
	for _, row := range rows {
		if _, known := r.seen[row.ID]; !known || r.expired(row, mono) {
			return false
		}
	}
	return len(rows) == len(r.seen)
}

// lookClosely buries who is dead and frees what the dead owned.
func (r *Reaper) lookClosely(ctx context.Context, clock func() time.Duration) error {
	// Owners first, sessions second. A session's row is committed before it owns anything and its id never
	// comes back, so an owner without a row is dead for good. The other way round, a session that registered
	// between the two readings would look dead.
	owners, err := r.DB.Owners(ctx)
	if err != nil {
		return err
	}
	before := clock()
	rows, err := r.DB.Sessions(ctx)
	if err != nil {
		return err
	}
	after := clock()
	alive := make([]sql.SessionRow, 0, len(rows))
	var failed []error // one that fails, as where somebody has locked a row, does not keep the others
	for _, row := range rows {
		if !r.expired(row, before) {
			alive = append(alive, row)
			continue
		}
		failed = append(failed, r.bury(ctx, row))
	}
	r.remember(rows, after)
	r.publish(alive)
	for _, id := range owners {
		dead := !slices.ContainsFunc(rows, func(s sql.SessionRow) bool { return s.ID == id })
		if dead && ctx.Err() == nil {
			failed = append(failed, r.orphans().Free(ctx, id))
		}
	}
	return errors.Join(failed...)
}

// expired needs both: the same beat on this node's own clock for the whole expiry, and a last beat that is as far from
// MySQL's clock: as old, or in a future from which that clock was put back.
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
	next := make(map[uuid.UUID]sighting, len(rows))
	if r.nodes == nil || len(r.nodes) > 1000 {
		r.nodes = map[uuid.UUID]string{}
	}
	for _, row := range rows {
		s, ok := r.seen[row.ID]
		if !ok || s.beat != row.Beat {
			s = sighting{row.Beat, mono}
		}
		next[row.ID] = s
		r.nodes[row.ID] = row.Node
	}
	r.seen = next
}

func (r *Reaper) publish(alive []sql.SessionRow) {
	m := Members{Index: -1}
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
		m.IDs, m.Labels = append(m.IDs, row.ID), append(m.Labels, row.AllLabels())
	}
	if r.Session.Cordoned() {
		r.Cordoned()
	}
	old := r.Session.members.Load()
	if old.Seen > 0 && old.Index == m.Index && slices.Equal(old.IDs, m.IDs) {
		return // a session's labels never change
	}
	m.Seen = old.Seen + 1
	r.Session.members.Store(&m)
	r.Log.Info("cluster changed", "sessions", len(m.IDs))
	r.Changed()
}

// bury deletes the row of a dead session. If we die behind it, its tasks have an owner without a row, and the
// next look of anybody frees them.
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
		_, err = tx.InsertAudit(r.obituary(row))
		return err
	})
	if err != nil {
		return err // unknown too: the next look sees what stands
	}
	if buried {
		r.Log.Warn("buried a dead session", "session", row.ID, "node", row.Node, "last_beat", row.BeatAt)
	}
	return nil
}

// obituary is the audit's line of a session that vanished.
func (r *Reaper) obituary(row sql.SessionRow) *job.Entry {
	life, _ := json.Marshal(job.SessionLife{Session: row.ID.String(), Started: row.Started.Time(), LastBeat: row.BeatAt.Time()}) // cannot fail
	return &job.Entry{
		At: r.Session.Clock.Now(), Actor: r.Session.itself(), Action: job.ActionReap, Kind: job.KindSession, Name: row.Node,
		Reason: "its last beat was at " + row.BeatAt.String(), Was: string(life),
	}
}

func (r *Reaper) orphans() *Orphans {
	return &Orphans{DB: r.DB, Now: r.Session.Clock.Now, Node: func(id uuid.UUID) string { return r.nodes[id] }, By: r.Session.itself(), Changed: r.Changed, Log: r.Log}
}
