package node_test

import (
	"fmt"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
)

// TestABacklogIsWorkedOffAtFullSpeed makes far more runs due at once than there are slots.
func TestABacklogIsWorkedOffAtFullSpeed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	l.took = func(execute.Attempt) time.Duration { return 50 * time.Millisecond }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 8 })
	start := n.Now().Add(4 * time.Second).Truncate(time.Microsecond)
	var specs []job.Spec
	for i := range 400 {
		specs = append(specs, job.Spec{Name: fmt.Sprint(i), Every: job.Duration(time.Hour), Start: &start})
	}

	c.insert(specs...)
	n.await("claimed", 5*time.Second, func() bool {
		return c.count(`
			SELECT (SELECT COUNT(*)
				FROM run
				WHERE state <> 'ended') + (SELECT COUNT(*)
				FROM run
				WHERE state = 'ended')`) == 400
	})

	n.await("all ended", 60*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") == 400
	})
	took := n.Now().Sub(start)
	t.Logf("400 runs of 50 ms in 8 slots took %s", took)
	if took > 40*time.Second {
		t.Errorf("took %s, want about 4 s", took)
	}
}
