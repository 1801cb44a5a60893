package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Scenario is a way to load a cluster.
type Scenario struct {
	Name  string
	About string
	Quick bool // runs if no scenario is named
	run   func(ctx context.Context, b *run) ([]Result, error)
}

// Scenarios lists all scenarios.
func Scenarios() []Scenario {
	return []Scenario{
		{"steady", "jobs due once a second, spread over it, that do nothing", true,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.steadily(ctx, steady{Spread: true, Limit: insertLimit})
			}},
		{"herd", "the same, all due at the same instant", true, func(ctx context.Context, b *run) ([]Result, error) {
			return b.steadily(ctx, steady{})
		}},

		{"burst", "one-shot jobs that are all overdue, worked off at full speed", true,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.bursting(ctx, burst{Jobs: 100_000, Limit: insertLimit})
			}},
		{"shell", "the same with bash -c true", true, func(ctx context.Context, b *run) ([]Result, error) {
			return b.bursting(ctx, burst{Jobs: 5_000, Work: bash, Executor: "jobs", Limit: bashLimit})
		}},
		{"http", "the same with an HTTP request to this machine", true,
			func(ctx context.Context, b *run) ([]Result, error) {
				return withSink(func(url string) ([]Result, error) {
					bare := func(ctx context.Context, b *run, _ *schema) (*Limit, error) { return httpLimit(ctx, b, url) }
					return b.bursting(ctx, burst{Jobs: 30_000, Work: calling(url), Executor: "jobs", Limit: bare})
				})
			}},

		{"http-steady", "HTTP requests once a second, spread over it", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				return withSink(func(url string) ([]Result, error) {
					return b.steadily(ctx, steady{Spread: true, Work: calling(url), Executor: "jobs"})
				})
			}},
		{"http-herd", "the same, all due at the same instant", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				return withSink(func(url string) ([]Result, error) {
					return b.steadily(ctx, steady{Work: calling(url), Executor: "jobs"})
				})
			}},
		{"handler", "handlers of a Go program once a second, spread over it", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.steadily(ctx, steady{Spread: true, Work: handler, Executor: "jobs"})
			}},

		{"idle", "nodes on a table of jobs of which none is due", true,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.idling(ctx)
			}},
		{"api", "jobs created through the API of one node, one and 1,000 with each request", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				batch := most
				if b.forTests {
					batch = most / 20
				}
				return each([]int{1, batch}, func(n int) ([]Result, error) { return b.writing(ctx, n) })
			}},

		{"table", "steady beside 10,000, 100,000 and 1,000,000 jobs that are not due (--jobs 10000000: that many)",
			false, func(ctx context.Context, b *run) ([]Result, error) {
				sizes := []int{10_000, 100_000, 1_000_000}
				if b.Jobs != 0 {
					sizes = []int{b.Jobs}
				}
				return each(sizes, func(n int) ([]Result, error) {
					return b.steadily(ctx, steady{Spread: true, Idle: n, Variant: fmt.Sprintf("%d jobs", n)})
				})
			}},
		{"purge", "steady beside 400,000 old records, which stay, and which retention removes meanwhile", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.purging(ctx)
			}},

		{"nodes", "burst on 1, 2, 4 and 8 nodes of one server", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				return each([]int{1, 2, 4, 8}, func(n int) ([]Result, error) {
					return b.bursting(ctx, burst{Jobs: 50_000, Nodes: n, Variant: plural(n, "node")})
				})
			}},
		{"slow", "steady with 2 and 20 ms to the server and back", false,
			func(ctx context.Context, b *run) ([]Result, error) {
				trips := []time.Duration{2 * time.Millisecond, 20 * time.Millisecond}
				if b.RoundTrip != 0 {
					trips = []time.Duration{b.RoundTrip}
				}
				return each(trips, func(d time.Duration) ([]Result, error) {
					return b.steadily(ctx, steady{Spread: true, RoundTrip: d, Variant: d.String()})
				})
			}},
		{"failover", "steady on three nodes, of which one is killed in the middle", true,
			func(ctx context.Context, b *run) ([]Result, error) {
				return b.steadily(ctx, steady{Spread: true, Nodes: 3, Kill: true, For: 30 * time.Second})
			}},
	}
}

