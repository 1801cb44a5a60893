package job

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestStampsSurviveTheirEncoding(t *testing.T) {
	t.Parallel()
	want := Stamps{Apart: true, From: 7, List: []Stamp{{9, 100, true}, {40, 100, false}, {1 << 40, 1 << 33, true}}}
	got, err := DecodeStamps(want.Encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}

	none := Stamps{}
	if b := none.Encode(); b != nil {
		t.Errorf("no stamps take %d bytes", len(b))
	}
	if _, err := DecodeStamps([]byte{0, 0, 0x80}); err == nil {
		t.Error("a stamp that is cut off was read")
	}
}

func TestLineStamps(t *testing.T) {
	t.Parallel()
	stamps := Stamps{Apart: true, List: []Stamp{{4, 200, true}, {8, 300, false}, {14, 900, true}, {17, 950, false}}}
	for name, c := range map[string]struct {
		pieces []Piece
		want   []LineStamp
	}{
		"lines of their own, then one within another": {
			piecesOf(0, "out\nerr\nout\nxxERRxx\nend\n"),
			[]LineStamp{{1, 0, false}, {2, 200, true}, {3, 300, false}, {4, 300, true}, {5, 950, false}},
		},
		"after a gap": {
			[]Piece{{At: 0, Data: []byte("o")}, {At: 10, Data: []byte("t\nxxERRxx\nend\n"), Line: 2}},
			[]LineStamp{{1, 0, false}, {3, 300, false}, {4, 300, true}, {5, 950, false}},
		},
	} {
		var got []LineStamp
		lines := NewLineStamps(stamps)
		for _, p := range c.pieces {
			got = append(got, lines.Of(p)...)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// However an output is cut into pieces, each line has the stamp that a look at each of its bytes gives.
func TestLineStampsOfPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab\n")), 1, 60, -1).Draw(t, "all"))
		var stamps Stamps
		states := make([]Stamp, len(all))
		state := Stamp{}
		for i := range all {
			if rapid.IntRange(0, 4).Draw(t, "stamp") == 0 {
				state = Stamp{int64(i), state.Millis + 1, rapid.Bool().Draw(t, "stderr")}
				stamps.List = append(stamps.List, state)
			}
			states[i] = state
		}

		got := map[int64]LineStamp{}
		lines, latest, line := NewLineStamps(stamps), LineStamp{}, int64(1)
		for at := 0; at < len(all); {
			n := rapid.IntRange(1, len(all)-at).Draw(t, "n")
			p := Piece{int64(at), all[at : at+n], lineEnds(all[:at])}
			list := lines.Of(p)
			for line = p.Line + 1; line <= p.after()+1; line++ {
				for len(list) > 0 && list[0].Line <= line {
					latest, list = list[0], list[1:]
				}
				latest.Line = line
				got[line] = latest
			}
			at += n
		}

		from := 0
		for i, text := range bytes.SplitAfter(all, newline) {
			if len(text) == 0 {
				continue
			}
			want := LineStamp{Line: int64(i + 1), Millis: states[from].Millis}
			for k := range text {
				want.Stderr = want.Stderr || states[from+k].Stderr
			}
			if got[want.Line] != want {
				t.Errorf("line %d of %q with %v: got %+v, want %+v", i+1, all, stamps.List, got[want.Line], want)
			}
			from += len(text)
		}
	})
}

// A reader of pieces gets the true number of each line, also after a gap.
func TestReadingCountsLines(t *testing.T) {
	t.Parallel()
	o := Output{Head: []byte("1\n2\n3"), Tail: []byte("8\n9\n10\n"), Bytes: 100, Lines: 30}
	r := Reading{}
	pieces := o.Pieces()
	first, last := r.Add(pieces[0]), r.Add(pieces[1])
	if first.Line != 0 || last.Line != 27 || last.Gap != 88 || last.GapLines != 25 {
		t.Errorf("got %+v, %+v", first, last)
	}
	if n := o.LineCount(); n != 30 {
		t.Errorf("%d lines", n)
	}
	if short := (Output{Head: []byte("1\n2"), Bytes: 3}); short.LineCount() != 2 {
		t.Errorf("%d lines of two", short.LineCount())
	}
	if text := last.GapText(); text != "… 88 bytes dropped, 25 lines …\n" {
		t.Errorf("got %q", text)
	}
}
