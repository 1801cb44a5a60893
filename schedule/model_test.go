package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/compensate"
	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/result"
	"go-crontab/session"
	"go-crontab/sql"
)

// TestModel drives three nodes on one schema by random steps: time passes, stages take their looks in any order, runs
// end, people edit, pause, resume, delete, ask for runs, backfill, cancel and kill, nodes die with all they know. Beside
// it a small model knows only the rules: which due times a job has, and what may become of one. After every few steps
// both must agree. GOCRONTAB_TEST_SEED repeats one world, GOCRONTAB_TEST_STEPS makes the worlds longer.
func TestModel(t *testing.T) {
	t.Parallel()
	steps := 2500
	if s, err := strconv.Atoi(os.Getenv("GOCRONTAB_TEST_STEPS")); err == nil {
		steps = s
	}
	seeds := []uint64{1, 2, 3, 4}
	if s, err := strconv.ParseUint(os.Getenv("GOCRONTAB_TEST_SEED"), 10, 64); err == nil {
		seeds = []uint64{s}
	} else {
		seeds[3] = rand.Uint64()
	}
	var mu sync.Mutex
	outcomes := map[job.Outcome]int{}
	t.Run("worlds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, seed)
				w.live(steps)
				t.Logf("%d due times, %d attempts, outcomes %v", w.accounted, len(w.begun), w.outcomes)
				mu.Lock()
				defer mu.Unlock()
				for o, n := range w.outcomes {
					outcomes[o] += n
				}
			})
		}
	})
	for o := job.Succeeded; o <= job.Superseded; o++ {
		if outcomes[o] == 0 && len(seeds) > 1 {
			t.Errorf("no run ended %s: the worlds are too small to show anything", o)
		}
	}
}

// live takes so many steps, and looks every now and then whether all is right.
func (w *world) live(steps int) {
	for i := range steps {
		w.step()
		if i%25 == 0 {
			w.check(false)
		}
		if w.Failed() {
			w.Fatalf("after %d steps; the last of them:\n%s", i+1, strings.Join(w.log, "\n"))
		}
	}
	w.settle()
	w.check(true)
	if w.Failed() {
		w.Fatalf("at the end; the last steps:\n%s", strings.Join(w.log, "\n"))
	}
}

// world is a cluster whose time and luck are the test's.
type world struct {
	*testing.T
	r     *rand.Rand
	db    *sql.DB
	now   job.Micros
	nodes []*worldNode
	dead  []uuid.UUID // sessions whose tasks nobody has freed yet
	gone  map[uuid.UUID]bool
	jobs  []*modelJob
	names int
	log   []string

	covers   map[string]job.Micros // pauses of the cluster ("") and of the app that all jobs are in: when each ends, 0: it does not
	running  map[job.Launch]*attempt
	begun    map[string]int // "job due origin attempt" → how often it was executed
	fates    map[job.Launch]job.Outcome
	lastAdd  job.Micros
	requests map[int64]int64 // origin of a single run → its job
	fills    []*modelFill

	accounted int
	outcomes  map[job.Outcome]int
}

// attempt is one that executes.
type attempt struct {
	job.Started
	node *worldNode
}

// modelJob is what the rules say about a job.
type modelJob struct {
	job     job.Job
	every   job.Micros
	first   job.Micros
	owed    []job.Micros // due times of earlier definitions
	from    job.Micros   // the present definition has due times after this instant
	lastDue job.Micros
	paused  bool
	stopped job.Micros // what was due after it is treated by the misfire policy when the pause ends
	until   job.Micros // when the pause ends by itself; 0: it does not
	deleted bool
}

type modelFill struct {
	b         job.Backfill
	dues      []job.Micros
	cancelled bool
}

// worldNode is one node: the stages, and the sets that die with it.
type worldNode struct {
	*world
	name        string
	session     *fakeSession
	prepared    *Prepared
	executing   map[int64]*attempt
	ended       map[int64]int
	planner     *Planner
	claimer     *Claimer
	starter     *Starter
	sweeper     *Sweeper
	feeder      *Feeder
	editor      *Editor
	recorder    *result.Recorder
	compensator *compensate.Compensator
}

