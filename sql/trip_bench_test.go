package sql_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/sql"
)

// BenchmarkTrip takes tasks through the trip by the statements and batches that nodes use, one step after the other, and
// says what each step costs the server: processor time of the connections (µs/…), of its other threads, which purge and write
// (bg-µs/…), and bytes of redo log (B/…), all for each task. A burst is of one-shot jobs, steady of jobs that are planned ahead.
// -benchtime 1x is enough; the table stands in docs/performance.md.
func BenchmarkTrip(b *testing.B) {
	b.Run("burst", func(b *testing.B) { trip(b, 20_000, 1, 500) })
	b.Run("steady", func(b *testing.B) { trip(b, 500, 40, 100) })
}

func trip(b *testing.B, jobs, ahead, batch int) {
	ctx := context.Background()
	server, err := privatedb.Start(ctx, privatedb.Options{Pool: 1024, Redo: 512, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Stop() })
	for b.Loop() {
		b.StopTimer()
		if err := server.CreateSchema(ctx, "trip"); err != nil {
			b.Fatal(err)
		}
		t := newTraveller(b, server, jobs, ahead, batch)
		b.StartTimer()
		t.travel()
		b.StopTimer()
		t.exec("DROP DATABASE trip")
		t.db.Close()
		b.StartTimer()
	}
}

type traveller struct {
	*testing.B
	ctx     context.Context
	server  *privatedb.DB
	db      *sql.DB
	session uuid.UUID
	ahead   int
	batch   int
	now     job.Micros
	fires   int
	sums    map[string]cost // by step
}

