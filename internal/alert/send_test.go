package alert

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"

	"github.com/google/uuid"
)

// message inserts a due message to a channel.
func (f *fixture) message(channel string) int64 {
	f.Helper()
	row, err := DefinitionNamed(f.db.Reader(f.Context()), ChannelTable, channel)
	if err != nil {
		f.Fatal(err)
	}
	items, _ := json.Marshal([]job.AlertItem{{What: "fired", Event: job.AlertFailed, Severity: "error", AlertID: "7",
		App: "shop", Job: "a", Summary: "shop/a failed", At: f.now.String(), Since: f.now.String(), Seen: 1}})
	d := DeliveryRow{Key: uuid.New(), Kind: DeliveryOfAlert, ChannelID: row.ID, Channel: channel, Rule: "ops",
		NextAt: f.now, Events: 1, Items: string(items), Created: f.now, Updated: f.now}
	if err := f.db.Tx(f.Context(), func(tx *sql.Tx) error { return insertDelivery(tx, &d) }); err != nil {
		f.Fatal(err)
	}
	return d.ID
}

func (f *fixture) delivery(id int64) (state, said string, attempts int, next job.Micros) {
	f.Helper()
	rows, _, err := Deliveries(f.db.Reader(f.Context()), DeliveryFilter{After: &read.ListPlace{ID: id + 1}, Limit: 1})
	if err != nil || len(rows) != 1 || rows[0].ID != id {
		f.Fatalf("message %d: %v, %v", id, rows, err)
	}
	return rows[0].State.String(), rows[0].Said, rows[0].Attempts, rows[0].NextAt
}

// TestOneSender: if three nodes look at the same time, only one sends each message.
func TestOneSender(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	for _, name := range []string{"a", "b", "c"} {
		f.channel(job.AlertChannel{Name: name, Type: job.ChannelWebhook, URL: h.URL, Rate: 600})
	}

	for range 20 {
		for _, name := range []string{"a", "b", "c"} {
			f.message(name)
		}
	}

	var wg sync.WaitGroup
	for range 3 {
		s := f.sender(f.session())
		wg.Go(func() {
			for range 5 {
				if _, err := s.look(t.Context(), f.now); err != nil {
					t.Error(err)
				}
				s.lanes.Wait()
			}
		})
	}

	wg.Wait()
	keys := map[string]int{}
	for _, m := range h.seen() {
		keys[m.Key]++
	}

	if len(keys) != 60 || len(h.seen()) != 60 {
		t.Errorf("got %d messages with %d keys, want 60", len(h.seen()), len(keys))
	}

	f.want("sent with one try", 60, "SELECT COUNT(*) FROM delivery WHERE state = 2 AND attempts = 1")
}

