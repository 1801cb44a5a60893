package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// begun lists the due times that were started, seconds after t0, and holds them against their rows.
func (f *fixture) begun() []float64 {
	f.Helper()
	out := []float64{}
	for _, s := range f.executing.added {
		out = append(out, s.Due.Sub(t0).Seconds())
		f.want("the row of an attempt", 1, "SELECT COUNT(*) FROM task WHERE id = ? AND state = 2 AND session_id = ? AND launch = ? AND spawn_by = ?",
			s.ID, s.Launch.Session[:], s.Launch.N, int64(s.SpawnBy))
		if f.prepared.Has(s.ID, s.Launch) {
			f.Errorf("task %d is in both sets", s.ID)
		}
	}
	slices.Sort(out)
	f.want("rows that execute", int64(len(out)), "SELECT COUNT(*) FROM task WHERE state = 2")
	return out
}

// claimed creates jobs a second before t0, and has this session claim at t0 all that is due in the ten seconds after it.
func (f *fixture) claimed(specs ...job.Spec) (jobs []job.Job) {
	f.Helper()
	f.session.set(after(-time.Second))
	for _, spec := range specs {
		jobs = append(jobs, f.create(spec))
	}
	f.session.set(t0)
	if _, err := f.claimer.claim(f.Context(), f.session.Now(), -neglected); err != nil {
		f.Fatal(err)
	}
	return jobs
}

// hourly is n jobs that are due at t0.
func hourly(n int) (specs []job.Spec) {
	for i := range n {
		specs = append(specs, every(fmt.Sprint(i), time.Hour, 0))
	}
	return specs
}

// TestStartInTime: a look reaches the lead and a little further, and takes what is due together in one transaction.
func TestStartInTime(t *testing.T) {
	f := setUp(t)
	f.claimed(every("j", 10*time.Millisecond, 0))
	commits := f.proxy.Counts().Commits
	f.starter.start(t.Context(), t0)
	if got, want := f.begun(), []float64{0, 0.01, 0.02, 0.03, 0.04, 0.05}; !slices.Equal(got, want) { // 10 ms of lead, 40 ms to gather a few
		t.Errorf("got due times %v begun, want %v", got, want)
	}
	if n := f.proxy.Counts().Commits - commits; n != 1 {
		t.Errorf("got %d commits, want 1", n)
	}
	s := f.executing.added[0]
	if s.At != t0 || s.SpawnBy != t0+job.SpawnWindow || s.Spec.Name != "j" {
		t.Errorf("got attempt %+v", s)
	}
	if late := f.executing.added[2]; late.SpawnBy != late.Due+job.SpawnWindow {
		t.Errorf("started before it is due: got %s as the end of its window, want a second after %s", late.SpawnBy, late.Due)
	}
	f.want("last due time", int64(after(50*time.Millisecond)), "SELECT last_due FROM job")
}

// TestStartStatements is what a start costs, whatever the number of its tasks.
func TestStartStatements(t *testing.T) {
	f := setUp(t)
	allow, skip := every("may overlap", time.Hour, 0), every("may not", time.Hour, 0)
	skip.Overlap = job.OverlapSkip
	f.claimed(append(hourly(20), allow, skip)...)
	var said []string
	var mu sync.Mutex
	f.proxy.OnCommand(func(c faultproxy.Command) {
		mu.Lock()
		defer mu.Unlock()
		if c.IsStatement() && !strings.HasPrefix(c.SQL, "SET ") { // those of a new connection, and autocommit
			word, _, _ := strings.Cut(c.SQL, " ")
			said = append(said, word)
		}
	})
	f.starter.start(t.Context(), t0)
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"SELECT", "SELECT", "UPDATE", "COMMIT"}; len(f.begun()) != 22 || !slices.Equal(said, want) {
		t.Errorf("got %d begun by %q, want 22 by %q", len(f.begun()), said, want)
	}
}

// TestBusyJob: a job whose row somebody has locked holds up no other, and is looked at again soon.
func TestBusyJob(t *testing.T) {
	f := setUp(t)
	jobs := f.claimed(hourly(5)...)
	release, locked, done := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		done <- f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
			_, err := tx.LockJobs([]int64{jobs[2].ID})
			close(locked)
			for {
				select {
				case <-release:
					return err
				case <-time.After(time.Second): // the server ends who says nothing
					if _, err := tx.Now(); err != nil {
						return err
					}
				}
			}
		})
	}()
	<-locked
	now := t0
	look := func() {
		f.starter.start(t.Context(), now)
		now = now.Add(maxBusyPause)
		f.session.set(now)
	}
	look()
	if got := len(f.begun()); got != 4 {
		t.Errorf("got %d begun, want 4", got)
	}
	for range 3 {
		look()
	}
	if got := f.starter.pause(); got > 0 || f.prepared.Len() != 1 {
		t.Errorf("got %d in the prepare set, and %s until the next look; want one, and none", f.prepared.Len(), got)
	}
	f.want("runs", 0, "SELECT COUNT(*) FROM history")
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	look()
	if got := len(f.begun()); got != 5 || len(f.starter.busy) != 0 {
		t.Errorf("got %d begun once it is free, and %d busy; want 5 and none", got, len(f.starter.busy))
	}
}

