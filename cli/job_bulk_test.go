package cli

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestBulkCommands checks the requests of the commands, and their output.
func TestBulkCommands(t *testing.T) {
	t.Parallel()

	first := `{"dry_run":false,"changed":2,"unchanged":1,"refused":0,"next":"more","items":[{"id":"1","app":"ops","name":"a","result":"changed","version":2},
		{"id":"2","app":"ops","name":"b","result":"unchanged"},{"id":"3","app":"ops","name":"c","result":"changed"}]}`
	last := `{"dry_run":false,"changed":0,"unchanged":0,"refused":1,"items":[{"id":"4","app":"ops","name":"d","result":"refused","why":{"message":"the job was deleted","code":"job_deleted"}}]}`
	empty := `{"dry_run":false,"changed":0,"unchanged":0,"refused":0,"items":[],"next":"more"}`
	none := `{"dry_run":true,"changed":0,"unchanged":0,"refused":0,"matched":0,"items":[]}`
	pages := func(r *http.Request) (int, string) {
		q := r.URL.Query()
		switch {
		case q.Get("ids") != "":
			return 200, strings.Replace(strings.Replace(first, `"refused":0,"next":"more"`, `"refused":1`, 1), `]}`,
				`,{"id":"99","app":"","name":"","result":"refused",`+
					`"why":{"message":"there is no such job","code":"no_such_job"}}]}`, 1)
		case q.Get("dry_run") == "true":
			return 200, strings.Replace(strings.Replace(first, "false", "true", 1), `"items"`,
				`"matched":10000,"at_least":true,"items"`, 1)
		case q.Get("cursor") == "more":
			return 200, last
		}

		return 200, first
	}

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/bulk/pause": pages, "POST /api/v1/bulk/run": pages,
		"POST /api/v1/bulk/delete": always(200, none),
		"GET /api/v1/apps":         always(200, `{"items":[{"name":"ops"}]}`),
		"POST /api/v1/bulk/resume": func(r *http.Request) (int, string) { // an empty page is not the last one
			if r.URL.Query().Get("cursor") == "" {
				return 200, empty
			}
			return 200, strings.Replace(first, `"next":"more",`, "", 1)
		},
	})

	for _, c := range []struct {
		args          string
		code          int
		out, err, ask string
	}{
		{"pause --app ops --label team=data --name-contains x --reason disks --yes", exitRefused,
			"paused 2 jobs; 1 unchanged", "ops/d could not be paused: the job was deleted",
			"POST /api/v1/bulk/pause?app=ops&label=team%3Ddata&name=x, POST /api/v1/bulk/pause?app=ops&cursor=more&label=team%3Ddata&name=x"},
		{
			"pause --status active --dry-run", exitOK, "ops/a  paused", "more than 10000 jobs",
			"POST /api/v1/bulk/pause?dry_run=true&status=active",
		},
		{
			"run --all --yes -o name", exitRefused, "ops/a\nops/c\n", "1 of the jobs could not be started",
			"POST /api/v1/bulk/run?all=true, POST /api/v1/bulk/run?all=true&cursor=more",
		},
		{
			"resume --group g --calendar c --owner ann --yes -o json", exitOK, `"changed": 2`, "",
			"POST /api/v1/bulk/resume?calendar=c&group=g&owner=ann, POST /api/v1/bulk/resume?calendar=c&cursor=more&group=g&owner=ann",
		},
		{
			"rm --app ops --dry-run", exitOK, "", "No jobs match.",
			"POST /api/v1/bulk/delete?app=ops&dry_run=true, GET /api/v1/apps",
		},
		{
			"rm --app opps --dry-run", exitNotFound, "", `there is no app "opps"; did you mean "ops"?`,
			"POST /api/v1/bulk/delete?app=opps&dry_run=true, GET /api/v1/apps",
		},
		{"rm --app ops", exitUsage, "", "add --yes, or --dry-run", ""},
		{"rm --app ops backup --yes", exitUsage, "", "use one of the two", ""},
		{
			"pause --id 1,2 --id 4 --yes", exitRefused, "paused 2 jobs", "99 could not be paused: there is no such job",
			"POST /api/v1/bulk/pause?ids=1%2C2%2C4",
		},
		{"pause --id 1 --app ops --yes", exitUsage, "", "use one of the two", ""},
		{"rm --id 1 backup --yes", exitUsage, "", "use one of the two", ""},
		{"rm --id= --yes", exitUsage, "", "--id is empty", ""},
		{"rm --app ops --owner= --yes", exitUsage, "", "--owner is empty", ""},
		{"rm --app= --label team=data --yes", exitUsage, "", "--app is empty", ""},
		{"run --app ops --label= --yes", exitUsage, "", "--label is empty", ""},
		{"pause --app ops --group= --yes", exitUsage, "", "--group is empty", ""},
		{"pause --app ops --calendar= --yes", exitUsage, "", "--calendar is empty", ""},
		{"pause --app ops --name-contains= --yes", exitUsage, "", "--name-contains is empty", ""},
		{"rm", exitUsage, "", "is missing", ""},
		{"pause backup --dry-run", exitUsage, "", "--dry-run needs a filter", ""},
		{"run --app ops --wait --yes", exitUsage, "", "--wait needs one JOB", ""},
		{"run a b", exitUsage, "", "unexpected argument", ""},
		{"pause --status broken --yes", exitUsage, "", "want one of active", ""},
	} {
		f.asked = nil
		got := command(append(append([]string{"job"}, strings.Fields(c.args)...), "--server", f.URL)...)
		if got.code != c.code || !strings.Contains(got.out, c.out) || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: got %+v, want %d, %q and %q", c.args, got, c.code, c.out, c.err)
		}
		if asked := strings.Join(f.asked, ", "); asked != c.ask {
			t.Errorf("%s: it asked for %s, want %s", c.args, asked, c.ask)
		}
	}
}

