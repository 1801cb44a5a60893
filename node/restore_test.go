package node_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// backup creates space for a copy of all tables. take copies them as of one instant; restore puts
// the copy back.
func (c *cluster) backup() (take func() (restore func())) {
	c.t.Helper()
	db, ctx := c.db.Raw(), context.Background()
	rows, err := db.Query(`
		SELECT t.table_name, GROUP_CONCAT(k.column_name)
		FROM information_schema.tables t
		JOIN information_schema.columns k ON k.table_schema = t.table_schema AND k.table_name = t.table_name
		WHERE t.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND k.extra NOT LIKE '%GENERATED%'
		GROUP BY t.table_name`)
	if err != nil {
		c.t.Fatal(err)
	}

	columns := map[string]string{}
	for rows.Next() {
		var table, list string
		if err := rows.Scan(&table, &list); err != nil {
			c.t.Fatal(err)
		}
		columns[table] = list
	}

	rows.Close()
	for table := range columns {
		if _, err := db.Exec("CREATE TABLE backup_" + table + " LIKE " + table); err != nil {
			c.t.Fatal(err)
		}
	}

	restore := func() {
		c.t.Helper()
		again := func() error { // live nodes interfere until they notice
			tx, err := db.Begin()
			if err != nil {
				return err
			}
			defer tx.Rollback()

			for table, list := range columns {
				for _, s := range []string{"DELETE FROM " + table,
					"INSERT INTO " + table + " (" + list + ") SELECT " + list + " FROM backup_" + table} {
					if _, err := tx.Exec(s); err != nil {
						return err
					}
				}
			}

			return tx.Commit()
		}

		await(c.t, "it is restored", 60*time.Second, func() bool { return again() == nil })
	}

	return func() func() {
		c.t.Helper()
		conn, err := db.Conn(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		defer conn.Close()

		run := func(statements ...string) {
			c.t.Helper()
			for _, s := range statements {
				if _, err := conn.ExecContext(ctx, s); err != nil {
					c.t.Fatalf("%s: %v", s, err)
				}
			}
		}

		run("SET SESSION innodb_lock_wait_timeout = 30", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
			"START TRANSACTION WITH CONSISTENT SNAPSHOT")
		for table, list := range columns {
			run("INSERT INTO backup_" + table + " (" + list + ") SELECT " + list + " FROM " + table)
		}

		run("COMMIT")
		return restore
	}
}

// restoring is a cluster whose database is put back to before a single due time.
type restoring struct {
	*cluster
	l       *ledger
	dirs    map[string]string
	members []*member
	once    int64
	long    int64 // executing at the backup; may run again if it is lost
	soon    time.Time
	restore func()
}

func (c *restoring) join(name string) *member {
	c.t.Helper()
	return c.start(name, func(cfg *node.Config) { cfg.Executor, cfg.SpoolDir = c.l, c.dirs[name] })
}

// setUpRestoring returns after the due time has passed, when a restore loses data.
func setUpRestoring(t *testing.T) *restoring {
	t.Helper()
	t.Parallel()
	c := &restoring{
		cluster: newLawlessCluster(t), l: newLedger(), dirs: map[string]string{"one": t.TempDir(), "two": t.TempDir()},
	}
	c.members = []*member{c.join("one"), c.join("two")}
	one := c.members[0]
	rerun := one.Now().Add(time.Second).UTC().Truncate(time.Second)
	c.long = one.create(job.Spec{Name: "long", At: &rerun, OnLost: job.LostRerun}).ID
	c.l.mu.Lock()
	c.l.took = func(a execute.Attempt) time.Duration {
		if a.JobID == c.long {
			return time.Minute
		}
		return 0
	}

	c.l.mu.Unlock()
	one.await("the long one executes", 15*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state = 'executing' AND job_id = ?", c.long) == 1
	})
	one.create(job.Spec{Name: "often", Every: job.Duration(300 * time.Millisecond)})
	mark := func() int64 {
		m, err := c.db.ReadWatermark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m.N
	}

	one.await("it runs", 15*time.Second, func() bool { n, _ := c.l.counts(); return n > 3 && mark() > 2 })
	take := c.backup()
	c.soon = one.Now().Add(9 * time.Second).UTC().Truncate(time.Second)
	c.once = one.create(job.Spec{Name: "once", At: &c.soon}).ID
	one.await("it is claimed", 8*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ?", c.once) == 1
	})
	c.restore = take()
	backed := mark()
	one.await("the single one has run, and the watermark has gone on", 30*time.Second, func() bool {
		return len(c.history(c.once)) == 1 && mark() > backed+8
	})
	return c
}

// refused reports whether an error says that the database was restored, and what to do.
func refused(err error) bool {
	return errors.Is(err, sql.ErrRefuseJoin) && strings.Contains(err.Error(), "the database was restored") &&
		strings.Contains(err.Error(), "--after-restore")
}

// TestRestoreBelowLivingNodes: live nodes notice a restore, and end.
func TestRestoreBelowLivingNodes(t *testing.T) {
	c := setUpRestoring(t)
	c.restore()
	for _, m := range c.members {
		select {
		case err := <-m.done:
			if !refused(err) {
				t.Errorf("got %v, want that the database was restored", err)
			}
			m.done <- err
		case <-time.After(30 * time.Second):
			t.Fatal("a node works with the restored database")
		}
	}

	// The run that the restored database knows is lost with its session, and does not count as
	// killed.
	if n := c.count("SELECT COUNT(*) FROM run WHERE outcome = ?", job.Killed); n != 0 {
		t.Errorf("%d runs are killed in the restored database", n)
	}
}

