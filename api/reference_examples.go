package api

import (
	"encoding/json"
	"reflect"
	"strings"

	"go-crontab/api/view"
	"go-crontab/job"
)

// examples are sample answers. A test checks them against their schemas.
var examples = map[reflect.Type]string{
	of[view.Job](): `{"id": "17", "app": "default", "name": "backup", "description": "", "owner": "", "labels": {"team": "data"}, "schedule": "0 3 * * *",
		"timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql", "timeout": "30m", "overlap": "skip", "misfire": {"policy": "latest", "max_age": "1h"},
		"on_lost": "fail", "paused": false, "status": "active", "health": {"code": "failing", "text": "Failing (2×)", "failures": 2, "outcome": "failed", "run_id": "274877906951", "since": "2027-01-29T02:00:00Z"}, "version": 3, "next_due": "2027-01-31T02:00:00Z", "last_due": "2027-01-30T02:00:00Z",
		"created": "2026-11-02T09:15:27.104Z", "updated": "2027-01-12T13:40:02.55Z"}`,
	of[view.Run](): `{"id": "274877906951", "job_id": "17", "job": "backup", "app": "default", "due": "2027-01-30T02:00:00Z",
		"started": "2027-01-30T02:00:00.0012Z", "ended": "2027-01-30T02:04:11.893Z", "lateness_ms": 1.2, "attempt": 1, "final": true, "state": "ended",
		"outcome": "failed", "reason_code": "exit_code", "reason": "exit status 2", "exit_code": 2, "node": "node-1", "session": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "trigger": "schedule",
		"output_bytes": 52, "output_truncated": false}`,
	of[view.Requested]():   `{"job_id": "17", "due": "2027-01-30T14:20:05.221Z", "request": "4"}`,
	of[view.VersionItem](): `{"version": 3, "at": "2027-01-12T13:40:02.55Z", "who": "alice", "current": true, "changed": ["schedule", "timeout"]}`,
	of[view.Version](): `{"version": 3, "at": "2027-01-12T13:40:02.55Z", "who": "alice", "current": true, "definition": {"app": "default", "name": "backup", "description": "", "owner": "",
		"labels": {"team": "data"}, "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "command": "pg_dump shop > /backup/shop.sql", "timeout": "30m", "overlap": "skip",
		"misfire": {"policy": "latest", "max_age": "1h"}, "on_lost": "fail"}}`,
	of[view.Diff]():    `{"from": 1, "to": 3, "changes": [{"field": "schedule", "was": "0 2 * * *", "becomes": "0 3 * * *"}]}`,
	of[view.DueTime](): `{"due": "2027-03-28T03:00:00+02:00", "mark": "gap"}`,
	of[view.Crontab](): `{"jobs": [{"line": 2, "text": "0 3 * * * backup.sh", "words": "at 03:00 every day, Europe/Berlin",
		"job": {"app": "shop", "name": "backup", "owner": "ops@example.com", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "command": "backup.sh"}}],
		"notes": [{"message": "cron starts a job even if its previous run has not ended; here such a due time is skipped (overlap: skip)", "code": "crontab_overlap"}],
		"refused": [{"line": 4, "message": "@reboot: a cluster has no boot.", "code": "crontab_reboot"}]}`,
	of[view.Preview](): `{"words": "At 02:30 (Europe/Berlin)", "next": [{"due": "2027-03-27T02:30:00+01:00"}, {"due": "2027-03-28T03:00:00+02:00", "mark": "gap"}]}`,
	of[view.Explanation](): `{"at": "2027-01-31T02:00:00Z", "due": true, "cause": "paused", "answer": "The job has been paused since 2027-01-30T18:00:00Z by alice (new disks), and has no due times until it is resumed.",
		"pause": {"scope": "job", "by": "alice", "reason": "new disks", "since": "2027-01-30T18:00:00Z"}}`,
	of[view.Output]():   `{"id": "274877906951", "state": "running", "from": 0, "next": 8, "bytes": 8, "text": "dumping\n"}`,
	of[view.Secret]():   `{"name": "pg", "app": "billing", "key": "5f1c9ab0e2d47c31", "key_state": "current", "created": "2026-11-02T09:15:27.104Z", "updated": "2027-01-12T13:40:02.55Z", "updated_by": "alice"}`,
	of[view.Rotated]():  `{"key": "5f1c9ab0e2d47c31", "rotated": 12, "failed": []}`,
	of[view.LogLevel](): `{"node": "node-1", "level": "debug", "until": "2027-01-30T14:30:05.221Z"}`,
	of[view.Upcoming](): `{"items": [{"job_id": "17", "job": "backup", "app": "default", "due": "2027-03-28T03:00:00+02:00", "timezone": "Europe/Berlin", "mark": "gap"}],
		"frequent": [{"job_id": "18", "job": "probe", "app": "default", "count": 1440}], "frequent_count": 1}`,
	of[view.UpcomingCounts](): `{"from": "2027-01-30T14:00:00Z", "to": "2027-01-30T17:00:00Z", "step": "hour", "jobs": 3, "total": 14, "counts": [12, 0, 2]}`,
	of[view.Retention]():      `{"scope": "app", "app": "shop", "age": "720h", "runs": 10000, "failures": "8760h"}`,
	of[view.Retentions](): `{"items": [{"scope": "cluster", "age": "2160h", "failures": "8760h", "archive": true}, {"scope": "app", "app": "shop", "runs": 10000}],
		"work": {"ended": "2027-01-30T14:20:05.221Z", "removed": 81200, "archived": 81200, "failures": 0}}`,
	of[view.Doctor](): `{"at": "2027-01-30T14:20:05.221Z", "node": "node-1", "version": "v1.0.0", "server": "11.4.4-MariaDB", "worst": "error", "findings": [{"check": "binlog-durability", "area": "mysql",
		"severity": "error", "seen": "there is a binary log, and sync_binlog is 0", "why": "After a power cut the binary log may lack commits that the tables have.", "fix": "Set it with the statement.", "sql": ["SET GLOBAL sync_binlog = 1"]}],
		"checks": [{"id": "binlog-durability", "area": "mysql", "about": "The binary log survives a power cut with all commits", "severity": "error"},
		{"id": "long-transactions", "area": "mysql", "about": "No transaction has been open for long", "severity": "unknown", "skipped": "the database user cannot see transactions; GRANT PROCESS ON *.* to it"}]}`,
	of[view.Group]():       `{"name": "warehouse", "slots": 2, "rate": "10/1m", "starts": 3, "executing": 1, "waiting": 0, "jobs": 5, "created": "2026-11-02T09:15:27.104Z", "updated": "2026-11-02T09:15:27.104Z"}`,
	of[view.Backfill]():    `{"id": "3", "job_id": "17", "job": "backup", "app": "default", "from": "2026-01-01T00:00:00Z", "to": "2026-01-31T23:59:59Z", "parallel": 2, "missing": true, "state": "running", "health": "failing", "failed": 1, "total": 31, "planned": 12, "left_out": 4, "ended": 10, "outcomes": {"failed": 1, "succeeded": 9}, "who": "alice", "created": "2027-01-30T14:20:05.221Z", "updated": "2027-01-30T14:31:40.07Z"}`,
	of[view.BackfillDue](): `{"due": "2026-01-11T03:00:00Z", "state": "left_out"}`,
	of[view.JobStats](): `{"now": "2027-01-30T14:20:05.221Z", "from": "2027-01-29T14:20:05.221Z", "counted_from": "2027-01-29T14:20:05.221Z", "failures_from": "2027-01-29T14:20:05.221Z", "cut": false,
		"totals": {"running": 2, "jobs": 1, "failed_jobs": 1, "failing_jobs": 0, "runs": 4, "succeeded": 3, "failed": 1, "lost": 0, "missed": 0, "skipped": 0, "success_rate": 0.75},
		"items": [{"job_id": "17", "job": "backup", "app": "default", "runs": 4, "succeeded": 3, "failed": 1, "lost": 0, "killed": 0, "missed": 0, "skipped": 0, "success_rate": 0.75,
			"duration_p50_ms": 251893, "duration_p95_ms": 260114.2, "health": {"code": "ok", "text": "OK", "outcome": "succeeded", "run_id": "274877906958"},
			"last_failure": {"run_id": "274877906951", "due": "2027-01-30T02:00:00Z", "node": "node-1", "outcome": "failed", "reason_code": "exit_code", "reason": "exit status 2", "exit_code": 2,
				"last_line": "pg_dump: error: could not write to output file", "recovered": "2027-01-30T08:00:00Z"}}], "truncated": false}`,
	of[view.Counts](): `{"now": "2027-01-30T14:20:05.221Z", "failing_jobs": 1, "running": 2, "firing_alerts": 0, "unsent_messages": 0, "nodes_ready": 2, "nodes": 2, "nodes_gone": 1}`,
	of[view.Slots](): `{"from": "2027-01-30T00:00:00Z", "to": "2027-01-31T00:00:00Z", "now": "2027-01-30T14:20:05.221Z", "items": [{"job_id": "17", "job": "backup", "app": "default", "timezone": "Europe/Berlin",
		"total": 2, "holes": 1, "slots": [{"due": "2027-01-30T02:00:00Z", "state": "failed", "run_id": "274877906951", "attempt": 1, "node": "node-1", "reason_code": "exit_code", "again": "succeeded"},
			{"due": "2027-01-30T14:00:00Z", "state": "hole"}]}]}`,
	of[view.Rerun](): `{"dry_run": false, "started": 1, "refused": 0, "request": "9", "items": [{"run_id": "274877906951", "job_id": "17", "app": "default", "name": "backup",
		"due": "2027-01-30T02:00:00Z", "outcome": "failed", "result": "changed"}]}`,
	of[view.Calendar]():     calendarAnswer + `}`,
	of[view.Import]():       calendarAnswer + `, "imported": {"excludes": 1, "includes": 1}}`,
	of[view.CalendarItem](): `{"name": "china", "timezone": "Asia/Shanghai", "excludes": 1, "includes": 1, "jobs": 4, "version": 2, "created": "2026-11-02T09:15:27.104Z", "updated": "2027-01-12T13:40:02.55Z"}`,
	of[job.DayState]():      `{"date": "2027-02-13", "weekday": "sat", "state": "makeup", "as": "mon-fri", "why": "make-up workday"}`,
	of[view.Node](): `{"name": "node-1", "state": "ready", "labels": {"zone": "a"}, "handlers": ["billing/close-day"], "cordoned": false, "draining": false, "drained": false,
		"prepared": 3, "executing": 1, "slots": 100, "sessions": [{"id": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "address": "10.0.0.4:8610", "version": "v1.0.0", "started": "2027-01-30T02:00:00Z", "beat_age_ms": 810}]}`,
	of[view.Apply](): `{"dry_run": false, "changed": 2, "groups": [{"name": "warehouse", "action": "unchanged"}], "calendars": [], "channels": [], "rules": [], "retention": [], "pauses": [], "jobs": [
		{"id": "17", "app": "shop", "name": "load orders", "action": "updated", "version": 4, "changes": [{"field": "schedule", "was": "*/10 * * * *", "becomes": "*/5 * * * *"}]},
		{"id": "12", "app": "shop", "name": "prices", "action": "deleted"}]}`,
	of[view.Bulk](): `{"dry_run": false, "changed": 1, "unchanged": 1, "refused": 1, "items": [{"id": "17", "app": "shop", "name": "load orders", "result": "changed", "version": 5},
		{"id": "18", "app": "shop", "name": "prices", "result": "unchanged", "version": 3}, {"id": "21", "app": "shop", "name": "stock", "result": "refused", "why": {"message": "the job was changed in the meantime", "code": "changed_meanwhile"}, "version": 8}],
		"next": "am9icyBmYWxzZSAyMSAwIDAgMCAiIg"}`,
	of[view.Export]():  `{"items": [{"app": "shop", "name": "load orders", "schedule": "*/5 * * * *", "command": "load-orders", "group": "warehouse"}]}`,
	of[view.Handler](): `{"handler": "billing/close-day", "nodes": ["node-1", "node-2"], "jobs": 2, "disabled": false}`,
	of[view.Cluster](): `{"now": "2027-01-30T14:20:05.221Z", "node": "node-1", "version": "v1.0.0", "server": "11.4.4-MariaDB", "schema": 11, "session_expiry": "20s", "sessions": [
		{"id": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "node": "node-1", "address": "10.0.0.4:8610", "pid": 4711, "version": "v1.0.0", "started": "2027-01-30T02:00:00Z", "beat_at": "2027-01-30T14:20:04.411Z",
		"beat_age_ms": 810, "draining": false, "prepared": 3, "executing": 1, "slots": 100, "clock_offset_ms": 0.4}], "folders": [{"folder": "/etc/go-crontab/jobs", "digest": "9c56cc51b374c3ba189210d5b6d4bf57", "applied": "2027-01-30T14:00:00Z", "node": "node-1", "nodes": [
		{"node": "node-1", "state": "refused", "digest": "2c624232cc221571294dfbbdd2b7a8a1", "error": "/etc/go-crontab/jobs/shop.yaml:3:5: schedule: minute \"61\": not between 0 and 59", "since": "2027-01-30T14:19:00Z"}]}]}`,
	of[view.Backup](): `{"at": "2027-01-30T02:10:00Z", "next_within": "26h0m0s"}`,
	of[view.Stats](): `{"now": "2027-01-30T14:20:05.221Z", "executing": 1, "prepared": 3, "waiting": 0, "backlog": 0, "most": 10000, "slots": 100, "nodes": [
		{"node": "node-1", "session": "6f9619ff-8b86-d011-b42d-00cf4fc964ff", "slots": 100, "executing": 1, "prepared": 3, "draining": false}], "step_seconds": 10, "series": [
		{"at": "2027-01-30T14:15:00Z", "starts": 41, "ends": 40, "failed": 1, "lateness_p50_ms": 0.931, "lateness_p99_ms": 2.842}],
		"last_minute": {"starts_per_second": 4.05, "ends_per_second": 4.02, "lateness_p50_ms": 0.931, "lateness_p99_ms": 3.552}}`,
	of[view.Pause]():      `{"scope": "app", "app": "billing", "by": "alice", "reason": "the warehouse moves", "since": "2027-01-30T18:00:00Z", "until": "2027-01-30T20:00:00Z"}`,
	of[view.AuditEntry](): `{"id": "204", "at": "2027-01-30T18:00:00Z", "who": "alice", "origin": "10.0.0.9", "action": "pause", "kind": "job", "job_id": "17", "app": "default", "name": "backup", "reason": "new disks"}`,
	of[view.AuditChain](): `{"from": {"seq": 1, "at": "2027-01-30T18:00:00Z", "head": "1:` + exampleHash +
		`"}, "to": {"seq": 204, "at": "2027-01-30T18:00:00Z", "head": "204:` + exampleHash +
		`"}, "links": 204, "faults": []}`,
	of[view.Alert](): `{"id": "7", "state": "firing", "rule": "ops", "event": "failed", "severity": "error", "app": "billing", "job_id": "17", "job": "nightly", "node": "node-1",
		"run": "274877906951", "summary": "billing/nightly failed: exit code 2", "first": "2027-01-30T02:04:12Z",
		"last": "2027-01-30T02:04:12Z", "seen": 1, "told": "2027-01-30T02:04:13Z"}`,
	of[view.AlertSummary](): `{"firing": 1, "deliveries": {"sent": 12, "pending": 1}, "lost": 0, "template_failures": 0}`,
	of[view.Delivery](): `{"id": "31", "key": "5f1c9ab0e2d47c315f1c9ab0e2d47c31", "kind": "alert", "channel": "chat", "rule": "ops", "state": "sent", "attempts": 1, "events": 1, "items": [
		{"what": "fired", "event": "failed", "severity": "error", "alert_id": "7", "rule": "ops", "app": "billing", "job_id": "17", "job": "nightly", "node": "node-1",
		"summary": "billing/nightly failed: exit code 2", "at": "2027-01-30T02:04:13Z", "since": "2027-01-30T02:04:12Z", "seen": 1}],
		"said": "200 OK ok", "created": "2027-01-30T02:04:13Z", "updated": "2027-01-30T02:04:18Z"}`,
	of[view.AlertRule](): `{"name": "ops", "on": ["failed", "recovered"], "apps": ["billing"], "channels": ["chat"], "severity": "error", "repeat": "4h", "version": 1,
		"created": "2026-11-02T09:15:27.104Z", "updated": "2026-11-02T09:15:27.104Z", "updated_by": "alice"}`,
	of[view.AlertChannel](): `{"name": "chat", "type": "slack", "url": "{{secret.chat-url}}", "wait": "5s", "rate": 20, "timeout": "10s", "version": 1,
		"created": "2026-11-02T09:15:27.104Z", "updated": "2026-11-02T09:15:27.104Z", "updated_by": "alice"}`,
	of[view.ChannelTest](): `{"sent": true, "said": "200 OK ok", "took_ms": 84}`,
	of[view.RuleTest]():    `{"channels": [{"channel": "chat", "sent": true, "said": "200 OK ok", "took_ms": 84}]}`,
	of[view.Silence]():     `{"id": "3", "app": "billing", "until": "2027-01-30T20:00:00Z", "reason": "the database moves", "by": "alice", "created": "2027-01-30T18:00:00Z", "over": false}`,
	of[view.Alive]():       `{"status": "ok"}`,
	of[view.Ready]():       `{"ready": true}`,
	of[view.Me]():          `{"name": "ci", "kind": "token", "role": "admin", "apps": ["billing"], "grants": [{"role": "admin", "apps": ["billing"]}], "expires": "2027-03-01T00:00:00Z"}`,
	of[view.Ways]():        `{"token": true}`,
	of[view.Login]():       `{"name": "ci", "kind": "token", "role": "admin", "grants": [{"role": "admin"}], "expires": "2027-03-01T00:00:00Z", "login_key": "gckey_…"}`,
	of[view.Began]():       `{"target": "https://login.example.com/authorize?client_id=go-crontab&state=…", "flow": "…"}`,
	of[view.LoginRow](): `{"id": "12", "who": "ann@example.com", "kind": "oidc", "grants": [{"role": "operator", "apps": ["billing"]}], "since": "2027-01-30T08:02:11.4Z",
		"from": "10.0.0.17", "until": "2027-01-30T20:02:11.4Z", "last_used": "2027-01-30T14:19:40Z", "last_used_from": "10.0.0.17", "checked": "2027-01-30T14:02:11.4Z",
		"check_at": "2027-01-30T15:02:11.4Z", "current": false}`,
	of[view.Ended]():     `{"ended": 3}`,
	of[view.App]():       `{"name": "billing"}`,
	of[view.AppLimits](): `{"app": "billing", "jobs": 200, "runs_per_minute": 600, "waiting": 1000, "output": "2GiB", "use": {"jobs": 41, "runs_per_minute": 12, "waiting": 0, "output": 734003200}}`,
	of[view.Token]():     tokenAnswer + `}`,
	of[view.NewToken]():  tokenAnswer + `, "token": "gocrontab_…"}`,
}

const (
	calendarAnswer = `{"name": "china", "timezone": "Asia/Shanghai", "exclude": [{"date": "2027-06-09", "note": "Dragon Boat Festival"}], "exclude_weekdays": ["sat", "sun"],
		"include": [{"date": "2027-02-13", "note": "make-up workday"}], "jobs": 4, "version": 2, "created": "2026-11-02T09:15:27.104Z", "updated": "2027-01-12T13:40:02.55Z"`
	tokenAnswer = `{"id": "5", "name": "ci", "role": "admin", "apps": ["billing"], "state": "active", "created": "2027-01-30T18:00:00Z", "created_by": "alice", "expires": "2027-03-01T00:00:00Z"`
)

// exampleOf returns the sample answer of a type, for a page with one item; nil if there is no
// sample.
func exampleOf(t reflect.Type) json.RawMessage {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if strings.HasPrefix(t.Name(), "Page[") {
		items, _ := t.FieldByName("Items")
		if item := exampleOf(items.Type.Elem()); item != nil {
			return json.RawMessage(`{"items": [` + string(item) + `]}`)
		}
		return nil
	}

	text, ok := examples[t]
	if !ok {
		return nil
	}
	return json.RawMessage(text)
}
