// Package logqueue lets a process log to a reader that may have stopped reading: a terminal after
// Ctrl-S, a pager, a full journal. A direct write would block its caller until the reader goes on.
package logqueue

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Room is the usual size of a queue in bytes: some thousand lines.
const Room = 1 << 20

// dropped is the number of lines that all queues of this process have dropped.
var dropped atomic.Int64

// Dropped returns the number of lines that this process has dropped because the reader of its log
// was blocked.
func Dropped() int64 { return dropped.Load() }

// Writer passes its input to a target from its own goroutine. Write never blocks and never fails.
// Lines without room are dropped and counted. A Writer is safe for concurrent use.
type Writer struct {
	// Notice returns the text that replaces n dropped lines; nil: no text. Set it before the first
	// Write. It is called from the Writer's goroutine.
	Notice func(n int) []byte

	// Failed is called with the target's first error; nil: ignore errors. Set it before the first
	// Write.
	Failed func(error)

	target io.Writer
	room   int
	failed atomic.Bool // Failed was called

	mu      sync.Mutex
	queue   [][]byte
	size    int             // bytes in the queue
	lost    int             // lines dropped since the queue was last taken
	writing bool            // a goroutine empties the queue
	idle    []chan struct{} // closed when the queue is empty
}

// New returns a writer to target with a queue of at most room bytes.
func New(target io.Writer, room int) *Writer { return &Writer{target: target, room: room} }

// Target returns the target of the writer.
func (w *Writer) Target() io.Writer { return w.target }

// Write queues p, which has one or several lines.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	// After a dropped line, drop all lines until the queue is taken. So the notice stands in the
	// place of the missing lines.
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

// empty writes until the queue is empty. It writes each piece separately, because another process
// may write to the same pipe, and the kernel keeps only short writes in one piece.
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

// take returns the queue and the number of lines that were dropped after it. If the queue is empty,
// the goroutine ends.
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

// write writes to the target, and reports the first error to Failed. Later writes may succeed, so
// it goes on.
func (w *Writer) write(p []byte) {
	if _, err := w.target.Write(p); err != nil && !w.failed.Swap(true) && w.Failed != nil {
		w.Failed(err)
	}
}

// Flush waits until everything is written, for limit at most, because the reader may never go on.
// It reports whether everything is written.
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

// written returns a channel that is closed when the queue is empty.
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

// Notice returns a function for Writer.Notice. Its text is a warning in the log's own format.
func Notice(handler func(io.Writer) slog.Handler) func(n int) []byte {
	return func(n int) []byte {
		var line bytes.Buffer
		slog.New(handler(&line)).Warn("log lines were dropped because the reader of the log was blocked", "lines", n)
		return line.Bytes()
	}
}
