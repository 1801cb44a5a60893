package result

import (
	"testing"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// TestResultsRunAgain refuses each statement once, as a deadlock does, of the transactions that record how runs ended,
// that keep what they write, and that remove old records.
func TestResultsRunAgain(t *testing.T) {
	r := setUpRetaining(t)
	f := r.fixture
	schema := faultproxy.NewSchema(t, f.beside.Raw())
	for name, change := range map[string]func() func() (any, error){
		"finish": func() func() (any, error) {
			ended := f.outcomes(3)
			ended[0].Again, ended[0].Run.Final, ended[0].Run.Outcome = 5_000, false, job.Failed
			ended[1].Awaited = true
			ended[2].Run.Output = job.Output{Head: []byte("text"), Bytes: 4}
			ended[2].Run.Output.Pack()
			f.putAll(ended)
			return func() (any, error) {
				f.recorder.Flush(t.Context())
				return f.recorder.Waiting(), nil
			}
		},
		"keep what a run writes": func() func() (any, error) {
			v := f.live()
			v.Sink(f.launch(faultproxy.FirstLaunch))([]byte("some text"))
			f.tick(v, quietTicks)
			return func() (any, error) { return nil, v.flush(t.Context()) }
		},
		"retain": func() func() (any, error) {
			r.rule("", `{"age":"24h"}`)
			r.n = 0
			id := r.job("shop", "{}")
			r.n = faultproxy.FirstLaunch
			r.ran(id, job.Succeeded, 10, hours(50, 30, 20)...)
			x := r.retainer(nil)
			x.DB = f.through
			return func() (any, error) {
				mine, err := x.Round(t.Context())
				f.exec("DELETE FROM chore") // says how long it took
				return mine, err
			}
		},
		"trim": func() func() (any, error) {
			r.rule("", "{}")
			r.n = 0
			id := r.job("shop", "{}")
			r.n = faultproxy.FirstLaunch
			for range 3 {
				r.wrote(id, "shop", 10)
			}
			r.limit("shop", 15)
			x := r.trimmer()
			x.latest = int64(f.number("SELECT MAX(id) FROM history"))
			return func() (any, error) {
				more, err := x.Look(t.Context())
				f.exec("DELETE FROM chore") // says how long it took
				return more, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) { return f.proxy, change() })
		})
	}
}
