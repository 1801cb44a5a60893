package api_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// running runs a job at once and returns its run.
func (s *site) running(id string) string {
	s.t.Helper()
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	var items []object
	await(s.t, "it runs", 10*time.Second, func() bool {
		items = s.call("GET", "/api/v1/runs?state=running&job_id="+id, nil).want(200).object().items("items")
		return len(items) == 1
	})
	return items[0].text("id")
}

// TestOutputWhileItRuns reads the output of an executing command as text, JSON and bytes. It
// follows it to the end without losing or repeating a byte, although pieces end within characters.
func TestOutputWhileItRuns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	gate := t.TempDir()

	// Each step waits for the test, so no timing matters.
	id := s.create("talks", object{"command": `printf 'one \xe2'; until [ -e ` + gate + `/a ]; do sleep .02; done
		printf '\x82\xac two \xff'; until [ -e ` + gate + `/b ]; do sleep .02; done; printf ' three'`}).text("id")
	run := s.running(id)
	path := "/api/v1/runs/" + run + "/output"
	at := func(from string) object { return s.call("GET", path+"?from="+from, nil).want(200).object() }
	var text strings.Builder
	next := "0"
	follow := func(want string) {
		t.Helper()
		await(t, "the text "+want, 15*time.Second, func() bool {
			o := at(next)
			text.WriteString(o.text("text"))
			next = o.text("next")
			return strings.HasSuffix(text.String(), want)
		})
	}

	follow("one ")
	if next != "4" {
		t.Errorf("next is %s, want the byte where the character begins", next)
	}

	if o := at("0"); o.text("state") != "running" || o.text("text") != "one " || o.text("outcome") != "" ||
		o.text("bytes") != "5" || o.text("id") != run {
		t.Errorf("got %v", o)
	}

	if r := s.call("GET", path, nil).want(200); r.body != "one " || r.header.Get("Output-State") != "running" ||
		r.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("as text: got %q, %v", r.body, r.header)
	}

	if o := s.call("GET", path, nil, "Accept", "application/json").want(200).object(); o.text("text") != "one " {
		t.Errorf("as JSON: got %v", o)
	}
	if r := s.call("GET", path, nil, "Accept", "application/json, text/plain").want(200); r.body != "one " {
		t.Errorf("as either: got %q", r.body)
	}

	if r := s.call("GET", path+"?raw=1", nil).want(200); r.body != "one \xe2" ||
		r.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("as bytes: got %q, %v", r.body, r.header)
	}

	touch(t, gate+"/a")
	follow("€ two \uFFFD")
	if text.String() != "one € two \uFFFD" {
		t.Errorf("got %q", text.String())
	}

	if r := s.call("GET", path+"?raw=1&from=3", nil).want(200); r.body != " € two \xff" ||
		r.header.Get("Output-From") != "3" || r.header.Get("Output-Next") != "13" {
		t.Errorf("bytes from 3: got %q, %v", r.body, r.header)
	}

	if r := s.call("GET", path+"?raw=1&from=99", nil).want(200); r.body != "" || r.header.Get("Output-Next") != "99" ||
		r.header.Get("Output-State") != "running" {
		t.Errorf("bytes from 99: got %q, %v", r.body, r.header)
	}

	touch(t, gate+"/b")
	s.ran(id, 1)
	if o := at("13"); o.text("state") != "ended" || o.text("outcome") != "succeeded" || o.text("text") != " three" ||
		o.text("next") != "19" || o.text("bytes") != "19" {
		t.Errorf("the rest: got %v", o)
	}

	if o := at("19"); o.text("text") != "" || o.text("next") != "19" {
		t.Errorf("behind the end: got %v", o)
	}

	if r := s.call("GET", path, nil).want(200); r.body != "one € two \uFFFD three" ||
		r.header.Get("Output-State") != "ended" {
		t.Errorf("all: got %q", r.body)
	}

	if n := s.count("SELECT COUNT(*) FROM chunk"); n != 0 {
		t.Errorf("%d pieces are left", n)
	}

	for _, query := range []string{"?from=-1", "?from=x", "?from=1e3", "?form=1", "?raw=2"} {
		s.call("GET", path+query, nil).want(422)
	}

	s.call("GET", "/api/v1/runs/"+uuid.NewString()+"-1/output?from=0", nil).want(404)
	s.call("GET", "/api/v1/runs/nonsense/output", nil).want(404)
}

