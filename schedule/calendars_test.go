package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// closing is a calendar that closes minutes of the hour of t0: 0 is its first.
func closing(name string, minutes ...int) job.CalendarSpec {
	c := job.CalendarSpec{Name: name, Timezone: "UTC"}
	for _, m := range minutes {
		c.Hours.Except = append(c.Hours.Except, fmt.Sprintf("08:%02d-08:%02d", m, m+1))
	}
	return c
}

func (f *fixture) put(c job.CalendarSpec) {
	f.Helper()
	if _, err := f.editor.PutCalendar(f.Context(), c, AnyVersion); err != nil {
		f.Fatal(err)
	}
}

func by(calendar string, spec job.Spec) job.Spec {
	spec.Calendars = append(spec.Calendars, calendar)
	return spec
}

func (f *fixture) plan(at time.Duration) {
	f.Helper()
	f.session.set(after(at))
	if _, err := f.planner.plan(f.Context(), after(at)); err != nil {
		f.Fatal(err)
	}
}

// start claims what it can and starts what is due, without planning.
func (f *fixture) start(at time.Duration) {
	f.Helper()
	f.session.set(after(at))
	if _, err := f.claimer.claim(f.Context(), after(at), -neglected); err != nil {
		f.Fatal(err)
	}
	f.starter.start(f.Context(), after(at))
}

func (f *fixture) problem(what string, err error, field, says string) {
	f.Helper()
	var p job.Problems
	if !errors.As(err, &p) || len(p) != 1 || p[0].Field != field || !strings.Contains(p[0].Message, says) {
		f.Errorf("%s: got %v, want a problem of %s that says %q", what, err, field, says)
	}
}

// TestCalendarOfAJob: a job is planned by its calendar from the first task on, and by the next one after an edit.
func TestCalendarOfAJob(t *testing.T) {
	f := setUp(t)
	f.put(closing("first", 0))
	f.put(closing("even", 0, 2, 4))
	j := f.create(by("first", every("j", 20*time.Second, 10*time.Second)))
	f.wantDues("created", j.ID)
	f.want("its cursor", int64(after(70*time.Second)), "SELECT next_due FROM job")
	f.plan(51 * time.Second)
	f.wantDues("planned", j.ID, 70, 90)
	j = f.update(j, func(s *job.Spec) { s.Calendars = []string{"first", "even"} })
	f.wantDues("edited", j.ID, 70, 90)
	f.want("its references", 2, "SELECT COUNT(*) FROM job_ref WHERE kind = 2 AND job_id = ?", j.ID)
	f.plan(91 * time.Second)
	f.wantDues("the third minute is closed", j.ID, 70, 90, 110)
	j = f.update(j, func(s *job.Spec) { s.Calendars = nil })
	f.wantDues("edited, without", j.ID, 70, 90, 110, 130)
	f.want("its references", 0, "SELECT COUNT(*) FROM job_ref WHERE kind = 2")
}

