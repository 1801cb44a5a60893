package view

import (
	"go-crontab/job"
)

// AppLimits holds the limits of an app and its current use, as clients see them.
type AppLimits struct {
	App           string   `json:"app" doc:"The app."`
	Jobs          int64    `json:"jobs,omitempty" doc:"How many jobs it may have. Absent, here and below: any number."`
	RunsPerMinute int64    `json:"runs_per_minute,omitempty" doc:"How many of its runs may begin in a minute."`
	Waiting       int64    `json:"waiting,omitempty" doc:"How many of its due times may wait for a run of their job or for a slot of their group."`
	Output        job.Size `json:"output,omitempty" doc:"How much output of its runs is kept, all of them together. Beyond that the oldest goes."`
	Use           *AppUse  `json:"use,omitempty" doc:"What it uses now."`
}

// AppUse is the current use of an app's limits.
type AppUse struct {
	Jobs          int64 `json:"jobs" doc:"How many jobs it has."`
	RunsPerMinute int64 `json:"runs_per_minute" doc:"How many of its runs have begun in the last minute, give or take a second. Counted only while that has a limit."`
	Waiting       int64 `json:"waiting" doc:"How many of its due times wait for a run of their job or for a slot of their group; counted to 10,000, or to the limit if that is higher."`
	Output        int64 `json:"output" doc:"How many bytes of output of its runs are kept, as of a minute or two ago. Counted only while that has a limit."`
}

// App is an app as clients see it. An app exists through its jobs and has no row of its own.
type App struct {
	Name string `json:"name" doc:"Its name."`
}
