package api_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
)

// flood is more connections than a node holds.
const flood = 160

// dialFrom connects from a loopback address; "" for the usual one.
func dialFrom(t *testing.T, from, addr string) net.Conn {
	t.Helper()
	var d net.Dialer
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}

	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { c.Close() })
	return c
}

// sends writes a request to a connection, and returns the status of the answer.
func sends(c net.Conn, limit time.Duration, method, path, more string) (int, error) {
	c.SetDeadline(time.Now().Add(limit))
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path, more); err != nil {
		return 0, err
	}

	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()

	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// answered requires an answer on a new connection before any quiet connection or slow request times
// out.
func answered(t *testing.T, from, addr, path string) {
	t.Helper()
	if status, err := sends(dialFrom(t, from, addr), 12*time.Second, "GET", path, ""); err != nil || status != 200 {
		t.Errorf("%s from %q: got %d, %v, want 200", path, from, status, err)
	}
}

// TestQuietConnectionsMakeRoom: many idle connections shut out no other client.
func TestQuietConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	addr, stop := listening(t, s.cfg)
	here := *s
	here.url = "http://" + addr
	stream := here.listen("/api/v1/events")
	stream.hello()
	other := dialFrom(t, "127.0.0.3", addr)
	if status, err := sends(other, patience, "GET", "/healthz", ""); err != nil || status != 200 {
		t.Fatalf("got %d, %v", status, err)
	}

	for range flood {
		if status, err := sends(dialFrom(t, "127.0.0.2", addr), patience, "GET", "/healthz", ""); err != nil ||
			status != 200 {
			t.Fatalf("a connection of the flood: got %d, %v", status, err)
		}
	}

	answered(t, "127.0.0.4", addr, "/healthz")
	answered(t, "127.0.0.2", addr, "/healthz")

	if status, err := sends(other, patience, "GET", "/healthz", ""); err != nil || status != 200 {
		t.Errorf("the quiet connection of another address: got %d, %v, want it left alone", status, err)
	}

	s.create("heard", nil)
	stream.action("job", "create")
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestSlowStrangersMakeRoom: endless requests of strangers hold up no client and harm no
// authenticated one.
func TestSlowStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	addr, _ := listening(t, s.cfg)
	here := *s
	here.url = "http://" + addr
	stream := here.listen("/api/v1/events")
	stream.hello()

	const body = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
	for range flood {
		io.WriteString(dialFrom(t, "127.0.0.2", addr), "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\n"+body)
	}

	answered(t, "127.0.0.4", addr, "/healthz")

	s.create("heard", nil)
	stream.action("job", "create")
}

// TestProbesAnswerInAFlood fills the API with requests that may not be cut off. Probes are still
// answered.
func TestProbesAnswerInAFlood(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	server := api.New(s.cfg)
	listen := func(serve func(context.Context, net.Listener) error) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go serve(t.Context(), l)
		return l.Addr().String()
	}

	addr, probes := listen(server.Serve), listen(server.ServeProbes)

	slow := "Authorization: Bearer " + s.token +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	for range 128 { // 100 Continue means that the handler reads the body, so the caller is authenticated
		c := dialFrom(t, "", addr)
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\n"+slow)
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, " 100 ") {
			t.Fatalf("got %q, %v", line, err)
		}
	}

	for _, path := range []string{"/healthz", "/readyz"} {
		answered(t, "", probes, path)
	}

	for range flood {
		dialFrom(t, "", probes)
	}

	answered(t, "", probes, "/healthz")
	for _, path := range []string{"/", "/metrics", "/api/v1/me", "/openapi.json"} {
		if status, err := sends(dialFrom(t, "", probes), patience, "GET", path,
			"Authorization: Bearer "+s.token+"\r\n"); err != nil || status != 404 {
			t.Errorf("%s at the listener for probes: got %d, %v, want 404", path, status, err)
		}
	}
}

