package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestFatesOfNodesAndHandlers loses COMMITs of what is said about nodes and handlers, each way: it stands once it is
// answered, and the audit has one line of it.
func TestFatesOfNodesAndHandlers(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			for _, table := range []string{"node", "handler_off"} {
				f.exec("TRUNCATE TABLE " + table)
			}
			ctx := job.WithActor(t.Context(), job.Actor{Who: "ann", Origin: "here"})
			for i, step := range []struct {
				statement string
				do        func() error
				cordoned  int64
				draining  int64
				disabled  int64
			}{
				{"INSERT INTO node", func() error { return f.editor.Cordon(ctx, "x", "disk", false) }, 1, 0, 0},
				{"INSERT INTO node", func() error { return f.editor.Cordon(ctx, "x", "disk", true) }, 1, 1, 0},
				{"INSERT INTO handler_off", func() error { return f.editor.DisableHandler(ctx, "mail", "spam") }, 1, 1, 1},
				{"DELETE FROM node", func() error { return f.editor.Uncordon(ctx, "x") }, 0, 0, 1},
				{"DELETE FROM handler_off", func() error { return f.editor.EnableHandler(ctx, "mail") }, 0, 0, 0},
			} {
				rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(step.statement), Action: fate, Times: 1})
				if err := step.do(); err != nil || rule.Fired() != 1 {
					t.Fatalf("step %d: %v; the commit was lost %d times, want once", i, err, rule.Fired())
				}
				for range 2 { // again does no harm
					f.want(fmt.Sprint("cordoned, step ", i), step.cordoned, "SELECT COUNT(*) FROM node WHERE cordoned = 1 AND who = 'ann' AND reason = 'disk'")
					f.want(fmt.Sprint("draining, step ", i), step.draining, "SELECT COUNT(*) FROM node WHERE draining = 1")
					f.want(fmt.Sprint("disabled, step ", i), step.disabled, "SELECT COUNT(*) FROM handler_off WHERE who = 'ann' AND reason = 'spam'")
					f.want(fmt.Sprint("lines of the audit, step ", i), int64(i+1), "SELECT COUNT(*) FROM audit WHERE who = 'ann' AND origin = 'here' AND action <> 'void'")
					if err := step.do(); err != nil {
						t.Fatalf("step %d again: %v", i, err)
					}
				}
			}
		})
	}
}

// TestACordonKeepsItsInstant: what sessions obey is since when it holds, whatever else is said meanwhile.
func TestACordonKeepsItsInstant(t *testing.T) {
	f := setUp(t)
	say := func(reason string, drain bool) (since int64) {
		t.Helper()
		if err := f.editor.Cordon(t.Context(), "x", reason, drain); err != nil {
			t.Fatal(err)
		}
		f.session.set(f.session.Now().Add(time.Minute))
		return f.number("SELECT since FROM node WHERE name = 'x'")
	}
	first := say("a", false)
	for i, since := range []int64{say("b", false), say("b", true), say("c", false)} {
		if since != first {
			t.Errorf("change %d: since %d, want %d", i, since, first)
		}
	}
	f.want("draining still", 1, "SELECT draining FROM node WHERE name = 'x'")
	for _, err := range []error{
		f.editor.Cordon(t.Context(), "", "", false), f.editor.Cordon(t.Context(), "x", "a\nb", false), f.editor.Uncordon(t.Context(), "a\x00"),
		f.editor.DisableHandler(t.Context(), "a b", ""), f.editor.EnableHandler(t.Context(), ""), f.editor.DisableHandler(t.Context(), "a", strings.Repeat("x", 501)),
	} {
		if problems := (job.Problems{}); !errors.As(err, &problems) {
			t.Errorf("got %v, want what is wrong with a field", err)
		}
	}
}

