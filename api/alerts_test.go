package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/auth"
)

// TestAlertsWhoMay: rules and channels are for cluster admins, silences for operators of the
// silenced apps, and only admins see a channel's full address.
func TestAlertsWhoMay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const hook = `{"type": "webhook", "url": "https://hook.example.com/secret-path", "headers": {"X-Key": "hidden-from-all"}}`
	const rule = `{"on": ["failed"], "channels": ["hook"]}`
	s.call("PUT", "/api/v1/alerts/channels/hook", hook).want(201)
	s.call("PUT", "/api/v1/alerts/rules/nights", rule).want(201)

	admin, operator, viewer := s.as(s.newToken("shop-admin", auth.Admin, "shop")),
		s.as(s.newToken("op", auth.Operator)), s.as(s.newToken("look", auth.Viewer))
	shop := s.as(s.newToken("shop-op", auth.Operator, "shop"))
	for who, site := range map[string]*site{"an admin of one app": admin, "an operator": operator, "a viewer": viewer,
		"an operator of one app": shop} {
		for _, c := range [][3]string{{"PUT", "/api/v1/alerts/channels/hook", hook},
			{"PUT", "/api/v1/alerts/rules/nights", rule}, {"DELETE", "/api/v1/alerts/rules/nights", ""},
			{"DELETE", "/api/v1/alerts/channels/hook", ""}} {
			var body any
			if c[2] != "" {
				body = c[2]
			}
			if r := site.call(c[0], c[1], body); r.status != 403 {
				t.Errorf("%s, %s %s: got %d %s, want 403", who, c[0], c[1], r.status, r.body)
			}
		}

		if r := site.call("GET", "/api/v1/alerts/channels", nil); strings.Contains(string(r.body), "secret-path") ||
			strings.Contains(string(r.body), "hidden-from-all") {
			t.Errorf("%s sees where the channel sends to: %s", who, r.body)
		}
	}

	if r := s.call("GET", "/api/v1/alerts/channels/hook", nil).want(200); !strings.Contains(string(r.body),
		"secret-path") {
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
	if got := shop.call("GET", "/api/v1/alerts/silences", nil).want(200).object().items("items"); len(got) != 1 ||
		got[0].text("id") != id {
		t.Errorf("an operator of one app sees %v", got)
	}

	shop.call("DELETE", "/api/v1/alerts/silences/"+id, nil).want(204)

	// It ended by MySQL's clock, which the node knows to within some milliseconds.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := shop.call("GET", "/api/v1/alerts/silences", nil).want(200).object().items("items")
		if len(got) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after its end: %v", got)
		}
	}
}

// TestAlertsBadInput: mistakes are reported at their fields, and nothing is stored.
func TestAlertsBadInput(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.call("PUT", "/api/v1/alerts/channels/hook", `{"type": "webhook", "url": "https://hook.example.com"}`).want(201)
	before := s.counts()
	for _, c := range []struct{ path, body, field string }{
		{"channels/x", `{"type": "pigeon"}`, "type"},
		{"channels/x", `{"type": "webhook"}`, "url"},
		{"channels/x", `{"type": "webhook", "url": "gopher://hook.example.com"}`, "url"},
		{
			"channels/x",
			`{"type": "email", "email": {"server": "mail.example.com:587", "from": "nobody", "to": ["ops@example.com"]}}`, "email.from",
		},
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
		if r := s.call("POST", "/api/v1/alerts/silences", body); r.status != 422 && r.status != 400 ||
			!strings.Contains(string(r.body), `"`+field) {
			t.Errorf("%s: got %d %s, want what is wrong at %s", body, r.status, r.body, field)
		}
	}

	if after := s.counts(); after != before {
		t.Errorf("what was refused left something: %s, before %s", after, before)
	}

	// A channel that a rule names cannot be deleted.
	s.call("PUT", "/api/v1/alerts/rules/nights", `{"on": ["failed"], "channels": ["hook"]}`).want(201)
	if r := s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(409); !strings.Contains(string(r.body),
		"nights") {
		t.Errorf("got %s, want the rule that names it", r.body)
	}

	s.call("DELETE", "/api/v1/alerts/rules/nights", nil).want(204)
	s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(204)
	s.call("DELETE", "/api/v1/alerts/channels/hook", nil).want(404)
}

