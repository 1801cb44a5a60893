package schedule

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Late due times of a job start in their order, across nodes. After an outage, the earlier ones may
// be prepared for a session that has ended, or for another node, while this node claims the later
// ones. Without this rule the later ones would start first, and the earlier ones would end skipped.
//
// A late run is held while an earlier due time of its job has not begun. Both starts lock the row
// of the job, so each sees the other. job.begun_to bounds the search: nobody waits for a run at or
// before it. Once a run has started past an earlier run, no run waits for that earlier run any
// more.
//
// If an earlier run does not begin within mostHeld, the node gives it up: the run may be prepared
// on a node that hangs, or its row may be locked. Each node counts mostHeld from its own first
// look. So a held run needs no state in MySQL, and a node that dies takes only its own count with
// it.

const (
	// lateBy is how late a run must be for this rule. Runs on time cost no statement.
	lateBy = time.Second

	// mostHeld is the longest time that a run is held for an earlier one. It is long enough for
	// other nodes to take over a run that its node does not start: patience, a look, and some time
	// for the start.
	mostHeld = 5 * time.Second

	// mostEarlier bounds the earlier runs that one look reads.
	mostEarlier = 4 * startBatch
)

// order remembers the runs that this node waits for, so that it can give them up.
type order struct {
	mu    sync.Mutex
	until map[trip.Unbegun]job.Micros // when the run is given up
}

// waiting is the part of order that one decision needs.
type waiting struct {
	jobs    map[int64]bool // jobs with such runs
	givenUp map[int64]bool // runs
}

// now returns the runs that the node waits for. An entry stays for a moment after its run was
// given up, so the node does not wait for the same run again at once.
func (o *order) now(now job.Micros) (w waiting) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.until) == 0 {
		return w
	}

	w = waiting{map[int64]bool{}, map[int64]bool{}}
	maps.DeleteFunc(o.until, func(u trip.Unbegun, until job.Micros) bool {
		if now < until {
			w.jobs[u.JobID] = true
		} else {
			w.givenUp[u.Run] = true
		}
		return now > until.Add(mostHeld) || now < until.Add(-2*mostHeld) // the clock was set back
	})
	return w
}

// note begins to wait for runs.
func (o *order) note(runs []trip.Unbegun, now job.Micros) {
	if len(runs) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.until == nil {
		o.until = map[trip.Unbegun]job.Micros{}
	}
	for _, u := range runs {
		if _, known := o.until[u]; !known {
			o.until[u] = now.Add(mostHeld)
		}
	}
}

// readUnbegun reads the earlier due times that have not begun, for jobs with a late run. If this
// node already waits for an earlier run of a job, readUnbegun also reads them for the job's runs
// on time.
func (s *scene) readUnbegun(tx *sql.Tx, runs []trip.Run) error {
	var behind map[int64]bool // jobs
	for i := range runs {
		r := &runs[i]
		late := r.Due < s.now.Add(-lateBy) || s.waiting.jobs[r.JobID]
		if !late || !ofSchedule(r) || !s.jobs[r.JobID].keepsOrder() {
			continue
		}
		if behind == nil {
			behind = map[int64]bool{}
		}
		behind[r.JobID] = true
	}

	// The batch may have later runs of these jobs, on time. They are held as well.
	latest := map[int64]job.Micros{}
	for i := range runs {
		if r := &runs[i]; behind[r.JobID] && ofSchedule(r) {
			latest[r.JobID] = max(latest[r.JobID], r.Due)
		}
	}

	var gaps []trip.Gap
	for _, id := range slices.Sorted(maps.Keys(behind)) {
		gaps = append(gaps, trip.Gap{JobID: id, After: s.jobs[id].BegunTo, Before: latest[id]})
	}
	found, err := trip.UnbegunIn(tx, gaps, s.now, mostEarlier)
	for _, u := range found {
		if j := s.jobs[u.JobID]; !s.waiting.givenUp[u.Run] {
			j.unbegun = append(j.unbegun, u)
		}
	}
	return err
}

// ofSchedule reports whether a run is the first attempt of a due time of the schedule.
func ofSchedule(r *trip.Run) bool { return r.Kind == trip.Schedule && r.Attempt == 1 }

// keepsOrder reports whether late due times of the job start in order. With overlap replace, the
// latest one should start. A job with a single due time has no order.
func (j *jobScene) keepsOrder() bool {
	return j.spec() != nil && j.spec().At == nil && !j.replacesOthers()
}

// inOrder: an earlier due time of the job has not begun. Three kinds of runs are not held: the run
// with the turn, a run that a hold could make too late for its start deadline, and a run that a
// hold could make too late for its misfire policy.
func inOrder(r *trip.Run, j *jobScene, now job.Micros) *verdict {
	switch {
	case len(j.unbegun) == 0 || j.unbegun[0].Due >= r.Due:
	case !ofSchedule(r) || r.Woken:
	case soonTooLate(r, j, now):
	default:
		return &verdict{action: hold, behind: true}
	}
	return nil
}

// soonTooLate reports whether a run may no longer start after a hold.
func soonTooLate(r *trip.Run, j *jobScene, now job.Micros) bool {
	spec, then := j.def.Spec, now.Add(mostHeld)
	if spec.StartDeadline != 0 && then.Sub(r.Due) > time.Duration(spec.StartDeadline) {
		return true
	}
	return spec.Misfire.Policy != job.MisfireAll && isMisfired(r, j.def, j.Version, then)
}

// passed updates the scene after a verdict: a run that starts, ends or waits holds up no other run.
func (j *jobScene) passed(v *verdict) {
	switch v.action {
	case start, refuse, wait, forget:
		if len(j.unbegun) > 0 && j.unbegun[0].Run == v.run.Run {
			j.unbegun = j.unbegun[1:]
		}
	case hold:
		j.behind = j.behind || v.behind
	}
}

// heldFor lists the runs for which others are held: the earliest of each job. The next run of the
// job gets its own time limit when the earliest has begun or is given up.
func (s *scene) heldFor() (out []trip.Unbegun) {
	for _, j := range s.jobs {
		if j.behind && len(j.unbegun) > 0 {
			out = append(out, j.unbegun[0])
		}
	}
	return out
}
