package job

import (
	"strings"
	"testing"
)

func TestOutputText(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		out  Output
		want string
	}{
		"nothing":                {Output{}, ""},
		"all of it":              {Output{Head: []byte("a 備份 🎉\n"), Bytes: 14}, "a 備份 🎉\n"},
		"bytes that are no text": {Output{Head: []byte("a\xff\xfeb\xe5"), Bytes: 5}, "a\uFFFDb\uFFFD"},
		"a cut": {
			Output{Head: []byte("one\ntw"), Tail: []byte("ne\nten\n"), Bytes: 100},
			"one\ntw\n… 87 bytes dropped …\nne\nten\n",
		},
		"a cut at a line's end": {
			Output{Head: []byte("one\n"), Tail: []byte("ten\n"), Bytes: 100}, "one\n… 92 bytes dropped …\nten\n",
		},
		"a cut through characters": {
			Output{Head: []byte("備\xe4\xbb"), Tail: []byte("\x8e\x89🎉"), Bytes: 20}, "備\n… 13 bytes dropped …\n🎉",
		},
		"a cut in the midst of noise": {
			Output{Head: []byte("\x80\x80\x80\x80\x80"), Tail: []byte("\x80\x80\x80\x80\x80"), Bytes: 20},
			"\uFFFD\n… 10 bytes dropped …\n\uFFFD",
		},
		"no head": {Output{Tail: []byte("z"), Bytes: 2}, "… 1 bytes dropped …\nz"},
	} {
		if got := tc.out.Text(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestErrorLine(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("talk\n", 500)
	stamped := Stamps{Apart: true, List: []Stamp{{4, 200, true}, {14, 300, false}}}
	for name, c := range map[string]struct {
		o    Output
		want string
	}{
		"nothing":                     {Output{}, ""},
		"only white space":            {Output{Head: []byte(" \n\n\x1b[0m\n")}, ""},
		"the last line":               {Output{Head: []byte("one\ntwo\n\n")}, "two"},
		"a line about an error":       {Output{Head: []byte("Error: disk full\n  at save()\ndone\n")}, "Error: disk full"},
		"the last line of stderr":     {Output{Head: []byte("err\nno space\n\nerror? no, done\n"), Stamps: stamped.Encode()}, "no space"},
		"stamps, and no stderr":       {Output{Head: []byte("it failed\ndone"), Stamps: (&Stamps{Apart: true}).Encode()}, "it failed"},
		"damaged stamps":              {Output{Head: []byte("it failed\ndone"), Stamps: []byte{0, 0, 0x80}}, "it failed"},
		"an error too far above":      {Output{Head: []byte("error\n" + long + "end")}, "end"},
		"only the tail":               {Output{Head: []byte("error\n"), Tail: []byte("b\nc\n"), Bytes: 99, Lines: 9}, "c"},
		"a progress bar":              {Output{Head: []byte("failed: 1 %\rfailed: 99 %\r\n")}, "failed: 99 %"},
		"colours and invalid bytes":   {Output{Head: []byte("\x1b[31mpanic\x1b[0m: \xff\n")}, "panic: \uFFFD"},
		"a long line":                 {Output{Head: []byte(strings.Repeat("ä", 9000))}, strings.Repeat("ä", 29) + "…"},
		"a word that only looks like": {Output{Head: []byte("terror\ndone\n")}, "done"},
	} {
		if c.o.Tail == nil {
			c.o.Bytes = int64(len(c.o.Head))
		}
		if got := c.o.ErrorLine(30); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func BenchmarkErrorLine(b *testing.B) {
	o := Output{Head: []byte(strings.Repeat("a line of output that says nothing about what went wrong\n", 1000))}
	for b.Loop() {
		o.ErrorLine(300)
	}
}
