package api_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// past makes a job that was created long ago.
func (s *site) past(name string, created time.Time, body object) (id string) {
	s.t.Helper()
	id = s.create(name, body).text("id")
	s.exec("UPDATE job_version SET created = ? WHERE job_id = ?", created.UnixMicro(), id)
	s.exec("UPDATE audit SET at = ? WHERE kind = 'job' AND ref = ?", created.UnixMicro(), id)
	return id
}

func (s *site) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Raw().Exec(query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// ended writes a scheduled run that ended without starting.
func (s *site) ended(id string, due time.Time, outcome job.Outcome, code job.ReasonCode, reason string, at time.Time) {
	s.t.Helper()
	s.exec(`
			INSERT INTO run (id, job_id, app_id, due, due_now, kind, state, owner, claim, hash, outcome, final,
				reason_code, reason, ended)`+
		" SELECT ? + id, id, app_id, ?, ?, 'schedule', 'ended', -2, 0, hash, ?, 1, NULLIF(?, ''), ?, ? FROM job WHERE id = ?",
		due.Unix()*1000, due.UnixMicro(), due.UnixMicro(), outcome.String(), code, reason, at.UnixMicro(), id)
}

// audited writes an audit line with a given time.
func (s *site) audited(at time.Time, e job.Entry) {
	s.t.Helper()
	s.exec(`
			INSERT INTO audit (at, who, action, kind, ref, app, reason, was, became)
			VALUES (?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''), NULLIF(?, ''))`,
		at.UnixMicro(), e.Who, e.Action, e.Kind, e.Ref, e.App, e.Reason, e.Was, e.Became)
}

func (s *site) explain(id, at string) object {
	s.t.Helper()
	return s.call("GET", "/api/v1/jobs/"+id+"/explain?at="+strings.ReplaceAll(at, "+", "%2B"), nil).want(200).object()
}

// TestExplainTheDefinition: why an instant is, or was, no due time.
func TestExplainTheDefinition(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	long := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	bounded := s.past("bounded", long, object{
		"schedule": "0 3 * * *", "start": "2030-01-01T00:00:00Z", "end": "2030-06-30T00:00:00Z",
	})
	counted := s.past("counted", long, object{"schedule": "0 3 * * *", "start": "2030-01-01T00:00:00Z", "max_fires": 3})
	regular := s.past("regular", long, object{"schedule": nil, "every": "1h", "start": "2030-01-01T00:00:00Z"})
	shifted := s.past("shifted", long, object{"schedule": "0 3 * * *", "jitter": "30m"})
	berlin := s.past("berlin", long, object{"schedule": "30 2 * * *", "timezone": "Europe/Berlin"})
	second := s.past("second", long, object{"schedule": nil, "every": "1h", "start": "2030-01-01T00:00:00.25Z"})
	deleted := s.past("deleted", long, object{"schedule": "0 3 1 1 *"})
	s.call("DELETE", "/api/v1/jobs/"+deleted, nil).want(204)
	s.call("PUT", "/api/v1/calendars/closed",
		object{"exclude": []any{object{"date": "2031-05-01", "note": "Labour Day"}}}).want(201)
	open := s.past("open", long, object{"schedule": "0 3 * * *", "calendars": []any{"closed"}})
	for name, c := range map[string]struct {
		job, at     string
		due         bool
		cause, says string
	}{
		"before its start": {
			bounded, "2029-05-01T03:00:00Z", false, "before_start",
			"before the job's start, 2030-01-01T00:00:00Z",
		},
		"after its end": {
			bounded, "2030-07-01T03:00:00Z", false, "after_end",
			"after the job's end, 2030-06-30T00:00:00Z",
		},
		"within, and not due":          {bounded, "2030-05-01T04:00:00Z", false, "not_due", "not a due time"},
		"due often enough":             {counted, "2030-01-04T03:00:00Z", false, "max_fires", "its maximum of 3 due times"},
		"due for the last time":        {counted, "2030-01-03T03:00:00Z", true, "ahead", "in the future"},
		"an interval before its start": {regular, "2029-12-31T22:00:00Z", false, "before_start", "before the job's start"},
		"between two of an interval":   {regular, "2029-12-31T22:30:00Z", false, "not_due", "not a due time"},
		"a shifted one": {
			shifted, "2030-05-01T03:00:00Z", false, "shifted", "The jitter of 30m",
		},
		"a gap": {
			berlin, "2031-03-30T02:30:00+01:00", false, "gap", "2031-03-30T03:00:00+02:00",
		},
		"the first pass": {berlin, "2031-10-26T02:30:00+02:00", true, "ahead", "in the future"},
		"the second pass": {
			berlin, "2031-10-26T02:30:00+01:00", false, "repeat", "the first time, at 2031-10-26T02:30:00+02:00",
		},
		"the second of a due time":  {second, "2031-10-26T05:00:00Z", true, "ahead", "in the future"},
		"an instant in that second": {second, "2031-10-26T05:00:00.1Z", false, "not_due", "not a due time"},
		"what a calendar excludes": {
			open, "2031-05-01T03:00:00Z", false, "calendar", "calendar closed excludes it: Labour Day",
		},
		"the day after":        {open, "2031-05-02T03:00:00Z", true, "ahead", "in the future"},
		"after it was deleted": {deleted, "2090-01-01T03:00:00Z", true, "deleted", "by bootstrap"},
		"before it was deleted": {
			deleted, "2021-01-01T03:00:00Z", true, "no_record", "retention has removed the record",
		},
		"before the deleted was created": {
			deleted, "2019-01-01T03:00:00Z", true, "definition_is_younger",
			"bootstrap created it at 2020-01-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.explain(c.job, c.at)
			if got.text("cause") != c.cause || !strings.Contains(got.text("answer"), c.says) ||
				(got.text("due") == "true") != c.due {
				t.Errorf("at %s: got %v; want %v, %s, %q", c.at, got, c.due, c.cause, c.says)
			}
		})
	}

	if got := s.explain(second, "2031-10-26T05:00:00Z"); got.text("due_time") != "2031-10-26T05:00:00.25Z" {
		t.Errorf("got %v, want the due time that is meant", got)
	}
}

