package node_test

import (
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

func TestTripOfATask(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	j := n.create(job.Spec{
		Name: "hello", Every: job.Duration(time.Second), Overlap: job.OverlapAllow,
		Command: `echo "hello $GOCRONTAB_JOB"`,
	})

	n.await("three runs", 8*time.Second, func() bool { return len(c.history(j.ID)) >= 3 })
	due := j.Spec.Start.UnixMicro()
	for i, r := range c.history(j.ID) {
		if r.Outcome != job.Succeeded || int64(r.Due) != due || r.Attempt != 1 || !r.Final || r.Node != "one" ||
			r.Count != 1 {
			t.Errorf("run %d: %+v, want due %d", i, r.Run, due)
		}

		if late := r.Started.Sub(r.Due); late < 0 || late > 10*time.Second {
			t.Errorf("run %d started %s after it was due", i, late)
		}

		full, err := c.db.Run(t.Context(), r.ID)
		if err != nil || !strings.Contains(string(full.Output.Head), "hello hello") {
			t.Errorf("run %d: output %q, %v", i, full.Output.Head, err)
		}

		due += time.Second.Microseconds()
	}
}

func TestJobDueInAMoment(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	at := n.Now().Add(300 * time.Millisecond)
	j := n.create(job.Spec{Name: "soon", At: &at})
	n.await("its run", 5*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	if r := c.history(j.ID)[0]; r.Outcome != job.Succeeded || r.Started < r.Due || r.Lateness > 10_000_000 {
		t.Errorf("got %+v", r.Run)
	}
}
