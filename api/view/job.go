package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Job is a job as the API shows it: its definition with all defaults, and the job's state in the
// cluster. Fields that are not set are absent.
type Job struct {
	ID string `json:"id" doc:"Its id, a number. Ids are never used again."`
	job.Spec

	Followers []string `json:"followers,omitempty" doc:"The jobs that follow it, as app/name. Only in an answer about a single job."`

	Paused   bool           `json:"paused" doc:"Whether the job itself is paused. In a request, it pauses or resumes the job."`
	Pause    *Pause         `json:"pause,omitempty" doc:"The pause that stops it: its own, its app's or the cluster's."`
	Status   job.Status     `json:"status" doc:"The status of the job."`
	Health   *Health        `json:"health,omitempty" doc:"The health of the job. Absent in the answer to a change."`
	Error    string         `json:"error,omitempty" doc:"Why its due times cannot be planned."`
	Version  int64          `json:"version" doc:"The version of its definition, from 1. Pausing does not change it."`
	NextDue  *time.Time     `json:"next_due,omitempty" doc:"The earliest due time that has not been started."`
	LastDue  *time.Time     `json:"last_due,omitempty" doc:"The latest due time that has been started or has ended."`
	RemoveAt *time.Time     `json:"remove_at,omitempty" doc:"When 'keep_job' deletes the finished job, at the earliest. Absent in the answer to a change."`
	Created  time.Time      `json:"created" doc:"When it was created."`
	Updated  time.Time      `json:"updated" doc:"When it was last changed."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"Warnings: settings that are allowed, but probably not intended. Only in the answer to a change."`
	Waiting  []JobWait      `json:"waiting,omitempty" doc:"Due times that are waiting, the earliest few of each job."`
	LastRuns []LastRun      `json:"last_runs,omitempty" doc:"The latest 12 runs, the latest due first, that are running or have ended. Only in a list with 'with=last_runs'."`
}

// JobWait is a waiting due time.
type JobWait struct {
	Due time.Time `json:"due" doc:"The due time that waits."`
	Wait
	Why string `json:"why" doc:"The explanation, for people."`
}
