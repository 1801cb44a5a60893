//go:build faults

package faults

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// previous builds the program of the previous release from the repository's history;
// testdata/previous has its revision. Without history, as in an archive of the source, there is
// none. rule reports whether that program has the rule for joining newer tables.
func previous(r *report) (program string, rule bool) {
	t := r.t
	t.Helper()
	text, err := os.ReadFile("testdata/previous")
	if err != nil {
		t.Fatal(err)
	}
	revision := strings.TrimSpace(string(text))
	dir := t.TempDir()

	archive := exec.Command("git", "-C", "../..", "archive", "--format=tar", "-o", filepath.Join(dir, "source.tar"),
		revision)
	if out, err := archive.CombinedOutput(); err != nil {
		r.skip("the history has no revision %.7s to build the release before from: %s", revision,
			strings.TrimSpace(string(out)))
	}

	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", filepath.Join(dir, "source.tar"), "-C",
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	program = filepath.Join(dir, "previous")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, ".")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build revision %.7s: %v\n%s", revision, err, out)
	}

	_, err = os.Stat(filepath.Join(source, "sql", "compatible.go"))
	return program, err == nil
}

// TestF29Upgrade replaces the nodes of a cluster step by step with nodes of the current version.
// They use the schema of the previous release, which is migrated while they work. Meanwhile some
// nodes of either version are killed.
func TestF29Upgrade(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F29",
		"a rolling upgrade under load: the tables, then each node, from the release before; nodes of both killed"+
			" beside each other")
	old, rule := previous(r)
	c := newClusterOf(r, old)
	before := c.count("SELECT MAX(version_id) FROM schema_version")

	for range 3 {
		m := c.add()
		m.program = old
		m.start()
	}

	for _, m := range c.nodes {
		m.ready(60 * time.Second)
	}

	l := c.mixed()
	mixed := time.Duration(times(8, 60)) * time.Second
	time.Sleep(mixed)
	begun := time.Now()
	c.runs("migrate")
	r.figure("tables from version %d to %d in %s", before, c.count("SELECT MAX(version_id) FROM schema_version"),
		short(time.Since(begun)))
	time.Sleep(mixed) // old nodes on the new tables

	for i, m := range c.nodes {
		if code, _ := m.leave(20 * time.Second); code != 0 {
			t.Errorf("%s of the release before ends with code %d", m.name, code)
		}

		m.program = ""
		m.start()
		m.ready(60 * time.Second)
		time.Sleep(mixed)

		if i == 0 { // each version takes over from the other
			c.nodes[0].kill()
			time.Sleep(mixed)
			c.nodes[0].start()
			c.nodes[0].ready(60 * time.Second)
			c.nodes[2].kill()
			time.Sleep(mixed)
			c.nodes[2].program = old
			c.nodes[2].start()
			back := c.now().UnixMicro()

			switch {
			case joins(c.nodes[2]):
				await(t, "the release before, back on the new tables, has run something", 60*time.Second, func() bool {
					return c.count(`
						SELECT COUNT(*)
						FROM run r
						JOIN life l ON l.id = r.session
						WHERE l.node = ? AND r.outcome = 'succeeded' AND r.started > ?`, c.nodes[2].name, back) > 0
				})
				r.figure("the release before joins the new tables")
			default:
				if rule {
					t.Errorf("the release before does not join the new tables again, and should:\n%s",
						c.nodes[2].logged())
				} else {
					r.figure("the release before does not join the new tables (it knows no rule for that)")
				}

				c.nodes[2].program = ""
				c.nodes[2].start()
				c.nodes[2].ready(60 * time.Second)
			}
		}
	}

	l.check(0)

	// Going back: the tables stay as they are, and the old program says so.
	down := exec.Command(old, "migrate")
	down.Env = append(plainEnv(), "GOCRONTAB_DSN="+c.dsn())
	out, err := down.CombinedOutput()
	code, newest := down.ProcessState.ExitCode(), c.count("SELECT MAX(version_id) FROM schema_version")
	switch {
	case newest == before: // both have the same tables
		if err != nil {
			t.Errorf("migrate of the release before: code %d, %s; want 0", code, out)
		}
	case err == nil || code != 4 || !strings.Contains(string(out), "newer"):
		t.Errorf("migrate of the release before: code %d, %s; want 4, and why", code, out)
	}
}

// joins reports whether a node joins; otherwise it ends because it may not.
func joins(m *member) bool {
	m.c.t.Helper()
	joined := false
	await(m.c.t, m.name+" joins or refuses", 60*time.Second, func() bool {
		if m.isDead() {
			return true
		}
		if found := apiLine.FindStringSubmatch(m.logged()); found != nil {
			m.url = found[1]
			joined = m.isReady()
		}
		return joined
	})

	return joined
}
