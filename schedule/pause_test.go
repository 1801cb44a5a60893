package schedule

import (
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

// in is a definition in an app.
func in(app string, spec job.Spec) job.Spec {
	spec.App = app
	return spec
}

// pauseApp pauses an app in alice's name.
func (f *fixture) pauseApp(app, reason string, until job.Micros) job.Pause {
	f.Helper()
	ctx := job.WithActor(f.Context(), job.Actor{Who: "alice", Origin: "10.0.0.7"})
	p, err := f.editor.PauseApp(ctx, app, job.PauseRequest{Reason: reason, Until: until})
	if err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *fixture) resumeApp(app string) {
	f.Helper()
	if err := f.editor.ResumeApp(f.Context(), app); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) pauseJob(j job.Job, until job.Micros) job.Job {
	f.Helper()
	j, err := f.editor.Pause(f.Context(), j.ID, job.PauseRequest{Reason: "why", Until: until})
	if err != nil {
		f.Fatal(err)
	}
	return j
}

// look has the planner look at an instant, until it has nothing more to do.
func (f *fixture) look(now job.Micros) {
	f.Helper()
	f.session.set(now)
	for {
		n, err := f.planner.plan(f.Context(), now)
		if err != nil {
			f.Fatal(err)
		}
		if n < planBatch && !f.planner.more {
			return
		}
	}
}

func (f *fixture) row(id int64) sql.JobRow {
	f.Helper()
	j, err := f.beside.Job(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return j
}

// wantAudit holds the audit against lines of "who action kind app/name reason".
func (f *fixture) wantAudit(what string, want ...string) {
	f.Helper()
	page, err := f.beside.Audit(f.Context(), sql.AuditFilter{Limit: 1000})
	if err != nil {
		f.Fatal(err)
	}
	var got []string
	for _, e := range slices.Backward(page.Lines) {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s/%s %s", e.Who, e.Action, e.Kind, e.App, e.Name, e.Reason)))
	}
	if !slices.Equal(got, want) {
		f.Errorf("%s: got the audit\n%q, want\n%q", what, got, want)
	}
}

// TestPauseUntil: the planner resumes the job at that instant, as somebody would have; what is due then is no misfire.
func TestPauseUntil(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		misfire job.Misfire
		dues    []float64 // seconds after t0
		counted string
	}{
		"latest": {job.Misfire{}, []float64{60, 70, 80, 90, 100}, "skipped 10..50×5 paused from %s to %s by anonymous: why"}, // it is the due time at the end
		"skip":   {job.Misfire{Policy: job.MisfireSkip}, []float64{60, 70, 80, 90, 100}, "skipped 10..50×5 paused from %s to %s by anonymous: why"},
		"all":    {job.Misfire{Policy: job.MisfireAll, MaxCount: 3}, []float64{30, 40, 50, 60, 70, 80, 90, 100}, "skipped 10..20×2 paused from %s to %s by anonymous: why"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			spec := every("j", 10*time.Second, 10*time.Second)
			spec.Misfire = c.misfire
			until := after(time.Minute)
			j := f.pauseJob(f.create(spec), until)
			if j.Status(false, t0) != job.Paused || j.PauseUntil != until || j.PauseReason != "why" || j.PausedBy != job.Anonymous {
				t.Fatalf("got %+v", j)
			}
			f.look(after(59 * time.Second))
			f.wantDues("a moment before it ends", j.ID)
			f.look(after(60200 * time.Millisecond))
			f.wantDues("when it has ended", j.ID, c.dues...)
			f.wantRuns("when it has ended", j.ID, fmt.Sprintf(c.counted, t0, until))
			row := f.row(j.ID)
			if row.Paused || row.Version != 3 || row.PauseUntil != 0 || row.PauseReason != "" || row.NextDue != after(110*time.Second) {
				t.Errorf("got %+v; want it as if it had never been paused, at version 3", row.Job)
			}
			f.look(after(61 * time.Second))
			f.wantAudit("once", "anonymous create job default/j", "anonymous pause job default/j why",
				"go-crontab resume job default/j it was paused until "+until.String())
		})
	}
}

// TestPauseUntilTheLateLooker: nobody was there when the pause ended. What passed before its end was paused, what passed
// since was missed.
func TestPauseUntilTheLateLooker(t *testing.T) {
	f := setUp(t)
	j := f.pauseJob(f.create(every("j", 10*time.Minute, 10*time.Minute)), after(time.Hour))
	f.look(after(100 * time.Minute))
	f.wantRuns("late", j.ID, "skipped 600..3000×5 paused from "+t0.String()+" to "+after(time.Hour).String()+" by anonymous: why",
		"missed 3600..5400×4 nobody could start it within 1m")
	f.wantDues("late", j.ID, 6000) // due at this moment
}

