package api

import (
	"context"
	"strconv"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// jobView is a job as the API shows it. What is absent is not set.
type jobView struct {
	ID          string            `json:"id"`
	App         string            `json:"app"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Owner       string            `json:"owner"`
	Labels      map[string]string `json:"labels"`

	Schedule  string   `json:"schedule,omitempty"`
	Schedules []string `json:"schedules,omitempty"`
	Every     string   `json:"every,omitempty"`
	At        string   `json:"at,omitempty"`
	Timezone  string   `json:"timezone,omitempty"`
	Start     string   `json:"start,omitempty"`
	End       string   `json:"end,omitempty"`
	MaxFires  int64    `json:"max_fires,omitempty"`
	Jitter    string   `json:"jitter,omitempty"`

	Command string      `json:"command,omitempty"`
	HTTP    *job.HTTP   `json:"http,omitempty"`
	Timeout string      `json:"timeout,omitempty"`
	Overlap job.Overlap `json:"overlap"`
	Misfire misfireView `json:"misfire"`
	Retry   job.Retry   `json:"retry,omitzero"`
	OnLost  string      `json:"on_lost"`

	job.CommandOptions

	Paused  bool       `json:"paused"`          // by itself
	Pause   *pauseView `json:"pause,omitempty"` // what stops it: its own pause, that of its app, or of the cluster
	Status  job.Status `json:"status"`
	Error   string     `json:"error,omitempty"`
	Version int64      `json:"version"`
	NextDue string     `json:"next_due,omitempty"`
	LastDue string     `json:"last_due,omitempty"`
	Created string     `json:"created"`
	Updated string     `json:"updated"`
}

type misfireView struct {
	Policy job.MisfirePolicy `json:"policy"`
	MaxAge string            `json:"max_age,omitempty"`
}

// readOnly are the fields of a job that only the server sets.
var readOnly = []string{"id", "status", "pause", "error", "version", "next_due", "last_due", "created", "updated"}

// viewOf shows a job. live tells whether it has scheduled tasks, planned is the earliest due of those that nobody
// has started, now is what pauses are judged by.
func viewOf(j *job.Job, live bool, planned, now job.Micros) *jobView {
	s := &j.Spec
	v := &jobView{
		ID: strconv.FormatInt(j.ID, 10), App: s.App, Name: s.Name, Description: s.Description, Owner: s.Owner, Labels: s.Labels,
		Schedule: s.Schedule, Schedules: s.Schedules, Every: durationText(s.Every), At: timeText(s.At), Timezone: s.Timezone,
		Start: timeText(s.Start), End: timeText(s.End), MaxFires: s.MaxFires, Jitter: durationText(s.Jitter),
		Command: s.Command, HTTP: s.HTTP, Timeout: durationText(s.Timeout), Overlap: s.Overlap,
		Misfire: misfireView{s.Misfire.Policy, durationText(s.Misfire.MaxAge)}, Retry: s.Retry, OnLost: s.OnLost, CommandOptions: s.CommandOptions,
		Paused: j.Paused, Status: j.Status(live, now), Error: j.Error, Version: j.Version,
		NextDue: stamp(planned), LastDue: stamp(j.LastDue), Created: stamp(j.Created), Updated: stamp(j.Updated),
	}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
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

func durationText(d job.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// views shows jobs as their rows say.
func (s *Server) views(ctx context.Context, rows []sql.JobRow) ([]*jobView, error) {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	live, err := s.cfg.DB.LiveJobs(ctx, ids)
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
	}
	return out, nil
}

// viewChanged shows a job that was just changed. The change stands, so a reading that fails now must not look like
// a change that failed: the job is shown as the change left it, but for tasks that are planned already.
func (s *Server) viewChanged(ctx context.Context, j job.Job) *jobView {
	live, err := s.cfg.DB.LiveJobs(ctx, []int64{j.ID})
	if err != nil {
		s.cfg.Log.Warn("the changed job cannot be shown in full", "job_id", j.ID, "error", err)
		return viewOf(&j, true, 0, job.MicrosOf(s.cfg.Now()))
	}
	planned, isLive := live[j.ID]
	return viewOf(&j, isLive, planned, job.MicrosOf(s.cfg.Now()))
}
