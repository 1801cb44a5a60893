package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/client"
)

func TestCronNext(t *testing.T) {
	t.Parallel()

	got := command("cron", "next", "30 2 * * *", "--timezone", "europe/berlin", "--from", "2027-03-27T01:30:00Z", "-n", "3",
		"-o", "json")
	const want = `{
  "words": "at 02:30 every day, Europe/Berlin",
  "next": [
    {
      "due": "2027-03-28T03:00:00+02:00",
      "mark": "gap"
    },
    {
      "due": "2027-03-29T02:30:00+02:00"
    },
    {
      "due": "2027-03-30T02:30:00+02:00"
    }
  ]
}
`
	if got.code != 0 || got.out != want {
		t.Errorf("got %+v, want %s, --from itself left out", got, want)
	}

	got = command("cron", "next", "30", "2", "*", "*", "*", "--from", "2027-01-31", "-o", "name", "-n", "2")
	if got.out != "2027-01-31T02:30:00Z\n2027-02-01T02:30:00Z\n" {
		t.Errorf("without quotes: got %+v", got)
	}

	got = command("cron", "next", "0 0 1 1 * 2020", "-o", "json")
	if !strings.Contains(got.out, `"next": []`) || !strings.Contains(got.out, "the job has no due time in the future") ||
		got.code != 0 {
		t.Errorf("nothing ahead: got %+v", got)
	}

	if got = command("cron", "next", "* * * * *", "-n", "1000", "-o", "name"); strings.Count(got.out, "\n") != 1000 {
		t.Errorf("a thousand: got %d", strings.Count(got.out, "\n"))
	}

	for line, want := range map[string]struct {
		code int
		err  string
	}{
		"cron next 61_*_*_*_*": {exitRefused, `minute "61": not between 0 and 59`},
		"cron next":            {exitUsage, "is missing"},
		"cron next 0 3 exit.go 5 1": {
			exitUsage, "file names such as exit.go; quote the expression",
		},
		"cron next @daily -n 0":               {exitUsage, "want 1 to 1000"},
		"cron next @daily -n 1001":            {exitUsage, "want 1 to 1000"},
		"cron next @daily --timezone Nowhere": {exitUsage, "Nowhere"},
		"cron next @daily --from yesterday":   {exitUsage, "--from"},
		"cron explain 0_0_31_2_*":             {exitRefused, "never fires"},
		"cron explian @daily":                 {exitUsage, "did you mean go-crontab cron explain"},
		"cron next @daily --server http://x":  {exitUsage, "unknown flag"}, // nobody is asked
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		if got := command(args...); got.code != want.code || !strings.Contains(got.err, want.err) {
			t.Errorf("%s: got %+v, want code %d and %q", line, got, want.code, want.err)
		}
	}
}

// TestEmptyWords: an unset variable must not widen a selection to everything. No request is sent.
func TestEmptyWords(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{
		{"token", "revoke", ""}, {"token", "create", "ci", "--role", "admin", "--app", ""}, {"app", "pause", ""},
		{"app", "resume", ""}, {"retention", "set", "--app", "", "--age", "24h"},
		{"alert", "silence", "add", "--app", "", "--until", "2h", "--reason", "x"},
		{"job", "rm", "--app=", "--name-contains", "old", "--yes"}, {"job", "ls", "-a", ""},
		{"run", "ls", "--state", "running", "--node="}, {"run", "ls", "--job="}, {"run", "ls", "--from="},
		{"audit", "--who", ""}, {"events", "--job", ""}, {"events", "--kind", ""}, {"upcoming", "--label", ""},
		{"alert", "ls", "--state", ""}, {"job", "ls", "--context", ""}, {"job", "pause", "--id", "", "--yes"},
		{"retention", "set", "--app", "shop", "--age="}, {"app", "pause", "shop", "--until", ""},
		{"job", "add", "x", "--every", "1h", "--timeout", "", "--", "true"},
		{"import", "crontab", "x", "--selector", ""}, {"apply", "-f", "x", "--prune", "-l", ""},
	} {
		if got := command(args...); got.code != exitUsage || !strings.Contains(got.err, "empty") {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

// TestGivenZero: a zero that is given is sent, so that the server refuses it where it would mean the
// default.
func TestGivenZero(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/jobs": always(201, fakeJob), "PUT /api/v1/cluster/retention": always(200, `{}`),
	})
	for line, want := range map[string]string{
		"job add x --server URL --every 1h --queue 0 --keep-runs 0 --attempts 0 --paused=false -- true": `{"app":"default",` +
			`"command":"true","every":"1h","keep":{"runs":0},"name":"x","paused":false,"queue":0,"retry":{"attempts":0}}`,
		"retention set --server URL --runs 0": `{"runs":0}`,
	} {
		got := command(strings.Fields(strings.ReplaceAll(line, "URL", f.URL))...)
		if sent := f.bodies[len(f.bodies)-1]; got.code != 0 || sent != want {
			t.Errorf("%s: got %+v, sent %s, want %s", line, got, sent, want)
		}
	}
}

// full is a writer that always fails.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestLostOutput: a command fails if its output, such as a key, cannot be written.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	if code := Main([]string{"secret", "keygen"}, strings.NewReader(""), full{}, &errs); code != exitFailed ||
		!strings.Contains(errs.String(), "no space left") {
		t.Errorf("got code %d, %s", code, errs.String())
	}
}

func TestCronExplain(t *testing.T) {
	t.Parallel()

	got := command("cron", "explain", "*/15 9-17 13 * MON-FRI", "--timezone", "Asia/Shanghai", "--from", "2027-01-01")
	for _, want := range []string{
		"every 15 minutes from 09:00 to 17:45 on the 13th of the month and also on weekdays, Asia/Shanghai",
		"read as        minute hour day-of-month month day-of-week",
		"day-of-week    1-5", "follows elapsed time", "next           2027-01-01 09:00:00+08:00",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("got %s, want %q in it", got.out, want)
		}
	}

	got = command("cron", "explain", "0 0 3 * * *", "-o", "json")
	var v struct {
		Words, Layout string
		Elapsed       bool
		Fields        []struct{ Name, Value string }
		Next          []struct{ Due string }
	}

	if err := json.Unmarshal([]byte(got.out), &v); err != nil ||
		v.Layout != "second minute hour day-of-month month day-of-week" || v.Elapsed || len(v.Fields) != 7 ||
		len(v.Next) != 3 {
		t.Errorf("got %s, %v", got.out, err)
	}
}

