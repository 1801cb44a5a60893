package feed

import (
	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Kind is what an event is about.
type Kind string

// The kinds of events.
const (
	KindRun      Kind = "run"
	KindRuns     Kind = "runs" // many runs, counted
	KindJob      Kind = "job"
	KindPause    Kind = "pause" // of an app or of the cluster
	KindNode     Kind = "node"
	KindBackfill Kind = "backfill"
	KindAlert    Kind = "alert"
	KindChange   Kind = "change" // of anything else
	KindReload   Kind = "reload" // something is not told
)

// Actions that are not those of the audit.
const (
	Started = "started"
	Ended   = "ended"
	Counted = "counted"
	Joined  = "join"
	Stops   = "stop"
	Missed  = "missed"

	Raised    = "raised"
	Silenced  = "silenced"
	Recovered = "recovered"
)

// Event is one thing that has happened.
type Event struct {
	ID     string // the same whichever node tells it, but for counts
	Kind   Kind
	At     job.Micros
	Action string
	App    string // "" of what belongs to no app
	Open   bool   // that belongs to no app, and all may see it who may see anything
	JobID  int64
	Job    string
	Name   string // of a node, or of what was changed
	What   string // kind of thing that was changed
	Who    string
	Reason string

	Run      *read.Run
	Backfill *trip.BackfillRow
	Alert    *alert.FiredRow
	Counts   []Count

	Data []byte // as the feed's encoder made it; of counts that is the listener's affair
}

// Count is how many runs of a job began and ended.
type Count struct {
	JobID int64
	read.JobName
	Started int64
	Ended   [int(job.Superseded) + 1]int64 // by outcome
}

// Total is how many events it stands for.
func (c *Count) Total() int64 {
	n := c.Started
	for _, k := range c.Ended {
		n += k
	}
	return n
}

// size is about how much memory the event takes.
func (e *Event) size() int { return 200 + len(e.Data) + 160*len(e.Counts) }
