package job

import "testing"

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
