package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestOutputMovesNoTerminal: no output or name of a job can affect the terminal of a viewer.
func TestOutputMovesNoTerminal(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"plain\n\ttext ü 数\n":                 "plain\n\ttext ü 数\n",
		"\x1b[31mred\x1b[0m \x1b[38;5;1mx":    "red x",
		"\x1b]0;title\x07":                    `\x1b]0;title\x07`,
		"\x1b[2J\x1b[H":                       `\x1b[2J\x1b[H`,
		"\x1b]52;c;ZXZpbA==\x07":              `\x1b]52;c;ZXZpbA==\x07`,
		"10%\r20%\r\ndone":                    "10%\\x0d20%\ndone",
		"\u009b31m \u202e evil \u2066":        `\x9b31m \u202e evil \u2066`,
		"nul\x00 bs\b\b\b del\x7f vt\v ff\f":  `nul\x00 bs\x08\x08\x08 del\x7f vt\x0b ff\x0c`,
		"\x1b[31":                             `\x1b[31`,
		"\x1bP1;1|evil\x1b\\ \x1b_x\x1b\\":    `\x1bP1;1|evil\x1b\ \x1b_x\x1b\`,
		"\x1b[3\x1b[0m1m":                     `\x1b[31m`,
		"<script>alert(1)</script> & \"q\" '": "<script>alert(1)</script> & \"q\" '",
	} {
		got := visible(in)
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}

		for _, r := range got + plain(in) {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Errorf("%q: %U is left", in, r)
			}
		}

		if strings.ContainsAny(plain(in), "\n\t\r\x1b") {
			t.Errorf("%q: a name is more than a line: %q", in, plain(in))
		}

		var b strings.Builder
		if err := writeJSON(&b, map[string]string{"x": in}); err != nil {
			t.Fatal(err)
		}

		var back map[string]string
		if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back["x"] != in {
			t.Errorf("%q: as JSON %q is %q, %v", in, b.String(), back["x"], err)
		}
		if strings.ContainsFunc(b.String(), hidden) {
			t.Errorf("%q: as JSON it is %q", in, b.String())
		}
	}
}

// TestVisiblePieces: a text that comes in pieces looks as if it came at once, wherever it is cut.
func TestVisiblePieces(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"one\r\ntwo\r\n", "\x1b[31mred\x1b[0m\r\n", "10%\r20%\r", "\x1b[38;5;1m\r", "\x1b]0;title\x07", "\x1b[31",
		"\x1b[" + strings.Repeat("1", 200) + "x",
	} {
		for at := range len(text) {
			got, held := "", ""
			for _, piece := range []string{text[:at], text[at:]} {
				var cut string
				cut, held = cutSequence(held + piece)
				got += visible(cut)
			}
			if got += visible(held); got != visible(text) {
				t.Errorf("%q cut at %d: got %q, want %q", text, at, got, visible(text))
			}
		}
	}
}
