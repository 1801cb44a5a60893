// Package logqueue lets a process log to a reader that may have stopped reading: a terminal after Ctrl-S, a pager, a full
// journal. A write to such a reader blocks for as long as it pleases, and whoever logs would wait with it.
package logqueue

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Room is how many bytes wait in a queue unless New is told otherwise: some thousand lines.
const Room = 1 << 20

// dropped counts the lines that all queues of this process have dropped.
var dropped atomic.Int64

// Dropped returns how many lines this process has dropped because the reader of its log was blocked.
func Dropped() int64 { return dropped.Load() }

// Writer passes on what is written to it, from a goroutine of its own. Write never blocks and never fails: what finds no
// room is dropped and counted. It is safe for concurrent use.
type Writer struct {
	// Notice is what the reader gets in place of n lines that were dropped; nil for nothing. It is set before the first
	// Write, and called from the Writer's goroutine.
	Notice func(n int) []byte

	// Failed is called with the first error of the target; nil for nobody. It is set before the first Write.
	Failed func(error)

	target io.Writer
	room   int
	failed atomic.Bool // Failed was called

	mu      sync.Mutex
	queue   [][]byte
	size    int  // of the queue, in bytes
	lost    int  // lines dropped since the queue was last taken
	writing bool // a goroutine empties the queue
	idle    []chan struct{}
}

// New returns a writer in front of target, with room for so many bytes.
func New(target io.Writer, room int) *Writer { return &Writer{target: target, room: room} }

// Target is what the writer writes to.
func (w *Writer) Target() io.Writer { return w.target }

// Write queues p, which is one line or several.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// After the first drop all others follow, so that the notice stands where the lines are missing.
	if w.lost > 0 || w.size+len(p) > w.room {
		n := max(1, bytes.Count(p, []byte("\n")))
		w.lost += n
		dropped.Add(int64(n))
		return len(p), nil
	}

	w.queue = append(w.queue, bytes.Clone(p))
	w.size += len(p)
	if !w.writing {
		w.writing = true
		go w.empty()
	}
	return len(p), nil
}

// empty writes until the queue is empty. Each piece is written by itself: another process may write to the same target,
// and the kernel keeps only short writes to a pipe in one piece.
func (w *Writer) empty() {
	for {
		pieces, lost := w.take()
		if len(pieces) == 0 {
			return
		}

		for _, p := range pieces {
			w.write(p)
		}
		if lost > 0 && w.Notice != nil {
			w.write(w.Notice(lost))
		}
	}
}

// take returns what is queued, and how many lines were dropped behind it. It ends the goroutine when there is nothing.
func (w *Writer) take() (pieces [][]byte, lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()

	pieces, lost = w.queue, w.lost
	w.queue, w.size, w.lost = nil, 0, 0
	if len(pieces) == 0 {
		w.writing = false
		for _, done := range w.idle {
			close(done)
		}
		w.idle = nil
	}
	return pieces, lost
}

// write tells Failed about the first error. Later writes may succeed, so it goes on.
func (w *Writer) write(p []byte) {
	if _, err := w.target.Write(p); err != nil && !w.failed.Swap(true) && w.Failed != nil {
		w.Failed(err)
	}
}

// Flush waits until everything is written, but no longer than the limit: the reader may never read again. It reports
// whether everything is written.
func (w *Writer) Flush(limit time.Duration) bool {
	done := w.written()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()

	select {
	case <-done:
		return true
	case <-timeout.C:
		return false
	}
}

// written returns a channel that is closed when nothing waits any more.
func (w *Writer) written() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()

	done := make(chan struct{})
	if w.writing {
		w.idle = append(w.idle, done)
	} else {
		close(done)
	}
	return done
}

// Notice makes the notice of dropped lines a warning of the log itself, in the format of its handlers.
func Notice(handler func(io.Writer) slog.Handler) func(n int) []byte {
	return func(n int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("log lines were dropped while the reader of the log was blocked", "lines", n)
		return line.Bytes()
	}
}
