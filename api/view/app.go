package view

import (
	"go-crontab/job"
)

// AppLimits holds the limits of an app and how much of them the app uses now.
type AppLimits struct {
	App           string   `json:"app" doc:"The app."`
	Jobs          int64    `json:"jobs,omitempty" doc:"The most jobs that it can have. Absent, here and below: no limit."`
	RunsPerMinute int64    `json:"runs_per_minute,omitempty" doc:"The most runs that it can start in a minute."`
	Waiting       int64    `json:"waiting,omitempty" doc:"The most due times that can wait for a run of their job or for a slot of their group."`
	Output        job.Size `json:"output,omitempty" doc:"The most output that is kept of all its runs together. Beyond that, the oldest output is removed."`
	Use           *AppUse  `json:"use,omitempty" doc:"What the app uses now."`
}

// AppUse is how much of its limits an app uses now.
type AppUse struct {
	Jobs          int64 `json:"jobs" doc:"The number of its jobs."`
	RunsPerMinute int64 `json:"runs_per_minute" doc:"How many of its runs started in the last minute, to about a second. Only counted while there is a limit."`
	Waiting       int64 `json:"waiting" doc:"How many of its due times wait for a run of their job or for a slot of their group, counted up to 10,000, or to the limit if that is higher."`
	Output        int64 `json:"output" doc:"How many bytes of output of its runs are kept, a minute or two ago. Only counted while there is a limit."`
}

// App is an app as clients see it. An app exists as long as it has jobs. Nobody creates or deletes
// it.
type App struct {
	Name string `json:"name" doc:"Its name."`
}
