package view

import (
	"time"

	"go-crontab/job"
)

// Requested is a requested run.
type Requested struct {
	JobID   string    `json:"job_id" doc:"The id of the job."`
	Due     time.Time `json:"due" doc:"The due time of the run."`
	Request string    `json:"request" doc:"The id of the request, which its runs carry."`
}

// Run is a run as the API shows it. Absent fields did not happen, or not yet.
type Run struct {
	ID         string      `json:"id" doc:"Its id, a number. Each attempt has its own; ids are never used again."`
	JobID      string      `json:"job_id" doc:"The id of its job."`
	Job        string      `json:"job" doc:"The name of its job."`
	App        string      `json:"app" doc:"The app of its job."`
	Due        time.Time   `json:"due" doc:"The due time that it is an attempt of."`
	Until      *time.Time  `json:"until,omitempty" doc:"The last of the due times that it stands for, if it stands for several that nobody started."`
	Count      int64       `json:"count,omitempty" doc:"How many those are."`
	Started    *time.Time  `json:"started,omitempty" doc:"When it was started. Absent: it was not."`
	Ended      *time.Time  `json:"ended,omitempty" doc:"When it ended."`
	LatenessMS *float64    `json:"lateness_ms,omitempty" doc:"How many milliseconds after it should have been started it was."`
	Attempt    int         `json:"attempt" doc:"Which attempt of the due time it is, from 1."`
	Final      bool        `json:"final" doc:"Whether it is the last attempt of its due time."`
	State      string      `json:"state" enum:"running,ended" doc:"Whether it executes."`
	Outcome    job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	ReasonCode string      `json:"reason_code,omitempty" doc:"Why it ended so, in one word for programs. Absent: the outcome says everything. docs/jobs.md lists the words; more may come."`
	Reason     string      `json:"reason,omitempty" doc:"The same for people, in one line that may be worded otherwise in another version."`
	ExitCode   *int        `json:"exit_code,omitempty" doc:"The exit code of its command."`
	Signal     string      `json:"signal,omitempty" doc:"The signal that ended its command."`
	Node       string      `json:"node" doc:"The node that executes it, or did."`
	Session    string      `json:"session" doc:"The session of that node."`
	Trigger    string      `json:"trigger" enum:"schedule,manual,backfill" doc:"What made it due."`
	Request    string      `json:"request,omitempty" doc:"The request that made it due."`

	OutputBytes     int64   `json:"output_bytes" doc:"How many bytes it has written."`
	OutputTruncated bool    `json:"output_truncated" doc:"Whether some of them were not kept."`
	OutputRemoved   bool    `json:"output_removed,omitempty" doc:"Whether the output was removed later, because the app reached its limit of kept output."`
	Output          *string `json:"output,omitempty" doc:"What it wrote, as text. Told when a single run that has ended is asked for."`
}

// Succeeded reports whether the run succeeded.
func (r *Run) Succeeded() bool { return r.Outcome == job.Succeeded }
