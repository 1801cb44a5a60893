package api_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
)

// TestS4EveryMethod tries every path of the table with every method, and with headers that override
// methods. Only open routes admit strangers, and other methods do nothing.
func TestS4EveryMethod(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	table := api.New(s.cfg).Table()
	fill := strings.NewReplacer("{id}", "1", "{app}", "default", "{name}", "there", "{key}", "k", "{file}",
		"reference.css", "{version}", "1", "{other}", "1")
	open, routes := map[string]bool{}, map[string]bool{}
	for _, row := range table {
		routes[row.Method+" "+row.Pattern] = true
		open[row.Method+" "+row.Pattern] = row.Open
	}

	patterns := map[string]bool{}
	for _, row := range table {
		patterns[row.Pattern] = true
	}

	before, asked := s.counts(), 0
	s.madeUp = true // unknown methods are not in the document
	for pattern := range patterns {
		path := fill.Replace(pattern)
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LINK",
			"get", "Post", "PROPFIND", "X"} {
			if method == "POST" && (pattern == "/api/v1/login") || open[method+" "+pattern] {
				continue
			}

			as := method
			if method == "HEAD" {
				as = "GET"
			}
			if open[as+" "+pattern] {
				continue
			}

			asked++
			r := s.as("").call(method, path, nil)
			if r.status != 401 {
				t.Errorf("%s %s without a token: got %d %s, want 401", method, pattern, r.status, r.body)
			}

			if !routes[as+" "+pattern] {
				if r := s.call(method, path, nil); r.status < 400 { // 405, unless another pattern fits
					t.Errorf("%s %s: got %d %s, want it refused", method, pattern, r.status, r.body)
				}
			}
		}

		for _, header := range [][2]string{
			{"X-HTTP-Method-Override", "DELETE"}, {"X-Original-URL", "/healthz"}, {"X-Rewrite-URL", "/healthz"},
			{"X-Forwarded-Prefix", "/healthz"}, {"X-Forwarded-User", "admin"},
			{"X-Remote-User", "admin"}, {"X-Forwarded-For", "127.0.0.1"}, {"Proxy-Authorization", "Bearer " + s.token},
			{"X-Auth-Token", s.token}, {"Cookie", "token=" + s.token},
		} {
			if open["GET "+pattern] || !routes["GET "+pattern] {
				continue
			}
			if r := s.as("").call("GET", path, nil, header[0], header[1]); r.status != 401 {
				t.Errorf("GET %s with %s: got %d %s, want 401", pattern, header[0], r.status, r.body)
			}
		}
	}

	if after := s.counts(); after != before || asked < 400 {
		t.Errorf("%d requests were made, and %s became %s", asked, before, after)
	}
}

// TestNoOtherRoutes: no debugger and no other route exists beyond the table.
func TestNoOtherRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	routes := api.New(s.cfg).Routes()
	for _, path := range []string{"/metrics", "/debug", "/debug/pprof", "/debug/pprof/", "/debug/pprof/cmdline",
		"/debug/pprof/heap", "/debug/vars", "/debug/requests", "/admin", "/.env", "/actuator/env",
		"/server-status", "/api/v1/config", "/api/v1/debug", "/config", "/favicon.ico", "/robots.txt"} {
		if slices.Contains(routes, "GET "+path) {
			s.as("").call("GET", path, nil).want(401)
			continue
		}
		s.as("").call("GET", path, nil).want(401)
		s.call("GET", path, nil).want(404)
	}
}

// TestS6Bodies: an endless or slow body is cut off early, from every caller.
func TestS6Bodies(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	go api.New(s.cfg).Serve(t.Context(), l)
	for what, token := range map[string]string{"an admin": s.token, "nobody": wellFormed} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		c.SetDeadline(time.Now().Add(30 * time.Second))
		fmt.Fprintf(c,
			"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", token)
		sent, chunk := 0, fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
		for sent < 1<<30 {
			n, err := io.WriteString(c, chunk)
			sent += n
			if err != nil {
				break
			}
		}

		if sent > 32<<20 {
			t.Errorf("%s sent %d MiB of one body", what, sent>>20)
		}
	}

	if testing.Short() {
		return
	}

	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	c.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(c,
		"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", s.token)
	if answer, err := io.ReadAll(c); err != nil {
		t.Errorf("a body that stops coming: got %q, %v; want the connection closed", answer, err)
	}
	if n := s.count("SELECT COUNT(*) FROM job"); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

