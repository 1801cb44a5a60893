package crontab

import (
	"strconv"
	"strings"
	"time"

	"go-crontab/job"
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
		return name, value, ok && strings.TrimLeft(rest, " \t") == "" // otherwise not an assignment for cron either
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
			p.refuse(n, "CRON_TZ: %v", err)
			return
		}
		p.zone = zone.String()

	case "MAILTO":
		if p.owner = value; value != "" {
			p.note(n, "MAILTO: %s becomes the owner of the jobs below, who gets mails about failures by an alert channel with to_owner (docs/alerts.md); every run keeps its output", value)
		}

	case "RANDOM_DELAY":
		minutes, err := strconv.Atoi(value)
		if err != nil || minutes < 0 || minutes > 24*60 {
			p.refuse(n, "RANDOM_DELAY: %q is no number of minutes up to a day", value)
			return
		}
		p.delay = job.Duration(time.Duration(minutes) * time.Minute)
		if minutes > 0 {
			p.note(n, "RANDOM_DELAY: the jobs below get a jitter of %s: each is later by a part of it that is its own",
				p.delay)
		}

	case "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "NO_MAIL_OUTPUT":
		p.note(n, "%s: is for mails, and none is sent", name)
	case "LOGNAME", "USER":
		p.note(n, "%s: is set by the node, from as whom the job runs", name)
	case "START_HOURS_RANGE":
		p.anacron = true
		p.refuse(n, "START_HOURS_RANGE is anacron's: this is no crontab; docs/from-crontab.md says what its lines are here")
	default:
		if name == "TZ" {
			p.note(n, "TZ: is for the commands; when they are due is not changed by it, with cron neither (CRON_TZ does that)")
		}
		if err := check(&job.Spec{
			Schedule: "@daily", Command: "true",
			CommandOptions: job.CommandOptions{Env: map[string]string{name: value}},
		}); err != nil {
			p.refuse(n, "%s", strings.TrimPrefix(err.Error(), "env."))
			return
		}

		if strings.Contains(value, "$") && name != varShell {
			p.note(n, "%s: is taken as it stands, as cron does: $ means nothing in it", name)
		}

		p.env[name] = value
	}
}
