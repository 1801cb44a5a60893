package job

import "time"

// Mark is the effect of a clock change, or of a calendar, on one due time.
type Mark string

// The marks.
const (
	Unmarked Mark = ""
	Gap      Mark = "gap"    // replaces civil times that the clock skips just before this due time
	Repeat   Mark = "repeat" // the clock shows its civil time twice
	Makeup   Mark = "makeup" // a calendar counts the day as another day of the week
	Moved    Mark = "moved"  // a calendar closes the day of the due time, which moved here
)

// Mark returns the effect of a gap or a repeat on a due time of c. The instant must be a due time:
// for any other instant the result is meaningless.
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
