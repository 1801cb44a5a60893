package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go-crontab/api"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/schedule/edit"
)

// wantStale expects 412 with the version of the job.
func (r *reply) wantStale(version string) {
	r.t.Helper()
	if r.want(412); !strings.Contains(r.body, "problem:stale") || r.object().text("version") != version {
		r.t.Errorf("%s: got %s, want it stale, at version %q", r.what, r.body, version)
	}
}

// TestIfMatch: a change for one version never changes another, on any route.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := "/api/v1/jobs/" + s.create("there", nil).text("id")
	named := "/api/v1/apps/default/jobs/there"
	definition := `{"name": "there", "command": "false", "schedule": "@daily"}`
	for _, c := range []struct{ method, path, body string }{
		{"PUT", one, definition}, {"PUT", named, definition}, {"PATCH", one, `{"command": "false"}`},
		{"PATCH", one, `{"paused": true}`},
		{"POST", one + "/pause", `{}`}, {"POST", one + "/resume", `{}`}, {"POST", one + "/rollback", `{"version": 1}`},
		{"DELETE", one, ""},
	} {
		body := any(c.body)
		if c.body == "" {
			body = nil
		}

		for _, given := range []string{`"2"`, `W/"1"`, `"x", "7"`} { // a weak tag does not permit a change
			s.call(c.method, c.path, body, "If-Match", given).wantStale("1")
		}

		r := s.call(c.method, c.path, body, "If-Match", "1").want(422)
		if !strings.Contains(r.body, `"If-Match"`) || !strings.Contains(r.body, "in quotes") {
			t.Errorf("%s: a tag without quotes: got %s", r.what, r.body)
		}
	}

	if got := s.call("GET", one, nil).want(200); got.header.Get("ETag") != `"1.1"` ||
		got.object().text("command") != "true" {
		t.Errorf("it was changed all the same: %s at %s", got.body, got.header.Get("ETag"))
	}

	// Each change answers with the tag for the next one.
	tag := `"1.1"`
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", one, `{"command": "date"}`}, {"POST", one + "/pause", ""}, {"PUT", one, definition}, {
			"PUT", named, strings.Replace(definition, "daily", "weekly", 1),
		},
		{"POST", one + "/resume", ""}, {"POST", one + "/rollback", `{"version": 1}`},
	} {
		r := s.call(c.method, c.path, c.body, "If-Match", tag).want(200)
		if next := r.header.Get("ETag"); next == tag || !strings.HasPrefix(next, `"`+r.object().text("version")+".") {
			t.Errorf("%s: the tag was %s and is %s", r.what, tag, next)
		}
		s.call(c.method, c.path, c.body, "If-Match", tag).want(412) // the tag belongs to another version now
		tag = r.header.Get("ETag")
	}

	s.call("PATCH", one, `{"command": "a"}`, "If-Match", "*").want(200)
	tag = s.call("PATCH", one, `{"command": "b"}`, "If-Match",
		`"99", `+strings.Replace(tag, `"`, `"0`, 1)+`, *`).want(200).header.Get("ETag")
	s.call("DELETE", one, nil, "If-Match", tag).want(204)
	for _, c := range []struct{ method, path, body string }{{"PUT", one, definition}, {"PATCH", one, `{}`},
		{"POST", one + "/pause", `{}`}} {
		s.call(c.method, c.path, c.body, "If-Match", "*").want(404)
	}
}

// TestUpsertWhereWanted: PUT by name only creates, or only replaces, if the client says so.
func TestUpsertWhereWanted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path, body = "/api/v1/apps/shop/jobs/sync", `{"every": "1h", "command": "true"}`
	s.call("PUT", path, body, "If-Match", "*").wantStale("")
	s.call("PUT", path, body, "If-Match", `"1"`).wantStale("")
	if n := s.count("SELECT COUNT(*) FROM job"); n != 0 {
		t.Fatalf("%d jobs were made that were to be replaced", n)
	}

	made := s.call("PUT", path, body, "If-None-Match", "*").want(201)
	if made.header.Get("ETag") != `"1.1"` || made.header.Get("Location") == "" {
		t.Errorf("got %v", made.header)
	}

	s.call("PUT", path, `{"every": "2h", "command": "true"}`, "If-None-Match", "*").wantStale("1")
	s.call("PUT", path, `{"every": "2h", "command": "true"}`, "If-None-Match", `"1"`).wantStale("1")
	s.call("PUT", path, `{"every": "2h", "command": "true"}`, "If-Match", `"1"`).want(200)
	s.call("PUT", path, body, "If-Match", `"1"`).wantStale("2")
	if r := s.call("PUT", path, body, "If-None-Match", "no").want(422); !strings.Contains(r.body, "If-None-Match") {
		t.Errorf("got %s", r.body)
	}

	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = s.call("PUT", "/api/v1/apps/a/jobs/b",
				object{"schedule": "0 3 * * *", "command": fmt.Sprint("echo ", i)}, "If-None-Match", "*").status
		})
	}

	wg.Wait()
	slices.Sort(statuses)
	if want := []int{201, 412, 412, 412, 412, 412, 412, 412}; !slices.Equal(statuses, want) {
		t.Errorf("eight who make it at once: got %v, want %v", statuses, want)
	}
}

