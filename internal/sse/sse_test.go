package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	t.Parallel()
	lines := 0
	var got []Message
	err := Read(strings.NewReader(": hello\nretry: 3\n\nid: 7\nevent: a\ndata: one\ndata:two\n\nevent: b\ndata: {\"x\": \"y\"}\r\n\r\ndata: cut"),
		func() { lines++ }, func(m Message) error { got = append(got, m); return nil })
	if want := fmt.Sprint([]Message{{"a", "7", "one\ntwo"}, {"b", "", `{"x": "y"}`}}); err != io.EOF ||
		fmt.Sprint(got) != want || lines != 12 {
		t.Errorf("got %v, %v, %d lines; want %s", got, err, lines, want)
	}
}

// TestFollower uses a server that breaks connections in several ways, and receives each message
// once.
func TestFollower(t *testing.T) {
	t.Parallel()

	asked := []string{}
	broke, passed := 0, errors.New("passes")
	answers := []func(w http.ResponseWriter, r *http.Request){
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "id: 1\nevent: m\ndata: a\n\n") },
		func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) },
		func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "id: 2\nevent: m\ndata: b\n\nid: 3\nevent: m\ndata: half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		func(w http.ResponseWriter, r *http.Request) { // dead without notice
			fmt.Fprint(w, "event: m\ndata: c\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "id: 4\nevent: end\ndata: d\n\n") },
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", Media)
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		answers[len(asked)-1](w, r)
	}))
	defer server.Close()

	got := ""
	f := &Follower{
		Open: func(ctx context.Context, last string) (*http.Response, error) {
			req, _ := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
			req.Header.Set("Last-Event-ID", last)
			resp, err := http.DefaultClient.Do(req)
			if err == nil && resp.StatusCode != 200 {
				resp.Body.Close()
				return nil, passed
			}
			return resp, err
		},
		Passes: func(error) bool { return true },
		On: func(m Message) error {
			got += m.Data
			if m.Event == "end" {
				return io.EOF
			}
			return nil
		},
		Broke: func(error) { broke++ }, Quiet: 5 * time.Second, Pause: time.Millisecond,
	}

	if err := f.Run(t.Context()); err != nil || got != "abcd" || fmt.Sprint(asked) != "[ 1 1 2 2]" || broke != 3 {
		t.Errorf("got %q, %v, asked behind %v, broke %d times", got, err, asked, broke)
	}

	refused := errors.New("refused")
	f = &Follower{
		Open:   func(context.Context, string) (*http.Response, error) { return nil, refused },
		Passes: func(error) bool { return false },
	}

	if err := f.Run(t.Context()); err != refused {
		t.Errorf("a refusal: got %v", err)
	}

	f.Passes = func(error) bool { return true }
	if err := f.Run(t.Context()); err != refused {
		t.Errorf("without patience and before anything was said: got %v", err)
	}

	f.Patience, f.Pause = 50*time.Millisecond, time.Millisecond
	if err := f.Run(t.Context()); err != refused {
		t.Errorf("when patience ends: got %v", err)
	}

	f.Open = func(context.Context, string) (*http.Response, error) {
		return &http.Response{
			Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("old")),
		}, nil
	}

	if err := f.Run(t.Context()); err != ErrNoStream {
		t.Errorf("no stream: got %v", err)
	}
}
