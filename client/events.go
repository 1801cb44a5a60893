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

	"go-crontab/internal/sse"
)

// Event describes an event in the cluster. Later versions may add kinds and actions.
type Event struct {
	ID     string    `json:"id"`
	Kind   string    `json:"kind"` // hello, run, runs, job, pause, node, backfill, alert, change or reload
	At     time.Time `json:"at"`
	Action string    `json:"action"` // for a run started or ended, otherwise the audit's action
	App    string    `json:"app"`
	JobID  string    `json:"job_id"`
	Job    string    `json:"job"`
	Name   string    `json:"name"` // of a node, or of the changed object
	What   string    `json:"what"` // kind of the changed object
	Who    string    `json:"who"`
	Reason string    `json:"reason"`

	Run      *Run            `json:"run"`      // of kind run
	Counts   []RunCounts     `json:"counts"`   // of kind runs, when many start or end at once
	Other    *RunCounts      `json:"other"`    // the remaining jobs together
	Backfill *BackfillStatus `json:"backfill"` // of kind backfill
	Alert    *Alert          `json:"alert"`    // of kind alert: raised, silenced or recovered
}

// RunCounts counts the runs of a job that started, and the runs that ended, by outcome.
type RunCounts struct {
	App        string `json:"app"`
	JobID      string `json:"job_id"`
	Job        string `json:"job"`
	Started    int64  `json:"started"`
	Succeeded  int64  `json:"succeeded"`
	Failed     int64  `json:"failed"`
	TimedOut   int64  `json:"timed_out"`
	Killed     int64  `json:"killed"`
	Lost       int64  `json:"lost"`
	Skipped    int64  `json:"skipped"`
	Missed     int64  `json:"missed"`
	Superseded int64  `json:"superseded"`
}

// BackfillStatus is the progress of a backfill.
type BackfillStatus struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Total   int64  `json:"total"`
	Planned int64  `json:"planned"`
	LeftOut int64  `json:"left_out"`
}

// Alert describes a problem that an alert rule has found.
type Alert struct {
	ID       string    `json:"id"`
	State    string    `json:"state"` // firing or resolved
	Rule     string    `json:"rule"`
	Event    string    `json:"event"`
	Severity string    `json:"severity"`
	App      string    `json:"app"`
	JobID    string    `json:"job_id"`
	Job      string    `json:"job"`
	Node     string    `json:"node"`
	Run      string    `json:"run"`
	Summary  string    `json:"summary"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Seen     int64     `json:"seen"`
}

// EventFilter selects events. Zero fields do not restrict.
type EventFilter struct {
	App   string
	JobID string
	Kinds []string
}

// Events yields events from now on, until ctx ends or the API refuses; it yields that error last.
//
// The first event has the kind hello. A caller that reads the current state after it misses
// nothing. After a broken connection hello comes again. If events were missed, an event of kind
// reload follows: read the state again. No event is yielded twice.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[*Event, error] {
	q := url.Values{}
	put(q, "app", f.App)
	put(q, "job_id", f.JobID)
	put(q, "kinds", strings.Join(f.Kinds, ","))

	return func(yield func(*Event, error) bool) {
		reader := c.follower("/api/v1/events", q)
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

// first reports whether an id is new, and remembers it.
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

// streamQuiet is three times the longest silence of a healthy node.
const streamQuiet = 45 * time.Second

// follower returns a reader of an API stream.
func (c *Client) follower(path string, query url.Values) *sse.Follower {
	h := *c.http
	h.Timeout = 0 // a stream has no end
	return &sse.Follower{
		Open: func(ctx context.Context, last string) (*http.Response, error) {
			target := c.server + path
			if len(query) > 0 {
				target += "?" + query.Encode()
			}

			req, err := sse.Request(ctx, target, last, c.token)
			if err != nil {
				return nil, err
			}

			resp, err := h.Do(req)
			if err != nil || resp.StatusCode >= 200 && resp.StatusCode <= 299 {
				return resp, err
			}
			defer resp.Body.Close()

			body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
			if err != nil {
				return nil, err
			}
			return nil, readProblem(resp, body)
		},
		Passes: func(err error) bool {
			var p *Problem
			return !errors.As(err, &p) || p.Status == http.StatusServiceUnavailable ||
				p.Status == http.StatusTooManyRequests
		},
		Patience: streamPatience, Quiet: streamQuiet, Pause: followLook,
	}
}

// streamPatience makes a follower try an unreachable node until ctx ends.
const streamPatience = 1<<63 - 1
