package view

import (
	"time"
)

// Explanation says, in words and as data, why a job did or did not run at an instant.
type Explanation struct {
	At      time.Time  `json:"at" doc:"The instant in question."`
	DueTime *time.Time `json:"due_time,omitempty" doc:"The exact due time, if only its second was given."`
	Due     bool       `json:"due" doc:"Whether it was a due time of the definition in force at that time."`
	Cause   string     `json:"cause" doc:"The cause, in one word: the outcome of its run, or why there was none."`
	Answer  string     `json:"answer" doc:"The explanation, for people."`
	Runs    []*Run     `json:"runs,omitempty" doc:"The attempts of the due time."`
	Before  *DueTime   `json:"before,omitempty" doc:"The due time before the instant."`
	After   *DueTime   `json:"after,omitempty" doc:"The due time after it."`

	Pause    *Pause      `json:"pause,omitempty" doc:"The pause that covered it."`
	Waiting  *Wait       `json:"waiting,omitempty" doc:"What the run is waiting for."`
	Calendar *Exclusion  `json:"calendar,omitempty" doc:"The calendar that excludes it."`
	Down     *Outage     `json:"down,omitempty" doc:"The period in which no node was running."`
	Changed  *ChangeNote `json:"changed,omitempty" doc:"When the definition in force at that time was replaced."`
	Created  *ChangeNote `json:"created,omitempty" doc:"When the job was created, if that was after the instant."`
	Deleted  *ChangeNote `json:"deleted,omitempty" doc:"When the job was deleted."`
}

// Wait says what a due time is waiting for.
type Wait struct {
	For       string     `json:"for" enum:"job,group,node,pause,slot" doc:"What the run is waiting for: earlier runs of its job, a slot of its group, a suitable node, the end of a pause (only backfills), or a free slot of a node."`
	Group     string     `json:"group,omitempty" doc:"The group in whose line it waits."`
	Rate      string     `json:"rate,omitempty" doc:"The rate of the group, if the run waits for that."`
	NextStart *time.Time `json:"next_start,omitempty" doc:"When the rate admits the next start of the group."`
	Selector  string     `json:"selector,omitempty" doc:"The selector of the job."`
	Since     *time.Time `json:"since,omitempty" doc:"When it began to wait."`
	Until     *time.Time `json:"until,omitempty" doc:"When it will be missed."`
}

// Exclusion names the calendar that excludes an instant.
type Exclusion struct {
	Name string `json:"name" doc:"Its name."`
	Why  string `json:"why,omitempty" doc:"The note of the day, or the rule that excludes it."`

	MovedTo *time.Time `json:"moved_to,omitempty" doc:"To when it moves instead, by 'on_closed'."`
}

// Outage is a time in which no node was alive, as far as this is known.
type Outage struct {
	From *time.Time `json:"from,omitempty" doc:"The last heartbeat of a node before. Absent if it is unknown."`
	To   *time.Time `json:"to,omitempty" doc:"The start of the first session since. Absent if there is none yet."`
}

// ChangeNote is a change of the job with its author.
type ChangeNote struct {
	At time.Time `json:"at" doc:"When the change was made."`
	By string    `json:"by,omitempty" doc:"Who made the change."`
}
