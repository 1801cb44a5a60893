package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/api"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/schedule/edit"
)

// wantSame expects the answer of another request, marked as a repetition.
func (r *reply) wantSame(first *reply) {
	r.t.Helper()
	if r.status != first.status || r.body != first.body || r.header.Get("ETag") != first.header.Get("ETag") ||
		r.header.Get("Location") != first.header.Get("Location") {
		r.t.Errorf("%s again: got %d %s, want %d %s", r.what, r.status, r.body, first.status, first.body)
	}
	if r.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		r.t.Errorf("%s: it is not told which of the two is the repetition", r.what)
	}
}

// TestOnce: each changing POST is carried out once for a key, and a repetition gets the same
// answer.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	for i, c := range []struct{ path, body, undo string }{
		{
			"/api/v1/jobs", `{"name": "new", "command": "true", "schedule": "@daily"}`,
			"DELETE /api/v1/apps/default/jobs/new",
		},
		{"/api/v1/jobs/1/pause", `{"reason": "x"}`, "POST /api/v1/jobs/1/resume"},
		{"/api/v1/jobs/1/resume", `{}`, "POST /api/v1/jobs/1/pause"}, // of a job that is not paused
		{"/api/v1/jobs/1/rollback", `{"version": 1}`, "PATCH /api/v1/jobs/1"},
		{"/api/v1/apply", `{"jobs": [{"name": "applied", "command": "true", "schedule": "@daily"}]}`, ""},
		{"/api/v1/apply", `{"jobs": [], "dry_run": true}`, ""},
		{"/api/v1/calendars", `{"name": "c", "exclude_weekdays": ["sun"]}`, "DELETE /api/v1/calendars/c"},
		{"/api/v1/nodes/other/cordon?absent=ok", `{"reason": "x"}`, "POST /api/v1/nodes/other/uncordon?absent=ok"},
		{"/api/v1/nodes/other/drain?absent=ok", `{}`, "POST /api/v1/nodes/other/uncordon?absent=ok"},
		{"/api/v1/nodes/other/uncordon?absent=ok", `{}`, ""},
		{"/api/v1/handlers/mail/disable", `{}`, "POST /api/v1/handlers/mail/enable"},
		{"/api/v1/handlers/mail/enable", `{}`, ""},
		{"/api/v1/apps/ops/pause?absent=ok", `{"reason": "x"}`, "POST /api/v1/apps/ops/resume?absent=ok"},
		{"/api/v1/apps/ops/resume?absent=ok", `{}`, ""},
		{"/api/v1/cluster/pause", `{"reason": "x"}`, "POST /api/v1/cluster/resume"},
		{"/api/v1/cluster/resume", `{}`, ""},
		{"/api/v1/tokens", `{"name": "ci", "role": "viewer"}`, ""},
		{"/api/v1/alerts/silences", `{"until": "2h", "reason": "x"}`, ""},
	} {
		key := fmt.Sprintf("key %d", i)
		first := s.call("POST", c.path, c.body, "Idempotency-Key", key)
		if first.status >= 300 {
			t.Fatalf("%s: got %d %s", c.path, first.status, first.body)
		}

		if method, path, ok := strings.Cut(c.undo, " "); ok {
			if path == "/api/v1/apps/default/jobs/new" {
				path = "/api/v1/jobs/" + first.object().text("id")
			}
			if r := s.call(method, path, map[string]any{"PATCH": `{"command": "false"}`}[method]); r.status >= 300 {
				t.Fatalf("%s: got %d %s", c.undo, r.status, r.body)
			}
		}

		before := s.counts()
		s.call("POST", c.path, c.body, "Idempotency-Key", key).wantSame(first)
		if after := s.counts(); after != before {
			t.Errorf("%s again: it was %s and is %s", c.path, before, after)
		}

		if r := s.call("POST", c.path, c.body+" ", "Idempotency-Key", key); r.status != 409 ||
			!strings.Contains(r.body, "key-reused") {
			t.Errorf("%s with another body: got %d %s", c.path, r.status, r.body)
		}
	}

	if r := s.call("POST", "/api/v1/jobs/1/pause", `{"reason": "x"}`, "Idempotency-Key", "key 2"); r.status != 409 {
		t.Errorf("a key of another route: got %d %s", r.status, r.body)
	}

	if r := s.as(s.newToken("other", auth.Admin)).call("POST", "/api/v1/jobs/1/pause", `{"reason": "x"}`,
		"Idempotency-Key", "key 1"); r.status != 200 || r.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("somebody else's key: got %d %s, want not what that was answered", r.status, r.body)
	}

	if r := s.call("POST", "/api/v1/jobs/1/pause", `{"reason": "x"}`, "Idempotency-Key", "key 1", "If-Match",
		`"1"`); r.status != 409 {
		t.Errorf("another version: got %d %s", r.status, r.body)
	}
}

