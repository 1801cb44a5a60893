//go:build faults

package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	"go-crontab/test/faultproxy"
	"go-crontab/test/ledger"
)

// Settings of a program that is built with the tag failpoint; see package internal/failpoint.
const (
	pointVariable  = "GOCRONTAB_FAILPOINT"
	pointsVariable = "GOCRONTAB_FAILPOINT_LOG"
	// pointedVariable names a program with the tag, to use instead of building one.
	pointedVariable = "GOCRONTAB_FAULTS_POINTED_BINARY"
	// roundsVariable sets the number of rounds of kills, instead of 1, or 20 with LONG=1.
	roundsVariable = "GOCRONTAB_FAULTS_ROUNDS"
	// onlyVariable restricts the points of TestF42Points to those whose names match a regular expression.
	onlyVariable = "GOCRONTAB_FAULTS_POINTS"
)

// pointed is the program, built with points.
var pointed = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(pointedVariable); path != "" {
		return path, nil
	}
	path := filepath.Join(filepath.Dir(binary), "go-crontab-pointed")
	build := exec.Command("go", "build", "-tags", "failpoint", "-trimpath", "-buildvcs=false", "-o", path, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with points: %w\n%s", err, out)
	}
	return path, nil
})

// mustPass lists points that every census must pass to cover a run. Other points are taken as well.
var mustPass = []string{
	"insert runs", "move cursors", "take runs", "start runs", "mark jobs as begun", "finish runs",
	"finish runs with output", "refuse runs",
	"insert next attempts", "record ends of runs", "record runs that did not succeed", "release runs",
	"mark awaited runs", "let runs wait", "pass on the turn", "wake runs", "change used slots", "replace runs",
	"insert session", "number a session", "delete session", "end session", "end a session", "audit session",
	"insert jobs", "insert versions", "write jobs", "take back runs", "insert request", "insert backfill",
	"move backfills", "write a kill request",
	"write stop", "remove stop", "write pauses", "drop pauses", "end pauses", "update calendar", "cordon node",
	"uncordon node",
	"write live output", "drop live output",
}

// mustPassLong lists further points, which the gate has no time to wait for.
var mustPassLong = []string{
	"mark jobs as broken", "move cursors and mark jobs as begun", "insert alert", "insert delivery",
	"claim delivery", "settle delivery",
}

// mustPassToo lists points that are not statements.
var mustPassToo = []string{
	"before fork", "behind fork", "behind seat", "before execute", "behind execute", "behind put outcome",
	"before beat", "behind beat",
	"before the sets of claim", "behind the sets of claim", "before the sets of start", "behind the sets of start",
	"before the sets of take", "behind the sets of take", "before the sets of finish", "behind the sets of finish",
	"before the sets of finish together", "behind the sets of finish together", "before the sets of give back",
	"before rename spool", "behind rename spool", "before clear spool", "behind clear spool", "before guard sweep",
	"behind guard sweep", "before guard burial",
	"before send request", "behind send request", "behind read answer",
	"before lose session", "behind lose session", "before lost sweep", "behind lost sweep", "behind lost session",
}

// rarely lists statements whose points a round may miss. A node cannot be led to them: usually
// another node comes first, or they run once a minute, or, for postponed runs, a pause must come
// between the claim and the start of a backfill's run. Each of their points is reached in some
// round.
var rarely = []string{
	"claim delivery", "settle delivery", "grow delivery", "count message", "drop old alerts", "postpone runs",
}

// tries is the number of lives for a point in a round.
func tries() int { return times(2, 6) }

// TestF42Points ends nodes at every point between two effects of the code, as kill -9 does, while
// other nodes continue.
func TestF42Points(t *testing.T) {
	program, err := pointed()
	if err != nil {
		t.Fatal(err)
	}
	r := scenario(t, "F42+", "kill -9 of a node at every point between two effects of its code")
	rounds := times(1, 20)
	if text := os.Getenv(roundsVariable); text != "" {
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("%s=%q: want a number of rounds, at least 1", roundsVariable, text)
		}
	}
	only, err := regexp.Compile(os.Getenv(onlyVariable))
	if err != nil {
		t.Fatalf("%s: %v", onlyVariable, err)
	}

	kills, missed := 0, map[string]int{}
	reached := map[string]int{}

	var names []string // the census of the first round serves all rounds
	for n := range rounds {
		if end, is := t.Deadline(); n > 0 && is && time.Until(end) < 15*time.Minute {
			t.Errorf("there is time for %d rounds only, want %d", n, rounds)
			rounds = n
			break
		}

		t.Run(fmt.Sprint("round ", n), func(t *testing.T) { // whose nodes end with it
			r.t = t
			p := newPoints(t, r, program, dice(fmt.Sprint("points ", n)))
			if names == nil {
				names = slices.DeleteFunc(p.census(), func(name string) bool { return !only.MatchString(name) })
				if len(names) == 0 {
					t.Fatalf("%s=%q matches no point", onlyVariable, only)
				}
			}
			p.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			p.strike(slices.Clone(names[:min(len(names), times(40, len(names)))]))
			p.close()

			if rounds > 1 {
				open := slices.DeleteFunc(slices.Sorted(maps.Keys(p.missed)),
					func(name string) bool { return p.hit[name] })
				result := "ok"
				if t.Failed() {
					result = "FAILED"
				}
				fmt.Printf("F42+ round %d %s: %d points, %d kills, %d lives that missed, not reached: %s\n", n, result,
					len(names), p.kills, sum(p.missed), strings.Join(open, ", "))
			}

			kills += p.kills
			for name := range p.hit {
				reached[name]++
			}

			for name, n := range p.missed {
				missed[name] += n
			}
		})

		r.t = t
		if t.Failed() {
			break
		}
	}

	for name := range reached {
		delete(missed, name)
	}

	r.figure("%d points, %d kills in %d rounds", len(reached), kills, rounds)

	if long && !t.Failed() {
		for _, fault := range everywhere(names, reached, rounds) {
			t.Error(fault)
		}
	}

	if len(missed) > 0 {
		r.figure("not reached in time: %s", strings.Join(slices.Sorted(maps.Keys(missed)), ", "))
	}
	if len(missed) > len(reached)/4 { // some are passed once in minutes, as a chore
		t.Errorf("%d points were not reached, %d were: too many to say anything", len(missed), len(reached))
	}
}

