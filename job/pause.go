package job

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Scope says of what a pause stops the due times.
type Scope string

// The scopes.
const (
	ScopeJob     Scope = "job"
	ScopeApp     Scope = "app"
	ScopeCluster Scope = "cluster"
)

// Pause is by whom, why and for how long due times are stopped.
type Pause struct {
	Scope  Scope
	App    string // of an app's pause
	By     string
	Reason string
	Since  Micros
	Until  Micros // when it ends by itself; zero: it does not
}

// Over tells whether the pause has ended by itself.
func (p *Pause) Over(now Micros) bool { return p.Until != 0 && p.Until <= now }

// String says it in one line that begins with "paused", as the reason of a due time that was not started.
func (p *Pause) String() string { return "paused" + p.Words() }

// Words says with what, by whom and why, as the end of a sentence.
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

// PauseAt returns the pause under which the job has no due times at an instant: its own, or that of its app or of the
// cluster, whichever lasts longer. It is nil when there is none.
func (j *Job) PauseAt(now Micros) *Pause {
	if j.Paused { // until somebody has resumed it, also when that is overdue
		return &Pause{Scope: ScopeJob, By: j.PausedBy, Reason: j.PauseReason, Since: j.PausedAt, Until: j.PauseUntil}
	}
	return Longest(j.Covers, j.Spec.App, now)
}

// Longest returns the pause that covers the jobs of an app at an instant for the longest time, or nil.
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

// PauseRequest is somebody's wish to pause something.
type PauseRequest struct {
	Reason string // one line
	Until  Micros // when to resume; zero: when somebody does it
}

// Bounds of a pause.
const (
	MaxReason    = 500 // characters of a reason
	maxPauseYear = 2099
)

// Validate returns all problems of a wish, as Problems, or nil.
func (r *PauseRequest) Validate(now Micros) error {
	var p Problems
	switch {
	case !utf8.ValidString(r.Reason):
		p.Add("reason", problem.NotUTF8)
	case utf8.RuneCountInString(r.Reason) > MaxReason:
		p.Add("reason", problem.TooLong, utf8.RuneCountInString(r.Reason), MaxReason)
	case strings.ContainsFunc(r.Reason, unicode.IsControl):
		p.Add("reason", problem.ControlCharacter.Advise("want one line"), shorten(r.Reason))
	}
	switch {
	case r.Until == 0:
	case r.Until <= now:
		p.Add("until", problem.Passed.Advise("want a time that lies ahead, or a duration such as \"2h\""), r.Until)
	case r.Until.Time().Year() > maxPauseYear:
		p.Add("until", problem.AfterTheYear.Advise("leave it out to pause until somebody resumes it"), r.Until, maxPauseYear)
	}
	if p == nil {
		return nil
	}
	return p
}

// ValidateApp returns what is wrong with the name of an app, as Problems, or nil.
func ValidateApp(app string) error {
	var p Problems
	checkName(&p, "app", app)
	if p == nil {
		return nil
	}
	return p
}
