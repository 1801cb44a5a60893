package job

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Output is what is kept of a command's stdout and stderr, in the order in which they were written.
type Output struct {
	Head, Tail []byte // Tail is empty unless something between them was dropped
	Bytes      int64  // written in all

	// Of one that is compressed, see Pack: head and tail are not to be read then, and Size is how many bytes they stand for.
	Encoding Encoding `json:",omitempty"`
	Size     int      `json:",omitempty"`
}

// Truncated tells whether the middle was dropped.
func (o Output) Truncated() bool { return o.Bytes > int64(o.Kept()) }

// Text is what people read of an output: valid UTF-8, a replacement character for each run of bytes that are none,
// and a line of its own between beginning and end that counts the bytes not shown. A character that the cut split
// counts among those. Control characters are left alone: escaping them is up to whoever shows the text.
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

// wholeEnd cuts off the beginning of a character at the end of b.
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

// wholeStart cuts off the rest of a character at the start of b. More than such a rest can be is no text anyway.
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
