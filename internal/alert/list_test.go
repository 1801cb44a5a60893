package alert

import (
	"slices"
	"testing"

	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

// TestAlertLists reads lists of 50,000 alerts and as many messages page by page, with each filter.
// It compares the lists with the tables, and the rows that the server read with the rows listed.
// Nearly all messages are pings.
func TestAlertLists(t *testing.T) {
	const lines, limit, examinedMost = 50_000, 100, 2000
	f := setUp(t)
	f.exec("ALTER TABLE alert STATS_PERSISTENT=1, STATS_AUTO_RECALC=0") // the server assumes empty tables
	f.exec("ALTER TABLE delivery STATS_PERSISTENT=1, STATS_AUTO_RECALC=0")
	f.exec(`INSERT INTO alert (subject, firing, rule_id, rule, event, severity, summary, first_at, last_at)
		VALUES ('0', NULL, 1, 'none', 'failed', 'error', '', 1, 1)`)
	f.exec(`INSERT INTO delivery (idem, kind, state, next_at, items, created, updated)
		VALUES ('0', 'ping', 2, 1, '[]', 1, 1)`)
	for n := 1; n < lines; n *= 2 {
		f.exec(`INSERT INTO alert
				(id, subject, firing, rule_id, rule, event, severity, app, job_id, summary, first_at, last_at)
			SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), IF(n MOD 200 = 0, 1, NULL), 1,
				IF(n MOD 25000 = 7, 'rare', 'often'), IF(n MOD 10 = 0, 'failures', 'failed'), 'error',
				IF(n MOD 3 = 0, '', CONCAT('a', n MOD 300)), n MOD 1000, '', n, n
			FROM (SELECT id + ? AS n FROM alert ORDER BY id LIMIT ?) numbers`, n, min(n, lines-n))
		f.exec(`INSERT INTO delivery (id, idem, kind, channel, rule, state, next_at, items, created, updated)
			SELECT n, UNHEX(LPAD(HEX(n), 32, '0')), IF(n MOD 100 = 0, 'alert', 'ping'),
				IF(n MOD 100 = 0, CONCAT('c', n MOD 3), ''), IF(n MOD 100 = 0, CONCAT('r', n MOD 7), ''),
				IF(n MOD 700 = 0, 3, 2), n DIV 3, '[]', n DIV 2, n
			FROM (SELECT id + ? AS n FROM delivery ORDER BY id LIMIT ?) numbers`, n, min(n, lines-n))
	}

	db, proxy := f.proxied()
	var statements []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			statements = append(statements, c.SQL)
		}
	})

	reads := func() int64 { return testdb.Reads(t, db.Raw()) }
	asking := -reads()
	asking += reads()
	// walk compares a list with the wanted one. With exact, a page must list every row that it
	// reads.
	walk := func(name, index string, exact bool, want []int64, page func() (ids []int64, more bool, err error)) {
		t.Helper()
		var got []int64
		for n := 1; ; n++ {
			statements = nil
			before := reads()
			ids, more, err := page()
			cost := reads() - before - asking
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			most := int64(4 * examinedMost)
			if exact {
				most = int64(4*len(ids)) + 20
			}
			if cost > most {
				t.Errorf("%s, page %d: %d rows read for %d shown, want at most %d", name, n, cost, len(ids), most)
			}
			testdb.WantIndex(t, f.own.Raw(), name, statements, index+"|PRIMARY")
			if got = append(got, ids...); !more || len(got) >= 3*limit {
				break
			}
			if n > 100 {
				t.Fatalf("%s: it does not end", name)
			}
		}
		if got = got[:min(len(got), 3*limit)]; !slices.Equal(got, want) {
			t.Errorf("%s: got %d ids, want %d: %v, want %v", name, len(got), len(want), got[:min(5, len(got))],
				want[:min(5, len(want))])
		}
	}

	fires, over, many := true, false, []string{}
	for i := range read.ManyApps + 4 {
		many = append(many, "a"+string(rune('A'+i)))
	}

	many = append(many, "a7")
	for name, c := range map[string]struct {
		filter FiredFilter
		where  string
		index  string
		exact  bool
	}{
		"all":               {FiredFilter{}, "TRUE", "", true},
		"a job":             {FiredFilter{JobID: 7}, "job_id = 7", "job", true},
		"what fires":        {FiredFilter{Firing: &fires}, "firing = 1", "firing", true},
		"what is over":      {FiredFilter{Firing: &over}, "firing IS NULL", "firing", true},
		"an app":            {FiredFilter{App: "a7"}, "app = 'a7'", "app", true},
		"an app of another": {FiredFilter{App: "a7", Apps: []string{"a8"}}, "FALSE", "", false},
		"a few apps": {FiredFilter{Apps: []string{"a7", "a8"}},
			"app IN ('a7', 'a8') OR app = '' AND event <> 'failures'", "app", true},
		"many apps": {FiredFilter{Apps: many}, "app = 'a7' OR app = '' AND event <> 'failures'", "",
			false},
		"a rare rule":  {FiredFilter{Rule: "rare"}, "rule = 'rare'", "", false},
		"no such rule": {FiredFilter{Rule: "nobody"}, "FALSE", "", false},
		"what is over of a job": {FiredFilter{JobID: 100, Firing: &over}, "job_id = 100 AND firing IS NULL",
			"job", false},
		"what fires in a few apps": {FiredFilter{Apps: []string{"a200"}, Firing: &fires},
			"firing = 1 AND (app = 'a200' OR app = '' AND event <> 'failures')", "firing", false},
		"a rule's that fires in apps": {FiredFilter{Rule: "often", Apps: []string{"a200"}, Firing: &fires},
			"firing = 1 AND app = 'a200'", "firing", false},
	} {
		want := testdb.Numbers(t, f.own.Raw(), "SELECT id FROM alert WHERE "+c.where+" ORDER BY id DESC LIMIT ?",
			3*limit)
		if c.index == "" && c.where == "FALSE" && c.filter.App != "" {
			if rows, next, err := Fired(db.Reader(t.Context()), c.filter); err != nil || len(rows) != 0 || next != 0 {
				t.Errorf("%s: got %d rows, %d, %v", name, len(rows), next, err)
			}
			continue
		}
		c.filter.Limit = limit
		walk("alerts, "+name, c.index, c.exact, want, func() (ids []int64, more bool, err error) {
			rows, next, err := Fired(db.Reader(t.Context()), c.filter)
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			c.filter.Before = next
			return ids, next != 0, err
		})
	}

	failed, sent, silenced := DeliveryFailed, DeliverySent, DeliverySilenced
	for name, c := range map[string]struct {
		filter DeliveryFilter
		where  string
		index  string
		exact  bool
	}{
		"all": {DeliveryFilter{}, "TRUE ORDER BY id DESC", "", true},
		"a channel": {DeliveryFilter{Channel: "c1"}, "channel = 'c1' ORDER BY created DESC, id DESC", "kind",
			false},
		"no such channel": {DeliveryFilter{Channel: "x"}, "FALSE", "kind", false},
		"a rule":          {DeliveryFilter{Rule: "r3"}, "rule = 'r3' ORDER BY created DESC, id DESC", "kind", false},
		"failed":          {DeliveryFilter{State: &failed}, "state = 3 ORDER BY next_at DESC, id DESC", "due", true},
		"silenced":        {DeliveryFilter{State: &silenced}, "FALSE", "due", true},
		"sent":            {DeliveryFilter{State: &sent}, "state = 2 ORDER BY next_at DESC, id DESC", "due", true},
		"a rule's failed": {DeliveryFilter{Rule: "r0", State: &failed},
			"rule = 'r0' AND state = 3 ORDER BY next_at DESC, id DESC", "due", false},
		"what a channel got": {DeliveryFilter{Channel: "c1", State: &sent},
			"channel = 'c1' AND state = 2 ORDER BY created DESC, id DESC", "kind", false},
	} {
		want := testdb.Numbers(t, f.own.Raw(), "SELECT id FROM delivery WHERE "+c.where+" LIMIT ?", 3*limit)
		c.filter.Limit = limit
		walk("messages, "+name, c.index, c.exact, want, func() (ids []int64, more bool, err error) {
			rows, next, err := Deliveries(db.Reader(t.Context()), c.filter)
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			c.filter.After = next
			return ids, next != nil, err
		})
	}

	before := reads()
	counts, err := Count(db.Reader(t.Context()), nil)
	if cost := reads() - before - asking; cost > 4*countedMost { // fewer than the messages in the table
		t.Errorf("the summary: %d rows read", cost)
	}

	if n := f.count("SELECT COUNT(*) FROM delivery WHERE state = 3"); err != nil ||
		counts.States["sent"] != countedMost || counts.States["failed"] != int64(n) || len(counts.States) != 2 ||
		counts.Firing != 250 {
		t.Errorf("got %+v, %v", counts, err)
	}
}

// TestOpenAlerts: an alert that names a job is not visible to all.
func TestOpenAlerts(t *testing.T) {
	for _, c := range []struct {
		app   string
		event job.AlertEvent
		want  bool
	}{{"", job.AlertNodeGone, true}, {"", job.AlertFailures, false}, {"a", job.AlertFailures, false}, {"a",
		job.AlertFailed, false}} {
		if r := (FiredRow{App: c.app, Event: c.event}); r.Open() != c.want {
			t.Errorf("%q %s: got %v", c.app, c.event, !c.want)
		}
	}
}
