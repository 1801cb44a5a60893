// Package trip_test measures a run from its claim to its end.
package trip_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/result"
	"go-crontab/schedule"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

var (
	runs  = flag.Int("drain", 100_000, "how many overdue one-shots BenchmarkDrain works off")
	ended = flag.Int("ended", 0, "beside how many runs that have ended (MariaDB only)")
)

// life is a session for benchmarks: alone on its server, with its own clock.
type life struct {
	number trip.Owner
	last   atomic.Int64
}

func (l *life) Number() trip.Owner         { return l.number }
func (l *life) Now() job.Micros            { return job.MicrosOf(time.Now()) }
func (l *life) Fresh() bool                { return true }
func (l *life) Share() (int, int)          { return 0, 1 }
func (l *life) Peers() []map[string]string { return nil }
func (l *life) Mint(n int) int64           { return int64(l.number)<<32 | (l.last.Add(int64(n)) - int64(n)) }

// steps adds up the durations of changes.
type steps struct {
	mu   sync.Mutex
	took map[string]time.Duration
}

func (s *steps) Changed(name string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took[name] += took
}

// noop executes nothing: each run has succeeded as soon as it was started.
type noop struct {
	recorder *result.Recorder
	taken    atomic.Int64
	free     loop.Wake
	wrote    int           // written ends; used by the recorder alone
	done     chan struct{} // closed when all ends are written
}

const slots = 4000

func (x *noop) Free() int      { return slots - int(x.taken.Load()) }
func (x *noop) TooLate() int64 { return 0 }

// Written gives the slots of runs back.
func (x *noop) Written(launches []job.Launch) {
	x.taken.Add(-int64(len(launches)))
	x.free.Up()
	if x.wrote += len(launches); x.wrote == *runs {
		close(x.done)
	}
}

func (x *noop) Add(started []job.Started) {
	x.taken.Add(int64(len(started)))
	now := job.MicrosOf(time.Now())
	for i := range started {
		s := &started[i]
		x.recorder.Put(trip.End{Launch: s.Launch, JobID: s.JobID, Outcome: job.Succeeded, Final: true, Started: now,
			Ended: now}, false)
	}
}

func BenchmarkDrain(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		drain(b)
		b.StartTimer()
	}
}

