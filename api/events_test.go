package api_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// TestEvents subscribes on one node while everything happens on another.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	gate := t.TempDir()
	o, server := s.other(nil)
	if _, _, reading := server.Listeners(); reading {
		t.Error("nobody listens, and the database is read")
	}

	e := o.listen("/api/v1/events")
	if hello := e.hello(); hello.text("action") != "begin" || hello.text("name") != "knoten-2" ||
		hello.text("at") == "" {
		t.Errorf("got %v", hello)
	}

	id := s.create("talks", object{"command": `until [ -e ` + gate + `/a ]; do sleep .02; done; exit 3`,
		"app": "shop"}).text("id")
	if _, got := e.action("job", "create"); got.text("job_id") != id || got.text("app") != "shop" ||
		got.text("job") != "talks" || got.text("who") == "" {
		t.Errorf("created: got %v", got)
	}

	s.call("PATCH", "/api/v1/jobs/"+id, object{"owner": "ann"}).want(200)
	if _, got := e.action("job", "update"); got.text("job_id") != id || got["was"] != nil {
		t.Errorf("changed: got %v", got)
	}

	run := s.running(id)
	e.action("job", "run")
	if _, got := e.action("run", "started"); got.text("run", "id") != run ||
		!strings.HasPrefix(got.text("id"), "s"+run) || got.text("run", "state") != "running" ||
		got.text("run", "node") != "knoten-1" || got.text("run", "lateness_ms") == "" || got.text("run", "due") == "" ||
		got.text("app") != "shop" || got.text("job_id") != id {
		t.Errorf("started: got %v", got)
	}

	touch(t, gate+"/a")
	if _, got := e.action("run", "ended"); got.text("run", "id") != run || got.text("run", "outcome") != "failed" ||
		got.text("run", "reason_code") != "exit_code" || got.text("run", "exit_code") != "3" ||
		got.text("run", "job") != "talks" {
		t.Errorf("ended: got %v", got)
	}

	s.call("POST", "/api/v1/jobs/"+id+"/pause", object{"reason": "disk"}).want(200)
	if _, got := e.action("job", "pause"); got.text("reason") != "disk" {
		t.Errorf("paused: got %v", got)
	}

	s.call("POST", "/api/v1/jobs/"+id+"/resume", nil).want(200)
	e.action("job", "resume")
	s.call("POST", "/api/v1/apps/shop/pause?absent=ok", object{"reason": "stock"}).want(200)
	if _, got := e.action("pause", "pause"); got.text("app") != "shop" || got.text("reason") != "stock" {
		t.Errorf("an app: got %v", got)
	}

	s.call("POST", "/api/v1/apps/shop/resume", nil).want(200)
	e.action("pause", "resume")
	s.call("POST", "/api/v1/cluster/pause", nil).want(200)
	if _, got := e.action("pause", "pause"); got.text("app") != "" {
		t.Errorf("the cluster: got %v", got)
	}

	s.call("POST", "/api/v1/cluster/resume", nil).want(200)
	s.call("POST", "/api/v1/nodes/knoten-1/cordon", nil).want(200)
	if _, got := e.action("node", "cordon"); got.text("name") != "knoten-1" {
		t.Errorf("cordoned: got %v", got)
	}

	s.call("POST", "/api/v1/nodes/knoten-1/uncordon", nil).want(200)
	s.newToken("ci", auth.Viewer)
	if _, got := e.until("a token",
		func(h heard, o object) bool { return h.event == "change" }); got.text("what") != "token" ||
		got.text("name") != "ci" || got.text("action") != "create" {
		t.Errorf("a token: got %v", got)
	}

	daily := s.create("daily", object{"schedule": "0 3 * * *", "app": "shop"}).text("id")
	s.call("POST", "/api/v1/jobs/"+daily+"/backfill",
		object{"from": "2026-01-01T00:00:00Z", "to": "2026-01-03T23:00:00Z"}).want(202)
	if _, got := e.action("backfill", "done"); got.text("job_id") != daily || got.text("backfill", "total") != "3" ||
		got.text("backfill", "planned") != "3" || got.text("app") != "shop" {
		t.Errorf("a backfill: got %v", got)
	}

	gone := uuid.New()
	if err := s.db.Tx(t.Context(),
		func(tx *sql.Tx) error { return tx.InsertSession(sql.SessionRow{ID: gone, Node: "knoten-9"}) }); err != nil {
		t.Fatal(err)
	}

	if h, got := e.action("node", "join"); got.text("name") != "knoten-9" || got.text("id") != "j"+gone.String() ||
		!strings.HasPrefix(h.id, got.text("id")+".") {
		t.Errorf("joined: got %v", got)
	}

	if _, got := e.action("node", "reap"); got.text("name") != "knoten-9" {
		t.Errorf("vanished: got %v", got)
	}

	s.call("DELETE", "/api/v1/jobs/"+id, nil).want(204)
	if _, got := e.action("job", "delete"); got.text("job_id") != id {
		t.Errorf("deleted: got %v", got)
	}
}