// TestKeysBelongToCallers: callers may choose equal keys without colliding, even callers of the
// same name. A browser signed in with a token is the same caller as the token.
func TestKeysBelongToCallers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", object{"schedule": "0 * * * *"})
	made := s.call("POST", "/api/v1/tokens", object{"name": "twin", "role": "admin"}).want(201).object()
	twin := s.as(made.text("token"))
	login := s.as("").call("POST", "/api/v1/login", object{"token": twin.token}).want(200).login()
	asks := []struct{ path, body string }{
		{"/api/v1/jobs/1/pause", `{"reason": "x"}`},
		{"/api/v1/jobs/1/run", `{}`},
		{"/api/v1/jobs/1/backfill", `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T03:00:00Z"}`},
	}

	firsts := make([]*reply, len(asks))
	for i, ask := range asks {
		key := fmt.Sprint("k", i)
		first := twin.call("POST", ask.path, ask.body, "Idempotency-Key", key)
		firsts[i] = first
		again := s.as("").call("POST", ask.path, ask.body, append([]string{"Idempotency-Key", key}, login...)...)
		if first.status >= 300 || again.status != first.status ||
			again.object().text("id") != first.object().text("id") ||
			again.object().text("due") != first.object().text("due") {
			t.Errorf("%s by its own browser: got %d %s, want %d %s", ask.path, again.status, again.body, first.status,
				first.body)
		}
	}

	s.call("DELETE", "/api/v1/tokens/"+made.text("id"), nil).want(204)
	for who, token := range map[string]string{"another of its name": s.newToken("twin", auth.Admin),
		"another": s.token} {
		for i, ask := range asks {
			caller, key := s.as(token), fmt.Sprint("k", i)
			r := caller.call("POST", ask.path, ask.body, "Idempotency-Key", key)
			if r.status != firsts[i].status || r.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s by %s: got %d %s, want what it asks for", ask.path, who, r.status, r.body)
			}
			if i > 0 && same(r, firsts[i]) {
				t.Errorf("%s by %s: got %s, which another caller has asked for", ask.path, who, r.body)
			}
			if again := caller.call("POST", ask.path, ask.body, "Idempotency-Key", key); i > 0 && !same(again, r) {
				t.Errorf("%s by %s again: got %s, want %s", ask.path, who, again.body, r.body)
			}

			if other := caller.call("POST", ask.path, ask.body+" ", "Idempotency-Key", key); i == 0 &&
				(other.status != 409 || !strings.Contains(other.body, "key-reused")) {
				t.Errorf("%s by %s with another body: got %d %s", ask.path, who, other.status, other.body)
			}
		}
	}
}

// same reports whether two answers are about the same run or backfill.
func same(a, b *reply) bool {
	x, y := a.object(), b.object()
	return x.text("id") == y.text("id") && x.text("request") == y.text("request")
}

// TestKeysAreNotTaken: the operator of one app uses the key that another app's pipeline is going to
// use.
func TestKeysAreNotTaken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", object{"app": "alpha", "schedule": "0 * * * *"})
	alpha, beta := s.as(s.newToken("alpha-op", auth.Operator, "alpha")), s.as(s.newToken("beta-ci", auth.Admin, "beta"))
	alpha.call("POST", "/api/v1/jobs/1/run", `{}`, "Idempotency-Key", "nightly-2027-01-31").want(202)

	body := object{"app": "beta", "name": "nightly", "schedule": "@daily", "command": "true"}
	first := beta.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "nightly-2027-01-31").want(201)
	again := beta.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "nightly-2027-01-31").want(201)
	again.wantSame(first)
	body["command"] = "false"
	if r := beta.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "nightly-2027-01-31"); r.status != 409 ||
		!strings.Contains(r.body, "key-reused") {
		t.Errorf("another body of the same caller: got %d %s", r.status, r.body)
	}
}

