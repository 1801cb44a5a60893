package cli

import (
	"net/url"
	"strings"
	"time"

	"go-crontab/api/view"
)

// jobView is a job with words for people.
type jobView struct{ view.Job }

// fullName returns the name as shown to people, APP/NAME.
func (j *jobView) fullName() string { return j.App + "/" + j.Name }

func (j *jobView) path() string { return "/api/v1/jobs/" + url.PathEscape(j.ID) }

// when describes the schedule in a few words.
func (j *jobView) when(viewer *time.Location) string {
	cron := j.Schedule
	if len(j.Schedules) > 0 {
		cron = strings.Join(j.Schedules, ", ")
	}

	switch {
	case cron != "" && j.Timezone != "" && j.Timezone != "UTC":
		return cron + " " + j.Timezone
	case cron != "":
		return cron
	case j.Every != 0:
		return "every " + j.Every.String()
	case j.Delay != 0:
		return j.Delay.String() + " after each run"
	case j.After != nil:
		return "after " + strings.Join(j.After.Jobs, ", ")
	case j.Manual:
		return "by hand"
	case j.At != nil:
		return "at " + absolute(j.At, viewer)
	}

	return ""
}

// zone returns the job's time zone. If the job has none, it returns this machine's zone.
func (j *jobView) zone() *time.Location {
	if j.Timezone != "" {
		if zone, err := time.LoadLocation(j.Timezone); err == nil {
			return zone
		}
	}
	return time.Local
}

// took returns the duration of the run up to its end or to now, or 0 if it was never started.
func took(r *view.Run, now time.Time) time.Duration {
	switch {
	case r.Started == nil:
		return 0
	case r.Ended == nil:
		return max(0, now.Sub(*r.Started))
	}
	return r.Ended.Sub(*r.Started)
}

// ending returns the outcome, or the state of a run without an outcome.
func ending(r *view.Run) string {
	if r.Outcome != 0 {
		return r.Outcome.String()
	}
	return r.State
}

// late returns the delay of the start.
func late(r *view.Run) string {
	if r.LatenessMS == nil {
		return ""
	}
	return precise(time.Duration(*r.LatenessMS * float64(time.Millisecond)))
}
