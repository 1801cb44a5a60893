package job

import "time"

// Mark says what the wall clock does to one due time of a cron expression, or a calendar to its day.
type Mark string

// The marks.
const (
	Unmarked Mark = ""
	Gap      Mark = "gap"    // stands for at least one civil time that the clock skips just before it
	Repeat   Mark = "repeat" // the clock shows its civil time twice
	Makeup   Mark = "makeup" // a calendar has the day count as another day of the week
)

// Mark tells whether a due time of c is touched by a gap or a repeat. Of other instants it says nothing useful.
func (c *Cron) Mark(due time.Time) Mark {
	t := seconds(due)
	k := clockAt(c.loc, t)
	civil := t + k.offset
	if k.start == t && c.movedTo(&k) {
		return Gap
	}
	if civil < k.seen {
		return Repeat
	}
	for k.end < t+2*maxOffset {
		k.advance()
		if k.start+k.offset <= civil && civil < k.end+k.offset {
			return Repeat
		}
	}
	return Unmarked
}
