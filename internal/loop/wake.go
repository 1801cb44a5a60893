package loop

// Wake wakes a loop: it ends the pause before the next step. It has one slot. If the slot is full,
// a further wake changes nothing. If a wake is missed, the next step only comes a pause later. A
// nil Wake wakes nothing.
//
// In a stage's config, Wake is the stage's own wake. The wakes of other loops have the names of
// those loops, such as WakeClaimer.
type Wake chan struct{}

// NewWake returns the wake of one loop.
func NewWake() Wake { return make(Wake, 1) }

// Up wakes the loop. It never blocks.
func (w Wake) Up() {
	select {
	case w <- struct{}{}:
	default:
	}
}
