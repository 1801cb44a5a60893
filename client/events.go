package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/sse"
)

// Types of events.
type (
	// Event describes an event in the cluster. Later versions may add kinds and actions.
	Event = view.Event
	// RunCounts counts the runs of a job that have started. It also counts the ended runs, by
	// outcome.
	RunCounts = view.RunCounts
	// BackfillStatus is the progress of a backfill.
	BackfillStatus = view.BackfillStatus
	// Alert describes a problem that an alert rule has found.
	Alert = view.Alert
)

// EventFilter selects events. Zero fields do not restrict.
type EventFilter struct {
	App   string
	JobID string
	Kinds []string
}

// Events yields events from now on, until ctx ends or the API refuses the request. It yields the
// error last.
//
// The first event has the kind hello. A caller that reads the current state after hello misses
// nothing. After a broken connection hello comes again. If events were missed, an event of kind
// reload follows: read the state again. No event is yielded twice.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[*Event, error] {
	q := url.Values{}
	put(q, "app", f.App)
	put(q, "job_id", f.JobID)
	put(q, "kinds", strings.Join(f.Kinds, ","))

	return func(yield func(*Event, error) bool) {
		reader := c.Stream("/api/v1/events", q)
		seen := recent{ids: map[string]bool{}}
		enough := false
		reader.On = func(m sse.Message) error {
			if m.Event == "close" {
				return nil
			}

			e := new(Event)
			if err := json.Unmarshal([]byte(m.Data), e); err != nil {
				return fmt.Errorf("event %s: %w", m.Event, err)
			}
			if e.ID != "" && !seen.first(e.ID) {
				return nil
			}
			if enough = !yield(e, nil); enough {
				return io.EOF
			}

			return nil
		}

		if err := reader.Run(ctx); err != nil && !enough {
			if errors.Is(err, sse.ErrNoStream) {
				err = fmt.Errorf("the node has no stream of events: it is older than this client")
			}
			yield(nil, err)
		}
	}
}

// recent remembers the ids of the latest events. A node repeats only events that it sent recently.
type recent struct {
	ids   map[string]bool
	order []string
}

// recentMost bounds the remembered ids.
const recentMost = 10_000

// first reports whether an id is new. It remembers the id.
func (r *recent) first(id string) bool {
	if r.ids[id] {
		return false
	}
	r.ids[id] = true
	if r.order = append(r.order, id); len(r.order) > recentMost {
		delete(r.ids, r.order[0])
		r.order = r.order[1:]
	}
	return true
}

// streamQuiet is how long a stream may be silent: three times the longest silence of a healthy node.
const streamQuiet = 45 * time.Second

// Stream returns a follower of an API stream. The follower's Run calls On for each message. After a
// broken connection the follower connects again. It tries an unreachable node until ctx ends.
func (c *Client) Stream(path string, query url.Values) *sse.Follower {
	h := *c.http
	h.Timeout = 0 // a stream has no end
	h.Transport = prompt{h.Transport}
	return &sse.Follower{
		Open: func(ctx context.Context, last string) (*http.Response, error) {
			req, err := sse.Request(ctx, c.target(path, query), last, c.token)
			if err != nil {
				return nil, err
			}

			resp, err := c.do(&h, req)
			if err != nil || resp.StatusCode >= 200 && resp.StatusCode <= 299 {
				return resp, err
			}
			return nil, refusalOf(resp)
		},
		Passes: func(err error) bool {
			var p *Problem
			return !errors.As(err, &p) || p.Status == http.StatusServiceUnavailable ||
				p.Status == http.StatusTooManyRequests || p.OfProxy()
		},
		Patience: streamPatience, Quiet: streamQuiet, Pause: followLook,
	}
}

// streamBegins limits how long the client waits for a stream to begin. A node that hangs still
// accepts connections.
const streamBegins = 15 * time.Second

// prompt is a transport that gives up on a server whose answer does not begin in time.
type prompt struct{ http.RoundTripper }

func (p prompt) RoundTrip(req *http.Request) (*http.Response, error) {
	next := p.RoundTripper
	if next == nil {
		next = http.DefaultTransport
	}

	ctx, cancel := context.WithCancelCause(req.Context()) // the body outlives this function
	late := time.AfterFunc(streamBegins, func() { cancel(context.DeadlineExceeded) })
	resp, err := next.RoundTrip(req.WithContext(ctx))
	if !late.Stop() && err != nil {
		err = context.DeadlineExceeded
	}
	return resp, err
}

// streamPatience makes a follower try an unreachable node until ctx ends.
const streamPatience = 1<<63 - 1
