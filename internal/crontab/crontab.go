package crontab

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// MaxSize bounds a crontab, in bytes.
const MaxSize = 1 << 20

// Options control how a crontab is read.
type Options struct {
	Name   string  // name of the file, which becomes a label of its jobs; empty: no label
	System bool    // a system crontab: each line has a user after its times
	App    string  // of the jobs; empty: the default app
	User   *string // user of the commands, empty for the node's user; nil: from the file
	Zone   string  // IANA time zone of the schedules until a line sets CRON_TZ; empty: UTC
	Skip   []int   // lines to skip

	File     string            // name of a file in /etc/cron.d; the names of the jobs begin with it; empty: none
	Selector string            // of the jobs; empty: any node
	Labels   map[string]string // of the jobs, besides the name of the file
	Timeout  job.Duration      // of the jobs; zero: none

	Most int // most jobs, notes and refusals, each; 0: unlimited
}

// Note is a message about a line. Line 0 is the whole file.
type Note struct {
	Line  int
	Field string // field of the job, or variable, that the message begins with; "": none
	problem.Text
}

// Entry is a line that becomes a job.
type Entry struct {
	Line  int
	Text  string // original text
	Job   job.Spec
	Notes []problem.Text // differences from cron
}

// File is the content of a crontab.
type File struct {
	Entries []Entry
	Notes   []Note // about the file, and about lines that set a variable
	Refused []Note // lines that cannot become jobs, and how to fix them
	Skipped []int  // lines skipped by Options.Skip
	Cut     bool   // reading stopped at Options.Most
}

// Names gives jobs unique names. Share it among all files of an import.
type Names struct {
	taken  map[string]bool
	number map[string]int // last number appended to a name
}

// Check returns what is wrong with the options that all jobs get, as job.Problems.
func (o *Options) Check() error {
	s := job.Spec{Schedule: "@daily", Command: "true", Selector: o.Selector, Labels: o.Labels, Timeout: o.Timeout}
	if _, taken := o.Labels[fileLabel]; taken {
		return job.Wrong("labels."+fileLabel, problem.CrontabLabel)
	}
	return check(&s)
}

// fileLabel is the label with the name of the crontab.
const fileLabel = "crontab"

// Read reads a crontab.
func Read(text []byte, o Options, names *Names) *File {
	p := &parser{o: o, names: names, out: &File{}, env: map[string]string{}, zone: o.Zone, gaps: map[string][]gap{}}
	switch {
	case len(text) > MaxSize:
		p.refuse(0, problem.CrontabTooLarge, MaxSize>>10)
		return p.out
	case !utf8.Valid(text):
		p.refuse(0, problem.CrontabNotUTF8)
		return p.out
	case bytes.IndexByte(text, 0) >= 0:
		p.refuse(0, problem.CrontabNULByte)
		return p.out
	}

	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		p.note(0, problem.CrontabLastLine)
	}

	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if p.line(i+1, line); o.Most > 0 && max(len(p.out.Entries), len(p.out.Notes), len(p.out.Refused)) > o.Most {
			p.out.Cut = true
			break
		}
	}

	p.noteWholeFile()
	return p.out
}

// parser reads a crontab line by line.
type parser struct {
	o     Options
	names *Names
	out   *File

	env      map[string]string // variables that the lines above have set
	zone     string
	owner    string
	delay    job.Duration
	comments []string // directly above the line
	returns  bool     // some lines end in a carriage return
	anacron  bool     // some lines are anacron's; then a line "@monthly number name" is one, too
	gaps     map[string][]gap
}

func (p *parser) note(line int, s problem.Sentence, values ...any) {
	p.out.Notes = append(p.out.Notes, Note{Line: line, Text: s.Of(values...)})
}

func (p *parser) refuse(line int, s problem.Sentence, values ...any) {
	p.out.Refused = append(p.out.Refused, Note{Line: line, Text: s.Of(values...)})
}

// refuseFor refuses a line because of an error. If the fields of its job have several problems,
// the note has the code of the first problem.
func (p *parser) refuseFor(line int, err error) {
	n := Note{Line: line, Text: problem.Of(err)}
	var wrong job.Problems
	if errors.As(err, &wrong) {
		n.Field, n.Code, n.Values = wrong[0].Field, wrong[0].Code, wrong[0].Values
	}
	p.out.Refused = append(p.out.Refused, n)
}

func (p *parser) line(n int, text string) {
	if strings.HasSuffix(text, "\r") {
		text, p.returns = strings.TrimSuffix(text, "\r"), true
	}

	text = strings.TrimLeft(text, " \t")
	switch {
	case text == "":
		p.comments = nil
		return
	case text[0] == '#':
		p.comments = append(p.comments, text)
		return
	case slices.Contains(p.o.Skip, n):
		p.out.Skipped, p.comments = append(p.out.Skipped, n), nil
		return
	}

	if name, value, ok := assignment(text); ok {
		p.comments = nil
		p.set(n, name, value)
		return
	}

	e := Entry{Line: n, Text: text}
	err := p.entry(&e, text)
	if err == nil {
		err = check(&e.Job)
	}

	p.comments = nil
	if err != nil {
		p.refuseFor(n, err)
		return
	}

	e.Job.Name = p.names.next(p.o.File, &e.Job)
	p.out.Entries = append(p.out.Entries, e)
}

// check validates a job as the server would, as far as possible here.
func check(s *job.Spec) error {
	full := *s
	full.Name = "name"
	full.Defaults(someday)
	return full.Validate()
}

// noteWholeFile adds the notes about the whole file.
func (p *parser) noteWholeFile() {
	if p.returns {
		p.note(0, problem.CrontabReturns)
	}
	if len(p.out.Entries) > 0 {
		p.note(0, problem.CrontabOverlap)
		if p.o.Timeout == 0 {
			p.note(0, problem.CrontabNoTimeout)
		}
		if p.o.Selector == "" {
			p.note(0, problem.CrontabMachine)
		}
	}
	slices.SortStableFunc(p.out.Notes, func(a, b Note) int { return a.Line - b.Line })
}
