package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// ratedScene is the scene of a group that admits two starts in 10 s and has three slots.
func ratedScene() *groupScene {
	return &groupScene{
		Group:  &trip.Group{ID: 7, Slots: 3, Rate: job.Rate{Starts: 2, Period: 10_000_000}},
		queued: map[int64]int{},
	}
}

// TestFreeStarts: slots, the rate, woken runs and waiting runs each keep a newcomer from starting.
func TestFreeStarts(t *testing.T) {
	t.Parallel()
	newcomer, woken, again := trip.Run{}, trip.Run{Group: -7}, trip.Run{Group: 7}
	for name, c := range map[string]struct {
		change func(g *groupScene)
		run    trip.Run
		want   int
	}{
		"nothing stands in its way":          {func(*groupScene) {}, newcomer, 2},
		"a start counts":                     {func(g *groupScene) { g.Count(t0) }, newcomer, 1},
		"the rate is used up":                {func(g *groupScene) { g.Count(t0); g.Count(t0) }, newcomer, 0},
		"also for a woken run":               {func(g *groupScene) { g.Count(t0); g.Count(t0) }, woken, 0},
		"also for a run that has its slot":   {func(g *groupScene) { g.Count(t0); g.Count(t0) }, again, 0},
		"a slot that it has counts for it":   {func(g *groupScene) { g.Taken = 3 }, again, 2},
		"no slot":                            {func(g *groupScene) { g.Taken = 3 }, newcomer, 0},
		"one slot":                           {func(g *groupScene) { g.Taken = 2 }, newcomer, 1},
		"a woken run goes first":             {func(g *groupScene) { g.woken = 1 }, newcomer, 1},
		"a woken run does not wait for them": {func(g *groupScene) { g.woken = 2; g.lined = true }, woken, 2},
		"a newcomer joins the line":          {func(g *groupScene) { g.lined = true }, newcomer, 0},
		"a later begin": {func(g *groupScene) { g.Count(t0); g.Count(t0) },
			trip.Run{DueNow: t0.Add(11 * time.Second)}, 2},
	} {
		g := ratedScene()
		c.change(g)
		if got := g.free(&c.run, t0.Add(time.Second)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// rated makes a group whose rate is so many starts in 10 s, and jobs in it that are due at instants.
func (c *cluster) rated(starts int, dues map[string]int, change func(spec *job.Spec)) {
	c.Helper()
	c.exec("INSERT INTO grp (id, name, slots, rate, period) VALUES (7, 'g', 1000000, ?, 10000000)", starts)
	c.members(dues, change)
}

func (c *cluster) members(dues map[string]int, change func(spec *job.Spec)) {
	c.Helper()
	p := c.person(c.dsn)
	for _, name := range slices.Sorted(maps.Keys(dues)) {
		due := dues[name]
		spec := every(name, 1000)
		start := t0.Add(time.Duration(due) * time.Second).Time()
		spec.Start, spec.Group, spec.Overlap = &start, "g", job.OverlapQueue
		if change != nil {
			change(&spec)
		}
		p.creates(spec)
	}
}

// TestRateOfGroup: a group starts as many runs as its rate admits. The others wait, and time wakes
// them: the highest priority first, and no newcomer passes them.
func TestRateOfGroup(t *testing.T) {
	c := newCluster(t)
	m, other := c.member(1, c.dsn), c.member(2, c.dsn)
	c.rated(2, map[string]int{"a": 101, "b": 102, "c": 103, "d": 100, "e": 100, "f": 111}, func(spec *job.Spec) {
		spec.Priority = map[string]int{"d": 5, "e": 9}[spec.Name]
	})

	wake := func() []string {
		return c.rows("SELECT IF(wake_at = 0, 'never', ROUND((wake_at - ?) / 100000)) FROM grp", int64(t0))
	}
	m.claims(102)
	c.want("two begin", sorted(m.starts(103)), "d@100", "e@100")
	c.want("the others wait", c.runsNow(), "a 101 waiting", "b 102 waiting", "c 103 waiting", "d 100 executing", "e 100 executing")
	c.want("until the rate admits one", wake(), "1140")
	m.ends("d", 100, 104, ended{job.Failed, 105})
	m.takesOverdue(105.1)
	c.want("a retry waits, too", c.rows("SELECT j.name FROM run r JOIN job j ON j.id = r.job_id WHERE r.state = 'waiting' ORDER BY r.due_now, r.id"), "d", "a", "b", "c")
	c.want("a newcomer joins the line", m.starts(111))

	c.want("too early", other.takesOverdue(113.9))
	if got := other.starter.alarm.pause(time.Second, other.at(113.9)); got != 100*time.Millisecond {
		t.Errorf("the next look is in %s", got)
	}

	c.want("time wakes them on any node: the highest priority first", sorted(other.takesOverdue(114)), "a@101", "d@100")
	c.want("the others wait for the next instant", wake(), "1250")
	c.want("nothing more", m.takesOverdue(124.9))
	c.want("the next ones", sorted(m.takesOverdue(125)), "b@102", "c@103")
	c.want("the newcomer", m.takesOverdue(136), "f@111")
	c.want("nobody waits", wake(), "never")
	c.want("all executing runs count", c.rows("SELECT taken FROM grp"), "6")
}

// TestRateChanges: a higher rate wakes runs at once, a lower one counts the starts before, and
// without a rate all start.
func TestRateChanges(t *testing.T) {
	c := newCluster(t)
	m, p := c.member(1, c.dsn), c.person(c.dsn)
	put := func(seconds float64, spec job.GroupSpec) {
		t.Helper()
		spec.Name = "g"
		if _, err := p.at(seconds).PutGroup(p.ctx, spec); err != nil {
			t.Fatal(err)
		}
	}

	c.rated(1, map[string]int{"a": 95, "b": 96, "c": 97, "d": 98, "e": 99, "f": 100}, nil)
	m.claims(94)
	c.want("one", m.starts(100), "a@95")
	put(101, job.GroupSpec{Rate: "2/10s"})
	c.want("raised", m.takesOverdue(101.1), "b@96")
	put(102, job.GroupSpec{Rate: "1/20s"})
	c.want("lowered", m.takesOverdue(112.2))
	c.want("the latest start counts", m.takesOverdue(122.1), "c@97")
	p.applies(job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 5, Rate: "2/20s"}}})
	c.want("of a file", m.takesOverdue(123.2), "d@98")
	put(124, job.GroupSpec{Slots: 5})
	c.want("removed: the slots decide", m.takesOverdue(124.1), "e@99")
	c.want("rows", c.rows("SELECT CONCAT_WS(' ', slots, taken, rate, period, COALESCE(starts, 'none'), wake_at) FROM grp"), "5 5 0 0 none 0")
	m.ends("a", 95, 125, succeeded)
	c.want("then an end wakes", m.takesOverdue(125.1), "f@100")
	c.want("audit", c.rows("SELECT CONCAT_WS(' ', was, became) FROM audit WHERE kind = 'group'"),
		`{"rate":"1/10s"} {"rate":"2/10s"}`, `{"rate":"2/10s"} {"rate":"1/20s"}`,
		`{"rate":"1/20s"} {"slots":5,"rate":"2/20s"}`, `{"slots":5,"rate":"2/20s"} {"slots":5}`)
}

