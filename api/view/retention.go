package view

import (
	"time"

	"go-crontab/job"
)

// Retention is the retention rule of an app, or of the cluster, as clients see it.
type Retention struct {
	Scope job.Scope `json:"scope" doc:"Whose rule it is: that of an app, or of the cluster."`
	App   string    `json:"app,omitempty" doc:"The app, if it is that of one."`

	Age      job.Duration `json:"age,omitempty" doc:"Records that ended longer ago go, with their output."`
	Runs     int64        `json:"runs,omitempty" doc:"Of each job only the records of so many of the latest due times stay."`
	Bytes    job.Size     `json:"bytes,omitempty" doc:"Of each job only the latest records stay whose kept output comes to no more."`
	Failures job.Duration `json:"failures,omitempty" doc:"Records of what did not succeed stay at least so long, whatever the others say."`
	Archive  bool         `json:"archive,omitempty" doc:"Nothing goes before a node that has an archive command has handed it over. Of the cluster's rule alone."`
}

// Retentions lists all rules and the progress of the removal.
type Retentions struct {
	Items []Retention    `json:"items" doc:"The rules: that of the cluster first, then those of apps by their names."`
	Work  *RetentionWork `json:"work,omitempty" doc:"How the removal stands. Absent for who is limited to apps."`
}

type RetentionWork struct {
	Ended    *time.Time `json:"ended,omitempty" doc:"When all jobs had been looked at last."`
	Removed  int64      `json:"removed" doc:"How many records were removed since the cluster began."`
	Archived int64      `json:"archived" doc:"How many records were handed to the archive command; some perhaps more than once."`
	Failures int64      `json:"failures" doc:"How often the archive command has not taken records, since a round over all jobs in which it took them all. They stay."`
	Error    string     `json:"error,omitempty" doc:"Why it did not, the last time."`
	ErrorAt  *time.Time `json:"error_at,omitempty" doc:"When that was."`
}
