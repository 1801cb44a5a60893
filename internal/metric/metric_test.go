package metric_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/metric"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// full returns metrics in which every family has a series.
func full(most int) *metric.Metrics {
	m := metric.New("web-1", "v1.2.3", most)
	m.Watch(func() metric.State {
		return metric.State{Ready: true, Slots: 8, Executing: 3, UnwrittenAge: 2500 * time.Millisecond,
			LeaseAge: 1500 * time.Millisecond, Nodes: 2}
	})

	meter := new(sql.Meter)
	meter.Claimed.Add(7)
	m.Pools(metric.Pool{Name: "trip", Meter: meter, Stats: func() sql.Pool { return sql.Pool{Most: 8, InUse: 1} }},
		metric.Pool{Name: "pulse", Meter: new(sql.Meter)})
	m.Cluster(func(context.Context) (metric.Amounts, error) {
		return metric.Amounts{Amounts: read.Amounts{Backlog: 5}}, nil
	})
	m.Began(12 * time.Millisecond)
	m.Ended(spec("a", "metrics"), run(job.Succeeded, time.Second))
	m.Answered("GET", "/healthz", 200, time.Millisecond, false)
	for _, name := range metric.Changes {
		m.Changed(name, time.Millisecond)
	}

	return m
}

func spec(name, label string) *job.Spec {
	s := &job.Spec{App: "shop", Name: name}
	if label != "" {
		s.Labels = map[string]string{label: "on"}
	}
	return s
}

// begin is an arbitrary instant.
const begin = job.Micros(1_800_000_000_000_000)

func run(o job.Outcome, took time.Duration) *job.Run {
	return &job.Run{Started: begin, Ended: begin.Add(took), Result: job.Result{Outcome: o}}
}

// scrape returns the metrics in the text format.
func scrape(t *testing.T, m *metric.Metrics) (text string, families map[string]*dto.MetricFamily) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	text = w.Body.String()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, families
}

// value returns the value of the series with all the labels, each as name=value.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range families[name].GetMetric() {
		has := map[string]bool{}
		for _, l := range m.GetLabel() {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && has[l]
		}
		switch {
		case !all:
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}

	t.Errorf("no series %s%v", name, labels)
	return -1
}

// TestNames: Prometheus' own linter accepts the names and help texts.
func TestNames(t *testing.T) {
	t.Parallel()
	text, families := scrape(t, full(10))
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}

	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "gocrontab_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}

	for name := range families {
		if !strings.HasPrefix(name, "gocrontab_") && !strings.HasPrefix(name, "go_") &&
			!strings.HasPrefix(name, "process_") {
			t.Errorf("%s begins with nothing that is ours", name)
		}
	}

	for _, x := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"gocrontab_ready", nil, 1},
		{"gocrontab_slots", nil, 8},
		{"gocrontab_executing_runs", nil, 3},
		{"gocrontab_lease_age_seconds", nil, 1.5},
		{"gocrontab_unwritten_age_seconds", nil, 2.5},
		{"gocrontab_tasks_claimed_total", nil, 7},
		{"gocrontab_cluster_backlog_tasks", nil, 5},
		{"gocrontab_cluster_readable", nil, 1},
		{"gocrontab_lateness_seconds", nil, 1},
		{"gocrontab_run_duration_seconds", nil, 1},
		{"gocrontab_runs_ended_total", []string{"outcome=lost"}, 0}, // exists before the first run is lost
		{"gocrontab_node_info", []string{"node=web-1", "version=v1.2.3"}, 1},
		{"gocrontab_job_runs_ended_total", []string{"app=shop", "job=a", "outcome=succeeded"}, 1},
		{"gocrontab_job_last_success_timestamp_seconds", []string{"job=a"}, 1_800_000_001},
		{"gocrontab_change_duration_seconds", []string{"change=finish"}, 1},
		{"gocrontab_api_requests_total", []string{"route=/healthz", "code=200"}, 1},
	} {
		if got := value(t, families, x.name, x.labels...); got != x.want {
			t.Errorf("%s%v: got %v, want %v", x.name, x.labels, got, x.want)
		}
	}
}

// TestNativeHistograms: scrapes in protocol buffers get native buckets in addition to the classic
// ones.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	m := full(10)
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Result().Header))
	for {
		var f dto.MetricFamily
		if err := d.Decode(&f); err == io.EOF {
			t.Fatal("no lateness")
		} else if err != nil {
			t.Fatal(err)
		}

		if f.GetName() != "gocrontab_lateness_seconds" {
			continue
		}

		h := f.GetMetric()[0].GetHistogram()
		if len(h.GetPositiveSpan()) == 0 || len(h.GetBucket()) == 0 || h.GetSampleCount() != 1 {
			t.Errorf("got %v, want native and classic buckets", h)
		}

		return
	}
}

