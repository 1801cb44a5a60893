package guard

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gated is a writer that somebody may keep from going on.
type gated struct {
	mu   sync.Mutex
	text strings.Builder
}

func (g *gated) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.text.Write(p)
}

// TestLines: what a guard says is written in order; while nobody reads it waits for nobody, and loses what is too much.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{}
		l := newLines(g)
		defer close(l.next)
		fmt.Fprintln(l, "one")
		fmt.Fprintln(l, "two")
		l.flush()
		if got := g.text.String(); got != "one\ntwo\n" {
			t.Errorf("got %q", got)
		}
	})
	r, w := io.Pipe() // of which nobody reads
	l := newLines(w)
	log, began := slog.New(slog.NewTextHandler(l, nil)), time.Now()
	for range 10 * mostLines {
		log.Warn("killing")
	}
	l.flush()
	if took := time.Since(began); took > 50*lastWords {
		t.Errorf("it took %s", took)
	}
	r.Close()
	close(l.next)
}
