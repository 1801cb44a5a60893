package alert

import (
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
)

const (
	hour = 3600 * second
	day  = 24 * hour
)

// firing lists the jobs with firing alerts, as app/name, or the nodes.
func (f *fixture) firing() (out []string) {
	f.Helper()
	rows, err := readFiring(f.db.Reader(f.Context()), 1000)
	if err != nil {
		f.Fatal(err)
	}
	for _, r := range rows {
		if r.JobID == 0 {
			out = append(out, r.Node)
			continue
		}
		out = append(out, r.App+"/"+r.Job)
	}
	slices.Sort(out)
	return out
}

// TestLateInTurn: if several due times of a job are late at the same time, each is counted once,
// even if seen repeatedly.
func TestLateInTurn(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertLateFinish, job.AlertFailed},
		Channels: []string{"hook"}, LateFinish: job.Duration(60e9)})
	a := f.job("shop", "a", "")
	e := f.evaluator(f.session())
	f.step(e)
	due := f.now - 100*second
	check := func(what string, event job.AlertEvent, seen int) {
		t.Helper()
		for range 4 {
			f.now += 6 * second
			f.step(e)
		}
		if got := f.count("SELECT COALESCE(MAX(seen), 0) FROM alert WHERE firing = 1 AND event = ?",
			event); got != seen {
			t.Errorf("%s: %s was seen %d times, want %d", what, event, got, seen)
		}
	}
	f.live(a, job.Executing, due)
	f.live(a, job.Executing, due+1)
	check("two that do not end", job.AlertLateFinish, 2)
	f.live(a, job.Executing, due+2)
	check("and a third one", job.AlertLateFinish, 3)
	f.live(a, job.Idle, due+3)
	f.live(a, job.Idle, due+4)
	check("two that are not started", job.AlertLateStart, 2)

	// These ends are not counted again, but that of another due time is. Failures count in any
	// order of due times.
	f.noneLive()
	ended := func(due job.Micros) {
		n := f.run(a, job.Failed, 0)
		f.exec("UPDATE run SET due = ? WHERE id = ?", int64(due), n)
	}
	ended(due + 2)
	ended(due + 1)
	check("two of them have ended", job.AlertLateFinish, 3)
	check("two of them have failed", job.AlertFailed, 2)
	ended(due + 5)
	check("another has ended", job.AlertLateFinish, 4)
	check("another has failed", job.AlertFailed, 3)
}

// TestLateBeside: an alert about a late run lasts while other runs of the job are in time. It ends
// when no run is late and a later one was in time.
func TestLateBeside(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertLateFinish},
		Channels: []string{"hook"}, LateFinish: job.Duration(60e9)})
	e := f.evaluator(f.session())
	f.step(e)
	const (
		all    = "SELECT COUNT(*) FROM alert WHERE event = ?"
		firing = "SELECT COUNT(*) FROM alert WHERE event = ? AND firing = 1"
	)
	for _, c := range []struct {
		event job.AlertEvent
		state job.State
		late  job.Micros // lateness of the late run
	}{{job.AlertLateFinish, job.Executing, 0}, {job.AlertLateStart, job.Idle, 61 * second}} {
		a := f.job("shop", string(c.event), "")
		due := f.now - 2*hour
		inTime := func(due job.Micros) {
			n := f.run(a, job.Succeeded, 0)
			f.exec("UPDATE run SET due = ? WHERE id = ?", int64(due), n)
			f.now += 6 * second
			f.step(e)
		}

		f.live(a, c.state, due)
		f.now += 6 * second
		f.step(e)
		for range 3 {
			inTime(f.now - second)
		}

		f.want(string(c.event)+" own others that are in time", 1, all, c.event)
		f.want(string(c.event)+" goes on", 1, firing, c.event)
		f.noneLive()
		n := f.run(a, job.Succeeded, c.late)
		f.exec("UPDATE run SET due = ? WHERE id = ?", int64(due), n)
		f.step(e)
		inTime(due - hour) // from an earlier due time
		f.want(string(c.event)+" when an earlier one was in time", 1, firing, c.event)
		inTime(f.now - second)
		f.want(string(c.event)+" when a later one was in time", 0, firing, c.event)
		f.want(string(c.event)+" in all", 1, all, c.event)
	}
}

