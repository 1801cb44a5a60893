// Command peers measures how fast go-crontab and River, a job queue in Go on PostgreSQL, drain the
// same backlog: jobs that do nothing, with durable commits and a permanent record of each job. They
// take turns, so a noisy machine is noisy for both. See make bench-peers.
//
// The servers are private ones in temporary folders: MariaDB or MySQL for go-crontab, PostgreSQL
// for River.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

func main() {
	jobs := flag.Int("jobs", 100_000, "how many jobs the backlog has")
	repeat := flag.Int("repeat", 3, "how often each is measured")
	program := flag.String("go-crontab", "bin/go-crontab", "the program")
	trip := flag.String("trip", "",
		"the compiled tests of test/trip, which measure the trip of go-crontab with nothing around it")
	flag.Parse()

	ctx := context.Background()
	contenders := []contender{
		{"River on PostgreSQL", func() (float64, error) { return riverRate(ctx, *jobs) }},
		{"go-crontab", func() (float64, error) { return benchRate(ctx, *program, *jobs) }},
	}
	if *trip != "" {
		contenders = append(contenders, contender{"the trip of go-crontab",
			func() (float64, error) { return drainRate(ctx, *trip, *jobs) }})
	}

	if err := compare(contenders, *jobs, *repeat); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// contender is a system that drains the backlog. Its rate is in jobs per second.
type contender struct {
	name string
	rate func() (float64, error)
}

// compare measures the contenders in turns, and prints a table of their rates.
func compare(contenders []contender, jobs, repeat int) error {
	rates := make([][]float64, len(contenders))
	for range repeat {
		for i, c := range contenders {
			rate, err := c.rate()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			rates[i] = append(rates[i], rate)
			fmt.Fprintf(os.Stderr, "%-28s %7.0f/s\n", c.name, rate)
		}
	}

	fmt.Printf("| %d jobs that do nothing | slowest | median | fastest | of River |\n|---|---|---|---|---|\n", jobs)

	river := median(rates[0])
	for i, c := range contenders {
		sorted := slices.Sorted(slices.Values(rates[i]))
		fmt.Printf("| %s | %.0f/s | %.0f/s | %.0f/s | %.2f |\n", c.name, sorted[0], median(sorted),
			sorted[len(sorted)-1], median(sorted)/river)
	}

	return nil
}

func median(rates []float64) float64 {
	sorted := slices.Sorted(slices.Values(rates))
	return sorted[len(sorted)/2]
}

// benchRate runs the program's own bench of a backlog.
func benchRate(ctx context.Context, program string, jobs int) (float64, error) {
	out, err := exec.CommandContext(ctx, program, "bench", "burst", "--jobs", strconv.Itoa(jobs), "--repeat", "1", "-o",
		"json").Output()
	if err != nil {
		return 0, err
	}

	var said struct {
		Results []struct {
			Rate float64 `json:"fires_per_second"`
		} `json:"results"`
	}
	if err := json.Unmarshal(out, &said); err != nil || len(said.Results) == 0 {
		return 0, fmt.Errorf("unexpected answer %q: %v", out, err)
	}

	return said.Results[0].Rate, nil
}

var runsPerSecond = regexp.MustCompile(`([0-9.]+) runs/s`)

// drainRate runs the benchmark of package test/trip.
func drainRate(ctx context.Context, tests string, jobs int) (float64, error) {
	out, err := exec.CommandContext(ctx, tests, "-test.run", "none", "-test.bench", "Drain", "-test.benchtime", "1x",
		"-drain", strconv.Itoa(jobs)).CombinedOutput()
	found := runsPerSecond.FindSubmatch(out)
	if err != nil || found == nil {
		return 0, fmt.Errorf("%v: %s", err, strings.TrimSpace(string(out)))
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// riverRate measures River on a separate server.
func riverRate(ctx context.Context, jobs int) (rate float64, err error) {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	server, err := startPostgres(dir)
	if err != nil {
		return 0, err
	}
	defer server.stop()

	config, err := pgxpool.ParseConfig("host=" + dir + " user=postgres database=postgres")
	if err != nil {
		return 0, err
	}
	config.MaxConns = 16

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()

	if err := await(ctx, pool); err != nil {
		return 0, err
	}

	seconds, err := drain(ctx, pool, jobs)
	return float64(jobs) / seconds, err
}

// noop is a job that does nothing.
type noop struct{}

func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	done *atomic.Int64
}

func (w worker) Work(context.Context, *river.Job[noop]) error {
	w.done.Add(1)
	return nil
}

// drain fills the queue, and measures until every job is recorded as completed.
func drain(ctx context.Context, pool *pgxpool.Pool, jobs int) (float64, error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}

	done := &atomic.Int64{}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker{done: done})

	client, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers: workers,
		Logger:  slog.New(slog.DiscardHandler),
		// As fast as River allows: it looks for jobs again at once.
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return 0, err
	}

	if err := fill(ctx, client, jobs); err != nil {
		return 0, err
	}
	if _, err := pool.Exec(ctx, "ANALYZE river_job"); err != nil {
		return 0, err
	}

	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}

	for done.Load() < int64(jobs) {
		time.Sleep(5 * time.Millisecond)
	}

	for left := 1; left > 0; {
		if err := pool.QueryRow(ctx,
			"SELECT COUNT(*) FROM river_job WHERE state <> 'completed'").Scan(&left); err != nil {
			return 0, err
		}
	}

	seconds := time.Since(began).Seconds()
	return seconds, client.Stop(ctx)
}

func fill(ctx context.Context, client interface {
	InsertManyFast(context.Context, []river.InsertManyParams) (int, error)
}, jobs int) error {
	all := make([]river.InsertManyParams, jobs)
	for i := range all {
		all[i].Args = noop{}
	}

	for part := range slices.Chunk(all, 10_000) {
		if _, err := client.InsertManyFast(ctx, part); err != nil {
			return err
		}
	}

	return nil
}

// postgres is a private server.
type postgres struct {
	cmd *exec.Cmd
}

// startPostgres makes a database cluster in a folder and starts a server on it. PostgreSQL refuses
// to run as root, so root runs it as the user postgres, which Debian's package creates.
func startPostgres(dir string) (*postgres, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	as, err := otherUser(dir)
	if err != nil {
		return nil, err
	}

	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust",
		"--no-instructions")
	initdb.SysProcAttr = as
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}

	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=",
		"-c", "shared_buffers=512MB", "-c", "max_wal_size=2GB", "-c", "fsync=on", "-c", "synchronous_commit=on")
	cmd.SysProcAttr = as
	return &postgres{cmd}, cmd.Start()
}

func (p *postgres) stop() {
	p.cmd.Process.Signal(syscall.SIGINT)
	p.cmd.Wait()
}

// programs returns the folder of PostgreSQL's programs.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return "", fmt.Errorf("PostgreSQL is not installed; on Debian: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}

func otherUser(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}

	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}

	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}

	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return &syscall.SysProcAttr{Credential: credential}, os.Chown(dir, uid, gid)
}

// await waits until the server answers.
func await(ctx context.Context, pool *pgxpool.Pool) error {
	var err error
	for range 300 {
		if err = pool.Ping(ctx); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("PostgreSQL does not answer: %w", err)
}
