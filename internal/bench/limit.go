package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// repeated calls do again and again on several goroutines for two seconds. It returns the sum of
// the results of do, per second.
func (b *run) repeated(ctx context.Context, goroutines int, do func(worker int) (int, error)) (float64, error) {
	var (
		all   sync.WaitGroup
		done  atomic.Int64
		fault atomic.Value
		begin = time.Now()
		takes = 2 * time.Second
	)
	if b.forTests {
		takes /= 10
	}

	for i := range goroutines {
		all.Go(func() {
			for time.Since(begin) < takes && ctx.Err() == nil {
				n, err := do(i)
				if err != nil {
					fault.Store(err)
					return
				}
				done.Add(int64(n))
			}
		})
	}

	all.Wait()
	if err, _ := fault.Load().(error); err != nil {
		return 0, err
	}
	return float64(done.Load()) / time.Since(begin).Seconds(), ctx.Err()
}

// limit measures the speed of the machine without our code.
type limit func(context.Context, *run, *schema) (*Limit, error)

// measureLimit measures the limit of a scenario, if it has one.
func (b *run) measureLimit(ctx context.Context, l limit, c *schema, r *Result) (err error) {
	if l == nil {
		return nil
	}
	if r.Limit, err = l(ctx, b, c); err != nil {
		return fmt.Errorf("measure the limit: %w", err)
	}
	return nil
}

// insertLimit is the rate at which two connections insert rows of ended runs, in batches of 500
// with a commit each. Nobody claims, starts or finishes these runs.
func insertLimit(ctx context.Context, b *run, c *schema) (*Limit, error) {
	const batch = 500
	const insert = `
		INSERT INTO run (
			id, job_id, due, due_now, app_id, kind, state, owner, claim, hash, session, started, ended, outcome, final
		)
		VALUES `
	values := strings.TrimSuffix(
		strings.Repeat("(?,?,?,?,1,'schedule','ended',-2,1,0,1,1,1,'succeeded',1),", batch), ",")

	var last [2]int64
	rate, err := b.repeated(ctx, len(last), func(worker int) (int, error) {
		args := make([]any, 0, 4*batch)
		for range batch {
			last[worker]++
			n := last[worker]
			args = append(args, int64(worker)<<32+n, int64(worker)*10_000+n%10_000, n, n)
		}

		_, err := c.db.ExecContext(ctx, insert+values, args...)
		return batch, err
	})
	if err != nil {
		return nil, err
	}

	// TRUNCATE, because the server would purge deleted rows during the measurement.
	_, err = c.db.ExecContext(ctx, "TRUNCATE TABLE run")
	return &Limit{What: "rows of ended runs, written by themselves in batches of 500", Rate: rate}, err
}

// bashLimit is the rate at which bash starts and ends. The number of concurrent processes is the
// number of processors plus two.
func bashLimit(ctx context.Context, b *run, _ *schema) (*Limit, error) {
	rate, err := b.repeated(ctx, runtime.NumCPU()+2, func(int) (int, error) {
		return 1, exec.CommandContext(ctx, "bash", "-c", "true").Run()
	})
	return &Limit{What: "bash -c true, started by itself", Rate: rate}, err
}

// withSink calls do with the address of a server for the calls of HTTP jobs.
func withSink(do func(url string) ([]Result, error)) ([]Result, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})}
	defer s.Close()
	go func() { _ = s.Serve(l) }() // ends with Close

	return do("http://" + l.Addr().String())
}

// httpLimit is the rate at which Go's own HTTP client makes calls.
func httpLimit(ctx context.Context, b *run, url string) (*Limit, error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()

	rate, err := b.repeated(ctx, 32, func(int) (int, error) {
		resp, err := client.Get(url)
		if err != nil {
			return 0, err
		}

		_, err = io.Copy(io.Discard, resp.Body)
		return 1, errors.Join(err, resp.Body.Close())
	})

	return &Limit{What: "calls of Go's HTTP client, by themselves", Rate: rate}, err
}