// TestBusyJobsOfFewSlots: tasks of locked jobs, however many, are looked at beside the others and in place of none.
func TestBusyJobsOfFewSlots(t *testing.T) {
	f := setUp(t)
	f.executing.slots = 1
	const locked = 30
	f.claimed(hourly(locked + 1)...)
	release := f.keep("SELECT id FROM job FORCE INDEX (PRIMARY) ORDER BY id LIMIT 30 FOR UPDATE")
	for i := range locked + 1 {
		f.session.set(after(time.Duration(i) * maxBusyPause))
		f.starter.start(t.Context(), f.session.Now())
	}
	if len(f.executing.added) != 1 || f.executing.added[0].Spec.Name != "30" {
		t.Errorf("got %+v begun, want the one whose job nobody has locked", f.executing.added)
	}
	if got := f.prepared.Due(f.session.Now()); got != 0 || f.prepared.Len() != locked {
		t.Errorf("%d of %d count as due, want none of %d: they would keep others from being claimed", got, f.prepared.Len(), locked)
	}
	release()
	f.executing.slots = 11
	for range 2 { // that they are free is seen first, and then each has a slot or waits for one
		f.session.set(f.session.Now().Add(maxBusyPause))
		f.starter.start(t.Context(), f.session.Now())
	}
	if got := len(f.begun()); got != 11 {
		t.Errorf("got %d begun once they are free, want as many as there are slots", got)
	}
}

// TestAsideOfABatch: what was set aside comes last while it is found out whom MySQL refuses, and is not forgotten behind a
// backlog.
func TestAsideOfABatch(t *testing.T) {
	t.Parallel()
	p := NewPrepared()
	s := NewStarter(&Starter{Session: newSession(1), Prepared: p, Executing: &fakeExecuting{slots: 2 * startBatch}, Slots: 2 * startBatch})
	add := func(from, n int) (tasks []job.Task) {
		for i := range n {
			tasks = append(tasks, job.Task{ID: int64(from + i), DueNow: t0})
		}
		p.Add(tasks, t0)
		return tasks
	}
	takes := func(what string, batch, ready, aside, slots int) {
		t.Helper()
		s.batch = batch
		took := s.take(t0)
		s.promised.Store(0)
		got := 0
		for _, t := range took.tasks {
			if t.ID > 10_000 {
				p.SetAside(t, t0)
				got++
			} else {
				p.Return(t, t0)
			}
		}
		if n := len(took.tasks) - got; n != ready || got != aside || took.slots != slots {
			t.Errorf("%s: got %d, %d that were set aside, and %d slots; want %d, %d and %d", what, n, got, took.slots, ready, aside, slots)
		}
	}
	for _, t := range add(10_001, 50) {
		p.Take(t0, 0, 1)
		p.SetAside(t, t0)
	}
	takes("nothing else is due", startBatch, 0, 50, 1)
	takes("nothing else is due, and MySQL refused a batch", 1, 0, 1, 1)
	add(1, 10)
	takes("little else is due", startBatch, 10, 50, 11)
	takes("MySQL refused a batch", 16, 10, 6, 11)
	takes("MySQL refused all but one task", 1, 1, 0, 1)
	add(101, startBatch)
	takes("much is due", startBatch, startBatch, 1, startBatch+1)
}

// TestGatherFew: where little is due, a look reaches further; where much is, only as far as it must.
func TestGatherFew(t *testing.T) {
	for name, c := range map[string]struct{ near, far, want int }{
		"a few":                   {10, 10, 20},
		"some of those behind":    {50, 30, few},
		"enough":                  {few, 10, few},
		"many":                    {200, 10, 200},
		"nothing but those later": {0, 10, 0},
	} {
		p := NewPrepared()
		for i := range c.near + c.far {
			due := t0
			if i >= c.near {
				due = after(30 * time.Millisecond)
			}
			p.Add([]job.Task{{ID: int64(i + 1), DueNow: due}}, t0)
		}
		s := NewStarter(&Starter{Session: newSession(1), Prepared: p, Executing: &fakeExecuting{slots: 1000}})
		if got := len(s.take(t0).tasks); got != c.want {
			t.Errorf("%s: got %d tasks, want %d", name, got, c.want)
		}
	}
}

