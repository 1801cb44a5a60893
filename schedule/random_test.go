package schedule

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// life is the schedule of a job between two instants: a period in seconds from t0 on, and a shift.
// It belongs to the oracle, and computes due times independently.
type life struct {
	from, to job.Micros // due times later than from, up to to
	every    int
	shift    int
}

func (l life) dues() (dues []job.Micros) {
	step := job.Micros(l.every) * 1_000_000
	for due := t0 + job.Micros(l.shift)*1_000_000; due <= l.to; due += step {
		if due > l.from {
			dues = append(dues, due)
		}
	}
	return dues
}

// soul is a job of the random test.
type soul struct {
	id      int64
	name    string
	lives   []life
	paused  bool
	deleted bool
}

func (s *soul) last() *life { return &s.lives[len(s.lives)-1] }

// chaos makes random changes and steps.
type chaos struct {
	*cluster
	*rand.Rand
	now     job.Micros
	person  *person
	members []*member
	plans   [][]plan // that a member has computed and not written
	souls   []*soul
	log     []string
}

// TestRandomLife: people and nodes act in random order. Each due time in the lifetime of each
// definition must end in exactly one final run, or be counted in exactly one row. An independent
// oracle computes the due times.
func TestRandomLife(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	if s := os.Getenv("GOCRONTAB_SEED"); s != "" {
		seed, _ := strconv.ParseUint(s, 10, 64)
		seeds = []uint64{seed}
	}

	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newCluster(t)
			x := &chaos{cluster: c, Rand: rand.New(rand.NewPCG(seed, 0)), now: t0 + 1, person: c.person(c.dsn)}
			for i := range 2 {
				m := c.member(trip.Owner(i+1), c.dsn)
				m.starter.Window = 0
				if i == 1 { // late claims start at once
					m.claimer.Starter = m.starter
				}
				x.members = append(x.members, m)
			}
			x.plans = make([][]plan, len(x.members))
			for range 400 {
				x.step()
			}
			x.finale()
			x.check()
			if t.Failed() {
				t.Logf("to see it again: GOCRONTAB_SEED=%d", seed)
			}
		})
	}
}

func (x *chaos) note(format string, args ...any) {
	x.log = append(x.log, fmt.Sprintf("%8.3f ", x.now.Sub(t0).Seconds())+fmt.Sprintf(format, args...))
}

// tick moves the clock for all, never to a whole second.
func (x *chaos) tick(most time.Duration) {
	x.now += job.Micros(1 + x.Int64N(most.Microseconds()))
	if x.now%1_000_000 == 0 {
		x.now++
	}
	x.person.session.now = x.now
	for _, m := range x.members {
		m.session.now = x.now
	}
}

func (x *chaos) step() {
	x.tick(900 * time.Millisecond)
	i := x.IntN(len(x.members))
	m := x.members[i]
	switch n := x.IntN(100); {
	case n < 25:
		x.claim(m)
	case n < 33:
		x.computes(i)
	case n < 41:
		x.writes(i)
	case n < 60:
		x.start(m)
	case n < 67:
		x.overdue(m)
	case n < 78:
		x.finishSome(0.5)
	case n < 81:
		x.note("member %d forgets its prepared runs", i)
		m.starter.Prepared.Forget()
	default:
		x.change()
	}
}

func (x *chaos) check1(err error) {
	x.Helper()
	if err != nil {
		for _, line := range x.log {
			x.Log(line)
		}
		x.Fatal(err)
	}
}

func (x *chaos) claim(m *member) {
	x.note("member %d claims", m.session.number)
	m.claimer.round.again()
	_, err := m.claimer.look(x.Context(), x.now)
	x.check1(err)
}

// computes is the first half of a claim: it reads and computes without a lock.
func (x *chaos) computes(i int) {
	c := x.members[i].claimer
	slice := trip.Slice{Before: x.now.Add(c.LookAhead), ToHash: job.Hashes}
	candidates, err := trip.Candidates(c.DB.Reader(x.Context()), slice, x.now, claimBatch)
	x.check1(err)
	x.check1(c.learn(x.Context(), candidates))
	x.plans[i] = c.compute(x.Context(), candidates, x.now)
	x.note("member %d has computed %d plans", i+1, len(x.plans[i]))
}

