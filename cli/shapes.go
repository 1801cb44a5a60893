package cli

import (
	"net/url"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// jobView and the other views are the parts of API objects that commands use. Unknown fields are
// ignored: a newer server may send more.

type jobView struct {
	ID            string            `json:"id"`
	App           string            `json:"app"`
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	Owner         string            `json:"owner"`
	Labels        map[string]string `json:"labels"`
	Schedule      string            `json:"schedule"`
	Schedules     []string          `json:"schedules"`
	Every         string            `json:"every"`
	At            *time.Time        `json:"at"`
	Timezone      string            `json:"timezone"`
	Start         *time.Time        `json:"start"`
	End           *time.Time        `json:"end"`
	MaxFires      int64             `json:"max_fires"`
	Jitter        string            `json:"jitter"`
	Calendars     []string          `json:"calendars"`
	Command       string            `json:"command"`
	HTTP          *job.HTTP         `json:"http"`
	Handler       string            `json:"handler"`
	Payload       string            `json:"payload"`
	Selector      string            `json:"selector"`
	Timeout       string            `json:"timeout"`
	Overlap       string            `json:"overlap"`
	Queue         int               `json:"queue"`
	Group         string            `json:"group"`
	Priority      int               `json:"priority"`
	StartDeadline string            `json:"start_deadline"`
	Misfire       struct {
		Policy   string `json:"policy"`
		After    string `json:"after"`
		MaxAge   string `json:"max_age"`
		MaxCount int    `json:"max_count"`
	} `json:"misfire"`
	Retry struct {
		Attempts   int     `json:"attempts"`
		Backoff    string  `json:"backoff"`
		Factor     float64 `json:"factor"`
		MaxBackoff string  `json:"max_backoff"`
	} `json:"retry"`
	Keep     keepView       `json:"keep"`
	Ping     *job.Ping      `json:"ping"`
	OnLost   string         `json:"on_lost"`
	Status   string         `json:"status"`
	Pause    *pauseView     `json:"pause"`
	Error    string         `json:"error"`
	Warnings []problem.Text `json:"warnings"`
	Waiting  []waitView     `json:"waiting"`
	Version  int64          `json:"version"`
	NextDue  *time.Time     `json:"next_due"`
	LastDue  *time.Time     `json:"last_due"`
	Created  *time.Time     `json:"created"`
	Updated  *time.Time     `json:"updated"`

	commandOptions
}

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
	case j.Every != "":
		return "every " + j.Every
	case j.At != nil:
		return "at " + absolute(j.At, viewer)
	}

	return ""
}

// zone returns the job's time zone, or this machine's if the job has none.
func (j *jobView) zone() *time.Location {
	if j.Timezone != "" {
		if zone, err := time.LoadLocation(j.Timezone); err == nil {
			return zone
		}
	}
	return time.Local
}

type runView struct {
	ID       string     `json:"id"`
	JobID    string     `json:"job_id"`
	App      string     `json:"app"`
	Job      string     `json:"job"`
	Due      *time.Time `json:"due"`
	Until    *time.Time `json:"until"`
	Count    int64      `json:"count"`
	Started  *time.Time `json:"started"`
	Ended    *time.Time `json:"ended"`
	Lateness *float64   `json:"lateness_ms"`
	Attempt  int        `json:"attempt"`
	Final    bool       `json:"final"`
	State    string     `json:"state"`
	Outcome  string     `json:"outcome"`
	Reason   string     `json:"reason"`
	ExitCode *int       `json:"exit_code"`
	Signal   string     `json:"signal"`
	Node     string     `json:"node"`
	Trigger  string     `json:"trigger"`
	Request  string     `json:"request"`

	ReasonCode string `json:"reason_code"`

	OutputBytes     int64 `json:"output_bytes"`
	OutputTruncated bool  `json:"output_truncated"`
	OutputRemoved   bool  `json:"output_removed"`
}

// took returns the duration of the run up to its end or to now, or 0 if it was never started.
func (r *runView) took(now time.Time) time.Duration {
	switch {
	case r.Started == nil:
		return 0
	case r.Ended == nil:
		return max(0, now.Sub(*r.Started))
	}
	return r.Ended.Sub(*r.Started)
}

// ending returns the outcome, or the state of a run without an outcome.
func (r *runView) ending() string {
	if r.Outcome != "" {
		return r.Outcome
	}
	return r.State
}

// late returns the delay of the start.
func (r *runView) late() string {
	if r.Lateness == nil {
		return ""
	}
	return precise(time.Duration(*r.Lateness * float64(time.Millisecond)))
}

type clusterView struct {
	Node          string        `json:"node"` // that answered
	Server        string        `json:"server"`
	SessionExpiry string        `json:"session_expiry"`
	Sessions      []sessionView `json:"sessions"`
	Folders       []folderView  `json:"folders"`
}

// folderView is a folder of job files that nodes follow.
type folderView struct {
	Folder  string     `json:"folder"`
	Applied *time.Time `json:"applied"`
	Node    string     `json:"node"` // that applied it
	Nodes   []struct {
		Node  string     `json:"node"`
		State string     `json:"state"`
		Error string     `json:"error"`
		Since *time.Time `json:"since"`
	} `json:"nodes"`
}

type sessionView struct {
	ID          string     `json:"id"`
	Node        string     `json:"node"`
	Address     string     `json:"address"`
	PID         int        `json:"pid"`
	Version     string     `json:"version"`
	Started     *time.Time `json:"started"`
	BeatAge     int64      `json:"beat_age_ms"`
	Draining    bool       `json:"draining"`
	Prepared    int        `json:"prepared"`
	Executing   int        `json:"executing"`
	Slots       int        `json:"slots"`
	ClockOffset float64    `json:"clock_offset_ms"`
}
