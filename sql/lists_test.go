package sql

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/listdata"
	"go-crontab/internal/privatedb"
	"go-crontab/job"

	"github.com/go-sql-driver/mysql"
)

// The tables of TestLists. With GOCRONTAB_TEST_LISTS=full they are those of which the promise is made: a million jobs
// and five million runs.
func listSizes() (jobs, runs, pool int) {
	if os.Getenv("GOCRONTAB_TEST_LISTS") == "full" {
		return 1_000_000, 5_000_000, 4096
	}
	return 100_000, 500_000, 512
}

// listFixture is a server of its own with large tables.
type listFixture struct {
	*fixture
	jobs, runs int
	proxy      *faultproxy.Proxy
	statements []string
	asking     int64
}

func newListFixture(t *testing.T) *listFixture {
	jobs, runs, pool := listSizes()
	server, err := privatedb.Start(context.Background(), privatedb.Options{Pool: pool, Redo: 256, TCP: true,
		Extra: []string{"--innodb-doublewrite=OFF", "--loose-innodb-flush-method=nosync"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(t.Context(), "lists"); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN("lists")
	migrate(t, dsn)
	f := &listFixture{fixture: &fixture{t, dsn, open(t, dsn, MigrateTimeouts, 4)}, jobs: jobs, runs: runs}
	began := time.Now()
	fill := listdata.Filler{Exec: f.exec, Spec: "{}"}
	fill.Jobs(jobs)
	seeded := time.Now()
	fill.Runs(jobs, runs)
	t.Logf("%d jobs in %s, %d runs in %s", jobs, seeded.Sub(began).Round(time.Millisecond), runs, time.Since(seeded).Round(time.Millisecond))

	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	f.proxy = faultproxy.New(t, cfg.Net, cfg.Addr)
	f.db = open(t, f.proxy.DSN(dsn), DefaultTimeouts, 1)
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			f.statements = append(f.statements, c.SQL)
		}
	})
	before := f.read()
	f.asking = f.read() - before
	return f
}

func (f *listFixture) read() int64 { f.Helper(); return handlerReads(f, f.db) }

// measured is what one page has cost.
type measured struct {
	read int64
	took time.Duration
}

func (f *listFixture) measure(fn func() error) measured {
	f.Helper()
	f.statements = nil
	before, began := f.read(), time.Now()
	err := fn()
	took := time.Since(began)
	if err != nil {
		f.Fatal(err)
	}
	return measured{f.read() - before - f.asking, took}
}