// writes is the second half.
func (x *chaos) writes(i int) {
	if len(x.plans[i]) == 0 {
		return
	}
	x.note("member %d writes its plans", i+1)
	x.check1(x.members[i].claimer.write(x.Context(), x.plans[i], x.now))
	x.plans[i] = nil
}

func (x *chaos) start(m *member) {
	_, err := m.starter.start(x.Context(), x.now, x.now)
	x.check1(err)
	x.note("member %d starts %v", m.session.number, m.set.take())
}

func (x *chaos) overdue(m *member) {
	_, err := m.starter.takeOverdue(x.Context(), x.now)
	x.check1(err)
	x.note("member %d takes over %v", m.session.number, m.set.take())
}

// finishSome ends executing runs, as recorders do.
func (x *chaos) finishSome(share float64) {
	for _, id := range x.rows("SELECT id FROM run WHERE state = 'executing'") {
		if x.Float64() < share {
			x.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'succeeded', final = 1, ended = ? WHERE id = ?", int64(x.now), id)
		}
	}

	// With misfire policy all, due times wait for the run of their job.
	var jobs []int64
	for _, text := range x.rows("SELECT DISTINCT job_id FROM run WHERE state = 'waiting' ORDER BY job_id") {
		id, _ := strconv.ParseInt(text, 10, 64)
		jobs = append(jobs, id)
	}
	x.check1(x.db.Tx(x.Context(), func(tx *sql.Tx) error {
		if _, err := trip.LockJobs(tx, jobs); err != nil {
			return err
		}
		_, err := trip.WakeJobs(tx, jobs, nil, x.now)
		return err
	}))
}

func (x *chaos) change() {
	alive := slices.DeleteFunc(slices.Clone(x.souls), func(s *soul) bool { return s.deleted })
	if len(alive) < 4 && (len(alive) == 0 || x.IntN(4) == 0) {
		x.create()
		return
	}

	s := alive[x.IntN(len(alive))]
	switch x.IntN(8) {
	case 0, 1, 2:
		x.update(s)
	case 3, 4:
		x.pause(s)
	case 5, 6:
		x.note("resume %s", s.name)
		x.person.must(x.person.Resume(x.person.ctx, s.id))
		s.paused = false
	default:
		if x.IntN(3) == 0 {
			x.remove(s)
		}
	}
}

// spec draws a definition.
func (x *chaos) spec(s *soul) job.Spec {
	l := s.last()
	start := t0.Add(time.Duration(l.shift) * time.Second).Time()
	spec := job.Spec{
		Name: s.name, Every: job.Duration(time.Duration(l.every) * time.Second), Start: &start, Command: fmt.Sprint("echo ", x.IntN(100)),
		Overlap: []job.Overlap{job.OverlapSkip, job.OverlapAllow}[x.IntN(2)],
	}
	spec.Misfire.Policy = []job.MisfirePolicy{job.MisfireLatest, job.MisfireSkip, job.MisfireAll}[x.IntN(3)]
	return spec
}

func (x *chaos) create() {
	s := &soul{name: fmt.Sprint("job-", len(x.souls))}
	s.lives = []life{{from: x.now, every: 1 + x.IntN(6), shift: x.IntN(4)}}
	s.paused = x.IntN(4) == 0
	x.souls = append(x.souls, s)
	x.note("create %s: every %d s, shift %d, paused %t", s.name, s.last().every, s.last().shift, s.paused)
	s.id = x.person.must(x.person.Create(x.person.ctx, x.spec(s), s.paused)).ID
}

func (x *chaos) update(s *soul) {
	old := s.last()
	old.to = x.now
	next := life{from: x.now, every: old.every, shift: old.shift}
	if x.IntN(3) > 0 {
		next.every, next.shift = 1+x.IntN(6), x.IntN(4)
	}
	s.lives = append(s.lives, next)
	x.note("update %s: every %d s, shift %d", s.name, next.every, next.shift)
	x.person.must(x.person.Update(x.person.ctx, s.id, 0, x.spec(s)))
}

