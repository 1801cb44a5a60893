package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/node"
)

// TestAlerts: one of three nodes sends each alert, even if the sending node is killed in between,
// and the monitor of a job is called.
func TestAlerts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var mu sync.Mutex
	told, keys, pings := map[string]int{}, map[string]int{}, 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/ping" {
			pings++
			return
		}

		var m struct {
			Key   string
			Items []struct{ What, Job string }
		}
		if err := json.Unmarshal(b, &m); err != nil {
			t.Errorf("got %s: %v", b, err)
		}
		if keys[m.Key]++; keys[m.Key] > 1 {
			return // a repetition, which the receiver drops
		}

		for _, it := range m.Items {
			told[it.What+" "+it.Job]++
		}
	}))

	t.Cleanup(hook.Close)
	open := func(cfg *node.Config) { cfg.HTTPAllow = []string{"127.0.0.0/8"} }
	nodes := []*member{c.start("a", open), c.start("b", open), c.start("c", open)}
	store := &alert.Store{DB: c.db.DB}
	if _, _, err := store.PutChannel(t.Context(),
		job.AlertChannel{
			Name: "hook", Type: job.ChannelWebhook, URL: hook.URL, Wait: job.Duration(time.Second), Rate: 600,
		}); err != nil {
		t.Fatal(err)
	}

	if _, _, err := store.PutRule(t.Context(),
		job.AlertRule{
			Name: "ops", On: []job.AlertEvent{job.AlertFailed, job.AlertRecovered}, Channels: []string{"hook"},
		}); err != nil {
		t.Fatal(err)
	}

	sample, err := store.SampleOf(t.Context(), "hook")
	if err != nil {
		t.Fatal(err)
	}
	got, err := nodes[1].Alerts().Test(t.Context(), []alert.Sample{sample})
	if err != nil || !got[0].Sent {
		t.Fatalf("test: got %+v, %v", got, err)
	}

	const jobs = 18 // fewer than one message lists
	spec := func(i int, command string) job.Spec {
		at := time.Now().Add(time.Duration(500+100*i) * time.Millisecond)
		return job.Spec{
			App: "shop", Name: fmt.Sprint("j", i), At: &at, Command: command, Ping: &job.Ping{URL: hook.URL + "/ping"},
		}
	}

	var made []job.Job
	for i := range jobs {
		made = append(made, nodes[0].create(spec(i, "false")))
	}

	seen := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for k := range told {
			if strings.HasPrefix(k, what+" ") {
				n++
			}
		}
		return n
	}

	await(t, "some are told", time.Minute, func() bool { return seen("fired") > 0 })
	// The evaluating node may be any; drain one.
	nodes[2].drain()
	nodes[0].drain()
	await(t, "all are told", 90*time.Second, func() bool { return seen("fired") == jobs })
	for _, j := range made {
		again := spec(0, "true")
		again.Name = j.Spec.Name
		if _, err := nodes[1].Editor().Update(t.Context(), j.ID, j.Changes, again); err != nil {
			t.Fatal(err)
		}
	}

	await(t, "all are over", 90*time.Second, func() bool { return seen("resolved") == jobs })
	await(t, "monitors are called", 30*time.Second, func() bool { mu.Lock(); defer mu.Unlock(); return pings >= jobs })
	mu.Lock()
	defer mu.Unlock()
	for what, n := range told {
		if n != 1 {
			t.Errorf("%s was told %d times", what, n)
		}
	}

	if n := c.count("SELECT COUNT(*) FROM alert WHERE firing = 1 OR seen <> 1"); n != 0 {
		t.Errorf("%d alerts are not as they should be", n)
	}

	// The last node has sent all messages about ended alerts, each claimed and settled.
	if got := figure(t, nodes[1:2], "gocrontab_mysql_transactions_total", "pool", "alerts", "outcome",
		"applied"); got < 2 {
		t.Errorf("the metrics tell of %v transactions of alerts", got)
	}
}
