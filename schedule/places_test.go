package schedule

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"go-crontab/job"
	"go-crontab/sql"
)

// members is who takes work, as a test has it.
type members struct {
	labels []map[string]string
	index  int
	seen   int64
}

func (m *members) get() ([]map[string]string, int, int64) { return m.labels, m.index, m.seen }

// with has the fixture's node look at places, among members of which it is the first.
func (f *fixture) with(own map[string]string, others ...map[string]string) *members {
	f.Helper()
	m := &members{labels: append([]map[string]string{own}, others...), seen: 1}
	p := &Places{DB: f.planner.DB, Labels: own, Members: m.get, Log: f.claimer.Log}
	if err := p.refresh(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.claimer.Places, f.starter.Places = p, p
	f.session.of = len(m.labels)
	return m
}

// sweeper is one of the fixture's node.
func (f *fixture) sweeper() *Sweeper {
	return &Sweeper{DB: f.planner.DB, Session: f.session, Places: f.claimer.Places, Woken: func() { f.woken++ }, Backfill: func() {}, Log: f.claimer.Log}
}

// TestPlacesAreShared: of the members that take the tasks of a place, each bucket prefers exactly one; a member never
// looks for what it may not take, and what it may take it finds at last in every bucket.
func TestPlacesAreShared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		label := rapid.MapOf(rapid.SampledFrom([]string{"zone", "gpu", "only"}), rapid.SampledFrom([]string{"a", "b", "handlers"}))
		labels := rapid.SliceOfN(label, 1, 5).Draw(t, "labels")
		selectors := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"zone=a", "zone=b", "gpu", "!gpu", "zone in (a,b)", "handler/x", "!x", "zone notin (a)"}), rapid.ID).Draw(t, "selectors")
		buckets := rapid.IntRange(1, sql.MaxBuckets).Draw(t, "buckets")
		var places []sql.Place
		for i, s := range selectors {
			places = append(places, sql.Place{ID: i + 1, Selector: s})
		}
		takers := func(place int) (n int) {
			var sel job.Selector
			if place > 0 {
				sel, _ = job.ParsePlace(selectors[place-1])
			}
			for _, l := range labels {
				if sel.Takes(l) {
					n++
				}
			}
			return n
		}
		hash := rapid.IntRange(0, job.Hashes-1).Draw(t, "hash")
		preferred, finds := map[int]int{}, map[int]int{}
		for i := range labels {
			m := members{labels: labels, index: i, seen: 1}
			p := &Places{Labels: labels[i], Members: m.get, Log: slog.New(slog.DiscardHandler)}
			p.learn(places)
			for _, s := range p.look(&fakeSession{index: i, of: len(labels), buckets: buckets}, 20, 10) {
				for place := range len(places) + 1 {
					if hash < s.FromHash || hash >= s.ToHash || s.Places != nil && !slices.Contains(s.Places, place) || slices.Contains(s.Except, place) {
						continue
					}
					if mine, _ := p.takes(place); !mine {
						t.Fatalf("member %d looks for place %d", i, place)
					}
					switch s.Before {
					case 20:
						preferred[place]++
					case 10:
						finds[place]++
					}
				}
			}
		}
		for place := range len(places) + 1 {
			n := takers(place)
			if want := min(n, 1); preferred[place] != want {
				t.Fatalf("place %d is preferred by %d members, want %d of %d", place, preferred[place], want, n)
			}
			if finds[place] != n {
				t.Fatalf("place %d is found by %d members when it is late, want %d", place, finds[place], n)
			}
		}
	})
}

