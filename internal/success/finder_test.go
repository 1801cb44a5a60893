package success

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/testdb"
)

type fixture struct {
	*testing.T
	db *sql.DB
	id int64
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	db, err := sql.Open(testdb.DSN(t), sql.MigrateTimeouts, 1) // one connection, so that its reads can be counted
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return &fixture{T: t, db: db}
}

func (f *fixture) exec(statement string, args ...any) {
	f.Helper()
	if _, err := f.db.Raw().Exec(statement, args...); err != nil {
		f.Fatalf("%s: %v", statement, err)
	}
}

// run is a row of the table run.
type run struct {
	due, request, attempt int64
	outcome               string // "": it has not ended
}

func (f *fixture) insert(jobID int64, runs ...run) {
	f.Helper()
	for len(runs) > 0 {
		some := runs[:min(len(runs), 1000)]
		runs = runs[len(some):]
		var values []string
		for _, r := range some {
			f.id++
			state, owner, kind := "ended", -2, "schedule"
			if r.outcome == "" {
				r.outcome, state, owner = "none", "executing", 1
			}
			if r.request != 0 {
				kind = "manual"
			}
			values = append(values, fmt.Sprintf("(%d, %d, 1, %d, '%s', %d, %d, '%s', %d, 1, %d, 0, '%s')",
				f.id, jobID, r.due, kind, r.request, max(1, r.attempt), state, owner, r.due, r.outcome))
		}
		f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, request, attempt, state, owner, claim, due_now, hash, outcome)
			VALUES ` + strings.Join(values, ", "))
	}
}

func (f *fixture) find(x *Finder, runs ...job.Started) []job.Micros {
	f.Helper()
	out := make([]job.Micros, len(runs))
	for i := range out {
		out[i] = -1
	}
	if err := x.LastSuccess(f.Context(), runs, func(i int, due job.Micros) { out[i] = due }); err != nil {
		f.Fatal(err)
	}
	return out
}

func of(jobID int64, due job.Micros) job.Started {
	return job.Started{JobID: jobID, Kind: job.FromSchedule, Due: due}
}

// TestLastSuccess: the previous run, an earlier one, none, and all in one question.
func TestLastSuccess(t *testing.T) {
	f := setUp(t)
	f.insert(1, run{10, 0, 1, "succeeded"}, run{20, 0, 1, "failed"}, run{20, 0, 2, "succeeded"})
	f.insert(2, run{10, 0, 1, "succeeded"}, run{20, 0, 1, "skipped"}, run{25, 0, 1, ""}, run{30, 0, 1, "succeeded"})
	f.insert(3, run{10, 0, 1, "failed"}, run{20, 0, 1, "lost"})
	f.insert(4, run{10, 0, 1, "failed"}, run{10, 7, 1, "succeeded"}, run{20, 0, 1, "failed"})
	x := NewFinder(f.db)
	got := f.find(x, of(1, 30), of(1, 20), of(2, 30), of(3, 30), of(4, 30), of(5, 30), of(1, 10))
	if want := "[20 10 10 0 10 0 0]"; fmt.Sprint(micros(got)) != want {
		t.Errorf("got %v, want %s", micros(got), want)
	}
}

// TestRowsRead: a healthy job costs one row, however many runs it has. Of a long stretch of failures only the new runs
// are read, and entries of the index.
func TestRowsRead(t *testing.T) {
	f := setUp(t)
	const n = 20_000
	var good, bad []run
	for i := range int64(n) {
		good, bad = append(good, run{1000 + i, 0, 1, "succeeded"}), append(bad, run{1000 + i, 0, 1, "failed"})
	}
	f.insert(1, good...)
	f.insert(2, bad...)
	f.exec("ANALYZE TABLE run")
	x := NewFinder(f.db)
	reads := func(do func()) int64 {
		before := testdb.Reads(t, f.db.Raw())
		own := testdb.Reads(t, f.db.Raw()) - before
		before = testdb.Reads(t, f.db.Raw())
		do()
		return testdb.Reads(t, f.db.Raw()) - before - own
	}

	var healthy []job.Started
	for range 100 {
		healthy = append(healthy, of(1, job.Micros(1000+n/2+len(healthy))))
	}
	if got := reads(func() { f.find(x, healthy...) }); got > 200 {
		t.Errorf("100 healthy jobs: read %d rows", got)
	}
	first := reads(func() { f.find(x, of(2, 900_000)) })
	f.insert(2, run{500_000, 0, 1, "failed"})
	again := reads(func() { f.find(x, of(2, 900_000)) })
	if first < n || first > 10*n || again > n+100 {
		t.Errorf("a failing job: read %d rows, then %d", first, again)
	}
	t.Logf("a failing job: read %d rows, then %d", first, again)
}

func micros(in []job.Micros) (out []int64) {
	for _, m := range in {
		out = append(out, int64(m))
	}
	return out
}

// TestAgainstTheRows: whatever happens to the runs of a job, the answers are those of a plain query.
func TestAgainstTheRows(t *testing.T) {
	f := setUp(t)
	x := NewFinder(f.db)
	seed := time.Now().UnixNano()
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	t.Logf("seed %d", seed)
	due, request := int64(1000), int64(0)
	for range 150 {
		// The schedule goes on, mostly with failures; single runs go on executing for long.
		var more []run
		for range 1 + rng.IntN(120) {
			due += 10
			outcome := []string{"failed", "skipped", "lost", "failed"}[rng.IntN(4)]
			switch n := rng.IntN(600); {
			case n == 0:
				outcome = "succeeded"
			case n == 1:
				outcome = ""
			}
			more = append(more, run{due, 0, 1, outcome})
		}
		f.insert(1, more...)

		// Some past due time runs again, and some run ends that was executing.
		if rng.IntN(4) == 0 {
			request++
			f.insert(1, run{1000 + 10*rng.Int64N((due-1000)/10+1), request, 1, []string{"succeeded", "failed", ""}[rng.IntN(3)]})
		}
		if rng.IntN(4) == 0 {
			f.exec(`UPDATE run SET state = 'ended', owner = -2, outcome = ? WHERE state = 'executing' LIMIT 1`,
				[]string{"succeeded", "failed"}[rng.IntN(2)])
		}

		ask := of(1, job.Micros(due+10))
		if rng.IntN(5) == 0 { // a past due time runs again
			ask.Kind, ask.Due = job.Manual, job.Micros(1000+10*rng.Int64N((due-1000)/10+1))
		}
		var want int64
		err := f.db.Raw().QueryRow(`SELECT COALESCE(MAX(due), 0) FROM run WHERE job_id = 1 AND due < ? AND outcome = 'succeeded'`,
			int64(ask.Due)).Scan(&want)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.find(x, ask)[0]; int64(got) != want {
			t.Fatalf("before %d: got %d, want %d; it knows %+v", int64(ask.Due), int64(got), want, x.known[1])
		}
	}
	if x.known[1].upto == 0 {
		t.Error("it remembers nothing")
	}
}

// TestLongFailure: 100,000 failures in a row are walked through once, even if no single start has the time for it.
func TestLongFailure(t *testing.T) {
	f := setUp(t)
	var runs []run
	for i := range int64(100_000) {
		runs = append(runs, run{1000 + i, 0, 1, "failed"})
	}
	runs[0].outcome = "succeeded"
	f.insert(1, runs...)
	x := NewFinder(f.db)

	tries := 0
	for ; ; tries++ { // given back whenever the time is up
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		got := job.Micros(-1)
		err := x.LastSuccess(ctx, []job.Started{of(1, 500_000)}, func(_ int, due job.Micros) { got = due })
		cancel()
		if err == nil {
			if got != 1000 {
				t.Errorf("got %d", int64(got))
			}
			break
		}
		if tries > 1000 {
			t.Fatalf("it gets nowhere: %v, it knows %+v", err, x.known[1])
		}
	}

	began := time.Now()
	x = NewFinder(f.db)
	f.find(x, of(1, 500_000))
	first := time.Since(began)
	began = time.Now()
	for range 20 {
		f.insert(1, run{500_000 + f.id, 0, 1, "failed"})
		if got := f.find(x, of(1, job.Micros(900_000+f.id)))[0]; got != 1000 {
			t.Fatalf("got %d", int64(got))
		}
	}
	t.Logf("%d tries of 100 ms, the first walk took %s, each further look %s", tries, first, time.Since(began)/20)
}
