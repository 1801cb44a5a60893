package view

import (
	"time"

	"go-crontab/job"
)

// Import is the result of an import: the new state of the calendar, and the counts from the file.
// With dry_run, it is the state that the calendar would have.
type Import struct {
	*Calendar
	Imported Imported `json:"imported" doc:"What the file contained."`
}

type Imported struct {
	Excludes int `json:"excludes" doc:"The number of entries for days off."`
	Includes int `json:"includes" doc:"The number of entries for make-up workdays."`
	Ignored  int `json:"ignored,omitempty" doc:"The number of events that are neither."`
}

// Calendar is a calendar as the API shows it: its definition and the server's metadata.
type Calendar struct {
	job.CalendarSpec
	Jobs    int64     `json:"jobs" doc:"How many jobs use it."`
	Version int64     `json:"version" doc:"A number that grows with each change."`
	Created time.Time `json:"created" doc:"When it was created."`
	Updated time.Time `json:"updated" doc:"When it was last changed."`
	Error   string    `json:"error,omitempty" doc:"Why the stored definition cannot be read. Then no days are shown."`
}

// CalendarItem is a calendar in a list.
type CalendarItem struct {
	Name     string    `json:"name" doc:"Its name."`
	Timezone string    `json:"timezone,omitempty" doc:"The time zone of its days. Absent: the time zone of each job."`
	Excludes int       `json:"excludes" doc:"The number of entries in 'exclude'."`
	Includes int       `json:"includes" doc:"The number of entries in 'include'."`
	Jobs     int64     `json:"jobs" doc:"How many jobs use it."`
	Version  int64     `json:"version" doc:"A number that grows with each change."`
	Created  time.Time `json:"created" doc:"When it was created."`
	Updated  time.Time `json:"updated" doc:"When it was last changed."`
}