func newWorld(t *testing.T, seed uint64) *world {
	dsn := testdb.DSN(t)
	migrator := open(t, dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, r: rand.New(rand.NewPCG(seed, 0)), db: open(t, dsn, sql.DefaultTimeouts), now: t0, gone: map[uuid.UUID]bool{}, covers: map[string]job.Micros{}, running: map[job.Launch]*attempt{},
		begun: map[string]int{}, fates: map[job.Launch]job.Outcome{}, requests: map[int64]int64{}, outcomes: map[job.Outcome]int{},
	}
	for i := range 3 {
		w.nodes = append(w.nodes, w.join(i))
	}
	w.must(w.nodes[0].editor.PutGroup(t.Context(), "g", 2))
	for range 5 {
		w.create()
	}
	return w
}

func (w *world) must(_ any, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v; the last steps:\n%s", err, strings.Join(w.log, "\n"))
	}
}

// join is a node's next life.
func (w *world) join(i int) *worldNode {
	n := &worldNode{world: w, name: fmt.Sprint("node ", i), prepared: NewPrepared(), executing: map[int64]*attempt{}, ended: map[int64]int{}}
	n.session = newSession(byte(i))
	n.session.id, n.session.index, n.session.of, n.session.now = uuid.UUID(random(w.r)), i, 3, w.now
	log := slog.New(slog.DiscardHandler)
	x := lock.New(w.db, log)
	n.planner = &Planner{DB: w.db, Session: n.session, Soon: func() {}, Log: log}
	n.claimer = NewClaimer(Claimer{DB: w.db, Exclusion: x, Session: n.session, Prepared: n.prepared, Executing: n, LookAhead: 10 * time.Second, Cap: 1000, Slots: 100, Log: log})
	n.starter = NewStarter(&Starter{
		Exclusion: x, Session: n.session, Prepared: n.prepared, Executing: n, Slots: 100,
		Flush: func(ctx context.Context) { n.recorder.Push(ctx) }, Freed: func() {}, Woken: func() {}, Log: log,
	})
	n.sweeper = &Sweeper{DB: w.db, Session: n.session, Woken: func() {}, Backfill: func() {}, Log: log}
	n.feeder = NewFeeder(Feeder{DB: w.db, Session: n.session, Soon: func() {}, Log: log})
	n.editor = &Editor{DB: w.db, Session: n.session, Soon: func() {}}
	n.recorder = result.New(x, n.session.Now, func() {}, log)
	n.compensator = compensate.New(compensate.Compensator{DB: w.db, Exclusion: x, Session: n.session.id, Sets: []compensate.Set{n.prepared, n}, Freed: func() {}, Log: log})
	return n
}

