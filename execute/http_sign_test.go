package execute

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// fixed are secrets.
type fixed map[job.Secret]string

func (f fixed) Secret(name job.Secret) ([]byte, error) {
	if value, ok := f[name]; ok {
		return []byte(value), nil
	}
	return nil, fmt.Errorf("no secret %s", name)
}

// TestSignature holds a signature against one that was computed elsewhere, by Python's hmac.
func TestSignature(t *testing.T) {
	t.Parallel()
	got := signature([]byte("k3y"), time.Unix(1785553200, 999), attempt("").Launch.String(), "POST", "/hook/a%2Fb?x=1", `{"a": "é"}`)
	if want := "t=1785553200,v1=d07574be40f8876204dd95e47ab19ad2951c6363e61160faf5472e3a78837fe4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSignedRequest checks a signature as a server would, from what it received.
func TestSignedRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	h := requests(t, func(cfg *HTTPConfig) { cfg.Secrets = fixed{"hook": "k3y"} })
	a := request(s.URL+"/{{job}}?due={{due}}", func(r *job.HTTP) {
		r.Body, r.Sign = "{{attempt}}", &job.HTTPSign{Secret: "hook"}
	})
	a.Began = time.Date(2026, 8, 1, 3, 0, 0, 700_000_000, time.UTC) // MySQL's clock, far from this machine's
	is(t, "the call", h.call(t, a), job.Succeeded)
	r := s.asked()[0]
	var at int64
	var sum string
	if _, err := fmt.Sscanf(r.header.Get("X-Gocrontab-Signature"), "t=%d,v1=%s", &at, &sum); err != nil {
		t.Fatalf("%q: %v", r.header.Get("X-Gocrontab-Signature"), err)
	}
	if off := at - a.Began.Unix(); off < 0 || off > 20 {
		t.Errorf("signed at %s, want %s", time.Unix(at, 0).UTC(), a.Began)
	}
	mac := hmac.New(sha256.New, []byte("k3y"))
	fmt.Fprintf(mac, "v1\n%d\n%s\n%s\n%s\n%s", at, r.header.Get("X-Gocrontab-Launch"), r.method, r.target, r.body)
	if want := hex.EncodeToString(mac.Sum(nil)); sum != want {
		t.Errorf("got %s, want %s for %+v", sum, want, r)
	}
	a.HTTP.Sign.Secret = "other"
	is(t, "without the secret", h.call(t, a), job.Failed, "sign the request: no secret other")
	if n := len(s.asked()); n != 1 {
		t.Errorf("%d requests: one was sent unsigned", n)
	}
}

func TestSecrets(t *testing.T) {
	t.Setenv("GOCRONTAB_SECRET_FROM_ENV", "e")
	t.Setenv("GOCRONTAB_SECRET_BOTH", "e")
	t.Setenv("GOCRONTAB_SECRET_EMPTY", "")
	dir := t.TempDir()
	inside := filepath.Join(dir, "secrets")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"secrets/both": "f\n", "secrets/plain": "two\nlines\r\n", "secrets/hollow": "\n", "secrets/big": strings.Repeat("x", maxSecret+1), "outside": "o"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[job.Secret]string{"from-env": "e", "from.env": "e", "FROM_ENV": "e", "both": "f", "plain": "two\nlines"} {
		if got, err := (NodeSecrets{Dir: inside}).Secret(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[job.Secret]string{
		"missing": "neither the variable GOCRONTAB_SECRET_MISSING nor", "empty": "neither", "hollow": "its file is empty", "big": "at most",
		"../outside": "is no name of a secret", "": "is no name", "..": "is no name", "a/b": "is no name", "a\x00b": "is no name", ".hidden": "is no name",
	} {
		if got, err := (NodeSecrets{Dir: inside}).Secret(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", name, got, err, want)
		}
	}
	if got, err := (NodeSecrets{}).Secret("both"); err != nil || string(got) != "e" {
		t.Errorf("without a folder: got %q, %v", got, err)
	}
}