// TestSenderDies: another node sends the messages that a dead node had claimed, with the same keys.
func TestSenderDies(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL})
	id := f.message("hook")
	dead := f.session()
	rows, err := dueDeliveries(f.db.Reader(t.Context()), f.now, busyLanes{}, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}

	claim := func(s *fakeSession) (d DeliveryRow, err error) {
		err = f.db.Tx(t.Context(), func(tx *sql.Tx) error {
			d, err = claimDelivery(tx, &rows[0], s.id, f.now, f.now+25*second)
			return err
		})
		return d, err
	}

	claimed, err := claim(dead)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := claim(f.session()); err != sql.ErrMoved {
		t.Errorf("a second claim: got %v, want %v", err, sql.ErrMoved)
	}

	s := f.sender(f.session())
	f.send(s)
	if len(h.seen()) != 0 {
		t.Fatal("it is sent while the node that claimed it lives")
	}

	f.exec("DELETE FROM session WHERE id = ?", dead.id[:])
	f.send(s)
	if m := h.seen(); len(m) != 1 || m[0].Key != fmt.Sprintf("%x", claimed.Key) {
		t.Fatalf("got %v, want the message once", m)
	}

	if state, _, attempts, _ := f.delivery(id); state != "sent" || attempts != 2 {
		t.Errorf("got %s after %d tries, want sent after 2", state, attempts)
	}

	// The dead node was only stopped and continues; its writes change nothing.
	err = f.db.Tx(t.Context(), func(tx *sql.Tx) error {
		ok, err := settleDelivery(tx, &claimed, dead.id, DeliveryFailed, f.now, f.now, "late")
		if ok {
			t.Error("a node that was overtaken settles")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if state, _, _, _ := f.delivery(id); state != "sent" {
		t.Errorf("got %s, want sent", state)
	}

	// A message becomes free after a while if its node is alive but hangs.
	id = f.message("hook")
	if rows, err = dueDeliveries(f.db.Reader(t.Context()), f.now, busyLanes{}, 10); err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}

	if _, err := claim(f.session()); err != nil {
		t.Fatal(err)
	}

	f.now += 26 * second
	f.send(s)
	if state, _, attempts, _ := f.delivery(id); state != "sent" || attempts != 2 {
		t.Errorf("got %s after %d tries, want sent after 2", state, attempts)
	}
}

// TestAnswers: the answer decides the state of the message.
func TestAnswers(t *testing.T) {
	f := setUp(t)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	served := func(status int, say string, header ...string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			fmt.Fprint(w, say)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { silent.Close() })
	n := 0
	for name, c := range map[string]struct {
		channel     job.AlertChannel
		state, said string
		wait        job.Micros
	}{
		"taken": {job.AlertChannel{Type: job.ChannelWebhook, URL: served(200, "thanks")}, "sent",
			"200 OK thanks", 0},
		"nobody listens": {job.AlertChannel{Type: job.ChannelWebhook, URL: down.URL}, "pending", "refused",
			10 * second},
		"it hangs": {job.AlertChannel{Type: job.ChannelWebhook, URL: "http://" + silent.Addr().String(),
			Timeout: job.Duration(time.Second)}, "pending", "no response in time", 10 * second},
		"trouble there": {job.AlertChannel{Type: job.ChannelSlack, URL: served(503, "try again")}, "pending",
			"503 Service Unavailable try again", 10 * second},
		"too many": {job.AlertChannel{Type: job.ChannelSlack, URL: served(429, "", "Retry-After", "77")},
			"pending", "429", 77 * second},
		"not wanted": {job.AlertChannel{Type: job.ChannelSlack, URL: served(404, "no_service")}, "failed",
			"404 Not Found no_service", 0},
		"elsewhere": {job.AlertChannel{Type: job.ChannelSlack,
			URL: served(302, "", "Location", "http://127.0.0.1:1/")}, "failed", "redirects are not followed", 0},
		"200 that means no": {job.AlertChannel{Type: job.ChannelWeCom,
			URL: served(200, `{"errcode":93000,"errmsg":"invalid webhook url"}`)}, "pending",
			"errcode 93000: invalid webhook url", 10 * second},
		"200 that means yes": {job.AlertChannel{Type: job.ChannelDingTalk,
			URL: served(200, `{"errcode":0,"errmsg":"ok"}`), Sign: "{{secret.s}}"}, "sent", "200 OK", 0},
		"a bot that wants no": {job.AlertChannel{Type: job.ChannelFeishu, URL: served(200,
			`{"code":19021,"msg":"sign match fail"}`)}, "pending", "code 19021: sign match fail", 10 * second},
		"a secret in the answer": {job.AlertChannel{Type: job.ChannelWebhook, URL: served(400, "who is hunter22?"),
			Headers: map[string]string{"Authorization": "Bearer {{secret.s}}"}}, "failed", "who is ***?", 0},
		"a secret in disguise": {job.AlertChannel{Type: job.ChannelWebhook, URL: served(400, "who is aHVudGVyMjI=?"),
			Headers: map[string]string{"Authorization": "Bearer {{secret.s}}"}}, "failed", "who is ***I=?", 0},
		"a url that is none": {job.AlertChannel{Type: job.ChannelSlack, URL: "{{secret.s}}"}, "failed", "is not a valid URL",
			0},
		"nor is a long one": {job.AlertChannel{Type: job.ChannelSlack, URL: "{{secret.address}}"}, "failed",
			`secret "address"`, 0},
		"much is answered": {job.AlertChannel{Type: job.ChannelWebhook,
			URL: served(200, strings.Repeat("x", 1<<20))}, "sent", "xxx", 0},
	} {
		n++
		c.channel.Name = fmt.Sprint("c", n)
		f.channel(c.channel)
		id := f.message(c.channel.Name)
		f.send(f.sender(f.session()))
		state, said, attempts, next := f.delivery(id)
		if state != c.state || !strings.Contains(said, c.said) || strings.Contains(said, "3f9a") || attempts != 1 ||
			state == "pending" && next != f.now+c.wait || len(said) > 500 {
			t.Errorf("%s: got %s after %d tries, %q, the next one after %d s; want %s, %q, %d s", name, state, attempts,
				said, (next-f.now)/second, c.state, c.said, c.wait/second)
		}
	}
}

// TestTries: a message is retried with growing pauses, and finally given up.
func TestTries(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	h.answer = func(int) int { return 500 }
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL})
	id := f.message("hook")
	s := f.sender(f.session())
	for n := 1; n < maxTries; n++ {
		f.send(s)
		state, _, attempts, next := f.delivery(id)
		if state != "pending" || attempts != n || next <= f.now {
			t.Fatalf("try %d: got %s after %d, next at %d, now %d", n, state, attempts, next, f.now)
		}
		f.send(s)
		f.now = next
	}

	f.send(s)
	if state, _, attempts, _ := f.delivery(id); state != "failed" || attempts != maxTries {
		t.Errorf("got %s after %d tries, want failed after %d", state, attempts, maxTries)
	}

	keys := map[string]bool{}
	for _, m := range h.seen() {
		keys[m.Key] = true
	}

	if len(h.seen()) != maxTries || len(keys) != 1 {
		t.Errorf("got %d messages with %d keys, want %d with one", len(h.seen()), len(keys), maxTries)
	}

	old := f.message("hook")
	f.now += 25 * 3600 * second
	f.send(s)
	if state, said, _, _ := f.delivery(old); state != "suppressed" || !strings.Contains(said, "waited") {
		t.Errorf("an old one: got %s, %s", state, said)
	}
}

