package cli

import (
	"strings"
	"testing"
)

func TestNodeLogIsReadable(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	l := newLines(&b, nil)
	l.copyLog("node-1", cyan,
		strings.NewReader(`{"time":"2027-01-31T12:00:00.5Z","level":"WARN","msg":"it happened","node":"node-1","tasks":3,"in":1500000000,"error":"a b"}
panic: oh no
	main.go:1
{"not":"a record"}
half a line`))

	l.print("dev", bold, "two\nlines\n")
	want := `[node-1] 12:00:00.500 WRN it happened tasks=3 in=1.5s error="a b"
[node-1] panic: oh no
[node-1] 	main.go:1
[node-1] {"not":"a record"}
[node-1] half a line
[dev]    two
[dev]    lines
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
