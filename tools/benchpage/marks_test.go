package main

import (
	"slices"
	"strings"
	"testing"

	"go-crontab/internal/bench"
)

// TestMarks checks that the table compares each measured mark with its target in the right
// direction, and names an existing command.
func TestMarks(t *testing.T) {
	t.Parallel()
	all := results{}
	for _, r := range []*bench.Result{
		{Scenario: "steady", Variant: "1000/s", Rate: 1000, Late: bench.Late{P50: .5, P99: 10}},
		{Scenario: "steady", Variant: "20000/s", Rate: 5000, Cost: bench.Cost{NodeMB: 15}},
		{Scenario: "burst", Variant: "100000 jobs", Seconds: 6.4, Rate: 15_625},
		{Scenario: "idle", Variant: "1000000 jobs", Idle: &bench.Idle{Statements: 2.5, NodeCPU: .6}},
		{Scenario: "nodes", Variant: "50000 jobs 1 node", Rate: 10_000},
		{Scenario: "nodes", Variant: "50000 jobs 2 nodes", Rate: 9_500},
		{Scenario: "shell", Variant: "5000 jobs"}, // without a limit
	} {
		all[r.Name()] = r
	}

	all["burst 100000 jobs"+binlogged] = &bench.Result{Rate: 12_500}
	text := marksTable(all)
	for _, want := range []string{
		"| no-op, sustained, one node | ≥ 20,000/s | 5,000/s | **0.25** | `steady --rate 20000` |",
		"| lateness p50 at 1,000/s | ≤ 1 ms | 0.5 ms | 2.00 |", "| … p99 | ≤ 1.5 ms | 10 ms | **0.15** |",
		"| 100,000 due one-shots drained | ≥ 25,000/s | 15,625/s | **0.62** |",
		"| idle beside 1,000,000 jobs | ≤ 5 statements/s | 2.5 statements/s | 2.00 |",
		"| … processor of the node | ≤ 0.5 % | 0.6 % | **0.83** |",
		"| 2 nodes on one server, of one | ≥ 0.95 | 0.95 | 1.00 |", "| more than 10 |",
		"| binary log: a burst, of that without | ≥ 0.8 | 0.8 | 1.00 | `--binlog burst` |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not say %q:\n%s", want, text)
		}
	}

	if strings.Contains(text, "os/exec") || strings.Contains(text, "4 nodes") {
		t.Errorf("the table has marks that were not measured:\n%s", text)
	}
	for _, m := range marks() {
		words := strings.Fields(m.command)
		if !slices.ContainsFunc(bench.Names(), func(name string) bool { return slices.Contains(words, name) }) {
			t.Errorf("%s: %q names no scenario", m.what, m.command)
		}
	}
}
