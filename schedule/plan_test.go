package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/sql"
)

// TestPlanGoesOn plans a job look by look: the horizon moves, no due time comes twice, and far ones wait.
func TestPlanGoesOn(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 5*time.Second))
	far := f.create(every("far", time.Hour, time.Hour))
	for _, c := range []struct {
		now  time.Duration
		last float64 // due time that is planned
	}{{0, 35}, {25 * time.Second, 35}, {25*time.Second + 1*time.Microsecond, 65}, {55 * time.Second, 65}, {55*time.Second + 1*time.Microsecond, 95}} {
		f.session.set(after(c.now))
		if _, err := f.planner.plan(t.Context(), after(c.now)); err != nil {
			t.Fatal(err)
		}
		got := f.dues(j.ID)
		var want []float64
		for due := 5.0; due <= c.last; due += 10 {
			want = append(want, due)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got due times %v, want %v", c.now, got, want)
		}
	}
	f.wantDues("far away", far.ID)
	if _, err := f.planner.plan(t.Context(), after(time.Hour-planWindow+1*time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	f.wantDues("near", far.ID, 3600)
}

// TestPlanInTurn: where there is more to plan than one transaction takes, the jobs whose cursors are the farthest behind come
// first, whichever were made first.
func TestPlanInTurn(t *testing.T) {
	f := setUp(t)
	var last job.Job
	for i := range planRows/int(planHorizon/time.Second) + 30 {
		last = f.create(every(fmt.Sprint(i), time.Second, time.Hour-time.Duration(i)*time.Millisecond))
	}
	f.session.set(after(time.Hour))
	if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(f.dues(last.ID)) == 0 || !f.planner.more {
		t.Errorf("the job whose cursor was the earliest has no task; more to plan: %t", f.planner.more)
	}
	f.want("jobs that have to wait", 1, "SELECT COUNT(*) > 0 FROM job j WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.job_id = j.id)")
}

// TestPlanOfOthers: what another session prefers is planned only when its cursor is very near.
func TestPlanOfOthers(t *testing.T) {
	f := setUp(t)
	f.session.index, f.session.of = 0, 2
	var mine, theirs job.Job
	for i := 0; mine.ID == 0 || theirs.ID == 0; i++ {
		j := f.create(every(fmt.Sprint(i), time.Hour, time.Hour))
		if bucketOf(j.Hash, 16)%2 == 0 {
			mine = j
		} else {
			theirs = j
		}
	}
	plan := func(before time.Duration) {
		t.Helper()
		if _, err := f.planner.plan(t.Context(), after(time.Hour-before)); err != nil {
			t.Fatal(err)
		}
	}
	plan(orphaned)
	f.wantDues("mine, soon", mine.ID, 3600)
	f.wantDues("theirs, soon", theirs.ID)
	plan(orphaned - time.Microsecond)
	f.wantDues("theirs, and nobody cares", theirs.ID, 3600)
}

// TestPoisonIsIsolated plans a batch in which MySQL refuses the rows of some jobs: those are marked as broken, all
// others are planned once.
func TestPoisonIsIsolated(t *testing.T) {
	f := setUp(t)
	var jobs []job.Job
	for i := range 60 {
		jobs = append(jobs, f.create(every(fmt.Sprint(i), time.Hour, time.Hour)))
	}
	poison := map[int64]bool{jobs[0].ID: true, jobs[17].ID: true, jobs[18].ID: true, jobs[59].ID: true}
	var ids []string
	for id := range poison {
		ids = append(ids, fmt.Sprint(id))
	}
	f.exec("CREATE TRIGGER refuse BEFORE INSERT ON task FOR EACH ROW IF NEW.job_id IN (" + strings.Join(ids, ",") +
		") THEN SIGNAL SQLSTATE '22000' SET MESSAGE_TEXT = 'this job is poison'; END IF")
	if n, err := f.planner.plan(t.Context(), after(time.Hour)); n != 60 || err != nil {
		t.Errorf("got %d jobs, %v; want 60", n, err)
	}
	for _, j := range jobs {
		row, err := f.beside.Job(t.Context(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case poison[j.ID]:
			if !strings.Contains(row.Error, "this job is poison") || row.NextDue != 0 {
				t.Errorf("job %d: got error %q, cursor %s; want it marked as broken", j.ID, row.Error, row.NextDue)
			}
			f.wantDues("a poisoned job", j.ID)
		default:
			if row.Error != "" || row.NextDue != after(2*time.Hour) {
				t.Errorf("job %d: got error %q, cursor %s; want it planned", j.ID, row.Error, row.NextDue)
			}
			f.wantDues("a job beside poison", j.ID, 3600)
		}
	}
	if n, err := f.planner.plan(t.Context(), after(time.Hour)); n != 0 || err != nil {
		t.Errorf("the next look: got %d jobs, %v; want none", n, err)
	}
	f.want("lines of the audit", int64(len(poison)), "SELECT COUNT(*) FROM audit WHERE action = 'break' AND kind = 'job' AND who = 'go-crontab' AND app = 'default' AND name <> '' AND reason LIKE '%poison%'")
}

// TestTroubleBreaksNoJob: what the server cannot do at the moment marks no job, and hides none.
func TestTroubleBreaksNoJob(t *testing.T) {
	f := setUp(t)
	for i := range 5 {
		f.create(every(fmt.Sprint(i), time.Hour, time.Hour))
	}
	for name, fault := range map[string]faultproxy.Action{
		"the disk is full":      faultproxy.Error(1114, "HY000", "The table 'task' is full"),
		"no right to insert":    faultproxy.Error(1142, "42000", "INSERT command denied"),
		"the server shuts down": faultproxy.Error(1053, "08S01", "Server shutdown in progress"),
		"the link is cut":       faultproxy.CutBefore(),
		"the commit is lost":    faultproxy.CutBefore(),
	} {
		match := faultproxy.SQL("INSERT INTO task")
		if strings.Contains(name, "commit") {
			match = faultproxy.CommitOf("INSERT INTO task")
		}
		rule := f.proxy.Add(faultproxy.Rule{Match: match, Times: -1, Action: fault})
		if _, err := f.planner.plan(t.Context(), after(time.Hour)); err == nil {
			t.Errorf("%s: got no error", name)
		}
		rule.Remove()
		f.awaitRelease() // a planner passes by what is locked
		f.want(name+": broken jobs", 0, "SELECT COUNT(*) FROM job WHERE error <> '' OR next_due IS NULL")
	}
	if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.want("jobs that are planned", 5, "SELECT COUNT(DISTINCT job_id) FROM task")
}

// TestPlannersAtOnce: several nodes plan the same jobs at the same time, look after look: no due time is lost and none
// comes twice, also of those that have ended already.
func TestPlannersAtOnce(t *testing.T) {
	f := setUp(t)
	second := node(t, f.dsn, 2)
	for i := range 5 {
		f.create(every(fmt.Sprint(i), 2*time.Second, time.Second))
	}
	f.exec("CREATE TABLE planned (id BIGINT PRIMARY KEY AUTO_INCREMENT, job_id BIGINT, due BIGINT)")
	f.exec("INSERT INTO planned (job_id, due) SELECT job_id, due FROM task")
	f.exec("CREATE TRIGGER note AFTER INSERT ON task FOR EACH ROW INSERT INTO planned (job_id, due) VALUES (NEW.job_id, NEW.due)")
	for now := time.Duration(0); now < 2*time.Minute; now += 7 * time.Second {
		var all sync.WaitGroup
		for _, n := range []*fixture{f, second} {
			n.session.set(after(now))
			all.Go(func() { n.planner.plan(t.Context(), after(now)) })
		}
		all.Wait()
		f.exec("DELETE FROM task WHERE due < ?", int64(after(now))) // they have ended
	}
	f.want("due times planned twice", 0, "SELECT COUNT(*) FROM (SELECT 1 FROM planned GROUP BY job_id, due HAVING COUNT(*) > 1) twice")
	for id := int64(1); id <= 5; id++ {
		got := f.seconds("SELECT due FROM planned WHERE job_id = ? ORDER BY due", id)
		var want []float64
		for due := 1.0; len(want) < len(got); due += 2 {
			want = append(want, due)
		}
		if !slices.Equal(got, want) || len(got) < 60 {
			t.Errorf("job %d: got %d due times %v, want all from 1 on", id, len(got), got)
		}
	}
}

// TestStalePlanner: a plan that was made from a cursor which has moved writes nothing, although the due times have
// come and gone and would be no duplicates any more.
func TestStalePlanner(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Second, 5*time.Second))
	row, err := f.beside.Job(t.Context(), j.ID)
	if err != nil {
		t.Fatal(err)
	}
	now := after(45 * time.Second)
	if _, err := f.planner.plan(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	f.exec("DELETE FROM task")
	stale := plans{horizon: now.Add(planHorizon)}
	stale.add(&row, now, f.session)
	err = f.beside.Tx(t.Context(), stale.write)
	if err == nil || !strings.Contains(err.Error(), "moved by somebody else") {
		t.Errorf("got %v, want it refused", err)
	}
	f.wantDues("after it", j.ID)
}

// TestMissedWhilePlanning: after an outage of the whole cluster there is one counted run, and the latest due time.
func TestMissedWhilePlanning(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", 10*time.Minute, 5*time.Minute))
	if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.wantDues("after the outage", j.ID, 3300)
	f.wantRuns("after the outage", j.ID, "missed 300..2700×5 nobody could start it within 1m")
	run := f.runs(j.ID)[0]
	if run.Node != "node 1" || run.Launch.Session != f.session.id || run.Started != 0 {
		t.Errorf("got run %+v", run.Run)
	}
	f.want("last due time", int64(after(2700*time.Second)), "SELECT last_due FROM job WHERE id = ?", j.ID)
}

// TestStrayCursors: a hand gave a cursor to a job that has none; it is taken away, and others are planned all the same.
func TestStrayCursors(t *testing.T) {
	f := setUp(t)
	stray := f.create(every("stray", 10*time.Second, 5*time.Second))
	gone := f.create(every("gone", 10*time.Second, 5*time.Second))
	good := f.create(every("good", time.Hour, time.Hour))
	if _, err := f.editor.Pause(t.Context(), stray.ID, job.PauseRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := f.editor.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	f.exec("UPDATE job SET next_due = 1 WHERE id <> ?", good.ID)
	if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.wantDues("the paused one", stray.ID)
	f.wantDues("the deleted one", gone.ID)
	f.wantDues("the good one", good.ID, 3600)
	f.want("stray cursors", 0, "SELECT COUNT(*) FROM job WHERE id <> ? AND next_due IS NOT NULL", good.ID)
}

func TestStalePlannerPlansNothing(t *testing.T) {
	f := setUp(t)
	f.create(every("j", time.Hour, time.Hour))
	f.session.stale = true
	if n, err := f.planner.plan(t.Context(), after(time.Hour)); n != 0 || err != nil {
		t.Errorf("with a stale lease: got %d jobs, %v; want none", n, err)
	}
}

// crowd adds nine jobs, of which one transaction plans three, and goes to when they are due.
func (f *fixture) crowd() {
	f.Helper()
	f.session.set(after(-time.Hour))
	for i := range 9 {
		f.create(every(fmt.Sprint(i), 50*time.Millisecond, 0))
	}
	f.session.set(t0)
}

// TestPlanIsBounded: many tasks are planned in several transactions, and what is left is said. Jobs that would not fit are
// left alone: they may be started meanwhile.
func TestPlanIsBounded(t *testing.T) {
	f := setUp(t)
	f.crowd()
	if _, err := f.planner.plan(t.Context(), t0); err != nil || !f.planner.more {
		t.Errorf("got more %v, %v; want it to say that there is more", f.planner.more, err)
	}
	if n := f.number("SELECT COUNT(*) FROM task"); n < planRows || n >= planRows+planMax {
		t.Errorf("got %d tasks in one look, want %d and at most those of one job more", n, planRows)
	}
	if f.planner.fit != 3 {
		t.Errorf("it will lock %d jobs, want the 3 that fit", f.planner.fit)
	}
	for n := 0; f.planner.more; n++ {
		if _, err := f.planner.plan(t.Context(), t0); err != nil || n == 20 {
			t.Fatalf("after %d looks: more %v, %v", n, f.planner.more, err)
		}
	}
	f.want("tasks in all", 9*801, "SELECT COUNT(*) FROM task")
}

// TestShared: how far jobs are planned while others wait for the planner.
func TestShared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cursors []time.Duration
		want    time.Duration
	}{
		"overdue":                         {[]time.Duration{-time.Hour, 15 * time.Second}, shortest},
		"near":                            {[]time.Duration{12 * time.Second, 8 * time.Second}, 16 * time.Second},
		"as far ahead as they are looked": {[]time.Duration{planWindow, planWindow}, planHorizon},
		"without a cursor":                {[]time.Duration{0}, planHorizon},
	} {
		jobs := map[int64]*sql.JobRow{}
		for i, d := range c.cursors {
			j := &sql.JobRow{}
			if d != 0 {
				j.NextDue = after(d)
			}
			jobs[int64(i)] = j
		}
		if got := shared(jobs, t0); got != after(c.want) {
			t.Errorf("%s: got %s ahead, want %s", name, got.Sub(t0), c.want)
		}
	}
	for name, j := range map[string]*sql.JobRow{"held": {}, "paused until now": {}} {
		j.Held, j.Paused, j.NextDue = name == "held", name != "held", after(planWindow)
		if got := shared(map[int64]*sql.JobRow{1: j}, t0); got != after(shortest) {
			t.Errorf("%s: got %s ahead, want %s: it may be due at once", name, got.Sub(t0), shortest)
		}
	}
}

