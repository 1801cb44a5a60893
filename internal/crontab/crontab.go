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

// Options say how to read a crontab.
type Options struct {
	Name   string  // of the file, a label of its jobs; "": none
	System bool    // a user stands behind the times of each line
	App    string  // of the jobs; "": the default one
	User   *string // as whom they run, "" as the node does; nil: as the file says
	Zone   string  // whose times these are, until a line sets CRON_TZ; an IANA name, "" is UTC
	Skip   []int   // lines that are left out
	Most   int     // so many jobs, notes and refusals are taken, of each; 0: all
}

// Note is something to tell of a line; line 0 is the whole file.
type Note struct {
	Line  int
	Field string // of the job, or the variable, that it is about; the message begins with it; "": none
	problem.Text
}

// Entry is a line that is a job.
type Entry struct {
	Line  int
	Text  string // as it stands in the file
	Job   job.Spec
	Notes []problem.Text // what is otherwise here than with cron
}

// File is a crontab, read.
type File struct {
	Entries []Entry
	Notes   []Note // of the file, and of lines that set a variable
	Refused []Note // what cannot be taken, and what to do about it
	Skipped []int  // lines that were left out
	Cut     bool   // there is more than Options.Most: it was not read to its end
}

// Names gives jobs their names. It is used for all files that are imported together: no two jobs get the same.
type Names struct {
	taken  map[string]bool
	number map[string]int // the last one that was given behind a name
}

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
	p.tellOfAll()
	return p.out
}

// parser reads one file, line by line.
type parser struct {
	o     Options
	names *Names
	out   *File

	env      map[string]string // set so far
	zone     string
	owner    string
	delay    job.Duration
	comments []string // right above the line
	returns  bool     // some lines end in a carriage return
	anacron  bool     // some lines are anacron's: then @monthly, a number and a name are too
	gaps     map[string][]gap
}

func (p *parser) note(line int, s problem.Sentence, values ...any) {
	p.out.Notes = append(p.out.Notes, Note{Line: line, Text: s.Of(values...)})
}

func (p *parser) refuse(line int, s problem.Sentence, values ...any) {
	p.out.Refused = append(p.out.Refused, Note{Line: line, Text: s.Of(values...)})
}

// refuseFor refuses a line for an error. Of several problems with fields of its job the first gives the code.
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
	e.Job.Name = p.names.next(&e.Job)
	p.out.Entries = append(p.out.Entries, e)
}

// check makes sure that the server takes a job, as far as that can be known here.
func check(s *job.Spec) error {
	full := *s
	full.Name = "name"
	full.Defaults(someday)
	return full.Validate()
}

// tellOfAll says what is otherwise here for all lines.
func (p *parser) tellOfAll() {
	if p.returns {
		p.note(0, problem.CrontabReturns)
	}
	if len(p.out.Entries) > 0 {
		p.note(0, problem.CrontabOverlap)
	}
	slices.SortStableFunc(p.out.Notes, func(a, b Note) int { return a.Line - b.Line })
}
