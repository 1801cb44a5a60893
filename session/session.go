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
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Why a session was lost.
var (
	ErrLapsed = errors.New("lease lapsed")
	ErrBuried = errors.New("session was buried by a peer")
	errIDs    = errors.New("the session has no run ids left")
)

// Identity is what a node tells the cluster about itself.
type Identity struct {
	Node    string
	Address string
	PID     int
	Version string
	Slots   int

	Labels   map[string]string // without those of its handlers
	Handlers []string          // their keys

	Earlier []uuid.UUID // sessions that this process lost; they do not hold its name

	// fingerprint of the time zone data that it computes with, see job.ZoneData; empty: none that
	// any other has
	Zones     string
	ZonesFrom string // where that is from
}

// Session is one life of a node in the cluster. All methods are safe for concurrent use.
type Session struct {
	Timings Timings
	Clock   *Clock

	id       uuid.UUID
	number   trip.Owner // names it in runs
	node     string
	lease    lease
	minted   atomic.Int64 // run ids
	draining atomic.Bool
	leaving  atomic.Bool   // its row is about to be removed, see End
	cordoned atomic.Int64  // since when its node is, as of the last look; 0: it is not
	seen     atomic.Int64  // the cordon since which nothing is prepared or started
	tell     chan struct{} // asks for a beat at once
	members  atomic.Pointer[Members]
	lost     context.CancelCauseFunc
	ctx      context.Context
}

// Register writes a new session and returns it once its row is known to be committed: nothing may
// be claimed before. The session outlives ctx; it ends when it is lost. Register tries until it
// succeeds, ctx ends, or the server refuses for a reason that waiting does not mend
// (sql.ErrRefuseJoin).
func Register(ctx context.Context, db *sql.DB, clock *Clock, t Timings, me Identity, log *slog.Logger) (*Session,
	error) {
	others := vigil{}
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
				log.Info("waiting to join until the earlier session with this node's name is over", "reason", err)
				waits = true
			}
		default:
			log.Warn("cannot register yet, trying again", "error", err, "in", pause)
		}

		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// vigil is what who wants to join has seen of the sessions that are there, see sql.Tx.JoinExpiry.
type vigil map[uuid.UUID]sighting

// silent is for how long a session showed the same beat before the look that began at mono; none at
// the first.
func (v vigil) silent(id uuid.UUID, beat int64, mono time.Duration) time.Duration {
	s, ok := v[id]
	if !ok || s.beat != beat {
		s = sighting{beat, boottime.Now()}
		v[id] = s
	}
	return mono - s.since
}

func register(ctx context.Context, db *sql.DB, clock *Clock, t Timings, me Identity, others vigil,
	namesakes *names) (*Session, error) {
	if err := db.Check(ctx); err != nil {
		return nil, err
	}

	s := &Session{Timings: t, Clock: clock, id: uuid.New(), node: me.Node, tell: make(chan struct{}, 1)}
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
			s.cordoned.Store(int64(node.Since)) // or it would take work until its first look
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
		// Settle it; if that fails too, the row, if there is one, never beats and is buried, and
		// the next try has another id.
		var there bool
		err = db.Tx(ctx, func(tx *sql.Tx) (err error) { there, err = tx.LockSession(s.id); return err })
		if err == nil && !there {
			err = fmt.Errorf("register: the commit did not arrive")
		}
	}

	if err != nil {
		return nil, err
	}

	s.lease.renew(sent)
	s.ctx, s.lost = context.WithCancelCause(context.WithoutCancel(ctx))
	return s, nil
}

// ID is the session's id.
func (s *Session) ID() uuid.UUID { return s.id }

// Now is MySQL's clock.
func (s *Session) Now() job.Micros { return s.Clock.Now() }

// Context ends when the session is lost (its cause is then ErrLapsed, ErrBuried, or
// sql.ErrRefuseJoin where the database was restored) or its node has left.
func (s *Session) Context() context.Context { return s.ctx }

// Lose ends the session. The first cause counts.
func (s *Session) Lose(cause error) { s.lost(cause) }

