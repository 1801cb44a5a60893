package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

const stopRows = "SELECT CONCAT_WS(' ', kind, NULLIF(name, ''), (since - ?) / 1000000, NULLIF((until - ?) / 1000000, -? / 1000000), who, NULLIF(reason, ''))" +
	" FROM stop ORDER BY kind, name"

func (c *cluster) wantStops(what string, want ...string) {
	c.Helper()
	c.want(what, c.rows(stopRows, int64(t0), int64(t0), int64(t0)), want...)
}

func (p *person) pausesApp(app string, r job.PauseRequest) job.Pause {
	p.Helper()
	out, err := p.PauseApp(p.ctx, app, r)
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// TestPauseApp: a pause of an app or of the cluster is one row, whose reason and end can be
// replaced.
func TestPauseApp(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.pausesApp("shop", job.PauseRequest{Reason: "stocktaking"})
	if got := p.at(1).pausesApp("shop", job.PauseRequest{}); got.Since != t0 || got.Reason != "stocktaking" || got.Scope != job.ScopeApp {
		t.Errorf("paused again: got %+v", got)
	}
	c.wantStops("shop", "app shop 0.0000 alice stocktaking")
	p.pausesApp("shop", job.PauseRequest{Until: t0.Add(time.Minute)})
	if got := p.pausesApp("", job.PauseRequest{}); got.Scope != job.ScopeCluster {
		t.Errorf("the cluster: got %+v", got)
	}
	c.wantStops("changed", "cluster 1.0000 alice", "app shop 0.0000 60.0000 alice")
	if _, err := p.PauseApp(p.ctx, "shop", job.PauseRequest{Until: t0}); !errors.As(err, new(job.Problems)) {
		t.Errorf("an end that has passed: got %v", err)
	}

	for range 2 {
		if err := p.at(2).ResumeApp(p.ctx, ""); err != nil {
			t.Error(err)
		}
	}
	// The pause has ended by itself, so a new pause begins.
	p.at(61).pausesApp("shop", job.PauseRequest{})
	c.wantStops("anew", "cluster 1.0000 2.0000 ", "app shop 61.0000 alice")
	c.want("audit", c.rows("SELECT CONCAT_WS(' ', who, action, kind, NULLIF(app, ''), NULLIF(reason, '')) FROM audit ORDER BY id"),
		"alice pause app shop stocktaking", "alice pause app shop", "alice pause cluster", "alice resume cluster",
		"go-crontab resume app shop it was paused until 2026-11-02T12:01:00Z", "alice pause app shop")
}

// TestStopAnswerWaits: a pause of an app and the disabling of a handler are answered only when no
// node starts anything against them.
func TestStopAnswerWaits(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.StopsSeen = 300 * time.Millisecond
	waits := func(what string, least, most time.Duration, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(began); took < least || took > most {
			t.Errorf("%s: answered after %s", what, took)
		}
	}

	const at = 300 * time.Millisecond
	for range 2 { // a repeated request is not answered before the original one
		waits("an app", at, time.Hour, func() error { _, err := p.PauseApp(p.ctx, "shop", job.PauseRequest{}); return err })
		waits("a handler", at, time.Hour, func() error { return p.DisableHandler(p.ctx, "mail", "spam") })
	}

	want := job.Apply{Pauses: []job.PauseSpec{{App: "shop"}}}
	waits("files with a pause", at, time.Hour, func() error { _, err := p.Apply(p.ctx, want); return err })
	waits("a resumed app", 0, 10*at, func() error { return p.ResumeApp(p.ctx, "shop") })
	if usual := StopsSeen(time.Duration(job.SpawnWindow) * time.Microsecond); usual > 3500*time.Millisecond {
		t.Errorf("nodes see a stop after %s, which is longer than an editor waits", usual)
	}
}

// TestPausedAppOfAPerson: no run of the app starts during the pause, and its jobs continue
// afterwards.
func TestPausedAppOfAPerson(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	m.starter.Stops = NewStops(StopsConfig{DB: c.db})
	m.claimer.Stops = m.starter.Stops
	look := func() {
		t.Helper()
		if err := m.starter.Stops.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	p.creates(inApp("a", "paused"))
	p.must(p.Update(p.ctx, p.creates(ofEvery("other", 4)), 0, ofEvery("other", 10)))
	spec := inApp("a", "often")
	spec.Every = job.Duration(10 * time.Second)
	p.creates(spec)
	p.pausesApp("a", job.PauseRequest{Reason: "maintenance"})
	look()
	m.claims(5)
	c.want("started", m.starts(10), "other@10")
	c.want("the cursor stays", c.rows("SELECT (next_due - ?) / 1000000 FROM job WHERE name = 'often'", int64(t0)), "10.0000")
	if err := p.at(15).ResumeApp(p.ctx, "a"); err != nil {
		t.Fatal(err)
	}

	look()
	m.claims(16)
	c.finish(10, "other")
	c.want("late, as the misfire policy has it", m.starts(16), "often@10")
	c.finish(10, "often")
	c.want("started behind the pause", m.starts(20), "often@20", "other@20")
}

// TestUnknownCommitOfNodesAndHandlers: a change of a node or handler is applied once it is
// answered, with one audit entry.
func TestUnknownCommitOfNodesAndHandlers(t *testing.T) {
	for name, fate := range map[string]faultproxy.Action{"it never arrives": faultproxy.CutBefore(), "the reply is lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			p := c.person(dsn)

			for i, step := range []struct {
				do   func() error
				want string
			}{
				{func() error { return p.Cordon(p.ctx, "x", "disk", false) }, "1 0 0"},
				{func() error { return p.Cordon(p.ctx, "x", "disk", true) }, "1 1 0"},
				{func() error { return p.DisableHandler(p.ctx, "mail", "spam") }, "1 1 1"},
				{func() error { return p.Uncordon(p.ctx, "x") }, "0 0 1"},
				{func() error { return p.EnableHandler(p.ctx, "mail") }, "0 0 0"},
			} {
				rule := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: fate, Times: 1})
				if err := step.do(); err != nil || rule.Fired() != 1 {
					t.Fatalf("step %d: %v; the commit was lost %d times, want once", i, err, rule.Fired())
				}

				for range 2 { // again does no harm
					c.want(fmt.Sprint("step ", i), c.rows("SELECT CONCAT_WS(' ', (SELECT COUNT(*) FROM node WHERE cordoned = 1 AND who = 'alice' AND reason = 'disk'),"+
						" (SELECT COUNT(*) FROM node WHERE draining = 1), (SELECT COUNT(*) FROM stop WHERE kind = 'handler' AND name = 'mail' AND who = 'alice'))"), step.want)
					c.want(fmt.Sprint("lines of the audit, step ", i), c.rows("SELECT COUNT(*) FROM audit WHERE who = 'alice' AND action <> 'void'"), fmt.Sprint(i+1))
					if err := step.do(); err != nil {
						t.Fatalf("step %d again: %v", i, err)
					}
				}
			}
		})
	}
}