// TestOneHangs: a hanging channel does not delay another one.
func TestOneHangs(t *testing.T) {
	f := setUp(t)
	entered, release := make(chan struct{}, 10), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))

	t.Cleanup(slow.Close)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "slow", Type: job.ChannelWebhook, URL: slow.URL,
		Timeout: job.Duration(30 * time.Second)})
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL})
	f.message("slow")
	f.message("slow")
	s := f.sender(f.session())
	if _, err := s.look(t.Context(), f.now); err != nil {
		t.Fatal(err)
	}

	<-entered
	f.message("hook")
	for len(h.seen()) == 0 {
		if _, err := s.look(t.Context(), f.now); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // the other lane is still sending
	}

	if len(entered) != 0 {
		t.Error("the channel that hangs is asked twice at once")
	}

	close(release)
	s.lanes.Wait()
	f.want("sent", 3, "SELECT COUNT(*) FROM delivery WHERE state = 2")
}

// TestShapes: each type of channel gets its own format.
func TestShapes(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	for _, c := range []job.AlertChannel{
		{Name: "slack", Type: job.ChannelSlack, URL: h.URL + "/slack"},
		{Name: "feishu", Type: job.ChannelFeishu, URL: h.URL + "/feishu", Sign: "{{secret.s}}"},
		{Name: "ding", Type: job.ChannelDingTalk, URL: h.URL + "/ding?access_token=1", Sign: "{{secret.s}}"},
		{Name: "wecom", Type: job.ChannelWeCom, URL: h.URL + "/wecom"},
		{Name: "pager", Type: job.ChannelPagerDuty, URL: h.URL + "/pager", RoutingKey: "{{secret.s}}"},
		{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/hook", Sign: "{{secret.s}}",
			Headers: map[string]string{"X-Team": "a", "Authorization": "Bearer {{secret.s}}"}},
		{Name: "own", Type: job.ChannelWebhook, URL: h.URL + "/own",
			Body: `{"t": {{json .Title}}, "n": {{len .Items}}}`},
		{Name: "bad", Type: job.ChannelWebhook, URL: h.URL + "/bad", Body: `{{(index .Items 99).App}}`},
	} {
		f.channel(c)
		f.message(c.Name)
	}

	s, said := f.sender(f.session()), &written{}
	s.Log = slog.New(slog.NewTextHandler(said, nil))
	f.send(s)
	f.want("sent", 8, "SELECT COUNT(*) FROM delivery WHERE state = 2")
	f.want("templates that failed", 1, "SELECT template_failures FROM alert_work WHERE id = 1")
	if log := said.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "an alert template failed") ||
		!strings.Contains(log, "the body of the channel bad: ") || !strings.Contains(log, "index out of range") {
		t.Errorf("the log has %q, want one line of the template that failed", log)
	}

	for i, path := range h.paths {
		raw, header := h.raw[i], h.header[i]
		want := ""
		switch name := strings.TrimLeft(strings.SplitN(strings.TrimPrefix(path, "POST "), "?", 2)[0], "/"); name {
		case "slack":
			want = `{"text":"ALERT shop/a failed`
		case "feishu":
			want = `"sign":"`
		case "ding":
			want = `{"msgtype":"text"`
			if !strings.Contains(path, "access_token=1&sign=") || !strings.Contains(path, "&timestamp=") {
				t.Errorf("got %s", path)
			}
		case "wecom":
			want = `{"msgtype":"text","text":{"content":"ALERT`
		case "pager":
			want = `"dedup_key":"go-crontab-7-`
			if !strings.Contains(raw, `"routing_key":"hunter22"`) ||
				!strings.Contains(raw, `"event_action":"trigger"`) {
				t.Errorf("got %s", raw)
			}
		case "hook":
			want = `"source":"go-crontab"`
			if got := header.Get("X-Signed"); !strings.HasPrefix(got, "hunter22 ") ||
				header.Get("Authorization") != "Bearer hunter22" {
				t.Errorf("got %v", header)
			}
		case "own":
			want = `{"t": "ALERT shop/a failed", "n": 1}`
		case "bad":
			want = `"source":"go-crontab"`
		}
		if want == "" || !strings.Contains(raw, want) {
			t.Errorf("%s: got %s, want %s in it", path, raw, want)
		}
	}
}

