package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Job is a definition with its defaults filled in, and its current state in the cluster.
type Job struct {
	ID string `json:"id"`
	job.Spec

	Paused   bool           `json:"paused"`
	Status   string         `json:"status"` // active, paused, finished, error
	Error    string         `json:"error"`
	Version  int64          `json:"version"`
	NextDue  *time.Time     `json:"next_due"`
	LastDue  *time.Time     `json:"last_due"`
	Created  time.Time      `json:"created"`
	Updated  time.Time      `json:"updated"`
	Warnings []problem.Text `json:"warnings"` // allowed but probably unintended settings; set after a change
	Waiting  []Waiting      `json:"waiting"`  // due times that are held back; set by Get and Named
}

// Waiting is a due time that is held back.
type Waiting struct {
	Due   time.Time  `json:"due"`
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until"` // when it ends missed
	For   string     `json:"for"`   // job, group, node, pause
	Why   string     `json:"why"`
}

const jobsPath = "/api/v1/jobs"

func jobPath(id string) string { return jobsPath + "/" + url.PathEscape(id) }

func namedPath(app, name string) string {
	if app == "" {
		app = job.DefaultApp
	}
	return "/api/v1/apps/" + url.PathEscape(app) + "/jobs/" + url.PathEscape(name)
}

// Create adds a job. If the name is taken, [IsExists] reports true for the error.
func (c *Client) Create(ctx context.Context, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPost, path: jobsPath, body: spec})
}

// Put makes the job with the name in spec equal to spec, and adds it if it does not exist. It is
// safe to repeat.
func (c *Client) Put(ctx context.Context, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPut, path: namedPath(spec.App, spec.Name), body: spec})
}

// Update replaces the definition of a job.
func (c *Client) Update(ctx context.Context, id string, spec job.Spec) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPut, path: jobPath(id), body: spec})
}

// Patch changes some fields of a job, by their names in JSON. A nil value resets a field.
func (c *Client) Patch(ctx context.Context, id string, fields map[string]any) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPatch, path: jobPath(id), body: fields})
}

// Get returns a job by its id.
func (c *Client) Get(ctx context.Context, id string) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodGet, path: jobPath(id)})
}

// Named returns the job with this name. An empty app is the default app.
func (c *Client) Named(ctx context.Context, app, name string) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodGet, path: namedPath(app, name)})
}

// Delete deletes a job. Its executing runs continue, and its history is kept.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, _, err := c.send(ctx, request{method: http.MethodDelete, path: jobPath(id)})
	return err
}

// Pause stops the due times of a job until it is resumed. The reason may be empty.
func (c *Client) Pause(ctx context.Context, id, reason string) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPost, path: jobPath(id) + "/pause", body: because(reason)})
}

// Resume ends the pause of a job.
func (c *Client) Resume(ctx context.Context, id string) (*Job, error) {
	return ask[Job](ctx, c, request{method: http.MethodPost, path: jobPath(id) + "/resume", body: struct{}{}})
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
	App   string
	Name  string // substring of the name
	State string // active, paused, finished, error
	Owner string
	Label string // key and value, such as team=data
}

// List yields the matching jobs in the order of their creation. If a request fails, it yields the
// error and stops.
func (c *Client) List(ctx context.Context, f JobFilter) iter.Seq2[*Job, error] {
	q := url.Values{}
	put(q, "app", f.App)
	put(q, "name", f.Name)
	put(q, "state", f.State)
	put(q, "owner", f.Owner)
	put(q, "label", f.Label)
	return list[Job](ctx, c, jobsPath, q)
}

// Due is a due time of a schedule.
type Due struct {
	Due  time.Time `json:"due"`
	Mark string    `json:"mark"` // gap, repeat …
}

// Next returns the next n due times of a job; n is at most 1000.
func (c *Client) Next(ctx context.Context, id string, n int) ([]Due, error) {
	p, err := ask[page[Due]](ctx, c, request{
		method: http.MethodGet, path: jobPath(id) + "/next", query: url.Values{"n": {strconv.Itoa(n)}},
	})
	if err != nil {
		return nil, err
	}
	return p.Items, nil
}
