package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	"go-crontab/test/ledger"
)

// An account is a story without violations: ten due times of each job, 10 s apart, from 1000 s on.
type account struct {
	expected ledger.Expected
	entries  []ledger.Entry
	history  []job.Run
}

const (
	first    = job.Micros(1_000_000_000)
	interval = 10 * time.Second
	dues     = 10
)

// The first session lives. The other was killed, and its runs are lost.
var (
	session = uuid.MustParse("11111111-2222-3333-4444-555555555555")
	killed  = uuid.MustParse("77777777-2222-3333-4444-555555555555")
)

// well makes an account with jobs of all kinds: short runs, failing first attempts, lost first
// attempts, overlapping runs, and a job with half its runs missed.
func well() *account {
	a := &account{expected: ledger.Expected{
		Early:    func(job.Micros) time.Duration { return 5 * time.Millisecond },
		Sessions: map[uuid.UUID]ledger.Life{session: ledger.Lives},
		Missed:   [2]time.Duration{time.Second, 5 * time.Second},
		Behind:   interval,
	}}

	for id, j := range []ledger.Job{
		{Name: "short"}, {Name: "retry", Attempts: 2}, {Name: "rerun", Rerun: true},
		{Name: "overlap", Allow: true, App: "ops"}, {Name: "missed"},
	} {
		j.ID = int64(id + 1)
		from := first
		if j.Name == "missed" { // before any node could start a run
			from = first.Add(-dues / 2 * interval)
		}
		j.Dues = ledger.Every(interval, from, from.Add(dues*interval))
		a.expected.Jobs = append(a.expected.Jobs, j)

		for i, due := range j.Dues {
			switch {
			case j.Name == "retry" && i%2 == 0:
				a.run(j, due, 1, time.Second, job.Failed, false)
				a.run(j, due, 2, time.Second, job.Succeeded, true)
			case j.Name == "rerun" && i%3 == 0:
				a.run(j, due, 1, 2*time.Second, job.Lost, false)
				a.run(j, due, 2, time.Second, job.Succeeded, true)
			case j.Name == "overlap":
				a.run(j, due, 1, 15*time.Second, job.Succeeded, true)
			case j.Name == "missed" && i == 0:
				until := j.Dues[len(j.Dues)/2-1]
				a.history = append(a.history, job.Run{JobID: j.ID, Due: due, Until: until,
					Count: int64(len(j.Dues) / 2), Kind: job.FromSchedule, Attempt: 1, Final: true,
					Result: job.Result{Outcome: job.Missed}})
			case j.Name == "missed" && i < len(j.Dues)/2:
			default:
				a.run(j, due, 1, time.Second, job.Succeeded, true)
			}
		}
	}

	return a
}

// run adds an attempt. Attempts of a due time follow one another.
func (a *account) run(j ledger.Job, due job.Micros, attempt int, took time.Duration, o job.Outcome, final bool) {
	l, by := job.Launch{Run: int64(len(a.history) + 1), Claim: 1}, session
	if o == job.Lost {
		by = killed
	}
	at := due.Add(time.Duration(attempt-1) * 4 * time.Second)
	app := j.App
	if app == "" {
		app = job.DefaultApp
	}

	e := ledger.Entry{Kind: ledger.Start, App: app, Job: j.Name, Due: due, Attempt: attempt, Launch: l.String(), At: at}
	a.entries = append(a.entries, e)
	e.Kind, e.At = ledger.Alive, at.Add(took/2)
	a.entries = append(a.entries, e)

	result := job.Result{Outcome: o}
	if o != job.Lost {
		e.Kind, e.At = ledger.End, at.Add(took)
		if o == job.Failed {
			e.Exit = 1
		}
		a.entries = append(a.entries, e)
		result.ExitCode = &e.Exit
	}

	a.history = append(a.history, job.Run{JobID: j.ID, Due: due, Until: due, Count: 1, Kind: job.FromSchedule,
		Attempt: attempt, Final: final, Launch: l, Session: by, Started: at, Result: result})
}

func (a *account) check() []ledger.Violation {
	return ledger.Check(a.expected, a.entries, a.history)
}

// lines returns the entries of a run.
func (a *account) lines(r *job.Run) (entries []*ledger.Entry) {
	for i := range a.entries {
		if a.entries[i].Launch == r.Launch.String() {
			entries = append(entries, &a.entries[i])
		}
	}
	return entries
}

// runs returns the runs of a job that were started and have the given outcome.
func (a *account) runs(name string, o job.Outcome) (runs []*job.Run) {
	for i := range a.history {
		r := &a.history[i]
		if a.expected.Jobs[r.JobID-1].Name == name && r.Outcome == o {
			runs = append(runs, r)
		}
	}
	return runs
}

