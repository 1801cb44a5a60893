package feed

import (
	"slices"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// TestAlerts: each alert is reported when it is raised, silenced and over. Of an alert that fired
// before, only the end is reported.
func TestAlerts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	exec := func(query string, args ...any) {
		t.Helper()
		if _, err := c.db.Raw().Exec(query, args...); err != nil {
			t.Fatal(err)
		}
	}

	raise := func(id int, app string) {
		t.Helper()
		exec(`INSERT INTO alert (id, subject, rule_id, rule, event, severity, app, summary, first_at, last_at)
			VALUES (?, UNHEX(LPAD(?, 32, '0')), 1, 'ops', 'failed', 'error', ?, 'it failed', ?, ?)`,
			id, id, app, id, id)
	}

	raise(1, "a")
	r := newReader(read.Watch{DB: c.db}, func() job.Micros { return 9 })
	if err := r.anchor(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}

	look := func(want ...string) []Event {
		t.Helper()
		var out []Event
		if err := r.lookAtAlerts(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range out {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		return out
	}

	look()
	raise(2, "")
	raise(3, "a")
	exec("UPDATE alert SET silence_id = 7 WHERE id = 3")
	raised := look("f2-raised", "f3-raised", "f3-silenced-7")
	if len(raised) == 3 && (!raised[0].Open || raised[1].Open || raised[1].App != "a" ||
		raised[1].Alert.Summary != "it failed" || raised[1].Kind != KindAlert) {
		t.Errorf("got %+v", raised)
	}

	look()
	exec("UPDATE alert SET silence_id = 8 WHERE id = 2")
	look("f2-silenced-8")
	raise(4, "a")
	exec("UPDATE alert SET firing = NULL, over_at = 20 WHERE id IN (1, 2, 4)")
	look("f1-recovered", "f2-recovered", "f4-raised", "f4-recovered")
	look()
	raise(5, "") // this event names the job that failed last
	exec("UPDATE alert SET event = 'failures' WHERE id = 5")
	if counted := look("f5-raised"); len(counted) == 1 && counted[0].Open {
		t.Errorf("failures of several apps are told to all: %+v", counted)
	}
}
