package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// FuzzCursor: only cursors that a list could have given are accepted.
func FuzzCursor(f *testing.F) {
	given := cursor{
		list: "runs", executing: true, part: "a \"b\"\n%", RunPlace: read.RunPlace{
			ID: 7, Due: 1 << 50, DueNow: 1 << 51, Request: 5, Attempt: 3, Hash: 9,
		},
	}

	f.Add(given.String(), "jobs", true, "", int64(1), int64(2), int64(3), 4, 5)
	f.Add("", "", false, "é\x00\xff", int64(-1), int64(0), int64(1<<62), -4, -5)
	f.Add("cnVucyBmYWxzZSAxIDIgMyA0ICIi", "a", false, "%d %q", int64(0), int64(0), int64(0), 0, 0)
	f.Fuzz(func(t *testing.T, text, list string, executing bool, part string, id, due, request int64, attempt,
		hash int) {
		if c, ok := parseCursor(text); ok && c.String() != text {
			t.Fatalf("%q is taken, and is given as %q", text, c.String())
		}
		if list == "" || strings.ContainsFunc(list, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return // list names come from the code
		}

		place := read.RunPlace{
			ID: id, Due: job.Micros(due), DueNow: job.Micros(-due), Request: request, Attempt: attempt, Hash: hash,
		}
		c := cursor{list: list, executing: executing, part: part, RunPlace: place}
		if !utf8.ValidString(part) {
			return // parts are validated earlier
		}

		back, ok := parseCursor(c.String())
		if !ok || !reflect.DeepEqual(*back, c) {
			t.Fatalf("%+v is given as %q, which reads as %+v, %v", c, c.String(), back, ok)
		}
	})
}

// FuzzQuery sends a query through all readers of parameters.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"app=billing&label=team%3Ddata&limit=20&state=running", "limit=0&limit=1",
		"from=2027-01-31T00:00:00+01:00&to=x", "label=%3D&job_id=9223372036854775808",
		"outcome=failed&q=%ff%fe", "%", ";", "a=b;c=d", "limt=3", "cursor=cnVucyBmYWxzZSAxIDIgMyA0ICIi", "from=" +
			strings.Repeat("9", 300),
	} {
		f.Add(s)
	}

	takes := []parameter{limitParam, pageParam, ofAppParam, ofJobParam, endedParam, dueFromParam, auditKind, labelIs}
	state := wordParam{declared{name: "state"}, []string{running, ended}}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/", RawQuery: raw}, Header: http.Header{}}
		read := func(_ http.ResponseWriter, r *http.Request) error {
			q := newQuery(r)
			limit, id, app, at := q.limit(), q.number(ofJobParam), q.text(ofAppParam), q.instant(dueFromParam)
			label, word, c := q.label(labelIs), q.word(state), q.cursor("runs")
			q.outcomes(endedParam)
			if err := q.err(); err != nil {
				return err
			}

			switch {
			case limit < 1 || limit > maxLimit, id < 0, utf8.RuneCountInString(app) > job.MaxName ||
				!utf8.ValidString(app), len(label) > 1,
				word != "" && word != running && word != ended, c != nil && c.list != "runs", at.IsZero() &&
					q.given("from") != "" && !strings.HasPrefix(q.given("from"), "0001"):
				t.Fatalf("%q: took limit %d, id %d, app %q, label %v, state %q, cursor %+v, from %s", raw, limit, id,
					app, label, word, c, at)
			}

			return nil
		}

		if err := withQuery(append(takes, state), read)(httptest.NewRecorder(), r); err != nil {
			checkProblem(t, err)
		}
	})
}

// FuzzPrecondition: a precondition holds exactly if its list contains the job's tag, the version of
// its definition, or *.
func FuzzPrecondition(f *testing.F) {
	f.Add(`"3.7"`, "", int64(3), int32(7))
	f.Add(`"3"`, "", int64(3), int32(8))
	f.Add(`"1", W/"3.1",*`, `"3"`, int64(3), int32(1))
	f.Add(`3`, `*`, int64(0), int32(0))
	f.Add(`"a,b"`, `W/`, int64(-1), int32(-1))
	f.Fuzz(func(t *testing.T, match, none string, version int64, changes int32) {
		j := &read.Job{Job: job.Job{Version: version, Changes: changes}}
		r := &http.Request{Header: http.Header{ifMatch: {match}, ifNoneMatch: {none}}}
		p, err := preconditionOf(r)
		if err != nil {
			checkProblem(t, err)
			return
		}

		has := func(list string, weak bool) bool {
			for t := range strings.SplitSeq(list, ",") {
				t = strings.TrimSpace(t)
				if strong, is := strings.CutPrefix(t, "W/"); is && weak {
					t = strong
				}
				if t == "*" || t == fmt.Sprintf(`"%d"`, version) || t == fmt.Sprintf(`"%d.%d"`, version, changes) {
					return true
				}
			}

			return false
		}

		want := match != "" && !has(match, false) || none != "" && has(none, true)
		switch err := p.check(j); {
		case (err != nil) != want:
			t.Fatalf("%q and %q at version %d: got %v, want refused %v", match, none, version, err, want)
		case err != nil:
			if q := (*Problem)(nil); !errors.As(err, &q) || q.Status != http.StatusPreconditionFailed ||
				q.Version != version {
				t.Fatalf("got %#v", err)
			}
		}
	})
}