func (a *account) drop(of func(*ledger.Entry) bool) {
	a.entries = slices.DeleteFunc(a.entries, func(e ledger.Entry) bool { return of(&e) })
}

func (a *account) dropRun(r *job.Run) {
	l := r.Launch
	a.history = slices.DeleteFunc(a.history, func(r job.Run) bool { return r.Launch == l })
}

// neverStarted makes a run lost before its start.
func (a *account) neverStarted(r *job.Run) {
	r.Outcome = job.Lost
	a.drop(func(e *ledger.Entry) bool { return e.Launch == r.Launch.String() })
}

// neverWas makes a run given up before its start.
func (a *account) neverWas(r *job.Run, o job.Outcome) {
	r.Outcome, r.ExitCode = o, nil
	a.drop(func(e *ledger.Entry) bool { return e.Launch == r.Launch.String() })
	r.Launch = job.Launch{}
}

// forgotten makes a run contradict its recorded end.
func forgotten(r *job.Run, o job.Outcome) { r.Outcome, r.ExitCode = o, nil }

// lastOf makes an attempt the last one: later attempts never existed.
func (a *account) lastOf(r *job.Run) {
	r.Final = true
	id, due, attempt := r.JobID, r.Due, r.Attempt
	name := a.expected.Jobs[id-1].Name
	a.drop(func(e *ledger.Entry) bool { return e.Job == name && e.Due == due && e.Attempt > attempt })
	a.history = slices.DeleteFunc(a.history,
		func(r job.Run) bool { return r.JobID == id && r.Due == due && r.Attempt > attempt })
}

