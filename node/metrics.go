package node

import (
	"context"
	"errors"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/metric"
	"go-crontab/internal/success"
	"go-crontab/job"
)

// amountsMost bounds the runs of each state that are counted for a scrape.
const amountsMost = 10_000

func (n *Node) newMetrics() {
	n.metrics = metric.New(n.cfg.Name, n.cfg.Version, max(0, n.cfg.MetricsJobs))
	n.metrics.Watch(n.state)
	n.metrics.Pools(
		metric.Pool{Name: "trip", Meter: n.db.Meter(), Stats: n.db.Pool},
		metric.Pool{Name: "people", Meter: n.api.Meter(), Stats: n.api.Pool},
		metric.Pool{Name: "alerts", Meter: n.alerts.Meter(), Stats: n.alerts.Pool},
		metric.Pool{Name: "pulse", Meter: n.pulse.Meter()},
	)

	var jobs int64
	var counted time.Time
	n.metrics.Cluster(func(ctx context.Context) (metric.Amounts, error) {
		now := n.clock.Now()
		if now == 0 {
			return metric.Amounts{}, errors.New("MySQL's clock has not been read yet")
		}
		a, err := n.reads().Amounts(ctx, now, amountsMost)
		if err != nil {
			return metric.Amounts{}, err
		}

		// A million jobs take a second.
		if time.Since(counted) > time.Minute {
			if jobs, err = n.reads().ActiveJobs(ctx); err != nil {
				return metric.Amounts{}, err
			}
			counted = time.Now()
		}

		found, err := n.reads().Troubles(ctx, now)
		troubles := map[job.AlertEvent]int{}
		for _, t := range found {
			troubles[t.Event]++
		}
		return metric.Amounts{Amounts: a, Jobs: jobs, Troubles: troubles}, err
	})
}

// Metrics returns the node's Prometheus metrics, see docs/metrics.md. Its Handler serves them, and
// its Collector adds them to a registry of the program.
func (n *Node) Metrics() *metric.Metrics { return n.metrics }

// state reads the gauges.
func (n *Node) state() metric.State {
	st := n.Status()
	out := metric.State{
		Ready:        st.Ready,
		Guarded:      st.Guard != 0,
		Slots:        st.Slots,
		Taken:        st.Taken,
		Executing:    st.Executing,
		Prepared:     st.Prepared,
		Unwritten:    st.Waiting,
		UnwrittenAge: n.unwrittenFor(),
		Lead:         st.Lead,
		LeaseAge:     st.LeaseAge,
		Stale:        n.timings.Stale,
		Expiry:       n.timings.Expiry,
	}

	now := n.clock.Now()
	if now != 0 {
		out.ClockOffset = n.clock.Offset()
	}

	if l := n.life.Load(); l != nil {
		_, out.Nodes = l.session.Share()
		out.Draining = l.session.Draining()
		if first := l.lookout.FirstIdle(); first != 0 {
			out.BacklogAge = max(0, now.Sub(first))
		}
	}

	return out
}

// past returns the finder of the last successes of jobs; nil for an executor of the embedding
// program, which does not ask for them.
func (n *Node) past() execute.Past {
	if _, own := n.executor.(*execute.Kinds); !own {
		return nil
	}
	return success.NewFinder(n.db)
}

// traced returns the executor, wrapped for tracing if configured.
func (n *Node) traced() execute.Executor {
	if n.cfg.Traced == nil {
		return n.executor
	}
	return n.cfg.Traced(n.executor)
}
