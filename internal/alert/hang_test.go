package alert

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// TestManyWaitForOne: messages for other channels and monitors are sent at once, whatever waits for
// hanging ones.
func TestManyWaitForOne(t *testing.T) {
	f := setUp(t)
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(slow.Close)
	h := newHook(t)
	f.channel(job.AlertChannel{Name: "slow", Type: job.ChannelWebhook, URL: slow.URL,
		Timeout: job.Duration(30 * time.Second), Rate: 600})
	f.channel(job.AlertChannel{Name: "hook", Type: job.ChannelWebhook, URL: h.URL + "/hook"})
	f.channel(job.AlertChannel{Name: "dead man", Type: job.ChannelHeartbeat, URL: h.URL + "/beat"})
	const jobs = 2 * dueAtOnce // jobs whose monitor hangs
	for id := range int64(jobs + 1) {
		url := slow.URL
		if id == jobs {
			url = h.URL + "/ping"
		}
		if got := f.job("shop", idText(id+1), `,"ping":{"url":"`+url+`"}`); got != id+1 {
			t.Fatalf("job %d has the id %d", id+1, got)
		}
	}

	id := func(channel string) int64 {
		row, err := DefinitionNamed(f.db.Reader(t.Context()), ChannelTable, channel)
		if err != nil {
			t.Fatal(err)
		}
		return row.ID
	}

	write := func(d DeliveryRow, n int) {
		d.Events, d.Items, d.Created, d.Updated = 1, "[]", f.now, f.now
		err := f.db.Tx(t.Context(), func(tx *sql.Tx) error {
			for range n {
				d.Key = uuid.New()
				if err := insertDelivery(tx, &d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	long := f.now - 10*second
	write(DeliveryRow{Kind: DeliveryOfAlert, ChannelID: id("slow"), Channel: "slow", NextAt: long}, 2*dueAtOnce)
	for id := range int64(jobs) {
		write(DeliveryRow{Kind: DeliveryPing, JobID: id + 1, Target: hostOf(slow.URL), NextAt: long}, 1)
	}

	write(DeliveryRow{Kind: DeliveryOfAlert, ChannelID: id("hook"), Channel: "hook", NextAt: f.now}, 1)
	write(DeliveryRow{Kind: DeliveryBeat, ChannelID: id("dead man"), Channel: "dead man", NextAt: f.now}, 1)
	write(DeliveryRow{Kind: DeliveryPing, JobID: jobs + 1, Target: hostOf(h.URL), NextAt: f.now}, 1)
	s := f.sender(f.session())
	ctx, cancel := context.WithCancel(t.Context())
	for range 500 { // lanes start asynchronously
		if _, err := s.look(ctx, f.now); err != nil {
			t.Fatal(err)
		}
		if len(h.seen()) == 3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}

	if got := len(h.seen()); got != 3 {
		t.Errorf("got %d calls, want 3: of the channel, the heartbeat and the ping that do not hang", got)
	}

	cancel()
	close(release)
	s.lanes.Wait()
}