// TestCalendarAfterAPause: what passed while the job was paused is counted by the calendar as it is when that ends.
func TestCalendarAfterAPause(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	j = f.pauseJob(j, 0)
	f.put(closing("c", 1))
	f.want("paused jobs to be planned anew", 0, "SELECT COUNT(*) FROM job WHERE replan = 1 OR next_due IS NOT NULL")
	f.session.set(after(150 * time.Second))
	if _, err := f.editor.Resume(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if got := f.runs(j.ID); len(got) != 1 || got[0].Count != 8 { // 5 … 55, 125, 135; 145 is started
		t.Errorf("got runs %+v; want one of 8 due times", got)
	}
	f.wantDues("resumed", j.ID, 145, 155, 165, 175, 185)
}

func TestCalendarsAreReferences(t *testing.T) {
	f := setUp(t)
	spec := by("c", every("j", time.Hour, time.Hour))
	spec.Command = "true"
	_, err := f.editor.Create(t.Context(), spec, false)
	f.problem("a calendar that there is not", err, "calendars[0]", `there is no calendar "c"`)
	f.put(closing("c"))
	f.put(closing("d"))
	j := f.create(spec)
	spec.Calendars = []string{"c", "e"}
	_, err = f.editor.Update(t.Context(), j.ID, j.Version, spec)
	f.problem("another one", err, "calendars[1]", `there is no calendar "e"`)
	f.want("its references", 1, "SELECT COUNT(*) FROM job_ref WHERE name = 'c'")

	var used *job.InUse
	if err := f.editor.DeleteCalendar(t.Context(), "c"); !errors.As(err, &used) || len(used.By) != 1 || used.By[0].String() != "default/j" {
		t.Errorf("a calendar in use: got %v", err)
	}
	if err := f.editor.DeleteCalendar(t.Context(), "d"); err != nil {
		t.Error(err)
	}
	if err := f.editor.DeleteCalendar(t.Context(), "d"); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("deleted again: got %v", err)
	}
	if err := f.editor.Delete(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if err := f.editor.DeleteCalendar(t.Context(), "c"); err != nil {
		t.Errorf("of a deleted job: %v", err)
	}
	f.want("calendars", 0, "SELECT COUNT(*) FROM calendar")
	f.want("references", 0, "SELECT COUNT(*) FROM job_ref")
}

func TestPutCalendar(t *testing.T) {
	f := setUp(t)
	put := func(c job.CalendarSpec, version int64) (bool, error) {
		return f.editor.PutCalendar(t.Context(), c, version)
	}
	if isNew, err := put(closing("c"), 3); !errors.Is(err, job.ErrChanged) {
		t.Errorf("a version of none: got %v, %v", isNew, err)
	}
	if isNew, err := put(closing("c"), NoVersion); !isNew || err != nil {
		t.Errorf("a new one: got %v, %v", isNew, err)
	}
	if isNew, err := put(closing("c", 1), NoVersion); !errors.Is(err, sql.ErrExists) {
		t.Errorf("the name again: got %v, %v", isNew, err)
	}
	j := f.create(by("c", every("j", time.Hour, time.Hour)))
	if isNew, err := put(closing("c"), AnyVersion); isNew || err != nil {
		t.Errorf("the same again: got %v, %v", isNew, err)
	}
	f.want("its version", 1, "SELECT version FROM calendar")
	f.want("jobs to be planned anew", 0, "SELECT COUNT(*) FROM job WHERE replan = 1")
	for _, version := range []int64{1, AnyVersion} {
		if isNew, err := put(closing("c", 30+int(version)), version); isNew || err != nil {
			t.Errorf("version %d: got %v, %v", version, isNew, err)
		}
	}
	if _, err := put(closing("c", 7), 2); !errors.Is(err, job.ErrChanged) {
		t.Errorf("an old version: got %v", err)
	}
	bad := closing("c")
	bad.Exclude = []job.CalendarDay{{Date: "x"}}
	_, err := put(bad, AnyVersion)
	f.problem("no calendar", err, "exclude[0].date", "is no date")
	f.want("its version", 3, "SELECT version FROM calendar")
	f.want("jobs to be planned anew", 1, "SELECT COUNT(*) FROM job WHERE replan = 1")
	f.want("the job's version", 1, "SELECT version FROM job WHERE id = ?", j.ID)
	f.want("lines of the audit", 3, "SELECT COUNT(*) FROM audit WHERE kind = 'calendar'")
	row, err := f.beside.Calendar(t.Context(), "c")
	if err != nil || row.Jobs != 1 || row.Calendar.Spec().Hours.Except[0] != "08:30-08:31" {
		t.Errorf("got %+v, %v", row, err)
	}
}

// TestCalendarCloses: what is planned and not due any more goes at the next look; until then no start takes it.
func TestCalendarCloses(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	f.start(6 * time.Second) // 5 executes, 15 is claimed
	f.finish()
	f.session.set(after(12 * time.Second))
	f.put(closing("c", 0))
	f.want("to be planned anew", int64(after(12*time.Second)), "SELECT next_due FROM job WHERE replan = 1")

	f.start(15 * time.Second) // no planner came
	if n := len(f.executing.added); n != 0 {
		t.Errorf("%d attempts were started at a due time that is closed", n)
	}
	f.plan(16 * time.Second)
	f.wantDues("planned anew", j.ID)
	f.want("its cursor", int64(after(65*time.Second)), "SELECT next_due FROM job WHERE replan = 0")
	f.wantRuns("in the end", j.ID, "succeeded 5..5×1 ", "skipped 15..15×1 a calendar was changed: it is no due time any more")
}

// TestCalendarClosesWhatOthersHold: a due time goes also when a later one has been refused before a planner came.
func TestCalendarClosesWhatOthersHold(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	f.start(6 * time.Second) // 15 is claimed, and its node is slow from now on
	f.finish()
	f.session.set(after(12 * time.Second))
	f.put(closing("c", 0))
	peer := node(t, f.dsn, 2)
	peer.start(20 * time.Second)
	peer.start(25 * time.Second) // 25 is refused
	peer.plan(26 * time.Second)
	peer.wantDues("planned anew", j.ID, 65)
	f.start(27 * time.Second)
	if n := len(f.executing.added); n != 0 {
		t.Errorf("%d attempts were started at a due time that is closed", n)
	}
	f.wantRuns("in the end", j.ID, "succeeded 5..5×1 ", "skipped 25..25×1 a calendar was changed: it is no due time any more")
}

// TestCalendarOpens: due times come of what was closed, from the change on, also those that pass until a planner comes.
func TestCalendarOpens(t *testing.T) {
	f := setUp(t)
	f.put(closing("c", 0))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	f.session.set(after(12 * time.Second))
	f.put(closing("c", 1))
	f.plan(17 * time.Second)
	f.wantDues("planned anew", j.ID, 15, 25, 35, 45, 55)
	f.start(17 * time.Second)
	f.finish()
	f.plan(18 * time.Second)
	f.wantDues("and goes on", j.ID, 25, 35, 45, 55)
	f.wantRuns("started a little late", j.ID, "succeeded 15..15×1 ")
	f.want("its cursor", int64(after(125*time.Second)), "SELECT next_due FROM job WHERE replan = 0")
}

// TestCalendarKeeps: what stays a due time is the same task before and after, wherever it is, and what has begun does not
// come again.
func TestCalendarKeeps(t *testing.T) {
	f := setUp(t)
	f.put(closing("c", 5))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	ids := func() (out []int64) {
		for _, due := range []int{15, 25} {
			out = append(out, f.number("SELECT id FROM task WHERE due = ?", int64(after(time.Duration(due)*time.Second))))
		}
		return out
	}
	f.start(6 * time.Second) // 15 is claimed
	before := ids()
	f.session.set(after(9 * time.Second))
	f.put(closing("c", 7))
	f.start(15 * time.Second) // due by both, started before a planner came
	f.finish()
	f.plan(16 * time.Second)
	f.wantDues("planned anew", j.ID, 25, 35, 45, 55)
	if now := f.number("SELECT id FROM task WHERE due = ?", int64(after(25*time.Second))); now != before[1] {
		t.Errorf("the task due 25 is row %d, and was %d", now, before[1])
	}
	f.wantRuns("each once", j.ID, "succeeded 5..5×1 ", "succeeded 15..15×1 ")
}

// TestCalendarChangesWhileNobodyPlans: after an outage each due time is counted once, by the calendar as it is.
func TestCalendarChangesWhileNobodyPlans(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second))) // up to 35 is planned
	f.session.set(after(12 * time.Second))
	f.put(closing("c", 2)) // 125 … 175
	f.plan(10 * time.Minute)
	// 5 was due before the change and is idle still; 15 … 585 are 58, of which 6 are closed and the last few start.
	if got := f.dues(j.ID); len(got) == 0 || got[0] != 5 {
		t.Errorf("got due times %v, want 5 among them", got)
	}
	total := f.number("SELECT SUM(due_count) FROM history WHERE job_id = ?", j.ID) + f.number("SELECT COUNT(*) FROM task WHERE due <= ?", int64(after(10*time.Minute)))
	if want := int64(60 - 6); total != want {
		t.Errorf("%d due times are accounted for, want %d", total, want)
	}
}

