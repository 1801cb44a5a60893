package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Report is the result of a call of Run.
type Report struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	Machine Machine   `json:"machine"`
	Results []Result  `json:"results"`
}

// Machine describes the machine and the server.
type Machine struct {
	OS       string            `json:"os"`
	CPU      string            `json:"cpu,omitempty"`
	Cores    int               `json:"cores"`
	Server   string            `json:"server"`
	Private  bool              `json:"private"` // started for the bench, on the same machine
	Settings map[string]string `json:"settings"`
}

// Result is the result of a scenario's variant.
type Result struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"` // distinguishes it from other results of the scenario

	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // measured time
	Fires   int64   `json:"fires"`
	Rate    float64 `json:"fires_per_second"`
	Late    Late    `json:"lateness_ms"`
	Cost    Cost    `json:"cost"`
	Account Account `json:"account"`
	Limit   *Limit  `json:"limit,omitempty"`

	Idle   *Idle   `json:"idle,omitempty"`   // of idle nodes
	Writes *Writes `json:"writes,omitempty"` // of jobs that were created

	Removed float64 `json:"removed_per_second,omitempty"` // old records that were removed during the measurement

	Rates  []float64 `json:"runs,omitempty"` // rates of all runs, if there were several
	Noise  float64   `json:"noise"`          // spread of the times of equal work, see noise; 0: none
	Noisy  bool      `json:"noisy"`          // Noise is too large to conclude anything
	Series []Second  `json:"series,omitempty"`
}

// Late is the lateness of starts, in milliseconds. A negative value means that a start came too
// early.
type Late struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Cost is the cost of the fires. The server's figures include all its work in the span.
type Cost struct {
	Statements float64 `json:"statements_per_fire"` // including BEGIN and COMMIT
	Commits    float64 `json:"commits_per_fire"`
	Redo       float64 `json:"redo_bytes_per_fire"`
	Binlog     float64 `json:"binlog_bytes_per_fire,omitempty"`
	NodeCPU    float64 `json:"node_cpu_percent"`   // 100 is one processor; all nodes together
	NodeMB     float64 `json:"node_mb"`            // resident, of the largest node
	NodeUS     float64 `json:"node_us_per_fire"`   // CPU time, all nodes together
	ServerUS   float64 `json:"server_us_per_fire"` // CPU time; 0: unknown
	GuardCPU   float64 `json:"guard_cpu_percent"`  // of the guard that used most
	GuardMB    float64 `json:"guard_mb,omitempty"` // resident, without the program's text
	ServerCPU  float64 `json:"server_cpu_percent,omitempty"`
	ServerMB   float64 `json:"server_mb,omitempty"`
}

// Account compares the due times of a measured span with the runs.
type Account struct {
	Due     int64 `json:"due"`
	Once    int64 `json:"recorded_once"`
	Missing int64 `json:"missing"`
	// due times that the nodes had not reached when the bench ended, because too much was due
	Open    int64            `json:"open,omitempty"`
	Doubled int64            `json:"doubled"`
	Early   int64            `json:"early"`
	Other   map[string]int64 `json:"other_outcomes,omitempty"` // outcomes except succeeded
}

// OK reports whether every due time has exactly one record and none started early.
func (a Account) OK() bool { return a.Missing == 0 && a.Doubled == 0 && a.Early == 0 }

// Limit is the speed of the machine in the same run without our code.
type Limit struct {
	What  string  `json:"what"`
	Rate  float64 `json:"per_second"`
	Ratio float64 `json:"ratio"` // our rate divided by Rate
}

// Idle is the cost of nodes while no job is due.
type Idle struct {
	Jobs       int64   `json:"jobs"`
	Statements float64 `json:"statements_per_second"` // per node
	NodeCPU    float64 `json:"node_cpu_percent"`      // per node
	ServerCPU  float64 `json:"server_cpu_percent,omitempty"`
}

// Second is one second of the measured span, for plots.
type Second struct {
	At    float64 `json:"at"` // seconds since the span began
	Fires int     `json:"fires"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// Name returns the name of a result. The name is the same in each report.
func (r *Result) Name() string {
	if r.Variant == "" {
		return r.Scenario
	}
	return r.Scenario + " " + r.Variant
}

// lateOf returns percentiles of latenesses in microseconds. It sorts the slice.
func lateOf(us []int64) Late {
	if len(us) == 0 {
		return Late{}
	}
	slices.Sort(us)

	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(us)))) - 1
		return float64(us[max(0, i)]) / 1000
	}

	return Late{P50: at(.5), P90: at(.9), P99: at(.99), P999: at(.999), Max: float64(us[len(us)-1]) / 1000}
}

// median returns the run with the median rate or, for idle nodes, the median statements per second.
func median(runs []Result) Result {
	key := func(r Result) float64 {
		if r.Idle != nil {
			return r.Idle.Statements
		}
		return r.Rate
	}

	slices.SortStableFunc(runs, func(a, b Result) int {
		switch x, y := key(a), key(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})

	m := runs[len(runs)/2]
	if len(runs) > 1 {
		for _, r := range runs {
			m.Rates = append(m.Rates, key(r))
			m.Noisy = m.Noisy || r.Noisy
			m.Noise = max(m.Noise, r.Noise)
			m.Account = worse(m.Account, r.Account)
		}
	}

	return m
}

// worse returns b if only b is wrong, so that the result shows an error of any run.
func worse(a, b Account) Account {
	if a.OK() && !b.OK() {
		return b
	}
	return a
}

// ReadReport reads a report that -o json wrote.
func ReadReport(text []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("want the JSON of an earlier bench: %w", err)
	}
	if len(r.Results) == 0 || r.Machine.Server == "" {
		return nil, fmt.Errorf("want the JSON of an earlier bench, with results")
	}
	return &r, nil
}

// Change is the difference between two results of the same name.
type Change struct {
	Name     string  `json:"name"`
	Before   float64 `json:"before"` // fires per second; for idle nodes statements per second
	After    float64 `json:"after"`
	Ratio    float64 `json:"ratio"`
	P99      float64 `json:"p99_ratio,omitempty"`
	Cost     float64 `json:"statements_ratio,omitempty"`
	Distinct bool    `json:"distinct"` // the ranges of rates differ by more than the noise
}

// Compare compares results with earlier ones of the same names.
func Compare(before, after *Report) []Change {
	var out []Change
	for _, a := range after.Results {
		i := slices.IndexFunc(before.Results, func(b Result) bool { return b.Name() == a.Name() })
		if i < 0 {
			continue
		}

		b := before.Results[i]
		c := Change{Name: a.Name(), Before: b.Rate, After: a.Rate}
		if a.Idle != nil && b.Idle != nil {
			c.Before, c.After = b.Idle.Statements, a.Idle.Statements
		}

		c.Ratio = ratio(c.After, c.Before)
		c.P99, c.Cost = ratio(a.Late.P99, b.Late.P99), ratio(a.Cost.Statements, b.Cost.Statements)
		lowA, highA := span(a, c.After)
		lowB, highB := span(b, c.Before)
		noise := 1 + max(a.Noise, b.Noise, .05)
		c.Distinct = !a.Noisy && !b.Noisy && (lowA > highB*noise || lowB > highA*noise)
		out = append(out, c)
	}

	return out
}

func span(r Result, one float64) (low, high float64) {
	if len(r.Rates) == 0 {
		return one, one
	}
	return slices.Min(r.Rates), slices.Max(r.Rates)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
