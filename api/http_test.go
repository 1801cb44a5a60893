package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestHTTPJob creates, shows and changes a job that sends a request.
func TestHTTPJob(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := s.call("POST", "/api/v1/jobs", `{"name": "hook", "schedule": "0 3 * * *", "http": {"url": "https://example.com/{{job}}?a=1&b=2", "body": "{\"due\": \"{{due}}\"}",
		"headers": {"X-Api-Key": "k"}, "redirects": 2, "sign": {"secret": "billing"}, "tls": {"server_name": "internal.example"}}}`).want(201)
	j := r.object()
	for field, want := range map[string]string{
		"command": "", "timeout": "5m",
		"http": "map[body:{\"due\": \"{{due}}\"} body_limit:65536 expect:[2xx] headers:map[X-Api-Key:k] method:POST redirects:2 sign:map[secret:billing] " +
			"tls:map[server_name:internal.example] url:https://example.com/{{job}}?a=1&b=2]",
	} {
		if got := j.text(field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}

	if strings.Contains(r.body, `"command"`) || !strings.Contains(r.body, "a=1&b=2") {
		t.Errorf("got %s, want no command, and the URL as it was given", r.body)
	}

	path := "/api/v1/jobs/" + j.text("id")
	if got := s.call("GET", path, nil).want(200).body; strings.Replace(got, neverRan, "", 1) != r.body {
		t.Errorf("GET answers %s, POST did %s", got, r.body)
	}
	if again := s.call("PUT", path, j).want(200).object(); again.text("version") != "1" {
		t.Errorf("what GET answered, sent back, made version %s", again.text("version"))
	}

	steps := []struct {
		patch string
		field []string
		want  string
	}{
		{`{"http": {"headers": {"X-Api-Key": null, "X-Other": "o"}}}`, []string{"http", "headers"}, "map[X-Other:o]"},
		{
			`{"http": {"sign": null, "tls": null, "redirects": 0}}`, []string{"http", "url"},
			"https://example.com/{{job}}?a=1&b=2",
		},
		{`{"http": {"expect": ["200-299", "404"]}}`, []string{"http", "expect"}, "[200-299 404]"},
		{`{"http": {"body": null, "method": null}}`, []string{"http", "method"}, "GET"},
		{`{"timeout": "90s"}`, []string{"timeout"}, "1m30s"},
		{`{"timeout": null}`, []string{"timeout"}, "5m"},
		{`{"http": null, "command": "true"}`, []string{"command"}, "true"},
		{`{"http": {"url": "http://example.com"}, "command": null}`, []string{"http", "method"}, "GET"},
	}

	for _, step := range steps {
		j := s.call("PATCH", path, step.patch).want(200).object()
		if got := j.text(step.field...); got != step.want {
			t.Errorf("after %s: %v is %q, want %q", step.patch, step.field, got, step.want)
		}
	}

	last := s.call("GET", path, nil).want(200).object()
	if got := last.text("http"); got != "map[body_limit:65536 expect:[2xx] method:GET url:http://example.com]" ||
		last.text("command") != "" {
		t.Errorf("at last: %v", last)
	}
}

func TestBadHTTPJobs(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for http, want := range map[string]struct{ field, says string }{
		`"https://example.com"`: {"http", "must be an object"},
		`{}`:                    {"http.url", "is empty"},
		`{"uri": "http://a"}`:   {"http.uri", "did you mean url?"},
		`{"url": 7}`:            {"http.url", "must be text"},
		`{"url": "http://a", "headers": ["A: b"]}`:             {"http.headers", "must be an object of texts"},
		`{"url": "http://a", "headers": {"A": "b\r\nC: d"}}`:   {"http.headers.A", "line break"},
		`{"url": "http://a", "headers": {"A\r\nC": "d"}}`:      {"http.headers.A\r\nC", "is not a valid header name"},
		`{"url": "http://a", "headers": {"Host": "d"}}`:        {"http.headers.Host", "comes from the URL"},
		`{"url": "http://a", "expect": "2xx"}`:                 {"http.expect", "must be a list"},
		`{"url": "http://a", "expect": ["ok"]}`:                {"http.expect[0]", "is not an HTTP status"},
		`{"url": "http://a", "body_limit": 0}`:                 {"http.body_limit", "from 1 to 262144"},
		`{"url": "http://a", "redirects": true}`:               {"http.redirects", "must be a whole number"},
		`{"url": "http://a", "redirects": 11}`:                 {"http.redirects", "between 0"},
		`{"url": "http://a/{{dew}}"}`:                          {"http.url", "known are {{due}}"},
		`{"url": "http://a", "sign": "k3y"}`:                   {"http.sign", "must be an object"},
		`{"url": "http://a", "sign": {"key": "k3y"}}`:          {"http.sign.key", "the known fields are secret"},
		`{"url": "http://a", "sign": {"secret": "a secret!"}}`: {"http.sign.secret", "is not a valid secret name"},
		`{"url": "https://a", "tls": {"verify": false}}`:       {"http.tls.verify", "the known fields are ca"},
		`{"url": "https://a", "tls": {"ca": "x"}}`:             {"http.tls.ca", "is not PEM"},
	} {
		r := s.call("POST", "/api/v1/jobs",
			fmt.Sprintf(`{"name": "bad", "schedule": "@daily", "http": %s}`, http)).want(422)
		errs, _ := r.object()["errors"].([]any)
		if len(errs) == 0 {
			t.Errorf("%s: got %s", http, r.body)
			continue
		}

		first, _ := errs[0].(map[string]any)
		if first["field"] != want.field || !strings.Contains(fmt.Sprint(first["message"]), want.says) {
			t.Errorf("%s: got %v, want %s: %s", http, first, want.field, want.says)
		}
	}

	r := s.call("POST", "/api/v1/jobs",
		`{"name": "bad", "schedule": "@daily", "command": "true", "http": {"url": "http://a"}}`).want(422)
	if !strings.Contains(r.body, "a job does only one thing") {
		t.Errorf("two things to do: got %s", r.body)
	}
}
