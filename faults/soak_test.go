//go:build faults

package faults

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/privatedb"
)

// soakVariable is for how many hours TestSoak breaks things; without it, it does not run.
const soakVariable = "GOCRONTAB_FAULTS_HOURS"

// A fault is injected and mended again before it returns.
type fault struct {
	name   string
	inject func(c *cluster, m *member)
}

// pick is a length of time between two others.
func (c *cluster) pick(from, to time.Duration) time.Duration {
	return from + time.Duration(c.rng.Int64N(int64(to-from)))
}

var soakFaults = []fault{
	{"kill -9 of a node", func(c *cluster, m *member) { m.kill(); time.Sleep(c.pick(0, 8*time.Second)); m.start() }},
	{"SIGTERM to a node", func(c *cluster, m *member) { m.leave(20 * time.Second); m.start() }},
	{"SIGSTOP of a node", func(c *cluster, m *member) {
		m.signal(syscall.SIGSTOP)
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		m.signal(syscall.SIGCONT)
	}},
	{"kill -9 of a guard", func(c *cluster, m *member) { m.killGuard() }},
	{"kill -9 of all nodes", func(c *cluster, _ *member) {
		for _, m := range c.nodes {
			m.kill()
		}
		for _, m := range c.nodes {
			m.start()
		}
	}},
	{"partition of a node", func(c *cluster, m *member) {
		m.proxy.Blackhole([]faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient, faultproxy.BothWays}[c.rng.IntN(3)])
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		m.proxy.Heal()
	}},
	{"partition of all nodes", func(c *cluster, _ *member) {
		for _, m := range c.nodes {
			m.proxy.Blackhole(faultproxy.BothWays)
		}
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		for _, m := range c.nodes {
			m.proxy.CutAll()
			m.proxy.Heal()
		}
	}},
	{"resets of connections", func(c *cluster, m *member) {
		for range 20 {
			m.proxy.ResetAfter(faultproxy.BothWays, c.rng.Int64N(4000))
			time.Sleep(c.pick(50*time.Millisecond, 500*time.Millisecond))
			m.proxy.Heal()
		}
	}},
	{"a slow link", func(c *cluster, m *member) {
		m.proxy.Delay(faultproxy.BothWays, c.pick(time.Millisecond, 100*time.Millisecond))
		time.Sleep(c.pick(5*time.Second, 20*time.Second))
		m.proxy.Heal()
	}},
	{"lost and late COMMITs", func(c *cluster, m *member) {
		var rules []*faultproxy.Injected
		for _, stage := range sorted(trip) {
			for _, fate := range sorted(fates) {
				rules = append(rules, m.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(trip[stage]), Skip: c.rng.IntN(20), Action: fates[fate]()}))
			}
		}
		time.Sleep(20 * time.Second)
		for _, rule := range rules {
			rule.Remove()
			rule.Release()
		}
	}},
	{"kill -9 of MySQL", func(c *cluster, _ *member) {
		if err := c.server.Kill(); err != nil {
			c.t.Error(err)
		}
		time.Sleep(c.pick(0, 2*c.expiry))
		if err := c.server.Restart(context.Background()); err != nil {
			c.t.Fatal(err)
		}
	}},
	{"restart of MySQL", func(c *cluster, _ *member) {
		if err := c.server.Restart(context.Background()); err != nil {
			c.t.Fatal(err)
		}
	}},
	{"SIGSTOP of MySQL", func(c *cluster, _ *member) {
		_ = syscall.Kill(-c.server.PID(), syscall.SIGSTOP)
		time.Sleep(c.pick(time.Second, 2*c.expiry))
		_ = syscall.Kill(-c.server.PID(), syscall.SIGCONT)
	}},
	{"a long transaction", func(c *cluster, _ *member) {
		tx, err := c.db.BeginTx(context.Background(), nil)
		if err != nil {
			return
		}
		_, _ = tx.Exec("SELECT id FROM job FOR UPDATE")
		time.Sleep(c.pick(time.Second, 15*time.Second))
		_ = tx.Rollback()
	}},
	{"no connections left", func(c *cluster, _ *member) {
		c.exec("SET GLOBAL max_connections = 10")
		time.Sleep(c.pick(time.Second, 2*c.expiry))
		c.exec("SET GLOBAL max_connections = 500")
	}},
}

