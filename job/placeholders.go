package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Placeholders are the values that the texts of a request name by {{name}}: due (RFC 3339, UTC, up to microseconds),
// attempt (1 for the first), launch (the id of the run), job and app. Nothing else can be named, and {{{{ stands for
// {{ itself.
type Placeholders struct {
	Due      Micros
	Attempt  int
	Launch   Launch
	Job, App string
}

const (
	opening = "{{"
	closing = "}}"
)

// fill returns the text with its placeholders filled in, each value escaped.
func (p *Placeholders) fill(text string, escape func(string) string) (string, error) {
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
			return "", errors.New("has a {{ without }}; write {{{{ for a {{ that is no placeholder")
		}
		value, err := p.value(strings.TrimSpace(name))
		if err != nil {
			return "", err
		}
		b.WriteString(escape(value))
		text = after
	}
}

func (p *Placeholders) value(name string) (string, error) {
	switch name {
	case "due":
		return p.Due.String(), nil
	case "attempt":
		return strconv.Itoa(p.Attempt), nil
	case "launch":
		return p.Launch.String(), nil
	case "job":
		return p.Job, nil
	case "app":
		return p.App, nil
	}
	if len(name) > MaxName {
		name = strings.ToValidUTF8(name[:MaxName], "") + "…"
	}
	return "", fmt.Errorf("has the placeholder {{%s}}; known are {{due}}, {{attempt}}, {{launch}}, {{job}} and {{app}}", name)
}
