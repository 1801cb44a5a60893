package api

import (
	"context"
	"strings"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// unprompted answers that no end of a run made the job due at the instant. It also names the jobs
// that this job follows.
func (x *inquiry) unprompted() error {
	x.say(causeNotDue, "Nothing made the job due then: it is due %s.", x.spec.Words(job.English))
	if x.spec.After == nil {
		return nil
	}

	r := x.cfg.DB.Reader(x.ctx)
	there, err := trip.LinkedJobs(r, x.spec.Upstreams())
	if err != nil {
		return err
	}
	arrivals, err := trip.Arrivals(r, []int64{x.j.ID})
	if err != nil {
		return err
	}
	has := map[job.Name]bool{}
	for _, a := range arrivals[x.j.ID] {
		has[a.Name] = true
	}

	var missing []string
	for _, n := range x.spec.Upstreams() {
		if _, is := there[n]; !is {
			x.add("There is no job %s to follow.", n)
		}
		if !has[n] {
			missing = append(missing, n.String())
		}
	}
	if len(has) > 0 && len(missing) > 0 {
		x.add("It now waits for an end of %s.", strings.Join(missing, ", "))
	}
	return nil
}

// followersOf returns the names of the jobs that follow a job, as far as the caller may see them.
func (s *Server) followersOf(ctx context.Context, id int64) (names []string, err error) {
	found, err := trip.FollowersOf(s.cfg.DB.Reader(ctx), []int64{id})
	for _, f := range found[id] {
		if mayRead(ctx, f.Spec.App) {
			names = append(names, f.Spec.FullName())
		}
	}
	return names, err
}
