package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
)

// readAnswer reads a body to its end, or one message of a stream.
func readAnswer(resp *http.Response) ([]byte, error) {
	if resp.Header.Get("Content-Type") != "text/event-stream" || resp.Request.Method == http.MethodHead {
		return io.ReadAll(resp.Body)
	}

	var out []byte
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		out = append(append(out, lines.Bytes()...), '\n')
		if strings.HasPrefix(lines.Text(), "data:") {
			break
		}
	}

	return out, nil
}

// heard is a message of a stream.
type heard struct {
	event, id string
	data      string
}

func (h *heard) object(t testing.TB) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(h.data), &o); err != nil {
		t.Fatalf("%s: %v in %q", h.event, err, h.data)
	}
	return o
}

// ear is a test's subscription to a stream.
type ear struct {
	t    testing.TB
	what string
	said chan heard // closed when the stream has ended
	hang func()

	comments chan bool
	seen     []string
}

// listen opens a stream; header are names and values.
func (s *site) listen(path string, header ...string) *ear {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}

	req.Header.Set("Accept", "text/event-stream")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}

	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	resp, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}

	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" ||
		resp.Header.Get("Content-Encoding") != "" {
		text, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("%s: got %d %s %s", path, resp.StatusCode, got, text)
	}

	e := &ear{t: s.t, what: path, said: make(chan heard, 1<<16), hang: cancel, comments: make(chan bool, 1000)}
	s.t.Cleanup(cancel)
	schema := "#/components/schemas/Event"
	if strings.Contains(path, "/output") {
		schema = "#/components/schemas/OutputEvent"
	}

	go func() {
		defer close(e.said)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for h := (heard{}); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				h.id = value
			case "event":
				h.event = value
			case "data":
				h.data = value
			case ":", "":
				if lines.Text() != "" {
					e.comments <- true
				} else if h.event != "" {
					if h.event != "close" && h.event != "end" {
						if err := getContract(s.t).validate(schema, h.data); err != nil {
							s.t.Errorf("%s: %s is not as documented: %v\n%s", path, h.event, err, h.data)
						}
					}
					e.said <- h
					h = heard{}
				}
			}
		}
	}()

	return e
}

const patience = 60 * time.Second

// next returns the next message; false when the stream has ended.
func (e *ear) next() (heard, bool) {
	e.t.Helper()
	select {
	case h, ok := <-e.said:
		e.seen = append(e.seen, h.event+" "+h.id+" "+h.data)
		return h, ok
	case <-time.After(patience):
		e.t.Fatalf("%s: nothing is said; before it was\n%s", e.what, strings.Join(e.seen, "\n"))
	}
	return heard{}, false
}

// until skips messages up to the wanted one, and returns it.
func (e *ear) until(what string, wanted func(h heard, o object) bool) (heard, object) {
	e.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		h, ok := e.next()
		if !ok {
			break
		}
		if o := h.object(e.t); wanted(h, o) {
			return h, o
		}
	}

	e.t.Fatalf("%s: never heard %s; heard was\n%s", e.what, what, strings.Join(e.seen, "\n"))
	return heard{}, nil
}

// hello waits for the first message of a stream of events.
func (e *ear) hello() object {
	e.t.Helper()
	h, _ := e.next()
	if h.event != "hello" {
		e.t.Fatalf("%s: got %+v, want hello first", e.what, h)
	}
	return h.object(e.t)
}

// action waits for an event of a kind with an action.
func (e *ear) action(kind, action string) (heard, object) {
	e.t.Helper()
	return e.until(kind+" "+action, func(h heard, o object) bool {
		return h.event == kind && o.text("action") == action
	})
}

// closes waits for the end of the stream, and returns its reason.
func (e *ear) closes() string {
	e.t.Helper()
	_, o := e.until("close", func(h heard, o object) bool { return h.event == "close" })
	if _, more := e.next(); more {
		e.t.Errorf("%s: more is said behind close", e.what)
	}
	return o.text("reason")
}

// other is the API of another node of the same cluster, which executes nothing.
func (s *site) other(mod func(*api.Config)) (*site, *api.Server) {
	s.t.Helper()
	o := *s
	o.cfg.Node = "knoten-2"
	if mod != nil {
		mod(&o.cfg)
	}
	server := api.New(o.cfg)
	o.serveHandler(server)
	return &o, server
}