// TestChannelsInTheAudit: callers that are not cluster admins see only the host of an address in
// the audit, in old lines too.
func TestChannelsInTheAudit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/api/v1/alerts/channels/hook"
	s.call("PUT", path,
		`{"type": "webhook", "url": "https://hook.example.com/secret-path", "headers": {"X-Key": "hidden-from-all"}}`).want(201)
	s.call("PUT", path,
		`{"type": "webhook", "url": "https://hook.example.com/secret-path-2", "headers": {"X-Key": "hidden-from-all"}}`).want(200)
	s.call("POST", "/api/v1/apply",
		`{"jobs": [], "channels": [{"name": "applied", "type": "webhook", "url": "https://hook.example.com/secret-path"}]}`).want(200)
	s.call("DELETE", path, nil).want(204)
	if _, err := s.db.Raw().Exec(`
			INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason, was, became)
			VALUES (1, 'x', 'x', 'update', 'alert_channel', 1, '', 'hook', '', 'secret-path', '["secret-path"]')`); err != nil {
		t.Fatal(err)
	}

	for who, site := range map[string]*site{"a viewer": s.as(s.newToken("look", auth.Viewer)),
		"an operator": s.as(s.newToken("op", auth.Operator))} {
		for _, list := range []string{"/api/v1/audit?kind=alert_channel", "/api/v1/audit"} {
			r := site.call("GET", list, nil).want(200)
			if strings.Contains(r.body, "secret-path") || strings.Contains(r.body, "hidden-from-all") {
				t.Errorf("%s sees in %s where channels send to: %s", who, list, r.body)
			}
			if n := strings.Count(r.body, "https://hook.example.com/***"); n != 5 {
				t.Errorf("%s sees in %s %d addresses, want 5: %s", who, list, n, r.body)
			}
		}
	}

	if r := s.call("GET", "/api/v1/audit?kind=alert_channel", nil).want(200); !strings.Contains(r.body,
		"secret-path-2") || !strings.Contains(r.body, "hidden-from-all") {
		t.Errorf("an admin does not see what was changed: %s", r.body)
	}
}

// TestAlertsOfSeveralApps: an alert about all jobs of a rule names the last failed one, so callers
// limited to apps cannot see it. Alerts about the cluster only are visible.
func TestAlertsOfSeveralApps(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i, a := range [][2]string{{"", "failures"}, {"", "node_gone"}, {"shop", "failures"}, {"billing", "failed"}} {
		if _, err := s.db.Raw().Exec(`
				INSERT INTO alert (id, subject, firing, rule_id, rule, event, severity, app, node, summary,
					first_at, last_at, over_at)
				VALUES (?, ?, NULL, 1, 'ops', ?, 'error', ?, 'n1', 'billing/payroll failed', 1, 1, ?)`,
			i+1, string(rune('a'+i)), a[1], a[0], s.node.Now().UnixMicro()); err != nil {
			t.Fatal(err)
		}
	}

	shop, all := s.as(s.newToken("shop-look", auth.Viewer, "shop")), s.as(s.newToken("look", auth.Viewer))
	for _, c := range []struct {
		who  string
		site *site
		ids  string
	}{{"a viewer of shop", shop, "3 2"}, {"a viewer", all, "4 3 2 1"}} {
		for _, list := range []string{"/api/v1/alerts?", "/api/v1/alerts?state=resolved&", "/api/v1/alerts?rule=ops&"} {
			_, items := c.site.walk(list + "limit=1")
			var got []string
			for _, o := range items {
				got = append(got, o.text("id"))
			}
			if strings.Join(got, " ") != c.ids {
				t.Errorf("%s, %s: got %v, want %s", c.who, list, got, c.ids)
			}
		}

		for _, id := range []string{"1", "2", "3", "4"} {
			status := 404
			if strings.Contains(c.ids, id) {
				status = 200
			}
			if r := c.site.call("GET", "/api/v1/alerts/"+id, nil); r.status != status {
				t.Errorf("%s, alert %s: got %d, want %d", c.who, id, r.status, status)
			}
		}
	}

	// The counts are of the same alerts.
	if _, err := s.db.Raw().Exec("UPDATE alert SET firing = 1, over_at = 0"); err != nil {
		t.Fatal(err)
	}
	for site, want := range map[*site]string{shop: "2", all: "4"} {
		got := site.call("GET", "/api/v1/alerts/summary", nil).want(200).object()
		if fmt.Sprint(got["firing"]) != want {
			t.Errorf("got %v, want %v firing alerts", got, want)
		}
	}

	if items := shop.call("GET", "/api/v1/alerts?app=billing", nil).want(200).object().items("items"); len(items) != 0 {
		t.Errorf("got %v", items)
	}
}

// TestMessagesInPages: paging through each filter of messages lists every match and nothing more.
func TestMessagesInPages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now := s.node.Now().UnixMicro()
	for i := range 12 {
		kind, channel, rule, state := "ping", "", "", 2
		if i%3 == 0 {
			kind, channel, rule = "alert", "hook", "ops"
		}
		if i%4 == 0 {
			state = 3
		}

		if _, err := s.db.Raw().Exec(`
				INSERT INTO delivery (id, idem, kind, channel, rule, state, next_at, items, created, updated)
				VALUES (?, ?, ?, ?, ?, ?, ?, '[]', ?, ?)`,
			i+1, string(rune('a'+i)), kind, channel, rule, state, now, now, now); err != nil {
			t.Fatal(err)
		}
	}

	for filter, want := range map[string]string{
		"": "12 11 10 9 8 7 6 5 4 3 2 1", "channel=hook&": "10 7 4 1", "rule=ops&": "10 7 4 1",
		"state=failed&": "9 5 1", "state=failed&rule=ops&": "1", "state=sent&channel=hook&": "10 7 4",
		"channel=none&": "",
	} {
		_, items := s.walk("/api/v1/alerts/deliveries?" + filter + "limit=2")
		var got []string
		for _, o := range items {
			got = append(got, o.text("id"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", filter, got, want)
		}
	}

	if sum := s.call("GET", "/api/v1/alerts/summary", nil).want(200).object(); sum.text("deliveries",
		"failed") != "3" || sum.text("deliveries", "sent") != "9" {
		t.Errorf("got %v", sum)
	}
}