// TestClaimOfPlaces: a node claims what it may take and leaves the rest; a place that it does not know yet is looked up.
func TestClaimOfPlaces(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"zone": "a"}, map[string]string{"zone": "b"})
	add := func(selector string) {
		spec := at("at "+selector+".", after(time.Second))
		spec.Selector = selector
		f.create(spec)
	}
	claimed := func() (n int64) { return f.number("SELECT COUNT(*) FROM task WHERE state = 1") }
	add("zone=a")
	add("zone=b")
	add("!gpu")
	add("")
	// Its peer's places, and those that nobody has looked up: it takes what is late, or was told of.
	if _, err := f.claimer.claim(t.Context(), t0, urgent+time.Microsecond); err != nil || claimed() != 3 {
		t.Errorf("claimed %d tasks, %v, want 3", claimed(), err)
	}
	f.want("tasks of the other zone that are claimed", 0, "SELECT COUNT(*) FROM task t JOIN place p ON p.id = t.place WHERE p.selector = 'zone=b' AND t.state = 1")
	f.want("places", 3, "SELECT COUNT(*) FROM place")
}

// TestAStartElsewhere: a task whose job was edited to be for other nodes goes back to idle, for those, and is not
// started; nor is it refused.
func TestAStartElsewhere(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"zone": "a"})
	j := f.create(func() job.Spec { s := at("here", after(time.Second)); s.Selector = "zone=a"; return s }())
	stays := f.create(func() job.Spec { s := at("stays", after(time.Second)); s.Selector = "zone in (a,b)"; return s }())
	if _, err := f.claimer.claim(t.Context(), t0, urgent+time.Microsecond); err != nil || f.prepared.Len() != 2 {
		t.Fatalf("claimed %d tasks, %v", f.prepared.Len(), err)
	}
	// By another node, a moment ago: this one has never heard of the place.
	f.exec("INSERT INTO place (selector) VALUES ('zone=b')")
	f.exec("UPDATE job SET place = (SELECT id FROM place WHERE selector = 'zone=b') WHERE id = ?", j.ID)
	now := after(time.Second)
	f.session.set(now)
	f.starter.start(t.Context(), now)
	if len(f.executing.added) != 1 || f.executing.added[0].JobID != stays.ID || f.prepared.Len() != 0 {
		t.Errorf("started %+v, %d are prepared; want the one that is still for this node", f.executing.added, f.prepared.Len())
	}
	f.want("tasks that are idle at their new place", 1, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE t.state = 0 AND t.place = j.place AND t.launch = 0 AND j.id = ?", j.ID)
	f.wantRuns("the one that is elsewhere", j.ID)
}