func random(r *rand.Rand) (b [16]byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The executing set, in which an attempt ends when the world says so.

func (n *worldNode) Len() int               { return len(n.executing) }
func (n *worldNode) Free() int              { return 100 - len(n.executing) }
func (n *worldNode) HasEnded(id int64) bool { return n.ended[id] > 0 }

func (n *worldNode) IsOver(int64, job.Launch) bool { return false } // here HasEnded is about every job
func (n *worldNode) Over() map[int64]job.Launch    { return nil }

func (n *worldNode) Has(task int64, l job.Launch) bool {
	a := n.executing[task]
	return a != nil && a.Launch == l
}

func (n *worldNode) Kill(l job.Launch, _ bool) {
	if a := n.running[l]; a != nil && a.node == n {
		n.end(a, job.Killed, true)
	}
}

func (n *worldNode) Add(s job.Started) {
	w := n.world
	w.note("%s starts job %d due %s attempt %d origin %d", n.name, s.JobID, s.Due, s.Attempt, s.Origin)
	if w.r.IntN(25) == 0 {
		return // it is never spawned: compensation gives it back
	}
	j := w.model(s.JobID)
	if s.Origin == 0 {
		if j.paused && (j.until == 0 || w.now < j.until) || w.covered() {
			w.Errorf("job %d is paused, and due time %s was started", s.JobID, s.Due)
		}
		j.lastDue = max(j.lastDue, s.Due)
	}
	key := fmt.Sprint(s.JobID, s.Due, s.Origin, s.Attempt)
	if w.begun[key]++; w.begun[key] > 1 {
		w.Errorf("attempt %d of job %d due %s (origin %d) was executed twice", s.Attempt, s.JobID, s.Due, s.Origin)
	}
	grouped := 0
	for _, o := range w.running {
		if o.JobID == s.JobID && s.Spec.Overlap != job.OverlapAllow {
			w.Errorf("job %d (%s) executes due %s beside %s", s.JobID, s.Spec.Overlap, s.Due, o.Due)
		}
		if w.model(o.JobID).job.Spec.Group != "" { // an edit moves what executes to the group of the new definition
			grouped++
		}
	}
	if s.Spec.Group != "" && grouped >= 2 {
		w.Errorf("job %d executes due %s beside %d others of its group", s.JobID, s.Due, grouped)
	}
	a := &attempt{s, n}
	n.executing[s.ID], w.running[s.Launch] = a, a
	w.lastAdd = max(w.now, s.Due)
}

// end has an attempt end; what comes of it is written at the recorder's next look.
func (n *worldNode) end(a *attempt, o job.Outcome, stopped bool) {
	delete(n.running, a.Launch)
	n.fates[a.Launch] = o
	n.ended[a.JobID]++
	run := job.Run{
		Launch: a.Launch, JobID: a.JobID, Due: a.Due, Until: a.Due, Count: 1, Origin: a.Origin, Attempt: a.Attempt, Final: true,
		Started: max(a.At, a.DueNow), Ended: max(n.now, a.At, a.DueNow), Node: n.name, Result: job.Result{Outcome: o},
	}
	var again job.Micros
	if after, ok := a.Spec.Again(a.Attempt, o, 0); ok && !stopped {
		run.Final, again = false, run.Ended.Add(after)
	}
	n.recorder.Put(&result.Outcome{Task: a.Task, Run: run, Again: again, Awaited: a.Spec.Awaited(a.Origin), Group: a.Spec.Group, Written: func() {
		delete(n.executing, a.ID)
		n.ended[a.JobID]--
	}})
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, w.now.String()+" "+fmt.Sprintf(format, args...))
	if len(w.log) > 80 {
		w.log = w.log[1:]
	}
}

func (w *world) model(id int64) *modelJob {
	for _, j := range w.jobs {
		if j.job.ID == id {
			return j
		}
	}
	w.Fatalf("there is no job %d", id)
	return nil
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// step does one random thing.
func (w *world) step() {
	n := w.nodes[w.r.IntN(3)]
	ctx := w.Context()
	switch k := w.r.IntN(1000); {
	case k < 220:
		w.advance(time.Duration(1+w.r.IntN(4000)) * time.Millisecond)
	case k < 225:
		w.advance(time.Duration(60+w.r.IntN(300)) * time.Second) // nobody did anything for so long
	case k < 320:
		w.look(n.planner.plan(ctx, w.now))
	case k < 500:
		_, err := n.claimer.claim(ctx, w.now, pick(w.r, -neglected, urgent))
		w.look(0, err)
	case k < 680:
		n.starter.start(ctx, w.now)
	case k < 790:
		w.finish()
	case k < 860:
		n.recorder.Flush(ctx)
	case k < 880:
		w.look(n.compensator.Compensate(ctx))
	case k < 900:
		n.sweeper.rounds = w.r.IntN(2) * (tidyEvery - 1)
		w.look(0, n.sweeper.sweep(ctx, w.now))
	case k < 920:
		w.look(0, n.feeder.feedAll(ctx))
	case k < 925:
		w.die()
	case k < 945:
		w.bury()
	case k < 960:
		w.kills(n)
	default:
		w.person(n)
	}
}

// look takes the error of a stage's look: nothing is in its way here, so there is none.
func (w *world) look(_ int, err error) {
	w.Helper()
	switch {
	case err == nil:
	case strings.Contains(err.Error(), "invalid connection"): // the machine stood still for longer than a statement may take: a node tries again
		w.note("a look that did not come to its end: %v", err)
	default:
		w.Errorf("a look: %v", err)
	}
}

func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	for _, n := range w.nodes {
		n.session.set(w.now)
	}
}