// TestRateAndVanishedRuns: whatever happens to the woken runs and the first of the line, those
// behind them start.
func TestRateAndVanishedRuns(t *testing.T) {
	for name, vanish := range map[string]func(c *cluster, p *person){
		"deleted": func(c *cluster, p *person) { p.must(p.Delete(p.ctx, c.idOf("b"))) },
		"paused":  func(c *cluster, p *person) { p.must(p.Pause(p.ctx, c.idOf("b"), job.PauseRequest{})) },
		"row is gone": func(c *cluster, _ *person) {
			c.exec("UPDATE run SET state = 'ended', owner = -2 WHERE job_id = ?", c.idOf("b"))
		},
		"group is gone": func(c *cluster, _ *person) { c.exec("DELETE FROM run WHERE job_id = ?", c.idOf("b")) },
		"no node has it": func(c *cluster, _ *person) {
			c.exec("UPDATE run SET grp = 0, due_now = ? WHERE job_id = ?", int64(t0)*2, c.idOf("b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.exec("DROP TRIGGER run_updated")
			c.exec("DROP TRIGGER run_deleted")
			m, p := c.member(1, c.dsn), c.person(c.dsn)
			c.rated(1, map[string]int{"a": 100, "b": 101, "c": 102}, nil)
			m.claims(99)
			c.want("the first", m.starts(103), "a@100")
			if _, err := m.starter.wakeByTime(t.Context(), m.at(114)); err != nil {
				t.Fatal(err)
			}
			c.want("b was woken", c.rows("SELECT j.name FROM run r JOIN job j ON j.id = r.job_id WHERE r.state = 'idle'"), "b")
			p.at(114.5)
			vanish(c, p)
			var started []string
			for at := 115.0; at < 135; at++ {
				started = append(started, m.takesOverdue(at)...)
			}
			c.want("c begins", started[len(started)-1:], "c@102")
		})
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

func (c *cluster) idOf(name string) (id int64) {
	c.Helper()
	if err := c.db.Raw().QueryRow("SELECT id FROM job WHERE name = ?", name).Scan(&id); err != nil {
		c.Fatal(err)
	}
	return id
}

// TestRateOfManyNodes: three nodes, whose clocks differ a little, start sixty runs of a group at
// close to its rate, and never above it.
func TestRateOfManyNodes(t *testing.T) {
	const runs, rate, period = 60, 10, 2.0
	c := newCluster(t)
	var nodes []*member
	for i := range 3 {
		nodes = append(nodes, c.member(trip.Owner(i+1), c.dsn))
	}
	c.exec("INSERT INTO grp (id, name, slots, rate, period) VALUES (7, 'g', 1000000, ?, ?)", rate, int64(period*1e6))
	dues := map[string]int{}
	for i := range runs {
		dues[fmt.Sprintf("j%02d", i)] = 100
	}
	c.members(dues, func(spec *job.Spec) { spec.Priority = int(spec.Name[1] - '0') })
	nodes[0].claims(95)

	// A third of the prepared runs is of a node that died.
	c.exec("UPDATE run SET owner = 9, claim = claim + 1 WHERE MOD(job_id, 3) = 1")

	var starts []float64
	prios := map[int]float64{} // the last start of each priority
	r := rand.New(rand.NewPCG(1, 2))
	begin, end := 100.0, 0.0
	for at := begin; len(starts) < runs && at < begin+60; at += 0.05 {
		for _, i := range r.Perm(3) {
			if r.IntN(4) == 0 {
				continue // this node is slow
			}
			m := nodes[i]
			for _, s := range append(m.starts(at+0.01*float64(i)), m.takesOverdue(at+0.01*float64(i))...) {
				starts, end = append(starts, m.session.now.Sub(t0).Seconds()), at
				prios[int(s[1]-'0')] = at
			}
		}
	}

	if len(starts) != runs {
		t.Fatalf("%d runs have started, want %d: %v", len(starts), runs, c.runsNow())
	}
	slices.Sort(starts)
	for i := rate; i < runs; i++ {
		if starts[i]-starts[i-rate] <= period {
			t.Errorf("%d starts within %.3f s", rate+1, starts[i]-starts[i-rate])
		}
	}
	if ideal := period * (runs/rate - 1); end-begin > ideal/0.8 {
		t.Errorf("it took %.2f s, want at most %.2f", end-begin, ideal/0.8)
	}
	t.Logf("%d starts took %.2f s, the rate allows %.2f", runs, end-begin, period*(runs/rate-1))

	c.want("each started once", c.rows("SELECT COUNT(DISTINCT job_id) FROM run WHERE state = 'executing'"), fmt.Sprint(runs))
	order := slices.SortedFunc(func(yield func(int) bool) {
		for p := range 6 {
			if !yield(p) {
				return
			}
		}
	}, func(a, b int) int { return cmp.Compare(prios[a], prios[b]) })
	if order[0] != 5 && order[0] != 4 || order[5] != 0 && order[5] != 1 {
		t.Errorf("by their last starts the priorities are %v", order)
	}
}

// TestRateFates: with every fate of a COMMIT no more runs start than the rate admits, and all do.
func TestRateFates(t *testing.T) {
	deadlock := faultproxy.Error(1213, "40001", "Deadlock found")
	for what, match := range map[string]string{"starts": "taken \\+ .*, starts", "waits": "r.state = 'waiting'", "wakes": "SET wake_at"} {
		for fate, action := range map[string]faultproxy.Action{
			"lost": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter(), "refused": deadlock,
		} {
			t.Run(what+" "+fate, func(t *testing.T) {
				c := newCluster(t)
				dsn, proxy := c.proxied()
				m := c.member(1, dsn)
				c.rated(2, map[string]int{"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}, nil)
				m.claims(-7)
				injected := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(match), Action: action, Times: 1})
				var times []float64
				for at := 2.0; at < 60; at += 3 {
					for range m.settles(at) {
						times = append(times, at)
					}
				}
				if len(times) != 5 || injected.Fired() != 1 {
					t.Fatalf("started at %v, the fault happened %d times", times, injected.Fired())
				}
				for i := 2; i < 5; i++ {
					if times[i]-times[i-2] < 9 { // settles takes 2.5 s
						t.Errorf("started at %v", times)
					}
				}
				c.want("executing", c.rows("SELECT COUNT(*) FROM run WHERE state = 'executing'"), "5")
				c.want("counted", c.rows("SELECT taken FROM grp"), "5")
			})
		}
	}
}
