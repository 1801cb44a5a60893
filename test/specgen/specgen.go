// Package specgen draws valid definitions of jobs, for tests that encode definitions and expect
// them back.
package specgen

import (
	"time"

	"go-crontab/job"

	"pgregory.net/rapid"
)

// hard lists texts that some format takes for something other than text.
var hard = []string{
	"yes", "no", "null", "~", "true", "1", "1.5", "1e3", "0x10", "012", "-", "- a", "? a", ": a", "a: b", "a #b", "#a",
	"&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'", `"`, `\`, `\n`,
	"<<", "=", "2027-01-31", "2027-01-31T09:00:00Z", "12:30:45", "[a]", "{a}", "a, b", "備份 🚀", "é", "\u00a0a",
	"a\u2028b", "a\u0085b", "\ufeffa", ".inf", "---", "...", "{{due}}",
}

// lines lists texts of several lines.
var lines = []string{
	"a\nb", "a\nb\n", "a\n\nb\n\n", "\na", "\n", " a\nb", "a\n  b\n c", "a \nb", "\ta\nb", "a\tb", "a\r\nb", "a\x01b",
	"a\n#b\n", "a\n---\nb\n", "a\n...\n", "a:\n- b\n", "x && y || z <a >b", "\x7f", "'\"\n\\",
}

// Text draws an arbitrary text.
func Text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hard), rapid.SampledFrom(lines), rapid.StringMatching(`[a-z ]{0,12}`),
		rapid.StringN(0, 12, -1))
}

// Name draws a name: a single line without white space at its ends.
func Name() *rapid.Generator[string] {
	drawn := rapid.OneOf(rapid.SampledFrom(hard), rapid.StringMatching(`[a-z][a-z0-9 ._/-]{0,20}`))
	return drawn.Filter(func(s string) bool {
		spec := job.Spec{Name: s, Schedule: "@yearly", Command: "true"}
		spec.Defaults(time.Unix(0, 0))
		return spec.Validate() == nil
	})
}

// Spec draws a valid definition for an app, with no due time for years. It may refer to the given
// groups and calendars.
func Spec(app string, groups, calendars []string) *rapid.Generator[job.Spec] {
	drawn := rapid.Custom(func(t *rapid.T) job.Spec { return draw(t, app, groups, calendars) })
	return drawn.Filter(func(s job.Spec) bool {
		s.Defaults(time.Unix(0, 0))
		return s.Validate() == nil
	})
}

func draw(t *rapid.T, app string, groups, calendars []string) job.Spec {
	one := func(label string, words ...string) string { return rapid.SampledFrom(words).Draw(t, label) }
	some := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	number := func(label string, least, most int) int { return rapid.IntRange(least, most).Draw(t, label) }
	length := func(label string) job.Duration {
		return job.Duration(rapid.SampledFrom([]time.Duration{time.Second, 90 * time.Second, time.Hour, 36 * time.Hour,
			1500 * time.Millisecond}).Draw(t, label))
	}

	instant := func(label string) *time.Time {
		zone := time.FixedZone("", 3600*number(label+" zone", -12, 14))
		at := time.Date(2080+number(label, 0, 9), 5, 1, 2, 3, 4, 1000*number(label+" µs", 0, 999_999), zone)
		return &at
	}

	s := job.Spec{
		App:     app,
		Name:    Name().Draw(t, "name"),
		Overlap: job.Overlap(one("overlap", "", "skip", "queue", "replace", "allow")),
		OnLost:  one("on lost", "", "fail", "rerun"),
	}
	if some("description") {
		s.Description, s.Owner = Text().Draw(t, "description"), Text().Draw(t, "owner")
	}
	if some("labels") {
		s.Labels = rapid.MapOfN(Name(), Text(), 0, 3).Draw(t, "labels")
	}

	switch number("when", 0, 4) {
	case 0:
		s.Schedule = one("cron", "0 0 1 1 * 2090", "@yearly", "0 30 6 29 2 * 2080-2099", "*/7  3 L 2 * 2091")
	case 1:
		s.Schedules = []string{"0 0 1 1 * 2090", "0 12 2 1 * 2090"}
	case 2:
		s.Every = job.Duration(time.Duration(number("every", 1000, 9000)) * time.Hour)
	case 3:
		s.Every = job.Duration(time.Duration(number("every", 10, 1_000_000)) * time.Millisecond)
		s.Start = instant("start")
	default:
		s.At = instant("at")
	}

	if s.At == nil && some("bounds") {
		if s.Every == 0 {
			s.Start = instant("start")
		}
		end := time.Date(2095, 1, 1, 0, 0, 0, 0, time.UTC)
		s.End = &end
	}

	if s.At == nil && some("max fires") {
		s.MaxFires = int64(number("fires", 1, 100))
	}
	if some("timezone") {
		s.Timezone = one("zone", "UTC", "europe/berlin", "Asia/Shanghai", "Beijing", "America/New_York")
	}
	if some("jitter") {
		s.Jitter = length("jitter")
	}

	if len(calendars) > 0 && some("calendars") {
		s.Calendars = []string{rapid.SampledFrom(calendars).Draw(t, "calendar")}
		s.OnClosed = job.OnClosed(one("on closed", "", "skip", "next", "previous"))
	}

	if s.Every == 0 && s.At == nil && some("weeks") {
		s.Weeks = &job.Weeks{Every: number("weeks", 1, 9), From: "2079-01-05"}
	}

	drawWhat(t, &s, one, some, number, length)
	if some("timeout") {
		s.Timeout = length("timeout")
	}
	if some("selector") {
		s.Selector = one("terms", "gpu", "zone in (a,b), !spot", `disk="a b"`)
	}
	if s.Overlap == job.OverlapQueue && some("queue") {
		s.Queue = number("waiting", 1, 20)
	}

	if len(groups) > 0 && some("group") {
		s.Group, s.Priority = rapid.SampledFrom(groups).Draw(t, "group"), number("priority", -3, 3)
	}
	if some("deadline") {
		s.StartDeadline = length("deadline")
	}

	if some("misfire") {
		s.Misfire = job.Misfire{Policy: job.MisfirePolicy(one("policy", "", "latest", "skip", "all")),
			After: length("after"), MaxAge: length("max age")}
		if s.Misfire.Policy == job.MisfireAll {
			s.Misfire.MaxCount = number("count", 0, 3) * 50
		}
	}

	if some("retry") {
		s.Retry = job.Retry{Attempts: number("attempts", 1, 4)}
		if s.Retry.Attempts > 1 {
			s.Retry.Backoff = length("backoff")
			s.Retry.Factor = rapid.SampledFrom([]float64{0, 1, 1.5, 2}).Draw(t, "factor")
			s.Retry.Jitter = length("retry jitter")
			s.Retry.On = rapid.SampledFrom([][]job.Outcome{
				nil, {job.Failed}, {job.Failed, job.TimedOut}, {job.Killed, job.Failed},
			}).Draw(t, "on")
		}
	}

	if some("params") {
		s.Params = map[string]job.Param{
			"day": {Type: job.ParamDate, Default: job.Value(one("day", `"today"`, `"2026-11-01"`))},
			"n":   {Type: job.ParamInteger, Default: "5", Enum: []job.Value{"5", "7"}},
			"key": {Description: "a key"},
		}
	}
	if some("keep") {
		s.Keep = job.Keep{Age: length("keep"), Runs: int64(number("runs kept", 0, 3)),
			Bytes: job.Size(number("bytes kept", 0, 2) << 20)}
	}
	if (s.At != nil || s.End != nil || s.MaxFires != 0) && some("keep job") {
		s.KeepJob = job.Duration(number("keep job", 1, 100)) * job.Duration(time.Hour)
	}
	if some("output") && s.HTTP == nil {
		s.Output = job.Capture{
			Keep: job.Size(number("output kept", 0, 3)) << 20, MarkStderr: s.Command != "" && some("mark"),
		}
	}
	if some("ping") {
		s.Ping = &job.Ping{URL: one("ping url", "https://ping.example.com/a", "http://ping.example.com"),
			FailURL: one("fail url", "", "https://ping.example.com/a/fail")}
	}

	return s
}

// drawWhat draws the action of the job.
func drawWhat(t *rapid.T, s *job.Spec, one func(string, ...string) string, some func(string) bool,
	number func(string, int, int) int, length func(string) job.Duration) {
	switch number("what", 0, 4) {
	case 0:
		h := &job.HTTP{URL: one("url", "https://example.com", "http://example.com/a?b={{due}}&c=%20"),
			Method: one("method", "", "GET", "POST", "DELETE")}
		if h.Method != "GET" && some("body") {
			h.Body = Text().Draw(t, "body")
		}

		if some("headers") {
			h.Headers = map[string]string{"X-A": one("header", "a", "{{job}}", "a: b", "1"), "X-B": ""}
		}
		if some("expect") {
			h.Expect = []string{"2xx", "404"}
			h.BodyLimit = number("limit", 0, 2) * 65536
			h.Redirects = number("redirects", 0, 3)
		}
		if some("sign") {
			h.Sign = &job.HTTPSign{Secret: "hook"}
		}

		if some("tls") && h.URL[:5] == "https" {
			h.TLS = &job.HTTPTLS{SkipVerify: some("skip")}
		}

		s.HTTP = h
		return
	case 1:
		s.Handler, s.Payload = one("handler", "a", "billing/close-day"), Text().Draw(t, "payload")
		return
	}

	s.Command = Text().Draw(t, "command")
	if !some("options") {
		return
	}

	s.CommandOptions = job.CommandOptions{
		User: one("user", "", "www", "www:data", "0"), Dir: one("dir", "", "/", "/srv/a b"),
		Stdin: Text().Draw(t, "stdin"),
		Env:   rapid.MapOfN(rapid.StringMatching(`[A-Z][A-Z0-9_]{0,6}`), Text(), 0, 3).Draw(t, "env"),
		Grace: length("grace"),
	}

	if some("codes") {
		s.SuccessCodes = []int{0, number("code", 1, 254)}
		s.SkipCodes = []int{255}
	}

	if some("limits") {
		core := job.Size(number("core", 0, 1) * 4096)
		s.Limits = job.Limits{Memory: job.Size(number("memory", 1, 2000) << 20), CPU: float64(number("cpu", 1, 40)) / 8,
			PIDs: number("pids", 0, 64), OpenFiles: 64, Core: &core}
	}
}
