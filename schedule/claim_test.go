package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

// twoBuckets creates a job in a bucket that this session prefers, and one in a bucket that another does.
func (f *fixture) twoBuckets(mine, theirs func(name string) job.Spec) (m, o job.Job) {
	f.Helper()
	f.session.index, f.session.of = 0, 2
	for i := 0; m.ID == 0 || o.ID == 0; i++ {
		name := fmt.Sprint(i)
		if even := bucketOf(job.HashOf(job.DefaultApp, name), 16)%2 == 0; even && m.ID == 0 {
			m = f.create(mine(name))
		} else if !even && o.ID == 0 {
			o = f.create(theirs(name))
		}
	}
	return m, o
}

// prepared lists the due times of the prepare set, seconds after t0.
func (f *fixture) preparedDues() (out []float64) {
	f.Helper()
	for _, it := range f.prepared.byTask {
		out = append(out, it.Due.Sub(t0).Seconds())
		if !f.prepared.Has(it.ID, it.Launch) {
			f.Errorf("the set does not know task %d, which it holds", it.ID)
		}
		f.want("its row", 1, "SELECT COUNT(*) FROM task WHERE id = ? AND state = 1 AND session_id = ? AND launch = ?", it.ID, it.Launch.Session[:], it.Launch.N)
	}
	slices.Sort(out)
	f.want("rows that are prepared for this session", int64(len(out)), "SELECT COUNT(*) FROM task WHERE state = 1 AND session_id = ?", f.session.id[:])
	return out
}

// TestClaimLooksAhead: in buckets that it prefers a session claims what is due soon, in others only what is neglected,
// or urgent when it was told of it.
func TestClaimLooksAhead(t *testing.T) {
	f := setUp(t)
	series := func(name string) job.Spec { return every(name, 500*time.Millisecond, -2*time.Second) }
	for name, c := range map[string]struct {
		others       time.Duration
		mine, theirs float64 // the last due times that are claimed
	}{
		"a regular look": {-neglected, 9.5, -1.5},
		"told of a task": {urgent, 9.5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.session.set(after(-3 * time.Second))
			mine, theirs := f.twoBuckets(series, series)
			f.session.set(t0)
			if _, err := f.claimer.claim(t.Context(), t0, c.others); err != nil {
				t.Fatal(err)
			}
			f.preparedDues()
			last := "SELECT MAX(due) FROM task WHERE state = 1 AND job_id = ?"
			f.want("mine, claimed up to", int64(after(time.Duration(c.mine*1e9))), last, mine.ID)
			f.want("theirs, claimed up to", int64(after(time.Duration(c.theirs*1e9))), last, theirs.ID)
			f.want("gaps", 0, "SELECT COUNT(*) FROM task a JOIN task b ON a.job_id = b.job_id AND a.due < b.due WHERE a.state = 0 AND b.state = 1")
		})
	}
}

// TestClaimStaysWithinBounds: a session takes no more than it may hold, and nothing when it is full or not sure of its
// lease.
func TestClaimStaysWithinBounds(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		change func(f *fixture)
		now    time.Duration
		want   int // tasks in the set after two looks
	}{
		"room for all":                       {func(*fixture) {}, 0, 20},
		"the cap":                            {func(f *fixture) { f.claimer.Cap = 7 }, 0, 7},
		"the cap, less what executes":        {func(f *fixture) { f.claimer.Cap = 7; f.executing.added = make([]job.Started, 3) }, 0, 4},
		"no free slot":                       {func(f *fixture) { f.executing.slots = 0 }, 0, 0},
		"a stale lease":                      {func(f *fixture) { f.session.stale = true }, 0, 0},
		"due already: the slots, twice":      {func(f *fixture) { f.executing.slots, f.claimer.Slots = 3, 3 }, time.Hour, 6},
		"due already: one slot is free of 3": {func(f *fixture) { f.executing.slots, f.claimer.Slots, f.executing.added = 3, 3, make([]job.Started, 2) }, time.Hour, 4},
		"ahead: slots do not matter":         {func(f *fixture) { f.executing.slots, f.claimer.Slots = 3, 3 }, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.create(every("j", 500*time.Millisecond, 200*time.Millisecond)) // 20 of them in the next 10 s
			f.exec("DELETE FROM task WHERE due > ?", int64(after(10*time.Second)))
			c.change(f)
			now := after(c.now)
			f.session.set(now)
			for range 2 {
				if _, err := f.claimer.claim(t.Context(), now, -neglected); err != nil {
					t.Fatal(err)
				}
			}
			got := f.preparedDues()
			if len(got) != c.want {
				t.Errorf("got %d tasks, want %d", len(got), c.want)
			}
			for i, due := range got {
				if want := 0.2 + 0.5*float64(i); due < want-0.001 || due > want+0.001 {
					t.Errorf("got due times %v, want the earliest ones", got)
					break
				}
			}
		})
	}
}

