package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
)

// ages is far longer than any test waits.
const ages = 30 * time.Second

func TestHTTPOutcomes(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/status":
			code, _ := strconv.Atoi(r.URL.RawQuery)
			w.WriteHeader(code)
			fmt.Fprintf(w, "this is %d", code)
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/hang up":
			panic(http.ErrAbortHandler)
		case "/break off":
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "so far so g")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/rubbish":
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_ = c.Close()
		case "/switch":
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", "websocket")
			w.WriteHeader(http.StatusSwitchingProtocols)
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			_, _ = io.WriteString(w, "at last")
		case "/headers":
			for i := range 100 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 8<<10))
			}
		}
	})

	h := requests(t)
	expect := func(items ...string) func(*job.HTTP) { return func(r *job.HTTP) { r.Expect = items } }

	for name, tc := range map[string]struct {
		path    string
		change  func(*job.HTTP)
		outcome job.Outcome
		reason  string
		output  string
	}{
		"a good status":                {"/status?200", nil, job.Succeeded, "HTTP 200 OK", "this is 200"},
		"no body":                      {"/none", nil, job.Succeeded, "HTTP 204 No Content", ""},
		"only a head":                  {"/status?200", func(r *job.HTTP) { r.Method = "HEAD" }, job.Succeeded, "HTTP 200 OK", ""},
		"a bad status":                 {"/status?503", nil, job.Failed, "HTTP 503 Service Unavailable, expected 2xx", "this is 503"},
		"a status that nobody knows":   {"/status?599", nil, job.Failed, "HTTP 599, expected 2xx", "this is 599"},
		"a bad status that is good":    {"/status?404", expect("2xx", "404"), job.Succeeded, "HTTP 404 Not Found", "this is 404"},
		"a good status that is bad":    {"/status?200", expect("201-204", "404"), job.Failed, "HTTP 200 OK, expected 201-204, 404", "this is 200"},
		"a redirect":                   {"/status?302", nil, job.Failed, "HTTP 302 Found, expected 2xx", "this is 302"},
		"no answer":                    {"/hang%20up", nil, job.Failed, "the request was sent, but there was no response: the server closed the connection", ""},
		"half an answer":               {"/break%20off", nil, job.Failed, "the response (HTTP 200 OK) broke off after 11 bytes: the server closed the connection", "so far so g"},
		"no HTTP":                      {"/rubbish", nil, job.Failed, `the request was sent, but there was no response: the server did not send HTTP: malformed HTTP status code "mail.example"`, ""},
		"a protocol that is not HTTP":  {"/switch", nil, job.Failed, "HTTP 101 Switching Protocols, expected 2xx", ""},
		"statuses before the last":     {"/early", nil, job.Succeeded, "HTTP 200 OK", "at last"},
		"headers without end":          {"/headers", nil, job.Failed, "the request was sent, but there was no response: server response headers exceeded 262144 bytes; aborted", ""},
		"a definition nobody checked":  {"", func(r *job.HTTP) { r.URL = "gopher://x/{{due}}" }, job.Failed, "http.url: want http:// or https:// and a host", ""},
		"a placeholder nobody checked": {"/{{x}}", nil, job.Failed, "http.url: has the unknown placeholder {{x}}; known are {{due}}, {{scheduled}}, {{attempt}}, {{launch}}, {{job}}, {{app}}, {{upstream_run}} and {{upstream_outcome}}", ""},
		"a header nobody checked":      {"/none", func(r *job.HTTP) { r.Headers = map[string]string{"X-A": "b\r\nX-B: c"} }, job.Failed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := request(s.URL + tc.path)
			if tc.change != nil {
				tc.change(a.HTTP)
			}
			got := h.call(t, a)
			is(t, tc.path, got, tc.outcome)
			if tc.reason != "" && got.Reason.Text != tc.reason || got.Reason.Text == "" {
				t.Errorf("the reason is %q, want %q", got.Reason, tc.reason)
			}
			if want := codeOfRequest(tc.outcome, tc.reason); tc.reason != "" && got.Reason.Code != want {
				t.Errorf("the code is %q, want %q", got.Reason.Code, want)
			}
			if got.Output.Text() != tc.output || got.ExitCode != nil {
				t.Errorf("output %q, exit code %v, want %q and none", got.Output.Text(), got.ExitCode, tc.output)
			}
		})
	}

	t.Run("no server", func(t *testing.T) {
		t.Parallel()
		gone := newSite(t, func(http.ResponseWriter, *http.Request) {})
		gone.Close()
		got := h.call(t, request(gone.URL))
		is(t, "no server", got, job.Failed, "cannot connect to "+strings.TrimPrefix(gone.URL, "http://")+": connection refused")
	})
}

