package view

import (
	"go-crontab/job"
	"go-crontab/job/problem"
)

// Bulk reports the changes to the selected jobs, or with dry_run the changes that would be
// made.
type Bulk struct {
	DryRun    bool       `json:"dry_run" doc:"Nothing was changed: this is what would be."`
	Changed   int        `json:"changed" doc:"How many of the jobs were changed; of 'run' how many of them run."`
	Unchanged int        `json:"unchanged" doc:"How many were so already."`
	Refused   int        `json:"refused" doc:"How many were left as they are, and say why."`
	Matched   *int       `json:"matched,omitempty" doc:"How many jobs match in all, as far as they were counted. Only with dry_run."`
	AtLeast   bool       `json:"at_least,omitempty" doc:"There are more than were counted. Only with dry_run."`
	Items     []BulkItem `json:"items" doc:"The jobs, in the order of the list, or of 'ids'; behind them what of 'ids' is no job that you may do it to."`
	Next      string     `json:"next,omitempty" doc:"There are more: what to give as 'cursor' to go on with them. Absent: these were the last."`
}

type BulkItem struct {
	ID      string         `json:"id" doc:"Of the job."`
	App     string         `json:"app" doc:"Of the job. Empty if there is none of that id."`
	Name    string         `json:"name" doc:"Of the job. Empty if there is none of that id."`
	Result  job.BulkResult `json:"result" enum:"changed,unchanged,refused" doc:"What became of it."`
	Why     *problem.Text  `json:"why,omitempty" doc:"Why it was refused."`
	Version int64          `json:"version,omitempty" doc:"At which it is. Absent of one that is deleted."`
	Request string         `json:"request,omitempty" doc:"The id of the request for its run, which that carries."`
}