func touch(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOutputWithGaps: gaps are marked at their places, whether the run executes or has ended.
func TestOutputWithGaps(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("gaps", object{"command": "sleep 60"}).text("id")
	run := s.running(id)
	number, err := job.ParseRunID(run)
	if err != nil {
		t.Fatal(err)
	}

	launch := job.Launch{Run: number, Claim: int32(s.count("SELECT claim FROM run WHERE id = ?", number))}
	err = s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		return trip.PutChunks(tx, []trip.Chunk{
			{Launch: launch, Piece: job.Piece{At: 0, Data: []byte("head\n")}}, {
				Launch: launch, Piece: job.Piece{At: 100, Data: []byte("ta")},
			},
			{Launch: launch, Piece: job.Piece{At: 102, Data: []byte("il")}},
		})
	})
	if err != nil {
		t.Fatal(err)
	}

	path := "/api/v1/runs/" + run + "/output"
	check := func() {
		t.Helper()
		// When these lines came is not known: the stamps are in the memory of the node.
		for _, p := range s.call("GET", path+"?pieces=true", nil).want(200).object().items("pieces") {
			if stamps := p.text("stamps"); !strings.Contains(stamps, " -1 0]") {
				t.Errorf("the lines have the stamps %s", stamps)
			}
		}

		if r := s.call("GET", path, nil).want(200); r.body != "head\n… 95 bytes dropped …\ntail" {
			t.Errorf("got %q", r.body)
		}

		if o := s.call("GET", path+"?from=50",
			nil).want(200).object(); o.text("text") != "\n… 50 bytes dropped …\ntail" || o.text("next") != "104" ||
			o.text("bytes") != "104" {
			t.Errorf("from within the gap: got %v", o)
		}

		all := ""
		from := "0"
		for range 3 {
			r := s.call("GET", path+"?raw=1&from="+from, nil).want(200)
			all += fmt.Sprintf("[%s]%s", r.header.Get("Output-From"), r.body)
			from = r.header.Get("Output-Next")
		}

		if all != "[0]head\n[100]tail[104]" {
			t.Errorf("piece by piece: got %q", all)
		}
	}

	check()
	// The same for an ended run.
	s.exec(`
			INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started, ended,
				outcome, final, output_bytes, output_kept)
				SELECT 999999, job_id, app_id, 1, kind, 'ended', -2, 1, 1, hash, 1, 2, 'lost', 1, 104, 9
				FROM run
				WHERE id = ` + run)
	s.exec("INSERT INTO output (run_id, head, tail) VALUES (999999, 'head\n', 'tail')")
	path = "/api/v1/runs/999999/output"
	check()
}

// TestOutputWithMissingParts reads a large output while its node writes the middle, and one whose node
// died before that.
func TestOutputWithMissingParts(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	from := s.running(s.create("source", object{"command": "sleep 60"}).text("id"))
	s.exec("INSERT INTO life (id, session, node, started, gone) VALUES (4711, REPEAT('x', 16), 'dead', 1, 2)")
	add := func(id int, session string) (path string) {
		s.exec(`
			INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started, ended,
				outcome, final, output_bytes, output_kept, session)
				SELECT ?, job_id, app_id, due - ?, kind, 'ended', -2, 1, 1, hash, 1, UNIX_TIMESTAMP() * 1000000,
					'succeeded', 1, 14, 14, `+session+`
				FROM run
				WHERE id = `+from, id, id)
		s.exec("INSERT INTO output (run_id, head, tail, parts) VALUES (?, 'head\n', 'tail\n', 1)", id)
		return fmt.Sprint("/api/v1/runs/", id)
	}
	check := func(path, pending, truncated, text string) {
		t.Helper()
		if o := s.call("GET", path+"/output?from=0", nil).want(200).object(); o.text("pending") != pending {
			t.Errorf("got %v, want pending %q", o, pending)
		}
		for _, form := range []string{"", "?raw=true"} {
			if r := s.call("GET", path+"/output"+form, nil).want(200); r.header.Get("Output-Pending") != pending {
				t.Errorf("got %v, want Output-Pending %q", r.header, pending)
			}
		}
		if r := s.call("GET", path+"/output", nil).want(200); r.body != text {
			t.Errorf("got %q, want %q", r.body, text)
		}
		if r := s.call("GET", path, nil).want(200).object(); r.text("output_truncated") != truncated {
			t.Errorf("got %v, want output_truncated %s", r, truncated)
		}
	}
	follow := func(e *ear, text, truncated string) {
		t.Helper()
		got := ""
		_, end := e.until("its end", func(h heard, o object) bool {
			if h.event == "output" {
				got += o.text("text")
			}
			return h.event == "end"
		})
		if got != text || end.text("truncated") != truncated {
			t.Errorf("got %q and %v, want %q and truncated %s", got, end, text, truncated)
		}
	}

	const gap, whole = "head\n… 4 bytes dropped …\ntail\n", "head\nmid\ntail\n"
	path := add(999998, "4711")
	check(path, "", "true", gap)
	follow(s.listen(path+"/output"), gap, "true")

	path = add(999999, "owner")
	follower := s.listen(path + "/output")
	check(path, "true", "false", gap)
	s.exec("INSERT INTO output_part (run_id, at_byte, size, line, data) VALUES (999999, 5, 4, 1, 'mid\n')")
	follow(follower, whole, "false")
	check(path, "", "false", whole)
}