// codeOfRequest returns the code that belongs to a text.
func codeOfRequest(o job.Outcome, text string) job.ReasonCode {
	switch {
	case o == job.Succeeded:
		return ""
	case strings.HasPrefix(text, "HTTP "):
		return job.ReasonHTTPStatus
	case strings.HasPrefix(text, "the request was sent"):
		return job.ReasonNoAnswer
	case strings.HasPrefix(text, "the response ("):
		return job.ReasonAnswerBroken
	}
	return job.ReasonRequestInvalid
}

// TestHTTPRequest checks the request as a server gets it.
func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	h := requests(t)
	a := request(s.URL+"/{{job}}?n={{attempt}}", func(r *job.HTTP) {
		r.Headers = map[string]string{"authorization": "Bearer x", "X-Due": "{{due}}"}
		r.Body = `{"launch": "{{launch}}"}`
	})

	a.Job, a.App = "é 100%", "my app"
	is(t, "the call", h.call(t, a), job.Succeeded)
	got := s.asked()[0]
	const launch = "30064771079-2"
	if got.method != "POST" || got.target != "/%C3%A9%20100%25?n=2" || got.body != `{"launch": "`+launch+`"}` || "http://"+got.host != s.URL {
		t.Errorf("got %+v", got)
	}

	for name, want := range map[string]string{
		"Authorization": "Bearer x", "X-Due": "2026-08-01T03:00:00.25Z", "Content-Type": "application/json", "Content-Length": "27",
		"User-Agent": "go-crontab", "Idempotency-Key": launch, "X-Gocrontab-Launch": launch, "X-Gocrontab-Due": "2026-08-01T03:00:00.25Z",
		"X-Gocrontab-Attempt": "2", "X-Gocrontab-Job": "%C3%A9 100%25", "X-Gocrontab-App": "my app", "X-Gocrontab-Signature": "", "Accept-Encoding": "",
	} {
		if v := strings.Join(got.header[http.CanonicalHeaderKey(name)], "|"); v != want {
			t.Errorf("%s: got %q, want %q", name, v, want)
		}
	}

	a = request(s.URL, func(r *job.HTTP) {
		r.Method = "POST"
		r.Headers = map[string]string{"Idempotency-Key": "{{app}}/{{job}}/{{due}}", "User-Agent": "curl/8"}
	})

	is(t, "the second call", h.call(t, a), job.Succeeded)
	got = s.asked()[1]
	if got.header.Get("Idempotency-Key") != "default/back up/2026-08-01T03:00:00.25Z" || got.header.Get("User-Agent") != "curl/8" ||
		got.header.Get("Content-Length") != "0" || got.target != "/" {
		t.Errorf("got %+v", got)
	}
}