// TestDisablingWaitsForStarts: a start of the handler that is under way is waited for, and so is its spawn window.
func TestDisablingWaitsForStarts(t *testing.T) {
	f := setUp(t)
	f.with(map[string]string{"handler/mail": ""})
	due := t0.Time()
	j, err := f.editor.Create(t.Context(), job.Spec{Name: "mail", Handler: "mail", At: &due}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.claimer.claim(t.Context(), t0, urgent); err != nil || f.prepared.Len() != 1 {
		t.Fatalf("claimed %d tasks, %v", f.prepared.Len(), err)
	}
	held := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 2"), Action: faultproxy.HoldBefore(0), Times: 1})
	started := make(chan struct{})
	go func() { defer close(started); f.starter.start(t.Context(), t0) }()
	for end := time.Now().Add(10 * time.Second); held.Fired() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no start")
		}
	}
	// Beside the proxy, and on a clock that goes: the window is that of the session's clock.
	editor := &Editor{DB: f.beside, Session: f.session, Soon: func() {}}
	f.session.set(t0.Add(900 * time.Millisecond))
	const under = 700 * time.Millisecond // way is the start, from now on
	begin := time.Now()
	time.AfterFunc(under, held.Release)
	if err := editor.DisableHandler(t.Context(), "mail", ""); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < under {
		t.Errorf("it was answered after %s, while a start was under way", took)
	} else if took < under+200*time.Millisecond {
		t.Errorf("it was answered after %s, within the spawn window", took)
	}
	<-started
	if len(f.executing.added) != 1 {
		t.Fatalf("%d attempts were started, want the one that was under way", len(f.executing.added))
	}
	f.finish()
	if _, err := f.editor.RunNow(t.Context(), j.ID, ""); err != nil {
		t.Fatal(err)
	}
	f.reach(f.session.Now())
	runs := f.runs(j.ID)
	if last := runs[len(runs)-1]; len(f.executing.added) != 0 || last.Outcome != job.Skipped || last.Reason != "handler mail is disabled by anonymous" {
		t.Errorf("a run asked for by hand: %d started, got %+v", len(f.executing.added), last.Run)
	}
}

// TestDisablingTakesOneConnection: as many as there are connections may disable handlers at once.
func TestDisablingTakesOneConnection(t *testing.T) {
	f := setUp(t)
	db, err := sql.Open(f.dsn, sql.DefaultTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := (&Editor{DB: db, Session: f.session}).DisableHandler(ctx, "mail", ""); err != nil {
		t.Error(err)
	}
	f.want("disabled", 1, "SELECT COUNT(*) FROM handler_off")
}

// TestDisablingWaitsForNewPlaces: a job with the handler comes with a place of its own, and is started, while that the
// handler is disabled is about to be committed: its spawn window is waited for too.
func TestDisablingWaitsForNewPlaces(t *testing.T) {
	f := setUp(t)
	held := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO handler_off"), Action: faultproxy.HoldBefore(0), Times: 1})
	f.session.set(t0.Add(900 * time.Millisecond))
	done := make(chan error, 1)
	go func() { done <- f.editor.DisableHandler(t.Context(), "mail", "") }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	other := node(t, f.dsn, 2)
	other.with(map[string]string{"handler/mail": ""})
	due := t0.Time()
	if _, err := other.editor.Create(t.Context(), job.Spec{Name: "mail", Handler: "mail", At: &due}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := other.claimer.claim(t.Context(), t0, urgent); err != nil || other.prepared.Len() != 1 {
		t.Fatalf("claimed %d tasks, %v", other.prepared.Len(), err)
	}
	other.starter.start(t.Context(), t0)
	if len(other.executing.added) != 1 {
		t.Fatalf("%d attempts were started, want one", len(other.executing.added))
	}
	begin := time.Now()
	held.Release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("it was answered after %s, within the spawn window", took)
	}
}

// TestFatesOfWaits loses COMMITs of what is done with tasks that no node takes: the next look ends it.
func TestFatesOfWaits(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.exec("DELETE FROM place")
			m := f.with(nil)
			s := f.sweeper()
			spec := at("j", t0)
			spec.Selector, spec.Misfire.Policy = "zone=a", job.MisfireSkip
			j := f.create(spec)
			if err := f.claimer.Places.refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			lose := func(statement string, now job.Micros) {
				t.Helper()
				rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: fate, Times: 1})
				f.session.set(now)
				err := s.unplaced(t.Context(), now)
				if rule.Fired() != 1 || !sql.IsUnknown(err) {
					t.Fatalf("%s: lost %d commits, %v", statement, rule.Fired(), err)
				}
				f.awaitRelease() // what it had locked would be left out
				for range 2 {
					if err := s.unplaced(t.Context(), now); err != nil {
						t.Fatal(err)
					}
				}
			}
			lose("INTO waiting", after(3*time.Second))
			f.want("waits", 1, "SELECT COUNT(*) FROM waiting w JOIN task t ON t.id = w.task_id WHERE t.state = 3")
			m.labels, m.seen = []map[string]string{nil, {"zone": "a"}}, 2
			lose("waiting t FORCE INDEX", after(4*time.Second))
			f.want("idle tasks", 1, "SELECT COUNT(*) FROM task WHERE state = 0")
			f.want("waits", 0, "SELECT COUNT(*) FROM waiting")
			m.labels, m.seen = m.labels[:1], 3
			lose("INTO waiting", after(5*time.Second))
			lose("INSERT INTO history", after(2*time.Minute))
			f.wantRuns("it", j.ID, "missed 0..0×1 no node matches zone=a")
			f.want("what is left of it", 0, "SELECT (SELECT COUNT(*) FROM task) + (SELECT COUNT(*) FROM waiting)")
		})
	}
}
