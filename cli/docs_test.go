package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go-crontab/test/docpage"
)

var pages = []string{
	"jobs.md", "from-xtimer.md", "from-crontab.md", "from-quartz.md", "files.md", "alerts.md", "changing.md",
	"chains.md",
}

// TestPagesShowCommandsThatWork runs the command lines in the sh blocks of the pages, in order, on
// a cluster with a single node. Bash only parses lines of other programs. Commands that do not end
// are only parsed, too.
func TestPagesShowCommandsThatWork(t *testing.T) {
	t.Parallel()

	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()

			s := serve(t, migrated(t), "web-1").ready()
			dir := t.TempDir()
			for _, it := range docpage.Read(t, "../docs/"+page) {
				if name, _, _ := strings.Cut(it.Text, "\n"); it.Block == "yaml" && strings.HasPrefix(name, "# ") &&
					strings.HasSuffix(name, ".yaml") {
					write(t, dir, name[2:], it.Text)
				}
				if it.Block != "sh" {
					continue
				}

				where := fmt.Sprintf("%s:%d", page, it.Line)
				if out, err := exec.Command("bash", "-n", "-c", it.Text).CombinedOutput(); err != nil {
					t.Errorf("%s: bash does not read it: %s", where, out)
					continue
				}

				for line := range strings.Lines(strings.ReplaceAll(it.Text, "\\\n", "")) {
					s.tryShown(where, strings.TrimSpace(line), dir)
				}
			}
		})
	}
}

// tryShown runs a line of a page if it is a command of ours. dir contains the files that the page
// shows.
func (s *server) tryShown(where, line, dir string) {
	s.t.Helper()
	switch word, _, _ := strings.Cut(line, " "); {
	case word == "curl":
		if _, err := exec.LookPath("curl"); err != nil {
			s.t.Logf("%s: there is no curl here to try it", where)
			return
		}
		cmd := exec.Command("bash", "-c", strings.ReplaceAll(line, defaultServer, s.url))
		cmd.Env = append(os.Environ(), s.env()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Errorf("%s: %s\n%v\n%s", where, line, err, out)
		}
		return
	case word != "go-crontab" && !strings.Contains(line, "| go-crontab "):
		return
	}

	args, in := asBashReads(s.t, line)
	for i, a := range args {
		if _, err := os.Stat(filepath.Join(dir, a)); err == nil && strings.HasSuffix(a, ".yaml") {
			args[i] = filepath.Join(dir, a)
		}
	}

	switch args[0] {
	case "serve", "migrate", "dev":
		args = append(args, "--help") // only parsed
	default:
		if cmd, _, err := newTestRoot().Find(args); err == nil && cmd.Flags().Lookup("server") == nil {
			break // needs no server
		}
		if dash := slices.Index(args, "--"); dash >= 0 {
			args = slices.Insert(args, dash, "--server", s.url, "--token", s.token())
		} else {
			args = append(args, "--server", s.url, "--token", s.token())
		}
	}

	var out strings.Builder
	if code := Main(args, strings.NewReader(in), &out, &out); code != exitOK {
		s.t.Errorf("%s: %s\nexit code %d\n%s", where, line, code, out.String())
	}
}

// asBashReads lets bash split a command line, and returns the arguments and the standard input that
// the program would get.
func asBashReads(t *testing.T, line string) (args []string, in string) {
	t.Helper()

	file := filepath.Join(t.TempDir(), "args")
	cmd := exec.Command("bash", "-c", `go-crontab() { printf '%s\0' "$@" >"$ARGS"; cat >"$ARGS.in"; }; `+line)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "ARGS="+file) // for files that it writes
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	typed, err := os.ReadFile(file + ".in")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), string(typed)
}

// TestPagesShowProgramsThatCompile compiles the go blocks of the pages, each as a separate program.
func TestPagesShowProgramsThatCompile(t *testing.T) {
	t.Parallel()

	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	replace := map[string]string{}
	var packages []string
	for _, page := range pages {
		for _, it := range docpage.Read(t, "../docs/"+page) {
			if it.Block != "go" {
				continue
			}
			// The overlay makes the go command see the file within the module, although it is
			// elsewhere.
			name := fmt.Sprintf("%s_%d", strings.TrimSuffix(page, ".md"), it.Line)
			file := filepath.Join(dir, name+".go")
			if err := os.WriteFile(file, []byte(it.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			replace[filepath.Join(module, "docs", name, "main.go")] = file
			packages = append(packages, "./docs/"+name)
		}
	}

	if packages == nil {
		t.Fatal("the pages show no program")
	}

	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command("go",
		append([]string{"build", "-buildvcs=false", "-o", os.DevNull, "-overlay", overlay}, packages...)...)
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
