package job

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Output is the kept part of a command's stdout and stderr, in the order of writing.
//
//	beginning                                                        end
//	│ Head │ Rest of the first half │ dropped │ Rest of the last half │ Tail │
//
// Without a Rest, Head and Tail are the two halves. A job that keeps more than 64 KiB has a Rest:
// it is written to MySQL after the run's end, in parts, and is missing if the node dies before.
type Output struct {
	Head, Tail []byte // Tail is empty unless bytes between them are in Rest or dropped
	Bytes      int64  // bytes written in total

	// Lines counts the line ends in the whole output. It is only set with a Tail, whose line
	// numbers follow from it.
	Lines  int64   `json:",omitempty"`
	Stamps []byte  `json:",omitempty"` // see Stamps
	Answer *Answer `json:",omitempty"` // of an HTTP run

	// Parts and PartBytes announce the Rest: its number of rows, and its number of bytes.
	Parts     int  `json:",omitempty"`
	PartBytes int  `json:",omitempty"`
	Rest      Rest `json:"-"`

	// A compressed output has an Encoding and a Size, see Pack. Its head and tail are then not
	// readable, and Size is their uncompressed length.
	Encoding Encoding `json:",omitempty"`
	Size     int      `json:",omitempty"`
}

// Rest is the part of a large output that does not fit in memory.
type Rest interface {
	// Pieces calls yield for each part, until a call fails. The data of a part is valid only during
	// the call.
	Pieces(yield func(Piece) error) error

	// Close frees the memory. It may be called several times.
	Close()
}

// Answer describes the response to an HTTP request, without its body.
type Answer struct {
	Status  int        `json:"status"`
	Proto   string     `json:"proto,omitempty"`
	Headers [][]string `json:"headers,omitempty"`

	// Microseconds since the start of the attempt. Redirects are included.
	Connected int64 `json:"connected,omitempty"` // the connection of the last request was ready
	FirstByte int64 `json:"first_byte,omitempty"`
	Complete  int64 `json:"complete,omitempty"` // zero: the body broke off
}

// Truncated reports whether some bytes were dropped.
func (o *Output) Truncated() bool { return o.Bytes > int64(o.Kept()) }

// Text returns head and tail as valid UTF-8 for people. A replacement character replaces each run
// of invalid bytes. A line between head and tail gives the number of missing bytes. A character
// that the cut has split counts as missing. Control characters remain, so the code that shows the
// text must escape them.
func (o *Output) Text() string {
	text, _ := PiecesText(o.Pieces(), 0, true)
	return text
}

// wholeEnd cuts an incomplete character off the end of b.
func wholeEnd(b []byte) []byte {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}

// wholeStart cuts the rest of a split character off the start of b. It never cuts more bytes than
// one character has.
func wholeStart(b []byte) []byte {
	rest := 0
	for rest < len(b) && !utf8.RuneStart(b[rest]) {
		rest++
	}
	if rest >= utf8.UTFMax {
		return b
	}
	return b[rest:]
}

// trouble matches what programs print about errors. The console has the same expression.
var trouble = regexp.MustCompile(`(?i)\b(error|err|fatal|failed|failure|exception|panic|traceback|denied|cannot|` +
	`not found|refused|timed? ?out)\b`)

// ErrorLine returns the line that most likely says what went wrong. The last line of stderr wins,
// then the last line that speaks of an error, then the last line of all. The result has no control
// characters and at most most characters.
func (o *Output) ErrorLine(most int) string {
	pieces := o.Pieces()
	if len(pieces) == 0 {
		return ""
	}

	p := pieces[len(pieces)-1]
	stamps, _ := DecodeStamps(o.Stamps) // if damaged: the stamps before the damage
	marks := NewLineStamps(stamps).Of(p)

	// Look at the lines backwards. A hundred lines take less than a millisecond.
	const enough = 100
	var speaks, last string
	number, data := p.after()+1, p.Data
	for looks := 0; len(data) > 0 && looks < enough && (speaks == "" || stamps.Apart); looks++ {
		i := bytes.LastIndexByte(data, '\n')
		text := shownLine(data[i+1:], most)
		data = data[:max(0, i)]

		for len(marks) > 1 && marks[len(marks)-1].Line > number {
			marks = marks[:len(marks)-1]
		}
		number--

		switch {
		case text == "":
		case marks[len(marks)-1].Stderr:
			return text
		case speaks == "" && trouble.MatchString(text):
			speaks = text
		case last == "":
			last = text
		}
	}

	return cmp.Or(speaks, last)
}

// shownLine returns what a terminal finally shows of a line, cut to most characters. A progress
// bar, for example, overwrites its line.
func shownLine(line []byte, most int) string {
	line = bytes.TrimRight(line, "\r")
	line = line[bytes.LastIndexByte(line, '\r')+1:]

	const enough = 4096 // bytes
	text := strings.ToValidUTF8(string(wholeEnd(line[:min(len(line), enough)])), "\uFFFD")
	return cutRunes(strings.TrimSpace(visible(text)), most)
}

// escape matches escape sequences, which control terminals.
var escape = regexp.MustCompile("\x1b\\[[0-9;:?]*[a-zA-Z]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)?|\x1b.")

// visible removes what a terminal would not show.
func visible(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, escape.ReplaceAllString(line, ""))
}

func cutRunes(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
