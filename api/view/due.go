package view

import (
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// DueTime shows a due time in the time zone of its job.
type DueTime struct {
	Due  time.Time `json:"due" doc:"The due time, in the job's time zone."`
	Mark job.Mark  `json:"mark,omitempty" doc:"What the clock or a calendar does to it."`
}

// Preview is the preview of a schedule.
type Preview struct {
	Words    string         `json:"words" doc:"The schedule in words, of the language that 'Accept-Language' asks for: English or Chinese."`
	Next     []DueTime      `json:"next" doc:"The due times, the earliest first."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"What is allowed and yet hardly meant."`
}

// Upcoming is a page of future due times.
type Upcoming struct {
	Items []UpcomingDue `json:"items" doc:"The due times, the earliest first."`
	Next  string        `json:"next,omitempty" doc:"What to give as 'cursor' for the next page. Absent: this is the last."`
	FrequentJobs
	Truncated bool `json:"truncated,omitempty" doc:"There are more than 20,000 such jobs, and those beyond were not looked at, or some are too expensive to compute, see 'uncounted': filter."`
	Uncounted int  `json:"uncounted,omitempty" doc:"How many jobs are missing, or some of their due times, because these are too expensive to compute."`
}

type UpcomingDue struct {
	JobID    string    `json:"job_id" doc:"The id of the job."`
	Job      string    `json:"job" doc:"The name of the job."`
	App      string    `json:"app" doc:"The app of the job."`
	Due      time.Time `json:"due" doc:"The due time, in the job's time zone."`
	Timezone string    `json:"timezone,omitempty" doc:"The job's time zone."`
	Mark     job.Mark  `json:"mark,omitempty" doc:"What the clock or a calendar does to it."`
}

// FrequentJobs are the jobs with more due times in the range than the request's limit.
type FrequentJobs struct {
	Frequent      []FrequentJob `json:"frequent,omitempty" doc:"With 'most': those of the jobs that have more due times in the range than that, the most frequent first; at most 200."`
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
	To     time.Time `json:"to" doc:"When the last step ends; it does not belong to it."`
	Step   string    `json:"step" enum:"minute,hour,day" doc:"How long a step is: a day has 24 hours here."`
	Jobs   int       `json:"jobs" doc:"How many jobs are due in the range."`
	Total  int64     `json:"total" doc:"How many due times lie in the range."`
	Counts []int64   `json:"counts" doc:"How many lie in each step."`
	FrequentJobs
	Truncated bool `json:"truncated,omitempty" doc:"It would be too much work to count them all: some jobs were left out, see 'uncounted'. Filter, or ask for a shorter range."`
	Uncounted int  `json:"uncounted,omitempty" doc:"How many of the jobs that were looked at were left out. Those beyond 20,000 were not looked at."`
}