// TestSoak injects a random fault every 90 s, holds all due times against history and ledger every few minutes, and
// prints what must not grow.
func TestSoak(t *testing.T) {
	text := os.Getenv(soakVariable)
	if text == "" {
		t.Skip("only when asked for: make soak")
	}
	hours, err := strconv.ParseFloat(text, 64)
	if err != nil || hours <= 0 {
		t.Fatalf("%s=%q: want a number of hours", soakVariable, text)
	}
	r := scenario(t, "soak", "a random fault every 90 s")
	c := newServer(r, privatedb.Options{})
	c.start(3)
	c.exec("SET GLOBAL max_connections = 500")
	end := time.Now().Add(time.Duration(hours * float64(time.Hour)))
	l := c.mixed()
	every := 90 * time.Second
	injected := 0
	begun, reported := time.Now(), time.Now().Add(-time.Hour)
	var base, peak sizes
	for time.Now().Before(end) {
		if time.Since(reported) > 3*time.Minute {
			reported = time.Now()
			c.together(60 * time.Second)
			now := c.sizes()
			if time.Since(begun) < 5*time.Minute {
				base = now // until everything has been used once
			}
			peak.atLeast(now)
			fmt.Printf("soak %s: %d faults, %s\n", time.Since(begun).Round(time.Second), injected, now)
		}
		f, m := soakFaults[c.rng.IntN(len(soakFaults))], c.nodes[c.rng.IntN(3)]
		at := time.Now()
		f.inject(c, m)
		injected++
		fmt.Printf("soak %s: %s (%s, %s)\n", time.Since(begun).Round(time.Second), f.name, m.name, short(time.Since(at)))
		c.together(90 * time.Second)
		time.Sleep(min(time.Until(end), time.Until(at.Add(every))))
	}
	c.together(60 * time.Second)
	time.Sleep(3 * time.Second)
	l.check(0)
	last := c.sizes()
	r.figure("%d faults in %s", injected, time.Since(begun).Round(time.Second))
	r.figure("at first %s; at last %s", base, last)
	if grown := last.megabytes - base.megabytes; grown > max(30, 3*hours) {
		t.Errorf("memory of the nodes grew by %.1f MB", grown)
	}
	if grown := last.descriptors - base.descriptors; grown > 60 {
		t.Errorf("%d more descriptors are open", grown)
	}
	if grown := last.threads - base.threads; grown > 30 {
		t.Errorf("%d more threads live", grown)
	}
	if grown := last.goroutines - base.goroutines; grown > 90 {
		t.Errorf("%d more goroutines live", grown)
	}
}

// sizes are what must not grow, of all nodes together, and the rows that retention bounds.
type sizes struct {
	megabytes            float64
	descriptors, threads int
	goroutines           int // as the nodes tell
	rows                 map[string]int
}

func (c *cluster) sizes() (s sizes) {
	for _, m := range c.nodes {
		s.megabytes += megabytes(m.pid())
		s.descriptors += descriptors(m.pid())
		s.threads += status(m.pid(), "Threads")
		s.goroutines += m.goroutines()
	}
	s.rows = map[string]int{}
	for _, table := range []string{"history", "output", "chunk", "task", "session", "waiting", "audit"} {
		s.rows[table] = c.count("SELECT COUNT(*) FROM " + table)
	}
	return s
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// goroutines is how many a node says that it has; its attempts, and whoever asks it, are among them.
func (m *member) goroutines() int {
	m.c.t.Helper()
	found := goroutinesLine.FindStringSubmatch(m.ask("GET", "/metrics", nil).body)
	if found == nil {
		m.c.t.Errorf("%s does not tell of its goroutines", m.name)
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func (s *sizes) atLeast(other sizes) {
	s.megabytes = max(s.megabytes, other.megabytes)
	s.descriptors, s.threads = max(s.descriptors, other.descriptors), max(s.threads, other.threads)
	s.goroutines = max(s.goroutines, other.goroutines)
}

func (s sizes) String() string {
	parts := []string{fmt.Sprintf("%.0f MB, %d descriptors, %d threads, %d goroutines", s.megabytes, s.descriptors, s.threads, s.goroutines)}
	for _, table := range sorted(s.rows) {
		parts = append(parts, fmt.Sprintf("%s %d", table, s.rows[table]))
	}
	return strings.Join(parts, ", ")
}
