package session

import (
	"log/slog"
	"sync"
	"time"
)

// Outage logs when a node loses MySQL, and when MySQL is back. An Outage outlives sessions.
type Outage struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time // zero: MySQL answers
	lost  int       // runs of this node that were lost since then
}

// NewOutage returns an outage that has not begun.
func NewOutage(log *slog.Logger) *Outage { return &Outage{log: log} }

// Begin notes that MySQL does not answer. If MySQL stays away, the node starts no runs from the
// time stops on, and kills its commands at the time kills.
func (o *Outage) Begin(err error, stops, kills time.Time, executing int) {
	o.mu.Lock()
	began := o.since.IsZero()
	if began {
		o.since, o.lost = time.Now(), 0
	}
	o.mu.Unlock()

	if began {
		o.log.Warn("MySQL lost: unless it is back in time, this node stops starting runs, and kills its commands",
			"error", err, "starts_end_at", stops.Round(time.Second), "commands_die_at", kills.Round(time.Second),
			"executing", executing)
	}
}

// On reports whether MySQL does not answer.
func (o *Outage) On() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// Lost counts runs of this node that were lost.
func (o *Outage) Lost(n int) {
	o.mu.Lock()
	o.lost += n
	o.mu.Unlock()
}

// End notes that MySQL answers. It reports whether an outage has ended.
func (o *Outage) End() bool {
	o.mu.Lock()
	since, lost := o.since, o.lost
	o.since = time.Time{}
	o.mu.Unlock()

	if since.IsZero() {
		return false
	}
	o.log.Warn("MySQL back", "after", time.Since(since).Round(time.Millisecond), "runs_lost", lost)
	return true
}
