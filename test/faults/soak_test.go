//go:build faults

package faults

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/test/faultproxy"
)

// soakVariable is the number of hours that TestSoak runs. Without it the test does not run.
const soakVariable = "GOCRONTAB_FAULTS_HOURS"

// A fault is injected and repaired before it returns.
type fault struct {
	name   string
	inject func(c *cluster, m *member)
	ends   bool // it ends the node's process: not allowed for the node whose growth is watched
}

// pick returns a random duration between two others.
func (c *cluster) pick(from, to time.Duration) time.Duration {
	return from + time.Duration(c.rng.Int64N(int64(to-from)))
}

var soakFaults = []fault{
	{"kill -9 of a node", func(c *cluster, m *member) { m.kill(); time.Sleep(c.pick(0, 8*time.Second)); m.start() },
		true},
	{"SIGTERM to a node", func(c *cluster, m *member) { m.leave(20 * time.Second); m.start() }, true},
	{"SIGSTOP of a node", func(c *cluster, m *member) {
		m.signal(syscall.SIGSTOP)
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		m.signal(syscall.SIGCONT)
	}, false},
	{"kill -9 of a guard", func(c *cluster, m *member) { m.killGuard() }, false},
	{"kill -9 of all nodes but one", func(c *cluster, _ *member) {
		for _, m := range c.nodes[1:] {
			m.kill()
		}
		for _, m := range c.nodes[1:] {
			m.start()
		}
	}, false},
	{"partition of a node", func(c *cluster, m *member) {
		m.proxy.Blackhole([]faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient,
			faultproxy.BothWays}[c.rng.IntN(3)])
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		m.proxy.Heal()
	}, false},
	{"partition of all nodes", func(c *cluster, _ *member) {
		for _, m := range c.nodes {
			m.proxy.Blackhole(faultproxy.BothWays)
		}
		time.Sleep(c.pick(time.Second, 3*c.expiry))
		for _, m := range c.nodes {
			m.proxy.CutAll()
			m.proxy.Heal()
		}
	}, false},
	{"resets of connections", func(c *cluster, m *member) {
		for range 20 {
			m.proxy.ResetAfter(faultproxy.BothWays, c.rng.Int64N(4000))
			time.Sleep(c.pick(50*time.Millisecond, 500*time.Millisecond))
			m.proxy.Heal()
		}
	}, false},
	{"a slow link", func(c *cluster, m *member) {
		m.proxy.Delay(faultproxy.BothWays, c.pick(time.Millisecond, 100*time.Millisecond))
		time.Sleep(c.pick(5*time.Second, 20*time.Second))
		m.proxy.Heal()
	}, false},
	{"lost and late COMMITs", func(c *cluster, m *member) {
		var rules []*faultproxy.Injected
		for _, stage := range sorted(trip) {
			for _, fate := range sorted(fates) {
				rules = append(rules,
					m.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(trip[stage]), Skip: c.rng.IntN(20),
						Action: fates[fate]()}))
			}
		}
		time.Sleep(20 * time.Second)
		for _, rule := range rules {
			rule.Remove()
			rule.Release()
		}
	}, false},
	{"kill -9 of MySQL", func(c *cluster, _ *member) {
		if err := c.server.Kill(); err != nil {
			c.t.Error(err)
		}
		time.Sleep(c.pick(0, 2*c.expiry))
		if err := c.server.Restart(context.Background()); err != nil {
			c.t.Fatal(err)
		}
	}, false},
	{"restart of MySQL", func(c *cluster, _ *member) {
		if err := c.server.Restart(context.Background()); err != nil {
			c.t.Fatal(err)
		}
	}, false},
	{"SIGSTOP of MySQL", func(c *cluster, _ *member) {
		_ = syscall.Kill(-c.server.PID(), syscall.SIGSTOP)
		time.Sleep(c.pick(time.Second, 2*c.expiry))
		_ = syscall.Kill(-c.server.PID(), syscall.SIGCONT)
	}, false},
	{"a long transaction", func(c *cluster, _ *member) {
		tx, err := c.db.BeginTx(context.Background(), nil)
		if err != nil {
			return
		}
		_, _ = tx.Exec("SELECT id FROM job FOR UPDATE")
		time.Sleep(c.pick(time.Second, 15*time.Second))
		_ = tx.Rollback()
	}, false},
	{"no connections left", func(c *cluster, _ *member) {
		c.exec("SET GLOBAL max_connections = 10")
		time.Sleep(c.pick(time.Second, 2*c.expiry))
		c.exec("SET GLOBAL max_connections = 500")
	}, false},
}

