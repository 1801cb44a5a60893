package api_test

import (
	"net/http"
	"testing"
	"time"

	"go-crontab/api"
)

// TestMetricsAccess: metrics are for viewers of the whole cluster, or open if configured so, under
// any host name.
func TestMetricsAccess(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 100)
	serve := func(open bool) *site {
		return start(t, func(c *api.Config) {
			c.OpenMetrics = open
			c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain; version=0.0.4")
				_, _ = w.Write([]byte("go_goroutines 7\n"))
			})
			c.Observe = func(method, route string, status int, _ time.Duration, _ bool) {
				seen <- method + " " + route + " " + http.StatusText(status)
			}
		})
	}

	s := serve(false)
	s.call("GET", "/metrics", nil, "Host", "10.1.2.3:8610").want(200)
	if got := <-seen; got != "GET /metrics OK" {
		t.Errorf("observed %q", got)
	}

	s.as("").call("GET", "/metrics", nil).want(401)
	if got := <-seen; got != "GET /metrics Unauthorized" {
		t.Errorf("observed %q", got)
	}

	s.call("GET", "/nothing/of/the/kind", nil).want(404)
	if got := <-seen; got != "GET  Not Found" {
		t.Errorf("observed %q, want no route", got)
	}
	if r := serve(true).as("").call("GET", "/metrics", nil).want(200); r.body != "go_goroutines 7\n" {
		t.Errorf("got %q", r.body)
	}

	start(t, nil).call("GET", "/metrics", nil).want(404)
}