// TestUnplaced: what no node takes waits, comes back with its node, and is missed when its job's rules say so.
func TestUnplaced(t *testing.T) {
	f := setUp(t)
	m := f.with(map[string]string{"zone": "a"})
	s := f.sweeper()
	sweep := func(now job.Micros) {
		t.Helper()
		f.session.set(now)
		if err := f.claimer.Places.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.unplaced(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	create := func(spec job.Spec, selector string) job.Job { spec.Selector = selector; return f.create(spec) }
	here := create(at("here", after(time.Second)), "zone=a")
	single := create(func() job.Spec {
		s := at("single", after(time.Second))
		s.Misfire.MaxAge = job.Duration(1000 * time.Hour)
		return s
	}(), "zone=b")
	skip := create(func() job.Spec {
		s := every("skip", time.Hour, time.Second)
		s.Misfire = job.Misfire{Policy: job.MisfireSkip, After: job.Duration(10 * time.Second)}
		return s
	}(), "zone=b")
	deadline := create(func() job.Spec {
		s := every("deadline", time.Hour, time.Second)
		s.StartDeadline = job.Duration(20 * time.Second)
		return s
	}(), "zone=b")
	waiting := func(want string) {
		t.Helper()
		var got []string
		for _, j := range []job.Job{here, single, skip, deadline} {
			rows, err := f.beside.Waiting(t.Context(), []int64{j.ID}, 9)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range rows {
				if w.Kind != sql.WaitNode || w.Place != 2 || w.Group != "" {
					t.Errorf("got %+v", w)
				}
				got = append(got, j.Spec.Name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("at %s: %q wait, want %q", f.session.Now().Sub(t0), text, want)
		}
	}
	sweep(after(2900 * time.Millisecond))
	waiting("") // members change all the time
	sweep(after(3100 * time.Millisecond))
	waiting("single skip deadline")
	f.want("tasks of the node that is there, still idle", 1, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0", here.ID)

	sweep(after(10 * time.Second))
	waiting("single skip deadline")
	sweep(after(12 * time.Second))
	waiting("single deadline")
	f.wantRuns("the one that may be 10 s late", skip.ID, "missed 1..1×1 no node matches zone=b")
	f.want("its last due time", int64(after(time.Second)), "SELECT last_due FROM job WHERE id = ?", skip.ID)

	// An edit looks at it anew.
	f.update(deadline, func(s *job.Spec) { s.StartDeadline = job.Duration(40 * time.Second) })
	waiting("single")
	sweep(after(22 * time.Second))
	waiting("single deadline")

	// A node comes, and goes before anybody has claimed.
	m.labels, m.seen = append(m.labels, map[string]string{"zone": "b"}), 2
	sweep(after(25 * time.Second))
	waiting("")
	f.want("idle tasks, due when they were", 2, "SELECT COUNT(*) FROM task WHERE state = 0 AND due_now = due AND job_id IN (?, ?)", single.ID, deadline.ID)
	if f.woken == 0 {
		t.Error("nobody was told")
	}
	m.labels, m.seen = m.labels[:1], 3
	sweep(after(30 * time.Second))
	waiting("single deadline")
	sweep(after(42 * time.Second))
	waiting("single")
	f.wantRuns("the one with a deadline", deadline.ID, "missed 1..1×1 no node matches zone=b")
	sweep(after(100 * time.Hour))
	waiting("single") // no later due time takes its place

	// All nodes are cordoned: nobody takes even what any node might.
	m.labels, m.index, m.seen = nil, -1, 4
	anywhere := f.create(every("anywhere", time.Hour, 101*time.Hour))
	f.session.set(after(101*time.Hour - time.Second))
	if _, err := f.planner.plan(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	sweep(after(101*time.Hour + 3*time.Second))
	f.want("waits of what any node might take", 1, "SELECT COUNT(*) FROM waiting WHERE job_id = ? AND group_id = 0 AND kind = 3", anywhere.ID)
	m.labels, m.index, m.seen = []map[string]string{{"zone": "a"}}, 0, 5
	sweep(after(101*time.Hour + 4*time.Second))
	f.want("waits of what any node might take", 0, "SELECT COUNT(*) FROM waiting WHERE job_id = ?", anywhere.ID)
}

// TestLookedUpPlaces: a place that was looked up says nothing of those before it. They are read, and what waits for their nodes, as
// another one knew, comes back.
func TestLookedUpPlaces(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"zone": "a"})
	spec := at("waits", t0)
	spec.Selector = "zone=a,!gpu"
	f.create(spec)
	spec.Name, spec.Selector = "later", "zone=a"
	later := f.create(spec)
	f.exec("UPDATE task SET state = 3 WHERE job_id <> ?", later.ID)
	f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, due, since, expires) SELECT id, 3, job_id, place, due, due, ? FROM task WHERE state = 3", int64(after(time.Hour)))

	p := f.claimer.Places
	p.byID, p.newest, p.anew, p.Lookout = nil, 0, time.Now(), &Lookout{} // it has just begun
	p.Lookout.last.Store(&glimpse{Glance: sql.Glance{LastPlace: 2}, at: time.Now()})
	if _, err := p.only(t.Context(), []sql.Candidate{{Place: 2}}); err != nil {
		t.Fatal(err)
	}
	if p.knowsAll() {
		t.Error("nothing is read any more, and place 1 is not known")
	}
	if err := f.sweeper().unplaced(t.Context(), after(time.Second)); err != nil {
		t.Fatal(err)
	}
	f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
	p.byID = map[int]known{2: p.byID[2]}
	if err := p.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if mine, known := p.takes(1); !mine || !known || p.newest != 2 {
		t.Errorf("place 1: taken %t, known %t; all up to %d, want 2", mine, known, p.newest)
	}
}

// TestPlacesAnew: what is known of places is read again after a while: the one of a number may be another one since a failover, and
// one that was missing may be there.
func TestPlacesAnew(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"zone": "a"})
	f.exec("INSERT INTO place (id, selector) VALUES (1, 'zone=a'), (2, 'zone=a,!gpu')")
	p := f.claimer.Places
	p.byID, p.newest, p.anew, p.Lookout = nil, 0, time.Now(), &Lookout{}
	p.Lookout.last.Store(&glimpse{Glance: sql.Glance{LastPlace: 2}, at: time.Now()})
	p.learn([]sql.Place{{ID: 1, Selector: "zone=b"}, {ID: 2, Selector: "(place 2, which is gone)"}})
	p.newest = 2
	if !p.knowsAll() {
		t.Error("it reads all the time")
	}
	p.anew = time.Now().Add(-placesAnew)
	if p.knowsAll() {
		t.Error("it does not read again")
	}
	if err := p.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for place := range 3 {
		if mine, known := p.takes(place); !mine || !known {
			t.Errorf("place %d: taken %t, known %t", place, mine, known)
		}
	}
	if !p.knowsAll() {
		t.Error("it would read again at once")
	}
}

// TestUnplacedBesideWork: what this node may not take is found late though it always has something of its own to claim.
func TestUnplacedBesideWork(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"zone": "a"})
	spec := at("j", after(-time.Minute))
	spec.Selector = "zone=b"
	f.create(spec)
	if err := f.claimer.Places.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := f.sweeper()
	s.Lookout = &Lookout{}
	s.Lookout.last.Store(&glimpse{Glance: sql.Glance{FirstIdle: t0 - 1000}, at: time.Now()})
	for s.rounds = 1; s.rounds <= unplacedEvery; s.rounds++ {
		if err := s.unplacedIfAny(t.Context(), t0); err != nil {
			t.Fatal(err)
		}
		if s.rounds == 1 {
			f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
		}
	}
	f.want("waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 3")
}

