package session

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/job"
	"go-crontab/sql"
)

// HeartbeatConfig configures a Heartbeat.
type HeartbeatConfig struct {
	Session *Session
	Pulse   *sql.Pulse
	Node    Node
	Outage  *Outage // nil: NewHeartbeat makes one
	Log     *slog.Logger
}

// Node is the node of a session, as its heartbeat sees it.
type Node interface {
	Load() (prepared, executing int)
	// Works reports whether this node can write the ends of runs. If it cannot, nobody can end its
	// runs while its session is alive. So the session then stops beating, and is lost like the
	// session of a node that is cut off.
	Works() bool
	// Renewed is called when the lease is renewed. sent is an instant of CLOCK_BOOTTIME.
	Renewed(sent time.Duration)
}

// Heartbeat proves that the session is alive, and reads MySQL's clock. It has a separate
// connection, and takes no lock except on its own row.
type Heartbeat struct {
	HeartbeatConfig
	seen   bool      // a beat has found the session's row
	silent time.Time // when the current series of failed beats began; zero: the last beat succeeded
	logged bool      // a failed beat of this series was logged
}

// NewHeartbeat returns a heartbeat. The caller runs it.
func NewHeartbeat(cfg HeartbeatConfig) *Heartbeat {
	if cfg.Outage == nil {
		cfg.Outage = NewOutage(cfg.Log)
	}
	return &Heartbeat{HeartbeatConfig: cfg}
}

// errNotYet is the error of a first beat that finds no row: in a multi-writer cluster, a server
// may not have the session's row yet.
var errNotYet = errors.New("the server does not have this session's row yet")

// errCannotWrite is the reason why a node does not beat, although it can reach MySQL: the node
// cannot write the ends of runs.
var errCannotWrite = errors.New(
	"results of runs cannot be written, so this node does not renew its lease")

// Run beats until ctx ends. After a failed beat, the next one comes sooner.
func (h *Heartbeat) Run(ctx context.Context) error {
	wait := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-h.Session.beatNow:
		}

		wait = h.Session.Timings.Beat
		began := time.Now()
		switch err := h.beat(ctx); {
		case err == nil:
			h.succeeded()
		case ctx.Err() == nil:
			wait = h.failed(err, time.Since(began))
		}
	}
}

// succeeded logs the end of a series of failed beats.
func (h *Heartbeat) succeeded() {
	if h.silent.IsZero() {
		return
	}
	if !h.Outage.End() && h.logged {
		h.Log.Info("heartbeats succeed again", "after", time.Since(h.silent).Round(time.Millisecond))
	}
	h.silent, h.logged = time.Time{}, false
}

// failed logs a failed beat, and returns the pause before the next beat. took is the duration of
// the failed beat.
func (h *Heartbeat) failed(err error, took time.Duration) time.Duration {
	first, t, age := h.silent.IsZero(), h.Session.Timings, h.Session.Age()
	if first {
		h.silent = time.Now()
	}

	switch {
	case first && sql.IsBroken(err) && took < t.Beat:
		return 0 // a new connection says whether MySQL is away, and why
	case sql.IsDown(err):
		_, executing := h.Node.Load()
		now := time.Now()
		h.Outage.Begin(err, now.Add(t.Stale-age), now.Add(t.Kill-age), executing)
	}

	h.logged = true
	h.Log.Warn("heartbeat failed, trying again", "error", err, "lease_age", age.Round(time.Millisecond))
	return t.Beat / 8
}

func (h *Heartbeat) beat(ctx context.Context) error {
	s := h.Session
	if !h.Node.Works() {
		return errCannotWrite
	}

	prepared, executing := h.Node.Load()
	sent := boottime.Now()
	there, err := h.Pulse.Beat(ctx, s.id, sql.Vitals{
		Prepared:   prepared,
		Executing:  executing,
		Draining:   s.Draining(),
		CordonSeen: job.Micros(s.seen.Load()),
		Offset:     s.Clock.Offset(),
	})
	if err != nil {
		return err
	}

	if !there && s.leaving.Load() { // no peer buried the session: this node has just removed the row
		return nil
	}
	if !there && !h.seen && s.Age() < s.Timings.Beat { // no peer buries so young a session
		return errNotYet
	}

	if !there {
		s.Lose(ErrBuried)
		return ErrBuried
	}

	h.seen = true
	if err := ReadClock(ctx, h.Pulse, s.Clock); err != nil {
		return err
	}
	if s.Clock.Slept() { // the machine was suspended during the request to MySQL
		s.beat()
	}

	// Renew the lease only now. After a suspension, the lease must not be fresh before MySQL's
	// clock has been read again.
	s.lease.renew(sent)
	h.Node.Renewed(sent)
	return nil
}

// ReadClock sets clock with one reading.
func ReadClock(ctx context.Context, p *sql.Pulse, clock *Clock) error {
	boot := clock.boot() // before sent, see Clock.Set
	sent := time.Now()
	at, err := p.Clock(ctx)
	if err != nil {
		return err
	}
	clock.Set(boot, sent, time.Now(), at)
	return nil
}