// TestStartOverASlowLink: far from MySQL the spawn window follows from what a start takes.
func TestStartOverASlowLink(t *testing.T) {
	f := setUp(t)
	f.claimed(every("j", time.Second, 0))
	f.starter.Trip = func() time.Duration { return 400 * time.Millisecond }
	f.starter.start(t.Context(), t0)
	s := f.executing.added[0]
	if s.SpawnBy != after(5800*time.Millisecond) {
		t.Errorf("with a round trip of 400 ms: got %s as the end of the window, want three times five of them less half a one", s.SpawnBy)
	}
	f.want("what others go by", int64(after(6*time.Second)), "SELECT spawn_by FROM task WHERE id = ?", s.ID)
}

// TestStartsSideBySide: far from MySQL another start is begun while one waits, as long as there are slots for both.
func TestStartsSideBySide(t *testing.T) {
	f := setUp(t)
	if _, err := f.editor.PutGroup(t.Context(), "g", 1); err != nil {
		t.Fatal(err)
	}
	specs := hourly(3)
	specs[0].Group = "g"
	f.claimed(specs...)
	f.starter.Lanes = func() int { return 3 }
	f.starter.batch = 1 // each has a transaction of its own
	started := func() int64 { return f.number("SELECT COUNT(*) FROM task WHERE state = 2") }
	reach := func(what string, want int64) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); started() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: got %d started, want %d", what, started(), want)
			}
		}
	}
	f.executing.slots = 2
	group, err := f.beside.Raw().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Rollback()
	if _, err := group.ExecContext(t.Context(), "SELECT id FROM grp FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); _ = f.starter.Run(ctx) }()
	defer func() { stop(); <-over }()
	reach("while the first waits for its group", 1) // and not the third: the first may need the other slot
	group.Rollback()
	reach("with two slots", 2)
	time.Sleep(100 * time.Millisecond)
	reach("still", 2)
}

// TestWindow of spawns, by what starts took.
func TestWindow(t *testing.T) {
	t.Parallel()
	s := time.Second
	for name, c := range map[string]struct{ took, trip, want time.Duration }{
		"nothing is known":       {0, 0, s},
		"near":                   {5 * time.Millisecond, time.Millisecond, s},
		"a round trip of 100 ms": {400 * time.Millisecond, 100 * time.Millisecond, 1500 * time.Millisecond},
		"it is slow since now":   {5 * time.Millisecond, 400 * time.Millisecond, 6 * s},
		"starts wait for locks":  {2 * s, time.Millisecond, 6 * s},
		"a second":               {4 * s, s, maxWindow},
		"bounded":                {20 * s, 3 * s, maxWindow},
	} {
		var l lead
		if c.took > 0 {
			l.learn(c.took)
		}
		if got := l.window(c.trip); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	var l lead
	l.learn(2 * s)
	for range 3 * calm {
		l.learn(0)
	}
	if got := l.window(0); got != s {
		t.Errorf("long after a slow start: got %s, want %s", got, s)
	}
}

// TestOverlapInOneBatch: of a job that must not overlap only the first of a batch begins; the other is looked at again
// when it is due, and only then refused for good.
func TestOverlapInOneBatch(t *testing.T) {
	f := setUp(t)
	spec := every("j", 10*time.Millisecond, 0)
	spec.Overlap = job.OverlapSkip
	j := f.claimed(spec)[0]
	f.starter.start(t.Context(), t0)
	if got := f.begun(); !slices.Equal(got, []float64{0}) {
		t.Errorf("got due times %v begun, want the first", got)
	}
	f.wantRuns("before the others are due", j.ID)
	f.session.set(after(10 * time.Millisecond))
	f.starter.start(t.Context(), after(10*time.Millisecond))
	f.wantRuns("when the second is due", j.ID, "skipped 0.01..0.01×1 overlap: the run due "+t0.String()+" is still executing")
	if n := f.runs(j.ID)[0]; n.Node != "node 1" {
		t.Errorf("got node %q in the record of a refusal", n.Node)
	}
	f.finish()
	f.session.set(after(20 * time.Millisecond))
	f.starter.start(t.Context(), after(20*time.Millisecond))
	if got := f.begun(); !slices.Equal(got, []float64{0.02}) {
		t.Errorf("after the first has ended: got due times %v begun, want the third", got)
	}
}

// TestOverlapAcrossNodes: what another session executes counts, also if that was started under another clock.
func TestOverlapAcrossNodes(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, 0)
	spec.Overlap = job.OverlapSkip
	j := f.claimed(spec)[0]
	other := uuid.UUID{9}
	for name, due := range map[string]job.Micros{"earlier": after(-time.Hour), "ahead, by a clock that was put back": after(time.Hour)} {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state, session_id, launch) VALUES (?, ?, ?, 0, 2, ?, 1)", j.ID, int64(due), int64(due), other[:])
		f.exec("UPDATE job SET last_due = GREATEST(last_due, ?)", int64(due))
		f.starter.start(t.Context(), f.session.Now())
		if len(f.executing.added) != 0 {
			t.Errorf("%s: got %d attempts beside another's", name, len(f.executing.added))
		}
		f.exec("DELETE FROM task WHERE session_id = ?", other[:])
		f.session.set(f.session.Now().Add(time.Second))
	}
	f.starter.start(t.Context(), f.session.Now())
	if len(f.executing.added) != 1 {
		t.Errorf("got %d attempts once the other has ended, want 1", len(f.executing.added))
	}
}

