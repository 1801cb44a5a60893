package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestOnceThoughTheAnswerIsLost: what must not be done twice is asked for again under the same key when its answer is lost, and
// another time under another.
func TestOnceThoughTheAnswerIsLost(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex // net/http sends a request again while the handler of the first one may still be ending
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
		if n%3 != 0 { // the first time net/http itself repeats it
			panic(http.ErrAbortHandler) // the connection ends without an answer
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

// TestALostAnswerIsToldAsOne: a change that was not answered is not told as one that nobody heard.
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
	if got.code != exitFailed || !strings.Contains(got.err, "gave no answer") ||
		!strings.Contains(got.err, "may have been done or not") || strings.Contains(got.err, "to start one") {
		t.Errorf("got %+v", got)
	}
}
