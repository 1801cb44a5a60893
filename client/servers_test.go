package client_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/api/view"
	"go-crontab/client"
)

// fakeNode answers each request in the same way, and counts the requests.
type fakeNode struct {
	*httptest.Server
	asked atomic.Int32
}

func newFakeNode(t *testing.T, answer http.HandlerFunc) *fakeNode {
	n := &fakeNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(n.Close)
	return n
}

func refuses(status int, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":%q,"title":"no","status":%d}`, view.ProblemType+kind, status)
	}
}

// overloaded answers 503 as a proxy does.
func overloaded(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "upstream connect error or disconnect/reset before headers", http.StatusServiceUnavailable)
}

// hangsUp ends the connection after it has read the request.
func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestServersInTurn(t *testing.T) {
	t.Parallel()

	gone := httptest.NewServer(nil)
	gone.Close()

	for name, test := range map[string]struct {
		first  http.HandlerFunc // nil: nothing listens
		method string
		key    string
		moves  bool // the second server is asked
	}{
		"nothing listens":                    {nil, http.MethodPost, "", true},
		"a read that was lost":               {hangsUp, http.MethodGet, "", true},
		"a change that was lost":             {hangsUp, http.MethodPost, "", false},
		"a change with a key that was lost":  {hangsUp, http.MethodPost, "k", true},
		"a node that stops":                  {refuses(503, "unavailable"), http.MethodPost, "", true},
		"an unknown outcome":                 {refuses(503, "unknown-outcome"), http.MethodPost, "", false},
		"a proxy without its node, a read":   {refuses(502, ""), http.MethodGet, "", true},
		"a proxy without its node, a change": {refuses(502, ""), http.MethodPut, "", false},
		"a proxy that lost its node":         {overloaded, http.MethodPost, "", false},
		"a refusal":                          {refuses(422, "invalid"), http.MethodGet, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			first := gone.URL
			if test.first != nil {
				first = newFakeNode(t, test.first).URL
			}
			second := newFakeNode(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RequestURI() != "/api/v1/x?a=b" {
					t.Errorf("asked for %s", r.URL)
				}
				fmt.Fprint(w, "{}")
			})

			c, err := client.New(first + "," + second.URL)
			if err != nil {
				t.Fatal(err)
			}
			q := client.Request{
				Method: test.method, Path: "/api/v1/x", Query: map[string][]string{"a": {"b"}}, Key: test.key,
			}
			if test.method != http.MethodGet {
				q.Body = map[string]int{"n": 1}
			}

			_, _, err = c.Do(t.Context(), q)
			if moved := second.asked.Load() == 1; moved != test.moves || (err == nil) != test.moves {
				t.Errorf("the second server was asked: %t, error %v; want %t", moved, err, test.moves)
			}
		})
	}
}

// TestServerStays checks that a client goes on with the server that has answered.
func TestServerStays(t *testing.T) {
	t.Parallel()

	first := newFakeNode(t, refuses(503, "unavailable"))
	second := newFakeNode(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	c, err := client.New(first.URL + ", " + second.URL + "/")
	if err != nil {
		t.Fatal(err)
	}

	for range 3 {
		if _, _, err := c.Do(t.Context(), client.Request{Method: http.MethodGet, Path: "/x"}); err != nil {
			t.Fatal(err)
		}
	}
	if first.asked.Load() != 1 || second.asked.Load() != 3 {
		t.Errorf("asked %d and %d times, want 1 and 3", first.asked.Load(), second.asked.Load())
	}
}

// roundTrip is a transport of a test.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestStreamLeavesAHungServer: a node that accepts connections and never answers does not hold up a
// stream.
func TestStreamLeavesAHungServer(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		h := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "hung" {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			const hello = "event: hello\ndata: {\"kind\": \"hello\"}\n\n"
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req,
				Body: io.NopCloser(strings.NewReader(hello)),
			}, nil
		})}
		c, err := client.New("http://hung,http://other", client.WithHTTP(h))
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for e, err := range c.Events(ctx, client.EventFilter{}) {
			if err != nil || e.Kind != "hello" {
				t.Errorf("got %+v, %v; want the hello of the other server", e, err)
			}
			break
		}
	})
}

// TestOptions: options may come in any order, and leave the caller's HTTP client as it is.
func TestOptions(t *testing.T) {
	t.Parallel()

	bounded := false
	h := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		_, bounded = req.Context().Deadline()
		return nil, io.ErrUnexpectedEOF
	})}
	for name, options := range map[string][]client.Option{
		"the timeout first": {client.WithTimeout(time.Minute), client.WithHTTP(h)},
		"the timeout last":  {client.WithHTTP(h), client.WithTimeout(time.Minute)},
	} {
		c, err := client.New("http://one", options...)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = c.Do(t.Context(), client.Request{Method: http.MethodGet, Path: "/x"})
		if !bounded || h.Timeout != 0 {
			t.Errorf("%s: the request is bounded: %t; the caller's timeout is %s", name, bounded, h.Timeout)
		}
	}
}

// TestAnotherDefaultTransport is not parallel: the transport belongs to the whole program.
func TestAnotherDefaultTransport(t *testing.T) {
	standard := http.DefaultTransport
	defer func() { http.DefaultTransport = standard }()
	http.DefaultTransport = roundTrip(standard.RoundTrip)

	s := newFakeNode(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	c, err := client.New(s.URL + "," + s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Do(t.Context(), client.Request{Method: http.MethodGet, Path: "/x"}); err != nil {
		t.Error(err)
	}
}

func TestRootCAs(t *testing.T) {
	t.Parallel()

	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())

	for name, test := range map[string]struct {
		options []client.Option
		want    string
	}{
		"its authority": {[]client.Option{client.WithRootCAs(roots)}, ""},
		"the system's":  {nil, "unknown authority"},
	} {
		c, err := client.New(s.URL, test.options...)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.Do(t.Context(), client.Request{Method: http.MethodGet, Path: "/x"})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
