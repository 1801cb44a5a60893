package execute

import (
	"encoding/pem"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go-crontab/job"
)

// redirecting answers /STATUS?to=URL with that redirect, /loop with one to itself, and anything else with its path.
func redirecting(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/loop" {
		w.Header().Set("Location", "loop")
		w.WriteHeader(http.StatusFound)
		return
	}
	if status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Repeat("moved ", 1000))
		return
	}
	_, _ = io.WriteString(w, "at "+r.URL.Path)
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	s := newSite(t, redirecting)
	h := requests(t)

	for name, tc := range map[string]struct {
		path      string
		method    string
		redirects int
		outcome   job.Outcome
		says      string // in the reason or the output
		then      string // the last request: method and body
	}{
		"off":                         {"/302?to=/x", "GET", 0, job.Failed, "HTTP 302 Found, expected 2xx", "GET "},
		"on":                          {"/302?to=/x", "GET", 1, job.Succeeded, "at /x", "GET "},
		"relative":                    {"/302?to=y/z", "GET", 1, job.Succeeded, "at /y/z", "GET "},
		"POST becomes GET at 301":     {"/301?to=/x", "POST", 1, job.Succeeded, "at /x", "GET "},
		"POST becomes GET at 302":     {"/302?to=/x", "POST", 1, job.Succeeded, "at /x", "GET "},
		"POST becomes GET at 303":     {"/303?to=/x", "POST", 1, job.Succeeded, "at /x", "GET "},
		"PUT becomes GET at 303":      {"/303?to=/x", "PUT", 1, job.Succeeded, "at /x", "GET "},
		"PUT stays at 302":            {"/302?to=/x", "PUT", 1, job.Succeeded, "at /x", "PUT body"},
		"HEAD stays at 303":           {"/303?to=/x", "HEAD", 1, job.Succeeded, "HTTP 200 OK", "HEAD "},
		"POST stays at 307":           {"/307?to=/x", "POST", 1, job.Succeeded, "at /x", "POST body"},
		"POST stays at 308":           {"/308?to=/x", "POST", 1, job.Succeeded, "at /x", "POST body"},
		"three of three":              {"/302?to=/302%3Fto=/302%253Fto=/x", "GET", 3, job.Succeeded, "at /x", "GET "},
		"three of two":                {"/302?to=/302%3Fto=/302%253Fto=/x", "GET", 2, job.Failed, `the server redirected more than 2 times, the last time to "/x"`, "GET "},
		"for ever":                    {"/loop", "GET", 10, job.Failed, "the server redirected more than 10 times", "GET "},
		"to nowhere":                  {"/302", "GET", 1, job.Failed, "HTTP 302 Found, expected 2xx", "GET "},
		"not modified":                {"/304?to=/x", "GET", 1, job.Failed, "HTTP 304 Not Modified, expected 2xx", "GET "},
		"to another scheme":           {"/302?to=ftp://x/", "GET", 1, job.Failed, `the server redirected to "ftp://x/", which is not followed`, "GET "},
		"to a file":                   {"/302?to=file:///etc/passwd", "GET", 1, job.Failed, "which is not followed", "GET "},
		"to a user":                   {"/302?to=http://a:b@x/", "GET", 1, job.Failed, "which is not followed", "GET "},
		"to a URL that is none":       {"/302?to=http://%5B::1/", "GET", 1, job.Failed, "which is not followed", "GET "},
		"a status with a place to go": {"/201?to=/x", "POST", 1, job.Succeeded, "HTTP 201 Created", "POST body"},
	} {
		got := h.call(t, request(s.URL+tc.path, func(r *job.HTTP) {
			r.Method, r.Redirects = tc.method, tc.redirects
			if tc.method == "POST" || tc.method == "PUT" {
				r.Body = "body"
			}
		}))
		is(t, name, got, tc.outcome)
		if said := got.Reason.Text + " " + got.Output.Text(); !strings.Contains(said, tc.says) {
			t.Errorf("%s: got %.300q, want %q in it", name, said, tc.says)
		}
		asked := s.asked()
		last := asked[len(asked)-1]
		if last.method+" "+last.body != tc.then || last.body == "" && last.header.Get("Content-Type") != "" {
			t.Errorf("%s: the last request was %+v, want %q", name, last, tc.then)
		}
	}
}

// TestRedirectsToOthers: another server gets no credentials of the first one.
func TestRedirectsToOthers(t *testing.T) {
	t.Parallel()
	first, other, secure := newSite(t, redirecting), newSite(t, redirecting), newSite(t, redirecting, overTLS)
	h := requests(t, func(cfg *HTTPConfig) { cfg.Secrets = fixed{"hook": "k3y"} })
	full := func(r *job.HTTP) {
		r.Redirects, r.Body = 3, "body"
		r.Headers = map[string]string{"Authorization": "Bearer x", "cookie": "a=b", "X-Api-Key": "y", "Accept": "text/plain"}
		r.Sign = &job.HTTPSign{Secret: "hook"}
	}
	credentials := []string{"Authorization", "Cookie", "X-Api-Key", signatureHeader}
	check := func(name string, got seen, want bool) {
		t.Helper()
		for _, c := range credentials {
			if (got.header.Get(c) != "") != want {
				t.Errorf("%s: %s is %q", name, c, got.header.Get(c))
			}
		}
		for _, c := range []string{"Accept", "Content-Type", "User-Agent", "Idempotency-Key", "X-Gocrontab-Launch"} {
			if got.header.Get(c) == "" {
				t.Errorf("%s: %s is missing", name, c)
			}
		}
	}
	is(t, "to the same", h.call(t, request(first.URL+"/307?to=/x", full)), job.Succeeded)
	check("to the same", first.asked()[1], true)
	if a, b := first.asked()[0].header.Get(signatureHeader), first.asked()[1].header.Get(signatureHeader); a == b {
		t.Error("the signature is that of another path")
	}
	is(t, "to another", h.call(t, request(first.URL+"/307?to="+other.URL+"/x", full)), job.Succeeded)
	check("to another", other.asked()[0], false)
	is(t, "and back", h.call(t, request(first.URL+"/307?to="+other.URL+"/307%3Fto="+first.URL+"/x", full)), job.Succeeded)
	all := first.asked()
	check("and back", all[len(all)-1], false)

	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	trusting := func(r *job.HTTP) { full(r); r.TLS = &job.HTTPTLS{CA: ca, ServerName: "example.com"} }
	is(t, "to TLS", h.call(t, request(first.URL+"/307?to="+secure.URL+"/x", trusting)), job.Succeeded)
	check("to TLS", secure.asked()[0], false)
	got := h.call(t, request(secure.URL+"/307?to="+first.URL+"/x", trusting))
	is(t, "away from TLS", got, job.Failed, "which is not followed", "no http after https")
}
