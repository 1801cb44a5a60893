package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestOnceThoughTheAnswerIsLost: a change is sent again with the same key if its response is lost.
// A new change has a new key.
func TestOnceThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex // net/http may retry while the handler of the first request is still ending
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(fakeJob))
			return
		}

		mu.Lock()
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		n := len(keys)
		mu.Unlock()
		if n%3 != 0 { // net/http itself makes the first retry
			panic(http.ErrAbortHandler) // ends the connection without a response
		}

		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"job_id":"12","due":"2027-01-31T12:00:00Z","request":"7"}`))
	}))
	defer s.Close()

	for range 2 {
		if got := command("job", "run", "12", "--server", s.URL); got.code != 0 ||
			!strings.Contains(got.out, "runs now") {
			t.Fatalf("got %+v", got)
		}
	}

	if len(keys) != 6 || keys[0] == "" || keys[0] != keys[2] || keys[3] != keys[5] || keys[0] == keys[3] {
		t.Errorf("got keys %q, want two, each of them three times", keys)
	}
}

// TestAProxyLosesTheAnswer: a proxy that answers for its node cannot know whether a change was made. A
// change with a key is sent again, and any other says so.
func TestAProxyLosesTheAnswer(t *testing.T) {
	t.Parallel()

	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		asked := 0
		f := newFakeAPI(t, map[string]func(*http.Request) (int, string){
			"GET /api/v1/jobs/12":    always(200, fakeJob),
			"DELETE /api/v1/jobs/12": always(status, "<html>"),
			"POST /api/v1/jobs/12/run": func(*http.Request) (int, string) {
				if asked++; asked == 1 {
					return status, "<html>"
				}
				return 202, `{"job_id":"12","due":"2027-01-31T12:00:00Z","request":"7"}`
			},
		})

		if got := command("job", "run", "12", "--server", f.URL); got.code != 0 || asked != 2 ||
			!strings.Contains(got.err, "retrying") {
			t.Errorf("%d for a change with a key: got %+v after %d requests", status, got, asked)
		}
		if got := command("job", "rm", "12", "--yes", "--server", f.URL); got.code != exitFailed ||
			!strings.Contains(got.err, "a proxy, answers") ||
			!strings.Contains(got.err, "it is unknown whether the request was carried out") {
			t.Errorf("%d for a change: got %+v", status, got)
		}
	}
}

// TestALostAnswerIsToldAsOne: the error for a change without a response differs from the error for
// an unreachable server.
func TestALostAnswerIsToldAsOne(t *testing.T) {
	t.Parallel()

	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte(fakeJob))
	}))
	defer s.Close()

	got := command("job", "rm", "12", "--yes", "--server", s.URL)
	if got.code != exitFailed || !strings.Contains(got.err, "did not answer") ||
		!strings.Contains(got.err, "it is unknown whether") || strings.Contains(got.err, "to start a trial cluster") {
		t.Errorf("got %+v", got)
	}
}
