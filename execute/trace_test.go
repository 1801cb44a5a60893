package execute

import (
	"slices"
	"testing"

	"go-crontab/job"
)

// TestTraceContext: commands and HTTP servers get the trace context of their run, if it has one.
func TestTraceContext(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, a := range []Attempt{{}, {TraceParent: parent}, {TraceParent: parent, TraceState: "a=b"}} {
		env := about(a, []string{"X=y"})
		if got := slices.Contains(env, "TRACEPARENT="+parent); got != (a.TraceParent != "") {
			t.Errorf("%+v: got %q", a, env)
		}
		if got := slices.Contains(env, "TRACESTATE=a=b"); got != (a.TraceState != "") || !slices.Contains(env, "X=y") {
			t.Errorf("%+v: got %q", a, env)
		}
		header := (&exchange{Attempt: a, filled: &job.Call{}}).headers()
		if header.Get("traceparent") != a.TraceParent || header.Get("tracestate") != a.TraceState {
			t.Errorf("%+v: got %v", a, header)
		}
	}
}
