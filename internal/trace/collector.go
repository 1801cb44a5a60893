package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// collector sends spans to an OpenTelemetry collector, over OTLP with HTTP and protocol buffers.
// The library's own client would link gRPC, and so add a fifth of the program's packages.
type collector struct {
	settings
	http  *http.Client
	pause time.Duration // before the second attempt
}

var _ otlptrace.Client = (*collector)(nil)

const (
	firstPause   = 5 * time.Second
	longestPause = 30 * time.Second
	giveUp       = time.Minute // a batch is dropped after this time

	maxAnswer = 64 << 10
	maxQuoted = 300 // bytes of an answer in an error
)

func newCollector(s settings) *collector {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if s.tls != nil {
		transport.TLSClientConfig = s.tls
	}
	return &collector{s, &http.Client{Transport: transport, Timeout: s.timeout}, firstPause}
}

// Start does nothing: the first batch connects.
func (c *collector) Start(context.Context) error { return nil }

// Stop closes the connections. No batch is being sent any more.
func (c *collector) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends a batch. It tries again while the collector is overloaded, for up to a minute.
func (c *collector) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	for pause := c.pause; ; pause = min(2*pause, longestPause) {
		again, after, err := c.post(ctx, body)
		if err == nil || !again {
			return err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("given up: %w", err)
		case <-time.After(max(after, pause/2+rand.N(pause))):
		}
	}
}

func (c *collector) encode(spans []*otlp.ResourceSpans) ([]byte, error) {
	// TracesData has the same encoding as ExportTraceServiceRequest, whose package links gRPC.
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil || !c.gzip {
		return body, err
	}

	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(body)
	err = errors.Join(err, z.Close()) // before b.Bytes, because Close writes the last bytes
	return b.Bytes(), err
}

// post sends a body once. If that fails, again reports whether a later attempt may succeed. after
// is the pause that the collector asks for.
func (c *collector) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address.String(), bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}

	r.Header.Set("User-Agent", "OTel OTLP Exporter Go/"+otlptrace.Version())
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}

	resp, err := c.http.Do(r)
	if err != nil {
		var failed *url.Error
		return errors.As(err, &failed) && failed.Temporary(), 0, err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // ignore errors, as the status decides

	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again, after = true, retryAfter(resp.Header.Get("Retry-After"))
	}
	if resp.StatusCode/100 != 2 {
		quoted := bytes.TrimSpace(answer[:min(len(answer), maxQuoted)])
		return again, after, fmt.Errorf("%s answered %s: %q", c.address, resp.Status, quoted)
	}
	if resp.Header.Get("Content-Type") == "application/x-protobuf" {
		return false, 0, rejection(answer)
	}

	return false, 0, nil
}

// retryAfter returns the pause that a Retry-After header asks for; zero: none.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(n, 0), int(giveUp/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return time.Until(at)
	}
	return 0
}

// rejection returns an error if the collector rejected some of the spans. The answer is an
// ExportTraceServiceResponse. The package of this type links gRPC, so the answer is decoded by
// field numbers. partial_success is field 1. In it, rejected_spans is field 1 and error_message is
// field 2.
func rejection(answer []byte) error {
	partial, _ := field(answer, 1)
	_, spans := field(partial, 1)
	why, _ := field(partial, 2)
	if spans == 0 && len(why) == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %q", spans, why[:min(len(why), maxQuoted)])
}

// field returns the value of a field of an encoded message: a text, or a number.
func field(message []byte, want protowire.Number) (text []byte, number uint64) {
	for len(message) > 0 {
		found, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			break
		}
		value := message[tag:]
		size := protowire.ConsumeFieldValue(found, kind, value)
		if size < 0 {
			break
		}

		switch {
		case found == want && kind == protowire.BytesType:
			text, _ = protowire.ConsumeBytes(value)
		case found == want && kind == protowire.VarintType:
			number, _ = protowire.ConsumeVarint(value)
		}
		message = value[size:]
	}

	return text, number
}