// test sends a test message to a saved channel.
func (f *fixture) test(o *Outside, channel string) (Tested, error) {
	f.Helper()
	s, err := f.store().SampleOf(f.Context(), channel)
	if err != nil {
		f.Fatal(err)
	}
	return o.Test(f.Context(), &s, f.now)
}

// TestTestOfChannel: a test returns the answer of the channel.
func TestTestOfChannel(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	h.say = "hello"
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Disabled: true})
	o := f.sender(f.session()).Outside
	got, err := f.test(o, "hook")
	if err != nil || !got.Sent || got.Said != "200 OK hello" {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := f.store().RecordTest(t.Context(), &got); err != nil {
		t.Fatal(err)
	}

	f.want("written down", 1, "SELECT COUNT(*) FROM delivery WHERE kind = 'test' AND state = 2")
	f.want("in the audit", 1, "SELECT COUNT(*) FROM audit WHERE action = 'test' AND name = 'hook'")
	h.answer = func(int) int { return 403 }
	if got, err = f.test(o, "hook"); err != nil || got.Sent ||
		!strings.Contains(got.Said, "403") {
		t.Errorf("got %+v, %v", got, err)
	}
	o.cfg.PublicURL = "https://cron.example.com"
	rule := job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}}
	samples, err := f.store().SamplesOfRule(t.Context(), rule)
	if err != nil {
		t.Fatal(err)
	}
	h.answer = nil
	if _, err = o.Test(t.Context(), &samples[0], f.now); err != nil {
		t.Fatal(err)
	}
	if it := h.seen()[2].Items[0]; it.URL != "https://cron.example.com/alerts" || it.Command != "go-crontab alert ls" {
		t.Errorf("a test of a rule: got %+v, want what an alert has", it)
	}
	if _, err = f.store().SampleOf(t.Context(), "none"); err != sql.ErrNotFound {
		t.Errorf("got %v, want %v", err, sql.ErrNotFound)
	}

	h.answer = nil
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Body: `{{(index .Items 99).App}}`})
	before := len(h.seen())
	if got, err = f.test(o, "hook"); err != nil || got.Sent ||
		!strings.Contains(got.Said, "the body template failed: ") ||
		!strings.Contains(got.Said, "index out of range") || len(h.seen()) != before {
		t.Errorf("got %+v, %v, and %d messages; want the template found, and nothing sent", got, err,
			len(h.seen())-before)
	}
}

