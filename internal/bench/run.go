package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// run is the state of a call of Run.
type run struct {
	Options
	server   *server
	scenario string
}

// Run runs the selected scenarios. After an error or the end of ctx, the report has the results up
// to then. Run leaves nothing on the server.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Repeat == 0 {
		o.Repeat = 1
	}

	scenarios := o.Scenarios
	if len(scenarios) == 0 {
		for _, s := range Scenarios() {
			if s.Quick {
				scenarios = append(scenarios, s.Name)
			}
		}
	}

	s, err := open(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	report = &Report{At: time.Now().UTC().Truncate(time.Second), Version: o.Version}
	if report.Machine, err = s.machine(ctx); err != nil {
		return nil, err
	}

	for _, name := range scenarios {
		scenario, _ := find(name)
		b := &run{Options: o, server: s, scenario: name}
		o.Say("%s: %s", scenario.Name, scenario.About)
		results, err := scenario.run(ctx, b)
		report.Results = append(report.Results, results...)
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
	}

	return report, nil
}

// again measures a variant Repeat times, each time in a new schema, and returns the median.
func (b *run) again(ctx context.Context, variant string, measure func(*schema, *Result) error) ([]Result, error) {
	var runs []Result
	for range b.Repeat {
		r := Result{Scenario: b.scenario, Variant: variant, Noise: noise()}
		if err := b.inSchema(ctx, func(c *schema) error { return measure(c, &r) }); err != nil {
			return nil, err
		}

		r.Noise = max(r.Noise, noise())
		r.Noisy = r.Noise > tooNoisy
		if r.Limit != nil && r.Limit.Rate > 0 {
			r.Limit.Ratio = r.Rate / r.Limit.Rate
		}

		runs = append(runs, r)
	}

	return []Result{median(runs)}, nil
}

func (b *run) inSchema(ctx context.Context, do func(*schema) error) (err error) {
	c, err := b.server.newSchema(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.drop()) }()
	return do(c)
}

// startNodes starts n nodes and returns when all are ready. After an error it returns the started
// nodes, too, so that the caller can stop them.
func (b *run) startNodes(
	ctx context.Context, c *schema, n int, executor string, roundTrip time.Duration,
) (members []*member, err error) {
	dsn := c.dsn(c.name)
	if roundTrip > 0 {
		d, err := newDistance(ctx, c.address(), roundTrip)
		if err != nil {
			return nil, err
		}
		dsn = c.over(d, c.name)
	}

	o := orders{DSN: dsn, Executor: executor, Expiry: expiry}
	switch executor {
	case "":
		o.Executor, o.Slots = "noop", 100_000
	case "jobs":
		o.Executor = ""
	}

	for i := range n {
		o.Name = fmt.Sprintf("bench-%d", i+1)
		m, err := start(o)
		if err != nil {
			return members, err
		}
		members = append(members, m)
	}

	for _, m := range members {
		if err := m.awaitReady(ctx); err != nil {
			return members, err
		}
	}

	return members, nil
}

func stopAll(members []*member) {
	for _, m := range members {
		_ = m.stop() // its results are in the rows of runs
	}
}

// reading has the resources that the server and the nodes had used at an instant.
type reading struct {
	at     time.Time
	server counters
	nodes  map[*member]time.Duration // CPU time, by living node
	guards map[*member]guardVitals
	rss    float64 // of the largest node, MB
	mb     float64 // of the server, MB
}

// read asks the living nodes and the server.
func (b *run) read(ctx context.Context, c *schema, members []*member) (r reading, err error) {
	r.nodes, r.guards = map[*member]time.Duration{}, map[*member]guardVitals{}
	for _, m := range members {
		if m.gone() {
			continue
		}
		v, err := m.vitals()
		if err != nil {
			return r, err
		}
		r.nodes[m], r.guards[m] = v.CPU, v.Guard
		r.rss = max(r.rss, v.RSS)
	}

	if c.private != nil {
		r.mb = residentMB(fmt.Sprint(c.private.PID()))
	}

	r.server, err = c.counters(ctx)
	r.at = time.Now()
	return r, err
}

// nodesSince returns the CPU time of the living nodes since an earlier reading. The CPU time of a
// killed node is unknown.
func (r reading) nodesSince(before reading) (d time.Duration) {
	for m, used := range r.nodes {
		d += used - before.nodes[m]
	}
	return d
}

// guardSince returns the largest CPU time of any guard since an earlier reading, and the largest
// memory of any guard.
func (r reading) guardSince(before reading) (most guardVitals) {
	for m, g := range r.guards {
		most.CPU, most.Own = max(most.CPU, g.CPU-before.guards[m].CPU), max(most.Own, g.Own)
	}
	return most
}

// cost sets the cost of the fires between two readings.
func (r *Result) cost(before, after reading) {
	d, seconds := after.server.minus(before.server), after.at.Sub(before.at).Seconds()
	fires := float64(max(1, r.Fires))
	r.Cost = Cost{
		Statements: d.statements / fires, Commits: d.commits / fires, Redo: d.redo / fires, Binlog: d.binlog / fires,
		NodeCPU: percent(after.nodesSince(before), seconds), NodeMB: after.rss,
		ServerCPU: percent(d.cpu, seconds), ServerMB: after.mb,
		NodeUS: after.nodesSince(before).Seconds() * 1e6 / fires, ServerUS: d.cpu.Seconds() * 1e6 / fires,
	}

	guard := after.guardSince(before)
	r.Cost.GuardCPU, r.Cost.GuardMB = percent(guard.CPU, seconds), guard.Own
}

func percent(cpu time.Duration, seconds float64) float64 {
	return cpu.Seconds() / seconds * 100
}

// awaitClock returns when the server's clock has reached an instant.
func (c *schema) awaitClock(ctx context.Context, at time.Time) error {
	for {
		now, err := c.now(ctx)
		if err != nil {
			return err
		}

		left := time.Duration(at.UnixMicro()-now) * time.Microsecond
		if left <= 0 {
			return nil
		}
		if err := wait(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// hide adds one-shot jobs without a due time, so that they are not claimed before show.
func (c *schema) hide(ctx context.Context, n int, at time.Time, w work) error {
	if err := c.once(ctx, n, at, w); err != nil {
		return err
	}
	_, err := c.db.ExecContext(ctx, "UPDATE job SET next_due = NULL")
	return err
}

// show makes all hidden jobs due at the instant `at`. It returns the server's time afterwards, in
// microseconds.
func (c *schema) show(ctx context.Context, at time.Time) (us int64, err error) {
	if _, err := c.db.ExecContext(ctx, "UPDATE job SET next_due = ?", at.UnixMicro()); err != nil {
		return 0, err
	}
	return c.now(ctx)
}
