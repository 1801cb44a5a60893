//go:build unix

package cli

import (
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// TestMigrateIsNotInterrupted: after signals in the middle of a migration, migrate ends after that
// migration, also as a child of process 1. The next migrate completes the rest.
func TestMigrateIsNotInterrupted(t *testing.T) {
	t.Parallel()

	for name, run := range map[string]struct {
		start  func(*testing.T, []string, ...string) *process
		target func(*testing.T, *process) int
	}{
		"by itself": {start, func(_ *testing.T, p *process) int { return p.cmd.Process.Pid }},
		"in a container": {alone, func(t *testing.T, p *process) int {
			return children(t, p.cmd.Process.Pid)[0]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dsn := testdb.DSN(t)
			cfg, err := mysql.ParseDSN(dsn)
			if err != nil {
				t.Fatal(err)
			}

			proxy := faultproxy.New(t, cfg.Net, cfg.Addr)
			held := proxy.Add(faultproxy.Rule{
				Match: faultproxy.SQL("CREATE TABLE retention"), Action: faultproxy.Hold(0),
			})
			p := run.start(t, []string{"GOCRONTAB_DSN=" + proxy.DSN(dsn)}, "migrate")
			await(t, "the middle of a migration", 30*time.Second, func() bool { return held.Fired() > 0 })
			const said = "migrate ends after the current migration"
			signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT}
			if !signal.Ignored(syscall.SIGHUP) { // under nohup it never arrives
				signals = append(signals, syscall.SIGHUP)
			}
			for n, s := range signals {
				if err := syscall.Kill(run.target(t, p), s); err != nil {
					t.Fatal(err)
				}
				await(t, s.String()+": "+said, 10*time.Second,
					func() bool { return strings.Count(p.out.String(), said) > n })
			}

			held.Release()
			if code := p.exit(30 * time.Second); code != exitFailed ||
				!strings.Contains(p.out.String(), "stopped before 0002") {
				t.Errorf("got code %d, want the first migration carried out, and no other", code)
			}

			next := start(t, []string{"GOCRONTAB_DSN=" + dsn}, "migrate")
			if code := next.exit(60 * time.Second); code != exitOK || !strings.Contains(next.out.String(), " from version 1 to ") {
				t.Errorf("the next: got code %d, %s", code, next.out.String())
			}
		})
	}
}

// TestMigrateEndsWhileItWaits: a signal before the first migration ends migrate, even if MySQL does
// not respond.
func TestMigrateEndsWhileItWaits(t *testing.T) {
	t.Parallel()

	dsn := testdb.DSN(t)
	proxy := faultproxy.Before(t, dsn)
	held := proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("information_schema.tables"), Action: faultproxy.Hold(0)})
	p := start(t, []string{"GOCRONTAB_DSN=" + proxy.DSN(dsn)}, "migrate")
	await(t, "a question", 30*time.Second, func() bool { return held.Fired() > 0 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(10 * time.Second); code != exitFailed ||
		!strings.Contains(p.out.String(), "terminated: stopped before a migration") {
		t.Errorf("got code %d, want it ended", code)
	}
}
