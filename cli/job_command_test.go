package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAddSendsCommandOptions(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"POST /api/v1/jobs": always(201, fakeJob)})
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	add := func(args ...string) result {
		return command(append([]string{"job", "add", "x", "--every", "1h", "--server", f.URL, "-c", "true"},
			args...)...)
	}

	for _, c := range []struct{ args, want string }{
		{"", `{`},
		{
			"--user www:data --dir /srv --grace 1m --success-codes 0,3 --stdin text",
			`"dir":"/srv","every":"1h","grace":"1m"`,
		},
		{
			"--user www:data --stdin text --success-codes 0 --success-codes 3",
			`"stdin":"text","success_codes":[0,3],"user":"www:data"`,
		},
		{"--skip-exit-codes 75,76", `"skip_exit_codes":[75,76]`},
		{"--env A=b=c --env D=", `"env":{"A":"b=c","D":""}`},
		{"--stdin-file " + file, `"stdin":"from a file\n"`},
		{
			"--limit memory=512MiB,cpu=0.5 --limit pids=20,core=0",
			`"limits":{"core":0,"cpu":0.5,"memory":"512MiB","pids":20}`,
		},
		{"--limit pids=many", `"limits":{"pids":"many"}`}, // the server refuses it
	} {
		got := add(strings.Fields(c.args)...)
		if body := f.bodies[len(f.bodies)-1]; got.code != 0 || !strings.Contains(body, c.want) {
			t.Errorf("%s: got %+v, sent %s, want %s", c.args, got, body, c.want)
		}
	}

	for args, want := range map[string]string{
		"--env A": "want NAME=value", "--limit memory": "want NAME=value", "--stdin a --stdin-file b": "cannot be combined",
		"--stdin-file /nonexistent": "--stdin-file",
		"--success-codes x":         "success-codes",
	} {
		if got := add(strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want %q", args, got, want)
		}
	}
}

func TestCardShowsCommandOptions(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12": always(200, strings.Replace(fakeJob, "{",
			`{"user":"www","dir":"/srv","env":{"B":"2","A":"1"},"stdin":"four","success_codes":[0,3],"skip_exit_codes":[75],"grace":"1m","limits":{"pids":5,"memory":"1GiB"},`, 1)),
	})

	got := command("job", "show", "12", "--server", f.URL)
	shown := strings.Join(strings.Fields(got.out), " ")
	for _, want := range []string{
		"user www", "dir /srv", "env A=1 B=2", "stdin 4 bytes", "success exit codes 0, 3", "nothing to do exit codes 75", "grace 1m",
		"limits memory=1GiB, pids=5",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("got %s, want %q", shown, want)
		}
	}
}