// everywhere returns the points that were reached in too few rounds. A point has several lives in a
// round, but on a busy machine all may be too short, so a few rounds may lack it.
func everywhere(names []string, reached map[string]int, rounds int) (faults []string) {
	got, all := 0, 0
	for _, name := range names {
		_, what, _ := strings.Cut(name, " ")
		want := rounds - max(1, rounds/5)
		if slices.Contains(rarely, what) {
			want = min(1, rounds/10)
		} else {
			got, all = got+min(reached[name], rounds), all+rounds
		}

		if reached[name] < want {
			faults = append(faults, fmt.Sprintf("%q was reached in %d of %d rounds, want %d", name, reached[name],
				rounds, want))
		}
	}

	if got < all*19/20 {
		faults = append(faults, fmt.Sprintf("points were reached %d times in %d rounds, of %d times, want 95 %%", got,
			rounds, all))
	}

	return faults
}

// TestEverywhere plants points that are reached too seldom.
func TestEverywhere(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("before ", i))
	}

	rare := "commit " + rarely[0]
	names = append(names, rare)
	for what, c := range map[string]struct {
		plant func(map[string]int)
		want  int
	}{
		"all of them":           {func(map[string]int) {}, 0},
		"one lacks some rounds": {func(m map[string]int) { m["before 7"] = 16 }, 0},
		"one lacks more":        {func(m map[string]int) { m["before 7"] = 15 }, 1},
		"one in none":           {func(m map[string]int) { delete(m, "before 7") }, 1},
		"a rare one in one":     {func(m map[string]int) { m[rare] = 1 }, 0},
		"a rare one in none":    {func(m map[string]int) { delete(m, rare) }, 1},
		"each lacks one round": {func(m map[string]int) {
			maps.DeleteFunc(m, func(n string, _ int) bool { m[n] = 19; return false })
		}, 0},
		"and each of them another": {func(m map[string]int) {
			maps.DeleteFunc(m, func(n string, _ int) bool { m[n] = 18; return false })
		}, 1},
	} {
		reached := map[string]int{}
		for _, name := range names {
			reached[name] = 20
		}
		c.plant(reached)
		if got := everywhere(names, reached, 20); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", what, got, c.want)
		}
	}
}

func sum(counts map[string]int) (n int) {
	for _, m := range counts {
		n += m
	}
	return n
}

// points is a cluster whose nodes end at points. The first node lives on, and the middle ones are
// the victims. The last node has no guard and is killed now and then, so another node must bury its
// session.
type points struct {
	t     *testing.T
	r     *report
	c     *cluster
	l     *load
	rng   *rand.Rand
	log   string
	ids   map[string]int64 // of jobs, by name
	ctx   context.Context  // ends the constant actions of people
	stop  context.CancelFunc
	churn sync.WaitGroup

	victims  []*victim
	reaped   time.Time // when the last node was killed, or will be killed next
	unburied uuid.UUID // session of the last node while it is dead
	kills    int
	hit      map[string]bool
	missed   map[string]int

	server   *httptest.Server
	breaking sync.Mutex
	mu       sync.Mutex
	frozen   map[*member]bool
	asked    []string // ids of answered requests for a run, which must therefore exist
	jobs     []int64  // ids of jobs that were made, in the same way
}

// victim is a node that is meant to end at a point.
type victim struct {
	m     *member
	point string
	log   string
	begun time.Time
	asked time.Time // time of the request that leads to the point: a drain, a burial
	back  time.Time // when it may reach MySQL again, or continue
	ready bool
	ours  bool // the test has killed it
}

// what returns the point without its first word.
func (v *victim) what() string {
	_, what, _ := strings.Cut(v.point, " ")
	return what
}

// is reports whether a victim's point is about one of the given things.
func (v *victim) is(whats ...string) bool { return slices.Contains(whats, v.what()) }

func newPoints(t *testing.T, r *report, program string, rng *rand.Rand) *points {
	c := newCluster(r)
	p := &points{t: t, r: r, c: c, rng: rng, log: filepath.Join(c.dir, "points"), hit: map[string]bool{},
		missed: map[string]int{}, frozen: map[*member]bool{}}
	t.Cleanup(func() { killAll(having(t, "cmdline", c.ledger)) }) // of the last node, which has no guard

	victims := times(2, 3) // more would only overload a machine with two processors
	for i := range 1 + victims + 1 {
		// So that a returning node has work at once.
		m := c.add("--drain-grace", "1s", "--look-ahead", "1s", "--http-allow", "127.0.0.0/8")
		m.program = program

		switch i {
		case 0:
		case 1 + victims:
			m.args = append(m.args, "--no-guard")
		default:
			m.env = []string{pointsVariable + "=" + p.log}
			p.victims = append(p.victims, &victim{m: m})
		}

		m.start()
	}

	for _, m := range c.nodes {
		m.ready(60 * time.Second)
	}

	p.l = c.mixed()
	p.l.patient = true
	p.l.starts = 4 * atOnce // runs that were overdue while nodes came back start at once
	p.serve()
	p.fill()
	ctx, stop := context.WithCancel(context.Background())
	p.ctx, p.stop = ctx, stop
	t.Cleanup(func() { stop(); p.churn.Wait() })
	p.ids = p.made()

	for i := range 3 {
		p.churn.Go(func() { p.people(ctx, i) })
	}

	// From here on, because victims no longer pass the points that a cluster passes only in its
	// first minute.
	if err := os.Truncate(p.log, 0); err != nil {
		t.Fatal(err)
	}

	p.reaped = time.Now().Add(2 * time.Second)
	return p
}

