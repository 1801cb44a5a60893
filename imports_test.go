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

// mayImport is the architecture: which packages of ours each one may import. A stage never imports another stage; they
// meet through small interfaces that the user of each declares, and package node wires them. What is not a test imports
// no test tool. A new package gets its line here in the commit that makes it, with a reason.
var mayImport = map[string][]string{
	"job":  {}, // nouns and arithmetic
	"sql":  {"job", "internal/failpoint"},
	"lock": {"job", "sql", "internal/failpoint"},

	"sql/trip":  {"job", "sql"},             // the statements that move runs, and those about rows that several stages share
	"sql/read":  {"job", "sql", "sql/trip"}, // what people, alerts, metrics and the doctor ask of runs and jobs, and lists
	"test/trip": {},                         // measures the trip of a run, and drives nodes without a program around them

	"session":       {"job", "sql", "sql/trip", "lock", "internal/boottime"},
	"schedule":      {"job", "lock", "sql", "sql/trip"},              // claims and starts
	"schedule/edit": {"alert", "job", "sql", "sql/trip", "sql/read"}, // people's changes: claims and starts find them in the rows
	"result":        {"audit", "job", "lock", "sql", "sql/trip", "sql/read", "internal/failpoint", "internal/privilege"},
	"compensate":    {"lock", "sql", "sql/trip"},
	"execute":       {"job", "internal/failpoint", "internal/privilege"}, // cannot reach the database

	"guard": {"internal/boottime", "internal/failpoint", "internal/logqueue", "internal/privilege"}, // a process of its own: as small as can be, and before everything else is initialised

	"secret": {"alert", "job", "sql", "sql/trip"}, // what nodes read to execute, and people write through the API: neither knows the other; channels of alerts name secrets

	"trace":  {"job", "execute"},                              // what is told to a collector of traces: stands around executors and handlers
	"metric": {"job", "sql", "sql/read", "internal/logqueue"}, // what is told to Prometheus: reads what the others count

	"alert": {"job", "sql", "sql/trip", "sql/read", "internal/trail"}, // tells people: reads what the trip of a task leaves behind, calls the outside by what node gives it

	"audit": {"job", "sql", "sql/read", "internal/trail"}, // chains and verifies audit lines, and copies them: reads what the others write

	"node":   {"alert", "audit", "job", "metric", "secret", "sql", "sql/trip", "sql/read", "lock", "session", "schedule", "schedule/edit", "execute", "result", "compensate", "guard", "internal/failpoint", "internal/logqueue"},
	"auth":   {"job", "sql"},                                                                                                                                          // who asks, and what they may do; knows nothing of HTTP but as a client of identity providers
	"doctor": {"audit", "job", "sql", "sql/trip", "sql/read", "session", "internal/innodb"},                                                                           // what is not as it should be: reads what the others write
	"feed":   {"alert", "job", "sql", "sql/trip", "sql/read", "internal/trail"},                                                                                       // what changes, for whoever listens: reads what the others write
	"api":    {"alert", "audit", "job", "secret", "sql", "sql/trip", "sql/read", "schedule/edit", "auth", "doctor", "feed", "crontab", "api/openapi", "docs", "page"}, // stands beside node, which it gets as interfaces
	// All commands but serve, dev and migrate work through the public API.
	"cli": {"audit", "job", "secret", "sql", "auth", "sql/read", "doctor", "session", "guard", "node", "trace", "api", "manifest", "crontab", "follow", "bench", "internal/logqueue", "internal/privatedb", "internal/sse"},
	".":   {"cli"},

	"api/openapi": {}, // documents about an API, and schemas of Go types
	"docs":        {}, // holds the page whose words on fields of jobs the API's reference repeats
	"page":        {}, // holds the files of the web console

	"bench": {"job", "execute", "node", "internal/privatedb"}, // runs nodes, and reads off the server and the history what they did

	"client":          {"job", "internal/sse"}, // for programs without a node: the public API and nothing else
	"crontab":         {"job"},                 // reads crontabs, and says what their lines are as jobs
	"follow":          {"job", "manifest"},     // has the cluster follow a folder of files; changes it by an interface
	"manifest":        {},                      // reads and writes files; what a job may have is the server's affair
	"examples/embed":  {"job", "node", "api", "sql"},
	"examples/client": {"job", "client"},

	"internal/manual":     {"cli"},   // writes manual pages and completions, for packages
	"internal/benchpage":  {"bench"}, // writes what benches measured into the documentation
	"internal/benchcheck": {},        // tells whether hot functions allocate more often than they did
	"internal/privatedb":  {},
	"internal/testdb":     {"internal/privatedb", "internal/innodb"},
	"internal/members":    {"internal/privatedb"}, // servers that replicate among each other, for tests
	"internal/testidp":    {},                     // an identity provider for tests
	"internal/innodb":     {},                     // what a server says of transactions
	"internal/boottime":   {},                     // a clock that nobody can set
	"internal/privilege":  {},                     // keeps a node's capabilities from what it starts
	"internal/failpoint":  {},                     // where tests kill a process; empty in what is shipped
	"internal/logqueue":   {},                     // a log that waits for no reader
	"internal/faultproxy": {},
	"internal/listdata":   {"job"},        // many jobs and runs, for what lists them
	"faults":              {},             // the fault suite: nothing but tests
	"internal/ledger":     {"job"},        // what tests of clusters saw executed, held against the history
	"internal/trail":      {"job", "sql"}, // which rows of a table were seen, for who follows it
	"internal/sse":        {},             // reads streams of the API, for clients of it
	"internal/docpage":    {},             // reads docs/ for tests of what it shows
	"internal/specgen":    {"job"},        // draws definitions for tests
	"test/legal":          {"sql"},        // refuses changes of rows that the rules of the trip forbid
	"test/model":          {},             // a model of the trip, searched by its tests
}