// TestPlanWhileOthersWait: of jobs that are more than one transaction takes, each gets its next due times before any gets
// those of half a minute.
func TestPlanWhileOthersWait(t *testing.T) {
	f := setUp(t)
	f.crowd()
	f.planner.fit = 3
	for range 5 {
		if _, err := f.planner.plan(t.Context(), t0); err != nil {
			t.Fatal(err)
		}
		if f.number("SELECT COUNT(DISTINCT job_id) FROM task") == 9 {
			break
		}
	}
	f.want("the furthest due time by when each job has some", 1, "SELECT MAX(due) <= ? FROM task", int64(after(shortest)))
	for range 20 {
		if _, err := f.planner.plan(t.Context(), t0); err != nil {
			t.Fatal(err)
		}
	}
	f.want("jobs that are planned as far as they are to be", 9, "SELECT COUNT(*) FROM job WHERE next_due > ?", int64(after(planWindow)))
	f.want("due times that were left out", 0, "SELECT COUNT(*) FROM (SELECT job_id, COUNT(*) n, MAX(due) - MIN(due) took FROM task GROUP BY job_id) x WHERE took <> (n - 1) * 50000")
}

// keep locks what a statement reads until the test calls what it returns, or ends.
func (f *fixture) keep(query string, args ...any) (release func()) {
	f.Helper()
	tx, err := f.beside.Raw().BeginTx(f.Context(), nil)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := tx.Exec(query, args...); err != nil {
		f.Fatal(err)
	}
	return func() { tx.Rollback() }
}

