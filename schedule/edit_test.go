package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

func TestCreatedPausedWritesNoRows(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, 0)
	spec.Command = "true"
	j, err := f.editor.Create(t.Context(), spec, true)
	if err != nil || !j.Paused || j.PausedAt != t0 || j.NextDue != 0 {
		t.Fatalf("got %+v, %v; want it paused since %s, without a cursor", j, err, t0)
	}
	f.reach(after(5 * time.Second))
	f.wantDues("while it is paused", j.ID)
	f.wantRuns("while it is paused", j.ID)
	if f.soon != 0 {
		t.Error("somebody was told of tasks")
	}
	if j, err = f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	f.wantRuns("resumed", j.ID, "skipped 1..4×4 paused from "+t0.String()+" to "+after(5*time.Second).String()+" by anonymous")
	if got := f.dues(j.ID); len(got) != 41 || got[0] != 5 || got[40] != 45 {
		t.Errorf("resumed: got due times %v, want 5 to 45", got)
	}
}

func TestCreate(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 300*time.Millisecond))
	f.wantDues("up to the horizon", j.ID, 0.3, 10.3, 20.3, 30.3)
	if j.NextDue != after(40300*time.Millisecond) || f.soon != 1 {
		t.Errorf("got cursor %s, told %d times; want 40.3 s, and once", j.NextDue, f.soon)
	}
	far := f.create(every("far", time.Hour, time.Hour))
	f.wantDues("far away", far.ID)
	if f.soon != 1 {
		t.Error("somebody was told of a task that is far away")
	}
	f.want("its cursor", int64(after(time.Hour)), "SELECT next_due FROM job WHERE id = ?", far.ID)
	if _, err := f.editor.Create(t.Context(), every("j", time.Hour, 0), false); err == nil {
		t.Error("a definition without a command was taken")
	}
	again := j.Spec
	if _, err := f.editor.Create(t.Context(), again, false); !errors.Is(err, sql.ErrExists) {
		t.Errorf("the name again: got %v, want %v", err, sql.ErrExists)
	}
	f.want("jobs", 2, "SELECT COUNT(*) FROM job")
}

// TestResumeAppliesThePolicyOnce pauses a job of every ten minutes for an hour.
func TestResumeAppliesThePolicyOnce(t *testing.T) {
	f := setUp(t)
	paused := "paused from " + after(time.Second).String() + " to " + after(time.Hour).String() + " by anonymous"
	for name, c := range map[string]struct {
		misfire job.Misfire
		dues    []float64
		runs    []string
	}{
		"latest":          {job.Misfire{}, []float64{3300}, []string{"skipped 300..2700×5 " + paused}},
		"latest, too old": {job.Misfire{MaxAge: job.Duration(time.Minute)}, nil, []string{"skipped 300..3300×6 " + paused}},
		"skip":            {job.Misfire{Policy: job.MisfireSkip}, nil, []string{"skipped 300..3300×6 " + paused}},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			spec := every("j", 10*time.Minute, 5*time.Minute)
			spec.Misfire = c.misfire
			j := f.create(spec)
			f.session.set(after(time.Second))
			if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
				t.Fatal(err)
			}
			f.session.set(after(time.Hour))
			j, err := f.editor.Resume(t.Context(), j.ID)
			if err != nil || j.Paused || j.Version != 3 || j.NextDue != after(65*time.Minute) {
				t.Fatalf("got %+v, %v; want version 3 and cursor 3900 s", j, err)
			}
			f.wantDues("resumed", j.ID, c.dues...)
			f.wantRuns("resumed", j.ID, c.runs...)
			if j, err = f.editor.Resume(t.Context(), j.ID); err != nil || j.Version != 3 {
				t.Errorf("resumed again: got version %d, %v; want no change", j.Version, err)
			}
			f.wantDues("resumed again", j.ID, c.dues...)
			f.wantRuns("resumed again", j.ID, c.runs...)
			f.session.set(after(time.Hour + time.Second))
			if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
				t.Fatal(err)
			}
			f.want("runs after a second pause", int64(len(c.runs)+len(c.dues)), "SELECT COUNT(*) FROM history") // what was planned ended skipped
		})
	}
}

