package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go-crontab/api/view"
)

// TestExampleJobs applies each file of examples/jobs as its first lines say, twice, and runs every
// command in it.
func TestExampleJobs(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("../examples/jobs/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples/jobs has %d files: %v", len(files), err)
	}

	s := serve(t, migrated(t), "one").ready()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if line := "#   go-crontab apply -f examples/jobs/" + filepath.Base(file) +
			" --dry-run\n"; !strings.Contains(string(text), line) {
			t.Errorf("%s does not say how it is tried", file)
		}
		for _, args := range [][]string{{"--dry-run"}, {}} {
			if got := s.ask(append([]string{"apply", "-f", file}, args...)...); got.code != exitOK {
				t.Fatalf("%s: %+v", file, got)
			}
		}
	}

	if got := s.ask("apply", "-f", "../examples/jobs"); got.code != exitOK || strings.Contains(got.out, "created") ||
		strings.Contains(got.out, "updated") {
		t.Errorf("the same files again: %+v", got)
	}

	var jobs view.Page[struct {
		Name    string
		Command string
	}]

	got := s.ask("job", "ls", "--app", "example", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &jobs); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}

	var ran []string
	for _, j := range jobs.Items {
		if j.Command == "" {
			continue // an HTTP request to a server that does not exist
		}
		if got := s.ask("job", "run", "example/"+j.Name, "--wait"); got.code != exitOK {
			t.Errorf("%s: %+v", j.Name, got)
		}
		ran = append(ran, j.Name)
	}

	if want := []string{
		"backup", "disk", "report-de", "report-jp", "report-us",
	}; !slices.Equal(slices.Sorted(slices.Values(ran)), want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}