// TestUnplacedByHand: what stands in the way of the sweep is passed by: a job that is gone, a task that was moved on.
func TestUnplacedByHand(t *testing.T) {
	f := setUp(t)
	f.with(nil)
	s := f.sweeper()
	spec := at("gone", after(-time.Minute))
	spec.Selector = "zone=b"
	gone := f.create(spec)
	spec.Name = "broken"
	broken := f.create(spec)
	spec.Name = "moved"
	moved := f.create(spec)
	f.exec("DELETE FROM job WHERE id = ?", gone.ID)
	f.exec("UPDATE job SET spec = '{' WHERE id = ?", broken.ID)
	f.exec("UPDATE job SET place = 0 WHERE id = ?", moved.ID)
	if err := f.claimer.Places.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, now := range []job.Micros{t0, after(time.Second)} {
		f.session.set(now)
		if err := s.unplaced(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	f.want("tasks of the job that moved, which any node takes", 1, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0 AND place = 0", moved.ID)
	f.want("tasks of the others", 0, "SELECT COUNT(*) FROM task WHERE job_id IN (?, ?)", gone.ID, broken.ID)
	f.want("runs", 2, "SELECT COUNT(*) FROM history WHERE outcome = ? AND reason = 'no node matches zone=b'", int(job.Missed))
	f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
}

// TestLastStart: a task may be started until the instant that its wait for a node ends, and not after it.
func TestLastStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := every("j", time.Duration(rapid.IntRange(1, 300).Draw(t, "interval"))*time.Second, 0)
		if rapid.Bool().Draw(t, "single") {
			spec = at("j", t0)
		}
		spec.Misfire.Policy = rapid.SampledFrom([]job.MisfirePolicy{job.MisfireLatest, job.MisfireSkip, job.MisfireAll}).Draw(t, "policy")
		spec.Misfire.MaxCount = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "count")
		spec.Misfire.MaxAge = job.Duration(time.Duration(rapid.IntRange(0, 200).Draw(t, "age")) * time.Second)
		spec.Misfire.After = job.Duration(time.Duration(rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "after")) * time.Second)
		spec.StartDeadline = job.Duration(time.Duration(rapid.SampledFrom([]int{0, 0, 5, 100}).Draw(t, "deadline")) * time.Second)
		task := job.Task{ID: 1, Due: t0, DueNow: t0.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "retry")) * time.Second), Attempt: rapid.IntRange(1, 2).Draw(t, "attempt")}
		task.Origin = rapid.SampledFrom([]int64{0, 0, 0, 7}).Draw(t, "origin")
		j := &sql.JobRow{Job: job.Job{ID: 3, Spec: spec}}
		end := lastStart(j, task)
		missed := func(now job.Micros) bool {
			d := judge(task, scene{job: j}, now)
			return d.verdict == refuse && d.run.Outcome == job.Missed
		}
		if end == 0 {
			if at := t0.Add(1000 * time.Hour); missed(at) {
				t.Fatalf("it has no end and is missed at %s", at)
			}
			return
		}
		if missed(max(end, task.DueNow)) && end >= task.DueNow {
			t.Fatalf("missed at its end, %s after it was due", end.Sub(task.DueNow))
		}
		if !missed(max(end+1, task.DueNow)) {
			t.Fatalf("not missed after its end, %s after it was due", end.Sub(task.DueNow))
		}
	})
}

