package trip_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/legal"
	"go-crontab/test/testdb"
)

// cluster is a schema with nodes whose loops run. Their runs end at once.
type cluster struct {
	*testing.T
	dsn string
	db  *sql.DB
	mu  sync.Mutex
	ran map[string]int // executions by job and due time
}

// node is a member of the cluster with its own proxy.
type node struct {
	*cluster
	number   trip.Owner
	share    int
	of       int
	last     atomic.Int64
	proxy    *faultproxy.Proxy
	recorder *result.Recorder
	taken    atomic.Int64
	free     loop.Wake // a slot is free
	stop     context.CancelFunc
	loops    sync.WaitGroup
}

// noEnds is a node that starts without looking for ends that are not written yet.
type noEnds struct{}

func (noEnds) Push(context.Context, []int64) {}

func (n *node) Peers() []map[string]string { return nil }
func (n *node) Number() trip.Owner         { return n.number }
func (n *node) Now() job.Micros            { return job.MicrosOf(time.Now()) }
func (n *node) Fresh() bool                { return true }
func (n *node) Share() (int, int)          { return n.share, n.of }
func (n *node) Mint(k int) int64           { return int64(n.number)<<32 | (n.last.Add(int64(k)) - int64(k)) }
func (n *node) Free() int                  { return 200 - int(n.taken.Load()) }
func (n *node) TooLate() int64             { return 0 }

// Add executes runs: each succeeds at once.
func (n *node) Add(started []job.Started) {
	n.taken.Add(int64(len(started)))

	for i := range started {
		s := &started[i]
		n.mu.Lock()
		n.ran[fmt.Sprintf("%d %d", s.JobID, s.Due)]++
		n.mu.Unlock()
		now := n.Now()
		n.recorder.Put(trip.End{Launch: s.Launch, JobID: s.JobID, Outcome: job.Succeeded, Final: true, Started: now,
			Ended: now}, s.Spec.Overlap != job.OverlapAllow)
	}
}

// Written gives the slots of runs back.
func (n *node) Written(launches []job.Launch) {
	n.taken.Add(-int64(len(launches)))
	n.free.Up()
}

// blind is a lookout that never knows.
type blind struct{ schedule.Blind }

func (blind) NothingHeld() bool { return false }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()

	dsn := testdb.DSN(t)
	db, err := sql.Open(dsn, sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}

	legal.Watch(t, db)
	return &cluster{T: t, dsn: dsn, db: db, ran: map[string]int{}}
}

// join starts the loops of a node.
func (c *cluster) join(number trip.Owner, share, of int) *node {
	c.Helper()
	_, socket, _ := strings.Cut(c.dsn, "unix(")
	socket, _, _ = strings.Cut(socket, ")")
	n := &node{cluster: c, number: number, share: share, of: of, proxy: faultproxy.New(c, "unix", socket)}
	n.last.Store(1)
	db, err := sql.Open(n.proxy.DSN(c.dsn), sql.DefaultTimeouts, 8)
	if err != nil {
		c.Fatal(err)
	}

	log := slog.New(slog.DiscardHandler)
	x, defs, prepared := lock.New(db, lock.Unmeasured{}, log), schedule.NewDefinitions(), schedule.NewPrepared()
	n.free = loop.NewWake()
	n.recorder = result.New(result.Config{Exclusion: x, Session: n, Executing: n, Log: log})
	starter := schedule.NewStarter(schedule.StarterConfig{
		DB: db, Exclusion: x, Session: n, Definitions: defs, Prepared: prepared, Executing: n, Ends: noEnds{},
		Lookout: schedule.Blind{}, Log: log, Window: time.Second, Wake: n.free, WakeOverdue: loop.NewWake(),
	})
	claimer := schedule.NewClaimer(schedule.ClaimerConfig{
		DB: db, Exclusion: x, Session: n, Definitions: defs, Prepared: prepared, Lookout: schedule.Blind{},
		Starter: starter, Log: log, LookAhead: 5 * time.Second, Most: 8000,
	})
	reaper := result.NewReaper(result.ReaperConfig{DB: db, Exclusion: x, Session: n, Lookout: blind{}, Log: log})
	c.exec(`
		INSERT INTO life (id, session, node, started)
		VALUES (?, UNHEX(LPAD(?, 32, '0')), CONCAT('node-', ?), 0)`, number, number, number)

	c.exec(`
		INSERT INTO session (id, node, started, beat_at)
		VALUES (UNHEX(LPAD(?, 32, '0')), CONCAT('node-', ?), 0, 0)`, number, number)

	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel

	for _, run := range []func(context.Context) error{claimer.Run, starter.Run, n.recorder.Run, reaper.Run} {
		n.loops.Go(func() { run(ctx) })
	}

	c.Cleanup(func() {
		cancel()
		n.proxy.Heal()
		n.proxy.CutAll()
		n.loops.Wait()
		db.Close()
	})

	return n
}