// TestLargeOutput keeps a MiB of three, half from each end, with true line numbers behind the gap.
func TestLargeOutput(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const lines = 250_000
	id := s.create("much", object{
		"command": fmt.Sprintf("seq -f 'line %%.0f €' 1 %d; sleep .2; echo trouble >&2", lines),
		"output":  object{"keep": "1MiB", "mark_stderr": true},
	}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0].text("id")

	var text strings.Builder
	for i := 1; i <= lines; i++ {
		fmt.Fprintf(&text, "line %d €\n", i)
	}
	all := text.String() + "trouble\n"
	head, tail := all[:512<<10], all[len(all)-512<<10:]

	path := "/api/v1/runs/" + run + "/output"
	await(t, "all parts are stored", 15*time.Second, func() bool {
		return s.call("GET", path+"?from=0", nil).want(200).object()["pending"] == nil
	})
	if r := s.call("GET", path+"?raw=1", nil).want(200); r.body != head+tail {
		t.Errorf("got %d bytes, want %d", len(r.body), len(head+tail))
	}

	wholeHead, wholeTail := strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
	dropped := len(all) - len(wholeHead) - len(wholeTail)
	gap := fmt.Sprintf("… %d bytes dropped, %d lines …\n", dropped,
		strings.Count(all[len(wholeHead):len(all)-len(wholeTail)], "\n"))
	r := s.call("GET", path, nil).want(200)
	if !strings.Contains(r.body, gap) || !strings.HasPrefix(r.body, wholeHead) || !strings.HasSuffix(r.body, gap+wholeTail) {
		i := strings.Index(r.body, "…")
		t.Errorf("want %q, got %.80q", gap, r.body[max(0, i):])
	}

	// Piece by piece, each answer with a part of it.
	from, answers, trouble := 0, 0, false
	for answers = 0; answers < 50; answers++ {
		var o struct {
			Next   int
			Bytes  int
			Marks  bool `json:"marks_stderr"`
			Pieces []struct {
				From, Next, Line int
				Text             string
				Stamps           [][3]int
			}
		}
		body := s.call("GET", fmt.Sprintf("%s?pieces=true&from=%d", path, from), nil).want(200).body
		if err := json.Unmarshal([]byte(body), &o); err != nil {
			t.Fatal(err)
		}
		if !o.Marks || o.Bytes != len(all) {
			t.Fatalf("got %+v", o)
		}
		for _, p := range o.Pieces {
			if p.Text != all[p.From:p.Next] || p.Line != 1+strings.Count(all[:p.From], "\n") {
				t.Fatalf("from %d to %d, line %d: got %.60q", p.From, p.Next, p.Line, p.Text)
			}
			for _, stamp := range p.Stamps {
				trouble = trouble || stamp[0] == lines+1 && stamp[2] == 1
			}
		}
		if o.Next == from {
			break
		}
		from = o.Next
	}
	if from != len(all) || answers < 2 || !trouble {
		t.Errorf("%d answers reach byte %d of %d; stderr marked: %v", answers, from, len(all), trouble)
	}

	s.call("PATCH", "/api/v1/jobs/"+id, object{"output": object{"keep": "17MiB"}}).want(422)
	s.call("PATCH", "/api/v1/jobs/"+id, object{"output": object{"keep": "1KiB"}}).want(422)
	s.call("PATCH", "/api/v1/jobs/"+id, object{"output": object{"kep": "1MiB"}}).want(422)
	s.call("GET", path+"?pieces=true&raw=true", nil).want(422)
}

