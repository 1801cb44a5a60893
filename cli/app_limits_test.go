package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLimitIsSaidAtOnce: a run that an app's limit refuses is reported immediately. Only
// rate-limited requests are repeated silently.
func TestLimitIsSaidAtOnce(t *testing.T) {
	t.Parallel()

	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		kind := "too-many-requests"
		if asked++; asked > 1 {
			kind = "app-limit"
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprintf(w,
			`{"type": "urn:go-crontab:problem:%s", "title": "No", "status": 429, "detail": "app billing has had 5 runs"}`, kind)
	}))
	t.Cleanup(server.Close)

	r := &remote{server: server.URL}
	if err := r.connect(time.Minute); err != nil {
		t.Fatal(err)
	}
	_, err := r.call(t.Context(), http.MethodPost, "/api/v1/jobs/1/run", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "app billing has had 5 runs") {
		t.Errorf("got %v", err)
	}

	if asked != 2 { // the first request was rate limited and repeated
		t.Errorf("it was asked for %d times", asked)
	}
}