// TestStreamsAreCutOff: a subscriber that loses access is cut off within seconds, and told the
// reason.
func TestStreamsAreCutOff(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	run := s.running(s.create("long", object{"command": "sleep 600", "app": "a"}).text("id"))
	output := "/api/v1/runs/" + run + "/output"
	issuer := auth.Issuer{DB: s.db.DB}
	made, token, err := issuer.Create(t.Context(), auth.Spec{
		Name: "reader", Grant: auth.Grant{Role: auth.Viewer, Apps: []string{"a"}},
	})
	if err != nil {
		t.Fatal(err)
	}

	one, two := s.as(token).listen("/api/v1/events"), s.as(token).listen(output)
	one.hello()
	s.call("DELETE", "/api/v1/tokens/"+fmt.Sprint(made.ID), nil).want(204)
	for _, e := range []*ear{one, two} {
		if why := e.closes(); !strings.Contains(why, "token reader was revoked") {
			t.Errorf("%s: a revoked token: got %q", e.what, why)
		}
	}

	// A run stays in the app in which it was started, even if its job moves.
	s.call("PATCH", "/api/v1/jobs/"+s.call("GET", "/api/v1/runs/"+run, nil).object().text("job_id"),
		object{"app": "b"}).want(200)
	s.as(s.newToken("of-a", auth.Viewer, "a")).listen(output)
	s.as(s.newToken("of-b", auth.Viewer, "b")).call("GET", output, nil, "Accept", "text/event-stream").want(404)
	brief := s.call("POST", "/api/v1/tokens",
		object{"name": "brief", "role": "viewer",
			"expires": time.Now().Add(5 * time.Second).Format(time.RFC3339Nano)}).want(201).object().text("token")
	e := s.as(brief).listen("/api/v1/events")
	if why := e.closes(); !strings.Contains(why, "token brief expired") {
		t.Errorf("a token that expired: got %q", why)
	}
}

// TestStreamsAreBounded: streams are limited per token and per node. Closing one makes room.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s, server := s.other(nil)
	var ears []*ear
	for i, n := range []int{16, 16, 16, 12} { // four of the 64 are reserved for admins
		as := s.as(s.newToken(fmt.Sprint("t", i), auth.Viewer))
		for range n {
			e := as.listen("/api/v1/events")
			e.hello()
			ears = append(ears, e)
		}

		if i == 0 {
			if r := as.call("GET", "/api/v1/events", nil).want(429); !strings.Contains(r.body, "t0 already has 16 streams") ||
				r.header.Get("Retry-After") == "" {
				t.Errorf("got %s, %v", r.body, r.header)
			}
		}
	}

	for range 4 {
		e := s.listen("/api/v1/events")
		e.hello()
		ears = append(ears, e)
	}

	if streams, listeners, reading := server.Listeners(); streams != 64 || listeners != 64 || !reading {
		t.Errorf("got %d streams, %d listeners, reading %v", streams, listeners, reading)
	}

	ears[0].hang()
	await(t, "room for another", 10*time.Second, func() bool { n, _, _ := server.Listeners(); return n == 63 })
	s.listen("/api/v1/events").hello()
	server.Close()
	for _, e := range ears[1:] {
		if why := e.closes(); why != "the node is shutting down" {
			t.Errorf("got %q", why)
		}
	}

	await(t, "nobody listens", 10*time.Second, func() bool {
		streams, listeners, reading := server.Listeners()
		return streams == 0 && listeners == 0 && !reading
	})

	if r := s.call("GET", "/api/v1/events", nil).want(503); !strings.Contains(r.body, "no-stream") {
		t.Errorf("a node that stops: got %s", r.body)
	}
	s.call("GET", "/api/v1/cluster", nil).want(200)
}

// TestStreamsOfOneToken: signing in with a token does not permit more streams.
func TestStreamsOfOneToken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	mine, browser := s.as(s.newToken("mine", auth.Viewer)), s.as("")
	login := func() []string {
		return browser.call("POST", "/api/v1/login", object{"token": mine.token}).want(200).login()
	}
	first, second := login(), login()
	for range 8 {
		mine.listen("/api/v1/events").hello()
		browser.listen("/api/v1/events", first...).hello()
	}

	if r := browser.call("GET", "/api/v1/events", nil, second...).want(429); !strings.Contains(r.body,
		"mine already has 16 streams") {
		t.Errorf("got %s", r.body)
	}
}

// TestStreamsEndWithTheirServer: a stopping server does not wait for subscribers.
func TestStreamsEndWithTheirServer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	run := s.running(s.create("long", object{"command": "sleep 600"}).text("id"))
	addr, stop := listening(t, s.cfg)
	o := *s
	o.url = "http://" + addr
	ears := []*ear{o.listen("/api/v1/events"), o.listen("/api/v1/events"), o.listen("/api/v1/runs/" + run + "/output")}
	ears[0].hello()
	ears[1].hello()
	if err := stop(); err != nil {
		t.Errorf("Serve: %v, want it to end its streams at once", err)
	}

	for _, e := range ears {
		if why := e.closes(); why != "the node is shutting down" {
			t.Errorf("%s: got %q", e.what, why)
		}
	}
}

