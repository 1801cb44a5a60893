package api_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"go-crontab/page"
)

// TestHome requests the page as a browser does. It passes with and without a built console.
func TestHome(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.call("GET", "/", nil).want(200)
	if !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || !strings.Contains(r.body, "go-crontab") ||
		r.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("got %v %s", r.header, r.body)
	}

	if !page.Built() && !strings.Contains(r.body, "make build") {
		t.Errorf("the placeholder does not say how to build the page: %s", r.body)
	}

	policy := r.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") ||
		strings.Contains(policy, "*") || !strings.Contains(policy, "require-trusted-types-for 'script'") {
		t.Errorf("the policy is %q", policy)
	}

	for what, pattern := range map[string]string{
		"something from elsewhere": `(?i)(src|href|srcset|action)="(https?:)?//`,
		"a script of its own":      `(?i)<script[^>]*>[^<]|\son[a-z]+="|javascript:`,
		"a style of its own":       `(?i)<style|\sstyle="`,
	} {
		if found := regexp.MustCompile(pattern).FindString(r.body); found != "" {
			t.Errorf("the page has %s: %s", what, found)
		}
	}

	for _, m := range regexp.MustCompile(`(?:src|href)="(/[^"]*)"`).FindAllStringSubmatch(r.body, -1) {
		f := s.call("GET", m[1], nil).want(200)
		if kept := f.header.Get("Cache-Control"); strings.HasPrefix(m[1], "/assets/") &&
			!strings.Contains(kept, "immutable") {
			t.Errorf("%s may be kept: %q", m[1], kept)
		}
	}

	for _, path := range []string{"/jobs", "/jobs/17/edit", "/runs/x", "/cluster", "/activity/audit", "/upcoming",
		"/timeline/week", "/settings"} {
		if status, header, body := visitScreen(t, "GET", s.url+path+"?q=1", ""); status != 200 || body != r.body ||
			header.Get("Content-Security-Policy") != policy {
			t.Errorf("%s has another page: %d %v", path, status, header)
		}
	}

	if status, _, body := visitScreen(t, "HEAD", s.url+"/jobs", ""); status != 200 || body != "" {
		t.Errorf("HEAD /jobs: got %d %q", status, body)
	}
	if status, _, body := visitScreen(t, "GET", s.url+"/jobs", r.header.Get("ETag")); status != 304 || body != "" {
		t.Errorf("with its tag: got %d %q", status, body)
	}
}

// visitScreen requests a screen. Screens are not part of the API, and so not in its document.
func visitScreen(t *testing.T, method, url, tag string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// TestHomeShadowsNothing: paths that are no screens get the usual answers.
func TestHomeShadowsNothing(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, path := range []string{"/api/v1/nothing", "/api/v1/jobs/1/nothing", "/api/jobs", "/job", "/jobsx",
		"/sign-in.js", "/docs/x", "/assets/", "/assets/nothing.js", "/assets/..%2Findex.html",
		"/assets/placeholder.html", "/index.html"} {
		if got := s.call("GET", path, nil).want(404).object().text("type"); got != "urn:go-crontab:problem:not-found" {
			t.Errorf("%s: got %q", path, got)
		}
	}

	s.call("POST", "/jobs", nil).want(404)
	s.call("DELETE", "/cluster", nil).want(404)
	s.call("POST", "/", nil).want(405)
}

// TestUnknownScreen: a browser gets the console for an address that does not exist, and its status says so.
// What programs use stays JSON.
func TestUnknownScreen(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	page := s.call("GET", "/", nil).want(200).body
	for _, path := range []string{"/nope", "/job/1", "/index.html"} {
		status, header, body := visitAs(t, s.url+path, "text/html,application/xhtml+xml,*/*;q=0.8")
		if status != 404 || body != page || header.Get("ETag") != "" ||
			!strings.Contains(header.Get("Content-Security-Policy"), "script-src 'self'") {
			t.Errorf("%s: got %d, %d bytes, %v", path, status, len(body), header)
		}
	}
	for _, path := range []string{"/api/v1/nothing", "/assets/nothing.js", "/docs/x"} {
		if status, header, _ := visitAs(t, s.url+path, "text/html"); status == 200 ||
			!strings.HasPrefix(header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: got %d %s", path, status, header.Get("Content-Type"))
		}
	}
}

// visitAs requests an address with an Accept header and the tag of any copy.
func visitAs(t *testing.T, url, accept string) (status int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("If-None-Match", "*")

	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

func TestHomeIsCompressedForThoseWhoTakeIt(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	plain := s.call("GET", "/", nil, "Accept-Encoding", "identity").want(200)
	for accepts, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "deflate, GZIP": "gzip",
		"identity": "", "gzip;q=0": "", "gzip; q=0": "", "br": ""} {
		r := s.call("GET", "/", nil, "Accept-Encoding", accepts).want(200)
		if got := r.header.Get("Content-Encoding"); got != want || r.header.Get("Vary") != "Accept-Encoding" ||
			(r.body == plain.body) != (want == "") {
			t.Errorf("%q: got %q, want %q, %d bytes", accepts, got, want, len(r.body))
		}
		if want != "" && r.header.Get("ETag") == plain.header.Get("ETag") {
			t.Errorf("%q: two bodies have one tag", accepts)
		}
	}
}