// TestChangeBehindTheEndOfAPause: whoever changes a job whose pause, or whose app's, has ended finds it resumed, though no planner
// has looked since, and what passed meanwhile counted.
func TestChangeBehindTheEndOfAPause(t *testing.T) {
	f := setUp(t)
	until := after(time.Minute)
	dues := []float64{60, 70, 80, 90, 100}
	itself := "go-crontab resume job a/j it was paused until " + until.String()
	for name, c := range map[string]struct {
		app    bool // the pause is that of the app
		change func(*fixture, job.Job) (job.Job, error)
		dues   []float64
		last   []string // lines of the audit
	}{
		"edit": {false, func(f *fixture, j job.Job) (job.Job, error) {
			return f.update(j, func(s *job.Spec) { s.Command = "other" }), nil
		}, dues, []string{itself, "anonymous update job a/j"}},
		"edit, of an app": {true, func(f *fixture, j job.Job) (job.Job, error) {
			return f.update(j, func(s *job.Spec) { s.Command = "other" }), nil
		}, dues, []string{"anonymous update job a/j"}},
		"resume": {false, func(f *fixture, j job.Job) (job.Job, error) { return f.editor.Resume(f.Context(), j.ID) }, dues, []string{itself}},
		"pause": {false, func(f *fixture, j job.Job) (job.Job, error) {
			return f.editor.Pause(f.Context(), j.ID, job.PauseRequest{Reason: "again"})
		}, nil, []string{itself, "anonymous pause job a/j again"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			j := f.create(in("a", every("j", 10*time.Second, 10*time.Second)))
			if c.app {
				f.pauseApp("a", "why", until)
				f.look(after(time.Second)) // the planner holds the job
			} else {
				j = f.pauseJob(j, until)
			}
			f.wantDues("while it lasts", j.ID)
			f.session.set(after(65 * time.Second))
			j = f.row(j.ID).Job
			got, err := c.change(f, j)
			if err != nil {
				t.Fatal(err)
			}
			f.wantDues("changed", j.ID, c.dues...)
			if got.Held || got.PauseUntil != 0 || got.Paused != (c.dues == nil) || got.Version != j.Version+1 {
				t.Errorf("got %+v, want it resumed, and changed once", got)
			}
			if runs := f.runs(j.ID); len(runs) == 0 || runs[0].Outcome != job.Skipped || runs[0].Count != 5 || runs[0].Until != after(50*time.Second) {
				t.Errorf("got runs %+v, want the first to count the five that passed in the pause", runs)
			}
			page, err := f.beside.Audit(f.Context(), sql.AuditFilter{Limit: len(c.last)})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, e := range slices.Backward(page.Lines) {
				lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s/%s %s", e.Who, e.Action, e.Kind, e.App, e.Name, e.Reason)))
			}
			if !slices.Equal(lines, c.last) {
				t.Errorf("the audit ends with %q, want %q", lines, c.last)
			}
		})
	}
}

// TestPauseUntilOfTheDead: the node that would have resumed the job is gone; after a few seconds another does it.
func TestPauseUntilOfTheDead(t *testing.T) {
	f := setUp(t)
	j := f.pauseJob(f.create(every("j", 10*time.Second, 10*time.Second)), after(time.Minute))
	other := node(t, f.dsn, 2)
	other.session.index, other.session.of = 1-bucketOf(j.Hash, 16)%2, 2
	other.look(after(65 * time.Second))
	f.wantDues("left to the one that is preferred", j.ID)
	other.look(after(69 * time.Second))
	f.wantDues("taken over", j.ID, 60, 70, 80, 90, 100)
}

// TestPauseAgain changes reason and end of a pause; nothing given changes nothing.
func TestPauseAgain(t *testing.T) {
	f := setUp(t)
	j := f.pauseJob(f.create(every("j", time.Second, time.Second)), after(time.Minute))
	again, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{})
	if err != nil || again.Version != j.Version || again.PauseUntil != after(time.Minute) {
		t.Errorf("nothing given: got %+v, %v", again, err)
	}
	f.session.set(after(2 * time.Second))
	if again, err = f.editor.Pause(t.Context(), j.ID, job.PauseRequest{Reason: "longer"}); err != nil || again.PauseUntil != 0 || again.PauseReason != "longer" || again.PausedAt != t0 {
		t.Errorf("got %+v, %v; want it without an end, and since when it was", again, err)
	}
	f.look(after(2 * time.Minute))
	f.wantDues("without an end", j.ID)
	for _, bad := range []job.PauseRequest{{Until: after(-time.Second)}, {Until: after(700_000 * time.Hour)}, {Reason: "two\nlines"}, {Reason: strings.Repeat("x", 501)}} {
		var p job.Problems
		if _, err := f.editor.Pause(t.Context(), j.ID, bad); !errors.As(err, &p) {
			t.Errorf("%+v: got %v, want it refused", bad, err)
		}
		if _, err := f.editor.PauseApp(t.Context(), "a", bad); !errors.As(err, &p) {
			t.Errorf("of an app, %+v: got %v, want it refused", bad, err)
		}
	}
}