// serve answers the requests of HTTP jobs, which write to the ledger as commands do, and accepts
// alerts.
func (p *points) serve() {
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		header := request.Header
		due, err := time.Parse(time.RFC3339Nano, header.Get("X-Gocrontab-Due"))
		if err != nil {
			return // an alert
		}
		attempt, _ := strconv.Atoi(header.Get("X-Gocrontab-Attempt"))

		e := ledger.Entry{Kind: ledger.Start, App: header.Get("X-Gocrontab-App"), Job: header.Get("X-Gocrontab-Job"),
			Due:     job.MicrosOf(due),
			Attempt: attempt, Launch: header.Get("X-Gocrontab-Launch"), At: ledger.Now(), PID: os.Getpid()}
		if err := p.l.book.Append(e); err != nil {
			p.t.Error(err)
		}

		select {
		case <-time.After(150 * time.Millisecond):
			e.Kind, e.At = ledger.End, ledger.Now()
			_ = p.l.book.Append(e)
		case <-request.Context().Done(): // the client is dead
		}
	}))

	p.t.Cleanup(p.server.Close)
}

// fill adds jobs of the other kinds. For jobs in p.l each due time is compared with schedule,
// history and ledger, although some are edited all the time. The others are paused and run by hand,
// so only their executions are checked.
func (p *points) fill() {
	for name, body := range map[string]object{
		"one slot": {"slots": 1, "rate": "100/1s"},
	} {
		p.must("PUT", "/api/v1/groups/"+name, body)
	}

	p.must("POST", "/api/v1/calendars", object{"name": "far", "exclude": []string{"2099-01-01"}})
	p.must("PUT", "/api/v1/alerts/channels/hook", object{"type": "webhook", "url": p.server.URL})
	p.must("PUT", "/api/v1/alerts/rules/all", object{"on": []string{"failed", "recovered"},
		"channels": []string{"hook"}})
	l := p.l
	command := func(d time.Duration) string { return l.book.Command(d, 0) }
	l.add("queued", time.Second, object{"command": command(700 * time.Millisecond), "overlap": "queue"})
	l.add("replaced", time.Second, object{"command": command(1300 * time.Millisecond), "overlap": "replace"})
	l.add("group-a", 4*time.Second, object{"command": command(300 * time.Millisecond), "overlap": "allow",
		"group": "one slot"})
	l.add("group-b", 4*time.Second, object{"command": command(300 * time.Millisecond), "overlap": "allow",
		"group": "one slot"})
	l.add("edited", time.Second, object{"command": command(100 * time.Millisecond), "overlap": "allow"})
	l.add("calendar", time.Second, object{"command": command(50 * time.Millisecond), "overlap": "allow",
		"calendars": []string{"far"}})
	l.add("speaks", 4*time.Second,
		object{"command": l.book.Wrap("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done"), "overlap": "allow"})
}

// must sends a request to the first node and fails the test if it is refused.
func (p *points) must(method, path string, body object) {
	p.t.Helper()
	if a := p.c.nodes[0].ask(method, strings.ReplaceAll(path, " ", "%20"), body); a.code/100 != 2 {
		p.t.Fatalf("%s %s: %d %s", method, path, a.code, a.body)
	}
}

// made makes jobs that people change at will, and jobs that only one victim may run, so that it
// reaches their points.
func (p *points) made() map[string]int64 {
	ids := map[string]int64{}
	for _, j := range p.l.jobs {
		ids[j.Name] = j.ID
	}

	command := func(d time.Duration) string { return p.l.book.Command(d, 0) }

	add := func(name string, fields object) {
		body := object{"name": name, "every": "1s", "overlap": "allow"}
		maps.Copy(body, fields)
		if ids[name] = p.id(p.c.nodes[0].ask("POST", "/api/v1/jobs", body)); ids[name] == 0 {
			p.t.Fatalf("cannot make the job %q", name)
		}
	}

	for _, name := range byHand {
		add(name, object{"command": command(400 * time.Millisecond)})
	}

	add("in a paused app", object{"command": command(400 * time.Millisecond), "app": "ops"})
	for i := range 7 { // enough that several nodes hold and release them
		add(fmt.Sprint("in a paused app-", i), object{"command": "true", "app": "ops"})
	}

	add("moved about", object{"command": command(50 * time.Millisecond)})
	add("broken", object{"command": command(50 * time.Millisecond)})
	add("calls", object{"http": object{"url": p.server.URL}})

	for i := range 2 {
		add(fmt.Sprint("flips-", i), object{"command": p.l.book.Wrap("exit $((RANDOM % 2))")})
	}

	start := p.c.now().Add(time.Second).UTC().Format(time.RFC3339Nano) // at the same time for all, so that they compete
	for _, v := range p.victims {
		name := v.m.name
		p.must("PUT", "/api/v1/groups/"+name, object{"slots": 1})

		here := func(kind string, fields object) {
			all := object{"selector": "node=" + name, "every": "2s", "start": start}
			maps.Copy(all, fields)
			add(kind+" "+name, all)
		}

		here("replaced", object{"command": command(5 * time.Second), "overlap": "replace"})
		here("speaks", object{"command": p.l.book.Wrap("for i in 1 2 3 4 5; do echo line $i; sleep 0.3; done"),
			"overlap": "queue", "group": name})
		here("fails", object{"command": p.l.book.Command(100*time.Millisecond, 3), "group": name,
			"retry": object{"attempts": 2, "backoff": "500ms"}})
		here("calls", object{"http": object{"url": p.server.URL}})
	}

	return ids
}

// byHand lists the jobs that people pause and run.
var byHand = []string{"paused", "by hand"}

