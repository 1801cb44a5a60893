package execute

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/job"
)

// newDeaf returns the address of a server that accepts connections and never answers.
func newDeaf(t testing.TB) string {
	t.Helper()
	return newRaw(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.Copy(io.Discard, c) })
}

// newRaw is a server that calls f for each connection and then closes it.
func newRaw(t testing.TB, f func(net.Conn, *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { f(c, bufio.NewReader(c)); c.Close() })
		}
	})

	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})

	return l.Addr().String()
}

func TestHTTPConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100_000)) })
	h := requests(t)
	for range 20 {
		is(t, "a call", h.call(t, request(s.URL)), job.Succeeded)
	}
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections for 20 calls one after another", n)
	}
	h = requests(t)
	h.pool.keep = keepUsed
	is(t, "a call", h.call(t, request(s.URL)), job.Succeeded)
	eventually(t, "the idle connection is closed", func() bool {
		h.pool.mu.Lock()
		defer h.pool.mu.Unlock()
		return h.pool.kept == 0 && len(h.pool.idle) == 0 && h.pool.sweeping == nil
	})
	is(t, "a call", h.call(t, request(s.URL)), job.Succeeded)
	if n := s.connections(); n != 3 {
		t.Errorf("%d connections, want a third one", n)
	}
}

func TestHTTP2ConnectionsAreShared(t *testing.T) {
	t.Parallel()
	const calls = 50
	var meeting sync.WaitGroup
	meeting.Add(calls)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/meet" {
			meeting.Done()
			meeting.Wait() // all at once
		}
		_, _ = io.WriteString(w, r.Proto)
	}, overHTTP2)
	h := requests(t)
	trust := func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} }
	if got := h.call(t, request(s.URL, trust)); got.Outcome != job.Succeeded || string(got.Output.Head) != "HTTP/2.0" {
		t.Fatalf("got %+v", got)
	}

	var wg sync.WaitGroup

	for range calls {
		wg.Go(func() {
			is(t, "a call", h.call(t, request(s.URL+"/meet", trust, func(r *job.HTTP) { r.Body = "b" })), job.Succeeded)
		})
	}

	wg.Wait()
	if n := s.connections(); n != 1 {
		t.Errorf("%d connections for %d calls at once", n, calls)
	}

	for _, r := range s.asked()[1:] {
		if r.method != "POST" || r.body != "b" || r.header.Get("Idempotency-Key") == "" {
			t.Fatalf("got %+v", r)
		}
	}
}

// TestHTTP2FullConnection makes more calls at once than a connection has streams.
func TestHTTP2FullConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) }, overHTTP2, func(s *httptest.Server) {
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 2}
	})
	h := requests(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 5 {
				is(t, "a call", h.call(t, request(s.URL, func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} })), job.Succeeded)
			}
		})
	}
	wg.Wait()
	if n := len(s.asked()); n != 100 {
		t.Errorf("%d requests, want 100", n)
	}
}

// TestHTTPSendsOnce: servers break a reused connection at a moment when a Transport would send the request again.
func TestHTTPSendsOnce(t *testing.T) {
	t.Parallel()

	for _, method := range []string{"GET", "PUT", "POST"} {
		var asked, accepted atomic.Int64
		addr := newRaw(t, func(c net.Conn, r *bufio.Reader) {
			accepted.Add(1)
			for n := 0; ; n++ {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				asked.Add(1)
				if n == 1 {
					return // the work may be done, but there is no answer
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
		h := requests(t)
		a := request("http://"+addr, func(r *job.HTTP) { r.Method = method })
		if method != "GET" {
			a.HTTP.Body = "b"
		}
		is(t, method, h.call(t, a), job.Succeeded)
		is(t, method, h.call(t, a), job.Failed, "the request was sent, but there was no response: the server closed the connection")
		if asked.Load() != 2 || accepted.Load() != 1 {
			t.Errorf("%s: %d requests over %d connections, want 2 over 1", method, asked.Load(), accepted.Load())
		}
	}
}

// TestHTTPIdleConnectionThatBroke: calls do not notice a broken idle connection.
func TestHTTPIdleConnectionThatBroke(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	h := requests(t)
	for range 5 {
		is(t, "a call", h.call(t, request(s.URL)), job.Succeeded)
		h.pool.mu.Lock()
		idle := h.pool.idle[destination{scheme: "http", addr: strings.TrimPrefix(s.URL, "http://")}][0]
		h.pool.mu.Unlock()
		s.CloseClientConnections()
		eventually(t, "the end of the connection is known", func() bool { return idle.Err() != nil })
	}
	if n := s.connections(); n != 5 {
		t.Errorf("%d connections, want 5", n)
	}
}

// TestHTTPUnreadAnswerEndsItsConnection: the rest of an answer must not become part of the next one.
func TestHTTPUnreadAnswerEndsItsConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			_, _ = w.Write(make([]byte, maxAnswer+1000))
			return
		}
		_, _ = io.WriteString(w, "short")
	})
	h := requests(t)
	is(t, "a long answer", h.call(t, request(s.URL+"/long")), job.Succeeded)
	if got := h.call(t, request(s.URL)); string(got.Output.Head) != "short" {
		t.Errorf("got %q", got.Output.Head)
	}
	if n := s.connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

// keyPair returns a client certificate and its key, as PEM.
func keyPair(t testing.TB) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", der), block("EC PRIVATE KEY", text)
}

