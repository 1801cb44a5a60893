package job

import (
	"fmt"
	"strconv"
	"strings"

	"go-crontab/job/problem"
)

// Placeholders are the values for {{name}} in the texts of a request. The names are due (RFC 3339,
// UTC, up to microseconds), last_success (the same form, or empty), attempt (1 for the first),
// launch (see Launch.String), job, app, scheduled, upstream_run, upstream_outcome, and secret.NAME,
// which the URL may not contain. upstream_run and upstream_outcome are empty for a run that follows
// none. Any other name is an error. {{{{ is the escape for {{.
type Placeholders struct {
	Due      Micros
	Last     Micros // due time of the last success; zero: none
	Attempt  int
	Given    *Given
	Launch   Launch
	Job, App string
	Secret   func(Secret) (string, error) // returns the value of a secret

	// Param returns the value of a parameter, or the secret that is its value. If it is nil, only
	// secrets matter.
	Param func(name string) (value string, secret Secret, ok bool)
}

const (
	opening = "{{"
	closing = "}}"
)

// fill fills in the placeholders of a text. escape escapes each value. secret formats secrets. A
// nil secret forbids secrets.
func (p *Placeholders) fill(text string, escape func(string) string,
	secret func(string) (string, error)) (string, error) {
	if !strings.Contains(text, opening) {
		return text, nil
	}

	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, opening)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if after, literal := strings.CutPrefix(rest, opening); literal {
			b.WriteString(opening)
			text = after
			continue
		}
		name, after, closed := strings.Cut(rest, closing)
		if !closed {
			return "", problem.Errorf(problem.PlaceholderOpen)
		}
		value, err := p.put(strings.TrimSpace(name), escape, secret)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		if err := bounded(&b); err != nil {
			return "", err
		}
		text = after
	}
}

// put returns the value for a placeholder.
func (p *Placeholders) put(name string, escape func(string) string,
	secret func(string) (string, error)) (string, error) {
	named, is := strings.CutPrefix(name, secretPrefix)
	if param, of := strings.CutPrefix(name, paramPrefix); of {
		if p.Param == nil {
			return "", nil
		}
		value, from, ok := p.Param(param)
		switch {
		case !ok:
			return "", problem.Errorf(problem.PlaceholderParam, shorten(param))
		case from == "":
			return escape(value), nil
		}
		named, is = string(from), true
	}
	switch {
	case !is:
		value, err := p.value(name)
		return escape(value), err
	case secret == nil:
		return "", problem.Errorf(problem.SecretInURL)
	case p.Secret == nil:
		return "", problem.Errorf(problem.SecretNotHere)
	}

	value, err := secretNamed(named, p.Secret)
	if err != nil {
		return "", err
	}
	if value, err = secret(value); err != nil {
		return "", fmt.Errorf("the secret %s %w", strings.TrimSpace(named), err) // err does not contain the value
	}

	return value, nil
}

func (p *Placeholders) value(name string) (string, error) {
	switch name {
	case "due":
		return p.Due.String(), nil
	case "last_success":
		if p.Last == 0 {
			return "", nil
		}
		return p.Last.String(), nil
	case "attempt":
		return strconv.Itoa(p.Attempt), nil
	case "launch":
		return p.Launch.String(), nil
	case "job":
		return p.Job, nil
	case "app":
		return p.App, nil
	}

	upstream := &Upstream{}
	if p.Given != nil && p.Given.Upstream != nil {
		upstream = p.Given.Upstream
	}
	switch {
	case name == "scheduled":
		return p.Given.ScheduledAt(p.Due).String(), nil
	case name == "upstream_run" && upstream.Run != 0:
		return RunID(upstream.Run), nil
	case name == "upstream_outcome" && upstream.Run != 0:
		return upstream.Outcome.String(), nil
	case name == "upstream_run", name == "upstream_outcome":
		return "", nil
	}

	if len(name) > MaxName {
		name = strings.ToValidUTF8(name[:MaxName], "") + "…"
	}

	return "", problem.Errorf(problem.PlaceholderUnknown, name)
}