// planted lists faults. Each changes a correct account in some place.
var planted = map[string]struct {
	plant func(a *account, pick func(n int) int)
	want  ledger.Fault
}{
	"lost: no run and no start": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		r := *rs[pick(len(rs))]
		a.drop(func(e *ledger.Entry) bool { return e.Launch == r.Launch.String() })
		a.dropRun(&r)
	}, ledger.Lost},
	"lost: the last attempt has vanished": {func(a *account, pick func(int) int) {
		rs := slices.DeleteFunc(a.runs("retry", job.Succeeded), func(r *job.Run) bool { return r.Attempt == 1 })
		r := *rs[pick(len(rs))]
		a.drop(func(e *ledger.Entry) bool { return e.Launch == r.Launch.String() })
		a.dropRun(&r)
	}, ledger.Lost},
	"lost: a counted range is too short": {func(a *account, _ func(int) int) {
		r := a.runs("missed", job.Missed)[0]
		r.Until = r.Until.Add(-interval)
		r.Count--
	}, ledger.Lost},
	"doubled: a second launch of a due time, with a run": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		r := rs[pick(len(rs))]
		a.run(a.expected.Jobs[0], r.Due, 2, time.Second, job.Succeeded, true)
	}, ledger.Doubled},
	"doubled: a second launch that nobody wrote down": {func(a *account, pick func(int) int) {
		rs := a.runs("overlap", job.Succeeded)
		r := rs[pick(len(rs))]
		for _, e := range a.lines(r) {
			e2 := *e
			e2.Launch = "another"
			e2.At = e2.At.Add(16 * time.Second)
			a.entries = append(a.entries, e2)
		}
	}, ledger.Doubled},
	"doubled: one launch twice": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		e := *a.lines(rs[pick(len(rs))])[0]
		e.At = e.At.Add(3 * time.Second)
		a.entries = append(a.entries, e)
	}, ledger.Doubled},
	"doubled: another attempt after one that was lost, which its job forbids": {func(a *account, _ func(int) int) {
		a.expected.Jobs[2].Rerun = false
	}, ledger.Doubled},
	"doubled: more attempts than its job has": {func(a *account, _ func(int) int) {
		a.expected.Jobs[1].Attempts = 1
	}, ledger.Doubled},
	"overlapping: with the due time before": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		r := rs[pick(len(rs)-1)]
		for _, e := range a.lines(r) {
			if e.Kind == ledger.End {
				e.At = e.At.Add(interval)
			}
		}
	}, ledger.Overlapping},
	"overlapping: a killed one still showed signs of life": {func(a *account, pick func(int) int) {
		rs := a.runs("rerun", job.Lost)
		e := *a.lines(rs[pick(len(rs))])[1]
		e.At = e.At.Add(4 * time.Second)
		a.entries = append(a.entries, e)
	}, ledger.Overlapping},
	"overlapping: attempts of one due time, though runs may": {func(a *account, _ func(int) int) {
		a.expected.Jobs[3].Rerun = true
		r := a.runs("overlap", job.Succeeded)[0]
		r.Outcome, r.Final = job.Lost, false
		a.run(a.expected.Jobs[3], r.Due, 2, time.Second, job.Succeeded, true)
	}, ledger.Overlapping},
	"overlapping: with one much earlier that is longer than the next": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		r := rs[pick(len(rs)-3)]
		for _, e := range a.lines(r) {
			if e.Kind == ledger.End {
				e.At = e.At.Add(2*interval + interval/4)
			}
		}
	}, ledger.Overlapping},
	"early": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		for _, e := range a.lines(rs[pick(len(rs))]) {
			e.At = e.At.Add(-6 * time.Millisecond)
		}
	}, ledger.Early},
	"unfinished: it succeeded, they say, but it never ended": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		l := rs[pick(len(rs))].Launch.String()
		a.drop(func(e *ledger.Entry) bool { return e.Launch == l && e.Kind == ledger.End })
	}, ledger.Unfinished},
	"unfinished: started, and no run": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		a.dropRun(rs[pick(len(rs))])
	}, ledger.Unfinished},
	"unfinished: the only run is not final": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		rs[pick(len(rs))].Final = false
	}, ledger.Lost},
	"unfinished: it ended, and is lost though its session lives": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		forgotten(rs[pick(len(rs))], job.Lost)
	}, ledger.Unfinished},
	"unfinished: the last one that ended is lost though its session ended in order": {
		func(a *account, _ func(int) int) {
			a.expected.Sessions[session] = ledger.Left
			forgotten(a.runs("overlap", job.Succeeded)[dues-1], job.Lost)
		}, ledger.Unfinished},
	"unfinished: an attempt that ended is lost, and its session lived on until it was killed": {
		func(a *account, pick func(int) int) {
			delete(a.expected.Sessions, session)
			rs := a.runs("overlap", job.Succeeded)
			forgotten(rs[pick(len(rs)-3)], job.Lost)
		}, ledger.Unfinished},
	"unfinished: it never ended, and is lost though its session lives": {func(a *account, pick func(int) int) {
		rs := a.runs("rerun", job.Lost)
		a.expected.Sessions[rs[pick(len(rs))].Session] = ledger.Lives
	}, ledger.Unfinished},
	"not tried: lost, and nothing was started": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		a.neverStarted(rs[pick(len(rs))])
	}, ledger.NotTried},
	"not tried: all are lost, and nothing was started": {func(a *account, _ func(int) int) {
		a.expected.Unspawned = 4
		for _, r := range a.runs("short", job.Succeeded) {
			a.neverStarted(r)
		}
	}, ledger.NotTried},
	"not tried: lost for good, and it was to be started again": {func(a *account, pick func(int) int) {
		rs := a.runs("rerun", job.Lost)
		a.lastOf(rs[pick(len(rs))])
	}, ledger.NotTried},
	"not tried: failed for good, with an attempt left": {func(a *account, pick func(int) int) {
		rs := a.runs("retry", job.Failed)
		a.lastOf(rs[pick(len(rs))])
	}, ledger.NotTried},
	"not tried: missed, and somebody could start others": {func(a *account, pick func(int) int) {
		// The runs of retry fail then, and start again.
		a.neverWas(a.runs("short", job.Succeeded)[2*pick(dues/2)], job.Missed)
	}, ledger.NotTried},
	"not tried: every other due time was missed": {func(a *account, _ func(int) int) {
		for i, r := range a.runs("short", job.Succeeded) {
			if i%2 == 0 {
				a.neverWas(r, job.Missed)
			}
		}
	}, ledger.NotTried},
	"not tried: a range that was missed goes on until others were started": {func(a *account, _ func(int) int) {
		r := a.runs("missed", job.Missed)[0]
		a.neverWas(a.runs("missed", job.Succeeded)[0], job.Skipped)
		r.Until = r.Until.Add(interval)
		r.Count++
	}, ledger.NotTried},
	"not tried: skipped, though its runs may overlap": {func(a *account, pick func(int) int) {
		rs := a.runs("overlap", job.Succeeded)
		a.neverWas(rs[pick(len(rs))], job.Skipped)
	}, ledger.NotTried},
	"not tried: superseded, though its runs may overlap": {func(a *account, pick func(int) int) {
		rs := a.runs("overlap", job.Succeeded)
		a.neverWas(rs[pick(len(rs))], job.Superseded)
	}, ledger.NotTried},
	"contradictory: succeeded, and nothing was executed": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		l := rs[pick(len(rs))].Launch.String()
		a.drop(func(e *ledger.Entry) bool { return e.Launch == l })
	}, ledger.Contradictory},
	"contradictory: skipped, and executed": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		rs[pick(len(rs))].Outcome = job.Skipped
	}, ledger.Contradictory},
	"contradictory: succeeded with an exit code": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		for _, e := range a.lines(rs[pick(len(rs))]) {
			if e.Kind == ledger.End {
				e.Exit = 7
			}
		}
	}, ledger.Contradictory},
	"contradictory: failed, and it ended well": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		rs[pick(len(rs))].Outcome = job.Failed
	}, ledger.Contradictory},
	"contradictory: failed without an exit code, and it ended": {func(a *account, pick func(int) int) {
		rs := a.runs("retry", job.Failed)
		rs[pick(len(rs))].ExitCode = nil
	}, ledger.Contradictory},
	"contradictory: succeeded without an exit code": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		rs[pick(len(rs))].ExitCode = nil
	}, ledger.Contradictory},
	"contradictory: another exit code": {func(a *account, pick func(int) int) {
		rs := a.runs("retry", job.Failed)
		*rs[pick(len(rs))].ExitCode = 2
	}, ledger.Contradictory},
	"contradictory: killed, and nobody did": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		forgotten(rs[pick(len(rs))], job.Killed)
	}, ledger.Contradictory},
	"contradictory: killed by a signal, and nobody did": {func(a *account, pick func(int) int) {
		rs := a.runs("short", job.Succeeded)
		r := rs[pick(len(rs))]
		forgotten(r, job.Failed)
		r.Signal = "SIGKILL"
	}, ledger.Contradictory},
	"contradictory: timed out without a limit": {func(a *account, pick func(int) int) {
		delete(a.expected.Sessions, session)
		rs := a.runs("short", job.Succeeded)
		forgotten(rs[pick(len(rs))], job.TimedOut)
	}, ledger.Contradictory},
	"contradictory: a run of what is no due time": {func(a *account, pick func(int) int) {
		a.run(a.expected.Jobs[0], first.Add(time.Duration(pick(dues-1))*interval+5*time.Second), 1, time.Second,
			job.Succeeded, true)
	}, ledger.Contradictory},
	"contradictory: a range that counts wrong": {func(a *account, _ func(int) int) {
		a.runs("missed", job.Missed)[0].Count++
	}, ledger.Contradictory},
}

