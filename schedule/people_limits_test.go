package schedule

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/test/faultproxy"

	"github.com/google/uuid"
)

func (p *person) limits(app string, l job.AppLimits) {
	p.Helper()
	if err := p.PutLimits(p.ctx, app, l); err != nil {
		p.Fatal(err)
	}
}

func inApp(app, name string) job.Spec {
	s := ofEvery(name, 3600)
	s.App = app
	return s
}

// atOnce lets many people do something at the same time, and counts the refusals by a limit.
func (p *person) atOnce(many int, do func(n int) error) (refused int) {
	p.Helper()
	results := make([]error, many)
	var all sync.WaitGroup
	for n := range many {
		all.Go(func() { results[n] = do(n) })
	}
	all.Wait()
	for _, err := range results {
		switch {
		case errors.As(err, new(*job.OverLimit)):
			refused++
		case err != nil:
			p.Error(err)
		}
	}
	return refused
}

// TestJobLimit: an app gets no more jobs than its limit, in every way of creating them and with
// concurrent changes.
func TestJobLimit(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.limits("a", job.AppLimits{Jobs: 3})
	refused := p.atOnce(12, func(n int) error { _, err := p.Create(p.ctx, inApp("a", fmt.Sprint("j", n)), false); return err })
	const jobs = "SELECT COUNT(*) FROM job j JOIN app a ON a.id = j.app_id WHERE a.name = ? AND j.living = 1"
	c.want("jobs of the app", c.rows(jobs, "a"), "3")
	if want := map[job.Limit]int{job.LimitJobs: 9}; refused != 9 || !maps.Equal(p.metrics.refusals, want) {
		t.Errorf("%d were refused, and %v counted", refused, p.metrics.refusals)
	}

	over := func(what string, err error) {
		t.Helper()
		var over *job.OverLimit
		if !errors.As(err, &over) || over.App != "a" || over.Most != 3 || over.Has != 3 {
			t.Errorf("%s: got %v", what, err)
		}
	}
	other := p.creates(inApp("b", "j"))
	moved := inApp("a", "moved")
	_, err := p.Update(p.ctx, other, 0, moved)
	over("a move", err)
	want := job.Apply{Jobs: []job.Wanted{wanted(inApp("a", "new")), wanted(inApp("b", "new"))}}
	_, err = p.Apply(p.ctx, want)
	over("an apply", err)
	want.DryRun = true
	_, err = p.Apply(p.ctx, want)
	over("a dry run", err)
	c.want("jobs of the other app", c.rows(jobs, "b"), "1")

	// A deleted job makes room, and an edit in place needs none.
	first := inApp("a", "first")
	ids := c.rows("SELECT MIN(j.id) FROM job j JOIN app a ON a.id = j.app_id WHERE a.name = 'a'")
	var id int64
	fmt.Sscan(ids[0], &id)
	done, err := p.All(p.ctx, []edit.Change{{Action: job.ActionDelete, ID: id}, {Action: job.ActionCreate, Spec: &first}})
	if err != nil {
		t.Fatal(err)
	}
	p.must(p.Delete(p.ctx, done[1].ID))
	p.must(p.Update(p.ctx, other, 0, moved))
	p.limits("a", job.AppLimits{Jobs: 1})
	moved.Command = "false"
	p.must(p.Update(p.ctx, other, 0, moved))
	if err := p.DeleteLimits(p.ctx, "a"); err != nil {
		t.Fatal(err)
	}
	p.creates(inApp("a", "more"))
	c.want("audit", c.rows("SELECT CONCAT_WS(' ', action, app, was, became) FROM audit WHERE kind = 'limits'"),
		`update a {"jobs":3}`, `update a {"jobs":3} {"jobs":1}`, `delete a {"jobs":1}`)
}

// TestJobLimitOfAnotherApp: a lock on the limits of one app does not delay other apps.
func TestJobLimitOfAnotherApp(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.limits("a", job.AppLimits{Jobs: 3})
	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT * FROM app_limit WHERE app = 'a' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	p.creates(inApp("b", "j"))
}

