package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/node"
	"go-crontab/test/testdb"
)

// written is the output of the program.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// TestRun runs two instances of the program on one schema.
func TestRun(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	ctx, stop := context.WithCancel(context.Background())
	var out written
	ended := make(chan error, 2)
	for _, name := range []string{"one", "two"} {
		log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
		cfg := node.Config{DSN: dsn, Name: name, Expiry: 5 * time.Second, HandlersOnly: true, Log: log}
		go func() { ended <- run(ctx, cfg, "127.0.0.1:0", &out) }()
	}

	for end := time.Now().Add(25 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s := out.String()
		if strings.Contains(s, "to ann: your cart is waiting") && strings.Contains(s, "to bob: ") &&
			strings.Count(s, "clean-up due ") >= 2 && strings.Count(s, "serving ") == 2 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("got %q", s)
			break
		}
	}

	if url := regexp.MustCompile(`http://\S+`).FindString(out.String()); url != "" {
		r, err := http.Get(url + "/readyz")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("the API: %v, %v", r, err)
		}
		if err == nil {
			r.Body.Close()
		}
	}

	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	}

	for _, once := range []string{"to ann: ", "to bob: "} {
		if n := strings.Count(out.String(), once); n != 1 {
			t.Errorf("%q %d times, want once", once, n)
		}
	}
}
