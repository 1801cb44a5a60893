package view

import (
	"time"
)

// Group is a group as clients see it.
type Group struct {
	Name      string    `json:"name" doc:"Its name."`
	Slots     int       `json:"slots" doc:"How many runs of its jobs can execute at once in the whole cluster."`
	Executing int       `json:"executing" doc:"How many of its slots are in use."`
	Waiting   int       `json:"waiting" doc:"How many due times wait for a slot."`
	Jobs      int       `json:"jobs" doc:"How many jobs use it."`
	Created   time.Time `json:"created" doc:"When it was created."`
	Updated   time.Time `json:"updated" doc:"When it was last changed."`
}