// TestPauseAndResumeAtOnce: what lies ahead of both is as it was.
func TestPauseAndResumeAtOnce(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 5*time.Second))
	f.session.set(after(time.Second))
	j, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{})
	if err != nil || j.NextDue != 0 {
		t.Fatalf("got %+v, %v", j, err)
	}
	f.wantDues("paused", j.ID)
	f.want("its cursor", 0, "SELECT COUNT(*) FROM job WHERE next_due IS NOT NULL")
	if j, err = f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil || j.Version != 2 || j.PausedAt != after(time.Second) {
		t.Errorf("paused again: got %+v, %v; want no change", j, err)
	}
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	f.wantDues("resumed", j.ID, 5, 15, 25, 35)
	f.wantRuns("resumed", j.ID)
}

// TestPauseOfBegunTasks: what was claimed or had passed ends skipped, what lies ahead is no due time any more, and what
// executes goes on.
func TestPauseOfBegunTasks(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 4*time.Second, 2*time.Second)) // 2, 6, 10, … 38
	f.reach(after(2 * time.Second))                         // 2 executes, 6 and 10 are claimed
	f.exec("UPDATE task SET spawn_by = 1 WHERE state = 2")
	f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL WHERE due = ?", int64(after(6*time.Second)))
	f.session.set(after(7 * time.Second)) // 6 is overdue and idle, 10 claimed, the rest ahead
	if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	f.wantDues("paused", j.ID, 2)
	f.wantRuns("paused", j.ID, "skipped 6..6×1 paused by anonymous", "skipped 10..10×1 paused by anonymous")
	f.want("last due time", int64(after(10*time.Second)), "SELECT last_due FROM job WHERE id = ?", j.ID)
	f.session.set(after(8 * time.Second))
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if got := f.dues(j.ID); len(got) < 2 || got[0] != 2 || got[1] != 14 {
		t.Errorf("resumed: got due times %v, want 2, then 14: 10 has ended", got)
	}
	f.wantRuns("resumed", j.ID, "skipped 6..6×1 paused by anonymous", "skipped 10..10×1 paused by anonymous")
	f.starter.start(t.Context(), after(10*time.Second)) // the claims that the pause ended
	if len(f.executing.added) != 1 {
		t.Errorf("got %d attempts, want the one that was there", len(f.executing.added))
	}
}

// TestEditKeepsThePhase: another command, the same beat.
func TestEditKeepsThePhase(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 3*time.Second))
	f.session.set(after(7 * time.Second))
	f.exec("DELETE FROM task WHERE due < ?", int64(after(7*time.Second))) // as if it had ended
	j = f.update(j, func(s *job.Spec) { s.Command = "other" })
	f.wantDues("another command", j.ID, 13, 23, 33, 43)
	j = f.update(j, func(s *job.Spec) { s.Every = job.Duration(20 * time.Second) })
	f.wantDues("half as often, from the same start", j.ID, 23, 43)
	if j.Version != 3 || j.NextDue != after(63*time.Second) {
		t.Errorf("got version %d, cursor %s; want 3, 63 s", j.Version, j.NextDue)
	}
}

