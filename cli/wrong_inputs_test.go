package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWrongInputs: what people mistype gets an error that says what is wrong and what is right, and
// the exit code of its kind. No typo succeeds.
func TestWrongInputs(t *testing.T) {
	t.Parallel()

	s := serve(t, migrated(t), "web-1").ready()
	for _, line := range []string{
		"job add shop/hello --every 1h -- true", "job add hello --every 1h -- true",
		"group set database --slots 2", "job run hello --wait",
	} {
		if got := s.ask(strings.Fields(line)...); got.code != exitOK {
			t.Fatalf("%s: got %+v", line, got)
		}
	}
	ended := s.runs("hello")[0].ID

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	for _, test := range []struct {
		line string
		code int
		want string
	}{
		// names of nodes, apps and jobs
		{"node drain webb-1 --wait", exitNotFound, `There is no node "webb-1" in the cluster; did you mean "web-1"?`},
		{"node cordon web-2", exitNotFound, "--absent-ok"},
		{"node drain web-2 --absent-ok", exitOK, "web-2"},
		{"export --app shpo", exitNotFound, `there is no app "shpo"; did you mean "shop"?`},
		{"app pause shpo", exitNotFound, `did you mean "shop"?`},
		{"job show helo", exitNotFound, `there is no job "helo"; did you mean "hello"?`},
		{"job history helo", exitNotFound, `did you mean "hello"?`},
		{"run ls --job shop/helo", exitNotFound, `did you mean "shop/hello"?`},
		{"audit --job helo", exitNotFound, `did you mean "hello"?`},
		{"group rm databse", exitNotFound, `there is no group "databse"; did you mean "database"?`},
		{"alert test nosuch", exitNotFound, "alert channel ls"},
		{"job rollback hello 9", exitNotFound, "never had version 9"},
		{"run kill " + ended, exitRefused, "run show " + ended},

		// commands and flags
		{"jbo ls", exitUsage, "did you mean go-crontab job?"},
		{"job shwo hello", exitUsage, "did you mean go-crontab job show"},
		{"job ls --ap shop", exitUsage, "unknown flag: --ap; did you mean --app?"},
		{"cron next @daily --timezon UTC", exitUsage, "did you mean --timezone?"},
		{"cron next @daily --tz UTC", exitUsage, "unknown flag: --tz"},
		{"run ls --count 3", exitUsage, "unknown flag: --count"},
		{"run ls -n abc", exitUsage, `--limit "abc": want a whole number`},
		{"job ls --status activ", exitUsage, "want one of active, paused, finished, error"},
		{"group set database", exitUsage, "--slots is missing"},
		{"group set database 3", exitUsage, `unexpected argument "3"`},
		{"group set database --slots -1", exitRefused, "it must be a whole number from 1"},
		{"group set database --rate 10", exitRefused, "is not a rate; give starts and their period"},
		{"group set database --slots few", exitUsage, "want a whole number, or \"none\" for no limit"},
		{"backfill start hello", exitUsage, "--from is missing"},
		{"job run hello --wait-timeout 1s", exitUsage, "--wait-timeout needs --wait"},
		{"job ls --server ftp://x", exitUsage, `server "ftp://x": want a URL`},
		{"job ls --ca-cert /nix.pem", exitUsage, "--ca-cert: "},

		// definitions and filters
		{"job add x --schedule @dayly -- true", exitRefused, "the macros are @yearly, @monthly, @weekly, @daily"},
		{"job add x --schedule @daily --overlap wait -- true", exitRefused, "overlap: "},
		{"run ls --outcome good", exitRefused, "outcome: "},
		{"run ls --from 2027-02-01 --to 2026-02-01", exitRefused, "is not after from"},
		{"audit --from 2027-02-01 --to 2026-02-01", exitRefused, "is not after from"},
		{"apply -f " + file("open.yaml", "jobs: ["), exitRefused, "open.yaml:1: is not YAML: a value is missing, or a bracket"},
		{"apply -f " + file("typo.yaml", "jobs:\n- nmae: x\n"), exitRefused, "typo.yaml:2:3: nmae: is not a known field; did you mean name?"},
		{"import crontab " + file("tab", "0 3 * * * x\n") + " --selector node==", exitUsage, "--selector: "},
		{"import crontab " + file("tab", "0 3 * * * x\n") + " --timeout -1h", exitUsage, "--timeout: "},
		{"import crontab " + file("tab", "0 3 * * * x\n") + " --label crontab=x", exitUsage, "--label crontab: is set to the name of the crontab"},

		// empty values, of unset variables
		{"run ls --job=", exitUsage, "--job is empty: give a value, or leave the flag out"},
		{"retention set --app shop --age=", exitUsage, "--age is empty"},
		{"app pause shop --until=", exitUsage, "--until is empty"},

		// what this node would refuse
		{"job add y --every 1h --user nobodyx -- true", exitOK, "node web-1 would refuse its runs: user: this node has no user nobodyx"},
		{"job add z --every 1h --http http://10.0.0.1/", exitOK, "10.0.0.1 is in a private network"},

		// the other commands
		{"status --app shpo", exitNotFound, `there is no app "shpo"; did you mean "shop"?`},
		{"status --last 40d", exitUsage, "--last: want 1m to 31d"},
		{"run rerun --from -1d --app shpo --dry-run", exitNotFound, `did you mean "shop"?`},
		{"run rerun --from -1d --node webb-1 --dry-run", exitNotFound, `did you mean "web-1"?`},
		{"run rerun " + ended + " --dry-run", exitOK, "it ended succeeded"},
		{"export --label team=dta", exitNotFound, "no job has the label team=dta"},
		{"cluster puase", exitUsage, "did you mean go-crontab cluster pause?"},
		{"audit verfiy", exitUsage, "did you mean go-crontab audit verify?"},
		{"job ad x", exitUsage, "did you mean go-crontab job add?"},
		{"job show HELO", exitNotFound, `did you mean "hello"?`},
		{"help frobnicate", exitUsage, `unknown command "frobnicate"`},
		{"help job frobnicate", exitUsage, `unexpected argument "frobnicate"`},
		{"completion bas", exitUsage, `unknown command "bas"`},
		{"job add v --every 99999999h -- true", exitRefused, "this duration is too long"},
		{"job add v --every 1h --label a=1 --label a=2 -- true", exitUsage, "--label a is given twice"},
		{"job ls --server http://u:hunter2@h", exitUsage, `--server "h": want a URL`},
		{"serve --check --dsn u@tcp(h)/d --listen 127.0.0.1:99999", exitUsage, `--listen "127.0.0.1:99999": want host:port`},
		{"import crontab " + file("tab", "0 3 * * * x\n") + " " + file("tab", "0 3 * * * x\n") + " --dry-run", exitOK,
			"dry run: 1 job would be imported"},

		// tokens
		{"job ls --token gocrontab_x", exitUnauthorized, "The token is incomplete, or go-crontab did not issue it"},
	} {
		args := strings.Fields(test.line)
		got := result{}
		switch {
		case slices.Contains([]string{"cron", "help", "completion", "serve"}, args[0]),
			strings.Contains(test.line, "--server"):
			got = command(args...)
		case strings.Contains(test.line, "--token"):
			got = command(append(args, "--server", s.url)...)
		default:
			got = s.ask(args...)
		}
		if got.code != test.code || !strings.Contains(got.out+got.err, test.want) {
			t.Errorf("%s: got %+v; want code %d and %q", test.line, got, test.code, test.want)
		}
	}

	if code, out := run(t, []string{"GOCRONTAB_DSN=u@tcp(h)/d", "GOCRONTAB_SLOTS=abc"}, "serve"); code != exitUsage ||
		!strings.Contains(out, `GOCRONTAB_SLOTS "abc": want a whole number`) {
		t.Errorf("GOCRONTAB_SLOTS=abc: got code %d, %s", code, out)
	}
	if got := command("job", "ls", "--server", s.url); got.code != exitUnauthorized ||
		!strings.Contains(got.err, "GOCRONTAB_TOKEN") {
		t.Errorf("no token: got %+v", got)
	}
}
