package cli

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leaves calls fn for each command without subcommands.
func leaves(cmd *cobra.Command, fn func(*cobra.Command)) {
	if cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Flags().Lookup("output") != nil) {
		fn(cmd)
	}
	for _, sub := range cmd.Commands() {
		leaves(sub, fn)
	}
}

func newTestRoot() *cobra.Command {
	return newRoot(&console{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
}

// TestEveryVerb: each command has an example, the common output formats, and completion.
func TestEveryVerb(t *testing.T) {
	t.Parallel()

	// These have their own output format.
	own := []string{
		"dev", "serve", "run logs", "schema", "secret keygen", "context add", "context use", "context rm", "export",
		"migrate", "bench", "mock", "mcp",
	}

	seen := 0
	leaves(newTestRoot(), func(cmd *cobra.Command) {
		seen++
		if cmd.Hidden {
			return
		}

		name := strings.TrimPrefix(cmd.CommandPath(), "go-crontab ")
		if cmd.Example == "" {
			t.Errorf("%s has no example", name)
		}
		if f := cmd.Flags().Lookup("output"); !slices.Contains(own, name) {
			if f == nil {
				t.Errorf("%s has no -o", name)
				return
			}
			for _, format := range []string{"table", "json", "yaml", "name"} {
				if !strings.Contains(f.Usage, format) {
					t.Errorf("%s has no -o %s", name, format)
				}
			}
		}

		if cmd.ValidArgsFunction == nil && !takesFiles(cmd) && !cmd.HasSubCommands() {
			t.Errorf("%s completes the names of files", name)
		}

		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if want, is := map[string]string{"n": "limit", "z": "timezone"}[f.Shorthand]; is && f.Name != want &&
				name != "dev" {
				t.Errorf("%s: -%s is --%s, want --%s as everywhere", name, f.Shorthand, f.Name, want)
			}
			if _, there := cmd.GetFlagCompletionFunc(f.Name); !there &&
				slices.Contains([]string{"app", "output", "context", "timezone"}, f.Name) {
				t.Errorf("%s --%s completes the names of files", name, f.Name)
			}
		})
	})

	if seen < 40 {
		t.Errorf("only %d commands", seen)
	}
}

// TestExamplesParse checks that all examples use existing commands and flags.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	leaves(newTestRoot(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			for part := range strings.SplitSeq(strings.NewReplacer("$(", "|", ")", "|").Replace(line), "|") {
				fields := strings.Fields(part)
				if len(fields) == 0 || fields[0] != "go-crontab" {
					continue
				}

				found, rest, err := newTestRoot().Find(fields[1:])
				if err != nil || !found.Runnable() {
					t.Errorf("%s: %s: %v", cmd.CommandPath(), strings.TrimSpace(line), err)
					continue
				}

				for _, word := range rest {
					if word == "--" {
						break
					}
					name, isFlag := strings.CutPrefix(word, "--")
					name, _, _ = strings.Cut(name, "=")
					if isFlag && found.Flags().Lookup(name) == nil {
						t.Errorf("%s: %s: there is no --%s", cmd.CommandPath(), strings.TrimSpace(line), name)
					}
				}
			}
		}
	})
}

func TestTopics(t *testing.T) {
	t.Parallel()

	for topic, want := range map[string]string{
		"exit-codes": "4  refused", "environment": "GOCRONTAB_CONTEXT", "formats": "-o name",
	} {
		if got := command("help", topic); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%s: got %+v", topic, got)
		}
	}

	if got := command("--help"); !strings.Contains(got.out, "exit-codes") {
		t.Errorf("the topics are not named: %s", got.out)
	}
}

func TestColoursOnlyOnATerminal(t *testing.T) {
	f := newFakeAPI(t, nil)
	for _, env := range []string{"", "1"} {
		t.Setenv("NO_COLOR", env)
		for _, args := range [][]string{
			{"job", "ls", "--server", f.URL}, {"cron", "explain", "@daily"}, {"cluster", "--server", f.URL},
		} {
			if got := command(args...); strings.Contains(got.out+got.err, "\x1b") {
				t.Errorf("%v: coloured, and nobody looks: %+v", args, got)
			}
		}
	}
}

// TestNounAlone: a group without a subcommand lists what it has; alert lists what fires, or says why
// it never will.
func TestNounAlone(t *testing.T) { // not parallel: it sets the environment
	rules := `{"items":[]}`
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/alerts":       always(200, `{"items":[]}`),
		"GET /api/v1/alerts/rules": func(*http.Request) (int, string) { return 200, rules },
		"GET /api/v1/groups":       always(200, `{"items":[{"name":"reports","max":2}]}`),
	})
	t.Setenv("GOCRONTAB_SERVER", f.URL)

	if got := command("group"); got.code != 0 || !strings.Contains(got.out, "reports") ||
		!strings.Contains(got.err, "to see its commands:  go-crontab group --help") {
		t.Errorf("group: got %+v", got)
	}
	if got := command("import"); got.code != 0 || !strings.Contains(got.out, "Usage:") {
		t.Errorf("a group without a list: got %+v", got)
	}
	if got := command("alert"); got.code != 0 || !strings.Contains(got.err, "Nobody is told when a job fails") ||
		!slices.Contains(f.asked, "GET /api/v1/alerts?limit=20&state=firing") {
		t.Errorf("alert without a rule: got %+v, asked %v", got, f.asked)
	}

	rules = `{"items":[{"name":"ops","on":["failed"],"disabled":true}]}`
	if got := command("alert", "ls"); !strings.Contains(got.err, "Nobody is told when a job fails") {
		t.Errorf("a disabled rule: got %+v", got)
	}
	rules = `{"items":[{"name":"ops","on":["failed"]}]}`
	if got := command("alert"); !strings.Contains(got.err, "No alerts match") {
		t.Errorf("a rule: got %+v", got)
	}
	if last := f.asked[len(f.asked)-2]; last != "GET /api/v1/alerts?limit=20&state=firing" {
		t.Errorf("alert asks %s", last)
	}
}

func TestOutcomesAreCompleted(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"run ls", "run rerun", "job history"} {
		args := append([]string{"__complete"}, strings.Fields(of)...)
		got := command(append(args, "--outcome", "")...)
		if !strings.Contains(got.out, "\nunsuccessful\n") {
			t.Errorf("%s: got %+v", of, got)
		}
	}
}
