package alert

import (
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
)

const (
	hour = 3600 * second
	day  = 24 * hour
)

// firing lists the jobs of which something fires, as app/name, or the nodes.
func (f *fixture) firing() (out []string) {
	f.Helper()
	rows, err := f.db.Firing(f.Context(), 1000)
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

// TestLateInTurn: due times of one job that are late at the same time are counted once each, however often they are seen.
func TestLateInTurn(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "late", On: []job.AlertEvent{job.AlertLateStart, job.AlertLateFinish, job.AlertFailed}, Channels: []string{"hook"}, LateFinish: job.Duration(60e9)})
	a := f.job("shop", "a", "")
	e := f.evaluator(f.session())
	f.step(e)
	due := f.now - 100*second
	task := func(state int, due job.Micros) {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state) VALUES (?, ?, ?, 0, ?)", a, int64(due), int64(due), state)
	}
	check := func(what string, event job.AlertEvent, seen int) {
		t.Helper()
		for range 4 {
			f.now += 6 * second
			f.step(e)
		}
		if got := f.count("SELECT COALESCE(MAX(seen), 0) FROM alert WHERE firing = 1 AND event = ?", event); got != seen {
			t.Errorf("%s: %s was seen %d times, want %d", what, event, got, seen)
		}
	}
	task(2, due)
	task(2, due+1)
	check("two that do not end", job.AlertLateFinish, 2)
	task(2, due+2)
	check("and a third one", job.AlertLateFinish, 3)
	task(0, due+3)
	task(0, due+4)
	check("two that are not started", job.AlertLateStart, 2)

	// That they end late is nothing new; that another does is. Failures count whatever was due before.
	f.exec("DELETE FROM task")
	ended := func(due job.Micros) {
		n := f.run(a, job.Failed, 0)
		f.exec("UPDATE history SET due = ? WHERE id = ?", int64(due), n)
	}
	ended(due + 2)
	ended(due + 1)
	check("two of them have ended", job.AlertLateFinish, 3)
	check("two of them have failed", job.AlertFailed, 2)
	ended(due + 5)
	check("another has ended", job.AlertLateFinish, 4)
	check("another has failed", job.AlertFailed, 3)
}

// TestNeverRan: only what has something to run, and could have, is told of.
func TestNeverRan(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "nightly", On: []job.AlertEvent{job.AlertNeverRan}, Channels: []string{"hook"}, NeverRan: job.Duration(26 * 3600e9)})
	now := f.now
	next := `"` + (now + 7*day).String() + `"`
	resumed := func(kind job.Kind, ref int64, app string) {
		f.exec("INSERT INTO audit (at, who, origin, action, kind, ref, app, name, reason) VALUES (?, 'ann', '', 'resume', ?, ?, ?, '', '')", int64(now-600*second), kind, ref, app)
	}
	// due has a job as planning left it: zero is no due time.
	due := func(app, name, more string, nextDue, lastDue job.Micros) int64 {
		id := f.job(app, name, more)
		f.exec("UPDATE job SET next_due = NULLIF(?, 0), last_due = ?, created = ? WHERE id = ?", int64(nextDue), int64(lastDue), int64(now-60*day), id)
		return id
	}
	task := func(id int64, due job.Micros) {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state) VALUES (?, ?, ?, 0, 0)", id, int64(due), int64(due))
	}
	daily := due("shop", "daily", "", now+hour, now-30*hour)
	broken := due("shop", "broken", "", 0, now-30*hour)
	f.exec("UPDATE job SET error = 'no such zone' WHERE id = ?", broken)
	due("shop", "unplanned", "", now-27*hour, 0)
	task(due("shop", "waits", "", 0, 0), now-27*hour)
	due("shop", "ran-once", `,"at":"2020-01-01T00:00:00Z"`, 0, now-30*hour)
	ended := due("shop", "ended", "", 0, now-30*hour)
	f.exec("UPDATE job SET finished = 1 WHERE id = ?", ended)
	due("shop", "monthly", "", now+7*day, 0)
	task(due("shop", "soon", "", 0, 0), now+hour)
	task(due("shop", "first", "", now+day, 0), now-hour)
	due("shop", "starts", `,"start":`+next, now+7*day, now-30*hour)
	due("shop", "once-more", `,"at":`+next, now+7*day, now-30*hour)
	resumed(job.KindJob, due("shop", "monday", "", now+hour, now-60*hour), "shop")
	due("calm", "daily", "", now+hour, now-60*hour)
	resumed(job.KindApp, 0, "calm")

	e := f.evaluator(f.session())
	f.step(e)
	want := []string{"shop/broken", "shop/daily", "shop/unplanned", "shop/waits"}
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	f.exec("UPDATE job SET next_due = NULL WHERE id = ?", daily) // its end has come
	f.run(daily, job.Missed, 0)
	f.exec("UPDATE history SET started = 0")
	f.step(e)
	f.exec("UPDATE job SET next_due = NULL WHERE name = 'unplanned'")
	f.now += 21 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/broken", "shop/daily", "shop/waits"}; !slices.Equal(got, want) {
		t.Fatalf("at their end, and one was missed: got %q, want %q", got, want)
	}
	f.want("over", 1, "SELECT COUNT(*) FROM alert WHERE job = 'unplanned' AND over_why LIKE '%nothing to run%'")
	f.now += 26 * hour
	f.step(e)
	want = []string{"calm/daily", "shop/broken", "shop/daily", "shop/first", "shop/monday", "shop/waits"}
	if got := f.firing(); !slices.Equal(got, want) {
		t.Fatalf("a day later: got %q, want %q", got, want)
	}
	resumed(job.KindCluster, 0, "")
	f.exec("UPDATE audit SET at = ? WHERE kind = 'cluster'", int64(f.now))
	f.now += 21 * second
	f.step(e)
	if got, want := f.firing(), []string{"shop/daily"}; !slices.Equal(got, want) {
		t.Fatalf("the cluster was resumed: got %q, want %q", got, want)
	}
}

// TestForgottenNode: the alert of a node is over when the node is forgotten.
func TestForgottenNode(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "https://hook.example.com"})
	f.rule(job.AlertRule{Name: "nodes", On: []job.AlertEvent{job.AlertNodeGone}, Channels: []string{"hook"}})
	e := f.evaluator(f.session())
	f.step(e)
	f.exec("INSERT INTO audit (at, who, origin, action, kind, name, reason, app, ref) VALUES (?, 'x', 'x', 'reap', 'session', 'n9', '', '', 0)", int64(f.now))
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
	if err := f.db.Raw().QueryRow("SELECT over_why FROM alert").Scan(&why); err != nil || !strings.Contains(why, "gone for so long") {
		t.Errorf("got %q, %v", why, err)
	}
	f.want("what is told: that it is gone, and that it still is", 2, "SELECT SUM(events) FROM delivery WHERE state = ?", sql.DeliveryPending)
}
