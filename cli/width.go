package cli

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// cells counts terminal columns. East Asian characters and emoji take two columns. All fields are
// set here. Otherwise the locale would decide the width of characters such as ….
var cells = &runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// displayWidth returns the number of terminal columns of s.
func displayWidth(s string) int { return cells.StringWidth(s) }

// cut shortens s to at most width columns, ending in an ellipsis.
func cut(s string, width int) string { return cells.Truncate(s, width, "…") }

// plain makes s a single line that is harmless for a terminal. Names and commands are user input.
// They must not move the cursor or change the text direction.
func plain[S ~string](s S) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '↵'
		case r == '\t':
			return ' '
		case r == '\r':
			return -1
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return unicode.ReplacementChar
		}
		return r
	}, string(s))
}
