package schedule

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Executing is the set of executing runs of this session.
type Executing interface {
	Free() int      // the number of runs that may still start
	TooLate() int64 // the number of runs that were started and not spawned in time, since the set was made
	Add([]job.Started)
}

// Ends holds the ends of this node's runs until they are written.
type Ends interface {
	// Push writes the pending ends of runs of the given jobs. It returns soon, written or not.
	Push(ctx context.Context, jobs []int64)
}

// StarterConfig configures a Starter.
type StarterConfig struct {
	DB          *sql.DB
	Exclusion   *lock.Exclusion
	Session     Session
	Definitions *Definitions
	Prepared    *Prepared
	Executing   Executing
	Ends        Ends
	Stops       *Stops // pauses and disabled handlers
	Limits      *Limiter
	Lookout     Lookout
	Log         *slog.Logger

	Labels map[string]string // of this node and of its handlers
	Window time.Duration     // the least spawn window; it counts from the due time or the start, whichever is later

	Wake        loop.Wake // a slot has become free
	WakeOverdue loop.Wake // runs have become idle, so the next look for overdue runs comes at once
	WakeWishes  loop.Wake // later due times replace executing runs, which must be killed
}

// Starter starts the prepared runs of this session that are due.
type Starter struct {
	StarterConfig

	pace    *pace
	room    *room
	portion *portion
	aside   *aside
	order   *order
	alarm   alarm // the next instant at which time wakes runs of a group with a rate
	skips   *skipLog
	busy    int // consecutive looks that could not judge an overdue run because a row was locked
}

// NewStarter returns a starter. The caller runs it.
func NewStarter(cfg StarterConfig) *Starter {
	return &Starter{
		StarterConfig: cfg,
		pace:          new(pace),
		room:          new(room),
		portion:       new(portion),
		aside:         new(aside),
		order:         new(order),
		skips:         newSkipLog(cfg.Log),
	}
}

// mayStart reports whether the lease is fresh and the node knows the current stops.
func (s *Starter) mayStart() bool {
	_, fresh := s.Stops.now()
	return fresh && s.Session.Fresh()
}

// startBatch is the largest number of runs that one transaction starts.
const startBatch = 800

// start takes the runs that are due before an instant and decides on them. It returns the number of
// runs that it took.
func (s *Starter) start(ctx context.Context, now, before job.Micros) (int, error) {
	if !s.mayStart() {
		return 0, nil
	}

	runs, taken := s.takeFitting(before)
	defer s.unreserve(taken)
	if len(runs) == 0 {
		return 0, nil
	}
	s.Ends.Push(ctx, jobsOf(runs)) // a run that is known to be over must not block the next one

	verdicts, err := s.decideHalves(ctx, runs, nil, now)
	if err != nil {
		for _, r := range runs { // Return ignores runs with a verdict: they have left the set or are queued again
			s.Prepared.Return(r, now.Add(retryPause))
		}
	}

	return len(runs), errors.Join(err, s.learn(ctx, verdicts, now))
}

// takeFitting takes as many prepared runs as there is room for, and reserves that room. It takes
// only runs that are due before an instant.
func (s *Starter) takeFitting(before job.Micros) (runs []trip.Run, taken int) {
	if s.Executing.Free() <= 0 {
		return nil, 0
	}
	runs = s.Prepared.Take(before, startBatch)
	room := s.reserve(len(runs))
	n, taken := s.fit(runs, room)
	for _, r := range runs[n:] {
		s.Prepared.Return(r, r.DueNow)
	}
	s.unreserve(room - taken)
	return runs[:n], taken
}

const retryPause = 100 * time.Millisecond

