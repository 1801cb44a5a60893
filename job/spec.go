package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go-crontab/job/problem"
)

// Bounds of a definition.
const (
	MaxName    = 128      // runes in an app or job name
	MaxCommand = 64 << 10 // bytes
	MaxText    = 1 << 10  // bytes in a description or owner
	MaxLabels  = 32       // labels of a job
	MaxTimeout = 366 * 24 * time.Hour
	MaxJitter  = 24 * time.Hour

	MaxSchedules = 20 // per job
)

// DefaultApp is the app of jobs that name none.
const DefaultApp = "default"

// Spec is the definition of a job as people write it: what to run, when, and under which policies.
type Spec struct {
	App         string            `json:"app"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Owner       string            `json:"owner"`
	Labels      map[string]string `json:"labels"`

	Schedule  string     `json:"schedule,omitempty"`  // cron, see ParseCron
	Schedules []string   `json:"schedules,omitempty"` // or several cron expressions: due whenever one is
	Every     Duration   `json:"every,omitempty"`     // or a fixed interval
	At        *time.Time `json:"at,omitempty"`        // or a single instant
	Delay     Duration   `json:"delay,omitempty"`     // or a pause between the end of a run and the next due time
	After     *After     `json:"after,omitempty"`     // or the ends of other jobs' runs
	Manual    bool       `json:"manual,omitempty"`    // or never by itself: only if somebody requests a run
	Timezone  string     `json:"timezone,omitempty"`  // IANA name, "" is UTC
	Start     *time.Time `json:"start,omitempty"`     // no due time before it; see Defaults
	End       *time.Time `json:"end,omitempty"`       // no due time after it
	MaxFires  int64      `json:"max_fires,omitempty"` // number of due times from Start on
	Jitter    Duration   `json:"jitter,omitempty"`    // due times are shifted by a fixed part of this, see shift
	Calendars []string   `json:"calendars,omitempty"` // names; all must be open at the due time before jitter shifts it
	OnClosed  OnClosed   `json:"on_closed,omitempty"` // what happens to due times on closed days; "": skip
	Weeks     *Weeks     `json:"weeks,omitempty"`     // keeps some weeks of the cron expressions; nil: all

	Command  string   `json:"command,omitempty"`  // bash runs it
	HTTP     *HTTP    `json:"http,omitempty"`     // or a request to send
	Handler  string   `json:"handler,omitempty"`  // or the key of a Go function in a program that embeds a node
	Payload  string   `json:"payload,omitempty"`  // passed to the handler unchanged
	Timeout  Duration `json:"timeout,omitempty"`  // zero: none
	Selector string   `json:"selector,omitempty"` // which nodes may run it, see ParseSelector; "": any

	CommandOptions // for commands

	Params map[string]Param `json:"params,omitempty"` // values that requests for runs may give

	Overlap       Overlap  `json:"overlap"`
	Queue         int      `json:"queue,omitempty"`          // with overlap "queue": how many due times may wait
	Group         string   `json:"group,omitempty"`          // the jobs of a group share its slots
	Priority      int      `json:"priority,omitempty"`       // when nodes are full, higher goes first
	StartDeadline Duration `json:"start_deadline,omitempty"` // the latest start after the due time; zero: no bound

	Misfire Misfire  `json:"misfire"`
	Retry   Retry    `json:"retry,omitzero"`
	Keep    Keep     `json:"keep,omitzero"` // which records of runs to keep
	Output  Capture  `json:"output,omitzero"`
	KeepJob Duration `json:"keep_job,omitempty"` // a finished job is deleted this long after its end; zero: never
	OnLost  string   `json:"on_lost"`

	Ping *Ping `json:"ping,omitempty"` // called when a due time has ended
}

// Problem says what is wrong with one field of a definition, and how to correct it.
type Problem struct {
	Field string `json:"field" doc:"The field of the body by its path, such as 'retry.attempts' or 'schedules[1]'; or the query parameter or header."`
	problem.Text
}

// Problems is the error of Validate. It lists every problem, not only the first.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, q := range p {
		lines[i] = q.Field + ": " + q.Message
	}
	return strings.Join(lines, "; ")
}

// Add adds a problem of a field.
func (p *Problems) Add(field string, s problem.Sentence, values ...any) {
	p.Put(field, s.Of(values...))
}

// Put adds a problem of a field with a text that the caller has made.
func (p *Problems) Put(field string, t problem.Text) { *p = append(*p, Problem{field, t}) }

// Wrong returns a single problem of a field.
func Wrong(field string, s problem.Sentence, values ...any) Problems {
	return Problems{{field, s.Of(values...)}}
}

// FullName returns the name of the job with its app.
func (s *Spec) FullName() string { return s.App + "/" + s.Name }

// JobName returns the name of the job with its app.
func (s *Spec) JobName() Name { return Name{s.App, s.Name} }

// Defaults fills in empty fields, so that a stored definition is complete. Start becomes the first
// due time of Every, or the instant from which MaxFires counts. now is MySQL's clock.
func (s *Spec) Defaults(now time.Time) {
	if s.App == "" {
		s.App = DefaultApp
	}

	if s.Timezone == "" && (s.Schedule != "" || len(s.Schedules) > 0) {
		s.Timezone = "UTC"
	}

	if s.OnClosed == ClosedSkip && len(s.Calendars) > 0 {
		s.OnClosed = "" // one form for one meaning
	}

	s.Timezone = canonicalZone(s.Timezone)
	s.httpDefaults()
	s.afterDefaults()
	s.paramsDefaults()
	s.overlapDefaults()
	s.misfireDefaults()
	s.placementDefaults()
	if s.OnLost == "" {
		s.OnLost = LostFail
	}

	s.Retry.defaults()
	if s.Every > 0 && s.Start == nil {
		t := now.Add(time.Duration(s.Every)).UTC().Truncate(time.Microsecond)
		s.Start = &t
	}

	if s.MaxFires > 0 && s.Start == nil {
		t := now.UTC().Truncate(time.Microsecond) // the count begins here
		s.Start = &t
	}
}

// Validate returns all problems of a definition, as Problems, or nil. The definition must have its
// defaults filled in.
func (s *Spec) Validate() error {
	var p Problems
	checkName(&p, "app", s.App)
	checkName(&p, "name", s.Name)
	checkText(&p, "description", s.Description, MaxText)
	checkText(&p, "owner", s.Owner, MaxText)
	if len(s.Labels) > MaxLabels {
		p.Add("labels", problem.TooMany, len(s.Labels), MaxLabels)
	}

	for k, v := range s.Labels {
		checkName(&p, "labels", k)
		checkText(&p, "labels."+k, v, MaxName)
	}

	s.validateExecutor(&p)
	if s.Timeout < 0 || time.Duration(s.Timeout) > MaxTimeout {
		p.Add("timeout", problem.NotBetween, s.Timeout, problem.Shown(0, "0 (none)"), Duration(MaxTimeout))
	}

	s.validateOptions(&p)
	s.validateParams(&p)
	s.validateSecrets(&p)
	s.validateAfter(&p)
	s.validateOverlap(&p)
	s.Misfire.validate(&p)
	s.validatePlacement(&p)
	s.validateHandler(&p)
	if s.OnLost != LostFail && s.OnLost != LostRerun {
		p.Add("on_lost", problem.NotOneOf, s.OnLost, "fail, rerun")
	}

	s.Retry.validate(&p)
	s.Keep.validate(&p, "keep.")
	s.validateKeepJob(&p)
	s.validateOutput(&p)
	s.validatePing(&p)
	s.validateCalendars(&p)
	if _, err := s.uncalendared().Compile(); err != nil {
		var more Problems
		if errors.As(err, &more) {
			p = append(p, more...)
		} else {
			p.Put("schedule", problem.Of(err))
		}
	}

	if p == nil {
		return nil
	}

	return p
}

// Compile makes the schedule of the definition. The caller passes the calendars that the definition
// names. Errors are Problems.
func (s *Spec) Compile(calendars ...*Calendar) (Schedule, error) {
	var p Problems
	given := 0
	for _, set := range []bool{
		s.Schedule != "", len(s.Schedules) > 0, s.Every != 0, s.At != nil, s.Delay != 0, s.After != nil,
	} {
		if set {
			given++
		}
	}

	if s.Manual {
		s.checkManual(&p)
	} else if given != 1 {
		p.Add("schedule", problem.NotOneSchedule.Advise(`give one, such as "schedule": "0 3 * * *"`), given)
	}
	if p != nil {
		return nil, p
	}

	zone, err := LoadZone(s.Timezone)
	if err != nil {
		p.Put("timezone", problem.Of(err))
	}

	s.checkBounds(&p)
	s.checkOnClosed(&p)
	s.checkWeeks(&p)
	if s.unscheduled() {
		s.checkUnscheduled(&p)
	}
	if p != nil {
		return nil, p
	}

	base := s.base(&p, zone)
	if p != nil {
		return nil, p
	}

	if len(s.Calendars) > 0 || s.Weeks != nil {
		if base = s.filter(&p, base, zone, calendars); p != nil {
			return nil, p
		}
	}

	// An interval's due time may move to a time before the start.
	if s.End != nil || s.MaxFires > 0 || s.Start != nil && (s.Every == 0 || s.OnClosed == ClosedPrevious) {
		b := Bounded{Schedule: base, First: time.Unix(0, 0), Fires: s.MaxFires, counted: newTally()}
		if s.Start != nil {
			b.First = *s.Start
		}
		if s.End != nil {
			b.End = *s.End
		}
		base = b
	}

	if s.Jitter > 0 {
		base = Shifted{base, s.shift()}
	}

	return base, nil
}

func (s *Spec) checkBounds(p *Problems) {
	if s.At != nil {
		for field, set := range map[string]bool{
			"start": s.Start != nil, "end": s.End != nil, "max_fires": s.MaxFires != 0,
		} {
			if set {
				p.Add(field, problem.NotWith, problem.Shown("at", "at, which is one due time"))
			}
		}
	}

	if s.Start != nil && s.End != nil && s.End.Before(*s.Start) {
		p.Add("end", problem.Before, s.End.Format(time.RFC3339), "start", s.Start.Format(time.RFC3339))
	}

	for field, t := range map[string]*time.Time{"at": s.At, "start": s.Start, "end": s.End} {
		if t == nil {
			continue
		}
		if y := t.UTC().Year(); y < 1971 || y > 2099 { // 1970 begins at zero, which means no instant
			p.Add(field, problem.YearNotBetween, y, 1971, 2099)
		}
	}

	if s.MaxFires < 0 {
		p.Add("max_fires", problem.Negative.Advise("leave it out for no limit"), s.MaxFires)
	}

	if s.Jitter < 0 || time.Duration(s.Jitter) > MaxJitter {
		p.Add("jitter", problem.NotBetween, s.Jitter, problem.Shown(0, "0 (none)"), Duration(MaxJitter))
	}

	if len(s.Schedules) > MaxSchedules {
		p.Add("schedules", problem.TooMany, len(s.Schedules), MaxSchedules)
	}
}

// base returns the schedule without bounds and jitter.
func (s *Spec) base(p *Problems, zone *time.Location) Schedule {
	switch {
	case s.Schedule != "":
		c, err := ParseCron(s.Schedule, zone)
		if err != nil {
			p.Put("schedule", problem.Of(err))
		}

		return c
	case len(s.Schedules) > 0:
		var u Union
		for i, expr := range s.Schedules {
			c, err := ParseCron(expr, zone)
			if err != nil {
				p.Put(fmt.Sprintf("schedules[%d]", i), problem.Of(err))
				continue
			}
			u = append(u, c)
		}

		return u
	case s.Every != 0:
		first := time.Time{}
		if s.Start != nil {
			first = *s.Start
		}

		e, err := NewEvery(time.Duration(s.Every), first)
		if err != nil {
			p.Put("every", problem.Of(err))
		}

		return e
	case s.At != nil:
		return NewAt(*s.At)
	case s.Start != nil: // the first due time of a delay
		return NewAt(*s.Start)
	}
	return At{} // never due by itself
}

// shift is the fixed part of the jitter by which the job is shifted, in whole milliseconds. It is a
// hash of the app and the name, so it is the same on all nodes and never changes.
func (s *Spec) shift() time.Duration {
	h := fnv.New64a()
	h.Write([]byte(s.App + "\x00" + s.Name + "\x00jitter"))
	return time.Duration(h.Sum64()%uint64(max(1, time.Duration(s.Jitter)/time.Millisecond))) * time.Millisecond
}

// checkName allows names of 1 to 128 runes that people can read and type.
func checkName(p *Problems, field, s string) {
	switch {
	case s == "":
		p.Add(field, problem.Empty.Advise("give 1 to %d characters", MaxName))
	case !utf8.ValidString(s):
		p.Add(field, problem.NotUTF8)
	case utf8.RuneCountInString(s) > MaxName:
		p.Add(field, problem.TooLong, utf8.RuneCountInString(s), MaxName)
	case strings.ContainsFunc(s, unicode.IsControl):
		p.Add(field, problem.ControlCharacter, s)
	case strings.TrimSpace(s) != s:
		p.Add(field, problem.OuterSpace, s)
	}
}

func checkText(p *Problems, field, s string, limit int) {
	switch {
	case len(s) > limit:
		p.Add(field, problem.TooManyBytes, len(s), limit)
	case !utf8.ValidString(s):
		p.Add(field, problem.NotUTF8)
	}
}

// Encode returns the definition as it is stored, in JSON.
func (s *Spec) Encode() (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// DecodeSpec reads the output of Encode. An unknown field is an error: a newer version has written
// it. Running half of a definition is worse than not running the job.
func DecodeSpec(text string) (Spec, error) {
	var s Spec
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Spec{}, problem.Errorf(problem.StoredUnreadable, err)
	}
	return s, nil
}
