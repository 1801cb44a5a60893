//go:build faults

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/test/ledger"
)

// refused starts a node that may not join, and returns its log.
func refused(t *testing.T, m *member, limit time.Duration) string {
	t.Helper()
	m.start()

	select {
	case <-m.ended:
	case <-time.After(limit):
		t.Fatalf("the node runs on and should have refused:\n%s", m.logged())
	}

	if code := m.cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}

	return m.logged()
}

func TestF27Schema(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F27", "lock rows deleted; tables dropped; a schema that nobody has migrated, and a newer one")
	c := newCluster(r)
	c.start(1)
	l := c.mixed()
	time.Sleep(4 * time.Second)
	c.exec("DELETE FROM locks")
	fresh := c.add()
	said := refused(t, fresh, 20*time.Second)
	r.figure("without lock rows: refused")

	if !strings.Contains(said, "lock") {
		t.Errorf("it refuses without saying why: %s", said)
	}

	c.runs("migrate") // restores them
	time.Sleep(2 * time.Second)
	c.nodes[0].ready(20 * time.Second)
	l.check(0)

	for _, table := range []string{"job", "run"} {
		l.without(table, fresh)
	}

	r.figure("without one of two tables: did not join until it was back")
	l.check(0)
	versions := c.versions()
	newest := c.count("SELECT MAX(version_id) FROM " + versions) // the only one
	c.exec("UPDATE "+versions+" SET version_id = -1 WHERE version_id = ?", newest)
	fresh.start()
	await(t, "it says that nobody has made the tables", 20*time.Second,
		func() bool { return strings.Contains(fresh.logged(), "the schema is empty") })
	c.exec("UPDATE "+versions+" SET version_id = ? WHERE version_id = -1", newest)
	fresh.ready(20 * time.Second)

	if code, _ := fresh.leave(20 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	r.figure("a schema that nobody has migrated: did not join until it was")
	newer(t, c)
	said = refused(t, fresh, 20*time.Second)
	r.figure("a newer schema: refused")
	if !strings.Contains(said, "newer") && !strings.Contains(said, "version") {
		t.Errorf("it refuses without saying why: %s", said)
	}
}

// without removes a table for a while. Work that needs it is not done, and the log says so; a node
// that is started meanwhile does not join.
func (l *load) without(table string, fresh *member) {
	c, t := l.c, l.c.t
	t.Helper()
	old := c.nodes[0]
	c.exec("RENAME TABLE " + table + " TO away")
	gone := job.MicrosOf(c.now())
	fresh.start()
	await(t, "both say that "+table+" is gone", 20*time.Second, func() bool {
		return strings.Contains(fresh.logged(), "the schema lacks the tables "+table) &&
			strings.Contains(old.logged(), "."+table+"' doesn't exist")
	})

	time.Sleep(3 * time.Second)
	if n := c.count("SELECT COUNT(*) FROM session WHERE node = ?", fresh.name); n != 0 {
		t.Errorf("a node joined without %s", table)
	}

	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range entries {
		if e.Kind == ledger.Start && e.At > gone.Add(time.Second+stalled(gone.Time())) {
			t.Errorf("%s was started %s after %s was gone", e.Job, short(e.At.Sub(gone)), table)
		}
	}

	c.exec("RENAME TABLE away TO " + table)
	fresh.ready(20 * time.Second)
	if code, _ := fresh.leave(20 * time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}

	old.ready(20 * time.Second)
}

// versions returns the table of the applied migrations.
func (c *cluster) versions() (table string) {
	c.t.Helper()
	err := c.db.QueryRow(`
		SELECT table_name
		FROM information_schema.columns
		WHERE table_schema = ? AND column_name = 'is_applied'`, c.schema).Scan(&table)
	if err != nil {
		c.t.Fatal(err)
	}
	return table
}

// newer makes the schema look migrated by a later version.
func newer(t *testing.T, c *cluster) {
	t.Helper()
	c.exec("INSERT INTO " + c.versions() + " (version_id, is_applied) VALUES (9999, 1)")
	c.exec("UPDATE setting SET value = '9999' WHERE name = 'compatible_since'")
}

func TestF28Edits(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F28", "pauses of jobs and of apps, edits and deletions around the instants at which jobs are due")
	c := newCluster(r)
	c.start(3)
	dir := t.TempDir()
	trials := times(6, 170)
	var mu sync.Mutex
	var violations []string
	var hands sync.WaitGroup

	n := 0
	for k := range 6 {
		name := fmt.Sprint("edited-", k)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		command := func(version int) string {
			return fmt.Sprintf(`echo "%d ${EPOCHREALTIME/[.,]/}" >> %s`, version, path)
		}

		app := fmt.Sprint("app-", k)
		id := c.create(object{"app": app, "name": name, "every": "500ms", "command": command(0), "overlap": "allow"})

		waits := make([]time.Duration, trials)
		for i := range waits {
			waits[i] = time.Duration(c.rng.Int64N(int64(700 * time.Millisecond)))
		}

		n += trials

		hands.Go(func() {
			m := c.nodes[k%3]
			version := 0

			wrong := func(format string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				violations = append(violations, name+": "+fmt.Sprintf(format, args...))
			}

			place := "/api/v1/jobs/" + itoa(id)

			do := func(method, path string, body any, want int) (answered time.Time, ok bool) {
				for range 5 {
					a := m.ask(method, path, body)
					if a.code == want {
						return time.Now(), true
					}
					if a.code/100 == 4 && a.code != 409 {
						wrong("%s %s: %d %s", method, path, a.code, a.body)
						return time.Now(), false
					}
				}

				wrong("%s %s: not taken", method, path)
				return time.Now(), false
			}

			for i := range trials {
				time.Sleep(time.Second + waits[i])

				switch i % 3 {
				case 0, 2:
					what := place // the job, or its app
					if i%3 == 2 {
						what = "/api/v1/apps/" + app
					}
					at, ok := do("POST", what+"/pause", object{}, 200)
					time.Sleep(1200 * time.Millisecond)

					for _, s := range started(path) {
						if ok && s.at.After(at) {
							wrong("started %s after pause of %s was answered", s.at.Sub(at), what)
						}
					}

					if a := m.ask("POST", what+"/resume", object{}); a.code/100 != 2 {
						wrong("resume: %d %s", a.code, a.body)
					}
				case 1:
					version++
					at, ok := do("PATCH", place, object{"command": command(version)}, 200)
					time.Sleep(1200 * time.Millisecond)

					for _, s := range started(path) {
						if ok && s.at.After(at) && s.version != version {
							wrong("started version %d %s after the edit to %d was answered", s.version, s.at.Sub(at),
								version)
						}
					}
				}
			}

			at, ok := do("DELETE", place, nil, 204)
			time.Sleep(1500 * time.Millisecond)

			all := started(path)
			for _, s := range all {
				if ok && s.at.After(at) {
					wrong("started %s after delete was answered", s.at.Sub(at))
				}
			}

			if len(all) < trials {
				wrong("%d starts in all, want at least one for each trial", len(all))
			}
		})
	}

	hands.Wait()
	for _, v := range violations {
		t.Error(v)
	}

	r.figure("%d trials and 6 deletions, %d violations", n, len(violations))
}

type start struct {
	version int
	at      time.Time
}

// started reads the output of the commands of an edited job.
func started(path string) (all []start) {
	content, _ := os.ReadFile(path)
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		version, _ := strconv.Atoi(fields[0])
		micros, _ := strconv.ParseInt(fields[1], 10, 64)
		all = append(all, start{version, time.UnixMicro(micros)})
	}

	return all
}

