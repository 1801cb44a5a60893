package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// DueTime shows a due time in the time zone of its job.
type DueTime struct {
	Due  time.Time `json:"due" doc:"The due time, in the job's time zone."`
	Mark job.Mark  `json:"mark,omitempty" doc:"Whether daylight saving or a calendar affects it."`
	// MovedFrom is set if a calendar closes the day of the due time.
	MovedFrom *time.Time `json:"moved_from,omitempty" doc:"The closed day from which it moved, by 'on_closed', and the time."`
}

// Preview is the preview of a schedule.
type Preview struct {
	Words    string         `json:"words" doc:"The schedule in words, in English or Chinese by 'Accept-Language'."`
	Next     []DueTime      `json:"next" doc:"The due times, the earliest first."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"Warnings: settings that are allowed, but probably not intended."`
}

// Upcoming is a page of future due times.
type Upcoming struct {
	Items []UpcomingDue `json:"items" doc:"The due times, the earliest first."`
	Next  string        `json:"next,omitempty" doc:"The value of 'cursor' for the next page. Absent on the last page."`
	FrequentJobs
	Truncated bool `json:"truncated,omitempty" doc:"Whether the answer is incomplete, because more than 20,000 jobs match or some are too expensive to compute (see 'uncounted'). Use a narrower filter."`
	Uncounted int  `json:"uncounted,omitempty" doc:"How many jobs are missing or incomplete, because their due times are too expensive to compute."`
}

type UpcomingDue struct {
	JobID    string    `json:"job_id" doc:"The id of the job."`
	Job      string    `json:"job" doc:"The name of the job."`
	App      string    `json:"app" doc:"The app of the job."`
	Due      time.Time `json:"due" doc:"The due time, in the job's time zone."`
	Timezone string    `json:"timezone,omitempty" doc:"The job's time zone."`
	Mark     job.Mark  `json:"mark,omitempty" doc:"Whether daylight saving or a calendar affects it."`

	MovedFrom *time.Time `json:"moved_from,omitempty" doc:"The closed day from which it moved, by 'on_closed', and the time."`
}

// FrequentJobs are the jobs that each have more due times in the range than the request's limit.
type FrequentJobs struct {
	Frequent      []FrequentJob `json:"frequent,omitempty" doc:"With 'most': the jobs that have more due times in the range than that, the most frequent first, at most 200."`
	FrequentCount int           `json:"frequent_count,omitempty" doc:"With 'most': how many such jobs there are."`
}

type FrequentJob struct {
	JobID string `json:"job_id" doc:"The id of the job."`
	Job   string `json:"job" doc:"The name of the job."`
	App   string `json:"app" doc:"The app of the job."`
	Count int64  `json:"count" doc:"How many due times it has in the range."`
}

// UpcomingCounts counts future due times, step by step.
type UpcomingCounts struct {
	From   time.Time `json:"from" doc:"When the first step begins."`
	To     time.Time `json:"to" doc:"When the last step ends, exclusive."`
	Step   string    `json:"step" enum:"minute,hour,day" doc:"The length of a step. A day has 24 hours here."`
	Jobs   int       `json:"jobs" doc:"How many jobs are due in the range."`
	Total  int64     `json:"total" doc:"How many due times the range has."`
	Counts []int64   `json:"counts" doc:"How many due times each step has."`
	FrequentJobs
	Truncated bool `json:"truncated,omitempty" doc:"Whether some jobs were left out, because counting them all is too much work (see 'uncounted'). Use a filter or a shorter range."`
	Uncounted int  `json:"uncounted,omitempty" doc:"How many of the first 20,000 jobs were left out. Further jobs are not counted at all."`
}
