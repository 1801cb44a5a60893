package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Lookout reads in one statement, once a second, whether there is anything to do for the loops that look around, so
// that a node with nothing to do asks MySQL little, whatever the number of jobs. What somebody does on this node wakes
// the loops at once and does not wait for it; what somebody does elsewhere wakes them when it is seen here.
type Lookout struct {
	DB    *sql.DB
	Tasks func() // called when an idle task is seen that is due earlier than those before; nil: nobody asks
	Peers func() // called when sessions have come, gone or changed; nil: nobody asks
	Log   *slog.Logger

	last atomic.Pointer[glimpse]
}

type glimpse struct {
	sql.Glance
	at time.Time
}

const (
	lookoutPeriod = time.Second
	// blind is how old a glance is before nobody trusts it.
	blind = 3 * time.Second
)

// Run looks until ctx ends.
func (l *Lookout) Run(ctx context.Context) error {
	tick := time.NewTicker(lookoutPeriod)
	defer tick.Stop()
	for {
		at := time.Now()
		g, err := l.DB.Glance(ctx)
		if err == nil {
			l.tell(l.last.Swap(&glimpse{g, at}), g)
		} else if ctx.Err() == nil {
			l.Log.Warn("glance", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// tell wakes who has not seen what is new since the glance before. The first glance wakes nobody: all loops begin with a
// look of their own.
func (l *Lookout) tell(before *glimpse, g sql.Glance) {
	if before == nil {
		return
	}
	if l.Tasks != nil && g.FirstIdle != 0 && (before.FirstIdle == 0 || g.FirstIdle < before.FirstIdle) {
		l.Tasks()
	}
	if l.Peers != nil && g.Sessions != before.Sessions {
		l.Peers()
	}
}

// FirstIdle is when the earliest task that nobody has claimed was due, or is, as of the last glance; zero: there is none, or
// no glance that can be trusted.
func (l *Lookout) FirstIdle() job.Micros {
	g, _ := l.seen()
	return g.FirstIdle
}

// seen returns the last glance; false when there is none that can be trusted.
func (l *Lookout) seen() (sql.Glance, bool) {
	if l == nil {
		return sql.Glance{}, false
	}
	g := l.last.Load()
	if g == nil || time.Since(g.at) > blind {
		return sql.Glance{}, false
	}
	return g.Glance, true
}