// TestUpdateOfAPausedJob keeps the end of its pause.
func TestUpdateOfAPausedJob(t *testing.T) {
	f := setUp(t)
	j := f.pauseJob(f.create(every("j", 10*time.Second, 10*time.Second)), after(time.Minute))
	f.session.set(after(35 * time.Second))
	f.update(j, func(s *job.Spec) { s.Command = "other" })
	f.look(after(60500 * time.Millisecond))
	f.wantDues("resumed", j.ID, 60, 70, 80, 90, 100)
	f.wantRuns("what passed in it", j.ID, "skipped 10..50×5 paused from "+t0.String()+" to "+after(time.Minute).String()+" by anonymous: why")
}

// TestPauseOfAnApp follows the jobs of three apps through a pause of one of them.
func TestPauseOfAnApp(t *testing.T) {
	f := setUp(t)
	f.create(in("b", every("b", 10*time.Second, 10*time.Second)))
	j := f.create(in("a", every("j", 10*time.Second, 10*time.Second)))
	far := f.create(in("a", every("far", time.Hour, time.Hour)))
	f.reach(after(2 * time.Second)) // the due times at 10 s are claimed
	f.session.set(after(5 * time.Second))
	p := f.pauseApp("a", "migration", 0)
	if p.Since != after(5*time.Second) || p.By != "alice" || p.Scope != job.ScopeApp {
		t.Errorf("got %+v", p)
	}
	asked, err := f.editor.RunNow(t.Context(), j.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, second := range []time.Duration{6, 10, 20, 30} {
		f.reach(after(second * time.Second))
	}
	var got []string
	for _, s := range f.executing.added {
		got = append(got, fmt.Sprintf("%s %g %v", s.Spec.Name, s.Due.Sub(t0).Seconds(), s.Origin == asked.Origin))
	}
	if want := []string{"j 5 true", "b 10 false", "b 20 false", "b 30 false"}; !slices.Equal(got, want) {
		t.Errorf("got attempts %q, want %q: those of the other app, and the one asked for", got, want)
	}
	// At 6 s the planner saw the pause, and held the job of which something was planned. What was claimed ended then.
	const reason = " paused with app a by alice: migration"
	f.wantRuns("while it is paused", j.ID, "skipped 10..10×1"+reason)
	f.wantDues("while it is paused", j.ID)
	if row := f.row(j.ID); !row.Held || row.Paused || row.NextDue != 0 || row.Status(false, after(time.Minute)) != job.Paused {
		t.Errorf("got %+v, want it held", row.Job)
	}
	if row := f.row(far.ID); row.Held || row.Status(false, after(time.Minute)) != job.Paused || row.Version != 1 {
		t.Errorf("far away: got %+v, want it as it was, and yet paused", row.Job)
	}
	f.finish()
	f.look(after(60 * time.Second))
	f.wantDues("much later", j.ID)

	f.session.set(after(75 * time.Second))
	f.resumeApp("a")
	f.resumeApp("a")
	f.look(after(77 * time.Second))
	counted := "skipped 20..60×5 paused from " + after(6*time.Second).String() + " to " + after(75*time.Second).String() + " with app a by alice: migration"
	f.wantRuns("resumed", j.ID, "succeeded 5..5×1 ", "skipped 10..10×1"+reason, counted)
	f.wantDues("resumed", j.ID, 70, 80, 90, 100, 110)
	if row := f.row(j.ID); row.Held || row.Version != 1 || row.PausedAt != 0 {
		t.Errorf("got %+v, want it as it was", row.Job)
	}
	f.look(after(78 * time.Second))
	f.want("rows of pauses", 0, "SELECT COUNT(*) FROM pause")
	f.wantAudit("of it all", "anonymous create job b/b", "anonymous create job a/j", "anonymous create job a/far", "alice pause app a/ migration",
		"anonymous run job a/j", "anonymous resume app a/")
}

// TestAppPausePolicies: resuming an app treats what passed as resuming a job does.
func TestAppPausePolicies(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		misfire job.Misfire
		dues    []float64
		counted string // its due times
	}{
		"latest":          {job.Misfire{}, []float64{3300}, "300..2700×5"},
		"latest, too old": {job.Misfire{MaxAge: job.Duration(time.Minute)}, nil, "300..3300×6"},
		"skip":            {job.Misfire{Policy: job.MisfireSkip}, nil, "300..3300×6"},
		"all":             {job.Misfire{Policy: job.MisfireAll, MaxCount: 2}, []float64{2700, 3300}, "300..2100×4"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			spec := in("a", every("j", 10*time.Minute, 5*time.Minute))
			spec.Misfire = c.misfire
			j := f.create(spec)
			f.pauseApp("", "", 0)
			f.look(after(290 * time.Second)) // its cursor is near
			f.session.set(after(time.Hour))
			f.resumeApp("")
			f.look(after(time.Hour + time.Second))
			f.wantDues("resumed", j.ID, c.dues...)
			f.wantRuns("resumed", j.ID, "skipped "+c.counted+" paused from "+after(290*time.Second).String()+" to "+after(time.Hour).String()+" with the cluster by alice")
		})
	}
}

