package metric

import (
	"context"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/prometheus/client_golang/prometheus"
)

// State is the state of a node at the moment of a scrape.
type State struct {
	Ready, Draining, Guarded bool

	Slots     int // see the gauge slots
	Taken     int // in whole slots
	Executing int // started attempts without a written outcome
	Prepared  int
	Unwritten int // ended attempts without a written outcome

	UnwrittenAge time.Duration // age of the oldest unwritten outcome; zero: none
	Lead         time.Duration
	LeaseAge     time.Duration
	Stale        time.Duration // greatest age of the lease at which runs start
	Expiry       time.Duration
	ClockOffset  time.Duration // MySQL's clock minus the node's

	Nodes      int           // nodes that take work, including this one
	BacklogAge time.Duration // time since the earliest idle run was due; zero: none is due
}

// gauge derives a metric from a state.
type gauge struct {
	desc *prometheus.Desc
	of   func(*State) float64
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var gauges = []gauge{
	{
		desc("ready", "1 if the node can start and change jobs."),
		func(s *State) float64 { return flag(s.Ready) },
	},
	{
		desc("draining", "1 while the node drains before it stops."),
		func(s *State) float64 { return flag(s.Draining) },
	},
	{
		desc("guarded", "1 if a guard process watches the node's commands."),
		func(s *State) float64 { return flag(s.Guarded) },
	},
	{
		desc("slots", "Runs that the node may execute at once. An HTTP request takes a sixteenth of a slot."),
		func(s *State) float64 { return float64(s.Slots) },
	},
	{
		desc("slots_taken", "Slots in use. An HTTP request takes a sixteenth of a slot."),
		func(s *State) float64 { return float64(s.Taken) },
	},
	{
		desc("executing_runs", "Started runs whose outcome is not written yet."),
		func(s *State) float64 { return float64(s.Executing) },
	},
	{
		desc("prepared_tasks", "Runs that the node has prepared for their due times."),
		func(s *State) float64 { return float64(s.Prepared) },
	},
	{
		desc("unwritten_outcomes", "Ended runs whose outcome is not written yet."),
		func(s *State) float64 { return float64(s.Unwritten) },
	},
	{
		desc("unwritten_age_seconds", "Age of the oldest unwritten outcome; 0 if there is none."),
		func(s *State) float64 { return s.UnwrittenAge.Seconds() },
	},
	{
		desc("lead_seconds", "How long before the due time a start may be committed."),
		func(s *State) float64 { return s.Lead.Seconds() },
	},
	{
		desc("lease_age_seconds", "Age of the last successful heartbeat."),
		func(s *State) float64 { return s.LeaseAge.Seconds() },
	},
	{
		desc("lease_limit_seconds", "Greatest age of the lease at which runs start."),
		func(s *State) float64 { return s.Stale.Seconds() },
	},
	{
		desc("session_expiry_seconds", "Time without a heartbeat after which other nodes consider a node dead."),
		func(s *State) float64 { return s.Expiry.Seconds() },
	},
	{
		desc("clock_offset_seconds", "MySQL's clock minus the node's clock. Schedules follow MySQL's clock."),
		func(s *State) float64 { return s.ClockOffset.Seconds() },
	},
	{
		desc("cluster_nodes", "Nodes that take work, as this node last saw the cluster."),
		func(s *State) float64 { return float64(s.Nodes) },
	},
	{
		desc("cluster_backlog_age_seconds",
			"Lateness of the earliest due run that no node has, as this node last saw it; 0 if there is none."),
		func(s *State) float64 { return s.BacklogAge.Seconds() },
	},
}

// states collects the gauges, all from the same state.
type states struct{ read func() State }

func (s states) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range gauges {
		ch <- g.desc
	}
}

func (s states) Collect(ch chan<- prometheus.Metric) {
	st := s.read()
	for _, g := range gauges {
		ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.of(&st))
	}
}

// Watch adds the gauges of the node's state.
func (m *Metrics) Watch(read func() State) { m.own.MustRegister(states{read}) }

// Pool is a named pool of connections.
type Pool struct {
	Name  string
	Meter *sql.Meter
	Stats func() sql.Pool // nil: the heartbeat's single connection, without transactions
}

type pools []Pool

var (
	transactions = desc("mysql_transactions_total",
		"Transactions by the outcome of their commit; unknown means that the reply was lost.", "pool", "outcome")
	statements = desc("mysql_statements_total", "Statements sent to MySQL.", "pool")
	failures   = desc("mysql_statement_errors_total", "Statements that failed.", "pool")
	retries    = desc("mysql_transaction_retries_total",
		"Transactions retried after a deadlock or a lock timeout.", "pool")
	connections = desc("mysql_pool_connections", "Connections by state: in_use or idle.", "pool", "state")
	mostOpen    = desc("mysql_pool_connections_limit", "Most connections that the pool may open.", "pool")
	waits       = desc("mysql_pool_waits_total", "Number of waits for a connection.", "pool")
	waited      = desc("mysql_pool_wait_seconds_total", "Total time of waits for a connection.", "pool")

	claimed = desc("tasks_claimed_total", "Runs that the node claimed.")
	started = desc("tasks_started_total", "Runs whose start the node committed.")
	freed   = desc("tasks_freed_total", "Runs that became idle again: released by a node, or owned by a dead one.")
	ended   = desc("runs_ended_total",
		"Ended runs, and due times that ended without a run, by outcome.", "outcome")
)