func (w *world) finish() {
	if len(w.running) == 0 {
		return
	}
	all := slices.SortedFunc(maps.Values(w.running), func(a, b *attempt) int { return int(a.ID - b.ID) })
	a := all[w.r.IntN(len(all))]
	o := pick(w.r, job.Succeeded, job.Succeeded, job.Succeeded, job.Failed, job.TimedOut)
	w.note("job %d due %s attempt %d ends %s on %s", a.JobID, a.Due, a.Attempt, o, a.node.name)
	a.node.end(a, o, false)
}

// die has a node vanish with everything that it did not write, and come back as another session.
func (w *world) die() {
	i := w.r.IntN(3)
	n := w.nodes[i]
	w.note("%s dies, session %s", n.name, n.session.id)
	for l, a := range w.running {
		if a.node == n {
			delete(w.running, l) // the guard has killed it
		}
	}
	w.dead, w.gone[n.session.id] = append(w.dead, n.session.id), true
	w.nodes[i] = w.join(i)
}

// bury has the tasks of a dead session freed.
func (w *world) bury() {
	if len(w.dead) == 0 {
		return
	}
	o := session.Orphans{DB: w.db, Now: func() job.Micros { return w.now }, Node: func(uuid.UUID) string { return "" }, Changed: func() {}, Log: slog.New(slog.DiscardHandler)}
	w.note("the tasks of %s are freed", w.dead[0])
	w.look(0, o.Free(w.Context(), w.dead[0]))
	w.dead = w.dead[1:]
}

// kills has a node read whom it is to kill.
func (w *world) kills(n *worldNode) {
	found, err := w.db.KillsRequested(w.Context(), n.session.id)
	w.look(0, err)
	for _, k := range found {
		n.Kill(k.Launch, k.Replaced)
	}
}

// spec draws a definition. All due times are whole seconds.
func (w *world) spec(name string) job.Spec {
	start := w.now.Add(time.Duration(w.r.IntN(5)) * time.Second).Time().Truncate(time.Second)
	s := job.Spec{
		Name: name, Command: "true", Every: job.Duration(pick(w.r, 2, 3, 5, 7, 30)) * job.Duration(time.Second), Start: &start,
		Overlap: pick(w.r, job.OverlapSkip, job.OverlapQueue, job.OverlapReplace, job.OverlapAllow),
		Misfire: job.Misfire{Policy: pick(w.r, job.MisfireLatest, job.MisfireSkip, job.MisfireAll)},
		OnLost:  pick(w.r, job.LostFail, job.LostRerun),
	}
	if s.Overlap == job.OverlapQueue {
		s.Queue = 3
	}
	if s.Misfire.Policy == job.MisfireAll {
		s.Misfire.MaxCount = 6
	}
	if w.r.IntN(2) == 0 {
		s.Retry = job.Retry{Attempts: 3, Backoff: job.Duration(2 * time.Second)}
	}
	if w.r.IntN(3) == 0 {
		s.Group = "g"
	}
	if w.r.IntN(4) == 0 {
		s.StartDeadline = job.Duration(8 * time.Second)
	}
	return s
}

