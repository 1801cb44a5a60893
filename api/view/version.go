package view

import (
	"time"

	"go-crontab/job"
)

// VersionItem is a version of a job's definition in a list.
type VersionItem struct {
	Version int64     `json:"version" doc:"Its number, from 1."`
	At      time.Time `json:"at" doc:"When it began."`
	Who     string    `json:"who,omitempty" doc:"Who made it."`
	Current bool      `json:"current" doc:"Whether it is the one in force."`
	Changed []string  `json:"changed" doc:"The fields that are not as in the definition before; none of the first one, and of one that follows a change of a calendar."`
	Error   string    `json:"error,omitempty" doc:"Why it cannot be read."`
}

// Version is the present or an earlier definition of a job.
type Version struct {
	Version    int64     `json:"version" doc:"Its number, from 1."`
	At         time.Time `json:"at" doc:"When it began."`
	Who        string    `json:"who,omitempty" doc:"Who made it."`
	Current    bool      `json:"current" doc:"Whether it is the one in force."`
	Definition *job.Spec `json:"definition,omitempty" doc:"The definition. Absent: it cannot be read."`
	Error      string    `json:"error,omitempty" doc:"Why it cannot be read."`
}

// Diff is the difference between two definitions of a job.
type Diff struct {
	From    int64        `json:"from" doc:"The number of the one."`
	To      int64        `json:"to" doc:"The number of the other."`
	Changes []job.Change `json:"changes" doc:"The fields that are not the same."`
}