// write makes a file in a folder and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestApplySendsAndTells(t *testing.T) {
	t.Parallel()

	const done = `{"dry_run":true,"changed":3,"groups":[],"calendars":[{"name":"c","action":"unchanged"}],"jobs":[
 {"app":"a","name":"n\u001b[31m","action":"created","changes":[{"field":"command","becomes":"x\ny\n"},{"field":"on_lost","becomes":"fail"}],"warnings":[{"message":"hm","code":"other"}]},
 {"app":"a","name":"u","action":"updated","changes":[{"field":"command","was":"1\n2\n3\n4\n","becomes":"1\n2\nthree\n4\n"},{"field":"owner","was":"me"},{"field":"timeout","was":"1m","becomes":"2m"}]},
 {"app":"a","name":"d","action":"deleted"}]}`

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"POST /api/v1/apply": always(200, done)})
	dir := t.TempDir()
	write(t, dir, "b.yaml", "name: two\nevery: 5m\n")
	write(t, dir, "a.json", `{"jobs": [{"name": "one"}], "groups": []}`)
	got := command("apply", "-f", dir, "--dry-run", "--prune", "--app", "a", "--server", f.URL)
	if want := `{"dry_run":true,"groups":[],"jobs":[{"name":"one"},{"every":"5m","name":"two"}],"prune":{"app":"a"}}`; f.bodies[0] != want || got.code != 0 {
		t.Errorf("sent\n%s, want\n%s; got %+v", f.bodies[0], want, got)
	}

	golden(t, "apply.txt", got.out+"---\n"+got.err)
	if got := command("apply", "-f", dir, "--prune", "-l", "x=y", "-l", "z=", "-o", "name", "--server",
		f.URL); got.out != "a/n\x1b[31m\na/u\na/d\n" {
		t.Errorf("names: got %+v", got)
	}
	if want := `"prune":{"labels":{"x":"y","z":""}}`; !strings.Contains(f.bodies[1], want) {
		t.Errorf("sent %s, want %s", f.bodies[1], want)
	}

	empty := t.TempDir()
	bad := write(t, dir, "bad/x.yaml", "name: a\nname: b\n")
	before := len(f.asked)

	for line, want := range map[string]struct {
		code int
		err  string
	}{
		"apply":                                       {exitUsage, "-f FILE is missing"},
		"apply -f " + dir + " --app a":                {exitUsage, "need --prune"},
		"apply -f " + dir + " --prune":                {exitUsage, "needs either --app or --label"},
		"apply -f " + dir + " --prune -l x=y --app a": {exitUsage, "needs either"},
		"apply -f " + dir + " --prune -l x":           {exitUsage, "want key=value"},
		"apply -f " + empty:                           {exitUsage, "is empty"},
		"apply -f " + empty + "/nix":                  {exitUsage, "no such file"},
		"apply -f " + bad: {
			exitRefused, bad + ":2:1: name is given twice; the first is in line 1",
		},
		"apply -f -": {exitUsage, "standard input: is empty"},
	} {
		if got := command(append(strings.Fields(line), "--server", f.URL)...); got.code != want.code ||
			!strings.Contains(got.err, want.err) {
			t.Errorf("%s: got %+v, want code %d and %q", line, got, want.code, want.err)
		}
	}

	if len(f.asked) != before {
		t.Errorf("asked %v", f.asked[before:])
	}
}

func TestApplyTellsThePlaces(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/apply": always(422,
			`{"type":"urn:go-crontab:problem:invalid","title":"The request is not valid","status":422,
 "detail":"x","errors":[{"field":"jobs[1].schedule","message":"is wrong"},{"field":"jobs[0].evry","message":"is not a known field; did you mean every?"},{"field":"jobs[1].name","message":"default/x is already given as jobs[0]"},
 {"field":"prune","message":"no"}]}`),
	})

	file := write(t, t.TempDir(), "jobs.yaml", "jobs:\n  - name: a\n    evry: 5m\n  - name: b\n    schedule: x\n")
	got := command("apply", "-f", file, "--server", f.URL)
	want := strings.ReplaceAll(`error: The request is not valid
  prune: no
  FILE:3:5: evry: is not a known field; did you mean every?
  FILE:4:5: name: default/x is already given as FILE:2:5
  FILE:5:5: schedule: is wrong
`, "FILE", file)
	if got.code != exitRefused || got.err != want {
		t.Errorf("got %+v, want\n%s", got, want)
	}
}

