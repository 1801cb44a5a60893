package node_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/privatedb"
	"go-crontab/node"
)

// benchServer starts a server with durable commits and a buffer pool that fits its tables.
func benchServer(b *testing.B) (*privatedb.DB, string) {
	b.Helper()
	server, err := privatedb.Start(b.Context(), privatedb.Options{Pool: 1024, Redo: 512, Durable: true})
	if err != nil {
		b.Fatal(err)
	}

	b.Cleanup(func() { server.Stop() })
	if err := server.CreateSchema(b.Context(), "bench"); err != nil {
		b.Fatal(err)
	}
	return server, server.DSN("bench")
}

func (c *cluster) status(name string) float64 {
	c.t.Helper()
	var key, value string
	if err := c.db.Raw().QueryRow("SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&key, &value); err != nil {
		c.t.Fatal(err)
	}
	f, _ := strconv.ParseFloat(value, 64)
	return f
}

// BenchmarkSustained runs every-second jobs with an executor that does nothing, each with its row
// on durable commits, and reports the cost. It is not a loop of b.N: one run takes a fixed time.
func BenchmarkSustained(b *testing.B) {
	for _, rate := range []int{1000, 5000, 10_000} {
		b.Run(fmt.Sprint(rate, "_per_s"), func(b *testing.B) { sustained(b, rate, time.Second, 10*time.Second) })
	}
}

// BenchmarkHerd does the same with jobs that are all due at the same instant of each second.
func BenchmarkHerd(b *testing.B) {
	for _, rate := range []int{1000, 5000} {
		b.Run(fmt.Sprint(rate, "_at_once"), func(b *testing.B) { sustained(b, rate, 0, 10*time.Second) })
	}
}

func sustained(b *testing.B, rate int, spread, length time.Duration) {
	_, dsn := benchServer(b)
	c := newLawlessClusterOn(b, dsn)
	n := c.start("bench", func(cfg *node.Config) {
		cfg.Executor, cfg.Slots, cfg.Expiry = execute.Noop{}, 100_000, 20*time.Second
	})
	first := n.Now().Add(5 * time.Second)
	c.everySecond(rate, first, spread)
	warm := first.Add(5 * time.Second)
	for n.Now().Before(warm) {
		time.Sleep(10 * time.Millisecond)
	}

	b.ResetTimer()
	cpu, questions := cpuTime(), c.status("Questions")
	from := n.Now()
	time.Sleep(length)
	to := n.Now()
	b.StopTimer()
	questions, cpu = c.status("Questions")-questions, cpuTime()-cpu
	time.Sleep(500 * time.Millisecond)
	rows, err := c.db.Raw().Query(`
		SELECT GREATEST(0, started - due)
		FROM run
		WHERE state = 'ended' AND started > 0 AND due >= ? AND due < ?`, from.UnixMicro(), to.UnixMicro())
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()

	var late []float64
	for rows.Next() {
		var us float64
		if err := rows.Scan(&us); err != nil {
			b.Fatal(err)
		}
		late = append(late, us/1000)
	}

	if len(late) == 0 {
		b.Fatal("nothing ran")
	}

	slices.Sort(late)
	fires := float64(len(late))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(fires/to.Sub(from).Seconds(), "fires/s")
	b.ReportMetric(late[len(late)/2], "p50-ms")
	b.ReportMetric(late[len(late)*99/100], "p99-ms")
	b.ReportMetric(late[len(late)-1], "max-ms")
	b.ReportMetric(questions/fires, "statements/fire")
	b.ReportMetric(cpu.Seconds()/to.Sub(from).Seconds()*100, "node-cpu-%")
	b.ReportMetric(rss(), "node-MB")
	b.ReportMetric(n.Status().Lead.Seconds()*1000, "lead-ms")
}

// rss returns the resident memory of this process, in MB.
func rss() float64 {
	runtime.GC()
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmRSS:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}
