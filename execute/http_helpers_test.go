package execute

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
)

// site is a server on the loopback address that records its requests.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
	conns    int // that it accepted
}

// seen is a request as the server saw it.
type seen struct {
	method, target, host string
	header               http.Header
	body                 string
}

// newSite serves f, over TLS if change says so. Its end breaks connections rather than wait for handlers.
func newSite(t testing.TB, f http.HandlerFunc, change ...func(*httptest.Server)) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := new(strings.Builder)
		buffer := make([]byte, 1024)
		for {
			n, err := r.Body.Read(buffer)
			body.Write(buffer[:n])
			if err != nil {
				break
			}
		}
		s.mu.Lock()
		s.requests = append(s.requests, seen{r.Method, r.RequestURI, r.Host, r.Header.Clone(), body.String()})
		s.mu.Unlock()
		f(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
		}
	}

	s.Config.ErrorLog = log.New(discard{}, "", 0)

	for _, c := range change {
		c(s.Server)
	}

	if s.TLS == nil {
		s.Start()
	} else {
		s.StartTLS()
	}

	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func overTLS(s *httptest.Server)   { s.TLS = &tls.Config{} }
func overHTTP2(s *httptest.Server) { s.TLS, s.EnableHTTP2 = &tls.Config{}, true }

// asked returns the requests so far.
func (s *site) asked() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.requests...)
}

func (s *site) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// requests makes an executor that may call the loopback address. It keeps connections longer than any test takes.
func requests(t testing.TB, change ...func(*HTTPConfig)) *HTTP {
	t.Helper()
	cfg := HTTPConfig{Allow: []string{"127.0.0.0/8", "::1"}}
	for _, f := range change {
		f(&cfg)
	}
	h, err := NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h.pool.keep = time.Minute
	t.Cleanup(h.Close)
	return h
}

// request is an attempt that calls url.
func request(url string, change ...func(*job.HTTP)) Attempt {
	a := attempt("")
	a.HTTP = &job.HTTP{URL: url, Method: "GET", Expect: []string{"2xx"}, BodyLimit: 1000}
	for _, f := range change {
		f(a.HTTP)
	}
	if a.HTTP.Body != "" && a.HTTP.Method == "GET" {
		a.HTTP.Method = "POST"
	}
	a.Timeout = time.Minute
	return a
}

// call executes an attempt without killing it.
func (h *HTTP) call(t testing.TB, a Attempt) job.Result {
	t.Helper()
	return h.Execute(context.Background(), a)
}

// is fails the test unless an attempt has the outcome, and its reason contains all words.
func is(t testing.TB, what string, got job.Result, outcome job.Outcome, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(got.Reason.Text, w) {
			t.Errorf("%s: the reason is %q, want %q in it", what, got.Reason, w)
		}
	}
	if got.Outcome != outcome {
		t.Errorf("%s: got %s (%s), want %s", what, got.Outcome, got.Reason, outcome)
	}
	if started := got.Outcome != job.Missed && got.Outcome != job.Succeeded; started != (got.Reason.Code != "") {
		t.Errorf("%s: it ended %s with the code %q", what, got.Outcome, got.Reason.Code)
	}
	if strings.ContainsAny(got.Reason.Text, "\r\n") || len(got.Reason.Text) > maxReason {
		t.Errorf("%s: the reason is not one short line: %q", what, got.Reason)
	}
}

// names returns a resolver with its own name server. known returns the addresses of a name, nil if
// there is no such name.
func names(t testing.TB, known func(name string) []string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for query := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			if _, err := server.WriteTo(resolved(query[:n], known), from); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { server.Close(); <-ended })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// resolved answers a query for the addresses of a name, in the format of RFC 1035.
func resolved(query []byte, known func(string) []string) []byte {
	const header = 12
	end := header
	var labels []string

	for query[end] != 0 {
		n := int(query[end])
		labels = append(labels, string(query[end+1:end+1+n]))
		end += 1 + n
	}

	kind := binary.BigEndian.Uint16(query[end+1:])
	question := query[header : end+5]
	var answers []byte
	count := 0
	texts := known(strings.ToLower(strings.Join(labels, ".")))

	for _, text := range texts {
		addr := netip.MustParseAddr(text)
		if addr.Is4() != (kind == 1) || addr.Is6() != (kind == 28) {
			continue
		}
		answers = append(answers, 0xc0, header) // the name of the question
		answers = binary.BigEndian.AppendUint16(answers, kind)
		answers = append(answers, 0, 1, 0, 0, 0, 0) // IN, not to be kept
		answers = binary.BigEndian.AppendUint16(answers, uint16(len(addr.AsSlice())))
		answers = append(answers, addr.AsSlice()...)
		count++
	}

	flags := uint16(0x8180)
	if texts == nil {
		flags |= 3 // no such name
	}

	out := append([]byte(nil), query[:2]...)

	for _, v := range []uint16{flags, 1, uint16(count), 0, 0} {
		out = binary.BigEndian.AppendUint16(out, v)
	}

	return append(append(out, question...), answers...)
}
