package schedule

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// A change makes its rows ready on an empty schema and returns what is then made, which answers with what it tells its
// caller.
type change func(f *fixture) func() (any, error)

// person is a context of a person, whose name stands in the audit.
func (f *fixture) person() context.Context {
	return job.WithActor(f.Context(), job.Actor{Who: "alice", Origin: "10.0.0.7"})
}

// silent is a change without an answer.
func silent(do func() error) func() (any, error) {
	return func() (any, error) { return nil, do() }
}

// busy has five jobs in the midst of their work, 13 s after t0: "run" executes, "queue" executes and has two that wait,
// "holds" has the only slot of group g, for which "waits" waits, and "ahead" lies ahead.
func (f *fixture) busy() (jobs map[string]job.Job) {
	f.Helper()
	f.group("g", 1)
	f.put(closing("c", 1))
	queue := every("queue", 5*time.Second, 0)
	queue.Overlap, queue.Queue = job.OverlapQueue, 5
	holds, waits := at("holds", t0), at("waits", after(time.Second))
	holds.Group, waits.Group = "g", "g"
	ahead := every("ahead", 20*time.Second, 15*time.Second)
	ahead.Calendars = []string{"c"}

	jobs = map[string]job.Job{}
	f.session.set(after(-time.Second))
	for _, spec := range []job.Spec{every("run", 10*time.Second, 0), queue, holds, waits, ahead} {
		jobs[spec.Name] = f.create(spec)
	}
	for _, second := range []int{0, 1, 5, 10} {
		f.reach(after(time.Duration(second) * time.Second))
	}
	f.session.set(after(13 * time.Second))
	return jobs
}