// TestPutWhereWanted: for other named objects, too, PUT only creates or only replaces a version if
// the client says so.
func TestPutWhereWanted(t *testing.T) {
	t.Parallel()
	s := start(t, keyed(t, secret.NewKey()))
	s.call("PUT", "/api/v1/alerts/channels/base", `{"type": "webhook", "url": "https://example.com/base"}`).want(201)
	for what, c := range map[string]struct {
		path, body, other, is string
		versions              bool
	}{
		"secret": {
			"/api/v1/secrets/pg", `{"value": "first-value"}`, `{"value": "other-value"}`,
			"SELECT COUNT(*) FROM audit WHERE kind = 'secret'", false,
		},
		"group": {
			"/api/v1/groups/g", `{"slots": 2}`, `{"slots": 3}`, "SELECT COUNT(*) FROM audit WHERE kind = 'group'",
			false,
		},
		"calendar": {
			"/api/v1/calendars/c", `{"exclude": ["2027-01-01"]}`, `{"exclude": ["2027-01-02"]}`,
			"SELECT COUNT(*) FROM audit WHERE kind = 'calendar'", true,
		},
		"channel": {
			"/api/v1/alerts/channels/x", `{"type": "webhook", "url": "https://example.com/a"}`,
			`{"type": "webhook", "url": "https://example.com/b"}`,
			"SELECT COUNT(*) FROM audit WHERE kind = 'alert_channel' AND name = 'x'", true,
		},
		"rule": {
			"/api/v1/alerts/rules/r", `{"on": ["failed"], "channels": ["base"]}`,
			`{"on": ["lost"], "channels": ["base"]}`, "SELECT COUNT(*) FROM audit WHERE kind = 'alert_rule'", true,
		},
	} {
		if c.versions {
			s.call("PUT", c.path, c.body, "If-Match", "*").wantStale("")
		}

		made := s.call("PUT", c.path, c.body, "If-None-Match", "*")
		if made.status/100 != 2 {
			t.Fatalf("%s: got %d %s", made.what, made.status, made.body)
		}

		for _, body := range []string{c.other, c.body} {
			r := s.call("PUT", c.path, body, "If-None-Match", "*").want(412)
			if want := "A " + what + " with this name already exists"; !strings.Contains(r.body, want) ||
				!strings.Contains(r.body, "problem:stale") {
				t.Errorf("%s: got %s, want %q", r.what, r.body, want)
			}
		}

		if n := s.count(c.is); n != 1 {
			t.Errorf("%s: %d changes, want that it was made", what, n)
		}

		tag := made.header.Get("ETag")
		if !c.versions {
			for name, given := range map[string]string{"If-Match": `"1"`, "If-None-Match": `"1"`} {
				if r := s.call("PUT", c.path, c.other, name, given).want(422); r.complaint(name) == "" {
					t.Errorf("%s: got %s", r.what, r.body)
				}
			}
		} else {
			if got := s.call("GET", c.path, nil).want(200); tag == "" || got.header.Get("ETag") != tag ||
				tag != `"`+got.object().text("version")+`"` {
				t.Errorf("%s: made as %s, is %s: %s", what, tag, got.header.Get("ETag"), got.body)
			}
			s.call("PUT", c.path, c.other, "If-Match", `"99"`).wantStale(strings.Trim(tag, `"`))
			s.call("PUT", c.path, c.other, "If-Match", tag).want(200)
			s.call("PUT", c.path, c.body, "If-Match", tag).want(412)
		}

		if r := s.call("DELETE", c.path, nil, "If-Match", `"1"`).want(422); !strings.Contains(r.complaint("If-Match"),
			"not supported here") {
			t.Errorf("%s: got %s", r.what, r.body)
		}

		s.call("PUT", c.path, c.body).want(200)
		s.call("DELETE", c.path, nil).want(204)

		var wg sync.WaitGroup
		var made8, refused atomic.Int32
		for range 8 {
			wg.Go(func() {
				switch r := s.call("PUT", c.path, c.body, "If-None-Match", "*"); {
				case r.status/100 == 2:
					made8.Add(1)
				case r.status == 412:
					refused.Add(1)
				}
			})
		}

		wg.Wait()
		if made8.Load() != 1 || refused.Load() != 7 {
			t.Errorf("%s: of eight who make it at once %d did, %d were refused", what, made8.Load(), refused.Load())
		}
	}
}