// Lost tells whether the session ended by losing its lease or its row, as opposed to a stop of the
// node.
func (s *Session) Lost() bool {
	cause := context.Cause(s.ctx)
	return errors.Is(cause, ErrLapsed) || errors.Is(cause, ErrBuried) || errors.Is(cause, errIDs) ||
		errors.Is(cause, sql.ErrRefuseJoin)
}

// Fresh tells whether something may be started now. It is asked right before each start. After a
// suspension, however short, that is not before MySQL's clock was read: by the old reading a window
// would be open that is over.
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

// Unsettled is for how long some node may still go by what MySQL's clock was before it was put
// forward; 0: none does. Who has not read it since has no fresh lease by then, and starts nothing.
func (s *Session) Unsettled() time.Duration {
	ago, ever := s.Clock.PutForward()
	if !ever {
		return 0
	}
	return max(0, s.Timings.Stale-ago)
}

// Age is how old the lease is.
func (s *Session) Age() time.Duration { return s.lease.age() }

// Node is the name of the node.
func (s *Session) Node() string { return s.node }

// Drain marks the session so that its peers take over its share of the work, and tells them with a
// beat at once.
func (s *Session) Drain() {
	s.draining.Store(true)
	s.beat()
}

// beat asks for a beat at once.
func (s *Session) beat() {
	select {
	case s.tell <- struct{}{}:
	default:
	}
}

// Cordoned tells whether the node is to take no new work.
func (s *Session) Cordoned() bool { return s.cordoned.Load() != 0 }

// cordon notes since when the node is cordoned, zero if it is not, and tells whether that is new.
func (s *Session) cordon(since job.Micros) bool {
	changed := s.cordoned.Swap(int64(since)) != int64(since)
	if changed && since == 0 {
		s.seen.Store(0)
		s.beat()
	}
	return changed
}

// ObeyCordon says, with a beat at once, that nothing is prepared or being started any more since
// the node is cordoned.
func (s *Session) ObeyCordon() {
	if since := s.cordoned.Load(); since != 0 && s.seen.Swap(since) != since {
		s.beat()
	}
}

// ObeysCordon tells whether that was said of the cordon that is in force.
func (s *Session) ObeysCordon() bool {
	since := s.cordoned.Load()
	return since != 0 && s.seen.Load() == since
}

// Draining tells whether the node is about to stop.
func (s *Session) Draining() bool { return s.draining.Load() }

// Share says which part of the jobs is this session's: the index-th of so many; index is -1 while
// it is none.
func (s *Session) Share() (index, of int) {
	m := s.members.Load()
	return m.Index, len(m.IDs)
}

// Peers returns the labels of the sessions that take work, those of this one included.
func (s *Session) Peers() []map[string]string { return s.members.Load().Labels }

// Number names the session in rows of runs.
func (s *Session) Number() trip.Owner { return s.number }

// counterBits are the low bits of a run's id: a counter of the session that made it. The other bits
// are the session's number.
const counterBits = 38

// lastIDs are left for whoever mints while the session ends for want of ids.
const lastIDs = 1 << 20

// Mint returns the first of n run ids that nobody else uses. A session that has nearly used up its
// ids is lost, and the next one begins anew: after 270 billion runs.
func (s *Session) Mint(n int) (run int64) {
	last := s.minted.Add(int64(n))
	if last >= 1<<counterBits-lastIDs {
		s.Lose(errIDs)
	}
	return int64(s.number)<<counterBits + last - int64(n) + 1
}

// End deletes the session's row, after everything it owned was given back or ended.
func (s *Session) End(ctx context.Context, db *sql.DB) error {
	s.leaving.Store(true)
	return db.Tx(ctx, func(tx *sql.Tx) error {
		action, reason := job.ActionLeave, ""
		if s.Lost() {
			action, reason = job.ActionFence, context.Cause(s.ctx).Error()+": what it executed was killed"
		}

		told, err := auditSession(tx, s.id, s.itself(), action, reason)
		if err != nil {
			return err
		}

		// A peer buried it, whose line says when it lived; that its commands were killed nobody
		// else knows. After an unknown commit the line is written a second time.
		if !told && s.Lost() {
			line := job.Entry{
				At:     s.Now(),
				Actor:  s.itself(),
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

// itself is the actor of what the node does on its own.
func (s *Session) itself() job.Actor { return job.Actor{Who: job.Itself, Origin: s.node} }