// TestEventsAreForThoseWhoMay: a caller limited to some apps gets only their events, and filters
// reduce the events further.
func TestEventsAreForThoseWhoMay(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	limited := s.as(s.newToken("of-a", auth.Viewer, "a")).listen("/api/v1/events")
	limited.hello()
	a, b := s.create("mine", object{"app": "a"}).text("id"), s.create("yours", object{"app": "b"}).text("id")
	c := s.create("ours", object{"app": "a"}).text("id")
	byApp, byJob := s.listen("/api/v1/events?app=b"), s.listen("/api/v1/events?job_id="+c)
	byKind := s.listen("/api/v1/events?kinds=run,node")
	for _, e := range []*ear{byApp, byJob, byKind} {
		e.hello()
	}

	for _, id := range []string{b, a, c} {
		s.call("POST", "/api/v1/jobs/"+id+"/run", nil).want(202)
		s.ran(id, 1)
	}

	s.call("POST", "/api/v1/apps/b/pause?absent=ok", nil).want(200)
	s.newToken("ci", auth.Viewer)

	// changes come in the order of their times, and two clocks wrote these
	time.Sleep(time.Second)
	s.call("POST", "/api/v1/nodes/knoten-1/cordon", nil).want(200) // the last change; a node belongs to no app
	for _, x := range []struct {
		e    *ear
		want map[string]bool // "kind action app job_id": true for required events, false for permitted ones
	}{
		{limited, map[string]bool{"job create a " + a: true, "job run a " + a: true, "run ended a " + a: true,
			"run started a " + a: false, "job create a " + c: true,
			"job run a " + c: true, "run ended a " + c: true, "run started a " + c: false}},
		{
			byApp, map[string]bool{
				"job create b " + b: false, "job run b " + b: true, "run ended b " + b: true, "run started b " +
					b: false, "pause pause b ": true, "change create  ": true,
			},
		},
		{
			byJob, map[string]bool{
				"job create a " + c: false, "job run a " + c: true, "run ended a " + c: true, "run started a " +
					c: false, "pause pause b ": true, "change create  ": true,
			},
		},
		{
			byKind, map[string]bool{
				"run ended a " + a: true, "run started a " + a: false, "run ended b " + b: true, "run started b " +
					b: false, "run ended a " + c: true, "run started a " + c: false,
			},
		},
	} {
		x.e.until("the cordon", func(h heard, o object) bool {
			said := h.event + " " + o.text("action") + " " + o.text("app") + " " + o.text("job_id")
			if h.event == "node" {
				return o.text("action") == "cordon"
			}
			if _, may := x.want[said]; !may {
				t.Errorf("%s: heard %q: %s", x.e.what, said, h.data)
			}
			delete(x.want, said)
			return false
		})

		for said, must := range x.want {
			if must {
				t.Errorf("%s: never heard %q", x.e.what, said)
			}
		}
	}
}

// manyRuns writes n ended runs of a job.
func (s *site) manyRuns(jobID string, n, outcome int) {
	s.t.Helper()
	id, err := strconv.ParseInt(jobID, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}

	now := job.MicrosOf(time.Now())
	app := int32(s.count("SELECT app_id FROM job WHERE id = ?", id))
	runs := make([]trip.Counted, n)
	for i := range runs {
		due := now + job.Micros(i)
		runs[i] = trip.Counted{
			Run: int64(due), JobID: id, AppID: app, Version: 1, First: due, Last: due, Count: 1,
			Outcome: job.Outcome(outcome),
		}
	}

	if err := s.db.Tx(s.t.Context(), func(tx *sql.Tx) error { return trip.InsertCounted(tx, runs, now) }); err != nil {
		s.t.Fatal(err)
	}
}

