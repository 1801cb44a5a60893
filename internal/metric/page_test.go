package metric_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/internals/metrics.md lists exactly the existing metrics, and docs/metrics.md the alerts.
func TestPage(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}

	page := read("../../docs/internals/metrics.md")
	names := func(text, pattern string) map[string]bool {
		out := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out[m[1]] = true
		}
		return out
	}

	_, families := scrape(t, full(10))
	ours := map[string]bool{}
	for name := range families {
		if strings.HasPrefix(name, "gocrontab_") {
			ours[name] = true
		}
	}

	equal(t, "metrics", names(page, "(?m)^\\| `(gocrontab_\\w+)` \\|"), ours)
	equal(t, "alerts", names(read("../../docs/metrics.md"), "`(Gocrontab\\w+)`"),
		names(read("../../deploy/prometheus/alerts.yaml"), `alert: (\w+)`))
}

func equal(t *testing.T, what string, page, want map[string]bool) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(page)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("%s: the page has %v\nwant %v", what, got, want)
	}
}
