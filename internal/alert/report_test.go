package alert

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go-crontab/job"
)

// TestStartsAndSuccesses: each start and each success is told once, also across nodes, raises no
// alert, and is dropped under a silence.
func TestStartsAndSuccesses(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.pager("pager", h.URL+"/pager")
	a, other := f.job("shop", "a", ""), f.job("other", "b", "")
	f.rule(job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertStarted, job.AlertSucceeded, job.AlertFailed},
		Apps: []string{"shop"}, Channels: []string{"hook", "pager"}})
	f.now -= 1000 * second // executing runs are due by MySQL's own clock
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.live(a, job.Executing, f.now-second) // started before anybody wanted to know
	f.step(e)

	told := 0
	check := func(what string, want ...string) {
		t.Helper()
		f.step(e)
		f.step(e)
		f.now += second
		f.send(send)
		got := h.said()[told:]
		told += len(got)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	check("it executes since before")
	f.now += second
	run := f.live(a, job.Executing, f.now)
	f.live(other, job.Executing, f.now)
	f.now += second
	check("a run started", "info started shop/a")
	f.exec("UPDATE run SET state = 'ended', owner = -2, session = 7, outcome = 'succeeded', final = 1, ended = ? WHERE id = ?",
		int64(f.now), run)
	f.note(run, a, job.Succeeded)
	check("it succeeded", "info succeeded shop/a")

	f.now += second
	f.run(a, job.Succeeded, 0)
	check("another one was never seen to execute", "info started shop/a", "info succeeded shop/a")

	f.live(a, job.Executing, f.now)
	f.now += second
	check("one more started", "info started shop/a")
	e = f.evaluator(f.session())
	f.exec("UPDATE alert_work SET until = 0 WHERE id = 1")
	check("another node goes on")

	silence := job.Silence{App: "shop", Until: f.now + 2000*second, Reason: "x"}
	if err := f.store().AddSilence(t.Context(), &silence); err != nil {
		t.Fatal(err)
	}
	f.run(a, job.Succeeded, 0)
	check("a silence")
	f.want("alerts", 0, "SELECT COUNT(*) FROM alert")
	f.want("incidents", 0, "SELECT COUNT(*) FROM delivery WHERE channel = 'pager'")

	// A rule that would never send anything to a channel is refused.
	var p job.Problems
	_, _, err := f.store().PutRule(t.Context(), job.AlertRule{Name: "x", On: []job.AlertEvent{job.AlertStarted},
		Channels: []string{"pager"}})
	if !errors.As(err, &p) || len(p) != 1 || p[0].Field != "channels[0]" {
		t.Errorf("got %v, want a problem of channels[0]", err)
	}
}

// TestTroubles: each trouble of the cluster fires and ends.
func TestTroubles(t *testing.T) {
	f := setUp(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: "http://example.com"})
	f.rule(job.AlertRule{Name: "ops", On: job.AlertTroubles(), Channels: []string{"hook"}, Apps: []string{"none"}})
	s := f.session()
	e := f.evaluator(s)
	f.exec("INSERT INTO setting (name, value) VALUES ('session_expiry_ms', '20000')")
	f.step(e)

	check := func(what string, want ...string) {
		t.Helper()
		f.now += 11 * second
		f.step(e)
		rows, err := readFiring(f.db.Reader(t.Context()), 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, string(r.Event)+": "+r.Summary)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	check("nothing")
	f.exec("INSERT INTO folder (id, name, past) VALUES (1, '/jobs', '')")
	f.exec(`INSERT INTO folder_node (folder_id, node, state, error, since)
		VALUES (1, ?, 'refused', 'a.yaml:3: no', 1), (1, 'gone', 'refused', 'no', 1)`, s.Node())
	check("a folder is refused", "folder_refused: the node "+s.Node()+" cannot apply the folder /jobs: a.yaml:3: no")
	f.exec("UPDATE folder_node SET state = 'applied', error = ''")
	check("it is applied")

	const day = 24 * 3600 * second
	token := func(name string, made, end job.Micros, living any) {
		f.exec(`INSERT INTO api_token (name, living, hash, role, created, created_by, expires)
			VALUES (?, ?, UNHEX(SHA2(?, 256)), 'viewer', ?, 'x', ?)`, name, living, name, int64(made), int64(end))
	}
	end, later := f.now+13*day, f.now+15*day
	token("ci", f.now-80*day, end, 1)
	token("later", f.now-80*day, later, 1)
	token("short", f.now-day, f.now+day, 1)
	token("over", f.now-80*day, f.now-day, 1)
	token("revoked", f.now-80*day, f.now+day, nil)
	expired := "expiring: the token over expired at " + whenIn(f.now-day, "")
	check("a token expires, and one has expired", "expiring: the token ci expires at "+whenIn(end, ""), expired)
	f.now += 14 * day
	check("it has expired, too", "expiring: the token ci expired at "+whenIn(end, ""),
		"expiring: the token later expires at "+whenIn(later, ""), expired)
	f.exec("UPDATE api_token SET living = NULL")
	check("they are revoked")
	f.want("why the alert is over", 1, "SELECT COUNT(*) FROM alert WHERE over_why = ?",
		"it is over: the token ci expired at "+whenIn(end, ""))
	f.now -= 14 * day

	notes := func(expires job.Micros, why string) {
		f.exec(`REPLACE INTO node_note (node, what, expires, error, since)
			VALUES (?, 'certificate', ?, '', 1), (?, 'oidc', 0, ?, 1000000), ('gone', 'certificate', 1, '', 1)`,
			s.Node(), int64(expires), s.Node(), why)
	}
	notes(f.now+100*day, "")
	check("all is well")
	end = f.now + 13*day
	notes(end, "no route\r\n to host")
	check("a certificate expires, and the issuer is away",
		"expiring: the TLS certificate of the node "+s.Node()+" expires at "+whenIn(end, ""),
		"oidc_unreachable: the node "+s.Node()+" has not reached the OIDC issuer since 1970-01-01T00:00:01Z: no route to host")
	notes(f.now+100*day, "")
	check("both are over")

	f.exec("INSERT INTO setting (name, value) VALUES ('backup', '1000000 3600000000000')")
	check("a backup is late", "backup_old: the last backup was made at 1970-01-01T00:00:01Z, and the next one was "+
		"expected within 1h")
	if _, err := f.db.BackupDone(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	check("the next one")

	for _, id := range []string{"0123456789abcde1", "0123456789abcde2"} {
		f.exec(`INSERT INTO session (id, node, address, pid, started, beat_at, labels, handlers)
			VALUES (?, 'twin', 'here', 7, 1, ?, '{}', '[]')`, id, int64(f.now+11*second))
	}
	check("two nodes of one name", "duplicate_names: 2 live nodes are named twin: here, pid 7; here, pid 7")
	f.exec("DELETE FROM session WHERE id = '0123456789abcde1'")
	check("one is gone")
}