// TestACordonKeepsItsInstant: sessions obey the instant of the cordon, which later changes must not
// move.
func TestACordonKeepsItsInstant(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	for i, say := range []struct {
		reason string
		drain  bool
	}{{"a", false}, {"b", false}, {"b", true}, {"c", false}} {
		if err := p.at(float64(60*i)).Cordon(p.ctx, "x", say.reason, say.drain); err != nil {
			t.Fatal(err)
		}
		c.want("since", c.rows("SELECT since - ? FROM node WHERE name = 'x'", int64(t0)), "0")
	}

	c.want("draining still", c.rows("SELECT draining FROM node WHERE name = 'x'"), "1")
	for i, err := range []error{
		p.Cordon(p.ctx, "", "", false), p.Cordon(p.ctx, "x", "a\nb", false), p.Uncordon(p.ctx, "a\x00"),
		p.DisableHandler(p.ctx, "a b", ""), p.EnableHandler(p.ctx, ""), p.DisableHandler(p.ctx, "a", strings.Repeat("x", 501)),
	} {
		if !errors.As(err, new(job.Problems)) {
			t.Errorf("%d: got %v, want what is wrong with a field", i, err)
		}
	}
}

// TestPutRetention: the rule of an app or of the cluster is replaced. The same rule again writes
// nothing.
func TestPutRetention(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	for range 2 {
		if err := p.PutRetention(p.ctx, "shop", job.Retention{Keep: job.Keep{Runs: 10}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.PutRetention(p.ctx, "other", job.Retention{}); err != nil {
		t.Fatal(err)
	}
	if err := p.PutRetention(p.ctx, "shop", job.Retention{Archive: true}); !errors.As(err, new(job.Problems)) {
		t.Errorf("an archive of an app: got %v", err)
	}
	c.want("rules", c.rows("SELECT CONCAT_WS(' ', app, who) FROM retention ORDER BY app"), " ", "shop alice")
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE kind = 'retention'"), "1")
}

// TestPauseEndedTwice: nodes that end the same pause at once keep its row, which claims need to judge
// the due times in the pause.
func TestPauseEndedTwice(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.pausesApp("shop", job.PauseRequest{Until: t0.Add(time.Minute)})
	p = p.at(61)

	tx, err := c.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec("SELECT name FROM stop WHERE name = 'shop' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- p.EndPauses(p.ctx, "one") }()
	}
	const waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE '%FROM stop FORCE%FOR UPDATE%'"
	for end := time.Now().Add(30 * time.Second); c.rows(waiting)[0] != "2"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the nodes do not wait for the row of the pause")
		}
	}

	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	c.wantStops("an ended pause", "app shop 0.0000 60.0000 ")
}
