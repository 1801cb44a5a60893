package api_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/node"
	"go-crontab/session"
)

// join runs another node of the site's cluster until the end of the test.
func (s *site) join(cfg node.Config, handlers map[string]node.Handler) *node.Node {
	s.t.Helper()
	cfg.DSN, cfg.Expiry, cfg.LookAhead, cfg.Grace, cfg.Log = s.dsn, session.DefaultExpiry, time.Second,
		200*time.Millisecond, s.cfg.Log
	n, err := node.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}

	for key, f := range handlers {
		n.Handle(key, f)
	}

	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Run(ctx); err != nil {
			s.t.Errorf("node: %v", err)
		}
	}()

	s.t.Cleanup(func() { stop(); <-done })
	if err := n.AwaitReady(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// node reads one node.
func (s *site) nodeNow(name string) object {
	return s.call("GET", "/api/v1/nodes/"+name, nil).want(200).object()
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	block := make(chan struct{})
	s.join(node.Config{Name: "größer/1", Labels: map[string]string{"zone": "a"}}, map[string]node.Handler{
		"block": func(ctx context.Context, _ node.Attempt) error {
			select {
			case <-block:
			case <-ctx.Done():
			}
			return nil
		},
	})

	const path = "gr%C3%B6%C3%9Fer%2F1"
	items := s.call("GET", "/api/v1/nodes", nil).want(200).object().items("items")
	if len(items) != 2 || items[0].text("name") != "größer/1" || items[1].text("name") != "knoten-1" {
		t.Fatalf("got %v", items)
	}

	n := s.nodeNow(path)
	if n.text("state") != "ready" || n.text("labels", "zone") != "a" || n.text("labels", "node") != "größer/1" ||
		n.text("labels", "os") == "" ||
		fmt.Sprint(n["handlers"]) != "[block]" || len(n.items("sessions")) != 1 || n.text("cordoned") != "false" {
		t.Errorf("got %v", n)
	}

	s.create("long", object{
		"command": nil, "handler": "block", "schedule": nil, "at": time.Now().UTC().Format(time.RFC3339),
	})
	await(t, "it runs there", 10*time.Second, func() bool { return s.nodeNow(path).text("executing") == "1" })

	n = s.call("POST", "/api/v1/nodes/"+path+"/cordon", object{"reason": "new disk"}).want(200).object()
	if n.text("state") != "cordoned" || n.text("reason") != "new disk" || n.text("by") == "" || n.text("since") == "" ||
		n.text("executing") != "1" {
		t.Errorf("cordoned: got %v", n)
	}

	n = s.call("POST", "/api/v1/nodes/"+path+"/drain", nil).want(200).object()
	if n.text("state") != "draining" || n.text("drained") != "false" || n.text("draining") != "true" {
		t.Errorf("draining: got %v", n)
	}

	close(block)
	await(t, "it is drained", 10*time.Second, func() bool { return s.nodeNow(path).text("drained") == "true" })
	if state := s.nodeNow(path).text("state"); state != "drained" {
		t.Errorf("state %q, want drained", state)
	}

	for range 2 {
		n = s.call("POST", "/api/v1/nodes/"+path+"/uncordon", object{}).want(200).object()
		if n.text("cordoned") != "false" || n.text("reason") != "" {
			t.Errorf("uncordoned: got %v", n)
		}
	}

	await(t, "it is ready", 5*time.Second, func() bool { return s.nodeNow(path).text("state") == "ready" })

	// A node that does not exist.
	s.call("GET", "/api/v1/nodes/nobody", nil).want(404)
	for _, verb := range []string{"cordon", "drain", "uncordon"} {
		if r := s.call("POST", "/api/v1/nodes/knoten-l/"+verb, nil).want(404); !strings.Contains(r.body,
			`did you mean \"knoten-1\"?`) {
			t.Errorf("%s of a mistyped name: got %s", verb, r.body)
		}
	}

	s.call("POST", "/api/v1/nodes/nobody/drain?absent=yes", nil).want(422)
	if n := s.call("POST", "/api/v1/nodes/nobody/drain?absent=ok",
		nil).want(200).object(); n.text("state") != "absent" || n.text("drained") != "true" {
		t.Errorf("a node that is not there: got %v", n)
	}

	s.call("GET", "/api/v1/nodes/nobody", nil).want(200)
	s.call("POST", "/api/v1/nodes/nobody/uncordon", nil).want(200)
	s.call("GET", "/api/v1/nodes/nobody", nil).want(404)
	s.call("POST", "/api/v1/nodes/nobody/uncordon", nil).want(404)

	for body, field := range map[string]string{`{"reason": 7}`: "reason", `{"reson": "x"}`: "reson",
		`{"reason": "a\nb"}`: "reason", `{"reason": "` + strings.Repeat("x", 501) + `"}`: "reason"} {
		if r := s.call("POST", "/api/v1/nodes/knoten-1/cordon", body).want(422); !strings.Contains(r.body, field) {
			t.Errorf("%s: got %s", body, r.body)
		}
	}

	s.call("POST", "/api/v1/nodes/"+strings.Repeat("n", 129)+"/cordon?absent=ok", nil).want(422)
	s.call("POST", "/api/v1/nodes/nobody/uncordon", object{"reason": "x"}).want(422)
	if n := s.count("SELECT COUNT(*) FROM audit WHERE kind = 'node'"); n != 5 {
		t.Errorf("%d lines in the audit, want 5", n)
	}
}

func TestHandlersOfTheCluster(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.join(node.Config{Name: "app"}, map[string]node.Handler{
		"mail/send": func(context.Context, node.Attempt) error { return nil },
		"fails":     func(context.Context, node.Attempt) error { return errors.New("no") },
	})

	job := s.create("mail", object{
		"command": nil, "handler": "mail/send", "payload": `{"to": "ann"}`, "schedule": nil, "every": "1s",
	})
	if job.text("handler") != "mail/send" || job.text("payload") != `{"to": "ann"}` || job.text("warnings") != "" {
		t.Errorf("got %v", job)
	}

	s.create("two", object{"command": nil, "handler": "nobody.has"})
	handlers := func() (out []string) {
		for _, h := range s.call("GET", "/api/v1/handlers", nil).want(200).object().items("items") {
			out = append(out, fmt.Sprint(h.text("handler"), " ", h["nodes"], " ", h.text("jobs"), " ",
				h.text("disabled"), " ", h.text("reason")))
		}
		return out
	}

	want := []string{"fails [app] 0 false ", "mail/send [app] 1 false ", "nobody.has [] 1 false "}
	if got := handlers(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if h := s.call("POST", "/api/v1/handlers/mail%2Fsend/disable",
		object{"reason": "spam"}).want(200).object(); h.text("disabled") != "true" || h.text("since") == "" {
		t.Errorf("got %v", h)
	}

	await(t, "a due time says so", 10*time.Second, func() bool {
		return s.count(`
				SELECT COUNT(*)
				FROM run
				WHERE outcome = 'skipped' AND reason LIKE 'handler mail/send is disabled by %: spam'`) > 0
	})

	want[1] = "mail/send [app] 1 true spam"
	if got := handlers(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	for range 2 {
		if h := s.call("POST", "/api/v1/handlers/mail%2Fsend/enable",
			nil).want(200).object(); h.text("disabled") != "false" {
			t.Errorf("got %v", h)
		}
	}

	s.call("POST", "/api/v1/handlers/nobody.knows/enable", nil).want(200)
	s.call("POST", "/api/v1/handlers/a%20b/disable", nil).want(422)
	await(t, "it runs", 10*time.Second, func() bool {
		return s.count("SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'") > 0
	})
}

// TestPlacementIsVisible: a job that no node may run causes a warning, and its waiting runs are
// shown.
func TestPlacementIsVisible(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	due := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	j := s.create("gpu", object{"schedule": nil, "at": due, "selector": "gpu, zone in (b,a)"})
	if j.text("selector") != "gpu,zone in (a,b)" ||
		!strings.Contains(fmt.Sprint(j["warnings"]), "no node matches gpu,zone in (a,b) now") {
		t.Errorf("got %v", j)
	}

	var shown object
	await(t, "it waits", 10*time.Second, func() bool {
		shown = s.call("GET", "/api/v1/jobs/"+j.text("id"), nil).want(200).object()
		return shown["waiting"] != nil
	})

	if w := shown.items("waiting")[0]; w.text("why") != "no node matches gpu,zone in (a,b)" || w.text("due") != due ||
		w.text("for") != "node" || w.text("since") == "" {
		t.Errorf("got %v", w)
	}

	if listed := s.call("GET", "/api/v1/jobs",
		nil).want(200).object().items("items")[0]; len(listed.items("waiting")) != 1 {
		t.Errorf("in the list: got %v", listed)
	}

	e := s.call("GET", "/api/v1/jobs/"+j.text("id")+"/explain?at="+due, nil).want(200).object()
	if !strings.Contains(e.text("answer"), "no node matches gpu,zone in (a,b)") {
		t.Errorf("got %v", e)
	}

	// The answer can be sent back, and PATCH moves the job to a node that may run it.
	for _, field := range []string{"waiting", "warnings"} {
		if shown[field] == nil {
			shown[field] = []string{}
		}
	}

	s.call("PUT", "/api/v1/jobs/"+j.text("id"), shown).want(200)
	p := s.call("PATCH", "/api/v1/jobs/"+j.text("id"), object{"selector": "node=knoten-1"}).want(200).object()
	if p["warnings"] != nil {
		t.Errorf("got %v", p)
	}

	await(t, "it ran", 10*time.Second, func() bool {
		return s.count("SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'") == 1
	})
	s.call("POST", "/api/v1/nodes/knoten-1/cordon", nil).want(200)
	p = s.call("PATCH", "/api/v1/jobs/"+j.text("id"), object{"description": "x"}).want(200).object()
	if !strings.Contains(fmt.Sprint(p["warnings"]), "all nodes that match node=knoten-1 are cordoned") {
		t.Errorf("got %v", p)
	}

	for selector, want := range map[string]string{"zone in a": "at character 9", "=": "at character 1",
		strings.Repeat("a", 600): "at most 512"} {
		for path, body := range map[string]object{
			"/api/v1/jobs":    {"name": "x", "command": "true", "schedule": "@daily", "selector": selector},
			"/api/v1/preview": {"schedule": "@daily", "selector": selector},
		} {
			r := s.call("POST", path, body).want(422)
			if !strings.Contains(r.body, `"field":"selector"`) || !strings.Contains(r.body, want) {
				t.Errorf("%s: %s: got %s", path, selector, r.body)
			}
		}
	}

	for want, body := range map[string]object{
		`"field":"handler"`: {"name": "x", "handler": "a b", "schedule": "@daily"},
		`"field":"payload"`: {"name": "x", "command": "true", "payload": "x", "schedule": "@daily"},
		`"payload","message":"is 65537 bytes`: {
			"name": "x", "handler": "a", "payload": strings.Repeat("x", 65537), "schedule": "@daily",
		},
		`keep one of command, handler`: {"name": "x", "command": "true", "handler": "a", "schedule": "@daily"},
	} {
		if r := s.call("POST", "/api/v1/jobs", body).want(422); !strings.Contains(r.body, want) {
			t.Errorf("%.60v: got %s, want %s", body, r.body, want)
		}
	}

	pre := s.call("POST", "/api/v1/preview", object{"schedule": "@daily", "handler": "nobody.has"}).want(200).object()
	if !strings.Contains(fmt.Sprint(pre["warnings"]), "no node matches handler/nobody.has now") {
		t.Errorf("got %v", pre["warnings"])
	}
}

func TestJobsOfOwnerAndLabel(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.create("a", object{"owner": "ann", "labels": object{"team": "data", "x=y": "z"}}).text("id")
	b := s.create("b", object{"owner": "bob", "labels": object{"team": "data"}}).text("id")
	s.create("c", nil)
	for query, want := range map[string]string{
		"owner=ann": a, "label=team=data": a + " " +
			b, "label=team%3Ddata&owner=bob": b, "owner=eve": "", "label=team=": "", "label=team=web": "",
		"owner=&label=": "*",
	} {
		ids, _ := s.walk("/api/v1/jobs?limit=1&" + query)
		if got := strings.Join(ids, " "); got != want && (want != "*" || len(ids) != 3) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}

	for _, query := range []string{"label=team", "label==x"} {
		if r := s.call("GET", "/api/v1/jobs?"+query, nil).want(422); !strings.Contains(r.body, "such as team=data") {
			t.Errorf("%s: got %s", query, r.body)
		}
	}
}