// newServer starts a separate durable server, with a buffer pool that holds all data.
func newServer(b *testing.B) (*privatedb.DB, *sql.DB) {
	b.Helper()
	server, err := privatedb.Start(b.Context(), privatedb.Options{Pool: 512, Redo: 512, Durable: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(b.Context(), "trip"); err != nil {
		b.Fatal(err)
	}

	db, err := sql.Open(server.DSN("trip"), sql.MigrateTimeouts, 8)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return server, db
}

func drain(b *testing.B) {
	ctx := b.Context()
	server, db := newServer(b)
	fill(b, db, *runs)
	fillEnded(b, db, *ended)

	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	steps := &steps{took: map[string]time.Duration{}}
	x, session := lock.New(db, steps, log), &life{number: 7}
	session.last.Store(1)
	defs, prepared := schedule.NewDefinitions(), schedule.NewPrepared()
	done := make(chan struct{})

	noop := &noop{free: loop.NewWake(), done: done}
	noop.recorder = result.New(result.Config{Exclusion: x, Session: session, Executing: noop, Log: log})

	starter := schedule.NewStarter(schedule.StarterConfig{
		DB: db, Exclusion: x, Session: session, Definitions: defs, Prepared: prepared, Executing: noop, Ends: noEnds{},
		Lookout: schedule.Blind{}, Log: log, Window: time.Second, Wake: noop.free, WakeOverdue: loop.NewWake(),
	})
	claimer := schedule.NewClaimer(schedule.ClaimerConfig{
		DB: db, Exclusion: x, Session: session, Definitions: defs, Prepared: prepared, Lookout: schedule.Blind{},
		Starter: starter, Log: log, LookAhead: 10 * time.Second, Most: 8000,
	})

	if path := os.Getenv("CPUPROFILE"); path != "" {
		f, _ := os.Create(path)
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}

	serverBefore, nodeBefore := cpuOf(b, server.PID()), ownCPU()
	redoBefore := redo(b, db)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	began := time.Now()
	b.StartTimer()
	var all sync.WaitGroup
	all.Go(func() { claimer.Run(ctx) })
	all.Go(func() { starter.Run(ctx) })
	all.Go(func() { noop.recorder.Run(ctx) })
	<-done
	b.StopTimer()
	took := time.Since(began)
	n := float64(*runs)
	b.ReportMetric(n/took.Seconds(), "runs/s")
	b.ReportMetric(float64((cpuOf(b, server.PID())-serverBefore).Microseconds())/n, "server-µs/run")
	b.ReportMetric(float64((ownCPU()-nodeBefore).Microseconds())/n, "node-µs/run")
	b.ReportMetric(float64(redo(b, db)-redoBefore)/n, "redo-B/run")
	steps.mu.Lock()
	for name, took := range steps.took {
		b.ReportMetric(float64(took.Microseconds())/n, name+"-µs/run")
	}
	steps.mu.Unlock()
	cancel()
	all.Wait()

	var ended int
	err := db.Raw().QueryRow(`
		SELECT COUNT(*)
		FROM run
		WHERE state = 'ended' AND outcome = 'succeeded' AND job_id < 1000000`).Scan(&ended)
	if err != nil || ended != *runs {
		b.Fatalf("%d runs ended, expected %d: %v", ended, *runs, err)
	}
}

func fill(b *testing.B, db *sql.DB, n int) {
	if _, _, err := db.Migrate(context.Background()); err != nil {
		b.Fatal(err)
	}

	due := time.Now().Add(-time.Second)
	spec := job.Spec{App: "default", Name: "once", At: &due, Command: "true"}
	spec.Defaults(time.Now())
	text, err := spec.Encode()
	if err != nil {
		b.Fatal(err)
	}

	for at := 0; at < n; at += 1000 {
		var jobs, versions []string
		for i := at; i < min(n, at+1000); i++ {
			jobs = append(jobs, fmt.Sprintf("(%d,1,'once-%d',%d,%d)", i+1, i, i*7919%1024, due.UnixMicro()))
			versions = append(versions, fmt.Sprintf("(%d,1,'%s',0)", i+1, text))
		}

		for _, statement := range []string{
			"INSERT INTO job (id, app_id, name, hash, next_due) VALUES " + strings.Join(jobs, ","),
			"INSERT INTO job_version (job_id, version, definition, created) VALUES " + strings.Join(versions, ","),
		} {
			if _, err := db.Raw().Exec(statement); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// fillEnded adds ended runs of other jobs, one per millisecond of due time.
func fillEnded(b *testing.B, db *sql.DB, n int) {
	const atOnce = 500_000
	for from := 1; from <= n; from += atOnce {
		query := fmt.Sprintf(`
			INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim,
				due_now, hash, outcome, final, session, started, ended)
			SELECT seq, 1000000 + seq %% 10000, 1, 1700000000000000 + seq * 1000, 'schedule', 'ended', -2, 1,
				1700000000000000 + seq * 1000, seq %% 1024,
				'succeeded', 1, 1, 1700000000000000 + seq * 1000, 1700000000001000 + seq * 1000
			FROM seq_%d_to_%d`, from, min(n, from+atOnce-1))
		if _, err := db.Raw().Exec(query); err != nil {
			b.Fatal(err)
		}
	}
}

func redo(b *testing.B, db *sql.DB) (n int64) {
	var name string
	if err := db.Raw().QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'").Scan(&name, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOf returns the processor time of a process.
func cpuOf(b *testing.B, pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	var user, system int64
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}
