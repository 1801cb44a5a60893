package view

import (
	"encoding/json"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Apply reports the changes, or with dry_run the changes that would be made.
type Apply struct {
	DryRun    bool            `json:"dry_run" doc:"Nothing was changed: this is what would be."`
	Changed   int             `json:"changed" doc:"How many objects are not unchanged."`
	Groups    []AppliedObject `json:"groups" doc:"The groups, in the order of the request."`
	Calendars []AppliedObject `json:"calendars" doc:"The calendars, in the order of the request."`
	Channels  []AppliedObject `json:"channels" doc:"The channels of alerts, in the order of the request."`
	Rules     []AppliedObject `json:"rules" doc:"The rules of alerts, in the order of the request."`
	Retention []AppliedObject `json:"retention" doc:"The rules of retention, by apps. 'name' is the app, empty of the cluster's."`
	Pauses    []AppliedObject `json:"pauses" doc:"The pauses, by apps. 'name' is the app, empty of the cluster's."`
	Jobs      []*AppliedJob   `json:"jobs" doc:"The jobs, in the order of the request; then those that were deleted, by their names."`
}

type AppliedObject struct {
	Name    string       `json:"name" doc:"Which one."`
	Action  job.Applying `json:"action" doc:"What became of it."`
	Changes []job.Change `json:"changes,omitempty" doc:"The fields that are another now; of a new one all that are set."`
}

type AppliedJob struct {
	ID       string         `json:"id,omitempty" doc:"Absent of a job that would be created."`
	App      string         `json:"app" doc:"Of the job."`
	Name     string         `json:"name" doc:"Of the job."`
	Action   job.Applying   `json:"action" doc:"What became of it."`
	Version  int64          `json:"version,omitempty" doc:"At which the job is; absent of one that is deleted or would be created."`
	Changes  []job.Change   `json:"changes,omitempty" doc:"The fields that are another now; of a new one all that are set."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"What is allowed and yet hardly meant."`
}

// Crontab is a crontab translated into jobs.
type Crontab struct {
	Jobs    []CrontabJob  `json:"jobs" doc:"The lines that can be jobs, in their order."`
	Notes   []CrontabNote `json:"notes,omitempty" doc:"What is otherwise here than with cron, of the whole crontab and of lines that set a variable."`
	Refused []CrontabNote `json:"refused,omitempty" doc:"The lines that cannot be jobs, and why."`
}

type CrontabJob struct {
	Line  int             `json:"line" doc:"The number of the line."`
	Text  string          `json:"text" doc:"The line as it stands in the crontab."`
	Words string          `json:"words" doc:"When it is due in words, of the language that 'Accept-Language' asks for: English or Chinese."`
	Notes []problem.Text  `json:"notes,omitempty" doc:"What is otherwise here than with cron."`
	Job   json.RawMessage `json:"job" doc:"The job as a file has it: what 'jobs' of POST /api/v1/apply take."`
}

type CrontabNote struct {
	Line  int    `json:"line,omitempty" doc:"The number of the line; absent of the whole crontab."`
	Field string `json:"field,omitempty" doc:"The field of the job, or the variable, that it is about. The message begins with it."`
	problem.Text
}

// Export is a page of jobs as written in files.
type Export struct {
	Items      []json.RawMessage `json:"items" doc:"The jobs as files have them: without what is the default."`
	Unreadable []UnreadableJob   `json:"unreadable,omitempty" doc:"Jobs of this page that cannot be exported, because their stored definition cannot be read."`
	Next       string            `json:"next,omitempty" doc:"The cursor of the next page; absent on the last one."`
}

type UnreadableJob struct {
	ID    string `json:"id" doc:"Of the job."`
	App   string `json:"app" doc:"Of the job."`
	Name  string `json:"name" doc:"Of the job."`
	Error string `json:"error" doc:"What is wrong with its definition."`
}
