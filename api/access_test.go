package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
)

// openRoutes are all routes without authentication. A new one must reveal and change only public
// things.
var openRoutes = []string{
	"GET /", "GET /healthz", "GET /readyz", "GET /assets/{file}",
	"GET /docs", "GET /docs/{file}", "GET /openapi.json", "GET /openapi.yaml", "GET /schema/manifest.json",
	"GET /api/v1/login", "POST /api/v1/login", "POST /api/v1/login/oidc", "GET /api/v1/login/oidc/callback",
	"POST /api/v1/login/oidc/callback",
}

// apps is a cluster with the same objects in two apps, and a caller for each role, unlimited and
// limited to the first app.
type apps struct {
	*site
	job, run, backfill map[string]string // ids, by app
	people             map[string]person
}

type person struct {
	token   string
	role    auth.Role
	limited bool
}

func twoApps(t *testing.T) *apps {
	t.Helper()
	s := start(t, nil)
	a := &apps{
		site: s, job: map[string]string{}, run: map[string]string{}, backfill: map[string]string{},
		people: map[string]person{},
	}

	for _, app := range []string{"mine", "theirs"} {
		id := s.create("j", object{"app": app, "schedule": "0 0 1 1 *", "command": "sleep 600", "timeout": "20m",
			"overlap": "allow"}).text("id")
		a.job[app], a.run[app] = id, s.running(id)
		a.backfill[app] = s.call("POST", "/api/v1/jobs/"+id+"/backfill",
			object{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:30:00Z"}).want(202).object().text("id")
	}

	await(t, "the runs of both backfills", 10*time.Second, func() bool {
		return s.count("SELECT COUNT(*) FROM run WHERE kind = 'backfill'") == 2
	})
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Admin} {
		a.people[role.String()] = person{s.newToken(role.String(), role), role, false}
		a.people["limited "+role.String()] = person{
			s.newToken("limited-"+role.String(), role, "mine", "unused"), role, true,
		}
	}

	// Requests that pass the guard change nothing: only the guard is tested here.
	s.cfg.Editor = func() api.Editor { return nil }
	s.serve()
	return a
}

// path makes a path to an object of an app.
func (a *apps) path(row api.Access, app string) string {
	id := map[string]string{"job": a.job[app], "run": a.run[app], "backfill": a.backfill[app]}[row.Over]
	if id == "" {
		id = "4711"
	}

	path := strings.NewReplacer("{id}", id, "{app}", app, "{name}", "j", "{key}", "k", "{file}", "reference.css",
		"{version}", "1", "{other}", "1").Replace(row.Pattern)
	if row.Method == "DELETE" && row.Pattern == "/api/v1/secrets/{name}" {
		path += "?app=mine" // a secret of all apps takes another role
	}
	return path
}

// TestS2S3WhoMay tries each route without a token, with invalid ones, and with tokens of each role,
// with and without a limit to apps, for objects inside and outside these apps.
func TestS2S3WhoMay(t *testing.T) {
	t.Parallel()
	a := twoApps(t)
	server := api.New(a.cfg)
	table := server.Table()
	var rows, open []string
	for _, row := range table {
		rows = append(rows, row.Method+" "+row.Pattern)
		if row.Open {
			open = append(open, row.Method+" "+row.Pattern)
		} else if row.Role == auth.None {
			t.Errorf("%s %s has no role", row.Method, row.Pattern)
		}

		if row.Method != "GET" && !row.Open && row.Over == "shared" &&
			!slices.Contains([]string{"/api/v1/preview", "/api/v1/crontab", "/api/v1/logout"}, row.Pattern) {
			t.Errorf("%s %s changes what belongs to no app, and is for those with limits, too", row.Method, row.Pattern)
		}

		if row.Method != "GET" && row.Role == auth.Viewer &&
			!slices.Contains([]string{"/api/v1/preview", "/api/v1/crontab", "/api/v1/logout", "/api/v1/logins",
				"/api/v1/logins/{id}"}, row.Pattern) {
			t.Errorf("%s %s is for viewers; only what changes nothing may be", row.Method, row.Pattern)
		}
	}

	routes := server.Routes()
	slices.Sort(routes)
	slices.Sort(rows)
	slices.Sort(open)
	slices.Sort(openRoutes)
	if !slices.Equal(routes, rows) {
		t.Errorf("the router has %v, the table has %v", routes, rows)
	}
	if !slices.Equal(open, openRoutes) {
		t.Errorf("open to all are %v, want %v", open, openRoutes)
	}

	issuer := auth.Issuer{DB: a.db.DB}
	expired := a.newToken("expired", auth.Admin)
	a.exec("UPDATE api_token SET expires = 1 WHERE name = 'expired'")
	row, revoked, err := issuer.Create(t.Context(), auth.Spec{Name: "revoked", Grant: auth.Grant{Role: auth.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	if err := issuer.Revoke(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}

	before := a.counts()
	for _, row := range table {
		where := row.Method + " " + row.Pattern
		path := a.path(row, "mine")
		if row.Open {
			r := a.as("").call(row.Method, path, nil)
			if (r.status == 401 || r.status == 403) && r.object().text("type") != api.TypePrefix+"cross-origin" {
				t.Errorf("%s is open: got %d %s", where, r.status, r.body)
			}
			continue
		}

		for what, header := range map[string][]string{
			"nothing": nil, "an empty header": {"Authorization", ""}, "no token": {"Authorization", "Bearer "},
			"another scheme": {"Authorization", "Basic YWRtaW46YWRtaW4="},
			"a token alone":  {"Authorization", a.token}, "a made-up token": {"Authorization", "Bearer " + wellFormed},
			"a known default": {"Authorization", "Bearer default_token"},
			"an expired one":  {"Authorization", "Bearer " + expired},
			"a revoked one":   {"Authorization", "Bearer " + revoked}, "a token in lower case": {
				"Authorization", "Bearer " + strings.ToLower(a.token),
			},
			"a cookie with a token": {"Cookie", "gocrontab=" + a.token}, "null": {"Authorization", "Bearer null"},
		} {
			r := a.as("").call(row.Method, path, nil, header...)
			if r.status == http.StatusTooManyRequests {
				continue // too many invalid tokens by then; another test covers that
			}
			if r.status != 401 || !strings.Contains(r.body, api.TypePrefix+"unauthenticated") ||
				!strings.HasPrefix(r.header.Get("Www-Authenticate"), "Bearer") {
				t.Errorf("%s with %s: got %d %s, want 401", where, what, r.status, r.body)
			}
		}

		for name, p := range a.people {
			for _, app := range []string{"mine", "theirs"} {
				want := "in"
				switch {
				case p.role < row.Role:
					want = "403"
				case !p.limited || row.Over == "shared" || row.Over == "filtered" || row.Over == "inBody":
				case row.Over == "whole", row.Over == "app" && app == "theirs" && row.Role > auth.Viewer:
					want = "403"
				case app == "theirs":
					want = "404"
				}

				r := a.as(p.token).call(row.Method, a.path(row, app), nil)
				got := "in"
				switch {
				case r.status == 401, strings.Contains(r.body, api.TypePrefix+"forbidden\""):
					got = fmt.Sprint(r.status)
				case r.status == 404 && want != "in":
					got = "404"
				case r.status == 404 &&
					(row.Over == "job" || row.Over == "run" || row.Over == "backfill" || row.Over == "app") &&
					row.Pattern != "/api/v1/secrets/{name}":
					got = "404, and it is there"
				}

				if got != want {
					t.Errorf("%s of %s by the %s: got %s (%d %s), want %s", where, app, name, got, r.status,
						r.body, want)
				}
			}
		}
	}

	if after := a.counts(); after != before {
		t.Errorf("something got through: %s became %s", before, after)
	}
}

// TestForgottenRoute: a route without access in the table is closed to everybody.
func TestForgottenRoute(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.serveHandler(api.Guarded(s.cfg, func(http.ResponseWriter, *http.Request) { t.Error("it is served") }))
	s.call("GET", "/forgotten", nil).want(403)
	s.as("").call("GET", "/forgotten", nil).want(401)
}

// TestForeignIsNotThere: an object in another app looks like a missing one.
func TestForeignIsNotThere(t *testing.T) {
	t.Parallel()
	a := twoApps(t)
	limited := a.as(a.people["limited admin"].token)
	for foreign, missing := range map[string]string{
		"/api/v1/jobs/" + a.job["theirs"]:              "/api/v1/jobs/999",
		"/api/v1/jobs/" + a.job["theirs"] + "/history": "/api/v1/jobs/999/history",
		"/api/v1/jobs/" + a.job["theirs"] + "/next":    "/api/v1/jobs/999/next",
		"/api/v1/apps/theirs/jobs/j":                   "/api/v1/apps/theirs/jobs/nix",
		"/api/v1/runs/" +
			a.run["theirs"]: "/api/v1/runs/00000000-0000-4000-8000-000000000000-1",
		"/api/v1/runs/" + a.run["theirs"] +
			"/output": "/api/v1/runs/00000000-0000-4000-8000-000000000000-1/output",
		"/api/v1/backfills/" + a.backfill["theirs"]: "/api/v1/backfills/999",
		"/api/v1/jobs/" + a.job["theirs"] +
			"/explain?at=2027-01-01T00:00:00Z": "/api/v1/jobs/999/explain?at=2027-01-01T00:00:00Z",
	} {
		one, other := limited.call("GET", foreign, nil).want(404).object(),
			limited.call("GET", missing, nil).want(404).object()
		for _, o := range []object{one, other} {
			delete(o, "request_id")
			detail := o.text("detail")
			for _, id := range []string{a.run["theirs"], "00000000-0000-4000-8000-000000000000-1", a.backfill["theirs"],
				"999"} {
				detail = strings.ReplaceAll(detail, `"`+id+`"`, "ID")
			}
			o["detail"] = detail
		}

		if fmt.Sprint(one) != fmt.Sprint(other) {
			t.Errorf("%s: got %v, and %s: got %v", foreign, one, missing, other)
		}
	}
}

// TestLimitedLists: lists show objects of the caller's apps only.
func TestLimitedLists(t *testing.T) {
	t.Parallel()
	a := twoApps(t)
	a.cfg.Editor = api.EditorOf(a.node.Editor)
	a.serve()
	for _, app := range []string{"mine", "theirs", "unused"} {
		a.call("POST", "/api/v1/apps/"+app+"/pause?absent=ok", nil).want(200)
	}

	a.create("handled", object{"app": "theirs", "command": nil, "handler": "their/handler"})
	a.create("handled", object{"app": "mine", "command": nil, "handler": "my/handler"})
	limited := a.as(a.people["limited viewer"].token)
	for path, want := range map[string][]string{
		"/api/v1/jobs": {"mine", "mine"}, "/api/v1/jobs?app=theirs": nil, "/api/v1/jobs?app=mine": {"mine", "mine"},
		"/api/v1/jobs?name=j": {"mine"},
		"/api/v1/runs":        {"mine"}, "/api/v1/runs?state=running": {"mine"}, "/api/v1/runs?app=theirs": nil,
		"/api/v1/runs?job_id=" + a.job["theirs"]: nil,
		"/api/v1/pauses":                         {"mine", "unused"}, "/api/v1/audit?kind=app": {"unused", "mine"},
		"/api/v1/audit?app=theirs": nil, "/api/v1/audit?kind=token": nil, "/api/v1/audit?kind=login": nil,
		"/api/v1/audit?job_id=" + a.job["theirs"]: nil,
	} {
		var got []string
		_, items := limited.walk(path)
		for _, o := range items {
			got = append(got, o.text("app"))
		}

		if path == "/api/v1/runs" { // the backfill's runs come and go
			got = slices.Compact(got)
		}
		if path == "/api/v1/runs?state=running" {
			got = slices.Compact(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got those of %q, want of %q", path, got, want)
		}
	}

	if ids, _ := limited.walk("/api/v1/backfills"); len(ids) != 1 || ids[0] != a.backfill["mine"] {
		t.Errorf("backfills: got %v", ids)
	}
	if ids, _ := limited.walk("/api/v1/backfills?job_id=" + a.job["theirs"]); len(ids) != 0 {
		t.Errorf("backfills of a foreign job: got %v", ids)
	}

	if got := limited.call("GET", "/api/v1/handlers", nil).want(200).body; strings.Contains(got, "their") ||
		!strings.Contains(got, "my/handler") {
		t.Errorf("handlers: got %s", got)
	}

	if got := limited.call("GET", "/api/v1/export", nil).want(200).body; strings.Contains(got, "theirs") ||
		!strings.Contains(got, "my/handler") {
		t.Errorf("export: got %s", got)
	}

	if got := limited.call("GET", "/api/v1/me", nil).want(200).object(); got.text("role") != "viewer" ||
		got.text("apps") != "[mine unused]" {
		t.Errorf("me: got %v", got)
	}

	// A caller with grants in two parts sees both.
	if n := len(a.call("GET", "/api/v1/jobs", nil).want(200).object().items("items")); n != 4 {
		t.Errorf("an admin of all: got %d jobs", n)
	}
}

// TestLimitedWrites: no route lets a caller write a definition into a foreign app.
func TestLimitedWrites(t *testing.T) {
	t.Parallel()
	a := twoApps(t)
	a.cfg.Editor = api.EditorOf(a.node.Editor)
	a.serve()
	limited := a.as(a.people["limited admin"].token)
	mine, theirs := "/api/v1/jobs/"+a.job["mine"], "/api/v1/jobs/"+a.job["theirs"]
	whole := `{"name": "x", "app": "%s", "schedule": "@daily", "command": "true"}`
	for what, c := range map[string]struct {
		method, path, body string
		want               int
	}{
		"create in another app": {"POST", "/api/v1/jobs", fmt.Sprintf(whole, "theirs"), 403},
		"create in the default app": {
			"POST", "/api/v1/jobs", `{"name": "x", "schedule": "@daily", "command": "true"}`, 403,
		},
		"put by name into another app": {
			"PUT", "/api/v1/apps/theirs/jobs/new", `{"schedule": "@daily", "command": "true"}`, 403,
		},
		"replace by name in another app": {
			"PUT", "/api/v1/apps/theirs/jobs/j", `{"schedule": "@daily", "command": "true"}`, 403,
		},
		"move one's own into another app":   {"PATCH", mine, `{"app": "theirs"}`, 403},
		"move it by replacing it":           {"PUT", mine, fmt.Sprintf(whole, "theirs"), 403},
		"take another app's into one's own": {"PATCH", theirs, `{"app": "mine", "name": "taken"}`, 404},
		"take it by replacing it":           {"PUT", theirs, fmt.Sprintf(whole, "mine"), 404},
		"delete another app's":              {"DELETE", theirs, "", 404},
		"run another app's":                 {"POST", theirs + "/run", `{}`, 404},
		"pause another app":                 {"POST", "/api/v1/apps/theirs/pause", `{}`, 403},
		"pause the cluster":                 {"POST", "/api/v1/cluster/pause", `{}`, 403},
		"write a group":                     {"PUT", "/api/v1/groups/g", `{"slots": 1}`, 403},
		"write a calendar":                  {"PUT", "/api/v1/calendars/c", `{"exclude_weekdays": ["sun"]}`, 403},
		"cordon a node":                     {"POST", "/api/v1/nodes/knoten-1/cordon", `{}`, 403},
		"disable a handler":                 {"POST", "/api/v1/handlers/h/disable", `{}`, 403},
		"make a token":                      {"POST", "/api/v1/tokens", `{"name": "x", "role": "admin"}`, 403},
		"revoke a token":                    {"DELETE", "/api/v1/tokens/1", "", 403},
		"apply to another app": {
			"POST", "/api/v1/apply", `{"jobs": [` + fmt.Sprintf(whole, "theirs") + `]}`, 403,
		},
		"apply a group":                  {"POST", "/api/v1/apply", `{"groups": [{"name": "g", "slots": 1}]}`, 403},
		"pause one's own app":            {"POST", "/api/v1/apps/mine/pause?absent=ok", `{}`, 200},
		"resume it":                      {"POST", "/api/v1/apps/mine/resume?absent=ok", `{}`, 200},
		"create in one's own app":        {"POST", "/api/v1/jobs", fmt.Sprintf(whole, "mine"), 201},
		"move it into the other own app": {"PATCH", mine, `{"app": "unused"}`, 200},
	} {
		before := a.counts()
		var body any
		if c.body != "" {
			body = c.body
		}

		r := limited.call(c.method, c.path, body)
		if r.status != c.want {
			t.Errorf("%s: got %d %s, want %d", what, r.status, r.body, c.want)
		}
		if after := a.counts(); c.want >= 400 && after != before {
			t.Errorf("%s was refused, and %s became %s", what, before, after)
		}
	}

	n := a.count("SELECT COUNT(*) FROM grp") + a.count("SELECT COUNT(*) FROM api_token WHERE name = 'x'")
	n += a.count(`
		SELECT COUNT(*)
		FROM job j
		JOIN app a ON a.id = j.app_id
		WHERE a.name NOT IN ('mine', 'theirs', 'unused')`)
	if n != 0 {
		t.Errorf("%d things were written that are not theirs", n)
	}

	if n := a.count("SELECT COUNT(*) FROM audit WHERE who = 'limited-admin' AND app = 'mine'"); n < 2 {
		t.Errorf("got %d lines of the audit in the name of the token", n)
	}
}

// TestS6Pace: a token with too many requests is delayed, and refused when it sends them all at
// once; other tokens are not affected.
func TestS6Pace(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Rate = 2 })
	hasty, calm := s.as(s.newToken("hasty", auth.Viewer)), s.as(s.newToken("calm", auth.Viewer))
	for range 10 { // the permitted burst
		if r := hasty.call("GET", "/api/v1/me", nil); r.status != 200 {
			t.Fatalf("within its burst: got %d %s", r.status, r.body)
		}
	}

	began := time.Now()
	for range 3 {
		time.Sleep(400 * time.Millisecond) // so that some are delayed, and each only briefly
		hasty.call("GET", "/api/v1/me", nil).want(200)
	}

	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("one after the other, 3 requests took %s", took)
	}

	statuses := make(chan *reply, 40)
	for range 40 {
		go func() { statuses <- hasty.call("GET", "/api/v1/me", nil) }()
	}

	away := 0
	for range 40 {
		r := <-statuses
		if r.status == http.StatusTooManyRequests {
			away++
			if r.header.Get("Retry-After") == "" || !strings.Contains(r.body, api.TypePrefix+"too-many-requests") {
				t.Errorf("got %v %s, want when to try again", r.header, r.body)
			}
		}
	}

	if away < 10 {
		t.Errorf("40 at once at 2 a second: %d were sent away, want most of them", away)
	}

	calm.call("GET", "/api/v1/me", nil).want(200)
	s.call("GET", "/api/v1/me", nil).want(200)
}
