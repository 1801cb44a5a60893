package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go-crontab/job"
)

func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]string{
		{`{"a": "b"}`, `{"a": "c"}`, `{"a": "c"}`},
		{`{"a": "b"}`, `{"b": "c"}`, `{"a": "b", "b": "c"}`},
		{`{"a": "b"}`, `{"a": null}`, `{}`},
		{`{"a": "b", "b": "c"}`, `{"a": null}`, `{"b": "c"}`},
		{`{"a": [1]}`, `{"a": [2, null]}`, `{"a": [2, null]}`},
		{`{"a": {"b": 1, "c": 2}}`, `{"a": {"b": null, "d": 3}}`, `{"a": {"c": 2, "d": 3}}`},
		{`{"a": 1}`, `{"a": {"b": {"c": null}}}`, `{"a": {"b": {}}}`},
		{`{"a": {"b": 1}}`, `{"a": 7}`, `{"a": 7}`},
		{`{}`, `{"a": null}`, `{}`},
	} {
		target, patch, want := mustParse(t, tc[0]), mustParse(t, tc[1]), mustParse(t, tc[2])
		if got := mergePatch(target, patch); !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s with %s: got %v, want %v", tc[0], tc[1], got, want)
		}
	}
}

func mustParse(t *testing.T, text string) map[string]any {
	t.Helper()
	o, err := parseObject(context.Background(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestNearest(t *testing.T) {
	t.Parallel()
	f := newFields(nil)
	jobFields(f)
	for word, want := range map[string]string{
		"comand": "command", "cmd": "command", "tz": "timezone", "time_zone": "timezone", "Schedule": "schedule",
		"shedule": "schedule", "lables": "labels",
		"onlost": "on_lost", "cron": "", "xyzzy": "", "": "", strings.Repeat("x", 1000): "", "é": "", "pause": "paused",
		"stop": "",
	} {
		if got := nearest(word, f.known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := nearest("db-dmp", []string{"other", "DB-Dump"}); got != "DB-Dump" {
		t.Errorf("a name in capitals: got %q", got)
	}
}

// FuzzBody sends bytes through the whole reading of bodies. encoding/json decides which texts are
// JSON.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"name": "a", "command": "true", "schedule": "@daily", "labels": {"k": "v"}, "misfire": {"policy": "skip", "max_age": "1h"}, "paused": true}`,
		`{"every": "1h", "start": "2030-01-01T00:00:00Z", "timeout": "90s", "id": "1", "version": 3}`,
		`{"at": "2030-01-01T00:00:00.123456789+14:00"}`,
		`{"a": {"a": {"a": [[[[1e400, -0, "\ud800"]]]]}}, "name": null}`, `{"name": "x", "name": "y"}`,
		`{"\u006eame": 1, "name": 2}`, `{} {}`, `[`, `{"a":}`, ``, "\xef\xbb\xbf{}",
		`{"labels": {"": ""}, "misfire": {"x": 1}}`, `{"timeout": "9999999h", "every": "-1ns"}`, "{\"name\": \"\xff\"}",
		`{"n": 01}`,
	} {
		f.Add([]byte(s))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseObject(context.Background(), body)
		if err != nil {
			checkProblem(t, err)
			return
		}

		var want map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(o, want) {
			t.Fatalf("%q: got %v, want %v, %v", body, o, want, err)
		}

		for _, read := range []func(map[string]any) (jobBody, error){newJob, wholeJob} {
			if b, err := read(o); err != nil {
				checkProblem(t, err)
			} else {
				checkRoundTrip(t, b)
			}
		}

		stored := job.Spec{App: "a", Name: "n", Command: "c", Schedule: "@daily", Labels: map[string]string{"k": "v"}}
		if _, err := patched(&stored, o); err != nil {
			checkProblem(t, err)
		}
	})
}

// checkProblem checks the common properties of refusals of a body.
func checkProblem(t *testing.T, err error) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) || p.Status != 400 && p.Status != 422 || p.Detail == "" ||
		len(p.Errors) == 0 == (p.Status == 422) {
		t.Fatalf("got %#v, want a problem 400, or 422 that names fields", err)
	}

	text, err := json.Marshal(p)
	if err != nil || !utf8.Valid(text) {
		t.Fatalf("%q, %v", text, err)
	}

	for _, e := range p.Errors {
		if e.Message == "" || !utf8.ValidString(e.Field) {
			t.Fatalf("got %+v", p.Errors)
		}
	}
}

// checkRoundTrip sends a parsed body back, as a client PUTs the answer of GET.
func checkRoundTrip(t *testing.T, b jobBody) {
	t.Helper()
	text, err := json.Marshal(viewOf(&job.Job{Spec: b.spec, ID: 1, Created: 1, Updated: 1}, true, 0, 0))
	if err != nil {
		t.Fatal(err)
	}

	o, err := parseObject(context.Background(), text)
	if err != nil {
		t.Fatal(err)
	}

	again, err := wholeJob(o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}

	if again.spec.Name != b.spec.Name || again.spec.Command != b.spec.Command || again.spec.Timeout != b.spec.Timeout ||
		again.spec.Every != b.spec.Every ||
		(b.spec.At == nil) != (again.spec.At == nil) || b.spec.At != nil && !b.spec.At.Equal(*again.spec.At) ||
		len(again.spec.Labels) != len(b.spec.Labels) {
		t.Fatalf("%s: got %+v, want %+v", text, again.spec, b.spec)
	}
}