// TestPlanBesideAKeptRow: a job whose row somebody keeps locked, or a row of whose tasks, holds up no other, and is planned
// once it is free.
func TestPlanBesideAKeptRow(t *testing.T) {
	for what, lock := range map[string]string{
		"the job":          "SELECT id FROM job WHERE id = ? FOR UPDATE",
		"one of its tasks": "SELECT id FROM task FORCE INDEX (due) WHERE job_id = ? ORDER BY due LIMIT 1 FOR UPDATE",
	} {
		t.Run(what, func(t *testing.T) {
			f := setUp(t)
			var jobs []job.Job
			for i := range 5 {
				jobs = append(jobs, f.create(every(fmt.Sprint(i), 10*time.Second, 5*time.Second)))
			}
			f.exec("UPDATE job SET replan = 1, next_due = ?", int64(t0)) // a calendar was changed
			release := f.keep(lock, jobs[2].ID)
			look := func() {
				t.Helper()
				if _, err := f.planner.plan(t.Context(), t0); err != nil {
					t.Fatal(err)
				}
			}
			look()
			f.want("jobs that are planned beside it", 4, "SELECT COUNT(*) FROM job WHERE replan = 0")
			if f.planner.more || f.planner.busy != 1 {
				t.Errorf("more to plan: %t, jobs that are locked: %d; want the next look a while later, and one", f.planner.more, f.planner.busy)
			}
			began := time.Now()
			look()
			if took := time.Since(began); what == "the job" && took > 1500*time.Millisecond {
				t.Errorf("the next look took %s: it waited for the row once more", took)
			}
			release()
			look()
			f.want("jobs that are planned once it is free", 5, "SELECT COUNT(*) FROM job WHERE replan = 0")
		})
	}
}

