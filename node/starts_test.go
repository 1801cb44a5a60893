package node_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/node"
)

// TestSecretsDoNotWaitForPeople: even when requests of people take all connections of their pool, a
// job that uses a secret starts.
func TestSecretsDoNotWaitForPeople(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	keys := keyRing(t, secret.NewKey())
	n := c.start("one", func(cfg *node.Config) { cfg.SecretKeys = keys })
	c.keep(keys, "pg", "", pgSecret)
	j := n.create(job.Spec{
		Name: "use", At: ptr(n.Now().Add(2 * time.Second)), Command: `test "$PW" = '` + pgSecret + `'`,
		CommandOptions: job.CommandOptions{Env: map[string]string{"PW": "{{secret.pg}}"}},
	})
	people := n.Reads().Raw()
	for range people.Stats().MaxOpenConnections {
		asks, err := people.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer asks.Close()
	}

	n.await("the run", 5*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	if r := c.history(j.ID)[0]; r.Outcome != job.Succeeded {
		t.Errorf("got %+v", r.Run)
	}
}

// closing is an executor that knows whether it was closed.
type closing struct{ closed atomic.Bool }

func (*closing) Execute(context.Context, execute.Attempt) job.Result {
	return job.Result{Outcome: job.Succeeded}
}
func (x *closing) Close() { x.closed.Store(true) }

// TestConnectionsEndWithTheNode: connections that executors keep for the next attempt do not
// outlive the node.
func TestConnectionsEndWithTheNode(t *testing.T) {
	t.Parallel()
	x := new(closing)
	n := newCluster(t).start("one", func(cfg *node.Config) { cfg.Executor = &execute.Kinds{HTTP: x} })
	if x.closed.Load() {
		t.Error("closed while the node runs")
	}
	if n.drain(); !x.closed.Load() {
		t.Error("not closed")
	}
}
