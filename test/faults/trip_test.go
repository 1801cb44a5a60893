package faults

import (
	"context"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// trip maps each transaction of a run's steps to the pattern of one of its statements.
var trip = map[string]string{
	"claim":  `SET j.next_due = `,
	"take":   `SET state = 'prepared',`,
	"start":  `SET state = 'executing',`,
	"finish": `SET r.state = 'ended',`,
	"free":   `SET state = 'idle',`,
}

// life does the same for a node's session.
var life = map[string]string{
	"join":  `INSERT INTO session`,
	"leave": `DELETE FROM session`,
}

// asked does the same for requests with a key.
var asked = map[string]string{
	"run":    `INSERT INTO request`,
	"create": `INSERT INTO job \(`,
}

// TestTripIsOfTheProgram: a node that executes something and leaves makes a transaction of each
// kind. With a pattern that no longer matches any statement, the scenarios would inject nothing
// there.
func TestTripIsOfTheProgram(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	db, err := sql.Open(dsn, sql.MigrateTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = db.Migrate(t.Context())
	db.Close()
	if err != nil {
		t.Fatal(err)
	}

	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	proxy := faultproxy.New(t, config.Net, config.Addr)
	var mu sync.Mutex
	var committed []string

	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsCommit() {
			mu.Lock()
			defer mu.Unlock()
			committed = append(committed, c.Tx...)
		}
	})

	passed := func(pattern string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(committed, regexp.MustCompile(pattern).MatchString)
	}

	n, err := node.New(node.Config{DSN: proxy.DSN(dsn), Name: "one", SpoolDir: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- n.Run(ctx) }()

	leave := sync.OnceFunc(func() {
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})

	t.Cleanup(leave)

	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}

	until("ready", func() bool { return n.Status().Ready })
	spec := job.Spec{Name: "often", Every: job.Duration(time.Second), Command: "true", Overlap: job.OverlapAllow}
	j, err := n.Editor().Create(t.Context(), spec, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Editor().RunNow(t.Context(), []int64{j.ID}, 0, "key"); err != nil {
		t.Fatal(err)
	}

	// Runs ahead are prepared by then, and released at the end.
	until("a run ended, and others are prepared",
		func() bool { return passed(trip["finish"]) && passed(trip["claim"]) })
	leave()

	for _, points := range []map[string]string{trip, life, asked} {
		for name, pattern := range points {
			if !passed(pattern) {
				t.Errorf("%s: no statement of a transaction matches %q", name, pattern)
			}
		}
	}
}
