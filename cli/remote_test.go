package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
)

// result is the result of a command line.
type result struct {
	code     int
	out, err string
}

// command runs a command line in this process.
func command(args ...string) result {
	var out, errs strings.Builder
	code := Main(args, strings.NewReader(""), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// fakeAPI answers like the API, and records the requests.
type fakeAPI struct {
	*httptest.Server
	asked  []string
	bodies []string
}

func newFakeAPI(t *testing.T, answers map[string]func(*http.Request) (int, string)) *fakeAPI {
	f := &fakeAPI{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
		b := new(strings.Builder)
		if r.Body != nil {
			var v any
			if json.NewDecoder(r.Body).Decode(&v) == nil {
				text, _ := json.Marshal(v)
				b.Write(text)
			}
		}

		f.bodies = append(f.bodies, b.String())
		answer, ok := answers[r.Method+" "+r.URL.EscapedPath()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w,
				`{"type":"urn:go-crontab:problem:not-found","title":"Not found","status":404,"detail":"There is nothing at this path."}`)
			return
		}

		status, text := answer(r)
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	t.Cleanup(f.Close)

	return f
}

func always(status int, text string) func(*http.Request) (int, string) {
	return func(*http.Request) (int, string) { return status, text }
}

const fakeJob = `{"id":"12","app":"ops","name":"a/b","schedule":"* * * * *","timezone":"UTC","command":"echo <&>","overlap":"skip",
 "misfire":{"policy":"latest"},"on_lost":"fail","paused":false,"status":"active","version":3,"new_field":[1,{"x":null}],
 "created":"2027-01-31T12:00:00Z","updated":"2027-01-31T12:00:00Z"}`

func TestJobByNameAndID(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12":             always(200, fakeJob),
		"GET /api/v1/apps/ops/jobs/a%2Fb": always(200, fakeJob),
	})

	for _, arg := range []string{"12", "ops/a/b"} {
		if got := command("job", "show", arg, "--server", f.URL, "-o", "name"); got.code != 0 ||
			got.out != "ops/a/b\n" {
			t.Errorf("%s: got %+v", arg, got)
		}
	}

	got := command("job", "show", "nix", "--server", f.URL)
	if got.code != exitNotFound || !strings.Contains(got.err, `there is no job "nix"`) ||
		!strings.Contains(got.err, "job ls") {
		t.Errorf("got %+v, want not found and what to try", got)
	}

	if asked := strings.Join(f.asked, ", "); !strings.Contains(asked, "GET /api/v1/apps/default/jobs/nix") {
		t.Errorf("a bare name: asked %s, want the default app", asked)
	}
}

func TestFormatsKeepWhatTheServerSent(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"GET /api/v1/jobs/12": always(200, fakeJob)})
	got := command("job", "show", "12", "-o", "json", "--server", f.URL)
	var v map[string]any
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || v["new_field"] == nil ||
		!strings.Contains(got.out, `"echo <&>"`) {
		t.Errorf("json: got %s, %v; want every field and no escapes", got.out, err)
	}

	got = command("job", "show", "12", "-o", "yaml", "--server", f.URL)
	golden(t, "job.yaml", got.out)
	got = command("job", "show", "12", "--server", f.URL)
	if !strings.Contains(got.out, "command") || !strings.Contains(got.out, "echo <&>") {
		t.Errorf("table: got %s", got.out)
	}
}

func TestListReadsAllPages(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs": func(r *http.Request) (int, string) {
			if r.URL.Query().Get("cursor") == "" {
				return 200, `{"items":[{"id":"1","app":"default","name":"one"}],"next":"more"}`
			}
			return 200, `{"items":[{"id":"2","app":"default","name":"two"}]}`
		},
	})

	got := command("job", "ls", "-o", "name", "--server", f.URL, "--app", "default")
	if got.code != 0 || got.out != "default/one\ndefault/two\n" {
		t.Errorf("got %+v", got)
	}

	if want := "GET /api/v1/jobs?app=default&cursor=more&limit=200"; f.asked[1] != want {
		t.Errorf("second page: asked %s, want %s", f.asked[1], want)
	}

	got = command("job", "ls", "-o", "json", "--server", f.URL)
	var v view.Page[map[string]any]
	if err := json.Unmarshal([]byte(got.out), &v); err != nil || len(v.Items) != 2 || v.Next != "" {
		t.Errorf("json: got %s, %v; want both items and no cursor", got.out, err)
	}
}

