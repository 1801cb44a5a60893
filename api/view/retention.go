package view

import (
	"time"

	"go-crontab/job"
)

// Retention is the retention rule of an app, or of the cluster, as clients see it.
type Retention struct {
	Scope job.Scope `json:"scope" doc:"Whether it is the rule of an app or of the cluster."`
	App   string    `json:"app,omitempty" doc:"The app, if it is an app's rule."`

	Age      job.Duration `json:"age,omitempty" doc:"Records that ended longer ago are removed, with their output."`
	Runs     int64        `json:"runs,omitempty" doc:"For each job, only the records of this many of the latest due times are kept."`
	Bytes    job.Size     `json:"bytes,omitempty" doc:"For each job, only the latest records are kept, up to this total size of their output."`
	Failures job.Duration `json:"failures,omitempty" doc:"Records of runs that did not succeed are kept at least this long, whatever the other fields say."`
	Archive  bool         `json:"archive,omitempty" doc:"Records are only removed after a node with an archive command has archived them. Only in the cluster's rule."`
}

// Retentions lists all retention rules, and how far the removal of old records is.
type Retentions struct {
	Items []Retention    `json:"items" doc:"The rules: the cluster's first, then those of apps by name."`
	Work  *RetentionWork `json:"work,omitempty" doc:"The progress of the removal. Absent for tokens that are limited to apps."`
}

type RetentionWork struct {
	Ended    *time.Time `json:"ended,omitempty" doc:"When the last round over all jobs ended."`
	Removed  int64      `json:"removed" doc:"How many records were removed since the cluster was created."`
	Archived int64      `json:"archived" doc:"How many records were given to the archive command, some perhaps more than once."`
	Failures int64      `json:"failures" doc:"How often the archive command has failed since the last round in which it archived all records. Those records stay."`
	Error    string     `json:"error,omitempty" doc:"Why it failed the last time."`
	ErrorAt  *time.Time `json:"error_at,omitempty" doc:"When it failed the last time."`
}
