package feed

import (
	"context"
	stdsql "database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// cluster is an empty schema with a feed.
type cluster struct {
	*testing.T
	dsn  string
	db   *read.DB
	feed *Feed
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{T: t, dsn: testdb.DSN(t)}
	c.db = c.open(c.dsn, sql.MigrateTimeouts)
	if _, _, err := c.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.Raw().Exec("INSERT INTO app (id, name) VALUES (1, 'a')"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.Raw().Exec("INSERT INTO job (id, app_id, name, hash) VALUES (1, 1, 'one', 1)"); err != nil {
		t.Fatal(err)
	}
	c.feed = c.newFeed(c.db)
	return c
}

func (c *cluster) open(dsn string, t sql.Timeouts) *read.DB {
	c.Helper()
	db, err := sql.Open(dsn, t, 8)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { db.Close() })
	return &read.DB{DB: db}
}

func (c *cluster) newFeed(db *read.DB) *Feed {
	f := New(db, func() job.Micros { return job.MicrosOf(time.Now()) },
		func(e *Event) []byte { b, _ := json.Marshal(e.ID); return b }, slog.New(slog.DiscardHandler))
	c.Cleanup(f.Close)
	return f
}

func (c *cluster) listen(f *Feed) *Listener {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	l, _, err := f.Listen(ctx, "")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(l.Close)
	return l
}

// hear collects the ids of events until n have come, and a little longer to catch surplus ones.
func (c *cluster) hear(l *Listener, most int, into map[string]int) {
	c.Helper()
	enough := time.Time{}
	for end := time.Now().Add(30 * time.Second); ; {
		events, missed, news := l.Next(1000)
		if missed != 0 {
			c.Fatalf("%d are missed", missed)
		}

		for _, e := range events {
			into[e.ID]++
		}

		if len(into) >= most && enough.IsZero() {
			enough = time.Now().Add(1200 * time.Millisecond)
		}

		if !enough.IsZero() && time.Now().After(enough) {
			return
		}

		if time.Now().After(end) {
			c.Fatalf("heard %v, want %d", into, most)
		}

		select {
		case <-news:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestPatience: missing ids are looked for as long as a transaction of the cluster may commit.
func TestPatience(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// for an expiry of 10 minutes
	timeouts := sql.Timeouts{Dial: time.Second, Read: 90 * time.Second, LockWait: time.Second, Idle: 4 * time.Minute}
	r := newReader(read.Watch{DB: c.open(c.dsn, timeouts)}, c.feed.clock)
	if err := r.anchor(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if want := 10 * time.Minute; r.ends.Patience != want || r.lines.Patience != want {
		t.Errorf("got %s and %s, want %s", r.ends.Patience, r.lines.Patience, want)
	}
}

type execer interface {
	Exec(query string, args ...any) (stdsql.Result, error)
}

// minted counts the ids of runs.
var minted atomic.Int64

// end inserts an ended run, and returns the id of its event.
func (c *cluster) end(x execer) string {
	c.Helper()
	id := minted.Add(1)
	_, err := x.Exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
			outcome, ended, final)
		VALUES (?, 1, 1, ?, 'schedule', 'ended', -2, 1, 1, 1, 'succeeded', 1, 1)`, id, id)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := x.Exec("INSERT INTO ending (at, runs) VALUES (1, ?)",
		noteOf(trip.Note{Run: id, JobID: 1, Outcome: job.Succeeded})); err != nil {
		c.Fatal(err)
	}
	return fmt.Sprint("e", id)
}

// noteOf returns the part of an ending that describes one run.
func noteOf(n trip.Note) []byte {
	return append(binary.AppendVarint(binary.AppendVarint(nil, n.Run), n.JobID), byte(n.Outcome))
}

// line inserts an audit line, and returns the id of its event.
func (c *cluster) line(x execer) string {
	c.Helper()
	r, err := x.Exec(`INSERT INTO audit (at, who, action, kind, ref, app, name)
		VALUES (1, 'ann', 'update', 'job', 1, 'a', 'one')`)
	if err != nil {
		c.Fatal(err)
	}
	id, err := r.LastInsertId()
	if err != nil {
		c.Fatal(err)
	}
	return fmt.Sprint("a", id)
}

func (c *cluster) begin() *stdsql.Tx {
	c.Helper()
	tx, err := c.db.Raw().Begin()
	if err != nil {
		c.Fatal(err)
	}
	return tx
}

func commit(c *cluster, tx *stdsql.Tx) {
	c.Helper()
	if err := tx.Commit(); err != nil {
		c.Fatal(err)
	}
}

// TestLateCommit: transactions commit in another order than that of their ids: before the first
// listener comes, between two looks, and after many looks. Each run and each line is reported once.
func TestLateCommit(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	want := map[string]bool{}
	told := func(ids ...string) {
		for _, id := range ids {
			want[id] = true
		}
	}
	c.end(c.db.Raw()) // before there is a listener
	c.line(c.db.Raw())
	early := c.begin()
	told(c.end(early), c.line(early))
	c.end(c.db.Raw())
	l := c.listen(c.feed)
	heard := map[string]int{}

	late, never := c.begin(), c.begin()
	told(c.end(late), c.line(late))
	c.end(never)
	c.line(never)
	told(c.end(c.db.Raw()), c.line(c.db.Raw()))
	c.hear(l, 2, heard) // after ids that are not committed
	if len(heard) != 2 {
		t.Errorf("heard %v, want only what is committed", heard)
	}
	commit(c, early)
	c.hear(l, 4, heard)
	if err := never.Rollback(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		told(c.end(c.db.Raw()))
		time.Sleep(700 * time.Millisecond)
	}
	commit(c, late)
	c.hear(l, len(want), heard)
	for id, n := range heard {
		if n != 1 || !want[id] {
			t.Errorf("%s is told %d times; want once, and only one of %v", id, n, want)
		}
	}
	if len(heard) != len(want) {
		t.Errorf("heard %v, want %v", heard, want)
	}
}

// TestManyLateCommits: many concurrent transactions commit in random order.
func TestManyLateCommits(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := c.listen(c.feed)
	const writers, each = 6, 40
	ids := make(chan string, writers*each)
	for i := range writers {
		go func() {
			for k := range each {
				tx := c.begin()
				id := c.end(tx)
				time.Sleep(time.Duration((i*7+k*13)%60) * 10 * time.Millisecond)
				if k%9 == 8 {
					tx.Rollback()
					id = ""
				} else if tx.Commit() != nil {
					id = "not committed"
				}
				ids <- id
			}
		}()
	}

	heard, want := map[string]int{}, map[string]bool{}
	for range writers * each {
		if id := <-ids; id != "" {
			want[id] = true
		}
	}

	c.hear(l, len(want), heard)
	for id := range want {
		if heard[id] != 1 {
			t.Errorf("%s is told %d times, want once", id, heard[id])
		}
	}

	if len(heard) != len(want) {
		t.Errorf("told are %d, want %d", len(heard), len(want))
	}
}

// TestNobodyListens: without listeners nothing is read. A listener that returns soon gets the
// events in between.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.feed.linger = 10 * time.Second
	state := func() string { n, reading := c.feed.Listeners(); return fmt.Sprint(n, reading) }
	if got := state(); got != "0 false" {
		t.Errorf("before anybody came: got %s", got)
	}

	one, two := c.listen(c.feed), c.listen(c.feed)
	if got := state(); got != "2 true" {
		t.Errorf("two: got %s", got)
	}

	c.line(c.db.Raw())
	c.hear(one, 1, map[string]int{})
	events, _, _ := two.Next(10)
	if len(events) != 1 {
		t.Fatalf("got %v, want what the other heard", events)
	}

	one.Close()
	two.Close()
	id := c.line(c.db.Raw())
	time.Sleep(time.Second)
	back, resumed, err := c.feed.Listen(t.Context(), events[0].Place)
	if err != nil || !resumed {
		t.Fatalf("it is not resumed: %v", err)
	}

	heard := map[string]int{}
	c.hear(back, 1, heard)
	if heard[id] != 1 || len(heard) != 1 {
		t.Errorf("heard %v, want %s", heard, id)
	}

	back.Close()
	for end := time.Now().Add(60 * time.Second); state() != "0 false"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it still reads: %s", state())
		}
	}

	if again := c.listen(c.feed); again == nil || state() != "1 true" {
		t.Errorf("who comes later: got %s", state())
	}
}

// TestSlowListenerMisses: more events come than the ring holds.
func TestSlowListenerMisses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	slow, fast := c.listen(c.feed), c.listen(c.feed)
	const n = ringEvents + 1000
	if _, err := c.db.Raw().Exec(`INSERT INTO audit (at, who, action, kind, name)
		WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1
		FROM k
		WHERE i < 1000) SELECT 1, 'x', 'update', 'job', CONCAT(a.i, '-', b.i)
		FROM k a
		JOIN k b ON b.i <= 6
		LIMIT ?`, n); err != nil {
		t.Fatal(err)
	}

	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if events, missed, _ := fast.Next(10); missed == n-ringEvents && len(events) == 0 {
			break // a single look found more than the ring holds
		}
		if time.Now().After(end) {
			t.Fatal("the flood is not told")
		}
	}

	if _, missed, _ := slow.Next(10); missed != n-ringEvents {
		t.Errorf("missed are %d, want %d", missed, n-ringEvents)
	}

	id := c.line(c.db.Raw())
	heard := map[string]int{}
	c.hear(slow, 1, heard)
	if heard[id] != 1 || len(heard) != 1 {
		t.Errorf("after that: heard %v, want %s", heard, id)
	}
}

// TestDatabaseAway: events during an outage of the database are reported after it.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := faultproxy.Before(t, c.dsn)
	l := c.listen(c.newFeed(c.open(p.DSN(c.dsn), sql.DefaultTimeouts)))
	heard := map[string]int{}
	c.line(c.db.Raw())
	c.hear(l, 1, heard)
	p.Refuse()
	p.CutAll()
	c.line(c.db.Raw())
	c.end(c.db.Raw())
	time.Sleep(2 * time.Second)
	if events, missed, _ := l.Next(10); len(events) != 0 || missed != 0 {
		t.Errorf("heard %v while the database is away, and missed %d", events, missed)
	}

	p.Heal()
	c.hear(l, 3, heard)
	if len(heard) != 3 {
		t.Errorf("heard %v, want all three", heard)
	}
}

// TestStarts: a started run is reported with all columns of its row. Many starts at once are
// counted by job.
func TestStarts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := newReader(read.Watch{DB: c.db}, c.feed.clock)
	if err := r.anchor(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}

	execute := func(n int) (first int64) {
		t.Helper()
		for range n {
			id := minted.Add(1)
			first = max(first, id-int64(n)+1)
			_, err := c.db.Raw().Exec(`INSERT INTO run
					(id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started)
				VALUES (?, 1, 1, ?, 'schedule', 'executing', 7, 1, 1, 1, 5)`, id, id)
			if err != nil {
				t.Fatal(err)
			}
		}
		return first
	}

	look := func() []Event {
		t.Helper()
		events, err := r.look(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return events
	}

	if events := look(); len(events) != 0 {
		t.Errorf("at first: got %+v", events)
	}

	id := execute(1)
	events := look()
	if len(events) != 1 || events[0].Action != Started || events[0].Job != "one" || events[0].App != "a" ||
		events[0].Run.ID != id {
		t.Errorf("one: got %+v", events)
	}

	if events := look(); len(events) != 0 {
		t.Errorf("it was told: got %+v", events)
	}

	execute(manyRuns + 1)
	if events := look(); len(events) != 1 || len(events[0].Counts) != 1 || events[0].Counts[0].Started != manyRuns+1 ||
		events[0].Counts[0].Name != "one" {
		t.Errorf("many: got %+v", events)
	}
}