// injections are texts that would change a statement if they were inserted unescaped.
var injections = []string{
	`' OR '1'='1`, `' OR 1=1 -- `, `" OR ""="`, `1 OR 1=1`, `1; DROP TABLE job`, `'; DELETE FROM job; -- `,
	`\' OR 1=1 -- `, `\`, `%`, `_`, `%'`, `' UNION SELECT hash FROM api_token -- `,
	`') OR ('1'='1`, "`", `' AND SLEEP(30) -- `, `1 AND SLEEP(30)`, "\u00bf' OR 1=1 -- ", "\u02bc OR 1=1", `/*`, `#`,
	`x'41'`, `0x41`, `${jndi:x}`, `{{7*7}}`, `$(id)`, "`id`",
}

// TestS8Injection puts them into every part of every path and every text parameter: nothing fails,
// is found, or changes.
func TestS8Injection(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, name := range []string{"one", "two"} {
		s.create(name, object{"owner": "ann", "labels": object{"a": "b"}})
	}

	before, asked := s.counts(), 0
	check := func(where, path, injected string, mayMatch bool) {
		t.Helper()
		asked++
		r := s.call("GET", path, nil)
		switch r.status {
		case 400, 404, 405, 422:
		case 200:
			if n := len(r.object().items("items")); n > 0 && !mayMatch {
				t.Errorf("%s with %q finds %d: %.300s", where, injected, n, r.body)
			}
		default:
			t.Errorf("%s with %q: got %d %s", where, injected, r.status, r.body)
		}
	}

	for _, d := range getContract(t).operations() {
		// streams and a calendar are not JSON
		if d.method != "get" || !strings.HasPrefix(d.pattern, "/api/v1/") ||
			strings.HasPrefix(d.pattern, "/api/v1/login") || d.pattern == "/api/v1/events" ||
			d.pattern == "/api/v1/upcoming.ics" {
			continue
		}

		fill := strings.NewReplacer("{id}", "1", "{app}", "default", "{name}", "one", "{version}", "1", "{other}", "1",
			"{key}", "k")
		for _, in := range injections {
			for _, p := range d.parameters("path") {
				place := "{" + fmt.Sprint(p["name"]) + "}"
				check(d.String(), fill.Replace(strings.ReplaceAll(d.pattern, place, url.PathEscape(in))), in, false)
			}

			for _, p := range d.parameters("query") {
				if dig(p, "schema")["type"] == "boolean" {
					continue
				}
				name := fmt.Sprint(p["name"])
				check(d.String()+" "+name, fill.Replace(d.pattern)+"?"+url.Values{name: {in}}.Encode(), in, false)
			}
		}
	}

	if after := s.counts(); after != before || asked < 1000 {
		t.Errorf("%d requests were made, and %s became %s", asked, before, after)
	}
	for _, in := range injections { // stored and found unchanged
		name := "n " + in + " n"
		id := s.create(name, object{"owner": in, "description": in, "labels": object{"l": in},
			"command": "true"}).text("id")
		if got := s.call("GET", "/api/v1/apps/default/jobs/"+url.PathEscape(name),
			nil).want(200).object(); got.text("id") != id || got.text("owner") != in {
			t.Errorf("%q: got %v", in, got)
		}

		if items := s.call("GET", "/api/v1/jobs?owner="+url.QueryEscape(in),
			nil).want(200).object().items("items"); len(items) != 1 || items[0].text("id") != id {
			t.Errorf("the owner %q: got %d jobs", in, len(items))
		}

		if items := s.call("GET", "/api/v1/audit?name="+url.QueryEscape(name),
			nil).want(200).object().items("items"); len(items) != 1 {
			t.Errorf("the audit of %q: got %d lines", name, len(items))
		}
	}
}

