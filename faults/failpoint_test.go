//go:build faults

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/ledger"
)

// What the program reads that is built with the tag failpoint, see package internal/failpoint.
const (
	pointVariable  = "GOCRONTAB_FAILPOINT"
	pointsVariable = "GOCRONTAB_FAILPOINT_LOG"
	// pointedVariable is a program with the tag other than the one that is built from here.
	pointedVariable = "GOCRONTAB_FAULTS_POINTED_BINARY"
)

// pointed is the program, built with points.
var pointed = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(pointedVariable); path != "" {
		return path, nil
	}
	path := filepath.Join(filepath.Dir(binary), "go-crontab-pointed")
	build := exec.Command("go", "build", "-tags", "failpoint", "-trimpath", "-buildvcs=false", "-o", path, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with points: %w\n%s", err, out)
	}
	return path, nil
})

// mustPass are points without which the trip of a task is not covered. What else a round comes by is taken as well.
var mustPass = []string{
	"move cursors", "insert tasks", "take locks", "claim", "mark started", "start", "insert runs", "end tasks", "retry tasks", "free tasks",
	"insert waiting", "wait", "delete waiting", "wake tasks", "write groups", "take slots", "free slots",
	"insert session", "delete session", "end session", "audit session", "change buckets",
	"insert job", "update job", "withdraw tasks", "insert request", "insert backfill", "update backfill", "request kill",
	"put pause", "hold jobs", "release jobs", "end pause", "drop pause", "update calendar", "replan jobs", "cordon node", "uncordon node",
	"write chunks", "drop chunks", "replace",
}

// mustPassToo are those that are no statements.
var mustPassToo = []string{
	"before fork", "behind fork", "behind seat", "before execute", "behind execute", "behind put outcome", "before beat", "behind beat",
	"before the sets of claim", "behind the sets of claim", "before the sets of start", "behind the sets of start",
	"before the sets of finish", "behind the sets of finish", "before the sets of compensate",
	"before rename spool", "behind rename spool", "before clear spool", "before guard sweep", "behind guard sweep", "before guard burial",
}