// TestCalendarOfAPlannerThatIsLate: a cursor that is behind the change stays, and so does what it stands for.
func TestCalendarOfAPlannerThatIsLate(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second))) // 5 … 35
	f.session.set(after(50 * time.Second))
	f.put(closing("c", 1))
	f.want("its cursor", int64(after(45*time.Second)), "SELECT next_due FROM job")
	f.plan(51 * time.Second)
	f.wantDues("planned anew", j.ID, 5, 15, 25, 35, 45, 55)
	f.plan(106 * time.Second)
	f.wantDues("the second minute is closed", j.ID, 5, 15, 25, 35, 45, 55, 125, 135, 145)
}

// TestEditOfAJobToBePlannedAnew: an edit does what the planner has not come to.
func TestEditOfAJobToBePlannedAnew(t *testing.T) {
	f := setUp(t)
	for name, change := range map[string]func(*fixture, job.Job){
		"update": func(f *fixture, j job.Job) { f.update(j, func(s *job.Spec) { s.Command = "false" }) },
		"pause and resume": func(f *fixture, j job.Job) {
			f.pauseJob(j, 0)
			if _, err := f.editor.Resume(f.Context(), j.ID); err != nil {
				f.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.put(closing("c", 0))
			j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
			f.session.set(after(40 * time.Second))
			f.put(closing("c", 1))
			f.session.set(after(47 * time.Second))
			change(f, j)
			f.want("to be planned anew", 0, "SELECT COUNT(*) FROM job WHERE replan = 1")
			f.want("due times that are accounted for", 2, "SELECT (SELECT COUNT(*) FROM task) + (SELECT COALESCE(SUM(due_count), 0) FROM history)") // 45 and 55
			f.plan(48 * time.Second)
			f.want("after a planner", 2, "SELECT (SELECT COUNT(*) FROM task) + (SELECT COALESCE(SUM(due_count), 0) FROM history)")
		})
	}
}

