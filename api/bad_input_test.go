package api_test

import (
	"fmt"
	"strings"
	"testing"

	"go-crontab/api"
)

// bad is a request that must be refused.
type bad struct {
	method, path string
	body         any
	header       []string
	status       int
	problem      string // its type
	field        string // of the first mistake, if the problem names fields
	says         string // part of the answer
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	id := s.create("there", nil).text("id")
	s.create("other", nil)
	jobs, one := "/api/v1/jobs", "/api/v1/jobs/"+id
	good := func(change string) string {
		return `{"name": "new", "command": "true", "schedule": "@daily"` + change + `}`
	}
	long := strings.Repeat("a", 80_000)
	post := func(body any, status int, problem, field, says string) bad {
		return bad{"POST", jobs, body, nil, status, problem, field, says}
	}
	get := func(path string, status int, problem, field, says string) bad {
		return bad{"GET", path, nil, nil, status, problem, field, says}
	}
	for name, b := range map[string]bad{
		"no body":                    post("", 400, "malformed", "", "empty"),
		"half an object":             post(`{"name": "x"`, 400, "malformed", "", "At byte 12"),
		"a syntax error":             post(`{"name": 'x'}`, 400, "malformed", "", "At byte 10"),
		"something after the object": post(good("")+`{}`, 400, "malformed", "", "after top-level value"),
		"not UTF-8":                  post("{\"name\": \"\xff\"}", 400, "malformed", "", "UTF-8"),
		"a range that ends before it begins": get("/api/v1/runs?from=2027-02-01T00:00:00Z&to=2026-02-01T00:00:00Z", 422,
			"invalid", "to", "is not after from"),
		"an empty range of the audit": get("/api/v1/audit?from=2027-02-01T00:00:00Z&to=2027-02-01T00:00:00Z", 422,
			"invalid", "to", "is not after from"),
		"a duration that is too long": post(good(`, "timeout": "9999999d"`), 422, "invalid", "timeout", "too long"),
		"days in another case":        post(good(`, "timeout": "1D"`), 422, "invalid", "timeout", "7d"),
		"an array":                    post(`[]`, 422, "invalid", "body", "is a list"),
		"null":                        post(`null`, 422, "invalid", "body", "is null"),
		"an unknown field": post(good(`, "comand": "x"`), 422, "invalid", "comand",
			"did you mean command?"),
		"a short form": post(good(`, "tz": "UTC"`), 422, "invalid", "tz",
			"did you mean timezone?"),
		"an unknown inner field": post(good(`, "misfire": {"polcy": "skip"}`), 422, "invalid",
			"misfire.polcy", "did you mean policy?"),
		"a field of another case": post(`{"Name": "x", "command": "true", "schedule": "@daily"}`, 422,
			"invalid", "Name", "did you mean name?"),
		"a field like none": post(good(`, "xyzzy": 1`), 422, "invalid", "xyzzy",
			"the known fields are after, app, at, calendars, command"),
		"a field twice": post(good(`, "name": "y"`), 422, "invalid", "name", "twice"),
		"deep nesting": post(good(`, "x": `+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)),
			422, "invalid", "", "nested"),
		"very deep nesting": post(strings.Repeat(`[`, 100_000), 400, "malformed", "", "depth"),
		"a number for text": post(`{"name": 7, "command": "true", "schedule": "@daily"}`, 422,
			"invalid", "name", "is the number 7; it must be text in quotes"),
		"an object for text": post(good(`, "owner": {}`), 422, "invalid", "owner", "is an object"),
		"text for an object": post(good(`, "misfire": "skip"`), 422, "invalid", "misfire",
			"must be an object"),
		"labels that are no texts": post(good(`, "labels": {"a": 1}`), 422, "invalid", "labels.a",
			"is the number 1"),
		"text for paused": post(good(`, "paused": "yes"`), 422, "invalid", "paused",
			"must be true or false"),
		"a bare number as timeout": post(good(`, "timeout": 90`), 422, "invalid", "timeout",
			`such as \"90s\"`),
		"a unit that is none": post(good(`, "timeout": "3 weeks"`), 422, "invalid", "timeout",
			`such as \"90s\"`),
		"a negative timeout": post(good(`, "timeout": "-3s"`), 422, "invalid", "timeout", "between 0"),
		"a word as time": post(`{"name": "x", "command": "true", "at": "tomorrow"}`, 422, "invalid",
			"at", "2027-01-31T03:00:00Z"),
		"a time long past": post(`{"name": "x", "command": "true", "at": "2020-01-01T00:00:00Z"}`,
			422, "invalid", "at",
			"years ago, and this job starts at most 1h late (misfire.max_age); to run it now"),
		"a time without offset": post(`{"name": "x", "command": "true", "at": "2030-01-01T00:00:00"}`, 422,
			"invalid", "at", "with its offset"),
		"a field of the server": post(good(`, "id": "7"`), 422, "invalid", "id", "set by the server"),
		"a status": post(good(`, "status": "paused"`), 422, "invalid", "status",
			"set by the server"),
		"no name": post(`{"command": "true", "schedule": "@daily"}`, 422, "invalid", "name",
			"is empty"),
		"a long name": post(good("")[:10]+strings.Repeat("é", 129)+good("")[10:], 422, "invalid",
			"name", "at most 128"),
		"a control character": post(`{"name": "a\u0007b", "command": "true", "schedule": "@daily"}`, 422,
			"invalid", "name", "control character"),
		"no command": post(`{"name": "x", "schedule": "@daily"}`, 422, "invalid", "command",
			"is empty"),
		"a command of 100 KiB": post(`{"name": "x", "schedule": "@daily", "command": "`+
			strings.Repeat("x", 100<<10)+`"}`, 422, "invalid", "command", "put it in a script"),
		"a command of 1 MiB": post(`{"name": "x", "schedule": "@daily", "command": "`+
			strings.Repeat("x", 1<<20)+`"}`, 413, "too-large", "", "262144"),
		"a body of 10 MB": post(strings.Repeat(" ", 10_000_000), 413, "too-large", "", "262144"),
		"no schedule": post(`{"name": "x", "command": "true"}`, 422, "invalid", "schedule",
			"0 of schedule, schedules, every, at, delay, after and manual"),
		"two schedules": post(good(`, "every": "1h"`), 422, "invalid", "schedule",
			"2 of schedule, schedules, every, at, delay, after and manual"),
		"a minute that there is not": post(`{"name": "x", "command": "true", "schedule": "61 * * * *"}`, 422,
			"invalid", "schedule", "minute"),
		"a day that never comes": post(`{"name": "x", "command": "true", "schedule": "0 0 31 2 *"}`, 422,
			"invalid", "schedule", ""),
		"an expression of 200 KB": post(`{"name": "x", "command": "true", "schedule": "`+
			strings.Repeat("1,", 100_000)+`1 * * * *"}`, 422, "invalid", "schedule", ""),
		"a zone that there is not": post(good(`, "timezone": "Europe/Berln"`), 422, "invalid", "timezone",
			"unknown"),
		"a zone of this machine": post(good(`, "timezone": "Local"`), 422, "invalid", "timezone",
			"differs from machine to machine"),
		"a short interval": post(`{"name": "x", "command": "true", "every": "1ms"}`, 422, "invalid",
			"every", "shorter than the minimum of 10ms"),
		"a start with a single instant": post(
			`{"name": "x", "command": "true", "at": "2030-01-01T00:00:00Z", "start": "2030-01-01T00:00:00Z"}`, 422,
			"invalid", "start", "cannot be used with at"),
		"an end before the start": post(
			good(`, "start": "2030-01-01T00:00:00Z", "end": "2029-01-01T00:00:00Z"`), 422, "invalid", "end",
			"is before start"),
		"a jitter of a week": post(good(`, "jitter": "168h"`), 422, "invalid", "jitter",
			"between 0 (none) and 24h"),
		"no fires": post(good(`, "max_fires": 0`), 422, "invalid", "max_fires",
			"a whole number from 1"),
		"a bad one of several schedules": post(
			`{"name": "x", "command": "true", "schedules": ["@daily", "61 * * * *"]}`, 422, "invalid", "schedules[1]",
			"minute"),
		"a number among the schedules": post(`{"name": "x", "command": "true", "schedules": ["@daily", 5]}`, 422,
			"invalid", "schedules[1]", "text in quotes"),
		"a retry of success": post(good(`, "retry": {"attempts": 2, "on": ["succeeded"]}`), 422,
			"invalid", "retry.on", `\"succeeded\" is not one of`),
		"a retry at once": post(good(`, "retry": {"attempts": 2, "backoff": "0s"}`), 422, "invalid",
			"retry.backoff", "is 0; give a larger value"),
		"a backoff without retries": post(good(`, "retry": {"backoff": "1s"}`), 422, "invalid",
			"retry.attempts", "nothing is retried"),
		"a factor below 1": post(good(`, "retry": {"attempts": 2, "factor": 0.5}`), 422, "invalid",
			"retry.factor", "between 1"),
		"an unknown on_lost": post(good(`, "on_lost": "retry"`), 422, "invalid", "on_lost",
			"fail, rerun"),
		"an unknown policy": post(good(`, "overlap": "maybe"`), 422, "invalid", "overlap",
			"skip, queue, replace, allow"),
		"three things wrong": post(`{"name": 1, "comand": "x", "timeout": 5}`, 422, "invalid", "name",
			"timeout: is the number 5"),
		"a name that is taken": post(`{"name": "there", "command": "true", "schedule": "@daily"}`, 409,
			"exists", "", "already exists"),
		"16,000 unknown fields": post(manyFields(16_000), 422, "invalid", "f0", "and more"),
		"long words everywhere": post(`{"name": "x", "overlap": "`+long+`", "timezone": "`+long+`", "`+
			long+`": 1}`, 422, "invalid", long[:200]+"…", "at most 512 are allowed"),
		"a long word as policy": post(good(`, "overlap": "`+long+`", "on_lost": "`+long+`"`), 422,
			"invalid", "overlap", "aaa"),
		"4000 labels": post(good(`, "labels": `+manyFields(4000)), 422, "invalid", "labels",
			"at most 32"),
		"4000 labels that are none": post(
			good(`, "labels": `+strings.ReplaceAll(manyFields(4000), `"x"`, `7`)), 422, "invalid", "labels.f0",
			"must be text"),
		"a form": {
			"POST", jobs, "name=x", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415,
			"unsupported-media-type", "", "application/json",
		},
		"plain text": {
			"POST", jobs, good(""), []string{"Content-Type", "text/plain"}, 415, "unsupported-media-type", "",
			"application/json",
		},
		"no content type": {
			"POST", jobs, good(""), []string{"Content-Type", ""}, 415, "unsupported-media-type", "", "application/json",
		},
		"a query on POST": {
			"POST", jobs + "?dry_run=1", good(""), nil, 422, "invalid", "dry_run", "not a known query parameter",
		},
		"a rename to a taken name": {"PATCH", one, `{"name": "other"}`, nil, 409, "exists", "", ""},
		"a patch of nothing":       {"PATCH", one, ``, nil, 400, "malformed", "", "empty"},
		"a patch that is a list": {
			"PATCH", one, `[{"op": "replace"}]`, nil, 422, "invalid", "body", "is a list",
		},
		"a patch of an unknown field": {
			"PATCH", one, `{"shedule": "@daily"}`, nil, 422, "invalid", "shedule", "did you mean schedule?",
		},
		"a patch that takes the name": {"PATCH", one, `{"name": null}`, nil, 422, "invalid", "name", "is empty"},
		"a patch to two schedules": {
			"PATCH", one, `{"every": "1h"}`, nil, 422, "invalid", "schedule", "2 of",
		},
		"a patch of no job": {"PATCH", jobs + "/999", `{}`, nil, 404, "not-found", "", "no such job"},
		"PUT without command": {
			"PUT", one, `{"name": "there", "schedule": "@daily"}`, nil, 422, "invalid", "command", "is empty",
		},
		"PUT of no job": {
			"PUT", jobs + "/999", good(""), nil, 404, "not-found", "", "no such job",
		},
		"a pause of an app without name": {
			"POST", "/api/v1/apps//pause", `{}`, nil, 422, "invalid", "app", "is empty",
		},
		"a rule of an app without name": {
			"PUT", "/api/v1/apps//retention", `{"age": "24h"}`, nil, 422, "invalid", "app", "is empty",
		},
		"PUT to another name": {
			"PUT", "/api/v1/apps/a/jobs/b", `{"app": "c", "command": "true", "schedule": "@daily"}`, nil, 422,
			"invalid", "app", "the path has",
		},
		"PUT to a name that is none": {
			"PUT", "/api/v1/apps/a/jobs/%20b", `{"command": "true", "schedule": "@daily"}`, nil, 422, "invalid", "name",
			"white space",
		},
		"PUT to a NUL": {
			"PUT", "/api/v1/apps/a/jobs/%00", `{"command": "true", "schedule": "@daily"}`, nil, 422, "invalid", "name",
			"control character",
		},
		"PUT to bytes": {
			"PUT", "/api/v1/apps/a/jobs/%FF", `{"command": "true", "schedule": "@daily"}`, nil, 422, "invalid", "name",
			"UTF-8",
		},
		"DELETE of no job": {"DELETE", jobs + "/999", nil, nil, 404, "not-found", "", "no such job"},
		"pause of no job": {
			"POST", jobs + "/999/pause", nil, nil, 404, "not-found", "", "no such job",
		},
		"pause with a wish": {
			"POST", one + "/pause", `{"untill": "2h"}`, nil, 422, "invalid", "untill", "did you mean until",
		},
		"pause until tomorrow": {
			"POST", one + "/pause", `{"until": "tomorrow"}`, nil, 422, "invalid", "until", "a duration such as",
		},
		"pause until before": {
			"POST", one + "/pause", `{"until": "2020-01-01T00:00:00Z"}`, nil, 422, "invalid", "until", "is in the past",
		},
		"pause for less than nothing": {
			"POST", one + "/pause", `{"until": "-2h"}`, nil, 422, "invalid", "until", "a duration such as",
		},
		"pause for ages": {
			"POST", one + "/pause", `{"until": "2100-01-01T00:00:00Z"}`, nil, 422, "invalid", "until", "2099",
		},
		"pause for a number": {
			"POST", one + "/pause", `{"until": 7200}`, nil, 422, "invalid", "until", "the number 7200",
		},
		"pause for two lines of reasons": {
			"POST", one + "/pause", `{"reason": "a\nb"}`, nil, 422, "invalid", "reason", "one line",
		},
		"pause for a long reason": {
			"POST", one + "/pause", `{"reason": "` + strings.Repeat("ü", 501) +
				`"}`, nil, 422, "invalid", "reason", "at most 500",
		},
		"pause of an app that is none": {
			"POST", "/api/v1/apps/%20/pause", nil, nil, 422, "invalid", "app", "white space",
		},
		"pause of an app of bytes": {
			"POST", "/api/v1/apps/%FF/pause", nil, nil, 422, "invalid", "app", "UTF-8",
		},
		"pause of an app with a wish": {
			"POST", "/api/v1/apps/a/pause", `{"jobs": 3}`, nil, 422, "invalid", "jobs", "not a known field",
		},
		"pause of the cluster until before": {
			"POST", "/api/v1/cluster/pause", `{"until": "2020-01-01T00:00:00Z"}`, nil, 422, "invalid", "until",
			"is in the past",
		},
		"resume of an app with a wish": {
			"POST", "/api/v1/apps/a/resume", `{"reason": "x"}`, nil, 422, "invalid", "reason", "not a known field",
		},
		"GET of an app's pause": {
			"GET", "/api/v1/apps/a/pause", nil, nil, 405, "method-not-allowed", "", "POST",
		},
		"an offset of a day": post(
			`{"name": "x", "command": "true", "at": "2030-01-01T00:00:00+24:00"}`, 422, "invalid", "at",
			"a time with its offset"),
		"an offset of a day, of a start": post(
			`{"name": "x", "command": "true", "schedule": "@daily", "start": "2030-01-01T00:00:00-24:00"}`, 422,
			"invalid", "start", "a time with its offset"),
		"the audit of an offset of a day": get("/api/v1/audit?from=2030-01-01T00:00:00%2B24:00", 422, "invalid",
			"from", "2027-01-31T03:00:00Z"),
		"the audit of no instant": get("/api/v1/audit?from=then", 422, "invalid", "from",
			"2027-01-31T03:00:00Z"),
		"the audit of a job by name": get("/api/v1/audit?job_id=there", 422, "invalid", "job_id",
			"whole number"),
		"the audit by cursor of another": get("/api/v1/audit?cursor="+cursorOf(s), 422, "invalid", "cursor",
			"not a next value"),
		"pause with text": {"POST", one + "/pause", `later`, nil, 400, "malformed", "", "At byte 1"},
		"run of no job": {
			"POST", jobs + "/999/run", nil, nil, 404, "not-found", "", "no such job",
		},
		"run with a long key": {
			"POST", one + "/run", nil, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 422, "invalid",
			"Idempotency-Key", "at most 255",
		},
		"run with a key in Chinese": {
			"POST", one + "/run", nil, []string{"Idempotency-Key", "键"}, 422, "invalid", "Idempotency-Key", "ASCII",
		},
		"a word as id":       get(jobs+"/there", 404, "not-found", "", "Job ids are numbers"),
		"zero as id":         get(jobs+"/0", 404, "not-found", "", ""),
		"a padded id":        get(jobs+"/0"+id, 404, "not-found", "", ""),
		"a huge id":          get(jobs+"/99999999999999999999", 404, "not-found", "", ""),
		"a negative id":      get(jobs+"/-1", 404, "not-found", "", ""),
		"an injected id":     get(jobs+"/1%20OR%201=1", 404, "not-found", "", ""),
		"a run that is none": get("/api/v1/runs/xyz", 404, "not-found", "", ""),
		"a run that there is not": get("/api/v1/runs/00000000-0000-0000-0000-000000000000-1", 404,
			"not-found", "", "no run"),
		"its output": get("/api/v1/runs/00000000-0000-0000-0000-000000000000-1/output", 404,
			"not-found", "", "no run"),
		"no route":             get("/api/v2/jobs", 404, "not-found", "", "nothing at /api/v2/jobs"),
		"a slash too many":     get(jobs+"/", 404, "not-found", "", ""),
		"a limit of 0":         get(jobs+"?limit=0", 422, "invalid", "limit", "from 1 to 200"),
		"a limit of 201":       get(jobs+"?limit=201", 422, "invalid", "limit", "from 1 to 200"),
		"a limit that is none": get(jobs+"?limit=ten", 422, "invalid", "limit", "from 1 to 200"),
		"an unknown parameter": get(jobs+"?nam=x", 422, "invalid", "nam", "did you mean name?"),
		"a long app": get(jobs+"?app="+strings.Repeat("x", 129), 422, "invalid", "app",
			"at most 128"),
		"an owner of bytes":    get(jobs+"?owner=%FF", 422, "invalid", "owner", "UTF-8"),
		"a parameter twice":    get(jobs+"?name=x&name=y", 422, "invalid", "name", "more than once"),
		"a query that is none": get(jobs+"?name=%zz", 422, "invalid", "query", "cannot be decoded"),
		"an unknown status": get(jobs+"?status=running", 422, "invalid", "status",
			"active, paused, finished, error"),
		"a made up cursor":           get(jobs+"?cursor=abc", 422, "invalid", "cursor", "not a next value"),
		"a cursor that is no base64": get(jobs+"?cursor=%21", 422, "invalid", "cursor", "not a next value"),
		"a cursor of another list": get("/api/v1/runs?cursor="+cursorOf(s), 422, "invalid", "cursor",
			"not a next value"),
		"an unknown run state": get("/api/v1/runs?state=idle", 422, "invalid", "state", "running, ended"),
		"an unknown outcome": get("/api/v1/runs?outcome=good", 422, "invalid", "outcome",
			"succeeded, failed"),
		"the filter of jobs in runs' words": get(jobs+"?state=active", 422, "invalid", "state",
			"not a known query parameter"),
		"a job without its app": get("/api/v1/runs?job=backup", 422, "invalid", "job",
			"is not an app and a name, such as billing/nightly"),
		"a job by name and id": get("/api/v1/runs?job=a/b&job_id=1", 422, "invalid", "job", "job_id"),
		"a job that never was": get("/api/v1/audit?job=default/nix", 404, "not-found", "", "and there was none"),
		"runs of a range that runs backwards": get("/api/v1/runs?from=2027-02-01T00:00:00Z&to=2026-02-01T00:00:00Z",
			422, "invalid", "to", "2026-02-01T00:00:00Z is not after from, 2027-02-01T00:00:00Z"),
		"changes of a range that runs backwards": get("/api/v1/audit?from=2027-02-01T00:00:00Z&to=2026-02-01T00:00:00Z",
			422, "invalid", "to", "is not after from"),
		"a word as job id": get("/api/v1/runs?job_id=x", 422, "invalid", "job_id", "whole number"),
		"a time that is none": get("/api/v1/runs?from=yesterday", 422, "invalid", "from",
			"2027-01-31T03:00:00Z"),
		"history of no job":  get(jobs+"/999/history", 404, "not-found", "", ""),
		"next of no job":     get(jobs+"/999/next", 404, "not-found", "", ""),
		"too many due times": get(one+"/next?n=1001", 422, "invalid", "n", "from 1 to 1000"),
		"raw of a strange kind": get("/api/v1/runs/00000000-0000-0000-0000-000000000000-1/output?raw=yes",
			422, "invalid", "raw", "0, 1"),
		"a preview of nothing": {
			"POST", "/api/v1/preview", `{}`, nil, 422, "invalid", "schedule",
			"0 of schedule, schedules, every, at, delay, after and manual",
		},
		"a preview of bad cron": {
			"POST", "/api/v1/preview", `{"schedule": "1-0 * * * *"}`, nil, 422, "invalid", "schedule", "minute",
		},
		"a preview of a command": {
			"POST", "/api/v1/preview", `{"schedule": "@daily", "command": "true"}`, nil, 422, "invalid", "command",
			"not a known field",
		},
		"a preview of too much": {
			"POST", "/api/v1/preview", `{"schedule": "@daily", "n": 5000}`, nil, 422, "invalid", "n", "from 1 to 1000",
		},
		"a preview of half a time": {
			"POST", "/api/v1/preview", `{"schedule": "@daily", "n": 1.5}`, nil, 422, "invalid", "n", "a whole number",
		},
		"a crontab of nothing": {
			"POST", "/api/v1/crontab", `{}`, nil, 422, "invalid", "text", "is missing",
		},
		"a crontab that is no text": {
			"POST", "/api/v1/crontab", `{"text": 7}`, nil, 422, "invalid", "text", "text in quotes",
		},
		"a crontab of nowhere": {
			"POST", "/api/v1/crontab", `{"text": "", "timezone": "Local"}`, nil, 422, "invalid", "timezone",
			"differs from machine to machine",
		},
		"a crontab for nobody": {
			"POST", "/api/v1/crontab", `{"text": "", "user": 7}`, nil, 422, "invalid", "user", "text in quotes",
		},
		"a wrong method": {
			"DELETE", jobs, nil, nil, 405, "method-not-allowed", "", "supports GET, POST, HEAD, but not DELETE",
		},
		"OPTIONS":                            {"OPTIONS", jobs, nil, nil, 405, "method-not-allowed", "", "not OPTIONS"},
		"a method that is none":              {"BREW", jobs, nil, nil, 405, "method-not-allowed", "", "not BREW"},
		"a method that is none, with a body": {"BREW", jobs, `{}`, nil, 405, "method-not-allowed", "", "not BREW"},
		"a method nowhere":                   {"BREW", "/nowhere", nil, nil, 404, "not-found", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.counts()
			r := s.call(b.method, b.path, b.body, b.header...)
			if r.status != b.status {
				t.Fatalf("got %d %s, want %d", r.status, r.body, b.status)
			}
			if got := r.header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("the content type is %q", got)
			}

			o := r.object()
			if got, want := o.text("type"), api.TypePrefix+b.problem; got != want {
				t.Errorf("got type %q, want %q", got, want)
			}

			if o.text("status") != fmt.Sprint(b.status) || o.text("title") == "" || o.text("detail") == "" ||
				o.text("request_id") == "" {
				t.Errorf("the problem is not whole: %s", r.body)
			}

			if b.field != "" && (len(o.items("errors")) == 0 || o.items("errors")[0].text("field") != b.field) {
				t.Errorf("got %s, want the field %s named first", r.body, b.field)
			}
			for _, e := range o.items("errors") {
				if code := e.text("code"); code == "" || code == "other" {
					t.Errorf("%s has the code %q", e.text("message"), code)
				}
			}
			if !strings.Contains(r.body, b.says) {
				t.Errorf("got %s, want it to say %q", r.body, b.says)
			}
			if len(r.body) > 12_000 {
				t.Errorf("the answer has %d bytes: it repeats too much of what was sent", len(r.body))
			}

			if after := s.counts(); after != before {
				t.Errorf("a refused request changed something: %s became %s", before, after)
			}
		})
	}
}

// manyFields is an object with n fields.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"f%x": "x"`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// cursorOf is a good cursor of the list of jobs.
func cursorOf(s *site) string {
	return s.call("GET", "/api/v1/jobs?limit=1", nil).want(200).object().text("next")
}
