package bench

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/testdb"
)

// The test binary can be started as a node of a bench.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := BeNode(os.Stdin, os.Stdout, os.Stderr, serveAPI); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveAPI replaces the API, which is above this package. It creates the jobs that it is asked for,
// and requires a token.
func serveAPI(ctx context.Context, n *node.Node, l net.Listener) (string, error) {
	ctx = job.WithActor(ctx, job.Actor{Who: "bench"})
	create := func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			job.Spec
			Jobs []job.Spec `json:"jobs"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Authorization") != "Bearer open" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}

		specs := body.Jobs
		if r.URL.Path == "/api/v1/jobs" {
			specs = append(specs, body.Spec)
			defer w.WriteHeader(http.StatusCreated)
		}

		for _, s := range specs {
			if _, err := n.Editor().Create(ctx, s, false); err != nil {
				panic(err)
			}
		}
	}

	s := &http.Server{Handler: http.HandlerFunc(create)}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go s.Serve(l)
	return "open", nil
}

type given struct {
	dsn string
	db  *stdsql.DB
}

func newServer(t *testing.T) given {
	t.Helper()
	dsn := testdb.Server(t).DSN("mysql")
	db, err := stdsql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return given{dsn, db}
}

// TestGivenSchemaStays checks that a schema whose tables cannot be listed is not emptied.
func TestGivenSchemaStays(t *testing.T) {
	t.Parallel()
	g := newServer(t)
	for _, statement := range []string{"CREATE DATABASE somebodys", "CREATE TABLE somebodys.t (id INT)"} {
		if _, err := g.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}

	s, err := open(t.Context(), &Options{DSN: g.dsn, Schema: "somebodys"})
	if err != nil {
		t.Fatal(err)
	}

	defer s.close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{over, t.Context()} {
		if _, err := s.newSchema(ctx); err == nil {
			t.Error("it was taken")
		}
		if _, err := g.db.Exec("SELECT * FROM somebodys.t"); err != nil {
			t.Errorf("with a context that ended: %v; %v", ctx.Err() != nil, err)
		}
	}
}

// schemas lists schemas that benches have left on the server.
func (g given) schemas(t *testing.T) (names []string) {
	t.Helper()
	rows,
		err := g.db.Query(
		"SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'gocrontab\\_bench\\_%'")
	if err != nil {
		t.Fatal(err)
	}

	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}

	return names
}

// TestScenarios runs the scenarios, small, and checks their results.
func TestScenarios(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it measures all scenarios one after the other")
	}

	g := newServer(t)
	for _, o := range []Options{
		{Scenarios: []string{"steady", "herd", "http-steady", "handler"}, Rate: 50, For: 2 * time.Second},
		{Scenarios: []string{"burst", "shell", "http"}, Jobs: 300},
		{Scenarios: []string{"idle"}, Jobs: 1000, For: 2 * time.Second},
		{Scenarios: []string{"slow"}, Rate: 20, For: 2 * time.Second, RoundTrip: 20 * time.Millisecond},
		{Scenarios: []string{"failover"}, Rate: 50, For: 6 * time.Second},
		{Scenarios: []string{"api"}, For: time.Second},
		{Scenarios: []string{"purge"}, Rate: 50, For: 2 * time.Second},
	} {
		o.DSN, o.Say, o.forTests = g.dsn, t.Logf, true
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatalf("%v: %v", o.Scenarios, err)
		}
		if r.Machine.Server == "" || r.Machine.Cores == 0 || r.Machine.Private || len(r.Machine.Settings) < 3 {
			t.Errorf("the machine: %+v", r.Machine)
		}

		for _, x := range r.Results {
			t.Logf("%+v", x)
			switch w := x.Writes; {
			case w != nil:
				if !x.Account.OK() || w.Jobs < w.Requests || w.Requests == 0 || x.Rate <= 0 || w.P50 <= 0 ||
					w.P99 < w.P50 || w.Statements <= 0 || w.Redo <= 0 {
					t.Errorf("%s: %+v, account %+v", x.Name(), w, x.Account)
				}
				continue
			case x.Idle != nil:
				if x.Idle.Jobs != 1000 || x.Idle.Statements <= 0 || x.Idle.Statements > 100 {
					t.Errorf("%s: %+v", x.Name(), x.Idle)
				}
				continue
			case !x.Account.OK():
				t.Errorf("%s: account %+v", x.Name(), x.Account)
			}

			if x.Fires == 0 || x.Rate <= 0 || x.Late.Max <= 0 || x.Late.P50 > x.Late.P99 || x.Cost.Statements <= 0 ||
				x.Cost.Redo <= 0 {
				t.Errorf("%s: %+v", x.Name(), x)
			}

			if x.Scenario == "slow" && x.Cost.Statements <= 0 {
				t.Errorf("%s: nothing came over the distance", x.Name())
			}

			starts := func(s Second) bool { return s.Fires > 0 && s.Max >= s.P50 }
			if x.Series != nil && !slices.ContainsFunc(x.Series, starts) {
				t.Errorf("%s: no second has starts: %+v", x.Name(), x.Series)
			}

			if wants := x.Scenario == "burst" || x.Scenario == "shell" || x.Scenario == "http" ||
				x.Scenario == "steady"; wants != (x.Limit != nil && x.Limit.Rate > 0 && x.Limit.Ratio > 0) {
				t.Errorf("%s: limit %+v", x.Name(), x.Limit)
			}
		}
	}

	if left := g.schemas(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRepeat checks that the median run counts, and that a wrong account of any run shows.
func TestRepeat(t *testing.T) {
	t.Parallel()
	bad := Account{Due: 3, Once: 2, Missing: 1}
	m := median([]Result{{Rate: 30}, {Rate: 10, Account: bad, Noise: .3, Noisy: true}, {Rate: 20}})
	if m.Rate != 20 || fmt.Sprint(m.Rates) != "[10 20 30]" || m.Account.Missing != 1 || !m.Noisy {
		t.Errorf("got %+v", m)
	}

	before := &Report{
		Results: []Result{
			{Scenario: "a", Rate: 100, Rates: []float64{95, 100, 105}, Noise: .02}, {Scenario: "b", Rate: 100},
			{Scenario: "gone"},
		},
	}

	after := &Report{
		Results: []Result{
			{Scenario: "a", Rate: 150, Rates: []float64{140, 150, 160}, Noise: .02}, {Scenario: "b", Rate: 104},
			{Scenario: "new"},
		},
	}

	changes := Compare(before, after)
	if len(changes) != 2 || !changes[0].Distinct || changes[1].Distinct || math.Abs(changes[0].Ratio-1.5) > 1e-9 {
		t.Errorf("got %+v", changes)
	}

	after.Results[0].Noisy = true
	if Compare(before, after)[0].Distinct {
		t.Error("a noisy run concludes something")
	}
}

// TestBinlog checks that a private server writes a binary log on request, and that its bytes are
// counted.
func TestBinlog(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), Options{
		Binlog: true, Scenarios: []string{"burst"}, Jobs: 50, Say: t.Logf, forTests: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; !x.Account.OK() || x.Cost.Binlog < 100 || r.Machine.Settings["log_bin"] != "ON" ||
		r.Machine.Settings["sync_binlog"] != "1" {
		t.Errorf("got %+v on %+v", x, r.Machine)
	}
}

// TestStopped ends a bench early: no schema and no node may be left.
func TestStopped(t *testing.T) {
	t.Parallel()
	g := newServer(t)
	ctx, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	say := func(format string, args ...any) {
		if strings.HasPrefix(format, "measuring") {
			time.AfterFunc(500*time.Millisecond, func() { stop(enough) })
		}
	}

	_, err := Run(ctx, Options{
		DSN: g.dsn, Scenarios: []string{"steady"}, Rate: 10, For: time.Minute, Say: say, forTests: true,
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
	if left := g.schemas(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	threads, err := testdb.Threads(g.db)
	if threads = slices.DeleteFunc(threads,
		func(t testdb.Thread) bool { return !strings.HasPrefix(t.Schema, "gocrontab_bench_") }); err != nil ||
		len(threads) > 0 {
		t.Errorf("connections of nodes are left: %+v, %v", threads, err)
	}
}

// TestSchema checks that a schema with tables is not touched, and that an empty one is used and
// left empty.
func TestSchema(t *testing.T) {
	t.Parallel()
	g := newServer(t)
	for _, q := range []string{"CREATE DATABASE theirs", "CREATE TABLE theirs.job (id INT)", "CREATE DATABASE blank"} {
		if _, err := g.db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}

	o := Options{DSN: g.dsn, Schema: "theirs", Scenarios: []string{"burst"}, Jobs: 10, forTests: true}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has tables (job") {
		t.Errorf("got %v", err)
	}

	o.Schema = "blank"
	if r, err := Run(t.Context(), o); err != nil || r.Results[0].Account.Once != 10 {
		t.Errorf("got %+v, %v", r, err)
	}

	var n int
	if err := g.db.QueryRow("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'blank'").Scan(
		&n); err != nil || n != 0 {
		t.Errorf("%d tables are left, %v", n, err)
	}

	if err := g.db.QueryRow("SELECT COUNT(*) FROM theirs.job").Scan(&n); err != nil {
		t.Error(err)
	}
}

// TestAccount checks that the account finds every kind of error.
func TestAccount(t *testing.T) {
	t.Parallel()
	g := newServer(t)
	s, err := open(t.Context(), &Options{DSN: g.dsn})
	if err != nil {
		t.Fatal(err)
	}

	defer s.close()
	c, err := s.newSchema(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	defer c.drop()
	id := 0
	insert := func(job, due, attempt int64, rest string, args ...any) {
		t.Helper()
		id++
		query := "INSERT INTO run (id, job_id, app_id, due, due_now, kind, attempt, hash, " + rest
		if _, err := c.db.Exec(query, append([]any{id, job, due, due, attempt}, args...)...); err != nil {
			t.Fatal(err)
		}
	}

	write := func(job, due, attempt, late int64) {
		t.Helper()
		insert(job, due, attempt, `state, owner, claim, started, ended, outcome, final)
			VALUES (?, ?, 1, ?, ?, 'schedule', ?, 7, 'ended', -2, 1, ?, 1, 'succeeded', 1)`, due+late)
	}

	miss := func(job, due, count int64) {
		t.Helper()
		insert(job, due, 1, `state, owner, claim, ended, outcome, final, due_last, due_count)
			VALUES (?, ?, 1, ?, ?, 'schedule', ?, 7, 'ended', -2, 0, 1, 'missed', 1, ?, ?)`, due+(count-1)*100, count)
	}

	from, to := time.UnixMicro(1000), time.UnixMicro(2000)
	write(1, 1000, 1, 500)
	write(1, 1001, 1, 700)
	write(1, 1001, 2, 700)                    // a second time
	write(1, 1002, 1, -1)                     // before it was due
	miss(1, 1003, 3)                          // covers three due times, 100 apart
	miss(2, 700, 5)                           // two in the span, and three before it
	miss(3, 1900, 4)                          // one in the span, and three after it
	write(1, 2000, 1, 0)                      // not in the span
	for _, due := range []int64{1500, 2500} { // one is in the span and not reached
		insert(9, due, 1, "state, owner, claim) VALUES (?, ?, 1, ?, ?, 'schedule', ?, 7, 'prepared', 3, 1)")
	}

	a, started, err := c.account(t.Context(), from, to, 12)
	if err != nil {
		t.Fatal(err)
	}

	if a.Once != 9 || a.Missing != 2 || a.Open != 1 || a.Doubled != 1 || a.Early != 1 || a.Other["missed"] != 6 ||
		len(started) != 3 || a.OK() {
		t.Errorf("got %+v, %d started", a, len(started))
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	o := Options{
		Scenarios: []string{"steady", "stedy"}, Rate: -1, Jobs: -1, Nodes: 99, For: 1500 * time.Millisecond,
		RoundTrip: time.Hour, Repeat: -2, Schema: "x",
	}

	if err := (&Options{DSN: "root@/", Binlog: true}).Check(); err == nil ||
		!strings.Contains(err.Error(), "--binlog") {
		t.Errorf("a binary log of somebody's server: got %v", err)
	}

	err := o.Check()
	for _, want := range []string{`scenario "stedy"`, "--rate -1", "--jobs -1", "--nodes 99", "--for 1.5s",
		"--round-trip 1h0m0s", "--repeat -2", "--schema"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}

	if _, err := ReadReport([]byte(`{"results":[]}`)); err == nil {
		t.Error("an empty report was taken")
	}
}