// TestCalendarOfABrokenJob: one that nobody can read breaks its jobs and no other; mending it mends them.
func TestCalendarOfABrokenJob(t *testing.T) {
	f := setUp(t)
	f.put(closing("bad"))
	f.put(closing("good"))
	j := f.create(by("bad", every("j", 10*time.Second, 5*time.Second)))
	other := f.create(by("good", every("other", 10*time.Second, 5*time.Second)))
	f.exec(`UPDATE calendar SET spec = '{"name":"bad","new":1}', digest = UNHEX(SHA2(spec, 256)) WHERE name = 'bad'`)
	f.plan(30 * time.Second)
	f.want("jobs in error", 1, "SELECT COUNT(*) FROM job WHERE error LIKE '%calendar \"bad\"%unknown field%' AND id = ?", j.ID)
	f.wantDues("the other one", other.ID, 5, 15, 25, 35, 45, 55, 65)
	f.exec("UPDATE calendar SET spec = CONCAT(spec, ' ') WHERE name = 'good'")
	f.put(closing("bad", 1))
	f.plan(31 * time.Second)
	f.wantDues("mended", j.ID, 5, 15, 25, 35, 45, 55) // up to 35 was planned before
	f.want("jobs in error", 0, "SELECT COUNT(*) FROM job WHERE error <> ''")
	f.want("jobs to be planned anew", 0, "SELECT COUNT(*) FROM job WHERE replan = 1")
}

// TestManyJobsOfACalendar: more tasks than one transaction changes.
func TestManyJobsOfACalendar(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	for i := range 8 {
		f.create(by("c", every(fmt.Sprint(i), 50*time.Millisecond, 0))) // 800 each
	}
	f.want("planned", 8*800, "SELECT COUNT(*) FROM task")
	f.put(closing("c", 0))
	for range 10 {
		f.plan(time.Microsecond)
	}
	f.want("planned ahead", 0, "SELECT COUNT(*) FROM task WHERE due > ?", int64(t0))
	f.want("to be planned anew", 0, "SELECT COUNT(*) FROM job WHERE replan = 1")
	f.put(closing("c", 3))
	for range 10 {
		f.plan(2 * time.Microsecond)
	}
	f.want("planned ahead again", 8*800, "SELECT COUNT(*) FROM task WHERE due > ?", int64(t0))
}