// people change things all the time, on the victims and on other nodes. The result of a request is
// unknown if its node dies, and either result is right.
func (p *points) people(ctx context.Context, who int) {
	rng := rand.New(rand.NewPCG(seed, uint64(who)))
	for n := 0; ctx.Err() == nil; n++ {
		m := p.c.nodes[0]
		if v := p.anyVictim(rng); rng.IntN(5) > 0 && !p.isFrozen(v) {
			m = v
		}
		ask := func(method, path string, body any) answer {
			return m.quick(method, path, body)
		}

		switch (n + 4*who) % 13 {
		case 0:
			ask("PATCH", p.path("edited", ""), object{"timeout": fmt.Sprintf("%ds", 30+rng.IntN(30))})
		case 1:
			ask("POST", p.path("paused", "/pause"), object{})
			ask("POST", p.path("paused", "/resume"), object{})
		case 2:
			p.run(m)
		case 3:
			p.backfill(m)
		case 4:
			ask("POST", "/api/v1/apps/ops/pause?absent=ok", object{})
			time.Sleep(200 * time.Millisecond)
			ask("POST", "/api/v1/apps/ops/resume?absent=ok", object{})
		case 5:
			ask("PUT", "/api/v1/calendars/far", object{"exclude": []string{fmt.Sprintf("20%d-01-01", 50+rng.IntN(40))}})
		case 6:
			p.killOne(m)
		case 7:
			id := p.id(ask("POST", "/api/v1/jobs", object{"name": fmt.Sprint("short-lived-", who, "-", n),
				"every": "500ms", "command": p.l.book.Command(50*time.Millisecond, 0), "overlap": "allow"}))
			time.Sleep(300 * time.Millisecond)

			if id != 0 {
				p.mu.Lock()
				p.jobs = append(p.jobs, id)
				p.mu.Unlock()
				ask("DELETE", fmt.Sprint("/api/v1/jobs/", id), nil)
			}
		case 8:
			name := p.anyVictim(rng).name
			ask("POST", "/api/v1/nodes/"+name+"/cordon", object{})
			time.Sleep(300 * time.Millisecond)
			if a := ask("POST", "/api/v1/nodes/"+name+"/uncordon", object{}); a.code != 200 {
				p.c.nodes[0].quick("POST", "/api/v1/nodes/"+name+"/uncordon", object{})
			}
		case 9:
			ask("PUT", "/api/v1/groups/one%20slot", object{"slots": 1})
			ask("POST", p.path("paused", "/pause"),
				object{"until": time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)})
		case 10:
			p.move(m, rng)
		case 11:
			p.breakOne()
		case 12:
			p.evaluates(p.anyVictim(rng))
		}

		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+rng.IntN(60)) * time.Millisecond):
		}
	}
}

// path returns the path of a job in the API.
func (p *points) path(name, rest string) string {
	return fmt.Sprintf("/api/v1/jobs/%d%s", p.ids[name], rest)
}

