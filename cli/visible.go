package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// colouring is what programs write to colour their words. It does nothing else, and is left out.
var colouring = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// visible is a text of several lines that does nothing to a terminal: who wrote it may be somebody who got a job to
// print what they sent. Control characters, and those that turn the direction of what follows, stand there as \xNN.
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

// hidden tells whether a terminal does something else with a character than to show it.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069)
}

// visibleJSON escapes what encoding/json leaves as it is. It can only stand in texts, where an escape means the same.
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
