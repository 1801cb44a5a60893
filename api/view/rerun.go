package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Rerun reports which due times are run again. With dry_run, it reports which due times would be.
type Rerun struct {
	DryRun  bool        `json:"dry_run" doc:"Whether this was a dry run: nothing was started, and the answer shows what would be."`
	Started int         `json:"started" doc:"How many due times run again."`
	Refused int         `json:"refused" doc:"How many were refused. Each of them says why."`
	Request string      `json:"request,omitempty" doc:"The id of the request, which the runs carry. Absent if there are none."`
	Items   []RerunItem `json:"items" doc:"The due times, the latest first, or in the order of 'ids'."`
	Next    string      `json:"next,omitempty" doc:"The value of 'cursor' for the next due times. Absent if these were the last."`
}

type RerunItem struct {
	RunID   string         `json:"run_id" doc:"The id of the run that matched, or that was asked for."`
	JobID   string         `json:"job_id,omitempty" doc:"The id of the job. Absent, like the next fields, if there is no such run."`
	App     string         `json:"app,omitempty" doc:"The app of the job."`
	Name    string         `json:"name,omitempty" doc:"The name of the job."`
	Due     *time.Time     `json:"due,omitempty" doc:"The due time."`
	Outcome job.Outcome    `json:"outcome,omitempty" doc:"How it ended before."`
	Result  job.BulkResult `json:"result" enum:"changed,refused" doc:"'changed' if it runs again."`
	Why     *problem.Text  `json:"why,omitempty" doc:"Why it was refused."`
}