// run requests a manual run.
func (p *points) run(m *member) {
	a := m.quick("POST", p.path("by hand", "/run"), object{})
	var made struct{ Request string }
	if a.code/100 != 2 {
		return // it died, or says so
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Request == "" {
		p.t.Errorf("a run by hand was answered %d %s", a.code, a.body)
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.asked = append(p.asked, made.Request)
}

// backfill requests some past due times again.
func (p *points) backfill(m *member) {
	to := time.Now().Add(-2 * time.Second).UTC()
	m.quick("POST", p.path("by hand", "/backfill"), object{"from": to.Add(-4 * time.Second).Format(time.RFC3339),
		"to": to.Format(time.RFC3339), "parallel": 2})
}

// killOne kills a manual run.
func (p *points) killOne(m *member) {
	var running struct{ Items []struct{ ID, Job string } }
	a := m.quick("GET", "/api/v1/runs?state=running&job_id="+fmt.Sprint(p.ids["by hand"]), nil)
	if json.Unmarshal([]byte(a.body), &running) == nil && len(running.Items) > 0 {
		m.quick("POST", "/api/v1/runs/"+running.Items[0].ID+"/kill", object{})
	}
}

// move changes a job's placement and its priority.
func (p *points) move(m *member, rng *rand.Rand) {
	m.quick("PATCH", p.path("moved about", ""),
		object{"selector": "node!=" + p.anyVictim(rng).name, "priority": rng.IntN(10)})
}

func (p *points) freeze(m *member, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen[m] = is
}

func (p *points) isFrozen(m *member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frozen[m]
}

// checkPromises checks everything that people were promised, before the jobs concerned are deleted.
func (p *points) checkPromises() {
	t, c := p.t, p.c
	t.Helper()
	for _, other := range c.nodes {
		p.must("POST", "/api/v1/nodes/"+other.name+"/uncordon", object{})
		// A node may have died before it did the work that its lure requested.
		p.must("POST", "/api/v1/handlers/"+other.name+"/enable", object{})
	}

	p.must("POST", "/api/v1/apps/ops/pause?absent=ok", object{"until": "1s"})
	p.must("POST", p.path("paused", "/pause"), object{"until": "1s"}) // both end by themselves
	limit := c.soon() + 20*time.Second

	for _, id := range p.asked {
		if c.count("SELECT COUNT(*) FROM request WHERE id = ?", id) != 1 {
			t.Errorf("request %s for a run was answered, and is lost", id)
		}
	}

	for _, id := range p.jobs {
		if c.count("SELECT COUNT(*) FROM job WHERE id = ?", id) != 1 {
			t.Errorf("job %d was made, and is lost", id)
		}
	}

	for what, query := range map[string]string{
		"runs by hand that have not ended": `
			SELECT COUNT(*)
			FROM request q
			WHERE q.kind = 'run' AND NOT EXISTS (
				SELECT 1 FROM run r WHERE r.job_id = q.job_id AND r.request = q.id AND r.final = 1)`,
		"backfills that have not ended": "SELECT COUNT(*) FROM backfill WHERE state = 'running'",
		"due times of backfills without a final run": `
			SELECT COALESCE(SUM(b.planned - b.left_out - (
				SELECT COALESCE(SUM(COALESCE(r.due_count, 1)), 0)
				FROM run r
				WHERE r.job_id = b.job_id AND r.request = b.id AND r.final = 1)), 0)
			FROM backfill b
			WHERE b.state = 'done'`,
		"due times that backfills have left out": `
			SELECT COALESCE(SUM(total - planned), 0)
			FROM backfill
			WHERE state = 'done'`,
		"pauses that have not ended": `
			SELECT (SELECT COUNT(*) FROM stop WHERE until = 0 OR until > UNIX_TIMESTAMP(NOW(6)) * 1000000)
				+ (SELECT COUNT(*) FROM job_pause)`,
		"jobs that were not resumed": `
			SELECT COUNT(*)
			FROM job
			WHERE living = 1 AND (paused = 1 OR parked IS NOT NULL)`,
		"jobs that cannot be planned": "SELECT COUNT(*) FROM job WHERE living = 1 AND error <> ''",
	} {
		left := -1
		for begun := time.Now(); left != 0; time.Sleep(50 * time.Millisecond) {
			if left = c.count(query); left != 0 && time.Since(begun) > limit+3*stalled(begun) {
				t.Fatalf("%d %s, after %s", left, what, short(time.Since(begun)))
			}
		}
	}

	p.r.figure("%d runs by hand, %d backfills", c.count("SELECT COUNT(*) FROM request WHERE kind = 'run'"),
		c.count("SELECT COUNT(*) FROM backfill"))
	if len(p.asked) == 0 || c.count("SELECT COUNT(*) FROM backfill") == 0 {
		t.Errorf("%d requests for a run were answered, %d backfills: nothing was tried", len(p.asked),
			c.count("SELECT COUNT(*) FROM backfill"))
	}

	// From now on each is due every second or two again, as if nothing had happened.
	from := c.now().Add(time.Second)
	to := from.Add(4 * time.Second)
	p.wait(time.Until(to))

	for _, name := range slices.Sorted(maps.Keys(p.ids)) {
		want := 4
		if slices.ContainsFunc(p.victims, func(v *victim) bool { return strings.HasSuffix(name, v.m.name) }) {
			want = 2
		} else if slices.ContainsFunc(p.l.jobs, func(j ledger.Job) bool { return j.Name == name }) {
			continue // each of its due times is compared with its record
		}

		due := func() int {
			return c.count(`
				SELECT COALESCE(SUM(COALESCE(due_count, 1)), 0)
				FROM run
				WHERE job_id = ? AND kind = 'schedule' AND final = 1 AND due >= ? AND due < ?`,
				p.ids[name], from.UnixMicro(), to.UnixMicro())
		}

		for begun := time.Now(); due() != want; time.Sleep(50 * time.Millisecond) {
			if time.Since(begun) > limit+3*stalled(begun) {
				t.Errorf("%s: %d due times of %s have ended, want %d", name, due(), short(to.Sub(from)), want)
				break
			}
		}
	}
}

// tidy ends everything that people have made.
func (p *points) tidy() {
	for name, id := range p.ids {
		if !slices.ContainsFunc(p.l.jobs, func(j ledger.Job) bool { return j.Name == name }) {
			p.must("DELETE", fmt.Sprint("/api/v1/jobs/", id), nil)
		}
	}
}

func (p *points) id(a answer) int64 {
	var made struct{ ID json.Number }
	if a.code != 201 {
		return 0 // the node died
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil {
		p.t.Errorf("POST /api/v1/jobs: %v: %s", err, a.body)
	}
	id, _ := made.ID.Int64()
	return id
}

// quick sends a request to a node that may be dead.
func (m *member) quick(method, path string, body any) answer {
	if m.url == "" {
		return answer{}
	}
	return m.ask(method, path, body)
}

func (p *points) anyVictim(rng *rand.Rand) *member { return p.c.nodes[1+rng.IntN(len(p.victims))] }

// census lets the cluster live for a while, with a drain, a spool and a death, and returns the
// passed points.
func (p *points) census() []string {
	t := p.t
	t.Helper()
	var want []string
	whats := mustPass
	if long {
		whats = slices.Concat(mustPass, mustPassLong)
	}

	for _, what := range whats {
		want = append(want, "before "+what, "commit "+what, "committed "+what)
	}

	want = append(want, mustPassToo...)
	end := time.Now().Add(3 * time.Minute)
	lost := p.loses(p.victims[0].m)
	for n := 0; len(want) > 0 || lost != nil; n++ {
		p.wait(2 * time.Second)

		m := p.anyVictim(p.rng)
		if lost != nil && !lost() {
			m = p.victims[1].m
		} else {
			lost = nil
		}

		if n > 1 && len(want) > 0 {
			p.uncordon()
			for _, v := range p.victims {
				p.lure(&victim{m: v.m, point: want[p.rng.IntN(len(want))]})
			}
			p.wait(time.Second)
		}

		switch n % 3 {
		case 0:
			m.signal(syscall.SIGTERM)
		case 1:
			p.cutOff(m)
		case 2:
			m.signal(syscall.SIGKILL)
		}

		<-m.ended
		m.proxy.Heal()
		m.start()
		m.ready(60 * time.Second)
		names := p.passed(p.log)
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(names, name) })
		if len(want) > 0 && time.Now().After(end) {
			t.Fatalf("nobody came by these points: %s", strings.Join(want, ", "))
		}
	}

	p.uncordon()
	return p.passed(p.log)
}

// loses makes a node lose its session and live: it cannot reach MySQL until its peers have buried
// the session. The returned function reports whether it has a new session.
func (p *points) loses(m *member) func() bool {
	session, begun := m.session(), time.Now()
	m.proxy.Blackhole(faultproxy.BothWays)
	healed := false
	return func() bool {
		if !healed && p.c.isBuried(session) {
			m.proxy.Heal()
			healed = true
		}

		if healed && m.session() != uuid.Nil && m.session() != session {
			if m.isDead() {
				p.t.Errorf("%s was to lose its session and to live", m.name)
			}
			return true
		}

		if limit := 2*p.c.expiry + 40*time.Second + 3*stalled(begun); time.Since(begun) > limit {
			p.t.Fatalf("%s lost its session and has no other within %s; healed: %v, dead: %v", m.name, short(limit),
				healed, m.isDead())
		}

		return false
	}
}

// cutOff takes MySQL away from a busy node, and then drains it: its outcomes are spooled.
func (p *points) cutOff(m *member) {
	session := m.session()
	for end := time.Now().Add(5 * time.Second); len(p.c.commandsOf(session)) < 2 && time.Now().Before(end); {
		p.wait(20 * time.Millisecond)
	}
	m.proxy.Blackhole(faultproxy.BothWays)
	p.wait(1200 * time.Millisecond)
	m.signal(syscall.SIGTERM)
}

// passed returns the points in a log.
func (p *points) passed(log string) []string {
	content, _ := os.ReadFile(log)
	names := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// wait lets the cluster work for a while.
func (p *points) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p.tick()
	}
}

