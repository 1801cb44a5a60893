package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// pauseOf is the pause in a job's view: scope, author, reason, and whether it has an end.
func pauseOf(o object) string {
	p, _ := o["pause"].(map[string]any)
	if p == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprint(p["scope"], " ", p["by"], " ", p["reason"], " ", p["until"] != nil))
}

func TestPauses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a := s.create("a", object{"app": "ops"}).text("id")
	b := s.create("b", nil).text("id")
	states := func(what, wantA, wantB string) {
		t.Helper()
		for id, want := range map[string]string{a: wantA, b: wantB} {
			j := s.call("GET", "/api/v1/jobs/"+id, nil).want(200).object()
			status := "active"
			if want != "" {
				status = "paused"
			}

			if got := pauseOf(j); got != want || j.text("status") != status ||
				(j.text("next_due") == "") != (want != "") {
				t.Errorf("%s: job %s: got %v; want it %s, pause %q", what, id, j, status, want)
			}

			if ids, _ := s.walk("/api/v1/jobs?status=" + status); !strings.Contains(fmt.Sprint(ids), id) {
				t.Errorf("%s: job %s is not among those that are %s: %v", what, id, status, ids)
			}
		}
	}

	states("at first", "", "")

	j := s.call("POST", "/api/v1/jobs/"+a+"/pause", object{"reason": "disk", "until": "2h"}).want(200).object()
	until, err := time.Parse(time.RFC3339, j["pause"].(map[string]any)["until"].(string))
	if d := time.Until(until); err != nil || d < 110*time.Minute || d > 2*time.Hour+time.Minute {
		t.Errorf("got %v, %v, want two hours ahead", until, err)
	}

	states("a job", "job bootstrap disk true", "")
	s.call("POST", "/api/v1/jobs/"+a+"/pause", object{}).want(200)
	states("again", "job bootstrap disk true", "")
	p := s.call("POST", "/api/v1/cluster/pause",
		object{"reason": "move", "until": until.Format(time.RFC3339)}).want(200).object()
	if p.text("scope") != "cluster" || p.text("jobs") != "2" || p.text("by") != "bootstrap" {
		t.Errorf("got %v", p)
	}

	states("the cluster", "job bootstrap disk true", "cluster bootstrap move true")
	s.call("POST", "/api/v1/jobs/"+a+"/resume", nil).want(200)
	states("the job resumed", "cluster bootstrap move true", "cluster bootstrap move true")
	created := s.create("c", object{"app": "ops"})
	if pauseOf(created) != "cluster bootstrap move true" || created.text("status") != "paused" {
		t.Errorf("created while the cluster is paused: got %v", created)
	}

	p = s.call("POST", "/api/v1/apps/ops/pause", nil).want(200).object()
	if p.text("scope") != "app" || p.text("app") != "ops" || p.text("jobs") != "2" || p.text("until") != "" {
		t.Errorf("got %v", p)
	}

	states("the app, which lasts longer", "app bootstrap <nil> false", "cluster bootstrap move true")
	if items := s.call("GET", "/api/v1/pauses", nil).want(200).object().items("items"); len(items) != 2 ||
		items[0].text("scope") != "cluster" || items[1].text("app") != "ops" {
		t.Errorf("got pauses %v", items)
	}

	if left := s.call("POST", "/api/v1/cluster/resume", nil).want(200).object().items("items"); len(left) != 1 ||
		left[0].text("app") != "ops" {
		t.Errorf("got pauses %v", left)
	}

	states("the cluster resumed", "app bootstrap <nil> false", "")
	s.call("POST", "/api/v1/apps/never/resume", nil).want(404)
	s.call("POST", "/api/v1/apps/ops/resume", object{}).want(200)
	await(t, "the jobs are released", 10*time.Second, func() bool {
		return s.count(`
				SELECT (SELECT COUNT(*) FROM job WHERE paused = 1) + (SELECT COUNT(*) FROM stop WHERE until = 0 OR who <> '')`) == 0
	})

	states("all resumed", "", "")
	// Only the definition of a sent job is stored.
	s.call("POST", "/api/v1/jobs/"+a+"/pause", nil).want(200)
	o := s.call("GET", "/api/v1/jobs/"+a, nil).want(200).object()
	s.call("PUT", "/api/v1/jobs/"+a, o).want(200)
	states("sent back", "job bootstrap <nil> false", "")
}

func TestAudit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("j", object{"app": "ops", "command": "echo <&>"}).text("id")
	s.call("PATCH", "/api/v1/jobs/"+id, object{"command": "false"}).want(200)
	s.call("PATCH", "/api/v1/jobs/"+id, object{"command": "false"}).want(200) // changes nothing
	s.call("POST", "/api/v1/jobs/"+id+"/pause", object{"reason": "disk"}).want(200)
	s.call("POST", "/api/v1/apps/ops/pause", object{"until": "1h"}).want(200)
	s.call("POST", "/api/v1/apps/ops/resume", nil).want(200)
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	other := s.create("other", nil).text("id")
	s.call("DELETE", "/api/v1/jobs/"+other, nil).want(204)
	s.exec("UPDATE audit SET who = 'alice' WHERE kind = 'app'")
	list := func(query string) string {
		t.Helper()
		_, items := s.walk("/api/v1/audit" + query)
		var out []string
		for _, o := range items {
			out = append(out, o.text("action")+" "+o.text("kind")+" "+o.text("app")+"/"+o.text("name"))
		}
		return strings.Join(out, ", ")
	}

	job := "run job ops/j, pause job ops/j, update job ops/j, create job ops/j"
	all := "delete job default/other, create job default/other, run job ops/j, resume app ops/, pause app ops/, pause job ops/j, update job ops/j, create job ops/j, create token /bootstrap"
	for query, want := range map[string]string{
		"": all, "?limit=1": all, "?limit=3": all, "?job_id=" + id: job, "?job_id=" + id + "&limit=2": job,
		"?kind=app": "resume app ops/, pause app ops/", "?who=alice": "resume app ops/, pause app ops/",
		"?app=default":  "delete job default/other, create job default/other",
		"?kind=session": "", "?to=2020-01-01T00:00:00Z": "",
		"?from=2020-01-01T00:00:00Z&kind=app": "resume app ops/, pause app ops/",
	} {
		if got := list(query); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}

	_, items := s.walk("/api/v1/audit?job_id=" + id)
	for _, o := range items {
		if o.text("who") != "bootstrap" || o.text("origin") != "127.0.0.1" || o.text("job_id") != id ||
			o.text("at") == "" {
			t.Errorf("got %v", o)
		}
	}

	update, create := items[2], items[3]
	if was, became := update["was"].(map[string]any), update["became"].(map[string]any); was["command"] != "echo <&>" ||
		became["command"] != "false" {
		t.Errorf("got %v", update)
	}

	if became := create["became"].(map[string]any); create["was"] != nil || became["name"] != "j" {
		t.Errorf("got %v", create)
	}
	if items[1].text("reason") != "disk" {
		t.Errorf("got %v", items[1])
	}

	s.stopNode()
	s.reopen()
	_, left := s.walk("/api/v1/audit?kind=session")
	if len(left) != 1 || left[0].text("action") != "leave" || left[0].text("name") != "knoten-1" ||
		left[0]["was"].(map[string]any)["started"] == nil {
		t.Errorf("got %v, want that the node has left", left)
	}
}
