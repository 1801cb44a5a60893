package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFilesArePrivate: only the node's user can read its files, and no request can name a file of the
// node.
func TestFilesArePrivate(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "state")
	s := serve(t, migrated(t), "web-1", "--state-dir", dir).ready()
	const passwd = "/etc/passwd"
	for name, field := range map[string]string{"command": "@" + passwd, "stdin": "@" + passwd, "env": "@" + passwd} {
		args := map[string][]string{
			"command": {"--", "printf", "%s", field}, "stdin": {"--stdin", field, "--", "cat"},
			"env": {"--env", "F=" + field, "--", `printf %s "$F"`},
		}[name]
		if got := s.ask(append([]string{"job", "add", name, "--schedule", "@yearly"}, args...)...); got.code != exitOK {
			t.Fatalf("%s: %+v", name, got)
		}
		if got := s.ask("job", "run", name, "--wait"); got.code != exitOK || !strings.Contains(got.out, field) ||
			strings.Contains(got.out, "root:") {
			t.Errorf("%s: got %+v, want %s as it is", name, got, field)
		}
	}

	for _, path := range []string{"/docs/..%2f..%2fetc%2fpasswd", "/docs/%2e%2e%2f%2e%2e%2fetc/passwd",
		"/docs/....//etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "/api/v1/runs/..%2f..%2fetc%2fpasswd/output",
		"/docs/reference.css%00.html", "/docs/file:%2f%2f%2fetc%2fpasswd"} {
		if got := status(s.url + path); got == 200 {
			t.Errorf("%s is served", path)
		}
	}

	s.signal(syscall.SIGTERM)
	s.exit(20 * time.Second)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		info, err := d.Info()
		if err != nil {
			return err
		}

		seen++
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be opened by others: %v", strings.TrimPrefix(path, dir), info.Mode())
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("%d files, %v", seen, err)
	}

	// A secret file that already exists and is readable by others is made private.
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeSecret(file, "new"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of a token has mode %v, %v", info.Mode(), err)
	}
}
