//go:build unix

package cli

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestNotifySystemd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", "")

	state := make(chan error)
	ready := func() error { return <-state } // a node that cannot read its sets sends nothing
	drain, stop := context.WithCancel(context.Background())
	over, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); notifySystemd(over, drain, ready) }()
	t.Cleanup(func() { end(); <-ended })

	hear := func(want ...string) {
		t.Helper()
		buf := make([]byte, 512)
		for _, want := range want {
			_ = l.SetReadDeadline(time.Now().Add(30 * time.Second))
			n, err := l.Read(buf)
			if err != nil || string(buf[:n]) != want {
				t.Fatalf("systemd heard %q (%v), want %q", buf[:n], err, want)
			}
		}
	}

	hear("READY=1")
	state <- errors.New("no MySQL")
	hear("STATUS=no MySQL", "WATCHDOG=1")
	state <- nil
	hear("STATUS=ready", "WATCHDOG=1")
	state <- nil
	hear("WATCHDOG=1")

	// Stuck: the next check does not return.
	_ = l.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, err := l.Read(make([]byte, 512)); err == nil {
		t.Fatalf("%d bytes were said while the node was stuck", n)
	}

	stop()
	state <- nil
	close(state)

	for want := map[string]bool{"STOPPING=1": true, "STATUS=draining": true}; len(want) > 0; {
		buf := make([]byte, 512)
		_ = l.SetReadDeadline(time.Now().Add(30 * time.Second))
		n, err := l.Read(buf)
		if err != nil {
			t.Fatalf("systemd did not hear %v: %v", want, err)
		}
		delete(want, string(buf[:n]))
	}
}