// person does what people do.
func (w *world) person(n *worldNode) {
	if w.now < w.lastAdd.Add(1100*time.Millisecond) && w.r.IntN(20) > 0 {
		w.advance(w.lastAdd.Add(1200 * time.Millisecond).Sub(w.now)) // else each edit waits for real until nothing can be spawned
	}
	ctx := w.Context()
	var living []*modelJob
	for _, j := range w.jobs {
		if !j.deleted {
			living = append(living, j)
		}
	}
	if len(living) < 4 {
		w.create()
		return
	}
	if w.r.IntN(10) == 0 {
		w.cover(n, pick(w.r, "", job.DefaultApp))
		return
	}
	j := living[w.r.IntN(len(living))]
	switch k := w.r.IntN(100); {
	case k < 25:
		until := pick(w.r, 0, w.now.Add(time.Duration(1+w.r.IntN(60))*time.Second))
		w.note("pause %d until %s", j.job.ID, until)
		w.pause(n, j, until)
	case k < 50:
		w.resume(n, j)
	case k < 70:
		w.edit(n, j)
	case k < 75:
		w.note("delete %d", j.job.ID)
		upTo, _ := w.awake(w.sync(j), j)
		w.must(nil, n.editor.Delete(ctx, j.job.ID))
		j.materialise(w.now, upTo)
		j.deleted = true
	case k < 85:
		asked, err := n.editor.RunNow(ctx, j.job.ID, "")
		w.must(nil, err)
		w.note("run %d now, origin %d", j.job.ID, asked.Origin)
		w.requests[asked.Origin] = j.job.ID
	case k < 92:
		w.backfill(n, j)
	case k < 95 && len(w.fills) > 0:
		f := w.fills[w.r.IntN(len(w.fills))]
		w.note("cancel backfill %d", f.b.ID)
		b, err := n.editor.CancelBackfill(ctx, f.b.ID)
		w.must(nil, err)
		f.cancelled = b.State == job.BackfillCancelled
	default:
		for l := range w.running {
			w.note("kill %s", l)
			if err := n.editor.Kill(ctx, l); err != nil && !errors.Is(err, sql.ErrNotFound) {
				w.must(nil, err)
			}
			break
		}
	}
}

func (w *world) create() {
	w.names++
	j, err := w.nodes[0].editor.Create(w.Context(), w.spec(fmt.Sprint("job ", w.names)), false)
	w.must(nil, err)
	w.note("create %d: every %s from %s, overlap %s, misfire %s, group %q, deadline %s", j.ID, j.Spec.Every, j.Spec.Start, j.Spec.Overlap, j.Spec.Misfire.Policy, j.Spec.Group, j.Spec.StartDeadline)
	m := &modelJob{job: j, from: w.now}
	m.define(j)
	w.jobs = append(w.jobs, m)
}

func (j *modelJob) define(d job.Job) {
	j.job, j.every, j.first = d, job.Micros(time.Duration(d.Spec.Every).Microseconds()), job.MicrosOf(*d.Spec.Start)
}

// dues are the due times of the present definition in (after, upTo].
func (j *modelJob) dues(after, upTo job.Micros) (out []job.Micros) {
	for due := j.first; due <= upTo; due += j.every {
		if due > after {
			out = append(out, due)
		}
	}
	return out
}

// materialise remembers the due times that the present definition has had up to an instant.
func (j *modelJob) materialise(now, upTo job.Micros) {
	if !j.paused {
		j.owed = append(j.owed, j.dues(j.from, upTo)...)
	}
	j.from = max(now, upTo)
}

// upTo is the instant up to which a job has had due times that leave records: now, or when it was held. One that lies
// ahead counts if it was begun, or ended.
func (w *world) upTo(row sql.JobRow, j *modelJob) job.Micros {
	if row.Held {
		return max(row.PausedAt, row.LastDue)
	}
	return max(w.now, row.LastDue, j.lastDue)
}

// awake is upTo for a change of a job, and whether the job is held then: first of all a change gives back the due times that
// a pause took which has ended by itself, if no planner has come since.
func (w *world) awake(row sql.JobRow, j *modelJob) (upTo job.Micros, held bool) {
	held = row.Held
	switch over := j.paused && j.until != 0 && j.until <= w.now; {
	case over && w.covered():
		j.paused, j.from = false, j.stopped
		return max(j.stopped, row.LastDue, j.lastDue), true
	case over:
		j.paused, j.from = false, j.stopped
		held = false
	case held && !w.covered():
		held = false
	default:
		return w.upTo(row, j), held
	}
	return max(w.now, row.LastDue, j.lastDue), held
}

