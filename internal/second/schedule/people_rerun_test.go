package schedule

import (
	"maps"
	"slices"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/second/schedule/edit"
	"go-crontab/job"
)

// changesToRefuse are changes of people to jobs in the midst of their work: "busy" has a run that is due and prepared, some that are ahead,
// and "paused" is paused.
var changesToRefuse = map[string]func(p *person, busy, paused int64) (any, error){
	"create": func(p *person, _, _ int64) (any, error) { return p.Create(p.ctx, ofEvery("new", 5), true) },
	"update": func(p *person, busy, _ int64) (any, error) {
		spec := ofEvery("busy", 3)
		spec.App = "other"
		return p.Update(p.ctx, busy, 0, spec)
	},
	"update a paused job": func(p *person, _, paused int64) (any, error) { return p.Update(p.ctx, paused, 0, ofEvery("paused", 3)) },
	"pause": func(p *person, busy, _ int64) (any, error) {
		return p.Pause(p.ctx, busy, job.PauseRequest{Reason: "r", Until: t0.Add(time.Hour)})
	},
	"resume": func(p *person, _, paused int64) (any, error) { return p.Resume(p.ctx, paused) },
	"delete": func(p *person, busy, _ int64) (any, error) { return p.Delete(p.ctx, busy) },
	"several at once": func(p *person, busy, paused int64) (any, error) {
		spec := ofEvery("new", 5)
		return p.Apply(p.ctx, []edit.Change{
			{Action: job.ActionCreate, Spec: &spec}, {Action: job.ActionDelete, ID: paused}, {Action: job.ActionPause, ID: busy}, {Action: job.ActionPause, ID: 1},
		})
	},
}

// TestChangesOfPeopleRunAgain refuses each statement of each change once, as a deadlock does. Rows and answers must be those of an
// undisturbed change.
func TestChangesOfPeopleRunAgain(t *testing.T) {
	c := newCluster(t)
	schema := faultproxy.NewSchema(t, c.db.Raw())
	dsn, proxy := c.proxied()
	for _, name := range slices.Sorted(maps.Keys(changesToRefuse)) {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				p, m := c.person(dsn), c.member(1, c.dsn)
				p.session.number = 0
				p.session.minted.Store(faultproxy.FirstLaunch)
				busy, paused := p.creates(ofEvery("busy", 4)), p.creates(ofEvery("paused", 4))
				p.must(p.Pause(p.ctx, paused, job.PauseRequest{}))
				m.claims(1)
				p.at(9)
				return proxy, func() (any, error) { return changesToRefuse[name](p, busy, paused) }
			})
		})
	}
}
