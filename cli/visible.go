package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// colouring matches colour sequences. They are harmless, and removed.
var colouring = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// visible makes a multi-line text harmless for a terminal. An attacker may have got a job to print
// it. Control characters and characters that change the text direction become \xNN or \uNNNN.
func visible(s string) string {
	s = strings.ReplaceAll(colouring.ReplaceAllString(s, ""), "\r\n", "\n")
	if !strings.ContainsFunc(s, hidden) {
		return s
	}

	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}

	return b.String()
}

// unfinished matches the possible beginning of a harmless sequence at the end of a text.
var unfinished = regexp.MustCompile("\r?(\x1b(\\[[0-9;:]{0,60})?)?$")

// cutSequence cuts off the beginning of a sequence that the next piece of a text may complete.
func cutSequence(s string) (text, rest string) {
	at := unfinished.FindStringIndex(s)[0]
	return s[:at], s[at:]
}

// hidden reports whether a character could make a terminal do something other than show it.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069)
}

// visibleJSON escapes characters that encoding/json leaves unescaped. They only occur in strings,
// where an escape is equivalent.
func visibleJSON(text []byte) []byte {
	if !strings.ContainsFunc(string(text), hidden) {
		return text
	}

	var b strings.Builder
	for _, r := range string(text) {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}

	return []byte(b.String())
}