// TestTestOfPager: a test resolves the incident that it opens.
func TestTestOfPager(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.pager("pager", h.URL+"/pager")
	o := f.sender(f.session()).Outside
	got, err := f.test(o, "pager")
	if err != nil || !got.Sent || got.Said != "200 OK; the incident is resolved" {
		t.Errorf("got %+v, %v", got, err)
	}

	if actions := h.events("/pager"); !slices.Equal(actions, []string{"trigger", "resolve"}) {
		t.Fatalf("got %q", actions)
	}

	incident := regexp.MustCompile(`"dedup_key":"[^"]+"`)
	if first, second := incident.FindString(h.raw[0]), incident.FindString(h.raw[1]); first != second ||
		!strings.HasPrefix(first, `"dedup_key":"go-crontab-test-`) {
		t.Errorf("it opens %s and resolves %s", first, second)
	}

	if h.header[0].Get("Idempotency-Key") == h.header[1].Get("Idempotency-Key") {
		t.Error("who takes each message once drops the second")
	}

	h.answer = func(n int) int {
		if n%2 == 0 {
			return 500
		}
		return 202
	}
	if got, err = f.test(o, "pager"); err != nil || !got.Sent ||
		!strings.Contains(got.Said, "the incident stays open: 500") {
		t.Errorf("got %+v, %v", got, err)
	}

	h.answer = func(int) int { return 400 }
	before := len(h.raw)
	if got, err = f.test(o, "pager"); err != nil || got.Sent || len(h.raw) != before+1 {
		t.Errorf("got %+v, %v, after %d calls; want nothing resolved that was not opened", got, err, len(h.raw)-before)
	}
}

// TestPings: the job's monitor is called with the latest end of a due time.
func TestPings(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	a := f.job("shop", "a", `,"ping":{"url":"`+h.URL+`/ok","fail_url":"`+h.URL+`/fail"}`)
	b := f.job("shop", "b", `,"ping":{"url":"`+h.URL+`/b"}`)
	f.pinged(a, b)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.run(a, job.Succeeded, 0)
	f.run(b, job.Failed, 0)
	f.step(e)
	f.send(send)
	f.run(a, job.TimedOut, 0)
	f.run(b, job.Succeeded, 0)
	f.run(b, job.Skipped, 0)
	f.step(e)
	f.send(send)
	got := slices.Sorted(slices.Values(h.paths))
	if want := []string{"GET /b", "GET /fail", "GET /ok"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFirstPing: the monitor of a job that just got a ping is called for the next end, whether or
// not anything else is evaluated already.
func TestFirstPing(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	ping := func(path string) string { return `,"ping":{"url":"` + h.URL + path + `"}` }
	check := func(what string, want ...string) {
		t.Helper()
		f.step(e)
		f.send(send)
		if got := h.paths; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}

	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL})
	off := job.AlertRule{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}, Disabled: true}
	f.rule(off)
	f.step(e)
	a := f.job("shop", "a", ping("/a"))
	f.pinged(a)
	f.run(a, job.Succeeded, 0)
	f.now += second
	check("nothing was evaluated", "GET /a")
	off.Disabled = false
	f.rule(off)
	f.step(e)
	b := f.job("shop", "b", ping("/b"))
	f.pinged(b)
	f.run(b, job.Succeeded, 0)
	check("a new job", "GET /a", "GET /b")
	c := f.job("shop", "c", "")
	f.run(c, job.Failed, 0) // caches the job for a while
	check("one without a ping", "GET /a", "GET /b")
	f.exec("UPDATE job_version SET definition = ? WHERE job_id = ?", `{"app":"shop","name":"c"`+ping("/c")+"}", c)
	f.pinged(c)
	f.run(c, job.Succeeded, 0)
	check("it has got one", "GET /a", "GET /b", "GET /c")
	f.want("by their hosts", 3, "SELECT COUNT(*) FROM delivery WHERE kind = 'ping' AND target = ?",
		strings.TrimPrefix(h.URL, "http://"))
}

