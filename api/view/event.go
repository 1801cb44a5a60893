package view

import (
	"time"
)

// Event is the content of a message of the change feed.
type Event struct {
	ID       string          `json:"id,omitempty" doc:"The id of the event. An event that is sent twice has the same id."`
	Kind     string          `json:"kind" enum:"hello,run,runs,job,pause,node,backfill,alert,change,reload" doc:"The kind of the event."`
	At       time.Time       `json:"at" doc:"When it happened, by MySQL's clock."`
	Action   string          `json:"action" doc:"What happened."`
	App      string          `json:"app,omitempty" doc:"The app, if the event is about an app or a job."`
	JobID    string          `json:"job_id,omitempty" doc:"The id of the job, if the event is about one."`
	Job      string          `json:"job,omitempty" doc:"The name of the job."`
	Name     string          `json:"name,omitempty" doc:"The name of the node or of the changed object."`
	What     string          `json:"what,omitempty" doc:"The kind of object that was changed, such as 'group' or 'calendar'."`
	Who      string          `json:"who,omitempty" doc:"Who did it."`
	Reason   string          `json:"reason,omitempty" doc:"The reason that was given."`
	Run      *Run            `json:"run,omitempty" doc:"The run, in an event of kind 'run'."`
	Counts   []*RunCounts    `json:"counts,omitempty" doc:"Counts of runs for each job, in an event of kind 'runs'."`
	Other    *RunCounts      `json:"other,omitempty" doc:"How many runs of further jobs there were."`
	Backfill *BackfillStatus `json:"backfill,omitempty" doc:"The backfill, in an event of kind 'backfill'."`
	Alert    *Alert          `json:"alert,omitempty" doc:"The alert, in an event of kind 'alert'."`
}

// RunCounts counts the started and ended runs of a job.
type RunCounts struct {
	App        string `json:"app,omitempty" doc:"The app of the job."`
	JobID      string `json:"job_id,omitempty" doc:"The id of the job."`
	Job        string `json:"job,omitempty" doc:"The name of the job."`
	Started    int64  `json:"started,omitempty" doc:"How many started."`
	Succeeded  int64  `json:"succeeded,omitempty" doc:"How many succeeded."`
	Failed     int64  `json:"failed,omitempty" doc:"How many failed."`
	TimedOut   int64  `json:"timed_out,omitempty" doc:"How many timed out."`
	Killed     int64  `json:"killed,omitempty" doc:"How many were killed."`
	Lost       int64  `json:"lost,omitempty" doc:"How many were lost."`
	Skipped    int64  `json:"skipped,omitempty" doc:"How many were skipped."`
	Missed     int64  `json:"missed,omitempty" doc:"How many were missed."`
	Superseded int64  `json:"superseded,omitempty" doc:"How many were superseded."`
}

// BackfillStatus is the progress of a backfill.
type BackfillStatus struct {
	ID      string `json:"id" doc:"Its id."`
	State   string `json:"state" enum:"running,done,cancelled" doc:"Its state."`
	Total   int64  `json:"total" doc:"How many due times are in its range."`
	Planned int64  `json:"planned" doc:"How many of them have been started."`
	LeftOut int64  `json:"left_out" doc:"Due times that were left out because they had already succeeded."`
}

// Close is the last message of a stream that the server ends.
type Close struct {
	Reason string `json:"reason" doc:"The reason, for people."`
}