// TestNeverLate: runs that could not have been in time are not late.
func TestNeverLate(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertLateFinish},
		Channels: []string{"hook"}, LateFinish: job.Duration(3600e9)})
	e := f.evaluator(f.session())
	f.step(e)
	month := f.now - 30*day
	live := func(what string, state job.State, due, dueNow job.Micros, kind job.RunKind, attempt int) {
		n := f.live(f.job("shop", what, ""), state, due)
		f.exec("UPDATE run SET due_now = ?, kind = ?, attempt = ? WHERE id = ?", int64(dueNow), kind, attempt, n)
	}

	live("a backfill that executes", job.Executing, month, f.now, job.FromBackfill, 1)
	live("a backfill that is not started", job.Idle, month, f.now-100*second, job.FromBackfill, 1)
	live("a retry", job.Idle, f.now-200*second, f.now-100*second, job.FromSchedule, 2)
	live("whose turn has come", job.Idle, f.now-200*second, f.now-10*second, job.FromSchedule, 1)
	n := f.run(f.job("shop", "a backfill that has ended", ""), job.Succeeded, 100*second)
	f.exec("UPDATE run SET due = ?, kind = 'backfill' WHERE id = ?", int64(month), n)
	n = f.run(f.job("shop", "a retry that has ended", ""), job.Succeeded, 100*second)
	f.exec("UPDATE run SET attempt = 2 WHERE id = ?", n)
	live("that many attempts do not end", job.Executing, f.now-2*hour, f.now-second, job.FromSchedule, 5)
	live("whose turn has come long ago", job.Idle, f.now-200*second, f.now-100*second, job.FromSchedule, 1)
	f.now += 6 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/that many attempts do not end",
		"shop/whose turn has come long ago"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	f.want("from when it is late", 1,
		"SELECT COUNT(*) FROM alert WHERE event = 'late_start' AND summary LIKE '%has not started and is 1m46s late'")
}

// TestFailuresGoOn: failures too few for another notice still keep the alert from ending.
func TestFailuresGoOn(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "flaky", On: []job.AlertEvent{job.AlertFailures}, Channels: []string{"hook"},
		Failures: &job.AlertFailing{Count: 3, Within: job.Duration(100e9)}})
	a := f.job("shop", "a", "")
	e := f.evaluator(f.session())
	f.step(e)
	for range 3 {
		f.run(a, job.Failed, 0)
	}

	f.step(e)
	f.now += 90 * second
	for range 2 { // two within any 100 s
		f.run(a, job.Failed, 0)
		f.step(e)
		f.want("while it fails", 1, "SELECT COUNT(*) FROM alert WHERE firing = 1")
		f.now += 95 * second
		f.step(e)
		f.want("a while later", 1, "SELECT COUNT(*) FROM alert WHERE firing = 1")
	}

	f.want("it is one alert", 1, "SELECT COUNT(*) FROM alert")
	f.now += 6 * second
	f.step(e)
	f.want("when nothing failed for that long", 0, "SELECT COUNT(*) FROM alert WHERE firing = 1")
}

