package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go-crontab/api/view"
)

// Types of figures.
type (
	// JobStats shows how the runs of jobs ended in a window of time, the job with the most failures
	// first.
	JobStats = view.JobStats
	// Counts are the numbers of jobs, runs, alerts and nodes that need attention.
	Counts = view.Counts
	// Slots shows, job by job, what became of the due times in a range.
	Slots = view.Slots
)

const statsPath = "/api/v1/stats"

// StatsFilter selects the jobs to show figures of. A zero field does not restrict the selection.
type StatsFilter struct {
	App    string
	Window time.Duration // how far back from now, up to 31 days; zero: a day
	Limit  int           // the most jobs to list, up to 200; zero: the server's default
}

// JobStats returns runs, failures and durations of each job.
func (c *Client) JobStats(ctx context.Context, f StatsFilter) (*JobStats, error) {
	q := url.Values{}
	put(q, "app", f.App)
	putNumber(q, "limit", f.Limit)
	if f.Window != 0 {
		q.Set("window", f.Window.String())
	}
	return ask[JobStats](ctx, c, Request{Method: http.MethodGet, Path: statsPath + "/jobs", Query: q})
}

// Counts returns the number of things that need attention. It costs the cluster little.
func (c *Client) Counts(ctx context.Context) (*Counts, error) {
	return ask[Counts](ctx, c, Request{Method: http.MethodGet, Path: statsPath + "/counts"})
}

// SlotsFilter selects due times. From is required. Any other field, if zero, does not restrict the
// selection.
type SlotsFilter struct {
	From   time.Time // due at or after
	To     time.Time // due before, at most 31 days after From; zero: 24 hours after From
	App    string
	JobID  string
	Most   int    // a job with more due times than this gets only counts; zero: the server's default
	Cursor string // the Next of the previous page; empty: the first page
}

// Slots returns a page of jobs. For each job it says what became of the due times.
func (c *Client) Slots(ctx context.Context, f SlotsFilter) (*Slots, error) {
	q := url.Values{}
	putTime(q, "from", f.From)
	putTime(q, "to", f.To)
	put(q, "app", f.App)
	put(q, "job_id", f.JobID)
	putNumber(q, "most", f.Most)
	put(q, "cursor", f.Cursor)
	return ask[Slots](ctx, c, Request{Method: http.MethodGet, Path: statsPath + "/slots", Query: q})
}

// putNumber adds a query parameter. If the number is zero, it adds none.
func putNumber(q url.Values, name string, n int) {
	if n != 0 {
		q.Set(name, strconv.Itoa(n))
	}
}