// sync reads a job's row, and notes that its pause has ended by itself.
func (w *world) sync(j *modelJob) sql.JobRow {
	row, err := w.db.Job(w.Context(), j.job.ID)
	w.must(nil, err)
	if j.paused && !row.Paused {
		if j.until == 0 || w.now < j.until {
			w.Errorf("job %d was resumed by nobody", j.job.ID)
		}
		j.paused, j.from = false, j.stopped
	}
	j.lastDue = max(j.lastDue, row.LastDue) // what ended ahead of its due time, because the job was held
	return row
}

// covered tells whether all jobs are paused with their app or the cluster.
func (w *world) covered() bool {
	for _, until := range w.covers {
		if until == 0 || w.now < until {
			return true
		}
	}
	return false
}

// cover pauses the app of all jobs, or the cluster, or ends that.
func (w *world) cover(n *worldNode, app string) {
	for a, until := range w.covers { // one of both at a time, and mostly not for long: else hardly anything is executed
		if until == 0 || w.now < until {
			app = a
		}
	}
	if until, there := w.covers[app]; there && (until == 0 || w.now < until) && w.r.IntN(6) > 0 {
		w.note("resume app %q", app)
		w.must(nil, n.editor.ResumeApp(w.Context(), app))
		delete(w.covers, app)
		return
	}
	until := job.Micros(0)
	if w.r.IntN(4) > 0 {
		until = w.now.Add(time.Duration(1+w.r.IntN(60)) * time.Second)
	}
	w.note("pause app %q until %s", app, until)
	hurried, cancel := context.WithTimeout(w.Context(), 200*time.Millisecond) // nothing is spawned here after a while
	defer cancel()
	if _, err := n.editor.PauseApp(hurried, app, job.PauseRequest{Until: until, Reason: "x"}); err != nil && !sql.IsUnknown(err) {
		w.must(nil, err)
	}
	w.covers[app] = until
}

func (w *world) edit(n *worldNode, j *modelJob) {
	spec := w.spec(j.job.Spec.Name)
	row := w.sync(j)
	upTo, held := w.awake(row, j)
	same := w.r.IntN(2) == 0 // when it is due
	if same {
		spec.Every, spec.Start = j.job.Spec.Every, j.job.Spec.Start
	}
	w.note("edit %d: every %s from %s, overlap %s, misfire %s, group %q, deadline %s", j.job.ID, spec.Every, spec.Start, spec.Overlap, spec.Misfire.Policy, spec.Group, spec.StartDeadline)
	edited, err := n.editor.Update(w.Context(), j.job.ID, row.Version, spec)
	w.must(nil, err)
	switch { // what passed in a pause has a record by the definition that goes, unless the new one is due as that was
	case (j.paused || held) && same:
	case j.paused:
		j.owed = append(j.owed, j.dues(j.stopped, w.now)...)
		j.stopped = max(w.now, j.lastDue)
		j.from = max(w.now, upTo)
	default:
		j.materialise(w.now, max(w.now, upTo))
	}
	j.define(edited)
}

func (w *world) pause(n *worldNode, j *modelJob, until job.Micros) {
	row := w.sync(j)
	if j.paused {
		return
	}
	// What is prepared ahead of its due time ends skipped, and is a due time that has been.
	for _, t := range w.tasks(j.job.ID) {
		if t.Origin == 0 && t.State == job.Prepare && !row.Held {
			j.lastDue = max(j.lastDue, t.Due)
		}
	}
	upTo, held := w.awake(row, j)
	w.must(n.editor.Pause(w.Context(), j.job.ID, job.PauseRequest{Until: until}))
	j.materialise(w.now, upTo)
	j.paused, j.stopped, j.until = true, max(w.now, j.lastDue), until
	if held {
		j.stopped = max(row.PausedAt, j.lastDue)
	}
}

func (w *world) resume(n *worldNode, j *modelJob) {
	if w.sync(j); !j.paused {
		return
	}
	w.note("resume %d", j.job.ID)
	w.must(n.editor.Resume(w.Context(), j.job.ID))
	j.paused, j.from = false, j.stopped
}

