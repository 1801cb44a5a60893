package job

import (
	"strings"
	"testing"
	"time"
)

func message() *AlertMessage {
	return &AlertMessage{Key: "k", Channel: "chat", Rule: "ops", Severity: "error", Title: "t", Text: "x", Count: 332,
		More: 330,
		Items: []AlertItem{
			{What: "fired", Event: AlertFailed, App: "shop", Job: "a", Summary: "shop/a failed"},
			{What: "resolved", App: "shop", Job: "b"},
		}}
}

func TestRender(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{.Rule}}: {{.Count}}`:                              "ops: 332",
		`{{range .Items}}{{.App}}/{{.Job}} {{end}}`:          "shop/a shop/b ",
		`{{with index .Items 0}}{{upper .Job}}{{end}}`:       "A",
		`{{range $i, $x := $.Items}}{{$i}}{{$x.Job}}{{end}}`: "0a1b",
		`{"t": {{json .Title}}}`:                             `{"t": "t"}`,
		`{{if gt .More 0}}and {{.More}} more{{end}}`:         "and 330 more",
		`{{printf "%5d|%-4s|" .Count .Rule}}`:                "  332|ops |",
	} {
		if got, err := Render(text, message()); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}

	double := `{{$x := "xxxxxxxxxxxxxxxx"}}` + strings.Repeat(`{{$x = print $x $x}}`, 100)
	for text, want := range map[string]string{
		`{{.Nothing}}`:              "can't evaluate field Nothing",
		`{{(index .Items 99).App}}`: "index out of range",
		`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`: "another template",
		`{{template "a"}}`:                                "another template",
		`{{range 1000000000}}{{end}}`:                     "over something other than .Items",
		`{{range .Items}}{{range $.Items}}{{end}}{{end}}`: "inside a range",
		`{{printf "%999999d" 1}}`:                         "four digits",
		`{{printf "%*d" 999999 1}}`:                       "four digits",
		double:                                            "more than 16384 bytes",
		`{{range .Items}}` + strings.Repeat("x", 8000) + `{{end}}` + strings.Repeat("x", 500): "more than 16384 bytes",
		`{{`:                                "unclosed action",
		`{{call .Rule}}`:                    "non-function",
		`{{.Rule | urlquery | nofunction}}`: "not defined",
	} {
		if text == double {
			text += "{{$x}}"
		}
		got, err := Render(text, message())
		if err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%.60s: got %.60q, %v, want an error with %q", text, got, err, want)
		}
	}
}

// FuzzRender: any template ends soon, stays small, and breaks nothing.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"{{.Title}}", `{{range .Items}}{{printf "%s" .Summary}}{{end}}`,
		`{{$x := .}}{{json $x}}`, "{{- 1 -}}", `{{with .Items}}{{len .}}{{else}}-{{end}}`, `{{slice .Title 0 1}}`} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > MaxTemplate {
			return
		}
		out, err := Render(text, message())
		if len(out) > MaxRendered || err != nil && out != "" {
			t.Errorf("got %d bytes, %v", len(out), err)
		}
		var p Problems
		checkTemplate(&p, "text", text)
		if p == nil || err != nil {
			return
		}
		for _, m := range samples() {
			if _, err := Render(text, m); err != nil {
				return
			}
		}
		t.Errorf("it is refused (%v), and yet makes %q, and something of each sample", p, out)
	})
}

// TestMisspeltFields: a field that there is not is found when the template is written, wherever
// messages may lead to it.
func TestMisspeltFields(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{.Titel}}`: "field Titel in type *job.AlertMessage",
		`{{.Job}}`:   "field Job in type *job.AlertMessage",
		`{{range .Items}}{{.Job}}{{.Summery}}{{end}}`:                           "field Summery in type job.AlertItem",
		`{{range .Items}}{{if eq .What "resolved"}}{{.Until}}{{end}}{{end}}`:    "field Until",
		`{{range .Items}}{{if .Job}}{{.Job}}{{else}}{{.Cluster}}{{end}}{{end}}`: "field Cluster",
		`{{if .More}}and {{.Others}} more{{end}}`:                               "field Others",
		`{{if gt .Count 1}}{{.Count}}{{else}}{{(index .Items 0).Name}}{{end}}`:  "field Name",
		`{{$m := .}}{{range .Items}}{{$m.Rule}}: {{$m.Summary}}{{end}}`:         "field Summary",
		`{{with index .Items 0}}{{.Title}}{{end}}`:                              "field Title",
		`{{range .Items}}{{.Severity.Name}}{{end}}`:                             "field Name in type string",
		// of a message with one item it fails, of others not
		`{{(index .Items 1).Job}}`: "",
		`{{range .Items}}{{.What}} {{.Event}} {{.AlertID}} {{.Since}}{{end}}`:    "",
		`{{.Key}}{{.Channel}}{{.Rule}}{{.Severity}}{{.Title}}{{.Text}}{{.More}}`: "",
	} {
		var p Problems
		checkTemplate(&p, "text", text)
		if want == "" && p != nil || want != "" && (len(p) != 1 || !strings.Contains(p[0].Message, want)) {
			t.Errorf("%s: got %v, want %q", text, p, want)
		}
	}
}