// tick kills the last node now and then, together with its commands, as systemd would. It starts
// the node again when the others have buried it.
func (p *points) tick() {
	m := p.c.nodes[len(p.c.nodes)-1]
	switch {
	case p.unburied != uuid.Nil:
		if !p.c.isBuried(p.unburied) {
			if limit := p.c.expiry + 20*time.Second + 3*stalled(p.reaped); time.Since(p.reaped) > limit {
				p.t.Fatalf("session %s, %s after its end: %d rows of it are left, and it executes %d runs", p.unburied,
					short(limit),
					p.c.count("SELECT COUNT(*) FROM session WHERE id = ?", p.unburied[:]), p.c.executing(p.unburied))
			}
			return
		}

		m.start()
		p.unburied, p.reaped = uuid.Nil, time.Now().Add(time.Duration(4+p.rng.IntN(6))*time.Second)
	case time.Now().After(p.reaped):
		m.ready(60 * time.Second)
		p.unburied, p.reaped = m.session(), time.Now()
		m.kill()
		killAll(p.c.commandsOf(p.unburied))
	}
}

// strike makes the victims end at each point. Points that only the first node of the cluster
// reaches come last, because other nodes are cordoned for them.
func (p *points) strike(names []string) {
	for _, v := range p.victims {
		v.ours = true
		v.m.kill()
	}

	first := func(name string) bool { return (&victim{point: name}).isFirst() }
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(btoi(first(a)), btoi(first(b))) })

	for left := len(p.victims); left > 0; time.Sleep(10 * time.Millisecond) {
		left = 0
		for _, v := range p.victims {
			if v.m.isDead() {
				if point := v.point; point != "" && !p.died(v) && p.missed[point] < tries() {
					names = append(names, point) // try it again
				}

				busy := slices.ContainsFunc(p.victims, (*victim).isFirst)
				if n := slices.IndexFunc(names, func(name string) bool { return !busy || !first(name) }); n >= 0 {
					p.arm(v, names[n])
					names = slices.Delete(names, n, n+1)
				} else {
					left += len(names)
				}
			}

			if v.point != "" {
				p.lead(v)
				left++
			}
		}

		p.tick()
	}
}

func btoi(is bool) int {
	if is {
		return 1
	}
	return 0
}

// isFirst reports whether only the first node, by session id, reaches a victim's point.
func (v *victim) isFirst() bool { return v.is("raise mark") }

// isOnce reports whether a node reaches a victim's point once in its life, or once in many seconds.
func (v *victim) isOnce() bool {
	return v.isFirst() || v.isSpool() || v.isGuard() || v.isLost() || v.isSlow() ||
		v.is("insert session", "number a session", "end session", "end a session", "audit session", "delete session",
			"record time zone data", "mark jobs as broken")
}

func (v *victim) isSpool() bool { return v.is("rename spool", "clear spool") }
func (v *victim) isGuard() bool { return strings.HasPrefix(v.what(), "guard ") }
func (v *victim) isLost() bool  { return v.is("lose session", "lost sweep", "lost session") }

// isSlow reports whether a node reaches a victim's point only every ten seconds.
func (v *victim) isSlow() bool {
	return v.isFirst() ||
		v.is("take chore", "record the work of a chore", "write run statistics", "remove old run statistics")
}

// arm begins a victim's next life.
func (p *points) arm(v *victim, point string) {
	m := v.m
	*v = victim{m: m, point: point}
	n := 1
	if p.rng.IntN(2) == 0 && p.missed[point] == 0 && !v.isOnce() {
		n = 1 + p.rng.IntN(3)
	}

	if v.is("clear spool") { // of an earlier life
		m.env = nil
		m.start()
		m.ready(60 * time.Second)
		p.cutOff(m)
		<-m.ended
		m.proxy.Heal()
	}

	v.log = filepath.Join(p.c.dir, fmt.Sprint("points-", p.kills, "-", sum(p.missed), m.name))
	v.begun = time.Now()
	m.env = []string{fmt.Sprintf("%s=%s:%d", pointVariable, point, n), pointsVariable + "=" + v.log}
	m.start()
}

// lead takes a victim to its point, if it does not reach it by itself.
func (p *points) lead(v *victim) {
	m := v.m
	if m.isDead() {
		return
	}

	if !v.ready {
		if m.url == "" {
			if found := apiLine.FindStringSubmatch(m.logged()); found != nil {
				m.url = found[1]
			}
		}

		switch v.ready = m.url != "" && m.isReady(); {
		case v.ready:
			v.begun = time.Now()
			p.lure(v)
		case time.Since(v.begun) > 40*time.Second:
			v.ours = true
			m.signal(syscall.SIGKILL)
		}

		return
	}

	alive := time.Since(v.begun)
	drained := 6 * time.Second
	if v.isSlow() {
		drained = 14 * time.Second
	}

	switch {
	case !v.back.IsZero() && time.Now().After(v.back):
		m.signal(syscall.SIGCONT)
		p.freeze(m, false)
		m.proxy.Heal()
		v.back = time.Time{}
	case !v.back.IsZero():
	case v.asked.IsZero() && v.isSpool() && v.point != "before clear spool" && v.point != "behind clear spool" &&
		alive > time.Second:
		v.asked = time.Now()
		p.cutOff(m)
	case v.asked.IsZero() && v.isGuard() && alive > 1500*time.Millisecond:
		v.ours, v.asked = true, time.Now()
		m.signal(syscall.SIGKILL)
	case v.asked.IsZero() && v.isLost() && alive > time.Second:
		// It loses its session and lives: it cannot reach MySQL, or is stopped, for longer than a
		// session may be silent.
		v.asked, v.back = time.Now(), time.Now().Add(p.c.expiry+time.Second)
		if p.rng.IntN(2) == 0 {
			m.proxy.Blackhole(faultproxy.BothWays)
		} else {
			p.freeze(m, true)
			m.signal(syscall.SIGSTOP)
		}
	case v.asked.IsZero() && alive > drained:
		v.asked = time.Now()
		m.signal(syscall.SIGTERM)
	case alive > drained+14*time.Second:
		v.ours = true
		m.signal(syscall.SIGKILL)
	}
}