// TestExplainTheDefinitionThen: the definition in force at the instant counts.
func TestExplainTheDefinitionThen(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	created := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	id := s.past("j", created, object{"schedule": "0 3 * * *"})
	for i, schedule := range []string{"0 4 * * *", "0 5 * * *"} {
		s.call("PATCH", "/api/v1/jobs/"+id, object{"schedule": schedule}).want(200)
		s.exec("UPDATE audit SET at = ?, who = ? WHERE kind = 'job' AND action = 'update' ORDER BY id DESC LIMIT 1",
			created.AddDate(1+i, 0, 0).UnixMicro(), "editor "+schedule[2:3])
	}

	for at, want := range map[string]struct{ due, changed string }{
		"2024-06-01T03:00:00Z": {"true", "editor 4"},
		"2024-06-01T04:00:00Z": {"false", "editor 4"},
		"2025-06-01T04:00:00Z": {"true", "editor 5"},
		"2025-06-01T05:00:00Z": {"false", "editor 5"},
		"2026-06-01T05:00:00Z": {"true", ""},
		"2026-06-01T03:00:00Z": {"false", ""},
		"2090-06-01T05:00:00Z": {"true", ""},
	} {
		got := s.explain(id, at)
		by := ""
		if changed, ok := got["changed"].(map[string]any); ok {
			by, _ = changed["by"].(string)
		}
		if got.text("due") != want.due || by != want.changed {
			t.Errorf("at %s: got %v, want due %s, changed later by %q", at, got, want.due, want.changed)
		}
		if want.due == "false" && want.changed != "" && !strings.Contains(got.text("answer"), "changed later, at 202") {
			t.Errorf("at %s: got %q", at, got.text("answer"))
		}
	}
}

