package schedule

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/sql"
)

// group makes a group or changes its slots.
func (f *fixture) group(name string, slots int) {
	f.Helper()
	if _, err := f.editor.PutGroup(f.Context(), name, slots); err != nil {
		f.Fatal(err)
	}
}

// sweep moves the clock and has a sweeper take one look; then what it woke is claimed and started.
func (f *fixture) sweep(now job.Micros) {
	f.Helper()
	f.session.set(now)
	if err := f.sweeper().sweep(f.Context(), now); err != nil {
		f.Fatal(err)
	}
	f.reach(now)
}

// succeed ends the attempts of a job as its node would that knows nothing of what others wait for.
func (f *fixture) succeed(id int64) {
	f.Helper()
	var left []job.Started
	for _, s := range f.executing.added {
		if s.JobID != id {
			left = append(left, s)
		}
	}
	keep := f.executing.added
	f.executing.added = nil
	for _, s := range keep {
		if s.JobID == id {
			f.executing.added = append(f.executing.added, s)
		}
	}
	f.finish()
	f.executing.added = left
}

func (f *fixture) executes(jobs ...job.Job) {
	f.Helper()
	var want []string
	for _, j := range jobs {
		want = append(want, j.Spec.Name)
	}
	var got []string
	for _, s := range f.executing.added {
		got = append(got, s.Spec.Name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("%v execute, want %v", got, want)
	}
}

// TestEditWakes: what waits under the old definition is looked at by the new one at once: it may wait for nothing any
// more that anybody would wake it for.
func TestEditWakes(t *testing.T) {
	f := setUp(t)
	f.group("g", 1)
	long, short := at("long", t0), at("short", after(time.Second))
	long.Group, short.Group = "g", "g"
	a, b := f.create(long), f.create(short)
	f.reach(t0)
	f.reach(after(time.Second))
	f.executes(a)
	f.want("who waits for the slot", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 2")
	f.update(a, func(s *job.Spec) { s.Group = "" })
	f.update(b, func(s *job.Spec) { s.Group = "" })
	if err := f.editor.DeleteGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	f.sweep(after(3 * time.Second))
	f.executes(a, b)
}

// TestQueueOfAJobThatMayOverlapNow: what a queue held goes on under overlap allow, also while runs never cease: nobody
// wakes it then, since no end of such a run is awaited.
func TestQueueOfAJobThatMayOverlapNow(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, 0)
	spec.Overlap, spec.Queue = job.OverlapQueue, 10
	f.session.set(after(-time.Second))
	j := f.create(spec)
	for i := range 4 {
		f.reach(after(time.Duration(i) * time.Second))
	}
	f.want("who waits", 3, "SELECT COUNT(*) FROM waiting")
	f.update(j, func(s *job.Spec) { s.Overlap, s.Queue = job.OverlapAllow, 0 })
	f.sweep(after(5 * time.Second))
	f.want("who waits still", 0, "SELECT COUNT(*) FROM waiting")
	if n := len(f.executing.added); n < 5 {
		f.Errorf("%d execute, want them all", n)
	}
}

// TestParkedTaskHoldsNoSlot: a task that was woken with a slot of its group, and then finds no node, gives it to another,
// and does not have it still when there is a node again.
func TestParkedTaskHoldsNoSlot(t *testing.T) {
	f := setUp(t)
	m := f.with(map[string]string{"zone": "a"}, map[string]string{"zone": "b"})
	f.group("g", 1)
	first, far, near := at("first", t0), at("far", after(time.Second)), at("near", after(1500*time.Millisecond))
	first.Group, far.Group, near.Group, far.Selector = "g", "g", "g", "zone=a"
	a, b, c := f.create(first), f.create(far), f.create(near)
	f.reach(t0)
	f.reach(after(time.Second))
	f.reach(after(3 * time.Second))
	f.executes(a)
	f.want("who waits for the slot", 2, "SELECT COUNT(*) FROM waiting WHERE kind = 2")

	// far gets the slot, and the nodes of its zone go.
	f.succeed(a.ID)
	f.session.set(after(4 * time.Second))
	if err := f.sweeper().sweep(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("who was woken", 1, "SELECT COUNT(*) FROM task JOIN slot ON task_id = id WHERE state = 0 AND job_id = ?", b.ID)
	own := m.labels[0]
	m.labels, m.seen = []map[string]string{{"zone": "b"}}, 2
	f.session.set(after(8 * time.Second))
	if err := f.sweeper().unplaced(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("who waits for a node", 1, "SELECT COUNT(*) FROM waiting WHERE kind = 3 AND job_id = ?", b.ID)
	f.sweep(after(9 * time.Second))
	f.executes(c)

	m.labels, m.seen = []map[string]string{own}, 3
	f.session.set(after(10 * time.Second))
	if err := f.sweeper().unplaced(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("who waits for a node", 0, "SELECT COUNT(*) FROM waiting WHERE kind = 3")
	f.reach(after(12 * time.Second))
	f.executes(c)
	f.succeed(c.ID)
	f.sweep(after(14 * time.Second))
	f.executes(b)
}

// TestReplaceByTheLater: it is the later due time that takes the place of the earlier one, whichever is started first.
func TestReplaceByTheLater(t *testing.T) {
	f := setUp(t)
	replace := func(name string) job.Spec {
		s := every(name, 10*time.Second, 0)
		s.Overlap, s.Misfire.Policy = job.OverlapReplace, job.MisfireAll
		s.Retry = job.Retry{Attempts: 2, Backoff: job.Duration(15 * time.Second)}
		return s
	}
	t.Run("a retry while a later one executes", func(t *testing.T) {
		f := f.anew(t)
		f.session.set(after(-time.Second))
		j := f.create(replace("j"))
		f.reach(t0)
		f.retry(j.ID, after(15*time.Second))
		f.reach(after(10 * time.Second))
		f.reach(after(15 * time.Second))
		f.want("who is to be killed", 0, "SELECT COUNT(*) FROM task WHERE kill_requested > 0")
		f.want("superseded", 1, "SELECT COUNT(*) FROM history WHERE outcome = 8 AND due = ?", int64(t0))
		f.want("who waits", 0, "SELECT COUNT(*) FROM waiting")
	})
	t.Run("one that was prepared on a node that died", func(t *testing.T) {
		f := f.anew(t)
		f.session.set(after(-time.Second))
		f.create(replace("j"))
		f.session.set(after(10 * time.Second))
		if _, err := f.planner.plan(t.Context(), f.session.Now()); err != nil {
			t.Fatal(err)
		}
		f.exec("UPDATE task SET state = 1, session_id = REPEAT('d', 16), launch = 1 WHERE due = ?", int64(t0))
		f.exec("UPDATE task SET state = 2, session_id = REPEAT('d', 16), launch = 2 WHERE due = ?", int64(after(10*time.Second)))
		f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL WHERE due = ?", int64(t0)) // its peers free it
		f.reach(after(11 * time.Second))
		f.want("who is to be killed", 0, "SELECT COUNT(*) FROM task WHERE kill_requested > 0")
		f.want("superseded", 1, "SELECT COUNT(*) FROM history WHERE outcome = 8 AND due = ?", int64(t0))
	})
	t.Run("the killed one was never spawned", func(t *testing.T) {
		f := f.anew(t)
		f.session.set(after(-time.Second))
		j := f.create(replace("j"))
		f.reach(t0)
		f.reach(after(10 * time.Second))
		f.want("who waits", 1, "SELECT COUNT(*) FROM waiting")
		f.exec("UPDATE task SET state = 0, session_id = NULL, launch = NULL, kill_requested = 0 WHERE state = 2") // compensation
		f.executing.added = nil
		f.reach(after(11 * time.Second))
		f.sweep(after(12 * time.Second))
		f.wantRuns("the earlier one", j.ID, "superseded 0..0×1 the due time "+after(10*time.Second).String()+" took its place")
		if len(f.executing.added) != 1 || f.executing.added[0].Due != after(10*time.Second) {
			t.Errorf("%+v execute, want the later one", f.executing.added)
		}
	})
}

// retry ends an attempt of a job, and its task is to be started again.
func (f *fixture) retry(id int64, again job.Micros) {
	f.Helper()
	for i, s := range f.executing.added {
		if s.JobID != id {
			continue
		}
		err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
			return tx.Retry([]sql.Again{{ID: s.ID, DueNow: again}}, []job.Run{{
				Launch: s.Launch, JobID: s.JobID, Due: s.Due, Until: s.Due, Count: 1, Origin: s.Origin, Attempt: s.Attempt, Ended: f.session.Now(),
				Result: job.Result{Outcome: job.Failed},
			}})
		})
		if err != nil {
			f.Fatal(err)
		}
		f.executing.added = append(f.executing.added[:i], f.executing.added[i+1:]...)
		return
	}
	f.Fatalf("nothing of job %d executes", id)
}

// TestBackfillLeavesRoom: what a backfill has waiting takes no place in the queue of the schedule, and comes behind it.
func TestBackfillLeavesRoom(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Second, -time.Hour)
	spec.Overlap, spec.Queue = job.OverlapQueue, 2
	f.session.set(after(-500 * time.Millisecond))
	j := f.create(spec)
	if _, err := f.editor.Backfill(t.Context(), j.ID, after(-time.Minute).Time(), after(-30*time.Second).Time(), 5, false, ""); err != nil {
		t.Fatal(err)
	}
	f.reach(after(-400 * time.Millisecond))
	f.want("backfilled", 1, "SELECT COUNT(*) FROM task WHERE origin < 0 AND state = 2")
	f.want("to be backfilled", 4, "SELECT COUNT(*) FROM task WHERE origin < 0 AND state = 3")
	f.reach(t0)
	f.want("due times that wait", 1, "SELECT COUNT(*) FROM task WHERE origin = 0 AND state = 3")
	f.finish()
	f.sweep(after(500 * time.Millisecond))
	if len(f.executing.added) != 1 || f.executing.added[0].Due != t0 {
		t.Errorf("%+v execute, want the due time of the schedule", f.executing.added)
	}
}

// TestBackfillBounded: of what comes due while a backfill executes one waits for its end.
func TestBackfillBounded(t *testing.T) {
	f := setUp(t)
	spec := every("j", 10*time.Millisecond, 0)
	spec.Overlap = job.OverlapSkip
	f.session.set(after(-time.Second))
	j := f.create(spec)
	f.exec("INSERT INTO task (job_id, due, origin, due_now, hash, state, session_id, launch) VALUES (?, ?, -7, ?, 0, 2, REPEAT('d', 16), 1)", j.ID, int64(t0)-1e9, int64(t0))
	for i := range 8 {
		f.reach(after(time.Duration(i) * 200 * time.Millisecond))
		f.reach(after(time.Duration(i) * 200 * time.Millisecond))
	}
	f.want("who waits", 1, "SELECT COUNT(*) FROM task WHERE state = 3 AND due = ?", int64(t0))
	f.want("who waits", 1, "SELECT COUNT(*) FROM task WHERE state = 3")
	f.want("skipped because of it", f.number("SELECT COUNT(*) FROM history"), "SELECT COUNT(*) FROM history WHERE outcome = 6 AND reason LIKE 'overlap: the run due % still waits for its start'")
}

// TestTurnOfTheWoken: a job that skips due times, and is due the very moment at which something of it has been woken, goes by that: a
// backfill and a retry have their turns also where each due time comes before a node has come to them.
func TestTurnOfTheWoken(t *testing.T) {
	f := setUp(t)
	begin := func(t *testing.T) (*fixture, job.Job) {
		f := f.anew(t)
		f.exec("TRUNCATE TABLE backfill")
		spec := every("j", time.Second, -time.Hour)
		spec.Overlap, spec.Retry = job.OverlapSkip, job.Retry{Attempts: 2, Backoff: job.Duration(500 * time.Millisecond)}
		f.session.set(after(-500 * time.Millisecond))
		return f, f.create(spec)
	}
	executes := func(f *fixture, due job.Micros) {
		f.Helper()
		if len(f.executing.added) != 1 || f.executing.added[0].Due != due {
			f.Errorf("got attempts %+v, want what was due %s", f.executing.added, due)
		}
	}
	t.Run("a backfill", func(t *testing.T) {
		f, j := begin(t)
		f.update(j, func(s *job.Spec) { s.Retry = job.Retry{} })
		if _, err := f.editor.Backfill(t.Context(), j.ID, after(-time.Minute).Time(), after(-50*time.Second).Time(), 1, false, ""); err != nil {
			t.Fatal(err)
		}
		f.reach(after(-400 * time.Millisecond))
		executes(f, after(-time.Minute))
		f.reach(t0)
		f.session.set(after(100 * time.Millisecond))
		f.end()
		f.start(200 * time.Millisecond)
		executes(f, t0)
		f.feed()
		f.start(300 * time.Millisecond)
		f.want("the backfill waits", 1, "SELECT COUNT(*) FROM task WHERE state = 3 AND origin < 0")
		f.session.set(after(990 * time.Millisecond))
		f.end()
		f.session.set(after(time.Second))
		f.starter.start(t.Context(), f.session.Now()) // of what is prepared: nobody has claimed the one that was woken
		f.executes()
		f.start(1100 * time.Millisecond)
		executes(f, after(-59*time.Second))
		f.want("skipped", 0, "SELECT COUNT(*) FROM history WHERE outcome = 6")
		f.session.set(after(1200 * time.Millisecond))
		f.end()
		f.start(1300 * time.Millisecond)
		executes(f, after(time.Second))
	})
	t.Run("a retry", func(t *testing.T) {
		f, j := begin(t)
		f.reach(t0)
		f.session.set(after(900 * time.Millisecond))
		f.retry(j.ID, after(1400*time.Millisecond))
		f.reach(after(time.Second))
		executes(f, after(time.Second))
		f.reach(after(1400 * time.Millisecond))
		f.want("the retry waits", 1, "SELECT COUNT(*) FROM task WHERE state = 3 AND attempt = 2")
		f.session.set(after(1990 * time.Millisecond))
		f.end()
		f.session.set(after(2 * time.Second))
		f.starter.start(t.Context(), f.session.Now())
		f.wantRuns("of the due time that came when the retry was woken", j.ID, "failed 0..0×1 ", "succeeded 1..1×1 ", "skipped 2..2×1 overlap: the run due "+t0.String()+" still waits for its start")
		f.start(2100 * time.Millisecond)
		executes(f, t0)
	})
}

// TestBackfillSaysWho: who asked for it stands in its row, as far as the column goes.
func TestBackfillSaysWho(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, -100*time.Hour))
	for _, who := range []string{"ann", strings.Repeat("ä", 200)} {
		ctx := job.WithActor(t.Context(), job.Actor{Who: who, Origin: "here"})
		b, err := f.editor.Backfill(ctx, j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 1, false, "")
		if err != nil || b.Who != who {
			t.Fatalf("got %+v, %v; want it from %q", b, err, who)
		}
		f.want("characters of who asked", int64(min(128, utf8.RuneCountInString(who))), "SELECT CHAR_LENGTH(who) FROM backfill WHERE id = ?", b.ID)
	}
	f.want("ann's", 1, "SELECT COUNT(*) FROM backfill WHERE who = 'ann'")
}