func TestAddSendsWhatWasGiven(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){"POST /api/v1/jobs": always(201, fakeJob)})
	add := func(args ...string) string {
		t.Helper()
		if got := command(append([]string{"job", "add", "--server", f.URL}, args...)...); got.code != 0 {
			t.Fatalf("%q: got %+v", args, got)
		}
		return f.bodies[len(f.bodies)-1]
	}

	for _, test := range []struct {
		args []string
		want string
	}{
		{
			[]string{"hello", "--every", "5s", "--", "echo $HOME"},
			`{"app":"default","command":"echo $HOME","every":"5s","name":"hello"}`,
		},
		{
			[]string{"ops/x", "--schedule", "@daily", "--", "echo", "$HOME"},
			`{"app":"ops","command":"echo '$HOME'","name":"x","schedule":"@daily"}`,
		},
		{
			[]string{
				"p", "--every", "1h", "--ping-url", "https://ping.example.com/p", "--ping-fail-url",
				"https://ping.example.com/p/fail", "--keep-runs", "9", "--", "true",
			},
			`{"app":"default","command":"true","every":"1h","keep":{"runs":9},"name":"p","ping":{"fail_url":"https://ping.example.com/p/fail","url":"https://ping.example.com/p"}}`,
		},
		{
			[]string{"ops/x", "-a", "web", "-s", "@daily", "-c", "a | b"},
			`{"app":"web","command":"a | b","name":"ops/x","schedule":"@daily"}`,
		},
		{
			[]string{"x", "--at", "2027-01-31 09:00", "-z", "Europe/Berlin", "--", "true"},
			`{"app":"default","at":"2027-01-31T09:00:00+01:00","command":"true","name":"x","timezone":"Europe/Berlin"}`,
		},
		{
			[]string{
				"x", "--every", "1h", "--start", "2027-01-31T09:00:00Z", "--timeout", "30m", "--overlap", "allow",
				"--misfire", "skip", "--misfire-max-age", "2h",
				"--label", "a=b=c", "--label", "d=", "--owner", "me", "--description", "what", "--paused", "--", "true",
			},
			`{"app":"default","command":"true","description":"what","every":"1h","labels":{"a":"b=c","d":""},"misfire":{"max_age":"2h","policy":"skip"},` +
				`"name":"x","overlap":"allow","owner":"me","paused":true,"start":"2027-01-31T09:00:00Z","timeout":"30m"}`,
		},
	} {
		if got := add(test.args...); got != test.want {
			t.Errorf("%q: sent\n%s\nwant\n%s", test.args, got, test.want)
		}
	}
}