func TestF40Zones(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F40",
		"a time zone that nobody knows, at creation and in a stored job; no files of time zones; a definition that"+
			" is no JSON")
	c := newCluster(r)
	c.start(1)
	bare := c.add()
	bare.env = []string{"ZONEINFO=" + t.TempDir(), "GOROOT=/nowhere"}
	if os.Geteuid() == 0 {
		bare.program = zoneless(t)
	}

	bare.start()
	bare.ready(60 * time.Second)
	l := c.mixed()
	if a := bare.ask("POST", "/api/v1/jobs", object{"name": "bare", "schedule": "0 3 * * *",
		"timezone": "Asia/Kathmandu", "command": "true"}); a.code != 201 {
		t.Errorf("a zone, of a node on a machine without files of zones: %d %s, want 201", a.code, a.body)
	}
	if a := c.nodes[0].ask("POST", "/api/v1/jobs", object{"name": "x", "schedule": "* * * * *", "timezone": "Mars/Base",
		"command": "true"}); a.code != 422 {
		t.Errorf("an unknown zone: %d %s, want 422", a.code, a.body)
	}

	ids := []int64{
		c.create(object{"name": "zone", "schedule": "* * * * * *", "timezone": "Europe/Berlin", "command": "true"}),
		c.create(object{"name": "no-json", "schedule": "* * * * * *", "command": "true"}),
		c.create(object{"name": "no-cron", "schedule": "* * * * * *", "command": "true"}),
	}

	time.Sleep(2 * time.Second)

	for id, definition := range map[int64]string{
		ids[0]: "REPLACE(definition, 'Europe/Berlin', 'Mars/Base')",
		ids[1]: "'{\"every\":'",
		ids[2]: "REPLACE(definition, '* * * * * *', '1-0 * * * * *')",
	} {
		c.exec(`
			INSERT INTO job_version (job_id, version, definition, created)
			SELECT job_id, 2, `+definition+`, 1
			FROM job_version
			WHERE job_id = ?`, id)
		c.exec("UPDATE job SET version = 2 WHERE id = ?", id)
	}

	took := await(t, "all three in error", 60*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM job WHERE error <> '' AND id IN (?, ?, ?)", ids[0], ids[1], ids[2]) == 3
	})

	for _, id := range ids {
		a := c.nodes[1].ask("GET", "/api/v1/jobs/"+itoa(id), nil)
		if a.code != 200 || !strings.Contains(a.body, `"status":"error"`) {
			t.Errorf("job %d: %d %.300s, want status error", id, a.code, a.body)
		}
	}

	time.Sleep(3 * time.Second)
	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("in error after %s, all others on time", short(took))
}

// zoneless is the program on a machine without time zone files.
func zoneless(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "zoneless")
	script := "#!/bin/sh\nexec unshare --mount sh -c '" +
		"for dir in /usr/share/zoneinfo /usr/share/lib/zoneinfo /usr/lib/locale/TZ /etc/zoneinfo;" +
		" do [ ! -d $dir ] || mount -t tmpfs none $dir || exit 1; done; " +
		`exec "$0" "$@"' ` + binary + ` "$@"` + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestF45Expiry(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F45", "a node with another session expiry than the cluster's")
	c := newCluster(r)
	c.start(1)
	l := c.mixed()
	other := c.add()
	other.args = []string{"--session-expiry", "9s"}
	said := refused(t, other, 20*time.Second)
	time.Sleep(4 * time.Second)

	if !strings.Contains(said, "expiry") {
		t.Errorf("it refuses without saying why: %s", said)
	}

	l.check(onTime)
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("refused")
}
