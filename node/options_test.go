package node_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/test/faultproxy"
)

// stubborn is a command that ignores SIGTERM and has five minutes to stop. It writes its pid to a
// file.
func stubborn(pid string) job.Spec {
	return job.Spec{
		Name: "stubborn", Command: "trap '' TERM; echo $$ > " + pid + ".new; mv " + pid + ".new " + pid +
			"; sleep 60; sleep 60",
		CommandOptions: job.CommandOptions{Grace: job.Duration(job.MaxGrace)},
	}
}

func pidOf(t testing.TB, file string) (pid int) {
	t.Helper()
	await(t, "the command runs", 15*time.Second, func() bool {
		b, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 1
	})
	return pid
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// TestALongGraceEndsWithTheLease: a job's long grace does not matter when its node loses its lease.
func TestALongGraceEndsWithTheLease(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	proxy := faultproxy.Before(t, c.dsn)
	c.expiry = 3 * expiry // the death of the command may take a while
	n := c.start("sick", func(cfg *node.Config) { cfg.DSN = proxy.DSN(c.dsn) })
	file := filepath.Join(t.TempDir(), "pid")
	spec := stubborn(file)
	spec.At = ptr(n.Now().Add(300 * time.Millisecond))
	n.create(spec)
	pid := pidOf(t, file)
	cut := time.Now()
	proxy.Blackhole(faultproxy.BothWays)
	n.await("the command is dead", 3*c.expiry, func() bool { return gone(pid) })
	if d := time.Since(cut); d > c.expiry {
		t.Errorf("the command lived %s without a lease, longer than %s", d, c.expiry)
	}

	proxy.CutAll()
	proxy.Heal()
	n.await("a new session", 15*time.Second, func() bool { return n.Status().Ready })
}

// TestALongGraceEndsWithTheNode: nor does it when the node is stopped.
func TestALongGraceEndsWithTheNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", func(cfg *node.Config) { cfg.Grace = 200 * time.Millisecond })
	file := filepath.Join(t.TempDir(), "pid")
	spec := stubborn(file)
	spec.At = ptr(n.Now().Add(300 * time.Millisecond))
	j := n.create(spec)
	pid := pidOf(t, file)
	n.drain()
	if !gone(pid) {
		t.Error("the command outlived its node")
	}

	if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Killed || runs[0].Signal != "SIGKILL" {
		t.Errorf("got %+v, want one that was killed", runs)
	}
}

// TestSettingsOfCommandsAreChecked before a node connects.
func TestSettingsOfCommandsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := node.New(node.Config{DSN: "u@tcp(localhost)/d", Cgroup: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "is not a usable cgroup v2") {
		t.Errorf("a folder that is no cgroup: got %v", err)
	}
}

// TestSettingsAreChecked before a node connects: settings that no cluster could use.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*node.Config){
		"slots: -1, want 1 to":        func(c *node.Config) { c.Slots = -1 },
		"slots: 2000000, want 1 to":   func(c *node.Config) { c.Slots = 2_000_000 },
		"drain grace: -1s":            func(c *node.Config) { c.Grace = -time.Second },
		"session expiry: 20.0005s":    func(c *node.Config) { c.Expiry = 20*time.Second + 500*time.Microsecond },
		"look-ahead: 1m0s, want 1s":   func(c *node.Config) { c.LookAhead = time.Minute },
		"archive timeout: 1ms, want ": func(c *node.Config) { c.ArchiveTimeout = time.Millisecond },
	} {
		cfg := node.Config{DSN: "u@tcp(localhost)/d", Name: "n"}
		change(&cfg)
		if _, err := node.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}
