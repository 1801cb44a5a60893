package metric

import (
	"net/http"
	"strconv"
	"time"

	"go-crontab/internal/logqueue"
	"go-crontab/job"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics holds the metrics of a node. It is safe for concurrent use.
type Metrics struct {
	own     *prometheus.Registry
	process *prometheus.Registry

	lateness     prometheus.Histogram
	runTime      prometheus.Histogram
	changes      map[string]prometheus.Histogram // by the name of the change
	notSpawned   prometheus.Counter
	sessionsLost prometheus.Counter

	auditLogErrors prometheus.Counter
	limited        map[job.Limit]prometheus.Counter
	requests       *prometheus.CounterVec
	requestTime    prometheus.Histogram
	apps           *apps
	jobs           *jobs
}

// prefix begins the name of every metric.
const prefix = "gocrontab_"

// Changes has the names of the changes that are timed. lock.Change uses the same names.
var Changes = []string{"claim", "start", "finish", "compensate"}

// Upper bounds of the classic buckets, in seconds. Native histograms choose their own buckets.
var (
	latenessBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	runBounds      = []float64{.01, .05, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
	changeBounds   = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	requestBounds  = []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

// New returns the metrics of a node. At most mostJobs jobs get series of their own.
func New(node, version string, mostJobs int) *Metrics {
	m := &Metrics{
		own:     prometheus.NewRegistry(),
		process: prometheus.NewRegistry(),
		changes: map[string]prometheus.Histogram{},
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "node_info", Help: "Always 1; the labels are the node's name and version.",
		ConstLabels: prometheus.Labels{"node": node, "version": version},
	})
	info.Set(1)

	// The trip of a run.
	m.lateness = histogram("lateness_seconds", "How late runs started, after their due time.", latenessBounds, nil)
	m.runTime = histogram("run_duration_seconds", "How long runs took.", runBounds, nil)
	for _, name := range Changes {
		m.changes[name] = histogram("change_duration_seconds",
			"How long transactions on runs took, including waits and retries.",
			changeBounds, prometheus.Labels{"change": name})
		m.own.MustRegister(m.changes[name])
	}
	m.notSpawned = prometheus.NewCounter(prometheus.CounterOpts{
		Name: prefix + "not_spawned_total",
		Help: "Started runs that were released without being executed, because the lease was stale or it was too late.",
	})
	m.auditLogErrors = prometheus.NewCounter(prometheus.CounterOpts{
		Name: prefix + "audit_log_errors_total",
		Help: "Failed attempts to copy audit lines to --audit-log.",
	})
	m.sessionsLost = prometheus.NewCounter(prometheus.CounterOpts{
		Name: prefix + "sessions_lost_total",
		Help: "Sessions that this node lost; each time its running commands were killed.",
	})

	m.limited = map[job.Limit]prometheus.Counter{}
	for _, limit := range job.AllLimits {
		m.limited[limit] = prometheus.NewCounter(prometheus.CounterOpts{
			Name:        prefix + "app_limit_refusals_total",
			Help:        "Requests refused and due times skipped because an app was at one of its limits.",
			ConstLabels: prometheus.Labels{"limit": string(limit)},
		})
		m.own.MustRegister(m.limited[limit])
	}

	// The API.
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: prefix + "api_requests_total",
		Help: "API requests answered. The route is empty for unknown paths.",
	}, []string{"method", "route", "code"})
	m.requestTime = histogram("api_request_duration_seconds", "How long API requests took, without streams.",
		requestBounds, nil)

	m.apps, m.jobs = newApps(), newJobs(mostJobs)
	logDropped := prometheus.NewCounterFunc(
		prometheus.CounterOpts{
			Name: prefix + "log_lines_dropped_total",
			Help: "Log lines dropped because the reader of the log was blocked.",
		},
		func() float64 { return float64(logqueue.Dropped()) },
	)

	m.own.MustRegister(info, m.lateness, m.runTime, m.notSpawned, m.sessionsLost, m.auditLogErrors, m.requests,
		m.requestTime, logDropped, m.apps.runs)
	m.jobs.register(m.own)
	m.process.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// histogram returns a histogram with native buckets, and classic ones for older Prometheus servers.
func histogram(name, help string, bounds []float64, labels prometheus.Labels) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: prefix + name, Help: help, ConstLabels: labels, Buckets: bounds,

		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	})
}

// Began records the lateness of an attempt that begins.
func (m *Metrics) Began(late time.Duration) { m.lateness.Observe(late.Seconds()) }

// Ended counts an ended attempt.
func (m *Metrics) Ended(spec *job.Spec, r *job.Run) {
	took := r.Ended.Sub(r.Started).Seconds()
	m.runTime.Observe(took)
	m.apps.ended(spec.App, r.Outcome)
	if _, asks := spec.Labels[JobLabel]; asks {
		m.jobs.ended(spec.App, spec.Name, r.Outcome, took, r.Ended)
	}
}

// NotSpawned counts an attempt whose start was committed but that was not spawned.
func (m *Metrics) NotSpawned() { m.notSpawned.Inc() }

// SessionLost counts a lost session.
func (m *Metrics) SessionLost() { m.sessionsLost.Inc() }

// AuditLogFailed counts a failed try to copy audit lines.
func (m *Metrics) AuditLogFailed() { m.auditLogErrors.Inc() }

// Limited counts a refusal because an app has reached a limit.
func (m *Metrics) Limited(limit job.Limit) { m.limited[limit].Inc() }

// Changed records the duration of a change. It ignores names that are not in Changes.
func (m *Metrics) Changed(name string, took time.Duration) {
	if h := m.changes[name]; h != nil {
		h.Observe(took.Seconds())
	}
}

// methods may be values of the label method. A client can send any word as a method, so all other
// methods are counted as "other".
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true}

// Answered counts a request. route is a pattern of the API's routes, or "" if no route matched.
func (m *Metrics) Answered(method, route string, status int, took time.Duration, streamed bool) {
	if !methods[method] {
		method = "other"
	}
	if status < 100 || status > 599 {
		status = 200 // if nothing was written, net/http sends this status
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	if !streamed {
		m.requestTime.Observe(took.Seconds())
	}
}

// Collector returns the node's own metrics, for a program that embeds a node and serves metrics
// itself.
func (m *Metrics) Collector() prometheus.Collector { return m.own }

// Gatherer returns all metrics, including the process and Go's runtime.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{m.own, m.process}
}

// Handler serves all metrics, to at most four requests at once.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		ErrorHandling:       promhttp.ContinueOnError,
	})
}