// TestExplainPauses: author, reason, begin and end of pauses of the job, its app and the cluster.
func TestExplainPauses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	day := func(n int) time.Time { return time.Date(2025, 1, n, 0, 0, 0, 0, time.UTC) }
	id := s.past("j", day(1), object{"schedule": "0 3 * * *"})
	ref, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	for n, e := range map[int]job.Entry{
		2: {Actor: job.Actor{Who: "ann"}, Action: job.ActionPause, Kind: job.KindJob, Ref: ref, Reason: "disk"},
		4: {Actor: job.Actor{Who: "bob"}, Action: job.ActionResume, Kind: job.KindJob, Ref: ref},
		6: {Actor: job.Actor{Who: "cid"}, Action: job.ActionPause, Kind: job.KindApp, App: "default", Reason: "move"},
		7: {Actor: job.Actor{Who: "cid"}, Action: job.ActionPause, Kind: job.KindApp, App: "other"},
		8: {Actor: job.Actor{Who: "bob"}, Action: job.ActionResume, Kind: job.KindApp, App: "default"},
		10: {
			Actor: job.Actor{Who: "dot"}, Action: job.ActionPause, Kind: job.KindCluster,
			Became: `{"until":"2025-01-12T00:00:00Z"}`,
		},
		14: {Actor: job.Actor{Who: job.Itself}, Action: job.ActionResume, Kind: job.KindCluster},
	} {
		s.audited(day(n), e)
	}

	for at, want := range map[string]string{
		"2025-01-01T03:00:00Z": "",
		"2025-01-02T03:00:00Z": "job ann disk 2025-01-02T00:00:00Z 2025-01-04T00:00:00Z",
		"2025-01-03T03:00:00Z": "job ann disk 2025-01-02T00:00:00Z 2025-01-04T00:00:00Z",
		"2025-01-04T03:00:00Z": "",
		"2025-01-06T03:00:00Z": "app cid move 2025-01-06T00:00:00Z 2025-01-08T00:00:00Z",
		"2025-01-08T03:00:00Z": "",
		"2025-01-11T03:00:00Z": "cluster dot  2025-01-10T00:00:00Z 2025-01-14T00:00:00Z",
		"2025-01-13T03:00:00Z": "", // it had expired while no node was alive
	} {
		got := s.explain(id, at)
		p, _ := got["pause"].(map[string]any)
		text := func(name string) string { v, _ := p[name].(string); return v }
		words := strings.Join([]string{text("scope"), text("by"), text("reason"), text("since"), text("ended")}, " ")
		if strings.TrimSpace(words) != want || (got.text("cause") == "paused") != (want != "") {
			t.Errorf("at %s: got %v, want it paused: %q", at, got, want)
		}

		if by := text("by"); by != "" &&
			!strings.Contains(got.text("answer"), " "+text("since")+" by "+by) {
			t.Errorf("at %s: got %q", at, got.text("answer"))
		}
	}
}

// TestExplainAnOutage: the sessions in the audit show that no node was alive.
func TestExplainAnOutage(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	at := func(hour, minute int) time.Time { return time.Date(2025, 1, 2, hour, minute, 0, 0, time.UTC) }
	id := s.past("j", at(0, 0), object{"schedule": "0 * * * *"})
	life := func(from, to time.Time) string {
		b, _ := json.Marshal(job.SessionLife{Session: "x", Started: from, LastBeat: to})
		return string(b)
	}

	for _, c := range []struct{ from, to, seen time.Time }{
		{at(1, 0), at(5, 30), at(9, 20)}, // reaped when a node came back
		{at(2, 0), at(3, 0), at(3, 0)},
		{at(9, 15), at(12, 0), at(12, 0)},
	} {
		s.audited(c.seen, job.Entry{
			Actor: job.Actor{Who: job.Itself}, Action: job.ActionReap, Kind: job.KindSession, Was: life(c.from, c.to),
		})
	}

	run := func(due, until time.Time, count int, reason string) {
		s.ended(id, due, job.Missed, job.ReasonMisfire, reason, at(9, 20))
		s.exec("UPDATE run SET due_last = ?, due_count = NULLIF(?, 1) WHERE job_id = ? AND due = ?", until.UnixMicro(), count, id, due.UnixMicro())
	}

	run(at(6, 0), at(9, 0), 4, "no node could start it within 1m of its due time")
	run(at(10, 0), at(10, 0), 1, "no node could start it within 1m of its due time; misfire policy skip")
	for hour, want := range map[int]string{
		4: "no_record", 6: "cluster_down", 8: "cluster_down", 10: "missed", 11: "no_record",
	} {
		got := s.explain(id, at(hour, 0).Format(time.RFC3339))
		if got.text("cause") != want {
			t.Errorf("at %d: got %v, want %s", hour, got, want)
		}

		if want == "cluster_down" {
			down, _ := got["down"].(map[string]any)
			if down["from"] != "2025-01-02T05:30:00Z" || down["to"] != "2025-01-02T09:15:00Z" ||
				!strings.Contains(got.text("answer"),
					"No node was running from 2025-01-02T05:30:00Z to 2025-01-02T09:15:00Z") {
				t.Errorf("at %d: got %v", hour, got)
			}
		}
	}
}