// TestOutputIsNeverAPage: the output of a job is never served as a page, whatever a browser accepts.
func TestOutputIsNeverAPage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const evil = `<!doctype html><script>alert(1)</script><svg onload=alert(1)>` + "\x1b]0;owned\x07"
	id := s.create("evil", object{"command": "printf '%s' '" + evil + "'", "name": "<script>alert(1)</script>",
		"schedule": "0 3 1 1 *"}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	run := s.ran(id, 1)[0].text("id")
	for _, path := range []string{"", "?raw=1", "?raw=true", "?from=0", "?raw=1&from=0"} {
		for _, accept := range []string{"", "*/*", "text/html", "text/html,application/xhtml+xml", "application/json",
			"image/svg+xml", "text/javascript"} {
			r := s.call("GET", "/api/v1/runs/"+run+"/output"+path, nil, "Accept", accept).want(200)
			media, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
			if !slices.Contains([]string{"text/plain", "application/json", "application/octet-stream"}, media) ||
				r.header.Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%q as %q: got headers %v", path, accept, r.header)
			}

			if media == "application/octet-stream" &&
				!strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") {
				t.Errorf("%q as %q: bytes that are no attachment: %v", path, accept, r.header)
			}

			if media == "application/json" && strings.Contains(r.body, "\x1b") {
				t.Errorf("%q: JSON with control characters: %q", path, r.body)
			}
		}
	}

	for _, path := range []string{"/?callback=x", "/", "/docs"} {
		if r := s.call("GET", path, nil); strings.Contains(r.body, "alert(1)") {
			t.Errorf("%s shows what a job is called as it is", path)
		}
	}
}

// TestInputForgesNoLogLine: input of clients cannot forge a line of the log.
func TestInputForgesNoLogLine(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const forged = "level=ERROR msg=forged"
	for _, path := range []string{"/api/v1/jobs/%0A" + url.PathEscape(forged),
		"/%0D%0A" + url.PathEscape(forged) + "%0A", "/%E2%80%A8" + url.PathEscape(forged)} {
		s.call("GET", path, nil)
	}

	s.raw(
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a\tb\r\nUser-Agent: x\r\nConnection: close\r\n\r\n")
	s.raw("GET /healthz HTTP/1.1\r\nHost: localhost\n" + forged + "\r\nConnection: close\r\n\r\n")
	s.call("POST", "/api/v1/jobs", `{"name": "a\n`+forged+`", "schedule": "@daily", "command": "true"}`).want(422)
	id := s.create("echo", object{"command": "printf 'x\\n" + forged + "\\n'; exit 1",
		"owner": "\u2028" + forged}).text("id")
	s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
	s.ran(id, 1)
	s.logs.mu.Lock()
	text := s.logs.text.String()
	s.logs.mu.Unlock()
	if !strings.Contains(text, "forged") {
		t.Error("nothing of it is logged: this looks for nothing")
	}

	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "time=") || strings.Count(line, "\n") != 1 ||
			strings.ContainsAny(line, "\r\x1b\u2028") {
			t.Errorf("a line of the log is not ours: %q", line)
		}
	}
}

// TestS7Shape: a body is one object with known fields and limited depth. TestBadInput has the
// details.
func TestS7Shape(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for body, status := range map[string]int{
		`{"name": "a", "schedule": "@daily", "command": "true"} {}`:           400,
		`{"name": "a", "schedule": "@daily", "command": "true", "x": 1}`:      422,
		`{"name": "a", "name": "b", "schedule": "@daily", "command": "true"}`: 422, strings.Repeat("[", 50_000): 400,
		`{"name": "a\u0000b", "schedule": "@daily", "command": "true"}`:                         422,
		`{"name": "` + strings.Repeat("n", 129) + `", "schedule": "@daily", "command": "true"}`: 422, "\xff": 400,
	} {
		s.call("POST", "/api/v1/jobs", body).want(status)
	}

	if n := s.count("SELECT COUNT(*) FROM job"); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}
