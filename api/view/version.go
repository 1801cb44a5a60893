package view

import (
	"time"

	"go-crontab/job"
)

// VersionItem is an entry in the list of a job's versions.
type VersionItem struct {
	Version int64     `json:"version" doc:"Its number, from 1."`
	At      time.Time `json:"at" doc:"When it came into force."`
	Who     string    `json:"who,omitempty" doc:"Who made the change."`
	Current bool      `json:"current" doc:"Whether it is in force now."`
	Changed []string  `json:"changed" doc:"The fields that differ from the previous definition. None for the first definition, and after a change of a calendar."`
	Error   string    `json:"error,omitempty" doc:"Why it cannot be read."`
}

// Version is the current or an earlier definition of a job.
type Version struct {
	Version    int64     `json:"version" doc:"Its number, from 1."`
	At         time.Time `json:"at" doc:"When it came into force."`
	Who        string    `json:"who,omitempty" doc:"Who made the change."`
	Current    bool      `json:"current" doc:"Whether it is in force now."`
	Definition *job.Spec `json:"definition,omitempty" doc:"The definition. Absent if it cannot be read."`
	Error      string    `json:"error,omitempty" doc:"Why it cannot be read."`
}

// Diff is the difference between two definitions of a job.
type Diff struct {
	From    int64        `json:"from" doc:"The number of the first version."`
	To      int64        `json:"to" doc:"The number of the second version."`
	Changes []job.Change `json:"changes" doc:"The fields that differ."`
}
