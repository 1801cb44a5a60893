package schedule

import (
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// A job can follow several jobs. Each end of such an upstream job leaves an arrival and makes a
// run. The starts of these runs exclude each other by the row of the job. A start that finds an
// arrival of each upstream job removes these arrivals and goes on. Any other run is removed: an
// arrival is still missing, or an earlier start has used the run's own arrival. An arrival commits
// together with its run, so the last of the starts sees all arrivals.
//
// Arrivals of chains that began with the same run are a wave: they are used only together. Without
// waves, one failure in one branch of a chain would shift the two branches against each other for
// ever.

// mostArrivals bounds the arrivals of one upstream job that wait for the others.
const mostArrivals = 10

// readArrivals reads the arrivals of jobs that a run of the batch may complete. The transaction has
// locked the rows of the jobs.
func (s *scene) readArrivals(tx *sql.Tx, runs []trip.Run) error {
	var jobs []int64
	for i := range runs {
		r := &runs[i]
		if spec := s.jobs[r.JobID].spec(); spec != nil && gathers(r, spec) && !slices.Contains(jobs, r.JobID) {
			jobs = append(jobs, r.JobID)
		}
	}
	if len(jobs) == 0 {
		return nil
	}

	found, err := trip.Arrivals(tx, jobs)
	for id, arrivals := range found {
		s.jobs[id].arrivals = arrivals
	}
	return err
}

// gathers reports whether a run waits for the ends of several jobs.
func gathers(r *trip.Run, spec *job.Spec) bool {
	return r.Kind == trip.After && r.Attempt == 1 && !r.Gathered &&
		r.Given != nil && r.Given.Upstream != nil && spec.After.Gathers()
}

// follows: the job may have been edited after the end of an upstream job made this run due.
func follows(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Kind != trip.After || r.Attempt > 1 || r.Given == nil || r.Given.Upstream == nil || j.spec() == nil {
		return nil
	}
	spec := j.def.Spec
	name, _ := job.ParseName(r.Given.Upstream.Job)
	if spec.Follows(name) {
		return nil
	}
	return refusal(job.Superseded, job.ReasonNotFollowed, "the job does not follow %s any more", name)
}

// gather removes a run of a job that follows several jobs, unless each of them has ended.
func gather(r *trip.Run, j *jobScene, _ job.Micros) *verdict {
	if r.Kind != trip.After || j.spec() == nil || !gathers(r, j.def.Spec) ||
		waveOf(r.Given.Upstream.Run, j.def.Spec, j.arrivals) != nil {
		return nil
	}
	return &verdict{action: drop}
}

// gathered updates the scene after a verdict on a run that waits for the ends of several jobs.
func (j *jobScene) gathered(v *verdict) {
	if v.run.Kind != trip.After || j.spec() == nil || !gathers(&v.run, j.def.Spec) {
		return
	}
	spec := j.def.Spec

	switch v.action {
	case start, wait, refuse:
		v.wave = waveOf(v.run.Given.Upstream.Run, spec, j.arrivals)
	case drop:
		v.wave = outdated(v.run.Given.Upstream.Run, spec, j.arrivals)
	}
	used := map[int64]bool{}
	for _, a := range v.wave {
		used[a.Run] = true
	}
	j.arrivals = slices.DeleteFunc(slices.Clone(j.arrivals), func(a trip.Arrival) bool { return used[a.Run] })
}

// waveOf returns the arrivals that are used up if the end of a run starts the job. It returns nil
// if the arrival of that run is gone, or if an upstream job has no matching arrival.
func waveOf(run int64, spec *job.Spec, arrivals []trip.Arrival) (used []trip.Arrival) {
	at := slices.IndexFunc(arrivals, func(a trip.Arrival) bool { return a.Run == run })
	if at < 0 {
		return nil
	}
	own := arrivals[at]

	// Of each job, take the latest arrival of the same wave. If there is none, take the latest
	// arrival of another chain.
	picked, mixed := map[job.Name]trip.Arrival{}, false
	for _, name := range spec.Upstreams() {
		wave, other := trip.Arrival{}, trip.Arrival{}
		for _, a := range arrivals {
			switch {
			case a.Name != name || a.Ended.Sub(own.Ended).Abs() > time.Duration(spec.After.Within):
			case a.Head != own.Head:
				other = a
			case a.Scheduled == own.Scheduled:
				wave = a
			}
		}
		switch {
		case name == own.Name:
			picked[name] = own
		case wave.Run != 0:
			picked[name] = wave
		case other.Run != 0:
			picked[name], mixed = other, true
		default:
			return nil
		}
	}

	// Earlier ends of the same jobs are used up, too, except those of other waves.
	for _, a := range arrivals {
		p, is := picked[a.Name]
		same := a.Head == p.Head && a.Scheduled == p.Scheduled
		if is && (a.Run == p.Run || same || mixed && a.Ended <= p.Ended) {
			used = append(used, a)
		}
	}
	return used
}

// outdated returns the arrivals that need not wait any longer: they are too many, or too old to be
// used together with the end of a run.
func outdated(run int64, spec *job.Spec, arrivals []trip.Arrival) (out []trip.Arrival) {
	at := slices.IndexFunc(arrivals, func(a trip.Arrival) bool { return a.Run == run })
	if at < 0 {
		return nil
	}

	oldest := arrivals[at].Ended.Add(-time.Duration(spec.After.Within))
	later := map[int64]int{}
	for i := len(arrivals) - 1; i >= 0; i-- {
		a := arrivals[i]
		if later[a.Upstream]++; a.Ended < oldest || later[a.Upstream] > mostArrivals {
			out = append(out, a)
		}
	}
	return out
}

// writeGathered removes the runs whose jobs wait for further ends, and the arrivals that were used.
func writeGathered(tx *sql.Tx, session trip.Owner, verdicts []verdict) error {
	var dropped []trip.Launch
	var jobs, gathered []int64
	var used []trip.Arrival
	for i := range verdicts {
		v := &verdicts[i]
		switch v.action {
		case drop:
			dropped, jobs = append(dropped, v.run.Launch), append(jobs, v.run.JobID)
		case start, wait:
			if v.wave != nil {
				gathered = append(gathered, v.run.Run)
			}
		case refuse:
		default:
			continue
		}
		used = append(used, v.wave...)
	}

	if err := trip.DropIncomplete(tx, session, dropped, jobs); err != nil {
		return err
	}
	if err := trip.MarkGathered(tx, gathered); err != nil {
		return err
	}
	return trip.DropArrivals(tx, used)
}

// delayedOf lists the due times of jobs with a delay that end without a start.
func delayedOf(verdicts []verdict, s *scene) (out []trip.Delayed) {
	add := func(r *trip.Run) {
		if spec := s.jobs[r.JobID].spec(); spec != nil && spec.Delay != 0 && r.Kind == trip.Schedule {
			out = append(out, trip.Delayed{JobID: r.JobID, Due: r.Due, At: spec.NextDelayed(s.now, s.now)})
		}
	}
	for i := range verdicts {
		v := &verdicts[i]
		switch v.action {
		case refuse:
			add(&v.run)
		case start, wait:
			for k := range v.supersedes {
				add(&v.supersedes[k].Run)
			}
		}
	}
	return out
}

// watches reports whether the end of a run has consequences for other runs.
func (j *jobScene) watches(r *trip.Run) bool {
	spec := j.spec()
	return j.Followed || r.Kind == trip.Schedule && spec != nil && spec.Delay != 0
}

// delayedDue returns the due time of a job with a delay: its cursor. The next due time is known
// only when the run of this one ends.
func delayedDue(spec *job.Spec, cursor job.Micros, resumed resumption, now, horizon job.Micros) (d dueTimes) {
	if cursor > horizon {
		d.next = cursor
		return d
	}

	last := max(now.Add(-spec.MissedAfter()), min(resumed.at, now)-1)
	if cursor <= last && !startsLate(spec, job.At{}, cursor, now) {
		d.count(spec, cursor, cursor, 1)
		d.resumedAt(resumed)
		d.next = spec.NextDelayed(now, now)
		return d
	}
	d.runs = []job.Micros{cursor}
	return d
}
