package manifest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// body returns the request body of a set as text.
func body(t *testing.T, s *Set) string {
	t.Helper()
	b, err := s.Body(nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestRead(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ file, text, want string }{
		"one job": {"a.yaml", "name: a\nevery: 5m\n", `{"jobs":[{"name":"a","every":"5m"}]}`},
		"several documents": {
			"a.yaml", "---\nname: a\n---\n---\n# nothing\n---\njobs: [{name: b}]\n...\n",
			`{"jobs":[{"name":"a"},{"name":"b"}]}`,
		},
		"a list": {"a.yml", "- name: a\n- name: b", `{"jobs":[{"name":"a"},{"name":"b"}]}`},
		"all lists": {
			"a.yaml", "groups:\n  - {name: g, slots: 2}\ncalendars: []\njobs:\n",
			`{"calendars":[],"groups":[{"name":"g","slots":2}],"jobs":[]}`,
		},
		"calendars of a job": {
			"a.yaml", "name: a\ncalendars: [c]\n---\ncalendars: [c]\n---\nname: b\ncalendars: []\n",
			`{"jobs":[{"name":"a","calendars":["c"]},{"calendars":["c"]},{"name":"b","calendars":[]}]}`,
		},
		"only calendars": {"a.yaml", "calendars:\n- name: c\n", `{"calendars":[{"name":"c"}],"jobs":[]}`},
		"types": {
			"a.yaml", "a: 1\nb: 1.5\nc: true\nd: null\ne: ~\nf: 0x10\ng: 1_000\nh: '1'\ni: yes\nj: 2027-01-31\nk: 2027-01-31T09:00:00Z\nl: 1e3\nm:\n", `{"jobs":[{"a":1,"b":1.5,"c":true,"d":null,"e":null,"f":16,"g":1000,"h":"1","i":"yes","j":"2027-01-31","k":"2027-01-31T09:00:00Z","l":1000,"m":null}]}`,
		},
		"names of fields": {
			"a.yaml", "on: 1\nno: 2\n2027: 3\ntrue: 4\n", `{"jobs":[{"on":1,"no":2,"2027":3,"true":4}]}`,
		},
		"aliases and merges": {
			"a.yaml", "jobs:\n- &a {name: a, retry: &r {attempts: 3}}\n- <<: *a\n  name: b\n- {name: c, retry: {<<: [*r, {factor: 2}], attempts: 4}}\n", `{"jobs":[{"name":"a","retry":{"attempts":3}},{"name":"b","retry":{"attempts":3}},{"name":"c","retry":{"attempts":4,"factor":2}}]}`,
		},
		"blocks": {
			"a.yaml", "command: |\n  a\n  b\nstdin: >-\n  a\n  b\n", `{"jobs":[{"command":"a\nb\n","stdin":"a b"}]}`,
		},
		"JSON": {
			"a.json", "\ufeff{\"$schema\": \"x\", \"name\": \"a\\/\\ud83d\\ude00\",\n\t\"queue\": 1e2}",
			`{"jobs":[{"name":"a/😀","queue":1e2}]}`,
		},
		"JSON by its looks": {
			"standard input", "\t{\"jobs\": [{\"name\": \"\\ud83d\\ude00\"}]}", `{"jobs":[{"name":"😀"}]}`,
		},
		"several of JSON": {"a.json", "{\"name\":\"a\"}\n{\"name\":\"b\"}", `{"jobs":[{"name":"a"},{"name":"b"}]}`},
		"nothing":         {"a.yaml", "# nothing\n", `{"jobs":[]}`},
	} {
		s := &Set{}
		if err := s.Read(c.file, []byte(c.text)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := body(t, s); got != c.want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, c.want)
		}
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()

	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'j'; i++ {
		laughs += string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+string(i-1)+",", 10) + "]\n"
	}

	for name, c := range map[string]struct{ file, text, want string }{
		"a tab":        {"a.yaml", "jobs:\n\t- a\n", "a.yaml:2: is not YAML"},
		"a wrong line": {"a.yaml", "name: a\n  b: c\n", "a.yaml:2: is not YAML: a colon does not belong here"},
		"an open list": {"a.yaml", "jobs: [", "a.yaml:1: is not YAML: a value is missing, or a bracket is not closed"},
		"a name twice": {
			"a.yaml", "name: a\nevery: 1s\nname: b\n", "a.yaml:3:1: name is given twice; the first is in line 1",
		},
		"beside the lists": {
			"a.yaml", "jobs: []\njob: []\n",
			"a.yaml:2:1: job is unknown here; the lists are groups, calendars, channels, rules, retention, pauses, jobs",
		},
		"no list":            {"a.yaml", "groups: {g: 1}\n", "a.yaml:1:1: groups is not a list"},
		"a text":             {"a.yaml", "hello\n", "a.yaml:1:1: is not a job"},
		"a list for a name":  {"a.yaml", "? [a]\n: b\n", "a.yaml:1:3: a field name cannot be a list"},
		"a tag":              {"a.yaml", "name: !secret x\n", "a.yaml:1:7: the tag !secret is not supported"},
		"a binary":           {"a.yaml", "name: !!binary aGk=\n", "a.yaml:1:7: the tag !!binary is not supported"},
		"no number of JSON":  {"a.yaml", "name: .inf\n", "a.yaml:1:7: .inf is not a number in JSON"},
		"an alias in itself": {"a.yaml", "a: &a\n  b: *a\n", "contains itself"},
		"too much":           {"a.yaml", laughs, "too many values"},
		"too deep":           {"a.yaml", strings.Repeat("[", 100) + strings.Repeat("]", 100), "more than 64 levels"},
		"merging a text":     {"a.yaml", "<<: a\n", "a.yaml:1:1: only objects can be merged"},
		"JSON: a comma": {
			"a.json", "{\"name\": \"a\",\n \"b\": }", "a.json:2:7: is not JSON: invalid character '}'",
		},
		"JSON: twice":    {"a.json", "{\"name\": \"a\",\n \"name\": 1}", "a.json:2:2: name is given twice"},
		"JSON: the end":  {"a.json", "{\"name\": [1", "is not JSON: it ends too early"},
		"JSON: too deep": {"a.json", strings.Repeat("[", 100), "more than 64 levels"},
		"JSON: no UTF-8": {"a.json", "{\"name\": \"\xff\"}", "a.json: is not valid UTF-8"},
	} {
		err := (&Set{}).Read(c.file, []byte(c.text))
		var f Faults
		if !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestFind maps fields in the server's messages to places.
func TestFind(t *testing.T) {
	t.Parallel()

	s := &Set{}
	read := func(file, text string) {
		t.Helper()
		if err := s.Read(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}

	read("a.yaml",
		"# first\nname: a\nlabels:\n  x: 1\n  x.y: 2\nschedules:\n  - '@daily'\n  - 61 * * * *\nmisfire: {polciy: skip}\n")
	read("b.yaml",
		"calendars:\n  - name: c\n    exclude: [2027-01-01, {date: x}]\njobs:\n  - &b\n    name: b\n    command: x\n  - <<: *b\n    name: c\n")
	read("c.json", "[{\"name\": \"d\",\n  \"ü\": {\"date\": 1}, \"http\": {\"url\": 5}}]")

	for field, want := range map[string]string{
		"jobs[0]":                         "a.yaml:2:1 ",
		"jobs[0].schedule":                "a.yaml:2:1 schedule",
		"jobs[0].labels.x":                "a.yaml:4:3 labels.x",
		"jobs[0].labels.x.y":              "a.yaml:5:3 labels.x.y",
		"jobs[0].schedules[1]":            "a.yaml:8:5 schedules[1]",
		"jobs[0].schedules[7]":            "a.yaml:6:1 schedules[7]",
		"jobs[0].misfire.polciy":          "a.yaml:9:11 misfire.polciy",
		"calendars[0].exclude[0].date":    "b.yaml:3:15 exclude[0].date",
		"calendars[0].exclude[1].date":    "b.yaml:3:28 exclude[1].date",
		"jobs[2].command":                 "b.yaml:7:5 command", // the source of the merge
		"jobs[2].name":                    "b.yaml:9:5 name",
		"jobs[3].ü.date":                  "c.json:2:9 ü.date",
		"jobs[3].http.url":                "c.json:2:30 http.url",
		"jobs[3].http.very-long-and-cut…": "c.json:2:21 http.very-long-and-cut…",
		"jobs[9].name":                    "",
		"prune.app":                       "",
	} {
		at, name, ok := s.Find(field)
		if got := at.String() + " " + name; ok != (want != "") || ok && got != want {
			t.Errorf("%s: got %s, %v, want %s", field, got, ok, want)
		}
	}

	if got, want := s.Explain("is given already, as jobs[1]; see jobs[77]"), "is given already, as b.yaml:5:5; see jobs[77]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()

	s := &Set{}
	for file, text := range map[string]string{
		"a.yaml": "name: a\n",
		"b.yaml": "jobs:\n  - {app: default, name: a}\n  - {app: x, name: a}\n  - {}\n  - {}\ngroups: [{name: a}, {name: a}]\n",
	} {
		if err := s.Read(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}

	err := s.Check()
	var f Faults
	if !errors.As(err, &f) || len(f) != 2 || !strings.Contains(err.Error(), "a is given already, at b.yaml:6:10") ||
		!strings.Contains(err.Error(), "default/a is given already, at ") {
		t.Errorf("got %v, want two faults", err)
	}
}

func TestReadAll(t *testing.T) {
	t.Parallel()

	outside, dir := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	link := func(to, at string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, at)); err != nil {
			t.Fatal(err)
		}
	}

	write(filepath.Join(outside, "secret.yaml"), "name: secret\n")
	write(filepath.Join(dir, "b.yaml"), "name: b\n")
	write(filepath.Join(dir, "a.json"), `{"name": "a"}`)
	write(filepath.Join(dir, "sub", "c.yml"), "name: c\n")
	write(filepath.Join(dir, "README.md"), "name: not\n")
	write(filepath.Join(dir, ".git", "x.yaml"), "name: not\n")
	write(filepath.Join(dir, ".hidden.yaml"), "name: not\n")
	link("..data/d.yaml", "d.yaml") // as in a Kubernetes mount
	write(filepath.Join(dir, "..data", "d.yaml"), "name: d\n")
	names := func(s *Set) (out []string) {
		var v struct{ Jobs []struct{ Name string } }
		if err := json.Unmarshal([]byte(body(t, s)), &v); err != nil {
			t.Fatal(err)
		}
		for _, j := range v.Jobs {
			out = append(out, j.Name)
		}
		return out
	}

	s, err := ReadAll([]string{dir, "-"}, strings.NewReader("name: in"))
	if err != nil {
		t.Fatal(err)
	}

	if got := strings.Join(names(s), " "); got != "a b d c in" {
		t.Errorf("got %s, want a b d c in", got)
	}

	link(filepath.Join(outside, "secret.yaml"), "e.yaml")
	if _, err := ReadAll([]string{dir}, nil); err == nil || !strings.Contains(err.Error(), "e.yaml") {
		t.Errorf("a link out of the folder: got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "e.yaml")); err != nil {
		t.Fatal(err)
	}

	write(filepath.Join(dir, "f.yaml"), "a: 1\na: 2\n")
	write(filepath.Join(dir, "g.yaml"), "[")
	if _, err := ReadAll([]string{dir}, nil); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two bad files: got %v, want both told", err)
	}

	for _, paths := range [][]string{{t.TempDir()}, {"-"}, {filepath.Join(dir, "nix")}} {
		if _, err := ReadAll(paths, strings.NewReader("# nothing")); err == nil {
			t.Errorf("%v: got no error", paths)
		}
	}

	if _, err := ReadAll([]string{"-"}, strings.NewReader(strings.Repeat("#", MaxSize+1))); err == nil ||
		!strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("too large: got %v", err)
	}
}

// TestNothingInAFile: an empty file among several is an error, and does not mean "no jobs".
func TestNothingInAFile(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"": false, "# name: a\n": false, "---\n---\n": false, "jobs:\n": false, "jobs: []\n": true, "[]": true,
		"calendars: []\n": true,
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"a.yaml": text, "b.yaml": "name: b\n", "c.yaml": "# c\n---\njobs: []\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}

		_, err := ReadAll([]string{dir}, nil)
		var f Faults
		if says := filepath.Join(dir,
			"a.yaml") + ": is empty; write jobs: [] to have no jobs"; want != (err == nil) ||
			!want && (!errors.As(err, &f) || err.Error() != says) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestLinksToFolders: links are followed within the folder, and never skipped silently.
func TestLinksToFolders(t *testing.T) {
	t.Parallel()

	outside := t.TempDir()
	for name, c := range map[string]struct {
		files map[string]string // contents, or with an arrow the target of a link
		want  string            // files read, or "error: " and the message
	}{
		"an item of a ConfigMap below a folder": {
			map[string]string{
				"..2027/team/jobs.yaml": "a", "..2027/more/x/jobs.yaml": "b", "..data": "-> ..2027",
				"team": "-> ..data/team", "more": "-> ..data/more",
			}, "more/x/jobs.yaml team/jobs.yaml",
		},
		"with an ending": {
			map[string]string{".x/jobs.yaml": "a", "v.yaml": "-> .x"}, "v.yaml/jobs.yaml",
		},
		"to what has a name of its own": {
			map[string]string{"v1/jobs.yaml": "a", "current": "-> v1", "v1/again": "-> ../v1"}, "v1/jobs.yaml",
		},
		"in a ring": {
			map[string]string{"a/jobs.yaml": "a", "a/up": "-> ..", "self": "-> .", "b/c": "-> ../a"}, "a/jobs.yaml",
		},
		"one into another": {
			map[string]string{".x/in/jobs.yaml": "a", "a": "-> .x/in", "b": "-> .x"}, "a/jobs.yaml",
		},
		"out of the folder": {map[string]string{"jobs.yaml": "a", "team": "-> " + outside}, "error: team"},
		"to nowhere":        {map[string]string{"jobs.yaml": "a", "team": "-> nix"}, "error: team"},
		"to itself":         {map[string]string{"jobs.yaml": "a", "team": "-> team"}, "error: team"},
		"to a file that nobody reads": {
			map[string]string{"jobs.yaml": "a", "README.md": "-> /etc/hostname"}, "jobs.yaml",
		},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(dir, file)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if to, link := strings.CutPrefix(text, "-> "); link {
				err = errors.Join(err, os.Symlink(to, path))
			} else {
				err = errors.Join(err, os.WriteFile(path, []byte("name: "+text+"\n"), 0o644))
			}
			if err != nil {
				t.Fatal(err)
			}
		}

		s, err := ReadAll([]string{dir}, nil)
		if says, refused := strings.CutPrefix(c.want, "error: "); refused {
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, says)) {
				t.Errorf("%s: got %v, want the link named", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}

		var files []string
		for _, j := range s.lists["jobs"] {
			file, _ := filepath.Rel(dir, j.at.File)
			files = append(files, filepath.ToSlash(file))
		}

		if got := strings.Join(files, " "); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// FuzzRead: no input causes a panic or takes long, and accepted input becomes valid JSON.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"name: a\n", "{\"name\": 1}", "- a\n- &b [*b]\n", "a: !!float 1\n<<: {b: 1}\n", "---\n---\n", "? a\n",
		"jobs:\n- {name: a}\n",
	} {
		f.Add("x.yaml", text)
		f.Add("x.json", text)
	}
	f.Fuzz(func(t *testing.T, file, text string) {
		if len(text) > 10_000 {
			return
		}
		s := &Set{}
		if s.Read(file, []byte(text)) != nil || s.Check() != nil {
			return
		}
		if b, err := s.Body(nil); err != nil || !json.Valid(b) {
			t.Fatalf("%q: got %s, %v", text, b, err)
		}
		s.Find("jobs[0].a[0].b")
	})
}
