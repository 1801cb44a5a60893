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
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/sse"

	"github.com/google/uuid"
)

// Types of runs.
type (
	// Run is an attempt at a due time, or a range of due times for which there was no attempt.
	Run = view.Run
	// Requested is the response to a manual start. All runs of the request have its id.
	Requested = view.Requested
)

const runsPath = "/api/v1/runs"

func runPath(id string) string { return runsPath + "/" + url.PathEscape(id) }

// Run starts a job once, now. Requests with the same key start only one run, so a call with a key
// is safe to repeat. An empty key always starts a new run.
func (c *Client) Run(ctx context.Context, jobID, key string) (*Requested, error) {
	return ask[Requested](ctx, c, Request{
		Method: http.MethodPost, Path: jobPath(jobID) + "/run", Body: struct{}{}, Key: key,
	})
}

// waitLook is the interval between two checks for the end of a run.
const waitLook = 250 * time.Millisecond

// silence limits how long Wait asks an unreachable node again.
const silence = 30 * time.Second

// Wait waits until a request has ended, and returns its last attempt. If a node answers 503, Wait
// asks again until ctx ends. If a node does not answer, Wait asks again for 30 s, because the node
// may be restarting.
func (c *Client) Wait(ctx context.Context, asked *Requested) (*Run, error) {
	f := RunFilter{JobID: asked.JobID, From: asked.Due, To: asked.Due.Add(time.Microsecond)}
	for heard := time.Now(); ; {
		var failed error
		for run, err := range c.Runs(ctx, f) {
			if failed = err; err == nil && run.Request == asked.Request && run.State == "ended" && run.Final {
				return run, nil
			}
		}

		p := (*Problem)(nil)
		switch {
		case errors.As(failed, &p) && !IsAway(failed):
			return nil, failed
		case failed == nil || p != nil:
			heard = time.Now()
		case ctx.Err() == nil && time.Since(heard) > silence:
			return nil, failed
		}

		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run of job %s: %w", asked.JobID, context.Cause(ctx))
		case <-time.After(waitLook):
		}
	}
}

// RunAndWait starts a job once, waits for the run to end, and returns it.
func (c *Client) RunAndWait(ctx context.Context, jobID string) (*Run, error) {
	asked, err := c.Run(ctx, jobID, uuid.NewString())
	if err != nil {
		return nil, err
	}
	return c.Wait(ctx, asked)
}

// RunFilter says which runs to list. Zero fields do not restrict.
type RunFilter struct {
	JobID   string
	App     string
	State   string // running or ended
	Outcome string
	Node    string
	From    time.Time // due at or after
	To      time.Time // due before
}

// Runs yields the matching runs, latest first. If a request fails, it yields the error and stops.
func (c *Client) Runs(ctx context.Context, f RunFilter) iter.Seq2[*Run, error] {
	q := url.Values{}
	put(q, "job_id", f.JobID)
	put(q, "app", f.App)
	put(q, "state", f.State)
	put(q, "outcome", f.Outcome)
	put(q, "node", f.Node)
	putTime(q, "from", f.From)
	putTime(q, "to", f.To)
	return list[Run](ctx, c, runsPath, q)
}

// GetRun returns a run by its id.
func (c *Client) GetRun(ctx context.Context, id string) (*Run, error) {
	return ask[Run](ctx, c, Request{Method: http.MethodGet, Path: runPath(id)})
}

// Kill requests the kill of a run. The run ends within two seconds, on whichever node it executes.
func (c *Client) Kill(ctx context.Context, id string) (*Run, error) {
	return ask[Run](ctx, c, Request{Method: http.MethodPost, Path: runPath(id) + "/kill", Body: struct{}{}})
}

// Output returns what an executing run has printed so far, or the kept output of an ended run. For
// some seconds after the end, the middle of a large output may be missing. Follow waits for the
// missing part.
func (c *Client) Output(ctx context.Context, id string) ([]byte, error) {
	b, _, err := c.Do(ctx, Request{
		Method: http.MethodGet, Path: runPath(id) + "/output", Query: url.Values{"raw": {"1"}},
	})
	return b, err
}

// followLook is the interval between two requests for new output.
const followLook = 500 * time.Millisecond

// Follow copies the output of a run to w until the run has ended. It copies each byte once. If a
// node cannot answer, Follow asks again until ctx ends. The next answer may come from another node.
func (c *Client) Follow(ctx context.Context, id string, w io.Writer) error {
	from := int64(0)
	f := c.Stream(runPath(id)+"/output", url.Values{"raw": {"1"}})
	f.On = func(m sse.Message) error {
		switch m.Event {
		case "output":
			var part view.OutputEvent
			if err := json.Unmarshal([]byte(m.Data), &part); err != nil {
				return fmt.Errorf("output of run %s: %w", id, err)
			}
			from = part.Next
			_, err := w.Write(part.Bytes)
			return err
		case "end":
			return io.EOF
		}
		return nil
	}

	if err := f.Run(ctx); !errors.Is(err, sse.ErrNoStream) {
		return err
	}

	return c.followByAsking(ctx, id, w, from)
}

// followByAsking polls the output, for nodes that have no streams.
func (c *Client) followByAsking(ctx context.Context, id string, w io.Writer, from int64) error {
	for {
		b, header, err := c.Do(ctx, Request{Method: http.MethodGet, Path: runPath(id) + "/output",
			Query: url.Values{"raw": {"1"}, "from": {strconv.FormatInt(from, 10)}}})
		if err != nil && !IsAway(err) {
			return err
		}
		if err == nil {
			if _, err := w.Write(b); err != nil {
				return err
			}

			next, err := strconv.ParseInt(header.Get("Output-Next"), 10, 64)
			if err != nil {
				return fmt.Errorf("output of run %s: Output-Next is %q, not a number", id, header.Get("Output-Next"))
			}

			moved := next > from
			from = max(from, next)
			switch ended := header.Get("Output-State") == "ended"; {
			case ended && !moved:
				return nil
			case ended:
				continue // there may be more
			}
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followLook):
		}
	}
}