// TestPlanBehindAnAlter: no job is to blame for a table that somebody changes, so nobody looks for it in ever smaller parts.
func TestPlanBehindAnAlter(t *testing.T) {
	if testdb.EngineOf(t).Galera {
		t.Skip("there a change of a table waits for no reader")
	}
	f := setUp(t)
	var ids []int64
	for i := range 4 {
		ids = append(ids, f.create(every(fmt.Sprint(i), time.Hour, time.Hour)).ID)
	}
	release := f.keep("SELECT COUNT(*) FROM job") // a reader, for whom a change of the table waits
	altered := make(chan error, 1)
	go func() {
		_, err := f.beside.Raw().Exec("ALTER TABLE job ADD KEY behind (created)")
		altered <- err
	}()
	for end := time.Now().Add(20 * time.Second); f.statements("ALTER TABLE job", "Waiting for table metadata lock") == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the change of the table does not wait")
		}
	}
	tries := 0
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if strings.Contains(c.SQL, "SKIP LOCKED") {
			tries++
		}
	})
	if _, locked, err := f.planner.planJobs(t.Context(), ids, false, t0); err == nil || len(locked) > 0 || tries != 1 {
		t.Errorf("got jobs %v that somebody keeps, %v, with %d tries; want none, that the table is locked, and one", locked, err, tries)
	}
	release()
	if err := <-altered; err != nil {
		t.Error(err)
	}
}

