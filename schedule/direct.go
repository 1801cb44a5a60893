package schedule

import (
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// If a due time has already passed when it is claimed, the claim also starts its run, in the same
// transaction. This costs less than two thirds of a separate claim and start. It works only for
// runs that start at once. A run that must wait, is refused, or takes a slot of a group becomes
// prepared, and the starter judges it.

// direct holds the runs that one claim starts at once.
type direct struct {
	starter  *Starter
	around   surroundings
	window   job.Micros
	ripe     map[int64]bool // by run id: the run may start at once
	room     int            // reserved for the ripe runs
	verdicts []verdict      // the starts of the last try
}

// newDirect picks the due runs among the runs that a claim would insert, and reserves slots for
// them. The caller gives the slots back.
func (s *Starter) newDirect(plans []plan, runs [][]trip.Run, now job.Micros) *direct {
	if s == nil || !s.mayStart() {
		return &direct{}
	}

	stops, _ := s.Stops.now()
	d := &direct{
		starter: s,
		around:  surroundings{labels: s.Labels, stops: stops, limits: s.Limits.allowances(now), waiting: s.order.now(now)},
		window:  s.window(),
		ripe:    map[int64]bool{},
	}

	count := 0
	for i := range plans {
		if p := &plans[i]; p.elsewhere || p.broken != nil || p.grouped {
			continue
		}
		for j := range runs[i] {
			if r := &runs[i][j]; r.DueNow <= now {
				d.ripe[r.Run] = true
				count++
			}
		}
	}

	d.room = s.reserve(count)
	return d
}

// jobsOf lists the jobs with a run that may start at once.
func (d *direct) jobsOf(runs [][]trip.Run) (jobs []int64) {
	if d.room == 0 {
		return nil
	}
	for _, of := range runs {
		if len(of) > 0 && d.ripe[of[0].Run] {
			jobs = append(jobs, of[0].JobID)
		}
	}
	return jobs
}

// decide judges runs of jobs that the transaction has locked. It keeps the runs that start, and
// returns the runs that must be prepared.
func (d *direct) decide(
	tx *sql.Tx, runs []trip.Run, jobs map[int64]*trip.Job, defs *Definitions, now job.Micros,
) (prepare []trip.Run, err error) {
	d.verdicts = nil
	if d.room == 0 {
		return runs, nil
	}

	s := &scene{now: now, surroundings: d.around, jobs: map[int64]*jobScene{}}
	var ripe []trip.Run
	left := d.room
	for i := range runs {
		r := &runs[i]
		cost := d.starter.cost(r.JobID)
		if !d.ripe[r.Run] || left < cost {
			prepare = append(prepare, *r)
			continue
		}
		left -= cost
		ripe = append(ripe, *r)
		if s.jobs[r.JobID] == nil {
			s.addJob(jobs[r.JobID], defs)
		}
		s.jobs[r.JobID].latest = max(s.jobs[r.JobID].latest, r.Due)
	}
	if err := s.readTurns(tx); err != nil {
		return nil, err
	}
	if err := s.readLines(tx); err != nil {
		return nil, err
	}
	if err := s.readUnbegun(tx, ripe); err != nil {
		return nil, err
	}

	for _, v := range judge(ripe, s) {
		if v.action == start && !v.takes && !v.alone && len(v.supersedes) == 0 {
			v.run.DueNow = v.run.Due // the true due time is safe here: no node takes over an executing run
			d.verdicts = append(d.verdicts, v)
		} else {
			prepare = append(prepare, v.run)
		}
	}

	return prepare, nil
}

// write inserts the runs that start.
func (d *direct) write(tx *sql.Tx, now job.Micros) error {
	if len(d.verdicts) == 0 {
		return nil
	}
	runs := make([]trip.Run, len(d.verdicts))
	for i := range d.verdicts {
		runs[i] = d.verdicts[i].run
	}
	return trip.InsertStarted(tx, d.starter.Session.Number(), runs, now, int64(d.window))
}

// settle finds out which starts were applied after an unknown commit.
func (d *direct) settle(tx *sql.Tx) error {
	if len(d.verdicts) == 0 {
		return nil
	}
	started, err := trip.StartedAmong(tx, d.starter.Session.Number(), launchesOf(d.verdicts, start))
	forgetOthers(d.verdicts, start, started)
	return err
}

// apply hands the runs over to the executing set.
func (d *direct) apply(now job.Micros) {
	if len(d.verdicts) > 0 {
		d.starter.apply(d.verdicts, now, d.window)
	}
}

// giveBack gives the reserved slots back: by now the executing set counts the started runs.
func (d *direct) giveBack() {
	if d.room > 0 {
		d.starter.unreserve(d.room)
	}
}

// begun returns the effects of the starts on jobs.
func (d *direct) begun() map[int64]trip.Begun {
	out := make(map[int64]trip.Begun, len(d.verdicts))
	for i := range d.verdicts {
		v := &d.verdicts[i]
		b := out[v.run.JobID]
		out[v.run.JobID] = trip.Begun{JobID: v.run.JobID, To: max(b.To, v.run.Due), Running: v.turn}
	}
	return out
}