// TestNeverRan: an alert fires only for jobs that had something to run and could have run it.
func TestNeverRan(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "nightly", On: []job.AlertEvent{job.AlertNeverRan}, Channels: []string{"hook"},
		NeverRan: job.Duration(26 * 3600e9)})
	now := f.now
	next := `"` + (now + 7*day).String() + `"`
	resumed := func(kind job.Kind, app string) {
		f.exec("INSERT INTO audit (at, who, origin, action, kind, app) VALUES (?, 'ann', '', 'resume', ?, ?)",
			int64(now-600*second), kind, app)
	}
	// due sets the next due time of a job; zero: none.
	due := func(app, name, more string, nextDue, lastDue job.Micros) int64 {
		id := f.job(app, name, more)
		f.exec("UPDATE job SET next_due = NULLIF(?, 0), begun_to = ? WHERE id = ?", int64(nextDue), int64(lastDue), id)
		f.exec("UPDATE job_version SET created = ? WHERE job_id = ?", int64(now-60*day), id)
		return id
	}
	daily := due("shop", "daily", "", now+hour, now-30*hour)
	broken := due("shop", "broken", "", 0, now-30*hour)
	f.exec("UPDATE job SET error = 'no such zone' WHERE id = ?", broken)
	due("shop", "unplanned", "", now-27*hour, 0)
	f.live(due("shop", "waits", "", 0, 0), job.Idle, now-27*hour)
	due("shop", "ran-once", `,"at":"2020-01-01T00:00:00Z"`, 0, now-30*hour)
	due("shop", "ended", "", 0, now-30*hour)
	due("shop", "monthly", "", now+7*day, 0)
	f.live(due("shop", "soon", "", 0, 0), job.Idle, now+hour)
	f.live(due("shop", "first", "", now+day, 0), job.Idle, now-hour)
	due("shop", "starts", `,"start":`+next, now+7*day, now-30*hour)
	due("shop", "once-more", `,"at":`+next, now+7*day, now-30*hour)
	monday := due("shop", "monday", "", now+hour, now-60*hour)
	f.exec("UPDATE job SET resumed = ? WHERE id = ?", int64(now-600*second), monday)
	due("calm", "daily", "", now+hour, now-60*hour)
	resumed(job.KindApp, "calm")

	e := f.evaluator(f.session())
	f.step(e)
	want := []string{"shop/broken", "shop/daily", "shop/unplanned", "shop/waits"}
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	f.exec("UPDATE job SET next_due = NULL WHERE id = ?", daily) // its schedule has ended
	f.run(daily, job.Missed, 0)
	f.exec("UPDATE run SET started = 0")
	f.step(e)
	f.exec("UPDATE job SET next_due = NULL WHERE name = 'unplanned'")
	f.now += 21 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/broken", "shop/daily", "shop/waits"}; !slices.Equal(got, want) {
		t.Fatalf("at their end, and one was missed: got %q, want %q", got, want)
	}
	f.want("over", 1, "SELECT COUNT(*) FROM alert WHERE job = 'unplanned' AND over_why LIKE '%nothing left to run%'")
	f.now += 26 * hour
	f.step(e)
	want = []string{"calm/daily", "shop/broken", "shop/daily", "shop/first", "shop/monday", "shop/waits"}
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("a day later: got %q, want %q", got, want)
	}
	resumed(job.KindCluster, "")
	f.exec("UPDATE audit SET at = ? WHERE kind = 'cluster'", int64(f.now))
	f.now += 21 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/daily"}; !slices.Equal(got, want) {
		t.Fatalf("the cluster was resumed: got %q, want %q", got, want)
	}
}

// TestForgottenNode: the alert about a node ends when the node is forgotten.
func TestForgottenNode(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "nodes", On: []job.AlertEvent{job.AlertNodeGone}, Channels: []string{"hook"}})
	e := f.evaluator(f.session())
	f.step(e)
	f.exec(`INSERT INTO audit (at, who, origin, action, kind, name, reason, app, ref)
		VALUES (?, 'x', 'x', 'reap', 'session', 'n9', '', '', 0)`, int64(f.now))
	for _, later := range []job.Micros{31 * second, 29 * day} {
		f.now += later
		f.step(e)
		if got, want := f.firing(), []string{"n9"}; !slices.Equal(got, want) {
			t.Fatalf("after %s: got %q, want %q", span(later), got, want)
		}
	}

	f.now += 2 * day
	f.step(e)
	if got := f.firing(); len(got) != 0 {
		t.Fatalf("after 31 days: %q fires", got)
	}

	var why string
	if err := f.db.Raw().QueryRow("SELECT over_why FROM alert").Scan(&why); err != nil ||
		!strings.Contains(why, "gone so long") {
		t.Errorf("got %q, %v", why, err)
	}

	f.want("what is told: that it is gone, and that it still is", 2, "SELECT SUM(events) FROM delivery WHERE state = ?",
		DeliveryPending)
}