// TestAddNow: --now uses the cluster's clock, not this machine's.
func TestAddNow(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"POST /api/v1/jobs":   always(201, fakeJob),
		"GET /api/v1/cluster": always(200, `{"now":"2031-02-03T04:05:06.789Z"}`),
	})

	if got := command("job", "add", "x", "--now", "--server", f.URL, "--", "true"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}

	want := `{"app":"default","at":"2031-02-03T04:05:06.789Z","command":"true","name":"x"}`
	if got := f.bodies[len(f.bodies)-1]; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"job add":                                          "NAME is missing",
		"job add x --every 5s":                             "the command is missing",
		"job add x --every 5s echo hi":                     "put the command after --",
		"job add x --every 5s -c a -- b":                   "given twice",
		"job add x -- b":                                   "one of --schedule, --every, --delay, --after, --at, --now",
		"job add x --at +5m --now -- b":                    "one of --schedule, --every, --delay, --after, --at, --now",
		"job add x --every 5s --at +5m -- b":               "one of --schedule, --every, --delay, --after, --at",
		"job add x --at tomorrow -- b":                     "--at \"tomorrow\"",
		"job add x --every 5s --label a -- b":              "want key=value",
		"job show":                                         "JOB",
		"job show a b":                                     "unexpected argument",
		"job show /":                                       "JOB",
		"job shwo a":                                       "did you mean go-crontab job show",
		"job ls -o xml":                                    "want one of table, json, yaml, name",
		"job ls --sever x":                                 "unknown flag: --sever; did you mean --server?",
		"job ls --server ftp://x":                          "want a URL",
		"job history a -n -1":                              "want 0 or more",
		"job history a -n abc":                             "--limit \"abc\": want a whole number",
		"dev --restart-after 1":                            "want a duration with its unit, such as 90s, 10m, 24h or 7d",
		"dev --restart-after 999999999h":                   "is too long",
		"serve --look-ahead abc":                           "--look-ahead \"abc\": want a duration",
		"app pause ops --until -2h":                        "--until -2h lies in the past",
		"app pause ops --until 0s":                         "lies in the past",
		"app pause ops --until 999999999d":                 "--until 999999999d is too long",
		"app pause ops --until soon":                       "or a duration such as 2h or 7d",
		"token create x --role viewer --expires -5h":       "--expires -5h lies in the past",
		"token create x --role viewer --expires -5d":       "--expires -5d lies in the past",
		"job add x --at 2027-02-30 -- b":                   "February 2027 has 28 days",
		"run ls --from 2028-02-30T00:00:00Z":               "February 2028 has 29 days",
		"run ls --from -1x":                                "want a distance from now, such as +90s, +10m or -7d",
		"run ls --from -9999999d":                          "is too long",
		"run ls -n abc":                                    "want a whole number",
		"run ls --timezone CEST":                           "Europe/Berlin",
		"alert rule set r --late-start 5":                  "want a duration with its unit",
		"alert rule set r --failures 3/5":                  "want a number and a duration",
		"backfill start a":                                 "--from is missing",
		"run list a":                                       "unexpected argument",
		"nonsense":                                         "unknown command",
		"jbo ls":                                           "did you mean go-crontab job?",
		"job delete --app ops --dry-run":                   "did you mean go-crontab job rm?",
		"job get a":                                        "did you mean go-crontab job show?",
		"job --sever x":                                    "unknown flag",
		"group set g":                                      "--slots is missing",
		"serve --dsn u@tcp(h)/d --listen 0.0.0.0:8610":     "--tls-cert FILE",
		"serve --dsn u@tcp(h)/d --listen :8610":            "--insecure-http",
		"serve --dsn u@tcp(h)/d --listen example.com:8610": "plain HTTP exposes tokens",
		"serve --dsn u@tcp(h)/d --probe-listen 8611":       "want host:port",
		"serve --dsn u@tcp(h)/d --listen 8610":             "want host:port",
		"serve --dsn u@tcp(h)/d --drain-grace 0s":          "--drain-grace",
		"serve --dsn u@tcp(h)/d --slots -1":                "--slots",
		"serve --log-format fancy":                         "auto, text, json",
		"serve x":                                          "unexpected argument",
		"migrate --dsn mysql://u:p@h/d":                    "is a URL",
		"migrate --dsn u:hunter2/@tcp(h)":                  "cannot be parsed",
		"dev --nodes 10":                                   "1 to 9",
		"dev --session-expiry 1s":                          "want 5s to 10m0s",
		"dev --port 0":                                     "1 to 65000",
		"job rm":                                           "JOB",
		"cluster --server":                                 "needs an argument",
	} {
		got := command(strings.Fields(line)...)
		if got.code != exitUsage || !strings.Contains(got.err, want) || got.out != "" ||
			strings.Contains(got.err, "hunter2") {
			t.Errorf("%s: got %+v; want code 2 and %q", line, got, want)
		}
	}
}

