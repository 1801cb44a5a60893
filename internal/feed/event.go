package feed

import (
	"go-crontab/internal/alert"
	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Kind is the subject of an event.
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
	KindChange   Kind = "change" // a change of a thing that has no kind above
	KindReload   Kind = "reload" // some events were not reported
)

// Actions that the audit does not have.
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

// Event is a change.
type Event struct {
	ID     string // the same on every node, except for KindRuns
	Kind   Kind
	At     job.Micros
	Action string
	App    string // "" if it belongs to no app
	Open   bool   // it belongs to no app, but readers of any app may see it
	JobID  int64
	Job    string
	Name   string // of a node, or of the changed thing
	What   string // kind of the changed thing
	Who    string
	Reason string

	Run      *read.Run
	Backfill *trip.BackfillRow
	Alert    *alert.FiredRow
	Counts   []Count

	Data []byte // encoded event; nil for KindRuns, which listeners encode
}

// Count is the number of runs of a job that started and ended.
type Count struct {
	JobID int64
	read.JobName
	Started int64
	Ended   [int(job.Superseded) + 1]int64 // by outcome
}

// Total returns the number of events that the count replaces.
func (c *Count) Total() int64 {
	n := c.Started
	for _, k := range c.Ended {
		n += k
	}
	return n
}

// size estimates the memory of the event, in bytes.
func (e *Event) size() int { return 200 + len(e.Data) + 160*len(e.Counts) }