// TestBrokenPlace: what nobody understands is taken by nobody, and does not stop anybody.
func TestBrokenPlace(t *testing.T) {
	t.Parallel()
	m := members{labels: []map[string]string{nil}, seen: 1}
	p := &Places{Members: m.get, Log: slog.New(slog.DiscardHandler)}
	p.learn([]sql.Place{{ID: 1, Selector: "zone <> a"}, {ID: 2, Selector: "!gpu"}})
	for place, want := range map[int]bool{0: true, 1: false, 2: true} {
		if mine, known := p.takes(place); mine != want || !known {
			t.Errorf("place %d: taken %t, known %t, want %t", place, mine, known, want)
		}
	}
	if unmatched, _ := p.unmatched(nil); fmt.Sprint(unmatched) != "[1]" {
		t.Errorf("unmatched: got %v, want [1]", unmatched)
	}
	m.seen = 0
	if unmatched, matched := p.unmatched([]int{1, 2}); unmatched != nil || matched != nil {
		t.Errorf("before the first look: got %v, %v", unmatched, matched)
	}
}

// TestAPlaceThatIsGone: a task whose place a hand has deleted is nobody's, and does not stay for ever.
func TestAPlaceThatIsGone(t *testing.T) {
	f := setUp(t)
	f.with(nil)
	spec := at("j", after(-time.Minute))
	spec.Selector, spec.Misfire.Policy = "!gpu", job.MisfireSkip
	j := f.create(spec)
	f.exec("DELETE FROM place")
	if _, err := f.claimer.claim(t.Context(), t0, urgent); err != nil || f.prepared.Len() != 0 {
		t.Errorf("claimed %d tasks, %v", f.prepared.Len(), err)
	}
	for _, now := range []job.Micros{t0, after(2 * time.Second)} {
		f.session.set(now)
		if err := f.sweeper().unplaced(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	f.wantRuns("it", j.ID, "missed -60..-60×1 no node matches (place 1, which is gone)")
}

// TestPriorityOfWhatIsOverdue: an edited priority counts for what is due already.
func TestPriorityOfWhatIsOverdue(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-time.Second))
	f.create(at("first", t0))
	second := f.create(at("second", after(time.Millisecond)))
	f.session.set(after(time.Second))
	f.update(second, func(s *job.Spec) { s.Priority = 100 })
	f.claimer.Cap = 1
	if _, err := f.claimer.claim(t.Context(), after(time.Second), -neglected); err != nil {
		t.Fatal(err)
	}
	f.want("claimed", second.ID, "SELECT job_id FROM task WHERE state = 1")
}
