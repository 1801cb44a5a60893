package execute

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"pgregory.net/rapid"

	"go-crontab/job"
)

// chunks hands out data in pieces of the given sizes, then in whatever is asked for.
type chunks struct {
	data  []byte
	sizes []int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	if len(c.sizes) > 0 {
		p = p[:min(len(p), c.sizes[0])]
		c.sizes = c.sizes[1:]
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

// checkKept compares the output with a simple cut of all bytes.
func checkKept(t interface{ Errorf(string, ...any) }, keep int, all []byte, got job.Output) {
	head, tail := all, []byte(nil)
	if len(all) > keep {
		head, tail = all[:keep/2], all[len(all)-(keep-keep/2):]
	}
	if !bytes.Equal(got.Head, head) || !bytes.Equal(got.Tail, tail) || got.Bytes != int64(len(all)) || got.Truncated() != (len(all) > keep) {
		t.Errorf("keep %d of %d: got %q … %q, %d bytes, want %q … %q", keep, len(all), got.Head, got.Tail, got.Bytes, head, tail)
	}
}

func TestOutputKeepsBothEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 3000).Draw(t, "keep")
		all := rapid.SliceOfN(rapid.Byte(), 0, 9000).Draw(t, "all")
		sizes := rapid.SliceOf(rapid.IntRange(1, 2000)).Draw(t, "sizes")
		o := newOutput(keep)
		if err := o.readAll(&chunks{bytes.Clone(all), sizes}); err != nil {
			t.Errorf("read: %v", err)
		}
		if held := cap(o.head.kept) + cap(o.tail.kept); held > keep || held > 2*len(all)+1024 {
			t.Errorf("holds %d bytes for %d written, bound %d", held, len(all), keep)
		}
		checkKept(t, keep, all, o.output())
	})
}

func TestOutputReturnsTheReadersError(t *testing.T) {
	t.Parallel()
	o := newOutput(10)
	if err := o.readAll(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("abc")))); err != iotest.ErrTimeout {
		t.Errorf("got %v, want %v", err, iotest.ErrTimeout)
	}
	checkKept(t, 10, []byte("a"), o.output())
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello"), 3, 2)
	f.Add([]byte("備份 🎉 \xff\x00"), 7, 1)
	f.Add(bytes.Repeat([]byte("🎉"), 500), 1025, 600)
	f.Add([]byte("0䍰"), 3, 4) // the tail is only the rest of a character
	f.Fuzz(func(t *testing.T, all []byte, keep, size int) {
		if keep < 1 || keep > 1<<16 || size < 1 {
			t.Skip()
		}
		o := newOutput(keep)
		sizes := make([]int, len(all)/size+1)
		for i := range sizes {
			sizes[i] = size
		}
		if err := o.readAll(&chunks{bytes.Clone(all), sizes}); err != nil {
			t.Fatal(err)
		}
		out := o.output()
		checkKept(t, keep, all, out)
		text := out.Text()
		if !utf8.ValidString(text) {
			t.Errorf("not UTF-8: %q", text)
		}
		if utf8.Valid(all) {
			checkText(t, string(all), text, out)
		}
	})
}

// checkText knows that all is valid: then the text is all, or a beginning, the line and an end, and they add up.
func checkText(t *testing.T, all, text string, out job.Output) {
	if !out.Truncated() {
		if text != all {
			t.Errorf("got %q, want %q", text, all)
		}
		return
	}
	for i := len(out.Head); i >= max(0, len(out.Head)-utf8.UTFMax); i-- {
		for _, gap := range []string{"", "\n"} {
			if !strings.HasPrefix(text, all[:i]+gap+"… ") {
				continue
			}
			var n int
			if _, err := fmt.Sscanf(text[i+len(gap):], "… %d bytes dropped", &n); err != nil || i+n > len(all) {
				continue
			}
			lines := ""
			if ends := strings.Count(all[i:i+n], "\n"); ends > 0 {
				lines = fmt.Sprintf(", %d lines", ends)
			}
			if text == fmt.Sprintf("%s%s… %d bytes dropped%s …\n%s", all[:i], gap, n, lines, all[i+n:]) {
				return
			}
		}
	}
	t.Errorf("%q does not add up to %q", text, all)
}
