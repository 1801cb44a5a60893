package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go-crontab/client"
	"go-crontab/job"
)

// TestEvents receives the events of the client's own changes.
func TestEvents(t *testing.T) {
	t.Parallel()

	c := connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var id string
	said := ""
	for e, err := range c.Events(ctx, client.EventFilter{App: "ops", Kinds: []string{"job", "run"}}) {
		if err != nil {
			t.Fatalf("after %s: %v", said, err)
		}

		said += e.Kind + " " + e.Action + ", "
		switch {
		case e.Kind == "hello":
			j, err := c.Create(ctx, job.Spec{
				App: "ops", Name: "long", Schedule: "0 0 1 1 *", Command: "sleep 1; exit 3",
			})
			if err != nil {
				t.Fatal(err)
			}
			id = j.ID
			if _, err := c.Run(ctx, id, ""); err != nil {
				t.Fatal(err)
			}
		case e.App != "ops" || e.JobID != id || e.Job != "long" || e.At.IsZero() || e.ID == "":
			t.Errorf("got %+v", e)
		case e.Kind == "run" && e.Action == "ended" &&
			(e.Run.Outcome != job.Failed || *e.Run.ExitCode != 3 || e.Run.Node != "one"):
			t.Errorf("got %+v", e.Run)
		}

		if e.Action == "ended" {
			break
		}
	}

	if want := "hello begin, job create, job run, run started, run ended, "; said != want {
		t.Errorf("heard %s, want %s", said, want)
	}

	for _, err := range c.Events(ctx, client.EventFilter{Kinds: []string{"odd"}}) {
		if err == nil {
			t.Error("an odd kind: got an event")
		}
	}

	soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()

	var last error
	for _, err := range c.Events(soon, client.EventFilter{}) {
		last = err
	}

	if !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("when ctx ends: got %v", last)
	}
}

// TestStreamsAgain uses servers that break connections, repeat events, or have no streams.
func TestStreamsAgain(t *testing.T) {
	t.Parallel()

	asked := 0
	var behind []string
	old := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if old {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Output-State", "ended")
			w.Header().Set("Output-Next", "3")
			if r.URL.Query().Get("from") == "0" {
				fmt.Fprint(w, "old")
			}
			return
		}

		asked++
		behind = append(behind, r.Header.Get("Last-Event-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(id, event, data string) { fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", id, event, data) }
		switch {
		case strings.HasSuffix(r.URL.Path, "/output") && asked == 1:
			say("2", "output", `{"from":0,"next":2,"bytes":"/wA="}`)
		case strings.HasSuffix(r.URL.Path, "/output"):
			say("3", "output", `{"from":2,"next":3,"bytes":"YQ=="}`)
			say("3", "end", `{"outcome":"succeeded"}`)
		case asked == 1:
			say("p1", "job", `{"id":"a1","kind":"job"}`)
			say("p2", "job", `{"id":"a2","kind":"job"}`)
			say("", "close", `{"reason":"the node is shutting down"}`)
		case asked == 2:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(503)
			fmt.Fprint(w, `{"title":"not now","status":503}`)
		case asked == 3:
			say("q1", "job", `{"id":"a2","kind":"job"}`)
			say("q2", "job", `{"id":"a3","kind":"job"}`)
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(401)
			fmt.Fprint(w, `{"type":"urn:go-crontab:problem:unauthenticated","title":"revoked","status":401}`)
		}
	}))
	defer server.Close()

	c, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}

	got := ""
	for e, err := range c.Events(t.Context(), client.EventFilter{}) {
		if err != nil {
			got += err.Error()
			continue
		}
		got += e.ID + " "
	}

	if want := "a1 a2 a3 revoked"; got != want || fmt.Sprint(behind) != "[ p2 p2 q2]" {
		t.Errorf("got %q behind %v, want %q", got, behind, want)
	}

	asked, behind = 0, nil
	var out bytes.Buffer
	if err := c.Follow(t.Context(), "r-1", &out); err != nil || out.String() != "\xff\x00a" ||
		fmt.Sprint(behind) != "[ 2]" {
		t.Errorf("follow: got %q, %v, behind %v", out.String(), err, behind)
	}

	old = true
	out.Reset()
	if err := c.Follow(t.Context(), "r-1", &out); err != nil || out.String() != "old" {
		t.Errorf("an older server: got %q, %v", out.String(), err)
	}

	for _, err := range c.Events(t.Context(), client.EventFilter{}) {
		if err == nil || !strings.Contains(err.Error(), "older") {
			t.Errorf("an older server: got %v", err)
		}
	}
}
