package schedule

import (
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// scene is everything that the verdicts on a batch of runs depend on. It is read in one transaction, which holds the rows of
// the jobs until it ends. While verdicts are given, the scene follows them: a run that starts executes for the runs behind it.
type scene struct {
	now  job.Micros
	jobs map[int64]*jobScene
}

// jobScene is what the verdicts on the runs of one job depend on.
type jobScene struct {
	trip.Job
	busy      bool        // somebody else has locked the row
	gone      bool        // there is no such job
	def       *Definition // of the current version; nil: not read yet
	executing bool        // a run that excludes others executes
}

// readScene locks the jobs of the runs and reads what else the verdicts need.
func readScene(tx *sql.Tx, runs []trip.Run, defs *Definitions, now job.Micros) (*scene, error) {
	ids := jobsOf(runs)
	locked, err := trip.LockJobs(tx, ids)
	if err != nil {
		return nil, err
	}
	s := &scene{now: now, jobs: make(map[int64]*jobScene, len(ids))}
	var running, missing []int64
	for _, id := range ids {
		j := locked[id]
		if j == nil {
			missing = append(missing, id)
			continue
		}
		js := &jobScene{Job: *j}
		js.def, _ = defs.Get(id, j.Version)
		s.jobs[id] = js
		if j.Running != 0 && js.excludes() {
			running = append(running, j.Running)
		}
	}

	// A row that is not there is an answer; a row that is locked is not.
	exist, err := trip.Existing(tx, missing)
	if err != nil {
		return nil, err
	}
	for _, id := range missing {
		s.jobs[id] = &jobScene{busy: exist[id], gone: !exist[id]}
	}

	executing, err := trip.StillExecuting(tx, running)
	for _, j := range s.jobs {
		j.executing = executing[j.Running]
	}
	return s, err
}

// excludes reports whether a run of the job keeps other runs of it from starting.
func (j *jobScene) excludes() bool {
	return j.Crowded || j.def == nil || j.def.Err != nil || j.def.Spec.Overlap != job.OverlapAllow
}