// TestFailingLook: a failing look does not delay the findings of others, and is tried again later.
func TestFailingLook(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.channel(job.AlertChannel{Name: "dead man", Type: job.ChannelHeartbeat, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "all", On: []job.AlertEvent{job.AlertNeverRan, job.AlertFailed},
		Channels: []string{"hook"}, NeverRan: job.Duration(3600e9)})
	a, b := f.job("shop", "a", ""), f.job("shop", "b", "")
	e := f.evaluator(f.session())
	f.step(e)
	f.exec("UPDATE job SET begun_to = 1, next_due = ? WHERE id = ?", int64(f.now+hour), b)
	f.exec("ALTER TABLE audit RENAME COLUMN kind TO kind_away") // makes the look for jobs that do not run fail
	f.exec("RENAME TABLE alert_streak TO streaks_away")         // makes the removal of old alerts fail
	f.run(a, job.Failed, 0)
	f.exec("DELETE FROM delivery")
	f.now += 61 * second
	f.step(e)
	want := []string{"shop/a"}
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	f.want("heartbeats", 1, "SELECT COUNT(*) FROM delivery WHERE kind = 'heartbeat'")
	f.exec("ALTER TABLE audit RENAME COLUMN kind_away TO kind")
	f.exec("RENAME TABLE streaks_away TO alert_streak")
	f.now += 10 * second
	f.step(e)
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("a while later: got %q, want %q", got, want)
	}

	f.now += 10 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/a", "shop/b"}; !slices.Equal(got, want) {
		t.Fatalf("when it is looked again: got %q, want %q", got, want)
	}
}