// TestPlanOfAJobThatIsLockedAgainAndAgain: a look gets the row in the end, however short it is free.
func TestPlanOfAJobThatIsLockedAgainAndAgain(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	f.create(every("other", time.Hour, time.Hour))
	first := make(chan bool)
	var once sync.Once
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 3 { // as starts do, which skip what is locked
		all.Go(func() {
			for ctx.Err() == nil {
				err := f.beside.Tx(ctx, func(tx *sql.Tx) error {
					rows, _, err := tx.LockFreeJobs([]int64{j.ID})
					if len(rows) > 0 {
						once.Do(func() { close(first) })
						time.Sleep(50 * time.Millisecond)
					}
					return err
				})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	<-first
	f.session.set(after(time.Hour))
	for range 3 {
		if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
			t.Error(err)
		}
	}
	stop()
	all.Wait()
	f.wantDues("the job that was locked all the time", j.ID, 3600)
}

// TestManyKeptRows: as many locked jobs as one look takes hold up none behind them.
func TestManyKeptRows(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	f.exec("INSERT INTO job (app, name, hash, spec, created, updated, next_due) WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 800)"+
		" SELECT 'default', CONCAT('kept ', n), 1, spec, 1, 1, ? FROM job JOIN seq WHERE id = ?", int64(t0), j.ID)
	defer f.keep("SELECT id FROM job WHERE id > ? FOR UPDATE", j.ID)()
	f.session.set(after(time.Hour))
	for range 2 {
		if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	f.wantDues("behind all that is locked", j.ID, 3600)
	if f.planner.busy != planBatch {
		t.Errorf("%d jobs are locked, want %d", f.planner.busy, planBatch)
	}
}

// TestPlannersOfOneBacklog: jobs that another planner has locked are not planned one by one behind it.
func TestPlannersOfOneBacklog(t *testing.T) {
	f := setUp(t)
	j := f.create(every("j", time.Hour, time.Hour))
	f.exec("INSERT INTO job (app, name, hash, spec, created, updated, next_due) WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 300)"+
		" SELECT 'default', CONCAT('j ', n), 1, spec, 1, 1, ? FROM job JOIN seq WHERE id = ?", int64(after(time.Hour)), j.ID)
	release := f.keep("SELECT id FROM job FOR UPDATE")
	f.session.set(after(time.Hour))
	commits := 0
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if c.SQL == "COMMIT" {
			commits++
		}
	})
	defer time.AfterFunc(300*time.Millisecond, release).Stop()
	if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.want("jobs that are planned", 301, "SELECT COUNT(*) FROM job WHERE next_due > ?", int64(after(time.Hour)))
	if f.planner.busy != 0 || commits > 10 {
		t.Errorf("%d jobs are left, and it took %d transactions; want none, and a few", f.planner.busy, commits)
	}
}

// TestPlannersShareABacklog: who has enough to do leaves to others what prefers them, unless that is older.
func TestPlannersShareABacklog(t *testing.T) {
	f := setUp(t)
	mine, theirs := f.twoBuckets(func(name string) job.Spec { return every(name, time.Hour, time.Hour) }, func(name string) job.Spec { return every(name, time.Hour, time.Hour) })
	f.exec("INSERT INTO job (app, name, hash, spec, created, updated, next_due) WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq WHERE n < 999)" +
		" SELECT 'default', CONCAT(id, ' ', n), hash, spec, 1, 1, next_due FROM job JOIN seq")
	f.exec("UPDATE job SET next_due = next_due - 1 WHERE hash = ?", mine.Hash) // the first look begins with mine
	f.session.set(after(time.Hour))
	look := func() {
		t.Helper()
		if _, err := f.planner.plan(t.Context(), after(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	const planned = "SELECT COUNT(*) FROM job WHERE hash = ? AND next_due > ?"
	look()
	f.want("mine after a look", 800, planned, mine.Hash, int64(after(time.Hour)))
	look()
	f.want("mine after the second, when the first had left some", 1000, planned, mine.Hash, int64(after(time.Hour)))
	f.want("theirs meanwhile", 0, planned, theirs.Hash, int64(after(time.Hour)))
	look()
	f.want("theirs, when nothing of mine is left", 800, planned, theirs.Hash, int64(after(time.Hour)))
}
