package job

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Stamp says when the output from offset At on came, and from which stream.
type Stamp struct {
	At     int64
	Millis int64 // since the start of the attempt
	Stderr bool
}

// Stamps are the stamps of an output, in order. Bytes before the first stamp came at the very
// beginning of the attempt. If the streams were read apart, these bytes came from stdout.
type Stamps struct {
	Apart bool  // stdout and stderr were read apart
	From  int64 // nothing is known of the bytes before this offset
	List  []Stamp
}

// Encode returns a few bytes for each stamp. Without stamps it returns nothing.
func (m *Stamps) Encode() []byte {
	if !m.Apart && len(m.List) == 0 {
		return nil
	}

	out := binary.AppendUvarint([]byte{byte(bit(m.Apart))}, uint64(m.From))
	at, ms := int64(0), int64(0)
	for _, k := range m.List {
		out = binary.AppendUvarint(out, uint64(k.At-at)<<1|uint64(bit(k.Stderr)))
		out = binary.AppendUvarint(out, uint64(max(0, k.Millis-ms)))
		at, ms = k.At, max(ms, k.Millis)
	}
	return out
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

var errStamps = errors.New("the stamps of the output are damaged")

// DecodeStamps undoes Encode.
func DecodeStamps(b []byte) (m Stamps, err error) {
	if len(b) == 0 {
		return m, nil
	}

	next := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b, err = nil, errStamps
			return 0
		}
		b = b[n:]
		return v
	}

	m.Apart = b[0]&1 != 0
	b = b[1:]
	m.From = int64(next())
	at, ms := int64(0), int64(0)
	for len(b) > 0 {
		place := next()
		at, ms = at+int64(place>>1), ms+int64(next())
		m.List = append(m.List, Stamp{at, ms, place&1 != 0})
	}
	return m, err
}

// LineStamp is the stamp of a line. It also applies to the lines after it, until the next
// LineStamp.
type LineStamp struct {
	Line   int64 // from 1
	Millis int64 // when the line's first byte came; negative if unknown
	Stderr bool  // some bytes of the line came from stderr
}

// LineStamps converts the stamps of bytes to stamps of lines, one piece after the other.
type LineStamps struct {
	stamps  Stamps
	passed  int       // stamps at or before the last byte
	current LineStamp // of the line that is being written
	next    LineStamp // of the line after it
}

// NewLineStamps returns the stamps of the lines of an output.
func NewLineStamps(m Stamps) *LineStamps { return &LineStamps{stamps: m} }

// Of returns the stamps of the lines of the next piece. The first stamp is for the piece's first line.
func (l *LineStamps) Of(p Piece) (out []LineStamp) {
	put := func(m LineStamp) {
		last := len(out) - 1
		switch {
		case last >= 0 && out[last].Line == m.Line:
			out[last] = m
		case last < 0 || out[last].Millis != m.Millis || out[last].Stderr != m.Stderr:
			out = append(out, m)
		}
	}

	list := l.stamps.List
	for l.passed < len(list) && list[l.passed].At < p.At { // in a gap
		l.passed++
	}
	state := l.before(p.At)
	state.Line = p.Line + 1
	goesOn := l.current.Line == state.Line // the piece continues the last line of the piece before
	if goesOn {
		l.next.Millis, l.next.Stderr = state.Millis, state.Stderr
		state = l.current
	} else {
		l.next = state
	}
	l.current = state
	put(state)

	line, from := p.Line+1, int64(0)
	reach := func(to int64) { // moves on to a byte of the piece, and puts the stamps of the lines up to it
		n := lineEnds(p.Data[from:to])
		if from = to; n == 0 {
			return
		}
		l.next.Line = line + 1
		put(l.next)
		line += n
		l.current = l.next
		l.current.Line = line
	}

	for ; l.passed < len(list) && list[l.passed].At < p.End(); l.passed++ {
		m, at := list[l.passed], list[l.passed].At-p.At
		reach(at)
		l.next = LineStamp{line + 1, m.Millis, m.Stderr}

		if at == 0 && !goesOn || at > 0 && p.Data[at-1] == '\n' {
			l.current = LineStamp{line, m.Millis, m.Stderr}
			put(l.current)
		} else if m.Stderr && !l.current.Stderr {
			l.current.Stderr = true
			put(l.current)
		}
	}

	reach(int64(len(p.Data)))
	if bytes.HasSuffix(p.Data, newline) {
		l.current = LineStamp{} // the next piece begins a line
	}
	return out
}

// before returns the state at a byte: the last stamp before that byte.
func (l *LineStamps) before(at int64) LineStamp {
	switch {
	case l.passed > 0:
		m := l.stamps.List[l.passed-1]
		return LineStamp{Millis: m.Millis, Stderr: m.Stderr}
	case at < l.stamps.From:
		return LineStamp{Millis: -1}
	}
	return LineStamp{}
}
