package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

// bulk applies one change to jobs at their current versions, and returns the result for each.
func (p *person) bulk(action job.Action, ids ...int64) string {
	p.Helper()
	want := &job.Bulk{Action: action}
	for _, id := range ids {
		var changes int32
		if err := p.db.Raw().QueryRow("SELECT changes FROM job WHERE id = ?", id).Scan(&changes); err != nil {
			p.Fatal(err)
		}
		want.Jobs = append(want.Jobs, job.Seen{ID: id, Changes: changes})
	}
	if err := p.Bulk(p.ctx, want); err != nil {
		p.Fatal(err)
	}
	return becameOf(want)
}

func becameOf(want *job.Bulk) string {
	var out []string
	for _, d := range want.Done {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %d %s", d.Result, d.Version, d.Why.Message)))
	}
	return strings.Join(out, ", ")
}

// TestBulk: a bulk change has the same effect on each job as a single change.
func TestBulk(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	one, two, three := p.creates(ofEvery("one", 10)), p.creates(ofEvery("two", 10)), p.creates(ofEvery("three", 10))
	m.claims(1)
	if got := p.bulk(job.ActionPause, one, two); got != "changed 1, changed 1" {
		t.Errorf("pause: got %s", got)
	}

	c.wantJobs("paused", "one 1 2 parked 10.0000 paused", "three 1 1 next 20.0000", "two 1 2 parked 10.0000 paused")
	if got := p.bulk(job.ActionPause, three, two, one); got != "changed 1, unchanged 1, unchanged 1" { // in the order that was asked for
		t.Errorf("pause again: got %s", got)
	}

	p.must(p.Resume(p.ctx, three))
	if got := p.bulk(job.ActionResume, one, two, three); got != "changed 1, changed 1, unchanged 1" {
		t.Errorf("resume: got %s", got)
	}

	p.wakes()
	if got := p.bulk(job.ActionRun, one, two, three); got != "changed 1, changed 1, changed 1" || len(p.soon) != 1 {
		t.Errorf("run: got %s, and %d hints that something is due", got, len(p.soon))
	}

	c.want("runs that were asked for", c.rows("SELECT CONCAT_WS(' ', COUNT(*), COUNT(DISTINCT r.request)) FROM run r"+
		" JOIN request q ON q.id = r.request WHERE r.kind = 'manual' AND q.kind = 'run'"), "3 1")
	if got := p.bulk(job.ActionDelete, one, two); got != "changed 0, changed 0" {
		t.Errorf("delete: got %s", got)
	}

	c.want("living", c.rows("SELECT name FROM job WHERE living = 1"), "three")
	c.want("found by their names", c.rows("SELECT COUNT(*) FROM job_part WHERE job_id <> ?", three), "0")
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit"), "14")
}

// TestBulkRefusesOne: a job that has changed since it was seen stays unchanged, and so does an
// unreadable job.
func TestBulkRefusesOne(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	var want job.Bulk
	for _, name := range []string{"good", "changed", "deleted", "unreadable"} {
		want.Jobs = append(want.Jobs, job.Seen{ID: p.creates(ofEvery(name, 3600)), Changes: 1})
	}
	want.Jobs = append(want.Jobs, job.Seen{ID: 99, Changes: 1})
	p.must(p.Pause(p.ctx, want.Jobs[1].ID, job.PauseRequest{}))
	p.must(p.Delete(p.ctx, want.Jobs[2].ID))
	c.exec("UPDATE job_version SET definition = '{' WHERE job_id = ?", want.Jobs[3].ID)

	want.Action = job.ActionRun
	if err := p.Bulk(p.ctx, &want); err != nil {
		t.Fatal(err)
	}
	got := becameOf(&want)
	if !strings.HasPrefix(got, "changed 1, refused 1 the job was changed in the meantime, refused 0 the job was deleted, refused 0 job: ") ||
		!strings.HasSuffix(got, ", refused 0 the job was deleted") {
		t.Errorf("got %s", got)
	}
	c.want("runs", c.rows("SELECT COUNT(*) FROM run"), "1")

	want.Action = job.ActionDelete
	if err := p.Bulk(p.ctx, &want); err != nil {
		t.Fatal(err)
	}
	if got := becameOf(&want); got != "changed 0, refused 1 the job was changed in the meantime, refused 0 the job was deleted, changed 0, refused 0 the job was deleted" {
		t.Errorf("got %s", got)
	}
	want.Action, want.Pause = job.ActionPause, job.PauseRequest{Until: 1}
	if err := p.Bulk(p.ctx, &want); !errors.As(err, new(job.Problems)) {
		t.Errorf("a pause that has ended: got %v", err)
	}
}

// TestUnknownCommitOfABulk: the bulk is applied once, and so are the key and the answer of the
// request.
func TestUnknownCommitOfABulk(t *testing.T) {
	for name, fate := range map[string]faultproxy.Action{"it never arrives": faultproxy.CutBefore(), "the reply is lost": faultproxy.CutAfter()} {
		for _, action := range []job.Action{job.ActionRun, job.ActionPause} {
			t.Run(fmt.Sprint(action, ": ", name), func(t *testing.T) {
				c := newCluster(t)
				dsn, proxy := c.proxied()
				p := c.person(dsn)
				want := &job.Bulk{Action: action}
				for _, name := range []string{"a", "b"} {
					want.Jobs = append(want.Jobs, job.Seen{ID: p.creates(ofEvery(name, 3600)), Changes: 1})
				}

				rule := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: fate, Times: 1})
				answer := func() job.KeptAnswer { return job.KeptAnswer{Status: 200, Body: []byte(becameOf(want))} }
				ctx := job.WithOnce(p.ctx, &job.Once{Key: "k", Kind: "bulk", Answer: answer})
				if err := p.Bulk(ctx, want); err != nil || rule.Fired() != 1 {
					t.Fatalf("got %v; injected %d times", err, rule.Fired())
				}

				const changed = "changed 1, changed 1"
				if got := becameOf(want); got != changed {
					t.Errorf("got %s", got)
				}
				c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE action = ?", action), "2")
				c.want("answers", c.rows("SELECT answer FROM request WHERE idem_key = 'k' AND status = 200"), changed)

				again := job.WithOnce(p.ctx, &job.Once{Key: "k", Kind: "bulk"})
				if err := p.Bulk(again, want); !errors.Is(err, job.ErrRepeated) {
					t.Errorf("again: got %v", err)
				}
			})
		}
	}
}