// lure keeps requesting work that leads a victim to its point, until the victim ends. Most requests
// go to the victim itself: otherwise another node usually does the work.
func (p *points) lure(v *victim) {
	var step func(m *member, n int)
	m, name := v.m, v.m.name
	switch v.what() {
	case "insert jobs", "insert versions", "insert references", "list jobs by names", "list jobs by terms",
		"unlist names of jobs", "unlist terms of jobs",
		"take back runs", "insert audit line":
		step = func(m *member, n int) {
			body := object{"name": fmt.Sprint("lure-", name, "-", n, "-", time.Now().UnixNano()), "every": "500ms",
				"command": "true", "overlap": "allow",
				"calendars": []string{"far"}, "labels": object{"lure": "1"}, "owner": "somebody"}
			if id := p.id(m.quick("POST", "/api/v1/jobs", body)); id != 0 {
				path := fmt.Sprint("/api/v1/jobs/", id)
				m.quick("PATCH", path, object{"name": body["name"].(string) + "-renamed"})
				if m.quick("DELETE", path, nil).code/100 != 2 {
					p.c.nodes[0].quick("DELETE", path, nil)
				}
			}
		}

	case "write jobs":
		step = func(m *member, n int) {
			m.quick("PATCH", p.path("edited", ""), object{"timeout": fmt.Sprintf("%ds", 60+n%30)})
		}

	case "insert request", "take runs":
		step = func(m *member, n int) { p.run(m) }

	case "insert backfill", "move backfills":
		step = func(m *member, n int) { p.backfill(m) }

	case "write a kill request":
		step = func(m *member, n int) { p.run(m); p.killOne(m) }

	case "remove stop": // of a handler that is enabled again
		step = func(m *member, n int) {
			p.exec(`
				REPLACE INTO stop (kind, name, app_id, since, until, who, reason)
				VALUES ('handler', ?, 0, 1, 0, '', '')`, name)
			m.quick("POST", "/api/v1/handlers/"+name+"/enable", object{})
		}

	case "write stop", "postpone runs":
		step = func(m *member, n int) {
			m.quick("POST", "/api/v1/apps/ops/pause?absent=ok", object{})
			time.Sleep(time.Duration(n%3) * 300 * time.Millisecond) // nodes that start runs meanwhile delay it
			m.quick("POST", "/api/v1/apps/ops/resume?absent=ok", object{})
			time.Sleep(time.Duration(n%3) * 300 * time.Millisecond)
		}

	case "update calendar":
		step = func(m *member, n int) {
			m.quick("PUT", "/api/v1/calendars/far", object{"exclude": []string{fmt.Sprintf("20%d-02-02", 50+n%40)}})
		}

	case "cordon node", "uncordon node", "release runs":
		step = func(m *member, n int) {
			m.quick("POST", "/api/v1/nodes/"+name+"/cordon", object{})
			time.Sleep(time.Duration(n%4) * 100 * time.Millisecond)
			if m.quick("POST", "/api/v1/nodes/"+name+"/uncordon", object{}).code != 200 {
				p.c.nodes[0].quick("POST", "/api/v1/nodes/"+name+"/uncordon", object{})
			}
		}

	case "insert group", "change group":
		step = func(m *member, n int) {
			m.quick("PUT", "/api/v1/groups/one%20slot", object{"slots": 1, "rate": fmt.Sprintf("%d/1s", 100+n%2)})
		}

	case "take chore", "record the work of a chore": // its holder keeps it for minutes, dead or alive
		step = func(m *member, n int) { p.exec("UPDATE chore SET session_id = NULL, until = 0") }

	case "write pauses", "drop pauses", "end pauses":
		step = func(m *member, n int) {
			m.quick("POST", p.path("paused", "/pause"),
				object{"until": time.Now().Add(300 * time.Millisecond).UTC().Format(time.RFC3339Nano)})
			if n%2 == 0 {
				m.quick("POST", p.path("paused", "/resume"), object{})
			}
		}

	case "delete session", "audit session": // of silent nodes: the first node to find one buries it
		step = func(m *member, n int) {
			if n%8 == 0 {
				p.exec(`
					INSERT INTO session (id, node, started, beat_at)
					VALUES (UNHEX(REPLACE(UUID(), '-', '')), 'ghost',
						UNIX_TIMESTAMP() * 1000000, UNIX_TIMESTAMP() * 1000000)`)
			}
		}

	case "insert alert", "insert delivery", "update alert", "write the state of alerts", "claim delivery",
		"settle delivery":
		step = func(m *member, n int) {
			if n%5 == 0 {
				p.evaluates(m)
			}
		}

	case "raise mark":
		step = p.first

	default:
		return
	}

	ended := m.ended
	p.churn.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ended:
				return
			case <-p.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
				step(m, n)
			}
		}
	})
}

