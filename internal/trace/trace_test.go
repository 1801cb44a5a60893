package trace_test

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/internal/trace"
	"go-crontab/job"

	"github.com/go-chi/chi/v5"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collected is an OTLP collector for tests.
type collected struct {
	mu    sync.Mutex
	spans []*v1.Span
	from  map[string]string // attributes of the resource
}

func collect(t *testing.T) *collected {
	t.Helper()
	c := &collected{from: map[string]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		var m v1.TracesData // encoded as ExportTraceServiceRequest is
		if err := proto.Unmarshal(b, &m); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, rs := range m.GetResourceSpans() {
			for _, a := range rs.GetResource().GetAttributes() {
				c.from[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, ss := range rs.GetScopeSpans() {
				c.spans = append(c.spans, ss.GetSpans()...)
			}
		}
	}))

	t.Cleanup(s.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	return c
}

func attributes(s *v1.Span) map[string]string {
	out := map[string]string{}
	for _, a := range s.GetAttributes() {
		_, value, _ := strings.Cut(a.GetValue().String(), ":")
		out[a.GetKey()] = strings.Trim(value, `"`)
	}
	return out
}

type executor func(context.Context, execute.Attempt) job.Result

func (f executor) Execute(ctx context.Context, a execute.Attempt) job.Result { return f(ctx, a) }

func TestSpans(t *testing.T) {
	c := collect(t)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	tracer, err := trace.New(t.Context(), "web-1", "v1", slog.Default())
	if err != nil || tracer == nil {
		t.Fatalf("got %v, %v", tracer, err)
	}
	code, given := 3, ""
	run := tracer.Executor(executor(func(_ context.Context, a execute.Attempt) job.Result {
		given = a.TraceParent
		return job.Result{Outcome: job.Failed, Reason: job.Reason{Code: job.ReasonExitCode, Text: "said something secret"}, ExitCode: &code}
	}))
	due := time.UnixMicro(1_800_000_000_000_000)
	run.Execute(t.Context(), execute.Attempt{App: "shop", Job: "close", JobID: 7, Attempt: 2, Due: due,
		Began: due.Add(1500 * time.Millisecond), Launch: job.Launch{Run: 5, Claim: 1}})

	m := chi.NewRouter()
	m.Use(tracer.Handler)
	m.Get("/api/v1/jobs/{id}", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	m.Get("/healthz", func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequest("GET", "/api/v1/jobs/17", nil)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r.Header.Set("Authorization", "Bearer x")
	m.ServeHTTP(httptest.NewRecorder(), r)
	m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/healthz", nil))

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := tracer.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != 2 {
		t.Fatalf("got %d spans, want that of the attempt and that of the request", len(c.spans))
	}
	if c.from["service.name"] != "go-crontab" || c.from["service.instance.id"] != "web-1" ||
		c.from["deployment.environment.name"] != "test" {
		t.Errorf("resource: got %v", c.from)
	}
	attempt, request := c.spans[0], c.spans[1]
	a := attributes(attempt)
	for name, want := range map[string]string{
		"gocrontab.app":              "shop",
		"gocrontab.run":              "5",
		"gocrontab.outcome":          "failed",
		"gocrontab.exit_code":        "3",
		"gocrontab.attempt":          "2",
		"gocrontab.lateness_seconds": "1.5",
	} {
		if a[name] != want {
			t.Errorf("%s: got %q, want %q", name, a[name], want)
		}
	}
	if attempt.GetName() != "run shop/close" || attempt.GetStatus().GetCode() != v1.Status_STATUS_CODE_ERROR ||
		strings.Contains(attempt.String(), "secret") {
		t.Errorf("got %v", attempt)
	}
	if want := "00-" + hex(attempt.GetTraceId()) + "-" + hex(attempt.GetSpanId()) + "-01"; given != want {
		t.Errorf("the attempt is told %q, want %q", given, want)
	}
	if request.GetName() != "GET /api/v1/jobs/{id}" ||
		hex(request.GetTraceId()) != "0af7651916cd43dd8448eb211c80319c" ||
		hex(request.GetParentSpanId()) != "b7ad6b7169203331" {
		t.Errorf("got %v", request)
	}
}

// TestStrangers: requests without credentials can neither force spans to be kept nor name them.
func TestStrangers(t *testing.T) {
	c := collect(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
	tracer, err := trace.New(t.Context(), "web-1", "v1", slog.Default())
	if err != nil {
		t.Fatal(err)
	}

	m := chi.NewRouter()
	m.Use(tracer.Handler)
	m.Get("/api/v1/jobs", func(http.ResponseWriter, *http.Request) {})
	ask := func(method string, header ...string) {
		r := httptest.NewRequest(method, "/api/v1/jobs", nil)
		r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		m.ServeHTTP(httptest.NewRecorder(), r)
	}

	ask("GET")
	ask("GET", "Cookie", "other=1")
	ask("GET", "Cookie", "other=1; __Host-gocrontab-1a2b3c4d=x")
	ask("BREW", "Authorization", "Bearer x")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := tracer.Close(ctx); err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, s := range c.spans {
		got = append(got, s.GetName()+" by "+attributes(s)["http.request.method"])
	}

	if want := "GET /api/v1/jobs by GET, _OTHER by _OTHER"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %s: with a login and with a token", got, want)
	}
}

func hex(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, x := range b {
		s.WriteByte(digits[x>>4])
		s.WriteByte(digits[x&15])
	}
	return s.String()
}

// TestOff: without OTEL_… variables nothing is wrapped.
func TestOff(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_TRACES_EXPORTER"} {
		t.Setenv(name, "")
	}

	tracer, err := trace.New(t.Context(), "n", "v", slog.Default())
	if tracer != nil || err != nil {
		t.Fatalf("got %v, %v", tracer, err)
	}

	if next := (execute.Noop{}); tracer.Executor(next) != next {
		t.Error("an executor is wrapped")
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	for name, value := range map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if tracer, err := trace.New(t.Context(), "n", "v", slog.Default()); tracer != nil || err != nil {
				t.Errorf("got %v, %v", tracer, err)
			}
		})
	}

	for name, value := range map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_TRACES_EXPORTER": "zipkin"} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := trace.New(t.Context(), "n", "v", slog.Default()); err == nil ||
				!strings.Contains(err.Error(), name) {
				t.Errorf("got %v, want it to name %s", err, name)
			}
		})
	}
}