func TestRuleProblems(t *testing.T) {
	t.Parallel()
	good := func() AlertRule {
		return AlertRule{Name: "ops", On: []AlertEvent{AlertFailed}, Channels: []string{"chat"}}
	}

	for name, c := range map[string]struct {
		change      func(*AlertRule)
		field, want string
	}{
		"nothing wrong":       {func(*AlertRule) {}, "", ""},
		"no events":           {func(r *AlertRule) { r.On = nil }, "on", "missing"},
		"an unknown event":    {func(r *AlertRule) { r.On = []AlertEvent{"broke"} }, "on[0]", "one of failed"},
		"only recovered":      {func(r *AlertRule) { r.On = []AlertEvent{AlertRecovered} }, "on", "has only recovered"},
		"no channel":          {func(r *AlertRule) { r.Channels = nil }, "channels", "missing"},
		"late_finish without": {func(r *AlertRule) { r.On = []AlertEvent{AlertLateFinish} }, "late_finish", "missing"},
		"failures without":    {func(r *AlertRule) { r.On = []AlertEvent{AlertFailures} }, "failures", "missing"},
		"a threshold for none": {
			func(r *AlertRule) { r.LateStart = Duration(time.Minute) }, "late_start", "does not include",
		},
		"a job without an app": {func(r *AlertRule) { r.Jobs = []string{"backup"} }, "jobs[0]", "app/name"},
		"a severity":           {func(r *AlertRule) { r.Severity = "bad" }, "severity", "one of"},
		"a template":           {func(r *AlertRule) { r.Text = "{{.Title" }, "text", "unclosed"},
		"too rarely":           {func(r *AlertRule) { r.Repeat = Duration(1000 * time.Hour) }, "repeat", "not between"},
		"twice":                {func(r *AlertRule) { r.On = append(r.On, AlertFailed) }, "on[1]", "given twice"},
	} {
		r := good()
		c.change(&r)
		r.Defaults()
		wantProblem(t, name, r.Validate(), c.field, c.want)
	}
}

func wantProblem(t *testing.T, name string, err error, field, want string) {
	t.Helper()
	p, _ := err.(Problems)
	switch {
	case field == "" && err != nil:
		t.Errorf("%s: got %v", name, err)
	case field != "" && (len(p) != 1 || p[0].Field != field || !strings.Contains(p[0].Message, want)):
		t.Errorf("%s: got %v, want %s: …%s…", name, err, field, want)
	}
}