// TestCheckFindsFaults plants each fault in several places. Check must find it there and with the right
// kind, and must find nothing where no fault was planted.
func TestCheckFindsFaults(t *testing.T) {
	t.Parallel()

	if vs := well().check(); len(vs) != 0 {
		t.Fatalf("found in an account that is well: %v", vs)
	}

	for name, c := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for seed := range uint64(20) {
				a := well()
				r := rand.New(rand.NewPCG(seed, 1))
				c.plant(a, r.IntN)
				r.Shuffle(len(a.history), func(i, j int) { a.history[i], a.history[j] = a.history[j], a.history[i] })
				is := func(v ledger.Violation) bool { return v.Fault == c.want }
				if vs := a.check(); !slices.ContainsFunc(vs, is) {
					t.Errorf("seed %d: found %v, want something %s", seed, vs, c.want)
				}
			}
		})
	}
}

// TestSeveral plants several faults at once: none hides another.
func TestSeveral(t *testing.T) {
	t.Parallel()

	a := well()
	planted["early"].plant(a, func(int) int { return 0 })
	planted["unfinished: it succeeded, they say, but it never ended"].plant(a, func(int) int { return 3 })
	planted["overlapping: a killed one still showed signs of life"].plant(a, func(int) int { return 1 })
	planted["contradictory: a range that counts wrong"].plant(a, nil)
	got := ledger.Figures(a.check())
	want := "0 lost, 0 doubled, 1 overlapping, 1 early, 1 unfinished, 0 not tried, 1 contradictory"
	if got != want {
		t.Errorf("got %s, want %s: %v", got, want, a.check())
	}
}

// TestNothingLeftOut removes each line and each run in turn. Check must notice, except for signs of
// life.
func TestNothingLeftOut(t *testing.T) {
	t.Parallel()

	n := len(well().entries)
	for i := range n {
		a := well()
		e := a.entries[i]
		a.entries = slices.Delete(a.entries, i, i+1)
		r := a.history[slices.IndexFunc(a.history, func(r job.Run) bool { return r.Launch.String() == e.Launch })]
		if e.Kind == ledger.Alive || e.Kind == ledger.End && r.Outcome == job.Failed {
			continue // a killed attempt has no end either
		}
		if len(a.check()) == 0 {
			t.Errorf("not missed: %v", e)
		}
	}

	for i := range well().history {
		a := well()
		r := a.history[i]
		a.history = slices.Delete(a.history, i, i+1)
		if len(a.check()) == 0 {
			t.Errorf("not missed: %v", r)
		}
	}
}

