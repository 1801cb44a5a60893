package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/test/faultproxy"
)

const loggedRun = "4294967303"

// growing is an API with a run whose output grows with each request, cut into pieces as the real
// API cuts it.
type growing struct {
	*httptest.Server
	mu     sync.Mutex
	all    string
	known  int // bytes available now
	step   int // growth per request
	fails  int // number of requests to refuse next
	broken int // status of refused requests
	asked  []string
	ended  bool
}

func newGrowing(t *testing.T, all string, step int) *growing {
	g := &growing{all: all, step: step, broken: http.StatusServiceUnavailable}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *growing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.asked = append(g.asked, r.URL.RequestURI())
	switch r.URL.Path {
	case "/api/v1/runs/" + loggedRun:
		fmt.Fprintf(w, `{"id":%q,"state":"running"}`, loggedRun)
		return
	case "/api/v1/runs/" + loggedRun + "/output":
	default:
		w.WriteHeader(http.StatusNotFound)
		return
	}

	if g.fails > 0 {
		g.fails--
		w.WriteHeader(g.broken)
		fmt.Fprintf(w, `{"title":"Not now","status":%d}`, g.broken)
		return
	}

	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	g.ended = g.known == len(g.all)
	g.known = min(len(g.all), g.known+g.step)
	state := map[bool]string{true: "ended", false: "running"}[g.ended]
	next := g.known
	if r.URL.Query().Get("raw") == "1" {
		next = min(next, from+5) // at most five bytes per response
		w.Header().Set("Output-State", state)
		w.Header().Set("Output-Next", strconv.Itoa(next))
		fmt.Fprint(w, g.all[from:next])
		return
	}

	fmt.Fprintf(w, `{"state":%q,"from":%d,"next":%d,"text":%q}`, state, from, next, g.all[from:next])
}

func TestFollow(t *testing.T) {
	t.Parallel()

	const all = "line one\nline two €\nand three\n"
	for name, args := range map[string][]string{"text": nil, "bytes": {"--raw"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGrowing(t, all, 13)
			g.fails = 2 // the node is starting
			got := command(append([]string{"run", "logs", loggedRun, "-f", "--server", g.URL}, args...)...)
			if got.code != 0 || got.out != all || got.err != "" {
				t.Errorf("got %+v, want %q", got, all)
			}
			if !g.ended {
				t.Error("it did not wait for the end")
			}
		})
	}

	t.Run("without -f what is there is printed once", func(t *testing.T) {
		t.Parallel()
		g := newGrowing(t, all, 100)
		if got := command("run", "logs", loggedRun, "--server", g.URL); got.code != 0 || len(g.asked) != 2 ||
			g.asked[1] != "/api/v1/runs/"+loggedRun+"/output" {
			t.Errorf("got %+v, asked %q", got, g.asked)
		}
	})

	t.Run("what will not pass ends it", func(t *testing.T) {
		t.Parallel()
		g := newGrowing(t, all, 100)
		g.fails, g.broken = 1, http.StatusNotFound
		if got := command("run", "logs", loggedRun, "-f", "--server", g.URL); got.code != exitNotFound ||
			!strings.Contains(got.err, "Not now") {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("a server that is older", func(t *testing.T) {
		t.Parallel()
		f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
			"GET /api/v1/runs/" + loggedRun: always(200, `{"id":"`+loggedRun+`"}`),
			"GET /api/v1/runs/" + loggedRun + "/output": always(422,
				`{"title":"The request is not valid","status":422}`),
		})
		if got := command("run", "logs", loggedRun, "-f", "--server", f.URL); got.code != exitRefused {
			t.Errorf("got %+v", got)
		}
	})
}