// TestCatchUpOfMany: as many as the misfire policy says are caught up, one after the other; a queue for what comes too
// fast does not bound them.
func TestCatchUpOfMany(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Minute, -10*time.Hour)
	spec.Overlap, spec.Misfire = job.OverlapSkip, job.Misfire{Policy: job.MisfireAll, MaxCount: 150, MaxAge: job.Duration(24 * time.Hour)}
	j := f.create(spec)
	f.exec("DELETE FROM task")
	f.exec("UPDATE job SET next_due = ?", int64(after(-10*time.Hour)))
	for i := range 3 {
		f.reach(after(time.Duration(30+i) * time.Second))
	}
	f.want("executes", 1, "SELECT COUNT(*) FROM task WHERE state = 2")
	f.want("wait", 149, "SELECT COUNT(*) FROM task WHERE state = 3")
	f.want("skipped", 0, "SELECT COUNT(*) FROM history WHERE outcome = 6 AND job_id = ? AND due < ?", j.ID, int64(t0))
}

// TestBackfillOfAnEditedSchedule: the due times are those of the definition as it is now.
func TestBackfillOfAnEditedSchedule(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Hour, -100*time.Hour)
	j := f.create(spec)
	b, err := f.editor.Backfill(t.Context(), j.ID, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 1, false, "")
	if err != nil {
		t.Fatal(err)
	}
	f.update(j, func(s *job.Spec) {
		start := after(-100*time.Hour + 30*time.Minute).Time()
		s.Start = &start
	})
	f.exec("DELETE FROM task WHERE origin < 0") // the first one has run
	if err := f.planner.DB.Tx(t.Context(), func(tx *sql.Tx) error { _, err := feed(tx, &b, f.session.Now(), nil); return err }); err != nil {
		t.Fatal(err)
	}
	if got := f.seconds("SELECT due FROM task WHERE origin < 0"); len(got) != 1 || got[0] != -8.5*3600 {
		t.Errorf("got %v, want the due time half past", got)
	}
}

