package audit

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPipe: writing to a pipe without a reader, or to a full one, fails soon.
func TestPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSink(path); err == nil {
		t.Error("nobody reads the pipe, and that is no error")
	}

	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	sink, err := OpenSink(path)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	written := make(chan error, 1)
	go func() { written <- sink.Write([][]byte{make([]byte, 1<<20)}) }()
	select {
	case err := <-written:
		if err == nil {
			t.Error("a full pipe takes a megabyte")
		}
	case <-time.After(time.Minute):
		t.Fatal("the write hangs")
	}
}
