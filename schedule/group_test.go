package schedule

import (
	"context"
	"errors"
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
	end := func() {
		t.Helper()
		ended := f.executing.added[0]
		f.finish()
		err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error {
			if _, err := tx.LockJobs([]int64{ended.JobID}); err != nil {
				return err
			}
			_, err := tx.Wake([]int64{ended.JobID}, []int64{ended.JobID}, []int64{ended.ID}, f.session.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	end()
	f.start(1100 * time.Millisecond)
	f.executes(a)
	f.exec("DELETE FROM task WHERE state = 0") // high is due no more
	end()
	f.start(1200 * time.Millisecond)
	f.executes(b)
	end()
	f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
	f.want("slots that are held", 0, "SELECT COUNT(*) FROM slot")
}