func (w *world) backfill(n *worldNode, j *modelJob) {
	dues := j.dues(j.from, w.now)
	if len(dues) == 0 {
		return
	}
	dues = dues[max(0, len(dues)-8):]
	b, err := n.editor.Backfill(w.Context(), j.job.ID, dues[0].Time(), dues[len(dues)-1].Time(), 1+w.r.IntN(3), false, "")
	w.must(nil, err)
	w.note("backfill %d of job %d: %d due times", b.ID, j.job.ID, len(dues))
	w.fills = append(w.fills, &modelFill{b: b, dues: dues})
}

func (w *world) tasks(id int64) (rows []sql.TaskRow) {
	w.must(nil, w.db.Tx(w.Context(), func(tx *sql.Tx) (err error) { rows, err = tx.LiveTasks(id); return err }))
	return rows
}

// settle lets the world come to rest: all that people stopped is resumed, all that waits is done.
func (w *world) settle() {
	for _, app := range []string{"", job.DefaultApp} {
		w.must(nil, w.nodes[0].editor.ResumeApp(w.Context(), app))
	}
	clear(w.covers)
	for _, j := range w.jobs {
		if !j.deleted {
			w.resume(w.nodes[0], j)
		}
	}
	for len(w.dead) > 0 {
		w.bury()
	}
	for range 20 { // backfills come to their end
		w.rest(20)
		var running int
		if err := w.db.Raw().QueryRow("SELECT COUNT(*) FROM backfill WHERE state = 0").Scan(&running); err == nil && running == 0 {
			break
		}
	}
	for _, j := range w.jobs {
		if !j.deleted { // no new due times
			w.pause(w.nodes[0], j, 0)
		}
	}
	w.rest(40)
}

// rest has every node look at everything for some rounds.
func (w *world) rest(rounds int) {
	ctx := w.Context()
	for range rounds {
		w.advance(1500 * time.Millisecond)
		for _, n := range w.nodes {
			w.kills(n)
			for len(w.running) > 0 {
				w.finish()
			}
			n.recorder.Flush(ctx)
			w.look(n.planner.plan(ctx, w.now))
			_, err := n.claimer.claim(ctx, w.now, urgent)
			w.look(0, err)
			n.starter.start(ctx, w.now)
			w.look(n.compensator.Compensate(ctx))
			n.sweeper.rounds = tidyEvery - 1
			w.look(0, n.sweeper.sweep(ctx, w.now))
			w.look(0, n.feeder.feedAll(ctx))
		}
	}
}

// check holds the rows against the rules.
func (w *world) check(end bool) {
	w.accounted, w.outcomes = 0, map[job.Outcome]int{}
	for _, j := range w.jobs {
		w.checkJob(j, end)
	}
	if !end {
		return
	}
	for _, c := range []struct{ what, query string }{
		{"tasks that wait", "SELECT COUNT(*) FROM task WHERE state = 3"}, {"rows of waiting", "SELECT COUNT(*) FROM waiting"},
		{"tasks", "SELECT COUNT(*) FROM task"}, {"held jobs", "SELECT COUNT(*) FROM job WHERE held = 1 AND living = 1"}, {"pauses", "SELECT COUNT(*) FROM pause"}, {"backfills that run", "SELECT COUNT(*) FROM backfill WHERE state = 0"},
	} {
		n := 0
		if err := w.db.Raw().QueryRow(c.query).Scan(&n); err != nil || n != 0 {
			w.Errorf("%d %s are left, %v", n, c.what, err)
		}
	}
}