// TestFlushBeforeTheStart: an outcome that waits to be written here must not look like a run that overlaps.
func TestFlushBeforeTheStart(t *testing.T) {
	f := setUp(t)
	j := f.claimed(every("j", time.Second, 0), every("k", time.Second, 500*time.Millisecond))[0]
	f.executing.ended = map[int64]bool{j.ID: true}
	f.starter.start(t.Context(), t0)
	if f.flushed != 1 {
		t.Errorf("flushed %d times before the start of a job with an outcome, want once", f.flushed)
	}
	f.starter.start(t.Context(), after(500*time.Millisecond))
	if f.flushed != 1 {
		t.Errorf("flushed %d times before the start of another job, want not at all", f.flushed-1)
	}
}

// TestEndedAndNotWritten: an attempt that is over does not overlap with the next, although its row still says that it
// executes.
func TestEndedAndNotWritten(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, 0)
	spec.Overlap = job.OverlapSkip
	j := f.claimed(spec)[0]
	f.starter.start(t.Context(), t0)
	f.executing.over = append(f.executing.over, f.executing.added[0].Launch)
	f.session.set(after(time.Second))
	f.starter.start(t.Context(), after(time.Second))
	if got := f.begun(); !slices.Equal(got, []float64{0, 1}) {
		t.Errorf("got due times %v begun, want two", got)
	}
	last := f.executing.added[1]
	f.executing.written = map[int64]job.Launch{last.ID: last.Launch}
	f.session.set(after(2 * time.Second))
	f.starter.start(t.Context(), after(2*time.Second))
	if got := f.begun(); !slices.Equal(got, []float64{0, 1, 2}) {
		t.Errorf("got due times %v begun, want a third, although the outcome before it is written while the rows are read", got)
	}
	f.session.set(after(3 * time.Second))
	f.starter.start(t.Context(), after(3*time.Second))
	f.wantRuns("beside one that is not over", j.ID, "skipped 3..3×1 overlap: the run due "+after(2*time.Second).String()+" is still executing")
}

// TestRowsThatMoved: a task of a batch that is not ours any more is that task's affair.
func TestRowsThatMoved(t *testing.T) {
	f := setUp(t)
	f.claimed(hourly(4)...)
	f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL WHERE job_id = 1") // freed
	f.exec("UPDATE task SET session_id = 'somebody else', launch = 1 WHERE job_id = 2")    // and taken
	f.exec("DELETE FROM task WHERE job_id = 3")                                            // withdrawn
	f.starter.start(t.Context(), t0)
	if len(f.executing.added) != 1 || f.executing.added[0].JobID != 4 {
		t.Errorf("got attempts %+v, want that of job 4", f.executing.added)
	}
	if n := f.prepared.Len(); n != 0 {
		t.Errorf("got %d tasks in the prepare set, want none: they are not ours", n)
	}
	f.want("runs", 0, "SELECT COUNT(*) FROM history")
	f.want("tasks", 3, "SELECT COUNT(*) FROM task")
}

