package main

import (
	"fmt"
	"math"
	"strings"

	"go-crontab/internal/bench"
)

// mark is a target for a figure.
type mark struct {
	what    string
	command string // arguments of go-crontab bench that measure it
	want    float64
	most    bool   // want is an upper bound; false: a lower bound
	unit    string // written after the figures
	got     func(results) (float64, bool)
}

// marks are the targets for a machine with two processors, shared by nodes, server and benchmark,
// with durable commits.
func marks() []mark {
	rate := func(r *bench.Result) float64 { return r.Rate }
	p50 := func(r *bench.Result) float64 { return r.Late.P50 }
	p99 := func(r *bench.Result) float64 { return r.Late.P99 }
	statements := func(r *bench.Result) float64 { return r.Cost.Statements }
	memory := func(r *bench.Result) float64 { return r.Cost.NodeMB }
	redo := func(r *bench.Result) float64 { return r.Cost.Redo }
	node := func(r *bench.Result) float64 { return r.Cost.NodeUS }
	server := func(r *bench.Result) float64 {
		if r.Cost.ServerUS == 0 { // on another machine
			return math.NaN()
		}
		return r.Cost.ServerUS
	}

	limit := func(r *bench.Result) float64 {
		if r.Limit == nil {
			return math.NaN()
		}
		return r.Limit.Ratio
	}

	guard := func(figure func(bench.Cost) float64) func(results) (float64, bool) {
		return of("shell 5000 jobs", func(r *bench.Result) float64 {
			if r.Cost.GuardMB == 0 { // no guard, or it was not measured
				return math.NaN()
			}
			return figure(r.Cost)
		})
	}

	return []mark{
		{"no-op, sustained, one node", "steady --rate 20000", 20_000, false, "/s", best("steady ", rate)},
		{"… lateness p99 at 20,000/s", "steady --rate 20000", 50, true, " ms", of("steady 20000/s", p99)},
		{"… lateness p99 at 10,000/s", "steady --rate 10000", 5, true, " ms", of("steady 10000/s", p99)},
		{"lateness p50 at 1,000/s", "steady", 1, true, " ms", of("steady 1000/s", p50)},
		{"… p99", "steady", 1.5, true, " ms", of("steady 1000/s", p99)},
		{"1,000 at the same instant, p99", "herd", 10, true, " ms", of("herd 1000/s", p99)},
		{"… of HTTP requests", "http-herd", 40, true, " ms", of("http-herd 1000/s", p99)},
		{"HTTP, loopback", "http", 11_000, false, "/s", of("http 30000 jobs", rate)},
		{"… lateness p99 at 5,000/s", "http-steady --rate 5000", 10, true, " ms", of("http-steady 5000/s", p99)},
		{"`bash -c true`, of bare `os/exec`", "shell", .8, false, "", of("shell 5000 jobs", limit)},
		{"100,000 due one-shots drained", "burst", 25_000, false, "/s", of("burst 100000 jobs", rate)},
		{"… processor time of the server for each", "burst", 50, true, " µs", of("burst 100000 jobs", server)},
		{"… of the node", "burst", 30, true, " µs", of("burst 100000 jobs", node)},
		{"… redo log", "burst", 1_100, true, " B", of("burst 100000 jobs", redo)},
		{"… on 3 nodes", "burst --nodes 3", 25_000, false, "/s", of("burst 100000 jobs on 3 nodes", rate)},
		{
			"processor time of the server for a fire, at 20,000/s", "steady --rate 20000", 45, true, " µs",
			of("steady 20000/s", server),
		},
		{"… of the node", "steady --rate 20000", 30, true, " µs", of("steady 20000/s", node)},
		{"… redo log", "steady --rate 20000", 1_100, true, " B", of("steady 20000/s", redo)},
		{"statements per fire at 1,000/s", "steady", .5, true, "", of("steady 1000/s", statements)},
		{"… at 10,000/s", "steady --rate 10000", .05, true, "", of("steady 10000/s", statements)},
		{
			"processor time beside 1,000,000 jobs, of that beside 10,000", "table", 1.2, true, "",
			against("table 1000/s 1000000 jobs", "table 1000/s 10000 jobs", busy),
		},
		{
			"… beside 10,000,000 jobs", "table --jobs 10000000", 1.2, true, "",
			against("table 1000/s 10000000 jobs", "table 1000/s 10000 jobs", busy),
		},
		{
			"idle beside 1,000,000 jobs", "idle --jobs 1000000", 5, true, " statements/s",
			of("idle 1000000 jobs", func(r *bench.Result) float64 { return r.Idle.Statements }),
		},
		{
			"… processor of the node", "idle --jobs 1000000", .5, true, " %",
			of("idle 1000000 jobs", func(r *bench.Result) float64 { return r.Idle.NodeCPU }),
		},
		{
			"2 nodes on one server, of one", "nodes", .95, false, "",
			against("nodes 50000 jobs 2 nodes", "nodes 50000 jobs 1 node", rate),
		},
		{"4 nodes", "nodes", .95, false, "", against("nodes 50000 jobs 4 nodes", "nodes 50000 jobs 1 node", rate)},
		{"8 nodes", "nodes", .95, false, "", against("nodes 50000 jobs 8 nodes", "nodes 50000 jobs 1 node", rate)},
		{
			"20 ms to MySQL and back, at 5,000/s", "slow --rate 5000 --round-trip 20ms", 5_000, false, "/s",
			of("slow 5000/s 20ms", rate),
		},
		{"… lateness p99", "slow --rate 5000 --round-trip 20ms", 50, true, " ms", of("slow 5000/s 20ms", p99)},
		{"memory with 10,000 prepared runs", "steady", 64, true, " MB", of("steady 1000/s", memory)},
		{"… at 20,000/s", "steady --rate 20000", 150, true, " MB", of("steady 20000/s", memory)},
		{"processor of the guard beside commands", "shell", 1, true, " %", guard(func(c bench.Cost) float64 {
			return c.GuardCPU
		})},
		{
			"… its memory, without the text that it shares with the node", "shell", 10, true, " MB",
			guard(func(c bench.Cost) float64 { return c.GuardMB }),
		},
		{"jobs created, 1,000 with a request", "api", 5_000, false, "/s", of("api 1000 jobs at a time", rate)},
		{"… one by one", "api", 500, false, "/s", of("api 1 job at a time", rate)},
		{
			"one of three nodes killed at 1,000/s, the latest start", "failover", 2_000, true, " ms",
			of("failover 1000/s", func(r *bench.Result) float64 { return r.Late.Max }),
		},
		{
			"while old records are removed at 5,000/s, p50, of that while none are", "purge --rate 5000", 1.05, true,
			"", against("purge 5000/s old records go", "purge 5000/s old records stay", p50),
		},
		{
			"… p99", "purge --rate 5000", 1.05, true, "",
			against("purge 5000/s old records go", "purge 5000/s old records stay", p99),
		},
		{
			"binary log: a burst, of that without", "--binlog burst", .8, false, "",
			against("burst 100000 jobs"+binlogged, "burst 100000 jobs", rate),
		},
		{
			"… p99 without, of that with, at 1,000/s", "--binlog steady", .8, false, "",
			against("steady 1000/s", "steady 1000/s"+binlogged, p99),
		},
	}
}

