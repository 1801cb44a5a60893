package crontab

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// assignment reads a line that sets a variable, as cron does: NAME = value, where both may be
// quoted. Nothing is expanded.
func assignment(line string) (name, value string, ok bool) {
	name, rest, ok := quotedWord(line, func(c byte) bool { return c == '=' || isBlank(c) })
	if !ok || name == "" || strings.Contains(name, "=") {
		return "", "", false
	}

	rest = strings.TrimLeft(rest, " \t")
	if rest, ok = strings.CutPrefix(rest, "="); !ok {
		return "", "", false
	}

	rest = strings.TrimLeft(rest, " \t")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		value, rest, ok = quotedWord(rest, nil)
		return name, value, ok && strings.TrimLeft(rest, " \t") == "" // otherwise cron sees no assignment here either
	}
	return name, strings.TrimRight(rest, " \t"), true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// quotedWord reads a word up to its end, or a quoted word up to the closing quote.
func quotedWord(s string, ends func(byte) bool) (word, rest string, ok bool) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		return strings.Cut(s[1:], s[:1])
	}
	for i := range len(s) {
		if ends(s[i]) {
			return s[:i], s[i:], true
		}
	}
	return s, "", true
}

// Variables with a meaning for cron itself.
const (
	varShell = "SHELL"
	varHome  = "HOME"
)

// set applies an assignment to the lines below it.
func (p *parser) set(n int, name, value string) {
	switch name {
	case "CRON_TZ":
		zone, err := job.LoadZone(value)
		if err != nil {
			p.out.Refused = append(p.out.Refused, Note{Line: n, Field: name, Text: problem.Of(fmt.Errorf("%s: %w", name, err))})
			return
		}
		p.zone = zone.String()

	case "MAILTO":
		if p.owner = value; value != "" {
			said := problem.CrontabOwner
			if !strings.Contains(value, "@") {
				said = problem.CrontabOwnerNoMail
			}
			p.note(n, said, value)
		}

	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			p.refuse(n, problem.CrontabDelayNumber, value)
			return
		}
		p.delay = job.Duration(time.Duration(minutes) * time.Minute)
		if minutes > 0 {
			p.note(n, problem.CrontabDelay, p.delay)
		}

	case "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "NO_MAIL_OUTPUT":
		p.note(n, problem.CrontabMail, name)
	case "LOGNAME", "USER":
		p.note(n, problem.CrontabUser, name)
	case "START_HOURS_RANGE":
		p.anacron = true
		p.refuse(n, problem.CrontabAnacronHours)
	default:
		if name == "TZ" {
			p.note(n, problem.CrontabTZ)
		}
		if err := check(&job.Spec{
			Schedule: "@daily", Command: "true",
			CommandOptions: job.CommandOptions{Env: map[string]string{name: value}},
		}); err != nil {
			p.refuseFor(n, err)
			refused := &p.out.Refused[len(p.out.Refused)-1]
			refused.Field = strings.TrimPrefix(refused.Field, "env.")
			refused.Message = strings.TrimPrefix(refused.Message, "env.")
			return
		}

		if strings.Contains(value, "$") && name != varShell {
			p.note(n, problem.CrontabLiteral, name)
		}

		p.env[name] = value
	}
}
