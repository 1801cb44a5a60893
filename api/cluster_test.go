package api_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/api"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	await(t, "a beat", 5*time.Second, func() bool { return s.count("SELECT MAX(beat) FROM session") > 0 })
	c := s.call("GET", "/api/v1/cluster", nil).want(200).object()
	if c.text("node") != "knoten-1" || c.text("version") != "v0.0.0-test" || c.text("server") == "" ||
		c.text("session_expiry") != "20s" {
		t.Errorf("got %v", c)
	}

	now, err := time.Parse(time.RFC3339, c.text("now"))
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("now is %q", c.text("now"))
	}

	sessions := c.items("sessions")
	if len(sessions) != 1 {
		t.Fatalf("got %v, want one session", sessions)
	}

	x := sessions[0]
	if x.text("id") != s.node.Status().Session || x.text("node") != "knoten-1" || x.text("draining") != "false" ||
		x.text("pid") == "0" || x.text("slots") == "0" {
		t.Errorf("got %v", x)
	}

	for _, field := range []string{"address", "started", "beat_at", "beat_age_ms", "prepared", "executing",
		"clock_offset_ms"} {
		if _, there := x[field]; !there {
			t.Errorf("%s is missing in %v", field, x)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var sick atomic.Bool
	s := start(t, func(c *api.Config) {
		ready := c.Ready
		c.Ready = func() error {
			if sick.Load() {
				return errors.New("the lease is not fresh")
			}
			return ready()
		}
	})

	if got := s.call("GET", "/readyz", nil).want(200).object(); len(got) != 1 || got.text("ready") != "true" {
		t.Errorf("got %v", got)
	}

	sick.Store(true)
	if got := s.call("GET", "/readyz", nil).want(503).object(); got.text("ready") != "false" ||
		got.text("reason") != "the lease is not fresh" {
		t.Errorf("got %v", got)
	}

	s.call("GET", "/healthz", nil).want(200)
	s.call("GET", "/healthz", nil, "Host", "10.1.2.3").want(200)
}
