package schedule

import (
	"log/slog"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

func TestStopPolicies(t *testing.T) {
	now := t0.Add(100 * time.Second)
	run := held(9, 90, trip.Schedule, trip.Prepared).Run
	run.AppID = 3
	manual, backfill := run, run
	manual.Kind, backfill.Kind = trip.Manual, trip.Backfill
	app := trip.Stop{Kind: trip.StopApp, Name: "shop", AppID: 3, Who: "ann", Reason: "stocktaking"}
	other := trip.Stop{Kind: trip.StopApp, Name: "bank", AppID: 4}
	cluster := trip.Stop{Kind: trip.StopCluster, Who: "ann"}
	over := trip.Stop{Kind: trip.StopCluster, Until: now}
	until := trip.Stop{Kind: trip.StopCluster, Until: now + 1}
	handler := trip.Stop{Kind: trip.StopHandler, Name: "mail", Who: "bob"}
	restored := trip.Stop{Kind: trip.StopRestored, Until: t0.Add(95 * time.Second)}
	ahead := trip.Stop{Kind: trip.StopRestored, Until: t0.Add(101 * time.Second)}

	for name, c := range map[string]struct {
		stop    trip.Stop
		run     trip.Run
		handler string
		want    string
	}{
		"the app is paused":                       {app, run, "", "refuse skipped, app_paused: app shop is paused by ann: stocktaking"},
		"another app is":                          {other, run, "", "start"},
		"the cluster is":                          {cluster, run, "", "refuse skipped, cluster_paused: the cluster is paused by ann"},
		"its pause is over":                       {over, run, "", "start"},
		"its pause is not over yet":               {until, run, "", "refuse skipped, cluster_paused: the cluster is paused"},
		"people's runs start in a pause":          {app, manual, "", "start"},
		"backfills rest in a pause":               {app, backfill, "", "postpone"},
		"the handler is disabled":                 {handler, run, "mail", "refuse skipped, handler_disabled: handler mail is disabled by bob"},
		"... for people too":                      {handler, manual, "mail", "refuse skipped, handler_disabled: handler mail is disabled by bob"},
		"another handler is":                      {handler, run, "print", "start"},
		"a job without one":                       {handler, run, "", "start"},
		"the database was restored since":         {restored, run, "", "refuse skipped, database_restored: due before the database was restored at 2026-11-02T12:01:35Z: it may have run already; see docs/backup.md"},
		"... people's runs start":                 {restored, manual, "", "start"},
		"an instant that is yet to come is wrong": {ahead, run, "", "start"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &job.Spec{Overlap: job.OverlapSkip, Handler: c.handler}
			j := &jobScene{def: &Definition{Spec: spec}, stops: []trip.Stop{c.stop}}
			s := &scene{now: now, jobs: map[int64]*jobScene{1: j}}
			if got := said(judge([]trip.Run{c.run}, s)[0]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestPausedApp: a paused app gets no claims, earlier claimed runs are skipped, backfills rest, and
// other apps go on.
func TestPausedApp(t *testing.T) {
	c := newCluster(t)
	m := c.member(1, c.dsn)
	stops := NewStops(StopsConfig{
		DB: c.db, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), WakeClaimer: m.claimer.Wake,
	})
	m.claimer.Stops, m.starter.Stops = stops, stops
	look := func() {
		if err := stops.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	id := c.create(every("j", 10), t0)
	c.create(every("other", 10), t0)
	c.exec("UPDATE job SET app_id = 2 WHERE name = 'other'")
	m.claims(1)
	c.want("a node that has not read the stops claims nothing", c.rows("SELECT id FROM run"))
	look()
	m.claims(1)
	c.want("then it does", c.rows("SELECT COUNT(*) FROM run"), "2")

	c.exec("INSERT INTO stop (kind, name, app_id, since) VALUES ('app', 'a', 1, 0)")
	due := int64(t0.Add(-time.Hour))
	c.exec("INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash) VALUES (1, ?, 1, ?, 'backfill', 1, 'idle', 0, 0, ?, 5)",
		id, due, due)
	look()
	m.claims(5)
	c.want("others start", m.starts(10), "other@10")
	m.ends("other", 10, 11, succeeded)
	m.claims(12)
	c.want("others go on", m.starts(20), "other@20")
	m.ends("other", 20, 21, succeeded)
	c.want("the backfill rests", m.takesOverdue(21))
	c.want("until then", c.rows("SELECT (due_now - ?) / 1000000 FROM run WHERE id = 1", int64(t0)), "31.0000")
	c.want("cursor", c.rows("SELECT (next_due - ?) / 1000000 FROM job WHERE id = ?", int64(t0), id), "20.0000")

	c.exec("DELETE FROM stop")
	look()
	m.claims(22)
	c.want("what passed meanwhile starts late", m.starts(22), "j@20")
	m.ends("j", 20, 23, succeeded)
	c.want("the backfill goes on", m.starts(31.1), "j@-3600", "other@30")
	c.want("outcomes of the job", c.rows("SELECT CONCAT(outcome, ' ', COALESCE(reason, '')) FROM run WHERE job_id = ? AND state = 'ended' ORDER BY due", id),
		"skipped app a is paused", "succeeded ")

	m.ends("other", 30, 32, succeeded)
	m.claims(35)
	stops.read = time.Now().Add(-stopsValid)
	c.want("a node that cannot read them starts nothing", append(m.starts(40), m.takesOverdue(45)...))
	look()
	c.want("until it can", m.starts(45), "other@40")
}
