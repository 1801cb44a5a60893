package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/job"
)

// Types of jobs.
type (
	// Job is a definition with its defaults filled in, and its current state in the cluster.
	// Warnings are set in the answer to a change. Waiting is set by Get and Named.
	Job = view.Job
	// Waiting is a due time that is held back.
	Waiting = view.JobWait
	// Due is a due time of a schedule.
	Due = view.DueTime
)

const jobsPath = "/api/v1/jobs"

func jobPath(id string) string { return jobsPath + "/" + url.PathEscape(id) }

func namedPath(app, name string) string {
	if app == "" {
		app = job.DefaultApp
	}
	return "/api/v1/apps/" + url.PathEscape(app) + "/jobs/" + url.PathEscape(name)
}

// Create adds a job. If the name is taken, it returns an error for which [IsExists] is true.
func (c *Client) Create(ctx context.Context, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPost, Path: jobsPath, Body: spec})
}

// Put makes the job with the name in spec equal to spec. If there is no such job, it adds the job.
// Put is safe to repeat.
func (c *Client) Put(ctx context.Context, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPut, Path: namedPath(spec.App, spec.Name), Body: spec})
}

// Update replaces the definition of a job.
func (c *Client) Update(ctx context.Context, id string, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPut, Path: jobPath(id), Body: spec})
}

// Patch changes some fields of a job. The keys are the names of the fields in JSON. A nil value
// resets a field.
func (c *Client) Patch(ctx context.Context, id string, fields map[string]any) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPatch, Path: jobPath(id), Body: fields})
}

// Get returns a job by its id.
func (c *Client) Get(ctx context.Context, id string) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodGet, Path: jobPath(id)})
}

// Named returns the job with this name. An empty app is the default app.
func (c *Client) Named(ctx context.Context, app, name string) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodGet, Path: namedPath(app, name)})
}

// Delete deletes a job. Its executing runs continue, and its history is kept.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, _, err := c.Do(ctx, Request{Method: http.MethodDelete, Path: jobPath(id)})
	return err
}

// Pause stops the due times of a job until it is resumed. The reason may be empty.
func (c *Client) Pause(ctx context.Context, id, reason string) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPost, Path: jobPath(id) + "/pause", Body: because(reason)})
}

// Resume ends the pause of a job.
func (c *Client) Resume(ctx context.Context, id string) (*Job, error) {
	return ask[Job](ctx, c, Request{Method: http.MethodPost, Path: jobPath(id) + "/resume", Body: struct{}{}})
}

// because returns a request body with a reason.
func because(reason string) map[string]string {
	if reason == "" {
		return map[string]string{}
	}
	return map[string]string{"reason": reason}
}

// JobFilter says which jobs to list. Zero fields do not restrict.
type JobFilter struct {
	App    string
	Name   string // substring of the name
	Status string // active, paused, finished, error
	Owner  string
	Label  string // key and value, such as team=data
}

// List yields the matching jobs in the order of their creation. If a request fails, it yields the
// error and stops.
func (c *Client) List(ctx context.Context, f JobFilter) iter.Seq2[*Job, error] {
	q := url.Values{}
	put(q, "app", f.App)
	put(q, "name", f.Name)
	put(q, "status", f.Status)
	put(q, "owner", f.Owner)
	put(q, "label", f.Label)
	return list[Job](ctx, c, jobsPath, q)
}

// Next returns the next n due times of a job. n may be at most 1000.
func (c *Client) Next(ctx context.Context, id string, n int) ([]Due, error) {
	p, err := ask[view.Page[Due]](ctx, c, Request{
		Method: http.MethodGet, Path: jobPath(id) + "/next", Query: url.Values{"n": {strconv.Itoa(n)}},
	})
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}
