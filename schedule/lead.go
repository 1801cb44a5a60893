package schedule

import (
	"sync/atomic"
	"time"

	"go-crontab/job"
)

// pace measures the duration of starts. The lead and the spawn window derive from it. The lead is
// the time before the due time at which a start may be committed.
type pace struct {
	since time.Time    // when the current series of starts began; zero: no start is under way
	need  atomic.Int64 // duration of a start, including its wait for earlier starts
	took  atomic.Int64 // duration from the start's reading of the clock to the change of the sets
	usual atomic.Int64 // average of took
}

const (
	minLead = 10 * time.Millisecond
	maxLead = 250 * time.Millisecond
	// calm is the number of starts after which a high measurement has lost about two thirds of its
	// weight. The weight falls slowly, because a disk that was slow a moment ago is soon slow
	// again.
	calm = 1024
	// maxWindow bounds spawn windows, because the answer to a pause waits until open windows have
	// passed.
	maxWindow = 10 * time.Second
)

// lead is 1.5 times the duration of a start. A longer lead would cost runs: a run whose node dies
// between the start and the due time is lost, although it never began.
func (p *pace) lead() time.Duration {
	return min(maxLead, max(minLead, time.Duration(p.need.Load())*3/2))
}

// window returns the spawn window: how long a run may be spawned after its due time. For a late
// start, the window counts from the start's reading of the clock. With a slow link to MySQL that
// reading is old by the time the commit is known, so the window grows with the duration of starts.
func (p *pace) window(least time.Duration) time.Duration {
	return min(maxWindow, max(least, 3*time.Duration(p.took.Load())))
}

// rest records that there is nothing to start now.
func (p *pace) rest() { p.since = time.Time{} }

// begin records the beginning of a start.
func (p *pace) begin() {
	if p.since.IsZero() {
		p.since = time.Now()
	}
}

// end records the end of the latest start.
func (p *pace) end() { note(&p.need, time.Since(p.since), maxLead) }

// decided records the duration of a start that read the clock at began.
func (p *pace) decided(began time.Time) {
	now := time.Since(began)
	note(&p.took, now, maxWindow/3)
	usual := p.usual.Load()
	p.usual.Store(usual + (int64(now)-usual)/8)
}

// patience returns the time that a run may be overdue before another node takes it over. With a
// slow link to MySQL a start takes long. A takeover of a run that is just being started would only
// delay the run.
func (p *pace) patience() time.Duration {
	return min(maxWindow, max(patience, 3*time.Duration(p.usual.Load())))
}

// note raises a measurement at once, and lowers it slowly.
func note(measured *atomic.Int64, now, most time.Duration) {
	old := time.Duration(measured.Load())
	measured.Store(int64(max(min(now, most), old-old/calm)))
}

// Lead returns the current lead: the time before the due time at which a start may be committed.
func (s *Starter) Lead() time.Duration { return s.pace.lead() }

// window returns the spawn window of a start that is written now, in microseconds.
func (s *Starter) window() job.Micros { return job.Micros(s.pace.window(s.Window).Microseconds()) }
