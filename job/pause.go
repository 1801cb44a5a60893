package job

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Scope is the range of a pause.
type Scope string

// The scopes.
const (
	ScopeJob     Scope = "job"
	ScopeApp     Scope = "app"
	ScopeCluster Scope = "cluster"
)

// Pause stops due times. It has an author, a reason and an end.
type Pause struct {
	Scope  Scope
	App    string // with the scope of an app
	By     string
	Reason string
	Since  Micros
	Until  Micros // when it ends by itself; zero: never
}

// Over reports whether the pause has ended by itself.
func (p *Pause) Over(now Micros) bool { return p.Until != 0 && p.Until <= now }

// String describes the pause in one line that begins with "paused". The same line is the reason of
// a due time that was skipped because of the pause.
func (p *Pause) String() string { return "paused" + p.Words() }

// Words gives the scope, the person and the reason, as the end of a sentence.
func (p *Pause) Words() string {
	text := ""
	switch p.Scope {
	case ScopeApp:
		text = " with app " + p.App
	case ScopeCluster:
		text = " with the cluster"
	}

	if p.By != "" {
		text += " by " + p.By
	}

	if p.Reason != "" {
		text += ": " + p.Reason
	}

	return text
}

// PauseAt returns the pause that stops the job's due times at an instant, or nil. The job's own
// pause wins. After it comes the longest pause among those of its app and of the cluster.
func (j *Job) PauseAt(now Micros) *Pause {
	if j.Paused { // a job stays paused until it is resumed, even if Until has passed
		return &Pause{Scope: ScopeJob, By: j.PausedBy, Reason: j.PauseReason, Since: j.PausedAt, Until: j.PauseUntil}
	}
	return Longest(j.Covers, j.Spec.App, now)
}

// Longest returns the pause that lasts longest among all pauses that stop an app's jobs at an
// instant. Without a pause it returns nil.
func Longest(pauses []Pause, app string, now Micros) *Pause {
	var out *Pause
	for i := range pauses {
		p := &pauses[i]
		if p.Over(now) || p.Scope == ScopeApp && p.App != app {
			continue
		}
		if out == nil || out.Until != 0 && (p.Until == 0 || p.Until > out.Until) {
			out = p
		}
	}

	return out
}

// PauseRequest is a request to pause a job, an app or the cluster.
type PauseRequest struct {
	Reason string // one line
	Until  Micros // when to resume; zero: somebody must resume it
}

// Bounds of a pause.
const (
	MaxReason    = 500 // characters of a reason
	maxPauseYear = 2099
)

// Validate returns all problems of the request, as Problems, or nil.
func (r *PauseRequest) Validate(now Micros) error {
	var p Problems
	switch {
	case !utf8.ValidString(r.Reason):
		p.Add("reason", problem.NotUTF8)
	case utf8.RuneCountInString(r.Reason) > MaxReason:
		p.Add("reason", problem.TooLong, utf8.RuneCountInString(r.Reason), MaxReason)
	case strings.ContainsFunc(r.Reason, unicode.IsControl):
		p.Add("reason", problem.ControlCharacter.Advise("write one line"), shorten(r.Reason))
	}

	switch {
	case r.Until == 0:
	case r.Until <= now:
		p.Add("until", problem.Passed.Advise("give a time in the future, or a duration such as \"2h\""), r.Until)
	case r.Until.Time().Year() > maxPauseYear:
		p.Add("until", problem.AfterTheYear.Advise("leave it out to pause without an end"), r.Until,
			maxPauseYear)
	}

	if p == nil {
		return nil
	}

	return p
}

// ValidateApp returns the problems of an app's name, as Problems, or nil.
func ValidateApp(app string) error {
	var p Problems
	checkName(&p, "app", app)
	if p == nil {
		return nil
	}
	return p
}