// TestRestore replaces the database of stopped nodes by an older one. They do not rejoin before an
// operator accepts it. Then the cluster is paused. Runs that were due between the backup and that
// moment never start, not even after a resume.
func TestRestore(t *testing.T) {
	c := setUpRestoring(t)
	for _, m := range c.members {
		m.drain()
	}

	c.restore()
	ran, _ := c.l.counts()
	for name, dir := range c.dirs {
		n, err := node.New(node.Config{
			DSN: c.dsn, Name: name, Expiry: c.expiry, Log: logger(t, name), SpoolDir: dir, Executor: c.l,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Run(t.Context()); !refused(err) {
			t.Errorf("the next life of %s: got %v, want that the database was restored", name, err)
		}
	}

	may, err := c.db.Forgotten(t.Context())
	if err != nil || may.Jobs == 0 || may.Since == 0 || len(may.Once) != 2 || may.Once[1].Name != "once" {
		t.Errorf("got %+v, %v; want both single due times among what was due since", may, err)
	}
	if err := c.db.AcceptRestore(t.Context()); err != nil {
		t.Fatal(err)
	}

	c.join("one")
	two := c.join("two")
	two.await("the cluster is paused", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM stop WHERE kind = 'cluster'") > 0
	})
	two.await("what was prepared has ended", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended'") == 0
	})
	if now, doubles := c.l.counts(); now != ran || doubles != 0 {
		t.Errorf("%d runs started in the pause, %d of them twice", now-ran, doubles)
	}

	if runs := c.history(c.once); len(runs) != 1 || runs[0].Outcome != job.Skipped ||
		!strings.Contains(runs[0].Reason.Text, "the database was restored") {
		t.Errorf("the single due time: got %+v, want it skipped since the database was restored", runs)
	}

	if runs := c.history(c.long); len(runs) == 0 ||
		!slices.ContainsFunc(runs, func(r read.Run) bool { return r.Outcome == job.Lost }) {
		t.Errorf("the one that executed at the backup: got %+v, want it lost", runs)
	}

	if err := two.Editor().ResumeApp(t.Context(), ""); err != nil {
		t.Fatal(err)
	}

	two.await("it goes on", 30*time.Second, func() bool { n, _ := c.l.counts(); return n > ran+5 })
	if _, doubles := c.l.counts(); doubles != 0 {
		t.Errorf("%d due times were started twice", doubles)
	}
}

// TestRestoreOfBeforeARestore: a backup from before an accepted restore is an older database too.
func TestRestoreOfBeforeARestore(t *testing.T) {
	t.Parallel()
	c, dir := newCluster(t), t.TempDir()
	with := func(cfg *node.Config) { cfg.SpoolDir, cfg.Executor = dir, newLedger() }
	epoch := func() (text string) {
		if err := c.db.Raw().QueryRow("SELECT value FROM setting WHERE name = 'epoch'").Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}

	comes := func() {
		t.Helper()
		c.start("one", with).drain()
	}

	stops := func(epoch string) {
		t.Helper()
		if _, err := c.db.Raw().Exec("UPDATE setting SET value = ? WHERE name = 'epoch'", epoch); err != nil {
			t.Fatal(err)
		}

		n, err := node.New(node.Config{
			DSN: c.dsn, Name: "one", Expiry: c.expiry, Log: logger(t, "one"), SpoolDir: dir, Executor: newLedger(),
		})
		if err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := n.Run(ctx); !refused(err) {
			t.Errorf("got %v, want that the database was restored", err)
		}
	}

	accept := func() {
		t.Helper()
		if err := c.db.AcceptRestore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	first := epoch()
	comes()
	accept()
	second := epoch()
	comes()
	stops(first)
	accept() // the database has forgotten the second epoch; the node has not
	comes()
	stops(second)
	stops(first)
	for range 10 {
		accept()
	}

	comes()
}

// TestWatermarkOfAnotherCluster: a state folder with the mark of a different database, or of an
// accepted restore, does not matter.
func TestWatermarkOfAnotherCluster(t *testing.T) {
	t.Parallel()
	a, b := newCluster(t), newCluster(t)
	dir := t.TempDir()
	with := func(cfg *node.Config) { cfg.SpoolDir, cfg.Executor = dir, newLedger() }
	m := a.start("one", with)
	m.await("the watermark goes on", 15*time.Second, func() bool {
		w, err := a.db.ReadWatermark(t.Context())
		return err == nil && w.N > 6
	})

	m.drain()
	b.start("one", with).drain()
	if err := b.db.AcceptRestore(t.Context()); err != nil {
		t.Fatal(err)
	}

	b.start("one", with).drain()
	a.start("one", with).drain()
	// as if by hand
	if _, err := a.db.Raw().Exec("DELETE FROM setting WHERE name IN ('epoch', 'mark')"); err != nil {
		t.Fatal(err)
	}

	a.start("one", with)
}
