//go:build faults

package faults

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func isNil(id uuid.UUID) bool { return id == uuid.Nil }

// hog keeps n processors busy until the returned function is called.
func hog(t *testing.T, n int) (end func()) {
	t.Helper()
	var hogs []*exec.Cmd
	for range n {
		cmd := exec.Command("bash", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		hogs = append(hogs, cmd)
	}

	end = sync.OnceFunc(func() {
		for _, cmd := range hogs {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})

	t.Cleanup(end)
	return end
}

// sorted returns the keys of a map in a repeatable order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// splitAddr splits host:port.
func splitAddr(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// shortDir returns a folder with a path short enough for the name of a socket in it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "gocrontab-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
