package job

import "time"

const (
	// maxOffset is larger than the offset of any zone in history, in seconds.
	maxOffset = 26 * 60 * 60

	// No due time is before earliest, or at or after latest (both in Unix seconds). The reason is
	// that no civil time of the years 1970 to 2099 differs from its instant by more than maxOffset.
	earliest = -2 * maxOffset
	latest   = 4102444800 + 2*maxOffset // 2100-01-01 and a margin

	noEnd = int64(1) << 60
)

// segment is a stretch of real time in which a zone's offset stays the same. Between two segments
// the wall clock jumps forward (a gap), back (a repeat), or not at all. All numbers are seconds.
type segment struct {
	end    int64 // the first instant after it
	offset int64 // east of UTC
}

// segmentAt returns the segment that contains the instant t, without its start. The start that
// package time gives is inexact, because the zone may have older rules in the same year. To get
// exact starts, walk forward through the segments.
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
		// Beyond its table of transitions, package time treats every year as 365 days long. On the
		// last day of a leap year it returns an end in the past.
		s.end = time.Date(at.UTC().Year()+1, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	}

	return s
}

// clock is a zone's wall clock, which moves from segment to segment.
type clock struct {
	segment
	loc   *time.Location
	start int64 // start of the segment; the minimum for the first segment
	seen  int64 // civil times below it were shown or skipped before start
}

// clockAt returns a clock at t. The clock has passed every segment that may have shown the same
// civil time.
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