func (p pools) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		transactions, statements, failures, retries, connections, mostOpen, waits, waited,
		claimed, started, freed, ended,
	} {
		ch <- d
	}
}

func (p pools) Collect(ch chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}

	var took, began, back int64
	var outcomes [job.LastOutcome + 1]int64
	for _, x := range p {
		m := x.Meter
		count(statements, float64(m.Statements.Load()), x.Name)
		count(failures, float64(m.Errors.Load()), x.Name)
		if x.Stats == nil {
			continue // the heartbeat uses no transactions
		}
		count(transactions, float64(m.Applied.Load()), x.Name, "applied")
		count(transactions, float64(m.Refused.Load()), x.Name, "refused")
		count(transactions, float64(m.Unknown.Load()), x.Name, "unknown")
		count(retries, float64(m.Retries.Load()), x.Name)

		s := x.Stats()
		ch <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(s.InUse), x.Name, "in_use")
		ch <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(s.Idle), x.Name, "idle")
		ch <- prometheus.MustNewConstMetric(mostOpen, prometheus.GaugeValue, float64(s.Most), x.Name)
		count(waits, float64(s.Waits), x.Name)
		count(waited, s.Waited.Seconds(), x.Name)

		took, began, back = took+m.Claimed.Load(), began+m.Started.Load(), back+m.Freed.Load()
		for o := range outcomes {
			outcomes[o] += m.Ended(job.Outcome(o))
		}
	}

	count(claimed, float64(took))
	count(started, float64(began))
	count(freed, float64(back))
	for o := job.Succeeded; o <= job.LastOutcome; o++ {
		count(ended, float64(outcomes[o]), o.String())
	}
}

// Pools adds the counters of statements, transactions and runs.
func (m *Metrics) Pools(p ...Pool) { m.own.MustRegister(pools(p)) }

// Amounts is the state of the cluster at the moment of a scrape.
type Amounts struct {
	read.Amounts
	Jobs     int64                  // jobs with a next due time
	Troubles map[job.AlertEvent]int // number of troubles, by the event that alerts about them
}

// cluster reads the cluster's amounts of work from MySQL. It reads at most once every
// clusterEvery, even with many scrapers.
type cluster struct {
	read func(context.Context) (Amounts, error)

	mu   sync.Mutex
	at   time.Time
	last Amounts
	err  error
}

const (
	clusterEvery   = 5 * time.Second
	clusterTimeout = 2 * time.Second
)

var (
	backlog = desc("cluster_backlog_tasks",
		"Due runs of the cluster that wait only for a node; counted to 10,000.")
	waiting = desc("cluster_waiting_tasks",
		"Runs of the cluster that wait for a run of their job, a slot of their group, or a matching node; "+
			"counted to 10,000.")
	executing = desc("cluster_executing_tasks",
		"Started runs of the cluster; counted to 10,000.")
	active = desc("cluster_active_jobs",
		"Jobs with a next due time, counted once a minute.")
	troubles = desc("cluster_troubles",
		"Troubles of the cluster that need a person, by the event that alerts about them.", "event")
	readable = desc("cluster_readable",
		"1 if MySQL returned the cluster's amounts of work; otherwise they are absent.")
)

func (c *cluster) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{backlog, waiting, executing, active, troubles, readable} {
		ch <- d
	}
}

func (c *cluster) Collect(ch chan<- prometheus.Metric) {
	a, err := c.amounts()
	set := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}

	set(readable, flag(err == nil))
	if err == nil {
		set(backlog, float64(a.Backlog))
		set(waiting, float64(a.Waiting))
		set(executing, float64(a.Executing))
		set(active, float64(a.Jobs))
		for _, event := range job.AlertTroubles() {
			n := float64(a.Troubles[event])
			ch <- prometheus.MustNewConstMetric(troubles, prometheus.GaugeValue, n, string(event))
		}
	}
}

// amounts returns the latest amounts. It reads them again if they are older than clusterEvery.
func (c *cluster) amounts() (Amounts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || time.Since(c.at) >= clusterEvery {
		ctx, cancel := context.WithTimeout(context.Background(), clusterTimeout)
		defer cancel()
		c.last, c.err = c.read(ctx)
		c.at = time.Now()
	}
	return c.last, c.err
}

// Cluster adds the gauges of the cluster's amounts of work.
func (m *Metrics) Cluster(read func(context.Context) (Amounts, error)) {
	m.own.MustRegister(&cluster{read: read})
}