// TestCalendarAnswerWaits until what was about to start by the old calendar has started.
func TestCalendarAnswerWaits(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
	f.start(5 * time.Second)
	due := after(5 * time.Second)
	f.exec("UPDATE task SET spawn_by = ? WHERE state = 2", int64(due.Add(300*time.Millisecond)))
	f.session.set(due.Add(-100 * time.Millisecond)) // it was committed before its due instant
	began := time.Now()
	f.put(closing("c", 1))
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it was answered after %s, while the attempt may be spawned for 400 ms", took)
	}
	f.want("it executes", 1, "SELECT COUNT(*) FROM task WHERE state = 2 AND job_id = ?", j.ID)
}

// TestPutCalendarFates loses the COMMIT of changes: each stands once.
func TestPutCalendarFates(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			var rules []*faultproxy.Injected
			for _, statement := range []string{"INSERT INTO calendar", "UPDATE calendar SET version", "INSERT INTO job_ref", "DELETE FROM calendar"} {
				rules = append(rules, f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: fate}))
			}
			f.put(closing("c"))
			j := f.create(by("c", every("j", 10*time.Second, 5*time.Second)))
			f.put(closing("c", 0))
			f.want("its version", 2, "SELECT version FROM calendar")
			f.plan(time.Second)
			f.wantDues("planned anew", j.ID)
			if err := f.editor.Delete(t.Context(), j.ID); err != nil {
				t.Error(err)
			}
			if err := f.editor.DeleteCalendar(t.Context(), "c"); err != nil {
				t.Error(err)
			}
			f.want("calendars", 0, "SELECT COUNT(*) FROM calendar")
			f.want("lines of the audit", 3, "SELECT COUNT(*) FROM audit WHERE kind = 'calendar' AND action <> 'void'")
			for i, r := range rules {
				if r.Fired() != 1 {
					t.Errorf("rule %d: injected %d times", i, r.Fired())
				}
			}
		})
	}
}

// TestCalendarStory lets two nodes plan, start and end a job of every second while its calendar changes again and again,
// in random order, with pauses in which nobody does anything. No due time comes twice; none is started that all calendars
// from its instant until then close; none is lost that was open before, at and after it.
func TestCalendarStory(t *testing.T) {
	f := setUp(t)
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := f.anew(t)
			r := rand.New(rand.NewPCG(seed, 7))
			peer := node(t, f.dsn, 2)
			f.put(closing("c"))
			spec := by("c", every("j", time.Second, time.Second/2))
			spec.Misfire = job.Misfire{Policy: job.MisfireSkip}
			j := f.create(spec)
			type edit struct {
				at     job.Micros
				closed []int
			}
			edits := []edit{{t0, nil}}
			now := time.Duration(0)
			for now < 170*time.Second {
				now += time.Duration(r.IntN(1500)) * time.Millisecond
				if r.IntN(40) == 0 {
					now += 5 * time.Second // nobody is there
				}
				for _, n := range []*fixture{f, peer} {
					n.T = t
					n.session.set(after(now))
				}
				if r.IntN(6) == 0 {
					var closed []int
					for m := range 3 {
						if r.IntN(2) == 0 {
							closed = append(closed, m)
						}
					}
					f.put(closing("c", closed...))
					edits = append(edits, edit{after(now), closed})
				}
				for _, n := range []*fixture{f, peer} {
					switch r.IntN(3) {
					case 0:
						n.plan(now)
					case 1:
						n.start(now)
						n.finish()
					}
				}
			}
			for range 3 { // let everything come to its end
				now += time.Second
				for _, n := range []*fixture{f, peer} {
					n.plan(now)
					n.start(now)
					n.finish()
				}
			}
			seen := map[job.Micros]int64{}
			started := map[job.Micros]job.Micros{}
			for _, run := range f.runs(j.ID) {
				for due := run.Due; due <= run.Until; due += 1_000_000 {
					seen[due]++
				}
				if run.Outcome == job.Succeeded {
					started[run.Due] = run.Ended // at once
				}
			}
			for _, s := range f.seconds("SELECT due FROM task WHERE job_id = ?", j.ID) {
				seen[t0.Add(time.Duration(s*1e6)*time.Microsecond)]++
			}
			for due := after(time.Second / 2); due < after(now-5*time.Second); due += 1_000_000 {
				minute := int(due.Sub(t0) / time.Minute)
				open := false  // by any calendar from the instant on until it was started
				always := true // open from a while before until long after
				for i, e := range edits {
					inForce := e.at <= started[due] && (i+1 == len(edits) || edits[i+1].at >= min(due, started[due]))
					open = open || inForce && !slices.Contains(e.closed, minute)
					if slices.Contains(e.closed, minute) && e.at <= due.Add(70*time.Second) && (i+1 == len(edits) || edits[i+1].at >= due.Add(-70*time.Second)) {
						always = false
					}
				}
				switch {
				case seen[due] > 1 && !coarse(f, j.ID, due):
					t.Errorf("%s comes %d times", due, seen[due])
				case started[due] != 0 && !open:
					t.Errorf("%s was started, and the calendar of then closes it", due)
				case always && seen[due] == 0:
					t.Errorf("%s is lost", due)
				}
			}
		})
	}
}

