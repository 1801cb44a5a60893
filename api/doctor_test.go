package api_test

import (
	"slices"
	"testing"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/internal/doctor"
)

// TestDoctor: a finding names its jobs, and callers limited to apps get no report.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Machine = func() *doctor.Machine {
			return &doctor.Machine{Node: "knoten-1", Slots: 64, Unguarded: true, StateDir: t.TempDir(), Zones: true}
		}
	})

	s.call("POST", "/api/v1/jobs",
		object{"name": "nowhere", "schedule": "0 3 * * *", "command": "true", "selector": "gpu"}).want(201)
	v := s.call("GET", "/api/v1/doctor", nil).want(200).object()
	find := func(check string) object {
		t.Helper()
		items := v.items("findings")
		i := slices.IndexFunc(items, func(o object) bool { return o.text("check") == check })
		if i < 0 {
			t.Fatalf("%s is not among the findings: %v", check, items)
		}
		return items[i]
	}

	if f := find("unplaced-jobs"); f.text("severity") != "warning" || f.items("jobs")[0].text("name") != "nowhere" {
		t.Errorf("got %v", f)
	}
	if f := find("guard"); f.text("area") != "machine" {
		t.Errorf("got %v", f)
	}
	if len(v.items("checks")) < 20 || v.text("node") != "knoten-1" {
		t.Errorf("got %v", v)
	}

	limited := s.as(s.newToken("shopper", auth.Viewer, "shop"))
	limited.call("GET", "/api/v1/doctor", nil).want(403)
}