func TestHTTPOutput(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.RawQuery)
		_, _ = w.Write(append(bytes.Repeat([]byte("h"), n/2), bytes.Repeat([]byte("t"), n-n/2)...))
	})

	h := requests(t)
	limit := func(n int) func(*job.HTTP) { return func(r *job.HTTP) { r.BodyLimit = n } }

	for _, tc := range []struct{ sent, limit, head, tail int }{
		{0, 1000, 0, 0}, {1000, 1000, 1000, 0}, {1001, 1000, 500, 500}, {1 << 20, 1000, 500, 500}, {1 << 20, 1, 0, 1}, {5, 1, 0, 1},
	} {
		got := h.call(t, request(fmt.Sprint(s.URL, "/?", tc.sent), limit(tc.limit)))
		is(t, "the answer", got, job.Succeeded)
		if len(got.Output.Head) != tc.head || len(got.Output.Tail) != tc.tail || got.Output.Bytes != int64(tc.sent) {
			t.Errorf("of %d bytes within %d: kept %d and %d of %d, want %d and %d", tc.sent, tc.limit,
				len(got.Output.Head), len(got.Output.Tail), got.Output.Bytes, tc.head, tc.tail)
		}
		if tc.tail == 500 && (got.Output.Head[499] != 'h' || got.Output.Tail[0] != 't') {
			t.Errorf("kept %q", got.Output.Text())
		}
	}

	var heard int
	a := request(s.URL+"/?5000", limit(10))
	a.Sink = func(p []byte) { heard += len(p) }
	if is(t, "the answer", h.call(t, a), job.Succeeded); heard != 5000 {
		t.Errorf("the sink heard %d bytes of 5000", heard)
	}

	// A stored definition may say anything.
	if got := h.call(t, request(s.URL+"/?100", limit(-5))); got.Output.Bytes != 100 || len(got.Output.Head) != 100 {
		t.Errorf("got %+v", got)
	}

	got := h.call(t, request(s.URL+"/?"+strconv.Itoa(maxAnswer+1)))
	is(t, "a huge answer", got, job.Succeeded, "HTTP 200 OK; the response is longer than 16 MiB")
	if got.Output.Bytes != maxAnswer {
		t.Errorf("read %d bytes", got.Output.Bytes)
	}
}

// TestHTTPStopped: a timeout or a kill comes at each stage.
func TestHTTPStopped(t *testing.T) {
	t.Parallel()
	left := make(chan string, 100)
	silent, drips := make(chan struct{}, 1), make(chan struct{}, 1)
	tell := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}

	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/drip":
			for i := 0; r.Context().Err() == nil && i < 3000; i++ {
				_, _ = io.WriteString(w, ".")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		case "/silent":
			tell(silent)
			select {
			case <-r.Context().Done():
			case <-time.After(ages):
			}
		}
		left <- r.URL.Path
	})

	deaf := newDeaf(t)
	h := requests(t)
	why := errors.New("killed by ops")

	for _, tc := range []struct {
		what, url, progress string
		output              bool
		so                  chan struct{} // closed when the stage is reached; nil: at the beginning
	}{
		{"while connecting", "https://" + deaf, "the connection was not established yet, so nothing was sent", false, nil},
		{"without an answer", s.URL + "/silent", "the request was sent, but there was no response yet", false, silent},
		{"while the answer comes", s.URL + "/drip", "the response (HTTP 200 OK) was still arriving", true, drips},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel()
			a := request(tc.url)
			a.Timeout = 5 * time.Second
			a.Sink = func([]byte) { tell(drips) }
			got := h.call(t, a)
			is(t, tc.what, got, job.TimedOut, "the request took longer than its timeout of 5s; "+tc.progress)
			if (got.Output.Bytes > 0) != tc.output {
				t.Errorf("output is %q", got.Output.Text())
			}
			ctx, kill := context.WithCancelCause(context.Background())
			if tc.so != nil {
				<-tc.so // of the first
			}
			go func() {
				if tc.so != nil {
					<-tc.so
				}
				time.Sleep(300 * time.Millisecond)
				kill(why)
			}()
			a.Timeout = 0
			began := time.Now()
			is(t, tc.what, h.Execute(ctx, a), job.Killed, "killed by ops; "+tc.progress)
			if took := time.Since(began); took > ages/2 {
				t.Errorf("the kill took %s", took)
			}
			is(t, tc.what+", afterwards", h.Execute(ctx, a), job.Killed, "killed by ops")
			if !strings.HasPrefix(tc.url, "http:") {
				return
			}
			for range 2 { // the server notices it
				select {
				case <-left:
				case <-time.After(ages / 2):
					t.Fatal("the server goes on")
				}
			}
		})
	}
}

