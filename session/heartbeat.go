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

// Heartbeat proves that the session lives, and reads MySQL's clock. It has a connection of its own
// and takes no lock but that of its own row.
type Heartbeat struct {
	Session *Session
	Pulse   *sql.Pulse
	Load    func() (prepared, executing int)
	// Works reports whether this node can write how runs end; nil: it can. If it cannot for long,
	// nobody else may end its runs either while the session lives. So the session does not beat
	// then, and is lost like that of a node that is cut off.
	Works func() bool
	// called when the lease counts from a later instant of CLOCK_BOOTTIME; nil: nobody asks
	Renewed func(sent time.Duration)
	Log     *slog.Logger

	seen bool // a beat has met the session's row
}

// errNotYet is that of a first beat to a member of a cluster of servers that has not applied the
// session's row yet, which was written to another one.
var errNotYet = errors.New("the server has not the session's row yet")

// errWorksNot is why a node does not beat that reaches MySQL and cannot write how runs end.
var errWorksNot = errors.New("the ends of runs cannot be written; until they can, this node does not prolong its lease")

// Run beats until ctx ends. A beat that fails is tried again sooner than the next would be.
func (h *Heartbeat) Run(ctx context.Context) error {
	wait := time.Duration(0)
	var silent time.Time // since when beats fail; zero: they do not
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		case <-h.Session.tell:
		}

		wait = h.Session.Timings.Beat
		switch err := h.beat(ctx); {
		case err == nil && !silent.IsZero():
			h.Log.Info("beats again", "after", time.Since(silent).Round(time.Millisecond))
			silent = time.Time{}
		case err != nil && ctx.Err() == nil:
			h.Log.Warn("beat failed, trying again", "error", err, "lease_age", h.Session.Age().Round(time.Millisecond))
			if silent.IsZero() {
				silent = time.Now()
			}
			wait /= 8
		}
	}
}

func (h *Heartbeat) beat(ctx context.Context) error {
	s := h.Session
	if h.Works != nil && !h.Works() {
		return errWorksNot
	}

	prepared, executing := h.Load()
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

	if !there && s.leaving.Load() { // nobody buried it: we have just removed it
		return nil
	}
	if !there && !h.seen && s.Age() < s.Timings.Beat { // nobody buries one that is so young
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
	if s.Clock.Slept() { // while MySQL was asked
		s.beat()
	}

	// Only now: after a suspension a fresh lease must not stand beside a clock that was not read
	// since.
	s.lease.renew(sent)
	if h.Renewed != nil {
		h.Renewed(sent)
	}
	return nil
}

// ReadClock sets clock by one reading.
func ReadClock(ctx context.Context, p *sql.Pulse, clock *Clock) error {
	boot := clock.bootNow() // first, see Clock.Set
	sent := time.Now()
	at, err := p.Clock(ctx)
	if err != nil {
		return err
	}
	clock.Set(boot, sent, time.Now(), at)
	return nil
}
