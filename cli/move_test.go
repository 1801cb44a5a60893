//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/secret"
)

// TestMoveToAnotherCluster: the output of `export --all` creates a second cluster with the same
// export, except for unreadable values. It names everything that it leaves behind.
func TestMoveToAnotherCluster(t *testing.T) {
	t.Parallel()

	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(secret.NewKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	cluster := func(name string) *server {
		return serve(t, migrated(t), name, "--"+secretKeyFlag, keys).ready()
	}
	old, new := cluster("old-1"), cluster("new-1")
	do := func(s *server, in string, args ...string) string {
		t.Helper()
		got := answering(in, append(args, "--server", s.url, "--token", s.token())...)
		if got.code != 0 {
			t.Fatalf("%v: got %+v", args, got)
		}
		return got.out
	}

	until := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	do(old, "https://hooks.example.com/T0/B0/xyz", "secret", "set", "chat-url")
	do(old, "s3cret", "secret", "set", "api-key", "--app", "shop")
	do(old, `
groups: [{name: warehouse, slots: 2}]
calendars: [{name: closed, exclude: [12-25]}]
channels:
  - {name: chat, type: slack, url: '{{secret.chat-url}}'}
  - {name: dead-man, type: heartbeat, url: https://ping.example.com/cluster, every: 2m, disabled: true}
rules:
  - {name: ops, on: [failed, recovered, node_gone], channels: [chat], text: '{{.Count}} failures'}
retention:
  - {scope: cluster, age: 2160h, archive: true}
  - {app: shop, runs: 100, bytes: 1GiB}
pauses:
  - {scope: cluster, reason: the move}
  - {app: shop, reason: "it's stocktaking", until: `+until+`}
jobs:
  - {app: shop, name: load, schedule: 0 3 * * *, command: 'true', group: warehouse, calendars: [closed], keep: {runs: 7}}
  - {app: shop, name: rests, schedule: 0 4 * * *, command: 'true', paused: true, ping: {url: 'https://ping.example.com/rests'}}
  - {app: ops, name: hour, every: 1h, handler: billing/close}
`, "apply", "-f", "-")

	do(old, "", "job", "pause", "shop/rests", "--reason", "until the audit is over")
	do(old, "", "handler", "disable", "billing/close", "--reason", "wrong sums")
	do(old, "", "node", "cordon", "old-1", "--absent-ok", "--reason", "new disks")
	do(old, "", "alert", "silence", "add", "--app", "shop", "--until", until, "--reason", "the database moves")
	do(old, "", "token", "create", "ci", "--role", "operator", "--app", "shop", "--expires", until)
	do(old, "", "retention", "set", "--app", "ops", "--age", "48h")

	first := do(old, "", "export", "--all")
	for _, want := range []string{
		"# Run these first, on the other cluster.", "# go-crontab secret set chat-url\n",
		"# go-crontab secret set api-key --app shop\n",
		"# go-crontab job pause shop/rests --reason 'until the audit is over'\n",
		"# go-crontab handler disable billing/close --reason 'wrong sums'\n",
		"# go-crontab node cordon --absent-ok old-1 --reason 'new disks'\n",
		"# go-crontab alert silence add --app shop --until " + until + " --reason 'the database moves'\n",
		"# go-crontab token create ci --role operator --app shop --expires " + until + "\n",
		"# go-crontab token create bootstrap --role admin --expires never\n", "# Not exported:\n# history and output,",
		"retention:\n  - scope: cluster\n    age: 2160h\n    archive: true\n\n  - app: ops\n    age: 48h\n\n  - app: shop\n    runs: 100\n    bytes: 1GiB\n",
		"pauses:\n  - scope: cluster\n    reason: the move\n\n  - app: shop\n    reason: it's stocktaking\n    until: \"" + until + "\"\n",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the export does not say %q:\n%s", want, first)
		}
	}

	for _, value := range []string{"hooks.example.com", "s3cret", old.token()} {
		if strings.Contains(first, value) {
			t.Errorf("the export says %s", value)
		}
	}

	// An object that names a missing secret is refused, and nothing is applied.
	if got := answering(first, "apply", "-f", "-", "--server", new.url, "--token",
		new.token()); got.code != exitRefused || !strings.Contains(got.err, "there is no secret") {
		t.Errorf("without its secrets: got %+v", got)
	}
	if got := do(new, "", "job", "ls", "-o", "name"); got != "" {
		t.Errorf("jobs after a refusal: %s", got)
	}

	asCommands(t, new, first, func(line string) string { return "the value" })
	do(new, first, "apply", "-f", "-")
	asCommands(t, new, first[strings.Index(first, "# Then"):], func(string) string { return "" })
	second := do(new, "", "export", "--all")
	if second != first {
		t.Errorf("the second export is\n%s\nnot\n%s", second, first)
	}

	if got := do(new, second, "apply", "-f", "-", "-o", "json"); !strings.Contains(got, `"changed": 0`) {
		t.Errorf("applied once more: %s", got)
	}
	if got := do(new, "", "job", "show", "ops/hour"); !strings.Contains(got, "the move") {
		t.Errorf("the pause of the cluster does not hold:\n%s", got)
	}

	// Without --all the export has definitions, but no operational state.
	plainOne := do(new, "", "export")
	if strings.Contains(plainOne, "pauses:") || !strings.Contains(plainOne, "retention:") ||
		strings.Contains(plainOne, "#") {
		t.Errorf("a plain export is\n%s", plainOne)
	}

	if got := do(new, "", "export", "--app",
		"shop"); !strings.Contains(got, "retention:\n  - app: shop\n    runs: 100\n") ||
		strings.Contains(got, "scope") || strings.Contains(got, "channels") {
		t.Errorf("an export of an app is\n%s", got)
	}
}