// TestAppPauseUntil: it ends by itself, and what is due after its end is planned in time.
func TestAppPauseUntil(t *testing.T) {
	f := setUp(t)
	often := f.create(in("a", every("often", 10*time.Second, 10*time.Second)))
	at := f.create(in("a", at("at the end", after(2*time.Minute))))
	f.pauseApp("a", "", after(2*time.Minute))
	f.look(after(35 * time.Second))
	f.look(after(105 * time.Second))
	f.wantDues("before the end", often.ID)
	f.wantDues("what is due at the end", at.ID, 120)
	f.reach(after(119900 * time.Millisecond))
	f.reach(after(120 * time.Second))
	if len(f.executing.added) != 2 || f.executing.added[0].JobID != at.ID || f.executing.added[0].At != after(2*time.Minute) || f.executing.added[1].JobID != often.ID {
		t.Fatalf("got attempts %+v, want those of both jobs, which are due now", f.executing.added)
	}
	other := node(t, f.dsn, 2)
	other.look(after(121 * time.Second))
	f.look(after(121 * time.Second))
	f.look(after(122 * time.Second))
	if got := f.dues(often.ID); len(got) != 5 || got[0] != 120 {
		t.Errorf("got due times %v, want from 120 to 160", got)
	}
	f.want("rows of pauses", 0, "SELECT COUNT(*) FROM pause")
	f.wantAudit("of both planners", "anonymous create job a/often", "anonymous create job a/at the end", "alice pause app a/",
		"go-crontab resume app a/ it was paused until "+after(2*time.Minute).String())
}

// TestChangesInAPausedApp: nothing is planned in it, whatever is done to its jobs.
func TestChangesInAPausedApp(t *testing.T) {
	f := setUp(t)
	f.pauseApp("a", "", 0)
	created := f.create(in("a", every("created", 10*time.Second, 10*time.Second)))
	if created.Status(false, t0) != job.Paused || created.PauseAt(t0).Scope != job.ScopeApp {
		t.Errorf("created: got %+v", created)
	}
	ended := f.create(in("a", at("ended", after(time.Second))))
	f.exec("UPDATE job SET held = 0, next_due = NULL, last_due = ? WHERE id = ?", int64(after(time.Second)), ended.ID)
	edited := f.update(created, func(s *job.Spec) { s.Every = job.Duration(5 * time.Second) })
	f.wantDues("edited", edited.ID)
	moved := f.create(in("b", every("moved", 10*time.Second, 10*time.Second)))
	moved = f.update(moved, func(s *job.Spec) { s.App = "a" })
	f.wantDues("moved into it", moved.ID)
	out := f.create(in("a", every("out", 10*time.Second, 10*time.Second)))
	out = f.update(out, func(s *job.Spec) { s.App = "b" })
	f.wantDues("moved out of it", out.ID, 10, 20, 30, 40)
	if f.soon != 2 {
		t.Errorf("told %d times of tasks, want twice, of those in b", f.soon)
	}
	f.want("what is planned", 4, "SELECT COUNT(*) FROM task")
	f.session.set(after(time.Minute))
	f.resumeApp("a")
	f.look(after(61 * time.Second))
	f.wantDues("edited, resumed", edited.ID, 60, 65, 70, 75, 80, 85, 90, 95, 100)
	f.wantRuns("edited, resumed", edited.ID, "skipped 10..55×10 paused from "+t0.String()+" to "+after(time.Minute).String()+" with app a by alice")
	f.wantDues("moved, resumed", moved.ID, 60, 70, 80, 90, 100)
	f.wantRuns("ended", ended.ID)
}

