package privatedb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	s, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.Path) || s.MariaDB != strings.Contains(s.Version, "MariaDB") {
		t.Errorf("got %+v, want an absolute path and the right make", s)
	}

	t.Setenv("PATH", "/nowhere")
	if again, err := Find(); err != nil || again != s {
		t.Errorf("without PATH: got %+v, %v; want %+v", again, err, s)
	}
}

func TestFindHonoursTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server")
	script := "#!/bin/sh\necho 'mysqld  Ver 9.7.4 for Linux on x86_64 (MySQL Community Server - GPL)'\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}

	t.Setenv(Binary, path)
	if s, err := Find(); err != nil || s.Path != path || s.MariaDB {
		t.Errorf("got %+v, %v; want %s, no MariaDB", s, err, path)
	}

	t.Setenv(Binary, path+"-missing")
	if s, err := Find(); err == nil || !strings.Contains(err.Error(), path+"-missing") {
		t.Errorf("got %+v, %v; want an error about the missing program", s, err)
	}
}

func TestFindTellsWhatToInstall(t *testing.T) {
	t.Setenv(Binary, "") // whatever server the tests use
	t.Setenv("PATH", "/nowhere")
	usual := folders
	folders = nil
	t.Cleanup(func() { folders = usual })
	_, err := Find()
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("got %v, want %v and what to install", err, ErrNotFound)
	}
}