// TestSoak injects a random fault every 90 s. At the end it checks that nothing has grown, and
// compares all due times with history and ledger.
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
	kept := c.create(object{"name": "kept", "every": "500ms", "command": "true", "keep": object{"age": "1m"}})
	spared := c.nodes[0] // lives as long as the soak
	every := 90 * time.Second
	injected := 0
	begun, reported := time.Now(), time.Now().Add(-time.Hour)
	var base, peak sizes

	var grow series
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

		if warm := time.Since(begun); warm > min(10*time.Minute, time.Duration(hours*float64(time.Hour))/3) {
			grow.add(warm, c.sizesOf(spared))
		}

		f, m := soakFaults[c.rng.IntN(len(soakFaults))], c.nodes[c.rng.IntN(3)]
		if f.ends && m == spared {
			m = c.nodes[1+c.rng.IntN(2)]
		}
		at := time.Now()
		f.inject(c, m)
		injected++
		fmt.Printf("soak %s: %s (%s, %s)\n", time.Since(begun).Round(time.Second), f.name, m.name,
			short(time.Since(at)))
		c.together(90 * time.Second)
		time.Sleep(min(time.Until(end), time.Until(at.Add(every))))
	}

	c.together(60 * time.Second)
	time.Sleep(3 * time.Second)
	l.check(0)
	last, rows := c.sizes(), c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND state = 'ended'", kept)
	peak.atLeast(last)
	r.figure("%d faults in %s", injected, time.Since(begun).Round(time.Second))
	r.figure("at first %s; at last %s; at most %.0f MB, %d descriptors, %d threads, %d goroutines", base, last,
		peak.megabytes, peak.descriptors, peak.threads, peak.goroutines)

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
	if peak.megabytes > 2*base.megabytes || peak.descriptors > 2*base.descriptors ||
		peak.goroutines > 2*base.goroutines {
		t.Errorf("at most %s, at first %s: want no more than twice as much", peak, base)
	}

	for _, bad := range grow.grown() {
		t.Errorf("%s, whose process nobody ended: %s", spared.name, bad)
	}

	r.figure("a node that was not killed, an hour: %s", grow.String())

	// Rows are deleted a minute after their end, in rounds with ten minutes between them. A round
	// that a killed node had begun is taken over six minutes later, and that node may be killed
	// too.
	r.figure("%d rows of a job that keeps a minute of two a second", rows)
	if most := 120 * (1 + 10 + 2*6) * 11 / 10; rows > most {
		t.Errorf("there are %d rows of a job that keeps a minute of two a second, want %d at most", rows, most)
	}
}

// series holds the values of a process over time.
type series struct {
	hours []float64
	of    [len(grows)][]float64
}

// grows names the values, with the growth per hour that is allowed in the long run; in a single
// hour four times as much is allowed.
var grows = [...]struct {
	name string
	most float64
}{{"MB", 1}, {"descriptors", 2}, {"threads", 2}, {"goroutines", 4}}

func (s *series) add(at time.Duration, now sizes) {
	s.hours = append(s.hours, at.Hours())
	for i, v := range []float64{now.megabytes, float64(now.descriptors), float64(now.threads),
		float64(now.goroutines)} {
		s.of[i] = append(s.of[i], v)
	}
}