func (x *chaos) pause(s *soul) {
	r := job.PauseRequest{Reason: fmt.Sprint("reason ", x.IntN(1000))}
	if x.IntN(2) == 0 {
		r.Until = x.now + job.Micros(1+x.Int64N(8_000_000))
	}
	x.note("pause %s until %g", s.name, r.Until.Sub(t0).Seconds())
	x.person.must(x.person.Pause(x.person.ctx, s.id, r))
}

func (x *chaos) remove(s *soul) {
	x.note("delete %s", s.name)
	x.person.must(x.person.Delete(x.person.ctx, s.id))
	s.last().to, s.deleted = x.now, true
}

// finale lets the nodes finish the remaining work, deletes all jobs, and lets the nodes finish
// again.
func (x *chaos) finale() {
	work := func() {
		for range 30 {
			x.tick(700 * time.Millisecond)
			for _, m := range x.members {
				x.claim(m)
				x.start(m)
				x.overdue(m)
				x.finishSome(1)
			}
		}
	}

	for _, s := range x.souls {
		if !s.deleted {
			x.person.must(x.person.Resume(x.person.ctx, s.id))
		}
	}

	work()
	var all []edit.Change
	for _, s := range x.souls {
		if !s.deleted {
			all = append(all, edit.Change{Action: job.ActionDelete, ID: s.id})
			s.last().to, s.deleted = x.now, true
		}
	}

	_, err := x.person.All(x.person.ctx, all)
	x.check1(err)
	work()
}

// record is a row as the oracle reads it.
type record struct {
	job              string
	due, last, count int64
	state, outcome   string
	final            bool
}

func (x *chaos) records() (out []record) {
	rows, err := x.db.Raw().Query(`
		SELECT j.name, r.due, COALESCE(r.due_last, r.due), COALESCE(r.due_count, 1), r.state, r.outcome, r.final
		FROM run r JOIN job j ON j.id = r.job_id ORDER BY j.name, r.due`)
	x.check1(err)
	defer rows.Close()
	for rows.Next() {
		var r record
		x.check1(rows.Scan(&r.job, &r.due, &r.last, &r.count, &r.state, &r.outcome, &r.final))
		out = append(out, r)
	}
	return out
}

// check compares the rows with the oracle.
func (x *chaos) check() {
	of := map[string][]record{}
	outcomes := map[string]int{}
	for _, r := range x.records() {
		if r.state != "ended" || !r.final {
			x.Errorf("%s at %s has not ended: %+v", r.job, x.at(r.due), r)
		}
		of[r.job] = append(of[r.job], r)
		outcomes[r.outcome]++
	}

	total := 0
	for _, s := range x.souls {
		var dues []job.Micros
		for _, l := range s.lives {
			dues = append(dues, l.dues()...)
		}
		total += len(dues)
		for _, due := range dues {
			n := 0
			for _, r := range of[s.name] {
				if r.due <= int64(due) && int64(due) <= r.last {
					n++
				}
			}
			if n != 1 {
				x.Errorf("%s at %s: %d rows stand for it, want 1", s.name, x.at(int64(due)), n)
			}
		}
		for _, r := range of[s.name] {
			n := int64(0)
			for _, due := range dues {
				if r.due <= int64(due) && int64(due) <= r.last {
					n++
				}
			}
			if n != r.count {
				x.Errorf("%s from %s to %s: the row counts %d due times, the oracle %d", s.name, x.at(r.due), x.at(r.last), r.count, n)
			}
		}
	}

	x.Logf("%d due times of %d jobs: %v", total, len(x.souls), outcomes)
	if x.Failed() {
		for _, line := range x.log {
			x.Log(line)
		}
	}
}

func (x *chaos) at(due int64) string { return fmt.Sprintf("%g", job.Micros(due).Sub(t0).Seconds()) }
