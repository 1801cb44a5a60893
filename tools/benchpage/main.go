// Command benchpage writes the results of benches (the files of go-crontab bench -o json) into a
// page of the documentation, and draws the page's plots.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go-crontab/internal/bench"
)

func main() {
	page := flag.String("page", "docs/internals/performance.md", "the page")
	plots := flag.String("plots", "images", "the folder for plots, as seen from the page")
	flag.Parse()
	if err := write(*page, *plots, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "benchpage:", err)
		os.Exit(1)
	}
}

func write(page, plots string, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("name the files of go-crontab bench -o json")
	}

	var reports []*bench.Report
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		r, err := bench.ReadReport(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}

		reports = append(reports, r)
	}

	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	replaced, err := bench.Replace(string(text), bench.Page(reports, plots))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}

	folder := filepath.Join(filepath.Dir(page), plots)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}

	pictures := bench.PagePlots(reports)
	for _, name := range slices.Sorted(maps.Keys(pictures)) {
		if err := os.WriteFile(filepath.Join(folder, name), pictures[name], 0o644); err != nil {
			return err
		}
	}

	return os.WriteFile(page, []byte(replaced), 0o644)
}