// manyLive multiplies the only run until there are enough. The runs are due one microsecond after
// another, with the same due_now.
func (f *fixture) manyLive(least int) {
	f.Helper()
	for n := 1; n < least; n *= 2 {
		f.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, started)
			SELECT id + ?, job_id, app_id, due + ?, kind, state, owner, claim, due_now, hash, started
			FROM run WHERE state <> 'ended'`, n, n)
		minted.Add(int64(n))
	}
}

// TestLateBehindOthers: a late run is found even after very many other late runs.
func TestLateBehindOthers(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertLateFinish},
		Channels: []string{"hook"}, Apps: []string{"billing"}, LateFinish: job.Duration(60e9)})
	e := f.evaluator(f.session())
	f.step(e)
	other := f.job("other", "many", "")
	for name, state := range map[string]job.State{"executing": job.Executing, "idle": job.Idle,
		"prepared": job.Prepared} {
		f.live(other, state, f.now-2*hour)
		f.manyLive(2 * runsAtOnce)
		f.live(f.job("billing", name, ""), state, f.now-hour)
		f.now += 6 * second
		for range 3 {
			f.step(e)
			f.now += second
		}

		if got, want := f.firing(), []string{"billing/" + name}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}

		f.noneLive()
		f.exec("UPDATE alert SET firing = NULL, over_at = 1")
		e.state = nil
	}
}

// TestNeverRanOfMany: a job with very many runs that never began is found. The alert ends when a
// run of an earlier due time begins.
func TestNeverRanOfMany(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "hourly", On: []job.AlertEvent{job.AlertNeverRan}, Channels: []string{"hook"},
		NeverRan: job.Duration(3600e9)})
	a := f.job("shop", "a", "")
	f.exec("UPDATE job SET begun_to = 1, next_due = ?", int64(f.now+hour))
	f.live(a, job.Idle, f.now-hour/2)
	f.manyLive(25_000)
	f.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'skipped', final = 1, ended = 1")
	e := f.evaluator(f.session())
	for range 5 {
		f.step(e)
		f.now += second
	}

	if got, want := f.firing(), []string{"shop/a"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}

	n := f.run(a, job.Succeeded, 0)
	f.exec("UPDATE run SET due = (SELECT MIN(due) + 10 FROM (SELECT due FROM run) r), attempt = 2 WHERE id = ?", n)
	for range 3 {
		f.step(e)
		if got := f.firing(); len(got) != 0 {
			t.Fatalf("it has begun a run: %q fires", got)
		}
		f.now += 21 * second
	}
}

// TestBacklogBehindOthers: overdue runs of a rule's jobs are counted even after very many runs of
// other jobs. The alert does not end before everything is counted.
func TestBacklogBehindOthers(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	rule := job.AlertRule{Name: "billing", On: []job.AlertEvent{job.AlertBacklog}, Channels: []string{"hook"},
		Apps: []string{"billing"}, Backlog: &job.AlertOverdue{Tasks: 2, OlderThan: job.Duration(60e9)}}
	f.rule(rule)
	rule.Name, rule.Apps, rule.Backlog = "older", nil, &job.AlertOverdue{Tasks: 10_000,
		OlderThan: job.Duration(10 * 3600e9)}
	f.rule(rule)
	e := f.evaluator(f.session())
	f.step(e)
	f.live(f.job("other", "many", ""), job.Idle, f.now-2*hour)
	f.manyLive(overdueAtOnce + 1)
	billing := f.job("billing", "j", "")
	f.live(billing, job.Idle, f.now-hour)
	f.live(billing, job.Prepared, f.now-hour+1) // not started by its node
	firing := func(what string, want int) {
		t.Helper()
		f.want(what, want, "SELECT COUNT(*) FROM alert WHERE firing = 1 AND rule = 'billing'")
		f.want("of both rules", want, "SELECT COUNT(*) FROM alert WHERE firing = 1")
	}

	f.now += 6 * second
	f.step(e)
	firing("when the others were counted", 0)
	f.now += second
	f.step(e)
	firing("when all were", 1)
	for range 12 {
		f.now += second
		f.step(e)
		firing("a while later", 1)
	}

	f.want("what is told", 1, "SELECT SUM(events) FROM delivery")
	f.exec("DELETE FROM run WHERE job_id = ? LIMIT 1", billing)
	for range 8 {
		f.now += second
		f.step(e)
	}

	firing("when one of its own is left", 0)
}

// TestFailingLookForEnds: a failing read of late runs does not fail the step for good.
func TestFailingLookForEnds(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertFailed},
		Channels: []string{"hook"}})
	a := f.job("shop", "a", "")
	e := f.evaluator(f.session())
	f.step(e)
	f.run(a, job.Succeeded, 100*second)
	f.step(e)
	firing := func(what, event string, want int) {
		t.Helper()
		f.want(what, want, "SELECT COUNT(*) FROM alert WHERE firing = 1 AND event = ?", event)
	}

	firing("late", "late_start", 1)
	f.exec("ALTER TABLE run RENAME KEY live TO away")
	f.now += 6 * second
	f.run(a, job.Failed, 0)
	for range 2 { // at first the connection may be at fault
		if _, err := e.step(t.Context(), f.now); err == nil {
			t.Error("a step stands that could not read what is over")
		}
	}

	f.step(e)
	firing("while it cannot be read what is late", "failed", 1)
	firing("what nobody knows to be over", "late_start", 1)
	f.exec("ALTER TABLE run RENAME KEY away TO live")
	f.now += 6 * second
	f.run(a, job.Failed, 0)
	f.step(e)
	firing("with the next one that is in time", "late_start", 0)
}
