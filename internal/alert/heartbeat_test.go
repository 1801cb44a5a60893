package alert

import (
	"testing"
	"time"

	"go-crontab/job"
)

// TestHeartbeatOfNow: a heartbeat that was not accepted is not sent again once it is out of date.
func TestHeartbeatOfNow(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	status := 500
	h.answer = func(int) int { return status }
	f.channel(job.AlertChannel{Name: "dead man", Type: job.ChannelHeartbeat, URL: h.URL,
		Every: job.Duration(time.Minute)})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	sent := func(what string, after job.Micros, want int) {
		t.Helper()
		f.now += after
		f.step(e)
		f.send(send)
		if got := len(h.seen()); got != want {
			t.Errorf("%s: got %d calls, want %d", what, got, want)
		}
	}

	sent("the first try", 0, 1)
	sent("the second", 10*second, 2)
	sent("the third", 30*second, 3)
	f.want("what is given up: the next heartbeat comes before the next try", 1,
		"SELECT COUNT(*) FROM delivery WHERE state = ?", DeliveryFailed)
	f.want("and comes into the list now", 0, "SELECT COUNT(*) FROM delivery WHERE next_at > ?", int64(f.now))
	sent("the next heartbeat", 20*second, 4)
	// A due time hangs, and only then does the monitor accept heartbeats again.
	f.live(f.job("shop", "a", ""), job.Idle, f.now)
	status = 200
	sent("while a due time hangs", 300*second, 4)
	f.want("what is of the past", 1, "SELECT COUNT(*) FROM delivery WHERE state = ?", DeliverySuppressed)
	f.want("why nothing is sent", 1, "SELECT COUNT(*) FROM alert_channel WHERE held LIKE '%has not started'")
	f.noneLive()
	sent("when all is well", 60*second, 5)
}

// TestHeartbeatsDoNotPileUp: while a heartbeat waits, no other is created. The first one after an
// outage is a current one.
func TestHeartbeatsDoNotPileUp(t *testing.T) {
	f := setUp(t)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "dead man", Type: job.ChannelHeartbeat, URL: h.URL,
		Every: job.Duration(time.Hour)})
	s := f.session()
	e, send := f.evaluator(s), f.sender(s)
	f.step(e)
	for range 4 {
		f.now += 3600 * second
		f.step(e)
	}

	f.want("heartbeats", 1, "SELECT COUNT(*) FROM delivery")
	f.want("why there are no more", 1,
		"SELECT COUNT(*) FROM alert_channel WHERE held = 'the previous heartbeat has not been sent yet'")
	f.send(send)
	if got := len(h.seen()); got != 0 {
		t.Errorf("got %d calls with a heartbeat of the past", got)
	}

	f.now += second
	f.step(e)
	f.send(send)
	if got := len(h.seen()); got != 1 {
		t.Errorf("got %d calls, want 1, as soon as the old one is out of the way", got)
	}

	f.want("nothing is held", 1, "SELECT COUNT(*) FROM alert_channel WHERE held = ''")
	f.now += second
	f.step(e)
	f.send(send)
	if got := len(h.seen()); got != 1 {
		t.Errorf("got %d calls, want no other within the hour", got)
	}
}
