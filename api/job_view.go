package api

import (
	"context"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// readOnly are the fields of a job that only the server sets.
var readOnly = []string{
	"id", "status", "pause", "health", "error", "version", "next_due", "last_due", "created", "updated", "warnings",
	"waiting", "last_runs", "remove_at", "followers",
}

// viewOf shows a job. live says whether the job has scheduled runs. planned is the earliest due
// time that has not started. now decides which pauses apply.
func viewOf(j *job.Job, live bool, planned, now job.Micros) *view.Job {
	v := &view.Job{
		ID: strconv.FormatInt(j.ID, 10), Spec: j.Spec, Paused: j.Paused, Status: j.Status(live, now), Error: j.Error,
		Version: j.Version,
		NextDue: instant(planned), LastDue: instant(j.LastDue), Created: j.Created.Time(), Updated: j.Updated.Time(),
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}

	for _, t := range []**time.Time{&v.At, &v.Start, &v.End} {
		if *t != nil {
			utc := (*t).UTC()
			*t = &utc
		}
	}

	// A planned run is due before the job's next due time. A paused job has no next due time.
	if planned == 0 {
		v.NextDue = instant(j.NextDue)
	}
	if p := j.PauseAt(now); p != nil {
		v.Pause = viewOfPause(p)
	}
	if v.Status == job.Paused {
		v.NextDue = nil
	}

	return v
}

// views shows jobs that were read from the database. If lastRuns is set, it also shows their last
// runs.
func (s *Server) views(ctx context.Context, rows []read.Job, lastRuns bool) ([]*view.Job, error) {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}

	live, err := s.cfg.DB.LiveJobs(ctx, ids)
	if err != nil {
		return nil, err
	}

	waits, err := s.waitsOf(ctx, rows)
	if err != nil {
		return nil, err
	}

	recent, err := recentOf(ctx, s.cfg.DB, ids, listedRuns, auth.Of(ctx).Sees())
	if err != nil {
		return nil, err
	}

	now := job.MicrosOf(s.cfg.Now())
	out := make([]*view.Job, len(rows))
	for i := range rows {
		j := rows[i].Job
		if rows[i].SpecErr != nil && j.Error == "" {
			j.Error = rows[i].SpecErr.Error()
		}
		planned, isLive := live[j.ID]
		out[i] = viewOf(&j, isLive, planned, now)
		out[i].Waiting = waits[j.ID]
		out[i].Health = healthOf(out[i], recent[j.ID], now)
		if lastRuns {
			out[i].LastRuns = viewLastRuns(recent[j.ID])
		}
	}

	return out, s.showRemovals(ctx, rows, out)
}

// showRemovals shows when finished jobs are deleted.
func (s *Server) showRemovals(ctx context.Context, rows []read.Job, views []*view.Job) error {
	var ids []int64
	for i, v := range views {
		if v.Status == job.Finished && v.KeepJob != 0 {
			ids = append(ids, rows[i].ID)
		}
	}
	finished, err := s.cfg.DB.FinishedAt(ctx, ids)
	for i, v := range views {
		if at, is := finished[rows[i].ID]; is {
			v.RemoveAt = instant((&job.FinishedJob{At: at, Keep: v.KeepJob}).RemoveAt())
		}
	}
	return err
}

// viewChanged shows a job that was just changed. The change is committed, so a failed read must not
// look like a failed change. After a failed read the job is shown without its planned runs.
func (s *Server) viewChanged(ctx context.Context, j job.Job) *view.Job {
	live, err := s.cfg.DB.LiveJobs(ctx, []int64{j.ID})
	if err != nil {
		s.cfg.Log.Warn("cannot show the changed job in full", "job", j.Spec.FullName(), "error", err)
		return viewOf(&j, true, 0, job.MicrosOf(s.cfg.Now()))
	}

	planned, isLive := live[j.ID]
	v := viewOf(&j, isLive, planned, job.MicrosOf(s.cfg.Now()))
	if calendars, err := s.calendarsOf(ctx, &j.Spec); err == nil {
		var warnings []problem.Text
		err := job.Compute(ctx, job.DefiningWork, func(w *job.Work) error {
			warnings = warningsOf(w, &j.Spec, s.cfg.Now(), calendars)
			return nil
		})
		if err == nil {
			v.Warnings = warnings
		}
	}

	if live, err := s.liveWarnings(ctx, &j.Spec); err == nil {
		v.Warnings = append(v.Warnings, live...)
	}
	return v
}
