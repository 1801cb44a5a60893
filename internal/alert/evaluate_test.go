package alert

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
)

// TestFailedAndRecovered: an alert fires once, is counted while it lasts, is repeated, and ends.
func TestFailedAndRecovered(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/x", Sign: "{{secret.s}}",
		Wait: 1000})
	a, b := f.job("shop", "a", ""), f.job("shop", "b", "")
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertRecovered},
		Channels: []string{"hook"}, Repeat: job.Duration(3600e9)})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.run(b, job.Succeeded, 0)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.now += second
	f.send(send)
	f.send(send)
	if got, want := h.said(), []string{"fired failed shop/a"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	if m := h.seen()[0]; !strings.Contains(m.Title, "shop/a") || !strings.Contains(m.Text, "exit code 1") ||
		m.Count != 1 || m.Key == "" || h.header[0].Get("Idempotency-Key") != m.Key {
		t.Errorf("got %+v", m)
	}

	f.want("alerts that fire", 1, "SELECT COUNT(*) FROM alert WHERE firing = 1 AND seen = 2")
	f.now += 3600 * second
	f.run(a, job.TimedOut, 0)
	f.step(e)
	f.now += second
	f.send(send)
	f.run(a, job.Succeeded, 0)
	f.step(e)
	f.now += second
	f.send(send)
	if got, want := h.said(), []string{"fired failed shop/a", "repeated failed shop/a",
		"resolved failed shop/a"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	f.want("alerts that are over", 1,
		"SELECT COUNT(*) FROM alert WHERE firing IS NULL AND seen = 3 AND over_why = 'it succeeded again'")
	f.want("messages sent", 3, "SELECT COUNT(*) FROM delivery WHERE state = 2 AND attempts = 1")
}

// TestRepeat: an alert that lasts is repeated, whether a look finds it again or not. What a silence
// holds back is sent when the silence ends, also of an alert that was sent before it.
func TestRepeat(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertLateStart},
		Channels: []string{"hook"}, Repeat: job.Duration(3600e9)})
	a, b := f.job("shop", "a", ""), f.job("shop", "b", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	seen := 0
	check := func(what string, after job.Micros, want ...string) {
		t.Helper()
		f.now += after
		f.step(e)
		f.now += second
		f.send(send)
		got := h.said()[seen:]
		if seen += len(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	f.run(a, job.Failed, 0)
	f.live(b, job.Idle, f.now-61*second)
	check("they fire", 6*second, "fired failed shop/a", "fired late_start shop/b")
	check("half an hour later", 1800*second)
	check("an hour later", 1800*second, "repeated failed shop/a", "repeated late_start shop/b")
	if text := h.seen()[1].Text; !strings.Contains(text, "shop/b has not started and is 1h1m9s late") {
		t.Errorf("got %q, want how late it is now", text)
	}

	n := job.Silence{Rule: "ops", Until: f.now + 3*hour, Reason: "it moves"}
	if err := f.store().AddSilence(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	f.run(a, job.Failed, 0)
	check("in a silence", 2*hour)
	f.want("what it holds back", 2, "SELECT SUM(events) FROM delivery WHERE state = ?", DeliverySilenced)
	check("behind it", hour, "repeated failed shop/a", "repeated late_start shop/b")
	check("and no sooner again than usual", 1800*second)
}

// TestManyAtOnce: each of very many runs that end at once fires. What a step leaves out, since it
// has found so much, is found later.
func TestManyAtOnce(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	const rules, jobs = 30, manyFired/30 + 5
	for i := range int64(rules) {
		f.rule(job.AlertRule{Name: idText(i + 1), On: []job.AlertEvent{job.AlertFailed, job.AlertLateStart},
			Channels: []string{"hook"}})
	}
	e := f.evaluator(f.session())
	f.step(e)
	fired := func(what string, event job.AlertEvent, want int) {
		t.Helper()
		f.step(e)
		f.want(what, want, "SELECT COUNT(*) FROM alert WHERE event = ?", event)
		f.want("lost", 0, "SELECT lost FROM alert_work WHERE id = 1")
	}

	var ids []int64
	for i := range int64(jobs) {
		ids = append(ids, f.job("shop", "j"+idText(i+1), ""))
		f.run(ids[i], job.Failed, 0)
	}
	fired("runs that ended", job.AlertFailed, rules*jobs)

	for _, id := range ids {
		f.live(id, job.Idle, f.now-2*hour)
	}
	f.now += 6 * second
	fired("runs that do not start", job.AlertLateStart, manyFired)
	f.now += 6 * second
	fired("all of them", job.AlertLateStart, rules*jobs)

	f.now += 5 * hour
	f.step(e)
	const repeated = "SELECT COUNT(*) FROM alert WHERE told_at >= ?"
	f.want("what is repeated", manyFired, repeated, int64(f.now))
	f.step(e)
	f.step(e)
	f.want("all of it", 2*rules*jobs, repeated, int64(f.now))
}

// TestRulesGoByWhatAJobIsNow: a job fails just after it got an owner, and is cached without one.
// The rule for this owner's jobs fires.
func TestRulesGoByWhatAJobIsNow(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "http://example.com/"})
	a := f.job("shop", "a", "")
	f.rule(job.AlertRule{Name: "hers", On: []job.AlertEvent{job.AlertFailed}, Owner: "ann", Channels: []string{"hook"}})
	e := f.evaluator(f.session())
	f.step(e)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.want("alerts", 0, "SELECT COUNT(*) FROM alert")
	f.exec(`UPDATE job_version SET definition = JSON_SET(definition, '$.owner', 'ann') WHERE job_id = ?`, a)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.want("alerts", 1, "SELECT COUNT(*) FROM alert WHERE firing = 1")
}

// TestLateCommit: a run that commits after runs with higher ids is not lost, and no run is reported
// twice.
func TestLateCommit(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}})
	a, b, c := f.job("shop", "a", ""), f.job("shop", "b", ""), f.job("shop", "c", "")
	s := f.session()
	e := f.evaluator(s)
	f.step(e)
	tx, err := f.db.Raw().Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	run := minted.Add(1)
	_, err = tx.Exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash,
			started, ended, outcome, final)
		VALUES (?, ?, 1, 1, 'schedule', 'ended', -2, 1, 1, 0, ?, ?, 'failed', 1)`, run, a, int64(f.now), int64(f.now))
	if err == nil {
		_, err = tx.Exec("INSERT INTO ending (at, runs) VALUES (?, ?)", int64(f.now), noteOf(run, a, job.Failed))
	}
	if err != nil {
		t.Fatal(err)
	}

	f.run(b, job.Failed, 0)
	f.step(e)
	f.want("what fires meanwhile", 1, "SELECT COUNT(*) FROM alert WHERE job = 'b'")
	f.now += 20 * second
	f.step(e)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}

	// Another node continues from the stored position.
	f.now += 9 * second
	f.exec("DELETE FROM session WHERE id = ?", s.id[:])
	f.exec("UPDATE alert_work SET until = 0 WHERE id = 1")
	f.run(c, job.Failed, 0)
	other := f.evaluator(f.session())
	f.step(other)
	f.want("what fires", 3, "SELECT COUNT(*) FROM alert WHERE firing = 1 AND seen = 1")
	f.want("of the one that came late", 1, "SELECT COUNT(*) FROM alert WHERE job = 'a'")
	// If the server increments ids by more than one, every id follows a gap, and each gap is looked
	// at five times.
	for range 6 {
		f.now += 15 * second
		f.step(other)
		f.step(e)
	}

	f.want("what fires a while later", 3, "SELECT COUNT(*) FROM alert")
	f.want("lost", 0, "SELECT lost FROM alert_work WHERE id = 1")
	var position string
	if err := f.db.Raw().QueryRow("SELECT position FROM alert_work WHERE id = 1").Scan(&position); err != nil ||
		strings.Contains(position, "gaps") {
		t.Errorf("got %s, %v, want no gaps", position, err)
	}
}

// TestSteps: if two nodes evaluate at the same time, only one step is applied, whichever node
// believes to be the holder.
func TestSteps(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}})
	a := f.job("shop", "a", "")
	one, two := f.evaluator(f.session()), f.evaluator(f.session())
	f.step(one)
	w, err := readWork(f.db.Reader(t.Context()))
	if err != nil {
		t.Fatal(err)
	}

	f.run(a, job.Failed, 0)
	if err := one.learn(t.Context(), w, f.now); err != nil {
		t.Fatal(err)
	}

	c1, err := one.find(t.Context(), f.now)
	if err != nil {
		t.Fatal(err)
	}

	f.exec("UPDATE alert_work SET until = 0 WHERE id = 1")
	f.step(two)
	if err := one.write(t.Context(), w, c1, f.now); err != errOvertaken {
		t.Fatalf("got %v, want %v", err, errOvertaken)
	}

	f.want("alerts", 1, "SELECT COUNT(*) FROM alert")
	f.want("messages", 1, "SELECT COUNT(*) FROM delivery")
}

// TestEvents: each kind of event fires and ends.
func TestEvents(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{Name: "all", On: job.AlertEvents(), Channels: []string{"hook"}, LateFinish: job.Duration(60e9),
		NeverRan: job.Duration(3600e9),
		Failures: &job.AlertFailing{Count: 3, Within: job.Duration(100e9)}, Backlog: &job.AlertOverdue{Tasks: 2}})
	s := f.session()
	e := f.evaluator(s)
	f.step(e)
	a := f.job("shop", "a", "")
	f.exec("UPDATE job SET begun_to = 1, next_due = ?", int64(f.now+3600*second))
	check := func(what string, want ...string) {
		t.Helper()
		f.now += 31 * second
		f.exec("UPDATE alert_work SET until = 0 WHERE id = 1")
		e.state = nil // as another node would have it
		f.step(e)
		rows, err := readFiring(f.db.Reader(t.Context()), 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, string(r.Event))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
			for _, r := range rows {
				t.Log(r.Event, r.Summary)
			}
		}
	}

	check("a job that never ran", "never_ran")
	f.run(a, job.Succeeded, 0)
	check("it ran")
	f.run(a, job.Missed, 0)
	f.exec("UPDATE run SET started = 0 WHERE outcome = 'missed'")
	check("it was missed", "never_ran")
	f.run(a, job.Lost, 0)
	check("it was lost", "lost")
	f.run(a, job.Failed, 61*second)
	f.run(a, job.Failed, 61*second)
	check("it fails, and late", "failed", "failures", "late_start", "lost")
	f.run(a, job.Succeeded, 0)
	check("it succeeds", "failures")
	f.now += 101 * second
	check("and fails no more")
	first, other := f.live(a, job.Idle, f.now), f.live(a, job.Idle, f.now+1)
	f.now += 40 * second
	check("nobody starts", "backlog", "late_start")
	f.exec("UPDATE run SET state = 'executing', owner = 7, started = due WHERE id = ?", first)
	f.exec("DELETE FROM run WHERE id = ?", other)
	f.run(a, job.Succeeded, 0)
	check("it does not end", "late_finish")
	f.noneLive()
	f.run(a, job.Succeeded, 0)
	check("it ended")
	f.exec(`INSERT INTO audit (at, who, origin, action, kind, name, reason, app, ref)
		VALUES (?, 'x', 'x', 'reap', 'session', 'n9', '', '', 0)`, int64(f.now))
	check("a node is gone", "node_gone")
	n9 := f.exec(`INSERT INTO session (id, node, started, beat_at, labels, handlers, clock_offset)
		VALUES ('0123456789abcdef', 'n9', 1, 1, '{}', '[]', -3000000)`)
	_ = n9
	check("it is back, with another clock", "clock_skew")
	f.exec("UPDATE session SET clock_offset = 0")
	check("it is right")
	f.run(a, job.Failed, 0)
	check("it fails", "failed")
	f.exec("UPDATE job SET living = NULL")
	f.exec("UPDATE alert_work SET n = n + 1 WHERE id = 2")
	check("the job is gone")
	f.want("all alerts are over", 0, "SELECT COUNT(*) FROM alert WHERE firing = 1 OR over_at = 0")
}

// TestSilence: a silenced alert is recorded, and sent if it still fires when the silence ends.
func TestSilence(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertRecovered},
		Channels: []string{"hook"}})
	a, b, c := f.job("shop", "a", ""), f.job("shop", "b", ""), f.job("other", "c", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	n := job.Silence{App: "shop", Until: f.now.Add(MaxTestSilence), Reason: "it moves"}
	if err := f.store().AddSilence(t.Context(), &n); err != nil {
		t.Fatal(err)
	}

	for _, id := range []int64{a, b, c} {
		f.run(id, job.Failed, 0)
	}

	f.step(e)
	f.run(a, job.Succeeded, 0)
	f.step(e)
	f.now += second
	f.send(send)
	if got, want := h.said(), []string{"fired failed other/c"}; !slices.Equal(got, want) {
		t.Fatalf("in the silence: got %q, want %q", got, want)
	}

	f.want("silenced", 2, "SELECT SUM(events) FROM delivery WHERE state = ?", DeliverySilenced)
	ended, err := f.store().EndSilence(t.Context(), n.ID, func(job.Silence) error { return nil })
	if err != nil {
		t.Fatal(err)
	}

	f.now = max(f.now, ended.Until) // MySQL's clock has moved on
	f.step(e)
	f.now += second
	f.send(send)
	if got, want := h.said(), []string{"fired failed other/c", "fired failed shop/b"}; !slices.Equal(got, want) {
		t.Fatalf("behind it: got %q, want %q", got, want)
	}
}

// MaxTestSilence is longer than any test takes.
const MaxTestSilence = 3600e9

// TestFlood: many events become one message with the number of further events. A message that waits
// for its channel keeps growing.
func TestFlood(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000, Rate: 1})
	f.channel(job.AlertChannel{Name: "pager", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.exec(`UPDATE alert_channel SET spec = REPLACE(spec, '"webhook"', '"pagerduty"') WHERE name = 'pager'`)
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}})
	f.rule(job.AlertRule{Name: "page", On: []job.AlertEvent{job.AlertFailed}, Apps: []string{"many"},
		Channels: []string{"pager"}})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	flood := func(app string, n int) {
		for range n {
			f.run(f.job(app, "j"+idText(int64(f.count("SELECT COUNT(*) FROM job"))), ""), job.Failed, 0)
		}
		f.step(e)
		f.now += second
		f.send(send)
	}

	flood("a", 332)
	flood("b", 30)
	flood("c", 30)
	if m := h.seen(); len(m) != 1 || m[0].Count != 332 || len(m[0].Items) != 20 || m[0].More != 312 ||
		!strings.Contains(m[0].Text, "and 312 more") {
		t.Fatalf("got %d messages, the first %+v", len(m), m[0])
	}

	f.now += 61 * second
	f.send(send)
	if m := h.seen(); len(m) != 2 || m[1].Count != 60 {
		t.Fatalf("got %d messages, the last %+v", len(m), m[len(m)-1])
	}

	h.answer = func(int) int { return 500 }
	said := &written{}
	e.Log = slog.New(slog.NewTextHandler(said, nil))
	flood("many", manyOpen+20)
	f.want("suppressed", 20, "SELECT COALESCE(SUM(events), 0) FROM delivery WHERE state = ?", DeliverySuppressed)
	f.want("counted as lost", 20, "SELECT lost FROM alert_work WHERE id = 1")
	if log := said.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "events=20") {
		t.Errorf("the log has %q, want a line of 20 events", log)
	}

	f.want("alerts, told or not", 392+manyOpen+20+manyOpen+20, "SELECT COUNT(*) FROM alert")
}
