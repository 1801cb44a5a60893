package session

import (
	"context"
	"log/slog"
	"time"
)

// Watchdog watches the age of the lease and nothing else: it touches no connection and takes no
// lock that somebody who waits for MySQL could hold.
type Watchdog struct {
	Session *Session
	Log     *slog.Logger
}

// Run looks until the session is lost or ctx ends.
func (w *Watchdog) Run(ctx context.Context) error {
	t := w.Session.Timings
	tick := time.NewTicker(t.Expiry / 200)
	defer tick.Stop()
	stale := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}

		age := w.Session.Age()
		switch {
		case age > t.Kill:
			w.Session.Lose(ErrLapsed)
			w.Log.Error("lease lapsed: killing all commands", "lease_age", age.Round(time.Millisecond))
			return ErrLapsed
		case age > t.Stale && !stale:
			stale = true
			w.say(slog.LevelWarn, "lease stale: nothing new is started", "lease_age", age.Round(time.Millisecond))
		case age <= t.Stale && stale:
			stale = false
			w.say(slog.LevelInfo, "lease fresh again")
		}
	}
}

// say logs something and does not wait for it: whoever reads the log may have stopped, and what
// comes next is a kill.
func (w *Watchdog) say(level slog.Level, what string, args ...any) {
	go w.Log.Log(context.Background(), level, what, args...)
}
