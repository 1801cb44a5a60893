package session

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestWhoIsBuried holds when a peer is taken for dead: its beat must have stood still for longer than the expiry on
// this node's own clock, and be farther than that from MySQL's.
func TestWhoIsBuried(t *testing.T) {
	f := setUp(t)
	const expiry = MinExpiry
	for name, c := range map[string]struct {
		waited time.Duration // between two looks, on this node's own clock
		beats  string        // what happens to the peer's row between the looks
		step   time.Duration // of MySQL's clock, as this node reads it
		stale  bool          // this node's own lease
		buried bool
	}{
		"silent by both clocks":                               {expiry + 1, "beat_at = beat_at - 6e6", 0, false, true},
		"silent for just the expiry on our clock":             {expiry, "beat_at = beat_at - 6e6", 0, false, false},
		"not long on our clock, whatever MySQL's says":        {expiry - time.Second, "beat_at = 1", 0, false, false},
		"long on our clock, not by MySQL's":                   {time.Hour, "beat_at = beat_at", 0, false, false},
		"MySQL's clock was put forward by a day":              {time.Second, "beat_at = beat_at", 24 * time.Hour, false, false},
		"we slept while it beat":                              {time.Hour, "beat = beat + 1, beat_at = 1", 24 * time.Hour, false, false},
		"one beat came, and MySQL's clock was put forward":    {expiry + 1, "beat = beat + 1", 24 * time.Hour, false, false},
		"silent by both, and MySQL's clock was put back":      {expiry + 1, "beat_at = beat_at - 6e6", -24 * time.Hour, false, true},
		"not long, and MySQL's clock was put back":            {expiry - time.Second, "beat_at = beat_at", -24 * time.Hour, false, false},
		"a beat that no clock ever showed":                    {expiry + 1, "beat_at = 9223372036854775807", 0, false, true},
		"one from long before any clock":                      {expiry + 1, "beat_at = -9223372036854775807", 0, false, true},
		"silent by both, but our own lease is stale":          {time.Hour, "beat_at = 1", 0, true, false},
		"a row that was there before, of another life's beat": {expiry + 1, "beat = beat - 1, beat_at = 1", 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			s := f.join("one")
			peer := f.peer(200)
			r, _ := f.reaper(s)
			look := func(mono time.Duration) {
				t.Helper()
				if err := r.reap(t.Context(), at(mono)); err != nil {
					t.Fatal(err)
				}
			}
			start := 1000 * time.Hour
			look(start)
			f.exec("UPDATE session SET "+c.beats+" WHERE id = ?", peer[:])
			now := time.Now()
			took(s.Clock, now, now, s.Clock.Now().Add(c.step))
			if c.stale {
				s.lease.clock = func() time.Duration { return time.Duration(s.lease.sent.Load()) + s.Timings.Stale + 1 }
			}
			look(start + c.waited)
			if buried := !f.lives(peer); buried != c.buried {
				t.Errorf("got buried %v, want %v", buried, c.buried)
			}
			if !f.lives(s.id) {
				t.Error("it buried itself")
			}
		})
	}
}

// TestFirstLookBuriesNobody: who has just come has watched nobody, however old the beats are.
func TestFirstLookBuriesNobody(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", s.id[:])
	r, _ := f.reaper(s)
	for mono := range 3 {
		if err := r.reap(t.Context(), at(time.Duration(mono)*(MinExpiry/2))); err != nil {
			t.Fatal(err)
		}
		if !f.lives(peer) || !f.lives(s.id) {
			t.Errorf("look %d buried somebody", mono+1)
		}
	}
	if err := r.reap(t.Context(), at(MinExpiry+1)); err != nil || f.lives(peer) || !f.lives(s.id) {
		t.Errorf("after the expiry: peer lives %v, own session lives %v, %v; want false, true", f.lives(peer), f.lives(s.id), err)
	}
}

// TestSilenceCountsFromTheLastBeat: each beat that is seen starts the waiting anew, and the last one is followed by a
// burial.
func TestSilenceCountsFromTheLastBeat(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	r, _ := f.reaper(s)
	mono := time.Duration(0)
	for range 4 {
		f.exec("UPDATE session SET beat = beat + 1, beat_at = 1 WHERE id = ?", peer[:])
		for _, wait := range []time.Duration{0, MinExpiry - 1, 1} {
			mono += wait
			if err := r.reap(t.Context(), at(mono)); err != nil || !f.lives(peer) {
				t.Fatalf("%s after its beat: peer lives %v, %v", wait, f.lives(peer), err)
			}
		}
	}
	if err := r.reap(t.Context(), at(mono+1)); err != nil || f.lives(peer) {
		t.Errorf("silent for longer than the expiry: peer lives %v, %v", f.lives(peer), err)
	}
}

