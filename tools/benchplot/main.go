// Command benchplot draws the results of benches (the files of go-crontab bench -o json) as SVG:
// fires per second, and the lateness in each second. It is a module of its own, so that the program
// does not depend on a library for charts.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report has the fields of a bench's report that plots need.
type report struct {
	At      time.Time `json:"at"`
	Machine struct {
		Settings map[string]string `json:"settings"`
	} `json:"machine"`
	Results []result `json:"results"`
}

type result struct {
	Scenario string   `json:"scenario"`
	Variant  string   `json:"variant"`
	Series   []second `json:"series"`
}

// second is a second of a result.
type second struct {
	At    float64 `json:"at"` // seconds since the span began
	Fires int     `json:"fires"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func main() {
	out := flag.String("out", ".", "the folder for plots")
	flag.Parse()
	if err := draw(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "benchplot:", err)
		os.Exit(1)
	}
}

// draw draws each result with a series into a file of its own. If several reports have the same
// result, the latest one counts.
func draw(folder string, files []string) error {
	reports, err := read(files)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}

	for _, r := range reports {
		for _, x := range r.Results {
			if len(x.Series) < 2 {
				continue
			}

			svg, err := plot(&x)
			if err != nil {
				return fmt.Errorf("draw %s: %w", x.name(), err)
			}
			if err := os.WriteFile(filepath.Join(folder, fileName(&x, r)), svg, 0o644); err != nil {
				return err
			}
		}
	}

	return nil
}

// read returns the reports of files, the latest last.
func read(files []string) ([]*report, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("name the files of go-crontab bench -o json")
	}

	var reports []*report
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}

		r := new(report)
		if err := json.Unmarshal(text, r); err != nil || len(r.Results) == 0 {
			return nil, fmt.Errorf("%s: want the JSON of a bench, with results (%v)", name, err)
		}
		reports = append(reports, r)
	}

	slices.SortStableFunc(reports, func(a, b *report) int { return a.At.Compare(b.At) })
	return reports, nil
}

// name is the name of a result, as bench prints it.
func (x *result) name() string {
	return strings.TrimSpace(x.Scenario + " " + x.Variant)
}

// fileName is the name of a plot, as tools/benchpage links it.
func fileName(x *result, of *report) string {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(x.name()))

	if strings.EqualFold(of.Machine.Settings["log_bin"], "ON") {
		name += "-binlog"
	}
	return "bench-" + name + ".svg"
}
