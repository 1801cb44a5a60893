package view

import (
	"time"

	"go-crontab/job"
)

// Slots shows, job by job, what became of the due times in a range.
type Slots struct {
	From  time.Time   `json:"from" doc:"The beginning of the range, inclusive."`
	To    time.Time   `json:"to" doc:"The end of the range, exclusive."`
	Now   time.Time   `json:"now" doc:"The time by MySQL's clock. Later due times are 'ahead'."`
	Items []*JobSlots `json:"items" doc:"The jobs, in the order of their ids."`
	Next  string      `json:"next,omitempty" doc:"The value of 'cursor' for the next jobs. Absent on the last page."`
}

// JobSlots has the due times of one job in the range. They are listed one by one, or only counted
// if the job is frequent.
type JobSlots struct {
	JobID     string       `json:"job_id" doc:"The id of the job."`
	Job       string       `json:"job" doc:"The name of the job."`
	App       string       `json:"app" doc:"The app of the job."`
	Timezone  string       `json:"timezone,omitempty" doc:"The job's time zone."`
	Total     int64        `json:"total" doc:"How many due times the range has, by the definitions in force at the time."`
	Holes     int64        `json:"holes" doc:"How many due times in the past have no record."`
	Slots     []Slot       `json:"slots,omitempty" doc:"The due times, the earliest first. Absent if there are more than 'most'."`
	Buckets   []SlotBucket `json:"buckets,omitempty" doc:"The range in parts of equal length, if there are more due times than 'most'. Parts without due times are left out. Ask for the range of a part to see its due times."`
	Uncounted bool         `json:"uncounted,omitempty" doc:"Whether the due times are too expensive to compute, or too many, or the job had more than 50 definitions in the range. Use a shorter range."`
}

// SlotState says what became of a due time. It is the outcome of the due time's run, or one of the
// states below.
type SlotState string

// The states besides the outcomes.
const (
	SlotAhead   SlotState = "ahead"   // it has not come yet
	SlotRunning SlotState = "running" // it executes
	SlotWaiting SlotState = "waiting" // it has passed, and its run has not begun
	SlotPaused  SlotState = "paused"  // it has passed, and the pause of the job stops its run
	SlotHole    SlotState = "hole"    // it has passed, and nothing is recorded of it
)

// Slot is a due time and what became of it.
type Slot struct {
	Due     time.Time   `json:"due" doc:"The due time. 'GET /api/v1/jobs/{id}/explain' explains it."`
	State   SlotState   `json:"state" enum:"succeeded,failed,timed_out,killed,lost,skipped,missed,superseded,running,waiting,paused,ahead,hole" doc:"What became of it: the outcome of its last attempt; 'running', 'waiting', 'paused' or 'ahead' before that; and 'hole' if it has passed and there is no record of it."`
	RunID   string      `json:"run_id,omitempty" doc:"The id of its last attempt."`
	Attempt int         `json:"attempt,omitempty" doc:"The number of that attempt."`
	Node    string      `json:"node,omitempty" doc:"The node that executed it."`
	Reason  string      `json:"reason_code,omitempty" doc:"The reason for the outcome, as a code for programs."`
	Again   job.Outcome `json:"again,omitempty" doc:"The outcome of the latest run that was requested for the same due time, if one has ended."`
}

// SlotBucket counts the due times in one part of the range.
type SlotBucket struct {
	From   time.Time           `json:"from" doc:"When the part begins."`
	To     time.Time           `json:"to" doc:"When it ends, exclusive."`
	Total  int64               `json:"total" doc:"How many due times it has."`
	States map[SlotState]int64 `json:"states" doc:"How many of them are in each state."`
	Worst  *Slot               `json:"worst,omitempty" doc:"The latest of its due times that went wrong, if there is any."`
}
