//go:build faults

package faults

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/faultproxy"
	"go-crontab/test/ledger"
)

// small mounts a file system of this many megabytes, and removes it when the test ends.
func small(r *report, megabytes int) string {
	r.t.Helper()
	if os.Geteuid() != 0 {
		r.skip("needs root, to mount a small file system")
	}

	dir, err := os.MkdirTemp("", "gocrontab-small-")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		_ = os.Remove(dir)
		r.skip("cannot mount a small file system: %v", err)
	}

	r.t.Cleanup(func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		_ = os.Remove(dir)
	})

	return dir
}

// fill writes a file until the file system is full and returns a function to remove it.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}

	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func TestF25DatabaseDiskFull(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F25", "MySQL's disk full, twice")
	dir := small(r, 220)
	c := newServer(r, privatedb.Options{Dir: filepath.Join(dir, "db")})
	c.start(3)
	l := c.mixed()
	full := time.Duration(times(8, 30)) * time.Second

	// MySQL refuses rows for lack of room. MariaDB's InnoDB gives up at a half-written blob.
	for round, kind := range []string{"VARBINARY(4000)", "LONGBLOB"} {
		c.exec("CREATE TABLE ballast (id INT AUTO_INCREMENT PRIMARY KEY, b " + kind + ")")
		time.Sleep(4 * time.Second)
		free := fill(t, dir)

		// Fill the free room in existing files as well.
		block := make([]byte, 64<<10)
		if kind != "LONGBLOB" {
			block = block[:4000]
		}
		_, _ = rand.Read(block)

		for size := len(block); size > 100; {
			_, err := c.db.Exec("INSERT INTO ballast (b) VALUES (?)", block[:size])
			if err != nil {
				size /= 4
			}
		}

		begun := time.Now()
		if round == 0 {
			made, refused := c.untilFull(full)
			r.figure("of writes of nodes %d were refused, behind %d that found room", refused, made)
		}

		time.Sleep(time.Until(begun.Add(full)))
		c.light(80)
		free()

		if c.count("SELECT 1") != 1 { // InnoDB may give up on a full disk; systemd would restart it
			if err := c.server.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			r.figure("MySQL itself ended and was started again")
		}

		c.exec("DROP TABLE ballast")
		r.within("ready again after", c.together(60*time.Second), returned)
	}

	time.Sleep(3 * time.Second)
	l.check(full + c.soon())
}

// untilFull makes a node create jobs for a while, in tables without room for them. The node must
// say so.
func (c *cluster) untilFull(d time.Duration) (made, refused int) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		name := fmt.Sprint("room-", made, "-", refused)
		switch a := c.nodes[0].ask("POST", "/api/v1/jobs",
			object{"name": name, "every": "24h", "command": "true"}); a.code {
		case 201:
			made++
		case 503:
			refused++
			time.Sleep(50 * time.Millisecond)
		default:
			c.t.Errorf("POST /api/v1/jobs: %d %s, want 201 or 503", a.code, a.body)
			return made, refused
		}
	}

	if refused == 0 {
		c.t.Errorf("%d writes of a node, none was refused: the disk was not full for it", made)
	}

	said := ""
	for _, m := range c.nodes {
		said += m.logged()
	}

	if !strings.Contains(said, "is full") {
		c.t.Error("no node says that a table is full")
	}

	return made, refused
}

func TestF26NodeDiskFull(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F26", "a node's disk full: its state folder and its log")
	dir := small(r, 4)
	c := newCluster(r)
	for range 2 {
		m := c.add()
		m.args = []string{"--state-dir", filepath.Join(dir, m.name)}
		m.log = filepath.Join(dir, m.name+".log")
		m.start()
	}

	c.together(60 * time.Second)
	l := c.mixed()
	time.Sleep(3 * time.Second)
	before := c.sessions()
	free := fill(t, dir)
	time.Sleep(8 * time.Second)
	c.same(before, "a full disk")
	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)

	// A restart: the state folder cannot be written, and is not needed yet.
	m := c.nodes[0]
	if code, _ := m.leave(20 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	free()
	m.start()
	m.ready(30 * time.Second)
	time.Sleep(2 * time.Second)
	l.check(onTime)

	// Outcomes are lost only without both disk and MySQL, and the node says so in its readable log.
	m = c.add("--state-dir", filepath.Join(dir, "last"))
	m.start()
	m.ready(30 * time.Second)
	session := m.session()
	await(t, "it executes something", 30*time.Second, func() bool {
		// Other processes see a start before its node learns of it.
		return c.executing(session) > 0 && len(c.commandsOf(session)) > 0
	})

	fill(t, dir)
	m.proxy.Blackhole(faultproxy.BothWays)
	time.Sleep(c.expiry / 5)
	code, _ := m.leave(20 * time.Second)
	if !strings.Contains(m.logged(), "results of runs are lost") {
		t.Error("the node says nothing of ends that it could not spool")
	}

	r.figure("without MySQL, too: exit code %d, and it says that outcomes are lost", code)
}

