package job

import (
	"encoding/json"
	"fmt"
	"time"

	"go-crontab/job/problem"
)

// AppLimits bound what one app may take of the cluster. A field that is zero is no limit.
type AppLimits struct {
	Jobs          int64 `json:"jobs,omitempty"`            // jobs, paused and finished ones included
	RunsPerMinute int64 `json:"runs_per_minute,omitempty"` // starts in sixty seconds
	Waiting       int64 `json:"waiting,omitempty"`         // due times that wait for a run or a group
	Output        Size  `json:"output,omitempty"`          // bytes of kept output, of all runs together
}

// MostLimit is the highest limit of each number, and MostOutput that of kept output.
const (
	MostLimit  = 1_000_000_000
	MostOutput = Size(1) << 50
)

// Limit names a limit that refuses something, as its field does.
type Limit string

// The limits.
const (
	LimitJobs    Limit = "jobs"
	LimitRuns    Limit = "runs_per_minute"
	LimitWaiting Limit = "waiting"
)

// AllLimits lists those that refuse something. The limit of kept output refuses nothing: old output goes instead.
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

// Encode writes the limits as the audit has them.
func (l AppLimits) Encode() string {
	b, _ := json.Marshal(l) // numbers cannot fail
	return string(b)
}

// OverLimit is the error of a change that would take an app over one of its limits.
type OverLimit struct {
	App   string
	Limit Limit
	Most  int64
	Has   int64         // now, or in the last minute
	Adds  int64         // what the change would add
	After time.Duration // when the same request may pass; zero: nobody knows
}

func (e *OverLimit) Error() string {
	const raise = "or ask an admin of the cluster to raise the limit"

	switch e.Limit {
	case LimitJobs:
		return fmt.Sprintf("app %s has %s and may have at most %d, so %d more cannot be added: delete jobs that nobody needs, %s",
			e.App, Jobs(e.Has), e.Most, e.Adds, raise)
	case LimitRuns:
		return fmt.Sprintf("app %s has had %d runs in the last minute and may have at most %d a minute: try again in %d s, %s",
			e.App, e.Has, e.Most, e.After/time.Second, raise)
	default:
		return fmt.Sprintf("app %s has %d waiting runs and may have at most %d: try again when some of them have begun, %s",
			e.App, e.Has, e.Most, raise)
	}
}

// Jobs is a number of jobs in words.
func Jobs(n int64) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// CheckJobs returns *OverLimit if an app that has so many jobs may not get so many more. An app that is over its limit
// already, because the limit was lowered, keeps its jobs.
func (l AppLimits) CheckJobs(app string, has, adds int64) error {
	if l.Jobs == 0 || adds <= 0 || has+adds <= l.Jobs {
		return nil
	}
	return &OverLimit{App: app, Limit: LimitJobs, Most: l.Jobs, Has: has, Adds: adds}
}

// CheckRun returns *OverLimit if nobody may ask for a run of an app now.
func (l AppLimits) CheckRun(app string, starts Starts, waiting int64, now Micros) error {
	if has := starts.LastMinute(now); l.RunsPerMinute != 0 && has >= l.RunsPerMinute {
		return &OverLimit{App: app, Limit: LimitRuns, Most: l.RunsPerMinute, Has: has, Adds: 1, After: starts.Wait(l.RunsPerMinute, now)}
	}
	if l.Waiting != 0 && waiting >= l.Waiting {
		return &OverLimit{App: app, Limit: LimitWaiting, Most: l.Waiting, Has: waiting, Adds: 1}
	}
	return nil
}

// Starts counts the starts of an app by the second (since 1970) in which they fell.
type Starts map[int64]int64

// startsKept is how many seconds count.
const startsKept = 60

// SecondOf is the second in which an instant lies.
func SecondOf(at Micros) int64 { return int64(at) / int64(time.Second/time.Microsecond) }

// FirstOfMinute is the first second that counts at an instant: with the second of the instant itself they are sixty.
func FirstOfMinute(now Micros) int64 { return SecondOf(now) - startsKept + 1 }

// startsAhead is by how many seconds a start may lie ahead of a clock that reads it. What lies further ahead, since MySQL's
// clock was put back, does not count.
const startsAhead = 5

// LastMinute is how many of them count at an instant.
func (s Starts) LastMinute(now Micros) (n int64) {
	first, last := FirstOfMinute(now), SecondOf(now)+startsAhead
	for at, starts := range s {
		if at >= first && at <= last {
			n += starts
		}
	}
	return n
}

// Wait is how long it takes until fewer than so many count, in whole seconds and at least one.
func (s Starts) Wait(most int64, now Micros) time.Duration {
	left, second := s.LastMinute(now), FirstOfMinute(now)
	wait := int64(0)

	for ; left >= most && wait < startsKept; wait++ {
		left -= s[second+wait]
	}
	return time.Duration(max(1, wait)) * time.Second
}

// Forget drops what does not count any more.
func (s Starts) Forget(now Micros) {
	first, last := FirstOfMinute(now), SecondOf(now)+startsAhead
	for at := range s {
		if at < first || at > last {
			delete(s, at)
		}
	}
}
