package node_test

import (
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/node"

	dto "github.com/prometheus/client_model/go"
)

// figure sums the series of a metric that have all the labels, given as alternating names and
// values. A histogram counts its observations.
func figure(t testing.TB, nodes []*member, name string, labels ...string) (sum float64) {
	t.Helper()
	found := false
	for _, n := range nodes {
		families, err := n.Metrics().Gatherer().Gather()
		if err != nil {
			t.Fatal(err)
		}

		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				if hasLabels(m, labels) {
					found = true
					sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(
						m.GetHistogram().GetSampleCount())
				}
			}
		}
	}

	if !found {
		t.Errorf("no node has %s%v", name, labels)
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for pair := range slices.Chunk(labels, 2) {
		if !slices.ContainsFunc(m.GetLabel(),
			func(l *dto.LabelPair) bool { return l.GetName() == pair[0] && l.GetValue() == pair[1] }) {
			return false
		}
	}
	return true
}

// TestMetrics compares the metrics of the nodes with MySQL.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	impatient := func(cfg *node.Config) { cfg.Grace = 100 * time.Millisecond }
	nodes := []*member{c.start("one", impatient), c.start("two", impatient)}
	n := nodes[0]
	good := n.create(job.Spec{
		Name: "good", Every: job.Duration(200 * time.Millisecond), MaxFires: 20, Command: "true",
		Labels: map[string]string{"metrics": "on"},
	})

	n.create(job.Spec{Name: "bad", Every: job.Duration(300 * time.Millisecond), MaxFires: 10, Command: "exit 3"})
	// This job skips due times.
	n.create(job.Spec{Name: "slow", Every: job.Duration(200 * time.Millisecond), MaxFires: 10, Command: "sleep 0.7"})
	held := n.create(job.Spec{Name: "held", Every: job.Duration(time.Hour), Command: "sleep 60"})
	if _, err := n.Editor().RunNow(t.Context(), []int64{held.ID}, 0, ""); err != nil {
		t.Fatal(err)
	}

	await(t, "all are written, one executes", 60*time.Second, func() bool {
		return c.count(`
			SELECT COALESCE(SUM(COALESCE(due_count, 1)), 0)
			FROM run
			WHERE state = 'ended'`) == 40 && c.count("SELECT COUNT(*) FROM run WHERE state = 'executing'") == 1
	})

	for _, o := range []job.Outcome{job.Succeeded, job.Failed, job.Skipped, job.Missed, job.Lost} {
		want := c.count("SELECT COALESCE(SUM(COALESCE(due_count, 1)), 0) FROM run WHERE outcome = ?", int8(o))
		if got := figure(t, nodes, "gocrontab_runs_ended_total", "outcome", o.String()); got != float64(want) {
			t.Errorf("%s: the nodes count %v, history has %d", o, got, want)
		}
	}

	begun := c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND started > 0")
	if got := figure(t, nodes, "gocrontab_lateness_seconds"); got != float64(begun+1) {
		t.Errorf("begun: the nodes count %v, history has %d, and one executes", got, begun)
	}
	if got := figure(t, nodes, "gocrontab_run_duration_seconds"); got != float64(begun) {
		t.Errorf("ended: the nodes count %v, history has %d", got, begun)
	}
	if got, want := figure(t, nodes, "gocrontab_tasks_claimed_total"), float64(41); got < want {
		t.Errorf("claimed: the nodes count %v, want %v or more", got, want)
	}

	if got, spared := figure(t, nodes, "gocrontab_tasks_started_total"),
		figure(t, nodes, "gocrontab_not_spawned_total"); got-spared != float64(begun+1) {
		t.Errorf("started: the nodes count %v, %v of them not spawned, history has %d", got, spared, begun)
	}

	if got := figure(t, nodes, "gocrontab_executing_runs"); got != 1 {
		t.Errorf("executing: got %v, want 1", got)
	}

	ran := float64(c.count(`
		SELECT COUNT(*)
		FROM run
		WHERE state = 'ended' AND job_id = ? AND started > 0`, good.ID))

	if got := figure(t, nodes, "gocrontab_job_runs_ended_total", "job", "good", "outcome", "succeeded"); got != ran {
		t.Errorf("of one job: got %v, want %v", got, ran)
	}

	for _, name := range []string{"gocrontab_mysql_statements_total", "gocrontab_mysql_transactions_total",
		"gocrontab_change_duration_seconds"} {
		if figure(t, nodes, name) < 50 {
			t.Errorf("%s: hardly any", name)
		}
	}

	for name, want := range map[string]float64{
		"gocrontab_ready": 2, "gocrontab_cluster_nodes": 4, "gocrontab_cluster_readable": 2,
		"gocrontab_slots":                  float64(nodes[0].Status().Slots + nodes[1].Status().Slots),
		"gocrontab_session_expiry_seconds": 2 * c.expiry.Seconds(), "gocrontab_sessions_lost_total": 0,
		"gocrontab_draining": 0,
	} {
		await(t, name, 15*time.Second, func() bool { return figure(t, nodes, name) == want })
	}

	if age := figure(t, nodes, "gocrontab_lease_age_seconds"); age <= 0 || age > 2*c.expiry.Seconds() {
		t.Errorf("lease age: %v", age)
	}
}
