package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/job"
)

// keyed gives the API keys for secrets.
func keyed(t *testing.T, keys ...string) func(*api.Config) {
	return func(c *api.Config) {
		var err error
		if c.SecretKeys, err = secret.Parse(strings.Join(keys, "\n")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecrets sets, lists, uses and deletes secrets; no answer and no log line has a value.
func TestSecrets(t *testing.T) {
	t.Parallel()
	const value = "hunter2-Zq8=+pg"
	key := secret.NewKey()
	s := start(t, keyed(t, key))
	var said strings.Builder
	call := func(method, path string, body any, status int) *reply {
		t.Helper()
		r := s.call(method, "/api/v1/secrets"+path, body).want(status)
		said.WriteString(r.body)
		return r
	}

	if o := call("PUT", "/pg", object{"value": value, "app": "shop"}, 201).object(); o.text("name") != "pg" ||
		o.text("app") != "shop" || o.text("key_state") != "current" || o.text("updated_by") == "" {
		t.Errorf("got %v", o)
	}

	call("PUT", "/pg", object{"value": value + "2", "app": "shop"}, 200)
	call("PUT", "/all", object{"value": value}, 201)
	if _, items := s.walk("/api/v1/secrets?limit=1"); len(items) != 2 || items[0].text("app") != "shop" ||
		items[1].text("name") != "all" || items[1]["value"] != nil {
		t.Errorf("got %v", items)
	}

	for body, field := range map[string]string{
		`{}`: "value", `{"value": null}`: "value", `{"value": 7654321}`: "value", `{"value": ["hunter2-Z"]}`: "value",
		`{"value": "abc"}`: "value", `{"value": "hunter2-Z\u0000"}`: "value",
		`{"value": "hunter2-Z", "app": 5}`: "app", `{"value": "hunter2-Z", "app": "a\nb"}`: "app",
		`{"valeu": "hunter2-Z", "value": "hunter2-Z"}`: "valeu",
		`{"value": "` + strings.Repeat("x", job.MaxSecret+1) +
			`"}`: "value", `{"value": "hunter2-Z", "key": "x"}`: "key",
	} {
		if r := call("PUT", "/new", body, 422); r.complaint(field) == "" || strings.Contains(r.body, "7654321") {
			t.Errorf("%.60s: got %s, want a complaint about %s", body, r.body, field)
		}
	}

	call("PUT", "/new", `{"value": "hunter2-Zq`, 400)
	call("PUT", "/a%2Fb", object{"value": value}, 422)
	call("DELETE", "/none", nil, 404)

	made := s.create("use", object{"app": "shop", "env": object{"PW": "{{secret.pg}}"}})
	r := s.call("POST", "/api/v1/jobs",
		object{"name": "b", "schedule": "@daily", "command": "true",
			"env": object{"PGPASSWORD": "{{secret.pg}}"}}).want(422)
	if r.complaint("env.PGPASSWORD") == "" {
		t.Errorf("a job of another app: got %s", r.body)
	}

	if r := s.call("POST", "/api/v1/jobs",
		object{"name": "b", "schedule": "@daily", "command": "x {{secret.pg}}"}).want(422); r.complaint(
		"command") == "" {
		t.Errorf("in the command: got %s", r.body)
	}

	r = s.call("POST", "/api/v1/apply",
		object{"dry_run": true,
			"jobs": []object{{"name": "b", "schedule": "@daily", "command": "true",
				"stdin": "{{secret.none}}"}}}).want(422)
	if r.complaint("jobs[0].stdin") == "" {
		t.Errorf("applied: got %s", r.body)
	}
	if r := call("DELETE", "/pg", nil, 404); !strings.Contains(r.body, "add app=APP") {
		t.Errorf("without the app: got %s", r.body)
	}

	if r := call("DELETE", "/pg?app=shop", nil, 409); !strings.Contains(r.body, "shop/use") ||
		!strings.Contains(r.body, ":in-use") {
		t.Errorf("got %s", r.body)
	}

	s.call("DELETE", "/api/v1/jobs/"+made.text("id"), nil).want(204)
	call("DELETE", "/pg?app=shop", nil, 204)

	// Another node has a newer key, and a third one no key.
	keyed(t, secret.NewKey(), key)(&s.cfg)
	s.serve()
	if _, items := s.walk("/api/v1/secrets"); items[0].text("key_state") != "old" {
		t.Errorf("got %v", items)
	}

	if o := call("POST", "/rotate", nil, 200).object(); o.text("rotated") != "1" || len(o.items("failed")) != 0 ||
		o.text("key") != s.cfg.SecretKeys.IDs()[0] {
		t.Errorf("got %v", o)
	}

	s.cfg.SecretKeys = nil
	s.serve()
	if r := call("PUT", "/pg", object{"value": value}, 409); !strings.Contains(r.body, ":no-secret-key") {
		t.Errorf("got %s", r.body)
	}

	call("POST", "/rotate", object{}, 409)
	if _, items := s.walk("/api/v1/secrets"); items[0].text("key_state") != "unknown" {
		t.Errorf("got %v", items)
	}

	call("DELETE", "/all", nil, 204)
	said.WriteString(s.call("GET", "/api/v1/audit?kind=secret", nil).want(200).body)
	if strings.Contains(said.String(), "hunter2") || s.logs.has("hunter2") {
		t.Errorf("an answer or the log has the value:\n%s", said.String())
	}
}

// TestWhoMayKeepSecrets: admins of apps change and see only the secrets of their apps.
func TestWhoMayKeepSecrets(t *testing.T) {
	t.Parallel()
	s := start(t, keyed(t, secret.NewKey()))
	admin := s.token
	issuer := auth.Issuer{DB: s.db.DB}
	as := func(role auth.Role, apps ...string) string {
		t.Helper()
		_, token, err := issuer.Create(job.WithActor(t.Context(), job.Actor{Who: "test"}), auth.Spec{
			Name: role.String() + strings.Join(apps, "-"), Grant: auth.Grant{Role: role, Apps: apps}, Life: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}

	shop, operator, viewer := as(auth.Admin, "shop"), as(auth.Operator), as(auth.Viewer, "shop")
	for name, app := range map[string]string{"all": "", "billing": "billing", "shop": "shop"} {
		s.call("PUT", "/api/v1/secrets/"+name, object{"value": "value", "app": app}).want(201)
	}

	for name, c := range map[string]struct {
		token, method, path string
		body                any
		status              int
	}{
		"an admin of the app":               {shop, "PUT", "/shop", object{"value": "other", "app": "shop"}, 200},
		"a new one":                         {shop, "PUT", "/new", object{"value": "other", "app": "shop"}, 201},
		"a new one for all":                 {shop, "PUT", "/new2", object{"value": "other"}, 403},
		"of another app":                    {shop, "PUT", "/billing", object{"value": "other", "app": "billing"}, 403},
		"a new one of another app":          {shop, "PUT", "/none", object{"value": "other", "app": "billing"}, 403},
		"a name that another app has":       {shop, "PUT", "/billing", object{"value": "other", "app": "shop"}, 201},
		"a name that all apps have":         {shop, "PUT", "/all", object{"value": "other", "app": "shop"}, 201},
		"deleting that of another app":      {shop, "DELETE", "/billing?app=billing", nil, 403},
		"deleting what another app has not": {shop, "DELETE", "/none?app=billing", nil, 403},
		"deleting that of all":              {shop, "DELETE", "/all", nil, 403},
		"rotating":                          {shop, "POST", "/rotate", object{}, 403},
		"an operator of the cluster":        {operator, "PUT", "/shop", object{"value": "other", "app": "shop"}, 403},
		"an operator of the cluster, to go": {operator, "DELETE", "/shop?app=shop", nil, 403},
		"a viewer":                          {viewer, "PUT", "/shop", object{"value": "other", "app": "shop"}, 403},
		"nobody":                            {"", "GET", "", nil, 401},
		"nobody, to set":                    {"", "PUT", "/shop", object{"value": "other"}, 401},
		"an admin of the app, to widen it":  {shop, "PUT", "/shop", object{"value": "other", "app": ""}, 403},
		"an admin of the cluster": {
			admin, "PUT", "/billing", object{"value": "other", "app": "billing"}, 200,
		},
	} {
		s.token = c.token
		if r := s.call(c.method, "/api/v1/secrets"+c.path, c.body); r.status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, r.status, r.body, c.status)
		}
	}

	s.token = viewer
	var seen []string
	_, items := s.walk("/api/v1/secrets?limit=2")
	for _, item := range items {
		seen = append(seen, item.text("app")+"/"+item.text("name"))
	}

	slices.Sort(seen)
	if got := strings.Join(seen, " "); got != "/all shop/all shop/billing shop/new shop/shop" {
		t.Errorf("a viewer of the shop sees %s", got)
	}
	if rows, err := secret.List(s.db.Reader(t.Context()), secret.Filter{Limit: 10}); err != nil || len(rows) != 6 {
		t.Errorf("got %v, %v", rows, err)
	}
}

// TestSecretsAreNotTaken: two apps use the same name for a secret. The jobs of each use their own,
// and neither app learns of the other's.
func TestSecretsAreNotTaken(t *testing.T) {
	t.Parallel()
	s := start(t, keyed(t, secret.NewKey()))
	alpha, beta := s.as(s.newToken("a", auth.Admin, "alpha")), s.as(s.newToken("b", auth.Admin, "beta"))
	alpha.call("PUT", "/api/v1/secrets/pg", object{"value": "of alpha", "app": "alpha"}).want(201)
	env := object{"PW": "{{secret.pg}}"}
	made := object{"app": "beta", "name": "use", "schedule": "@daily", "command": "true", "env": env}
	if r := beta.call("POST", "/api/v1/jobs", made).want(422); r.complaint("env.PW") == "" {
		t.Errorf("before beta has one: got %s", r.body)
	}

	beta.call("PUT", "/api/v1/secrets/pg", object{"value": "of beta", "app": "beta"}).want(201)
	beta.call("POST", "/api/v1/jobs", made).want(201)
	reader := secret.NewReader(s.db.DB, s.cfg.SecretKeys)
	for _, app := range []string{"alpha", "beta"} {
		if got, err := reader.Values(t.Context(), app, []job.Secret{"pg"}); err != nil || got["pg"] != "of "+app {
			t.Errorf("jobs of %s use %q, %v", app, got["pg"], err)
		}
	}

	alpha.call("DELETE", "/api/v1/secrets/pg?app=alpha", nil).want(204)
	if r := beta.call("DELETE", "/api/v1/secrets/pg?app=beta", nil).want(409); !strings.Contains(r.body, "beta/use") {
		t.Errorf("one in use: got %s", r.body)
	}

	// Alpha gets the same answers whether or not beta has secrets.
	for _, method := range []string{"PUT", "DELETE"} {
		var told []string
		for _, name := range []string{"pg", "qq"} {
			path, body := "/api/v1/secrets/"+name+"?app=beta", any(nil)
			if method == "PUT" {
				path, body = "/api/v1/secrets/"+name, object{"value": "other", "app": "beta"}
			}
			o := alpha.call(method, path, body).want(403).object()
			told = append(told, strings.ReplaceAll(fmt.Sprint(o["title"], o["detail"]), name, "NAME"))
		}

		if told[0] != told[1] {
			t.Errorf("%s: alpha can tell them apart: %q", method, told)
		}
	}

	if _, items := alpha.walk("/api/v1/secrets"); len(items) != 0 {
		t.Errorf("alpha sees %v", items)
	}

	// A secret of all apps cannot be deleted while a job needs it. A job whose app has its own does
	// not.
	s.call("PUT", "/api/v1/secrets/pg", object{"value": "of all"}).want(201)
	s.call("DELETE", "/api/v1/secrets/pg", nil).want(204)
	s.call("PUT", "/api/v1/secrets/pg", object{"value": "of all"}).want(201)
	s.create("needs it", object{"app": "gamma", "env": env})
	if r := s.call("DELETE", "/api/v1/secrets/pg", nil).want(409); !strings.Contains(r.body, "gamma/needs it") ||
		strings.Contains(r.body, "beta") {
		t.Errorf("got %s", r.body)
	}
}
