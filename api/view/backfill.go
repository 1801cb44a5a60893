package view

import (
	"time"

	"go-crontab/job"
)

// Backfill is a backfill as clients see it.
type Backfill struct {
	ID       string               `json:"id" doc:"Its id, a number."`
	JobID    string               `json:"job_id" doc:"The id of its job."`
	Job      string               `json:"job" doc:"The name of its job."`
	App      string               `json:"app" doc:"The app of its job."`
	From     time.Time            `json:"from" doc:"The beginning of the range, inclusive."`
	To       time.Time            `json:"to" doc:"The end of the range, inclusive."`
	Parallel int                  `json:"parallel" doc:"How many due times run at the same time."`
	Missing  bool                 `json:"missing" doc:"Whether due times that have already succeeded are left out."`
	Params   map[string]job.Value `json:"params,omitempty" doc:"The values of parameters that its runs are given."`
	State    string               `json:"state" enum:"running,done,cancelled" doc:"The state of the backfill."`
	Health   BackfillHealth       `json:"health" enum:"running,failing,succeeded,failed,cancelled,unknown" doc:"The state and the outcomes in one word: 'failing' is running with failures, 'failed' is done with failures, and 'succeeded' is done without. In a list, 'unknown' if its runs could not be counted in time."`
	Total    int64                `json:"total" doc:"How many due times the range has."`
	Started  int64                `json:"planned" doc:"How many of them have been started."`
	LeftOut  int64                `json:"left_out" doc:"Due times that were left out because they had already succeeded."`
	Ended    int64                `json:"ended" doc:"How many of them have ended. In a list, 0 if they could not be counted in time."`
	Failed   int64                `json:"failed" doc:"How many did not succeed, whatever their outcome."`
	Outcomes map[string]int64     `json:"outcomes" doc:"How many have ended, by outcome. In a list, empty if they could not be counted in time."`
	Who      string               `json:"who,omitempty" doc:"Who requested it."`
	Created  time.Time            `json:"created" doc:"When it began."`
	Updated  time.Time            `json:"updated" doc:"When it last progressed."`
}

// BackfillHealth sums up in one word the state of a backfill and the outcomes of its runs.
type BackfillHealth string

// The healths of backfills.
const (
	BackfillRunning   BackfillHealth = "running"
	BackfillFailing   BackfillHealth = "failing"
	BackfillSucceeded BackfillHealth = "succeeded"
	BackfillFailed    BackfillHealth = "failed"
	BackfillCancelled BackfillHealth = "cancelled"
	BackfillUnknown   BackfillHealth = "unknown"
)

// BackfillDue is a due time of a backfill and what became of it.
type BackfillDue struct {
	Due   time.Time `json:"due" doc:"The due time."`
	State string    `json:"state" enum:"succeeded,failed,timed_out,killed,lost,skipped,missed,superseded,running,waiting,left_out,planned,cancelled,no_record" doc:"What became of it: the outcome of its last attempt, or 'running' or 'waiting' before that; 'left_out' if it had succeeded before the backfill; 'planned' if the backfill has not reached it, and 'cancelled' if it never will; 'no_record' if retention has removed its run, or it is no due time any more."`
	Run   *Run      `json:"run,omitempty" doc:"Its last attempt, if it is running or has ended. Absent if it began in another app, whose runs you may not read."`
}