func TestProblemsAndTheirCodes(t *testing.T) {
	t.Parallel()

	const invalid = `{"type":"urn:go-crontab:problem:invalid","title":"The request is not valid","status":422,"detail":"schedule: no; name: no",` +
		`"errors":[{"field":"schedule","message":"is \u001b[31mbad"},{"field":"name","message":"is bad too"}]}`
	problem := func(status int) func(*http.Request) (int, string) {
		return always(status,
			fmt.Sprintf(`{"type":"t","title":"Title","status":%d,"detail":"Detail.","request_id":"r7"}`, status))
	}
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/1": always(422, invalid),
		"GET /api/v1/jobs/2": problem(409), "GET /api/v1/jobs/3": problem(500), "GET /api/v1/jobs/4": problem(503),
		"GET /api/v1/jobs/5": always(502, "<html>Bad gateway</html>"), "GET /api/v1/jobs/6": always(200, "<html>"),
		"GET /api/v1/jobs/7": problem(403), "GET /api/v1/jobs/11": always(403, "<html>Forbidden</html>"),
	})

	for id, want := range map[string]result{
		"1":  {code: exitRefused, err: "The request is not valid\n  schedule: is �[31mbad\n  name: is bad too\n"},
		"2":  {code: exitRefused, err: "Title: Detail.\n"},
		"3":  {code: exitFailed, err: "Title: Detail. (request_id r7)\n"},
		"4":  {code: exitFailed, err: "use another node"},
		"5":  {code: exitFailed, err: `, a proxy, answers "502 Bad Gateway"` + "\n"},
		"6":  {code: exitFailed, err: "cannot read the response"},
		"7":  {code: exitUnauthorized, err: "Title: Detail."},
		"8":  {code: exitNotFound, err: "there is no job"},
		"11": {code: exitFailed, err: "is not a go-crontab node"},
	} {
		got := command("job", "show", id, "--server", f.URL)
		if got.code != want.code || !strings.Contains(got.err, want.err) {
			t.Errorf("job %s: got %+v, want %+v", id, got, want)
		}
	}

	got := command("cluster", "--server", "https"+strings.TrimPrefix(f.URL, "http"))
	if got.code != exitFailed || !strings.Contains(got.err, "speaks plain HTTP") ||
		!strings.Contains(got.err, "GOCRONTAB_SERVER="+f.URL+"\n") {
		t.Errorf("TLS to a server without: got %+v", got)
	}

	if got := command("run", "logs", "9", "--server", f.URL); got.code != exitNotFound ||
		!strings.Contains(got.err, `no run or job "9"`) {
		t.Errorf("neither a run nor a job: got %+v", got)
	}

	f.Close()
	got = command("cluster", "--server", f.URL)
	if got.code != exitFailed || !strings.Contains(got.err, "no node answers at "+f.URL+": connection refused") ||
		!strings.Contains(got.err, "go-crontab dev") {
		t.Errorf("no server: got %+v", got)
	}
}

// TestSimilarJob: the error for a job that does not exist names a similar job, or the same name in
// another app.
func TestSimilarJob(t *testing.T) {
	t.Parallel()

	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs": func(r *http.Request) (int, string) {
			q := r.URL.Query()
			switch {
			case q.Get("name") == "backup":
				return 200, `{"items":[{"app":"ops","name":"backup-old"},{"app":"ops","name":"backup"}]}`
			case q.Get("app") == "default":
				return 200, `{"items":[{"app":"default","name":"hello"}]}`
			case q.Get("app") == "ops":
				return 200, `{"items":[{"app":"ops","name":"backup"}]}`
			}
			return 200, `{"items":[]}`
		},
	})

	for line, want := range map[string]string{
		"job show helo":       `there is no job "helo"; did you mean "hello"?`,
		"job show backup":     `there is no job "backup"; did you mean "ops/backup"?`,
		"job show ops/bakcup": `there is no job "ops/bakcup"; did you mean "ops/backup"?`,
		"job show nothing":    "there is no job \"nothing\"\n",
		"run logs helo":       `there is no run or job "helo"; did you mean "hello"?`,
	} {
		if got := command(append(strings.Fields(line), "--server", f.URL)...); got.code != exitNotFound ||
			!strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
}

// TestUnknownAuthority: the error for a certificate of an unknown authority says how to trust it.
func TestUnknownAuthority(t *testing.T) {
	t.Parallel()

	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()

	if got := command("cluster", "--server", s.URL); got.code != exitFailed ||
		!strings.Contains(got.err, "signed by an unknown authority") || !strings.Contains(got.err, "--ca-cert") {
		t.Errorf("got %+v", got)
	}
}