func (c *cluster) exec(statement string, args ...any) {
	c.Helper()
	if _, err := c.db.Raw().Exec(statement, args...); err != nil {
		c.Fatalf("%s: %v", statement, err)
	}
}

// every adds jobs that are due at each full second from now on. A node that finds a job without its
// definition calls the job broken, so both are inserted in one transaction.
func (c *cluster) every(jobs int) {
	c.Helper()
	tx, err := c.db.Raw().Begin()
	if err != nil {
		c.Fatal(err)
	}
	defer tx.Rollback()

	start := time.Now().Truncate(time.Second).Add(3 * time.Second)
	for i := range jobs {
		spec := job.Spec{App: "default", Name: fmt.Sprint("j", i), Every: job.Duration(time.Second), Start: &start,
			Command: "true"}
		spec.Defaults(start)
		text, err := spec.Encode()
		if err != nil {
			c.Fatal(err)
		}

		r, err := tx.Exec(`
			INSERT INTO job (app_id, name, hash, next_due)
			VALUES (1, ?, ?, ?)`, spec.Name, i*1024/jobs, start.UnixMicro())
		if err != nil {
			c.Fatal(err)
		}

		id, _ := r.LastInsertId()
		if _, err := tx.Exec(`
			INSERT INTO job_version (job_id, version, definition, created)
			VALUES (?, 1, ?, 0)`, id, text); err != nil {
			c.Fatal(err)
		}
	}

	if err := tx.Commit(); err != nil {
		c.Fatal(err)
	}
}

// number returns a number from the database.
func (c *cluster) number(query string, args ...any) (n int64) {
	c.Helper()
	if err := c.db.Raw().QueryRow(query, args...).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// TestNodesThatFail breaks one of three nodes. The other two start the runs that it had prepared,
// and each due time ends once.
func TestNodesThatFail(t *testing.T) {
	for name, fail := range map[string]func(*cluster, *node){
		"nothing": func(*cluster, *node) {},
		"it dies": func(c *cluster, n *node) {
			n.proxy.Refuse()
			n.proxy.CutAll()
			n.stop()
			time.Sleep(time.Second)
			c.exec("DELETE FROM session WHERE id = UNHEX(LPAD(?, 32, '0'))", n.number)
		},
		"it hears nothing": func(_ *cluster, n *node) { n.proxy.Blackhole(faultproxy.ToClient) },
		"it is cut off":    func(_ *cluster, n *node) { n.proxy.Blackhole(faultproxy.BothWays) },
		"its commits are lost": func(_ *cluster, n *node) {
			n.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE run"), Action: faultproxy.CutBefore(),
				Times: 1000})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			sick := c.join(1, 0, 3)
			c.join(2, 1, 3)
			c.join(3, 2, 3)
			c.every(60)
			time.Sleep(5 * time.Second)
			failed := time.Now()
			fail(c, sick)
			time.Sleep(8 * time.Second)
			sick.proxy.Heal()

			// Later due times may still be in progress.
			until := job.MicrosOf(time.Now().Truncate(time.Second).Add(-5 * time.Second))

			// Each due time up to then has one final run. On a busy machine claims and runs may
			// need a while.
			first := c.number("SELECT MIN(due) FROM run")
			want := 60 * ((int64(until)-first)/1_000_000 + 1)

			ended := func() int64 {
				return c.number(`
					SELECT COUNT(DISTINCT job_id, due)
					FROM run
					WHERE due <= ? AND state = 'ended' AND final = 1`, int64(until))
			}

			for end := time.Now().Add(60 * time.Second); ended() < want && time.Now().Before(end); {
				time.Sleep(100 * time.Millisecond)
			}

			if got := ended(); got != want {
				t.Errorf("%d due times ended, want %d", got, want)
			}
			if n := c.number("SELECT COUNT(*) FROM run WHERE due <= ? AND state <> 'ended'", int64(until)); n > 0 {
				t.Errorf("%d runs have not ended", n)
			}

			// On a busy machine a run may take longer than a second, and the next due time is
			// skipped.
			if n := c.number(`
				SELECT COUNT(*)
				FROM run
				WHERE due <= ? AND outcome NOT IN ('succeeded', 'skipped', 'lost')`, int64(until)); n > 0 {
				t.Errorf("%d due times ended otherwise", n)
			}

			c.mu.Lock()
			for run, times := range c.ran {
				if times > 1 {
					t.Errorf("run %s was executed %d times", run, times)
				}
			}
			c.mu.Unlock()
			late := c.number(`
				SELECT COALESCE(MAX(started - due), 0)
				FROM run
				WHERE due > ? AND due <= ? AND outcome = 'succeeded'`, failed.UnixMicro(), int64(until))
			t.Logf("latest start after that: %s", time.Duration(late)*time.Microsecond)
		})
	}
}