// TestJobOptions: options are returned as given, and mistakes are reported field by field.
func TestJobOptions(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	dir := t.TempDir()
	limits := object{
		"memory": "512MiB", "cpu": 1.5, "pids": 50, "open_files": 64, "cpu_seconds": 60, "file_size": 1 << 20,
		"address_space": "2G", "core": 0,
	}

	j := s.create("options", object{
		"user": "backup:backup", "dir": dir, "env": object{"A": "b", "C": ""}, "stdin": "text\n",
		"success_codes": []int{0, 3}, "skip_exit_codes": []int{75}, "grace": "1m", "limits": limits,
	})

	for want, path := range map[string][]string{
		"backup:backup": {"user"}, dir: {"dir"}, "b": {"env", "A"}, "text\n": {"stdin"}, "[0 3]": {"success_codes"},
		"[75]": {"skip_exit_codes"},
		"1m":   {"grace"}, "512MiB": {"limits", "memory"},
		"1.5": {"limits", "cpu"}, "50": {"limits", "pids"}, "64": {"limits", "open_files"},
		"60": {"limits", "cpu_seconds"}, "1MiB": {"limits", "file_size"},
		"2GiB": {"limits", "address_space"}, "0B": {"limits", "core"},
	} {
		if got := j.text(path...); got != want {
			t.Errorf("%v: got %q, want %q", path, got, want)
		}
	}

	patched := s.call("PATCH", "/api/v1/jobs/"+j.text("id"),
		object{"user": nil, "env": object{"A": nil, "D": "e"}, "limits": object{"memory": nil, "core": nil}}).want(
		200).object()
	if patched.text("user") != "" || patched.text("env") != "map[C: D:e]" || patched.text("limits", "memory") != "" ||
		patched.text("limits", "core") != "" || patched.text("limits", "cpu") != "1.5" {
		t.Errorf("patched: got %v", patched)
	}

	// The answer can be sent back unchanged.
	delete(patched, "labels")
	again := s.call("PUT", "/api/v1/apps/default/jobs/options", patched).want(200).object()
	if again.text("version") != patched.text("version") {
		t.Errorf("sent back unchanged: got\n%v, was\n%v", again, patched)
	}

	plain := s.create("plain", nil)
	for _, field := range []string{"user", "dir", "env", "stdin", "success_codes", "skip_exit_codes", "grace", "limits"} {
		if plain.text(field) != "" {
			t.Errorf("a job without options has %s %q", field, plain.text(field))
		}
	}

	for field, body := range map[string]object{
		"user": {"user": 5}, "dir": {"dir": "relative"}, "env": {"env": "A=b"}, "env.A": {"env": object{"A": 1}},
		"env.GOCRONTAB_X": {"env": object{"GOCRONTAB_X": ""}},
		"env.LD_PRELOAD":  {"env": object{"LD_PRELOAD": "/x"}}, "stdin": {"stdin": strings.Repeat("x", job.MaxStdin+1)},
		"success_codes":    {"success_codes": 3},
		"success_codes[0]": {"success_codes": []any{"3"}}, "success_codes[1]": {"success_codes": []int{0, 256}},
		"skip_exit_codes[0]": {"skip_exit_codes": []int{0}}, "skip_exit_codes": {"skip_exit_codes": "75"},
		"grace": {"grace": "6m"}, "limits": {"limits": 5},
		"limits.memory": {"limits": object{"memory": "5MB"}}, "limits.cpu": {"limits": object{"cpu": "two"}},
		"limits.pids": {"limits": object{"pids": 1.5}},
		"limits.core": {"limits": object{"core": -1}}, "limits.file_size": {"limits": object{"file_size": true}},
		"limits.nice": {"limits": object{"nice": 5}},
	} {
		body["name"], body["command"], body["schedule"] = "wrong", "true", "@daily"
		problem := s.call("POST", "/api/v1/jobs", body).want(422).object()
		if errs := problem.items("errors"); len(errs) != 1 || errs[0].text("field") != field {
			t.Errorf("%s: got %v", field, problem)
		}
	}
}