// TestStartFates: whatever becomes of a start's commit, the sets say what the rows say, and each task begins once.
func TestStartFates(t *testing.T) {
	f := setUp(t)
	commit := faultproxy.CommitOf("SET state = 2")
	for name, c := range map[string]struct {
		rule faultproxy.Rule
		want int // attempts after the first look; all of them in the end
	}{
		"the reply is lost":         {faultproxy.Rule{Match: commit, Action: faultproxy.CutAfter()}, 3},
		"the commit never arrives":  {faultproxy.Rule{Match: commit, Action: faultproxy.CutBefore()}, 0},
		"a statement is cut":        {faultproxy.Rule{Match: faultproxy.SQL("SET state = 2"), Action: faultproxy.CutAfter()}, 0},
		"a deadlock":                {faultproxy.Rule{Match: faultproxy.SQL("SET state = 2"), Action: faultproxy.Error(1213, "40001", "Deadlock")}, 3},
		"a trouble of the server's": {faultproxy.Rule{Match: faultproxy.SQL("SET state = 2"), Action: faultproxy.Error(1114, "HY000", "full")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.claimed(hourly(3)...)
			f.proxy.Add(c.rule)
			f.starter.start(t.Context(), t0)
			if got := f.begun(); len(got) != c.want || f.prepared.Len() != 3-c.want {
				t.Errorf("got %d begun and %d prepared, want %d and %d", len(got), f.prepared.Len(), c.want, 3-c.want)
			}
			for n := range 100 { // until the server has noticed that a connection was cut, the jobs are locked
				f.session.set(after(refusedPause + time.Duration(n)*maxBusyPause))
				if f.starter.start(t.Context(), f.session.Now()); len(f.begun()) > 0 {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if got := f.begun(); len(got) != 3 || f.prepared.Len() != 0 {
				t.Errorf("in the end: got %d begun and %d prepared, want 3 and none", len(got), f.prepared.Len())
			}
		})
	}
}

// TestSettledStart: how long it took to find out what became of a start says nothing of how long starts take.
func TestSettledStart(t *testing.T) {
	f := setUp(t)
	f.claimed(every("lost", time.Hour, 0), every("then", time.Hour, time.Second))
	took := func() time.Duration { return time.Duration(f.starter.lead.took.Load()) }
	rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 2"), Times: 1, Action: faultproxy.CutAfter()})
	f.starter.start(t.Context(), t0)
	if got := f.begun(); len(got) != 1 || rule.Fired() != 1 || took() != 0 {
		t.Errorf("got %d begun, injected %d times, and learned %s; want one of each, and nothing", len(got), rule.Fired(), took())
	}
	f.session.set(after(time.Second))
	f.starter.start(t.Context(), after(time.Second))
	if got := f.begun(); len(got) != 2 || took() == 0 {
		t.Errorf("got %d begun and learned %s; want two, and what the second took", len(got), took())
	}
}

// TestPoisonedStart: MySQL refuses the start of one task. The others begin within a few looks, and it does not take
// the others' batches with it for ever.
func TestPoisonedStart(t *testing.T) {
	f := setUp(t)
	f.claimed(hourly(32)...)
	f.exec("CREATE TRIGGER refuse BEFORE UPDATE ON task FOR EACH ROW IF NEW.job_id = 11 AND NEW.state = 2 THEN SIGNAL SQLSTATE '22000' SET MESSAGE_TEXT = 'poison'; END IF")
	now, looks := t0, 0
	for ; len(f.executing.added) < 31 && looks < 60; looks++ {
		f.session.set(now)
		f.starter.start(t.Context(), now)
		now = now.Add(retryPause)
	}
	if got := len(f.begun()); got != 31 {
		t.Errorf("got %d begun after %d looks, want 31", got, looks)
	}
	if f.prepared.Len() != 1 {
		t.Errorf("got %d tasks in the prepare set, want the poisoned one", f.prepared.Len())
	}
	f.exec("DROP TRIGGER refuse")
	f.session.set(now.Add(refusedPause))
	f.starter.start(t.Context(), now.Add(refusedPause))
	if got := len(f.begun()); got != 32 {
		t.Errorf("got %d begun once MySQL takes it, want 32", got)
	}
}

// TestRefusedWithARecord: a task that is to end without a start and has its record already ends without another one, and
// holds up no other.
func TestRefusedWithARecord(t *testing.T) {
	f := setUp(t)
	replace := every("replace", time.Second, 0)
	replace.Overlap = job.OverlapReplace
	for name, c := range map[string]struct {
		specs          []job.Spec
		broken         string
		begun, records int64
	}{
		"the task itself":      {hourly(4), "UPDATE job SET spec = '{'", 0, 4},
		"whose place it takes": {[]job.Spec{replace}, "DO 0", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.claimed(c.specs...)
			f.exec(c.broken)
			f.exec("INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) SELECT job_id, due, 'x', id, 1, due, due FROM task ORDER BY due, id LIMIT 1")
			f.session.set(after(3 * time.Second))
			f.starter.start(t.Context(), after(3*time.Second))
			if got := int64(len(f.begun())); got != c.begun {
				t.Errorf("got %d begun, want %d", got, c.begun)
			}
			f.want("tasks that are due and have not begun", 0, "SELECT COUNT(*) FROM task WHERE state <> 2 AND due <= ?", int64(after(3*time.Second)))
			f.want("records", c.records, "SELECT COUNT(*) FROM history")
			f.want("the record that was there", 1, "SELECT COUNT(*) FROM history WHERE outcome = 1")
		})
	}
}

// TestNoSlot: due tasks for which there is no slot wait here; of a node that is not alone, those that wait for long are
// given back, but for as many as there are slots.
func TestNoSlot(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		nodes, kept int
		waited      time.Duration
	}{
		"alone":                   {1, 10, time.Minute},
		"not alone, not for long": {2, 10, crowded - time.Millisecond},
		"not alone, and for long": {2, 3, crowded},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.claimed(hourly(10)...)
			f.session.of, f.executing.slots, f.starter.Slots = c.nodes, 0, 3
			now := after(c.waited)
			f.session.set(now)
			f.starter.start(t.Context(), now)
			if got := f.prepared.Len(); got != c.kept || (f.freed > 0) != (c.kept < 10) {
				t.Errorf("got %d kept, told %d times of others; want %d", got, f.freed, c.kept)
			}
			if len(f.executing.added) != 0 {
				t.Errorf("got %d begun without a slot", len(f.executing.added))
			}
			f.executing.slots = 2
			f.starter.start(t.Context(), now)
			if len(f.executing.added) != 2 {
				t.Errorf("got %d begun in two slots, want 2", len(f.executing.added))
			}
		})
	}
}

