package schedule

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// changesToRefuse are changes to jobs at work: "busy" has a due prepared run and some later ones,
// and "paused" is paused.
var changesToRefuse = map[string]func(p *person, busy, paused int64) (any, error){
	"create": func(p *person, _, _ int64) (any, error) { return p.Create(p.ctx, ofEvery("new", 5), true) },
	"update": func(p *person, busy, _ int64) (any, error) {
		spec := ofEvery("busy", 3)
		spec.App = "other"
		return p.Update(p.ctx, busy, 0, spec)
	},
	"update a paused job": func(p *person, _, paused int64) (any, error) { return p.Update(p.ctx, paused, 0, ofEvery("paused", 3)) },
	"follow": func(p *person, _, _ int64) (any, error) {
		return p.Create(p.ctx, following("f", job.After{Jobs: []string{"busy", "paused"}}), false)
	},
	"delay": func(p *person, busy, _ int64) (any, error) {
		return p.Update(p.ctx, busy, 0, job.Spec{Name: "busy", Command: "true", Delay: job.Duration(time.Minute)})
	},
	"pause": func(p *person, busy, _ int64) (any, error) {
		return p.Pause(p.ctx, busy, job.PauseRequest{Reason: "r", Until: t0.Add(time.Hour)})
	},
	"resume": func(p *person, _, paused int64) (any, error) { return p.Resume(p.ctx, paused) },
	"delete": func(p *person, busy, _ int64) (any, error) { return p.Delete(p.ctx, busy) },
	"run now": func(p *person, busy, paused int64) (any, error) {
		return p.RunNow(p.ctx, []int64{busy, paused}, 0, "key")
	},
	"kill": func(p *person, _, _ int64) (any, error) {
		p.exec("UPDATE run SET state = 'executing', started = 1, spawn_by = due_now + 1 WHERE due = ?", int64(t0)+4_000_000)
		var l trip.Launch
		_, err := fmt.Sscan(p.rows("SELECT CONCAT_WS(' ', id, claim) FROM run WHERE state = 'executing'")[0], &l.Run, &l.Claim)
		if err != nil {
			return nil, err
		}
		return nil, p.Kill(p.ctx, l)
	},
	"rerun": func(p *person, _, _ int64) (any, error) {
		p.limits("default", job.AppLimits{RunsPerMinute: 5})
		p.exec("UPDATE run SET state = 'executing', started = 1, spawn_by = due_now + 1 WHERE due = ?", int64(t0)+4_000_000)
		p.finishAll("failed")
		return p.Rerun(p.ctx, p.failed(), func(edit.Asked) {})
	},
	"backfill": func(p *person, busy, _ int64) (any, error) { return p.Backfill(p.ctx, busy, past(1, 9, 2), "key") },
	"cancel a backfill": func(p *person, busy, _ int64) (any, error) {
		b, err := p.Backfill(p.ctx, busy, past(1, 9, 2), "key")
		if err != nil {
			return nil, err
		}
		return p.CancelBackfill(p.ctx, b.ID)
	},
	"calendar": func(p *person, _, _ int64) (any, error) {
		p.puts(closed("c", 5))
		p.withCalendar("j", "c")
		isNew, err := p.PutCalendar(p.ctx, closed("c", 0), edit.AnyVersion)
		return isNew, err
	},
	"several at once": func(p *person, busy, paused int64) (any, error) {
		spec := ofEvery("new", 5)
		return p.Each(p.ctx, []edit.Change{
			{Action: job.ActionCreate, Spec: &spec}, {Action: job.ActionDelete, ID: paused}, {Action: job.ActionPause, ID: busy}, {Action: job.ActionPause, ID: 1},
		})
	},
}

// TestChangesOfPeopleRunAgain refuses each statement of each change once, as a deadlock does. Rows
// and answers must be those of an undisturbed change.
func TestChangesOfPeopleRunAgain(t *testing.T) {
	c := newCluster(t)
	c.exec("DROP TRIGGER run_deleted") // a reset deletes everything
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
