package alert

import (
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"

	"github.com/google/uuid"
)

// frozenTime is the time in these tests, in seconds. MySQL's clock does not move.
const frozenTime = 1_800_000_000

// hooked has a channel "hook", a heartbeat "beat", a rule for failing jobs, and two jobs, one with
// a ping. It has been evaluated once.
type hooked struct {
	*fixture
	hook *hook
	node *fakeSession
	eval *Evaluator
	job  int64
}

func (f *fixture) hooked(h *hook) *hooked {
	f.Helper()
	f.exec("INSERT INTO secret (name, version, key_id, sealed, created, updated) VALUES ('s', 1, 'k', '', 1, 1)")
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/x", Sign: "{{secret.s}}",
		Wait: 1000})
	f.channel(job.AlertChannel{Name: "beat", Type: job.ChannelHeartbeat, URL: h.URL + "/beat",
		Every: job.Duration(time.Minute)})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertRecovered},
		Channels: []string{"hook"}})

	s := &fakeSession{f: f, id: uuid.UUID{7}}
	f.exec("INSERT INTO session (id, node, started, beat_at, labels, handlers) VALUES (?, ?, 1, 1, '{}', '[]')",
		s.id[:], s.Node())
	x := &hooked{fixture: f, hook: h, node: s, eval: f.evaluator(s), job: f.job("shop", "a", "")}
	pinged := f.job("shop", "pinged", `,"ping":{"success":"`+h.URL+`/ok"}`)
	f.pinged(pinged)
	x.ends(0, job.Succeeded) // ids of notes do not start at 1 here; the evaluator starts after this one
	f.step(x.eval)
	return x
}

// ends writes the n-th run of the job.
func (x *hooked) ends(n int, o job.Outcome) {
	x.Helper()
	at := int64(x.now)
	id := 7<<32 + int64(n)
	x.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
			started, ended, outcome, final, reason)
		VALUES (?, ?, 1, ?, 'schedule', 'ended', -2, 1, ?, 0, ?, ?, ?, 1, 'exit code 1')`,
		id, x.job, at-1000+int64(n), at-500, at-500, at, o.String())
	x.note(id, x.job, o)
}

// steps takes one step of the evaluator.
func (x *hooked) steps() func() (any, error) {
	return func() (any, error) {
		_, err := x.eval.step(x.Context(), x.now)
		return len(x.eval.state.firing), err
	}
}

var changesOfAlerts = map[string]func(x *hooked) func() (any, error){
	"a new channel": func(x *hooked) func() (any, error) {
		return x.putChannel(job.AlertChannel{Name: "new", Type: job.ChannelWebhook, URL: "http://example.com/",
			Sign: "{{secret.s}}"})
	},
	"edit a channel": func(x *hooked) func() (any, error) {
		return x.putChannel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "http://example.com/"})
	},
	"delete a channel": func(x *hooked) func() (any, error) {
		return func() (any, error) { return nil, x.store().DeleteChannel(x.Context(), "beat") }
	},
	"a new rule": func(x *hooked) func() (any, error) {
		return x.putRule(job.AlertRule{Name: "new", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}})
	},
	"edit a rule": func(x *hooked) func() (any, error) {
		return x.putRule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}})
	},
	"delete a rule that fires": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		x.step(x.eval)
		return func() (any, error) { return nil, x.store().DeleteRule(x.Context(), "ops") }
	},
	"begin a silence": func(x *hooked) func() (any, error) {
		return func() (any, error) {
			n := x.newSilence()
			err := x.store().AddSilence(x.Context(), n)
			return n, err
		}
	},
	"end a silence": func(x *hooked) func() (any, error) {
		n := x.newSilence()
		if err := x.store().AddSilence(x.Context(), n); err != nil {
			x.Fatal(err)
		}
		return func() (any, error) {
			return x.store().EndSilence(x.Context(), n.ID, func(job.Silence) error { return nil })
		}
	},
	"write down a test": func(x *hooked) func() (any, error) {
		return func() (any, error) {
			return nil, x.store().RecordTest(x.Context(),
				&Tested{Channel: "hook", ChannelID: 5, Items: "[]", Sent: true, Said: "ok", At: x.now})
		}
	},
	"find what failed": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		return x.steps()
	},
	"find it again": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		x.step(x.eval)
		x.ends(2, job.Failed)
		return x.steps()
	},
	"find that it is over before it was told": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		x.step(x.eval)
		x.ends(2, job.Succeeded)
		return x.steps()
	},
	"find that it is over": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		x.step(x.eval)
		x.now += second
		x.send(x.sender(x.node))
		x.ends(2, job.Succeeded)
		return x.steps()
	},
	"find the end of a pinged job": func(x *hooked) func() (any, error) {
		x.exec("UPDATE job SET name = 'b' WHERE id = ?", x.job)
		x.job = int64(x.count("SELECT id FROM job WHERE name = 'pinged'"))
		x.ends(1, job.Succeeded)
		return x.steps()
	},
	"beat": func(x *hooked) func() (any, error) {
		x.now += 61 * second
		return x.steps()
	},
	"stop when nobody wants anything": func(x *hooked) func() (any, error) {
		for _, table := range []string{"alert_rule", "alert_channel", "job_ref"} {
			x.exec("DELETE FROM " + table)
		}
		x.eval.state = nil
		return func() (any, error) {
			_, err := x.eval.step(x.Context(), x.now)
			return nil, err
		}
	},
	"send": func(x *hooked) func() (any, error) {
		x.ends(1, job.Failed)
		x.step(x.eval)
		x.now += second
		sender, before := x.sender(x.node), len(x.hook.seen())
		return func() (any, error) {
			x.send(sender)
			return len(x.hook.seen()) - before, nil
		}
	},
}

func (f *fixture) putChannel(c job.AlertChannel) func() (any, error) {
	return func() (any, error) {
		row, isNew, err := f.store().PutChannel(f.Context(), c)
		return []any{row, isNew}, err
	}
}

func (f *fixture) putRule(r job.AlertRule) func() (any, error) {
	return func() (any, error) {
		row, isNew, err := f.store().PutRule(f.Context(), r)
		return []any{row, isNew}, err
	}
}

func (f *fixture) newSilence() *job.Silence {
	return &job.Silence{App: "shop", Until: f.now.Add(time.Hour), Reason: "why"}
}

// TestAlertsRunAgain: each change of alerts works if any of its statements is refused once, as by a
// deadlock.
func TestAlertsRunAgain(t *testing.T) {
	t.Parallel()
	dsn := testdb.DSN(t)
	own, err := sql.Open(dsn, sql.MigrateTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	if _, _, err := own.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	schema := faultproxy.NewSchema(t, own.Raw())

	proxy := faultproxy.Before(t, dsn)
	db, err := sql.Open(proxy.DSN(faultproxy.StandStill(dsn, frozenTime)), sql.DefaultTimeouts, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	h := newHook(t)

	for name, change := range changesOfAlerts {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				f := &fixture{t, dsn, &read.DB{DB: db}, own, job.Micros(frozenTime) * second}
				changed := change(f.hooked(h))
				return proxy, func() (any, error) {
					answer, err := changed()

					// Make random values and ids the same in each run.
					f.exec(`UPDATE delivery
						JOIN (SELECT id, ROW_NUMBER() OVER (ORDER BY id) n FROM delivery) r USING (id)
						SET idem = n`)
					f.exec("UPDATE alert SET subject = RPAD(id, 16, '.')")
					f.exec(`UPDATE alert_work SET position = REGEXP_REPLACE(position, '"gaps":\\[[^]]*]', '')`)
					return answer, err
				}
			})
		})
	}
}
