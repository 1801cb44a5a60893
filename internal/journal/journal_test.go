package journal

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// TestPriorities: each line begins with its priority, also with attributes and groups.
func TestPriorities(t *testing.T) {
	var out strings.Builder
	log := slog.New(New(&out, func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	}))
	log.Error("a")
	log.With("node", "web-1").Warn("b")
	log.WithGroup("g").Info("c", "k", 1)
	log.Debug("d")

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []struct{ begin, has string }{
		{`<3>{"time":`, `"msg":"a"`}, {`<4>{`, `"node":"web-1"`}, {`<6>{`, `"g":{"k":1}`}, {`<7>{`, `"msg":"d"`},
	} {
		if !strings.HasPrefix(lines[i], want.begin) || !strings.Contains(lines[i], want.has) {
			t.Errorf("got %s, want %s… with %s", lines[i], want.begin, want.has)
		}
	}
}

// TestReads: a variable inherited from a service does not make a file the journal's.
func TestReads(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "1:2")
	if Reads(os.Stderr) {
		t.Error("an inherited variable: got the journal")
	}
	t.Setenv("JOURNAL_STREAM", "")
	if Reads(os.Stderr) {
		t.Error("no variable: got the journal")
	}
}
