package metric

import (
	"sync"

	"go-crontab/job"

	"github.com/prometheus/client_golang/prometheus"
)

// JobLabel is the label by which a job asks for its own series. Its value does not matter.
const JobLabel = "metrics"

// Others is the name under which jobs without room are counted together. These jobs ask for their
// own series. The app of Others is "", which no real app is called.
const Others = "other"

// mostApps bounds the apps with series of their own: the apps whose runs ended first on the node.
// Further apps are counted together in the app "".
const mostApps = 100

// apps counts the runs of each app.
type apps struct {
	runs *prometheus.CounterVec

	mu   sync.Mutex
	seen map[string]bool
}

func newApps() *apps {
	return &apps{
		seen: map[string]bool{},
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "app_runs_ended_total",
			Help: "Runs of an app that ended on this node, by outcome.",
		}, []string{"app", "outcome"}),
	}
}

func (a *apps) ended(app string, o job.Outcome) {
	a.mu.Lock()
	if !a.seen[app] && len(a.seen) >= mostApps {
		app = ""
	} else {
		a.seen[app] = true
	}
	a.mu.Unlock()

	a.runs.WithLabelValues(app, o.String()).Inc()
}

// jobs holds the series of single jobs.
type jobs struct {
	most int
	runs *prometheus.CounterVec
	time *prometheus.CounterVec
	good *prometheus.GaugeVec

	mu   sync.Mutex
	seen map[named]job.Micros // when each job's last run ended
	look job.Micros           // earliest time of the next look for a silent job
}

// named identifies a job.
type named struct{ app, job string }

const (
	// silent is the time without an ended run after which a job may lose its place, in
	// microseconds.
	silent = 3600 * 1_000_000
	// lookAgain is the pause between two looks for a silent job, in microseconds.
	lookAgain = 60 * 1_000_000
)

func newJobs(most int) *jobs {
	labels := []string{"app", "job"}
	return &jobs{
		most: most,
		seen: map[named]job.Micros{},
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "job_runs_ended_total",
			Help: "Runs of a job that ended on this node, for jobs with the label metrics.",
		}, append(labels, "outcome")),
		time: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "job_run_seconds_total",
			Help: "Total duration of a job's runs on this node, for jobs with the label metrics.",
		}, labels),
		good: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "job_last_success_timestamp_seconds",
			Help: "When a run of a job last succeeded on this node, for jobs with the label metrics.",
		}, labels),
	}
}

func (j *jobs) register(r *prometheus.Registry) { r.MustRegister(j.runs, j.time, j.good) }

// ended counts an attempt of a job that ended at an instant and took a number of seconds.
func (j *jobs) ended(app, name string, o job.Outcome, took float64, at job.Micros) {
	j.mu.Lock() // until the end: otherwise an evicted series could come back
	defer j.mu.Unlock()

	n, room := j.place(named{app, name}, at)
	j.runs.WithLabelValues(n.app, n.job, o.String()).Inc()
	j.time.WithLabelValues(n.app, n.job).Add(max(0, took))
	if o == job.Succeeded && room {
		j.good.WithLabelValues(n.app, n.job).Set(float64(at) / 1e6)
	}
}

// place returns the name under which a job is counted. If there is no room, it first tries to evict
// a silent job.
func (j *jobs) place(n named, at job.Micros) (by named, room bool) {
	if _, ok := j.seen[n]; !ok && len(j.seen) >= j.most {
		if at < j.look || !j.evict(at) {
			return named{"", Others}, false
		}
	}
	j.seen[n] = at
	return n, true
}

// evict removes the series of the job that has been silent longest. It reports whether there was a
// silent job.
func (j *jobs) evict(at job.Micros) bool {
	j.look = at + lookAgain
	var oldest named

	since := at - silent
	for n, last := range j.seen {
		if last < since {
			oldest, since = n, last
		}
	}

	if oldest == (named{}) {
		return false
	}
	delete(j.seen, oldest)
	j.look = 0 // there may be more silent jobs

	labels := prometheus.Labels{"app": oldest.app, "job": oldest.job}
	j.runs.DeletePartialMatch(labels)
	j.time.DeletePartialMatch(labels)
	j.good.DeletePartialMatch(labels)
	return true
}