// TestEditRightAfterAStart: starts are committed before they are due. An edit that comes between must not plan that due
// time once more, nor one after MySQL's clock was put back.
func TestEditRightAfterAStart(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Second, time.Second))
	f.claimer.claim(t.Context(), t0, 0)
	f.starter.lead.measure(100 * time.Millisecond)
	f.session.set(after(900 * time.Millisecond))
	f.starter.start(t.Context(), after(900*time.Millisecond))
	if len(f.executing.added) != 1 || f.executing.added[0].Due != after(time.Second) {
		t.Fatalf("got attempts %+v, want the one due in 100 ms", f.executing.added)
	}
	f.session.set(after(950 * time.Millisecond))
	begin := time.Now()
	j = f.update(j, func(s *job.Spec) { s.Command = "other" })
	// 50 ms to the due instant, and the window: until then the attempt may still begin as it was.
	if waited := time.Since(begin); waited < 1050*time.Millisecond {
		t.Errorf("the edit was answered after %s, while an attempt could still begin", waited)
	}
	f.executing.added[0].Spec = nil
	f.finish()
	f.want("live tasks of that due time", 0, "SELECT COUNT(*) FROM task WHERE due = ?", int64(after(time.Second)))
	if got := f.dues(j.ID); len(got) == 0 || got[0] != 2 {
		t.Errorf("got due times %v, want them from 2", got)
	}
	f.session.set(after(-time.Hour))
	j = f.update(j, func(s *job.Spec) { s.Command = "third" })
	if got := f.dues(j.ID); len(got) > 0 && got[0] <= 1 {
		t.Errorf("after MySQL's clock was put back: got due times %v, want none up to 1", got)
	}
	if j.NextDue != 0 && j.NextDue <= after(time.Second) {
		t.Errorf("after MySQL's clock was put back: got cursor %s", j.NextDue)
	}
}

// TestEditMovesDueTimes: those that vanish are withdrawn, claimed or not; those that appear are planned at once; those
// that have passed stay, with the new definition.
func TestEditMovesDueTimes(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 5*time.Second, 5*time.Second)) // 5, 10, … 40
	f.claimer.claim(t.Context(), after(time.Second), 0)     // 5 and 10
	f.session.set(after(6 * time.Second))                   // 5 is overdue
	f.soon = 0
	j = f.update(j, func(s *job.Spec) { s.Every, s.Command = job.Duration(7*time.Second), "other" }) // 5, 12, 19, …
	f.wantDues("every seven seconds", j.ID, 5, 12, 19, 26, 33, 40)
	f.wantRuns("every seven seconds", j.ID)
	f.want("claimed", 1, "SELECT COUNT(*) FROM task WHERE state = 1")
	if f.soon != 1 {
		t.Error("nobody was told of a task that is due soon")
	}
	// The node that claimed 10 finds its row gone, the one that claimed 5 runs the new definition.
	f.reach(after(10 * time.Second))
	if len(f.executing.added) != 1 || f.executing.added[0].Due != after(5*time.Second) || f.executing.added[0].Spec.Command != "other" {
		t.Fatalf("got attempts %+v, want the overdue one, with the new command", f.executing.added)
	}
	f.finish()
	f.reach(after(12 * time.Second))
	if len(f.executing.added) != 1 || f.executing.added[0].Due != after(12*time.Second) {
		t.Errorf("got attempts %+v, want the one due at 12", f.executing.added)
	}
	f.finish()
	f.wantRuns("in the end", j.ID, "succeeded 5..5×1 ", "succeeded 12..12×1 ")
}

