package job

import (
	"fmt"
	"strings"
)

// Piece is a part of an output: bytes and their offset.
type Piece struct {
	At   int64
	Data []byte
}

// End is the offset after the last byte.
func (p Piece) End() int64 { return p.At + int64(len(p.Data)) }

// Pieces returns the kept bytes as one or two pieces; no pieces if it is empty.
func (o Output) Pieces() []Piece {
	var out []Piece
	if len(o.Head) > 0 {
		out = append(out, Piece{0, o.Head})
	}
	if len(o.Tail) > 0 {
		out = append(out, Piece{o.Bytes - int64(len(o.Tail)), o.Tail})
	}
	return Join(out)
}

// OutputOf makes an output of its known pieces, which are in order. An output has room for only one
// gap, so pieces between two gaps are dropped.
func OutputOf(pieces []Piece) Output {
	joined := Join(pieces)
	if len(joined) == 0 {
		return Output{}
	}

	last := joined[len(joined)-1]
	o := Output{Bytes: last.End()}
	if joined[0].At == 0 {
		o.Head = joined[0].Data
	}

	if last.At > 0 {
		o.Tail = last.Data
	}

	return o
}

// Join merges pieces that touch. They are in order and do not overlap.
func Join(pieces []Piece) []Piece {
	var out []Piece
	for _, p := range pieces {
		if last := len(out) - 1; last >= 0 && out[last].End() == p.At {
			out[last].Data = append(out[last].Data, p.Data...)
			continue
		}
		out = append(out, Piece{p.At, append([]byte(nil), p.Data...)})
	}
	return out
}

// From returns the bytes of joined pieces from an offset on.
func From(pieces []Piece, from int64) []Piece {
	for len(pieces) > 0 && pieces[0].End() <= from {
		pieces = pieces[1:]
	}
	if len(pieces) > 0 && pieces[0].At < from {
		first := Piece{from, pieces[0].Data[from-pieces[0].At:]}
		pieces = append([]Piece{first}, pieces[1:]...)
	}
	return pieces
}

// PiecesText returns the text of joined pieces from an offset on, like [Output.Text], with a line
// for each gap. next is the offset up to which it has shown or counted every byte. Unless the
// output is over, an incomplete character at the end waits for the next call.
func PiecesText(pieces []Piece, from int64, over bool) (text string, next int64) {
	var b strings.Builder
	next = from
	pieces = From(pieces, from)
	for i, p := range pieces {
		if p.At > next {
			whole := wholeStart(p.Data)
			p = Piece{p.End() - int64(len(whole)), whole}
		}
		gap := p.At - next
		if i+1 < len(pieces) || !over {
			p.Data = wholeEnd(p.Data)
		}
		if gap > 0 {
			if said := b.String(); next > 0 && !strings.HasSuffix(said, "\n") {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "… %d bytes dropped …\n", gap)
		}
		b.WriteString(strings.ToValidUTF8(string(p.Data), "\uFFFD"))
		next = p.End()
	}

	return b.String(), next
}
