package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

// TestPutGroup: a group is created and changed, and deleted once no job names it.
func TestPutGroup(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	inGroup := ofEvery("j", 10)
	inGroup.Group = "g"
	if _, err := p.Create(p.ctx, inGroup, false); !errors.As(err, new(job.Problems)) {
		t.Errorf("a job of no group: got %v", err)
	}
	if _, err := p.PutGroup(p.ctx, job.GroupSpec{Name: "g", Slots: 0}); !errors.As(err, new(job.Problems)) {
		t.Errorf("a group without slots: got %v", err)
	}

	for _, slots := range []int{1, 1, 3} {
		if g, err := p.PutGroup(p.ctx, job.GroupSpec{Name: "g", Slots: slots}); err != nil || g.Slots != slots || g.ID == 0 {
			t.Errorf("got %+v, %v", g, err)
		}
	}

	id := p.creates(inGroup)
	var used *job.InUse
	if err := p.DeleteGroup(p.ctx, "g"); !errors.As(err, &used) || len(used.By) != 1 || used.By[0].Name != "j" {
		t.Errorf("a group with a job: got %v", err)
	}

	free := inGroup
	free.Group = ""
	p.must(p.Update(p.ctx, id, 0, free))
	if err := p.DeleteGroup(p.ctx, "g"); err != nil {
		t.Error(err)
	}
	if err := p.DeleteGroup(p.ctx, "g"); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("no group: got %v", err)
	}

	c.want("audit", c.rows("SELECT CONCAT_WS(' ', action, was, became) FROM audit WHERE kind = 'group'"),
		`create {"slots":1}`, `update {"slots":1} {"slots":3}`, `delete {"slots":3}`)
}

// TestMoreSlots: runs that wait for a slot start at once when slots are added.
func TestMoreSlots(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	if _, err := p.PutGroup(p.ctx, job.GroupSpec{Name: "g", Slots: 1}); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"a", "b", "c"} {
		spec := ofEvery(name, 100)
		spec.Group, spec.Overlap, spec.Queue = "g", job.OverlapQueue, 1
		p.creates(spec)
	}

	m.claims(95)
	if got := m.starts(100); len(got) != 1 {
		t.Fatalf("got %q, want one run", got)
	}

	p.wakes()
	if _, err := p.at(101).PutGroup(p.ctx, job.GroupSpec{Name: "g", Slots: 2}); err != nil {
		t.Fatal(err)
	}
	if got := append(m.takesOverdue(101.1), m.takesOverdue(101.2)...); len(got) != 1 || len(p.soon) != 1 {
		t.Errorf("got %q and %d hints, want one more run and one hint", got, len(p.soon))
	}

	p.applies(job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 3}}})
	if got := append(m.takesOverdue(101.3), m.takesOverdue(101.4)...); len(got) != 1 {
		t.Errorf("got %q, want the last run", got)
	}

	c.want("taken", c.rows("SELECT taken FROM grp"), "3")
}

// TestDeletedGroupAndNewJob: one person deletes a group while another creates a job in it. One of
// the two is refused.
func TestDeletedGroupAndNewJob(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	p, other := c.person(dsn), c.person(c.dsn)
	if _, err := p.PutGroup(p.ctx, job.GroupSpec{Name: "g", Slots: 1}); err != nil {
		t.Fatal(err)
	}

	inGroup := ofEvery("j", 10)
	inGroup.Group = "g"
	held := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO job "), Action: faultproxy.HoldBefore(0), Times: 1})
	created := make(chan error, 1)
	go func() { _, err := p.Create(p.ctx, inGroup, false); created <- err }()
	for end := time.Now().Add(10 * time.Second); held.Fired() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the job is not being created")
		}
	}

	deleted := make(chan error, 1)
	go func() { deleted <- other.DeleteGroup(context.Background(), "g") }()
	time.Sleep(50 * time.Millisecond)
	held.Release()
	if err := <-created; err != nil {
		t.Errorf("the job: %v", err)
	}
	if err := <-deleted; !errors.As(err, new(*job.InUse)) {
		t.Errorf("the group: got %v, want *job.InUse", err)
	}
}

// TestSecretOfAJob: a job may name a secret of its app, but no secret that only the cluster may
// use.
func TestSecretOfAJob(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	spec := ofEvery("j", 10)
	spec.Command, spec.HTTP = "", &job.HTTP{URL: "https://example.com", Body: "{{secret.token}}"}
	if _, err := p.Create(p.ctx, spec, false); !errors.As(err, new(job.Problems)) {
		t.Errorf("without the secret: got %v", err)
	}

	c.exec("INSERT INTO secret (name, app, version, key_id, sealed, created, updated) VALUES ('token', 'other', 1, 'k', '', 0, 0)")
	if _, err := p.Create(p.ctx, spec, false); !errors.As(err, new(job.Problems)) {
		t.Errorf("with a secret of another app: got %v", err)
	}

	c.exec("UPDATE secret SET app = 'default'")
	done, err := p.Create(p.ctx, spec, false)
	if err != nil {
		t.Fatal(err)
	}

	c.want("references", c.rows("SELECT CONCAT(kind, name) FROM job_ref WHERE job_id = ?", done.ID), "3token")
	spec.App = "other"
	if _, err := p.Update(p.ctx, done.ID, 0, spec); !errors.As(err, new(job.Problems)) {
		t.Errorf("moved to another app: got %v", err)
	}
}

// TestHandlerOfAJob: jobs are found by their handlers.
func TestHandlerOfAJob(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	spec := ofEvery("j", 10)
	spec.Command, spec.Handler = "", "mail"
	done := p.must(p.Create(p.ctx, spec, false))
	c.want("references", c.rows("SELECT CONCAT(kind, name) FROM job_ref"), "5mail")
	p.must(p.Delete(p.ctx, done.ID))
	c.want("of a deleted job", c.rows("SELECT COUNT(*) FROM job_ref"), "0")
	c.want("its name is free", []string{fmt.Sprint(p.must(p.Create(p.ctx, spec, false)).Version)}, "1")
}
