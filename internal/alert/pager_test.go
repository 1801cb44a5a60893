package alert

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
	"go-crontab/sql"
)

// events lists the actions that PagerDuty got at a path, "trigger" and "resolve", in order of
// arrival.
func (h *hook) events(path string) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, raw := range h.raw {
		var event struct {
			Action string `json:"event_action"`
		}
		if _ = json.Unmarshal([]byte(raw), &event); h.paths[i] == "POST "+path {
			out = append(out, event.Action)
		}
	}
	return out
}

func (f *fixture) pager(name, url string) {
	f.Helper()
	f.channel(job.AlertChannel{Name: name, Type: job.ChannelPagerDuty, URL: url, RoutingKey: "{{secret.s}}", Rate: 600})
}

// TestResolveComesBehind: the message that resolves an incident does not overtake the one that
// opens it.
func TestResolveComesBehind(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	h.answer = func(n int) int {
		if n == 1 {
			return 503
		}
		return 202
	}
	f.pager("pager", h.URL+"/pager")
	f.rule(job.AlertRule{Name: "page", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"pager"}})
	a, b, other := f.job("shop", "a", ""), f.job("shop", "b", ""), f.job("shop", "other", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	check := func(what string, want ...string) {
		t.Helper()
		f.send(send)
		if got := h.events("/pager"); !slices.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
	f.run(a, job.Failed, 0)
	f.step(e)
	check("it is not taken", "trigger")
	f.now += 3 * second
	f.run(a, job.Succeeded, 0)
	f.run(other, job.Failed, 0)
	f.step(e)
	check("the first waits for its next try, another alert for nothing", "trigger", "trigger")
	f.now += 7 * second
	check("it is tried again", "trigger", "trigger", "trigger", "resolve")

	// The sending node dies, so it is unknown whether the message arrived.
	f.run(b, job.Failed, 0)
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
	f.run(b, job.Succeeded, 0)
	f.step(e)
	check("it is being sent", "trigger", "trigger", "trigger", "resolve")
	f.exec("DELETE FROM session WHERE id = ?", dead.id[:])
	check("its node is gone", "trigger", "trigger", "trigger", "resolve", "trigger")
	f.now += 25 * second
	check("it was sent", "trigger", "trigger", "trigger", "resolve", "trigger", "resolve")
	f.want("what waits", 0, "SELECT COUNT(*) FROM delivery WHERE state < 2")
}

// TestFloodOfIncidents: in a flood, every opened incident is resolved, and no incident is opened
// after its alert is over.
func TestFloodOfIncidents(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "pager", Type: job.ChannelPagerDuty, URL: h.URL, RoutingKey: "{{secret.s}}",
		Rate: 20})
	f.rule(job.AlertRule{Name: "page", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"pager"}})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	const many = manyOpen + 20
	var jobs []int64
	for i := range many {
		jobs = append(jobs, f.job("shop", "j"+idText(int64(i+1)), ""))
	}

	all := func(o job.Outcome) {
		for _, id := range jobs {
			f.run(id, o, 0)
		}
		f.step(e)
	}

	all(job.Failed)
	for range 2 {
		f.send(send)
		f.now += 61 * second
	}

	all(job.Succeeded)
	f.want("what is not told of any more, or was too much", many-40, "SELECT COUNT(*) FROM delivery WHERE state = ?",
		DeliverySuppressed)
	f.want("what waits: the ends of those that were told", 40, "SELECT COUNT(*) FROM delivery WHERE state = ?",
		DeliveryPending)
	f.run(jobs[0], job.Failed, 0) // a new event in between
	f.step(e)
	for range 5 {
		f.send(send)
		f.now += 61 * second
	}

	f.run(jobs[0], job.Succeeded, 0)
	f.step(e)
	f.send(send)
	f.want("what waits at last", 0, "SELECT COUNT(*) FROM delivery WHERE state < 2")
	keys := map[string][]string{}
	for _, raw := range h.raw {
		var event struct {
			Action string `json:"event_action"`
			Key    string `json:"dedup_key"`
		}
		if err := json.Unmarshal([]byte(raw), &event); err != nil {
			t.Fatal(err)
		}
		keys[event.Key] = append(keys[event.Key], event.Action)
	}

	for key, got := range keys {
		if want := []string{"trigger", "resolve"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}

	if len(keys) != 41 {
		t.Errorf("got %d incidents, want 41", len(keys))
	}
}

