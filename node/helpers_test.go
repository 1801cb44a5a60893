package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/legal"
	"go-crontab/test/testdb"
)

// expiry is the shortest allowed session expiry, a quarter of the default. It is for tests that
// wait for a death or the end of a lease. With it, other tests would lose sessions unintentionally
// on a machine that stalls.
const expiry = 5 * time.Second

// cluster holds some nodes of this process on one schema.
type cluster struct {
	t      testing.TB
	dsn    string
	db     *read.DB      // the tests' own, with long timeouts
	expiry time.Duration // of new sessions; the same for all nodes of a cluster

	explained bool // explain has logged the tables after a failure
}

func newCluster(t testing.TB) *cluster { return newClusterOn(t, testdb.DSN(t)) }

// newClusterOn makes a cluster in which every forbidden change of a row fails the test.
func newClusterOn(t testing.TB, dsn string) *cluster {
	t.Helper()
	c := newLawlessClusterOn(t, dsn)
	legal.Watch(t, c.db.DB)
	return c
}

// newLawlessCluster is for tests that change rows in forbidden ways, or that measure.
func newLawlessCluster(t testing.TB) *cluster { return newLawlessClusterOn(t, testdb.DSN(t)) }

func newLawlessClusterOn(t testing.TB, dsn string) *cluster {
	t.Helper()
	migrator, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	migrator.Close()
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	return &cluster{t: t, dsn: dsn, db: &read.DB{DB: db}, expiry: session.DefaultExpiry}
}

// member is a running node.
type member struct {
	*node.Node
	t          testing.TB
	stop, hard context.CancelFunc
	done       chan error
}

// start runs a node until the end of the test, with a configuration changed by mod.
func (c *cluster) start(name string, mod func(*node.Config)) *member {
	c.t.Helper()
	cfg := node.Config{DSN: c.dsn, Name: name, Expiry: c.expiry, Log: logger(c.t, name), SpoolDir: c.t.TempDir()}
	if mod != nil {
		mod(&cfg)
	}

	n, err := node.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	hardCtx, hard := context.WithCancel(context.Background())
	m := &member{n, c.t, stop, hard, make(chan error, 1)}
	go func() { m.done <- n.RunUntil(ctx, hardCtx) }()
	c.t.Cleanup(m.drain)
	c.t.Cleanup(c.explain)
	m.await("ready", 10*time.Second, func() bool { return n.Status().Ready })
	return m
}

// explain logs the tables of a failed test before its nodes stop.
func (c *cluster) explain() {
	if !c.t.Failed() || c.explained {
		return
	}

	c.explained = true
	now, text := time.Now().UnixMicro(), ""
	for what, q := range map[string]string{
		"sessions": `
			SELECT CONCAT_WS(' ', node, HEX(id), 'draining', draining, 'beat', beat, 'at', beat_at, 'slots', slots)
			FROM session`,
		"lives": "SELECT CONCAT_WS(' ', id, node, HEX(session)) FROM life",
		"jobs": `
			SELECT CONCAT_WS(' ', id, name, 'version', version, 'paused', paused, 'next', next_due, 'begun', begun_to,
				'running', running, error)
			FROM job
			LIMIT 20`,
		"stops":  "SELECT CONCAT_WS(' ', kind, name, app_id, since, until, who, reason) FROM stop",
		"groups": "SELECT CONCAT_WS(' ', id, name, 'slots', slots, 'taken', taken) FROM grp",
		"live": `
			SELECT CONCAT_WS(' ', id, 'of', job_id, kind, request, 'attempt', attempt, 'due', due, 'now',
				due_now, state,
				'owner', owner, 'claim', claim, 'group', grp, 'awaited', awaited)
			FROM run
			WHERE state <> 'ended'
			ORDER BY due_now
			LIMIT 20`,
		"ended": `
			SELECT CONCAT_WS(' ', id, 'of', job_id, kind, 'attempt', attempt, 'due', due, 'session', session,
				outcome, reason)
			FROM run
			WHERE state = 'ended'
			ORDER BY ended DESC
			LIMIT 20`,
	} {
		rows, err := c.db.Raw().Query(q)
		if err != nil {
			c.t.Log(what, err)
			continue
		}

		for rows.Next() {
			var row string
			err = errors.Join(err, rows.Scan(&row))
			text += "\n" + what + ": " + row
		}

		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
			c.t.Log(what, err)
		}
	}

	c.t.Logf("at %d:%s", now, text)
}

// long skips a test that takes half a minute or more on a quiet machine: make check runs it.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long")
	}
}

// drain stops the node as SIGTERM would, and waits for it.
func (m *member) drain() {
	m.stop()
	select {
	case err := <-m.done:
		m.done <- err
	case <-time.After(60 * time.Second):
		m.t.Error("the node does not stop")
	}
}

func (m *member) await(what string, limit time.Duration, ok func() bool) {
	m.t.Helper()
	await(m.t, what, limit, ok)
}

// await waits until ok is true. limit is the time that this may take on a quiet machine; await
// allows four times that.
func await(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * limit); ; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", 4*limit, what)
		}
	}
}

// create adds a job through a node.
func (m *member) create(spec job.Spec) job.Job {
	m.t.Helper()
	if spec.Command == "" && spec.HTTP == nil && spec.Handler == "" {
		spec.Command = "true"
	}
	done, err := m.Editor().Create(m.t.Context(), spec, false)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.job(done.ID)
}

// job reads a job.
func (m *member) job(id int64) job.Job {
	m.t.Helper()
	row, err := m.Reads().Job(m.t.Context(), id)
	if err != nil {
		m.t.Fatal(err)
	}
	return row.Job
}

// history returns the runs of a job, earliest due first.
func (c *cluster) history(jobID int64) []read.Run {
	c.t.Helper()
	runs, err := c.db.Runs(context.Background(), read.RunFilter{JobID: jobID, Limit: 100_000})
	if err != nil {
		c.t.Fatal(err)
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs
}

// count runs a query for one number.
func (c *cluster) count(query string, args ...any) (n int) {
	c.t.Helper()
	if err := c.db.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// ledger is an executor that records its executions, outside MySQL.
type ledger struct {
	mu   sync.Mutex
	runs map[string]int // "job due" → number of executions
	took func(execute.Attempt) time.Duration
}

func newLedger() *ledger { return &ledger{runs: map[string]int{}} }

func (l *ledger) Execute(ctx context.Context, a execute.Attempt) job.Result {
	l.mu.Lock()
	l.runs[fmt.Sprintf("%d %d", a.JobID, a.Due.UnixMicro())]++
	took := l.took
	l.mu.Unlock()
	if took != nil {
		select {
		case <-ctx.Done():
			return job.Result{Outcome: job.Killed, Reason: job.Reason{
				Code: job.CodeOf(context.Cause(ctx), job.ReasonNodeStopped), Text: context.Cause(ctx).Error(),
			}}
		case <-time.After(took(a)):
		}
	}

	return job.Result{Outcome: job.Succeeded}
}

func (l *ledger) counts() (total, doubles int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.runs {
		total += n
		if n > 1 {
			doubles++
		}
	}
	return total, doubles
}

func logger(t testing.TB, name string) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("GOCRONTAB_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})).With("node", name)
}
