package job

import "time"

const (
	// maxOffset is further from UTC than any zone ever was, in seconds.
	maxOffset = 26 * 60 * 60

	// Nothing fires before earliest or from latest on, in Unix seconds: no civil time of the years 1970 to
	// 2099 is further from its instant than maxOffset.
	earliest = -2 * maxOffset
	latest   = 4102444800 + 2*maxOffset // 2100-01-01 and a margin

	noEnd = int64(1) << 60
)

// segment is a stretch of real time in which a zone's offset stays the same. Where two of them meet, the wall
// clock jumps forward (a gap), back (a repeat), or not at all. All numbers are seconds.
type segment struct {
	end    int64 // the first instant after it
	offset int64 // east of UTC
}

// segmentAt returns the segment that holds the instant t. What it knows of the segment's start is not exact
// (the zone may have older rules in the same year), so nobody is told; walk forward instead.
func segmentAt(loc *time.Location, t int64) segment {
	at := time.Unix(t, 0).In(loc)
	_, offset := at.Zone()
	_, end := at.ZoneBounds()
	s := segment{end: noEnd, offset: int64(offset)}
	switch {
	case end.IsZero():
	case end.Unix() > t:
		s.end = end.Unix()
	default:
		// Past its table of transitions, package time takes every year for 365 days long, and so on the
		// last day of a leap year returns an end that is already over.
		s.end = time.Date(at.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return s
}

// clock is a zone's wall clock on its way from segment to segment.
type clock struct {
	segment
	loc   *time.Location
	start int64 // of the segment; below everything for the first
	seen  int64 // each civil time below it was shown or jumped over before start
}

// clockAt returns a clock that shows t and has passed every segment which can have shown the same civil time.
func clockAt(loc *time.Location, t int64) clock {
	k := clock{segmentAt(loc, t-2*maxOffset), loc, -noEnd, -noEnd}
	for k.end <= t {
		k.advance()
	}
	return k
}

func (k *clock) advance() {
	k.start = k.end
	k.seen = max(k.seen, k.end+k.offset)
	k.segment = segmentAt(k.loc, k.end)
}
