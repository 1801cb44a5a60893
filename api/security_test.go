package api_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
)

func TestS5HostHeader(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		listen  string
		hosts   []string
		served  []string
		refused []string
	}{
		{"127.0.0.1:8610", nil,
			[]string{
				"localhost", "LOCALHOST:8610", "127.0.0.1", "127.0.0.1:99", "127.8.8.8", "[::1]:8610", "::1",
				"[::ffff:127.0.0.1]:80",
			},
			[]string{
				"", "evil.example", "evil.example:8610", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
				"169.254.169.254", "localhost:8610.evil.example", "2130706433", "0",
			}},
		{"cron.lan:8610", []string{"Cron.Example.org"},
			[]string{"cron.lan", "CRON.LAN:8610", "cron.example.org:443", "localhost"}, []string{
				"lan", "cron", "example.org", "10.0.0.1",
			}},
		{"10.0.0.1:8610", nil, []string{"10.0.0.1:8610", "localhost"}, []string{"10.0.0.2", "evil.example"}},
		{"0.0.0.0:8610", nil, []string{"10.0.0.1:8610", "[fe80::1]:8610", "0.0.0.0"}, []string{"evil.example"}},
		{":8610", nil, []string{"10.0.0.1:8610", "localhost"}, []string{"evil.example", ""}},
		{"[::1]:8610", nil, []string{"[::1]:8610"}, []string{"evil.example"}},
		{"", nil, []string{"localhost"}, []string{"evil.example", "", "10.0.0.1"}},
	} {
		h := api.HostsOf(tc.listen, tc.hosts)
		for _, host := range tc.served {
			if !h(host) {
				t.Errorf("listening on %q: Host %q is refused", tc.listen, host)
			}
		}

		for _, host := range tc.refused {
			if h(host) {
				t.Errorf("listening on %q: Host %q is served", tc.listen, host)
			}
		}
	}
}

// TestS5EveryRoute checks every route of the router, so that new routes are protected too.
func TestS5EveryRoute(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	routes := api.New(s.cfg).Routes()
	if len(routes) < 20 {
		t.Fatalf("only %d routes: %v", len(routes), routes)
	}

	before := s.counts()
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{id}", "1", "{app}", "default", "{name}", "there").Replace(path)
		check := func(what string, status int, problem string, r *reply) {
			t.Helper()
			if r.status != status || problem != "" && !strings.Contains(r.body, api.TypePrefix+problem) {
				t.Errorf("%s, %s: got %d %s, want %d %s", route, what, r.status, r.body, status, problem)
			}

			cache := "no-store"
			if r.header.Get("ETag") != "" && !strings.HasPrefix(path, "/api/") {
				cache = "no-cache" // it reveals nothing about the cluster
			}

			for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": cache,
				"Access-Control-Allow-Origin": ""} {
				if got := r.header.Get(header); got != want {
					t.Errorf("%s, %s: %s is %q, want %q", route, what, header, got, want)
				}
			}

			if !strings.HasPrefix(r.header.Get("Content-Security-Policy"), "default-src 'none'") ||
				r.header.Get("X-Request-Id") == "" {
				t.Errorf("%s, %s: got headers %v", route, what, r.header)
			}
		}

		if path != "/healthz" && path != "/metrics" {
			check("forged Host", 403, "forbidden-host", s.call(method, path, nil, "Host", "evil.example"))
		}

		check("unknown parameter", 422, "invalid", s.call(method, path+"?xyzzy=1", nil))
		if method == "GET" {
			check("cross-origin reading", s.call(method, path, nil).status, "",
				s.call(method, path, nil, "Origin", "http://evil.example"))
			continue
		}

		for _, header := range [][]string{
			{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
			{"Origin", "http://evil.example", "Host", "evil.example"},
		} {
			check(strings.Join(header, " "), 403, "", s.call(method, path, `{}`, header...))
		}

		if method != "DELETE" {
			check("text", 415, "unsupported-media-type", s.call(method, path, `{}`, "Content-Type", "text/plain"))
		}
	}

	if after := s.counts(); after != before {
		t.Errorf("something got through: %s became %s", before, after)
	}

	// Our own page may make changes.
	s.call("POST", "/api/v1/jobs/1/pause", nil, "Origin", s.url, "Sec-Fetch-Site", "same-origin").want(200)
}

