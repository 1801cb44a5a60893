package api_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go-crontab/api"
)

// listening serves on a separate port until stop is called. stop returns the result of Serve.
func listening(t *testing.T, cfg api.Config) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	cfg.Listen, cfg.Log = l.Addr().String(), slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.New(cfg).Serve(ctx, l) }()
	t.Cleanup(cancel)
	return l.Addr().String(), func() error { cancel(); return <-served }
}

func TestServeEndsGracefully(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan bool), make(chan bool)
	addr, stop := listening(t, api.Config{Ready: func() error { close(entered); <-leave; return nil }})
	answer := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err != nil {
			t.Error(err)
			answer <- 0
			return
		}
		resp.Body.Close()
		answer <- resp.StatusCode
	}()

	<-entered
	time.AfterFunc(100*time.Millisecond, func() { close(leave) })
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if got := <-answer; got != 200 {
		t.Errorf("the request that was being answered: got %d, want 200", got)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("it still listens")
	}
}

func TestServeSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := api.New(api.Config{}).Serve(t.Context(), l); err == nil {
		t.Error("serving a closed listener is no error")
	}
}

// TestS6SlowClients: clients with a slow or endless header are cut off.
func TestS6SlowClients(t *testing.T) {
	t.Parallel()
	addr, stop := listening(t, api.Config{Ready: func() error { return nil }})
	defer stop()
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()

	began := time.Now()
	io.WriteString(slow, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
	endless, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()

	endless.SetDeadline(time.Now().Add(30 * time.Second))
	go io.WriteString(endless, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10))
	if line, err := bufio.NewReader(endless).ReadString('\n'); !strings.Contains(line, "431") {
		t.Errorf("an endless header: got %q, %v, want 431", line, err)
	}

	slow.SetDeadline(began.Add(30 * time.Second))
	if n, err := io.Copy(io.Discard, slow); err != nil {
		t.Errorf("half a header: got %d bytes, %v after %s; want the connection closed", n, err, time.Since(began))
	}
}

// TestS6ConnectionsAreBounded: beyond the limit, the connections that have been silent the longest
// are closed.
func TestS6ConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	addr, stop := listening(t, api.Config{Ready: func() error { return nil }})
	var open []net.Conn
	for range 129 {
		open = append(open, dialFrom(t, "", addr))
	}

	open[0].SetDeadline(time.Now().Add(60 * time.Second))
	if n, err := open[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first connection of 129: got %d bytes, %v, want it closed", n, err)
	}
	if status, err := sends(open[128], 60*time.Second, "GET", "/healthz", ""); err != nil || status != 200 {
		t.Errorf("the last of 129: got %d, %v, want 200", status, err)
	}

	for _, c := range open {
		c.Close() // a stopping server waits some seconds for silent connections
	}

	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