// decide reads, judges and writes in one transaction. holders has the owners of runs that this
// session does not hold yet.
func (s *Starter) decide(
	ctx context.Context, runs []trip.Run, holders map[int64]trip.Owner, now job.Micros,
) (verdicts []verdict, err error) {
	defer s.pace.decided(time.Now())
	woken, wakes, window := 0, job.Micros(0), s.window()
	stops, _ := s.Stops.now()
	around := surroundings{
		labels: s.Labels,
		stops:  stops,
		limits: s.Limits.allowances(now),
		late:   s.lateOnes(ctx, runs, now),
		lost:   s.homelessOnes(ctx, runs, stops, now),

		waiting: s.order.now(now),
	}
	var heldFor []trip.Unbegun

	err = s.Exclusion.Do(ctx, lock.Change{
		Name: "start",
		Rows: func(tx *sql.Tx) error {
			scene, err := readScene(tx, runs, s.Definitions, around, now)
			if err != nil {
				return err
			}
			verdicts = judge(runs, scene)
			heldFor = scene.heldFor()
			if err := takeOver(tx, s.Session.Number(), verdicts, holders); err != nil {
				return err
			}
			woken, err = write(tx, s.Session.Number(), verdicts, scene, int64(window))
			wakes = firstWake(scene.lockedGroups())
			return err
		},
		Settle: func(tx *sql.Tx) error {
			started, err := trip.StartedAmong(tx, s.Session.Number(), launchesOf(verdicts, start))
			forgetOthers(verdicts, start, started)
			return err
		},
		// If we die before or after this, the rows say that the runs execute for a dead session,
		// and the runs end lost. No process of a node outlives the node.
		Sets: func() { s.apply(verdicts, now, window) },
	})
	if err == nil {
		s.order.note(heldFor, now)
		s.signalOthers(woken, verdicts)
		s.setAlarm(wakes, now)
		s.skips.noteRefusals(verdicts, s.Definitions)
	}

	return verdicts, err
}

// signalOthers wakes the loops that have new work.
func (s *Starter) signalOthers(woken int, verdicts []verdict) {
	if woken > 0 {
		s.WakeOverdue.Up()
	}
	replaces := func(v verdict) bool { return v.action == wait && v.replaces }
	if slices.ContainsFunc(verdicts, replaces) {
		s.WakeWishes.Up()
	}
}

// apply changes the sets of this node to match the rows that the transaction has written.
func (s *Starter) apply(verdicts []verdict, now, window job.Micros) {
	var started []job.Started
	for i := range verdicts {
		v := &verdicts[i]
		switch v.action {
		case start:
			r := &v.run
			started = append(started, job.Started{
				Launch: r.Launch, JobID: r.JobID, Kind: r.Kind, Request: r.Request, Attempt: r.Attempt,
				Given: r.Given, Due: r.Due, DueNow: r.DueNow, Spec: v.def.Spec, At: now, SpawnBy: max(r.DueNow, now) + window,
			})
		case hold:
			s.Prepared.Hold(v.run, v.at, now)
			continue
		case unread:
			continue // learn puts the run back
		}
		s.Prepared.Drop(v.run.Launch)
	}

	s.portion.took(len(started))
	s.Executing.Add(started)
	s.Limits.took(verdicts, now)
}

// busyPause returns the pause before the next look at a run whose rows are locked. Each further
// pause is twice as long, up to 1 s.
func busyPause(times int) time.Duration { return min(time.Second, 4*time.Millisecond<<min(times, 8)) }

// learn reads the definitions that verdicts lacked, and puts their runs back for another look.
func (s *Starter) learn(ctx context.Context, verdicts []verdict, now job.Micros) error {
	var runs []trip.Run
	for i := range verdicts {
		if verdicts[i].action == unread {
			runs = append(runs, verdicts[i].run)
		}
	}

	if len(runs) == 0 {
		return nil
	}

	read, err := trip.Definitions(s.DB.Reader(ctx), jobsOf(runs))
	for _, d := range read {
		s.Definitions.Put(d)
	}

	for _, r := range runs {
		s.Prepared.Return(r, now)
	}

	return err
}