// TestApplyInParts: a large set is applied in parts after a dry run of all parts. Objects in
// several parts are reported once.
func TestApplyInParts(t *testing.T) {
	t.Parallel()

	var at int // number of the request that gets this answer
	var instead func() (int, string)
	asked := 0
	f := newFakeAPI(t, nil)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == at {
			status, text := instead()
			w.WriteHeader(status)
			fmt.Fprint(w, text)
			return
		}

		var want struct {
			Dry    bool `json:"dry_run"`
			Groups []named
			Jobs   []named
		}

		if err := json.NewDecoder(r.Body).Decode(&want); err != nil || len(want.Jobs) > 1000 {
			t.Errorf("got %d jobs, %v", len(want.Jobs), err)
		}

		f.bodies = append(f.bodies, fmt.Sprintf("%v %d %d", want.Dry, len(want.Groups), len(want.Jobs)))
		list := func(of []named) (out []string) {
			for _, n := range of {
				out = append(out, fmt.Sprintf(`{"app":"default","name":%q,"action":"created","further":1}`, n.Name))
			}
			return out
		}

		fmt.Fprintf(w, `{"dry_run":%v,"groups":[%s],"jobs":[%s]}`, want.Dry, strings.Join(list(want.Groups), ","),
			strings.Join(list(want.Jobs), ","))
	})

	var text strings.Builder
	text.WriteString("groups: [{name: g, slots: 1}]\njobs:\n")
	for i := range 2001 {
		fmt.Fprintf(&text, "- {name: j%04d, group: g}\n", i)
	}

	file := write(t, t.TempDir(), "jobs.yaml", text.String())
	apply := func(args ...string) result {
		asked, f.bodies = 0, nil
		return command(append([]string{"apply", "-f", file, "--server", f.URL}, args...)...)
	}

	dry, all := []string{"true 1 1000", "true 1 1000", "true 1 1"}, []string{
		"false 1 1000", "false 1 1000", "false 1 1",
	}
	if got := apply(); got.code != 0 || got.err != "2002 created\n" || !slices.Equal(f.bodies, append(dry, all...)) ||
		strings.Count(got.out, "group g") != 1 || strings.Count(got.out, "default/j") != 2001 {
		t.Errorf("got %d %s, %d lines, sent %v", got.code, got.err, strings.Count(got.out, "\n"), f.bodies)
	}
	if got := apply("--dry-run"); got.code != 0 || !strings.HasPrefix(got.err, "dry run: 2002 created\n") ||
		!slices.Equal(f.bodies, dry) {
		t.Errorf("a dry run: got %d %s, sent %v", got.code, got.err, f.bodies)
	}

	var whole struct {
		Changed int
		Groups  []map[string]any
		Jobs    []map[string]any
	}

	if got := apply("-o", "json"); json.Unmarshal([]byte(got.out), &whole) != nil || whole.Changed != 2002 ||
		len(whole.Groups) != 1 || len(whole.Jobs) != 2001 || whole.Jobs[2000]["name"] != "j2000" ||
		whole.Jobs[2000]["further"] != 1.0 {
		t.Errorf("JSON: got %d changed, %d groups, %d jobs", whole.Changed, len(whole.Groups), len(whole.Jobs))
	}
	if got := apply("--prune", "--app", "default"); got.code != exitRefused || asked != 0 ||
		!strings.Contains(got.err, "--prune allows at most 1000 jobs in the files, and they have 2001") {
		t.Errorf("with --prune: got %+v after %d requests", got, asked)
	}

	// An error in the last part is found before the first part is applied, and reported with its
	// line.
	at, instead = 3, func() (int, string) {
		return 422, `{"type":"urn:go-crontab:problem:invalid","title":"The request is not valid","status":422,"errors":[{"field":"jobs[0].group","message":"no"}]}`
	}
	if got := apply(); got.code != exitRefused || asked != 3 ||
		got.err != "error: The request is not valid\n  "+file+":2003:17: group: no\n" {
		t.Errorf("got %+v after %d requests", got, asked)
	}

	at, instead = 5, func() (int, string) { return 503, `{"title":"No","status":503}` }
	if got := apply(); got.code == 0 || asked != 5 ||
		!strings.HasPrefix(got.err, "1 of 3 parts are applied; run the same command again") ||
		strings.Count(got.out, "default/j") != 1000 {
		t.Errorf("ended by an error: got %d %s after %d requests", got.code, got.err, asked)
	}
}

