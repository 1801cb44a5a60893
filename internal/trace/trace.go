// Package trace sends traces of a node's runs and API requests to an OpenTelemetry collector, if
// the environment names one (OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT).
// Otherwise it does nothing.
//
// Each attempt is a span, which begins when the attempt starts and ends with its outcome. A command
// gets the span's context in the variables TRACEPARENT and TRACESTATE, an HTTP job in the headers
// of these names, and a handler in its context. Each API request is a span, too. If the request
// carries a token or a login, its headers name the span's parent.
//
// Spans are sent in batches in the background, over OTLP with HTTP and protocol buffers. If the
// collector does not accept spans in time, they are dropped and the log counts them. Nothing waits
// for the collector.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"go-crontab/execute"
	"go-crontab/job"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer creates spans. A nil Tracer creates none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
}

// Wanted reports whether the environment asks for traces.
func Wanted() bool {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(exporter, "none") {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" ||
		exporter != ""
}

// New returns a tracer configured by the environment. If the environment asks for no traces, New
// returns nil. Errors of sending go to log, at most once a minute.
func New(ctx context.Context, node, version string, log *slog.Logger) (*Tracer, error) {
	if !Wanted() {
		return nil, nil
	}

	// Refuse settings that are not supported.
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s=%s: only http/protobuf is supported", name, p)
		}
	}
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: want otlp or none", e)
	}

	s, err := readSettings()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, newCollector(s))
	if err != nil {
		return nil, err
	}

	own := resource.NewSchemaless(
		attribute.String("service.name", "go-crontab"),
		attribute.String("service.version", version),
		attribute.String("service.instance.id", node),
	)
	all, err := resource.Merge(own, resource.Environment()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	otel.SetErrorHandler(&complaints{log: log})
	q := newQueue(exporter, log)
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithResource(all))
	return &Tracer{provider: p, tracer: p.Tracer("go-crontab"), queue: q}, nil
}

// Close sends the waiting spans. It gives up when ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	defer t.queue.tell()
	return t.provider.Shutdown(ctx)
}

// Executor returns an executor that makes a span for every attempt of next.
func (t *Tracer) Executor(next execute.Executor) execute.Executor {
	if t == nil {
		return next
	}
	return executor{t, next}
}

// executor makes a span for every attempt.
type executor struct {
	*Tracer
	next execute.Executor
}

func (e executor) Execute(ctx context.Context, a execute.Attempt) job.Result {
	ctx, span := e.tracer.Start(ctx, "run "+a.App+"/"+a.Job, trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("gocrontab.app", a.App),
		attribute.String("gocrontab.job", a.Job),
		attribute.Int64("gocrontab.job_id", a.JobID),
		attribute.String("gocrontab.run", job.RunID(a.Launch.Run)),
		attribute.Int("gocrontab.attempt", a.Attempt),
		attribute.String("gocrontab.due", job.MicrosOf(a.Due).String()),
		attribute.Float64("gocrontab.lateness_seconds", a.Began.Sub(a.Due).Seconds()),
	))
	defer span.End()

	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	a.TraceParent, a.TraceState = carrier["traceparent"], carrier["tracestate"]

	r := e.next.Execute(ctx, a)
	span.SetAttributes(attribute.String("gocrontab.outcome", r.Outcome.String()))
	if r.ExitCode != nil {
		span.SetAttributes(attribute.Int("gocrontab.exit_code", *r.ExitCode))
	}
	if r.Outcome != job.Succeeded && r.Outcome != job.Skipped {
		span.SetStatus(codes.Error, r.Outcome.String()) // not the reason, which may quote the job's output
	}

	return r
}

// Handler returns a handler that makes a span for every request to next, except for health checks
// and metrics.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz", "/readyz", "/metrics":
			next.ServeHTTP(w, r)
			return
		}

		// Name the span and find its parent.
		ctx, method := r.Context(), r.Method
		if hasCredential(r) {
			ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		}
		if !methods[method] {
			method = "_OTHER"
		}

		ctx, span := t.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		answer := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			span.SetAttributes(
				attribute.String("http.request.method", method),
				attribute.Int("http.response.status_code", answer.Status()),
			)
			if c := chi.RouteContext(r.Context()); c != nil && c.RoutePattern() != "" {
				span.SetName(method + " " + c.RoutePattern())
				span.SetAttributes(attribute.String("http.route", c.RoutePattern()))
			}
			if answer.Status() >= 500 {
				span.SetStatus(codes.Error, "")
			}
		}()

		next.ServeHTTP(answer, r.WithContext(ctx))
	})
}

// methods may be names of spans. A client can send any word as a method, so other methods get the
// name _OTHER, as in OpenTelemetry.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true}

// hasCredential reports whether a request carries a token or a login, valid or not. The parent of
// a span decides whether the span is kept. So strangers must not choose the parent.
func hasCredential(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || slices.ContainsFunc(r.Cookies(), func(c *http.Cookie) bool {
		return strings.HasPrefix(strings.TrimPrefix(c.Name, "__Host-"), "gocrontab-")
	})
}

// complaints logs errors of sending, at most once a minute.
type complaints struct {
	log  *slog.Logger
	next pace
}

func (c *complaints) Handle(err error) {
	if c.next.pass(time.Now(), time.Minute) {
		c.log.Warn("cannot send traces", "error", err)
	}
}
