package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// lookout reads in one statement, once a second, whether the chores of the node have anything to
// do. So a node with nothing to do asks MySQL little.
type lookout struct {
	db    *read.DB
	peers func() // called when sessions have come, gone or changed
	log   *slog.Logger

	last atomic.Pointer[glimpse]
}

type glimpse struct {
	read.Glance
	at time.Time
}

const (
	lookoutPeriod = time.Second
	// blind is how old a glance is before nobody trusts it.
	blind = 3 * time.Second
	// behindBy is how late the earliest due time is before chores wait.
	behindBy = time.Second
)

// Run looks until ctx is over.
func (l *lookout) Run(ctx context.Context) error {
	tick := time.NewTicker(lookoutPeriod)
	defer tick.Stop()
	for {
		at := time.Now()
		g, err := l.db.Glance(ctx)
		if err == nil {
			before := l.last.Swap(&glimpse{g, at})
			if before != nil && before.Sessions != g.Sessions { // all loops begin with a look of their own
				l.peers()
			}
		} else if ctx.Err() == nil {
			l.log.Warn("cannot look for work that waits, trying again", "error", err)
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// seen returns the last glance; false if there is none that can be trusted.
func (l *lookout) seen() (read.Glance, bool) {
	g := l.last.Load()
	if g == nil || time.Since(g.at) > blind {
		return read.Glance{}, false
	}
	return g.Glance, true
}

// FirstIdle is when the earliest idle run was due, or is; zero: there is none, or nobody knows.
func (l *lookout) FirstIdle() job.Micros {
	g, _ := l.seen()
	return g.FirstIdle
}

// Behind reports whether due times wait that should have been started, or claimed, a while ago:
// then chores can wait. It is false if nobody knows. The cursors of paused jobs stand still: while
// something is paused, they say nothing.
func (l *lookout) Behind(now job.Micros, paused bool) bool {
	g, ok := l.seen()
	late := now.Add(-behindBy)
	return ok && (g.FirstIdle != 0 && g.FirstIdle < late || !paused && g.FirstCursor != 0 && g.FirstCursor < late)
}

// NothingToClaim reports that a moment ago nothing was to be claimed that is due before an instant.
func (l *lookout) NothingToClaim(before job.Micros) bool {
	g, ok := l.seen()
	before = before.Add(blind) // the glance is as old as that
	return ok && !g.Backfills && (g.FirstCursor == 0 || g.FirstCursor > before) &&
		(g.FirstIdle == 0 || g.FirstIdle > before)
}

// NothingToStart reports that a moment ago no run was due, or held by anybody who may not start it
// in time.
func (l *lookout) NothingToStart(now job.Micros) bool {
	g, ok := l.seen()
	return ok && !g.Held && (g.FirstIdle == 0 || g.FirstIdle > now)
}

// Alone reports that there was a single session a moment ago.
func (l *lookout) Alone() bool {
	g, ok := l.seen()
	return ok && g.Sessions>>32 == 1
}

// NothingHeld reports that a moment ago no session held runs.
func (l *lookout) NothingHeld() bool {
	g, ok := l.seen()
	return ok && !g.Held
}

// LastLine is the greatest id of an audit line, a moment ago. Nobody may know.
func (l *lookout) LastLine() (id int64, known bool) {
	g, ok := l.seen()
	return g.LastLine, ok
}

// NothingToSend reports that no message of alerts waited a moment ago.
func (l *lookout) NothingToSend() bool {
	g, ok := l.seen()
	return ok && !g.Messages
}

// NoLimits reports that no app had limits a moment ago.
func (l *lookout) NoLimits() bool {
	g, ok := l.seen()
	return ok && !g.Limits
}

// NothingToWatch reports that nobody wanted to be told of anything a moment ago.
func (l *lookout) NothingToWatch() bool {
	g, ok := l.seen()
	return ok && !g.Alerts
}

// Watermark is how far the database was a moment ago. Nobody may know.
func (l *lookout) Watermark() (sql.Watermark, bool) {
	g, ok := l.seen()
	return g.Watermark, ok
}
