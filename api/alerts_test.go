package api_test

import (
	"strings"
	"testing"

	"go-crontab/auth"
)

// TestAlertsWhoMay: rules and channels are for admins of the whole cluster, silences for operators of what is silenced,
// and nobody but admins sees where a channel sends to.
func TestAlertsWhoMay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const hook = `{"type": "webhook", "url": "https://hook.example.com/secret-path", "headers": {"X-Key": "hidden-from-all"}}`
	const rule = `{"on": ["failed"], "channels": ["hook"]}`
	s.call("PUT", "/api/v1/alerts/channels/hook", hook).want(201)
	s.call("PUT", "/api/v1/alerts/rules/nights", rule).want(201)

	admin, operator, viewer := s.as(s.newToken("shop-admin", auth.Admin, "shop")), s.as(s.newToken("op", auth.Operator)), s.as(s.newToken("look", auth.Viewer))
	shop := s.as(s.newToken("shop-op", auth.Operator, "shop"))
	for who, site := range map[string]*site{"an admin of one app": admin, "an operator": operator, "a viewer": viewer, "an operator of one app": shop} {
		for _, c := range [][3]string{{"PUT", "/api/v1/alerts/channels/hook", hook}, {"PUT", "/api/v1/alerts/rules/nights", rule}, {"DELETE", "/api/v1/alerts/rules/nights", ""}, {"DELETE", "/api/v1/alerts/channels/hook", ""}} {
			var body any
			if c[2] != "" {
				body = c[2]
			}
			if r := site.call(c[0], c[1], body); r.status != 403 {
				t.Errorf("%s, %s %s: got %d %s, want 403", who, c[0], c[1], r.status, r.body)
			}
		}
		if r := site.call("GET", "/api/v1/alerts/channels", nil); strings.Contains(string(r.body), "secret-path") || strings.Contains(string(r.body), "hidden-from-all") {
			t.Errorf("%s sees where the channel sends to: %s", who, r.body)
		}
	}
	if r := s.call("GET", "/api/v1/alerts/channels/hook", nil).want(200); !strings.Contains(string(r.body), "secret-path") {
		t.Errorf("an admin does not see where the channel sends to: %s", r.body)
	}

	silence := func(app string) string {
		return `{"app": "` + app + `", "until": "2h", "reason": "new disks"}`
	}
	viewer.call("POST", "/api/v1/alerts/silences", silence("shop")).want(403)
	shop.call("POST", "/api/v1/alerts/silences", silence("billing")).want(403)
	shop.call("POST", "/api/v1/alerts/silences", `{"until": "2h", "reason": "all of it"}`).want(403)
	id := shop.call("POST", "/api/v1/alerts/silences", silence("shop")).want(201).object().text("id")
	other := operator.call("POST", "/api/v1/alerts/silences", silence("billing")).want(201).object().text("id")
	shop.call("GET", "/api/v1/alerts/silences/"+other, nil).want(404)
	shop.call("DELETE", "/api/v1/alerts/silences/"+other, nil).want(404)
	viewer.call("DELETE", "/api/v1/alerts/silences/"+id, nil).want(403)
	if got := shop.call("GET", "/api/v1/alerts/silences", nil).want(200).object().items("items"); len(got) != 1 || got[0].text("id") != id {
		t.Errorf("an operator of one app sees %v", got)
	}
	shop.call("DELETE", "/api/v1/alerts/silences/"+id, nil).want(204)
	if got := shop.call("GET", "/api/v1/alerts/silences", nil).want(200).object().items("items"); len(got) != 0 {
		t.Errorf("after its end: %v", got)
	}
}

// TestAlertsBadInput: what is wrong is told at its field, and nothing of it is kept.
func TestAlertsBadInput(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/alerts/channels/hook", `{"type": "webhook", "url": "https://hook.example.com"}`).want(201)
	before := s.counts()
	for _, c := range []struct{ path, body, field string }{
		{"channels/x", `{"type": "pigeon"}`, "type"},
		{"channels/x", `{"type": "webhook"}`, "url"},
		{"channels/x", `{"type": "webhook", "url": "gopher://hook.example.com"}`, "url"},
		{"channels/x", `{"type": "email", "email": {"server": "mail.example.com:587", "from": "nobody", "to": ["ops@example.com"]}}`, "email.from"},
		{"channels/x", `{"type": "webhook", "url": "https://hook.example.com", "body": "{{.Nothing"}`, "body"},
		{"channels/x", `{"type": "webhook", "url": "https://hook.example.com", "colour": "red"}`, "colour"},
		{"rules/x", `{"channels": ["hook"]}`, "on"},
		{"rules/x", `{"on": ["exploded"], "channels": ["hook"]}`, "on"},
		{"rules/x", `{"on": ["failed"], "channels": ["nobody"]}`, "channels"},
		{"rules/x", `{"on": ["failures"], "channels": ["hook"]}`, "failures"},
		{"rules/x", `{"on": ["failed"], "channels": ["hook"], "text": "{{range}}"}`, "text"},
	} {
		r := s.call("PUT", "/api/v1/alerts/"+c.path, c.body)
		if r.status != 422 && r.status != 400 || !strings.Contains(string(r.body), `"`+c.field) {
			t.Errorf("%s: got %d %s, want what is wrong at %s", c.body, r.status, r.body, c.field)
		}
	}
	for body, field := range map[string]string{
		`{"until": "yesterday", "reason": "x"}`:            "until",
		`{"until": "2020-01-01T00:00:00Z", "reason": "x"}`: "until",
		`{"job": "backup", "until": "2h", "reason": "x"}`:  "app",
	} {
		if r := s.call("POST", "/api/v1/alerts/silences", body); r.status != 422 && r.status != 400 || !strings.Contains(string(r.body), `"`+field) {
			t.Errorf("%s: got %d %s, want what is wrong at %s", body, r.status, r.body, field)
		}
	}
	if after := s.counts(); after != before {
		t.Errorf("what was refused left something: %s, before %s", after, before)
	}

	// A channel that a rule names stays.
	s.call("PUT", "/api/v1/alerts/rules/nights", `{"on": ["failed"], "channels": ["hook"]}`).want(201)
	if r := s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(409); !strings.Contains(string(r.body), "nights") {
		t.Errorf("got %s, want the rule that names it", r.body)
	}
	s.call("DELETE", "/api/v1/alerts/rules/nights", nil).want(204)
	s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(204)
	s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(404)
}