// at is a clock that stands still.
func at(mono time.Duration) func() time.Duration { return func() time.Duration { return mono } }

// TestALookThatTakesLong: silence counts from when a beat was seen, and not from when somebody began to look for it.
func TestALookThatTakesLong(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	r, _ := f.reaper(s)
	mono := time.Duration(0)
	slow := func() time.Duration { now := mono; mono += 3 * time.Second; return now } // each look takes 3 s
	if err := r.reap(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	seen := mono - 3*time.Second
	if err := r.reap(t.Context(), at(seen+MinExpiry)); err != nil || !f.lives(peer) {
		t.Errorf("silent for just the expiry: peer lives %v, %v", f.lives(peer), err)
	}
	if err := r.reap(t.Context(), at(seen+MinExpiry+1)); err != nil || f.lives(peer) {
		t.Errorf("silent for longer than the expiry: peer lives %v, %v", f.lives(peer), err)
	}
}

// TestBeatBeforeTheBurial: a beat that arrives between the look and the burial saves the session.
func TestBeatBeforeTheBurial(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	peer := f.peer(200)
	f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", peer[:])
	r, _ := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if faultproxy.SQL("DELETE FROM session")(c) {
			f.exec("UPDATE session SET beat = beat + 1 WHERE id = ?", peer[:])
		}
	})
	if err := r.reap(t.Context(), at(2*MinExpiry)); err != nil || !f.lives(peer) {
		t.Errorf("got peer lives %v, %v; want true", f.lives(peer), err)
	}
}

