package main_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors is the architecture: a package imports only packages of lower floors. Packages on the same
// floor do not know each other, so a stage of a run never imports another stage. They meet in
// package node, through small interfaces that each user declares. A commit that adds a package
// gives it its floor. Packages in test/ and tools/ have no floor, and no package with a floor
// imports them.
var floors = []string{
	// What can be wrong with the nouns.
	"job/problem",
	// Nouns, and libraries that do not know them.
	"job api/openapi docs page internal/boottime internal/failpoint internal/innodb internal/journal internal/logqueue " +
		"internal/loop internal/manifest internal/privatedb internal/privilege internal/sse",
	// The types of the API's answers.
	"api/view",
	// The database; executors, which cannot reach it; a separate process next to the node.
	"sql execute internal/guard internal/crontab internal/follow client",
	"sql/trip lock internal/trail internal/auth internal/trace",
	"sql/read",
	// The stages of a run, and features that read its results.
	"session schedule compensate internal/alert internal/audit internal/metric internal/success",
	"schedule/edit result internal/secret internal/feed internal/doctor",
	// Wiring, and the API next to it.
	"node api",
	"internal/bench",
	"cli",
	".",
}

// floorOf returns the floor of a package, or -1.
func floorOf(name string) int {
	return slices.IndexFunc(floors, func(floor string) bool { return slices.Contains(strings.Fields(floor), name) })
}

// databaseOnly lists the packages that may import database/sql, its driver, or the library for
// migrations.
var databaseOnly = []string{"sql", "internal/bench", "internal/privatedb", "test/testdb", "test/faultproxy",
	"internal/innodb", "test/members"}

// unreachable lists packages that must not reach the standard library's database/sql, even
// indirectly.
var unreachable = []string{"job", "internal/guard", "execute", "client"}

func TestImports(t *testing.T) {
	t.Parallel()

	for _, system := range []string{"linux", "darwin"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()

			graph := imports(t, system)
			for from, imported := range graph {
				name, ours := own(from)
				if !ours {
					continue
				}

				floor := floorOf(name)
				free := strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "tools/") ||
					strings.HasPrefix(name, "examples/")
				if floor < 0 && !free {
					t.Errorf("package %s is on no floor", name)
				}

				for _, to := range imported {
					if ours, is := own(to); is && !free && (floorOf(ours) < 0 || floorOf(ours) >= floor) {
						t.Errorf("%s imports %s, which is not on a lower floor", name, ours)
					}
					if isDatabase(to) && !slices.Contains(databaseOnly, name) {
						t.Errorf("%s imports %s; only %v may", name, to, databaseOnly)
					}
				}
			}

			for _, name := range unreachable {
				if path := way(graph, module+name, "database/sql"); path != nil {
					t.Errorf("%s reaches database/sql: %s", name, strings.Join(path, " → "))
				}
			}

			for _, name := range strings.Fields(strings.Join(floors, " ")) {
				if _, there := graph[strings.TrimSuffix(module+name, "/.")]; !there {
					t.Errorf("a floor has %s, which is no package", name)
				}
			}
		})
	}
}

const module = "go-crontab/"

// own returns the folder of a package of this module.
func own(path string) (folder string, ours bool) {
	if path == strings.TrimSuffix(module, "/") {
		return ".", true
	}
	return strings.CutPrefix(path, module)
}

func isDatabase(path string) bool {
	for _, p := range []string{"database/sql", "github.com/go-sql-driver/mysql", "github.com/pressly/goose/v3"} {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// imports asks the go command for the imports of all packages on a system, without tests.
func imports(t *testing.T, system string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}

	graph := map[string][]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}

		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return graph
		case err != nil:
			t.Fatal(err)
		}

		graph[p.ImportPath] = p.Imports
	}
}

// way returns a shortest chain of imports, or nil.
func way(graph map[string][]string, from, to string) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			var path []string
			for p := to; p != ""; p = cameFrom[p] {
				path = append(path, p)
			}
			slices.Reverse(path)
			return path
		}

		for _, next := range graph[queue[0]] {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}

	return nil
}

// TestRulesOfImports breaks the rules on purpose.
func TestRulesOfImports(t *testing.T) {
	t.Parallel()

	graph := map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d", "e"}, "d": {"a"}}
	for name, c := range map[string]struct{ from, to, want string }{
		"over the shorter way":             {"a", "e", "a c e"},
		"a cycle ends":                     {"b", "x", ""},
		"a package reaches itself at once": {"a", "a", "a"},
	} {
		if got := strings.Join(way(graph, c.from, c.to), " "); got != c.want {
			t.Errorf("%s: got way %q, want %q", name, got, c.want)
		}
	}

	for path, want := range map[string]bool{
		"database/sql": true, "database/sql/driver": true, "database/sqlite": false,
		"github.com/pressly/goose/v3/lock": true, "encoding/json": false,
	} {
		if got := isDatabase(path); got != want {
			t.Errorf("isDatabase(%q): got %v, want %v", path, got, want)
		}
	}
}

// TestFolderList compares the folder list of docs/internals/design.md with the repository, because
// newcomers read it first.
func TestFolderList(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("docs/internals/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Folders\n\n```\n")
	list, _, found := strings.Cut(list, "```")
	if !found {
		t.Fatal("docs/internals/design.md has no list of folders")
	}

	var listed, there []string
	for line := range strings.Lines(list) {
		if name, _, ok := strings.Cut(line, "/ "); ok && !strings.Contains(name, " ") {
			listed = append(listed, name)
		}
	}

	out, err := exec.Command("git", "ls-files").Output()
	if err != nil {
		t.Skip("not a work tree of git: ", err)
	}

	for line := range strings.Lines(string(out)) {
		if name, _, ok := strings.Cut(line, "/"); ok && !strings.HasPrefix(name, ".") && !slices.Contains(there, name) {
			there = append(there, name)
		}
	}

	slices.Sort(listed)
	if !slices.Equal(listed, there) {
		t.Errorf("docs/internals/design.md lists the folders\n%v; there are\n%v", listed, there)
	}
}

// TestClient checks that on systems without process groups the program is only a client and
// contains no node.
func TestClient(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"execute", "internal/guard", "node", "internal/bench", "internal/privatedb"} {
		if slices.Contains(strings.Fields(string(out)), "go-crontab/"+name) {
			t.Errorf("on Windows the program holds %s: a file of cli/ lacks its line go:build unix", name)
		}
	}
}