// TestPausesOverEachOther: a job has its due times back when the last of them ends, and one run counts it all.
func TestPausesOverEachOther(t *testing.T) {
	f := setUp(t)
	minute := func(n int) job.Micros { return after(time.Duration(n) * time.Minute) }
	steps := map[string]func(f *fixture, j job.Job){
		"pause job":       func(f *fixture, j job.Job) { f.pauseJob(j, 0) },
		"pause job until": func(f *fixture, j job.Job) { f.pauseJob(j, minute(3)) },
		"resume job": func(f *fixture, j job.Job) {
			if _, err := f.editor.Resume(f.Context(), j.ID); err != nil {
				f.Fatal(err)
			}
		},
		"pause app":         func(f *fixture, j job.Job) { f.pauseApp("a", "", 0) },
		"pause app until":   func(f *fixture, j job.Job) { f.pauseApp("a", "", minute(3)) },
		"resume app":        func(f *fixture, j job.Job) { f.resumeApp("a") },
		"pause cluster":     func(f *fixture, j job.Job) { f.pauseApp("", "", 0) },
		"resume cluster":    func(f *fixture, j job.Job) { f.resumeApp("") },
		"resume app unseen": func(f *fixture, j job.Job) { f.exec("DELETE FROM pause WHERE app = 'a'") }, // as by a hand
		"nothing":           func(f *fixture, j job.Job) {},
	}
	for _, names := range [][]string{ // one each minute; after the last one the job is not paused any more
		{"pause job", "pause app", "resume job", "resume app"},
		{"pause job", "pause app", "resume app", "resume job"},
		{"pause app", "pause job", "resume app", "resume job"},
		{"pause app", "pause job", "resume job", "resume app"},
		{"pause app", "pause cluster", "resume app", "resume cluster"},
		{"pause app", "pause cluster", "resume cluster", "resume app"},
		{"pause job until", "pause app", "nothing", "resume app"},
		{"pause app until", "pause job", "nothing", "resume job"},
		{"pause app until", "pause cluster", "nothing", "resume cluster"},
		{"pause app", "nothing", "nothing", "resume app unseen"},
	} {
		t.Run(strings.Join(names, ", "), func(t *testing.T) {
			f := f.anew(t)
			j := f.create(in("a", every("j", 30*time.Second, 45*time.Second)))
			f.exec("DELETE FROM task") // they have ended
			var now job.Micros
			for i, name := range names {
				now = minute(i)
				f.session.set(now)
				steps[name](f, j)
				if i == len(names)-1 {
					break
				}
				f.look(now.Add(30 * time.Second))
				if row := f.row(j.ID); row.Status(false, now) != job.Paused || row.Paused && row.Held {
					t.Fatalf("after %q: got %+v, want it paused", name, row.Job)
				}
				f.wantDues("after "+name, j.ID)
			}
			f.look(now.Add(time.Second))
			if row := f.row(j.ID); row.Paused || row.Held || row.Status(true, now) != job.Active {
				t.Fatalf("at last: got %+v", row.Job)
			}
			if got := f.dues(j.ID); len(got) < 2 || got[0] != 165 || got[1] != 195 {
				t.Errorf("at last: got due times %v, want the latest that passed, 165, and then 195", got)
			}
			runs := f.runs(j.ID)
			if len(runs) != 1 || runs[0].Until != after(135*time.Second) || runs[0].Outcome != job.Skipped || !strings.HasPrefix(runs[0].Reason, "paused from ") {
				t.Errorf("got %+v, want one run that counts up to 135", runs)
			}
		})
	}
}

// TestHeldWithoutAPause: whoever died, and whatever a hand did, no job stays held.
func TestHeldWithoutAPause(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 10*time.Second))
	broken := f.create(every("broken", 10*time.Second, 10*time.Second))
	f.exec("DELETE FROM task")
	f.exec("UPDATE job SET held = 1, paused_at = ?, next_due = NULL", int64(t0))
	f.exec("UPDATE job SET spec = '{' WHERE id = ?", broken.ID)
	f.look(after(15 * time.Second))
	f.wantDues("released", j.ID, 10, 20, 30, 40, 50)
	if row := f.row(broken.ID); row.Error == "" || row.Held {
		t.Errorf("got %+v, want it marked as broken, and looked at no more", row.Job)
	}
	f.want("lines of that", 1, "SELECT COUNT(*) FROM audit WHERE action = 'break' AND ref = ?", broken.ID)
}

// TestHeldByAHand: a mark of any value counts as held, and no look is stuck at it.
func TestHeldByAHand(t *testing.T) {
	f := setUp(t)
	f.create(every("odd", 10*time.Second, 10*time.Second))
	f.exec("DELETE FROM task")
	f.exec("UPDATE job SET held = -1, paused_at = ?, next_due = 2", int64(t0))
	f.look(after(15 * time.Second))
	f.want("held", 0, "SELECT COUNT(*) FROM job WHERE held <> 0")
}

// TestHoldLeavesSomeForTheNextLook when there is too much to withdraw at once.
func TestHoldLeavesSomeForTheNextLook(t *testing.T) {
	f := setUp(t)
	var jobs []job.Job
	for i := range 4 {
		jobs = append(jobs, f.create(in("a", every(fmt.Sprint(i), 10*time.Millisecond, time.Second)))) // 1000 due times each
	}
	f.pauseApp("a", "", 0)
	f.planner.paused = true
	if _, _, err := f.planner.planJobs(t.Context(), []int64{1, 2, 3, 4}, false, t0); err != nil {
		t.Fatal(err)
	}
	f.want("held at once", 2, "SELECT COUNT(*) FROM job WHERE held = 1")
	if !f.planner.more {
		t.Error("it does not say that there is more")
	}
	f.look(t0)
	f.want("held", int64(len(jobs)), "SELECT COUNT(*) FROM job WHERE held = 1")
	f.want("tasks", 0, "SELECT COUNT(*) FROM task")
	f.want("runs", 0, "SELECT COUNT(*) FROM history")
}