// binlogged ends the name of a result if its server wrote a binary log.
const binlogged = ", binary log"

// results maps names to results.
type results map[string]*bench.Result

func of(name string, figure func(*bench.Result) float64) func(results) (float64, bool) {
	return func(all results) (float64, bool) {
		r := all[name]
		if r == nil || strings.HasPrefix(name, "idle ") && r.Idle == nil {
			return 0, false
		}
		f := figure(r)
		return f, !math.IsNaN(f)
	}
}

// best returns the highest figure of the results with a prefix, on servers without a binary log.
func best(prefix string, figure func(*bench.Result) float64) func(results) (float64, bool) {
	return func(all results) (most float64, found bool) {
		for name, r := range all {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, binlogged) {
				most, found = max(most, figure(r)), true
			}
		}
		return most, found
	}
}

// against returns the ratio of a figure between two results.
func against(name, other string, figure func(*bench.Result) float64) func(results) (float64, bool) {
	one, two := of(name, figure), of(other, figure)
	return func(all results) (float64, bool) {
		a, ok := one(all)
		b, known := two(all)
		return a / b, ok && known && b > 0
	}
}

// busy is the CPU time of nodes and server.
func busy(r *bench.Result) float64 { return r.Cost.NodeCPU + r.Cost.ServerCPU }

// marksTable compares results with the marks. A mark is reached at 1 and above.
func marksTable(all results) string {
	var b strings.Builder
	for _, m := range marks() {
		got, ok := m.got(all)
		if !ok {
			continue
		}

		sign, reached := "≥", got/m.want
		if m.most {
			sign, reached = "≤", m.want/got
		}

		shown := fmt.Sprintf("%.2f", reached)
		switch {
		case reached >= 10:
			shown = "more than 10"
		case reached < 1:
			shown = "**" + shown + "**"
		}

		fmt.Fprintf(&b, "| %s | %s %s%s | %s%s | %s | `%s` |\n", m.what, sign, figureOf(m.want), m.unit, figureOf(got),
			m.unit, shown, m.command)
	}

	return b.String()
}

// figureOf formats a mark without trailing zeros.
func figureOf(f float64) string {
	if text := figure(f); strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	} else {
		return text
	}
}