// TestEditOfASingleInstant edits jobs with one due time before and after it, there and back.
func TestEditOfASingleInstant(t *testing.T) {
	f := setUp(t)
	to := func(d time.Duration) func(*job.Spec) {
		return func(s *job.Spec) { due := after(d).Time(); s.At = &due }
	}
	other := func(s *job.Spec) { s.Command = "other" }
	for name, c := range map[string]struct {
		first   time.Duration
		misfire job.MisfirePolicy
		reach   time.Duration // 0: it is not started
		edit    func(*job.Spec)
		dues    []float64
		ended   int64 // runs
	}{
		"ahead, another command":                    {10 * time.Second, "", 0, other, []float64{10}, 0},
		"ahead, sooner":                             {10 * time.Second, "", 0, to(5 * time.Second), []float64{5}, 0},
		"ahead, later":                              {10 * time.Second, "", 0, to(15 * time.Second), []float64{15}, 0},
		"ahead, beyond the horizon":                 {10 * time.Second, "", 0, to(time.Hour), nil, 0},
		"ahead, into the past: due at once":         {10 * time.Second, "", 0, to(-time.Hour), []float64{-3600}, 0},
		"beyond the horizon, and now soon":          {time.Hour, "", 0, to(5 * time.Second), []float64{5}, 0},
		"overdue, another command":                  {-time.Minute, "", 0, other, []float64{-60}, 0},
		"overdue, and now ahead: both":              {-time.Minute, "", 0, to(10 * time.Second), []float64{-60, 10}, 0},
		"over, another command: not again":          {time.Second, "", 2 * time.Second, other, nil, 1},
		"over, the same instant: not again":         {time.Second, "", 2 * time.Second, to(time.Second), nil, 1},
		"over, and now ahead":                       {time.Second, "", 2 * time.Second, to(10 * time.Second), []float64{10}, 1},
		"over, and now before that: nothing is due": {time.Second, "", 2 * time.Second, to(-time.Minute), nil, 1},
		"missed, another command":                   {time.Second, job.MisfireSkip, 2 * time.Minute, other, nil, 1},
		"missed, and now ahead":                     {time.Second, job.MisfireSkip, 2 * time.Minute, to(130 * time.Second), []float64{130}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			spec := at("j", after(c.first))
			spec.Misfire.Policy = c.misfire
			j := f.create(spec)
			if c.reach != 0 {
				f.reach(after(c.reach))
				f.exec("UPDATE task SET spawn_by = 1 WHERE state = 2")
				f.finish()
			}
			j = f.update(j, c.edit)
			f.wantDues("edited", j.ID, c.dues...)
			f.want("runs", c.ended, "SELECT COUNT(*) FROM history")
			if c.dues == nil {
				f.want("jobs with a cursor that is due", 0, "SELECT COUNT(*) FROM job WHERE next_due < ?", int64(after(time.Minute)))
			}
			f.update(j, func(s *job.Spec) { s.Owner = "me" })
			f.wantDues("edited again", j.ID, c.dues...)
			f.want("runs after a second edit", c.ended, "SELECT COUNT(*) FROM history")
		})
	}
}

// TestAnInstantLongPastIsRefused: a job is neither made nor changed for a single due time that is too late to be started. One
// that has it already stays editable.
func TestAnInstantLongPastIsRefused(t *testing.T) {
	f := setUp(t)
	past := at("j", after(-2*time.Hour))
	past.Command = "true"
	refused := func(what string, err error) {
		t.Helper()
		var p job.Problems
		if !errors.As(err, &p) || len(p) != 1 || p[0].Field != "at" || !strings.Contains(p[0].Message, "was 2h ago") {
			t.Errorf("%s: got %v, want a refusal of the field at", what, err)
		}
	}
	for _, paused := range []bool{false, true} {
		_, err := f.editor.Create(t.Context(), past, paused)
		refused("a new job", err)
	}
	f.want("jobs", 0, "SELECT COUNT(*) FROM job")

	j := f.create(every("j", time.Minute, time.Second))
	_, err := f.editor.Update(t.Context(), j.ID, j.Version, past)
	refused("an update", err)
	_, err = f.editor.Rollback(t.Context(), j.ID, j.Version, past, 1)
	refused("a rollback", err)
	f.want("versions", 1, "SELECT version FROM job")

	allowed := past
	allowed.Name, allowed.Misfire.MaxAge = "allowed", job.Duration(3*time.Hour)
	j = f.create(allowed)
	f.wantDues("allowed by max_age", j.ID, -7200)

	once := f.create(at("once", after(time.Second)))
	f.reach(after(2 * time.Second))
	f.exec("UPDATE task SET spawn_by = 1 WHERE state = 2")
	f.finish()
	f.session.set(after(100 * time.Hour))
	f.update(once, func(s *job.Spec) { s.Owner = "me" })
	f.wantDues("over, and edited", once.ID)
	f.wantRuns("over, and edited", once.ID, "succeeded 1..1×1 ")
}

// TestEditOfAPausedJob plans nothing until it is resumed, and then by the new definition.
func TestEditOfAPausedJob(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 5*time.Second))
	if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	f.session.set(after(time.Minute))
	j.Version++
	j = f.update(j, func(s *job.Spec) { s.Every = job.Duration(30 * time.Second) })
	f.wantDues("edited", j.ID)
	if j.NextDue != 0 || !j.Paused {
		t.Errorf("got %+v, want it paused and without a cursor", j)
	}
	f.session.set(after(70 * time.Second))
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	f.wantDues("resumed", j.ID, 65, 95)
	f.wantRuns("resumed", j.ID, "skipped 5..55×6 paused from "+t0.String()+" to "+after(time.Minute).String()+", when its schedule was changed by anonymous")
}