// TestTasksOfTheDead: of sessions without a row, what was only prepared goes back to idle, and what was executing ends
// lost. Nobody touches what the living own, this session's own tasks included.
func TestTasksOfTheDead(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead, living := f.peer(201), f.peer(202)
	r, changed := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err != nil { // it learns their names
		t.Fatal(err)
	}
	*changed = 0
	deadJob, livingJob, ownJob := f.owned(dead, 450, 3), f.owned(living, 2, 2), f.owned(s.id, 2, 2)
	f.exec("UPDATE task SET started = 2100 WHERE job_id = ? AND due = 1451", deadJob) // started late
	f.exec("DELETE FROM session WHERE id = ?", dead[:])
	if err := r.reap(t.Context(), at(1)); err != nil {
		t.Fatal(err)
	}
	const free = "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0 AND session_id = DEFAULT(session_id) AND launch = 0 AND started = 0 AND spawn_by = 0 AND attempt = 1"
	f.want("idle tasks of the dead one's job", 450, free, deadJob)
	f.want("tasks of the dead one's job", 450, "SELECT COUNT(*) FROM task WHERE job_id = ?", deadJob)
	for what, id := range map[string]int64{"living": livingJob, "own": ownJob} {
		f.want("tasks that the "+what+" session prepared", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 1", id)
		f.want("tasks that the "+what+" session executes", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 2", id)
	}
	if *changed == 0 {
		t.Error("nobody was told that tasks are idle")
	}
	runs, err := f.beside.Runs(t.Context(), sql.RunFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 3 {
		t.Errorf("got %d runs, want 3", len(runs))
	}
	for _, got := range runs {
		i := int64(got.Due) - 1000
		want := job.Run{
			Launch: job.Launch{Session: dead, N: deadJob*100_000 + i}, JobID: deadJob, Due: got.Due, Until: got.Due, Count: 1, Attempt: 1, Final: true,
			Started: job.Micros(2000 + i), Ended: got.Ended, Node: "peer", Result: job.Result{Outcome: job.Lost, Reason: "its node vanished while it was running"},
		}
		if got.Due == 1451 { // spawned after it was due, because it was started after that
			want.Started, want.Lateness = 2451, 0
		}
		if got.Run.Output.Head, got.Run.Output.Tail = nil, nil; !same(got.Run, want) {
			t.Errorf("run due %d: got %+v, want %+v", got.Due, got.Run, want)
		}
		if now := s.Now(); got.Ended > now || now.Sub(got.Ended) > time.Minute {
			t.Errorf("run due %d: got end %s, want about %s", got.Due, got.Ended, now)
		}
	}
	*changed = 0
	if err := r.reap(t.Context(), at(2)); err != nil || *changed != 0 {
		t.Errorf("the next look: got %v, told %d times; want it to find nothing", err, *changed)
	}
}

func same(a, b job.Run) bool {
	a.ExitCode, b.ExitCode = nil, nil
	return a.Launch == b.Launch && a.JobID == b.JobID && a.Due == b.Due && a.Until == b.Until && a.Count == b.Count && a.Origin == b.Origin && a.Attempt == b.Attempt &&
		a.Final == b.Final && a.Started == b.Started && a.Ended == b.Ended && a.Lateness == b.Lateness && a.Node == b.Node && a.Outcome == b.Outcome && a.Reason == b.Reason
}

// TestRowsThatMovedAreLeft: what somebody else did to a dead session's task between the list and the lock stands.
func TestRowsThatMovedAreLeft(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead, rejoined := uuid.UUID{0: 201}, f.peer(203)
	jobID := f.owned(dead, 2, 2)
	rows, err := f.beside.SessionTasks(t.Context(), dead, 0, 10)
	if err != nil || len(rows) != 4 {
		t.Fatalf("got %d rows, %v", len(rows), err)
	}
	f.exec("UPDATE task SET session_id = ?, launch = launch + 1 WHERE id IN (?, ?)", rejoined[:], rows[0].ID, rows[2].ID)
	f.exec("DELETE FROM task WHERE id = ?", rows[3].ID)
	r, _ := f.reaper(s)
	if _, err := r.orphans().freeBatch(t.Context(), dead, rows, false, false); err != nil {
		t.Fatal(err)
	}
	f.want("tasks of the other session", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND session_id = ? AND state > 0", jobID, rejoined[:])
	f.want("idle tasks", 1, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0", jobID)
	f.want("runs", 0, "SELECT COUNT(*) FROM history")
}

// TestRecordOfTheDeadIsThere: history has a record of the due time of a run that is lost. Its task does not stay for ever.
func TestRecordOfTheDeadIsThere(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	dead := uuid.UUID{0: 201}
	jobID := f.owned(dead, 1, 4)
	f.exec("INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) VALUES (?, 1002, 'somebody else', 1, 5, 1002, 1)", jobID)
	r, _ := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	f.want("tasks of the dead", 0, "SELECT COUNT(*) FROM task WHERE session_id = ?", dead[:])
	f.want("tasks that were prepared", 1, "SELECT COUNT(*) FROM task WHERE job_id = ?", jobID)
	f.want("records", 4, "SELECT COUNT(*) FROM history WHERE job_id = ?", jobID)
}

// TestLockedRowKeepsNoTaskBesideIt: while somebody holds the row of one job, a task, or a group, what is of the same dead session
// and needs it not is freed, without a wait for it.
func TestLockedRowKeepsNoTaskBesideIt(t *testing.T) {
	for what, query := range map[string]string{
		"a job": "SELECT id FROM job WHERE id = ? FOR UPDATE", "a task": "SELECT id FROM task WHERE job_id = ? FOR UPDATE",
		"a group": "SELECT id FROM grp WHERE ? > 0 AND name = 'g' FOR UPDATE",
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			s := f.join("one")
			dead := uuid.UUID{0: 201}
			locked, free := f.owned(dead, 1, 1), f.owned(dead, 2, 2)
			f.exec("INSERT INTO grp (name, slots, created, updated) VALUES ('g', 1, 1, 1)")
			f.exec(`UPDATE job SET spec = JSON_SET(spec, '$.group', 'g') WHERE id = ?`, locked)
			holder, err := f.beside.Raw().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(query, locked); err != nil {
				t.Fatal(err)
			}
			r, _ := f.reaper(s)
			busy, err := r.orphans().freeAll(t.Context(), dead, false)
			if err != nil || busy != 2 {
				t.Errorf("got %d, %v; want two that are busy", busy, err)
			}
			const owned = "SELECT COUNT(*) FROM task WHERE job_id = ? AND state > 0"
			f.want("tasks beside the lock", 2, owned, locked)
			f.want("tasks of the other job", 0, owned, free)
			if err := holder.Rollback(); err != nil {
				t.Fatal(err)
			}
			if err := r.orphans().Free(t.Context(), dead); err != nil {
				t.Fatal(err)
			}
			f.want("tasks of the job that is free again", 0, owned, locked)
		})
	}
}

// TestLockedRowKeepsNoOther: while somebody holds the row of one job, what others of the dead owned is freed all the same.
func TestLockedRowKeepsNoOther(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	one, two := uuid.UUID{0: 201}, uuid.UUID{0: 202}
	locked, free := f.owned(one, 2, 2), f.owned(two, 2, 2)
	holder, err := f.beside.Raw().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec("SELECT id FROM job WHERE id = ? FOR UPDATE", locked); err != nil {
		t.Fatal(err)
	}
	r, _ := f.reaper(s)
	if err := r.reap(t.Context(), at(0)); err == nil {
		t.Error("what could not be freed is not told")
	}
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	const owned = "SELECT COUNT(*) FROM task WHERE job_id = ? AND state > 0"
	f.want("tasks of the job that was locked", 4, owned, locked)
	f.want("tasks of the other", 0, owned, free)
	if err := r.reap(t.Context(), at(1)); err != nil {
		t.Fatal(err)
	}
	f.want("tasks of the job that is free again", 0, owned, locked)
}

// TestNewcomerIsNotTakenForDead: a session registers, claims and starts between the two readings of a look.
func TestNewcomerIsNotTakenForDead(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	r, _ := f.reaper(s)
	reading := faultproxy.SQL("DISTINCT session_id|FROM session s")
	var readings atomic.Int64
	var jobID int64
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if reading(c) && readings.Add(1) == 2 { // whichever comes second
			jobID = f.owned(f.peer(204), 1, 1)
		}
	})
	if err := r.reap(t.Context(), at(0)); err != nil {
		t.Fatal(err)
	}
	if readings.Load() != 2 {
		t.Fatalf("a look has %d readings, want 2", readings.Load())
	}
	f.want("tasks of the newcomer", 2, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state > 0", jobID)
}

// TestUnknownBurial: whatever stands of a burial and of a release whose answers were lost, the next looks end it.
func TestUnknownBurial(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			s := f.join("one")
			dead := f.peer(201)
			f.exec("UPDATE session SET beat_at = 1 WHERE id = ?", dead[:])
			jobID := f.owned(dead, 3, 3)
			r, _ := f.reaper(s)
			for _, statement := range []string{"DELETE FROM session", "SET state = 0"} {
				f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(statement), Action: fate})
			}
			failed := 0
			for look := range 6 {
				if err := r.reap(t.Context(), at(time.Duration(look)*(MinExpiry+1))); err != nil {
					failed++
				}
			}
			if failed != 2 {
				t.Errorf("got %d looks that failed, want 2", failed)
			}
			if f.lives(dead) {
				t.Error("the dead session has its row still")
			}
			f.want("idle tasks", 3, "SELECT COUNT(*) FROM task WHERE job_id = ? AND state = 0", jobID)
			f.want("lost runs", 3, "SELECT COUNT(*) FROM history WHERE job_id = ? AND outcome = 5", jobID)
		})
	}
}