// TestRetentionWhereWanted: of concurrent requests for the first rule of an app, one succeeds.
func TestRetentionWhereWanted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const path = "/api/v1/apps/shop/retention"
	var wg sync.WaitGroup
	var made, refused atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			switch s.call("PUT", path, object{"runs": i + 1}, "If-None-Match", "*").status {
			case 200:
				made.Add(1)
			case 412:
				refused.Add(1)
			}
		})
	}

	wg.Wait()
	if made.Load() != 1 || refused.Load() != 7 {
		t.Errorf("of eight %d made it, %d were refused", made.Load(), refused.Load())
	}

	r := s.call("PUT", "/api/v1/cluster/retention", `{}`, "If-None-Match", "*").want(412)
	if want := "A rule with this name already exists"; !strings.Contains(r.body, want) {
		t.Errorf("of the cluster: got %s, want %q", r.body, want)
	}

	s.call("PUT", path, `{}`).want(200) // this removes it
	s.call("PUT", path, `{"runs": 7}`, "If-None-Match", "*").want(200)
}

// TestIfNoneMatch: a client with the current job gets 304.
func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := "/api/v1/jobs/" + s.create("there", nil).text("id")
	for _, path := range []string{one, "/api/v1/apps/default/jobs/there"} {
		for given, want := range map[string]int{`"1.1"`: 304, `W/"1.1"`: 304, `"7", "1.1"`: 304, "*": 304, `"7"`: 200,
			`"1"`: 200, "": 200} {
			r := s.call("GET", path, nil, "If-None-Match", given).want(want)
			if r.header.Get("ETag") != `"1.1"` || (want == 304) != (r.body == "") {
				t.Errorf("%s with %s: got %q at %s", path, given, r.body, r.header.Get("ETag"))
			}
		}
	}

	s.call("POST", one+"/pause", nil).want(200)
	s.call("GET", one, nil, "If-None-Match", `"1.1"`).want(200)
}

// TestIfMatchOfMany: of many changes for one version, one succeeds.
func TestIfMatchOfMany(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := "/api/v1/jobs/" + s.create("there", nil).text("id")
	for round, path := range []string{one, one + "/pause"} {
		tag := s.call("GET", one, nil).want(200).header.Get("ETag")
		var wg sync.WaitGroup
		statuses := make([]int, 8)
		for i := range statuses {
			wg.Go(func() {
				method, body := "PATCH", object{"command": fmt.Sprint("echo ", i)}
				if round == 1 {
					method, body = "POST", object{"reason": fmt.Sprint(i)}
				}
				statuses[i] = s.call(method, path, body, "If-Match", tag).status
			})
		}

		wg.Wait()
		slices.Sort(statuses)
		if want := []int{200, 412, 412, 412, 412, 412, 412, 412}; !slices.Equal(statuses, want) {
			t.Errorf("%s: got %v, want %v", path, statuses, want)
		}
	}
}

// meddling is an editor where another change of the job comes before each change of definition and
// pause.
type meddling struct {
	api.Editor
	before func()
}

func (m meddling) UpdateAnd(ctx context.Context, id int64, changes int32, spec job.Spec, paused bool) (edit.Done,
	error) {
	m.before()
	return m.Editor.UpdateAnd(ctx, id, changes, spec, paused)
}

// TestNoHalfOfAMatchedChange: definition and pause change together or not at all, even if another
// change comes in between.
func TestNoHalfOfAMatchedChange(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	one := "/api/v1/jobs/" + s.create("there", nil).text("id")
	editor, once := s.cfg.Editor, sync.Once{}
	s.cfg.Editor = func() api.Editor {
		e := editor()
		return meddling{e, func() {
			once.Do(func() {
				if _, err := e.Resume(t.Context(), 1); err != nil {
					t.Error(err)
				}
				if _, err := e.Pause(t.Context(), 1, job.PauseRequest{Reason: "mine"}); err != nil {
					t.Error(err)
				}
			})
		}}
	}

	s.serve()
	s.call("PATCH", one, `{"paused": false, "command": "false"}`, "If-Match", `"1.1"`).want(412)
	if o := s.call("GET", one, nil).object(); o.text("paused") != "true" || o.text("command") != "true" {
		t.Errorf("got %v", o)
	}

	// only about the definition
	s.call("PATCH", one, `{"paused": false, "command": "false"}`, "If-Match", `"1"`).want(200)
}
