package view

import (
	"time"
)

// Explanation says why a job did, or did not, run at an instant, in words and as data.
type Explanation struct {
	At      time.Time  `json:"at" doc:"The instant that was asked for."`
	DueTime *time.Time `json:"due_time,omitempty" doc:"The due time that is meant, when only its second was given."`
	Due     bool       `json:"due" doc:"Whether it was a due time of the definition that was in force."`
	Cause   string     `json:"cause" doc:"Why, in one word: the outcome of its run, or what else was so."`
	Answer  string     `json:"answer" doc:"Why, for people."`
	Runs    []*Run     `json:"runs,omitempty" doc:"The attempts of the due time."`
	Before  *DueTime   `json:"before,omitempty" doc:"The due time before the instant."`
	After   *DueTime   `json:"after,omitempty" doc:"The due time after it."`

	Pause    *Pause      `json:"pause,omitempty" doc:"The pause that covered it."`
	Waiting  *Wait       `json:"waiting,omitempty" doc:"For what it waits."`
	Calendar *Exclusion  `json:"calendar,omitempty" doc:"The calendar that excludes it."`
	Down     *Outage     `json:"down,omitempty" doc:"For how long no node was there."`
	Changed  *ChangeNote `json:"changed,omitempty" doc:"When the definition that was in force was replaced."`
	Created  *ChangeNote `json:"created,omitempty" doc:"When the job was created, if that was later."`
	Deleted  *ChangeNote `json:"deleted,omitempty" doc:"When the job was deleted."`
}

// Wait says what a due time is waiting for.
type Wait struct {
	For      string     `json:"for" enum:"job,group,node,pause,slot" doc:"For what it waits: the runs of its job before it, a slot of its group, a node that it may run on, the end of a pause (due times of backfills), or a free slot of a node."`
	Group    string     `json:"group,omitempty" doc:"The group without a free slot."`
	Selector string     `json:"selector,omitempty" doc:"What the job wants of nodes."`
	Since    *time.Time `json:"since,omitempty" doc:"Since when."`
	Until    *time.Time `json:"until,omitempty" doc:"When it ends missed."`
}

// Exclusion names the calendar that excludes an instant.
type Exclusion struct {
	Name string `json:"name" doc:"Its name."`
	Why  string `json:"why,omitempty" doc:"The note of the day, or the rule that says so."`
}

// Outage is the time without any node, as far as it is known.
type Outage struct {
	From *time.Time `json:"from,omitempty" doc:"The last sign of a node before. Absent: nobody knows."`
	To   *time.Time `json:"to,omitempty" doc:"The first session since. Absent: there is none yet."`
}

// ChangeNote is a change of the job with its author.
type ChangeNote struct {
	At time.Time `json:"at" doc:"When."`
	By string    `json:"by,omitempty" doc:"Who made it."`
}
