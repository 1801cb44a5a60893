// Package sse reads server-sent events and goes on where a connection broke.
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

// Media is the type of a stream.
const Media = "text/event-stream"

// Request asks for a stream, from behind the message with the id last on unless that is empty, as whoever has the token.
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

// Message is one of a stream.
type Message struct {
	Event string
	ID    string // "" when it has none
	Data  string
}

// maxLine bounds a line of a stream.
const maxLine = 16 << 20

// Read hands the messages of a stream to on until it ends, which is io.EOF, or until on returns an error. heard is called
// for each line, those included that say nothing but that the connection lives.
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

// ErrNoStream is the error of an answer that is no stream: whoever answers is older than streams are.
var ErrNoStream = errors.New("the answer is no stream")

// errQuiet is why a connection is given up that is dead.
var errQuiet = errors.New("nothing came for too long")

// Follower reads a stream to its end, over as many connections as that takes.
type Follower struct {
	// Open asks for the stream, behind the message with an id if that is not "". Answers that are no success are errors.
	Open func(ctx context.Context, last string) (*http.Response, error)
	// Passes tells whether an error of Open may pass.
	Passes func(error) bool
	// On takes a message. Its error ends the stream; io.EOF says that it is complete.
	On func(Message) error
	// Broke is told why a connection broke, the first time only until another one says something; nil: nobody asks.
	Broke func(error)

	Patience time.Duration // with servers that say nothing; zero: without end, once one has said something
	Quiet    time.Duration // after so long without a line a connection is dead
	Pause    time.Duration // before the next connection
	Last     string        // id of the message behind which to begin
}

// Run reads until the stream is complete, on an error that will not pass, or until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	heard, silent := false, time.Time{} // since when nobody says anything
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

// once reads one connection to its end. own tells that the error is final.
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