func TestChannelProblems(t *testing.T) {
	t.Parallel()
	mail := func() *AlertEmail {
		return &AlertEmail{Server: "mail.example.com:587", From: "cron@example.com", To: []string{"ops@example.com"}}
	}

	for name, c := range map[string]struct {
		channel     AlertChannel
		field, want string
	}{
		"a webhook": {
			AlertChannel{Type: ChannelWebhook, URL: "https://example.com/a?b=c", Sign: "{{secret.x}}"}, "", "",
		},
		"a url from a secret": {AlertChannel{Type: ChannelSlack, URL: "{{ secret.x }}"}, "", ""},
		"mail":                {AlertChannel{Type: ChannelEmail, Email: mail()}, "", ""},
		"a heartbeat":         {AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com/beat"}, "", ""},
		"no type":             {AlertChannel{URL: "https://example.com"}, "type", "one of webhook"},
		"no url":              {AlertChannel{Type: ChannelSlack}, "url", "empty"},
		"a part from a secret": {
			AlertChannel{Type: ChannelSlack, URL: "https://example.com/{{secret.x}}"}, "url", "the whole URL",
		},
		"a secret in the open": {
			AlertChannel{Type: ChannelWebhook, URL: "https://example.com", Sign: "hunter2"}, "sign", "{{secret.NAME}}",
		},
		"a key in the open": {
			AlertChannel{Type: ChannelPagerDuty, RoutingKey: "abc"}, "routing_key", "{{secret.NAME}}",
		},
		"no key": {AlertChannel{Type: ChannelPagerDuty}, "routing_key", "missing"},
		"a header of ours": {
			AlertChannel{Type: ChannelWebhook, URL: "https://example.com", Headers: map[string]string{"Host": "x"}},
			"headers.Host", "URL",
		},
		"a header of two lines": {
			AlertChannel{Type: ChannelWebhook, URL: "https://example.com",
				Headers: map[string]string{"X-A": "a\r\nB: c"}}, "headers.X-A", "ASCII",
		},
		"headers of a chat": {
			AlertChannel{Type: ChannelSlack, URL: "https://example.com", Headers: map[string]string{"X-A": "a"}},
			"headers", "cannot be used",
		},
		"mail without": {AlertChannel{Type: ChannelEmail}, "email", "missing"},
		"a password, not hidden": {
			AlertChannel{Type: ChannelEmail,
				Email: &AlertEmail{Server: "m:25", TLS: "none", User: "u", Password: "{{secret.x}}", From: "a@b.c",
					To: []string{"a@b.c"}}}, "email.tls", "unencrypted",
		},
		"an address": {
			AlertChannel{Type: ChannelEmail, Email: &AlertEmail{Server: "m:25", From: "a@b.c", To: []string{"ops"}}},
			"email.to[0]", "not a mail address",
		},
		"two lines": {
			AlertChannel{Type: ChannelEmail,
				Email: &AlertEmail{Server: "m:25", From: "a@b.c", To: []string{"a@b.c\r\nBcc: d@e.f"}}}, "email.to[0]",
			"not a mail address",
		},
		"no server": {
			AlertChannel{Type: ChannelEmail, Email: &AlertEmail{Server: "m", From: "a@b.c", To: []string{"a@b.c"}}},
			"email.server", "host and port",
		},
		"too many": {
			AlertChannel{Type: ChannelSlack, URL: "https://example.com", Rate: 601}, "rate", "between 1 and 600",
		},
		"too often": {
			AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com", Every: Duration(time.Second)}, "every",
			"between 10s",
		},
		"a beat, and no more": {
			AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com", Every: Duration(10 * time.Second),
				Rate: 6}, "", "",
		},
		"a beat a day": {
			AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com", Every: Duration(24 * time.Hour), Rate: 1},
			"", "",
		},
		"too few for its beats": {
			AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com", Every: Duration(10 * time.Second),
				Rate: 5}, "rate", "give at least 6",
		},
		"and not by much": {
			AlertChannel{Type: ChannelHeartbeat, URL: "https://example.com", Every: Duration(59 * time.Second),
				Rate: 1}, "rate", "give at least 2",
		},
	} {
		c.channel.Name = "c"
		c.channel.Defaults()
		wantProblem(t, name, c.channel.Validate(), c.field, c.want)
	}
}

func TestRuleTakes(t *testing.T) {
	t.Parallel()
	j := &AlertJob{App: "billing", Name: "eu/nightly", Owner: "ann", Labels: map[string]string{"team": "data"}}
	for name, c := range map[string]struct {
		rule AlertRule
		want bool
	}{
		"all":             {AlertRule{}, true},
		"its app":         {AlertRule{Apps: []string{"x", "billing"}}, true},
		"another app":     {AlertRule{Apps: []string{"bill"}}, false},
		"its name":        {AlertRule{Jobs: []string{"billing/eu/nightly"}}, true},
		"a pattern":       {AlertRule{Jobs: []string{"b*/eu/*ly"}}, true},
		"overlapping":     {AlertRule{Jobs: []string{"billing/eu/night*ghtly"}}, false},
		"another pattern": {AlertRule{Jobs: []string{"*/us/*"}}, false},
		"its label":       {AlertRule{Labels: map[string]string{"team": "data"}}, true},
		"another owner":   {AlertRule{Owner: "bob", Apps: []string{"billing"}}, false},
	} {
		if got := c.rule.Takes(j); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestMinimalAlerts: Defaults restores the fields that Minimal drops.
func TestMinimalAlerts(t *testing.T) {
	t.Parallel()
	r := AlertRule{
		Name: "r", On: AlertEvents(), Channels: []string{"c"}, LateFinish: 1e9,
		Failures: &AlertFailing{Count: 2, Within: 1e9},
	}
	r.Defaults()
	again := r.Minimal()
	if again.Severity != "" || again.Repeat != 0 || again.Backlog != nil {
		t.Errorf("got %+v", again)
	}

	if again.Defaults(); len(again.Diff(&r)) != 0 {
		t.Errorf("got %v", again.Diff(&r))
	}

	c := AlertChannel{Name: "c", Type: ChannelEmail, Email: &AlertEmail{From: "a@b.c"}}
	c.Defaults()
	small := c.Minimal()
	if small.Rate != 0 || small.Wait != 0 || small.Email.TLS != "" {
		t.Errorf("got %+v", small)
	}

	if small.Defaults(); len(small.Diff(&c)) != 0 {
		t.Errorf("got %v", small.Diff(&c))
	}
}