// TestRunsOfPeople has manual runs next to scheduled ones.
func TestRunsOfPeople(t *testing.T) {
	t.Parallel()

	a := well()
	j := a.expected.Jobs[0]
	a.run(j, first.Add(interval), 1, time.Second, job.Succeeded, true)
	asked := &a.history[len(a.history)-1]
	asked.Kind, asked.Request = job.Manual, 17

	for _, e := range a.lines(asked) {
		e.At = e.At.Add(3 * time.Second)
	}

	if vs := a.check(); len(vs) != 0 {
		t.Errorf("found: %v", vs)
	}

	asked.Kind, asked.Request = job.FromSchedule, 0
	want := "0 lost, 3 doubled, 0 overlapping, 0 early, 0 unfinished, 0 not tried, 0 contradictory"
	if got := ledger.Figures(a.check()); got != want {
		t.Errorf("the same run by the schedule: got %s, want %s", got, want)
	}
}

// TestUnspawned: a session may lose a few runs that were starting when its node died.
func TestUnspawned(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ lost, may, found int }{{2, 2, 0}, {3, 2, 1}, {5, 2, 3}} {
		a := well()
		a.expected.Unspawned, a.expected.Sessions = c.may, nil

		for _, r := range a.runs("short", job.Succeeded)[:c.lost] {
			a.neverStarted(r)
		}

		other := a.runs("overlap", job.Succeeded)[0]
		a.drop(func(e *ledger.Entry) bool { return e.Launch == other.Launch.String() })
		other.Outcome, other.Session = job.Lost, uuid.MustParse("66666666-2222-3333-4444-555555555555")
		if vs := a.check(); len(vs) != c.found {
			t.Errorf("%d of a session were lost and not started, %d may be: found %v, want %d", c.lost, c.may, vs,
				c.found)
		}
	}
}

// TestEndedAtTheEnd: a run that ended right before its session was killed may be lost, and a run of
// a job that may be stopped may be killed.
func TestEndedAtTheEnd(t *testing.T) {
	t.Parallel()

	for what, change := range map[string]func(a *account){
		"lost": func(a *account) {
			delete(a.expected.Sessions, session)
			forgotten(a.runs("overlap", job.Succeeded)[dues-1], job.Lost)
		},
		"killed in a drain": func(a *account) {
			a.expected.Sessions[session] = ledger.Left
			forgotten(a.runs("overlap", job.Succeeded)[dues-1], job.Killed)
		},
		"killed by hand": func(a *account) {
			a.expected.Jobs[0].Stopped = true
			forgotten(a.runs("short", job.Succeeded)[0], job.Killed)
		},
		"timed out": func(a *account) {
			a.expected.Jobs[0].Stopped = true
			forgotten(a.runs("short", job.Succeeded)[1], job.TimedOut)
		},
	} {
		a := well()
		change(a)
		if vs := a.check(); len(vs) != 0 {
			t.Errorf("%s: found %v", what, vs)
		}
	}
}

// TestLostAgainAndAgain: a lost run is started again, but not for ever.
func TestLostAgainAndAgain(t *testing.T) {
	t.Parallel()

	for attempts := 1; attempts <= job.LostAttempts; attempts++ {
		a := &account{}
		j := ledger.Job{ID: 1, Name: "rerun", Rerun: true, Dues: ledger.Every(interval, first, first+1)}
		a.expected.Jobs = []ledger.Job{j}

		for n := 1; n <= attempts; n++ {
			a.run(j, first, n, time.Second, job.Lost, n == attempts)
		}

		if vs := a.check(); (len(vs) == 0) != (attempts == job.LostAttempts) {
			t.Errorf("lost %d times: found %v", attempts, vs)
		}
	}
}

// TestLater ignores due times after the last expected one.
func TestLater(t *testing.T) {
	t.Parallel()
	a := well()
	for i := range a.expected.Jobs {
		a.expected.Jobs[i].Dues = a.expected.Jobs[i].Dues[:dues-2]
	}
	if vs := a.check(); len(vs) != 0 {
		t.Errorf("found: %v", vs)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(ledger.Outcomes(well().history))
	if want := "map[succeeded:45 missed:5]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
