package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// Report is what one call of Run measured.
type Report struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	Machine Machine   `json:"machine"`
	Results []Result  `json:"results"`
}

// Machine is where it was measured.
type Machine struct {
	OS       string            `json:"os"`
	CPU      string            `json:"cpu,omitempty"`
	Cores    int               `json:"cores"`
	Server   string            `json:"server"`
	Private  bool              `json:"private"` // the server was started for this, on the same machine
	Settings map[string]string `json:"settings"`
}

// Result is what a scenario, or one variant of it, measured.
type Result struct {
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"` // what sets it apart from others of its scenario

	Nodes   int     `json:"nodes"`
	Seconds float64 `json:"seconds"` // measured
	Fires   int64   `json:"fires"`
	Rate    float64 `json:"fires_per_second"`
	Late    Late    `json:"lateness_ms"`
	Cost    Cost    `json:"cost"`
	Account Account `json:"account"`
	Limit   *Limit  `json:"limit,omitempty"`

	Idle   *Idle   `json:"idle,omitempty"`   // of nodes that have nothing to do
	Writes *Writes `json:"writes,omitempty"` // of jobs that were created

	Removed float64 `json:"removed_per_second,omitempty"` // old records, meanwhile

	Rates  []float64 `json:"runs,omitempty"` // of all runs, when there were several
	Noise  float64   `json:"noise"`          // spread of equal work on an idle processor, 0 is none
	Noisy  bool      `json:"noisy"`          // so much that nothing can be concluded
	Series []Second  `json:"series,omitempty"`
}

// Late is how much later than due starts were, in milliseconds. A start before its due time would be negative.
type Late struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Cost is what it took. Those of the server count everything that it did meanwhile.
type Cost struct {
	Statements float64 `json:"statements_per_fire"` // BEGIN and COMMIT are some
	Commits    float64 `json:"commits_per_fire"`
	Redo       float64 `json:"redo_bytes_per_fire"`
	Binlog     float64 `json:"binlog_bytes_per_fire,omitempty"`
	NodeCPU    float64 `json:"node_cpu_percent"`   // of one processor, all nodes together
	NodeMB     float64 `json:"node_mb"`            // resident, the largest node
	NodeUS     float64 `json:"node_us_per_fire"`   // processor time, all nodes together
	ServerUS   float64 `json:"server_us_per_fire"` // processor time; 0: not known
	GuardCPU   float64 `json:"guard_cpu_percent"`  // of the guard that took the most
	GuardMB    float64 `json:"guard_mb,omitempty"` // resident, without the program's text
	ServerCPU  float64 `json:"server_cpu_percent,omitempty"`
	ServerMB   float64 `json:"server_mb,omitempty"`
}

// Account holds the due times of a measured span against the records.
type Account struct {
	Due     int64            `json:"due"`
	Once    int64            `json:"recorded_once"`
	Missing int64            `json:"missing"`
	Open    int64            `json:"open,omitempty"` // nodes had not come to them when the bench ended, too much was due
	Doubled int64            `json:"doubled"`
	Early   int64            `json:"early"`
	Other   map[string]int64 `json:"other_outcomes,omitempty"` // than succeeded
}

// OK tells whether every due time has exactly one record, and none was started before it was due.
func (a Account) OK() bool { return a.Missing == 0 && a.Doubled == 0 && a.Early == 0 }

// Limit is what the machine did in the same run with nothing of ours in the way.
type Limit struct {
	What  string  `json:"what"`
	Rate  float64 `json:"per_second"`
	Ratio float64 `json:"ratio"` // of ours to it
}

// Idle is what nodes cost when nothing is due.
type Idle struct {
	Jobs       int64   `json:"jobs"`
	Statements float64 `json:"statements_per_second"` // of each node
	NodeCPU    float64 `json:"node_cpu_percent"`      // of each node
	ServerCPU  float64 `json:"server_cpu_percent,omitempty"`
}

// Second is one second of a result, for plots.
type Second struct {
	At    float64 `json:"at"` // since the span began
	Fires int     `json:"fires"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

// Name is what a result is called, the same in each report.
func (r *Result) Name() string {
	if r.Variant == "" {
		return r.Scenario
	}
	return r.Scenario + " " + r.Variant
}

// lateOf reads percentiles off latenesses in microseconds, which it sorts.
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

// median returns the result of several runs of one thing that stands in the middle by its rate, or for idle nodes by
// their statements.
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

// worse keeps a wrong account of any run.
func worse(a, b Account) Account {
	if a.OK() && !b.OK() {
		return b
	}
	return a
}

// ReadReport reads what -o json wrote.
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

// Change is how a result differs from an earlier one of the same name.
type Change struct {
	Name     string  `json:"name"`
	Before   float64 `json:"before"` // fires per second, of idle nodes statements
	After    float64 `json:"after"`
	Ratio    float64 `json:"ratio"`
	P99      float64 `json:"p99_ratio,omitempty"`
	Cost     float64 `json:"statements_ratio,omitempty"`
	Distinct bool    `json:"distinct"` // the runs of one are all above those of the other, by more than the noise
}

// Compare holds results against earlier ones of the same names.
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
