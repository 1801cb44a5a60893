package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// colouring matches colour sequences. visible removes them, although they are harmless.
var colouring = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// visible makes a multi-line text harmless for a terminal. The text may come from an attacker
// through the output of a job. Control characters and characters that change the text direction
// become \xNN or \uNNNN.
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

// unfinished matches an end of a text that may be the beginning of a harmless sequence.
var unfinished = regexp.MustCompile("\r?(\x1b(\\[[0-9;:]{0,60})?)?$")

// cutSequence cuts off the beginning of a sequence that the next text may complete.
func cutSequence(s string) (text, rest string) {
	at := unfinished.FindStringIndex(s)[0]
	return s[:at], s[at:]
}

// hidden reports whether a terminal may do something else with a character than show it.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069)
}

// visibleJSON escapes characters that encoding/json does not escape. They occur only in strings,
// where the escape means the same.
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
