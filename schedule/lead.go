package schedule

import (
	"sync/atomic"
	"time"

	"go-crontab/job"
)

// pace measures how long starts take. From that come the lead, which is how long before the due time a start may be committed, and
// the spawn window.
type pace struct {
	since time.Time    // since when starts follow each other; zero: none is under way
	need  atomic.Int64 // how long one takes with what it waits for those before it
	took  atomic.Int64 // how long one takes, from the reading of the clock to the change of the sets
	usual atomic.Int64 // how long one takes usually
}

const (
	minLead = 10 * time.Millisecond
	maxLead = 250 * time.Millisecond
	// calm is after how many starts a high measurement has lost about two thirds of its weight. A disk that was slow a moment ago is
	// slow again soon.
	calm = 1024
	// maxWindow bounds spawn windows: who pauses an app waits that long in the worst case.
	maxWindow = 10 * time.Second
)

// lead is as long as a start takes and half as long again, and no longer: a run whose node dies between its start and its due time is
// lost, although it never began.
func (p *pace) lead() time.Duration {
	return min(maxLead, max(minLead, time.Duration(p.need.Load())*3/2))
}

// window is how long after its due time, or the reading of the clock at the beginning of its start if that is later, a run may be
// spawned. Far from MySQL that reading is old when the start is known to be committed.
func (p *pace) window(least time.Duration) time.Duration {
	return min(maxWindow, max(least, 3*time.Duration(p.took.Load())))
}

// rest notes that nothing is to be started now.
func (p *pace) rest() { p.since = time.Time{} }

// begin notes that a start begins.
func (p *pace) begin() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

// end notes that the start which began last is over.
func (p *pace) end() { note(&p.need, time.Since(p.since), maxLead) }

// decided notes how long a start took that read the clock at an instant.
func (p *pace) decided(began time.Time) {
	now := time.Since(began)
	note(&p.took, now, maxWindow/3)
	usual := p.usual.Load()
	p.usual.Store(usual + (int64(now)-usual)/8)
}

// patience is how long a run may be overdue before another node starts it. Far from MySQL a start takes long, and a node that took
// runs over from others which are starting them would only hold them up.
func (p *pace) patience() time.Duration {
	return min(maxWindow, max(patience, 3*time.Duration(p.usual.Load())))
}

// note raises a measurement at once and lowers it slowly.
func note(measured *atomic.Int64, now, most time.Duration) {
	old := time.Duration(measured.Load())
	measured.Store(int64(max(min(now, most), old-old/calm)))
}

// Lead is how long before the due time a start may be committed now.
func (s *Starter) Lead() time.Duration { return s.pace.lead() }

// window is the spawn window of a start that is written now, in microseconds.
func (s *Starter) window() job.Micros { return job.Micros(s.pace.window(s.Window).Microseconds()) }