func newTraveller(b *testing.B, server *privatedb.DB, jobs, ahead, batch int) *traveller {
	m, err := sql.Open(server.DSN("trip"), sql.MigrateTimeouts, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	if _, _, err := m.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open(server.DSN("trip"), sql.DefaultTimeouts, 2)
	if err != nil {
		b.Fatal(err)
	}
	t := &traveller{B: b, ctx: context.Background(), server: server, db: db, session: uuid.New(), ahead: ahead, batch: batch, now: 1_790_000_000_000_000, fires: jobs * ahead, sums: map[string]cost{}}
	for from := 0; from < jobs; from += 500 {
		t.tx(func(tx *sql.Tx) error {
			var made []*job.Job
			var specs []string
			for i := from; i < min(jobs, from+500); i++ {
				at := time.UnixMicro(int64(t.now)).UTC()
				spec := job.Spec{App: "bench", Name: fmt.Sprintf("job-%06d", i), At: &at, Handler: "none"}
				spec.Defaults(at)
				text, err := spec.Encode()
				if err != nil {
					return err
				}
				made, specs = append(made, &job.Job{Spec: spec, Version: 1, Hash: i * 7 % job.Hashes, NextDue: t.now + job.Micros(i), Created: 1, Updated: 1}), append(specs, text)
			}
			return tx.InsertJobs(made, specs)
		})
	}
	return t
}

func (t *traveller) exec(query string, args ...any) {
	t.Helper()
	if _, err := t.db.Raw().ExecContext(t.ctx, query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (t *traveller) tx(fn func(tx *sql.Tx) error) {
	t.Helper()
	if err := t.db.Tx(t.ctx, fn); err != nil {
		t.Fatal(err)
	}
}

// travel takes all tasks from their jobs' cursors to history.
func (t *traveller) travel() {
	t.step("plan", t.plan)
	var claimed []job.Task
	t.step("claim", func() { claimed = t.claim() })
	second := len(claimed) / t.ahead
	for part := range slices.Chunk(claimed, second) { // the tasks of a job end before its next ones begin
		t.step("start", func() { t.inBatches(part, t.start) })
		t.step("end", func() { t.inBatches(part, t.end) })
	}
	if t.ahead == 1 {
		t.step("tidy", t.tidy)
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(t.fires) }
	var total cost
	for _, name := range []string{"plan", "claim", "start", "end", "tidy"} {
		c := t.sums[name]
		t.Logf("%-6s %6.1f µs + %5.1f behind, %5.0f B", name, micros(c.own), micros(c.all-c.own), float64(c.log)/float64(t.fires))
		t.ReportMetric(micros(c.all), name+"-µs/task")
		total.own, total.all, total.log = total.own+c.own, total.all+c.all, total.log+c.log
	}
	t.Logf("%-6s %6.1f µs + %5.1f behind, %5.0f B", "all", micros(total.own), micros(total.all-total.own), float64(total.log)/float64(t.fires))
	t.ReportMetric(micros(total.all), "all-µs/task")
}

func (t *traveller) plan() {
	slice := []sql.Slice{{ToHash: job.Hashes, Before: t.now + 1_000_000}}
	for {
		ids, _, err := t.db.DueJobs(t.ctx, slice, t.now, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) == 0 {
			return
		}
		slices.Sort(ids)
		for part := range slices.Chunk(ids, max(1, min(500, 2000/t.ahead))) {
			t.tx(func(tx *sql.Tx) error {
				rows, err := tx.LockJobs(part)
				if err != nil {
					return err
				}
				var cursors []sql.Cursor
				var tasks []job.Task
				for _, id := range part {
					j := rows[id]
					c := sql.Cursor{JobID: id, Version: j.Version, Seen: j.NextDue}
					if t.ahead > 1 {
						c.Next = j.NextDue + job.Micros(t.ahead*1_000_000)
					}
					cursors = append(cursors, c)
					for i := range t.ahead {
						due := j.NextDue + job.Micros(i*1_000_000)
						tasks = append(tasks, job.Task{JobID: id, Due: due, DueNow: due, Hash: j.Hash})
					}
				}
				if err := tx.MoveCursors(cursors); err != nil {
					return err
				}
				return tx.InsertTasks(tasks)
			})
		}
	}
}

func (t *traveller) claim() (all []job.Task) {
	base := int64(1_000_000)
	for {
		found, err := t.db.IdleTasks(t.ctx, []sql.Slice{{ToHash: job.Hashes, Before: 2 * t.now}}, 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return all
		}
		var locks []sql.LockID
		var ids []int64
		for _, f := range found {
			ids, locks = append(ids, f.ID), append(locks, sql.BucketLock(f.Hash/64))
		}
		t.tx(func(tx *sql.Tx) error {
			if err := tx.TakeLocks(locks); err != nil {
				return err
			}
			took, err := tx.Claim(t.session, base, ids)
			all = append(all, took...)
			return err
		})
		base += 10 * int64(t.fires)
	}
}

func (t *traveller) inBatches(tasks []job.Task, do func([]job.Task)) {
	for part := range slices.Chunk(tasks, t.batch) {
		do(part)
	}
}

func (t *traveller) start(tasks []job.Task) {
	t.tx(func(tx *sql.Tx) error {
		var jobIDs []int64
		for _, x := range tasks {
			jobIDs = append(jobIDs, x.JobID)
		}
		slices.Sort(jobIDs)
		jobIDs = slices.Compact(jobIDs)
		if _, _, err := tx.LockFreeJobs(jobIDs); err != nil {
			return err
		}
		latest := slices.MaxFunc(tasks, func(a, b job.Task) int { return cmp.Compare(a.Due, b.Due) }).Due
		if _, _, err := tx.Around(tasks, jobIDs, nil, latest+250_000); err != nil {
			return err
		}
		return tx.Start(tasks, latest, 1_000_000)
	})
}

func (t *traveller) end(tasks []job.Task) {
	t.tx(func(tx *sql.Tx) error {
		var ids, launches []int64
		var runs []job.Run
		for _, x := range tasks {
			ids, launches = append(ids, x.ID), append(launches, x.Launch.N)
			runs = append(runs, job.Run{Launch: x.Launch, JobID: x.JobID, App: "bench", Due: x.Due, Until: x.Due, Count: 1, Attempt: 1, Final: true,
				Started: x.Due + 400, Ended: x.Due + 900, Lateness: 400, Node: "node-1", Result: job.Result{Outcome: job.Succeeded}})
		}
		return tx.EndAt(t.session, ids, launches, runs)
	})
}

func (t *traveller) tidy() {
	for after, more := int64(0), true; more; more = after != 0 {
		var err error
		if after, err = t.db.FinishJobs(t.ctx, after, 500); err != nil {
			t.Fatal(err)
		}
	}
}

// cost is what the server has used so far.
type cost struct {
	own, all time.Duration // processor time: of threads that serve connections, and of all
	log      int64         // bytes of redo log
}

func (t *traveller) cost() (c cost) {
	rows, err := t.db.Raw().QueryContext(t.ctx, "SELECT TID FROM information_schema.processlist")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	serves := map[string]bool{}
	for rows.Next() {
		var tid string
		if err := rows.Scan(&tid); err != nil {
			t.Fatal(err)
		}
		serves[tid] = true
	}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", t.server.PID()))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		c.all += time.Duration(n)
		if serves[filepath.Base(filepath.Dir(f))] {
			c.own += time.Duration(n)
		}
	}
	var name string
	if err := t.db.Raw().QueryRowContext(t.ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'").Scan(&name, &c.log); err != nil {
		t.Fatal(err)
	}
	return c
}

// step does something and reports what it cost, the purge behind it included.
func (t *traveller) step(name string, do func()) {
	t.exec("SET GLOBAL innodb_max_purge_lag_wait = 0")
	before := t.cost()
	do()
	t.exec("SET GLOBAL innodb_max_purge_lag_wait = 0")
	after := t.cost()
	sum := t.sums[name]
	t.sums[name] = cost{own: sum.own + after.own - before.own, all: sum.all + after.all - before.all, log: sum.log + after.log - before.log}
}