// TestHTTPLate: connecting takes until the attempt may no longer begin.
func TestHTTPLate(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*httptest.Server){"HTTP/1": overTLS, "HTTP/2": overHTTP2} {
		s, h := newSite(t, func(http.ResponseWriter, *http.Request) {}, over), requests(t)
		a := request(s.URL, func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} })
		a.May = func() bool { return s.connections() == 0 }
		is(t, name, h.call(t, a), job.Missed, errLate.Error())
		if n := len(s.asked()); n != 0 {
			t.Errorf("%s: %d requests were sent", name, n)
		}
		a.May = func() bool { return true }
		is(t, name, h.call(t, a), job.Succeeded)
		if n := s.connections(); n != 1 {
			t.Errorf("%s: %d connections, want that of the late attempt used", name, n)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	sh := shell(t)
	var handlers Handlers
	handlers.Register("key", func(_ context.Context, a Attempt) error { return errors.New(string(a.Payload)) })
	h := requests(t)
	k := &Kinds{Command: sh, HTTP: h, Handler: &handlers}
	is(t, "a command", k.Execute(context.Background(), attempt("exit 3")), job.Failed, "exit status 3")
	is(t, "a request", k.Execute(context.Background(), request(s.URL)), job.Succeeded, "HTTP 200 OK")
	a := attempt("")
	is(t, "nothing", k.Execute(context.Background(), a), job.Failed, "neither a command, http nor a handler")
	a.Handler, a.Payload = "key", []byte("its payload")
	is(t, "a handler", k.Execute(context.Background(), a), job.Failed, "its payload")
	is(t, "no executor", new(Kinds).Execute(context.Background(), attempt("true")), job.Failed, "this node does not run commands")

	if n := k.KillAll(9, nil); n != 0 {
		t.Errorf("KillAll found %d commands", n)
	}
	done := make(chan job.Result, 1)
	go func() { done <- k.Execute(context.Background(), attempt("sleep 60")) }()
	eventually(t, "the command runs", func() bool { return len(sh.live.all()) == 1 })
	if n := k.KillAll(9, errors.New("enough")); n != 1 {
		t.Errorf("KillAll found %d commands, want 1", n)
	}
	is(t, "the killed command", <-done, job.Killed, "enough")

	is(t, "another request", k.Execute(context.Background(), request(s.URL)), job.Succeeded)
	k.Close()
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if h.pool.kept != 0 {
		t.Errorf("%d connections are kept, and nobody is to use them", h.pool.kept)
	}
}

// TestHTTPDetails: the result has the status and the times of the response, and its headers if it is no success, without
// cookies and secrets.
func TestHTTPDetails(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "id=session")
		w.Header().Set("X-Echo", "the key is correct-horse")
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "body")
	})

	h := requests(t)
	a := request(s.URL + "/bad")
	a.known = &known{masker: maskOf("correct-horse")}
	got := h.call(t, a).Output.Answer
	if got == nil || got.Status != http.StatusTeapot || got.Proto != "HTTP/1.1" ||
		got.Connected <= 0 || got.FirstByte < got.Connected || got.Complete < got.FirstByte {
		t.Fatalf("got %+v", got)
	}
	headers := fmt.Sprint(got.Headers)
	if !strings.Contains(headers, "[Set-Cookie ***]") || !strings.Contains(headers, "[X-Echo the key is ***]") {
		t.Errorf("got %s", headers)
	}

	if got = h.call(t, request(s.URL+"/good")).Output.Answer; got == nil || got.Status != 200 || got.Headers != nil {
		t.Errorf("got %+v", got)
	}
}