// TestAskedRunsOfAnApp: concurrent requests get no more runs than the limit allows.
func TestAskedRunsOfAnApp(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.limits("a", job.AppLimits{RunsPerMinute: 5})
	var ids []int64
	for n := range 4 {
		spec := inApp("a", fmt.Sprint("j", n))
		spec.Overlap = job.OverlapAllow
		ids = append(ids, p.creates(spec))
	}
	refused := p.atOnce(16, func(n int) error {
		_, err := p.RunNow(p.ctx, ids[n%len(ids):n%len(ids)+1], t0.Add(-time.Duration(n)*time.Second), "")
		var over *job.OverLimit
		if errors.As(err, &over) && (over.Limit != job.LimitRuns || over.After != time.Minute) {
			t.Errorf("got %v", err)
		}
		return err
	})
	c.want("runs that were asked for", c.rows("SELECT COUNT(*) FROM run WHERE kind = 'manual'"), "5")
	if refused != 11 {
		t.Errorf("%d were refused", refused)
	}

	bulk := job.Bulk{Action: job.ActionRun, Jobs: []job.Seen{{ID: ids[0], Changes: 1}}}
	if err := p.Bulk(p.ctx, &bulk); err != nil {
		t.Fatal(err)
	}
	if done := bulk.Done[0]; done.Result != job.BulkRefused || !strings.Contains(done.Why.Message, "at most 5 a minute") {
		t.Errorf("a bulk run: got %+v", done)
	}
	want := edit.Range{From: t0.Add(-time.Hour).Time(), To: t0.Time(), Parallel: 1}
	spec := inApp("a", "often")
	start := t0.Add(-2 * time.Hour).Time()
	spec.Every, spec.Start = job.Duration(time.Minute), &start
	often := p.creates(spec)
	if _, err := p.Backfill(p.ctx, often, want, ""); !errors.As(err, new(*job.OverLimit)) {
		t.Errorf("a backfill: got %v", err)
	}

	if _, err := p.at(60).RunNow(p.ctx, ids[:1], 0, ""); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

// failed returns the due times whose run failed.
func (p *person) failed() (out []edit.Past) {
	p.Helper()
	for _, row := range p.rows("SELECT CONCAT_WS(' ', id, job_id, due) FROM run WHERE outcome = 'failed' ORDER BY due") {
		var x edit.Past
		if _, err := fmt.Sscan(row, &x.Run, &x.JobID, &x.Due); err != nil {
			p.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// counting is the session of a node with a limiter.
type counting struct{ *testSession }

func (counting) ID() uuid.UUID { return uuid.UUID{1} }

// TestRerunsOfAnApp: a rerun counts once against the limit of runs a minute: when it is asked for. A
// refused one does not count. The runs of a backfill count when they begin.
func TestRerunsOfAnApp(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	limiter := NewLimiter(LimiterConfig{DB: c.db, Session: counting{m.session}, Lookout: Blind{}, Metrics: p.metrics})
	m.starter.Limits = limiter
	wantCounted := func(what, want string) {
		t.Helper()
		if err := limiter.look(c.Context(), m.session.now); err != nil {
			t.Fatal(err)
		}
		c.want(what, c.rows("SELECT COALESCE(SUM(starts), 0) FROM app_start WHERE app = 'a'"), want)
	}

	spec := ofEvery("j", 4)
	spec.App, spec.Overlap = "a", job.OverlapAllow
	id := p.creates(spec)
	m.claims(0)
	c.want("due", append(m.starts(4), m.starts(8)...), "j@4", "j@8")
	c.finishAll("failed")
	p.limits("a", job.AppLimits{RunsPerMinute: 5})
	wantCounted("before", "0")

	failed := p.failed()
	for _, want := range []job.BulkResult{job.BulkChanged, job.BulkRefused} {
		asked, err := p.at(9).Rerun(p.ctx, failed, func(edit.Asked) {})
		if err != nil || len(asked.Done) != 2 || asked.Done[0].Result != want || asked.Done[1].Result != want {
			t.Errorf("got %+v, %v, want two %s", asked.Done, err, want)
		}
	}
	wantCounted("asked for", "2")
	c.want("reruns", m.takesOverdue(9.5), "j@4", "j@8")
	wantCounted("begun", "2")

	p.backfills(id, past(4, 8, 2), "")
	m.claims(10)
	c.want("backfill", m.starts(10), "j@4", "j@8")
	wantCounted("a backfill", "4")
}

// TestLimitsAreReadOnce: a request for many runs reads and counts once, since it holds up the others
// of its app.
func TestLimitsAreReadOnce(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	p := c.person(dsn)
	p.limits("a", job.AppLimits{RunsPerMinute: 3, Waiting: 9})
	var ids []int64
	for n := range 4 {
		ids = append(ids, p.creates(inApp("a", fmt.Sprint("j", n))))
	}

	var asks atomic.Int64
	uses := faultproxy.SQL("app_start|owner = -1")
	proxy.OnCommand(func(command faultproxy.Command) {
		if uses(command) {
			asks.Add(1)
		}
	})
	asked, err := p.RunNow(p.ctx, ids, 0, "")
	if err != nil || asked.Done[2].Err != nil || !errors.As(asked.Done[3].Err, new(*job.OverLimit)) {
		t.Errorf("got %+v, %v", asked, err)
	}
	if n := asks.Load(); n != 3 { // starts, waiting runs, and the count of this request
		t.Errorf("got %d statements about the use of the limits", n)
	}
}

// TestWaitingRunsOfAnApp: a manual run is refused while the app is at its limit of waiting runs.
func TestWaitingRunsOfAnApp(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	spec := inApp("a", "j")
	spec.Every, spec.Overlap, spec.Queue = job.Duration(4*time.Second), job.OverlapQueue, 5
	id := p.creates(spec)
	m.claims(1)
	m.starts(4)
	m.claims(5)
	m.starts(8)
	c.want("waiting", c.rows("SELECT COUNT(*) FROM run WHERE state = 'waiting'"), "1")
	p.limits("a", job.AppLimits{Waiting: 1})
	var over *job.OverLimit
	if _, err := p.at(9).RunNow(p.ctx, []int64{id}, 0, ""); !errors.As(err, &over) || over.Limit != job.LimitWaiting {
		t.Errorf("got %v", err)
	}

	p.limits("a", job.AppLimits{Waiting: 2})
	if _, err := p.RunNow(p.ctx, []int64{id}, 0, ""); err != nil {
		t.Error(err)
	}
}
