package job

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func piecesOf(list ...any) []Piece {
	var out []Piece
	for i := 0; i < len(list); i += 2 {
		out = append(out, Piece{At: int64(list[i].(int)), Data: []byte(list[i+1].(string))})
	}
	return out
}

func TestPiecesText(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		pieces []Piece
		from   int64
		over   bool
		text   string
		next   int64
	}{
		"nothing":              {nil, 0, false, "", 0},
		"nothing, over":        {nil, 7, true, "", 7},
		"all":                  {piecesOf(0, "one\n", 4, "two"), 0, false, "one\ntwo", 7},
		"behind a byte":        {piecesOf(0, "one\n", 4, "two"), 5, false, "wo", 7},
		"behind all":           {piecesOf(0, "one\n", 4, "two"), 7, false, "", 7},
		"behind more than all": {piecesOf(0, "one"), 9, true, "", 9},
		"a gap": {
			piecesOf(0, "one", 10, "two"), 0, true, "one\n… 7 bytes dropped …\ntwo", 13,
		},
		"a gap behind the end of a line": {
			piecesOf(0, "one\n", 10, "two"), 0, true, "one\n… 6 bytes dropped …\ntwo", 13,
		},
		"a gap at the beginning":      {piecesOf(10, "two"), 0, false, "… 10 bytes dropped …\ntwo", 13},
		"a gap since the last answer": {piecesOf(10, "two"), 4, false, "\n… 6 bytes dropped …\ntwo", 13},
		"two gaps": {
			piecesOf(0, "a\n", 5, "b\n", 10, "c"), 0, true, "a\n… 3 bytes dropped …\nb\n… 3 bytes dropped …\nc", 11,
		},
		"half a character to come":    {piecesOf(0, "a€"[:3]), 0, false, "a", 1},
		"its rest":                    {piecesOf(0, "a€"[:3], 3, "a€"[3:]), 1, false, "€", 4},
		"half a character at the end": {piecesOf(0, "a€"[:3]), 0, true, "a\uFFFD", 3},
		"what will be no character":   {piecesOf(0, "a\xff"), 0, false, "a\uFFFD", 2},
		"a gap through a character": {
			piecesOf(0, "a€"[:2], 10, "€b"[1:]), 0, true, "a\n… 11 bytes dropped …\nb", 13,
		},
		"a gap and half a character behind it": {
			piecesOf(0, "a", 10, "€"[:1]), 0, false, "a\n… 9 bytes dropped …\n", 10,
		},
	} {
		if text, next := PiecesText(Join(c.pieces), c.from, c.over); text != c.text || next != c.next {
			t.Errorf("%s: got %q, %d, want %q, %d", name, text, next, c.text, c.next)
		}
	}
}

// A reader that continues from each answer gets the whole text, each byte once, however the output
// was cut into pieces and whenever the reader asked.
func TestFollowingLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n€🎉ü")), 0, 200, -1).Draw(t, "all"))
		var pieces []Piece
		var text strings.Builder
		from := int64(0)
		ask := func(over bool) {
			got, next := PiecesText(Join(pieces), from, over)
			text.WriteString(got)
			if next < from || next > int64(len(all)) {
				t.Fatalf("behind %d comes %d of %d", from, next, len(all))
			}
			from = next
		}

		for at := 0; at < len(all); {
			n := rapid.IntRange(1, 9).Draw(t, "n")
			n = min(n, len(all)-at)
			pieces = append(pieces, Piece{At: int64(at), Data: all[at : at+n]})
			if at += n; rapid.Bool().Draw(t, "ask") {
				ask(false)
			}
		}

		ask(true)
		if text.String() != string(all) || from != int64(len(all)) {
			t.Errorf("got %q up to %d, want %q", text.String(), from, all)
		}
	})
}

// The text of an output in pieces is the text of the output.
func TestPiecesOfAnOutput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "all")
		o := Output{Head: all, Bytes: int64(len(all))}
		if len(all) > 2 && rapid.Bool().Draw(t, "cut") {
			head := rapid.IntRange(0, len(all)-1).Draw(t, "head")
			tail := rapid.IntRange(head+1, len(all)).Draw(t, "tail")
			o.Head, o.Tail = all[:head], all[tail:]
		}

		text, next := PiecesText(o.Pieces(), 0, true)
		if len(o.Tail) > 0 || !o.Truncated() {
			if text != o.Text() || next != o.Bytes {
				t.Errorf("got %q, %d, want %q, %d", text, next, o.Text(), o.Bytes)
			}
		}

		if back := OutputOf(o.Pieces()); len(o.Tail) > 0 &&
			(!bytes.Equal(back.Head, o.Head) || !bytes.Equal(back.Tail, o.Tail) || back.Bytes != o.Bytes) {
			t.Errorf("got %+v, want %+v", back, o)
		}
	})
}

func TestOutputOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces     []Piece
		head, tail string
		bytes      int64
	}{
		"nothing":                       {nil, "", "", 0},
		"without a gap":                 {piecesOf(0, "ab", 2, "cd"), "abcd", "", 4},
		"with one":                      {piecesOf(0, "ab", 2, "c", 10, "de", 12, "f"), "abc", "def", 13},
		"with two: the middle goes":     {piecesOf(0, "ab", 5, "x", 10, "de"), "ab", "de", 12},
		"the beginning is not there":    {piecesOf(3, "ab", 9, "cd"), "", "cd", 11},
		"nothing but the end":           {piecesOf(3, "ab"), "", "ab", 5},
		"one byte, and a gap behind it": {piecesOf(0, "a", 2, "c"), "a", "c", 3},
	} {
		got := OutputOf(c.pieces)
		if string(got.Head) != c.head || string(got.Tail) != c.tail || got.Bytes != c.bytes {
			t.Errorf("%s: got %q … %q, %d bytes, want %q … %q, %d", name, got.Head, got.Tail, got.Bytes, c.head, c.tail,
				c.bytes)
		}
	}
}