func each[T any](of []T, do func(T) ([]Result, error)) ([]Result, error) {
	var all []Result
	for _, v := range of {
		r, err := do(v)
		all = append(all, r...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// expiry is the session expiry of all nodes. It is the default expiry, so nodes do their chores as
// often as in production.
const expiry = 20 * time.Second

// steady is a constant load.
type steady struct {
	Variant   string
	Spread    bool
	Work      work
	Executor  string // "": noop; "jobs": the executors that jobs ask for; or as in orders
	Nodes     int
	Idle      int // additional jobs that are not due
	Past      *past
	RoundTrip time.Duration
	Kill      bool          // kill one node in the middle
	For       time.Duration // measured time, if the options have none
	Limit     limit
}

// warm returns how long a load lasts before the measurement begins.
func (b *run) warm() time.Duration {
	if b.forTests {
		return time.Second
	}
	return 5 * time.Second
}

const (
	usualRate = 1000
	usualFor  = 10 * time.Second
)

// steadily measures a constant load.
func (b *run) steadily(ctx context.Context, w steady) ([]Result, error) {
	rate, length := cmp.Or(b.Rate, usualRate), cmp.Or(b.For, w.For, usualFor)
	nodes := cmp.Or(b.Nodes, w.Nodes, 1)
	if w.Kill {
		nodes = max(nodes, 2)
	}

	variant := fmt.Sprintf("%d/s", rate)
	if w.Nodes == 0 && nodes > 1 {
		variant += " on " + plural(nodes, "node")
	}
	if w.Variant != "" {
		variant += " " + w.Variant
	}

	return b.again(ctx, variant, func(c *schema, r *Result) error {
		if err := b.measureLimit(ctx, w.Limit, c, r); err != nil {
			return err
		}

		// Fill the tables.
		now, err := c.now(ctx)
		if err != nil {
			return err
		}

		if w.Idle > 0 {
			b.Say("adding %d jobs that are not due", w.Idle)
			if err := c.idle(ctx, w.Idle, time.UnixMicro(now)); err != nil {
				return err
			}
			if now, err = c.now(ctx); err != nil {
				return err
			}
		}

		if w.Past != nil {
			b.Say("adding %d old records", w.Past.jobs*w.Past.records)
			if err := w.Past.fill(ctx, c, time.UnixMicro(now)); err != nil {
				return err
			}
			if now, err = c.now(ctx); err != nil {
				return err
			}
		}

		// This leaves time to add the jobs and to start the nodes.
		first := time.UnixMicro(now).Truncate(time.Second).Add(3*time.Second + time.Duration(rate/4000)*time.Second)
		if err := c.everySecond(ctx, rate, first, w.Spread, w.Work.orNoop()); err != nil {
			return err
		}

		members, err := b.startNodes(ctx, c, nodes, w.Executor, cmp.Or(b.RoundTrip, w.RoundTrip))
		defer func() { stopAll(members) }()
		if err != nil {
			return err
		}

		// Wait until the load is steady.
		from := first.Add(b.warm())
		if !b.forTests { // the first claim of all jobs takes many round trips
			from = from.Add(1000 * cmp.Or(b.RoundTrip, w.RoundTrip))
		}
		if err := c.awaitClock(ctx, from); err != nil {
			return err
		}

		if w.Past != nil || w.Idle > 0 {
			begun := c.awaitRound // with many jobs, a round takes a while
			if w.Past != nil {
				begun = func(ctx context.Context) error { return w.Past.begun(ctx, c) }
			}
			if err := begun(ctx); err != nil {
				return err
			}
			if now, err = c.now(ctx); err != nil {
				return err
			}

			from = time.UnixMicro(now)
		}

		// Measure.
		to := from.Add(length)
		b.Say("measuring %s for %s", variant, length)
		before, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		if w.Kill {
			if err := c.awaitClock(ctx, from.Add(length/3)); err != nil {
				return err
			}
			b.Say("killing %s", members[0].name)
			if err := members[0].kill(); err != nil {
				return err
			}
		}

		if err := c.awaitClock(ctx, to); err != nil {
			return err
		}

		after, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		if w.Past != nil {
			if r.Removed, err = w.Past.ended(ctx, b, c, length); err != nil {
				return err
			}
		}

		// Read the result.
		due := int64(rate) * int64(length/time.Second)
		if err := c.awaitRecords(ctx, from, to, due); err != nil {
			return err
		}

		account, started, err := c.account(ctx, from, to, due)
		if err != nil {
			return err
		}

		// Count starts by the time of the start, not by the due time. During the span, a node with
		// a backlog starts earlier due times, but at the same rate.
		if r.Fires, err = c.began(ctx, from, to); err != nil {
			return err
		}

		r.Nodes, r.Account, r.Seconds = nodes, account, length.Seconds()
		r.Rate = float64(r.Fires) / r.Seconds
		r.Series = seriesOf(started, from, int(length/time.Second))
		us := make([]int64, len(started))
		for i, s := range started {
			us[i] = s.late
		}

		r.Late = lateOf(us)
		r.cost(before, after)
		return nil
	})
}

// burst is a load of jobs that are due at the same time.
type burst struct {
	Variant  string
	Jobs     int
	Nodes    int
	Work     work
	Executor string
	Limit    limit
}

// bursting measures the time in which nodes work off a burst.
func (b *run) bursting(ctx context.Context, w burst) ([]Result, error) {
	jobs, nodes := cmp.Or(b.Jobs, w.Jobs), cmp.Or(w.Nodes, b.Nodes, 1)
	variant := fmt.Sprintf("%d jobs", jobs)
	if w.Nodes == 0 && nodes > 1 {
		variant += " on " + plural(nodes, "node")
	}
	if w.Variant != "" {
		variant += " " + w.Variant
	}

	return b.again(ctx, variant, func(c *schema, r *Result) error {
		if err := b.measureLimit(ctx, w.Limit, c, r); err != nil {
			return err
		}

		now, err := c.now(ctx)
		if err != nil {
			return err
		}

		// The jobs are due now. When they are shown they are overdue, but not late enough for
		// misfires.
		at := time.UnixMicro(now).Truncate(time.Second)

		// Hide the jobs until the nodes are ready. Then the nodes find all jobs overdue at once,
		// as after an outage, and have no prepared run.
		if err := c.hide(ctx, jobs, at, w.Work.orNoop()); err != nil {
			return err
		}

		members, err := b.startNodes(ctx, c, nodes, w.Executor, b.RoundTrip)
		defer func() { stopAll(members) }()
		if err != nil {
			return err
		}

		b.Say("measuring %s", variant)
		begin, err := c.show(ctx, at)
		if err != nil {
			return err
		}

		before, err := b.read(ctx, c, members) // after show, which is not part of the cost
		if err != nil {
			return err
		}

		from, to := at, at.Add(time.Microsecond)
		if err := c.awaitRecords(ctx, from, to, int64(jobs)); err != nil {
			return err
		}

		after, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		account, started, err := c.account(ctx, from, to, int64(jobs))
		if err != nil {
			return err
		}

		var end int64
		if err := c.db.QueryRowContext(ctx,
			"SELECT COALESCE(MAX(ended), 0) FROM run WHERE due = ?", at.UnixMicro()).Scan(&end); err != nil {
			return err
		}

		// Lateness counts from the time when the jobs were shown. The rate counts from the first
		// start, because nodes look for due jobs only every half second.
		us, first := make([]int64, len(started)), end
		for i, s := range started {
			us[i] = s.due + s.late - begin
			first = min(first, s.due+s.late)
		}

		r.Nodes, r.Account, r.Fires = nodes, account, int64(len(started))
		r.Seconds = max(float64(end-first)/1e6, 1e-6)
		r.Rate = float64(r.Fires) / r.Seconds
		r.Late = lateOf(us)
		r.cost(before, after)
		return nil
	})
}

// idling measures nodes while no job is due.
func (b *run) idling(ctx context.Context) ([]Result, error) {
	jobs, nodes, length := cmp.Or(b.Jobs, 100_000), cmp.Or(b.Nodes, 1), cmp.Or(b.For, 20*time.Second)
	return b.again(ctx, fmt.Sprintf("%d jobs", jobs), func(c *schema, r *Result) error {
		now, err := c.now(ctx)
		if err != nil {
			return err
		}

		b.Say("adding %d jobs that are not due", jobs)
		if err := c.idle(ctx, jobs, time.UnixMicro(now)); err != nil {
			return err
		}

		members, err := b.startNodes(ctx, c, nodes, "", b.RoundTrip)
		defer func() { stopAll(members) }()
		if err != nil {
			return err
		}
		if err := c.awaitRound(ctx); err != nil {
			return err
		}
		if err := wait(ctx, 2*b.warm()); err != nil { // until nodes are calm
			return err
		}

		b.Say("measuring for %s", length)
		before, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}
		if err := wait(ctx, length); err != nil {
			return err
		}

		after, err := b.read(ctx, c, members)
		if err != nil {
			return err
		}

		r.Nodes, r.Seconds = nodes, after.at.Sub(before.at).Seconds()
		d := after.server.minus(before.server)
		own := 2.0 // statements of the reading itself
		r.Idle = &Idle{
			Jobs: int64(jobs), Statements: max(0, d.statements-own) / r.Seconds / float64(nodes),
			NodeCPU:   percent(after.nodesSince(before), r.Seconds) / float64(nodes),
			ServerCPU: percent(d.cpu, r.Seconds),
		}
		r.Cost.NodeMB = after.rss
		return nil
	})
}
