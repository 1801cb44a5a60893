package session

import (
	"context"
	"log/slog"
	"time"
)

// Watchdog ends the session when the lease is too old. It uses no connection. It takes no lock
// that another goroutine could hold while it waits for MySQL.
type Watchdog struct {
	session *Session
	log     *slog.Logger
}

// NewWatchdog returns a watchdog. The caller runs it.
func NewWatchdog(s *Session, log *slog.Logger) *Watchdog { return &Watchdog{s, log} }

// Run watches until the session is lost or ctx ends.
func (w *Watchdog) Run(ctx context.Context) error {
	t := w.session.Timings
	tick := time.NewTicker(t.Expiry / 200)
	defer tick.Stop()
	stale := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}

		age := w.session.Age()
		switch {
		case age > t.Kill:
			w.session.Lose(ErrLapsed)
			w.log.Error("lease expired, killing all commands", "lease_age", age.Round(time.Millisecond))
			return ErrLapsed
		case age > t.Stale && !stale:
			stale = true
			w.logAsync(slog.LevelWarn, "lease stale, not starting new runs", "lease_age", age.Round(time.Millisecond))
		case age <= t.Stale && stale:
			stale = false
			w.logAsync(slog.LevelInfo, "lease fresh again, starting runs")
		}
	}
}

// logAsync logs without waiting, because the reader of the log may be stuck, and the next step may
// be a kill.
func (w *Watchdog) logAsync(level slog.Level, what string, args ...any) {
	go w.log.Log(context.Background(), level, what, args...)
}
