package execute

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// notation is a way in which programs write text.
//
// undo gets the unread bytes, the first of which is special. It returns the bytes that the first
// escape stands for, the escape's length, and the next state. Length 0 means that undo needs more
// bytes. An escape is at most maxEscape bytes long. state is the position within a longer escape;
// 0 is outside.
type notation struct {
	*automaton
	special [256]bool
	inside  bool // escapes occur within a secret only
	undo    func(state int, text []byte) (stands []byte, length, next int)
}

// maxEscape is the length of the longest escape: two UTF-16 surrogates, as in \ud83d\ude00.
const maxEscape = 12

// notations returns all notations that are searched. plain finds the values. form finds the values
// with spaces instead of plus signs. spaced finds the base64 and hex forms of the values, which
// programs may break into lines.
func notations(plain, form, spaced *automaton) []*notation {
	return []*notation{
		newNotation(plain, "", nil),
		newNotation(plain, `\`, undoBackslash),
		newNotation(plain, `\`, undoBytes),
		newNotation(plain, `\`, undoRunes),
		newNotation(plain, `'`, undoShell),
		newNotation(plain, `'`, undoDoubled),
		newNotation(plain, `"`, undoDoubled),
		newNotation(plain, "&", undoEntity),
		newNotation(form, "%+", undoPercent),
		lines(spaced),
	}
}

// lines is the notation of encodings that programs break into lines.
func lines(a *automaton) *notation {
	n := newNotation(a, "\r\n", undoBreak)
	n.inside = true
	return n
}

func newNotation(a *automaton, special string, undo func(int, []byte) ([]byte, int, int)) *notation {
	n := &notation{automaton: a, undo: undo}
	for i := range len(special) {
		n.special[special[i]] = true
	}
	return n
}

// begins reports whether a secret or an escape may begin with a byte.
func (n *notation) begins(b byte) bool { return n.special[b] && !n.inside || n.first[b] != 0 }

// raw takes a byte as it is.
func raw(text []byte) ([]byte, int, int) { return text[:1], 1, 0 }

// more waits for the next byte.
func more(state int) ([]byte, int, int) { return nil, 0, state }

// undoBackslash reads a backslash before a literal byte: bash's %q, its patterns under set -x, its double quotes.
func undoBackslash(_ int, text []byte) ([]byte, int, int) {
	if len(text) < 2 {
		return more(0)
	}
	return text[1:2], 2, 0
}

// undoBytes reads C's escapes, where numbers are bytes: bash's $'…', coreutils, Python's bytes, JSON.
func undoBytes(_ int, text []byte) ([]byte, int, int) {
	return undoC(text, func(n uint64) []byte { return []byte{byte(n)} })
}

// undoRunes reads C's escapes where numbers are code points: Python's and JavaScript's strings.
func undoRunes(_ int, text []byte) ([]byte, int, int) {
	return undoC(text, func(n uint64) []byte { return utf8.AppendRune(nil, rune(n)) })
}

// controls maps the letter after a backslash to the control character.
var controls = map[byte]string{
	'a': "\a", 'b': "\b", 'e': "\x1b", 'E': "\x1b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

func undoC(text []byte, short func(uint64) []byte) ([]byte, int, int) {
	if len(text) < 2 {
		return more(0)
	}

	switch c := text[1]; {
	case c == 'x':
		return number(text, 2, 2, 16, short)
	case c == 'u':
		return undoUTF16(text)
	case c == 'U':
		return number(text, 2, 8, 16, func(n uint64) []byte { return utf8.AppendRune(nil, rune(n)) })
	case c >= '0' && c <= '7':
		return number(text, 1, 3, 8, short)
	case controls[c] != "":
		return []byte(controls[c]), 2, 0
	}
	return text[1:2], 2, 0
}

// number reads the digits of an escape, from index from on. digits is the highest number of
// digits. In base 8 there may be fewer. In another base, too few digits mean that the backslash
// only escapes the next byte.
func number(text []byte, from, digits int, base int, stands func(uint64) []byte) ([]byte, int, int) {
	end := from
	for end < len(text) && end < from+digits && isDigit(text[end], base) {
		end++
	}

	whole := end == from+digits
	if !whole && end == len(text) {
		return more(0)
	}
	if !whole && base != 8 {
		return text[1:2], 2, 0
	}

	n, _ := strconv.ParseUint(string(text[from:end]), base, 32) // at most eight hexadecimal digits
	return stands(n), end, 0
}

func isDigit(b byte, base int) bool {
	if base == 8 {
		return b >= '0' && b <= '7'
	}
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

// undoUTF16 reads \uXXXX, and a surrogate pair as one rune.
func undoUTF16(text []byte) ([]byte, int, int) {
	var unit rune
	stands, length, _ := number(text, 2, 4, 16, func(n uint64) []byte {
		unit = rune(n)
		return utf8.AppendRune(nil, unit)
	})
	if length == 0 || !utf16.IsSurrogate(unit) {
		return stands, length, 0
	}

	rest := text[length:]
	switch {
	case bytes.HasPrefix([]byte(`\u`), rest[:min(2, len(rest))]) && len(rest) < 2:
		return more(0)
	case !bytes.HasPrefix(rest, []byte(`\u`)):
		return stands, length, 0
	}

	second, low := rune(0), 0
	_, low, _ = number(rest, 2, 4, 16, func(n uint64) []byte { second = rune(n); return nil })
	if low == 0 {
		return more(0)
	}
	return utf8.AppendRune(nil, utf16.DecodeRune(unit, second)), length + low, 0
}

// States of undoShell.
const (
	inDollar = 1 + iota // in coreutils' $'…' between two other quotes
	inDouble            // in dash's "'''" between two other quotes
)

// undoShell reads single-quoted text. shellTokens lists the ways in which bash, dash and coreutils
// write a quote or a control character within such text.
func undoShell(state int, text []byte) ([]byte, int, int) {
	is := func(want string) (bool, bool) { // whether text begins with want, or may after more bytes
		n := min(len(want), len(text))
		same := string(text[:n]) == want[:n]
		return same && n == len(want), same && n < len(want)
	}

	for _, t := range shellTokens {
		if t.state != state {
			continue
		}
		whole, maybe := is(t.text)
		if maybe {
			return more(state)
		}
		if whole {
			return []byte(t.stands), t.length, t.next
		}
	}

	if state == inDollar && text[0] == '\\' {
		stands, length, _ := undoBytes(0, text)
		return stands, length, inDollar
	}
	return raw(text)
}

var shellTokens = []struct {
	state  int
	text   string
	length int
	stands string
	next   int
}{
	{0, `'\''`, 4, "'", 0},
	{0, `'"'`, 3, "'", inDouble},
	{0, `'$'\`, 3, "", inDollar},
	{inDouble, `'`, 1, "'", inDouble},
	{inDouble, `"'`, 2, "", 0},
	{inDollar, `''`, 2, "", 0},
	{inDollar, `'\''`, 4, "'", 0},
}

// undoDoubled reads a quote that is written twice: the single quote in SQL and YAML, the double
// quote in CSV.
func undoDoubled(_ int, text []byte) ([]byte, int, int) {
	if len(text) < 2 {
		return more(0)
	}
	if text[0] == text[1] {
		return text[:1], 2, 0
	}
	return raw(text)
}

// undoEntity reads the entities of HTML and XML.
func undoEntity(_ int, text []byte) ([]byte, int, int) {
	for i, b := range text[1:] {
		switch letter := b|0x20 >= 'a' && b|0x20 <= 'z'; {
		case b == ';':
			if stands := html.UnescapeString(string(text[:i+2])); len(stands) < i+2 {
				return []byte(stands), i + 2, 0
			}
			return raw(text)
		case i+2 == maxEscape, !letter && b != '#' && !isDigit(b, 16):
			return raw(text)
		}
	}
	return more(0)
}

// undoPercent reads percent-encoding, in which a plus may mean a space. So undoPercent turns plus
// signs into spaces, and form has the values with the same change.
func undoPercent(_ int, text []byte) ([]byte, int, int) {
	if text[0] == '+' {
		return []byte(" "), 1, 0
	}

	for i := 1; i < 3; i++ {
		if i == len(text) {
			return more(0)
		}
		if !isDigit(text[i], 16) {
			return raw(text)
		}
	}

	n, _ := strconv.ParseUint(string(text[1:3]), 16, 8) // two digits
	if n == '+' {
		n = ' '
	}
	return []byte{byte(n)}, 3, 0
}

// undoBreak skips a line break within an encoding. An empty line ends the encoding, so it is not skipped.
func undoBreak(_ int, text []byte) ([]byte, int, int) {
	switch {
	case text[0] == '\r' && len(text) < 2:
		return more(0)
	case text[0] == '\r' && text[1] != '\n':
		return raw(text)
	}

	length := bytes.IndexByte(text, '\n') + 1
	if length == len(text) {
		return more(0)
	}
	if next := text[length]; next == '\r' || next == '\n' {
		return raw(text)
	}
	return nil, length, 0
}

// reader reads a stream in one notation.
type reader struct {
	*notation
	state   int32   // of the automaton
	mode    int     // of the notation
	at      int64   // number of stream bytes that are decoded
	pending []byte  // the bytes after at: the beginning of an escape
	starts  []int64 // stream positions of the last decoded bytes, at least as many as the automaton's depth
}

func (r *reader) depth() int { return int(r.nodes[r.state].depth) }

// begin returns the stream position at which an unfinished secret may have begun.
func (r *reader) begin() int64 {
	if depth := r.depth(); depth > 0 {
		return r.starts[len(r.starts)-depth]
	}
	return r.at
}

// read takes the stream's next byte.
func (r *reader) read(b byte, t *masking) {
	if len(r.pending) == 0 {
		r.at = t.at - 1 // an idle reader does not get every byte
		if r.mode == 0 && !r.escapes(b) {
			r.at++
			r.step(b, r.at-1, t)
			return
		}
	}

	r.pending = append(r.pending, b)
	for len(r.pending) > 0 {
		stands, length := r.pending[:1], 1
		if r.mode != 0 || r.escapes(r.pending[0]) {
			stands, length, r.mode = r.undo(r.mode, r.pending)
		}
		if length == 0 {
			return
		}

		r.take(stands, length, t)
		r.pending = r.pending[:copy(r.pending, r.pending[length:])]
	}
}

// idle reports whether the reader may skip bytes.
func (r *reader) idle() bool { return r.state == 0 && r.mode == 0 && len(r.pending) == 0 }

func (r *reader) escapes(b byte) bool { return r.special[b] && (!r.inside || r.state != 0) }

// take takes decoded bytes. In the stream they occupy length bytes.
func (r *reader) take(text []byte, length int, t *masking) {
	from := r.at
	r.at += int64(length)
	for _, b := range text {
		r.step(b, from, t)
	}
}

// step takes one decoded byte, which begins at stream position from.
func (r *reader) step(b byte, from int64, t *masking) {
	if r.state = r.automaton.step(r.state, b); r.state == 0 {
		r.starts = r.starts[:0]
		return
	}

	n := &r.nodes[r.state]
	r.starts = append(r.starts, from)
	if depth := int(n.depth); len(r.starts) > 2*depth+64 {
		r.starts = r.starts[:copy(r.starts, r.starts[len(r.starts)-depth:])]
	}
	if n.longest > 0 {
		t.hide(span{r.starts[len(r.starts)-int(n.longest)], r.at})
	}
}

// end hides a secret that is cut off at the end of the stream, and takes the bytes of an incomplete escape literally.
func (r *reader) end(t *masking) {
	if r.depth() >= minStart {
		t.hide(span{r.begin(), t.at})
	}
	for i := range r.pending {
		r.take(r.pending[i:i+1], 1, t)
	}
	if r.depth() >= minStart {
		t.hide(span{r.begin(), t.at})
	}
	r.state, r.mode, r.pending, r.starts = 0, 0, nil, nil
}