func (w *world) checkJob(j *modelJob, end bool) {
	id := j.job.ID
	const most = 10_000 // room for so many is made each time
	runs, err := w.db.Runs(w.Context(), sql.RunFilter{JobID: id, Limit: most})
	w.must(nil, err)
	if len(runs) == most {
		w.Fatalf("job %d has more runs than are looked at", id)
	}
	row := w.sync(j)
	tasks := w.tasks(id)
	owed := slices.Clone(j.owed)
	if !j.paused && !j.deleted {
		owed = append(owed, j.dues(j.from, w.upTo(row, j))...)
	}
	slices.Sort(owed)
	seen := map[job.Micros]int{} // due times of the schedule that a final run or a live task stands for
	asked := map[int64]map[job.Micros]int{}
	attempts := map[string]int{}
	for _, r := range runs {
		w.checkRun(j, r)
		key := fmt.Sprint(r.JobID, r.Due, r.Origin)
		attempts[key]++
		if !r.Final {
			continue
		}
		w.outcomes[r.Outcome] += int(r.Count)
		if r.Origin != 0 {
			count(asked, r.Origin, r.Due)
			continue
		}
		n := int64(0)
		for _, due := range owed {
			if r.Due <= due && due <= r.Until {
				seen[due]++
				n++
			}
		}
		if n != r.Count {
			w.Errorf("job %d: a run %s due %s to %s stands for %d due times, of which %d are due times: %s", id, r.Outcome, r.Due, r.Until, r.Count, n, r.Reason)
		}
	}
	for _, t := range tasks {
		switch {
		case t.Origin != 0:
			count(asked, t.Origin, t.Due)
		case slices.Contains(owed, t.Due):
			seen[t.Due]++
		case t.Due <= w.now || j.deleted || !j.paused && !slices.Contains(j.dues(j.from, t.Due), t.Due):
			w.Errorf("job %d has a %s task that is no due time: %s", id, t.State, t.Due)
		}
	}
	for _, due := range owed {
		n := seen[due]
		if row.NextDue != 0 && row.NextDue <= due {
			n++ // it is planned next
		}
		if n != 1 {
			w.Errorf("job %d, due %s: %d records, want one", id, due, n)
		}
	}
	w.accounted += len(owed)
	for origin, of := range w.requests {
		if of == id && total(asked[origin]) != 1 {
			w.Errorf("job %d: a run was asked for, %d records", id, total(asked[origin]))
		}
	}
	for _, f := range w.fills {
		if f.b.JobID != id {
			continue
		}
		got := asked[f.b.Origin()]
		for due, n := range got {
			if n != 1 || !slices.Contains(f.dues, due) {
				w.Errorf("backfill %d of job %d has %d records for due %s", f.b.ID, id, n, due)
			}
		}
		if end && !f.cancelled && !j.deleted && len(got) > len(f.dues) {
			w.Errorf("backfill %d of job %d: %d of %d due times have a record", f.b.ID, id, len(got), len(f.dues))
		}
	}
}

func count(m map[int64]map[job.Micros]int, origin int64, due job.Micros) {
	if m[origin] == nil {
		m[origin] = map[job.Micros]int{}
	}
	m[origin][due]++
}

func total(m map[job.Micros]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}

// checkRun holds that what a run says has been.
func (w *world) checkRun(j *modelJob, r sql.RunRow) {
	fate, ended := w.fates[r.Launch]
	wrong := func(why string) {
		w.Errorf("job %d due %s origin %d attempt %d: a run %s (%s), but %s", r.JobID, r.Due, r.Origin, r.Attempt, r.Outcome, r.Reason, why)
	}
	executed := w.begun[fmt.Sprint(r.JobID, r.Due, r.Origin, r.Attempt)]
	switch r.Outcome {
	case job.Succeeded, job.Failed, job.TimedOut, job.Killed:
		if !ended || fate != r.Outcome {
			wrong(fmt.Sprintf("its attempt ended %s", fate))
		}
	case job.Lost:
		if !w.gone[r.Launch.Session] {
			wrong("its session lives")
		}
	case job.Skipped, job.Missed, job.Superseded:
		if ended || executed > 0 {
			wrong("it was executed")
		}
		if r.Reason == "" {
			wrong("it has no reason")
		}
	}
	if r.Outcome == job.Superseded && r.Until >= w.now {
		wrong("it lies ahead")
	}
	if r.Outcome == job.Missed && r.Count == 1 && r.Ended.Sub(r.Due) < 8*time.Second {
		wrong("it was not late")
	}
}
