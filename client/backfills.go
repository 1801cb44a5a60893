package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
)

// Types of due times that run again.
type (
	// Backfill is a range of past due times of a job to run now.
	Backfill = view.Backfill
	// BackfillDue is a due time of a backfill and what became of it.
	BackfillDue = view.BackfillDue
	// Rerun reports which failed due times are run again.
	Rerun = view.Rerun
)

const backfillsPath = "/api/v1/backfills"

func backfillPath(id string) string { return backfillsPath + "/" + url.PathEscape(id) }

// BackfillRange says which due times to run.
type BackfillRange struct {
	From     time.Time  `json:"from"`
	To       *time.Time `json:"to,omitempty"`       // inclusive; nil: now
	Parallel int        `json:"parallel,omitempty"` // runs at once; zero: 1
	Missing  bool       `json:"missing,omitempty"`  // leave out due times that have succeeded
}

// StartBackfill runs past due times of a job. Requests with the same key start only one backfill,
// so a call with a key is safe to repeat. An empty key always starts a new backfill.
func (c *Client) StartBackfill(ctx context.Context, jobID string, r BackfillRange, key string) (*Backfill, error) {
	return ask[Backfill](ctx, c, Request{
		Method: http.MethodPost, Path: jobPath(jobID) + "/backfill", Body: r, Key: key,
	})
}

// Backfills yields the backfills of a job, latest first. With "" it yields those of all jobs. If a
// request fails, it yields the error and stops.
func (c *Client) Backfills(ctx context.Context, jobID string) iter.Seq2[*Backfill, error] {
	q := url.Values{}
	put(q, "job_id", jobID)
	return list[Backfill](ctx, c, backfillsPath, q)
}

// GetBackfill returns a backfill by its id.
func (c *Client) GetBackfill(ctx context.Context, id string) (*Backfill, error) {
	return ask[Backfill](ctx, c, Request{Method: http.MethodGet, Path: backfillPath(id)})
}

// CancelBackfill cancels a backfill. Its executing runs continue.
func (c *Client) CancelBackfill(ctx context.Context, id string) (*Backfill, error) {
	return ask[Backfill](ctx, c, Request{Method: http.MethodPost, Path: backfillPath(id) + "/cancel", Body: struct{}{}})
}

// BackfillDues yields the due times of a backfill, in the order in which the backfill starts them.
// state is failed, running, or "" for all. If a request fails, it yields the error and stops.
func (c *Client) BackfillDues(ctx context.Context, id, state string) iter.Seq2[*BackfillDue, error] {
	q := url.Values{}
	put(q, "state", state)
	return list[BackfillDue](ctx, c, backfillPath(id)+"/dues", q)
}

// RerunFilter selects due times by their last runs. Without IDs, From is required. A zero field
// does not restrict the selection.
type RerunFilter struct {
	IDs     []string // exactly these runs, up to 200; then no other field may be set
	From    time.Time
	To      time.Time
	App     string
	JobID   string
	Node    string
	Outcome string // failed, timed_out, lost or killed; empty: all of these except killed
	Cursor  string // the Next of the previous answer; empty: the latest due times
}

// Rerun runs failed due times again, up to 200 in a call. If the answer has a Next, more due times
// match. Requests with the same key start only one run for each due time, so a call with a key is
// safe to repeat. Use a new key with each Cursor.
func (c *Client) Rerun(ctx context.Context, f RerunFilter, key string) (*Rerun, error) {
	return ask[Rerun](ctx, c, Request{Method: http.MethodPost, Path: rerunPath, Query: f.query(), Key: key})
}

// TryRerun returns what Rerun would do.
func (c *Client) TryRerun(ctx context.Context, f RerunFilter) (*Rerun, error) {
	q := f.query()
	q.Set("dry_run", "true")
	return ask[Rerun](ctx, c, Request{Method: http.MethodPost, Path: rerunPath, Query: q})
}

const rerunPath = "/api/v1/bulk/rerun"

func (f *RerunFilter) query() url.Values {
	q := url.Values{}
	put(q, "ids", strings.Join(f.IDs, ","))
	putTime(q, "from", f.From)
	putTime(q, "to", f.To)
	put(q, "app", f.App)
	put(q, "job_id", f.JobID)
	put(q, "node", f.Node)
	put(q, "outcome", f.Outcome)
	put(q, "cursor", f.Cursor)
	return q
}
