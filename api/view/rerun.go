package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Rerun reports which due times run again, or with dry_run which would.
type Rerun struct {
	DryRun  bool        `json:"dry_run" doc:"Whether this was a dry run: nothing was started, and the answer shows what would be."`
	Started int         `json:"started" doc:"How many due times run again."`
	Refused int         `json:"refused" doc:"How many were refused. Each of them says why."`
	Request string      `json:"request,omitempty" doc:"The id of the request, which the runs carry. Absent if there are none."`
	Items   []RerunItem `json:"items" doc:"The due times, the latest first."`
	Next    string      `json:"next,omitempty" doc:"The value of 'cursor' for the next due times. Absent if these were the last."`
}

type RerunItem struct {
	RunID   string         `json:"run_id" doc:"The id of the run that matched: the last attempt of its due time."`
	JobID   string         `json:"job_id" doc:"The id of the job."`
	App     string         `json:"app" doc:"The app of the job."`
	Name    string         `json:"name" doc:"The name of the job."`
	Due     time.Time      `json:"due" doc:"The due time."`
	Outcome job.Outcome    `json:"outcome" doc:"How it ended before."`
	Result  job.BulkResult `json:"result" enum:"changed,refused" doc:"'changed' if it runs again."`
	Why     *problem.Text  `json:"why,omitempty" doc:"Why it was refused."`
}
