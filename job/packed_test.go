package job

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o      Output
		packed bool
	}{
		"nothing":    {Output{}, false},
		"a line":     {Output{Head: []byte("done\n"), Bytes: 5}, false},
		"many lines": {Output{Head: []byte(strings.Repeat("line\n", 1000)), Bytes: 5000}, true},
		"head and tail": {
			Output{Head: bytes.Repeat([]byte{7}, 600), Tail: bytes.Repeat([]byte{8}, 700), Bytes: 9000}, true,
		},
		"a long tail": {Output{Tail: bytes.Repeat([]byte{8}, 700), Bytes: 9000}, true},
	} {
		o := c.o
		o.Pack()
		if is := o.Encoding == Deflate; is != c.packed {
			t.Errorf("%s: packed is %v, want %v", name, is, c.packed)
		}

		if o.Kept() != len(c.o.Head)+len(c.o.Tail) || o.Truncated() != c.o.Truncated() {
			t.Errorf("%s: %d bytes are kept, truncated %v", name, o.Kept(), o.Truncated())
		}

		again := o
		again.Pack()
		if again.Encoding != o.Encoding || !bytes.Equal(again.Head, o.Head) {
			t.Errorf("%s: was packed twice", name)
		}
		if err := o.Unpack(); err != nil || o.Text() != c.o.Text() || o.Encoding != Plain || o.Size != 0 {
			t.Errorf("%s: got %+v back, %v", name, o, err)
		}
	}
}

func TestPackAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 300)
		head := bytes.Repeat(piece.Draw(t, "head"), rapid.IntRange(0, 20).Draw(t, "times"))
		tail := bytes.Repeat(piece.Draw(t, "tail"), rapid.IntRange(0, 20).Draw(t, "times"))
		o := Output{Head: head, Tail: tail, Bytes: int64(len(head) + len(tail))}
		o.Pack()
		if len(o.Head)+len(o.Tail) > len(head)+len(tail) || o.Kept() != len(head)+len(tail) {
			t.Fatalf("%d bytes became %d, kept %d", len(head)+len(tail), len(o.Head)+len(o.Tail), o.Kept())
		}
		if err := o.Unpack(); err != nil || !bytes.Equal(o.Head, head) || !bytes.Equal(o.Tail, tail) {
			t.Fatalf("got %+v, %v", o, err)
		}
	})
}

func TestUnpackSaysNo(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Output{
		"a later encoding": {Head: []byte("x"), Encoding: 9},
		"not compressed":   {Head: []byte("hello"), Encoding: Deflate, Size: 5},
		"torn":             {Tail: []byte{0xfa, 0x48}, Encoding: Deflate, Size: 5},
	} {
		if err := o.Unpack(); err == nil {
			t.Errorf("%s: got %q, want an error", name, o.Head)
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	day := Duration(24 * 3600 * 1e9)
	got := Keep{Runs: 5}.Over(Keep{Age: day, Runs: 7}).Over(Keep{Age: 9 * day, Bytes: 1, Failures: 2 * day})
	if want := (Keep{Age: day, Runs: 5, Bytes: 1, Failures: 2 * day}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}

	if (Keep{Failures: day}).Bounded() || !(Keep{Bytes: 1}).Bounded() {
		t.Error("what did not succeed is kept at least so long: that alone removes nothing")
	}

	for want, r := range map[string]Retention{
		"age: 1s is not between":                   {Keep: Keep{Age: Duration(1e9)}},
		"failures: -1h is not":                     {Keep: Keep{Failures: Duration(-3600 * 1e9)}},
		"runs: -1 is not between 1":                {Keep: Keep{Runs: -1}},
		"bytes: -1B is not between":                {Keep: Keep{Bytes: -1}},
		"archive: can only be set for the cluster": {Archive: true},
	} {
		if err := r.Validate("shop"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}

	if r, err := DecodeRetention((&Retention{Keep: got, Archive: true}).Encode()); err != nil || r.Keep != got ||
		!r.Archive {
		t.Errorf("got %+v, %v", r, err)
	}
}
