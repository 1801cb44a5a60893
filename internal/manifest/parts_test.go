package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParts(t *testing.T) {
	t.Parallel()

	most := map[string]int{"groups": 3, "calendars": 3, "pauses": 2, "jobs": 4}
	cut := func(text string, size int) (out []string) {
		t.Helper()

		s := &Set{}
		if err := s.Read("a.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}

		parts, err := s.Parts(most, size)
		if err != nil {
			t.Fatal(err)
		}

		for _, p := range parts {
			for _, list := range listNames {
				if n := len(p.lists[list]); most[list] > 0 && n > most[list] {
					t.Errorf("%d %s in a part", n, list)
				}
			}
			out = append(out, body(t, p))
		}

		return out
	}

	for name, c := range map[string]struct {
		text string
		size int
		want []string
	}{
		"one": {
			"groups: []\njobs: [{name: a}, {name: b}, {name: c}, {name: d}]", 1000,
			[]string{`{"groups":[],"jobs":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`},
		},
		"nothing": {"jobs: []", 1000, []string{`{"jobs":[]}`}},
		"what they name stands with them": {
			"groups: [{name: g}, {name: h}]\ncalendars: [{name: c}, {name: d}]\nrules: [{name: r, channels: [x]}]\nchannels: [{name: x}]\npauses: [{app: a}]\n" +
				"jobs: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e, group: h, calendars: [d, nix, d]}, {name: f, group: h}]", 1000, []string{
				`{"calendars":[{"name":"c"},{"name":"d"}],"channels":[{"name":"x"}],"groups":[{"name":"g"},{"name":"h"}],"jobs":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}],"pauses":[{"app":"a"}],"rules":[{"name":"r","channels":["x"]}]}`,
				`{"calendars":[{"name":"d"}],"groups":[{"name":"h"}],"jobs":[{"name":"e","group":"h","calendars":["d","nix","d"]},{"name":"f","group":"h"}]}`,
			},
		},
		"pauses before jobs": {
			"jobs: [{name: a}]\npauses: [{app: a}, {app: b}, {app: c}]", 1000,
			[]string{
				`{"jobs":[],"pauses":[{"app":"a"},{"app":"b"}]}`, `{"jobs":[{"name":"a"}],"pauses":[{"app":"c"}]}`,
			},
		},
		"what they name fills a part": {
			"groups: [{name: g}, {name: h}, {name: i}, {name: j}]\njobs: [{name: a, group: g}, {name: b, group: h}, {name: c, group: j}]", 1000, []string{
				`{"groups":[{"name":"g"},{"name":"h"},{"name":"i"}],"jobs":[]}`,
				`{"groups":[{"name":"j"},{"name":"g"},{"name":"h"}],"jobs":[{"name":"a","group":"g"},{"name":"b","group":"h"},{"name":"c","group":"j"}]}`,
			},
		},
		"by their size": {
			"jobs: [{name: a, command: 123456}, {name: b}, {name: c}]", 40,
			[]string{`{"jobs":[{"name":"a","command":123456}]}`, `{"jobs":[{"name":"b"},{"name":"c"}]}`},
		},
	} {
		got := cut(c.text, c.size)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s, want\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}

	// An error of the server about a part is reported with its place in the file.
	var text strings.Builder
	text.WriteString("jobs:\n")
	for i := range 9 {
		fmt.Fprintf(&text, "  - name: j%d\n    every: x\n", i)
	}

	s := &Set{}
	if err := s.Read("a.yaml", []byte(text.String())); err != nil {
		t.Fatal(err)
	}

	parts, err := s.Parts(most, 1000)
	if err != nil || len(parts) != 3 {
		t.Fatalf("got %d parts, %v", len(parts), err)
	}

	if at, _, ok := parts[2].Find("jobs[0].every"); !ok || at.Line != 19 {
		t.Errorf("got line %d, %v, want 19", at.Line, ok)
	}
}
