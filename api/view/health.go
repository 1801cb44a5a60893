package view

import (
	"time"

	"go-crontab/job"
)

// HealthCode is the health of a job in one word.
type HealthCode string

// The health of jobs, the worst first.
const (
	HealthBroken  HealthCode = "broken"  // its due times cannot be planned
	HealthFailing HealthCode = "failing" // its last final run failed, timed out, was lost or was missed
	HealthLate    HealthCode = "late"    // a due time has passed, and nothing says why it has not started
	HealthWaiting HealthCode = "waiting" // a due time waits for another run, a slot or a node
	HealthPaused  HealthCode = "paused"

	// HealthUnstable: its last final run succeeded, and some of the runs before it did not.
	HealthUnstable HealthCode = "unstable"

	HealthRunning HealthCode = "running"
	HealthOK      HealthCode = "ok"
	HealthNever   HealthCode = "never" // it has not run yet
)

// Health is the health of a job: one word, and the numbers that explain it.
type Health struct {
	Code     HealthCode `json:"code" enum:"broken,failing,late,waiting,paused,unstable,running,ok,never" doc:"The worst that is true of the job. A job whose last final run did not succeed is 'failing' until a run succeeds, also while it is running, waiting or paused. A job is 'unstable' if its last final run succeeded, but some of its latest 12 failed, timed out or were lost."`
	Text     string     `json:"text" doc:"The same for people, such as 'Failing (12×)'. Its wording may change between versions."`
	Failures int        `json:"failures,omitempty" doc:"How many due times in a row went wrong, with 'failing'."`
	AtLeast  bool       `json:"at_least,omitempty" doc:"Whether there may be more of them: only the latest 50 runs are counted."`
	Failed   int        `json:"failed,omitempty" doc:"With 'unstable': how many of the latest runs failed, timed out or were lost."`
	Of       int        `json:"of,omitempty" doc:"With 'unstable': of how many runs, at most 12. A due time that ran again counts once, by its last run."`
	Outcome  string     `json:"outcome,omitempty" doc:"The outcome of the last final run that was not skipped or superseded."`
	RunID    string     `json:"run_id,omitempty" doc:"The id of that run."`
	Since    *time.Time `json:"since,omitempty" doc:"The due time of the first of the failures in a row; the earliest due time that is late or waits; when the pause began; or when the run began that executes."`
	Scope    job.Scope  `json:"scope,omitempty" doc:"With 'paused': what is paused."`
	By       string     `json:"by,omitempty" doc:"With 'paused': who paused it."`
}

// LastRun is a recent run of a job, with the few fields that a list shows.
type LastRun struct {
	ID      string      `json:"id" doc:"Its id, a number."`
	Due     time.Time   `json:"due" doc:"The due time of this attempt."`
	Count   int64       `json:"count,omitempty" doc:"How many due times it covers, if it covers several that were not started."`
	Started *time.Time  `json:"started,omitempty" doc:"When it was started. Absent if it was not started."`
	Ended   *time.Time  `json:"ended,omitempty" doc:"When it ended."`
	State   string      `json:"state" enum:"running,ended" doc:"Whether it is running or has ended."`
	Outcome job.Outcome `json:"outcome,omitempty" doc:"How it ended."`
	Attempt int         `json:"attempt" doc:"The number of the attempt, from 1."`
	Final   bool        `json:"final" doc:"Whether it is the last attempt of its due time."`
	Trigger string      `json:"trigger" enum:"schedule,manual,backfill,after" doc:"What triggered it."`
}