// TestFollowOnAnotherNode follows a run through a node that does not execute it. A list of allowed
// users that do not exist does no harm, nor does the node's own user in it.
func TestFollowOnAnotherNode(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	one := serve(t, dsn, "one", "--run-as-allow", "root, "+strconv.Itoa(os.Geteuid())).ready()
	two := serve(t, dsn, "two", "--run-as-allow", "no-such-user").ready()
	gate := filepath.Join(t.TempDir(), "gate")
	const all = "1\n2\n3\n€ and \uFFFD\nend\n"
	command := `seq 3; printf '\xe2'; until [ -e ` + gate +
		`1 ]; do sleep .05; done; printf '\x82\xac and \xff\n'; until [ -e ` + gate +
		`2 ]; do sleep .05; done; echo end`
	if got := one.ask("job", "add", "talks", "--schedule", "@yearly", "--selector", "node=one", "-c",
		command); got.code != 0 {
		t.Fatalf("add: %+v", got)
	}

	if got := two.ask("job", "run", "talks"); got.code != 0 {
		t.Fatalf("run: %+v", got)
	}

	var run view.Run
	await(t, "it runs on one", 30*time.Second, func() bool {
		got := two.ask("run", "ls", "--state", "running", "--node", "one", "-o", "json")
		var p view.Page[view.Run]
		if json.Unmarshal([]byte(got.out), &p) != nil || len(p.Items) != 1 {
			return false
		}
		run = p.Items[0]
		return true
	})

	follower := start(t, two.env(), "run", "logs", "--follow", run.ID)
	follower.says("1\n2\n3\n", 20*time.Second)
	for i, heard := range []string{"and \uFFFD\n", "end\n"} {
		if err := os.WriteFile(gate+strconv.Itoa(i+1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		follower.says(heard, 20*time.Second)
	}

	if code := follower.exit(20 * time.Second); code != 0 || follower.out.String() != all {
		t.Errorf("got code %d, %q, want %q", code, follower.out.String(), all)
	}

	for _, args := range [][]string{{"run", "logs", run.ID}, {"run", "logs", run.ID, "-f"}} {
		if got := two.ask(args...); got.code != 0 || got.out != all {
			t.Errorf("%q: got %+v, want %q", args, got, all)
		}
	}

	if got := two.ask("run", "logs", run.ID, "-f", "--raw"); got.code != 0 || got.out != "1\n2\n3\n€ and \xff\nend\n" {
		t.Errorf("raw: got %+v", got)
	}
}

// TestFollowedPieces follows an output whose pieces end anywhere, after its last lines.
func TestFollowedPieces(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/runs/"+loggedRun, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"state":"running","started":"2026-08-01T03:00:00Z"}`, loggedRun)
	})
	mux.HandleFunc("/api/v1/runs/"+loggedRun+"/output", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("pieces") == "true" {
			fmt.Fprint(w, `{"state":"running","next":10,"bytes":10,"pieces":[
				{"from":0,"next":10,"line":1,"text":"one\r\nhal","stamps":[[1,-1,0]]}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i, text := range []string{`f\r`, `\n\u001b[3`, `1mred\u001b[0m\n`, `50%\r`} {
			fmt.Fprintf(w, "id: %d\nevent: output\ndata: {\"from\":%d,\"next\":%d,\"text\":\"%s\"}\n\n", 11+i, 10+i, 11+i, text)
		}
		fmt.Fprint(w, "event: end\ndata: {}\n\n")
	})
	f := httptest.NewServer(mux)
	t.Cleanup(f.Close)

	got := command("run", "logs", loggedRun, "-f", "-n", "9", "--server", f.URL)
	if want := "one\nhalf\nred\n50%\\x0d"; got.code != 0 || got.out != want {
		t.Errorf("got %+v, want %q", got, want)
	}
	got = command("run", "logs", loggedRun, "-n", "9", "--server", f.URL)
	if got.code != 0 || got.out != "one\nhal\n" {
		t.Errorf("without -f: got %+v", got)
	}
	got = command("run", "logs", loggedRun, "-t", "--server", f.URL)
	if want := strings.Repeat(" ", len(stampForm)+2); got.code != 0 || got.out != want+"one\n"+want+"hal\n" {
		t.Errorf("with times: got %+v", got)
	}
}

// TestPendingOutput: while a node is still storing an output, its readers are told.
func TestPendingOutput(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/runs/"+loggedRun, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q,"state":"ended"}`, loggedRun)
	})
	mux.HandleFunc("/api/v1/runs/"+loggedRun+"/output", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Output-Pending", "true")
		if r.URL.Query().Get("pieces") == "true" {
			fmt.Fprint(w, `{"state":"ended","next":2,"bytes":2,"pending":true,"pieces":[{"from":0,"next":2,"line":1,"text":"a\n"}]}`)
			return
		}
		fmt.Fprint(w, "a\n")
	})
	f := httptest.NewServer(mux)
	t.Cleanup(f.Close)

	for _, args := range [][]string{nil, {"--raw"}, {"-n", "5"}, {"-t"}} {
		got := command(append([]string{"run", "logs", loggedRun, "--server", f.URL}, args...)...)
		if got.code != 0 || strings.TrimSpace(got.out) != "a" || !strings.Contains(got.err, "still storing the middle") {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}

// TestKilledBeforeTheWholeOutput kills a node after it has written the end of a run and the first
// part of its large output. Nothing then claims that the rest is kept.
func TestKilledBeforeTheWholeOutput(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	proxy := faultproxy.Before(t, dsn)
	second := proxy.Add(faultproxy.Rule{
		Match:  faultproxy.SQL("^INSERT INTO output_part"),
		Skip:   1,
		Action: faultproxy.HoldBefore(0).ThenCut(),
	})
	well := serve(t, dsn, "well").ready()
	doomed := serve(t, proxy.DSN(dsn), "doomed").ready()
	if got := well.ask("job", "add", "loud", "--schedule", "@yearly", "--selector", "node=doomed",
		"--keep-output", "1MiB", "-c", "seq 100000"); got.code != 0 {
		t.Fatalf("add: %+v", got)
	}
	if got := well.ask("job", "run", "loud"); got.code != 0 {
		t.Fatalf("run: %+v", got)
	}
	if err := second.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}

	run := well.runs("loud")[0]
	shown := func() (v view.Run) {
		t.Helper()
		got := well.ask("run", "show", run.ID, "-o", "json")
		if err := json.Unmarshal([]byte(got.out), &v); err != nil {
			t.Fatalf("show: %+v", got)
		}
		return v
	}
	if v := shown(); v.State != "ended" || v.OutputTruncated {
		t.Errorf("while the node writes: got %+v", v)
	}
	const pending = "still storing the middle"
	if got := well.ask("run", "logs", run.ID); got.code != 0 || !strings.Contains(got.err, pending) {
		t.Errorf("while the node writes: got code %d, %s", got.code, got.err)
	}

	follower := start(t, well.env(), "run", "logs", run.ID, "--follow")
	doomed.signal(syscall.SIGKILL)
	second.Release()

	var all strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&all, i+1)
	}
	text := all.String()
	// The first part happens to end with a line.
	first, dropped, last := text[:(32+256)<<10], text[(32+256)<<10:len(text)-32<<10], text[len(text)-32<<10:]
	want := fmt.Sprintf("%s… %d bytes dropped, %d lines …\n%s", first, len(dropped), strings.Count(dropped, "\n"), last)
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: got %d bytes, want %d; from byte %d on %.80q", what, len(got), len(want), i, got[i:])
		}
	}

	if code := follower.exit(60 * time.Second); code != 0 {
		t.Errorf("the follower exits with code %d", code)
	}
	check("followed", follower.out.String(), want)
	got := well.ask("run", "logs", run.ID)
	check("read", got.out, want)
	if strings.Contains(got.err, pending) {
		t.Errorf("the dead node is said to write: %s", got.err)
	}
	check("bytes", well.ask("run", "logs", run.ID, "--raw").out, first+last)
	if v := shown(); v.Outcome != job.Succeeded || !v.OutputTruncated || v.OutputBytes != int64(len(text)) {
		t.Errorf("got %+v", v)
	}
	if got := well.ask("run", "show", run.ID); !strings.Contains(got.out, "without the middle") {
		t.Errorf("got %s", got.out)
	}
}