// TestTooMany: spans that a slow collector does not accept are dropped and logged. Each span is
// sent or counted.
func TestTooMany(t *testing.T) {
	c := collect(t)
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
	var said strings.Builder
	tracer, err := trace.New(t.Context(), "n", "v", slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}

	run := tracer.Executor(execute.Noop{})
	c.mu.Lock() // the collector does not answer until Unlock
	for range 1000 {
		run.Execute(t.Context(), execute.Attempt{})
	}

	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := tracer.Close(ctx); err != nil {
		t.Fatal(err)
	}

	dropped := 0
	pattern := regexp.MustCompile(`msg="spans dropped: .*" spans=([0-9]+) most_waiting=100\n`)
	lines := pattern.FindAllStringSubmatch(said.String(), -1)
	for _, l := range lines {
		n, _ := strconv.Atoi(l[1])
		dropped += n
	}

	if len(lines) != 2 || dropped < 500 || dropped+len(c.spans) != 1000 {
		t.Errorf("%d were sent, %d counted as dropped, want 1000 together; the log has %q", len(c.spans), dropped,
			said.String())
	}
}

// TestNobodyListens: an absent collector delays nothing.
func TestNobodyListens(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	tracer, err := trace.New(t.Context(), "n", "v", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run := tracer.Executor(execute.Noop{})
	for range 10_000 { // more than the queue holds
		if r := run.Execute(t.Context(), execute.Attempt{}); r.Outcome != job.Succeeded {
			t.Fatal(r)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_ = tracer.Close(ctx) // only its duration matters
}
