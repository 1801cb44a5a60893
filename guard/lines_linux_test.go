package guard

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLines: what a guard says is written in order; while nobody reads it waits for nobody, and loses what is too much.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written strings.Builder
		l := newLines(&written)
		defer close(l.next)
		fmt.Fprintln(l, "one")
		fmt.Fprintln(l, "two")
		l.flush()
		if got := written.String(); got != "one\ntwo\n" {
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