// TestMembers: the work is shared by those that are alive and do not drain, and whoever claims is told of changes.
func TestMembers(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	r, changed := f.reaper(s)
	mono := time.Duration(0)
	check := func(what string, index, of int, told bool) {
		t.Helper()
		*changed = 0
		if err := r.reap(t.Context(), at(mono)); err != nil {
			t.Fatal(err)
		}
		i, n, _ := s.Share()
		if i != index || n != of || (*changed > 0) != told {
			t.Errorf("%s: got share %d of %d, told %d times; want %d of %d, told: %v", what, i, n, *changed, index, of, told)
		}
		if m := s.members.Load(); !slices.IsSortedFunc(m.IDs, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
			t.Errorf("%s: got members %v, want them in one order on all nodes", what, m.IDs)
		}
	}
	check("alone", 0, 1, true)
	check("still alone", 0, 1, false)
	low, high := uuid.UUID{15: 1}, uuid.UUID{0: 255, 1: 255}
	f.exec("INSERT INTO session (id, node, started, beat_at) VALUES (?, 'low', 1, 1), (?, 'high', 1, 1)", low[:], high[:])
	check("with two others", 1, 3, true)
	f.exec("UPDATE session SET draining = 1 WHERE id = ?", low[:])
	check("one of them drains", 0, 2, true)
	f.exec("UPDATE session SET draining = 1 WHERE id = ?", s.id[:])
	check("we drain", -1, 1, true)
	f.exec("UPDATE session SET draining = 0 WHERE id = ?", s.id[:])
	mono += MinExpiry + 1
	check("the others are dead", 0, 1, true)
}

func TestReaperRuns(t *testing.T) {
	f := setUp(t)
	s := f.join("one")
	s.Timings.Scan = 10 * time.Millisecond
	jobID := f.owned(uuid.UUID{0: 201}, 1, 0)
	r, _ := f.reaper(s)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	for until := time.Now().Add(10 * time.Second); f.number("SELECT state FROM task WHERE job_id = ?", jobID) != 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("not within 10 s: a dead session's task is idle")
		}
	}
	end()
	if err := <-done; err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
