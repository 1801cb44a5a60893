// Package trace tells a collector of OpenTelemetry what a node executes and answers, if the environment says where one is
// (OTEL_EXPORTER_OTLP_ENDPOINT, or …_TRACES_ENDPOINT). If not, nothing of it runs.
//
// Each attempt is a span, begun at its due instant's start and ended with its outcome; a command gets its context in
// TRACEPARENT and TRACESTATE, an HTTP job in the headers of that name, a handler in its context. Each request to the API is
// a span too, a child of the one that its headers name if a token or a login came with it. Spans go out in batches, in the
// background, over OTLP as HTTP and protocol buffers; those that a collector does not take in time are lost, hold nothing
// up, and are counted in the log.
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
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
}

// Wanted tells whether the environment asks for traces.
func Wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || strings.EqualFold(os.Getenv("OTEL_TRACES_EXPORTER"), "none") {
		return false
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "" || os.Getenv("OTEL_TRACES_EXPORTER") != ""
}

// New returns a tracer as the environment has it, nil if it wants none. What cannot be sent is told to log, at most once a minute.
func New(ctx context.Context, node, version string, log *slog.Logger) (*Tracer, error) {
	if !Wanted() {
		return nil, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if p := os.Getenv(name); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s=%s: only http/protobuf is spoken here", name, p)
		}
	}
	if e := os.Getenv("OTEL_TRACES_EXPORTER"); e != "" && e != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER=%s: want otlp, or none", e)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTLP: %w", err)
	}
	own := resource.NewSchemaless(attribute.String("service.name", "go-crontab"), attribute.String("service.version", version), attribute.String("service.instance.id", node))
	all, err := resource.Merge(own, resource.Environment()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: log})
	q := newQueue(exporter, log)
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithResource(all))
	return &Tracer{provider: p, tracer: p.Tracer("go-crontab"), queue: q}, nil
}

// Close sends what waits, and gives up when ctx ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	defer t.queue.tell()
	return t.provider.Shutdown(ctx)
}

// Executor makes a span of each attempt that next executes.
func (t *Tracer) Executor(next execute.Executor) execute.Executor {
	if t == nil {
		return next
	}
	return executor{t, next}
}

type executor struct {
	*Tracer
	next execute.Executor
}

func (e executor) Execute(ctx context.Context, a execute.Attempt) job.Result {
	ctx, span := e.tracer.Start(ctx, "run "+a.App+"/"+a.Job, trace.WithNewRoot(), trace.WithAttributes(
		attribute.String("gocrontab.app", a.App), attribute.String("gocrontab.job", a.Job), attribute.Int64("gocrontab.job_id", a.JobID),
		attribute.String("gocrontab.run", job.RunID(a.Launch.Run)), attribute.Int("gocrontab.attempt", a.Attempt),
		attribute.String("gocrontab.due", job.MicrosOf(a.Due).String()), attribute.Float64("gocrontab.lateness_seconds", a.Began.Sub(a.Due).Seconds()),
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
	if r.Outcome != job.Succeeded {
		span.SetStatus(codes.Error, r.Outcome.String()) // not the reason: it may quote what the job wrote
	}
	return r
}

// Handler makes a span of each request that next answers, but for those that only look whether the node lives.
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
			span.SetAttributes(attribute.String("http.request.method", method), attribute.Int("http.response.status_code", answer.Status()))
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

// methods are those by which spans are named; a client may send any word, and others are _OTHER, as OpenTelemetry has it.
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true}

// hasCredential tells whether a token or a login comes with a request, good or not. Whose parent a span is says whether it
// is kept, which is not for strangers to say.
func hasCredential(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || slices.ContainsFunc(r.Cookies(), func(c *http.Cookie) bool {
		return strings.HasPrefix(strings.TrimPrefix(c.Name, "__Host-"), "gocrontab-")
	})
}

// complaints passes errors of sending on, once a minute.
type complaints struct {
	log  *slog.Logger
	next pace
}

func (c *complaints) Handle(err error) {
	if c.next.pass(time.Now(), time.Minute) {
		c.log.Warn("traces cannot be sent", "error", err)
	}
}