func TestImportTells(t *testing.T) {
	t.Parallel()

	var answer string
	known := `{"items":[]}`
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/apply": func(*http.Request) (int, string) { return 200, answer },
		"GET /api/v1/jobs":   func(*http.Request) (int, string) { return 200, known },
	})

	sent := func() []string {
		return slices.DeleteFunc(slices.Clone(f.bodies), func(b string) bool { return b == "" })
	}
	dir := t.TempDir()
	file := write(t, dir, "tab", "MAILTO=me\n0 3 * * * backup.sh\n@reboot x\n")
	got := command("import", "crontab", file, "--dry-run", "--server", f.URL)
	if got.code != exitRefused || !strings.Contains(got.err, file+":3: @reboot: a cluster has no boot") ||
		!strings.Contains(got.err, "--timezone sets another") || !strings.Contains(got.err, "--skip 3") ||
		!strings.Contains(got.out, "default/backup") || f.asked != nil {
		t.Errorf("got %+v, want line 3 refused, and nobody asked", got)
	}

	// The hint repeats lines already skipped. A time zone that applies to no line is not mentioned.
	berlin := write(t, dir, "berlin", "CRON_TZ=Europe/Berlin\n0 3 * * * backup.sh\n@reboot x\n@reboot y\n")
	got = command("import", "crontab", berlin, "--dry-run", "--skip", "3", "--server", f.URL)
	if got.code != exitRefused || !strings.Contains(got.err, "--skip 3,4\n") ||
		strings.Contains(got.err, "--timezone sets another") {
		t.Errorf("once more: got %+v, want --skip 3,4", got)
	}

	// A file that is given twice is read once, and the dry run shows what the flags set.
	answer = `{"dry_run":true,"jobs":[]}`
	got = command("import", "crontab", dir, file, file, "--skip", file+":3", "--skip", berlin+":3", "--skip", berlin+":4",
		"--dry-run", "--selector", "node=web-1", "--timeout", "2h", "--label", "team=x", "-o", "table", "--server", f.URL)
	for want, n := range map[string]int{
		"default/backup": 2, "    on       node=web-1\n": 2, "    timeout  2h\n": 2, "    label    team=x\n": 2,
	} {
		if strings.Count(got.out, want) != n {
			t.Errorf("%d times %q: got %+v", n, want, got)
		}
	}
	f.bodies = nil

	answer = `{"dry_run":true,"groups":[],"calendars":[],"jobs":[{"app":"ops","name":"backup","action":"created","version":0}]}`
	args := []string{
		"import", "crontab", file, "--skip", "3", "--timezone", "Asia/Shanghai", "--app", "ops", "--server", f.URL,
	}
	if got = command(args...); got.code != 0 || len(sent()) != 2 ||
		!strings.Contains(got.out, "created    ops/backup  at 03:00 every day, Asia/Shanghai") {
		t.Fatalf("got %+v after %v", got, sent())
	}

	want := fmt.Sprintf(`{"jobs":[{"app":"ops","command":"backup.sh","labels":{"crontab":%q},"name":"backup","owner":"me","schedule":"0 3 * * *","timezone":"Asia/Shanghai","version":0}]}`, labelOf(file).now)
	if sent()[1] != want {
		t.Errorf("sent\n%s, want\n%s", sent()[1], want)
	}

	answer = `{"jobs":[{"app":"ops","name":"backup","action":"updated","version":7,"changes":[{"field":"labels.crontab","becomes":"x"}]}]}`
	if got = command(args...); got.code != exitRefused ||
		!strings.Contains(got.err, "the job ops/backup exists") ||
		!strings.Contains(got.err, "--replace") || len(sent()) != 3 {
		t.Errorf("another job: got %+v", got)
	}
	if got = command(append(args, "--replace")...); got.code != 0 ||
		!strings.Contains(sent()[len(sent())-1], `"version":7`) {
		t.Errorf("replaced: got %+v, sent %s", got, sent()[len(sent())-1])
	}

	// The same path on another machine is another crontab. Older labels lack the machine; then a
	// job with the same command counts as imported from here.
	for label, c := range map[string]struct {
		field string
		code  int
	}{
		"other-host:" + file: {"schedule", exitRefused}, "": {"schedule", exitRefused}, file: {"command", exitRefused},
		file + "+": {"schedule", exitRefused},
	} {
		answer = fmt.Sprintf(`{"jobs":[{"app":"ops","name":"backup","action":"updated","version":7,"changes":[{"field":"labels.crontab","was":%q,"becomes":"x"},{"field":%q}]}]}`, label, c.field)
		if got = command(args...); got.code != c.code {
			t.Errorf("a job with the label %s and another %s: got %+v, want %d", label, c.field, got, c.code)
		}
	}

	answer = fmt.Sprintf(`{"jobs":[{"app":"ops","name":"backup","action":"updated","version":7,"changes":[{"field":"labels.crontab","was":%q,"becomes":"x"},{"field":"schedule"}]}]}`, file)
	if got = command(args...); got.code != 0 {
		t.Errorf("a job of before: got %+v", got)
	}

	answer = `{"dry_run":true,"jobs":[{"app":"ops","name":"backup","action":"updated","version":7,"changes":[{"field":"schedule"}]}]}`
	if got = command(append(args, "--dry-run")...); got.code != 0 ||
		!strings.Contains(got.out, "ops/backup  updated\n") {
		t.Errorf("a dry run: got %+v, want it to say that the job is changed", got)
	}

	answer = `{"jobs":[{"app":"ops","name":"backup","action":"updated","version":7,"changes":[{"field":"command"}]}]}`
	if got = command(args...); got.code != 0 { // imported from here
		t.Errorf("a line that was changed: got %+v", got)
	}

	// A line is gone: later lines keep their names, a changed line gets a free name, and the job of
	// the missing line is reported.
	again := write(t, dir, "again", "0 4 * * * backup.sh b\n0 5 * * * backup.sh d\n0 7 * * * backup.sh e\n")
	known = `{"items":[{"app":"ops","name":"backup","schedule":"0 3 * * *","command":"backup.sh a"},{"app":"ops","name":"backup-b","schedule":"0 4 * * *","command":"backup.sh b"},
		{"app":"ops","name":"backup-c","schedule":"0 5 * * *","command":"backup.sh c"},{"app":"ops","name":"backup-9","schedule":"0 6 * * *","command":"backup.sh e"}]}`
	answer = `{"jobs":[]}`
	got = command("import", "crontab", again, "--dry-run", "--timezone", "UTC", "--app", "ops", "-o", "name", "--server",
		f.URL)
	if got.code != 0 || got.out != "ops/backup-b\nops/backup-d\nops/backup-9\n" {
		t.Errorf("without its first line: got %+v", got)
	}

	got = command("import", "crontab", again, "--dry-run", "--timezone", "UTC", "--app", "ops", "--server", f.URL)
	if got.code != 0 ||
		!strings.Contains(got.err, again+": the job ops/backup came from here, but its line is gone") ||
		!strings.Contains(got.err, "job rm ops/backup-c") {
		t.Errorf("without its first line: got %+v", got)
	}

	known = `{"items":[]}`
	f.Close()
	got = command("import", "crontab", file, "--skip", "3", "--dry-run", "--timezone", "UTC", "-o", "manifest", "--server",
		f.URL)
	if got.code != 0 || !strings.Contains(got.err, "existing jobs were not checked") ||
		!strings.HasPrefix(got.out, "jobs:\n  - app: default\n    name: backup\n") {
		t.Errorf("without a server: got %+v", got)
	}

	system := write(t, dir, "cron.d/x", "0 3 * * * root backup.sh\n")
	write(t, dir, "cron.d/x.dpkg-old", "0 4 * * * root never\n")
	got = command("import", "crontab", filepath.Dir(system), "--system", "--dry-run", "-o", "json", "--server", f.URL)
	var v importReport
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || len(v.Jobs) != 1 ||
		!strings.Contains(got.out, "x.dpkg-old") || v.Jobs[0].Line != 1 || len(v.Jobs[0].Next) != 3 ||
		!strings.Contains(string(v.Jobs[0].Job), `"root"`) {
		t.Errorf("a folder: got %s, %v", got.out, err)
	}

	// With several files, the hint names lines with their file, and can be typed as it is.
	other := write(t, dir, "cron.d/y", "@reboot root y\n1 1 1 1 1 root z\n")
	got = command("import", "crontab", system, other, "--system", "--dry-run", "--server", f.URL)
	hint := "--skip " + other + ":1\n"
	if got.code != exitRefused || !strings.Contains(got.err, hint) {
		t.Errorf("two files: got %+v, want the hint %q", got, hint)
	}

	// Flags select the kind of crontab.
	users := write(t, dir, "users", "17 * * * * root run-parts\n")
	if got := command("import", "crontab", users, "--dry-run", "--timezone", "UTC", "--server", f.URL); got.code != 0 ||
		!strings.Contains(got.out, "a user column? Then import it with --system") {
		t.Errorf("a column for users: got %+v", got)
	}
	if got := command("import", "crontab", write(t, dir, "etc/cron.d/own", "0 3 * * * sync\n"), "--dry-run", "--timezone",
		"UTC", "--server", f.URL); got.code != exitRefused ||
		!strings.Contains(got.err, "a personal crontab? Then import it with --personal") {
		t.Errorf("a personal one: got %+v", got)
	}

	got = command("import", "crontab", system, other, "--system", "--dry-run", "--server", f.URL, "--skip", other+":1",
		"-o", "name")
	if got.code != 0 || got.out != "default/backup\ndefault/z\n" {
		t.Errorf("two files, one line left out: got %+v", got)
	}

	if !isSystem("/etc/crontab") || !isSystem("/etc/cron.d/x") || !isSystem("/mnt/etc/cron.d/x") ||
		isSystem("/etc/cron.d/x/y") || isSystem("/tmp/crontab") || ownerOf("/var/spool/cron/crontabs/ann") != "ann" {
		t.Error("paths are taken for something else")
	}

	commented, empty := write(t, dir, "commented", "# 0 3 * * * old.sh\n0 4 * * * new.sh\n"), write(t, dir, "empty", "")
	for line, want := range map[string]string{
		"import crontab":                                "is missing",
		"import crontab - -o manifest":                  "needs --dry-run",
		"import crontab - --system --personal":          "cannot be combined",
		"import crontab " + dir + "/nix":                "no such file",
		"import crontab " + t.TempDir():                 "no crontab found",
		"import crontab - --timezone Nowhere --dry-run": "Nowhere",
		"import crontab " + file + " " + system +
			" --skip 1": "there are 2 files; say which one, as FILE:LINE, such as " + file + ":1",
		"import crontab " + file + " --skip " + system + ":1": "is not one of the files to import",
		"import crontab " + file + " --skip x":                "want a line number, or FILE:LINE",
		"import crontab " + file + " --skip 0":                "want a line number, or FILE:LINE",
		"import crontab " + file +
			" --skip 3,9": "--skip 9: line 9 of " + file +
			" has no job; lines with jobs: 2, 3",
		"import crontab " + commented +
			" --skip 1": "--skip 1: line 1 of " + commented +
			" has no job; lines with jobs: 2",
		"import crontab " + empty + " --skip 1": "lines with jobs: none",
	} {
		if got := command(strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want code 2 and %q", line, got, want)
		}
	}
}

