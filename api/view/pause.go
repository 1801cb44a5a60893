package view

import (
	"time"

	"go-crontab/job"
)

// Pause is a pause as clients see it.
type Pause struct {
	Scope  job.Scope  `json:"scope" doc:"What is paused."`
	App    string     `json:"app,omitempty" doc:"The app, if it is an app's pause."`
	By     string     `json:"by,omitempty" doc:"Who paused it."`
	Reason string     `json:"reason,omitempty" doc:"The reason that was given."`
	Since  time.Time  `json:"since" doc:"When it began."`
	Until  *time.Time `json:"until,omitempty" doc:"When it ends by itself. Absent: it lasts until somebody resumes."`
	Ended  *time.Time `json:"ended,omitempty" doc:"When it ended, if it is over."`
	Jobs   *int64     `json:"jobs,omitempty" doc:"How many jobs it stops. Only in the answer to a pause of an app or the cluster."`
}