// heldCrowd is a crowd whose jobs are held: the first so many of them are of app a, the others of app b.
func (f *fixture) heldCrowd(first int) {
	f.Helper()
	f.crowd()
	f.exec("UPDATE job SET spec = REPLACE(spec, 'default', IF(id <= ?, 'a', 'b')), app = IF(id <= ?, 'a', 'b'), held = 1, paused_at = ?, next_due = NULL", first, first, int64(t0))
}

// wantReleased: all nine have the due times that they are to have, each once.
func (f *fixture) wantReleased() {
	f.Helper()
	f.want("held", 0, "SELECT COUNT(*) FROM job WHERE held <> 0")
	f.want("jobs that are planned as far as they are to be", 9, "SELECT COUNT(*) FROM job WHERE next_due > ?", int64(after(planWindow)))
	f.want("jobs whose due times begin when they were released, without a gap", 9, "SELECT COUNT(*) FROM (SELECT job_id, COUNT(*) n, MIN(due) first, MAX(due) last FROM task GROUP BY job_id) x"+
		" WHERE first = ? AND last - first = (n - 1) * 50000", int64(after(50*time.Millisecond)))
}

// TestReleaseOfMany: of held jobs that are more than one transaction takes none is passed over, and no look says that there
// is nothing to do while some are left.
func TestReleaseOfMany(t *testing.T) {
	f := setUp(t)
	f.heldCrowd(9)
	for range 2 { // three fit the first time; then it is known
		if _, err := f.planner.plan(t.Context(), t0); err != nil {
			t.Fatal(err)
		}
	}
	f.want("held behind two looks", 0, "SELECT COUNT(*) FROM job WHERE held <> 0")
	f.look(t0)
	f.wantReleased()
}

// TestReleaseWhileOthersWait: of held jobs that are more than one transaction takes, or that are of several apps, each gets
// its next due times before any gets those of half a minute.
func TestReleaseWhileOthersWait(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct{ fit, ofA int }{"of one app": {3, 9}, "of two apps": {0, 5}} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.heldCrowd(c.ofA)
			f.planner.fit = c.fit
			if _, err := f.planner.plan(t.Context(), t0); err != nil {
				t.Fatal(err)
			}
			f.want("held behind the first look", 0, "SELECT COUNT(*) FROM job WHERE held <> 0")
			f.want("the furthest due time by when each job has some", 1, "SELECT MAX(due) <= ? FROM task", int64(after(shortest)))
			f.look(t0)
			f.wantReleased()
		})
	}
}

// TestReleaseComesBack to jobs that could not be released at once, without a wait when it has released others since.
func TestReleaseComesBack(t *testing.T) {
	f := setUp(t)
	f.heldCrowd(9)
	f.planner.fit = 3
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.SQL("SET j.held = 0"), Times: 1, Action: faultproxy.Error(1114, "HY000", "The table 'job' is full")})
	if _, err := f.planner.plan(t.Context(), t0); err == nil {
		t.Error("got no error")
	}
	for more, err := true, error(nil); more; {
		if more, err = f.planner.releaseHeld(t.Context(), nil, t0); err != nil {
			t.Fatal(err)
		}
	}
	f.want("held when it says that there is no more", 0, "SELECT COUNT(*) FROM job WHERE held <> 0")
	f.look(t0)
	f.wantReleased()
}

// TestPauseUntilOfMany: so it is with jobs whose own pauses end together.
func TestPauseUntilOfMany(t *testing.T) {
	f := setUp(t)
	f.crowd()
	f.exec("UPDATE job SET paused = 1, pause_until = ?, paused_at = ?, next_due = ?", int64(t0), int64(after(-time.Hour)), int64(after(planWindow)))
	f.planner.fit = 3
	f.session.set(after(time.Second))
	if _, err := f.planner.plan(t.Context(), after(time.Second)); err != nil {
		t.Fatal(err)
	}
	f.want("paused behind the first look", 0, "SELECT COUNT(*) FROM job WHERE paused <> 0")
	f.want("the furthest due time by when each job has some", 1, "SELECT MAX(due) <= ? FROM task", int64(after(time.Second+shortest)))
	f.look(after(time.Second))
	f.want("jobs that are planned as far as they are to be", 9, "SELECT COUNT(*) FROM job WHERE next_due > ?", int64(after(time.Second+planWindow)))
}