// TestStreamsOutliveRequests: the limits of short answers do not apply to streams with occasional
// messages.
func TestStreamsOutliveRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	gate := t.TempDir() + "/gate"
	id := s.create("long", object{"command": "until [ -e " + gate + " ]; do sleep .1; done; echo at last"}).text("id")
	run := s.running(id)
	addr, stop := listening(t, s.cfg)
	defer stop()
	o := *s
	o.url = "http://" + addr
	began := time.Now()
	feed, output := o.listen("/api/v1/events"), o.listen("/api/v1/runs/"+run+"/output")
	feed.hello()

	// Longer than the limits of reading a request, of handling it, and of writing its answer.
	for time.Since(began) < 36*time.Second {
		for _, e := range []*ear{feed, output} {
			select {
			case <-e.comments:
			case h, ok := <-e.said:
				if !ok {
					t.Fatalf("%s: ended after %s", e.what, time.Since(began))
				}
				if h.event == "close" {
					t.Fatalf("%s: got %+v", e.what, h)
				}
			case <-time.After(100 * time.Millisecond):
			}
		}
	}

	touch(t, gate)
	if h, _ := output.until("output",
		func(h heard, _ object) bool { return h.event == "output" }); !strings.Contains(h.data, "at last") {
		t.Errorf("got %+v", h)
	}

	feed.until("the end of the run", func(_ heard, o object) bool {
		return o.text("run", "id") == run && o.text("action") == "ended"
	})
}

// TestStreamsBeat: a stream without messages still sends comments.
func TestStreamsBeat(t *testing.T) {
	t.Parallel()
	s, server := start(t, nil).other(nil)
	server.Beat(200 * time.Millisecond)
	e := s.listen("/api/v1/events")
	e.hello()
	for range 3 {
		select {
		case <-e.comments:
		case <-time.After(patience):
			t.Fatal("no comment came")
		}
	}

	if r := s.call("HEAD", "/api/v1/events", nil).want(200); r.body != "" ||
		r.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: got %q, %v", r.body, r.header)
	}
}

// TestOutputStream follows a run from another node to its end, as text and as bytes, and resumes.
func TestOutputStream(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	gate := t.TempDir()
	id := s.create("talks", object{"command": `printf 'one \xe2'; until [ -e ` + gate + `/a ]; do sleep .02; done
		printf '\x82\xac two \xff'; until [ -e ` + gate +
		`/b ]; do sleep .02; done; printf ' three'; exit 4`}).text("id")
	run := s.running(id)
	path := "/api/v1/runs/" + run + "/output"
	o, _ := s.other(nil)
	text, raw := o.listen(path), o.listen(path+"?raw=true")
	part := func(e *ear, from, next, field, want string) {
		t.Helper()
		h, ok := e.next()
		if got := h.object(t); !ok || h.event != "output" || h.id != next || got.text("from") != from ||
			got.text("next") != next || got.text(field) != want {
			t.Fatalf("%s: got %+v, want %q from %s to %s", e.what, h, want, from, next)
		}
	}

	part(text, "0", "4", "text", "one ")
	part(raw, "0", "5", "bytes", "b25lIOI=") // a character and a byte
	touch(t, gate+"/a")
	part(text, "4", "13", "text", "€ two \uFFFD")
	part(raw, "5", "13", "bytes", "gqwgdHdvIP8=")
	text.hang()
	touch(t, gate+"/b")
	part(raw, "13", "19", "bytes", "IHRocmVl")
	again := s.listen(path+"?from=1", "Last-Event-ID", "13") // on a third node
	part(again, "13", "19", "text", " three")
	for _, e := range []*ear{raw, again, s.listen(path, "Last-Event-ID", "19")} {
		h, _ := e.next()
		if got := h.object(t); h.event != "end" || h.id != "19" || got.text("outcome") != "failed" ||
			got.text("exit_code") != "4" || got.text("bytes") != "19" || got.text("truncated") != "false" {
			t.Errorf("got %+v", h)
		}
		if _, more := e.next(); more {
			t.Errorf("more is said behind the end")
		}
	}

	events := []string{"Accept", "text/event-stream"}
	if r := s.call("GET", path, nil,
		append(events, "Last-Event-ID", "x")...).want(422); r.complaint("Last-Event-ID") == "" {
		t.Errorf("got %s", r.body)
	}

	s.call("GET", "/api/v1/runs/nonsense/output", nil, events...).want(404)
	s.as("").call("GET", path, nil, events...).want(401)
	s.as(s.newToken("of-b", auth.Viewer, "b")).call("GET", path, nil, events...).want(404)
}
