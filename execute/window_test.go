package execute

import (
	"testing"
	"time"

	"go-crontab/job"
)

// slowGuard is slow to give a seat, and MySQL's clock is put back during that time.
type slowGuard struct {
	b    *bubble
	took time.Duration
	back time.Duration
}

func (g slowGuard) Enter(job.Launch, bool) Seat {
	time.Sleep(g.took)
	g.b.step.Add(-g.back.Microseconds())
	return unguarded{}
}
func (slowGuard) Alive() bool  { return true }
func (slowGuard) Lapsed() bool { return false }

// TestWindowIsOverForGood: an attempt whose window has passed is not spawned, even if MySQL's clock was set back and
// shows time left. A pause of the job may have been answered by then.
func TestWindowIsOverForGood(t *testing.T) {
	for name, c := range map[string]struct {
		guard  slowGuard
		spawns int
	}{
		"in time, and the clock is put back":  {slowGuard{took: 900 * time.Millisecond, back: 500 * time.Millisecond}, 1},
		"too late":                            {slowGuard{took: 1300 * time.Millisecond}, 0},
		"too late, and the clock is put back": {slowGuard{took: 1300 * time.Millisecond, back: 500 * time.Millisecond}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(b *bubble) {
				c.guard.b = b
				b.Guard = c.guard
				b.Add([]job.Started{b.attempt(1, 0)})
				time.Sleep(2 * time.Second)
				if got := b.look(); len(got.spawned) != c.spawns || got.freed != 1-c.spawns {
					t.Errorf("spawned after %s, freed %d times; want %d spawned", got.spawned, got.freed, c.spawns)
				}
			})
		})
	}
}
