package logqueue

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// reader keeps its input.
type reader struct {
	mu  sync.Mutex
	got strings.Builder
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(p)
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

func TestLinesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reader
		w := New(&r, Room)

		for i := range 100 {
			fmt.Fprintf(w, "line %d\n", i)
		}

		if !w.Flush(time.Second) {
			t.Error("Flush: not everything is written")
		}

		var want strings.Builder
		for i := range 100 {
			fmt.Fprintf(&want, "line %d\n", i)
		}

		if got := r.text(); got != want.String() {
			t.Errorf("got %q", got)
		}
	})
}

// TestBlockedReader checks that a blocked reader delays no caller, and that the reader learns where
// and how many lines are missing.
func TestBlockedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, target := io.Pipe()
		defer pipe.Close()
		w := New(target, 20)
		w.Notice = func(n int) []byte { return fmt.Appendf(nil, "%d dropped\n", n) }
		before, began := Dropped(), time.Now()

		io.WriteString(w, "being written\n")
		synctest.Wait() // the goroutine is blocked in the write
		io.WriteString(w, "waits 1\n")
		io.WriteString(w, "waits 2\n")
		io.WriteString(w, "too much\n")
		io.WriteString(w, "two\nlines\n")
		io.WriteString(w, "\n") // there is room for it, but it would be out of order
		if time.Since(began) != 0 {
			t.Error("Write waited for the reader")
		}

		if got := Dropped() - before; got != 4 {
			t.Errorf("%d lines counted as dropped, want 4", got)
		}

		if w.Flush(time.Second) {
			t.Error("Flush says that everything is written, to a reader that is blocked")
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Flush took %s, want its limit", took)
		}

		var r reader
		go io.Copy(&r, pipe)
		synctest.Wait()
		io.WriteString(w, "later\n")
		if !w.Flush(time.Second) {
			t.Error("Flush: the reader reads again, and not everything is written")
		}

		target.Close()
		synctest.Wait()
		if got, want := r.text(), "being written\nwaits 1\nwaits 2\n4 dropped\nlater\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestFailedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, target := io.Pipe()
		gone := errors.New("gone")
		pipe.CloseWithError(gone)
		w := New(target, Room)
		calls := 0
		w.Failed = func(err error) {
			if !errors.Is(err, gone) {
				t.Errorf("Failed(%v)", err)
			}
			calls++
		}

		io.WriteString(w, "one\n")
		io.WriteString(w, "two\n")
		if !w.Flush(time.Second) {
			t.Error("Flush waits for lines that could not be written")
		}
		if calls != 1 {
			t.Errorf("Failed was called %d times", calls)
		}
	})
}