func TestRunAndWait(t *testing.T) {
	t.Parallel()

	const id = "4294967297"
	polls := 0
	outcome := "failed"
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/jobs/12":      always(200, fakeJob),
		"POST /api/v1/jobs/12/run": always(202, `{"job_id":"12","due":"2027-01-31T12:00:00.123456Z","request":"9"}`),
		"GET /api/v1/runs": func(r *http.Request) (int, string) {
			polls++
			// 500 have ended since
			if to, err := time.Parse(time.RFC3339, r.URL.Query().Get("to")); err != nil || to.Year() != 2027 {
				return 200, `{"items":[{"id":"other","final":true,"request":"8","state":"ended"}],"next":"` +
					strings.Repeat("x", polls) + `"}`
			}
			if polls == 1 {
				return 200, `{"items":[{"id":"other","final":true,"request":"8","state":"ended"}]}`
			}
			return 200, `{"items":[{"id":"` + id + `","final":true,"request":"9","state":"ended"}]}`
		},
		"GET /api/v1/runs/" + id: func(*http.Request) (int, string) {
			return 200, `{"id":"` + id + `","outcome":"` + outcome +
				`","exit_code":3,"node":"n","started":"2027-01-31T12:00:00Z","ended":"2027-01-31T12:00:01Z"}`
		},
		"GET /api/v1/runs/" + id + "/output": always(200, "what it said\n"),
	})

	got := command("job", "run", "12", "--wait", "--server", f.URL)
	if got.code != exitFailed || got.out != "what it said\n" ||
		!strings.Contains(got.err, "ops/a/b failed: exit code 3") {
		t.Errorf("failed run: got %+v", got)
	}

	outcome = "succeeded"
	got = command("job", "run", "12", "--wait", "--server", f.URL)
	if got.code != 0 || got.out != "what it said\n" || !strings.Contains(got.err, "succeeded in 1s on n") {
		t.Errorf("successful run: got %+v", got)
	}

	if want := "GET /api/v1/runs?from=2027-01-31T12%3A00%3A00.123456Z&job_id=12&limit=200&state=ended&to=2027-01-31T12%3A00%3A00.123457Z"; f.asked[2] != want {
		t.Errorf("asked %s, want %s", f.asked[2], want)
	}
	if got := command("job", "run", "12", "--server", f.URL); got.code != 0 ||
		!strings.Contains(got.out, "job history ops/a/b") {
		t.Errorf("without --wait: got %+v", got)
	}
}

// TestWaitOutlastsSilence: a run continues while the node that is polled restarts.
func TestWaitOutlastsSilence(t *testing.T) {
	t.Parallel()

	const id = "4294967297"
	var asked atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /api/v1/jobs/12":
			fmt.Fprint(w, fakeJob)
		case "POST /api/v1/jobs/12/run":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, `{"job_id":"12","due":"2027-01-31T12:00:00Z","request":"9"}`)
		case "GET /api/v1/runs":
			switch n := asked.Add(1); {
			case n <= 4:
				panic(http.ErrAbortHandler) // cuts the connection
			case n == 5:
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, `{"type":"urn:go-crontab:problem:unavailable","title":"Unavailable","status":503}`)
			default:
				fmt.Fprint(w, `{"items":[{"id":"`+id+`","final":true,"request":"9","state":"ended"}]}`)
			}
		case "GET /api/v1/runs/" + id:
			fmt.Fprint(w,
				`{"id":"`+id+
					`","outcome":"succeeded","node":"n","started":"2027-01-31T12:00:00Z","ended":"2027-01-31T12:00:01Z"}`)
		case "GET /api/v1/runs/" + id + "/output":
			fmt.Fprint(w, "what it said\n")
		}
	}))
	defer node.Close()

	if got := command("job", "run", "12", "--wait", "--server", node.URL); got.code != 0 ||
		got.out != "what it said\n" || asked.Load() != 6 {
		t.Errorf("got %+v after %d requests", got, asked.Load())
	}
}

// TestCardShowsEveryPolicy compares the card of a job with many fields.
func TestCardShowsEveryPolicy(t *testing.T) {
	t.Parallel()

	j := jobView{view.Job{
		ID: "1", Status: job.Broken, Error: "why", Version: 7,
		NextDue: at(time.Hour), LastDue: at(-time.Hour), Created: *at(-48 * time.Hour), Updated: *at(-time.Hour),
		Spec: job.Spec{
			App: "a", Name: "n", Description: "described", Owner: "owned",
			Labels: map[string]string{"k2": "v2", "k1": "v1"}, Every: job.Duration(time.Hour), Start: at(0),
			Command: "one\n  two", Timeout: job.Duration(30 * time.Minute), Overlap: job.OverlapSkip, OnLost: "fail",
			Misfire: job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(time.Hour)},
		},
	}}

	var b strings.Builder
	r := &remote{console: &console{out: &b}}
	if err := r.card(jobCard(&j, now)); err != nil {
		t.Fatal(err)
	}

	golden(t, "card.txt", b.String())
}
