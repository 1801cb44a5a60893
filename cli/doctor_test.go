package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"go-crontab/api/view"
	"go-crontab/test/testdb"
)

const diagnosed = `{"at":"2027-01-31T12:00:00Z","node":"web-1","version":"v1","server":"MariaDB","worst":"SEVERITY","findings":[
 {"check":"unplaced-jobs","area":"jobs","severity":"SEVERITY","seen":"2 jobs have no\u001b[2J matching node","why":"They wait.","fix":"Start one.",
  "sql":["SET GLOBAL a = 1"],"commands":["go-crontab node ls"],"jobs":[{"id":"1","app":"a","name":"b"},{"id":"2","app":"a","name":"c"}]}],
 "checks":[{"id":"unplaced-jobs","area":"jobs","about":"Each job has a matching node","severity":"SEVERITY"},
  {"id":"schema","area":"schema","about":"The tables match this version","severity":"ok"},
  {"id":"long-transactions","area":"mysql","about":"No transaction has been open for long","severity":"unknown","skipped":"the user lacks PROCESS"}]}`

func TestDoctor(t *testing.T) {
	t.Parallel()

	for severity, codes := range map[string][2]int{"error": {1, 1}, "warning": {0, 1}, "notice": {0, 0}} {
		f := newFakeAPI(t,
			map[string]func(*http.Request) (int, string){
				"GET /api/v1/doctor": always(200, strings.ReplaceAll(diagnosed, "SEVERITY", severity)),
			})
		for i, line := range []string{"doctor", "doctor --strict --all"} {
			got := command(append(strings.Fields(line), "--server", f.URL)...)
			if got.code != codes[i] {
				t.Errorf("%s with one %s: got %+v, want code %d", line, severity, got, codes[i])
			}

			for _, want := range []string{severity + "  2 jobs have no", "why  They wait.", "fix  Start one.",
				"sql  SET GLOBAL a = 1;", "run  go-crontab node ls", "jobs a/b, a/c",
				"skipped  No transaction has been open for long: the user lacks PROCESS"} {
				if !strings.Contains(got.out, want) {
					t.Errorf("%s: got %q, want %q in it", line, got.out, want)
				}
			}

			if is := strings.Contains(got.out, "ok  The tables match this version"); is != (i == 1) ||
				strings.Contains(got.out, "\x1b") {
				t.Errorf("%s: got %q", line, got.out)
			}
			if !strings.Contains(got.err,
				"1 "+severity+"; 3 checks, 1 skipped; MariaDB, checked by web-1") {
				t.Errorf("%s: got %q", line, got.err)
			}
		}
	}
}

// TestDoctorLooksByItself runs the checks without a node: on an empty schema, then on a migrated
// one.
func TestDoctorLooksByItself(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{
		{"doctor", "--dsn", testdb.DSN(t), "-o", "json"}, {"doctor", "--dsn", migrated(t), "-o", "json"},
	} {
		got := command(args...)
		var v view.Doctor
		if err := json.Unmarshal([]byte(got.out), &v); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if got.code != exitFailed || v.Worst != "error" || v.Node != "" || len(v.Checks) < 20 {
			t.Errorf("%v: got %+v", args, got)
		}
	}

	for _, args := range [][]string{
		{"doctor", "--dsn", "nonsense"}, {"doctor", "x"}, {"doctor", "--direct", "--dsn", ""},
	} {
		if got := command(args...); got.code != exitUsage {
			t.Errorf("%v: got %+v, want it refused", args, got)
		}
	}

	if got := command("doctor", "--dsn", "u:p@tcp(127.0.0.1:1)/x"); got.code != exitFailed ||
		!strings.Contains(got.err, "check that MySQL runs") {
		t.Errorf("got %+v", got)
	}
}
