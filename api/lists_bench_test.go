package api_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/internal/privatedb"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/listdata"
)

// BenchmarkLists requests a job, a run, and a page of 100 of each list over HTTP, among 1,000,000
// jobs and 5,000,000 runs. It reports the time of an answer and the number of rows that the server
// reads. GOCRONTAB_BENCH_RUNS sets another number of runs; jobs are a fifth of it.
func BenchmarkLists(b *testing.B) {
	runs := 5_000_000
	if n, err := strconv.Atoi(os.Getenv("GOCRONTAB_BENCH_RUNS")); err == nil {
		runs = n
	}

	s := startLists(b, runs/5, runs)
	for _, path := range listPaths {
		shown, next := s.ask(path)
		b.Run(path[len("/api/v1"):], func(b *testing.B) { s.measure(b, path, shown) })
		if shown, _ = s.ask(cmp.Or(next, path)); next != "" {
			b.Run(path[len("/api/v1"):]+" page 2", func(b *testing.B) { s.measure(b, next, shown) })
		}
	}
}

// measure requests one page repeatedly.
func (l *lists) measure(b *testing.B, path string, shown int) {
	before := l.read()
	l.ask(path)
	read := l.read() - before
	var took []time.Duration
	for range 200 {
		began := time.Now()
		l.ask(path)
		took = append(took, time.Since(began))
	}

	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(float64(shown), "shown")
	b.ReportMetric(float64(read), "read")
	b.ReportMetric(0, "ns/op") // meaningless here
}

// listPaths are the requested paths.
var listPaths = []string{
	"/api/v1/jobs/500", "/api/v1/apps/app-7/jobs/report-407", "/api/v1/runs/{run}",
	"/api/v1/jobs?", "/api/v1/jobs?app=app-7", "/api/v1/jobs?app=rare", "/api/v1/jobs?status=active",
	"/api/v1/jobs?status=paused", "/api/v1/jobs?status=error",
	"/api/v1/jobs?status=finished", "/api/v1/jobs?status=paused&app=app-7", "/api/v1/jobs?label=env%3Dprod",
	"/api/v1/jobs?label=team%3Drare",
	"/api/v1/jobs?label=env%3Dprod&app=rare", "/api/v1/jobs?owner=many", "/api/v1/jobs?owner=few",
	"/api/v1/jobs?group=narrow", "/api/v1/jobs?calendar=holidays",
	"/api/v1/jobs?name=backup", "/api/v1/jobs?name=p-7", "/api/v1/jobs?name=777", "/api/v1/jobs?name=nobody",
	"/api/v1/jobs?label=team%3Drare&owner=many", "/api/v1/jobs?label=env%3Dprod&owner=many",
	"/api/v1/jobs?name=backup&owner=few",
	"/api/v1/runs?", "/api/v1/runs?job_id=2", "/api/v1/jobs/2/history?", "/api/v1/runs?job_id=2&from={from}&to={to}",
	"/api/v1/runs?job_id=2&outcome=failed",
	"/api/v1/runs?job_id=2&outcome=succeeded", "/api/v1/runs?job_id=2&trigger=manual", "/api/v1/runs?app=app-7",
	"/api/v1/runs?app=rare",
	"/api/v1/runs?outcome=failed", "/api/v1/runs?outcome=succeeded", "/api/v1/runs?outcome=lost",
	"/api/v1/runs?node=node-1", "/api/v1/runs?node=elsewhere",
	"/api/v1/runs?trigger=manual", "/api/v1/runs?from={from}&to={to}",
	"/api/v1/runs?outcome=failed&from={from}&to={to}", "/api/v1/runs?app=rare&outcome=failed",
	"/api/v1/runs?node=node-1&outcome=failed", "/api/v1/runs?app=app-7&node=node-1",
}

// lists is the API of a node over large tables, on a separate database server.
type lists struct {
	*testing.B
	db      *sql.DB
	url     string
	token   string
	replace *strings.Replacer
}

func startLists(b *testing.B, jobs, runs int) *lists {
	server, err := privatedb.Start(context.Background(), privatedb.Options{Pool: 4096, Redo: 256, TCP: true,
		Extra: []string{"--innodb-doublewrite=OFF", "--loose-innodb-flush-method=nosync"}})
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(b.Context(), "lists"); err != nil {
		b.Fatal(err)
	}

	m, err := sql.Open(server.DSN("lists"), sql.MigrateTimeouts, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()

	if _, _, err := m.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}

	began := time.Now()
	fill := listdata.Filler{Spec: `{"every":"1h","command":"true"}`, Exec: func(query string, args ...any) {
		if _, err := m.Raw().ExecContext(b.Context(), query, args...); err != nil {
			b.Fatalf("%.100s: %v", query, err)
		}
	}}

	fill.Jobs(jobs)
	fill.Runs(jobs, runs)
	b.Logf("%d jobs and %d runs, made in %s", jobs, runs, time.Since(began).Round(time.Second))
	token, err := auth.Issuer{DB: m}.Bootstrap(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}

	db, err := sql.Open(server.DSN("lists"), sql.DefaultTimeouts, 4)
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { db.Close() })
	h := httptest.NewServer(api.New(api.Config{
		DB: &read.DB{DB: db}, Editor: func() api.Editor { return nil }, Now: time.Now,
		Ready: func() error { return nil }, Rate: -1,
	}))

	b.Cleanup(h.Close)
	at := func(part int64) string {
		return time.UnixMicro(listdata.Epoch + int64(runs)*part).UTC().Format(time.RFC3339)
	}
	l := &lists{B: b, db: db, url: h.URL, token: token}
	run := l.get("/api/v1/runs?limit=1").items("items")[0].text("id")
	l.replace = strings.NewReplacer("{run}", run, "{from}", at(500), "{to}", at(600))
	return l
}

// ask sends one request, and returns the number of items and the next cursor.
func (l *lists) ask(path string) (shown int, next string) {
	if strings.Contains(path, "?") && !strings.Contains(path, "limit=") {
		path += "&limit=100"
	}
	o := l.get(l.replace.Replace(path))
	if o.text("next") != "" {
		page, _, _ := strings.Cut(path, "&cursor=")
		next = page + "&cursor=" + o.text("next")
	}
	return cmp.Or(len(o.items("items")), map[bool]int{true: 1}[o.text("id") != ""]), next
}

func (l *lists) get(path string) object {
	l.Helper()
	req, err := http.NewRequest("GET", l.url+path, nil)
	if err != nil {
		l.Fatal(err)
	}

	req.Header.Set("Authorization", "Bearer "+l.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		l.Fatalf("%s: %d %s %v", path, resp.StatusCode, body, err)
	}
	return (&reply{t: l.B, what: path, body: string(body)}).object()
}

// read returns the number of rows that the server has read, including lookups without a match. No
// other client uses the server.
func (l *lists) read() (n int64) {
	l.Helper()
	rows, err := l.db.Raw().Query(`
			SHOW GLOBAL STATUS
			WHERE Variable_name IN ('Handler_read_first', 'Handler_read_key', 'Handler_read_last',
				'Handler_read_next', 'Handler_read_prev')`)
	if err != nil {
		l.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var name string
		var v int64
		if err := rows.Scan(&name, &v); err != nil {
			l.Fatal(err)
		}
		n += v
	}

	return n
}