// TestIncidentsEnd: however an alert ends, its incident is resolved where it was opened, and only
// there.
func TestIncidentsEnd(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.pager("pager", h.URL+"/pager")
	f.pager("other", h.URL+"/other")
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/hook", Wait: 1000})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	told := 0
	for _, c := range []struct {
		name  string
		end   func(rule job.AlertRule, id int64)
		early bool // before the opening message is sent
	}{
		{"silenced", func(r job.AlertRule, id int64) {
			f.silence(r.Name)
			f.run(id, job.Succeeded, 0)
		}, false},
		{"silenced all the time", func(r job.AlertRule, id int64) { f.silence(r.Name) }, true},
		{"disabled", func(r job.AlertRule, _ int64) {
			r.Disabled = true
			f.rule(r)
		}, false},
		{"deleted", func(r job.AlertRule, _ int64) {
			if err := f.store().DeleteRule(t.Context(), r.Name); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"of other jobs", func(r job.AlertRule, _ int64) {
			r.Jobs = []string{"shop/none"}
			f.rule(r)
		}, false},
		{"of other events", func(r job.AlertRule, _ int64) {
			r.On = []job.AlertEvent{job.AlertLost}
			f.rule(r)
		}, false},
		{"to other channels", func(r job.AlertRule, id int64) {
			r.Channels = []string{"hook"}
			f.rule(r)
			f.run(id, job.Succeeded, 0)
		}, false},
	} {
		name := strings.ReplaceAll(c.name, " ", "-")
		id := f.job("shop", name, "")
		r := job.AlertRule{Name: name, On: []job.AlertEvent{job.AlertFailed}, Jobs: []string{"shop/" + name},
			Channels: []string{"pager", "hook"}}
		f.rule(r)
		f.step(e)
		before := h.events("/pager")
		if c.early {
			c.end(r, id)
		}
		f.run(id, job.Failed, 0)
		f.step(e)
		f.now += 6 * second
		f.send(send)
		want := []string{"trigger", "resolve"}
		if c.early {
			want = nil
			f.run(id, job.Succeeded, 0)
		} else {
			c.end(r, id)
			told++
		}
		f.step(e)
		f.now += second
		f.send(send)
		f.send(send) // the resolving message is created after the opening one
		if got := h.events("/pager")[len(before):]; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", c.name, got, want)
		}
	}

	if got := h.events("/other"); len(got) != 0 {
		t.Errorf("who was told nothing got %q", got)
	}

	if got := len(h.events("/hook")); got != told {
		t.Errorf("the chat got %d messages, want %d: that it is over is told nobody but a pager", got, told)
	}

	f.want("what fires", 0, "SELECT COUNT(*) FROM alert WHERE firing = 1")
}

// TestUnreadableTold: if the earlier messages cannot be read, all ended alerts are resolved, after
// the waiting messages, and the step is applied.
func TestUnreadableTold(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.pager("pager", h.URL+"/pager")
	f.rule(job.AlertRule{Name: "page", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"pager"}})
	a, b := f.job("shop", "a", ""), f.job("shop", "b", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.send(send)
	f.run(b, job.Failed, 0)
	f.step(e) // creates a message that no node has tried to send
	f.now += second
	f.exec("ALTER TABLE delivery RENAME KEY grp TO away")
	f.run(a, job.Succeeded, 0)
	f.run(b, job.Succeeded, 0)
	f.step(e)
	f.want("what fires", 0, "SELECT COUNT(*) FROM alert WHERE firing = 1")
	f.exec("ALTER TABLE delivery RENAME KEY away TO grp")
	for range 3 {
		f.now += second
		f.send(send)
	}

	got := h.events("/pager")
	slices.Sort(got)
	if want := []string{"resolve", "resolve", "trigger", "trigger"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func (f *fixture) silence(rule string) {
	f.Helper()
	n := job.Silence{Rule: rule, Until: f.now.Add(MaxTestSilence), Reason: "it moves"}
	if err := f.store().AddSilence(f.Context(), &n); err != nil {
		f.Fatal(err)
	}
}
