package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/node"
)

// API makes a node serve the HTTP API on a listener until ctx ends. It returns a token with all
// permissions and without a rate limit.
type API func(ctx context.Context, n *node.Node, l net.Listener) (token string, err error)

// Writes is the cost of writes through a node's API.
type Writes struct {
	Jobs       int64   `json:"jobs"`           // created
	Requests   int64   `json:"requests"`       // to create them
	Statements float64 `json:"statements"`     // per job
	Redo       float64 `json:"redo_bytes"`     // per job
	P50        float64 `json:"request_p50_ms"` // time of a request
	P99        float64 `json:"request_p99_ms"`
}

// apiClients is the number of concurrent clients that create jobs.
const apiClients = 8

// writing measures clients that create jobs through the API. Each request creates `each` jobs,
// which are due once a year.
func (b *run) writing(ctx context.Context, each int) ([]Result, error) {
	length := cmp.Or(b.For, usualFor)
	return b.again(ctx, plural(each, "job")+" at a time", func(c *schema, r *Result) error {
		members, err := b.startNodes(ctx, c, 1, "api", b.RoundTrip)
		defer func() { stopAll(members) }()
		if err != nil {
			return err
		}

		door, err := members[0].vitals()
		if err != nil {
			return err
		}

		// Have the clients create jobs.
		b.Say("creating %s with each request for %s", plural(each, "job"), length)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: apiClients}, Timeout: time.Minute}
		defer client.CloseIdleConnections()
		before, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		var (
			all   sync.WaitGroup
			mu    sync.Mutex
			took  []int64 // microseconds
			fault error
			begin = time.Now()
		)

		sending, stop := context.WithCancel(ctx)
		defer stop()

		for worker := range apiClients {
			all.Go(func() {
				for n := 0; time.Since(begin) < length && sending.Err() == nil; n++ {
					sent := time.Now()
					err := create(sending, client, door, fmt.Sprintf("w%d-%d", worker, n), each)
					mu.Lock()
					took = append(took, time.Since(sent).Microseconds())
					if err != nil && fault == nil {
						fault = err
						stop()
					}
					mu.Unlock()
				}
			})
		}

		all.Wait()
		if err := cmp.Or(context.Cause(ctx), fault); err != nil {
			return err
		}

		// Read the result.
		after, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		var jobs int64
		if err := c.db.QueryRowContext(ctx,
			"SELECT COUNT(*) FROM job WHERE living = 1 AND next_due IS NOT NULL").Scan(&jobs); err != nil {
			return err
		}

		wanted := int64(len(took)) * int64(each)
		r.Nodes, r.Seconds = 1, after.at.Sub(before.at).Seconds()
		r.Rate = float64(jobs) / r.Seconds
		r.Account = Account{Due: wanted, Once: jobs, Missing: wanted - jobs} // counts jobs, not due times
		r.Fires = jobs
		r.cost(before, after)
		late := lateOf(took)
		r.Writes = &Writes{
			Jobs: jobs, Requests: int64(len(took)), Statements: r.Cost.Statements, Redo: r.Cost.Redo, P50: late.P50,
			P99: late.P99,
		}

		return nil
	})
}

// create sends one request that creates n jobs.
func create(ctx context.Context, client *http.Client, door vitals, name string, n int) error {
	spec := func(name string) map[string]any {
		return map[string]any{
			"app": "bench", "name": name, "schedule": "0 3 1 1 *", "command": "true", "owner": "bench",
			"labels": map[string]string{"kind": "bench"},
		}
	}

	// A single job has its own route. Several jobs are applied together.
	path, want, body := "/api/v1/jobs", http.StatusCreated, any(spec(name))
	if n > 1 {
		jobs := make([]any, n)
		for i := range jobs {
			jobs[i] = spec(fmt.Sprintf("%s-%d", name, i))
		}
		path, want, body = "/api/v1/apply", http.StatusOK, map[string]any{"jobs": jobs}
	}

	text, err := json.Marshal(body)
	if err != nil {
		return err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+door.API+path, bytes.NewReader(text))
	if err != nil {
		return err
	}

	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+door.Token)

	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	if resp.StatusCode != want {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		return fmt.Errorf("POST %s: %s: %s", path, resp.Status, said)
	}

	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// most is the maximum number of jobs that one request creates.
const most = job.MaxApplyJobs
