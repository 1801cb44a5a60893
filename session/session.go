package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Reasons for the loss of a session.
var (
	ErrLapsed = errors.New("the node's lease expired: it could not renew it in MySQL in time")
	ErrBuried = errors.New("another node declared this node dead")
	errIDs    = errors.New("the session has used up its run ids")
)

// Identity describes a node to the others.
type Identity struct {
	Node    string
	Address string
	PID     int
	Version string
	Slots   int

	Labels   map[string]string // without the labels of its handlers
	Handlers []string          // keys of its handlers

	Earlier []uuid.UUID // sessions that this process lost; they do not block its name

	// Zones is the fingerprint of its time zone data, see job.ZoneData; empty: the data differ
	// from those of all other nodes.
	Zones     string
	ZonesFrom string // source of that data
}

// Session is one life of a node in the cluster. All methods are safe for concurrent use.
type Session struct {
	Timings Timings
	Clock   *Clock

	id       uuid.UUID
	number   trip.Owner // identifies the session in rows of runs
	node     string
	lease    lease
	minted   atomic.Int64 // run ids minted until now
	draining atomic.Bool
	leaving  atomic.Bool  // End is about to delete the session's row
	cordoned atomic.Int64 // time of the node's cordon, as of the last look; 0: not cordoned
	seen     atomic.Int64 // time of the cordon that the session obeys by preparing and starting nothing; 0: none
	beatNow  loop.Wake    // wakes the heartbeat
	members  atomic.Pointer[Members]
	lost     context.CancelCauseFunc
	ctx      context.Context
}

