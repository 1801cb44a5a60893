package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestReferencesOfTheUnread: to what a definition refers that a later version wrote, nobody knows here. With another one it
// refers to what that names, and its runs hold no slot of a group that it is not in.
func TestReferencesOfTheUnread(t *testing.T) {
	f := setUp(t)
	for name, change := range map[string]func(*fixture, job.Job){
		"edited": func(f *fixture, j job.Job) {
			f.update(j, func(s *job.Spec) { s.Group, s.Env, s.Ping = "", nil, nil })
			f.want("slots", 0, "SELECT COUNT(*) FROM slot")
		},
		"deleted": func(f *fixture, j job.Job) {
			if err := f.editor.Delete(f.Context(), j.ID); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.group("g", 1)
			f.exec("REPLACE INTO secret (name, version, key_id, sealed, created, updated) VALUES ('s', 1, 'k', '', 1, 1)")
			spec := every("j", time.Hour, 0)
			spec.Group, spec.Env, spec.Ping = "g", map[string]string{"S": "{{secret.s}}"}, &job.Ping{URL: "https://example.com/"}
			f.session.set(after(-time.Second))
			j := f.create(spec)
			f.reach(t0)
			f.want("references", 3, "SELECT COUNT(*) FROM job_ref")
			f.want("slots", 1, "SELECT COUNT(*) FROM slot")
			f.exec(`UPDATE job SET spec = '{"later": 1}' WHERE id = ?`, j.ID)
			f.session.set(after(time.Minute))
			change(f, j)
			f.want("references", 0, "SELECT COUNT(*) FROM job_ref")
			if err := f.editor.DeleteGroup(t.Context(), "g"); err != nil {
				t.Errorf("its group: %v", err)
			}
		})
	}
}

// TestGroupsBeforeTasks: an edit into another group locks the two behind the job and before its tasks, as starts do.
func TestGroupsBeforeTasks(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	f.group("h", 1)
	spec := every("j", 10*time.Second, 10*time.Second)
	spec.Group = "g"
	j := f.create(spec)
	var locked []string
	groups := "" // the first statement that locks some
	f.proxy.OnCommand(func(c faultproxy.Command) {
		for _, table := range []string{"job", "grp", "task"} {
			if strings.Contains(c.SQL, " FROM "+table+" ") && strings.Contains(c.SQL, "FOR UPDATE") {
				if locked = append(locked, table); table == "grp" && groups == "" {
					groups = c.SQL
				}
			}
		}
	})
	f.update(j, func(s *job.Spec) { s.Group = "h" })
	if len(locked) < 3 || !slices.Equal(locked[:3], []string{"job", "grp", "task"}) {
		t.Errorf("it locked %q, want job, grp, task first", locked)
	}
	if !strings.Contains(groups, "'g'") || !strings.Contains(groups, "'h'") {
		t.Errorf("it locked groups by %q, want both at once", groups)
	}
}

