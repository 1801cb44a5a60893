package job

import (
	"strings"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// executors lists the given fields that say what kind of job this is. A valid definition has
// exactly one.
func (s *Spec) executors() []string {
	var given []string
	if s.Command != "" {
		given = append(given, "command")
	}

	if s.HTTP != nil {
		given = append(given, "http")
	}

	if s.Handler != "" {
		given = append(given, "handler")
	}

	return given
}

// validateExecutor checks the command, the request or the handler.
func (s *Spec) validateExecutor(p *Problems) {
	if given := s.executors(); len(given) > 1 {
		p.Add(given[1], problem.GivenBeside, given[0], strings.Join(given, ", "))
		return
	}

	switch {
	case s.HTTP != nil:
		s.HTTP.validate(p, s)
	case s.Handler == "":
		s.validateCommand(p)
	}
}

func (s *Spec) validateCommand(p *Problems) {
	switch {
	case strings.TrimSpace(s.Command) == "":
		p.Add("command", problem.Empty.Advise("give a command, which runs as bash -c COMMAND"))
	case len(s.Command) > MaxCommand:
		p.Add("command", problem.TooManyBytes.Advise("put it in a script and call that"), len(s.Command), MaxCommand)
	case strings.ContainsRune(s.Command, 0):
		p.Add("command", problem.NULByte)
	case !utf8.ValidString(s.Command):
		p.Add("command", problem.NotUTF8)
	}
}
