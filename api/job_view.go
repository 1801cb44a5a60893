package api

import (
	"context"
	"strconv"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
)

// jobView is a job as the API shows it: its definition with all defaults, and what the cluster
// knows about it. Fields that are not set are absent.
type jobView struct {
	ID string `json:"id" doc:"Its id, a number. Ids are never used again."`
	job.Spec

	Paused   bool           `json:"paused" doc:"Whether the job itself is paused. In a request, it pauses or resumes the job."`
	Pause    *pauseView     `json:"pause,omitempty" doc:"The pause that stops it: its own, its app's or the cluster's."`
	Status   job.Status     `json:"status" doc:"The status of the job."`
	Error    string         `json:"error,omitempty" doc:"Why its due times cannot be planned."`
	Version  int64          `json:"version" doc:"The version of its definition, from 1. Pausing does not change it."`
	NextDue  string         `json:"next_due,omitempty" format:"date-time" doc:"The earliest due time that has not been started."`
	LastDue  string         `json:"last_due,omitempty" format:"date-time" doc:"The latest due time that has been started or has ended."`
	Created  string         `json:"created" format:"date-time" doc:"When it was created."`
	Updated  string         `json:"updated" format:"date-time" doc:"When it was last changed."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"Warnings: settings that are allowed, but probably not intended. Only in the answer to a change."`
	Waiting  []jobWait      `json:"waiting,omitempty" doc:"Due times that are waiting, the earliest few of each job."`
}

// readOnly are the fields of a job that only the server sets.
var readOnly = []string{
	"id", "status", "pause", "error", "version", "next_due", "last_due", "created", "updated", "warnings", "waiting",
}

// viewOf shows a job. live says whether it has scheduled runs, planned is the earliest due time
// that is not started, and now decides which pauses apply.
func viewOf(j *job.Job, live bool, planned, now job.Micros) *jobView {
	v := &jobView{
		ID: strconv.FormatInt(j.ID, 10), Spec: j.Spec, Paused: j.Paused, Status: j.Status(live, now), Error: j.Error,
		Version: j.Version,
		NextDue: stamp(planned), LastDue: stamp(j.LastDue), Created: stamp(j.Created), Updated: stamp(j.Updated),
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

	// A planned run is due before the job's next due time. A paused job has none.
	if planned == 0 {
		v.NextDue = stamp(j.NextDue)
	}
	if p := j.PauseAt(now); p != nil {
		v.Pause = viewOfPause(p)
	}
	if v.Status == job.Paused {
		v.NextDue = ""
	}

	return v
}

// views shows jobs as read from the database.
func (s *Server) views(ctx context.Context, rows []read.Job) ([]*jobView, error) {
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

	out := make([]*jobView, len(rows))
	for i := range rows {

		j := rows[i].Job
		if rows[i].SpecErr != nil && j.Error == "" {
			j.Error = rows[i].SpecErr.Error()
		}
		planned, isLive := live[j.ID]
		out[i] = viewOf(&j, isLive, planned, job.MicrosOf(s.cfg.Now()))
		out[i].Waiting = waits[j.ID]
	}

	return out, nil
}

// viewChanged shows a job that was just changed. The change is committed, so a failed read must not
// look like a failed change: the job is then shown without its planned runs.
func (s *Server) viewChanged(ctx context.Context, j job.Job) *jobView {
	live, err := s.cfg.DB.LiveJobs(ctx, []int64{j.ID})
	if err != nil {
		s.cfg.Log.Warn("cannot show the changed job in full", "job_id", j.ID, "error", err)
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

	if place, err := s.placeWarning(ctx, &j.Spec); err == nil && place != nil {
		v.Warnings = append(v.Warnings, *place)
	}
	return v
}