// TestF42Points ends nodes at every point between two effects of the code, as kill -9 does, while others go on.
func TestF42Points(t *testing.T) {
	program, err := pointed()
	if err != nil {
		t.Fatal(err)
	}
	r := scenario(t, "F42+", "kill -9 of a node at every point between two effects of its code")
	rounds := times(1, 20)
	kills, missed := 0, map[string]int{}
	reached := map[string]int{}
	var names []string // the census of the first round does for all
	for n := range rounds {
		if end, is := t.Deadline(); n > 0 && is && time.Until(end) < 15*time.Minute {
			rounds = n // as many as there is time for
			break
		}
		t.Run(fmt.Sprint("round ", n), func(t *testing.T) { // whose nodes end with it
			r.t = t
			p := newPoints(t, r, program, dice(fmt.Sprint("points ", n)))
			if names == nil {
				names = p.census()
			}
			p.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			p.strike(slices.Clone(names[:min(len(names), times(40, len(names)))]))
			p.close()
			if rounds > 1 {
				t.Logf("round %d: %d points, %d kills, not reached: %s", n, len(names), p.kills, strings.Join(slices.Sorted(maps.Keys(p.missed)), ", "))
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
	if len(missed) > 0 {
		r.figure("not reached in time: %s", strings.Join(slices.Sorted(maps.Keys(missed)), ", "))
	}
	if len(missed) > len(reached)/4 { // some are passed once in minutes: a chore, another number of buckets
		t.Errorf("%d points were not reached, %d were: too many to say anything", len(missed), len(reached))
	}
}

// points is a cluster on which nodes end at points. The first node lives on, those between are the victims, and the last,
// which has no guard, is killed now and then, so that somebody must bury its session.
type points struct {
	t     *testing.T
	r     *report
	c     *cluster
	l     *load
	rng   *rand.Rand
	log   string
	ids   map[string]int64 // of jobs, by name
	stop  context.CancelFunc
	churn sync.WaitGroup

	victims  []*victim
	reaped   time.Time // when the last node was killed, or is killed next
	unburied uuid.UUID // of the last node, while it is dead
	kills    int
	hit      map[string]bool
	missed   map[string]int
}

// victim is a node that is to end at a point.
type victim struct {
	m     *member
	point string
	log   string
	begun time.Time
	asked time.Time // when it was asked for what leads there: a drain, a burial
	ready bool
	ours  bool // we have killed it
}

func newPoints(t *testing.T, r *report, program string, rng *rand.Rand) *points {
	c := newCluster(r)
	p := &points{t: t, r: r, c: c, rng: rng, log: filepath.Join(c.dir, "points"), hit: map[string]bool{}, missed: map[string]int{}}
	t.Cleanup(func() { killAll(having(t, "cmdline", c.ledger)) }) // of the last node, which nobody guards
	victims := times(2, 5)
	for i := range 1 + victims + 1 {
		m := c.add("--drain-grace", "1s", "--look-ahead", "1s") // so that who comes back has something to do at once
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
	p.fill()
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	t.Cleanup(func() { stop(); p.churn.Wait() })
	p.ids = p.made()
	for i := range 3 {
		p.churn.Go(func() { p.people(ctx, i) })
	}
	// From here on: what the first minute of a cluster passes once, victims do not come by again.
	if err := os.Truncate(p.log, 0); err != nil {
		t.Fatal(err)
	}
	p.reaped = time.Now().Add(2 * time.Second)
	return p
}

// fill adds jobs of the other kinds. Of those in p.l each due time is held against schedule, history and ledger, though
// some are edited all the time; of the others, which are paused and run by hand, only what was executed.
func (p *points) fill() {
	for name, body := range map[string]object{
		"one slot": {"slots": 1},
	} {
		p.must("PUT", "/api/v1/groups/"+name, body)
	}
	p.must("POST", "/api/v1/calendars", object{"name": "far", "exclude": []string{"2099-01-01"}})
	l := p.l
	command := func(d time.Duration) string { return l.book.Command(d, 0) }
	l.add("queued", time.Second, object{"command": command(700 * time.Millisecond), "overlap": "queue"})
	l.add("replaced", time.Second, object{"command": command(1300 * time.Millisecond), "overlap": "replace"})
	l.add("group-a", 4*time.Second, object{"command": command(300 * time.Millisecond), "overlap": "allow", "group": "one slot"})
	l.add("group-b", 4*time.Second, object{"command": command(300 * time.Millisecond), "overlap": "allow", "group": "one slot"})
	l.add("edited", time.Second, object{"command": command(100 * time.Millisecond), "overlap": "allow"})
	l.add("calendar", time.Second, object{"command": command(50 * time.Millisecond), "overlap": "allow", "calendars": []string{"far"}})
	l.add("speaks", 4*time.Second, object{"command": l.book.Wrap("for i in 1 2 3 4 5; do echo line $i; sleep 0.4; done"), "overlap": "allow"})
}

// must asks the first node for something.
func (p *points) must(method, path string, body object) {
	p.t.Helper()
	if a := p.c.nodes[0].ask(method, strings.ReplaceAll(path, " ", "%20"), body); a.code/100 != 2 {
		p.t.Fatalf("%s %s: %d %s", method, path, a.code, a.body)
	}
}

// made makes the jobs that people change as they like.
func (p *points) made() map[string]int64 {
	ids := map[string]int64{}
	for _, j := range p.l.jobs {
		ids[j.Name] = j.ID
	}
	for _, name := range []string{"paused", "by hand", "in a paused app"} {
		body := object{"name": name, "every": "1s", "command": p.l.book.Command(400*time.Millisecond, 0), "overlap": "allow"}
		if name == "in a paused app" {
			body["app"] = "ops"
		}
		if ids[name] = p.id(p.c.nodes[0].ask("POST", "/api/v1/jobs", body)); ids[name] == 0 {
			p.t.Fatalf("cannot make the job %q", name)
		}
	}
	return ids
}

// people change things all the time, on the victims and elsewhere. What comes of a request that a node dies in is
// unknown, and right either way.
func (p *points) people(ctx context.Context, who int) {
	rng := rand.New(rand.NewPCG(seed, uint64(who)))
	job := func(name, rest string) string { return fmt.Sprintf("/api/v1/jobs/%d%s", p.ids[name], rest) }
	for n := 0; ctx.Err() == nil; n++ {
		m := p.c.nodes[0]
		if rng.IntN(5) > 0 {
			m = p.anyVictim(rng)
		}
		ask := func(method, path string, body any) answer {
			return m.quick(method, path, body)
		}
		switch (n + 4*who) % 11 {
		case 0:
			ask("PATCH", job("edited", ""), object{"timeout": fmt.Sprintf("%ds", 30+rng.IntN(30))})
		case 1:
			ask("POST", job("paused", "/pause"), object{})
			ask("POST", job("paused", "/resume"), object{})
		case 2:
			ask("POST", job("by hand", "/run"), object{})
		case 3:
			to := time.Now().Add(-2 * time.Second).UTC()
			ask("POST", job("by hand", "/backfill"), object{"from": to.Add(-4 * time.Second).Format(time.RFC3339), "to": to.Format(time.RFC3339), "parallel": 2})
		case 4:
			ask("POST", "/api/v1/apps/ops/pause", object{})
			time.Sleep(200 * time.Millisecond)
			ask("POST", "/api/v1/apps/ops/resume", object{})
		case 5:
			ask("PUT", "/api/v1/calendars/far", object{"exclude": []string{fmt.Sprintf("20%d-01-01", 50+rng.IntN(40))}})
		case 6:
			var running struct{ Items []struct{ ID, Job string } }
			a := ask("GET", "/api/v1/runs?state=running&job_id="+fmt.Sprint(p.ids["by hand"]), nil)
			if json.Unmarshal([]byte(a.body), &running) == nil && len(running.Items) > 0 {
				ask("POST", "/api/v1/runs/"+running.Items[0].ID+"/kill", object{})
			}
		case 7:
			id := p.id(ask("POST", "/api/v1/jobs", object{"name": fmt.Sprint("short-lived-", who, "-", n), "every": "500ms", "command": p.l.book.Command(50*time.Millisecond, 0), "overlap": "allow"}))
			time.Sleep(300 * time.Millisecond)
			if id != 0 {
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
			ask("POST", job("paused", "/pause"), object{"until": time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)})
		case 10:
			if _, err := p.c.db.Exec("UPDATE setting SET value = '4' WHERE name = 'buckets'"); err != nil {
				p.t.Errorf("set the number of buckets: %v", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+rng.IntN(60)) * time.Millisecond):
		}
	}
}

// tidy has what people leave behind come to an end.
func (p *points) tidy() {
	m := p.c.nodes[0]
	m.ask("POST", "/api/v1/apps/ops/resume", object{})
	for _, other := range p.c.nodes {
		m.ask("POST", "/api/v1/nodes/"+other.name+"/uncordon", object{})
	}
	for _, name := range []string{"paused", "by hand", "in a paused app"} {
		m.ask("DELETE", fmt.Sprint("/api/v1/jobs/", p.ids[name]), nil)
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

// quick asks a node that may be dead.
func (m *member) quick(method, path string, body any) answer {
	if m.url == "" {
		return answer{}
	}
	return m.ask(method, path, body)
}

func (p *points) anyVictim(rng *rand.Rand) *member { return p.c.nodes[1+rng.IntN(len(p.victims))] }

// census lets the cluster live for a while, with a drain, a spool and a death, and returns the points that were passed.
func (p *points) census() []string {
	t := p.t
	t.Helper()
	var want []string
	for _, what := range mustPass {
		want = append(want, "before "+what, "commit "+what, "committed "+what)
	}
	want = append(want, mustPassToo...)
	end := time.Now().Add(3 * time.Minute)
	for n := 0; len(want) > 0; n++ {
		p.wait(2 * time.Second)
		m := p.anyVictim(p.rng)
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
	return p.passed(p.log)
}

// cutOff takes MySQL away from a node that executes something, and then drains it: its outcomes are spooled.
func (p *points) cutOff(m *member) {
	session := m.session()
	for end := time.Now().Add(5 * time.Second); len(p.c.commandsOf(session)) < 2 && time.Now().Before(end); {
		p.wait(20 * time.Millisecond)
	}
	m.proxy.Blackhole(faultproxy.BothWays)
	p.wait(1200 * time.Millisecond)
	m.signal(syscall.SIGTERM)
}

// passed lists what a log of points has.
func (p *points) passed(log string) []string {
	content, _ := os.ReadFile(log)
	names := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// wait goes on for a while.
func (p *points) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		p.tick()
	}
}

// tick kills the last node now and then, with what its commands have started, as systemd would, and starts it again when
// the others have buried it.
func (p *points) tick() {
	m := p.c.nodes[len(p.c.nodes)-1]
	switch {
	case p.unburied != uuid.Nil:
		if !p.c.isBuried(p.unburied) {
			if limit := p.c.expiry + 20*time.Second + 3*stalled(p.reaped); time.Since(p.reaped) > limit {
				p.t.Fatalf("session %s, %s after its end: %d rows of it are left, and %d of its tasks", p.unburied, short(limit),
					p.c.count("SELECT COUNT(*) FROM session WHERE id = ?", p.unburied[:]), p.c.count("SELECT COUNT(*) FROM task WHERE session_id = ?", p.unburied[:]))
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

// strike has the victims end at each of the points.
func (p *points) strike(names []string) {
	for _, v := range p.victims {
		v.ours = true
		v.m.kill()
	}
	for left := len(p.victims); left > 0; time.Sleep(10 * time.Millisecond) {
		left = 0
		for _, v := range p.victims {
			if v.m.isDead() {
				if point := v.point; point != "" && !p.died(v) && p.missed[point] == 1 {
					names = append(names, point) // once more
				}
				if len(names) > 0 {
					p.arm(v, names[0])
					names = names[1:]
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

// arm begins a victim's next life.
func (p *points) arm(v *victim, point string) {
	n := 1
	if p.rng.IntN(2) == 0 && p.missed[point] == 0 && !strings.Contains(point, "spool") {
		n = 1 + p.rng.IntN(3)
	}
	m := v.m
	if point == "before clear spool" { // of an earlier life
		m.env = nil
		m.start()
		m.ready(60 * time.Second)
		p.cutOff(m)
		<-m.ended
		m.proxy.Heal()
	}
	*v = victim{m: m, point: point, log: filepath.Join(p.c.dir, fmt.Sprint("points-", p.kills, "-", len(p.missed), m.name)), begun: time.Now()}
	m.env = []string{fmt.Sprintf("%s=%s:%d", pointVariable, point, n), pointsVariable + "=" + v.log}
	m.start()
}

// lead takes a victim to its point, if it does not come by it by itself.
func (p *points) lead(v *victim) {
	m := v.m
	if m.isDead() {
		return
	}
	if !v.ready {
		if m.url == "" {
			if found := apiLine.FindStringSubmatch(m.said()); found != nil {
				m.url = found[1]
			}
		}
		v.ready = m.url != "" && m.isReady()
		if !v.ready && time.Since(v.begun) < 20*time.Second {
			return
		}
		v.begun = time.Now()
		return
	}
	alive := time.Since(v.begun)
	spool, guard := strings.Contains(v.point, "rename spool"), strings.Contains(v.point, "guard")
	switch {
	case v.asked.IsZero() && spool && alive > time.Second:
		v.asked = time.Now()
		p.cutOff(m)
	case v.asked.IsZero() && guard && alive > 1500*time.Millisecond:
		v.ours, v.asked = true, time.Now()
		m.signal(syscall.SIGKILL)
	case v.asked.IsZero() && alive > 6*time.Second && (alive > 15*time.Second || !strings.Contains(v.point, "change buckets")):
		v.asked = time.Now()
		m.signal(syscall.SIGTERM)
	case alive > 20*time.Second:
		v.ours = true
		m.signal(syscall.SIGKILL)
	}
}

// died looks what a victim died of, and tells whether it ended at its point.
func (p *points) died(v *victim) (hit bool) {
	v.m.proxy.Heal()
	state, _ := v.m.cmd.ProcessState.Sys().(syscall.WaitStatus)
	hit = state.Signaled() && state.Signal() == syscall.SIGKILL && !v.ours
	if strings.Contains(v.point, "guard") || v.point == "commit end session" || v.point == "before end session" {
		// It is the guard that ends there, perhaps a moment from now.
		for end := time.Now().Add(3 * time.Second); !hit && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			hit = slices.Contains(p.passed(v.log), v.point)
		}
	}
	if hit {
		p.kills++
		p.hit[v.point] = true
	} else {
		p.missed[v.point]++
	}
	v.point = ""
	return hit
}

// close heals everything, and looks at what came of it.
func (p *points) close() {
	t, c := p.t, p.c
	t.Helper()
	p.stop()
	p.churn.Wait()
	p.tidy()
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
	p.l.check(0)
	// What was not expected in detail is to be right in itself: the jobs that come and go.
	entries, err := p.l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	p.others(entries)
	await(t, "nothing is left of what was deleted", c.expiry+20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE j.living IS NULL") == 0
	})
	for query, what := range map[string]string{
		"SELECT COUNT(*) FROM waiting w LEFT JOIN task t ON t.id = w.task_id WHERE t.id IS NULL OR t.state <> 3":                    "rows of waiting for nothing",
		"SELECT COUNT(*) FROM task t LEFT JOIN waiting w ON t.id = w.task_id WHERE t.state = 3 AND w.task_id IS NULL":               "tasks that wait and nobody knows for what",
		"SELECT COUNT(*) FROM task t LEFT JOIN session s ON s.id = t.session_id WHERE t.state IN (1, 2) AND s.id IS NULL":           "tasks of nobody",
		"SELECT COUNT(*) FROM (SELECT job_id, due, origin FROM history WHERE final = 1 GROUP BY 1, 2, 3 HAVING COUNT(*) > 1) twice": "due times that ended twice",
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
		session, n := launch[:36], launch[37:]
		query := "SELECT COUNT(*) FROM history WHERE session_id = UNHEX(REPLACE(?, '-', '')) AND launch = ?"
		live := "SELECT COUNT(*) FROM task WHERE session_id = UNHEX(REPLACE(?, '-', '')) AND launch = ?"
		if p.c.count(query, session, n)+p.c.count(live, session, n) != 1 {
			p.t.Errorf("launch %s of %s was started and has no record", launch, name)
		}
	}
}