// TestMoveOfManyJobs: more jobs than fit in a request are moved unchanged, and pauses are created
// before jobs.
func TestMoveOfManyJobs(t *testing.T) {
	t.Parallel()

	old, new := serve(t, migrated(t), "many-1").ready(), serve(t, migrated(t), "many-2").ready()
	do := func(s *server, in string, args ...string) result {
		t.Helper()
		got := answering(in, append(args, "--server", s.url, "--token", s.token())...)
		if got.code != 0 {
			t.Fatalf("%v: got %d %s", args, got.code, got.err)
		}
		return got
	}

	// On a busy machine a thousand jobs may exceed the timeout of a statement or a request. Then
	// apply again, as the errors suggest.
	apply := func(s *server, in, want string) {
		t.Helper()
		for {
			got := answering(in, "apply", "-f", "-", "--server", s.url, "--token", s.token())
			if strings.Contains(got.err, "may or may not have been made") ||
				strings.Contains(got.err, "The database does not answer") {
				want = ""
				continue
			}
			if got.code != 0 || want != "" && got.err != want {
				t.Errorf("got %d %s, want %s", got.code, got.err, want)
			}
			return
		}
	}

	var text strings.Builder
	text.WriteString("groups: [{name: g, slots: 1}]\ncalendars: [{name: c, exclude: [12-25]}]\npauses: [{scope: cluster, reason: move}]\njobs:\n")
	const jobs = 1010
	for i := range jobs {
		fmt.Fprintf(&text,
			"- {app: app%d, name: j%d, schedule: 0 3 1 1 *, command: 'true', group: g, calendars: [c]}\n", i%3, i)
	}

	apply(old, text.String(), fmt.Sprintf("%d created\n", jobs+3))
	first := do(old, "", "export", "--all").out
	if n := strings.Count(first, "\n---\n"); n != 1 || strings.Count(first, "groups:") != 1 {
		t.Errorf("the export has %d lines between documents", n)
	}

	apply(new, first, fmt.Sprintf("%d created, 1 unchanged\n", jobs+3)) // the retention rule
	if second := do(new, "", "export", "--all").out; second != first {
		t.Errorf("the second export is another, of %d bytes, not %d", len(second), len(first))
	}
}

// asCommands runs the commands in an export's comments up to its objects, parsed by bash.
func asCommands(t *testing.T, s *server, text string, in func(string) string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			return
		}
		line, is := strings.CutPrefix(strings.TrimSpace(line), "# go-crontab ")
		if !is || strings.Contains(line, "bootstrap") { // each cluster has its own
			continue
		}
		args, _ := asBashReads(t, "go-crontab "+line)
		if got := answering(in(line), append(args, "--server", s.url, "--token", s.token())...); got.code != 0 {
			t.Errorf("%s: got %+v", line, got)
		}
	}
}

// answering runs a command line in this process with a text as standard input.
func answering(in string, args ...string) result {
	var out, errs strings.Builder
	code := Main(args, strings.NewReader(in), &out, &errs)
	return result{code, out.String(), errs.String()}
}