// breakOne makes a job unreadable, as if edited by hand in the tables: the next node that claims it
// says so. Once repaired, it continues after the due times that were claimed before.
func (p *points) breakOne() {
	p.breaking.Lock()
	defer p.breaking.Unlock()

	id := p.ids["broken"]
	next := p.c.count("SELECT next_due FROM job WHERE id = ?", id)
	p.exec("INSERT IGNORE INTO job_version (job_id, version, definition, created) VALUES (?, 1000, '!', 1)", id)
	p.exec("UPDATE job SET version = 1000 WHERE id = ?", id)
	time.Sleep(time.Second)

	const whole = `
		UPDATE job
		SET version = 1, error = '',
			next_due = COALESCE(next_due, ? + 1000000 * GREATEST(0, CEIL(UNIX_TIMESTAMP(NOW(6)) - ? / 1000000)))
		WHERE id = ?`

	for p.c.count("SELECT COUNT(*) FROM job WHERE id = ? AND version = 1000", id) > 0 {
		p.exec(whole, next, next, id)
	}
}

// exec makes changes that no node offers. A refused statement, such as a deadlock's victim, is soon
// retried.
func (p *points) exec(query string, args ...any) {
	if _, err := p.c.db.Exec(query, args...); err != nil {
		p.t.Logf("%s: %v", query, err)
	}
}

// uncordon makes all nodes take work again.
func (p *points) uncordon() {
	for _, m := range p.c.nodes {
		p.c.nodes[0].quick("POST", "/api/v1/nodes/"+m.name+"/uncordon", object{})
	}
}

// evaluates makes a single node evaluate alerts. The node that does it keeps the task while it
// lives.
func (p *points) evaluates(m *member) {
	session := m.session()
	p.exec("UPDATE alert_work SET holder = ?, until = UNIX_TIMESTAMP() * 1000000 + 5000000 WHERE id = 1", session[:])
}

// first cordons the nodes with earlier sessions than a victim.
func (p *points) first(m *member, n int) {
	if n%5 != 0 {
		return
	}

	mine := m.session()
	for _, other := range p.c.nodes {
		if s := other.session(); other != m && bytes.Compare(s[:], mine[:]) < 0 && s != uuid.Nil {
			p.c.nodes[0].quick("POST", "/api/v1/nodes/"+other.name+"/cordon", object{})
		}
	}

	p.c.nodes[0].quick("POST", "/api/v1/nodes/"+m.name+"/uncordon", object{})
}

// died finds the reason for a victim's death, and reports whether the victim ended at its point.
func (p *points) died(v *victim) (hit bool) {
	v.m.proxy.Heal()
	p.freeze(v.m, false)
	state, _ := v.m.cmd.ProcessState.Sys().(syscall.WaitStatus)
	came := func() bool { return slices.Contains(p.passed(v.log), v.point) } // otherwise its guard has killed it

	hit = state.Signaled() && state.Signal() == syscall.SIGKILL && !v.ours && came()
	if v.isGuard() || v.point == "commit end session" || v.point == "before end session" {
		// The guard itself ends there, perhaps a moment from now.
		for end := time.Now().Add(3 * time.Second); !hit && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			hit = came()
		}
	}

	if hit {
		p.kills++
		p.hit[v.point] = true
	} else {
		p.missed[v.point]++
	}

	if v.isFirst() {
		p.uncordon()
	}

	v.point = ""
	return hit
}

// close heals everything and checks the results.
func (p *points) close() {
	t, c := p.t, p.c
	t.Helper()
	p.stop()
	p.churn.Wait()

	for _, m := range c.nodes[1:] {
		m.proxy.Heal()
		if m.isDead() {
			m.env = nil
			m.start()
		}
	}

	for _, m := range c.nodes {
		m.ready(60 * time.Second)
	}

	p.unburied, p.reaped = uuid.Nil, time.Now().Add(time.Hour)
	p.checkPromises()
	p.tidy()
	p.l.behind = c.soon() // a stopped node may hold rows that others need to write an end
	p.l.check(0)

	// Jobs that come and go have no expectations. Their records must be consistent in themselves.
	entries, err := p.l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	p.others(entries)

	await(t, "nothing is left of what was deleted", c.expiry+20*time.Second, func() bool {
		return c.count(`
			SELECT COUNT(*)
			FROM run r
			JOIN job j ON j.id = r.job_id
			WHERE j.living IS NULL AND r.state <> 'ended'`) == 0
	})

	for query, what := range map[string]string{
		`SELECT COUNT(*)
		FROM grp g
		WHERE taken <> (SELECT COUNT(*) FROM run r WHERE r.grp = g.id AND r.state = 'executing')
		`: "groups that count their slots wrongly",

		`SELECT COUNT(*)
		FROM run
		WHERE (state = 'waiting') <> (owner = -1) OR (state = 'ended') <> (owner = -2)
		`: "runs whose owner and state disagree",

		`SELECT COUNT(*)
		FROM run r
		LEFT JOIN life l ON l.id = r.owner
		WHERE r.owner > 0 AND (l.id IS NULL OR l.gone IS NOT NULL)
		`: "runs of nobody",

		`SELECT COUNT(*)
		FROM (SELECT job_id, due, request FROM run WHERE final = 1 GROUP BY 1, 2, 3 HAVING COUNT(*) > 1) twice
		`: "due times that ended twice",
	} {
		await(t, "no "+what, c.expiry+10*time.Second, func() bool { return c.count(query) == 0 })
	}
}

// others checks the jobs that people have made.
func (p *points) others(entries []ledger.Entry) {
	known := map[string]bool{}
	for _, j := range p.l.jobs {
		known[j.Name] = true
	}

	launches := map[string]string{}
	starts := 0
	for _, e := range entries {
		if e.Kind != ledger.Start || known[e.Job] {
			continue
		}
		starts++
		if before := launches[e.Launch]; before != "" {
			p.t.Errorf("launch %s was started twice", e.Launch)
		}
		launches[e.Launch] = e.Job
	}

	if starts == 0 {
		p.t.Error("nothing was started of what people have made")
	}

	for launch, name := range launches {
		l, err := job.ParseLaunch(launch)
		if err != nil || p.c.count(`
			SELECT COUNT(*)
			FROM run
			WHERE id = ? AND claim = ? AND started > 0`, l.Run, l.Claim) != 1 {
			p.t.Errorf("launch %s of %s was started and has no record, %v", launch, name, err)
		}
	}
}