// perHour returns the slope of a straight line through the values, and its error as estimated from
// their scatter.
func (s *series) perHour(i int) (slope, off float64) {
	n := float64(len(s.hours))
	var atX, atY, xx, xy, rest float64
	for k, x := range s.hours {
		atX, atY = atX+x/n, atY+s.of[i][k]/n
	}

	for k, x := range s.hours {
		xx, xy = xx+(x-atX)*(x-atX), xy+(x-atX)*(s.of[i][k]-atY)
	}

	if n < 3 || xx == 0 {
		return 0, math.Inf(1)
	}

	slope = xy / xx
	for k, x := range s.hours {
		d := s.of[i][k] - atY - slope*(x-atX)
		rest += d * d
	}

	return slope, 2 * math.Sqrt(rest/(n-2)/xx)
}

// grown returns the values that have certainly grown by more than allowed.
func (s *series) grown() (bad []string) {
	for i, g := range grows {
		long := 0.0
		if len(s.hours) > 0 {
			long = s.hours[len(s.hours)-1] - s.hours[0]
		}
		if slope, off := s.perHour(i); slope-off > g.most*(1+3/long) {
			bad = append(bad, fmt.Sprintf("%.1f ± %.1f %s more an hour, want %.1f at most", slope, off, g.name,
				g.most*(1+3/long)))
		}
	}

	return bad
}

func (s *series) String() string {
	var parts []string
	for i, g := range grows {
		slope, off := s.perHour(i)
		parts = append(parts, fmt.Sprintf("%+.1f ± %.1f %s", slope, off, g.name))
	}
	return strings.Join(parts, ", ")
}

// TestSoakSeesLeaks plants leaks of an hour among values that scatter as a node's values do.
func TestSoakSeesLeaks(t *testing.T) {
	t.Parallel()

	rng := rand.New(rand.NewPCG(1, 2))
	for what, leak := range map[string]sizes{
		"MB":          {megabytes: 12},
		"descriptors": {descriptors: 25},
		"threads":     {threads: 20},
		"goroutines":  {goroutines: 50},
		"":            {megabytes: 0.5, descriptors: 1},
	} {
		for range 50 {
			var s series
			for n := range 34 {
				at := 10*time.Minute + time.Duration(n)*90*time.Second
				part := at.Hours()
				s.add(at, sizes{megabytes: 30 + part*leak.megabytes + 2*rng.NormFloat64(),
					descriptors: 20 + int(part*float64(leak.descriptors)+3*rng.NormFloat64()),
					threads:     10 + int(part*float64(leak.threads)+2*rng.NormFloat64()),
					goroutines:  45 + int(part*float64(leak.goroutines)+5*rng.NormFloat64())})
			}

			got := s.grown()
			if what == "" && len(got) > 0 || what != "" && (len(got) != 1 || !strings.Contains(got[0], " "+what+" ")) {
				t.Fatalf("a leak of %q: found %v of %s", what, got, &s)
			}
		}
	}
}

// sizes holds values that must not grow, for all nodes together, and the rows that retention
// limits.
type sizes struct {
	megabytes            float64
	descriptors, threads int
	goroutines           int // as the nodes report
	rows                 map[string]int
}

func (c *cluster) sizes() (s sizes) {
	s = c.sizesOf(c.nodes...)
	s.rows = map[string]int{}
	for _, table := range []string{"run", "notable", "output", "chunk", "ending", "session", "audit"} {
		s.rows[table] = c.count("SELECT COUNT(*) FROM " + table)
	}
	return s
}

func (c *cluster) sizesOf(nodes ...*member) (s sizes) {
	for _, m := range nodes {
		s.megabytes += megabytes(m.pid())
		s.descriptors += descriptors(m.pid())
		s.threads += status(m.pid(), "Threads")
		s.goroutines += m.goroutines()
	}
	return s
}

var goroutinesLine = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// goroutines returns a node's own count, which includes its attempts and current requests.
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
	parts := []string{fmt.Sprintf("%.0f MB, %d descriptors, %d threads, %d goroutines", s.megabytes, s.descriptors,
		s.threads, s.goroutines)}
	for _, table := range sorted(s.rows) {
		parts = append(parts, fmt.Sprintf("%s %d", table, s.rows[table]))
	}
	return strings.Join(parts, ", ")
}