// TestPause is how long the starter waits before it looks.
func TestPause(t *testing.T) {
	f := setUp(t)
	if got := f.starter.pause(); got != time.Minute {
		t.Errorf("nothing prepared: got %s, want until somebody wakes it", got)
	}
	f.claimed(every("j", time.Hour, 5*time.Second))
	if got, want := f.starter.pause(), 5*time.Second-minLead; got != want {
		t.Errorf("ahead: got %s, want %s", got, want)
	}
	f.session.set(after(5 * time.Second))
	if got := f.starter.pause(); got != 0 {
		t.Errorf("due: got %s, want none", got)
	}
	f.session.stale = true
	if got := f.starter.pause(); got != stalePause {
		t.Errorf("due, with a stale lease: got %s, want %s", got, stalePause)
	}
	f.starter.start(t.Context(), after(5*time.Second))
	if len(f.executing.added) != 0 {
		t.Error("a start was begun under a stale lease")
	}
	f.session.stale, f.executing.slots = false, 0
	f.starter.start(t.Context(), after(5*time.Second)) // finds no slot
	if got := f.starter.pause(); got != crowded/4 {
		t.Errorf("due, without a slot: got %s, want %s", got, crowded/4)
	}
}

// TestLinger: while more is due than there are slots, and few of them are free, a look waits a little for more.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, x := NewPrepared(), &fakeExecuting{slots: 8}
		for i := range 20 {
			p.Add([]job.Task{{ID: int64(i + 1), DueNow: t0}}, t0)
		}
		s := NewStarter(&Starter{Session: newSession(1), Prepared: p, Executing: x, Slots: 8})
		want := func(what string, tasks int, pause time.Duration) {
			t.Helper()
			if got := s.pause(); got != pause {
				t.Errorf("%s: got a pause of %s, want %s", what, got, pause)
			}
			if tasks == 0 {
				return
			}
			took := s.take(t0).tasks
			s.promised.Store(0)
			if len(took) != tasks {
				t.Errorf("%s: got %d tasks, want %d", what, len(took), tasks)
			}
			for range took {
				x.Add(job.Started{})
			}
		}
		end := func(n int) { x.added = x.added[n:] }
		want("all slots are free", 8, 0)
		end(1)
		want("one is free", 0, linger)
		time.Sleep(linger / 2)
		want("for a while", 0, linger/2)
		end(1)
		want("a quarter is free", 2, 0)
		end(1)
		time.Sleep(linger)
		want("one is free, and we have waited", 1, 0)
		end(8)
		want("all are free again", 8, 0)
		end(4)
		want("half is free, and little is due", 1, 0)
		p.Add([]job.Task{{ID: 99, DueNow: t0}}, t0)
		want("something comes, and there was a slot for all", 1, 0)
	})
}

