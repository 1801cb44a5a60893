package metric_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeploy checks the shipped rules, their tests and the dashboard with Prometheus' own parser
// and engine, against the metrics of a node: see tools/prom.
func TestDeploy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds the engine of Prometheus")
	}

	dir := t.TempDir()
	program := filepath.Join(dir, "prom")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../../tools/prom"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	text, _ := scrape(t, full(10))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	metrics := write("metrics", text)
	const (
		alerts    = "../../deploy/prometheus/alerts.yaml"
		tests     = "../../deploy/prometheus/alerts_test.yaml"
		dashboard = "../../deploy/grafana/dashboard.json"
	)
	out, err := exec.CommandContext(t.Context(), program, metrics, alerts, tests, dashboard).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	t.Logf("%s", out)

	// The check must notice mistakes.
	for what, change := range map[string][2]string{
		"no node has gocrontab_redy": {alerts, "gocrontab_ready == 0 and->gocrontab_redy == 0 and"},
		"has no label outcom":        {alerts, `outcome="lost"->outcom="lost"`},
		"parse error":                {alerts, "sum by (instance) (increase->sum by (instance (increase"},
		"want a summary":             {alerts, "          summary: \"No node starts jobs\"\n->"},
		"GocrontabBacklog at 8m": {alerts,
			"gocrontab_cluster_backlog_age_seconds) > 60->gocrontab_cluster_backlog_age_seconds) > 600"},
		"GocrontabNodeDown at 1m30s": {alerts, "for: 1m->for: 0s"},
		"nothing shows that": {tests,
			"alertname: GocrontabVersionsDiffer\n        exp->alertname: GocrontabLate\n        exp"},
		"no node has gocrontab_slotses": {dashboard, "sum(gocrontab_slots{->sum(gocrontab_slotses{"},
		"what is $nobody": {dashboard,
			"sum(gocrontab_ready{instance=~\\\"$instance\\\"})->sum(gocrontab_ready{instance=~\\\"$nobody\\\"})"},
	} {
		files := []string{alerts, tests, dashboard}
		for i, path := range files {
			if path == change[0] {
				from, to, _ := strings.Cut(change[1], "->")
				if !strings.Contains(read(path), from) {
					t.Errorf("%s has no %q", path, from)
				}
				files[i] = write(filepath.Base(path), strings.Replace(read(path), from, to, 1))
			}
		}
		out, err := exec.CommandContext(t.Context(), program, append([]string{metrics}, files...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), what) {
			t.Errorf("%v: got %v %s, want %q", change, err, out, what)
		}
	}
}
