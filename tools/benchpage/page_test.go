package main

import (
	"strings"
	"testing"
	"time"

	"go-crontab/internal/bench"
)

// TestPage checks that a page has the latest of several results and says whether it can be trusted,
// and that the text around it stays.
func TestPage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	report := func(days int, binlog string, results ...bench.Result) *bench.Report {
		return &bench.Report{
			At: at.AddDate(0, 0, days), Version: "v1", Results: results, Machine: bench.Machine{
				OS: "linux/amd64", Cores: 2, Server: "10.11", Private: true,
				Settings: map[string]string{"log_bin": binlog},
			},
		}
	}

	series := []bench.Second{{At: 0, Fires: 10}, {At: 1, Fires: 11}}
	reports := []*bench.Report{
		report(2, "OFF", bench.Result{
			Scenario: "steady", Variant: "1000/s", Rate: 1234.5, Rates: []float64{1200, 1234.5, 1300},
			Account: bench.Account{Due: 10, Once: 10}, Series: series, Limit: &bench.Limit{Rate: 50_000, Ratio: .02},
		}),
		report(1, "OFF", bench.Result{Scenario: "steady", Variant: "1000/s", Rate: 7}, bench.Result{
			Scenario: "idle", Idle: &bench.Idle{Statements: 4.44}, Noisy: true, Noise: .3,
		}),
		report(1, "ON", bench.Result{
			Scenario: "steady", Variant: "1000/s", Rate: 999, Account: bench.Account{Due: 5, Once: 4, Missing: 1},
			Series: series,
		}, bench.Result{
			Scenario: "api", Rate: 5100, Writes: &bench.Writes{Jobs: 10, Requests: 10, P50: 1.25, P99: 9},
		}),
	}

	text := pageOf(reports, "images")
	for _, want := range []string{
		"| steady 1000/s | 1,234 |", "| 0.02 of 50,000 | all 10 | 3: 1,200–1,300 |",
		"| steady 1000/s, binary log | 999 |", "**1 missing, 0 twice, 0 early**",
		"| idle ¹ | 4.44 |", "too noisy", "| api, binary log | 5,100 | 1.2 / 9.0 ms |",
		"![steady 1000/s](images/bench-steady-1000-s.svg)", "![steady 1000/s](images/bench-steady-1000-s-binlog.svg)",
		"Measured on 2026-03-02 to 2026-03-03 with version v1: linux/amd64, 2 processors", "differed by up to 30 %",
		"`log_bin=OFF`", "`log_bin=ON`",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}

	if strings.Contains(text, "| 7.00 |") {
		t.Error("the page has the older of two results")
	}

	page := "# before\n\n" + pageBegin + "\nold\n" + pageEnd + "\n\nafter\n"
	got, err := replace(page, text)
	if err != nil || !strings.HasPrefix(got, "# before\n\n") || !strings.HasSuffix(got, pageEnd+"\n\nafter\n") ||
		strings.Contains(got, "old") || !strings.Contains(got, "1,234") {
		t.Errorf("got %v\n%s", err, got)
	}

	if again, err := replace(got, text); err != nil || again != got {
		t.Errorf("written twice it differs: %v", err)
	}
	if _, err := replace("# no lines", text); err == nil {
		t.Error("a page without the lines was taken")
	}
}