// TestBackfillStart: the cluster determines the default end, because the clock here may be ahead.
func TestBackfillStart(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12":           always(200, fakeJob),
		"POST /api/v1/jobs/12/backfill": always(202, `{"id":"4","job_id":"12","state":"running","total":2}`),
	})

	for _, c := range []struct {
		args []string
		to   string
	}{
		{nil, ""},
		{[]string{"--to", "2026-01-31T00:00:00Z"}, `,"to":"2026-01-31T00:00:00Z"`},
	} {
		f.bodies = nil
		got := command(append([]string{"backfill", "start", "12", "--from", "2026-01-01T00:00:00Z", "--server", f.URL},
			c.args...)...)
		want := `{"from":"2026-01-01T00:00:00Z","missing":false,"parallel":1` + c.to + `}`
		if body := f.bodies[len(f.bodies)-1]; got.code != exitOK || body != want {
			t.Errorf("%v: got %+v, asked %s, want %s", c.args, got, body, want)
		}
	}
}

// TestVersionCommands checks the commands for versions of a job.
func TestVersionCommands(t *testing.T) {
	t.Parallel()

	guard := ""
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/apps/ops/jobs/a%2Fb": always(200, fakeJob),
		"GET /api/v1/jobs/12/versions": always(200,
			`{"items":[{"version":3,"at":"2027-01-31T12:00:00Z","who":"ann","current":true,"changed":["command"]},
			{"version":1,"at":"2027-01-30T12:00:00Z","who":"bob","current":false,"changed":[]}]}`),
		"GET /api/v1/jobs/12/versions/1/diff/3": always(200,
			`{"from":1,"to":3,"changes":[{"field":"command","was":"true","becomes":"echo <&>"}]}`),
		"GET /api/v1/jobs/12/versions/3/diff/1": always(200,
			`{"from":3,"to":1,"changes":[{"field":"command","was":"echo <&>","becomes":"true"}]}`),
		"GET /api/v1/jobs/12/versions/3/diff/3": always(200, `{"from":3,"to":3,"changes":[]}`),
		"POST /api/v1/jobs/12/rollback": func(r *http.Request) (int, string) {
			if guard = r.Header.Get("If-Match"); guard != `"3"` {
				return 412, `{"type":"urn:go-crontab:problem:stale","title":"The precondition is not met","status":412,"detail":"The job is at version 4."}`
			}
			return 200, strings.Replace(fakeJob, `"version":3`, `"version":4`, 1)
		},
	})

	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"versions ops/a/b", exitOK, "command", ""},
		{"versions 12 -o name", exitOK, "3\n1\n", ""},
		{"versions 12 -o json", exitOK, `"who": "bob"`, ""},
		{"versions 12 -n 1 -o name", exitOK, "3\n", ""},
		{"diff ops/a/b", exitOK, "version 1 → 3\n    command: true → echo <&>", ""},
		{"diff ops/a/b 1", exitOK, "version 1 → 3", ""},
		{"diff 12 3 1", exitOK, "command: echo <&> → true", ""},
		{"diff 12 3", exitOK, "", "versions 3 and 3 are the same"},
		{"diff 12 1 3 -o name", exitOK, "command\n", ""},
		{"diff 12 1 3 -o yaml", exitOK, "becomes: echo <&>", ""},
		{"diff 12 1 7", exitNotFound, "", "job versions"},
		{"diff 12 x", exitUsage, "", "want a number such as 3"},
		{"diff 12 0", exitUsage, "", "want a number such as 3"},
		{"rollback ops/a/b 1", exitOK, "ops/a/b has the definition of version 1 again, as version 4", ""},
		{"rollback ops/a/b 1 --dry-run", exitOK, "version 3 → 1", ""},
		{"rollback ops/a/b", exitUsage, "", "missing"},
		{"rollback nobody 1", exitNotFound, "", "job ls"},
		{"__complete rollback ops/a/b", exitOK, "3\t", ""},
	} {
		args := append([]string{"job"}, strings.Fields(c.args)...)
		if strings.HasPrefix(c.args, "__complete") {
			args = []string{"__complete", "job", "rollback", "--server", f.URL, "ops/a/b", ""}
		} else {
			args = append(args, "--server", f.URL)
		}
		got := command(args...)
		if got.code != c.code || !strings.Contains(got.out, c.out) || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: got %+v, want %d, %q and %q", c.args, got, c.code, c.out, c.err)
		}
	}

	if guard != `"3"` {
		t.Errorf("rolled back with If-Match %s", guard)
	}

	other := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12": always(200, fakeJob),
		"POST /api/v1/jobs/12/rollback": always(412,
			`{"type":"urn:go-crontab:problem:stale","title":"The precondition is not met","status":412,"detail":"The job is at version 4."}`),
	})

	if got := command("job", "rollback", "12", "1", "--server", other.URL); got.code != exitRefused ||
		!strings.Contains(got.err, fmt.Sprintf("%s job diff ops/a/b", program())) {
		t.Errorf("got %+v", got)
	}
}
