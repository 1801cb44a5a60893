package view

import (
	"time"

	"go-crontab/job"
)

// Requested is a run that somebody has requested.
type Requested struct {
	JobID   string    `json:"job_id" doc:"The id of the job."`
	Due     time.Time `json:"due" doc:"The due time of the run."`
	Request string    `json:"request" doc:"The id of the request, which its runs carry."`
}

// Run is a run as the API shows it. A field is absent if it does not apply, or does not apply yet.
type Run struct {
	ID         string      `json:"id" doc:"Its id, a number. Each attempt has its own; ids are never used again."`
	JobID      string      `json:"job_id" doc:"The id of its job."`
	Job        string      `json:"job" doc:"The name of its job."`
	App        string      `json:"app" doc:"The app of its job."`
	Due        time.Time   `json:"due" doc:"The due time of this attempt."`
	Until      *time.Time  `json:"until,omitempty" doc:"The last due time that it covers, if it covers several that were not started."`
	Count      int64       `json:"count,omitempty" doc:"How many due times it covers."`
	Started    *time.Time  `json:"started,omitempty" doc:"When it was started. Absent if it was not started."`
	Ended      *time.Time  `json:"ended,omitempty" doc:"When it ended."`
	LatenessMS *float64    `json:"lateness_ms,omitempty" doc:"How many milliseconds late it was started."`
	Attempt    int         `json:"attempt" doc:"The number of the attempt, from 1."`
	Final      bool        `json:"final" doc:"Whether it is the last attempt of its due time."`
	State      string      `json:"state" enum:"running,ended" doc:"Whether it is running or has ended."`
	Outcome    job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	ReasonCode string      `json:"reason_code,omitempty" doc:"The reason for the outcome, as a code for programs. Absent if the outcome says everything. docs/internals/reasons.md lists the codes; later versions may add more."`
	Reason     string      `json:"reason,omitempty" doc:"The reason for people, in one line. Its wording may change between versions."`
	ExitCode   *int        `json:"exit_code,omitempty" doc:"The exit code of its command."`
	HTTPStatus int         `json:"http_status,omitempty" doc:"The status of the response to its request."`
	Signal     string      `json:"signal,omitempty" doc:"The signal that ended its command."`
	Node       string      `json:"node" doc:"The node that executes or executed it."`
	Session    string      `json:"session" doc:"The session of that node."`
	Trigger    string      `json:"trigger" enum:"schedule,manual,backfill,after" doc:"What triggered it."`
	Request    string      `json:"request,omitempty" doc:"The id of the request that triggered it."`
	Upstream   *Upstream   `json:"upstream,omitempty" doc:"The run that it follows, if the end of a run of another job triggered it."`

	Params map[string]job.Value `json:"params,omitempty" doc:"The values of its parameters. In lists, only those that were given; in the answer about a single run, all of them. A secret is shown as '{{secret.NAME}}'."`

	OutputBytes     int64   `json:"output_bytes" doc:"How many bytes of output it has written."`
	OutputTruncated bool    `json:"output_truncated" doc:"Whether some of the output was not kept. In lists, the middle of a large output counts as kept even if its node died before it was stored."`
	OutputRemoved   bool    `json:"output_removed,omitempty" doc:"Whether the output was removed later, because the app reached its limit of kept output."`
	Output          *string `json:"output,omitempty" doc:"The output as text. Only in the answer about a single run that has ended. Of a large output it has the first and the last 32 KiB."`
}

// Upstream is the run whose end made another run due.
type Upstream struct {
	Job       string      `json:"job" doc:"The app and the name of its job, as in billing/extract."`
	Run       string      `json:"run" doc:"Its id."`
	Outcome   job.Outcome `json:"outcome" doc:"How it ended."`
	Scheduled time.Time   `json:"scheduled" doc:"The due time of the first run of the chain."`
}

// Succeeded reports whether the run succeeded.
func (r *Run) Succeeded() bool { return r.Outcome == job.Succeeded }
