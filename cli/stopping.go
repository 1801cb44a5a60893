//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopping carries requests to end the process. The first request ends the context drain, the
// second ends the context hard.
type stopping struct {
	drain, hard context.Context
	request     func(cause error)
	forget      func() // restores the default signal handling
}

// onSignals turns SIGINT, SIGTERM and the loss of the terminal into requests.
//
// A broken pipe at stdout or stderr must not kill us while commands run. Only the reader of our log
// has died, perhaps dev. The signal is caught and not ignored, because commands would inherit an
// ignored signal.
func onSignals() *stopping {
	s := &stopping{}
	var end [2]context.CancelCauseFunc
	s.drain, end[0] = context.WithCancelCause(context.Background())
	s.hard, end[1] = context.WithCancelCause(context.Background())
	requests := make(chan error)
	over := make(chan struct{})
	s.request = func(cause error) {
		select {
		case requests <- cause:
		case <-over:
		}
	}

	broken, signals := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(broken, syscall.SIGPIPE)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // not under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}

	go func() {
		var last repeats
		for i := 0; ; i = min(i+1, len(end)-1) {
			select {
			case <-over:
				return
			case sig := <-signals:
				if last.repeated(sig) {
					i--
					continue
				}
				end[i](fmt.Errorf("%s", sig))
			case cause := <-requests:
				end[i](cause)
			}
		}
	}()

	s.forget = func() {
		signal.Stop(broken)
		signal.Stop(signals)
		close(over)
	}

	return s
}

// sameSignal is how close SIGTERMs must follow to count as one. timeout(1) and some supervisors
// signal both a process and its group.
const sameSignal = time.Second

// repeats reports whether a SIGTERM counts as a repetition of the one before. Ctrl-C never does: a
// person who presses it twice means it.
type repeats struct{ last time.Time }

func (r *repeats) repeated(sig os.Signal) bool {
	if sig != syscall.SIGTERM {
		return false
	}
	repeated := !r.last.IsZero() && time.Since(r.last) < sameSignal
	if !repeated {
		r.last = time.Now()
	}
	return repeated
}

// onEOF requests the end when a stream ends, because the process at the other end is gone. After
// eofGrace it requests the end once more, as nobody else can.
func (s *stopping) onEOF(r io.Reader) {
	_, err := io.Copy(io.Discard, r)
	if err == nil {
		err = io.EOF
	}
	s.request(fmt.Errorf("standard input ended: %w", err))
	time.Sleep(eofGrace)
	s.request(errors.New("the parent process has ended"))
}

// eofGrace is the time between the two requests of onEOF.
const eofGrace = 2 * time.Second