// Register inserts a new session. It returns when the row is known to be committed, because a
// session must not claim earlier. The session outlives ctx; it ends when it is lost. Register
// tries until it succeeds, until ctx ends, or until the server refuses for a reason that waiting
// does not cure (sql.ErrRefuseJoin).
func Register(
	ctx context.Context, db *sql.DB, clock *Clock, t Timings, me Identity, log *slog.Logger,
) (*Session, error) {
	others := watched{}
	namesakes := names{own: slices.Clone(me.Earlier), seen: map[uuid.UUID]namesake{}}
	waits := false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		s, err := register(ctx, db, clock, t, me, others, &namesakes)
		if err == nil {
			return s, nil
		}

		switch {
		case errors.Is(err, sql.ErrRefuseJoin):
			return nil, err
		case errors.Is(err, errNameHeld):
			pause = nameLook
			if !waits {
				log.Info("waiting to join: an earlier session with this node's name has not ended", "reason", err)
				waits = true
			}
		default:
			log.Warn("cannot join the cluster yet, trying again", "error", err, "in", pause)
		}

		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// watched holds the beats of existing sessions that a node has observed while it waits to join. See
// sql.Tx.JoinExpiry.
type watched map[uuid.UUID]observation

// silent returns how long a session had shown the same beat when the look at mono began. At the
// first look, the result is zero or negative.
func (v watched) silent(id uuid.UUID, beat int64, mono time.Duration) time.Duration {
	s, ok := v[id]
	if !ok || s.beat != beat {
		s = observation{beat, boottime.Now()}
		v[id] = s
	}
	return mono - s.since
}

func register(
	ctx context.Context, db *sql.DB, clock *Clock, t Timings, me Identity, others watched, namesakes *names,
) (*Session, error) {
	if err := db.Check(ctx); err != nil {
		return nil, err
	}

	s := &Session{
		Timings: t,
		Clock:   clock,
		id:      uuid.New(),
		node:    me.Node,
		lease:   lease{clock: boottime.Now},
		beatNow: loop.NewWake(),
	}
	s.members.Store(&Members{Index: -1})
	sent := boottime.Now()
	err := db.Tx(ctx, func(tx *sql.Tx) (err error) {
		silent := func(id uuid.UUID, beat int64) time.Duration { return others.silent(id, beat, sent) }
		if err := tx.JoinExpiry(t.Expiry, silent); err != nil {
			return err
		}
		if err := namesakes.check(tx, me.Node, t); err != nil {
			return err
		}

		switch node, err := trip.LockNode(tx, me.Node); {
		case err == nil:
			// Without this, the session would take work until its first look.
			s.cordoned.Store(int64(node.Since))
		case !errors.Is(err, sql.ErrNotFound):
			return err
		}

		if err := joinZones(tx, s.id, me.Zones); err != nil {
			return err
		}

		s.number, err = trip.NewLife(tx, s.id, me.Node)
		if err != nil {
			return err
		}

		return tx.InsertSession(
			sql.SessionRow{
				ID:        s.id,
				Node:      me.Node,
				Address:   me.Address,
				PID:       me.PID,
				Version:   me.Version,
				Slots:     me.Slots,
				Labels:    me.Labels,
				Handlers:  me.Handlers,
				Zones:     me.Zones,
				ZonesFrom: me.ZonesFrom,
			})
	})
	if sql.IsUnknown(err) {
		namesakes.own = append(namesakes.own, s.id)
		// Settle the commit. If that fails, too, there may be a row that never beats: peers bury
		// it. The next attempt has a new id.
		var there bool
		err = db.Tx(ctx, func(tx *sql.Tx) (err error) { there, err = tx.LockSession(s.id); return err })
		if err == nil && !there {
			err = fmt.Errorf("register: the commit was not applied")
		}
	}

	if err != nil {
		return nil, err
	}

	s.lease.renew(sent)
	s.ctx, s.lost = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// ID returns the session's id.
func (s *Session) ID() uuid.UUID { return s.id }

// Now returns the time of MySQL's clock.
func (s *Session) Now() job.Micros { return s.Clock.Now() }

// Context ends when the session is lost or its node has left. If the session is lost, the cause is
// ErrLapsed, ErrBuried, errIDs, or sql.ErrRefuseJoin after a restore of the database.
func (s *Session) Context() context.Context { return s.ctx }

// Lose ends the session. The first cause counts.
func (s *Session) Lose(cause error) { s.lost(cause) }

// Lapse is Lose for a lease that has lapsed.
func (s *Session) Lapse() { s.Lose(ErrLapsed) }

// Lost reports whether the session was lost: its lease or row is gone, its ids are used up, or the
// database was restored. It returns false after a stop of the node.
func (s *Session) Lost() bool {
	cause := context.Cause(s.ctx)
	return errors.Is(cause, ErrLapsed) || errors.Is(cause, ErrBuried) || errors.Is(cause, errIDs) ||
		errors.Is(cause, sql.ErrRefuseJoin)
}

// Fresh reports whether a run may be started now. Call it right before each start. After a
// suspension it returns false until MySQL's clock has been read again. By the old reading, a spawn
// window that is over might look open.
func (s *Session) Fresh() bool {
	if s.ctx.Err() != nil || s.lease.age() > s.Timings.Stale {
		return false
	}
	if s.Clock.Slept() {
		s.beat()
		return false
	}
	return true
}

// Unsettled returns how long other nodes may still use an old reading after MySQL's clock was put
// forward; zero: no node does. Later, a node that has not read the clock again has a stale lease
// and starts nothing.
func (s *Session) Unsettled() time.Duration {
	ago, ever := s.Clock.PutForward()
	if !ever {
		return 0
	}
	return max(0, s.Timings.Stale-ago)
}

// Age returns the age of the lease.
func (s *Session) Age() time.Duration { return s.lease.age() }

// Node returns the name of the node.
func (s *Session) Node() string { return s.node }

// Drain marks the session as draining, and publishes that with an immediate beat. Its peers then
// take over its share of the work.
func (s *Session) Drain() {
	s.draining.Store(true)
	s.beat()
}

// beat requests a beat at once.
func (s *Session) beat() { s.beatNow.Up() }

// Cordoned reports whether the node must take no new work.
func (s *Session) Cordoned() bool { return s.cordoned.Load() != 0 }

// cordon sets the time of the node's cordon; zero: not cordoned. It reports whether the cordon
// changed.
func (s *Session) cordon(since job.Micros) bool {
	changed := s.cordoned.Swap(int64(since)) != int64(since)
	if changed && since == 0 {
		s.seen.Store(0)
		s.beat()
	}
	return changed
}

// ObeyCordon publishes, with an immediate beat, that under the current cordon nothing is prepared
// and no start is under way.
func (s *Session) ObeyCordon() {
	if since := s.cordoned.Load(); since != 0 && s.seen.Swap(since) != since {
		s.beat()
	}
}

// ObeysCordon reports whether ObeyCordon was called for the current cordon.
func (s *Session) ObeysCordon() bool {
	since := s.cordoned.Load()
	return since != 0 && s.seen.Load() == since
}

// Draining reports whether the node is about to stop.
func (s *Session) Draining() bool { return s.draining.Load() }

// Share returns this session's share of the jobs: share number index out of total. index is -1
// while the session has no share.
func (s *Session) Share() (index, total int) {
	m := s.members.Load()
	return m.Index, len(m.IDs)
}

// Peers returns the labels of the sessions that take work, this one included.
func (s *Session) Peers() []map[string]string { return s.members.Load().Labels }

// Number returns the number that identifies the session in rows of runs.
func (s *Session) Number() trip.Owner { return s.number }

// counterBits is the size of the counter in a run's id. The bits above it are the number of the
// session that made the run.
const counterBits = 38

// lastIDs is the number of ids in reserve. A session that has used up its other ids mints these
// while it ends.
const lastIDs = 1 << 20

// Mint returns the first of n consecutive unused run ids. A session that has nearly used up its
// ids, after 270 billion runs, is lost, and a new session follows.
func (s *Session) Mint(n int) (run int64) {
	last := s.minted.Add(int64(n))
	if last >= 1<<counterBits-lastIDs {
		s.Lose(errIDs)
	}
	return int64(s.number)<<counterBits + last - int64(n) + 1
}

// End deletes the session's row, after everything that it owned was released or ended.
func (s *Session) End(ctx context.Context, db *sql.DB) error {
	s.leaving.Store(true)
	return db.Tx(ctx, func(tx *sql.Tx) error {
		action, reason := job.ActionLeave, ""
		if s.Lost() {
			action, reason = job.ActionFence, context.Cause(s.ctx).Error()+"; its runs were killed"
		}

		exists, err := auditSession(tx, s.id, s.actor(), action, reason)
		if err != nil {
			return err
		}

		// If a peer has buried the session, the peer's audit line says when the session lived.
		// Only this node knows that it killed the commands. After an unknown commit this line may
		// be written twice.
		if !exists && s.Lost() {
			line := job.Entry{
				At:     s.Now(),
				Actor:  s.actor(),
				Action: action,
				Kind:   job.KindSession,
				Name:   s.node,
				Reason: reason,
			}
			if _, err := tx.InsertAudit(&line); err != nil {
				return err
			}
		}

		if err := trip.EndLife(tx, s.id); err != nil {
			return err
		}
		return tx.EndSession(s.id)
	})
}

// actor returns the actor for the node's own actions.
func (s *Session) actor() job.Actor { return job.Actor{Who: job.Itself, Origin: s.node} }