// coarse tells whether a due time is in a counted range, whose rows do not say which ones they stand for.
func coarse(f *fixture, id int64, due job.Micros) bool {
	return f.number("SELECT COUNT(*) FROM history WHERE job_id = ? AND due_count > 1 AND due <= ? AND due_last >= ?", id, int64(due), int64(due)) > 0
}

// TestCalendarsAtOnce has several editors change a calendar and jobs that name it while planners plan: in the end every
// job is planned by the last calendar.
func TestCalendarsAtOnce(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	f.put(closing("d"))
	stop := make(chan struct{})
	var planning, changing sync.WaitGroup
	nodes := []*fixture{f, node(t, f.dsn, 2), node(t, f.dsn, 3)}
	for _, n := range nodes[:2] {
		planning.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := n.planner.plan(t.Context(), t0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i, n := range nodes {
		changing.Go(func() {
			for round := range 12 {
				if _, err := n.editor.PutCalendar(t.Context(), closing("c", i+1, round+10), AnyVersion); err != nil {
					t.Error(err)
				}
				spec := by("c", every(fmt.Sprintf("%d-%d", i, round), 10*time.Second, 5*time.Second))
				spec.Command = "true"
				if round%2 == 0 {
					spec.Calendars = []string{"d"}
				}
				j, err := n.editor.Create(t.Context(), spec, false)
				if err != nil {
					t.Error(err)
					return
				}
				spec.Calendars = []string{"d", "c"}
				if _, err := n.editor.Update(t.Context(), j.ID, j.Version, spec); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	// Close the first minute last of all, while planners still work.
	f.put(closing("c", 0))
	f.want("marked", 36, "SELECT COUNT(*) FROM job WHERE id IN (SELECT job_id FROM job_ref WHERE name = 'c')")
	for end := time.Now().Add(20 * time.Second); f.number("SELECT COUNT(*) FROM job WHERE replan = 1") > 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	close(stop)
	planning.Wait()
	f.want("planned in the closed minute", 0, "SELECT COUNT(*) FROM task WHERE due > ?", int64(t0))
	f.want("cursors behind it", 36, "SELECT COUNT(*) FROM job WHERE next_due = ? AND replan = 0", int64(after(65*time.Second)))
}

// TestCalendarKeepsWhatWaits: what was due before the change and waits still is no misfire, however late the planner comes.
func TestCalendarKeepsWhatWaits(t *testing.T) {
	f := setUp(t)
	f.put(closing("c"))
	spec := by("c", every("j", time.Second, time.Second))
	spec.Overlap, spec.Misfire.After = job.OverlapQueue, job.Duration(time.Second)
	j := f.create(spec)
	for i := range 4 {
		f.reach(after(time.Duration(i+1) * time.Second))
	}
	f.want("what waits", 3, "SELECT COUNT(*) FROM task WHERE state = 3")
	f.session.set(after(1500 * time.Millisecond)) // MySQL's clock: the change comes behind the first
	f.put(closing("c", 7))
	f.plan(7 * time.Second)
	f.want("what waits still", 3, "SELECT COUNT(*) FROM task WHERE state = 3")
	f.want("why", 3, "SELECT COUNT(*) FROM waiting")
	f.want("what was counted as missed", 2, "SELECT COALESCE(SUM(due_count), 0) FROM history WHERE job_id = ?", j.ID) // 5 and 6, which nobody started
}
