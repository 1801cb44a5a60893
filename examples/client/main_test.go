package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/node"
	"go-crontab/test/testdb"
)

// TestRun runs the program twice on a cluster with a single node.
func TestRun(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	if err := node.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := node.New(node.Config{DSN: dsn, Name: "one", Expiry: 5 * time.Second, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	if err := n.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}

	server := httptest.NewServer(api.New(api.Config{
		DB: n.Reads(), Now: n.Now, Ready: n.Ready, Node: n.Name(), Log: log,
		Editor: api.EditorOf(n.Editor),
	}))
	t.Cleanup(server.Close)

	token, err := auth.Issuer{DB: n.Reads().DB}.Bootstrap(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		var out bytes.Buffer
		if err := run(t.Context(), server.URL, token, &out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"T09:00:00+0", "succeeded on one: hello from hello\n", "example/hello of ann is active\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("got %q, want %q", out.String(), want)
			}
		}
	}
}