// TestContexts is not parallel, because other tests must not see its contexts.
func TestContexts(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("GOCRONTAB_SERVER", "")
	t.Setenv("GOCRONTAB_TOKEN", "")
	asked := map[string]string{}
	servers := map[string]*fakeAPI{}
	for _, name := range []string{"one", "two", "three"} {
		servers[name] = newFakeAPI(t, map[string]func(*http.Request) (int, string){
			"GET /api/v1/jobs": func(r *http.Request) (int, string) {
				asked[name] = r.Header.Get("Authorization")
				return 200, `{"items":[]}`
			},
		})
	}

	do := func(want string, args ...string) result {
		t.Helper()
		got := command(args...)
		if got.code != 0 || !strings.Contains(got.out+got.err, want) {
			t.Fatalf("%v: got %+v, want %q", args, got, want)
		}
		return got
	}

	who := func(want, token string, args ...string) {
		t.Helper()
		clear(asked)
		do("", append([]string{"job", "ls"}, args...)...)
		if got, there := asked[want]; len(asked) != 1 || !there || got != token {
			t.Errorf("%v: asked %v, want %s with %q", args, asked, want, token)
		}
	}

	do("There are no contexts", "context", "ls")
	token := write(t, home, "my-token", "gocrontab_two\n")
	do("added one", "context", "add", "one", "--server", servers["one"].URL)
	do("to use it", "context", "add", "two", "--server", servers["two"].URL, "--token-file", token)
	who("one", "")
	do("using two", "context", "use", "two")
	who("two", "Bearer gocrontab_two")
	who("one", "", "--context", "one")
	who("three", "", "--server", servers["three"].URL) // the token of two is only for the server of two
	t.Setenv("GOCRONTAB_CONTEXT", "one")
	who("one", "")
	t.Setenv("GOCRONTAB_SERVER", servers["three"].URL)
	who("three", "")
	who("two", "Bearer gocrontab_two", "--context", "two")
	t.Setenv("GOCRONTAB_TOKEN", "gocrontab_env")
	who("three", "Bearer gocrontab_env")
	who("two", "Bearer gocrontab_two", "--context", "two") // a flag wins over a variable
	who("two", "Bearer gocrontab_flag", "--context", "two", "--token", "gocrontab_flag")
	who("one", "", "--context", "one") // this context has no token, and that of the variable may be another cluster's
	t.Setenv("GOCRONTAB_TOKEN_FILE", token)
	who("one", "", "--context", "one")
	who("one", "Bearer gocrontab_flag", "--context", "one", "--token", "gocrontab_flag")
	t.Setenv("GOCRONTAB_TOKEN_FILE", "")
	refusing := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs": always(401, `{"type":"urn:go-crontab:problem:unauthenticated","title":"No token","status":401}`),
	})
	do("added four", "context", "add", "four", "--server", refusing.URL)
	if got := command("job", "ls", "--context", "four"); got.code != exitUnauthorized ||
		!strings.Contains(got.err, "the context four has no token, and with --context no variable sets one") ||
		!strings.Contains(got.err, "context add four --token-file FILE") {
		t.Errorf("a context without a token: got %+v", got)
	}
	do("removed four", "context", "rm", "four")
	for _, name := range []string{"GOCRONTAB_SERVER", "GOCRONTAB_CONTEXT", "GOCRONTAB_TOKEN"} {
		do("but the variable "+name+" is set and takes precedence\n", "context", "use", "one")
	}

	var out, errs strings.Builder
	if code := Main([]string{"context", "add", "one", "--server", servers["two"].URL, "--token-stdin"},
		strings.NewReader(looksLikeToken+"\n"), &out, &errs); code != 0 ||
		!strings.Contains(out.String(), "changed one") {
		t.Fatalf("got %d %s %s", code, out.String(), errs.String())
	}

	t.Setenv("GOCRONTAB_TOKEN", "")
	who("two", "Bearer "+looksLikeToken, "--context", "one")
	for _, file := range []string{"contexts.yaml", "tokens/one"} {
		info, err := os.Stat(filepath.Join(home, "go-crontab", file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v; want it readable by its owner alone", file, info, err)
		}
	}

	do("changed two", "context", "add", "two", "--token-file", "")
	who("two", "", "--context", "two")

	if text, _ := os.ReadFile(filepath.Join(home, "go-crontab", "contexts.yaml")); strings.Contains(string(text),
		"gocrontab_") {
		t.Errorf("a token stands in %s", text)
	}
	if got := do("", "context", "ls", "-o", "json"); strings.Contains(got.out, looksLikeToken) ||
		!strings.Contains(got.out, `"current": true`) {
		t.Errorf("got %s", got.out)
	}

	do("removed one", "context", "rm", "one")
	if _, err := os.Stat(filepath.Join(home, "go-crontab", "tokens", "one")); err == nil {
		t.Error("its token was kept")
	}

	// -o name prints the name
	for _, text := range []string{"me\n", looksLikeToken[:40], looksLikeToken + "\n" + looksLikeToken} {
		out.Reset()
		errs.Reset()
		if code := Main([]string{"context", "add", "x", "--server", "http://y", "--token-stdin"},
			strings.NewReader(text), &out, &errs); code != exitUsage ||
			!strings.Contains(errs.String(), "standard input is not a token") {
			t.Errorf("%.10s as a token: got %d %s %s", text, code, out.String(), errs.String())
		}
	}

	for line, want := range map[string]struct {
		code int
		err  string
	}{
		"context use one":                                   {exitNotFound, `there is no context "one"`},
		"context rm one":                                    {exitNotFound, `there is no context`},
		"job ls --context one":                              {exitNotFound, `there is no context`},
		"job ls --context two --server x":                   {exitUsage, "--context and --server cannot be combined"},
		"context add x":                                     {exitUsage, "--server is missing"},
		"context add x --server ftp://y":                    {exitUsage, "want a URL"},
		"context add x --server http://u:p@y":               {exitUsage, "want a URL"},
		"context add ../x --server http://y":                {exitUsage, "no white space or slashes"},
		"context add x --server http://y --token-file /nix": {exitUsage, "--token-file"},
		"context add x --server http://y --token-stdin":     {exitUsage, "standard input is empty"},
	} {
		if got := command(strings.Fields(line)...); got.code != want.code || !strings.Contains(got.err, want.err) {
			t.Errorf("%s: got %+v, want code %d and %q", line, got, want.code, want.err)
		}
	}

	write(t, home, "go-crontab/contexts.yaml", "curent: two\n")
	t.Setenv("GOCRONTAB_SERVER", "")
	if got := command("job", "ls"); got.code != exitUsage || !strings.Contains(got.err, "contexts.yaml") {
		t.Errorf("a file that is wrong: got %+v", got)
	}
}

