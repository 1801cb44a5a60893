package result

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Definitions is a cache of the definitions of jobs.
type Definitions interface {
	// Spec returns a version of a job's definition; nil: the version cannot be used. known is
	// false if the cache does not have the version.
	Spec(jobID int64, version int32) (spec *job.Spec, known bool)
	// Learn reads the current definitions of jobs into the cache.
	Learn(ctx context.Context, jobs []int64) error
}

// sequels are the consequences of ends: a run of each job that follows, and the next due time of a
// job with a delay. The transaction of an end also writes its sequels, so each end has them
// exactly once. An end has sequels only if its run is marked as watched. The start sets the mark,
// under the lock of the job's row. An edit that makes a job follow also marks the executing runs
// of the upstream job.
type sequels struct {
	definitions Definitions
	specs       map[int64]*job.Spec // of the jobs of watched runs
	followers   map[int64][]follower
}

// follower is a job that follows another one.
type follower struct {
	trip.Follower
	spec *job.Spec
}

// unreadJobs is the error of a transaction that needs definitions which are not cached.
type unreadJobs struct{ ids []int64 }

func (u *unreadJobs) Error() string {
	return fmt.Sprintf("the definitions of jobs %d are not read yet", u.ids)
}

// read reads everything that the consequences of the ends depend on. The transaction has locked
// the jobs of the ended runs, so no other job can begin to follow them.
func (s *sequels) read(tx *sql.Tx, endings map[trip.Launch]trip.Ending, jobs map[int64]*trip.Job) error {
	watched := map[int64]bool{}
	for _, e := range endings {
		if e.Watched && jobs[e.JobID] != nil && !jobs[e.JobID].Deleted {
			watched[e.JobID] = true
		}
	}
	if len(watched) == 0 {
		return nil
	}

	var unread unreadJobs
	specOf := func(id int64, version int32) *job.Spec {
		spec, known := s.definitions.Spec(id, version)
		if !known {
			unread.ids = append(unread.ids, id)
		}
		return spec
	}

	found, err := trip.Followers(tx, slices.Sorted(maps.Keys(watched)))
	if err != nil {
		return err
	}
	s.specs, s.followers = map[int64]*job.Spec{}, map[int64][]follower{}
	for id := range watched {
		s.specs[id] = specOf(id, jobs[id].Version)
		for _, f := range found[id] {
			if spec := specOf(f.JobID, f.Version); spec != nil && spec.Follows(f.Upstream) {
				s.followers[id] = append(s.followers[id], follower{f, spec})
			}
		}
	}
	if len(unread.ids) > 0 {
		return &unread
	}
	return nil
}

// write writes the consequences of ends, and returns the number of runs that became due.
func (s *sequels) write(
	tx *sql.Tx, session Session, ends []trip.End, endings map[trip.Launch]trip.Ending,
) (due int, err error) {
	var (
		runs     []trip.Run
		arrivals []trip.Arrival
		delayed  []trip.Delayed
		now      = session.Now()
		taken    = map[[2]int64]bool{} // due times by follower
	)
	for i := range ends {
		end := &ends[i]
		e := endings[end.Launch]
		if !e.Watched || !end.Final {
			continue
		}

		if spec := s.specs[e.JobID]; spec != nil && spec.Delay != 0 && e.Kind == trip.Schedule {
			delayed = append(delayed, trip.Delayed{JobID: e.JobID, Due: e.Due, At: spec.NextDelayed(end.Ended, now)})
		}

		for _, f := range s.followers[e.JobID] {
			if !f.spec.After.Counts(end.Outcome) {
				continue
			}
			r := f.runAfter(end, &e, now)
			for taken[[2]int64{r.JobID, int64(r.Due)}] { // lists show runs with one due time together
				r.Due++
			}
			taken[[2]int64{r.JobID, int64(r.Due)}] = true
			runs = append(runs, r)
			if f.spec.After.Gathers() {
				u := r.Given.Upstream
				arrivals = append(arrivals, trip.Arrival{
					JobID: f.JobID, Run: end.Run, Upstream: e.JobID, Ended: r.Due, Head: u.Head, Scheduled: u.Scheduled,
				})
			}
		}
	}

	if err := trip.MoveDelayed(tx, delayed); err != nil {
		return 0, err
	}
	if len(runs) == 0 {
		return 0, nil
	}
	id := session.Mint(len(runs))
	for i := range runs {
		runs[i].Run = id + int64(i)
	}
	if err := trip.InsertArrivals(tx, arrivals); err != nil {
		return 0, err
	}
	return len(runs), trip.Insert(tx, trip.NoOwner, runs)
}

// runAfter returns the run of a follower that an end makes due.
func (f *follower) runAfter(end *trip.End, e *trip.Ending, now job.Micros) trip.Run {
	up := &job.Upstream{
		Job: f.Upstream.String(), Run: end.Run, Outcome: end.Outcome, Head: e.JobID, Scheduled: e.Due,
	}
	if g := e.Given; g != nil && g.Upstream != nil {
		up.Head, up.Scheduled = g.Upstream.Head, g.Upstream.Scheduled
	}
	return trip.Run{
		JobID: f.JobID, AppID: f.AppID, Version: f.Version, Hash: f.Hash, Kind: trip.After, Attempt: 1,
		// The request is unique for the end. It is negative, so that reruns come after it.
		Request: -end.Run, Due: end.Ended, DueNow: max(now, end.Ended), Given: &job.Given{Upstream: up},
	}
}
