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

// begin notes that a start begins, and returns when.
func (p *pace) begin() time.Time {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	return now
}

// end notes that a start which began at an instant is over.
func (p *pace) end(began time.Time) {
	note(&p.need, time.Since(p.since), maxLead)
	note(&p.took, time.Since(began), maxWindow/3)
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
