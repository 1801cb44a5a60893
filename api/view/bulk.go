package view

import (
	"go-crontab/job"
	"go-crontab/job/problem"
)

// Bulk reports the changes to the selected jobs. With dry_run, it reports the changes that the
// request would make.
type Bulk struct {
	DryRun    bool       `json:"dry_run" doc:"Whether this was a dry run: nothing was changed, and the answer shows what would be."`
	Changed   int        `json:"changed" doc:"How many jobs were changed; for 'run', how many jobs run."`
	Unchanged int        `json:"unchanged" doc:"How many jobs already had the requested state."`
	Refused   int        `json:"refused" doc:"How many jobs were refused. Each of them says why."`
	Matched   *int       `json:"matched,omitempty" doc:"How many jobs match in total, as far as they were counted. Only with dry_run."`
	AtLeast   bool       `json:"at_least,omitempty" doc:"Whether more jobs match than were counted. Only with dry_run."`
	Items     []BulkItem `json:"items" doc:"The jobs, in the order of the list or of 'ids'; then the entries of 'ids' that are no job, or a job that you may not change."`
	Next      string     `json:"next,omitempty" doc:"The value of 'cursor' for the next jobs. Absent if these were the last."`
}

type BulkItem struct {
	ID      string         `json:"id" doc:"The id of the job."`
	App     string         `json:"app" doc:"The app of the job. Empty if no job has this id."`
	Name    string         `json:"name" doc:"The name of the job. Empty if no job has this id."`
	Result  job.BulkResult `json:"result" enum:"changed,unchanged,refused" doc:"The result for this job."`
	Why     *problem.Text  `json:"why,omitempty" doc:"Why it was refused."`
	Version int64          `json:"version,omitempty" doc:"The version of the job. Absent if it is deleted."`
	Request string         `json:"request,omitempty" doc:"The id of the request, which the job's run carries."`
}
