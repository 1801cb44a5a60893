package crontab

import (
	"maps"
	"path"
	"regexp"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// someday is the time with which defaults are filled in. The defaults of crontab jobs do not
// depend on the time.
var someday = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// entry reads a line with a schedule and a command.
func (p *parser) entry(e *Entry, line string) error {
	if rest, quiet := strings.CutPrefix(line, "-"); quiet { // cronie: no log entry
		line = strings.TrimLeft(rest, " \t")
	}

	times, rest, err := p.times(e, line)
	if err != nil {
		return err
	}

	s := &e.Job
	s.App, s.Schedule, s.Timezone, s.Owner, s.Jitter = p.o.App, times.String(), p.zone, p.owner, p.delay
	s.Selector, s.Labels, s.Timeout = p.o.Selector, maps.Clone(p.o.Labels), p.o.Timeout
	if p.o.Name != "" {
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[fileLabel] = p.o.Name
	}

	s.Description = description(p.comments)
	if p.o.System {
		if s.User, rest = word(rest); rest == "" {
			return problem.Errorf(problem.CrontabPersonal)
		}
	} else if first, more := word(rest); first == "root" && more != "" {
		e.say(problem.CrontabSystem)
	}
	if p.o.User != nil {
		s.User = *p.o.User
	}

	if err := p.command(e, rest); err != nil {
		return err
	}

	p.noteGaps(e, times)
	return nil
}

func (e *Entry) say(s problem.Sentence, values ...any) {
	e.Notes = append(e.Notes, s.Of(values...))
}

// word splits off the first word.
func word(s string) (first, rest string) {
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

// command reads the rest of a line after its times: the command, its input, and how it runs.
func (p *parser) command(e *Entry, text string) error {
	s := &e.Job
	command, stdin, hasStdin := splitPercent(text)
	s.Command = strings.TrimRight(command, " \t")

	switch {
	case s.Command == "":
		return problem.Errorf(problem.CrontabNoCommand)
	case s.Command[0] == '*':
		return problem.Errorf(problem.CrontabSeconds)
	}

	if hasStdin {
		s.Stdin = stdin
	}
	if strings.HasSuffix(s.Command, `\`) {
		e.say(problem.CrontabBackslash)
	}
	if strings.HasSuffix(s.Command, "&") && !strings.HasSuffix(s.Command, "&&") {
		e.say(problem.CrontabBackground)
	}

	s.Env = maps.Clone(p.env)
	if home, set := s.Env[varHome]; set {
		if !path.IsAbs(home) {
			return problem.Errorf(problem.CrontabHome, home)
		}
		s.Dir = home
	}

	if strings.Contains(s.Command, systemdFolder) {
		e.say(problem.CrontabSystemd)
	}
	if randomSleep.MatchString(s.Command) {
		e.say(problem.CrontabSleep)
	}

	p.shell(e)
	if len(s.Env) == 0 {
		s.Env = nil
	}

	return nil
}

// systemdFolder exists on machines that systemd runs. There, Debian's packages use timers, and the
// crontab lines of these packages do nothing.
const systemdFolder = "/run/systemd/system"

// randomSleep matches commands that sleep for a random time, in the shell, Perl or Python.
var randomSleep = regexp.MustCompile(`sleep[ (][^;&|]*(\bRANDOM\b|\brand\b|\brandom\b|\bshuf\b)`)

// shell makes bash run the command through another shell.
func (p *parser) shell(e *Entry) {
	s := &e.Job
	shell := s.Env[varShell]
	switch path.Base(shell) {
	case ".", "sh", "bash", "dash", "ash":
		delete(s.Env, varShell) // bash runs it
		return
	}
	s.Command = "exec " + quote(shell) + " -c " + quote(s.Command)
	e.say(problem.CrontabShell, shell)
}

// quote quotes s so that bash reads it as one literal word.
func quote(s string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./"
	if s != "" && strings.Trim(s, harmless) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// splitPercent separates a command from its input as cron does. The first percent sign ends the
// command. Further percent signs are line breaks. A backslash escapes a percent sign.
//
// In the command, two backslashes stay, and a percent sign after them still ends the command. In
// the input, a backslash directly before a percent sign always escapes the sign.
func splitPercent(text string) (command, stdin string, hasStdin bool) {
	var b strings.Builder
	escaped := false
	rest := -1
	for i := range len(text) {
		c := text[i]
		if escaped {
			if escaped = false; c != '%' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
			continue
		}
		if c == '\\' {
			escaped = true
			continue
		}

		if c == '%' {
			rest = i + 1
			break
		}

		b.WriteByte(c)
	}

	if escaped {
		b.WriteByte('\\')
	}
	if rest < 0 {
		return b.String(), "", false
	}

	return b.String(), input(text[rest:]), true
}

// input converts the text after the first percent sign to the command's input. The input ends with
// a line break.
func input(text string) string {
	var b strings.Builder
	escaped := false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped && c != '%':
			b.WriteByte('\\')
		case !escaped && c == '%':
			c = '\n'
		}
		if escaped = c == '\\'; !escaped {
			b.WriteByte(c)
		}
	}

	if escaped {
		b.WriteByte('\\')
	}
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}

	return b.String()
}

// maxComment is the maximum of comment lines for a description.
const maxComment = 5

// description builds a job's description from the comments directly above its line. It ignores
// disabled lines and drawings of the field table.
func description(comments []string) string {
	var out []string
	for _, c := range comments {
		c = strings.TrimSpace(strings.TrimLeft(c, "#"))
		fields := strings.Fields(c)
		switch {
		case c == "", strings.Trim(c, "-=*.|+_# \t'`,~") == "":
			continue
		case len(fields) >= 5 && strings.EqualFold(fields[0], "m") && strings.EqualFold(fields[1], "h"):
			continue
		case strings.ContainsAny(fields[0], "|.'") && strings.Contains(c, "---"), strings.HasPrefix(c, "| "),
			strings.HasPrefix(c, "* * *"):
			continue
		case isDisabled(c):
			out = nil // the comments above belong to the disabled line
			continue
		}

		out = append(out, c)
	}

	if len(out) > maxComment {
		return "" // too long to be about a single line
	}

	s := strings.Join(out, "\n")
	if len(s) > job.MaxText {
		return ""
	}

	return s
}

// isDisabled reports whether a comment is a disabled line.
func isDisabled(comment string) bool {
	if _, _, ok := assignment(comment); ok {
		return true
	}
	if strings.HasPrefix(comment, "@") {
		first, rest := word(comment)
		return rest != "" && (first == "@reboot" || parses(first))
	}
	fields := strings.Fields(comment)
	return len(fields) > 5 && parses(strings.Join(fields[:5], " "))
}

func parses(expr string) bool {
	_, err := job.ParseCron(expr, nil)
	return err == nil
}

// noteGaps notes how due times differ when the clock is put forward.
func (p *parser) noteGaps(e *Entry, times *job.Cron) {
	if times.Elapsed() {
		return
	}
	for _, g := range p.gapsOf(e.Job.Timezone) {
		if n := times.Count(g.from.Add(-time.Second), g.to.Add(-time.Second)); n > 1 {
			e.say(problem.CrontabGap, g.from.Format(time.DateOnly), n)
			return
		}
	}
}

// gap is a range of civil time that the clock skips, expressed as UTC.
type gap struct{ from, to time.Time }

// gapsOf returns the gaps of a few years.
func (p *parser) gapsOf(name string) []gap {
	if _, known := p.gaps[name]; !known {
		zone, err := job.LoadZone(name)
		if err != nil {
			return nil
		}
		p.gaps[name] = findGaps(zone)
	}
	return p.gaps[name]
}

func findGaps(zone *time.Location) (out []gap) {
	end := someday.AddDate(3, 0, 0)
	for at := someday; at.Before(end); {
		_, next := at.In(zone).ZoneBounds()
		if next.IsZero() || next.After(end) {
			return out
		}
		_, before := next.Add(-time.Second).In(zone).Zone()
		_, after := next.In(zone).Zone()
		if after > before {
			civil := func(offset int) time.Time { return next.Add(time.Duration(offset) * time.Second).UTC() }
			out = append(out, gap{civil(before), civil(after)})
		}
		at = next
	}

	return out
}
