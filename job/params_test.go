package job

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func paramSpec(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := DecodeSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	s.Defaults(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))
	return &s
}

// wantParamProblem checks that an error names a field, and says something of it.
func wantParamProblem(t *testing.T, err error, field, says string) {
	t.Helper()
	var p Problems
	if !errors.As(err, &p) {
		t.Errorf("got %v, want a problem of %s", err, field)
		return
	}
	for _, q := range p {
		if q.Field == field && strings.Contains(q.Message, says) {
			return
		}
	}
	t.Errorf("got %v, want a problem of %s with %q", err, field, says)
}

func TestManual(t *testing.T) {
	s := paramSpec(t, `{"name": "j", "manual": true, "command": "true"}`)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := (&Job{Spec: *s}).Status(false, 1); got != Active {
		t.Errorf("status %s", got)
	}
	if words := s.Words(English); !strings.Contains(words, "only when somebody runs it") {
		t.Errorf("in words: %q", words)
	}

	for field, with := range map[string]string{
		"manual": `"schedule": "0 3 * * *"`, "max_fires": `"max_fires": 3`, "jitter": `"jitter": "5m"`,
		"calendars": `"calendars": ["work"]`, "end": `"end": "2030-01-01T00:00:00Z"`,
	} {
		s := paramSpec(t, `{"name": "j", "manual": true, "command": "true", `+with+`}`)
		wantParamProblem(t, s.Validate(), field, "cannot be used with")
	}
}

func TestParamDefinitions(t *testing.T) {
	for _, c := range []struct{ params, field, says string }{
		{`{"day": {"type": "date", "default": "yesterday"}, "n": {"type": "integer", "default": 5, "enum": [5, 7]},
			"key": {"secret": "db"}, "on": {"type": "boolean"}, "x": {"required": true}}`, "", ""},
		{`{"Day": {}}`, "params.Day", "cannot be the name"},
		{`{"n": {"type": "int"}}`, "params.n.type", "not one of"},
		{`{"n": {"type": "integer", "default": "5"}}`, "params.n.default", "of type integer"},
		{`{"n": {"type": "integer", "default": 5.5}}`, "params.n.default", "of type integer"},
		{`{"n": {"type": "integer", "enum": [1, 1]}}`, "params.n.enum[1]", "given twice"},
		{`{"n": {"type": "integer", "default": 3, "enum": [1, 2]}}`, "params.n.default", "one of 1, 2"},
		{`{"d": {"type": "date", "default": "yesterday-3d"}}`, "params.d.default", "of type date"},
		{`{"d": {"default": "x", "required": true}}`, "params.d.required", "cannot be used with default"},
		{`{"d": {"secret": "db", "default": "x"}}`, "params.d.default", "cannot be used with secret"},
		{`{"d": {"secret": "a b"}}`, "params.d.secret", ""},
		{`{"d": {"default": "` + strings.Repeat("x", MaxParamValue+1) + `"}}`, "params.d.default", "bytes long"},
	} {
		err := paramSpec(t, `{"name": "j", "manual": true, "command": "true", "params": `+c.params+`}`).Validate()
		if c.field != "" {
			wantParamProblem(t, err, c.field, c.says)
		} else if err != nil {
			t.Errorf("%s: %v", c.params, err)
		}
	}

	s := paramSpec(t, `{"name": "j", "every": "1h", "command": "true", "params": {"x": {"required": true}}}`)
	wantParamProblem(t, s.Validate(), "params.x.required", "can only be used with manual")

	s = paramSpec(t, `{"name": "j", "every": "1h", "http": {"url": "https://a.example/{{param.day}}"}, "params": {"x": {}}}`)
	wantParamProblem(t, s.Validate(), "http.url", "no such parameter")
	s = paramSpec(t, `{"name": "j", "every": "1h", "http": {"url": "https://a.example/{{param.x}}"}, "params": {"x": {"secret": "k"}}}`)
	if s.Validate() == nil {
		t.Error("a secret in a URL was accepted")
	}
}

func TestCheckParams(t *testing.T) {
	s := paramSpec(t, `{"name": "j", "manual": true, "command": "true", "params": {
		"day": {"type": "date", "required": true}, "n": {"type": "number"}, "mode": {"enum": ["full", "delta"]},
		"key": {"secret": "db"}}}`)
	for _, c := range []struct {
		given       map[string]Value
		field, says string
	}{
		{map[string]Value{"day": `"2026-11-01"`, "n": "1e1"}, "", ""},
		{nil, "params.day", "is missing"},
		{map[string]Value{"dya": `"2026-11-01"`}, "params.dya", "did you mean day?"},
		{map[string]Value{"day": `"2026-11-31"`}, "params.day", "of type date"},
		{map[string]Value{"day": `"today"`}, "params.day", "of type date"},
		{map[string]Value{"day": "5"}, "params.day", "of type date"},
		{map[string]Value{"day": `"2026-11-01"`, "n": `"1"`}, "params.n", "of type number"},
		{map[string]Value{"day": `"2026-11-01"`, "mode": `"half"`}, "params.mode", "must be one of"},
		{map[string]Value{"day": `"2026-11-01"`, "key": `"x"`}, "params.key", "the secret db"},
	} {
		got, err := s.CheckParams(c.given)
		if c.field != "" {
			wantParamProblem(t, err, c.field, c.says)
		} else if err != nil || got["n"] != "10" {
			t.Errorf("%v: got %v, %v", c.given, got, err)
		}
	}
}

// TestParamsOf: defaults of dates count from the day of the due time in the job's zone, and what was
// given is checked once more.
func TestParamsOf(t *testing.T) {
	s := paramSpec(t, `{"name": "j", "manual": true, "timezone": "Asia/Shanghai", "command": "true", "params": {
		"a": {"type": "date", "default": "today"}, "b": {"type": "date", "default": "yesterday"},
		"c": {"type": "date", "default": "today-3d"}, "d": {"type": "date", "default": "today+1d"},
		"e": {"type": "integer", "default": 5}, "f": {}, "k": {"secret": "db"}}}`)
	due := MicrosOf(time.Date(2026, 2, 28, 17, 0, 0, 0, time.UTC)) // 1 March in Shanghai
	got, err := s.ParamsOf(&Given{Params: map[string]Value{"e": "7", "gone": "1"}}, due)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Value{
		"a": `"2026-03-01"`, "b": `"2026-02-28"`, "c": `"2026-02-26"`, "d": `"2026-03-02"`, "e": "7",
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s: got %s, want %s", name, got[name], v)
		}
	}

	_, err = s.ParamsOf(&Given{Params: map[string]Value{"e": `"x"`}}, due)
	if CodeOf(err, "") != ReasonParamInvalid {
		t.Errorf("a value of another type: %v", err)
	}

	kept := ParseGiven((&Given{Params: map[string]Value{"f": textValue("<a> \"ü\""), "e": "7"}}).Text())
	if kept.Params["f"].Text() != "<a> \"ü\"" || kept.Params["f"] != textValue("<a> \"ü\"") || kept.Params["e"] != "7" {
		t.Errorf("stored and read: %+v", kept)
	}
}
