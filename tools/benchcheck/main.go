// Command benchcheck compares the output of Go benchmarks with an earlier output. It fails if a
// benchmark allocates more often than before: the number of allocations does not depend on the
// machine or its load. Durations do, so benchstat shows them.
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: benchcheck BASELINE NOW")
		os.Exit(2)
	}

	var results [2]map[string]float64
	for i, name := range os.Args[1:] {
		f, err := os.Open(name)
		if err == nil {
			results[i], err = medians(f)
			f.Close()
		}

		if err != nil {
			fmt.Fprintf(os.Stderr, "benchcheck: %s: %v\n", name, err)
			os.Exit(1)
		}
	}

	worse := compare(results[0], results[1])
	for _, line := range worse {
		fmt.Fprintln(os.Stderr, line)
	}

	if len(worse) > 0 {
		fmt.Fprintln(os.Stderr, "If that is meant: make bench-baseline, and commit it.")
		os.Exit(1)
	}

	fmt.Printf("%d benchmarks allocate no more often than they did\n", len(results[1]))
}

// suffix is the number of processors that go test appends.
var suffix = regexp.MustCompile(`-\d+$`)

// medians returns the median allocations per benchmark.
func medians(r io.Reader) (map[string]float64, error) {
	all := map[string][]float64{}
	pkg := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = name
		}

		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}

		for i := 2; i < len(f)-1; i++ {
			if f[i+1] != "allocs/op" {
				continue
			}

			n, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f[0], err)
			}
			name := pkg + "." + suffix.ReplaceAllString(f[0], "")
			all[name] = append(all[name], n)
		}
	}

	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("has no benchmark with allocations: want the output of go test -bench . -benchmem")
	}

	out := map[string]float64{}
	for name, ns := range all {
		slices.Sort(ns)
		out[name] = ns[len(ns)/2]
	}

	return out, nil
}

// compare returns the benchmarks that allocate more often, by at least one and by over 1 %, and the
// benchmarks that have disappeared.
func compare(before, now map[string]float64) (worse []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		n, measured := now[name]
		switch was := before[name]; {
		case !measured:
			worse = append(worse, name+": is in the baseline, and was not measured")
		case n > was*1.01 && n >= was+1:
			worse = append(worse, fmt.Sprintf("%s: %.0f allocations, %.0f before", name, n, was))
		}
	}

	return worse
}
