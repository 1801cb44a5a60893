package job

import (
	"bytes"
	"fmt"
	"strings"
)

// Piece is a part of an output: bytes, their offset, and the number of line ends before them.
type Piece struct {
	At   int64
	Data []byte
	Line int64
}

// End is the offset after the last byte.
func (p Piece) End() int64 { return p.At + int64(len(p.Data)) }

// after returns the number of line ends up to End.
func (p Piece) after() int64 { return p.Line + lineEnds(p.Data) }

func lineEnds(b []byte) int64 { return int64(bytes.Count(b, newline)) }

var newline = []byte{'\n'}

// Pieces returns head and tail as one or two pieces. For an empty output it returns none.
func (o *Output) Pieces() []Piece {
	var out []Piece
	if len(o.Head) > 0 {
		out = append(out, Piece{At: 0, Data: o.Head})
	}
	if len(o.Tail) > 0 {
		out = append(out, Piece{o.Bytes - int64(len(o.Tail)), o.Tail, max(0, o.Lines-lineEnds(o.Tail))})
	}
	return Join(out)
}

// LineCount returns the number of lines of the whole output. An unfinished last line counts as a
// line.
func (o *Output) LineCount() int64 {
	last, n := o.Tail, o.Lines
	if len(last) == 0 {
		last, n = o.Head, lineEnds(o.Head)
	}
	if len(last) > 0 && last[len(last)-1] != '\n' {
		n++
	}
	return n
}

// OutputOf makes an output from its known pieces, which must be in order. An output has room for
// only one gap, so pieces between two gaps are dropped.
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
		o.Tail, o.Lines = last.Data, last.after()
	}

	return o
}

// Join merges pieces that touch each other. The pieces must be in order and must not overlap.
func Join(pieces []Piece) []Piece {
	var out []Piece
	for _, p := range pieces {
		if last := len(out) - 1; last >= 0 && out[last].End() == p.At {
			out[last].Data = append(out[last].Data, p.Data...)
			continue
		}
		out = append(out, Piece{p.At, append([]byte(nil), p.Data...), p.Line})
	}
	return out
}

// From returns the bytes of joined pieces from an offset on.
func From(pieces []Piece, from int64) []Piece {
	for len(pieces) > 0 && pieces[0].End() <= from {
		pieces = pieces[1:]
	}
	if len(pieces) > 0 && pieces[0].At < from {
		pieces = append([]Piece{pieces[0].from(from)}, pieces[1:]...)
	}
	return pieces
}

// from returns the bytes from an offset on. The offset must be within the piece.
func (p Piece) from(at int64) Piece {
	n := at - p.At
	return Piece{at, p.Data[n:], p.Line + lineEnds(p.Data[:n])}
}

// PiecesText returns the text of joined pieces from an offset on, with a line for each gap. All
// bytes before next are shown or counted. If over is false, more output may come, and an incomplete
// character at the end waits for the next call.
func PiecesText(pieces []Piece, from int64, over bool) (text string, next int64) {
	var b strings.Builder
	r, within := Reading{Next: from}, from > 0
	for _, p := range From(pieces, from) {
		text := r.Add(p).String(within)
		within = !strings.HasSuffix(text, "\n") && (text != "" || within)
		b.WriteString(text)
	}
	if over {
		b.Write(r.End().Data)
	}

	return b.String(), r.Next
}

// Reading turns the pieces of an output into text, one after the other.
type Reading struct {
	Next int64 // all bytes before this offset were shown or counted

	line int64  // number of line ends before Next; valid once something was added
	any  bool   // something was added
	rest []byte // an incomplete character at Next
}

// Text is the text of a piece: valid UTF-8, cut between characters.
type Text struct {
	From, Next int64 // the place of its bytes
	Line       int64 // number of line ends before it
	Data       []byte
	Gap        int64 // missing bytes before it
	GapLines   int64 // line ends among them; zero if unknown
}

// Add returns the text of the next piece. An incomplete character at the end of the piece is held
// back. If nothing else is left, Data is empty.
func (r *Reading) Add(p Piece) Text {
	t := Text{From: r.Next, Line: r.line}
	if p.At == r.Next+int64(len(r.rest)) && r.any {
		p = Piece{r.Next, append(r.rest, p.Data...), r.line}
	} else if p.At > r.Next {
		whole := wholeStart(p.Data)
		p = Piece{p.End() - int64(len(whole)), whole, p.Line}
		t.Gap = p.At - r.Next
		if r.any && p.Line > r.line {
			t.GapLines = p.Line - r.line
		}
	}

	data := wholeEnd(p.Data)
	r.rest = append([]byte(nil), p.Data[len(data):]...)
	r.any, r.Next, r.line = true, p.At+int64(len(data)), p.Line+lineEnds(data)
	t.From, t.Next, t.Line, t.Data = p.At, r.Next, p.Line, bytes.ToValidUTF8(data, replacement)
	return t
}

// End returns the text for an incomplete character that Add has held back.
func (r *Reading) End() Text {
	t := Text{From: r.Next, Next: r.Next + int64(len(r.rest)), Line: r.line}
	if len(r.rest) > 0 {
		t.Data = replacement
	}
	r.Next, r.rest = t.Next, nil
	return t
}

var replacement = []byte("\uFFFD")

// String returns the text, with a line for the gap before it. within reports whether the text
// before ended within a line.
func (t Text) String(within bool) string {
	if t.Gap == 0 {
		return string(t.Data)
	}
	if within {
		return "\n" + t.GapText() + string(t.Data)
	}
	return t.GapText() + string(t.Data)
}

// GapText is the line that stands for the gap before this text.
func (t Text) GapText() string {
	if t.GapLines > 0 {
		return fmt.Sprintf("… %d bytes dropped, %d lines …\n", t.Gap, t.GapLines)
	}
	return fmt.Sprintf("… %d bytes dropped …\n", t.Gap)
}
