package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDraw checks that the latest of several results is drawn, under the name that the page links.
func TestDraw(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name, at, binlog, variant string) string {
		path := filepath.Join(folder, name)
		text := `{"at": "` + at + `", "machine": {"settings": {"log_bin": "` + binlog + `"}}, "results": [
			{"scenario": "idle"},
			{"scenario": "steady", "variant": "` + variant + `", "series": [
				{"at": 0, "fires": 10, "p50_ms": 1, "p99_ms": 2, "max_ms": 3},
				{"at": 1, "fires": 11, "p50_ms": 1, "p99_ms": 2, "max_ms": 3}]}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	out := filepath.Join(folder, "plots")
	err := draw(out, []string{
		file("later.json", "2026-03-03T00:00:00Z", "OFF", "1000/s"),
		file("earlier.json", "2026-03-02T00:00:00Z", "OFF", "1000-S"), // draws into the same file
		file("binlog.json", "2026-03-02T00:00:00Z", "ON", "1000/s"),
	})
	if err != nil {
		t.Fatal(err)
	}

	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %v, %v; want two plots", entries, err)
	}

	for _, name := range []string{"bench-steady-1000-s.svg", "bench-steady-1000-s-binlog.svg"} {
		svg, err := os.ReadFile(filepath.Join(out, name))
		if text := string(svg); err != nil || !strings.Contains(text, "<svg") || len(svg) > 30<<10 ||
			!strings.Contains(text, "steady 1000/s") {
			t.Errorf("%s: got %d bytes, %v: %.300s", name, len(svg), err, svg)
		}
	}

	if err := draw(out, nil); err == nil {
		t.Error("no files were taken")
	}
	if err := draw(out, []string{filepath.Join(out, "bench-steady-1000-s.svg")}); err == nil {
		t.Error("a file that is no report was taken")
	}
}
