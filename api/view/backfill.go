package view

import (
	"time"
)

// Backfill is a backfill as clients see it.
type Backfill struct {
	ID       string           `json:"id" doc:"Its id, a number."`
	JobID    string           `json:"job_id" doc:"The id of its job."`
	From     time.Time        `json:"from" doc:"The beginning of the range, which belongs to it."`
	To       time.Time        `json:"to" doc:"The end of the range, which belongs to it."`
	Parallel int              `json:"parallel" doc:"How many of its due times are started at once."`
	Missing  bool             `json:"missing" doc:"Whether it leaves out due times that have succeeded."`
	State    string           `json:"state" enum:"running,done,cancelled" doc:"How far it is."`
	Total    int64            `json:"total" doc:"How many due times are in the range."`
	Started  int64            `json:"planned" doc:"How many of them have or had a run."`
	LeftOut  int64            `json:"left_out" doc:"How many of them had succeeded before."`
	Ended    int64            `json:"ended" doc:"How many of them have ended. In a list 0 if they could not be counted in time."`
	Outcomes map[string]int64 `json:"outcomes" doc:"How many ended how, by outcome. In a list empty if they could not be counted in time."`
	Who      string           `json:"who,omitempty" doc:"Who asked for it."`
	Created  time.Time        `json:"created" doc:"When it was begun."`
	Updated  time.Time        `json:"updated" doc:"When it went on last."`
}