// TestEditInAPause: what passed in it is not lost, whatever is edited.
func TestEditInAPause(t *testing.T) {
	f := setUp(t)
	resume := func(f *fixture, j job.Job) {
		if _, err := f.editor.Resume(f.Context(), j.ID); err != nil {
			f.Fatal(err)
		}
	}
	pauses := map[string]struct {
		begin, end func(*fixture, job.Job)
		by         string
	}{
		"its own":         {func(f *fixture, j job.Job) { f.pauseJob(j, 0) }, resume, " by anonymous: why"},
		"that of its app": {func(f *fixture, _ job.Job) { f.pauseApp("a", "why", 0) }, func(f *fixture, _ job.Job) { f.resumeApp("a") }, " with app a by alice: why"},
	}
	for name, c := range map[string]struct {
		change func(*job.Spec)
		last   float64 // the latest that is started
		runs   string
	}{
		"the command":  {func(s *job.Spec) { s.Command = "other" }, 30, "skipped 10..20×2 paused from %s to %s"},
		"the name":     {func(s *job.Spec) { s.Name = "other" }, 30, "skipped 10..20×2 paused from %s to %s"},
		"the interval": {func(s *job.Spec) { s.Every = job.Duration(time.Minute) }, 70, "skipped 10..30×3 paused from %s to %s, when its schedule was changed"},
		"the end":      {func(s *job.Spec) { end := after(time.Hour).Time(); s.End = &end }, 40, "skipped 10..30×3 paused from %s to %s, when its schedule was changed"},
		"the kind, to one that has passed": {func(s *job.Spec) {
			at := after(32 * time.Second).Time()
			s.Every, s.Start, s.At = 0, nil, &at
		}, 32, "skipped 10..30×3 paused from %s to %s, when its schedule was changed"},
	} {
		for kind, pause := range pauses {
			t.Run(name+", "+kind, func(t *testing.T) {
				f := f.anew(t)
				j := f.create(in("a", every("j", 10*time.Second, 10*time.Second)))
				f.session.set(after(time.Second))
				pause.begin(f, j)
				f.look(after(2 * time.Second)) // the planner holds the jobs of an app
				from := f.row(j.ID).PausedAt
				f.session.set(after(35 * time.Second))
				j = f.update(f.row(j.ID).Job, c.change)
				f.wantDues("edited", j.ID)
				f.session.set(after(39 * time.Second))
				pause.end(f, j)
				f.look(after(39500 * time.Millisecond))
				if got := f.dues(j.ID); len(got) == 0 || got[0] != c.last {
					t.Errorf("got due times %v, want %g to be the first", got, c.last)
				}
				to := after(39 * time.Second)
				if strings.HasSuffix(c.runs, "changed") {
					to = after(35 * time.Second)
				}
				f.wantRuns("resumed", j.ID, fmt.Sprintf(c.runs, from, to)+pause.by)
			})
		}
	}
	t.Run("out of its app", func(t *testing.T) {
		f := f.anew(t)
		j := f.create(in("a", every("j", 10*time.Second, 10*time.Second)))
		f.pauseApp("a", "why", 0)
		f.look(after(2 * time.Second))
		from := f.row(j.ID).PausedAt
		f.session.set(after(35 * time.Second))
		j = f.update(f.row(j.ID).Job, func(s *job.Spec) { s.App = "b" })
		f.wantDues("edited", j.ID, 30, 40, 50, 60, 70)
		f.wantRuns("edited", j.ID, fmt.Sprintf("skipped 10..20×2 paused from %s to %s with app a by alice: why", from, after(35*time.Second)))
	})
}

