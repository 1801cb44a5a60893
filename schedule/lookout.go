package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go-crontab/sql"
)

// Lookout reads in one statement, twice a second, whether there is anything to do for the loops that look around, so
// that a node with nothing to do asks MySQL little, whatever the number of jobs. What somebody does on this node wakes
// the loops at once and does not wait for it.
type Lookout struct {
	DB  *sql.DB
	Log *slog.Logger

	last atomic.Pointer[glimpse]
}

type glimpse struct {
	sql.Glance
	at time.Time
}

const (
	lookoutPeriod = 500 * time.Millisecond
	// blind is how old a glance is before nobody trusts it.
	blind = 2 * time.Second
)

// Run looks until ctx ends.
func (l *Lookout) Run(ctx context.Context) error {
	tick := time.NewTicker(lookoutPeriod)
	defer tick.Stop()
	for {
		at := time.Now()
		g, err := l.DB.Glance(ctx)
		if err == nil {
			l.last.Store(&glimpse{g, at})
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
