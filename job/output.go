package job

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Output is the kept part of a command's stdout and stderr, in the order of writing.
type Output struct {
	Head, Tail []byte // Tail is empty unless the middle was dropped
	Bytes      int64  // bytes written in total

	// Encoding and Size are for compressed outputs, see Pack: head and tail are then not readable,
	// and Size is their uncompressed length.
	Encoding Encoding `json:",omitempty"`
	Size     int      `json:",omitempty"`
}

// Truncated reports whether the middle was dropped.
func (o Output) Truncated() bool { return o.Bytes > int64(o.Kept()) }

// Text returns the output as valid UTF-8 for people. A replacement character replaces each run
// of invalid bytes, and a line between head and tail gives the number of missing bytes. A character
// split by the cut counts as missing. Control characters remain: the code that shows the text must
// escape them.
func (o Output) Text() string {
	if !o.Truncated() {
		return strings.ToValidUTF8(string(o.Head)+string(o.Tail), "\uFFFD")
	}

	head, tail := wholeEnd(o.Head), wholeStart(o.Tail)
	gap := "\n"
	if len(head) == 0 || head[len(head)-1] == '\n' {
		gap = ""
	}

	dropped := o.Bytes - int64(len(head)+len(tail))
	return strings.ToValidUTF8(string(head), "\uFFFD") + gap +
		fmt.Sprintf("… %d bytes dropped …\n", dropped) +
		strings.ToValidUTF8(string(tail), "\uFFFD")
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

// wholeStart cuts the rest of a character off the start of b, but never more bytes than one
// character has.
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