// wantPlan asks the server how it runs the statements of a page: by indexes, in their order.
func (f *listFixture) wantPlan(name string, statements []string) {
	f.Helper()
	for _, s := range statements {
		if !strings.Contains(s, "SELECT") || strings.HasPrefix(s, "SHOW") {
			continue
		}
		rows, err := f.db.Raw().Query("EXPLAIN FORMAT=TRADITIONAL " + s)
		if err != nil {
			f.Fatalf("%s: EXPLAIN %.80s: %v", name, s, err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values, ptrs := make([]mysqlText, len(columns)), make([]any, len(columns))
			for i := range values {
				ptrs[i] = &values[i]
			}
			if err := rows.Scan(ptrs...); err != nil {
				f.Fatal(err)
			}
			line := map[string]string{}
			for i, c := range columns {
				line[c] = string(values[i])
			}
			if line["table"] == "pause" || line["table"] == "" || strings.HasPrefix(line["table"], "<") {
				continue
			}
			if line["type"] == "ALL" || line["type"] == "index" || strings.Contains(line["Extra"], "filesort") {
				f.Errorf("%s: table %s is read by %s, key %q, %s in %.200s", name, line["table"], line["type"], line["key"], line["Extra"], s)
			}
		}
		rows.Close()
	}
}

type mysqlText []byte

func (m *mysqlText) Scan(v any) error {
	switch v := v.(type) {
	case []byte:
		*m = append([]byte(nil), v...)
	case nil:
	default:
		*m = fmt.Append(nil, v)
	}
	return nil
}

// listCase is a filter and what it stands for in SQL, for who is told nothing of indexes.
type listCase struct {
	name   string
	job    JobFilter
	run    RunFilter
	where  string
	factor float64 // rows that may be read for each that is shown; 0: 2
}

const listLimit = 100

func TestLists(t *testing.T) {
	t.Parallel()
	f := newListFixture(t)
	by := func(s Trigger) *Trigger { return &s }
	active := "(next_due IS NOT NULL OR id IN (SELECT job_id FROM task))"
	for _, c := range []listCase{
		{name: "all", where: "1"},
		{name: "an app", job: JobFilter{App: "app-7"}, where: "app = 'app-7'"},
		{name: "a small app", job: JobFilter{App: "rare"}, where: "app = 'rare'"},
		{name: "some apps", job: JobFilter{Apps: []string{"rare", "app-7", "app-9"}}, where: "app IN ('rare', 'app-7', 'app-9')"},
		{name: "active", job: JobFilter{Status: job.Active}, where: "error = '' AND paused = 0 AND " + active},
		{name: "paused", job: JobFilter{Status: job.Paused}, where: "error = '' AND paused = 1"},
		{name: "in error", job: JobFilter{Status: job.Broken}, where: "error <> ''"},
		{name: "finished", job: JobFilter{Status: job.Finished}, where: "error = '' AND paused = 0 AND NOT " + active, factor: 3}, // those at their end are asked for their tasks
		{name: "paused in an app", job: JobFilter{Status: job.Paused, App: "app-7"}, where: "error = '' AND paused = 1 AND app = 'app-7'"},
		{name: "a common label", job: JobFilter{Labels: map[string]string{"env": "prod"}}, where: "id MOD 2 = 0"},
		{name: "a rare label", job: JobFilter{Labels: map[string]string{"team": "rare"}}, where: "id MOD 997 = 3"},
		{name: "a label in an app", job: JobFilter{Labels: map[string]string{"env": "prod"}, App: "app-7"}, where: "id MOD 2 = 0 AND app = 'app-7'"},
		{name: "an owner in an app", job: JobFilter{Owner: "many", App: "app-7"}, where: "id MOD 3 = 0 AND app = 'app-7'"},
		{name: "a common owner", job: JobFilter{Owner: "many"}, where: "id MOD 3 = 0"},
		{name: "a rare owner", job: JobFilter{Owner: "few"}, where: "id MOD 991 = 4"},
		{name: "a group", job: JobFilter{Group: "narrow"}, where: "id MOD 983 = 2"},
		{name: "a calendar", job: JobFilter{Calendar: "holidays"}, where: "id MOD 971 = 1"},
		{name: "a name's beginning", job: JobFilter{Name: "backup"}, where: "name LIKE '%backup%'"},
		{name: "a name's middle", job: JobFilter{Name: "p-7"}, where: "name LIKE '%p-7%'"},
		{name: "a name's end", job: JobFilter{Name: "777"}, where: "name LIKE '%777%'", factor: 2.5}, // there are names with 7777,
		{name: "one name", job: JobFilter{Name: "sync-" + strconv.Itoa(1003)}, where: "name LIKE '%sync-1003%'"},
		{name: "no such name", job: JobFilter{Name: "nobody"}, where: "0"},
		{name: "a name in some apps", job: JobFilter{Apps: []string{"rare", "app-7"}, Name: "report"}, where: "app IN ('rare', 'app-7') AND name LIKE '%report%'", factor: 4},
		{name: "a name and an owner in one of the apps", job: JobFilter{Apps: []string{"app-7"}, Name: "1", Owner: "many"}, where: "app = 'app-7' AND id MOD 3 = 0 AND name LIKE '%1%'", factor: 14},
		{name: "a rare label and a common owner", job: JobFilter{Labels: map[string]string{"team": "rare"}, Owner: "many"}, where: "id MOD 997 = 3 AND id MOD 3 = 0", factor: 40},
		{name: "two common things", job: JobFilter{Labels: map[string]string{"env": "prod"}, Owner: "many"}, where: "id MOD 6 = 0", factor: 20},
	} {
		f.wantJobs(c)
	}
	mid, end := job.Micros(listdata.Epoch+int64(f.runs)*500), job.Micros(listdata.Epoch+int64(f.runs)*600)
	span := fmt.Sprintf(" AND due >= %d AND due < %d", int64(mid), int64(end))
	for _, c := range []listCase{
		{name: "all", where: "1"},
		{name: "due in between", run: RunFilter{From: mid, To: end}, where: "1" + span},
		{name: "a job", run: RunFilter{JobID: 2}, where: "job_id = 2"},
		{name: "a job, due in between", run: RunFilter{JobID: 2, From: mid, To: end}, where: "job_id = 2" + span},
		{name: "a job's failures", run: RunFilter{JobID: 2, Outcome: job.Failed}, where: "job_id = 2 AND outcome = 2"},
		{name: "a job's requests", run: RunFilter{JobID: 2, Trigger: by(ByRequest)}, where: "job_id = 2 AND trig = 1"},
		{name: "a job's successes", run: RunFilter{JobID: 2, Outcome: job.Succeeded}, where: "job_id = 2 AND outcome = 1", factor: 4},
		{name: "an app", run: RunFilter{App: "app-7"}, where: "job_id IN (SELECT id FROM job WHERE app = 'app-7')"},
		{name: "a small app", run: RunFilter{App: "rare"}, where: "job_id IN (SELECT id FROM job WHERE app = 'rare')"},
		{name: "some apps", run: RunFilter{Apps: []string{"rare", "app-7"}}, where: "job_id IN (SELECT id FROM job WHERE app IN ('rare', 'app-7'))", factor: 3},
		{name: "succeeded", run: RunFilter{Outcome: job.Succeeded}, where: "outcome = 1"},
		{name: "failed", run: RunFilter{Outcome: job.Failed}, where: "outcome = 2"},
		{name: "failed, due in between", run: RunFilter{Outcome: job.Failed, From: mid, To: end}, where: "outcome = 2" + span},
		{name: "lost", run: RunFilter{Outcome: job.Lost}, where: "outcome = 5"},
		{name: "a node", run: RunFilter{Node: "node-1"}, where: "node = 'node-1'"},
		{name: "a rare node", run: RunFilter{Node: "elsewhere"}, where: "node = 'elsewhere'"},
		{name: "asked for", run: RunFilter{Trigger: by(ByRequest)}, where: "trig = 1"},
		{name: "by the schedule", run: RunFilter{Trigger: by(BySchedule)}, where: "trig = 0"},
		{name: "an app's failures", run: RunFilter{App: "rare", Outcome: job.Failed}, where: "outcome = 2 AND job_id IN (SELECT id FROM job WHERE app = 'rare')"},
		{name: "a node's failures, due in between", run: RunFilter{Node: "node-1", Outcome: job.Failed, From: mid, To: end}, where: "node = 'node-1' AND outcome = 2" + span},
		{name: "an app on a node", run: RunFilter{App: "app-7", Node: "node-1"}, where: "node = 'node-1' AND job_id IN (SELECT id FROM job WHERE app = 'app-7')", factor: 14},
	} {
		f.wantRuns(c)
	}
}

// want holds what a page has cost against the bound.
func (f *listFixture) want(kind string, c listCase, page int, shown, legs int, m measured) {
	f.Helper()
	factor := cmp.Or(c.factor, 2)
	// A range of an index that has nothing (more) costs one look that finds nothing, whatever it could have held.
	most := int64(factor*float64(shown+1)) + int64(legs)
	f.Logf("%-5s %-36s page %d: %4d shown, %5d read, %8s", kind, c.name, page, shown, m.read, m.took.Round(10*time.Microsecond))
	if m.read > most {
		f.Errorf("%s %s, page %d: %d rows read for %d shown, want at most %d", kind, c.name, page, m.read, shown, most)
	}
	if m.took > time.Second && os.Getenv("GOCRONTAB_TEST_LISTS") == "full" {
		f.Errorf("%s %s, page %d: took %s", kind, c.name, page, m.took)
	}
}

func (f *listFixture) wantJobs(c listCase) {
	f.Helper()
	c.job.Limit = listLimit
	var got []int64
	for page := 1; page <= 3; page++ {
		var p JobPage
		f.db.JobPage(f.Context(), c.job) // what the server has to read from a disk is no matter of the list
		m := f.measure(func() (err error) { p, err = f.db.JobPage(f.Context(), c.job); return err })
		f.wantPlan(c.name, f.statements)
		f.want("jobs", c, page, len(p.Rows), 5, m)
		for _, r := range p.Rows {
			got = append(got, r.ID)
		}
		if p.Next == nil {
			break
		}
		if c.job.Apps != nil && (p.Next.Part != "" || !slices.Contains(c.job.Apps, f.appOf(p.Next.ID))) {
			f.Errorf("%s: goes on after job %d, %q, which is of app %s", c.name, p.Next.ID, p.Next.Part, f.appOf(p.Next.ID))
		}
		c.job.After, c.job.Part = p.Next.ID, p.Next.Part
	}
	order := "id"
	if c.job.Name != "" && c.job.Apps == nil {
		order = "SUBSTRING(name, LOCATE('" + c.job.Name + "', name)), id"
	}
	f.wantIDs("jobs "+c.name, got, "SELECT id FROM job WHERE living = 1 AND "+c.where+" ORDER BY "+order+" LIMIT ?")
}

func (f *listFixture) appOf(id int64) (app string) {
	f.Helper()
	if err := f.db.Raw().QueryRow("SELECT app FROM job WHERE id = ?", id).Scan(&app); err != nil {
		f.Fatal(err)
	}
	return app
}

func (f *listFixture) wantRuns(c listCase) {
	f.Helper()
	c.run.Limit = listLimit
	var got []int64
	for page := 1; page <= 3; page++ {
		var p RunPage
		f.db.RunPage(f.Context(), c.run)
		m := f.measure(func() (err error) { p, err = f.db.RunPage(f.Context(), c.run); return err })
		f.wantPlan(c.name, f.statements)
		legs := 24
		if c.run.Apps != nil {
			legs *= len(c.run.Apps)
		}
		f.want("runs", c, page, len(p.Rows), 3*legs, m)
		for _, r := range p.Rows {
			got = append(got, r.ID)
		}
		if p.Next == nil {
			break
		}
		c.run.After = p.Next
	}
	f.wantIDs("runs "+c.name, got, "SELECT id FROM history WHERE "+c.where+" ORDER BY due DESC, id DESC LIMIT ?")
}

func (f *listFixture) wantIDs(name string, got []int64, query string) {
	f.Helper()
	plain := open(f.T, f.dsn, MigrateTimeouts, 1)
	want, err := plain.ids(f.Context(), name, query, max(1, len(got)))
	if err != nil {
		f.Fatal(err)
	}
	if !slices.Equal(got, want) {
		n := 0
		for n < len(got) && n < len(want) && got[n] == want[n] {
			n++
		}
		f.Errorf("%s: got %d ids, want %d; from %d on: %v, want %v", name, len(got), len(want), n, got[n:min(len(got), n+5)], want[n:min(len(want), n+5)])
	}
	plain.Close()
}
