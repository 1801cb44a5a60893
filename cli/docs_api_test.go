package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go-crontab/test/docpage"

	"github.com/google/go-cmp/cmp"
)

// TestAPIPageShowsWhatWorks sends every request in docs/api.md, in order. It compares the status
// with the number after the request, and a JSON block with the response to the previous request.
func TestAPIPageShowsWhatWorks(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here to try it")
	}

	s := serve(t, migrated(t), "web-1").ready()
	shown := regexp.MustCompile(`^((?:GOCRONTAB_TOKEN=\S+ )?api [A-Z]+ .*?)\s+# (\d{3})$`)
	function, tried := "", 0
	body := filepath.Join(t.TempDir(), "body")
	for _, it := range docpage.Read(t, "../docs/api.md") {
		where := fmt.Sprintf("api.md:%d", it.Line)
		switch it.Block {
		case "sh":
			for line := range strings.Lines(it.Text) {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "api() {") {
					function = line
				}
				if !strings.HasPrefix(line, "api ") && !strings.HasPrefix(line, "GOCRONTAB_TOKEN=") {
					continue
				}

				m := shown.FindStringSubmatch(line)
				if m == nil {
					t.Errorf("%s: %s: want its status behind it, such as # 200", where, line)
					continue
				}

				cmd := exec.Command("bash", "-c", function+"\n"+m[1]+` -o "$BODY" -w '%{http_code}'`)
				cmd.Env = append(os.Environ(), append(s.env(), "BODY="+body)...)
				out, err := cmd.CombinedOutput()
				if err != nil || string(out) != m[2] {
					text, _ := os.ReadFile(body)
					t.Errorf("%s: %s: got %s %s (%v), want %s", where, m[1], out, text, err, m[2])
				}

				tried++
			}
		case "json":
			text, err := os.ReadFile(body)
			if err != nil {
				t.Fatal(err)
			}

			var got, want map[string]any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s: %s: %v", where, text, err)
			}
			if err := json.Unmarshal([]byte(it.Text), &want); err != nil {
				t.Fatalf("%s: %v", where, err)
			}

			delete(got, "request_id")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: the answer is another one (-page +answer):\n%s", where, diff)
			}
		}
	}

	if tried < 20 {
		t.Errorf("only %d requests were found", tried)
	}

	s.wantFilters()
}

// wantFilters compares the table of list filters with the API's own description.
func (s *server) wantFilters() {
	s.t.Helper()
	page, err := os.ReadFile("../docs/api.md")
	if err != nil {
		s.t.Fatal(err)
	}

	resp, err := http.Get(s.url + "/openapi.json")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()

	var doc struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct{ Name, In string }
			}
		}
	}

	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		s.t.Fatal(err)
	}

	rows := regexp.MustCompile("(?m)^\\| `(/[^`]+)` \\| (`.*) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 4 {
		s.t.Errorf("only %d lists are in the table", len(rows))
	}

	for _, row := range rows {
		var want, got []string
		for _, p := range doc.Paths["/api/v1"+row[1]].Get.Parameters {
			if p.In == "query" && p.Name != "limit" && p.Name != "cursor" {
				want = append(want, p.Name)
			}
		}

		inBrackets := regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row[2], "")
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(inBrackets, -1) {
			got = append(got, m[1])
		}

		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.t.Errorf("filters of %s: the page has %q, the API %q", row[1], got, want)
		}
	}
}
