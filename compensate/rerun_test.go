package compensate

import (
	"testing"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// TestCompensationRunsAgain refuses each statement of compensation once, as a deadlock does.
func TestCompensationRunsAgain(t *testing.T) {
	f := setUp(t)
	schema := faultproxy.NewSchema(t, f.beside.Raw())
	faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
		f.prepared.tasks, f.executing.tasks = map[int64]job.Launch{}, map[int64]job.Launch{}
		rows := f.own(f.c.Session, 1, 6)
		for _, r := range rows[:3] {
			f.know(r)
		}
		// The launches of own are ids of tasks.
		return f.proxy, func() (any, error) { return f.c.Compensate(t.Context()) }
	})
}
