package schedule

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Lookout reads in one statement, once a second, whether there is anything to do for the loops that look around, so
// that a node with nothing to do asks MySQL little, whatever the number of jobs. What somebody does on this node wakes
// the loops at once and does not wait for it; what somebody does elsewhere wakes them when it is seen here.
type Lookout struct {
	DB      *sql.DB
	Session uuid.UUID // whose tasks Owned tells of
	Tasks   func()    // called when an idle task is seen that is due earlier than those before; nil: nobody asks
	Peers   func()    // called when sessions have come, gone or changed; nil: nobody asks
	Log     *slog.Logger

	last atomic.Pointer[glimpse]

	// What the loops have just seen themselves.
	idle, cursor atomic.Pointer[sighting]
}

// sighting is the earliest due time that a loop has seen.
type sighting struct {
	due job.Micros
	at  time.Time
}

type glimpse struct {
	sql.Glance
	at time.Time
}

const (
	lookoutPeriod = time.Second
	// blind is how old a glance is before nobody trusts it.
	blind = 3 * time.Second
	// sighted is for how long a glance leaves out what a loop has seen itself.
	sighted = time.Second
	// behindBy is how late the earliest due time is before chores wait.
	behindBy = time.Second
)

// Run looks until ctx ends.
func (l *Lookout) Run(ctx context.Context) error {
	tick := time.NewTicker(lookoutPeriod)
	defer tick.Stop()
	for {
		at := time.Now()
		g, err := l.DB.Glance(ctx, l.wanted())
		if err == nil {
			l.tell(l.last.Swap(&glimpse{g, at}), g)
		} else if ctx.Err() == nil {
			l.Log.Warn("cannot look what there is to do, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// wanted leaves out what the loops have just seen.
func (l *Lookout) wanted() sql.GlanceOf {
	return sql.GlanceOf{Session: l.Session, Idle: l.idle.Load().fresh(), Cursor: l.cursor.Load().fresh()}
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

func (s *sighting) fresh() job.Micros {
	if s == nil || time.Since(s.at) > sighted {
		return 0
	}
	return s.due
}

// sawIdle notes that an idle task was seen just now that is overdue: of what this node may claim it is the earliest.
func (l *Lookout) sawIdle(due job.Micros) {
	if l != nil {
		l.idle.Store(&sighting{due, time.Now()})
	}
}

// sawCursor notes that there is more to plan than one look takes.
func (l *Lookout) sawCursor(now job.Micros) {
	if l != nil {
		l.cursor.Store(&sighting{now, time.Now()})
	}
}

// Behind tells whether due times wait that should have been started, or planned, a while ago: then chores can wait, for a
// while. False when nobody knows.
func (l *Lookout) Behind(now job.Micros) bool {
	g, ok := l.seen()
	late := now.Add(-behindBy)
	return ok && (g.FirstIdle != 0 && g.FirstIdle < late || g.FirstCursor != 0 && g.FirstCursor < late)
}

// Alone tells that there was a single session a moment ago; false when nobody knows.
func (l *Lookout) Alone() bool {
	g, ok := l.seen()
	return ok && g.Sessions>>32 == 1
}

// NothingOwned tells that the session owned no task a moment ago; false when nobody knows.
func (l *Lookout) NothingOwned() bool {
	g, ok := l.seen()
	return ok && !g.Owned
}

// NoBackfill tells that no backfill of a job was under way a moment ago; false when it may have been, or nobody knows.
func (l *Lookout) NoBackfill(jobID int64) bool {
	g, ok := l.seen()
	return ok && (jobID < g.Backfills[0] || jobID > g.Backfills[1])
}

// LastLine is the greatest id of an audit line, as of a moment ago. Nobody may know.
func (l *Lookout) LastLine() (id int64, known bool) {
	g, ok := l.seen()
	return g.LastLine, ok
}

// NothingToSend tells that no message of alerts was there to be sent a moment ago; false when nobody knows.
func (l *Lookout) NothingToSend() bool {
	g, ok := l.seen()
	return ok && !g.Messages
}

// NoLimits reports that no app had limits a moment ago; false when nobody knows.
func (l *Lookout) NoLimits() bool {
	g, ok := l.seen()
	return ok && !g.Limits
}

// NothingToWatch tells that nobody wanted to be told of anything a moment ago; false when nobody knows.
func (l *Lookout) NothingToWatch() bool {
	g, ok := l.seen()
	return ok && !g.Alerts
}

// Watermark is how far the database was a moment ago; false when nobody knows.
func (l *Lookout) Watermark() (sql.Watermark, bool) {
	g, ok := l.seen()
	return g.Watermark, ok
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