// backfilled has a backfill of "j" under way: one of its due times executes, one waits for a retry, one lies ahead.
func (f *fixture) backfilled() (job.Job, job.Backfill) {
	f.Helper()
	f.session.set(t0)
	j := f.create(every("j", time.Hour, -100*time.Hour))
	b, err := f.editor.Backfill(f.person(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 3, false, "key")
	if err != nil {
		f.Fatal(err)
	}
	f.exec("UPDATE task SET attempt = 2 WHERE due = ?", int64(after(-9*time.Hour)))
	f.exec("UPDATE task SET state = 2, session_id = ?, launch = ?, started = ?, spawn_by = ? WHERE due = ?",
		f.session.id[:], faultproxy.FirstLaunch, int64(t0), int64(after(time.Second)), int64(after(-10*time.Hour)))
	f.session.set(after(5 * time.Second))
	return j, b
}

// started is what a node knows of the attempts that it prepared and began.
func (f *fixture) started() (out []string) {
	for _, s := range f.executing.added {
		out = append(out, fmt.Sprintf("executes %s due %s attempt %d", s.Spec.Name, s.Due, s.Attempt))
	}
	return append(out, fmt.Sprintf("%d prepared, %d killed", f.prepared.Len(), len(f.executing.killed)))
}

var changesOfPeople = map[string]change{
	"create a job": func(f *fixture) func() (any, error) {
		f.group("g", 1)
		f.put(closing("c", 1))
		spec := every("j", 5*time.Second, time.Second)
		spec.Group, spec.Calendars, spec.Command, spec.Labels = "g", []string{"c"}, "true", map[string]string{"team": "a"}
		return func() (any, error) { return f.editor.Create(f.person(), spec, false) }
	},
	"create a job under a key": func(f *fixture) func() (any, error) {
		spec := every("j", 5*time.Second, time.Second)
		spec.Command = "true"
		once := &job.Once{Key: "k", Kind: "createJob", Answer: func() job.KeptAnswer { return job.KeptAnswer{Status: 201} }}
		return func() (any, error) { return f.editor.Create(job.WithOnce(f.person(), once), spec, true) }
	},
	"edit a job": func(f *fixture) func() (any, error) {
		j := f.busy()["queue"]
		return func() (any, error) {
			j.Spec.Every, j.Spec.Group = job.Duration(7*time.Second), "g"
			return f.editor.Update(f.person(), j.ID, j.Version, j.Spec)
		}
	},
	"take an edit back": func(f *fixture) func() (any, error) {
		j := f.busy()["ahead"]
		was := j.Spec
		j = f.update(j, func(s *job.Spec) { s.Calendars, s.Owner = nil, "bob" })
		return func() (any, error) { return f.editor.Rollback(f.person(), j.ID, j.Version, was, 1) }
	},
	"pause a job": func(f *fixture) func() (any, error) {
		j := f.busy()["queue"]
		return func() (any, error) { return f.editor.Pause(f.person(), j.ID, job.PauseRequest{Reason: "why"}) }
	},
	"resume a job": func(f *fixture) func() (any, error) {
		j := f.busy()["run"]
		f.pauseJob(j, 0)
		f.session.set(after(35 * time.Second))
		return func() (any, error) { return f.editor.Resume(f.person(), j.ID) }
	},
	"delete a job": func(f *fixture) func() (any, error) {
		j := f.busy()["queue"]
		return silent(func() error { return f.editor.Delete(f.person(), j.ID) })
	},
	"run a job now": func(f *fixture) func() (any, error) {
		j := f.busy()["run"]
		return func() (any, error) { return f.editor.RunNow(f.person(), j.ID, "key") }
	},
	"kill a run": func(f *fixture) func() (any, error) {
		f.busy()
		l := f.executing.added[0].Launch
		return silent(func() error { return f.editor.Kill(f.person(), l) })
	},
	"apply files": func(f *fixture) func() (any, error) {
		f.busy()
		edited := every("run", 10*time.Second, 3*time.Second)
		want := job.Apply{
			Prune:     &job.Prune{App: job.DefaultApp},
			Groups:    []job.GroupSpec{{Name: "g", Slots: 2}, {Name: "h", Slots: 1}},
			Calendars: []job.CalendarSpec{closing("c", 2)},
			Jobs:      []job.Wanted{wanted(edited), wanted(every("new", time.Minute, time.Minute))},
		}
		return func() (any, error) {
			done, err := f.editor.Apply(f.person(), want)
			return said(done), err
		}
	},
	"put a new calendar": func(f *fixture) func() (any, error) {
		return func() (any, error) { return f.editor.PutCalendar(f.person(), closing("new", 3), AnyVersion) }
	},
	"edit a calendar": func(f *fixture) func() (any, error) {
		f.busy()
		return func() (any, error) { return f.editor.PutCalendar(f.person(), closing("c", 2, 4), AnyVersion) }
	},
	"delete a calendar": func(f *fixture) func() (any, error) {
		f.put(closing("c", 1))
		return silent(func() error { return f.editor.DeleteCalendar(f.person(), "c") })
	},
	"put a new group": func(f *fixture) func() (any, error) {
		return func() (any, error) { return f.editor.PutGroup(f.person(), "new", 3) }
	},
	"widen a group": func(f *fixture) func() (any, error) {
		f.busy()
		return func() (any, error) { return f.editor.PutGroup(f.person(), "g", 2) }
	},
	"delete a group": func(f *fixture) func() (any, error) {
		f.group("g", 1)
		return silent(func() error { return f.editor.DeleteGroup(f.person(), "g") })
	},
	"pause an app": func(f *fixture) func() (any, error) {
		f.busy()
		return func() (any, error) {
			return f.editor.PauseApp(f.person(), job.DefaultApp, job.PauseRequest{Reason: "why", Until: after(time.Hour)})
		}
	},
	"resume an app": func(f *fixture) func() (any, error) {
		f.busy()
		f.pauseApp(job.DefaultApp, "why", 0)
		return silent(func() error { return f.editor.ResumeApp(f.person(), job.DefaultApp) })
	},
	"start a backfill": func(f *fixture) func() (any, error) {
		j := f.create(every("j", time.Hour, -100*time.Hour))
		return func() (any, error) {
			return f.editor.Backfill(f.person(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 2, true, "")
		}
	},
	"cancel a backfill": func(f *fixture) func() (any, error) {
		_, b := f.backfilled()
		return func() (any, error) { return f.editor.CancelBackfill(f.person(), b.ID) }
	},
	"cordon a node": func(f *fixture) func() (any, error) {
		return silent(func() error { return f.editor.Cordon(f.person(), "n", "why", true) })
	},
	"uncordon a node": func(f *fixture) func() (any, error) {
		if err := f.editor.Cordon(f.person(), "n", "why", false); err != nil {
			f.Fatal(err)
		}
		return silent(func() error { return f.editor.Uncordon(f.person(), "n") })
	},
	"disable a handler": func(f *fixture) func() (any, error) {
		return silent(func() error { return f.editor.DisableHandler(f.person(), "h", "why") })
	},
	"enable a handler": func(f *fixture) func() (any, error) {
		if err := f.editor.DisableHandler(f.person(), "h", "why"); err != nil {
			f.Fatal(err)
		}
		return silent(func() error { return f.editor.EnableHandler(f.person(), "h") })
	},
	"put a rule of retention": func(f *fixture) func() (any, error) {
		rule := job.Retention{Keep: job.Keep{Age: job.Duration(24 * time.Hour)}}
		return silent(func() error { return f.editor.PutRetention(f.person(), "shop", rule) })
	},
	"apply a folder": func(f *fixture) func() (any, error) {
		return func() (any, error) {
			done, err := f.editor.Apply(f.person(), copyOf("a", "1"))
			return said(done), err
		}
	},
	"note a folder": func(f *fixture) func() (any, error) {
		if _, err := f.editor.Apply(f.person(), copyOf("a", "1")); err != nil {
			f.Fatal(err)
		}
		n := job.FolderNode{Node: "b", Digest: strings.Repeat("2", job.DigestSize), State: job.FolderBehind}
		return silent(func() error { return f.editor.NoteFolder(f.person(), "/jobs", n) })
	},
}

// ofBulk is a change of several jobs at once: two that go, and one that is refused.
func ofBulk(action job.Action) change {
	return func(f *fixture) func() (any, error) {
		jobs := f.busy()
		if action == job.ActionResume {
			jobs["run"], jobs["queue"] = f.pauseJob(jobs["run"], 0), f.pauseJob(jobs["queue"], 0)
		}
		want := &job.Bulk{Action: action}
		for _, name := range []string{"run", "queue"} {
			want.Jobs = append(want.Jobs, job.Seen{ID: jobs[name].ID, Version: jobs[name].Version})
		}
		want.Jobs = append(want.Jobs, job.Seen{ID: jobs["ahead"].ID, Version: 99})
		return func() (any, error) {
			err := f.editor.Bulk(f.person(), want)
			return want.Done, err
		}
	}
}

var changesOfNodes = map[string]change{
	"plan": func(f *fixture) func() (any, error) {
		f.busy()
		f.exec("DELETE FROM task WHERE state = 0 AND due > ?", int64(after(30*time.Second)))
		now := after(45 * time.Second)
		f.session.set(now)
		return func() (any, error) { return f.planner.plan(f.Context(), now) }
	},
	"plan after an outage": func(f *fixture) func() (any, error) {
		f.create(every("j", time.Minute, time.Minute))
		skip := every("skip", time.Minute, time.Minute)
		skip.Misfire.Policy = job.MisfireSkip
		f.create(skip)
		now := after(48 * time.Hour)
		f.session.set(now)
		return func() (any, error) { return f.planner.plan(f.Context(), now) }
	},
	"hold a paused app's jobs": func(f *fixture) func() (any, error) {
		f.busy()
		f.pauseApp(job.DefaultApp, "why", after(time.Minute))
		return func() (any, error) { return f.planner.plan(f.Context(), after(15*time.Second)) }
	},
	"end a pause and release its jobs": func(f *fixture) func() (any, error) {
		f.busy()
		f.pauseApp(job.DefaultApp, "why", after(20*time.Second))
		f.look(after(15 * time.Second))
		f.session.set(after(30 * time.Second))
		return func() (any, error) { return f.planner.plan(f.Context(), after(30*time.Second)) }
	},
	"claim": func(f *fixture) func() (any, error) {
		f.busy()
		return func() (any, error) {
			n, err := f.claimer.claim(f.Context(), after(13*time.Second), -neglected)
			return fmt.Sprint(n, f.started()), err
		}
	},
	"start": func(f *fixture) func() (any, error) {
		f.busy()
		replace := every("replace", 5*time.Second, 14*time.Second)
		replace.Overlap = job.OverlapReplace
		f.create(replace)
		if _, err := f.claimer.claim(f.Context(), after(13*time.Second), -neglected); err != nil {
			f.Fatal(err)
		}
		f.starter.start(f.Context(), after(14*time.Second))
		f.session.set(after(20 * time.Second))
		if _, err := f.claimer.claim(f.Context(), after(20*time.Second), -neglected); err != nil {
			f.Fatal(err)
		}
		return func() (any, error) {
			f.starter.start(f.Context(), after(20*time.Second))
			return f.started(), nil
		}
	},
	"feed a backfill": func(f *fixture) func() (any, error) {
		f.backfilled()
		f.exec("DELETE FROM task WHERE attempt = 2") // it has run
		feeder := NewFeeder(Feeder{DB: f.planner.DB, Session: f.session, Soon: func() {}, Log: f.planner.Log})
		return silent(func() error { return feeder.feedAll(f.Context()) })
	},
	"sweep what waits for its job": func(f *fixture) func() (any, error) {
		j := f.busy()["queue"]
		f.exec("DELETE FROM task WHERE job_id = ? AND state = 2", j.ID) // it has ended
		return silent(func() error { return f.sweeper().sweep(f.Context(), after(14*time.Second)) })
	},
	"sweep what waits for a slot": func(f *fixture) func() (any, error) {
		j := f.busy()["holds"]
		f.exec("DELETE FROM slot WHERE task_id = (SELECT id FROM task WHERE job_id = ?)", j.ID)
		return silent(func() error { return f.sweeper().sweep(f.Context(), after(14*time.Second)) })
	},
	"sweep what has waited too long": func(f *fixture) func() (any, error) {
		j := f.busy()["queue"]
		f.exec("UPDATE waiting SET expires = ? WHERE job_id = ?", int64(after(12*time.Second)), j.ID)
		return silent(func() error { return f.sweeper().sweep(f.Context(), after(14*time.Second)) })
	},
	"sweep what no node takes": func(f *fixture) func() (any, error) {
		members := f.with(map[string]string{"zone": "a"})
		spec := every("j", 5*time.Second, time.Second)
		spec.Selector = "zone=a"
		f.create(spec)
		if err := f.claimer.Places.refresh(f.Context()); err != nil {
			f.Fatal(err)
		}
		members.labels, members.seen = []map[string]string{{"zone": "b"}}, 2
		f.session.set(after(30 * time.Second))
		return silent(func() error { return f.sweeper().unplaced(f.Context(), after(30*time.Second)) })
	},
	"tidy": func(f *fixture) func() (any, error) {
		f.busy()
		f.exec("DELETE FROM task WHERE state = 3") // what waited has ended
		sweeper := f.sweeper()
		sweeper.rounds = tidyEvery - 1
		return silent(func() error { return sweeper.sweep(f.Context(), after(time.Hour)) })
	},
	"mark jobs of another time zone data": func(f *fixture) func() (any, error) {
		spec := job.Spec{Name: "j", Schedule: "0 0 3 * * *", Timezone: "Europe/Berlin"}
		f.exec("UPDATE job SET next_due = next_due + 3600000000 WHERE id = ?", f.create(spec).ID)
		old := f.joinWith("old")
		f.joinWith("new")
		f.exec("DELETE FROM session WHERE id = ?", old[:])
		f.exec("UPDATE session SET id = ?", f.session.id[:])
		r := &Rezoner{DB: f.planner.DB, Session: f.session, Zones: "new", Log: slog.New(slog.DiscardHandler)}
		return func() (any, error) { return r.look(f.Context(), f.session.Now()) }
	},
}

// TestChangesRunAgain refuses each statement of each change once, as a deadlock does, so that the closure of its
// transaction runs again: the rows, and what the caller is told, must be those of an undisturbed change.
func TestChangesRunAgain(t *testing.T) {
	all := maps.Clone(changesOfPeople)
	maps.Copy(all, changesOfNodes)
	for _, action := range []job.Action{job.ActionPause, job.ActionResume, job.ActionRun, job.ActionDelete} {
		all["of many jobs: "+string(action)] = ofBulk(action)
	}

	const schemas = 3 // their changes are made one after the other
	names := slices.Sorted(maps.Keys(all))
	for i := range schemas {
		t.Run(fmt.Sprint("schema ", i), func(t *testing.T) {
			f := setUp(t)
			schema := faultproxy.NewSchema(t, f.beside.Raw())
			for n, name := range names {
				if n%schemas != i {
					continue
				}
				t.Run(name, func(t *testing.T) {
					faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
						// MySQL's clock stands still, too.
						f := node(t, faultproxy.StandStill(f.dsn, int64(t0)/1_000_000), 1)
						f.session.counter = faultproxy.FirstLaunch
						return f.proxy, all[name](f)
					})
				})
			}
		})
	}
}