// TestStalePing: neither a retried ping nor a ping of a dead node is sent after a newer one.
func TestStalePing(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	h.answer = func(n int) int {
		if n == 1 {
			return 503
		}
		return 200
	}
	a := f.job("shop", "a", `,"ping":{"url":"`+h.URL+`/ok","fail_url":"`+h.URL+`/fail"}`)
	f.pinged(a)
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(a, job.Succeeded, 0)
	f.step(e)
	f.send(send)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.send(send)
	f.now += 10 * second
	f.send(send)
	if want := []string{"GET /ok", "GET /fail"}; !slices.Equal(h.paths, want) {
		t.Fatalf("got %q, want %q", h.paths, want)
	}
	f.want("why", 1, "SELECT COUNT(*) FROM delivery WHERE state = ? AND said = 'a later due time replaced it'",
		DeliverySuppressed)

	f.run(a, job.Failed, 0)
	f.step(e)
	dead := f.session()
	rows, err := dueDeliveries(f.db.Reader(t.Context()), f.now, busyLanes{}, 10)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	err = f.db.Tx(t.Context(), func(tx *sql.Tx) error {
		_, err := claimDelivery(tx, &rows[0], dead.id, f.now, f.now+25*second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.run(a, job.Succeeded, 0)
	f.step(e)
	f.send(send)
	f.exec("DELETE FROM session WHERE id = ?", dead.id[:])
	f.send(send)
	if want := []string{"GET /ok", "GET /fail", "GET /ok"}; !slices.Equal(h.paths, want) {
		t.Errorf("its node died: got %q, want %q", h.paths, want)
	}
}

// TestHeartbeat: heartbeats are sent while due times are planned and started in time.
func TestHeartbeat(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "dead man", Type: job.ChannelHeartbeat, URL: h.URL + "/beat",
		Every: job.Duration(time.Minute)})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	beat := func(want int) {
		t.Helper()
		f.step(e)
		f.send(send)
		if got := len(h.seen()); got != want {
			t.Errorf("got %d calls, want %d", got, want)
		}
	}

	beat(1)
	beat(1)
	f.now += 60 * second
	beat(2)
	a := f.job("shop", "a", "")
	f.live(a, job.Idle, f.now-70*second)
	f.now += 60 * second
	beat(2)
	f.want("why", 1, "SELECT COUNT(*) FROM alert_channel WHERE held LIKE '%has not started'")
	f.noneLive()
	f.now += 60 * second
	beat(3)
}

// mailServer is a mail server that records mails and answers as the test tells it.
type mailServer struct {
	net.Listener
	mu    sync.Mutex
	mails []string
	rcpt  []string
	say   map[string]string // answers, by the command or its first word
	hang  string            // the command that gets no answer
}

func newMailServer(t *testing.T) *mailServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	m := &mailServer{Listener: l, say: map[string]string{}}
	var conns sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { c.Close() })
			conns.Go(func() { defer c.Close(); m.serve(c) })
		}
	})

	return m
}

