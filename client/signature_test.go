package client_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go-crontab/client"
	"go-crontab/execute"
	"go-crontab/job"
)

type hookSecret struct{}

func (hookSecret) Secret(string, job.Secret) ([]byte, error) { return []byte("k3y"), nil }

// TestCheckSignature checks the request of a job on its target, and a replay on other servers.
func TestCheckSignature(t *testing.T) {
	t.Parallel()

	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		got = r
	}))
	t.Cleanup(s.Close)

	h, err := execute.NewHTTP(execute.HTTPConfig{Allow: []string{"127.0.0.1"}, Secrets: hookSecret{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)

	now := time.Now()
	a := execute.Attempt{App: "é shop", Job: "close", Due: now, Began: now, HTTP: &job.HTTP{
		Method: "POST", URL: s.URL + "/hook/a%2Fb?x=1", Body: "line\nline", Sign: &job.HTTPSign{Secret: "hook"},
	}}
	a.Launch = job.Launch{Run: 7, Claim: 1}
	if res := h.Execute(t.Context(), a); res.Outcome != job.Succeeded {
		t.Fatalf("got %+v", res)
	}

	for name, tc := range map[string]struct {
		change func(r *http.Request, body *[]byte, secret *[]byte, now *time.Time)
		want   string
	}{
		"as it came": {func(*http.Request, *[]byte, *[]byte, *time.Time) {}, ""},
		"another host": {
			func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.Host = "other.example.com" }, "does not match",
		},
		"another path": {
			func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.RequestURI = "/hook/a/b?x=1" }, "does not match",
		},
		"another method": {func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.Method = "PUT" }, "does not match"},
		"another app": {
			func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.Header.Set("X-Gocrontab-App", "alpha") },
			"does not match",
		},
		"another run": {
			func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.Header.Set("X-Gocrontab-Launch", "x") },
			"does not match",
		},
		"another body": {
			func(_ *http.Request, body, _ *[]byte, _ *time.Time) { *body = []byte("line\nlin") }, "does not match",
		},
		"another secret": {
			func(_ *http.Request, _, secret *[]byte, _ *time.Time) { *secret = []byte("key") }, "does not match",
		},
		"too late": {func(_ *http.Request, _, _ *[]byte, now *time.Time) {
			*now = now.Add(client.SignatureAge + 5*time.Second)
		}, "too far from now"},
		"too early": {func(_ *http.Request, _, _ *[]byte, now *time.Time) {
			*now = now.Add(-client.SignatureAge - 5*time.Second)
		}, "too far from now"},
		"not signed": {
			func(r *http.Request, _, _ *[]byte, _ *time.Time) { r.Header.Del("X-Gocrontab-Signature") },
			"is not signed",
		},
		"another version": {func(r *http.Request, _, _ *[]byte, _ *time.Time) {
			set(r, strings.Replace(signatureOf(r), "v2", "v1", 1))
		}, "does not have the form"},
		"another time": {func(r *http.Request, _, _ *[]byte, _ *time.Time) {
			set(r, strings.Replace(signatureOf(r), "t=1", "t=01", 1))
		}, "does not match"},
		"nonsense": {func(r *http.Request, _, _ *[]byte, _ *time.Time) { set(r, "x") }, "does not have the form"},
	} {
		r, text, secret, at := got.Clone(t.Context()), append([]byte(nil), body...), []byte("k3y"), now
		tc.change(r, &text, &secret, &at)
		if err := client.CheckSignature(r, text, secret, at); (err == nil) != (tc.want == "") ||
			err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func signatureOf(r *http.Request) string { return r.Header.Get("X-Gocrontab-Signature") }
func set(r *http.Request, value string)  { r.Header.Set("X-Gocrontab-Signature", value) }
