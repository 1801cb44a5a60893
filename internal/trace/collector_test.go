package trace

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// spansOf returns a batch with one span.
func spansOf(name string) []*otlp.ResourceSpans {
	return []*otlp.ResourceSpans{{ScopeSpans: []*otlp.ScopeSpans{{Spans: []*otlp.Span{{Name: name}}}}}}
}

// collectorOf returns a client with the settings of the environment, and with short pauses.
func collectorOf(t *testing.T) *collector {
	t.Helper()
	s, err := readSettings()
	if err != nil {
		t.Fatal(err)
	}
	c := newCollector(s)
	c.pause = time.Millisecond
	t.Cleanup(func() { _ = c.Stop(t.Context()) })
	return c
}

// TestOverloaded: a batch is sent again, unchanged, while the collector is overloaded.
func TestOverloaded(t *testing.T) {
	statuses := []int{429, 502, 503, 504, 200}
	var names []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}

		body, err := io.ReadAll(z)
		var m otlp.TracesData
		if err != nil || proto.Unmarshal(body, &m) != nil {
			t.Errorf("got %q, %v", body, err)
			return
		}

		names = append(names, m.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName())
		if key, kind := r.Header.Get("Api-Key"), r.Header.Get("Content-Type"); key != "a b=c" ||
			kind != "application/x-protobuf" {
			t.Errorf("got Api-Key %q and Content-Type %q", key, kind)
		}
		w.WriteHeader(statuses[len(names)-1])
	}))
	defer s.Close()

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key = a%20b=c,")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "gzip")
	if err := collectorOf(t).UploadTraces(t.Context(), spansOf("x")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, ""); got != "xxxxx" {
		t.Errorf("got spans %q, want one span five times", got)
	}
}

// TestRefused: other errors end a batch at once, and say what the collector said.
func TestRefused(t *testing.T) {
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, 3)
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, "too old")
	some := protowire.AppendTag(nil, 1, protowire.BytesType)
	some = protowire.AppendBytes(some, partial)

	for name, c := range map[string]struct {
		status int
		answer string
		want   string // "": no error
	}{
		"a batch is taken":           {200, "", ""},
		"a broken answer is ignored": {200, "\xff", ""},
		"some spans are rejected":    {200, string(some), `rejected 3 spans: "too old"`},
		"a batch is not understood":  {400, "no such tenant\n", `answered 400 Bad Request: "no such tenant"`},
		"another status is an error": {304, "", "answered 304"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Content-Type", "application/x-protobuf")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			}))
			defer s.Close()

			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
			err := collectorOf(t).UploadTraces(t.Context(), spansOf("x"))
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || calls != 1 {
				t.Errorf("got %v after %d calls, want %q after one", err, calls, c.want)
			}
		})
	}
}

// TestGivenUp: when no time is left, the error has the collector's reason.
func TestGivenUp(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := collectorOf(t).UploadTraces(ctx, spansOf("x"))
	if err == nil || !strings.Contains(err.Error(), "given up: ") || !strings.Contains(err.Error(), "answered 503") {
		t.Errorf("got %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "7": 7 * time.Second, "99999999999": giveUp,
	} {
		if got := retryAfter(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	at := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
	if got := retryAfter(at); got < 10*time.Second || got > 20*time.Second {
		t.Errorf("%q: got %v", at, got)
	}
}

// TestCertificate: a collector with a certificate of its own is reached with that certificate only.
func TestCertificate(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()

	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", s.URL)
	if err := collectorOf(t).UploadTraces(t.Context(), spansOf("x")); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the certificate: got %v", err)
	}

	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	if err := collectorOf(t).UploadTraces(t.Context(), spansOf("x")); err != nil {
		t.Error(err)
	}
}

func TestAddress(t *testing.T) {
	const (
		all    = "OTEL_EXPORTER_OTLP_ENDPOINT"
		traces = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
		plain  = "OTEL_EXPORTER_OTLP_INSECURE"
	)
	for _, variable := range []string{all, traces, plain} {
		t.Setenv(variable, "")
	}

	for name, c := range map[string]struct {
		set  map[string]string
		want string
	}{
		"nothing is set":                {nil, "https://localhost:4318/v1/traces"},
		"only that it is not encrypted": {map[string]string{plain: "true"}, "http://localhost:4318/v1/traces"},
		"a host":                        {map[string]string{all: "http://otel:4318"}, "http://otel:4318/v1/traces"},
		"a path":                        {map[string]string{all: "https://otel/x/"}, "https://otel/x/v1/traces"},
		"the address for traces":        {map[string]string{all: "http://a", traces: " https://otel/x/ "}, "https://otel/x/"},
		"that address without a path":   {map[string]string{traces: "http://otel"}, "http://otel/"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.set {
				t.Setenv(variable, value)
			}
			s, err := readSettings()
			if err != nil || s.address.String() != c.want || s.timeout != 10*time.Second {
				t.Errorf("got %v with %v, %v; want %s with 10 s", s.address, s.timeout, err, c.want)
			}
		})
	}
}

// TestWrongSettings: a setting that cannot be used is named, and secrets are not quoted.
func TestWrongSettings(t *testing.T) {
	const secret = "hunter2"
	for setting, value := range map[string]string{
		"ENDPOINT":           "otel:4318/" + secret,
		"TRACES_ENDPOINT":    "http://user:" + secret + "@otel:x",
		"HEADERS":            "authorization " + secret,
		"TRACES_HEADERS":     "authorization=%zz" + secret,
		"COMPRESSION":        "zstd",
		"TIMEOUT":            "10s",
		"CERTIFICATE":        "/does/not/exist",
		"CLIENT_CERTIFICATE": "/does/not/exist",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/does/not/exist")
			t.Setenv("OTEL_EXPORTER_OTLP_"+setting, value)
			if _, err := readSettings(); err == nil || !strings.HasPrefix(err.Error(), "OTEL_EXPORTER_OTLP_"+setting) ||
				strings.Contains(err.Error(), secret) {
				t.Errorf("got %v", err)
			}
		})
	}
}