// TestBackfillUpToNow: without an end the range ends now, by MySQL's clock and not the client's.
// The repeated request gets the same backfill.
func TestBackfillUpToNow(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("hourly", object{"schedule": "0 * * * *"})
	now := s.node.Now()
	body := object{"from": now.Add(-3 * time.Hour).Format(time.RFC3339)}
	first := s.call("POST", "/api/v1/jobs/1/backfill", body, "Idempotency-Key", "k").want(202).object()
	if to, err := time.Parse(time.RFC3339, first.text("to")); err != nil || to.Before(now) ||
		first.text("total") != "3" {
		t.Errorf("got %v", first)
	}

	time.Sleep(10 * time.Millisecond)
	if again := s.call("POST", "/api/v1/jobs/1/backfill", body, "Idempotency-Key",
		"k").want(202).object(); again.text("id") != first.text("id") {
		t.Errorf("the same request is another backfill: %v", again)
	}

	ahead := now.Add(time.Hour).Format(time.RFC3339)
	if r := s.call("POST", "/api/v1/jobs/1/backfill",
		object{"from": ahead}).want(422); !strings.Contains(r.complaint("from"), "in the future") {
		t.Errorf("got %s", r.body)
	}

	if r := s.call("POST", "/api/v1/jobs/1/backfill",
		object{"from": first.text("from"), "to": ahead}).want(422); !strings.Contains(r.complaint("to"), "in the future") {
		t.Errorf("got %s", r.body)
	}
}

// TestRefusedIsNotRemembered: a refused request can be sent again with its key after its cause is
// fixed.
func TestRefusedIsNotRemembered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("taken", nil)
	const body = `{"name": "taken", "command": "true", "schedule": "@daily"}`
	s.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "k").want(409)
	s.call("POST", "/api/v1/jobs", `{"name": "taken"}`, "Idempotency-Key", "k").want(422)
	s.call("DELETE", "/api/v1/jobs/1", nil).want(204)
	first := s.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "k").want(201)
	s.call("POST", "/api/v1/jobs", body, "Idempotency-Key", "k").wantSame(first)
	if n := s.count("SELECT COUNT(*) FROM audit WHERE action = 'create' AND kind = 'job'"); n != 2 {
		t.Errorf("%d lines of creations, want 2", n)
	}
}

// TestOnceAtOnce: of many equal concurrent requests one is carried out, and all get its answer.
func TestOnceAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var wg sync.WaitGroup
	replies := make([]*reply, 8)
	for i := range replies {
		wg.Go(func() {
			replies[i] = s.call("POST", "/api/v1/jobs", `{"name": "new", "command": "true", "schedule": "@daily"}`,
				"Idempotency-Key", "k")
		})
	}

	wg.Wait()
	for _, r := range replies {
		if r.status != 201 || r.body != replies[0].body {
			t.Errorf("got %d %s, and %d %s", r.status, r.body, replies[0].status, replies[0].body)
		}
	}

	if n := s.count("SELECT COUNT(*) FROM job"); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// TestOnceWithoutAnAnswer: the node died after the change, or the client disconnected. The change
// is not made again.
func TestOnceWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	first := s.call("POST", "/api/v1/jobs", `{"name": "new", "command": "true", "schedule": "@daily"}`,
		"Idempotency-Key", "create").want(201)
	token := s.call("POST", "/api/v1/tokens", `{"name": "ci", "role": "viewer"}`, "Idempotency-Key", "token").want(201)
	calendar := s.call("POST", "/api/v1/calendars", `{"name": "c", "exclude": ["2027-01-01"]}`, "Idempotency-Key",
		"calendar").want(201)
	paused := s.call("POST", "/api/v1/jobs/1/pause", nil, "Idempotency-Key", "pause").want(200)
	if _, err := s.db.Raw().Exec("UPDATE request SET status = 0, answer = NULL, header = ''"); err != nil {
		t.Fatal(err)
	}

	before := s.count("SELECT COUNT(*) FROM audit")
	var wg sync.WaitGroup
	wg.Go(func() {
		r := s.call("POST", "/api/v1/jobs", `{"name": "new", "command": "true", "schedule": "@daily"}`,
			"Idempotency-Key", "create")
		if r.status != 201 || r.object().text("id") != first.object().text("id") ||
			r.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("the creation again: got %d %s", r.status, r.body)
		}
	})

	wg.Go(func() {
		r := s.call("POST", "/api/v1/calendars", `{"name": "c", "exclude": ["2027-01-01"]}`, "Idempotency-Key",
			"calendar")
		if r.status != 201 || r.body != calendar.body || r.header.Get("Location") != calendar.header.Get("Location") {
			t.Errorf("the calendar again: got %d %s", r.status, r.body)
		}
	})

	wg.Go(func() {
		r := s.call("POST", "/api/v1/tokens", `{"name": "ci", "role": "viewer"}`, "Idempotency-Key", "token")
		if r.status != 409 || !strings.Contains(r.body, "Revoke the token") ||
			strings.Contains(r.body, token.object().text("token")) {
			t.Errorf("the token again: got %d %s", r.status, r.body)
		}
	})

	wg.Go(func() {
		if r := s.call("POST", "/api/v1/jobs/1/pause", nil, "Idempotency-Key", "pause"); r.status != 200 ||
			r.header.Get("ETag") != paused.header.Get("ETag") {
			t.Errorf("the pause again: got %d %s", r.status, r.body)
		}
	})

	wg.Wait()
	if after := s.count("SELECT COUNT(*) FROM audit"); after != before || s.count("SELECT COUNT(*) FROM job") != 1 {
		t.Errorf("it was made again: %d lines of the audit, and then %d", before, after)
	}
}

