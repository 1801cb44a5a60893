package view

import (
	"time"

	"go-crontab/job"
)

// JobStats has the outcomes of jobs in a window of time. The job with the most failures is first.
type JobStats struct {
	Now       time.Time      `json:"now" doc:"The time by MySQL's clock: the end of the window."`
	From      time.Time      `json:"from" doc:"The beginning of the window. It contains the runs that were due since then."`
	Since     time.Time      `json:"counted_from" doc:"Since when succeeded runs are counted: later than 'from' if the window has more runs than are read. 'runs', 'succeeded', 'success_rate' and the durations cover only this part."`
	FailFrom  time.Time      `json:"failures_from" doc:"Since when failures are counted: later than 'from' if the window has more failures than are read."`
	Cut       bool           `json:"cut" doc:"Whether one of these two is later than 'from': at most 50,000 runs and 20,000 failures are read. Use a shorter window, or one app."`
	Totals    JobStatsTotals `json:"totals" doc:"The sums over all jobs, not only the listed ones."`
	Items     []*JobStat     `json:"items" doc:"The jobs that had runs in the window, the noisiest first: by failures in the window, then by runs."`
	Truncated bool           `json:"truncated" doc:"Whether more jobs had runs than 'limit'."`
}

type JobStatsTotals struct {
	Running     int64    `json:"running" doc:"How many runs are executing now."`
	Jobs        int      `json:"jobs" doc:"How many jobs had runs in the window."`
	FailedJobs  int      `json:"failed_jobs" doc:"How many jobs had a failed or lost run, or missed a due time."`
	FailingJobs int      `json:"failing_jobs" doc:"How many of these have not succeeded since, as far as successes are counted: see 'counted_from'."`
	Runs        int64    `json:"runs" doc:"How many due times ran to their end."`
	Succeeded   int64    `json:"succeeded" doc:"How many succeeded."`
	Failed      int64    `json:"failed" doc:"How many failed or timed out after their last attempt."`
	Lost        int64    `json:"lost" doc:"How many were lost with their node."`
	Missed      int64    `json:"missed" doc:"How many due times no node could start in time."`
	Skipped     int64    `json:"skipped" doc:"How many due times a policy, a pause or an edit kept from starting, or that had nothing to do."`
	Rate        *float64 `json:"success_rate,omitempty" doc:"The share of succeeded runs, from 0 to 1. Absent without runs."`
}

// JobStat has the outcomes of one job.
type JobStat struct {
	JobID     string   `json:"job_id" doc:"The id of the job."`
	Job       string   `json:"job" doc:"The name of the job."`
	App       string   `json:"app" doc:"The app of the job."`
	Runs      int64    `json:"runs" doc:"How many due times ran to their end. Attempts that were followed by another are not counted."`
	Succeeded int64    `json:"succeeded" doc:"How many succeeded."`
	Failed    int64    `json:"failed" doc:"How many failed or timed out after their last attempt."`
	Lost      int64    `json:"lost" doc:"How many were lost with their node."`
	Killed    int64    `json:"killed" doc:"How many were killed by a person, or replaced by a later due time."`
	Missed    int64    `json:"missed" doc:"How many due times no node could start in time."`
	Skipped   int64    `json:"skipped" doc:"How many due times a policy, a pause or an edit kept from starting, or that had nothing to do."`
	Rate      *float64 `json:"success_rate,omitempty" doc:"The share of succeeded runs, from 0 to 1. Killed runs are left out. Absent without runs."`
	P50       *float64 `json:"duration_p50_ms,omitempty" doc:"The median duration of the runs that succeeded or failed, in milliseconds."`
	P95       *float64 `json:"duration_p95_ms,omitempty" doc:"The 95th percentile of their duration, in milliseconds."`
	Deleted   bool     `json:"deleted,omitempty" doc:"Whether the job is deleted."`
	// Health is absent for deleted jobs.
	Health      *Health      `json:"health,omitempty" doc:"The health of the job now. Absent if it is deleted."`
	LastFailure *LastFailure `json:"last_failure,omitempty" doc:"The last of its due times in the window that failed, was lost or was missed."`
}

// LastFailure is the latest failure of a job, with the last line of its output.
type LastFailure struct {
	RunID      string      `json:"run_id" doc:"The id of the run."`
	Due        time.Time   `json:"due" doc:"Its due time."`
	Ended      *time.Time  `json:"ended,omitempty" doc:"When it ended."`
	Node       string      `json:"node,omitempty" doc:"The node that executed it."`
	Outcome    job.Outcome `json:"outcome" doc:"How it ended."`
	ReasonCode string      `json:"reason_code,omitempty" doc:"The reason for the outcome, as a code for programs."`
	Reason     string      `json:"reason,omitempty" doc:"The reason for people, in one line."`
	ExitCode   *int        `json:"exit_code,omitempty" doc:"The exit code of its command."`
	LastLine   string      `json:"last_line,omitempty" doc:"The line of its kept output that most likely says what went wrong: the last one of stderr, or else the last one that speaks of an error, or else the last one. At most 300 characters. Only of the first 50 jobs."`
	Recovered  *time.Time  `json:"recovered,omitempty" doc:"The due time of the first run that succeeded after it. Absent if there is none, or if it was due before 'counted_from'."`
}

// Counts are the numbers that the console shows next to its menu.
type Counts struct {
	Now     time.Time `json:"now" doc:"The time by MySQL's clock."`
	Failing int       `json:"failing_jobs" doc:"How many jobs are failing, among the apps that you may see."`
	AtLeast bool      `json:"at_least,omitempty" doc:"Whether more jobs may be failing: at most 2,000 are looked at."`
	Running int64     `json:"running" doc:"How many runs are executing, among these apps."`
	Alerts  int64     `json:"firing_alerts" doc:"How many alerts are firing, among these apps."`
	Unsent  *int64    `json:"unsent_messages,omitempty" doc:"How many messages of alerts could not be sent: they are tried again, or were given up in the last day. Absent for tokens that are limited to apps."`
	Ready   int       `json:"nodes_ready" doc:"How many nodes are ready."`
	Nodes   int       `json:"nodes" doc:"How many nodes have a session."`
	Gone    int       `json:"nodes_gone" doc:"How many nodes went away without leaving in order in the last 24 hours and are not back."`
}
