package alert

import (
	"slices"
	"testing"
	"time"

	"go-crontab/job"
)

// TestOldMessages: after an outage of more than a day, new events do not join a message that is too
// old to be sent.
func TestOldMessages(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL, Wait: 1000})
	f.rule(job.AlertRule{
		Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"},
		Repeat: job.Duration(7 * 24 * time.Hour),
	})
	a, b, c, d := f.job("shop", "a", ""), f.job("shop", "b", ""), f.job("shop", "c", ""), f.job("shop", "d", "")
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(a, job.Failed, 0)
	f.step(e)
	f.now += 25 * 3600 * second
	e = f.evaluator(s)
	f.run(b, job.Failed, 0)
	f.step(e)
	f.now += second
	f.send(send)
	if got, want := h.said(), []string{"fired failed shop/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	f.want("suppressed", 1, "SELECT SUM(events) FROM delivery WHERE state = ?", DeliverySuppressed)
	// A message that is almost too old gets a new event, and waits on.
	f.run(c, job.Failed, 0)
	f.step(e)
	f.now += (24*3600 - 60) * second
	f.run(d, job.Failed, 0)
	f.step(e)
	f.now += 120 * second
	f.send(send)
	if got, want := h.said(), []string{"fired failed shop/b", "fired failed shop/c",
		"fired failed shop/d"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOldPing: the end of a due time is not lost together with an end from before the outage.
func TestOldPing(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	id := f.job("shop", "a", `,"ping":{"url":"`+h.URL+`/ok"}`)
	f.pinged(id)
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	f.run(id, job.Succeeded, 0)
	f.step(e)
	f.now += 25 * 3600 * second
	f.run(id, job.Succeeded, 0)
	f.step(e)
	f.send(send)
	if got := len(h.seen()); got != 1 {
		t.Errorf("got %d calls, want 1", got)
	}
}