// TestCallsShareSlots: HTTP requests share slots, commands do not, and no more begins than there are slots for, whatever was
// expected.
func TestCallsShareSlots(t *testing.T) {
	f := setUp(t)
	f.executing.slots = 2
	due := after(5 * time.Second)
	for i := range job.CallsPerSlot + 4 {
		spec := at(fmt.Sprint("call-", i), due)
		spec.HTTP = &job.HTTP{URL: "https://example.com/"}
		f.create(spec)
	}
	for i := range 3 {
		f.create(at(fmt.Sprint("command-", i), due+1))
	}
	begun := func(what string, calls, commands, perSlot int) {
		t.Helper()
		before := len(f.executing.added)
		f.session.set(f.session.Now().Add(maxBusyPause))
		f.starter.start(t.Context(), f.session.Now())
		got := [2]int{}
		for _, s := range f.executing.added[before:] {
			if s.Spec.HTTP != nil {
				got[0]++
			} else {
				got[1]++
			}
		}
		if got != [2]int{calls, commands} {
			t.Errorf("%s: %d requests and %d commands began, want %d and %d", what, got[0], got[1], calls, commands)
		}
		if n := f.starter.PerSlot(); n != perSlot {
			t.Errorf("%s: got %d for each slot from now on, want %d", what, n, perSlot)
		}
	}
	f.reach(due.Add(-time.Second))
	f.session.set(due)
	begun("nothing is known of them", 2, 0, job.CallsPerSlot)
	begun("they are requests", job.CallsPerSlot, 0, job.CallsPerSlot)
	begun("no slot is free", 0, 0, job.CallsPerSlot)
	f.finish()
	begun("commands come, more than there are slots for", 2, 1, 2)
	f.finish()
	begun("the other commands", 0, 2, 1)
	f.finish()
	f.want("nothing is left", 0, "SELECT COUNT(*) FROM task")
}

// TestPriorityOfFewSlots: of what is due and has no room, the higher priority begins, however many were expected to share a slot.
func TestPriorityOfFewSlots(t *testing.T) {
	f := setUp(t)
	f.executing.slots = 1
	f.starter.perSlot.Store(job.CallsPerSlot - 1)
	f.create(at("low", after(4*time.Second)))
	high := at("high", after(5*time.Second))
	high.Priority = 100
	f.create(high)
	f.reach(after(6 * time.Second))
	if len(f.executing.added) != 1 || f.executing.added[0].Spec.Name != "high" {
		t.Fatalf("began: %v", f.executing.added)
	}
	if len(f.starter.busy) != 0 {
		t.Errorf("%d jobs count as locked", len(f.starter.busy))
	}
	f.finish()
	f.starter.start(t.Context(), after(6*time.Second)) // at once
	if len(f.executing.added) != 1 || f.executing.added[0].Spec.Name != "low" {
		t.Errorf("then: %v", f.executing.added)
	}
}

// TestKeepsWhatIsClaimed: of requests that wait for a slot as many stay as are claimed, or they would go back and forth.
func TestKeepsWhatIsClaimed(t *testing.T) {
	s := NewStarter(&Starter{Session: &fakeSession{id: newSession(1).id, of: 2, buckets: 2}, Prepared: NewPrepared(), Executing: &fakeExecuting{}, Slots: 2, Freed: func() { t.Error("some were given back") }})
	s.perSlot.Store(job.CallsPerSlot - 1)
	for i := range 2 * job.CallsPerSlot {
		s.Prepared.Add([]job.Task{{ID: int64(i + 1), DueNow: t0}}, t0)
	}
	s.giveBack(t0.Add(time.Second))
	if n := s.Prepared.Len(); n != 2*job.CallsPerSlot {
		t.Errorf("%d are left", n)
	}
}

// TestGivesBackWhatIsSetAside: of what waits for a slot, what was set aside goes first; what stays is still set aside.
func TestGivesBackWhatIsSetAside(t *testing.T) {
	freed, p := 0, NewPrepared()
	s := NewStarter(&Starter{Session: &fakeSession{id: newSession(1).id, of: 2, buckets: 2}, Prepared: p, Executing: &fakeExecuting{}, Slots: 3, Freed: func() { freed++ }})
	add := func(id int64) job.Task {
		task := job.Task{ID: id, DueNow: t0}
		p.Add([]job.Task{task}, t0)
		return task
	}
	for id := range int64(2) {
		task := add(1 + id)
		p.Take(t0, 0, 1)
		p.SetAside(task, t0)
		s.busy[task.ID] = busyPause
	}
	add(3)
	s.giveBack(t0.Add(time.Second))
	if p.Len() != 3 || p.Due(t0) != 1 || freed != 0 {
		t.Errorf("%d are left and %d of them due, others were given back %d times; want 3, 1 and none", p.Len(), p.Due(t0), freed)
	}
	add(4)
	s.giveBack(t0.Add(2 * time.Second))
	if p.Len() != 3 || p.Due(t0) != 2 || freed != 1 || len(s.busy) != 1 {
		t.Errorf("%d are left, %d of them due and %d of them busy, others were given back %d times; want 3, 2, 1 and once", p.Len(), p.Due(t0), len(s.busy), freed)
	}
}

