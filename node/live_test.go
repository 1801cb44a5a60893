package node_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// soFar returns the output of an executing run that a node can read; "" if there is none yet.
func soFar(t testing.TB, db *read.DB, l job.Launch) string {
	t.Helper()
	pieces, err := db.Chunks(context.Background(), l, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := job.PiecesText(job.Join(pieces), 0, false)
	return text
}

func touch(t testing.TB, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// executing waits for the single executing run.
func (c *cluster) executing(limit time.Duration) (run read.Run) {
	c.t.Helper()
	await(c.t, "a run that executes", limit, func() bool {
		runs, err := c.db.ExecutingRuns(context.Background(), read.RunFilter{Limit: 2})
		if err != nil || len(runs) != 1 {
			return false
		}
		run = runs[0]
		return true
	})

	return run
}

// TestOutputOnAnotherNode: the output of a command on one node can be read on another while it
// runs. When it has ended, its run has the whole output and no pieces are left.
func TestOutputOnAnotherNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one := c.start("one", nil)
	two := c.start("two", nil)
	gate := t.TempDir() + "/gate"
	j := one.create(job.Spec{
		Name: "talks", At: ptr(one.Now().Add(300 * time.Millisecond)),
		Command: "for i in 1 2 3; do echo line $i; done; until [ -e " + gate + " ]; do sleep .05; done; echo end",
	})
	run := c.executing(10 * time.Second)
	reader := one
	if run.Node == "one" {
		reader = two
	}

	const said = "line 1\nline 2\nline 3\n"
	reader.await("the output on the other node", 15*time.Second, func() bool {
		return soFar(t, reader.Reads(), run.Launch) == said
	})
	touch(t, gate)
	one.await("its end", 10*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	ended, err := reader.Reads().Run(t.Context(), run.ID)
	if err != nil || ended.Outcome != job.Succeeded || ended.Output.Text() != said+"end\n" {
		t.Errorf("got %v %q, %v", ended.Outcome, ended.Output.Text(), err)
	}

	if n := c.count("SELECT COUNT(*) FROM chunk"); n != 0 {
		t.Errorf("%d pieces are left", n)
	}
}

// TestOutputOfALostRun: a killed node loses its memory, but not the output that its commands had
// written before.
func TestOutputOfALostRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.process("doomed")
	first := c.start("first", nil)
	j := first.create(job.Spec{
		Name: "talks", At: ptr(first.Now().Add(2 * time.Second)), Selector: "node=doomed",
		Command: `echo before the crash; printf 'and half \xe2'; sleep 30`,
	})

	first.drain()
	run := c.executing(15 * time.Second)
	if run.Node != "doomed" {
		t.Fatalf("it runs on %q", run.Node)
	}

	well := c.start("well", nil)
	well.await("its output", 15*time.Second, func() bool {
		return strings.Contains(soFar(t, c.db, run.Launch), "and half")
	})
	p.signal(syscall.SIGKILL)
	well.await("the run ends lost", 2*c.expiry+10*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	lost, err := c.db.Run(t.Context(), run.ID)
	if err != nil || lost.Outcome != job.Lost || lost.Output.Text() != "before the crash\nand half \uFFFD" {
		t.Errorf("got %v %q, %v", lost.Outcome, lost.Output.Text(), err)
	}

	if n := c.count("SELECT COUNT(*) FROM chunk"); n != 0 {
		t.Errorf("%d pieces are left", n)
	}
}