// TestEditIntoAGroupOfTheWoken: who was woken for the last slot of a group does not start beside a run that an edit has moved
// into the group since.
func TestEditIntoAGroupOfTheWoken(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	f.session.set(after(-time.Second))
	first, second := at("first", t0), at("second", after(time.Second))
	first.Group, second.Group = "g", "g"
	moved, a, b := f.create(every("moved", time.Hour, 0)), f.create(first), f.create(second)
	f.reach(t0)
	f.reach(after(time.Second))
	f.want("wait for a slot", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
	f.succeed(a.ID)
	f.session.set(after(3 * time.Second))
	if err := f.sweeper().sweep(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("were woken", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 0")
	f.update(moved, func(s *job.Spec) { s.Group = "g" })
	f.reach(after(4 * time.Second))
	f.executes(moved)
	f.want("wait for a slot", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
	f.succeed(moved.ID)
	f.sweep(after(5 * time.Second))
	f.executes(b)
}

// TestGivenBackIntoAFullGroup: a start that was never spawned is given back with the slot that an edit into a group, or less slots
// for it, has left it. It begins no run more than there are slots.
func TestGivenBackIntoAFullGroup(t *testing.T) {
	for what, c := range map[string]struct {
		before string // its group at first
		full   func(f *fixture, jobs []job.Job)
	}{
		"moved there": {"", func(f *fixture, jobs []job.Job) {
			for _, j := range jobs {
				f.update(j, func(s *job.Spec) { s.Group = "g" })
			}
		}},
		"slots taken away": {"g", func(f *fixture, _ []job.Job) { f.group("g", 2) }},
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			f.group("g", 4)
			f.session.set(after(-time.Second))
			var jobs []job.Job
			for _, name := range []string{"a", "b", "c", "d"} {
				spec := every(name, time.Hour, 0)
				spec.Group = c.before
				if name == "d" {
					spec.Priority = 1
				}
				jobs = append(jobs, f.create(spec))
			}
			f.reach(t0)
			a, b, third, d := jobs[0], jobs[1], jobs[2], jobs[3]
			f.executes(d, a, b, third)
			f.group("g", 2)
			c.full(f, jobs)
			for _, j := range jobs[1:] {
				f.exec("UPDATE task SET state = 0, session_id = DEFAULT, launch = DEFAULT, started = 0, spawn_by = 0 WHERE job_id = ? AND state = 2", j.ID)
			}
			f.executing.added = f.executing.added[1:2] // a
			f.reach(after(time.Second))
			f.executes(a, d) // who has the highest priority has the other slot
			f.want("wait for a slot", 2, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
			f.want("slots", 2, "SELECT COUNT(*) FROM slot")
			f.succeed(a.ID)
			f.sweep(after(2 * time.Second))
			f.executes(d, b)
			f.succeed(d.ID)
			f.sweep(after(3 * time.Second))
			f.executes(b, third)
		})
	}
}

// TestSlotsOfWhatIsNotDueAnyMore: MySQL's clock was put back behind who was woken for a slot. It does not keep the slot until it
// is due again.
func TestSlotsOfWhatIsNotDueAnyMore(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	f.session.set(after(-time.Second))
	first, second := at("first", t0), at("second", after(time.Second))
	first.Group, second.Group = "g", "g"
	a, b := f.create(first), f.create(second)
	f.reach(t0)
	f.reach(after(time.Second))
	f.succeed(a.ID)
	slots := func(what string, want int64) {
		t.Helper()
		f.want(what, want, "SELECT COUNT(*) FROM slot JOIN task ON id = task_id WHERE job_id = ? AND state = 0", b.ID)
	}
	look := func(now job.Micros) {
		t.Helper()
		f.session.set(now)
		s := f.sweeper()
		s.rounds = tidyEvery - 1
		if err := s.sweep(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	look(after(3 * time.Second))
	slots("woken, and due", 1)
	look(after(2500 * time.Millisecond)) // it is due since it was woken
	slots("due in a moment", 1)
	look(after(-time.Minute))
	slots("due in a minute", 0)
	third := at("third", after(-30*time.Second))
	third.Group = "g"
	c := f.create(third)
	f.reach(after(-30 * time.Second))
	f.executes(c)
	f.succeed(c.ID)
	f.reach(after(3 * time.Second))
	f.executes(b)
}

// TestFatesOfDeletedGroups: a group is deleted once, and its deletion is on record, whatever becomes of the commit. Who
// comes second, behind a deadlock too, is told that there is none.
func TestFatesOfDeletedGroups(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.group("g", 1)
			rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("DELETE FROM grp"), Action: fate})
			if err := f.editor.DeleteGroup(t.Context(), "g"); err != nil || rule.Fired() != 1 {
				t.Errorf("got %v; the commit was lost %d times, want once", err, rule.Fired())
			}
			f.want("groups", 0, "SELECT COUNT(*) FROM grp")
			f.want("lines of the audit", 1, "SELECT COUNT(*) FROM audit WHERE action = 'delete' AND kind = 'group'")
		})
	}
	t.Run("deadlock", func(t *testing.T) {
		f := f.anew(t)
		f.group("g", 1)
		f.proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("DELETE FROM grp"), Action: faultproxy.Error(1213, "40001", "deadlock")})
		again := f.proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("FROM grp FORCE"), Skip: 1, Action: faultproxy.HoldBefore(0)})
		done := make(chan error, 1)
		go func() { done <- f.editor.DeleteGroup(t.Context(), "g") }()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := again.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		f.exec("DELETE FROM grp")
		again.Release()
		if err := <-done; !errors.Is(err, sql.ErrNotFound) {
			t.Errorf("got %v, want %v: somebody else was faster", err, sql.ErrNotFound)
		}
	})
}