func TestS4TwistedPaths(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	for _, path := range []string{
		"//api/v1/jobs", "/api//v1/jobs", "/API/v1/jobs", "/api/v1/Jobs", "/api/v1/./jobs", "/api/v1/x/../jobs",
		"/api/v1/jobs/..;/jobs", "/api/v1/jobs;x=1",
		"/%61pi/v1/jobs", "/api%2Fv1%2Fjobs", "/api/v1/%2e%2e/v1/jobs", "/healthz/../api/v1/jobs",
		"/healthz%2F..%2Fapi/v1/jobs", "/api/v1/jobs/%31", "/api/v1/jobs/1%00",
		"/api/v1/jobs/1/", "/api/v1/jobs/1.json", "/.", "/%",
	} {
		// As a stranger, and as an admin.
		if r := s.raw("GET " + path +
			" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(r, "HTTP/1.1 401") &&
			!strings.HasPrefix(r, "HTTP/1.1 400") {
			t.Errorf("%s without a token: got %s, want 401", path, r)
		}

		r := s.raw("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + s.token +
			"\r\nConnection: close\r\n\r\n")
		if path == "/api/v1/jobs/%31" { // decoded once, this is an id
			if !strings.HasPrefix(r, "HTTP/1.1 200") {
				t.Errorf("%s: got %s", path, r)
			}
			continue
		}

		if !strings.HasPrefix(r, "HTTP/1.1 404") && !strings.HasPrefix(r, "HTTP/1.1 400") {
			t.Errorf("%s: got %s, want 404", path, r)
		}
	}

	for _, request := range []string{
		// the target counts, not the header
		"GET http://evil.example/api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		"GET /api/v1/jobs HTTP/1.0\r\n\r\n",
	} {
		if r := s.raw(request); !strings.HasPrefix(r, "HTTP/1.1 403") && !strings.HasPrefix(r, "HTTP/1.0 403") {
			t.Errorf("%q: got %s, want 403", request, r)
		}
	}
}

// raw sends bytes unchanged and returns the answer.
func (s *site) raw(request string) string {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()

	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write([]byte(request)); err != nil {
		s.t.Fatal(err)
	}

	var out strings.Builder
	for b := make([]byte, 4096); ; {
		n, err := c.Read(b)
		out.Write(b[:n])
		if err != nil {
			return out.String()
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if got := s.call("GET", "/healthz", nil, "X-Request-Id", "mine-1").header.Get("X-Request-Id"); got != "mine-1" {
		t.Errorf("got %q, want the client's own", got)
	}

	for _, id := range []string{strings.Repeat("x", 65), "a b", "<script>", `"`} {
		if got := s.call("GET", "/healthz", nil, "X-Request-Id", id).header.Get("X-Request-Id"); got == id ||
			got == "" {
			t.Errorf("sent %q, got %q, want one of the server's", id, got)
		}
	}
}

func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) { c.Ready = func() error { panic("secret word") } })
	r := s.call("GET", "/readyz", nil).want(http.StatusInternalServerError)
	id := r.object().text("request_id")
	if !strings.Contains(r.body, api.TypePrefix+"internal") || strings.Contains(r.body, "secret word") ||
		strings.Contains(r.body, "goroutine") {
		t.Errorf("got %s", r.body)
	}

	if id == "" || !s.logs.has("secret word") || !s.logs.has(id) {
		t.Errorf("the log says nothing of request %q", id)
	}
	s.call("GET", "/healthz", nil).want(200)
}
