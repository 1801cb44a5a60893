package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// After makes a job due when runs of other jobs end. These jobs are its upstream jobs. A job with
// After has no schedule.
type After struct {
	Jobs   []string `json:"jobs"`             // names, of the same app or as app/name
	On     string   `json:"on,omitempty"`     // which ends count
	Match  string   `json:"match,omitempty"`  // how many of the jobs must have ended
	Within Duration `json:"within,omitempty"` // with match all: how far apart their ends may lie
}

// The values of After.On and After.Match, and bounds.
const (
	OnSuccess = "success"
	OnFailure = "failure"
	OnEnd     = "end"

	MatchAll = "all"
	MatchAny = "any"

	MaxUpstreams  = 32
	DefaultWithin = 24 * time.Hour
	MinWithin     = time.Second
	MaxWithin     = 366 * 24 * time.Hour

	MinDelay = time.Second
	MaxDelay = 366 * 24 * time.Hour
)

// Counts reports whether an outcome makes the job due. o is the final outcome of a run that has
// begun.
func (a *After) Counts(o Outcome) bool {
	switch a.On {
	case OnSuccess:
		return o == Succeeded
	case OnFailure:
		return o == Failed || o == TimedOut || o == Killed || o == Lost
	}
	return true
}

// Gathers reports whether a run waits until each of several jobs has ended.
func (a *After) Gathers() bool { return a != nil && a.Match == MatchAll && len(a.Jobs) > 1 }

// Upstreams returns the names of the jobs that the job follows, each once.
func (s *Spec) Upstreams() (names []Name) {
	if s.After == nil {
		return nil
	}
	for _, written := range s.After.Jobs {
		if n := upstreamName(written, s.App); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// Follows reports whether the job follows another one.
func (s *Spec) Follows(n Name) bool { return slices.Contains(s.Upstreams(), n) }

// upstreamName reads a name as people write it.
func upstreamName(written, app string) Name {
	if of, name, ok := strings.Cut(written, "/"); ok {
		return Name{of, name}
	}
	return Name{app, written}
}

func (s *Spec) afterDefaults() {
	if s.After == nil {
		return
	}
	a := *s.After // the caller's stays as it is
	if a.On == "" {
		a.On = OnSuccess
	}
	if a.Match == "" {
		a.Match = MatchAll
	}
	if a.Within == 0 && a.Gathers() {
		a.Within = Duration(DefaultWithin)
	}
	s.After = &a
}

// validateAfter checks the fields of jobs that follow others, and of jobs with a delay.
func (s *Spec) validateAfter(p *Problems) {
	if d := time.Duration(s.Delay); d != 0 && (d < MinDelay || d > MaxDelay) {
		p.Add("delay", problem.NotBetween, s.Delay, Duration(MinDelay), Duration(MaxDelay))
	}
	if s.After == nil {
		return
	}

	a := s.After
	switch n := len(a.Jobs); {
	case n == 0:
		p.Add("after.jobs", problem.Empty.Advise(`name a job to follow, such as "after": {"jobs": ["extract"]}`))
	case n > MaxUpstreams:
		p.Add("after.jobs", problem.TooMany, n, MaxUpstreams)
	}

	seen := map[Name]bool{}
	for i, written := range a.Jobs {
		field, n := fmt.Sprintf("after.jobs[%d]", i), upstreamName(written, s.App)
		checkName(p, field, n.App)
		checkName(p, field, n.Name)
		if seen[n] {
			p.Add(field, problem.GivenAlready, n)
		}
		seen[n] = true
	}

	if a.On != OnSuccess && a.On != OnFailure && a.On != OnEnd {
		p.Add("after.on", problem.NotOneOf, a.On, "success, failure, end")
	}
	if a.Match != MatchAll && a.Match != MatchAny {
		p.Add("after.match", problem.NotOneOf, a.Match, "all, any")
	}

	switch d := time.Duration(a.Within); {
	case d != 0 && !a.Gathers():
		p.Add("after.within", problem.OnlyWith, problem.Shown("all", "match all and several jobs"))
	case d != 0 && (d < MinWithin || d > MaxWithin):
		p.Add("after.within", problem.NotBetween, a.Within, Duration(MinWithin), Duration(MaxWithin))
	}
}

// unscheduled reports whether the definition alone does not give the job's due times. They come
// from ends of runs, or from people.
func (s *Spec) unscheduled() bool { return s.Delay != 0 || s.After != nil || s.Manual }

// checkUnscheduled refuses fields that shape the due times of a schedule.
func (s *Spec) checkUnscheduled(p *Problems) {
	kind := "delay"
	switch {
	case s.After != nil:
		kind = "after"
	case s.Manual:
		kind = "manual"
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"start", s.Start != nil && s.Delay == 0},
		{"end", s.End != nil && s.Delay == 0},
		{"timezone", s.Timezone != "" && !s.Manual && len(s.Params) == 0}, // days of parameters are of a zone
		{"max_fires", s.MaxFires != 0},
		{"jitter", s.Jitter != 0},
		{"calendars", len(s.Calendars) > 0},
	} {
		if f.set {
			p.Add(f.name, problem.NotWith, kind)
		}
	}
}

// FirstDelayed returns the first due time of a job with a delay.
func (s *Spec) FirstDelayed(now Micros) Micros {
	if s.Start != nil {
		return max(now, MicrosOf(*s.Start))
	}
	return now
}

// NextDelayed returns the due time of a job with a delay whose last run has ended. It returns zero
// if the job has no further due time because its end has come.
func (s *Spec) NextDelayed(ended, now Micros) Micros {
	next := max(now, ended.Add(time.Duration(s.Delay)))
	if s.End != nil && next > MicrosOf(*s.End) {
		return 0
	}
	return next
}
