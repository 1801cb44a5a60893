package trace

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// queue holds the ended spans that are not being sent yet. When the library's own queue is full,
// it drops spans silently. This queue has the same limit but fills up first, and it counts the
// spans that it drops.
type queue struct {
	sdk.SpanProcessor // sends the spans, in batches
	most              int64
	log               *slog.Logger

	waiting atomic.Int64
	dropped atomic.Int64 // not logged yet
	next    pace
}

func newQueue(exporter sdk.SpanExporter, log *slog.Logger) *queue {
	q := &queue{most: queueSize(), log: log}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(taking{exporter, q}, sdk.WithMaxQueueSize(int(q.most)))
	return q
}

// queueSize is the number of spans that may wait, from the environment or the library's default.
func queueSize() int64 {
	if n, err := strconv.ParseInt(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"), 10, 32); err == nil && n > 0 {
		return n
	}
	return sdk.DefaultMaxQueueSize
}

// OnEnd queues an ended span, or drops it if the queue is full.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) <= q.most {
		q.SpanProcessor.OnEnd(s)
		return
	}

	q.waiting.Add(-1)
	q.dropped.Add(1)
	if q.next.pass(time.Now(), time.Minute) {
		q.tell()
	}
}

// tell logs the number of spans dropped since the last time.
func (q *queue) tell() {
	if n := q.dropped.Swap(0); n > 0 {
		q.log.Warn("spans dropped: the collector takes fewer than this node makes", "spans", n, "most_waiting", q.most)
	}
}

// taking counts the spans that leave the queue.
type taking struct {
	sdk.SpanExporter
	from *queue
}

func (t taking) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	t.from.waiting.Add(-int64(len(spans)))
	return t.SpanExporter.ExportSpans(ctx, spans)
}