// FuzzHeaders sends headers through all middleware. Requests that pass have one of our hosts, and
// text repeated in answers and logs is short and plain.
func FuzzHeaders(f *testing.F) {
	f.Add("localhost:8610", "id-1", "", "", "key")
	f.Add("evil.example", "a\nb", "http://evil.example", "cross-site", strings.Repeat("k", 300))
	f.Add("[::1]:8610", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "null", "same-origin", "é")
	f.Add("127.1", "", "", "", "")
	f.Add("[::ffff:10.0.0.1]", strings.Repeat("a", 65), "", "", "\x00")
	f.Add("localhost.", "%0d%0a", "", "", " ")

	// a refusal counts even if it cannot be recorded
	away, err := sql.Open("user:secret@tcp(127.0.0.1:1)/x", sql.DefaultTimeouts, 2)
	if err != nil {
		f.Fatal(err)
	}

	f.Cleanup(func() { away.Close() })
	s := New(Config{
		DB: &read.DB{DB: away}, Listen: "127.0.0.1:8610", Hosts: []string{"cron.example"},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Node: "n",
	})

	f.Fuzz(func(t *testing.T, host, id, origin, site, key string) {
		r := httptest.NewRequest(http.MethodGet, "/readyz/none", nil)
		r.Host = host
		for name, value := range map[string]string{requestIDHeader: id, "Origin": origin, "Sec-Fetch-Site": site,
			keyHeader: key, "Traceparent": id, "X-Forwarded-For": host, "Forwarded": host} {
			r.Header.Set(name, value)
		}

		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		got := w.Result()
		const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:="
		if given := got.Header.Get(requestIDHeader); given == "" || len(given) > 64 ||
			strings.Trim(given, plain) != "" {
			t.Fatalf("the answer to %q is called %q", id, given)
		}

		var p Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != got.StatusCode {
			t.Fatalf("got %s, %q", got.Status, w.Body)
		}
		if got.StatusCode == http.StatusForbidden {
			return
		}

		name, _, _ := strings.Cut(strings.TrimSuffix(strings.ToLower(host), "]"), "]:")
		name = strings.TrimPrefix(name, "[")
		if h, port, one := strings.Cut(name, ":"); one && strings.Trim(port, "0123456789") == "" {
			name = h
		}

		a, err := netip.ParseAddr(name)
		if name != "localhost" && name != "cron.example" && (err != nil || !a.Unmap().IsLoopback()) {
			t.Fatalf("%q is served: %s", host, got.Status)
		}

		if q, err := idempotencyKey(r); err != nil {
			checkProblem(t, err)
		} else if len(q) > maxKey || !utf8.ValidString(q) {
			t.Fatalf("the key %q is taken", q)
		}
	})
}

// FuzzApply: a folder's files are read like the body of a request, and never cause a panic.
func FuzzApply(f *testing.F) {
	for _, s := range []string{
		`{"jobs": [{"name": "a", "command": "true", "schedule": "@daily", "version": 3, "paused": true}], "prune": {"app": "x"}, "dry_run": true}`,
		`{"groups": [{"name": "g", "slots": 2}], "calendars": [{"name": "c", "exclude": ["2027-01-01"]}], "jobs": [{}]}`,
		`{"jobs": [1, null, {"id": "1"}], "prune": {"labels": {"a": "b"}}}`, `{"prune": {}}`, `{"jobs": {}}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}

	f.Fuzz(func(t *testing.T, body []byte) {
		want, err := ReadApply(body)
		var p job.Problems
		switch {
		case errors.As(err, &p):
			if len(p) == 0 || len(p) > maxProblems {
				t.Fatalf("%d problems", len(p))
			}
		case err != nil:
			checkProblem(t, err)
		case len(want.Jobs) > job.MaxApplyJobs:
			t.Fatalf("%d jobs", len(want.Jobs))
		}
	})
}
