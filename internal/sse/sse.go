// Package sse reads server-sent events, and resumes after a broken connection.
package sse

import (
	"bufio"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Media is the media type of a stream.
const Media = "text/event-stream"

// Request builds a request for a stream. The stream starts after the message with the id last, or
// at the beginning if last is empty.
func Request(ctx context.Context, target, last, token string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}

	req.Header.Set("Accept", Media)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}

	return req, nil
}

// Message is a message of a stream.
type Message struct {
	Event string
	ID    string // empty if it has no id
	Data  string
}

// maxLine bounds a line of a stream, in bytes.
const maxLine = 16 << 20

// Read passes each message of a stream to on. It calls heard for each line, including keep-alive
// comments. It returns an error of on, a read error, or io.EOF at the end of the stream.
func Read(r io.Reader, heard func(), on func(Message) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var m Message
	var data []string
	for lines.Scan() {
		heard()
		line := lines.Text()
		if line == "" {
			if data != nil {
				m.Data = strings.Join(data, "\n")
				if err := on(m); err != nil {
					return err
				}
			}
			m, data = Message{}, nil
			continue
		}

		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			m.Event = value
		case "id":
			m.ID = value
		case "data":
			data = append(data, value)
		}
	}

	if err := lines.Err(); err != nil {
		return err
	}

	return io.EOF
}

// ErrNoStream means that the response is not a stream: the server is too old for this API.
var ErrNoStream = errors.New("the response is not an event stream")

// errQuiet means that a connection was silent for too long and was closed.
var errQuiet = errors.New("the stream was silent for too long")

// Follower reads a stream to its end, over several connections if necessary.
type Follower struct {
	// Open requests the stream after the message with the id last; empty: from the beginning. If
	// the status is not a success, it returns an error.
	Open func(ctx context.Context, last string) (*http.Response, error)
	// Passes reports whether an error of Open may be temporary.
	Passes func(error) bool
	// On handles a message. Its error ends the stream; io.EOF means that the stream is complete.
	On func(Message) error
	// Broke is called with the error of the first connection that breaks after a message. It may be
	// nil.
	Broke func(error)

	Patience time.Duration // bounds retries without a message; zero: no retry before the first message, then no limit
	Quiet    time.Duration // a connection without a line for this long is dead
	Pause    time.Duration // before the next connection
	Last     string        // id of the message after which the stream starts
}

// Run reads until the stream is complete, Open fails permanently, or ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	heard, silent := false, time.Time{} // silent: when messages stopped; zero: the stream works
	for {
		err, own := f.once(ctx, func() { heard, silent = true, time.Time{} })
		switch {
		case own && errors.Is(err, io.EOF):
			return nil
		case own:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case silent.IsZero():
			silent = time.Now()
			if f.Broke != nil && heard {
				f.Broke(err)
			}
		}

		if f.Patience == 0 && !heard || f.Patience != 0 && time.Since(silent) > f.Patience {
			return err
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(f.Pause):
		}
	}
}

// once reads one connection to its end. own reports whether the error is final.
func (f *Follower) once(ctx context.Context, said func()) (err error, own bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	resp, err := f.Open(ctx, f.Last)
	if err != nil {
		return err, !f.Passes(err)
	}
	defer resp.Body.Close()

	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != Media {
		return ErrNoStream, true
	}

	quiet := time.AfterFunc(f.Quiet, func() { cancel(errQuiet) })
	defer quiet.Stop()

	err = Read(resp.Body, func() { quiet.Reset(f.Quiet) }, func(m Message) error {
		err := f.On(m)
		if own = err != nil; own {
			return err
		}
		if m.ID != "" {
			f.Last = m.ID
		}
		said()
		return nil
	})

	if !own && context.Cause(ctx) == errQuiet {
		err = errQuiet
	}

	return err, own
}
