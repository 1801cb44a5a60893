package view

import (
	"time"

	"go-crontab/job"
)

// Import answers an import: the calendar as it is now, or with dry_run as it would be, and the
// counts from the file.
type Import struct {
	*Calendar
	Imported Imported `json:"imported" doc:"What came with the file."`
}

type Imported struct {
	Excludes int `json:"excludes" doc:"Days off, in entries."`
	Includes int `json:"includes" doc:"Make-up workdays, in entries."`
	Ignored  int `json:"ignored,omitempty" doc:"Events that are neither."`
}

// Calendar is a calendar as the API shows it: its definition and the server's metadata.
type Calendar struct {
	job.CalendarSpec
	Jobs    int64     `json:"jobs" doc:"How many jobs name it."`
	Version int64     `json:"version" doc:"Grows with each change."`
	Created time.Time `json:"created" doc:"When it was created."`
	Updated time.Time `json:"updated" doc:"When it was changed last."`
	Error   string    `json:"error,omitempty" doc:"Why the stored definition cannot be read; no days are shown then."`
}

// CalendarItem is a calendar in a list.
type CalendarItem struct {
	Name     string    `json:"name" doc:"Its name."`
	Timezone string    `json:"timezone,omitempty" doc:"Whose days these are. Absent: those of the time zone of each job."`
	Excludes int       `json:"excludes" doc:"How many entries 'exclude' has."`
	Includes int       `json:"includes" doc:"How many entries 'include' has."`
	Jobs     int64     `json:"jobs" doc:"How many jobs name it."`
	Version  int64     `json:"version" doc:"Grows with each change."`
	Created  time.Time `json:"created" doc:"When it was created."`
	Updated  time.Time `json:"updated" doc:"When it was changed last."`
}