// TestNothingToDo: an exit code of skip_exit_codes ends the run skipped, once and for all, and counts as neither failure
// nor success.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("inbox", object{
		"skip_exit_codes": []int{75}, "command": "echo no file; exit 75", "retry": object{"attempts": 3, "backoff": "10ms"},
	}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0]
	if got := fmt.Sprint(run.text("outcome"), " ", run.text("reason_code"), " ", run.text("exit_code"), " ",
		run.text("final"), " ", run.text("attempt"), " ", run.text("started") != ""); got != "skipped nothing_to_do 75 true 1 true" {
		t.Errorf("got %s: %v", got, run)
	}

	why := s.call("GET", "/api/v1/jobs/"+id+"/explain?at="+run.text("due"), nil).want(200).object()
	if why.text("cause") != "nothing_to_do" || !strings.Contains(why.text("answer"), "It was started") {
		t.Errorf("explained: got %v", why)
	}
	j := s.call("GET", "/api/v1/jobs/"+id, nil).want(200).object()
	if j.text("health", "code") != "ok" {
		t.Errorf("health: got %v", j["health"])
	}
	stats := s.call("GET", "/api/v1/stats/jobs?window=1h", nil).want(200).object()
	if n := stats.items("items"); len(n) != 1 || n[0].text("skipped") != "1" || n[0].text("runs") != "0" ||
		n[0].text("failed") != "0" || n[0].text("success_rate") != "" || n[0].text("duration_p50_ms") != "" {
		t.Errorf("statistics: got %v", stats)
	}
	if o := s.call("GET", "/api/v1/stats/counts", nil).want(200).object(); o.text("failing_jobs") != "0" {
		t.Errorf("counts: got %v", o)
	}

	body := object{"name": "both", "every": "1h", "command": "true", "success_codes": []int{0, 75}, "skip_exit_codes": []int{75}}
	errs := s.call("POST", "/api/v1/jobs", body).want(422).object().items("errors")
	if len(errs) != 2 || errs[0].text("field") != "skip_exit_codes[0]" || errs[1].text("field") != "success_codes[1]" {
		t.Errorf("in both lists: got %v", errs)
	}
	body = object{"name": "web", "every": "1h", "http": object{"url": "https://example.com/"}, "skip_exit_codes": []int{75}}
	errs = s.call("POST", "/api/v1/jobs", body).want(422).object().items("errors")
	if len(errs) != 1 || errs[0].text("field") != "skip_exit_codes" {
		t.Errorf("with a request: got %v", errs)
	}
}

// TestOptionsTakeEffect: options reach the command.
func TestOptionsTakeEffect(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	dir := t.TempDir()
	id := s.create("options", object{
		"dir": dir, "env": object{"A": "b"}, "stdin": "text", "success_codes": []int{3},
		"limits":  object{"open_files": 64},
		"command": `pwd; echo "$A"; cat; echo; ulimit -n; exit 3`,
	}).text("id")

	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0]
	out := s.call("GET", "/api/v1/runs/"+run.text("id")+"/output", nil).want(200).body
	if want := dir + "\nb\ntext\n64\n"; run.text("outcome") != "succeeded" || run.text("exit_code") != "3" ||
		out != want {
		t.Errorf("got %v, output %q, want %q", run, out, want)
	}

	id = s.create("beyond", object{"limits": object{"open_files": 1 << 30}}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	if run := s.ran(id, 1)[0]; run.text("outcome") != "failed" ||
		!strings.Contains(run.text("reason"), "more than this node's own hard limit") {
		t.Errorf("got %v", run)
	}

	id = s.create("patient", object{"command": "trap '' TERM; echo ready; sleep 60; sleep 60",
		"grace": "1s"}).text("id")
	path := "/api/v1/runs/" + s.running(id)
	await(t, "it ignores SIGTERM", 15*time.Second, func() bool { return s.call("GET", path+"/output", nil).body != "" })
	s.call("POST", path+"/kill", nil).want(202)
	if run := s.ran(id, 1)[0]; run.text("outcome") != "killed" || run.text("signal") != "SIGKILL" {
		t.Errorf("got %v", run)
	}
}