// TestChosenLines prints lines of an output that comes in two answers and has a gap.
func TestChosenLines(t *testing.T) {
	t.Parallel()
	output := func(r *http.Request) (int, string) {
		if r.URL.Query().Get("pieces") != "true" {
			return 422, `{"title":"want pieces","status":422}`
		}
		switch r.URL.Query().Get("from") {
		case "0":
			return 200, `{"state":"ended","next":8,"bytes":100,"marks_stderr":true,"pieces":[
				{"from":0,"next":6,"line":1,"text":"one\ntw","stamps":[[1,0,0],[2,1500,1]]},
				{"from":6,"next":8,"line":2,"text":"o\r\n","stamps":[[2,1500,1],[3,1500,0]]}]}`
		case "8":
			return 200, `{"state":"ended","next":100,"bytes":100,"marks_stderr":true,"pieces":[
				{"from":90,"next":100,"line":53,"text":"\u001bend\nlast","stamps":[[53,2000,1]]}]}`
		}
		return 404, `{"title":"no","status":404}`
	}
	f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
		"GET /api/v1/runs/" + loggedRun: always(200,
			`{"id":"`+loggedRun+`","started":"2026-08-01T03:00:00Z","state":"ended"}`),
		"GET /api/v1/runs/" + loggedRun + "/output": output,
	})

	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"-n", "9"}, "one\ntwo\n… 82 bytes dropped, 50 lines …\n\\x1bend\nlast\n"},
		{[]string{"-n", "1"}, "last\n"},
		{[]string{"--stderr"}, "two\n… 82 bytes dropped, 50 lines …\n\\x1bend\nlast\n"},
		{[]string{"--stderr", "-n", "3"}, "two\n… 82 bytes dropped, 50 lines …\n\\x1bend\nlast\n"},
	} {
		got := command(append([]string{"run", "logs", loggedRun, "--server", f.URL}, c.args...)...)
		if got.code != 0 || got.out != c.out {
			t.Errorf("%q: got %+v, want %q", c.args, got, c.out)
		}
	}

	got := command("run", "logs", loggedRun, "--timestamps", "--server", f.URL)
	at := time.Date(2026, 8, 1, 3, 0, 1, 500_000_000, time.UTC).Local().Format("2006-01-02T15:04:05.000-07:00")
	if got.code != 0 || !strings.Contains(got.out, at+"  two\n… 82") {
		t.Errorf("got %+v, want %s", got, at)
	}

	for _, args := range [][]string{{"-n", "-1"}, {"--raw", "-t"}, {"-f", "--stderr"}} {
		got := command(append([]string{"run", "logs", loggedRun, "--server", f.URL}, args...)...)
		if got.code != exitUsage || got.out != "" {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}
