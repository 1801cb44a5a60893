package schedule

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// TestRunNow: a manual run is due at once, in addition to the schedule, and once for each key.
func TestRunNow(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 100))
	p.must(p.Pause(p.ctx, id, job.PauseRequest{}))
	first, err := p.at(1).RunNow(p.ctx, []int64{id}, 0, "key")
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.at(2).RunNow(p.ctx, []int64{id}, 0, "key")
	if err != nil || again.Request != first.Request || again.Due != first.Due {
		t.Errorf("asked again: got %+v, %v, want %+v", again, err, first)
	}
	if _, err := p.RunNow(p.ctx, []int64{id}, t0, "key"); !errors.Is(err, job.ErrKeyReused) {
		t.Errorf("the key for something else: got %v, want job.ErrKeyReused", err)
	}
	c.want("started", append(m.takesOverdue(2.1), m.takesOverdue(2.2)...), "j@1")
	c.want("once", m.takesOverdue(3.3))

	if _, err := p.at(4).RunNow(p.ctx, []int64{id}, t0.Add(-time.Hour), ""); err != nil {
		t.Fatal(err)
	}
	c.finish(1, "j")
	c.want("a due time once more", m.takesOverdue(4.1), "j@-3600")
	c.want("runs", c.rows("SELECT CONCAT_WS(' ', kind, request > 0, attempt, state) FROM run ORDER BY due"), "manual 1 1 executing", "manual 1 1 ended")

	if _, err := p.RunNow(p.ctx, []int64{id}, t0.Add(time.Hour), ""); !errors.As(err, new(job.Problems)) {
		t.Errorf("a due time that lies ahead: got %v, want job.Problems", err)
	}
	if _, err := p.RunNow(p.ctx, []int64{4711}, 0, ""); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("no such job: got %v, want sql.ErrNotFound", err)
	}
}

// TestRunMany: runs of many jobs are one request.
func TestRunMany(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	ids := []int64{p.creates(ofEvery("a", 100)), 4711, p.creates(ofEvery("b", 100))}
	asked, err := p.RunNow(p.ctx, ids, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(asked.Done[1].Err, sql.ErrNotFound) {
		t.Errorf("got %+v", asked.Done)
	}
	c.want("runs", c.rows("SELECT CONCAT_WS(' ', job_id, request) FROM run ORDER BY job_id"),
		fmt.Sprint(ids[0], " ", asked.Request), fmt.Sprint(ids[2], " ", asked.Request))
	c.want("requests", c.rows("SELECT COUNT(*) FROM request"), "1")
}

// TestRunOfDeletedJob: a manual run ends if its job is deleted before it starts.
func TestRunOfDeletedJob(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := p.creates(ofEvery("j", 100))
	if _, err := p.at(1).RunNow(p.ctx, []int64{id}, 0, ""); err != nil {
		t.Fatal(err)
	}
	p.must(p.Delete(p.ctx, id))
	m.takesOverdue(1.1)
	c.wantEnded("ended", "1.0000 superseded 1 the job was deleted")
}

// TestKill: a wish is written for an executing run only.
func TestKill(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.creates(ofEvery("j", 4))
	m.claims(1)
	var id int64
	fmt.Sscan(c.rows("SELECT id FROM run ORDER BY due")[0], &id)
	l := trip.Launch{Run: id, Claim: 1}
	if err := p.Kill(p.ctx, l); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("before it starts: got %v, want sql.ErrNotFound", err)
	}

	m.starts(4)
	for range 2 {
		if err := p.Kill(p.ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Kill(p.ctx, trip.Launch{Run: id, Claim: 2}); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("at another launch: got %v, want sql.ErrNotFound", err)
	}

	wishes, err := trip.Wishes(c.db.Reader(c.Context()), 1)
	if err != nil || len(wishes) != 1 || wishes[0].Launch != l {
		t.Errorf("wishes: got %v, %v", wishes, err)
	}
}

// TestUnknownCommitOfARequest: a request with an unknown commit is made once.
func TestUnknownCommitOfARequest(t *testing.T) {
	for name, action := range map[string]faultproxy.Action{"the reply is lost": faultproxy.CutAfter(), "the commit never arrives": faultproxy.CutBefore()} {
		for _, key := range []string{"", "key"} {
			t.Run(name+" "+key, func(t *testing.T) {
				c := newCluster(t)
				dsn, proxy := c.proxied()
				p := c.person(dsn)
				id := p.creates(ofEvery("j", 100))
				proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO run"), Action: action})
				asked, err := p.RunNow(p.ctx, []int64{id}, 0, key)
				if err != nil || asked.Request == 0 {
					t.Fatal(asked, err)
				}
				c.want("runs", c.rows("SELECT request FROM run"), fmt.Sprint(asked.Request))
			})
		}
	}
}
