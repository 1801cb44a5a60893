package view

import (
	"time"
)

// Group is a group as clients see it.
type Group struct {
	Name      string     `json:"name" doc:"Its name."`
	Slots     int        `json:"slots,omitempty" doc:"How many runs of its jobs can execute at once in the whole cluster. Beside a rate it may be left out: no limit."`
	Rate      string     `json:"rate,omitempty" doc:"How many runs of its jobs can start within any period, such as 10/1m: up to 1,000 within 1s to 24h. Default: no limit."`
	Starts    *int       `json:"starts,omitempty" doc:"How many runs have started in the period up to now. Only with a rate."`
	NextStart *time.Time `json:"next_start,omitempty" doc:"When the rate admits the next start. Absent if it admits one now."`
	Executing int        `json:"executing" doc:"How many of its slots are in use."`
	Waiting   int        `json:"waiting" doc:"How many due times wait for a slot or for the rate."`
	Jobs      int        `json:"jobs" doc:"How many jobs use it."`
	Created   time.Time  `json:"created" doc:"When it was created."`
	Updated   time.Time  `json:"updated" doc:"When it was last changed."`
}
