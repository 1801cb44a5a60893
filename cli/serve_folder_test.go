package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestServeFollowsAFolder: two nodes follow copies of a folder.
func TestServeFollowsAFolder(t *testing.T) {
	t.Parallel()

	dsn := migrated(t)
	dir := filepath.Join(t.TempDir(), "jobs") // created later
	s := serve(t, dsn, "one", "--apply-dir", dir, "--apply-prune-app", "shop").ready()
	serve(t, dsn, "two", "--apply-dir", dir, "--apply-prune-app", "shop").ready()
	asks := func(args ...string) result { return command(append(args, "--server", s.url, "--token", s.token())...) }
	says := func(want string) {
		t.Helper()
		var got result
		for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if got = asks("cluster"); strings.Contains(got.err, want) {
				return
			}
		}
		t.Fatalf("cluster says %+v, want %q", got, want)
	}

	says("no such file")
	file := write(t, dir, "jobs.yaml",
		"- {app: shop, name: one, every: 1h, command: 'true'}\n- {app: shop, name: two, every: 1h, command: 'true'}\n")
	names := func(want string) {
		t.Helper()
		await(t, "the jobs are "+want, 40*time.Second,
			func() bool { return asks("job", "ls", "--app", "shop", "-o", "name").out == want })
	}

	names("shop/one\nshop/two\n")
	says("folder " + dir + ": applied")
	write(t, dir, "jobs.yaml",
		"- {app: shop, name: one, every: 1h, command: 'true'}\n- {app: shop, name: two, every: 1x, command: 'true'}\n")
	says(file + ":2:26: every: ")
	names("shop/one\nshop/two\n")
	write(t, dir, "jobs.yaml", "- {app: shop, name: one, every: 1h, command: 'true'}\n")
	names("shop/one\n")
	if got := asks("audit", "--kind", "folder", "-o", "json"); strings.Count(got.out, `"apply"`) != 2 ||
		!strings.Contains(got.out, "folder "+dir) {
		t.Errorf("want two lines of the audit, whatever number of nodes: got %s", got.out)
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	says("no such file")
	names("shop/one\n")
	if code := status(s.url + "/readyz"); code != 200 {
		t.Errorf("readyz answers %d: a folder that is gone must not stop the node", code)
	}
}

func TestServeFolderSettings(t *testing.T) {
	t.Parallel()

	file := write(t, t.TempDir(), "file", "")
	for line, want := range map[string]string{
		"--apply-prune-app shop":                                    "--apply-dir is missing",
		"--apply-dir " + file:                                       "not a folder",
		"--apply-dir / --apply-prune-label x":                       "want key=value",
		"--apply-dir / --apply-prune-label =x":                      "want key=value",
		"--apply-dir / --apply-prune-label a=x --apply-prune-app y": "cannot be combined",
		"--apply-dir /" + strings.Repeat("long/", 40):               "use a shorter link",
	} {
		args := append([]string{"serve", "--dsn", "a:b@tcp(127.0.0.1:1)/c"}, strings.Fields(line)...)
		if got := command(args...); got.code != exitUsage || !strings.Contains(got.err, want) {
			t.Errorf("%s: got %+v, want %q", line, got, want)
		}
	}
}

// TestWithin: a folder on a hanging file system delays the end of a node only briefly.
func TestWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		done, began := make(chan struct{}), time.Now()
		if within(followLeft, done) || time.Since(began) != followLeft {
			t.Errorf("waited for %s, want that nobody waits for longer than %s", time.Since(began), followLeft)
		}
		close(done)
		if !within(followLeft, done) {
			t.Error("what has ended is taken to hang")
		}
	})
}