// TestManyViewersLeaveRoomForAnAdmin: a caller with few streams gets one when others have many. A
// cluster admin gets one even if every caller has only one.
func TestManyViewersLeaveRoomForAnAdmin(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s, server := s.other(nil)
	t.Cleanup(server.Close)
	var ears []*ear
	for i := range 60 {
		e := s.as(s.newToken(fmt.Sprint("viewer", i), auth.Viewer)).listen("/api/v1/events")
		e.hello()
		ears = append(ears, e)
	}

	late := s.as(s.newToken("late", auth.Viewer))
	if r := late.call("GET", "/api/v1/events", nil).want(503); !strings.Contains(r.body, "no-stream") ||
		!strings.Contains(r.body, "late has 0 of them") {
		t.Errorf("got %s", r.body)
	}

	s.listen("/api/v1/events").hello()
	for _, e := range ears[:10] {
		e.hang()
	}

	await(t, "room for others", patience, func() bool { n, _, _ := server.Listeners(); return n == 51 })

	greedy := s.as(s.newToken("greedy", auth.Viewer))
	var taken []*ear
	for range 9 {
		e := greedy.listen("/api/v1/events")
		e.hello()
		taken = append(taken, e)
	}

	late.listen("/api/v1/events").hello()
	if why := taken[0].closes(); !strings.Contains(why, "one was closed for another caller") {
		t.Errorf("the oldest stream of who has most: got %q", why)
	}

	greedy.call("GET", "/api/v1/jobs", nil).want(200)
}

// newTLS makes a certificate for localhost and cron.example.
func newTLS(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost", "cron.example"},
		NotAfter: time.Now().Add(time.Hour),
	}

	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}

	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}

	cfg, err := api.LoadTLS(write("cert", "CERTIFICATE", cert), write("key", "PRIVATE KEY", secret),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestQuietHTTP2MakesRoom: HTTP/2 connections count like others.
func TestQuietHTTP2MakesRoom(t *testing.T) {
	t.Parallel()
	addr, _ := listening(t, api.Config{Ready: func() error { return nil }, TLS: newTLS(t)})
	get := func(limit time.Duration) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		client := http.Client{Transport: transport, Timeout: limit}
		resp, err := client.Get("https://" + addr + "/healthz")
		if err != nil {
			t.Fatal(err)
		}

		resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Fatalf("got %s", resp.Proto)
		}
	}

	for range flood {
		get(patience)
	}

	get(12 * time.Second)
}

// TestTLSIsStrong: weak suites of old clients are refused, and browsers are told to return over
// TLS.
func TestTLSIsStrong(t *testing.T) {
	t.Parallel()
	addr, _ := listening(t, api.Config{
		Ready: func() error { return nil }, TLS: newTLS(t), Hosts: []string{"cron.example"},
	})
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		name := suite.Name
		if strings.HasPrefix(name, "TLS_AES") || strings.HasPrefix(name, "TLS_CHACHA20") { // a TLS 1.3 suite
			continue
		}

		c, err := tls.Dial("tcp", addr, &tls.Config{
			InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID},
		})
		if err == nil {
			c.Close()
		}

		want := strings.Contains(name, "_ECDHE_ECDSA_") &&
			(strings.Contains(name, "_GCM_") || strings.Contains(name, "_CHACHA20_"))
		if want != (err == nil) {
			t.Errorf("%s: got %v, want it taken: %v", name, err, want)
		}
	}

	plain, _ := listening(t, api.Config{Ready: func() error { return nil }, Hosts: []string{"cron.example"}})
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: patience,
	}
	for _, tc := range []struct {
		url, host string
		want      bool
	}{
		{"https://" + addr, "cron.example", true}, {"https://" + addr, "cron.example:8610", true},
		{"https://" + addr, "localhost", false},
		{"https://" + addr, "127.0.0.1", false}, {"https://" + addr, "[::1]:8610", false}, {
			"http://" + plain, "cron.example", false,
		},
	} {
		req, err := http.NewRequest("GET", tc.url+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}

		req.Host = tc.host
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}

		resp.Body.Close()
		if got := resp.Header.Get("Strict-Transport-Security"); (got != "") != tc.want {
			t.Errorf("%s as %s: got %q, want one: %v", tc.url, tc.host, got, tc.want)
		}
	}
}

// TestStrangersLearnLittle: public answers name neither the machine nor the program's version.
func TestStrangersLearnLittle(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, func(c *api.Config) { c.Version = "v9.8.7-secret" })
	ids := map[string]bool{}
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/openapi.yaml", "/docs", "/",
		"/api/v1/login", "/api/v1/jobs", "/none"} {
		r := s.as("").call("GET", path, nil)
		id := r.header.Get("X-Request-Id")
		if id == "" || ids[id] || strings.HasPrefix(id, machine) {
			t.Errorf("%s: the request is called %q", path, id)
		}

		ids[id] = true
		for _, secret := range []string{"v9.8.7", "knoten-1"} {
			if strings.Contains(r.body, secret) || strings.Contains(fmt.Sprint(r.header), secret) {
				t.Errorf("%s says %s", path, secret)
			}
		}
	}
}
