package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/schedule"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// lookout reads once a second, in one statement, whether the node's chores have work. So chores of
// an idle node need not ask MySQL themselves.
type lookout struct {
	db           *read.DB
	wakeSessions loop.Wake // sessions have come, gone or changed
	log          *slog.Logger

	last atomic.Pointer[datedGlance]
}

func newLookout(db *read.DB, wakeSessions loop.Wake, log *slog.Logger) *lookout {
	return &lookout{db: db, wakeSessions: wakeSessions, log: log}
}

type datedGlance struct {
	read.Glance
	at time.Time
}

const (
	lookoutPeriod = time.Second
	// glanceMaxAge is the age at which a glance is too old to be trusted.
	glanceMaxAge = 3 * time.Second
	// lateBy is how late the earliest due time must be for chores to wait.
	lateBy = time.Second
)

// Run reads a glance each second until ctx ends.
func (l *lookout) Run(ctx context.Context) error {
	return loop.Loop{
		Period: lookoutPeriod,
		AtRate: true,
		Log:    l.log,
		Failed: "cannot look for waiting work, trying again",
	}.Run(ctx, loop.Each(l.look))
}

func (l *lookout) look(ctx context.Context) error {
	at := time.Now()
	g, err := l.db.Glance(ctx)
	if err != nil {
		return err
	}

	before := l.last.Swap(&datedGlance{g, at})
	// The first glance wakes no loop. There is no earlier glance to compare with, and all loops
	// begin with their own look.
	if before != nil && before.Sessions != g.Sessions {
		l.wakeSessions.Up()
	}
	return nil
}

// seen returns the last glance. ok is false if there is no recent glance.
func (l *lookout) seen() (read.Glance, bool) {
	g := l.last.Load()
	if g == nil || time.Since(g.at) > glanceMaxAge {
		return read.Glance{}, false
	}
	return g.Glance, true
}

// FirstIdle returns the due time of the earliest idle run; zero: none, or unknown.
func (l *lookout) FirstIdle() job.Micros {
	g, _ := l.seen()
	return g.FirstIdle
}

// Behind reports whether due times wait that should have been started or claimed more than lateBy
// ago. Then chores can wait. If this is unknown, Behind returns false. While something is paused,
// the cursors do not count, because those of paused jobs do not move.
func (l *lookout) Behind(now job.Micros, paused bool) bool {
	g, ok := l.seen()
	late := now.Add(-lateBy)
	return ok && (g.FirstIdle != 0 && g.FirstIdle < late || !paused && g.FirstCursor != 0 && g.FirstCursor < late)
}

// choreLookout is the lookout of the chores of a session.
type choreLookout struct {
	*lookout
	session *session.Session
	stops   *schedule.Stops
}

// Behind reports whether due times are overdue.
func (l choreLookout) Behind() bool { return l.lookout.Behind(l.session.Now(), l.stops.Any()) }

// NothingToClaim reports whether there was nothing to claim a moment ago: no cursor or idle run
// before an instant, and no backfill.
func (l *lookout) NothingToClaim(before job.Micros) bool {
	g, ok := l.seen()
	before = before.Add(glanceMaxAge) // the glance may be that old
	return ok && !g.Backfills && (g.FirstCursor == 0 || g.FirstCursor > before) &&
		(g.FirstIdle == 0 || g.FirstIdle > before)
}

// NothingToStart reports whether, a moment ago, no idle run was due, no group had to be woken soon,
// and no session held a run that it might fail to start in time.
func (l *lookout) NothingToStart(now job.Micros) bool {
	g, ok := l.seen()
	return ok && !g.Held && (g.FirstIdle == 0 || g.FirstIdle > now) &&
		(g.FirstWake == 0 || g.FirstWake > now.Add(lookoutPeriod))
}

// Alone reports whether there was a single session a moment ago.
func (l *lookout) Alone() bool {
	g, ok := l.seen()
	return ok && g.Sessions>>32 == 1
}

// NothingHeld reports whether no session held runs a moment ago.
func (l *lookout) NothingHeld() bool {
	g, ok := l.seen()
	return ok && !g.Held
}

// LastLine returns the highest id of an audit line, as of a moment ago, if known.
func (l *lookout) LastLine() (id int64, known bool) {
	g, ok := l.seen()
	return g.LastLine, ok
}

// NothingToSend reports whether no alert message was waiting a moment ago.
func (l *lookout) NothingToSend() bool {
	g, ok := l.seen()
	return ok && !g.Messages
}

// NoLimits reports whether no app had limits a moment ago.
func (l *lookout) NoLimits() bool {
	g, ok := l.seen()
	return ok && !g.Limits
}

// NothingToWatch reports whether nothing needed an evaluation of alerts a moment ago.
func (l *lookout) NothingToWatch() bool {
	g, ok := l.seen()
	return ok && !g.Alerts
}

// Watermark returns the watermark as of a moment ago, if known.
func (l *lookout) Watermark() (sql.Watermark, bool) {
	g, ok := l.seen()
	return g.Watermark, ok
}