// TestExplainWhatWaits: what a due time is waiting for, and what will happen to it.
func TestExplainWhatWaits(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	now := time.Now().Truncate(time.Second)
	due := now.Add(-10 * time.Minute)
	id := s.past("j", now.Add(-24*time.Hour), object{"schedule": nil, "every": "1h", "start": "2090-01-01T00:00:00Z"})
	s.stopNode() // otherwise it would be started
	s.reopen()
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	define := func(field string, value any) {
		t.Helper()
		s.exec("UPDATE job_version SET definition = JSON_SET(definition, ?, ?) WHERE job_id = ?", "$."+field, value, id)
	}

	define("start", due.Format(time.RFC3339))
	s.exec("INSERT INTO grp (id, name, slots) VALUES (3, 'db', 1)")
	s.exec("INSERT INTO job_ref (kind, name, job_id) VALUES (1, 'db', ?)", id)
	run := trip.Run{JobID: number, Due: job.MicrosOf(due), DueNow: job.MicrosOf(due), Kind: trip.Schedule}
	put := func(state job.State, owner trip.Owner, dueNow job.Micros, turn int) {
		t.Helper()
		s.exec("DELETE FROM run")
		s.exec("INSERT INTO run (id, job_id, app_id, due, due_now, kind, state, owner, claim, hash)"+
			" SELECT 7, id, app_id, ?, ?, 'schedule', ?, ?, 0, hash FROM job WHERE id = ?", due.UnixMicro(),
			int64(dueNow), state, owner, id)
		s.exec("UPDATE job SET running = ? WHERE id = ?", turn, id)
	}

	check := func(name, cause, says, waits string) {
		t.Helper()
		got := s.explain(id, due.Format(time.RFC3339))
		w, _ := got["waiting"].(map[string]any)
		kind, _ := w["for"].(string)
		if got.text("cause") != cause || !strings.Contains(got.text("answer"), says) || kind != waits ||
			got.text("due") != "true" {
			t.Errorf("%s: got %v, want %s, %q", name, got, cause, says)
		}
	}

	put(trip.Idle, trip.NoOwner, run.Due, 0)
	check("for a slot", "waiting", "waiting for a node with a free slot", "slot")
	put(trip.Waiting, trip.WaitingOwner, trip.JobPlace(&run), 0)
	check("for runs of its job", "waiting", "waiting for earlier runs of the job to end", "job")
	define("start_deadline", "1h10m")
	put(trip.Waiting, trip.WaitingOwner, trip.GroupPlace(&run, 3, 0), 7)
	check("for its group", "waiting", "a free slot of its group, db. If it has not started by", "group")
	s.exec("UPDATE grp SET rate = 1, period = 60000000, starts = UNHEX(LPAD(HEX(?), 16, '0'))", now.UnixMicro())
	check("for the rate of its group", "waiting", "the rate of its group, db, which admits 1 starts in 1m; the next one is at "+
		job.MicrosOf(now.Add(61*time.Second)).String(), "group")
	define("selector", "zone=elsewhere")
	put(trip.Idle, trip.NoOwner, run.Due, 0)
	check("for a node", "no_node", "for a suitable node", "node")
	s.exec("INSERT INTO stop (kind, who, reason, since) VALUES ('cluster', 'eve', 'move', ?)", now.UnixMicro())
	check("while the cluster is paused", "paused", "The cluster has been paused since", "")
	check("while the cluster is paused", "paused", "It will be skipped", "")
}

// TestExplainRecorded: the outcome of a run, or the reason for it, is the cause.
func TestExplainRecorded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	created := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	id := s.past("j", created, object{"schedule": "0 * * * *"})

	for i, c := range []struct {
		outcome       job.Outcome
		code          job.ReasonCode
		reason, cause string
	}{
		{job.Skipped, job.ReasonPreviousRunExecuting, "the run due x was still running", "overlap"},
		{job.Skipped, job.ReasonQueueFull, "overlap: the queue is full", "overlap"},
		{job.Skipped, job.ReasonAppPaused, "app a is paused by ann", "paused"},
		{job.Skipped, job.ReasonJobPaused, "the job is paused", "paused"},
		{job.Skipped, job.ReasonClusterPaused, "the job was paused until x", "paused"},
		{job.Superseded, job.ReasonJobDeleted, "the job was deleted", "deleted"},
		{job.Skipped, job.ReasonGroupFull, "group db has no free slot, 10 due times are already waiting", "group"},
		{job.Skipped, job.ReasonHandlerDisabled, "handler h is disabled", "handler_disabled"},
		{job.Skipped, job.ReasonDefinitionInvalid, "schedule: x", "skipped"},
		{job.Missed, job.ReasonStartDeadline, "no node could start it before its start deadline, 1m after it was due", "deadline"},
		{job.Missed, job.ReasonWaitDeadline, "it was still waiting when its start deadline passed", "deadline"},
		{job.Lost, job.ReasonNodeLost, "its node stopped responding while it was running", "lost"},
		{job.Superseded, job.ReasonReplaced, "the run due x replaced it", "superseded"},
	} {
		due := created.Add(time.Duration(i+1) * time.Hour)
		s.ended(id, due, c.outcome, c.code, c.reason, due)

		got := s.explain(id, due.Format(time.RFC3339))
		if got.text("cause") != c.cause || !strings.Contains(got.text("answer"), c.reason) ||
			len(got.items("runs")) != 1 || got.items("runs")[0].text("reason_code") != string(c.code) {
			t.Errorf("%s: got %v, want %s", c.reason, got, c.cause)
		}
	}
}