func TestHTTPOverTLS(t *testing.T) {
	t.Parallel()
	secrets := t.TempDir()
	cert, key := keyPair(t)
	_, otherKey := keyPair(t)
	if err := os.Mkdir(filepath.Join(secrets, "default"), 0o700); err != nil {
		t.Fatal(err)
	}

	for name, text := range map[string]string{"key": key, "other-key": otherKey} {
		if err := os.WriteFile(filepath.Join(secrets, "default", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	h := requests(t, func(cfg *HTTPConfig) { cfg.Secrets = NodeSecrets{Dir: secrets} })
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("shown ", len(r.TLS.PeerCertificates)))
	}, overTLS, func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequestClientCert })
	strict := newSite(t, func(http.ResponseWriter, *http.Request) {}, overTLS, func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequireAnyClientCert })
	plain := newSite(t, func(http.ResponseWriter, *http.Request) {})
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})) // for example.com and 127.0.0.1

	for name, tc := range map[string]struct {
		url     string
		tls     *job.HTTPTLS
		outcome job.Outcome
		says    string // in the reason or the output
	}{
		"nobody vouches for it":       {s.URL, nil, job.Failed, "TLS: no trusted authority signed the server's certificate"},
		"its authority is given":      {s.URL, &job.HTTPTLS{CA: ca}, job.Succeeded, "200"},
		"another name":                {s.URL, &job.HTTPTLS{CA: ca, ServerName: "example.com"}, job.Succeeded, "200"},
		"a name that is not its":      {s.URL, &job.HTTPTLS{CA: ca, ServerName: "example.org"}, job.Failed, "TLS: the server's certificate is for another host"},
		"whoever it is":               {s.URL, &job.HTTPTLS{SkipVerify: true}, job.Succeeded, "200"},
		"a certificate of ours":       {s.URL, &job.HTTPTLS{CA: ca, ClientCert: cert, ClientKey: "key"}, job.Succeeded, "shown"},
		"one that is asked for":       {strict.URL, &job.HTTPTLS{SkipVerify: true, ClientCert: cert, ClientKey: "key"}, job.Succeeded, "200"},
		"one that is not there":       {strict.URL, &job.HTTPTLS{SkipVerify: true}, job.Failed, "TLS: the server rejected the handshake: tls: certificate required"},
		"a key that does not fit":     {s.URL, &job.HTTPTLS{CA: ca, ClientCert: cert, ClientKey: "other-key"}, job.Failed, "client certificate and the secret other-key"},
		"a key that nobody has":       {s.URL, &job.HTTPTLS{CA: ca, ClientCert: cert, ClientKey: "lost"}, job.Failed, "GOCRONTAB_SECRET_LOST"},
		"an authority that is none":   {s.URL, &job.HTTPTLS{CA: "rubbish"}, job.Failed, "http.tls.ca: holds no certificate"},
		"a server without TLS":        {"https" + strings.TrimPrefix(plain.URL, "http"), nil, job.Failed, "TLS: the server does not speak TLS on this port"},
		"plain text to one with TLS":  {"http" + strings.TrimPrefix(s.URL, "https"), nil, job.Failed, "HTTP 400 Bad Request"},
		"options that are not for it": {plain.URL, &job.HTTPTLS{SkipVerify: true}, job.Succeeded, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the second may find the connection of the first
				got := h.call(t, request(tc.url, func(r *job.HTTP) { r.TLS = tc.tls }))
				is(t, name, got, tc.outcome)
				if said := got.Reason.Text + got.Output.Text(); !strings.Contains(said, tc.says) {
					t.Errorf("got %q, want %q in it", said, tc.says)
				}
				if tc.tls == nil || tc.tls.ClientCert == "" {
					if got.Output.Text() == "shown" {
						t.Error("the connection of another job was used")
					}
				}
			}
		})
	}
}
