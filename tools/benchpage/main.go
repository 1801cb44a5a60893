// Command benchpage writes the results of benches (the files of go-crontab bench -o json) into a
// page of the documentation. tools/benchplot draws the plots that the page shows.
package main

import (
	"flag"
	"fmt"
	"os"

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
	replaced, err := replace(string(text), pageOf(reports, plots))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}

	return os.WriteFile(page, []byte(replaced), 0o644)
}
