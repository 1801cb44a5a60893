package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/alert"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/sql/read"
)

const (
	goneFor     = 24 * time.Hour  // how long nodes stay visible after they are gone
	candidates  = 2000            // failed jobs that one search reads
	healedFor   = 5 * time.Minute // after this, recovered jobs are searched again
	healedCheck = 200             // jobs that one query reads
)

// failing finds the failing jobs of the cluster, for all callers of this node.
type failing struct {
	found *kept[*failingJobs]

	// Only the request that searches uses these fields. healed holds recovered jobs: jobs that have
	// succeeded since their latest failure, and deleted jobs. The value is the due time of the
	// latest failure. A search skips these jobs.
	healed   map[int64]job.Micros
	healedAt time.Time
}

// failingJobs is the result of a search.
type failingJobs struct {
	apps    []string // the app of each failing job
	atLeast bool     // more jobs may be failing
}

func newFailing() *failing { return &failing{found: newKept[*failingJobs]()} }

// jobs returns the failing jobs. The answer is at most keptFor old.
func (f *failing) jobs(ctx context.Context, db *read.DB) (*failingJobs, error) {
	return f.found.get(ctx, func(ctx context.Context) (*failingJobs, error) { return f.search(ctx, db) })
}

// search looks for failing jobs among all jobs with a failure. It skips jobs that are known to have
// recovered.
func (f *failing) search(ctx context.Context, db *read.DB) (*failingJobs, error) {
	now := time.Now()
	if now.Sub(f.healedAt) > healedFor {
		f.healed, f.healedAt = map[int64]job.Micros{}, now
	}

	failed, err := db.FailedJobs(ctx)
	if err != nil {
		return nil, err
	}

	latest := make(map[int64]job.Micros, len(failed))
	var ids []int64
	for _, j := range failed {
		if due, known := f.healed[j.JobID]; !known || due != j.Due {
			latest[j.JobID], ids = j.Due, append(ids, j.JobID)
		}
	}

	slices.SortFunc(ids, func(a, b int64) int { return int(latest[b] - latest[a]) })
	out := &failingJobs{atLeast: len(ids) > candidates}
	for part := range slices.Chunk(ids[:min(len(ids), candidates)], healedCheck) {
		if err := f.check(ctx, db, part, latest, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// check adds the failing jobs among ids to out, and notes the recovered jobs in healed.
func (f *failing) check(ctx context.Context, db *read.DB, ids []int64, latest map[int64]job.Micros,
	out *failingJobs) error {
	recent, err := recentOf(ctx, db, ids, judgedRuns, nil)
	if err != nil {
		return err
	}

	var bad []int64
	for _, id := range ids {
		var st streak
		if r := recent[id]; r != nil {
			st = streakOf(r.Runs)
		}

		switch {
		case st.failures > 0:
			bad = append(bad, id)
		case st.last != nil && st.last.Due >= latest[id]: // after an older success a retry may follow
			f.healed[id] = latest[id]
		}
	}

	apps, err := db.AppsOfJobs(ctx, bad)
	for _, id := range bad {
		if app, living := apps[id]; living {
			out.apps = append(out.apps, app)
		} else {
			f.healed[id] = latest[id]
		}
	}
	return err
}

// counts: GET /api/v1/stats/counts
func (s *Server) counts(w http.ResponseWriter, r *http.Request) error {
	now, err := s.now()
	if err != nil {
		return err
	}

	ctx, apps := r.Context(), auth.Of(r.Context()).Sees()
	v := view.Counts{Now: now}
	found, err := s.failing.jobs(ctx, s.cfg.DB)
	if err != nil {
		return err
	}

	v.AtLeast = found.atLeast
	for _, app := range found.apps {
		if apps == nil || slices.Contains(apps, app) {
			v.Failing++
		}
	}

	if v.Running, err = s.cfg.DB.CountExecuting(ctx, "", apps, statsRunning); err != nil {
		return err
	}

	at, reader := job.MicrosOf(now), s.cfg.DB.Reader(ctx)
	if v.Alerts, err = alert.CountFiring(reader, apps); err != nil {
		return err
	}
	if apps == nil {
		unsent, err := alert.CountUnsent(reader, at.Add(-goneFor))
		if err != nil {
			return err
		}
		v.Unsent = &unsent
	}

	if err := s.countNodes(ctx, &v); err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

func (s *Server) countNodes(ctx context.Context, v *view.Counts) error {
	c, err := s.clusterNow(ctx)
	if err != nil {
		return err
	}

	for _, n := range c.nodes() {
		if len(n.Sessions) > 0 {
			v.Nodes++
		}
		switch n.State {
		case view.NodeReady:
			v.Ready++
		case view.NodeGone:
			v.Gone++
		}
	}
	return nil
}
