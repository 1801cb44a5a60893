package execute

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go-crontab/job"
)

// What a call costs on the loopback address, with a server in the same process.
//
//	go test ./execute -run '^$' -bench HTTP -cpu 2 -count 5
func BenchmarkHTTP(b *testing.B) {
	signed := func(r *job.HTTP) {
		r.Body = `{"due": "{{due}}", "job": "{{job}}"}`
		r.Sign = &job.HTTPSign{Secret: "hook"}
	}

	for name, bc := range map[string]struct {
		change  func(*job.HTTP)
		servers []func(*httptest.Server)
	}{
		"GET":          {func(*job.HTTP) {}, nil},
		"signed POST":  {signed, nil},
		"HTTP1 on TLS": {func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} }, []func(*httptest.Server){overTLS}},
		"HTTP2":        {func(r *job.HTTP) { r.TLS = &job.HTTPTLS{SkipVerify: true} }, []func(*httptest.Server){overHTTP2}},
	} {
		b.Run(name, func(b *testing.B) {
			s := newBareSite(b, bc.servers)
			h := requests(b, func(cfg *HTTPConfig) { cfg.Secrets = fixed{"hook": "k3y"} })
			a := request(s.URL+"/hook?due={{due}}", bc.change)
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if res := h.Execute(context.Background(), a); res.Outcome != job.Succeeded || res.Output.Bytes != 2 {
						b.Errorf("got %v %q", res.Outcome, res.Reason)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}

// newBareSite answers "ok" and records nothing.
func newBareSite(b *testing.B, change []func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	for _, c := range change {
		c(s)
	}
	if s.TLS == nil {
		s.Start()
	} else {
		s.StartTLS()
	}
	b.Cleanup(s.Close)
	return s
}
