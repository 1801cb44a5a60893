package view

import (
	"encoding/json"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// Apply reports the changes of an apply. With dry_run, it reports the changes that the apply would
// make.
type Apply struct {
	DryRun    bool            `json:"dry_run" doc:"Whether this was a dry run: nothing was changed, and the answer shows what would be."`
	Changed   int             `json:"changed" doc:"How many objects were created, updated or deleted."`
	Groups    []AppliedObject `json:"groups" doc:"The groups, in the order of the request."`
	Calendars []AppliedObject `json:"calendars" doc:"The calendars, in the order of the request."`
	Channels  []AppliedObject `json:"channels" doc:"The alert channels, in the order of the request."`
	Rules     []AppliedObject `json:"rules" doc:"The alert rules, in the order of the request."`
	Retention []AppliedObject `json:"retention" doc:"The retention rules, by app. 'name' is the app, and empty for the cluster's rule."`
	Pauses    []AppliedObject `json:"pauses" doc:"The pauses, by app. 'name' is the app, and empty for the cluster's pause."`
	Jobs      []*AppliedJob   `json:"jobs" doc:"The jobs, in the order of the request; then the deleted jobs, by name."`
}

type AppliedObject struct {
	Name    string       `json:"name" doc:"The name of the object."`
	Action  job.Applying `json:"action" doc:"What was done with it."`
	Changes []job.Change `json:"changes,omitempty" doc:"The changed fields; for a new object, all fields that are set."`
}

type AppliedJob struct {
	ID       string         `json:"id,omitempty" doc:"The id of the job. Absent for a job that would be created."`
	App      string         `json:"app" doc:"The app of the job."`
	Name     string         `json:"name" doc:"The name of the job."`
	Action   job.Applying   `json:"action" doc:"What was done with it."`
	Version  int64          `json:"version,omitempty" doc:"The version of the job. Absent for a job that is deleted or would be created."`
	Changes  []job.Change   `json:"changes,omitempty" doc:"The changed fields; for a new object, all fields that are set."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"Warnings: settings that are allowed, but probably not intended."`
}

// Crontab is a crontab translated into jobs.
type Crontab struct {
	Jobs    []CrontabJob  `json:"jobs" doc:"The lines that can become jobs, in order."`
	Notes   []CrontabNote `json:"notes,omitempty" doc:"Differences from cron that concern the whole crontab or lines that set a variable."`
	Refused []CrontabNote `json:"refused,omitempty" doc:"The lines that cannot become jobs, and why."`
}

type CrontabJob struct {
	Line  int             `json:"line" doc:"The number of the line."`
	Text  string          `json:"text" doc:"The line as written in the crontab."`
	Words string          `json:"words" doc:"The schedule in words, in English or Chinese by 'Accept-Language'."`
	Notes []problem.Text  `json:"notes,omitempty" doc:"Differences from cron."`
	Job   json.RawMessage `json:"job" doc:"The job in the form of a file, as 'jobs' of POST /api/v1/apply takes it."`
}

type CrontabNote struct {
	Line  int    `json:"line,omitempty" doc:"The number of the line. Absent if it concerns the whole crontab."`
	Field string `json:"field,omitempty" doc:"The field of the job, or the variable, that it is about."`
	problem.Text
}

// Export is a page of jobs in the form of job files.
type Export struct {
	Items      []json.RawMessage `json:"items" doc:"The jobs in the form of files, without default values."`
	Unreadable []UnreadableJob   `json:"unreadable,omitempty" doc:"The jobs of this page that cannot be exported, because their stored definition cannot be read."`
	Next       string            `json:"next,omitempty" doc:"The value of 'cursor' for the next page. Absent on the last page."`
}

type UnreadableJob struct {
	ID    string `json:"id" doc:"The id of the job."`
	App   string `json:"app" doc:"The app of the job."`
	Name  string `json:"name" doc:"The name of the job."`
	Error string `json:"error" doc:"What is wrong with the stored definition."`
}
