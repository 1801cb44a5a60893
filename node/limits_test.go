package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
)

// TestLimitedAppBesideAHealthyOne: an app floods three nodes with long runs, by its schedules and
// by hand. At its limit it gets no more slots, its due times end skipped with a reason, and the
// runs of another app begin on time. Without the limit its runs would take all slots within a
// second, and the other app would wait.
func TestLimitedAppBesideAHealthyOne(t *testing.T) {
	t.Parallel()
	const (
		most    = 10 // runs a minute of the greedy app
		slots   = 20 // of each node
		greedy  = 40 // jobs, each due every second
		healthy = 5
		// More than any healthy run's lateness on a machine that is busy with other tests.
		late = 2 * time.Second
	)
	c, l := newCluster(t), newLedger()
	l.took = func(a execute.Attempt) time.Duration {
		if a.App == "greedy" {
			return time.Minute
		}
		return 0
	}

	var nodes []*member
	for n := range 3 {
		nodes = append(nodes, c.start(fmt.Sprintf("node-%d", n), func(cfg *node.Config) {
			cfg.Slots, cfg.Executor, cfg.Grace = slots, l, time.Second
		}))
	}

	if err := nodes[0].Editor().PutLimits(t.Context(), "greedy", job.AppLimits{RunsPerMinute: most}); err != nil {
		t.Fatal(err)
	}

	time.Sleep(3 * time.Second) // by then all nodes apply it, see docs/limits.md

	spec := job.Spec{Every: job.Duration(time.Second), Overlap: job.OverlapAllow}
	var good []int64
	for n := range healthy {
		spec.App, spec.Name = "healthy", fmt.Sprint(n)
		good = append(good, nodes[n%3].create(spec).ID)
	}

	var flood []int64
	for n := range greedy {
		spec.App, spec.Name = "greedy", fmt.Sprint(n)
		flood = append(flood, nodes[n%3].create(spec).ID)
	}

	asked, refused := 0, 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		asked++
		_, err := nodes[asked%3].Editor().RunNow(t.Context(), []int64{flood[asked%len(flood)]}, 0, "")
		var over *job.OverLimit
		switch {
		case errors.As(err, &over):
			refused++
		case err != nil:
			t.Fatal(err)
		}
	}

	var lateness []time.Duration
	for _, id := range good {
		runs := c.history(id)
		if len(runs) < 5 {
			t.Errorf("job %d of the healthy app has %d runs", id, len(runs))
		}

		for _, r := range runs {
			if r.Outcome != job.Succeeded {
				t.Errorf("a run of the healthy app ended %s: %s", r.Outcome, r.Reason)
			}
			lateness = append(lateness, time.Duration(r.Lateness)*time.Microsecond)
		}
	}

	slices.Sort(lateness)
	if worst := lateness[len(lateness)-1]; worst > late {
		t.Errorf("a run of the healthy app began %s late", worst)
	}

	const ofGreedy = " JOIN app a ON a.id = x.app_id WHERE a.name = 'greedy'"
	begun := c.count("SELECT COUNT(*) FROM run x" + ofGreedy + " AND x.state = 'executing'")

	// Each node may start that many between two looks, and people may request as many in that time.
	allowed := (len(nodes) + 1) * most
	if begun < most || begun > allowed {
		t.Errorf("%d runs of the greedy app began, want %d and at most %d", begun, most, allowed)
	}

	skipped := c.count(`
		SELECT COUNT(*)
		FROM run x` + ofGreedy + `
			AND x.outcome = 'skipped'
			AND x.reason = 'app greedy is at its limit of 10 runs a minute'`)
	if skipped < greedy {
		t.Errorf("%d due times of the greedy app were skipped", skipped)
	}

	if others := c.count(`
		SELECT COUNT(*)
		FROM run x` + ofGreedy + ` AND x.state = 'ended' AND x.reason NOT LIKE 'app greedy is at its limit of %'`); others != 0 {
		t.Errorf("%d runs of the greedy app ended for something else", others)
	}

	if refused < asked/2 {
		t.Errorf("%d of %d runs by hand were refused", refused, asked)
	}
	t.Logf(
		"healthy: %d runs, %s late at the median, %s at most; greedy: %d began, %d skipped, %d of %d by hand refused",
		len(lateness), lateness[len(lateness)/2], lateness[len(lateness)-1], begun, skipped, refused, asked)
}

// TestNodesTrimOutput: nodes enforce the limits on kept output. One node at a time does it.
func TestNodesTrimOutput(t *testing.T) {
	t.Parallel()
	c, l := newCluster(t), newLedger()
	for n := range 2 {
		c.start(fmt.Sprintf("node-%d", n), func(cfg *node.Config) { cfg.Executor = l })
	}

	const holders = "SELECT COUNT(*) FROM chore WHERE name = 'output' AND session_id IS NOT NULL"
	time.Sleep(2 * time.Second)
	if n := c.count(holders); n != 0 {
		t.Errorf("%d nodes look at output though no app has limits", n)
	}

	c.exec("INSERT INTO app (name) VALUES ('loud')")
	c.exec("INSERT INTO app_limit (app, output) VALUES ('loud', 1000)")
	await(t, "a node looks at output", 90*time.Second, func() bool { return c.count(holders) == 1 })
}