func (m *mailServer) serve(c net.Conn) {
	r := bufio.NewReader(c)
	fmt.Fprint(c, "220 mail ESMTP\r\n")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}

		word := strings.ToUpper(strings.Fields(line + " x")[0])
		m.mu.Lock()
		say, hang := cmp.Or(m.say[strings.TrimSpace(line)], m.say[word]), m.hang == word
		if word == "RCPT" {
			m.rcpt = append(m.rcpt, strings.TrimSpace(line))
		}

		m.mu.Unlock()
		switch {
		case hang:
			_, _ = r.ReadString('\n')
			return
		case say != "":
			fmt.Fprint(c, say+"\r\n")
		case word == "EHLO":
			fmt.Fprint(c, "250-mail\r\n250 8BITMIME\r\n")
		case word == "DATA":
			fmt.Fprint(c, "354 go\r\n")
			var b strings.Builder
			for {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				b.WriteString(line)
			}
			m.mu.Lock()
			m.mails = append(m.mails, b.String())
			m.mu.Unlock()
			fmt.Fprint(c, "250 queued\r\n")
		case word == "QUIT":
			fmt.Fprint(c, "221 bye\r\n")
			return
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

// TestMail: mails go to the named recipients or to the job's owner, and a refusal is reported.
func TestMail(t *testing.T) {
	f := setUp(t)
	m := newMailServer(t)
	email := func(name string, owner bool, mode string, timeout time.Duration) {
		f.channel(job.AlertChannel{Name: name, Type: job.ChannelEmail, Wait: 1000, Timeout: job.Duration(timeout),
			Email: &job.AlertEmail{Server: m.Addr().String(), TLS: mode, From: "go-crontab@example.com",
				To: []string{"ops@example.com", "Ann <ann2@example.com>"}, ToOwner: owner}})
	}

	email("mail", false, "none", 30*time.Second)
	email("owner", true, "none", 30*time.Second)
	email("secure", false, "starttls", 30*time.Second)
	email("impatient", false, "none", time.Second)
	f.rule(job.AlertRule{Name: "mails", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"mail", "owner"},
		Title: "Überfällig: {{.Count}}\r\nBcc: eve@example.com"})
	a := f.job("shop", "a", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.now += second
	f.send(send)
	f.want("sent", 2, "SELECT COUNT(*) FROM delivery WHERE state = 2")
	if len(m.mails) != 2 || len(m.rcpt) != 3 ||
		!slices.ContainsFunc(m.rcpt, func(r string) bool { return strings.Contains(r, "<ann@example.com>") }) ||
		strings.Contains(fmt.Sprint(m.rcpt), "eve") {
		t.Fatalf("got %d mails to %q", len(m.mails), m.rcpt)
	}

	for _, text := range m.mails {
		if strings.Contains(text, "\nBcc:") || !strings.Contains(text, "Subject: =?UTF-8?") ||
			!strings.Contains(text, "exit code 1") || !strings.Contains(text, "@go-crontab>") {
			t.Errorf("got %s", text)
		}
	}

	const ops, ann = "RCPT TO:<ops@example.com>", "RCPT TO:<ann@example.com>"
	for name, c := range map[string]struct {
		channel, target string
		say             map[string]string
		hang            string
		state, said     string
	}{
		"no TLS there":     {"secure", "", nil, "", "pending", "STARTTLS"},
		"refused for good": {"mail", "", map[string]string{"RCPT": "550 no such user"}, "", "failed", "550"},
		"refused for now":  {"mail", "", map[string]string{"RCPT": "451 try later"}, "", "pending", "451"},
		"one for good, the other for now": {"mail", "",
			map[string]string{ops: "550 no such user", "RCPT": "451 try later"}, "", "pending", "451"},
		"one for good": {"mail", "", map[string]string{ops: "550 no such user"}, "", "sent",
			"1 recipient; recipient <ops@example.com>: 550"},
		"the owner for good": {"owner", "ann@example.com", map[string]string{ann: "550 no such user"}, "", "sent",
			"2 recipients, instead of the owner: recipient <ann@example.com>: 550"},
		"the owner for now": {"owner", "ann@example.com", map[string]string{ann: "451 try later"}, "", "pending", "451"},
		"the text":          {"mail", "", map[string]string{"DATA": "554 it is spam"}, "", "failed", "554"},
		"it hangs":          {"impatient", "", nil, "MAIL", "pending", "in time"},
		"accepted, and away": {"mail", "", map[string]string{"RSET": "421 away", "QUIT": "421 away"}, "", "sent",
			"2 recipients"},
	} {
		m.mu.Lock()
		m.say, m.hang = c.say, c.hang
		m.mu.Unlock()
		before := len(m.mails)
		id := f.message(c.channel)
		f.exec("UPDATE delivery SET target = ? WHERE id = ?", c.target, id)
		f.send(send)
		if state, said, _, _ := f.delivery(id); state != c.state || !strings.Contains(said, c.said) {
			t.Errorf("%s: got %s, %q, want %s, %q", name, state, said, c.state, c.said)
		}
		if got := len(m.mails) - before; got != map[string]int{"sent": 1}[c.state] {
			t.Errorf("%s: the server accepted %d mails", name, got)
		}
		f.exec("DELETE FROM delivery")
	}
}

// TestTidy: ended alerts and messages are kept for a while.
func TestTidy(t *testing.T) {
	f := setUp(t)
	f.exec(`INSERT INTO alert (subject, firing, rule_id, rule, event, severity, summary, first_at, last_at, over_at)
		VALUES ('a', NULL, 1, 'r', 'failed', 'error', '', 1, 1, ?),
			('b', 1, 1, 'r', 'failed', 'error', '', 1, 1, 0)`,
		int64(f.now))
	for i, kind := range []string{"alert", "heartbeat"} {
		for state := range 6 {
			f.exec(`INSERT INTO delivery (idem, kind, state, next_at, items, created, updated)
				VALUES (?, ?, ?, 0, '', ?, ?)`, fmt.Sprint(i, state), kind, state, int64(f.now), int64(f.now))
		}
	}

	e := f.evaluator(f.session())
	for _, c := range []struct {
		after             job.Micros
		alerts, delivered int
	}{{23 * 3600 * second, 2, 12}, {25 * 3600 * second, 2, 8}, {29 * 24 * 3600 * second, 2,
		8}, {31 * 24 * 3600 * second, 1, 4}} {
		if err := e.tidy(t.Context(), f.now+c.after); err != nil {
			t.Fatal(err)
		}
		f.want("alerts", c.alerts, "SELECT COUNT(*) FROM alert")
		f.want("messages", c.delivered, "SELECT COUNT(*) FROM delivery")
	}
}

// TestMentions: a job's name cannot mention people.
func TestMentions(t *testing.T) {
	t.Parallel()
	body, _, err := chat(&letter{channel: job.AlertChannel{Type: job.ChannelSlack}},
		&job.AlertMessage{Title: "ALERT", Text: "@all <!here> @Channel @allan"}, "", nil, time.Now())
	var slack struct{ Text string }
	err = errors.Join(err, json.Unmarshal(body, &slack))
	if want := "ALERT\n@\u200ball &lt;!here&gt; @\u200bChannel @allan"; err != nil || slack.Text != want {
		t.Errorf("got %q, %v", slack.Text, err)
	}
	for text, want := range map[string]string{
		`<at user_id="all">x</at>`: `＜at user_id="all">x＜/at>`,
		"<AT\nid=all></At>":        "＜AT\nid=all>＜/At>",
		"<<at id=x>":               "<＜at id=x>",
		"<atlas> a<b":              "<atlas> a<b",
	} {
		body, _, err := chat(&letter{channel: job.AlertChannel{Type: job.ChannelFeishu}},
			&job.AlertMessage{Title: "ALERT", Text: text}, "", nil, time.Now())
		var got struct{ Content struct{ Text string } }
		if err = errors.Join(err, json.Unmarshal(body, &got)); err != nil || got.Content.Text != "ALERT\n"+want {
			t.Errorf("%q: got %q, %v", text, got.Content.Text, err)
		}
	}
}

// TestClean: no part of a secret remains, in whatever order secrets are masked, nor of a secret
// address.
func TestClean(t *testing.T) {
	t.Parallel()
	o := NewOutside(OutsideConfig{Mask: execute.Mask})
	values := map[job.Secret]string{"short": "hunter22", "long": "hunter22-and-more",
		"hook": "https://chat.example/hook/hunter22/Zz9"}
	for range 20 { // the order of maps is random
		for text, want := range map[string]string{
			"no hunter22-and-more":                                 "no ***",
			"Post https://chat.example/hook/hunter22/Zz9: refused": "Post ***: refused",
			"there is nothing at /hook/hunter22/Zz9\n":             "there is nothing at ***",
			"chat.example is down":                                 "chat.example is down",
		} {
			if got := o.clean(text, values); got != want {
				t.Fatalf("%q: got %q, want %q", text, got, want)
			}
		}
	}

	if got := o.clean("a\n b", nil); got != "a b" {
		t.Errorf("got %q", got)
	}
}