// TestClaimsMintLaunches: no launch comes twice, whatever the order of ids.
func TestClaimsMintLaunches(t *testing.T) {
	f := setUp(t)
	seen := map[job.Launch]bool{}
	for i := range 5 {
		f.create(every(fmt.Sprint(i), 700*time.Millisecond, time.Duration(9-i)*time.Second))
		if _, err := f.claimer.claim(t.Context(), t0, -neglected); err != nil {
			t.Fatal(err)
		}
		f.preparedDues()
		for _, it := range f.prepared.byTask {
			if it.Launch.Session != f.session.id || it.Launch.N < 1 || it.Launch.N > f.session.counter {
				t.Errorf("got launch %s, want one of those that were reserved, up to %d", it.Launch, f.session.counter)
			}
			if seen[it.Launch] {
				t.Errorf("launch %s was given twice", it.Launch)
			}
			seen[it.Launch] = true
		}
		f.exec("DELETE FROM task WHERE state = 1")
		f.prepared.Forget()
	}
	if len(seen) == 0 {
		t.Error("nothing was claimed")
	}
}

// TestClaimFates: whatever becomes of a claim's commit, set and rows say the same, and what another session took while
// it was unknown is not in the set.
func TestClaimFates(t *testing.T) {
	f := setUp(t)
	commit := faultproxy.CommitOf("SET state = 1")
	for name, c := range map[string]struct {
		action faultproxy.Action
		taken  bool // by another session, before it is settled
		want   int
	}{
		"the reply is lost":                               {faultproxy.CutAfter(), false, 3},
		"the commit never arrives":                        {faultproxy.CutBefore(), false, 0},
		"it never arrives, and another session is faster": {faultproxy.CutBefore(), true, 0},
		"the reply is lost, and a peer took one of them":  {faultproxy.CutAfter(), true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.create(every("j", time.Second, time.Second))
			f.exec("DELETE FROM task WHERE due > ?", int64(after(3*time.Second)))
			f.proxy.Add(faultproxy.Rule{Match: commit, Action: c.action})
			begun := 0
			f.proxy.OnCommand(func(cmd faultproxy.Command) {
				if faultproxy.SQL("FROM task .* FOR UPDATE")(cmd) {
					if begun++; begun == 2 && c.taken { // the settling read
						f.exec("UPDATE task SET state = 1, session_id = 'somebody else', launch = 1 WHERE due = ?", int64(after(2*time.Second)))
					}
				}
			})
			if _, err := f.claimer.claim(t.Context(), t0, -neglected); err != nil {
				t.Fatal(err)
			}
			if got := f.preparedDues(); len(got) != c.want {
				t.Errorf("got %v in the set, want %d of them", got, c.want)
			}
		})
	}
}