// TestSeriesAreBounded: neither many jobs nor odd requests create many series.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m := full(10)
	_, before := scrape(t, m)
	for i := range 10_000 {
		m.Ended(spec(fmt.Sprintf("plain-%d", i), ""), run(job.Failed, time.Second))
		m.Ended(spec(fmt.Sprintf("asks-%d", i), "metrics"), run(job.Failed, time.Second))
		m.Answered(fmt.Sprintf("METHOD%d", i), "", 404, time.Millisecond, false)
		m.Changed(fmt.Sprintf("change-%d", i), time.Millisecond)
		m.Began(time.Duration(i) * time.Millisecond)
	}

	_, after := scrape(t, m)
	if got, most := series(after)-series(before), 2*10+5; got > most {
		t.Errorf("%d more series, want at most %d", got, most)
	}

	if got := value(t, after, "gocrontab_job_runs_ended_total", "job=other", "app="); got != 10_000-9 {
		t.Errorf("others: got %v, want all but the nine that still found room", got)
	}

	for _, f := range after["gocrontab_job_runs_ended_total"].GetMetric() {
		for _, l := range f.GetLabel() {
			if strings.HasPrefix(l.GetValue(), "plain") {
				t.Fatalf("%s did not ask for series", l.GetValue())
			}
		}
	}
}

func series(families map[string]*dto.MetricFamily) (n int) {
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

// TestSilentJobsMakeRoom: a job without a run for an hour loses its place to another job, and its
// series are removed.
func TestSilentJobsMakeRoom(t *testing.T) {
	t.Parallel()
	m := metric.New("n", "v", 2)
	at := func(name string, minutes int) {
		r := run(job.Succeeded, 0)
		r.Started = begin.Add(time.Duration(minutes) * time.Minute)
		r.Ended = r.Started
		m.Ended(spec(name, "metrics"), r)
	}

	at("a", 0)
	at("b", 30)
	at("c", 59)
	at("c", 70)
	_, families := scrape(t, m)
	names := map[string]float64{}
	for _, f := range families["gocrontab_job_runs_ended_total"].GetMetric() {
		for _, l := range f.GetLabel() {
			if l.GetName() == "job" {
				names[l.GetValue()] = f.GetCounter().GetValue()
			}
		}
	}

	if want := map[string]float64{"b": 1, "c": 1, "other": 1}; fmt.Sprint(names) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestAnyValue: a job gets its own series whatever the value of the label, even "".
func TestAnyValue(t *testing.T) {
	t.Parallel()
	m := metric.New("n", "v", 10)
	for _, v := range []string{"", "on", "off"} {
		s := spec("asks "+v, "")
		s.Labels = map[string]string{metric.JobLabel: v}
		m.Ended(s, run(job.Succeeded, time.Second))
	}
	m.Ended(spec("does not", "team"), run(job.Succeeded, time.Second))
	_, families := scrape(t, m)
	if got := len(families["gocrontab_job_runs_ended_total"].GetMetric()); got != 3 {
		t.Errorf("got %d series, want 3", got)
	}
}

// TestNothingIsAllocated: counting the begin and end of an attempt allocates no memory.
func TestNothingIsAllocated(t *testing.T) {
	m := full(10)
	s, r := spec("x", ""), run(job.Succeeded, time.Second)
	if n := testing.AllocsPerRun(1000, func() {
		m.Began(12 * time.Millisecond)
		m.Ended(s, r)
		m.Changed("start", time.Millisecond)
		m.NotSpawned()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestUnreadable: without MySQL all other metrics are served, and gocrontab_cluster_readable is 0.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	m := metric.New("n", "v", 0)
	asked := 0
	m.Cluster(func(ctx context.Context) (metric.Amounts, error) {
		asked++
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a scrape waits for ever")
		}
		return metric.Amounts{}, fmt.Errorf("away")
	})

	for range 3 {
		_, families := scrape(t, m)
		if got := value(t, families, "gocrontab_cluster_readable"); got != 0 {
			t.Errorf("readable: got %v", got)
		}
		if families["gocrontab_cluster_backlog_tasks"] != nil {
			t.Error("there is a backlog that nobody has read")
		}
	}

	if asked != 1 {
		t.Errorf("MySQL was asked %d times in a moment", asked)
	}
}

func BenchmarkCounted(b *testing.B) {
	m := full(10)
	s, r := spec("x", ""), run(job.Succeeded, time.Second)
	asks := spec("a", "metrics")
	b.Run("attempt", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Began(12 * time.Millisecond)
			m.Ended(s, r)
		}
	})

	b.Run("attempt of a job with series", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Began(12 * time.Millisecond)
			m.Ended(asks, r)
		}
	})

	b.Run("change", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Changed("start", time.Millisecond)
		}
	})

	b.Run("scrape", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
		}
	})
}