// TestStopAhead holds, once, the jobs of which something is planned, in steps, and leaves what is due when the pause is
// over.
func TestStopAhead(t *testing.T) {
	f := setUp(t)
	f.create(in("other", every("other", 10*time.Second, 10*time.Second)))
	for i := range 30 {
		f.create(in("a", every(fmt.Sprint(i), 5*time.Second, 10*time.Second)))
	}
	late := f.create(in("a", at("late", after(30*time.Second))))
	f.exec("UPDATE task SET state = 3 WHERE job_id = 3 AND due = ?", int64(after(10*time.Second))) // it waits
	f.exec("UPDATE job SET next_due = ? WHERE next_due IS NOT NULL", int64(after(time.Hour)))      // out of the way
	f.exec("INSERT INTO task (job_id, due, due_now, origin, hash) VALUES (4, 1, 1, 7, 0)")         // somebody wants it
	f.pauseApp("a", "", after(30*time.Second))
	f.look(after(time.Second))
	f.want("held", 30, "SELECT COUNT(*) FROM job WHERE held = 1")
	f.want("tasks of the app, scheduled", 1, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE j.app = 'a' AND origin = 0")
	f.wantDues("of another app", 1, 10, 20, 30, 40)
	f.wantDues("when the pause is over", late.ID, 30)
	f.want("what was asked for", 1, "SELECT COUNT(*) FROM task WHERE origin <> 0")
	f.wantRuns("what waited", 3, "skipped 10..10×1 paused with app a by alice")
	f.want("other runs", 1, "SELECT COUNT(*) FROM history")
	f.exec("UPDATE job SET held = 0 WHERE id = 2")
	f.exec("INSERT INTO task (job_id, due, due_now, hash) VALUES (2, 5, 5, 0)")
	f.look(after(2 * time.Second))
	f.want("not looked at twice", 29, "SELECT COUNT(*) FROM job WHERE held = 1")
	f.pauseApp("a", "longer", 0)
	f.look(after(3 * time.Second))
	f.want("once for each pause", 31, "SELECT COUNT(*) FROM job WHERE held = 1")
}

// TestAppPauseWaits for starts that may not have seen it, and only then: until they are known to have been refused, or
// until their windows have passed, or, where neither happens, for the longest window.
func TestAppPauseWaits(t *testing.T) {
	f := setUp(t)
	f.claimed(in("a", every("refused", time.Hour, 200*time.Millisecond)), in("d", every("begun", time.Hour, 200*time.Millisecond)),
		in("h", every("its node hangs", time.Hour, 200*time.Millisecond)), in("b", every("later", time.Hour, 5*time.Second)))
	end := func(job int) func() { return func() { f.exec("DELETE FROM task WHERE job_id = ?", job) } }
	for app, c := range map[string]struct {
		meanwhile   func() // 400 ms after it was asked for
		least, most time.Duration
	}{
		"b": {nil, 0, longestWindow / 2},
		"c": {nil, 0, longestWindow / 2},
		"h": {nil, longestWindow, time.Hour},
		"a": {end(1), 400 * time.Millisecond, longestWindow / 2},
		"d": {func() { f.exec("UPDATE task SET state = 2, spawn_by = ? WHERE job_id = 2", int64(after(time.Second))) }, time.Second, longestWindow - time.Second},
	} {
		t.Run(app, func(t *testing.T) {
			t.Parallel()
			begin, paused := time.Now(), make(chan error, 1)
			go func() {
				_, err := f.editor.PauseApp(f.Context(), app, job.PauseRequest{})
				paused <- err
			}()
			if c.meanwhile != nil {
				time.Sleep(400 * time.Millisecond)
				c.meanwhile()
			}
			if err := <-paused; err != nil {
				t.Error(err)
			}
			if waited := time.Since(begin); waited < c.least || waited > c.most {
				t.Errorf("waited %s, want between %s and %s", waited, c.least, c.most)
			}
		})
	}
}

// TestPauseFates loses COMMITs of pauses, of what planners do for them, and of resumes: each stands once, and so does its
// line of the audit.
func TestPauseFates(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			lose := func(statement string) *faultproxy.Injected {
				return f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: fate})
			}
			j := f.create(in("a", every("j", 10*time.Second, 10*time.Second)))
			rules := []*faultproxy.Injected{lose("INSERT INTO pause"), lose("SET j.held = 1"), lose("SET until ="), lose("SET j.held = 0"), lose("DELETE FROM pause")}
			f.pauseApp("a", "x", 0)
			for second := range 4 {
				now := after(time.Duration(31+second) * time.Second)
				f.session.set(now)
				f.planner.plan(t.Context(), now) // unknown: the next look sees what stands
			}
			f.wantDues("paused", j.ID)
			f.want("held", 1, "SELECT held FROM job")
			f.session.set(after(65 * time.Second))
			f.resumeApp("a")
			for second := range 6 {
				now := after(time.Duration(66+second) * time.Second)
				f.session.set(now)
				f.planner.plan(t.Context(), now)
			}
			if got := f.dues(j.ID); len(got) < 4 || got[0] != 60 || got[1] != 70 {
				t.Errorf("resumed: got due times %v", got)
			}
			f.want("counted runs", 1, "SELECT COUNT(*) FROM history WHERE due_count > 1")
			f.want("rows of pauses", 0, "SELECT COUNT(*) FROM pause")
			f.wantAudit("of it all", slices.DeleteFunc([]string{
				"anonymous create job a/j",
				lost("alice void app a/", "pause", name),
				"alice pause app a/ x",
				lost("anonymous void app a/", "resume", name),
				"anonymous resume app a/",
			}, func(line string) bool { return line == "" })...)
			for i, r := range rules {
				if r.Fired() != 1 {
					t.Errorf("rule %d: injected %d times", i, r.Fired())
				}
			}
			j = f.pauseJob(j, after(2*time.Minute))
			rule := lose("INSERT INTO audit")
			for second := range 4 {
				now := after(time.Duration(121+second) * time.Second)
				f.session.set(now)
				f.planner.plan(t.Context(), now)
			}
			f.want("resumed by itself", 1, "SELECT COUNT(*) FROM audit WHERE kind = 'job' AND action = 'resume'")
			if row := f.row(j.ID); row.Paused || row.Version != 3 || rule.Fired() != 1 {
				t.Errorf("got %+v, injected %d times", row.Job, rule.Fired())
			}
		})
	}
}