// TestEditMendsAJob: one that could not be planned is planned again once its definition is right.
func TestEditMendsAJob(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 5*time.Second))
	f.exec("DELETE FROM task")
	f.exec(`UPDATE job SET spec = '{"every":"10s"', next_due = 1 WHERE id = ?`, j.ID)
	f.reach(after(time.Second))
	row, err := f.beside.Job(t.Context(), j.ID)
	if err != nil || row.Error == "" || row.NextDue != 0 || row.Status(false, t0) != job.Broken {
		t.Fatalf("got %+v, %v; want it marked as broken", row.Job, err)
	}
	j = f.update(j, func(s *job.Spec) {})
	if j.Error != "" || j.Status(true, t0) != job.Active {
		t.Errorf("got %+v, want it mended", j)
	}
	f.wantDues("mended", j.ID, 5, 15, 25, 35)
}

func TestChangesOfNobody(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	if _, err := f.editor.Update(t.Context(), j.ID, 7, j.Spec); err != job.ErrChanged {
		t.Errorf("another version: got %v, want %v", err, job.ErrChanged)
	}
	if err := f.editor.Delete(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"pause":                       func() error { _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); return err },
		"resume":                      func() error { _, err := f.editor.Resume(t.Context(), j.ID); return err },
		"delete":                      func() error { return f.editor.Delete(t.Context(), j.ID) },
		"update":                      func() error { _, err := f.editor.Update(t.Context(), j.ID, 2, j.Spec); return err },
		"run":                         func() error { _, err := f.editor.RunNow(t.Context(), j.ID, "key"); return err },
		"pause of one that never was": func() error { _, err := f.editor.Pause(t.Context(), 999, job.PauseRequest{}); return err },
	} {
		if err := do(); !errors.Is(err, sql.ErrNotFound) {
			t.Errorf("%s: got %v, want %v", what, err, sql.ErrNotFound)
		}
	}
	f.want("requests", 0, "SELECT COUNT(*) FROM request")
	f.want("version", 2, "SELECT version FROM job WHERE id = ?", j.ID)
}

// TestDelete: what has passed ends skipped, what lies ahead is withdrawn, claimed or not, and the name is free.
func TestDelete(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 5*time.Second, 5*time.Second))
	f.claimer.claim(t.Context(), t0, 0) // 5
	f.session.set(after(12 * time.Second))
	if err := f.editor.Delete(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	f.wantDues("deleted", j.ID)
	f.wantRuns("deleted", j.ID, "skipped 5..5×1 job was deleted", "skipped 10..10×1 job was deleted")
	f.reach(after(30 * time.Second))
	if len(f.executing.added) != 0 {
		t.Errorf("got attempts %+v of a deleted job", f.executing.added)
	}
	if again := f.create(every("j", time.Hour, time.Hour)); again.ID == j.ID {
		t.Error("the new job of that name is the deleted one")
	}
}

// TestAnswerWaits: an edit is not answered while an attempt may begin as it was, and says so when its client leaves.
func TestAnswerWaits(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, time.Second))
	f.reach(after(time.Second))
	f.exec("UPDATE task SET spawn_by = spawn_by + 10000000 WHERE job_id = ? AND state = 2", j.ID)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := f.editor.Pause(ctx, j.ID, job.PauseRequest{})
	if !sql.IsUnknown(err) {
		t.Errorf("got %v, want it unknown whether a run may still begin", err)
	}
	f.want("paused all the same", 1, "SELECT paused FROM job WHERE id = ?", j.ID)
	f.session.set(after(13 * time.Second)) // the window has passed
	begin := time.Now()
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(begin); waited > 9*time.Second {
		t.Errorf("answered after %s, although the window had passed", waited)
	}
}

