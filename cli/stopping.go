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

// stopping is how a process is asked to end: the first request ends drain, the second ends hard.
type stopping struct {
	drain, hard context.Context
	request     func(cause error)
	forget      func() // gives the signals back
}

// onSignals makes requests of SIGINT, SIGTERM and the loss of the terminal.
//
// A broken pipe at stdout or stderr must not end us like a kill -9, with commands under way: who reads our log has
// died, perhaps dev itself. It is caught rather than ignored, because what is ignored stays so in the commands.
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
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}

	go func() {
		for i := 0; ; i = min(i+1, len(end)-1) {
			select {
			case <-over:
				return
			case sig := <-signals:
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

// onEOF makes requests of the end of a stream: whoever held its other end is gone, so nobody is left who could make the
// second one when commands take long.
func (s *stopping) onEOF(r io.Reader) {
	_, err := io.Copy(io.Discard, r)
	if err == nil {
		err = io.EOF
	}
	s.request(fmt.Errorf("standard input ended: %w", err))
	time.Sleep(eofGrace)
	s.request(errors.New("nobody is left to wait for"))
}

const eofGrace = 2 * time.Second