// databaseOnly are the packages that may import database/sql, its driver, or the migrations' library.
var databaseOnly = []string{"sql", "bench", "internal/privatedb", "internal/testdb", "internal/faultproxy", "internal/innodb", "internal/members"}

// unreachable lists packages that cannot reach the standard library's database/sql, over whatever they import.
var unreachable = []string{"job", "guard", "execute", "client"}

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
				may, known := mayImport[name]
				if !known {
					t.Errorf("package %s has no place in the graph: give it a line in mayImport, and a reason", name)
				}
				for _, to := range imported {
					if ours, is := own(to); is && !slices.Contains(may, ours) {
						t.Errorf("%s imports %s; it may import %v only", name, ours, may)
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
			for name := range mayImport {
				if _, there := graph[strings.TrimSuffix(module+name, "/.")]; !there {
					t.Errorf("mayImport has a line for %s, which is no package", name)
				}
			}
		})
	}
}

const module = "go-crontab/"

// own returns the folder of one of our packages.
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

// imports asks the go command what everything imports when built for a system, tests apart.
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

// way finds a shortest chain of imports, or nil.
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
		"database/sql": true, "database/sql/driver": true, "database/sqlite": false, "github.com/pressly/goose/v3/lock": true, "encoding/json": false,
	} {
		if got := isDatabase(path); got != want {
			t.Errorf("isDatabase(%q): got %v, want %v", path, got, want)
		}
	}
}

// TestFolderList holds the folder list of docs/design.md against what is there: newcomers read it first.
func TestFolderList(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "## Folders\n\n```\n")
	list, _, found := strings.Cut(list, "```")
	if !found {
		t.Fatal("docs/design.md has no list of folders")
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
		t.Errorf("docs/design.md lists the folders\n%v; there are\n%v", listed, there)
	}
}

// TestClient holds that the program is a client on systems that have no process groups: there it runs no node.
func TestClient(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"execute", "guard", "node", "bench", "internal/privatedb"} {
		if slices.Contains(strings.Fields(string(out)), "go-crontab/"+name) {
			t.Errorf("on Windows the program holds %s: a file of cli/ lacks its line go:build unix", name)
		}
	}
}