// TestSlotByPriority: what waits for a run of its own job, and for a slot of its group once that has ended, has the slot before
// what waits for it with a lower priority.
func TestSlotByPriority(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	high, low := every("high", time.Second, 0), at("low", after(500*time.Millisecond))
	high.Group, high.Overlap, high.Priority, low.Group = "g", job.OverlapQueue, 10, "g"
	f.session.set(after(-time.Second))
	a, b := f.create(high), f.create(low)
	f.reach(t0)
	f.reach(after(500 * time.Millisecond))
	f.reach(after(time.Second))
	f.executes(a)
	f.want("low waits for the slot", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", b.ID)
	f.want("high waits for its own run", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 1 AND job_id = ?", a.ID)
	f.end()
	f.start(1100 * time.Millisecond)
	f.executes(a)
	f.exec("DELETE FROM task WHERE state = 0") // high is due no more
	f.end()
	f.start(1200 * time.Millisecond)
	f.executes(b)
	f.end()
	f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
	f.want("slots that are held", 0, "SELECT COUNT(*) FROM slot")
}

// end ends all that executes, of one job, and wakes who comes next, as its node would.
func (f *fixture) end() {
	f.Helper()
	ended, turns := f.executing.added[0], []int64(nil)
	if ended.Origin >= 0 {
		turns = []int64{ended.JobID}
	}
	f.finish()
	err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
		if _, err := tx.LockJobs([]int64{ended.JobID}); err != nil {
			return err
		}
		_, err := tx.Wake([]int64{ended.JobID}, turns, []int64{ended.ID}, f.session.Now())
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

// feed has backfills go on.
func (f *fixture) feed() {
	f.Helper()
	feeder := NewFeeder(Feeder{DB: f.planner.DB, Session: f.session, Soon: func() {}, Log: f.planner.Log})
	if err := feeder.feedAll(f.Context()); err != nil {
		f.Fatal(err)
	}
}

// TestBackfillInAFullGroup: what a backfill has waiting for a slot, and always will, comes behind what was due before that was ready.
func TestBackfillInAFullGroup(t *testing.T) {
	f := setUp(t)
	for overlap, runs := range map[job.Overlap]int{job.OverlapSkip: 1, job.OverlapAllow: 3} { // of the backfill, before the other job
		t.Run(string(overlap), func(t *testing.T) {
			f := f.anew(t)
			f.exec("TRUNCATE TABLE backfill")
			f.group("g", 1)
			filled, other := every("filled", time.Hour, -100*time.Hour-30*time.Minute), at("other", after(2*time.Second))
			filled.Group, filled.Overlap, other.Group = "g", overlap, "g"
			a, b := f.create(filled), f.create(other)
			if _, err := f.editor.Backfill(t.Context(), a.ID, after(-50*time.Hour).Time(), after(-time.Hour).Time(), 3, false, ""); err != nil {
				t.Fatal(err)
			}
			f.reach(after(time.Second))
			f.executes(a)
			f.want("of the backfill waits", 2, "SELECT COUNT(*) FROM waiting WHERE job_id = ?", a.ID)
			f.reach(after(2 * time.Second))
			f.want("the other one waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", b.ID)
			for i := range runs {
				f.executes(a)
				f.session.set(after(time.Duration(3+i) * time.Second))
				f.end()
				f.feed()
				f.start(time.Duration(3+i)*time.Second + 100*time.Millisecond)
			}
			f.executes(b)
			waits, err := f.beside.Waiting(t.Context(), []int64{a.ID}, 9)
			if err != nil || len(waits) != 3 || waits[0].Due > after(-40*time.Hour) {
				t.Errorf("got %+v, %v; want three due times of the backfill", waits, err)
			}
			f.end()
			f.start(9 * time.Second)
			f.executes(a)
		})
	}
}

// TestReplaceKeepsThePlace: a due time that takes the place of another one, in the line for a slot or with the slot, has it.
func TestReplaceKeepsThePlace(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T) (f2 *fixture, r, other job.Job) {
		f := f.anew(t)
		f.group("g", 1)
		first, replaces, last := at("first", t0), every("replaces", time.Second, 500*time.Millisecond), at("last", after(800*time.Millisecond))
		first.Group, replaces.Group, last.Group, replaces.Overlap = "g", "g", "g", job.OverlapReplace
		f.session.set(after(-time.Second))
		f.create(first)
		r, other = f.create(replaces), f.create(last)
		for _, at := range []time.Duration{0, 500, 800, 1500} {
			f.reach(after(at * time.Millisecond))
		}
		f.want("wait", 2, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
		f.session.set(after(1600 * time.Millisecond))
		f.end()
		f.want("is woken", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 0 AND due = ?", int64(after(1500*time.Millisecond)))
		return f, r, other
	}
	check := func(f *fixture, r, other job.Job, due time.Duration) {
		f.Helper()
		f.executes(r)
		if len(f.executing.added) == 1 && f.executing.added[0].Due != after(due) {
			f.Errorf("what was due at %s executes, want %s", f.executing.added[0].Due, after(due))
		}
		f.want("slots that are held", 1, "SELECT COUNT(*) FROM slot")
		f.want("the other one waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", other.ID)
	}
	t.Run("of one that waits", func(t *testing.T) {
		f, r, other := begin(t)
		f.start(1700 * time.Millisecond)
		check(f, r, other, 1500*time.Millisecond)
	})
	t.Run("of one that was woken", func(t *testing.T) {
		f, r, other := begin(t)
		f.session.set(after(2500 * time.Millisecond))
		f.starter.start(t.Context(), f.session.Now()) // it is prepared already
		check(f, r, other, 2500*time.Millisecond)
	})
	t.Run("of one that was woken, both at once", func(t *testing.T) {
		f, r, other := begin(t)
		f.start(2500 * time.Millisecond)
		check(f, r, other, 2500*time.Millisecond)
	})
}

// TestSlotThatNobodyUses: who was woken for a slot and does not begin, since no node has room for it, keeps it from the others of the
// group for seconds and not for good; and who is woken in its place does not keep it from beginning once there is room.
func TestSlotThatNobodyUses(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T, priority int) (f2 *fixture, slow, next job.Job) {
		f := f.anew(t)
		f.group("g", 1)
		a, b, c := at("first", t0), at("slow", after(time.Second)), at("next", after(2*time.Second))
		a.Group, b.Group, c.Group, c.Priority = "g", "g", "g", priority
		f.session.set(after(-time.Second))
		f.create(a)
		slow = f.create(b)
		for i := range 2 {
			f.reach(after(time.Duration(i) * time.Second))
		}
		f.session.set(after(1500 * time.Millisecond))
		f.end()
		next = f.create(c)
		f.exec("UPDATE task SET hash = hash + 1024 WHERE job_id = ?", slow.ID) // no node comes to it
		f.reach(after(2 * time.Second))
		f.executes()
		f.want("waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", next.ID)
		return f, slow, next
	}
	sweep := func(f *fixture, at time.Duration) {
		f.Helper()
		f.session.set(after(at))
		for range 2 {
			if err := f.sweeper().sweep(f.Context(), f.session.Now()); err != nil {
				f.Fatal(err)
			}
		}
		f.want("slots that are held", 1, "SELECT COUNT(*) FROM slot")
	}
	has := func(f *fixture, j job.Job, want int64) {
		f.Helper()
		f.want("slots of "+j.Spec.Name, want, "SELECT COUNT(*) FROM slot JOIN task ON id = task_id WHERE job_id = ?", j.ID)
	}
	comes := func(f *fixture, j job.Job) { // a node to its task
		f.Helper()
		f.exec("UPDATE task SET hash = (SELECT hash FROM job WHERE id = job_id) WHERE job_id = ?", j.ID)
	}
	t.Run("another one begins", func(t *testing.T) {
		f, slow, next := begin(t, 0)
		sweep(f, 6*time.Second)
		has(f, slow, 1)
		sweep(f, 7*time.Second)
		has(f, next, 1)
		f.start(8 * time.Second)
		f.executes(next)
		sweep(f, 20*time.Second)
		f.executes(next)
		comes(f, slow)
		f.start(21 * time.Second)
		f.executes(next)
		f.end()
		f.start(22 * time.Second)
		f.executes(slow)
	})
	for name, c := range map[string]struct {
		priority int
		begins   string
	}{"a node comes to it": {0, "slow"}, "a node comes to it, the other one has the higher priority": {1, "next"}} {
		t.Run(name, func(t *testing.T) {
			f, slow, next := begin(t, c.priority)
			sweep(f, 7*time.Second)
			has(f, next, 1)
			f.exec("UPDATE task SET hash = hash + 1024 WHERE job_id = ?", next.ID)
			comes(f, slow)
			f.start(8 * time.Second)
			comes(f, next)
			f.start(9 * time.Second)
			for _, want := range []string{c.begins, map[string]string{"slow": "next", "next": "slow"}[c.begins]} {
				if len(f.executing.added) != 1 || f.executing.added[0].Spec.Name != want {
					t.Errorf("got %+v, want that %s executes", f.executing.added, want)
				}
				f.want("slots that are held", 1, "SELECT COUNT(*) FROM slot")
				f.end()
				f.start(10 * time.Second)
			}
			f.want("tasks", 0, "SELECT COUNT(*) FROM task")
		})
	}
	t.Run("somebody has it locked", func(t *testing.T) {
		f, slow, next := begin(t, 0)
		release := f.keep("SELECT id FROM task WHERE job_id = ? FOR UPDATE", slow.ID)
		sweep(f, 7*time.Second)
		has(f, slow, 1)
		release()
		sweep(f, 8*time.Second)
		has(f, next, 1)
	})
}

// TestPatienceForSlots: a slot is passed on later and later while nobody begins who gets it, and each time that the same task loses it.
func TestPatienceForSlots(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T, n int) (*fixture, []job.Job) {
		f := f.anew(t)
		f.group("g", 1)
		f.session.set(after(-time.Second))
		var jobs []job.Job
		for i := range n {
			spec := at(fmt.Sprint("job ", i), after(time.Duration(i)*time.Millisecond))
			spec.Group = "g"
			jobs = append(jobs, f.create(spec))
			f.reach(after(time.Duration(i) * time.Millisecond))
		}
		f.executes(jobs[0])
		f.want("wait", int64(n-1), "SELECT COUNT(*) FROM waiting WHERE kind = 2")
		f.exec("UPDATE task SET hash = hash + 1024 WHERE state = 3") // no node comes to them
		f.session.set(after(time.Second))
		f.end()
		return f, jobs
	}
	sweep := func(f *fixture, s *Sweeper, second int) {
		f.Helper()
		f.session.set(after(time.Duration(second) * time.Second))
		if err := s.sweep(f.Context(), f.session.Now()); err != nil {
			f.Fatal(err)
		}
	}
	has := func(f *fixture, second int, j job.Job) {
		f.Helper()
		f.want(fmt.Sprintf("after %d s: slots of %s", second, j.Spec.Name), 1, "SELECT COUNT(*) FROM slot JOIN task ON id = task_id WHERE job_id = ?", j.ID)
	}
	t.Run("nobody begins", func(t *testing.T) {
		f, jobs := begin(t, 7)
		s, holder, until := f.sweeper(), 1, []int{0, 6, 17, 38, 79, 120}
		for second := 2; second < 125; second++ {
			sweep(f, s, second)
			if holder < len(until) && second > until[holder] {
				holder++
			}
			has(f, second, jobs[holder])
		}
	})
	t.Run("one comes to a node late", func(t *testing.T) {
		f, jobs := begin(t, 5)
		comes := func(j job.Job) {
			f.exec("UPDATE task SET hash = (SELECT hash FROM job WHERE id = job_id) WHERE job_id = ?", j.ID)
		}
		s := f.sweeper()
		second, slow := 1, jobs[1]
		for i, patience := range []int{5, 10, 20} {
			for range patience {
				second++
				sweep(f, s, second)
				has(f, second, slow)
			}
			second++
			sweep(f, s, second)
			next := jobs[2+i]
			has(f, second, next)
			comes(next)
			f.start(time.Duration(second)*time.Second + 100*time.Millisecond)
			f.executes(next)
			comes(slow)
			f.start(time.Duration(second)*time.Second + 200*time.Millisecond)
			f.want("waits again", 1, "SELECT COUNT(*) FROM waiting WHERE job_id = ?", slow.ID)
			f.exec("UPDATE task SET hash = hash + 1024 WHERE job_id = ?", slow.ID)
			second++
			f.session.set(after(time.Duration(second) * time.Second))
			f.end()
			has(f, second, slow)
		}
	})
}

// TestSlotOfOneThatIsSuperseded: who takes the place of a task that was woken for a slot has it alone; who lost one before, and is
// started in the same transaction, does not take it as well.
func TestSlotOfOneThatIsSuperseded(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	first, replaces, last := at("first", t0), every("replaces", 10*time.Second, 500*time.Millisecond), at("last", after(10600*time.Millisecond))
	first.Group, replaces.Group, last.Group, replaces.Overlap = "g", "g", "g", job.OverlapReplace
	f.session.set(after(-time.Second))
	f.create(first)
	r, l := f.create(replaces), f.create(last)
	f.exec("UPDATE task SET due_now = due + 1000 WHERE job_id = ?", l.ID) // as if it had waited, and lost its slot
	f.reach(t0)
	f.reach(after(500 * time.Millisecond))
	f.want("waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", r.ID)
	f.session.set(after(time.Second))
	f.end()
	f.want("is woken", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 0 AND job_id = ?", r.ID)
	f.exec("UPDATE task SET hash = hash + 1024 WHERE job_id = ? AND due < ?", r.ID, int64(after(time.Second))) // no node comes to it
	f.session.set(after(16400 * time.Millisecond))
	if _, err := f.planner.plan(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.start(16500 * time.Millisecond)
	f.executes(r)
	f.want("slots that are held", 1, "SELECT COUNT(*) FROM slot")
	f.want("the other one waits", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2 AND job_id = ?", l.ID)
	f.wantRuns("the earlier one", r.ID, "superseded 0.5..0.5×1 the due time "+after(10500*time.Millisecond).String()+" took its place")
}