// lost is the line of the audit that takes the place of a change whose commit never arrived.
func lost(who, action, fate string) string {
	if fate != "never arrives" {
		return ""
	}
	return who + " MySQL did not confirm this change (" + action + "), and it was not made"
}

// TestLostEditIsNotAnothers: an edit whose commit was lost is not taken for applied because others changed the job since.
func TestLostEditIsNotAnothers(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	other := node(t, f.dsn, 2)
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE job SET app"), Action: faultproxy.CutBefore()})
	settles := 0
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if !strings.Contains(c.SQL, "INSERT INTO audit (id,") {
			return
		}
		if settles++; settles == 1 {
			other.pauseJob(j, 0)
			if _, err := other.editor.Resume(t.Context(), j.ID); err != nil {
				t.Error(err)
			}
		}
	})
	spec := j.Spec
	spec.Command = "mine"
	if _, err := f.editor.Update(t.Context(), j.ID, 1, spec); err != job.ErrChanged || settles != 1 {
		t.Errorf("got %v after %d settling reads, want %v after one", err, settles, job.ErrChanged)
	}
	f.want("edits in the audit", 0, "SELECT COUNT(*) FROM audit WHERE action = 'update'")
}

// TestAuditOfChanges holds what the audit says of each change of a job.
func TestAuditOfChanges(t *testing.T) {
	f := setUp(t)
	ctx := job.WithActor(t.Context(), job.Actor{Who: "bob", Origin: "192.0.2.1"})
	spec := every("j", time.Second, time.Second)
	spec.Command = "true"
	j, err := f.editor.Create(ctx, spec, true)
	if err != nil {
		t.Fatal(err)
	}
	spec = j.Spec
	spec.Command = "false"
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = f.editor.Update(ctx, j.ID, 1, spec)
	do(err)
	_, err = f.editor.Pause(ctx, j.ID, job.PauseRequest{}) // changes nothing
	do(err)
	_, err = f.editor.Resume(ctx, j.ID)
	do(err)
	f.reach(after(time.Second))
	do(f.editor.Kill(ctx, f.executing.added[0].Launch))
	_, err = f.editor.RunNow(ctx, j.ID, "key")
	do(err)
	_, err = f.editor.RunNow(ctx, j.ID, "key") // is there
	do(err)
	do(f.editor.Delete(ctx, j.ID))
	f.wantAudit("of it all", "bob create job default/j", "bob pause job default/j", "bob update job default/j", "bob resume job default/j",
		"bob kill job default/j run "+f.executing.added[0].Launch.String(), "bob run job default/j", "bob delete job default/j")
	page, err := f.beside.Audit(t.Context(), sql.AuditFilter{JobID: j.ID, Limit: 10})
	do(err)
	lines := page.Lines
	old, _ := j.Spec.Encode()
	made, _ := spec.Encode()
	for i, want := range [][2]string{{made, ""}, {}, {}, {}, {old, made}, {}, {"", old}} {
		if got := [2]string{lines[i].Was, lines[i].Became}; got != want {
			t.Errorf("%s: got %q, want %q", lines[i].Action, got, want)
		}
		if lines[i].Origin != "192.0.2.1" || lines[i].At < t0 {
			t.Errorf("got %+v", lines[i])
		}
	}
}

// TestHoldBesideAKeptRow: a covered job whose row somebody keeps locked keeps no other from being held.
func TestHoldBesideAKeptRow(t *testing.T) {
	f := setUp(t)
	var ids []int64
	for i := range 5 {
		ids = append(ids, f.create(in("a", every(fmt.Sprint(i), time.Hour, time.Second))).ID)
	}
	f.pauseApp("a", "", 0)
	release := f.keep("SELECT id FROM job WHERE id = ? FOR UPDATE", ids[2])
	if err := f.planner.stopJobs(t.Context(), ids, t0); !errors.Is(err, errKept) {
		t.Errorf("got %v, want it to say that a row is kept", err)
	}
	f.want("held beside it", 4, "SELECT COUNT(*) FROM job WHERE held = 1")
	release()
	if err := f.planner.stopJobs(t.Context(), ids, t0); err != nil {
		t.Error(err)
	}
	f.want("held once it is free", 5, "SELECT COUNT(*) FROM job WHERE held = 1")
}