// looksLikeToken has the shape of a token, but is not valid.
const looksLikeToken = "gocrontab_pSgbU1DShsahmADi5TwP7j5XjDAfc0icMnUWD0u7QJG2blCGh"

// editor writes a script that acts as an editor: each call applies the next of some sed programs.
func editor(t *testing.T, programs ...string) string {
	t.Helper()

	dir := t.TempDir()
	for i, p := range programs {
		write(t, dir, fmt.Sprintf("step%d", i), p)
	}

	path := write(t, dir, "editor", `#!/bin/sh
dir=$(dirname "$0")
n=$(cat "$dir/n" 2>/dev/null || echo 0)
cp "$1" "$dir/seen$n"
[ -f "$dir/step$n" ] || exit 7
sed -i -f "$dir/step$n" "$1"
echo $((n + 1)) > "$dir/n"
`)

	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesOnACluster applies, exports, edits and imports on a real node.
func TestFilesOnACluster(t *testing.T) {
	s := serve(t, migrated(t), "web-1").ready()
	do := func(want string, args ...string) result {
		t.Helper()
		got := s.ask(args...)
		if got.code != 0 || !strings.Contains(got.out+got.err, want) {
			t.Fatalf("%v: got %+v, want %q", args, got, want)
		}
		return got
	}

	refused := func(want string, args ...string) {
		t.Helper()
		if got := s.ask(args...); got.code != exitRefused || !strings.Contains(got.err, want) {
			t.Errorf("%v: got %+v, want it refused: %q", args, got, want)
		}
	}

	dir := t.TempDir()
	file := write(t, dir, "jobs.yaml", `groups: [{name: g, slots: 2, rate: 10/1m}]
calendars: [{name: c, exclude: [12-24]}]
jobs:
  - {app: shop, name: a, schedule: 0 3 1 1 *, command: 'true', group: g, calendars: [c]}
  - app: shop
    name: "yes"
    every: 1000h
    command: |
      echo "#1"
      true
`)

	do("4 created", "apply", "-f", file)
	do("4 unchanged", "apply", "-f", file)
	first := do("groups:", "export").out
	exported := write(t, dir, "exported.yaml", first)
	do("5 unchanged", "apply", "-f", exported) // including the retention rule
	do("2 deleted", "apply", "-f", write(t, dir, "none.yaml", "groups: [{name: g, slots: 2, rate: 10/1m}]"), "--prune", "--app",
		"shop", "--delete-all")
	do("2 created, 3 unchanged", "apply", "-f", exported)
	if second := do("", "export").out; second != first {
		t.Errorf("the second export is\n%s, not\n%s", second, first)
	}

	asJSON := write(t, dir, "exported.json", do("", "export", "-o", "json").out)
	do("5 unchanged", "apply", "-f", asJSON)

	// Names that do not exist.
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"export --app shpo":                {exitNotFound, `there is no app "shpo"; did you mean "shop"?`},
		"job pause --app shpo --yes":       {exitNotFound, `did you mean "shop"?`},
		"job pause --app shpo --dry-run":   {exitNotFound, `did you mean "shop"?`},
		"app pause shpo":                   {exitNotFound, `did you mean "shop"?`},
		"app resume shpo":                  {exitNotFound, `did you mean "shop"?`},
		"job ls --app shpo":                {0, `there is no app "shpo"; did you mean "shop"?`},
		"job ls --app shop --owner nobody": {0, "No jobs match."},
		"run ls --app shpo":                {0, `did you mean "shop"?`},
		"run ls --node webb-1":             {0, `there is no node "webb-1"`},
		"upcoming --app shpo":              {0, `did you mean "shop"?`},
		"apply -f " + write(t, dir, "empty.yaml", "jobs: []") + " --prune --app shop": {
			exitUsage, "would delete all jobs of app \"shop\"; to delete them, add --delete-all",
		},
	} {
		if got := s.ask(strings.Fields(line)...); got.code != want.code || !strings.Contains(got.err, want.says) ||
			got.out != "" {
			t.Errorf("%s: got %+v, want code %d and %q", line, got, want.code, want.says)
		}
	}

	if got := do("", "job", "ls", "--app", "shop", "-o", "name"); strings.Count(got.out, "\n") != 2 {
		t.Errorf("jobs of shop after that: %+v", got)
	}

	refused(file+":4:26: version: is 7, but shop/a is at version", "apply", "-f",
		write(t, dir, "jobs.yaml",
			"# changed\n\njobs:\n  - {app: shop, name: a, version: 7, schedule: '@daily', command: x}\n"))

	// The local output equals the API's preview.
	preview := command("cron", "next", "*/7 3-5 * * 1-5", "--timezone", "Europe/Berlin", "--from", "2027-03-26T00:00:00Z",
		"-n", "50", "-o", "json")
	text, raw := preview.out, s.post(t, "/api/v1/preview",
		`{"schedule": "*/7 3-5 * * 1-5", "timezone": "Europe/Berlin", "from": "2027-03-26T00:00:00Z", "n": 50}`)
	if a, b := compact(t, text), compact(t, raw); a != b {
		t.Errorf("offline\n%s, by the server\n%s", a, b)
	}

	t.Setenv("VISUAL", "")
	edit := func(programs ...string) (result, string) {
		t.Helper()
		path := editor(t, programs...)
		t.Setenv("EDITOR", path)
		return s.ask("job", "edit", "shop/a"), filepath.Dir(path)
	}

	if got, _ := edit("s/0 3 1 1/0 4 1 1/"); got.code != 0 || !strings.Contains(got.out, "changed shop/a") {
		t.Errorf("edit: got %+v", got)
	}
	if got, _ := edit(""); got.code != 0 || !strings.Contains(got.err, "was not changed") {
		t.Errorf("edit without a change: got %+v", got)
	}

	got, seen := edit("s/^command:/comand:/", "s/^comand:/command:/;s/0 4 1 1/0 5 1 1/")
	if text, _ := os.ReadFile(filepath.Join(seen, "seen1")); got.code != 0 ||
		!strings.Contains(string(text), "#: line 11: comand: is not a known field; did you mean command?") ||
		strings.Split(string(text), "\n")[10] != `comand: "true"` {
		t.Errorf("edit with an error: got %+v, saw\n%s", got, text)
	}
	if got, _ := edit("s/0 5 1 1/61 5 1 1/", ""); got.code != exitRefused ||
		!strings.Contains(got.err, "not between 0 and 59") || !strings.Contains(got.err, "your text is in ") {
		t.Errorf("given up: got %+v", got)
	}

	path := editor(t, "s/0 5 1 1/0 6 1 1/", "s/0 6 1 1/0 7 1 1/")
	write(t, filepath.Dir(path), "between", "")
	t.Setenv("EDITOR",
		"curl -fsS -X PATCH -H 'Content-Type: application/json' -H 'Authorization: Bearer "+s.token()+
			"' -d '{\"owner\": \"other\"}' "+s.url+"/api/v1/jobs/"+s.idOf(t, "shop/a")+" >/dev/null; "+path)
	if _, err := exec.LookPath("curl"); err == nil {
		got := s.ask("job", "edit", "shop/a")
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "seen1"))
		if got.code != 0 || !strings.Contains(string(text), "the job was changed meanwhile") ||
			!strings.Contains(string(text), "#:   + owner: other\n") {
			t.Errorf("changed meanwhile: got %+v, saw\n%s", got, text)
		}

		// Saving again replaces the other change. Leaving without saving keeps the text in a file.
		meanwhile := func(owner, program, then string) string {
			return "n=$(cat " + dir + "/times 2>/dev/null); echo x >> " + dir +
				"/times; if [ -z \"$n\" ]; then curl -fsS -X PATCH -H 'Content-Type: application/json' -H 'Authorization: Bearer " + s.token() +
				"' -d '{\"owner\": \"" + owner + "\"}' " + s.url + "/api/v1/jobs/" + s.idOf(t,
				"shop/a") + " >/dev/null; sed -i '" + program + "' \"$1\"; else " + then + "; fi; :"
		}

		write(t, dir, "times", "")
		t.Setenv("EDITOR", meanwhile("third", "s/0 7 1 1/0 9 1 1/", `cp "$1" `+dir+`/same; cat `+dir+`/same > "$1"`))
		if got := s.ask("job", "edit", "shop/a"); got.code != 0 || !strings.Contains(got.out, "changed shop/a") {
			t.Errorf("saved once more: got %+v", got)
		}

		write(t, dir, "times", "")
		t.Setenv("EDITOR", meanwhile("fourth", "s/0 9 1 1/0 10 1 1/", ":"))
		got = s.ask("job", "edit", "shop/a")
		_, kept, _ := strings.Cut(got.err, "your text is in ")
		kept, _, _ = strings.Cut(kept, ";")
		if text, err := os.ReadFile(kept); got.code != exitRefused || err != nil ||
			!strings.Contains(string(text), "0 10 1 1") {
			t.Errorf("left without saving: got %+v, kept %q, %v", got, text, err)
		}

		do("1 updated", "apply", "-f", kept)
		_ = os.Remove(kept)
		if got := do("", "job", "show", "shop/a", "-o", "json"); !strings.Contains(got.out, "0 10 1 1") {
			t.Errorf("what was kept is not there once applied: %s", got.out)
		}
	}

	// A failing editor loses nothing.
	t.Setenv("EDITOR", "f() { echo '# typed' >> \"$1\"; return 3; }; f")
	got = s.ask("job", "edit", "shop/a")
	_, kept, _ := strings.Cut(got.err, "your text is in ")
	kept, _, _ = strings.Cut(kept, ";")
	if text, err := os.ReadFile(kept); got.code != exitFailed || err != nil ||
		!strings.HasSuffix(string(text), "# typed\n") || !strings.Contains(got.err, "export EDITOR=nano") {
		t.Errorf("an editor that fails: got %+v, kept %q, %v", got, text, err)
	}

	_ = os.Remove(kept)
	if got, _ := edit("s/^name: a/name: b/"); got.code != 0 || !strings.Contains(got.out, "changed shop/b") {
		t.Errorf("renamed: got %+v", got)
	}
	if got, _ := edit("s/^name: a/name: b/"); got.code == 0 {
		t.Errorf("shop/a is there still: %+v", got)
	}

	editB := func(program string) result {
		t.Helper()
		t.Setenv("EDITOR", editor(t, program))
		return s.ask("job", "edit", "shop/b")
	}

	paused := func() bool {
		return strings.Contains(do("", "job", "show", "shop/b", "-o", "json").out, `"paused": true`)
	}
	if got := editB("$a # a remark"); got.code != 0 || !strings.Contains(got.out, "shop/b is unchanged") {
		t.Errorf("a remark alone: got %+v", got)
	}
	if got := editB("$a paused: true"); got.code != 0 || !paused() {
		t.Errorf("paused: got %+v", got)
	}

	if got := editB("s/^command:.*/command: echo/"); got.code != 0 || !paused() {
		t.Errorf("edited while it is paused: got %+v", got)
	}
	if got := editB("/^paused:/d"); got.code != 0 || !strings.Contains(got.out, "changed shop/b") || paused() {
		t.Errorf("the pause was taken away: got %+v", got)
	}

	// Ctrl-C belongs to the editor.
	t.Setenv("EDITOR", `f() { kill -INT $PPID; sleep 0.2; sed -i 's/^command:.*/command: date/' "$1"; }; f`)
	if got := s.ask("job", "edit", "shop/b"); got.code != 0 || !strings.Contains(got.out, "changed shop/b") {
		t.Errorf("interrupted in the editor: got %+v", got)
	}

	tab := write(t, dir, "tab", "# every hour\n7 * * * * /usr/bin/report\n")
	do("created    default/report", "import", "crontab", tab, "--timezone", "UTC")
	do("unchanged  default/report", "import", "crontab", tab, "--timezone", "UTC")
	write(t, dir, "tab", "# every hour\n8 * * * * /usr/bin/report\n")
	do("updated    default/report", "import", "crontab", tab, "--timezone", "UTC")

	// Another machine has a crontab with the same path.
	relabel := func(label string) {
		s.post(t, "/api/v1/apply",
			`{"jobs":[{"name":"report","schedule":"8 * * * *","timezone":"UTC","command":"/usr/bin/report","description":"every hour","labels":{"crontab":"`+label+`"}}]}`)
	}

	relabel("other-host:" + tab)
	for _, command := range []string{"/usr/bin/report", "/opt/report --all"} {
		refused("the job default/report exists", "import", "crontab", write(t, dir, "tab", "8 * * * * "+command+"\n"),
			"--timezone", "UTC")
	}

	relabel(tab) // as older versions label it
	do("updated    default/report", "import", "crontab", write(t, dir, "tab", "8 * * * * /usr/bin/report\n"), "--timezone",
		"UTC")
	write(t, dir, "tab", "# every hour\n8 * * * * /usr/bin/report\n")
	do("updated    default/report", "import", "crontab", tab, "--timezone", "UTC")
	refused("the job default/report exists", "import", "crontab",
		write(t, dir, "other", "1 * * * * report\n"), "--timezone", "UTC")
	if got := do("", "job", "show", "report", "-o", "json"); !strings.Contains(got.out, `"description": "every hour"`) {
		t.Errorf("got %s", got.out)
	}

	if got := command("__complete", "--server", s.url, "--token", s.token(), "job", "show",
		"shop/"); !strings.Contains(got.out, "shop/yes") {
		t.Errorf("completion: got %+v", got)
	}
	if got := command("__complete", "--server", s.url, "--token", s.token(), "job", "ls", "--app",
		"s"); !strings.HasPrefix(got.out, "shop\n") {
		t.Errorf("completion of apps: got %+v", got)
	}
}

// post sends a request body unchanged.
func (s *server) post(t *testing.T, path, body string) string {
	t.Helper()
	r := &remote{console: &console{}, server: s.url, token: s.token()}
	if err := r.connect(time.Minute); err != nil {
		t.Fatal(err)
	}
	raw, err := r.call(t.Context(), http.MethodPost, path, nil,
		client.Document{Media: "application/json", Data: []byte(body)})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (s *server) idOf(t *testing.T, name string) string {
	t.Helper()
	var j jobView
	if err := json.Unmarshal([]byte(s.ask("job", "show", name, "-o", "json").out), &j); err != nil {
		t.Fatal(err)
	}
	return j.ID
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b.String()
}