// TestClaimBesideKeptRows: tasks whose rows somebody keeps locked hold up no others, though they come first and are as many
// as there is room for, nor a claim whose reply is lost.
func TestClaimBesideKeptRows(t *testing.T) {
	f := setUp(t)
	f.executing.slots, f.claimer.Slots = 3, 3 // room for 6
	keptJob := f.create(every("kept", 500*time.Millisecond, 500*time.Millisecond))
	f.create(every("other", 500*time.Millisecond, 4*time.Second))
	f.exec("DELETE FROM task WHERE job_id = ? AND due > ? OR due > ?", keptJob.ID, int64(after(3500*time.Millisecond)), int64(after(6*time.Second)))
	release := f.keep("SELECT id FROM task WHERE job_id = ? FOR UPDATE", keptJob.ID)
	now := after(time.Minute)
	f.session.set(now)
	began := time.Now()
	if n, err := f.claimer.claim(t.Context(), now, -neglected); n != 0 || err != nil {
		t.Errorf("of 6 that are locked: got %d claimed, %v", n, err)
	}
	f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("SET state = 1"), Action: faultproxy.CutAfter()})
	if _, err := f.claimer.claim(t.Context(), now, -neglected); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("the looks took %s: they waited for what is locked", took)
	}
	if got := len(f.preparedDues()); got != 5 {
		t.Errorf("got %d claimed beside it, want the 5 that are free", got)
	}
	release()
	f.executing.slots, f.claimer.Slots = 100, 100
	if _, err := f.claimer.claim(t.Context(), now, -neglected); err != nil {
		t.Error(err)
	}
	if got := len(f.preparedDues()); got != 12 {
		t.Errorf("got %d claimed once it is free, want all 12", got)
	}
}

// TestClaimersShareABacklog: who has enough to do leaves to others what prefers them, unless that is older, or of a high
// priority.
func TestClaimersShareABacklog(t *testing.T) {
	series := func(name string) job.Spec { return every(name, 100*time.Millisecond, -10*time.Second) }
	for name, c := range map[string]struct {
		set  string // of all of theirs, behind the first look
		want int64  // how many of theirs the second one claims
	}{
		"as old as mine":     {"hash = hash", 0},
		"much older":         {"due_now = due_now - 20000000", 3},
		"of a high priority": {"priority = 1", 3},
		"of a low priority":  {"priority = -1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			f.session.set(after(-10 * time.Second))
			mine, theirs := f.twoBuckets(series, series)
			f.exec("UPDATE task SET due_now = due_now - 1 WHERE job_id = ?", mine.ID) // the first look begins with mine
			f.session.set(t0)
			look := func(cap int) {
				t.Helper()
				f.claimer.Cap, f.claimer.search = cap, 0
				if _, err := f.claimer.claim(t.Context(), t0, -neglected); err != nil {
					t.Fatal(err)
				}
			}
			look(1)
			f.want("mine after the first look", 1, "SELECT COUNT(*) FROM task WHERE state = 1 AND job_id = ?", mine.ID)
			f.exec("UPDATE task SET "+c.set+" WHERE job_id = ?", theirs.ID)
			look(4)
			f.want("mine and theirs", 4, "SELECT COUNT(*) FROM task WHERE state = 1")
			f.want("theirs", c.want, "SELECT COUNT(*) FROM task WHERE state = 1 AND job_id = ?", theirs.ID)
		})
	}
}

// TestClaimersOfOnePriority: where all have a high one, what prefers another session is taken once it is the older one, too.
func TestClaimersOfOnePriority(t *testing.T) {
	f := setUp(t)
	f.session.set(after(-10 * time.Second))
	series := func(name string) job.Spec { return every(name, 100*time.Millisecond, -10*time.Second) }
	mine, theirs := f.twoBuckets(series, series)
	f.exec("UPDATE task SET priority = 5, due_now = due_now - IF(job_id = ?, 0, 10000000)", theirs.ID)
	f.session.set(t0)
	for n := 1; n <= 31; n += 3 {
		if f.claimer.Cap = n; n == 4 {
			f.exec("UPDATE task SET due_now = due_now - 10500000 WHERE job_id = ?", theirs.ID)
		}
		if _, err := f.claimer.claim(t.Context(), t0, -neglected); err != nil {
			t.Fatal(err)
		}
		if n == 4 {
			f.want("mine, which are as old", 4, "SELECT COUNT(*) FROM task WHERE state = 1 AND job_id = ?", mine.ID)
		}
	}
	if f.number("SELECT COUNT(*) FROM task WHERE state = 1 AND job_id = ?", theirs.ID) == 0 {
		t.Error("none of theirs are claimed")
	}
}
