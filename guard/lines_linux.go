package guard

import (
	"bytes"
	"io"
	"time"
)

// lines writes what a guard says, and has nobody wait for that: standard error may be a pipe that nobody reads any more, and what
// there is to kill cannot wait until somebody does.
type lines struct{ next chan line }

// line is one of them, or, with over, the question whether those before it are written.
type line struct {
	text []byte
	over chan struct{}
}

const (
	mostLines = 64                     // that wait; what comes then is lost
	lastWords = 200 * time.Millisecond // is what they get at the end
)

func newLines(to io.Writer) *lines {
	l := &lines{next: make(chan line, mostLines)}
	go func() {
		for s := range l.next {
			if s.over != nil {
				close(s.over)
				continue
			}
			_, _ = to.Write(s.text)
		}
	}()
	return l
}

// Write never fails, nor waits.
func (l *lines) Write(p []byte) (int, error) {
	select {
	case l.next <- line{text: bytes.Clone(p)}:
	default:
	}
	return len(p), nil
}

// flush returns when all is written, or a little later if nobody reads.
func (l *lines) flush() {
	enough := time.After(lastWords)
	over := make(chan struct{})
	select {
	case l.next <- line{over: over}:
	case <-enough:
		return
	}
	select {
	case <-over:
	case <-enough:
	}
}