// TestAnswerWaitsForSlowClocks: by this node's clock the spawn window of what executes has passed; while others may go by what
// MySQL's clock was before it was put forward, no answer relies on that.
func TestAnswerWaitsForSlowClocks(t *testing.T) {
	f := setUp(t)
	const unsettled = 2 * time.Second
	for name, change := range map[string]func(f *fixture, j job.Job) error{
		"pause": func(f *fixture, j job.Job) error {
			_, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{})
			return err
		},
		"edit":   func(f *fixture, j job.Job) error { f.update(j, func(s *job.Spec) { s.Command = "other" }); return nil },
		"delete": func(f *fixture, j job.Job) error { return f.editor.Delete(t.Context(), j.ID) },
		"pause of an app": func(f *fixture, _ job.Job) error {
			_, err := f.editor.PauseApp(t.Context(), "a", job.PauseRequest{})
			return err
		},
		"pause of many": func(f *fixture, j job.Job) error {
			return f.editor.Bulk(t.Context(), &job.Bulk{Action: job.ActionPause, Jobs: []job.Seen{{ID: j.ID, Version: j.Version}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			j := f.create(in("a", every("j", time.Hour, time.Second)))
			f.reach(after(time.Second))
			f.executes(j)
			f.session.set(after(time.Minute))
			begin := time.Now()
			f.editor.Unsettled = func() time.Duration { return unsettled - time.Since(begin) }
			if err := change(f, j); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin); waited < unsettled {
				t.Errorf("answered after %s, want %s at least", waited, unsettled)
			}
		})
	}
}

// TestKeysAreOfTheirCaller: whoever asks by the API under somebody else's key, also under the same name, gets nothing of
// that. Nodes of one program are one caller.
func TestKeysAreOfTheirCaller(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, -100*time.Hour))
	for what, ask := range map[string]func(ctx context.Context, key string) (int64, error){
		"run": func(ctx context.Context, key string) (int64, error) {
			asked, err := f.editor.RunNow(ctx, j.ID, key)
			return asked.Origin, err
		},
		"backfill": func(ctx context.Context, key string) (int64, error) {
			b, err := f.editor.Backfill(ctx, j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 1, false, key)
			return b.ID, err
		},
	} {
		by := func(who, caller, key string) (int64, error) {
			return ask(job.WithActor(t.Context(), job.Actor{Who: who, Caller: caller}), what+key)
		}
		same := func(as string, again, first int64, err error) {
			t.Helper()
			if err != nil || again != first || first == 0 {
				t.Errorf("%s %s: got %d, %v; want the first one, %d", what, as, again, err, first)
			}
		}
		first, _ := by("ci", "token 7", "a")
		again, err := by("ci", "token 7", "a")
		same("again", again, first, err)
		if _, err := by("ci", "token 8", "a"); err != job.ErrKeyReused {
			t.Errorf("%s by another token of the name: got %v, want %v", what, err, job.ErrKeyReused)
		}
		first, _ = by("node 1", "", "b")
		again, err = by("node 2", "", "b")
		same("by another node", again, first, err)
	}
}

// TestRunNow: a run that is asked for by hand is beside the schedule.
func TestRunNow(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	f.soon = 0
	a, err := f.editor.RunNow(t.Context(), j.ID, "key")
	if err != nil || a.Due != t0 || a.Origin == 0 || f.soon != 1 {
		t.Fatalf("got %+v, %v, told %d times", a, err, f.soon)
	}
	f.session.set(after(time.Second))
	if b, err := f.editor.RunNow(t.Context(), j.ID, "key"); err != nil || b != a {
		t.Errorf("the key again: got %+v, %v; want the first request, %+v", b, err, a)
	}
	other := f.create(every("k", time.Hour, time.Hour))
	if _, err := f.editor.RunNow(t.Context(), other.ID, "key"); err != job.ErrKeyReused {
		t.Errorf("the key for another job: got %v, want %v", err, job.ErrKeyReused)
	}
	f.want("tasks", 1, "SELECT COUNT(*) FROM task WHERE origin = ?", a.Origin)
	f.reach(after(time.Second))
	if len(f.executing.added) != 1 {
		t.Fatalf("got %d attempts, want 1", len(f.executing.added))
	}
	f.want("last due time, which is the schedule's", 0, "SELECT last_due FROM job WHERE id = ?", j.ID)
	f.finish()
	f.wantDues("the schedule", j.ID)
	f.want("its cursor", int64(after(time.Hour)), "SELECT next_due FROM job WHERE id = ?", j.ID)
}
