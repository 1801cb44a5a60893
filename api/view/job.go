package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Job is a job as the API shows it: its definition with all defaults, and what the cluster
// knows about it. Fields that are not set are absent.
type Job struct {
	ID string `json:"id" doc:"Its id, a number. Ids are never used again."`
	job.Spec

	Paused   bool           `json:"paused" doc:"Whether it is paused by itself. Given in a request it pauses or resumes the job."`
	Pause    *Pause         `json:"pause,omitempty" doc:"What stops it: its own pause, that of its app, or that of the cluster."`
	Status   job.Status     `json:"status" doc:"How it is."`
	Error    string         `json:"error,omitempty" doc:"Why no due times can be planned."`
	Version  int64          `json:"version" doc:"Counts its definitions, from 1. A pause is none."`
	NextDue  *time.Time     `json:"next_due,omitempty" doc:"The earliest due time that nobody has started."`
	LastDue  *time.Time     `json:"last_due,omitempty" doc:"The latest due time that was started or has ended."`
	Created  time.Time      `json:"created" doc:"When it was created."`
	Updated  time.Time      `json:"updated" doc:"When it was changed last."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"What is allowed and yet hardly meant; told in the answer to a change."`
	Waiting  []JobWait      `json:"waiting,omitempty" doc:"Due times that are held back, the earliest few of each job."`
}

// JobWait is a waiting due time.
type JobWait struct {
	Due time.Time `json:"due" doc:"The due time that waits."`
	Wait
	Why string `json:"why" doc:"Why, for people."`
}