// TestManyBackfills: backfills that cannot go on, however many, do not keep others from it.
func TestManyBackfills(t *testing.T) {
	f := setUp(t)
	stopped, j := f.create(every("stopped", time.Hour, -100*time.Hour)), f.create(every("j", time.Hour, -100*time.Hour))
	add := func(id int64) job.Backfill {
		b, err := f.editor.Backfill(t.Context(), id, after(-10*time.Hour).Time(), after(-5*time.Hour).Time(), 1, false, "")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for range feedBatch {
		add(stopped.ID)
	}
	if _, err := f.editor.Pause(t.Context(), stopped.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	b := add(j.ID)
	f.exec("DELETE FROM task WHERE origin < 0")
	feeder := NewFeeder(Feeder{DB: f.planner.DB, Session: f.session, Soon: func() {}, Log: f.planner.Log})
	if err := feeder.feedAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.want("its next task", 1, "SELECT COUNT(*) FROM task WHERE origin = ?", b.Origin())
}

// TestRunByHandUnderAClockThatWasPutBack: what somebody asked for counts among what executes, however far ahead its due
// time is by MySQL's clock now.
func TestRunByHandUnderAClockThatWasPutBack(t *testing.T) {
	f := setUp(t)
	spec := every("j", time.Minute, -time.Hour)
	spec.Overlap = job.OverlapSkip
	f.session.set(after(30 * time.Minute))
	j := f.create(spec)
	if _, err := f.editor.RunNow(t.Context(), j.ID, ""); err != nil {
		t.Fatal(err)
	}
	f.reach(after(30 * time.Minute))
	f.exec("UPDATE job SET last_due = 0, next_due = ?", int64(t0))
	f.exec("DELETE FROM task WHERE origin = 0")
	f.reach(t0)
	f.want("executes", 1, "SELECT COUNT(*) FROM task WHERE state = 2")
}

// TestManyHeads: jobs of which the next due time waits for a slot, however many, do not keep the sweeper from one that
// waits for nothing.
func TestManyHeads(t *testing.T) {
	f := setUp(t)
	insert := func(jobID, due int64, kind sql.WaitKind) {
		f.exec("INSERT INTO task (job_id, due, due_now, hash, state) VALUES (?, ?, ?, 0, 3)", jobID, int64(t0)+due, int64(t0)+due)
		f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, due, since, expires) SELECT id, ?, job_id, 1, due, due, 1 << 62 FROM task ORDER BY id DESC LIMIT 1", kind)
	}
	for id := range int64(2 * sweepBatch) {
		insert(id+1, 0, sql.WaitGroup)
		insert(id+1, 1, sql.WaitJob)
	}
	insert(10_000, 0, sql.WaitJob)
	s := f.sweeper()
	for range 4 {
		if err := s.wakeJobs(t.Context(), after(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	f.want("woken", 0, "SELECT COUNT(*) FROM waiting WHERE job_id = 10000")
}

// TestEditAfterALongOutage: what nobody planned for a day is recorded without a row for each.
func TestEditAfterALongOutage(t *testing.T) {
	f := setUp(t)
	spec := every("j", 10*time.Millisecond, 10*time.Millisecond)
	spec.Misfire.After = job.Duration(24 * time.Hour)
	j := f.create(spec)
	f.session.set(after(20 * time.Minute))
	if _, err := f.editor.Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	f.want("due times with a record", 20*60*100, "SELECT SUM(due_count) FROM history")
	if n := f.number("SELECT COUNT(*) FROM history"); n > 5000 {
		t.Errorf("%d rows of history", n)
	}
}

// TestSweepOfWhatHasARecord: a task that waited for too long and has its record already ends without another one, and one that
// MySQL refuses is left; the others end.
func TestSweepOfWhatHasARecord(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		kind sql.WaitKind
		left int64
	}{
		"expired":                     {sql.WaitJob, 0},
		"no node":                     {sql.WaitNode, 0},
		"expired, and one is refused": {sql.WaitJob, 1},
		"no node, and one is refused": {sql.WaitNode, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			for i := range 9 {
				spec := at(fmt.Sprint(i), t0)
				spec.StartDeadline = job.Duration(time.Second)
				f.create(spec)
			}
			f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, turn, due, since, expires) SELECT id, ?, job_id, 0, 0, due, due, 1 FROM task", c.kind)
			f.exec("UPDATE task SET state = 3")
			f.exec("INSERT INTO history (job_id, due, session_id, launch, outcome, due_last, ended) SELECT job_id, due, 'x', id, 1, due, due FROM task ORDER BY id LIMIT 2")
			f.exec("DROP TRIGGER IF EXISTS refuse")
			f.exec("CREATE TRIGGER refuse BEFORE INSERT ON history FOR EACH ROW IF ? AND NEW.job_id = 5 THEN SIGNAL SQLSTATE '22000' SET MESSAGE_TEXT = 'poison'; END IF", c.left)
			s := f.sweeper()
			err := s.expire(t.Context(), after(time.Minute))
			if c.kind == sql.WaitNode {
				err = s.inBatches(t.Context(), s.missed, func() ([]sql.Unplaced, error) {
					return f.planner.DB.ExpiredWaitsForNodes(t.Context(), after(time.Minute), sweepBatch)
				})
			}
			if (err != nil) != (c.left > 0) {
				t.Error(err)
			}
			f.want("who waits still", c.left, "SELECT COUNT(*) FROM task")
			f.want("records of what was missed", 7-c.left, "SELECT COUNT(*) FROM history WHERE outcome = ?", int(job.Missed))
			f.want("records", 9-c.left, "SELECT COUNT(*) FROM history")
		})
	}
}

// TestSweepBesideKeptRows: while somebody keeps the row of a job, of a task or of a group locked, the sweeper wakes all that
// needs none of these, and waits for none.
func TestSweepBesideKeptRows(t *testing.T) {
	f := setUp(t)
	const aJob, aTask = "SELECT id FROM job FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1 FOR UPDATE", "SELECT id FROM task FORCE INDEX (PRIMARY) ORDER BY id LIMIT 1 FOR UPDATE"
	for name, c := range map[string]struct {
		kind    sql.WaitKind
		expires job.Micros
		keep    string
	}{
		"expired, a job":          {sql.WaitJob, 1, aJob},
		"expired, a task":         {sql.WaitJob, 1, aTask},
		"behind runs, a job":      {sql.WaitJob, math.MaxInt64, aJob},
		"behind runs, a task":     {sql.WaitJob, math.MaxInt64, aTask},
		"for a slot, a group":     {sql.WaitGroup, math.MaxInt64, "SELECT id FROM grp WHERE name = 'a' FOR UPDATE"},
		"for a slot, a task":      {sql.WaitGroup, math.MaxInt64, aTask},
		"rested, a job":           {sql.WaitPause, math.MaxInt64, aJob},
		"rested, a task":          {sql.WaitPause, math.MaxInt64, aTask},
		"there is a node, a job":  {sql.WaitNode, math.MaxInt64, aJob},
		"there is a node, a task": {sql.WaitNode, math.MaxInt64, aTask},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			for _, name := range []string{"a", "b"} {
				f.create(at(name, t0))
				if _, err := f.editor.PutGroup(t.Context(), name, 1); err != nil {
					t.Fatal(err)
				}
			}
			f.exec("INSERT INTO waiting (task_id, kind, job_id, group_id, turn, due, since, expires)"+
				" SELECT t.id, ?, t.job_id, IF(? = 2, g.id, 0), 0, t.due, t.due, ? FROM task t JOIN job j ON j.id = t.job_id JOIN grp g ON g.name = j.name", c.kind, c.kind, int64(c.expires))
			f.exec("UPDATE task SET state = 3")
			release := f.keep(c.keep)
			s := f.sweeper()
			sweep := func() {
				t.Helper()
				err := s.sweep(t.Context(), after(time.Second))
				if err == nil && c.kind == sql.WaitNode {
					err = s.inBatches(t.Context(), s.placed, func() ([]sql.Unplaced, error) { return f.planner.DB.WaitsForPlaces(t.Context(), []int{0}, sweepBatch) })
				}
				if err != nil {
					t.Error(err)
				}
			}
			began := time.Now()
			sweep()
			if took := time.Since(began); took > 1500*time.Millisecond {
				t.Errorf("it took %s: it waited for what is locked", took)
			}
			f.want("who waits still", 1, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE t.state = 3 AND j.name = 'a'")
			f.want("who is woken", 1, "SELECT COUNT(*) FROM task t JOIN job j ON j.id = t.job_id WHERE t.state = 0 AND j.name = 'b'")
			release()
			sweep()
			f.want("who is woken in the end", 2, "SELECT COUNT(*) FROM task WHERE state = 0")
		})
	}
}
