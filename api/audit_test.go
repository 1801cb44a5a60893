package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/alert"
	"go-crontab/internal/audit"
	"go-crontab/internal/secret"
)

// taken is a channel that accepts every test.
type taken struct{}

func (taken) Test(_ context.Context, samples []alert.Sample) (out []alert.Tested, err error) {
	for _, s := range samples {
		out = append(out, alert.Tested{Channel: s.Channel.Name, ChannelID: s.ChannelID, Key: [16]byte{1}, Items: "[]",
			Sent: true, Said: "because", At: 1})
	}
	return out, nil
}

// TestEveryChangeIsAudited makes a change by each route that is no GET, in the order of their
// dependencies. Each must leave an audit line: the caller, the address, the object, and its state
// before and after.
func TestEveryChangeIsAudited(t *testing.T) {
	t.Parallel()
	key, err := secret.Parse(secret.NewKey())
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, func(c *api.Config) {
		c.SecretKeys, c.LogLevel, c.Alerts = key, api.NewLogLevel(slog.LevelInfo), taken{}
	})
	const spec = `{"name": "j", "schedule": "0 3 1 1 *", "command": "sleep 60"}`
	run, token, fill := "", "", ""
	steps := []struct {
		method, pattern, path, body string
		status                      int
		action, kind, name          string
		was, became                 bool
	}{
		{"POST", "/api/v1/jobs", "", spec, 201, "create", "job", "j", false, true},
		{
			"PUT", "/api/v1/jobs/{id}", "/api/v1/jobs/1", strings.Replace(spec, "60", "61", 1), 200, "update", "job",
			"j", true, true,
		},
		{
			"PATCH", "/api/v1/jobs/{id}", "/api/v1/jobs/1", `{"command": "sleep 62"}`, 200, "update", "job", "j",
			true, true,
		},
		{
			"PUT", "/api/v1/apps/{app}/jobs/{name}", "/api/v1/apps/default/jobs/k",
			`{"schedule": "0 3 1 1 *", "command": "true"}`, 201, "create", "job", "k", false, true,
		},
		{
			"POST", "/api/v1/jobs/{id}/rollback", "/api/v1/jobs/1/rollback", `{"version": 1}`, 200, "rollback", "job",
			"j", true, true,
		},
		{
			"POST", "/api/v1/jobs/{id}/pause", "/api/v1/jobs/1/pause", `{"reason": "because"}`, 200, "pause", "job",
			"j", false, false,
		},
		{"POST", "/api/v1/jobs/{id}/resume", "/api/v1/jobs/1/resume", "", 200, "resume", "job", "j", false, false},
		{"POST", "/api/v1/jobs/{id}/run", "/api/v1/jobs/1/run", "", 202, "run", "job", "j", false, false},
		{"POST", "/api/v1/runs/{id}/kill", "RUN", "", 202, "kill", "job", "j", false, false},
		{"POST", "/api/v1/bulk/rerun", "KILLED", "", 200, "run", "job", "j", false, false},
		{
			"POST", "/api/v1/jobs/{id}/backfill", "/api/v1/jobs/2/backfill",
			`{"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"}`, 202, "backfill", "job", "k", false, true,
		},
		{"POST", "/api/v1/backfills/{id}/cancel", "FILL", "", 200, "cancel", "job", "k", true, false},
		{
			"POST", "/api/v1/bulk/pause", "/api/v1/bulk/pause?app=default&name=k", "", 200, "pause", "job", "k", false,
			false,
		},
		{
			"POST", "/api/v1/bulk/resume", "/api/v1/bulk/resume?app=default&name=k", "", 200, "resume", "job", "k",
			false, false,
		},
		{"POST", "/api/v1/bulk/run", "/api/v1/bulk/run?app=default&name=k", "", 200, "run", "job", "k", false, false},
		{
			"POST", "/api/v1/bulk/delete", "/api/v1/bulk/delete?app=default&name=k", "", 200, "delete", "job", "k",
			true, false,
		},
		{
			"POST", "/api/v1/apply", "",
			`{"groups": [{"name": "applied", "slots": 1}], "jobs": [{"name": "a", "schedule": "0 3 1 1 *", "command": "true"}]}`, 200, "create", "job", "a", false, true,
		},
		{"DELETE", "/api/v1/jobs/{id}", "/api/v1/jobs/1", "", 204, "delete", "job", "j", true, false},
		{"PUT", "/api/v1/groups/{name}", "/api/v1/groups/g", `{"slots": 3}`, 200, "create", "group", "g", false, true},
		{"DELETE", "/api/v1/groups/{name}", "/api/v1/groups/g", "", 204, "delete", "group", "g", true, false},
		{
			"POST", "/api/v1/calendars", "", `{"name": "c", "exclude_weekdays": ["sun"]}`, 201, "create", "calendar",
			"c", false, true,
		},
		{
			"PUT", "/api/v1/calendars/{name}", "/api/v1/calendars/c", `{"exclude_weekdays": ["sat"]}`, 200, "update",
			"calendar", "c", true, true,
		},
		{
			"POST", "/api/v1/calendars/{name}/import", "/api/v1/calendars/c/import?format=csv", "2027-12-25\n", 200,
			"update", "calendar", "c", true, true,
		},
		{"DELETE", "/api/v1/calendars/{name}", "/api/v1/calendars/c", "", 204, "delete", "calendar", "c", true, false},
		{
			"POST", "/api/v1/nodes/{name}/cordon", "/api/v1/nodes/knoten-1/cordon", `{"reason": "because"}`, 200,
			"cordon", "node", "knoten-1", false, false,
		},
		{
			"PUT", "/api/v1/log-level", "", `{"level": "debug", "for": "10m"}`, 200, "update", "node", "knoten-1",
			false, false,
		},
		{
			"POST", "/api/v1/nodes/{name}/drain", "/api/v1/nodes/knoten-1/drain", "", 200, "drain", "node", "knoten-1",
			false, false,
		},
		{
			"POST", "/api/v1/nodes/{name}/uncordon", "/api/v1/nodes/knoten-1/uncordon", "", 200, "uncordon", "node",
			"knoten-1", false, false,
		},
		{
			"POST", "/api/v1/handlers/{key}/disable", "/api/v1/handlers/mail/disable", `{"reason": "because"}`, 200,
			"disable", "handler", "mail", false, false,
		},
		{
			"POST", "/api/v1/handlers/{key}/enable", "/api/v1/handlers/mail/enable", "", 200, "enable", "handler",
			"mail", false, false,
		},
		{"POST", "/api/v1/cluster/pause", "", `{"reason": "because"}`, 200, "pause", "cluster", "", false, false},
		{"POST", "/api/v1/cluster/resume", "", "", 200, "resume", "cluster", "", false, false},
		{
			"POST", "/api/v1/apps/{app}/pause", "/api/v1/apps/default/pause", `{"reason": "because"}`, 200, "pause",
			"app", "", false, false,
		},
		{
			"POST", "/api/v1/apps/{app}/resume", "/api/v1/apps/default/resume", "", 200, "resume", "app", "", false,
			false,
		},
		{"PUT", "/api/v1/cluster/backup", "", `{"next_within": "26h"}`, 200, "update", "cluster", "", false, true},
		{"PUT", "/api/v1/cluster/retention", "", `{"age": "720h"}`, 200, "update", "retention", "", true, true},
		{
			"PUT", "/api/v1/apps/{app}/limits", "/api/v1/apps/default/limits", `{"jobs": 100}`, 200, "update", "limits",
			"", false, true,
		},
		{
			"DELETE", "/api/v1/apps/{app}/limits", "/api/v1/apps/default/limits", "", 204, "delete", "limits", "", true,
			false,
		},
		{
			"PUT", "/api/v1/apps/{app}/retention", "/api/v1/apps/default/retention", `{"runs": 100}`, 200, "update",
			"retention", "", false, true,
		},
		{
			"PUT", "/api/v1/secrets/{name}", "/api/v1/secrets/s", `{"value": "hidden-from-all"}`, 201, "create",
			"secret", "s", false, false,
		},
		{"DELETE", "/api/v1/secrets/{name}", "/api/v1/secrets/s", "", 204, "delete", "secret", "s", false, false},
		{
			"PUT", "/api/v1/alerts/channels/{name}", "/api/v1/alerts/channels/hook",
			`{"type": "webhook", "url": "https://hook.example.com"}`, 201, "create", "alert_channel", "hook",
			false, true,
		},
		{
			"PUT", "/api/v1/alerts/channels/{name}", "/api/v1/alerts/channels/hook",
			`{"type": "webhook", "url": "https://hook.example.com/2"}`, 200, "update", "alert_channel", "hook",
			true, true,
		},
		{
			"POST", "/api/v1/alerts/channels/{name}/test", "/api/v1/alerts/channels/hook/test", "", 200, "test",
			"alert_channel", "hook", false, false,
		},
		{
			"POST", "/api/v1/alerts/test-channel", "", `{"name": "new", "type": "webhook", "url": "https://hook.example.com"}`,
			200, "test", "alert_channel", "new", false, false,
		},
		{
			"POST", "/api/v1/alerts/test-rule", "", `{"on": ["failed"], "channels": ["hook"]}`, 200, "test",
			"alert_channel", "hook", false, false,
		},
		{
			"PUT", "/api/v1/alerts/rules/{name}", "/api/v1/alerts/rules/nights",
			`{"on": ["failed", "lost"], "channels": ["hook"]}`, 201, "create", "alert_rule", "nights", false, true,
		},
		{
			"DELETE", "/api/v1/alerts/rules/{name}", "/api/v1/alerts/rules/nights", "", 204, "delete", "alert_rule",
			"nights", true, false,
		},
		{
			"DELETE", "/api/v1/alerts/channels/{name}", "/api/v1/alerts/channels/hook", "", 204, "delete",
			"alert_channel", "hook", true, false,
		},
		{
			"POST", "/api/v1/alerts/silences", "", `{"app": "default", "until": "2h", "reason": "because"}`, 201,
			"create", "alert_silence", "default", false, true,
		},
		{
			"DELETE", "/api/v1/alerts/silences/{id}", "/api/v1/alerts/silences/1", "", 204, "delete", "alert_silence",
			"default", true, false,
		},
		{"POST", "/api/v1/tokens", "", `{"name": "t", "role": "viewer"}`, 201, "create", "token", "t", false, true},
		{"DELETE", "/api/v1/tokens/{id}", "TOKEN", "", 204, "revoke", "token", "t", true, false},
		{
			"POST", "/api/v1/login", "", `{"token": "` + s.token +
				`"}`, 200, "sign_in", "login", "bootstrap", false, false,
		},
		{"DELETE", "/api/v1/logins/{id}", "/api/v1/logins/1", "", 204, "revoke", "login", "bootstrap", false, false},
		{
			"POST", "/api/v1/login", "", `{"token": "` + s.token +
				`"}`, 200, "sign_in", "login", "bootstrap", false, false,
		},
		{
			"DELETE", "/api/v1/logins", "/api/v1/logins?who=bootstrap", "", 200, "revoke", "login", "bootstrap", false,
			false,
		},
	}

	// Other tests cover these: logins (TestSignInByToken, TestSignInByOIDC) and a second key
	// (TestRotate).
	left := []string{"POST /api/v1/preview", "POST /api/v1/crontab", "POST /api/v1/logout",
		"POST /api/v1/secrets/rotate",
		"POST /api/v1/login/oidc", "POST /api/v1/login/oidc/callback"}
	for _, row := range api.New(s.cfg).Table() {
		route := row.Method + " " + row.Pattern
		tried := false
		for _, c := range steps {
			tried = tried || c.method+" "+c.pattern == route
		}
		if row.Method != http.MethodGet && !tried && !slices.Contains(left, route) {
			t.Errorf("%s changes something, and nobody looks for its line of the audit: add it here", route)
		}
	}

	for _, c := range steps {
		path := c.path
		switch path {
		case "":
			path = c.pattern
		case "RUN":
			await(t, "it runs", 20e9, func() bool {
				items := s.call("GET", "/api/v1/runs?state=running&job_id=1", nil).want(200).object().items("items")
				if len(items) > 0 {
					run = items[0].text("id")
				}
				return run != ""
			})
			path = "/api/v1/runs/" + run + "/kill"
		case "KILLED":
			await(t, "it was killed", 20e9, func() bool {
				return s.call("GET", "/api/v1/runs/"+run, nil).want(200).object().text("state") == "ended"
			})
			path = "/api/v1/bulk/rerun?ids=" + run
		case "FILL":
			path = "/api/v1/backfills/" + fill + "/cancel"
		case "TOKEN":
			path = "/api/v1/tokens/" + token
		}

		before := s.count("SELECT COALESCE(MAX(id), 0) FROM audit")
		var body any
		header := []string{}
		if c.body != "" {
			body = c.body
		}
		if strings.HasSuffix(c.pattern, "/import") {
			header = append(header, "Content-Type", "text/csv")
		}

		r := s.call(c.method, path, body, header...)
		if r.status != c.status {
			t.Errorf("%s %s: got %d %s, want %d", c.method, path, r.status, r.body, c.status)
			continue
		}

		switch c.pattern {
		case "/api/v1/jobs/{id}/backfill":
			fill = r.object().text("id")
		case "/api/v1/tokens":
			token = r.object().text("id")
		}

		n := s.count(`
				SELECT COUNT(*)
				FROM audit
				WHERE id > ? AND who = 'bootstrap' AND origin = '127.0.0.1' AND action = ? AND kind = ? AND name = ?`+
			" AND (NOT ? OR was IS NOT NULL) AND (NOT ? OR became IS NOT NULL)", before, c.action, c.kind, c.name,
			c.was, c.became)
		if n != 1 {
			got := ""
			for _, o := range s.call("GET", "/api/v1/audit?limit=5", nil).want(200).object().items("items") {
				got += fmt.Sprint(o, "\n")
			}
			t.Errorf("%s %s: got %d lines, want one of %s %s %q; the last are\n%s", c.method, path, n, c.action, c.kind,
				c.name, got)
		}
	}

	if n := s.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE INSTR(CONCAT_WS(' ', was, became, reason, name), 'hidden-from-all')`); n != 0 {
		t.Error("the audit has the secret")
	}

	// Refused changes change nothing, and invalid ones leave no line.
	reader := s.as(s.newToken("reader", 1))
	before := s.count("SELECT COUNT(*) FROM audit")
	s.call("POST", "/api/v1/jobs", `{"name": ""}`).want(422)
	reader.call("GET", "/api/v1/groups/none", nil).want(404)
	if after := s.count("SELECT COUNT(*) FROM audit"); after != before {
		t.Errorf("requests that are not valid left %d lines", after-before)
	}

	reader.call("DELETE", "/api/v1/groups/applied", nil).want(403)
	if n := s.count(`
			SELECT COUNT(*)
			FROM audit
			WHERE who = 'reader' AND origin = '127.0.0.1' AND action = 'refuse' AND kind = 'request'` +
		" AND name = 'DELETE /api/v1/groups/{name}' AND reason LIKE '%needs the role admin%'"); n != 1 {
		t.Errorf("a refused request left %d lines that say so, want 1", n)
	}
}

// TestVerifyAudit: the chain is verified in parts and against a saved head, and not by callers
// limited to apps.
func TestVerifyAudit(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.exec(`
			INSERT INTO audit (at, who, action, kind)
			VALUES (UNIX_TIMESTAMP() * 1000000, 'ann', 'update', 'job'), (UNIX_TIMESTAMP() * 1000000, 'bob',
				'update', 'job')`)
	await(t, "the chain", 20*time.Second, func() bool { // the node chains the lines
		return s.count("SELECT COUNT(*) FROM audit_chain") == s.count("SELECT COUNT(*) FROM audit")
	})
	head, err := audit.Head(s.db.Reader(t.Context()))
	if err != nil {
		t.Fatal(err)
	}

	verify := func(query string) object { return s.call("GET", "/api/v1/audit/chain"+query, nil).want(200).object() }
	if v := verify("?head=" + head.Head()); len(v.items("faults")) != 0 || v.text("links") != fmt.Sprint(head.Seq) ||
		v.text("to", "head") != head.Head() {
		t.Errorf("got %v", v)
	}

	if v := verify("?after=1"); v.text("links") != fmt.Sprint(head.Seq-1) || len(v.items("faults")) != 0 {
		t.Errorf("behind the first: got %v", v)
	}

	s.exec("UPDATE audit SET who = 'eve' WHERE who = 'ann'")
	if v := verify(""); len(v.items("faults")) != 1 ||
		!strings.Contains(v.items("faults")[0].text("what"), "was changed") {
		t.Errorf("after a change: got %v", v)
	}

	s.exec("DELETE FROM audit_chain WHERE seq = ?", head.Seq)
	if v := verify("?head=" + head.Head()); len(v.items("faults")) != 2 ||
		!strings.Contains(v.items("faults")[1].text("what"), fmt.Sprint("ends at link ", head.Seq-1)) {
		t.Errorf("without its end: got %v", v)
	}

	s.call("GET", "/api/v1/audit/chain?head=2:none", nil).want(422)
	s.as(s.newToken("of-an-app", 1, "mine")).call("GET", "/api/v1/audit/chain", nil).want(403)
}

// TestAuditWords: the filters of the audit accept exactly the kinds and actions that the program
// writes.
func TestAuditWords(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	constant := regexp.MustCompile(`(?m)^\s*(?:const )?(?:Audit|Kind|Action)\w* +(job\.)?(Kind|Action) += "(\w+)"`)
	words := map[string]int{}
	var files []string
	for _, pattern := range []string{"../*/*.go", "../internal/*/*.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		for _, found := range constant.FindAllStringSubmatch(string(text), -1) {
			if found[1] == "" && filepath.Dir(file) != "../job" {
				continue // another Kind, of events
			}
			param, word := strings.ToLower(found[2]), found[3]
			words[param]++
			s.call("GET", "/api/v1/audit?"+param+"="+word, nil).want(200)
		}
	}

	if words["kind"] < 18 || words["action"] < 28 {
		t.Errorf("found %v constants: this looks at too few", words)
	}

	for query, near := range map[string]string{"action=dleete": "delete", "kind=jbo": "job"} {
		if r := s.call("GET", "/api/v1/audit?"+query, nil).want(422); !strings.Contains(r.body,
			`did you mean \"`+near+`\"?`) {
			t.Errorf("%s: got %s", query, r.body)
		}
	}
}
