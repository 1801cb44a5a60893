package view

import (
	"time"
)

// Backfill is a backfill as clients see it.
type Backfill struct {
	ID       string           `json:"id" doc:"Its id, a number."`
	JobID    string           `json:"job_id" doc:"The id of its job."`
	From     time.Time        `json:"from" doc:"The beginning of the range, inclusive."`
	To       time.Time        `json:"to" doc:"The end of the range, inclusive."`
	Parallel int              `json:"parallel" doc:"How many due times run at the same time."`
	Missing  bool             `json:"missing" doc:"Whether due times that have already succeeded are left out."`
	State    string           `json:"state" enum:"running,done,cancelled" doc:"The state of the backfill."`
	Total    int64            `json:"total" doc:"How many due times the range has."`
	Started  int64            `json:"planned" doc:"How many of them have been started."`
	LeftOut  int64            `json:"left_out" doc:"Due times that were left out because they had already succeeded."`
	Ended    int64            `json:"ended" doc:"How many of them have ended. In a list, 0 if they could not be counted in time."`
	Outcomes map[string]int64 `json:"outcomes" doc:"How many have ended, by outcome. In a list, empty if they could not be counted in time."`
	Who      string           `json:"who,omitempty" doc:"Who requested it."`
	Created  time.Time        `json:"created" doc:"When it began."`
	Updated  time.Time        `json:"updated" doc:"When it last progressed."`
}
