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

// fixed holds secrets by name.
type fixed map[job.Secret]string

func (f fixed) Secret(_ string, name job.Secret) ([]byte, error) {
	if value, ok := f[name]; ok {
		return []byte(value), nil
	}
	return nil, fmt.Errorf("no secret %s", name)
}

// TestSignature compares a signature with the one that Python's hmac computed.
func TestSignature(t *testing.T) {
	t.Parallel()
	got := signature([]byte("k3y"), Signed{
		At: time.Unix(1785553200, 999), ID: attempt("").Launch.String(), Method: "POST", Host: "shop.example.com:8443",
		Target: "/hook/a%2Fb?x=1", App: "shop", Body: `{"a": "é"}`,
	})
	if want := "t=1785553200,v2=5c3d2058d016b6263a3023da64b90e4d538a3a81ae791edd0934298106700a57"; got != want {
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
	a.App = "é shop"
	a.Began = time.Date(2026, 8, 1, 3, 0, 0, 700_000_000, time.UTC) // MySQL's clock, far from this machine's
	is(t, "the call", h.call(t, a), job.Succeeded)

	r := s.asked()[0]
	var at int64
	var sum string
	if _, err := fmt.Sscanf(r.header.Get("X-Gocrontab-Signature"), "t=%d,v2=%s", &at, &sum); err != nil {
		t.Fatalf("%q: %v", r.header.Get("X-Gocrontab-Signature"), err)
	}
	if off := at - a.Began.Unix(); off < 0 || off > 20 {
		t.Errorf("signed at %s, want %s", time.Unix(at, 0).UTC(), a.Began)
	}
	sign := func(host, app string) string {
		mac := hmac.New(sha256.New, []byte("k3y"))
		fmt.Fprintf(mac, "v2\n%d\n%s\n%s\n%s\n%s\n%s\n%s", at, r.header.Get("X-Gocrontab-Launch"), r.method, host, r.target, app, r.body)
		return hex.EncodeToString(mac.Sum(nil))
	}
	if want := sign(r.host, r.header.Get("X-Gocrontab-App")); sum != want {
		t.Errorf("got %s, want %s for %+v", sum, want, r)
	}
	if sum == sign("other.example.com", r.header.Get("X-Gocrontab-App")) || sum == sign(r.host, "other") {
		t.Error("the signature holds for another host or app")
	}

	a.HTTP.Sign.Secret = "other"
	is(t, "without the secret", h.call(t, a), job.Failed, "sign the request: no secret other")
	if n := len(s.asked()); n != 1 {
		t.Errorf("%d requests: one was sent unsigned", n)
	}
}

func TestSecrets(t *testing.T) {
	for name, value := range map[string]string{"FROM_ENV": "e", "BOTH": "e", "EMPTY": "", "OPEN": "o", "MINE": "m"} {
		t.Setenv("GOCRONTAB_SECRET_"+name, value)
	}
	dir := t.TempDir()
	inside := filepath.Join(dir, "secrets")
	for name, text := range map[string]string{
		"secrets/shop/both": "f\n", "secrets/shop/plain": "two\nlines\r\n", "secrets/shop/hollow": "\n",
		"secrets/shop/big": strings.Repeat("x", maxSecret+1), "secrets/*/shared": "all", "secrets/*/both": "all", "outside": "o", "secrets/lost": "l",
		"secrets/.hidden/x": "h",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grants, err := ParseGrants([]string{"from-env=shop|billing", "OPEN=*", "MINE=billing", "MINE=a.b"})
	if err != nil {
		t.Fatal(err)
	}
	n := NodeSecrets{Dir: inside, Grants: grants}

	const none = "jobs of the app %q may use; store it with go-crontab secret set, or give the node "
	for _, tc := range []struct {
		app  string
		name job.Secret
		want string
		err  string
	}{
		{"shop", "from-env", "e", ""},
		{"shop", "FROM.env", "e", ""},
		{"billing", "from-env", "e", ""},
		{"alpha", "from-env", "", fmt.Sprintf(none, "alpha") + "the file alpha/from-env in its --secrets-dir or the variable GOCRONTAB_SECRET_FROM_ENV with --grant-secret 'FROM_ENV=alpha'"},
		{"SHOP", "from-env", "", fmt.Sprintf(none, "SHOP")},
		{"alpha", "open", "o", ""},
		{"a.b", "mine", "m", ""},
		{"shop", "mine", "", fmt.Sprintf(none, "shop")},
		{"shop", "both", "f", ""},
		{"alpha", "both", "all", ""},
		{"shop", "plain", "two\nlines", ""},
		{"alpha", "plain", "", fmt.Sprintf(none, "alpha") + "the file alpha/plain"},
		{"alpha", "shared", "all", ""},
		{"shop", "lost", "", fmt.Sprintf(none, "shop") + "the file shop/lost"},
		{"shop", "empty", "", "GOCRONTAB_SECRET_EMPTY"},
		{"shop", "hollow", "", "its file is empty"},
		{"shop", "big", "", "at most"},
		{"..", "outside", "", "with --grant-secret 'OUTSIDE=..'"},
		{"", "lost", "", "neither the cluster"},
		{".", "lost", "", "neither the cluster"},
		{"secrets/shop", "both", "all", ""},
		{"../secrets/shop", "plain", "", "neither the cluster"},
		{".hidden", "x", "", "neither the cluster"},
		{"a|b", "plain", "", "with --grant-secret 'PLAIN=*'"},
		{"shop", "../outside", "", "is not a valid secret name"},
		{"shop", "", "", "is not a valid secret name"},
		{"shop", "a/b", "", "is not a valid secret name"},
		{"shop", "a\x00b", "", "is not a valid secret name"},
	} {
		got, err := n.Secret(tc.app, tc.name)
		if string(got) != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q of %q: got %q, %v, want %q, %q", tc.name, tc.app, got, err, tc.want, tc.err)
		}
	}
	if got, err := (NodeSecrets{}).Secret("shop", "from-env"); err == nil {
		t.Errorf("without a grant: got %q", got)
	}

	for text, want := range map[string]string{
		"": "want the name", "MINE": "want the name", "MINE=": "want the name", "=shop": "want the name", "MINE=a||b": "want the name",
		"MIEN=shop": "the variable GOCRONTAB_SECRET_MIEN is not set", "EMPTY=shop": "is not set", "KEY=*": "holds the key that seals", "key-file=*": "holds the key that seals",
	} {
		if got, err := ParseGrants([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

// TestGrantsAreAsked: jobs of two apps use a node's secret, and only one app has the grant.
func TestGrantsAreAsked(t *testing.T) {
	t.Parallel()
	cert, key := keyPair(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop", "key"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, func(http.ResponseWriter, *http.Request) {}, overTLS)
	h := requests(t, func(cfg *HTTPConfig) { cfg.Secrets = NodeSecrets{Dir: dir} })
	tlsOnly := job.HTTPTLS{SkipVerify: true}
	for name, use := range map[string]func(*job.HTTP){
		"a signature": func(r *job.HTTP) { r.TLS, r.Sign = &tlsOnly, &job.HTTPSign{Secret: "key"} },
		"a TLS key":   func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true, ClientCert: cert, ClientKey: "key"} },
	} {
		a := request(s.URL, use)
		a.App = "shop"
		is(t, name+" of shop", h.call(t, a), job.Succeeded)
		a.App = "alpha"
		is(t, name+" of alpha", h.call(t, a), job.Failed, "or give the node the file alpha/key in its --secrets-dir")
	}

	k := &Kinds{Command: shell(t)}
	a := attempt(`echo "$PW"`)
	a.App, a.Options.Env = "shop", map[string]string{"PW": "{{secret.key}}"}
	is(t, "a variable", k.Execute(t.Context(), a), job.Failed, "no secret key exists")
	if n := len(s.asked()); n != 2 {
		t.Errorf("%d requests were sent, want those of shop", n)
	}
}