// TestStartBesideAKeptRow: while somebody keeps the row of a task or of a group locked, all tasks that need none of these
// begin, and the others once it is free.
func TestStartBesideAKeptRow(t *testing.T) {
	for what, lock := range map[string]string{
		"a task":             "SELECT id FROM task WHERE job_id = (SELECT id FROM job WHERE name = '3') FOR UPDATE",
		"a group":            "SELECT id FROM grp WHERE name = 'g' FOR UPDATE",
		"a group, by its id": "SELECT id FROM grp WHERE id = 1 FOR UPDATE",
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			if _, err := f.editor.PutGroup(t.Context(), "g", 5); err != nil {
				t.Fatal(err)
			}
			specs := hourly(20)
			specs[3].Group = "g"
			for i := 10; i < 20; i++ {
				*specs[i].Start = after(time.Second).Time()
			}
			f.claimed(specs...)
			release := f.keep(lock)
			f.starter.start(t.Context(), t0)
			if got := len(f.begun()); got != 9 {
				t.Errorf("got %d begun by the first look, want the 9 of which nobody has locked anything", got)
			}
			// A reply is lost: that is settled without the row that is kept. And nothing waits for it again.
			f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 2"), Action: faultproxy.CutAfter()})
			f.session.set(after(time.Second))
			began, patient := time.Now(), f.starter.patient
			f.starter.start(t.Context(), f.session.Now())
			if got, took := len(f.begun()), time.Since(began); got != 19 || took > 1500*time.Millisecond {
				t.Errorf("got %d begun by the second look, after %s; want 19 at once", got, took)
			}
			for range 20 {
				f.session.set(f.session.Now().Add(maxKeptPause))
				f.starter.start(t.Context(), f.session.Now())
			}
			f.want("runs", 0, "SELECT COUNT(*) FROM history")
			if pause := f.starter.busy[f.number("SELECT t.id FROM task t JOIN job j ON j.id = t.job_id WHERE j.name = '3'")]; pause != maxKeptPause {
				t.Errorf("the task is looked at again after %s, want %s", pause, maxKeptPause)
			}
			if f.starter.patient.After(patient) {
				t.Errorf("starts that waited for nobody go on with it for %s more", f.starter.patient.Sub(patient))
			}
			release()
			f.session.set(f.session.Now().Add(maxKeptPause))
			f.starter.start(t.Context(), f.session.Now())
			if got := len(f.begun()); got != 20 || len(f.starter.busy) != 0 {
				t.Errorf("got %d begun once it is free, and %d busy; want 20 and none", got, len(f.starter.busy))
			}
		})
	}
}

// TestStartBesideAKeptRowOfAnother: a start sets aside what would end or kill a task whose row somebody keeps locked, and wakes
// no such task.
func TestStartBesideAKeptRowOfAnother(t *testing.T) {
	f := setUp(t)
	if _, err := f.editor.PutGroup(t.Context(), "g", 1); err != nil {
		t.Fatal(err)
	}
	f.starter.patient = time.Now().Add(time.Hour)
	replace := every("replace", time.Second, 0)
	replace.Overlap = job.OverlapReplace
	f.claimed(replace)
	f.starter.start(t.Context(), t0)
	release := f.keep("SELECT id FROM task WHERE state = 2 FOR UPDATE")
	f.session.set(after(time.Second))
	began := time.Now()
	f.starter.start(t.Context(), f.session.Now())
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("the start took %s: it waited for the row of the run that executes", took)
	}
	f.want("who waits behind a run that cannot be told to end", 0, "SELECT COUNT(*) FROM waiting")
	release()
	f.session.set(after(time.Second + maxKeptPause/2))
	f.starter.start(t.Context(), f.session.Now())
	f.want("who waits behind a run that is killed", 1, "SELECT COUNT(*) FROM waiting")
	f.want("the run that is killed", 1, "SELECT COUNT(*) FROM task WHERE state = 2 AND kill_requested = 2")
}
