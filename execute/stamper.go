package execute

import (
	"time"

	"go-crontab/job"
)

// stamper notes when the bytes of an output arrived, and from which stream. Bytes get no stamp if
// they arrive within stampEvery of the start or of the last stamp and come from the same stream.
// So most outputs have no stamps.
type stamper struct {
	began  time.Time
	apart  bool
	stderr bool          // the stream of the last byte
	last   time.Duration // the time of the last stamp
	every  time.Duration // zero: stampEvery
	from   int64         // the stamps before this offset were dropped
	list   []job.Stamp
}

const (
	stampEvery = 100 * time.Millisecond
	// An output has at most stampsLeast stamps, or one for each stampBytes bytes to keep,
	// whichever is more.
	stampsLeast = 4096
	stampBytes  = 256
)

// note is called before the output takes the next bytes.
func (s *stamper) note(o *output, stderr bool) {
	now := time.Since(s.began)
	if stderr == s.stderr && now-s.last < max(stampEvery, s.every) {
		return
	}

	s.last, s.stderr = now, stderr
	s.list = append(s.list, job.Stamp{At: o.bytes, Millis: now.Milliseconds(), Stderr: stderr})
	if most := max(stampsLeast, o.most/stampBytes); len(s.list) >= most {
		s.thin(int64(o.most-o.most/2), o.bytes-int64(o.most/2), most*3/4)
	}
}

// thin drops stamps until few enough are left. First it drops stamps of dropped bytes, which are
// between from and to. Then it drops stamps that come soon after another stamp of the same stream,
// and then the older half.
func (s *stamper) thin(from, to int64, enough int) {
	kept := s.list[:0]
	for i, k := range s.list {
		if next := i + 1; k.At < from || next == len(s.list) || s.list[next].At > to {
			kept = append(kept, k)
		}
	}

	if s.list = kept; len(s.list) > enough {
		s.every = 4 * max(stampEvery, s.every)
		kept := s.list[:1]
		for _, k := range s.list[1:] {
			before := kept[len(kept)-1]
			if k.Stderr != before.Stderr || k.Millis-before.Millis >= s.every.Milliseconds() {
				kept = append(kept, k)
			}
		}
		s.list = kept
	}

	if len(s.list) > enough {
		s.list = s.list[:copy(s.list, s.list[len(s.list)/2:])]
		s.from = s.list[0].At
	}
}

func (s *stamper) encode() []byte {
	m := job.Stamps{Apart: s.apart, From: s.from, List: s.list}
	return m.Encode()
}