// slow is an editor whose Pause is done before it is answered.
type slow struct {
	api.Editor
	done, answer chan struct{}
}

func (e slow) Pause(ctx context.Context, id int64, p job.PauseRequest) (edit.Done, error) {
	done, err := e.Editor.Pause(ctx, id, p)
	close(e.done)
	<-e.answer
	return done, err
}

// TestOnceAndTheClientHangsUp: the answer is kept for a repetition.
func TestOnceAndTheClientHangsUp(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	editor, e := s.cfg.Editor, slow{done: make(chan struct{}), answer: make(chan struct{})}
	s.cfg.Editor = func() api.Editor { e.Editor = editor(); return e }
	s.serve()
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/api/v1/jobs/1/pause", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}

	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Idempotency-Key", "k")
	gone := make(chan error, 1)
	go func() {
		resp, err := s.http.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		gone <- err
	}()

	<-e.done
	hangUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}

	time.Sleep(50 * time.Millisecond) // until the server notices
	close(e.answer)
	await(t, "the answer is kept", 10*time.Second, func() bool {
		return s.count("SELECT COUNT(*) FROM request WHERE status = 200") == 1
	})
	s.cfg.Editor = editor
	s.serve()
	if r := s.call("POST", "/api/v1/jobs/1/pause", `{}`, "Idempotency-Key",
		"k").want(200); r.header.Get("Idempotency-Replayed") != "true" || r.object().text("paused") != "true" {
		t.Errorf("got %s", r.body)
	}
}

// TestTokenOnce: the text of a new token is kept so that only the original caller can read it.
func TestTokenOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const body = `{"name": "ci", "role": "viewer"}`
	first := s.call("POST", "/api/v1/tokens", body, "Idempotency-Key", "k").want(201)
	s.call("POST", "/api/v1/tokens", body, "Idempotency-Key", "k").wantSame(first)
	token := first.object().text("token")
	if n := s.count(
		"SELECT COUNT(*) FROM request WHERE INSTR(answer, ?) > 0 OR INSTR(answer, 'token') > 0 OR INSTR(header, ?) > 0",
		token, token); n != 0 {
		t.Error("the text of a token is kept as it is")
	}

	s.as(token).call("GET", "/api/v1/me", nil).want(200)
	// Another admin of the same name, after the first one's token was replaced, is not the original
	// caller.
	again, err := auth.Issuer{DB: s.db.DB}.Bootstrap(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}

	r := s.as(again).call("POST", "/api/v1/tokens", body, "Idempotency-Key", "k")
	if r.status != 409 || strings.Contains(r.body, token) {
		t.Errorf("got %d %s", r.status, r.body)
	}
	if n := s.count("SELECT COUNT(*) FROM api_token WHERE name = 'ci'"); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

// TestRunOnceOfAJobThatIsGone: the repetition gets the earlier answer.
func TestRunOnceOfAJobThatIsGone(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	first := s.call("POST", "/api/v1/jobs/1/run", nil, "Idempotency-Key", "k").want(202)
	s.call("DELETE", "/api/v1/jobs/1", nil).want(204)
	if r := s.call("POST", "/api/v1/jobs/1/run", nil, "Idempotency-Key", "k").want(202); r.body != first.body {
		t.Errorf("got %s, want %s", r.body, first.body)
	}
}

// TestMatchedOnceAtOnce: the second request finds the job at another version, and still gets the
// answer of the first.
func TestMatchedOnceAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.create("there", nil)
	var wg sync.WaitGroup
	replies := make([]*reply, 6)
	for i := range replies {
		wg.Go(func() {
			replies[i] = s.call("POST", "/api/v1/jobs/1/pause", `{"reason": "x"}`, "Idempotency-Key", "k", "If-Match",
				`"1.1"`)
		})
	}

	wg.Wait()
	for _, r := range replies {
		if r.status != 200 || r.header.Get("ETag") != `"1.2"` {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
}
