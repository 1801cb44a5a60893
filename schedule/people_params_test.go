package schedule

import (
	"errors"
	"fmt"
	"testing"

	"go-crontab/job"
)

// manual makes a job without a schedule.
func manual(name string) job.Spec {
	spec := ofEvery(name, 100)
	spec.Every, spec.Start, spec.Manual = 0, nil, true
	return spec
}

// TestManualJob: a job without a schedule runs only when somebody asks for it.
func TestManualJob(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(manual("j"))
	c.want("cursor", c.rows("SELECT COALESCE(next_due, 'none') FROM job"), "none")
	c.want("reference", c.rows("SELECT kind FROM job_ref"), "8")
	c.want("nothing by itself", m.takesOverdue(1000))

	if _, err := p.at(1001).RunNow(p.ctx, []int64{id}, 0, ""); err != nil {
		t.Fatal(err)
	}
	c.want("asked for", m.takesOverdue(1002), "j@1001")
	if _, err := p.Backfill(p.ctx, id, past(-60, -20, 2), ""); !errors.As(err, new(job.Problems)) {
		t.Errorf("a backfill: got %v, want job.Problems", err)
	}

	// A schedule, and back.
	p.must(p.Update(p.ctx, id, 0, ofEvery("j", 100)))
	c.want("with a schedule", c.rows("SELECT next_due > 0 FROM job"), "1")
	p.must(p.Update(p.ctx, id, 0, manual("j")))
	c.want("without", c.rows("SELECT COALESCE(next_due, 'none') FROM job"), "none")
}

// TestRunWithParams: runs carry the values of their request, once for each key.
func TestRunWithParams(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	spec := ofEvery("j", 10)
	start := t0.Add(-1000_000_000).Time()
	spec.Start = &start
	spec.Params = map[string]job.Param{
		"day": {Type: job.ParamDate, Default: `"today"`}, "n": {Type: job.ParamInteger, Default: "5"},
	}
	id := p.creates(spec)

	given := map[string]job.Value{"n": "7", "day": `"2026-11-01"`}
	if _, err := p.RunWith(p.ctx, []int64{id}, 0, given, "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.RunWith(p.ctx, []int64{id}, 0, map[string]job.Value{"n": "8"}, "key"); err != job.ErrKeyReused {
		t.Errorf("the key with other values: got %v, want job.ErrKeyReused", err)
	}
	if _, err := p.RunWith(p.ctx, []int64{id}, 0, map[string]job.Value{"m": "8"}, ""); !errors.As(err, new(job.Problems)) {
		t.Errorf("an unknown parameter: got %v, want job.Problems", err)
	}
	stored := `{"params":{"day":"2026-11-01","n":7}}`
	c.want("given", c.rows("SELECT given FROM run WHERE kind = 'manual'"), stored)
	c.want("audit", c.rows("SELECT reason FROM audit WHERE action = 'run'"), `with day="2026-11-01", n=7`)

	want := past(-1000, -1, 1)
	want.Params = given
	if _, err := p.Backfill(p.ctx, id, want, "backfill"); err != nil {
		t.Fatal(err)
	}
	c.want("backfill", c.rows("SELECT given FROM backfill"), stored)

	required := manual("r")
	required.Params = map[string]job.Param{"x": {Required: true}}
	other := p.creates(required)
	if _, err := p.RunNow(p.ctx, []int64{other}, 0, ""); !errors.As(err, new(job.Problems)) {
		t.Errorf("a required value is missing: got %v, want job.Problems", err)
	}
	c.want("nothing else", c.rows("SELECT COUNT(*) FROM run WHERE job_id = ?", other), fmt.Sprint(0))
}