// TestEventsAreCounted: many runs at once are counted, without the runs that the caller cannot see.
func TestEventsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	a, b := s.create("mine", object{"app": "a"}).text("id"), s.create("yours", object{"app": "b"}).text("id")
	all, limited := s.listen("/api/v1/events?kinds=run"),
		s.as(s.newToken("of-a", auth.Viewer, "a")).listen("/api/v1/events")
	all.hello()
	limited.hello()
	s.manyRuns(b, 500, 1)
	s.manyRuns(a, 300, 2)
	s.manyRuns(a, 1, 3)
	count := func(e *ear, want map[string]int) {
		t.Helper()
		got := map[string]int{}
		add := func(key string, n int) {
			if n > 0 {
				got[key] += n
			}
		}

		e.until(fmt.Sprint("all of ", want), func(h heard, o object) bool {
			for _, c := range o.items("counts") {
				for _, outcome := range []string{"succeeded", "failed", "timed_out"} {
					n := 0
					fmt.Sscan(c.text(outcome), &n)
					add(c.text("app")+" "+c.text("job")+" "+outcome, n)
				}
			}

			if h.event == "run" { // few runs are sent one by one
				add(o.text("app")+" "+o.text("job")+" "+o.text("run", "outcome"), 1)
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
	}

	count(all, map[string]int{"a mine failed": 300, "a mine timed_out": 1, "b yours succeeded": 500})
	count(limited, map[string]int{"a mine failed": 300, "a mine timed_out": 1})
	for _, said := range append(all.seen, limited.seen...) {
		if strings.Count(said, `"kind":"run"`) > 1 || strings.HasPrefix(said, "reload") {
			t.Errorf("heard %s", said)
		}
	}

	if n := len(all.seen); n > 50 {
		t.Errorf("801 runs were told with %d messages", n)
	}
}

// TestEventsResume: a client that reconnects gets the events in between, on the same node or
// another one with subscribers. Otherwise it is told to reload.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	o, _ := s.other(nil)
	here, there := s.listen("/api/v1/events?kinds=job"), o.listen("/api/v1/events?kinds=job")
	here.hello()
	there.hello()
	time.Sleep(6 * time.Second) // the other node remembers more events than it must, as far back as it was reading
	for i := range 3 {
		s.create(fmt.Sprint("j", i), nil)
	}

	var places []string
	for len(places) < 3 {
		h, _ := here.action("job", "create")
		places = append(places, h.id)
	}

	for range 3 {
		there.action("job", "create")
	}

	here.hang()
	there.hang()
	s.create("j3", nil)
	names := func(e *ear, until string) (got []string) {
		t.Helper()
		if e.hello().text("action") != "resume" {
			t.Errorf("%s: it is not resumed: %v", e.what, e.seen)
		}

		e.until(until, func(h heard, o object) bool {
			if h.event == "reload" {
				t.Errorf("heard %s", h.data)
			}
			got = append(got, o.text("job"))
			return o.text("job") == until
		})

		return got
	}

	if got := fmt.Sprint(names(s.listen("/api/v1/events?kinds=job", "Last-Event-ID", places[1]),
		"j3")); got != "[j2 j3]" {
		t.Errorf("on the same node: got %s", got)
	}

	if got := fmt.Sprint(names(o.listen("/api/v1/events?kinds=job", "Last-Event-ID", places[1]),
		"j3")); !strings.HasSuffix(got, "j2 j3]") {
		t.Errorf("on another node: got %s", got)
	}

	for _, last := range []string{"a99999.00000000-7", "nonsense"} {
		e := s.listen("/api/v1/events", "Last-Event-ID", last)
		if e.hello().text("action") != "begin" {
			t.Errorf("%s: got %v", last, e.seen)
		}
		if _, got := e.action("reload", "missed"); got.text("reason") == "" {
			t.Errorf("%s: got %v", last, got)
		}
	}
}

// TestSlowListener: a slow subscriber holds up no other, and is told of missed events or cut off.
func TestSlowListener(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	addr, stop := listening(t, s.cfg)
	defer stop()
	o := *s
	o.url = "http://" + addr
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()

	slow.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(slow, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.token)
	begun := make([]byte, 16)
	if _, err := slow.Read(begun); err != nil {
		t.Fatal(err)
	}

	fast := o.listen("/api/v1/events")
	fast.hello()
	for range 40 { // a megabyte every two
		if _, err := s.db.Raw().Exec("INSERT INTO audit (at, who, action, kind, name, reason)" +
			`
				WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 800)
				SELECT 1, 'x', 'flood', 'group', i, REPEAT('x', 500)
				FROM k`); err != nil {
			t.Fatal(err)
		}
	}

	s.create("last", nil)
	fast.until("what came last, or that some is not told", func(h heard, o object) bool {
		return h.event == "reload" || o.text("job") == "last"
	})
	slow.SetReadDeadline(time.Now().Add(2 * patience))
	time.Sleep(time.Second)
	text, buf := "", make([]byte, 1<<20)
	for !strings.Contains(text, "event: reload") {
		n, err := slow.Read(buf)
		text = text[max(0, len(text)-100):] + string(buf[:n])
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Errorf("the slow one is neither cut off nor told: %v", err)
			}
			break
		}
	}
}
