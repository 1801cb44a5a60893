package job

import (
	"encoding/json"
	"fmt"
	"time"

	"go-crontab/job/problem"
)

// AppLimits bounds the share of an app in the cluster. Zero means no limit.
type AppLimits struct {
	Jobs          int64 `json:"jobs,omitempty"`            // jobs, including paused and finished jobs
	RunsPerMinute int64 `json:"runs_per_minute,omitempty"` // starts in sixty seconds
	Waiting       int64 `json:"waiting,omitempty"`         // due times waiting for a run or a group
	Output        Size  `json:"output,omitempty"`          // bytes of kept output of all runs
}

// MostLimit is the highest number for a limit, and MostOutput for kept output.
const (
	MostLimit  = 1_000_000_000
	MostOutput = Size(1) << 50
)

// Limit names a limit that can refuse a change, by its field.
type Limit string

// The limits.
const (
	LimitJobs    Limit = "jobs"
	LimitRuns    Limit = "runs_per_minute"
	LimitWaiting Limit = "waiting"
)

// AllLimits lists the limits that refuse changes. The limit of kept output is not among them: it
// only removes old output.
var AllLimits = []Limit{LimitJobs, LimitRuns, LimitWaiting}

// Validate returns all problems.
func (l *AppLimits) Validate() error {
	var p Problems
	counts := map[Limit]int64{LimitJobs: l.Jobs, LimitRuns: l.RunsPerMinute, LimitWaiting: l.Waiting}

	for _, name := range AllLimits {
		if n := counts[name]; n < 0 || n > MostLimit {
			p.Add(string(name), problem.NotBetween.Advise("leave it out for no limit"), n, 1, MostLimit)
		}
	}
	if l.Output < 0 || l.Output > MostOutput {
		p.Add("output", problem.NotBetween.Advise("leave it out for no limit"), l.Output, "1B", MostOutput)
	}

	if p == nil {
		return nil
	}
	return p
}

// Encode returns the limits as JSON for an audit line.
func (l AppLimits) Encode() string {
	b, _ := json.Marshal(l) // numbers cannot fail
	return string(b)
}

// OverLimit is the error of a change that would exceed a limit of an app.
type OverLimit struct {
	App   string
	Limit Limit
	Most  int64
	Has   int64         // now, or in the last minute
	Adds  int64         // added by the change
	After time.Duration // when a retry may succeed; zero: unknown
}

func (e *OverLimit) Error() string {
	const raise = "or ask an admin of the cluster to raise the limit"

	switch e.Limit {
	case LimitJobs:
		return fmt.Sprintf(
			"app %s has %s and can have at most %d, so %d more cannot be added: delete unneeded jobs, %s",
			e.App, Jobs(e.Has), e.Most, e.Adds, raise)
	case LimitRuns:
		return fmt.Sprintf(
			"app %s has started %d runs in the last minute and can start at most %d a minute: try again in %d s, %s",
			e.App, e.Has, e.Most, e.After/time.Second, raise)
	default:
		return fmt.Sprintf(
			"app %s has %d waiting runs and can have at most %d: try again when some of them have started, %s",
			e.App, e.Has, e.Most, raise)
	}
}

// Jobs formats a number of jobs in words.
func Jobs(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// CheckJobs returns *OverLimit if an app with has jobs may not have adds more jobs. An app that is
// already over a lowered limit keeps its jobs.
func (l AppLimits) CheckJobs(app string, has, adds int64) error {
	if l.Jobs == 0 || adds <= 0 || has+adds <= l.Jobs {
		return nil
	}
	return &OverLimit{App: app, Limit: LimitJobs, Most: l.Jobs, Has: has, Adds: adds}
}

// CheckRun returns *OverLimit if the app may not have another requested run now.
func (l AppLimits) CheckRun(app string, starts Starts, waiting int64, now Micros) error {
	if has := starts.LastMinute(now); l.RunsPerMinute != 0 && has >= l.RunsPerMinute {
		return &OverLimit{
			App: app, Limit: LimitRuns, Most: l.RunsPerMinute, Has: has, Adds: 1,
			After: starts.Wait(l.RunsPerMinute, now),
		}
	}
	if l.Waiting != 0 && waiting >= l.Waiting {
		return &OverLimit{App: app, Limit: LimitWaiting, Most: l.Waiting, Has: waiting, Adds: 1}
	}
	return nil
}

// Starts counts the starts of an app in each second. The key is the second since 1970.
type Starts map[int64]int64

// startsKept is the length of the counted window in seconds.
const startsKept = 60

// SecondOf converts an instant to seconds since 1970.
func SecondOf(at Micros) int64 { return int64(at) / int64(time.Second/time.Microsecond) }

// FirstOfMinute is the first second of the counted window. The window has sixty seconds up to the
// second of now.
func FirstOfMinute(now Micros) int64 { return SecondOf(now) - startsKept + 1 }

// startsAhead is how many seconds a start may be ahead of the reader's clock. Starts further ahead
// do not count: they were counted before MySQL's clock was put back.
const startsAhead = 5

// LastMinute returns the number of starts in the window. Starts up to startsAhead seconds after now
// count, too.
func (s Starts) LastMinute(now Micros) (n int64) {
	first, last := FirstOfMinute(now), SecondOf(now)+startsAhead
	for at, starts := range s {
		if at >= first && at <= last {
			n += starts
		}
	}
	return n
}

// Wait returns how long it takes until fewer than most starts count. The result is in whole
// seconds, and at least one second.
func (s Starts) Wait(most int64, now Micros) time.Duration {
	left, second := s.LastMinute(now), FirstOfMinute(now)
	wait := int64(0)

	for ; left >= most && wait < startsKept; wait++ {
		left -= s[second+wait]
	}
	return time.Duration(max(1, wait)) * time.Second
}

// Forget drops starts that are outside the window.
func (s Starts) Forget(now Micros) {
	first, last := FirstOfMinute(now), SecondOf(now)+startsAhead
	for at := range s {
		if at < first || at > last {
			delete(s, at)
		}
	}
}