func TestF30Herd(t *testing.T) {
	const n = 5000
	r := scenario(t, "F30", "5,000 due times are overdue when three nodes return from an outage")
	c := newCluster(r)
	const slots = 32
	c.start(3, "--slots", fmt.Sprint(slots))

	for _, m := range c.nodes {
		m.leave(15 * time.Second)
	}

	l := c.load()
	first := c.now().Add(-10 * time.Second).Truncate(time.Millisecond)
	l.insert(n, first, time.Hour, l.book.Command(0, 0))

	for _, m := range c.nodes {
		m.start()
	}

	c.together(60 * time.Second)
	most := 0.0
	took := await(t, "all of them ended", 5*time.Minute, func() bool {
		most = max(most, c.heaviest())
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'ended'") >= n
	})
	rate := n / took.Seconds()
	l.checkUntil(first.Add(time.Second), 0)

	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	peak, at := peakOf(entries)
	r.figure("all done after %s (%.0f a second), at most %d at once, memory up to %.0f MB", short(took), rate, at, most)
	r.figure("at most %d starts in a second", peak)
	if at > 3*slots {
		t.Errorf("%d runs at once, want at most %d: three nodes with %d slots each", at, 3*slots, slots)
	}

	if most > 300 {
		t.Errorf("memory up to %.0f MB, want less than 300", most)
	}
	if l.counts[job.Succeeded] != n {
		t.Errorf("%d succeeded, want all", l.counts[job.Succeeded])
	}
}

// peakOf returns the number of starts in the busiest second, and the most attempts that lived at
// once.
func peakOf(entries []ledger.Entry) (starts, together int) {
	slices.SortStableFunc(entries, func(a, b ledger.Entry) int { return int(a.At - b.At) })
	var recent []job.Micros
	now := 0
	for _, e := range entries {
		switch e.Kind {
		case ledger.Start:
			now++
			recent = append(recent, e.At)
			for recent[0] < e.At.Add(-time.Second) {
				recent = recent[1:]
			}
			starts = max(starts, len(recent))
		case ledger.End:
			now--
		}

		together = max(together, now)
	}

	return starts, together
}

// insert adds many jobs at once, without the API and without planning them: the nodes do that.
func (l *load) insert(n int, first time.Time, every time.Duration, command string) {
	t := l.c.t
	t.Helper()
	l.c.exec("INSERT IGNORE INTO app (name) VALUES (?)", job.DefaultApp)

	app := l.c.count("SELECT id FROM app WHERE name = ?", job.DefaultApp)
	for part := 0; part < n; part += 500 {
		var rows, texts []string
		var args, versions []any
		for i := part; i < min(n, part+500); i++ {
			spec := job.Spec{Name: fmt.Sprint("many-", i), Every: job.Duration(every), Start: &first, Command: command}
			spec.Defaults(first)
			text, err := spec.Encode()
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, "(?,?,?,NULL)") // nodes cannot claim them before their definitions exist
			args = append(args, app, spec.Name, job.HashOf(spec.App, spec.Name))
			texts = append(texts, text)
		}

		result, err := l.c.db.ExecContext(context.Background(),
			"INSERT INTO job (app_id, name, hash, next_due) VALUES "+strings.Join(rows, ","), args...)
		if err != nil {
			t.Fatal(err)
		}

		id, _ := result.LastInsertId() // of the first; a simple insert takes consecutive ids
		for i, text := range texts {
			versions = append(versions, id+int64(i), text)
		}

		l.c.exec("INSERT INTO job_version (job_id, version, definition, created) VALUES "+
			strings.TrimSuffix(strings.Repeat("(?,1,?,1),", len(texts)), ","), versions...)
		l.c.exec("UPDATE job SET next_due = ? WHERE id >= ? AND id < ?", first.UnixMicro(), id, id+int64(len(texts)))

		for i := part; i < min(n, part+500); i++ {
			l.jobs = append(l.jobs, ledger.Job{ID: id + int64(i-part), Name: fmt.Sprint("many-", i)})
			l.every, l.first = append(l.every, every), append(l.first, job.MicrosOf(first))
		}
	}
}
