package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go-crontab/job/problem"
)

// Bounds of one Apply: what it changes, it changes in one transaction.
const (
	MaxApplyJobs      = 1000 // of those it names, and of those it deletes
	MaxApplyGroups    = 200
	MaxApplyCalendars = 100
)

// Apply is what somebody wants a cluster to have: groups, calendars, channels and rules of alerts, rules of retention, pauses
// of apps and of the cluster, and jobs, as files hold them.
type Apply struct {
	Groups    []GroupSpec
	Calendars []CalendarSpec
	Channels  []AlertChannel
	Rules     []AlertRule
	Retention []RetentionSpec
	Pauses    []PauseSpec
	Jobs      []Wanted
	Prune     *Prune  // jobs to delete that are not among Jobs
	DryRun    bool    // only tell what would be changed
	Folder    *Folder // whose files these are; nil: nobody's
}

// GroupSpec is a group as a file has it.
type GroupSpec struct {
	Name  string `json:"name" doc:"Its name. It is not renamed."`
	Slots int    `json:"slots" doc:"How many runs of its jobs may execute at once in the whole cluster."`
}

// Wanted is a job as a file has it.
type Wanted struct {
	Spec
	Paused  *bool  // nil: as it is, and a new one is not
	Version *int64 // it must be at this one, 0: must not be there; nil: any
}

// Prune says which jobs belong to a set of files, so that those not in it are to be deleted. Zero fields do not
// restrict; one of App and Labels must be given.
type Prune struct {
	App    string
	Labels map[string]string // all of them
	Apps   []string          // only in these, whatever App says; nil: in all
}

// KindGroup is the kind of groups in the audit.
const KindGroup Kind = "group"

// Applying says what became of one object.
type Applying string

// What can become of an object.
const (
	Created   Applying = "created"
	Updated   Applying = "updated"
	Unchanged Applying = "unchanged"
	Deleted   Applying = "deleted"
)

// Applied is what an Apply has changed, or would change.
type Applied struct {
	Groups    []AppliedObject
	Calendars []AppliedObject
	Channels  []AppliedObject
	Rules     []AppliedObject
	Retention []AppliedObject // by apps; the name is the app, "" the cluster
	Pauses    []AppliedObject // likewise
	Jobs      []AppliedJob    // those of the Apply in its order, then those that were deleted by their names
}

// Objects are all but the jobs.
func (a *Applied) Objects() []AppliedObject {
	return slices.Concat(a.Groups, a.Calendars, a.Channels, a.Rules, a.Retention, a.Pauses)
}

// AppliedObject is what is no job.
type AppliedObject struct {
	Name    string
	Action  Applying
	Changes []Change
}

// AppliedJob is a job. Of one that would be created the id and the version are zero.
type AppliedJob struct {
	Action   Applying
	Job      Job // as it is, or would be
	Changes  []Change
	Warnings []problem.Text // see Spec.Warnings
}

// Change is a field that is another now. Values are JSON; one that is absent was not set, or is not any more.
type Change struct {
	Field   string          `json:"field" doc:"Which field, such as 'retry.attempts'."`
	Was     json.RawMessage `json:"was,omitempty" doc:"What it was; absent if it was not set."`
	Becomes json.RawMessage `json:"becomes,omitempty" doc:"What it is now; absent if it is not set any more."`
}

// Check fills the defaults in and returns all that is wrong, as Problems whose fields are those of a manifest, such as
// jobs[3].schedule, or nil.
func (a *Apply) Check(now time.Time) error {
	var p Problems
	tooMany := func(field string, n, most int) {
		if n > most {
			p.Add(field, problem.TooMany.Advise("apply them in parts"), n, most)
		}
	}
	tooMany("groups", len(a.Groups), MaxApplyGroups)
	tooMany("calendars", len(a.Calendars), MaxApplyCalendars)
	tooMany("channels", len(a.Channels), MaxAlertChannels)
	tooMany("rules", len(a.Rules), MaxAlertRules)
	tooMany("retention", len(a.Retention), MaxApplyScopes)
	tooMany("pauses", len(a.Pauses), MaxApplyScopes)
	tooMany("jobs", len(a.Jobs), MaxApplyJobs)
	if p != nil {
		return p
	}
	a.checkGroups(&p)
	a.checkCalendars(&p)
	a.checkAlerts(&p)
	a.checkScopes(&p, MicrosOf(now))
	a.checkJobs(&p, now)
	a.checkPrune(&p)
	if p == nil {
		return nil
	}
	return p
}

// within adds the problems of a part.
func (p *Problems) within(place string, err error) {
	var more Problems
	if !errors.As(err, &more) {
		if err != nil {
			p.Put(place, problem.Of(err))
		}
		return
	}
	for _, q := range more {
		p.Put(place+"."+q.Field, q.Text)
	}
}

// twice notes names that are given more than once; fields are those of where they stand.
func twice[K comparable](p *Problems, seen map[K]int, key K, list string, i int) {
	if first, is := seen[key]; is {
		p.Add(fmt.Sprintf("%s[%d].name", list, i), problem.GivenAlreadyAs, key, fmt.Sprintf("%s[%d]", list, first))
		return
	}
	seen[key] = i
}

func (a *Apply) checkGroups(p *Problems) {
	seen := map[string]int{}
	for i, g := range a.Groups {
		p.within(fmt.Sprintf("groups[%d]", i), CheckGroup(g.Name, g.Slots))
		twice(p, seen, g.Name, "groups", i)
	}
}

func (a *Apply) checkCalendars(p *Problems) {
	seen := map[string]int{}
	for i := range a.Calendars {
		c := &a.Calendars[i]
		c.Defaults()
		p.within(fmt.Sprintf("calendars[%d]", i), c.Validate())
		twice(p, seen, c.Name, "calendars", i)
	}
}

func (a *Apply) checkJobs(p *Problems, now time.Time) {
	seen := map[Name]int{}
	for i := range a.Jobs {
		w := &a.Jobs[i]
		start := w.Start
		w.Defaults(now)
		p.within(fmt.Sprintf("jobs[%d]", i), w.Validate())
		w.Start = start // of a job that is there already it may be another
		twice(p, seen, Name{w.App, w.Name}, "jobs", i)
		if v := w.Version; v != nil && *v < 0 {
			p.Add(fmt.Sprintf("jobs[%d].version", i), problem.Negative.Advise("give 0 for a job that must not be there yet"), *v)
		}
	}
}

func (a *Apply) checkPrune(p *Problems) {
	if a.Prune == nil {
		return
	}
	switch {
	case a.Prune.App != "" && len(a.Prune.Labels) > 0:
		p.Add("prune", problem.PruneOfTwo)
	case a.Prune.App == "" && len(a.Prune.Labels) == 0:
		p.Add("prune", problem.PruneOfNothing)
	case a.Prune.App != "":
		checkName(p, "prune.app", a.Prune.App)
	}
	if len(a.Prune.Labels) > MaxLabels {
		p.Add("prune.labels", problem.TooMany, len(a.Prune.Labels), MaxLabels)
	}
}

// KeepStart has a definition that replaces another, and does not say when it begins, go on as that one has begun: an
// interval keeps its phase, a number of due times is counted from where it was.
func (s *Spec) KeepStart(old *Spec) {
	if s.Start != nil {
		return
	}
	if s.Every != 0 && s.Every == old.Every || s.Every == 0 && old.Every == 0 && s.MaxFires != 0 && s.MaxFires == old.MaxFires {
		s.Start = old.Start
	}
}

// Same tells whether two definitions with their defaults say the same; instants may be written with another offset.
func (s *Spec) Same(other *Spec) bool {
	a, err1 := s.inUTC().Encode()
	b, err2 := other.inUTC().Encode()
	return err1 == nil && err2 == nil && a == b
}

// inUTC is the definition with its instants in UTC.
func (s *Spec) inUTC() *Spec {
	u := *s
	for _, t := range []**time.Time{&u.At, &u.Start, &u.End} {
		if *t != nil {
			utc := (*t).UTC()
			*t = &utc
		}
	}
	if len(u.Labels) == 0 {
		u.Labels = nil
	}
	return &u
}

// Diff lists what is different, by fields, between two definitions with their defaults; either may be nil.
func (s *Spec) Diff(other *Spec) []Change {
	return diff(s.flat(), other.flat())
}

func (s *Spec) flat() map[string]json.RawMessage {
	if s == nil {
		return nil
	}
	return flatten(s.inUTC())
}

// Diff lists what is different, by fields, between two calendars; either may be nil.
func (c *CalendarSpec) Diff(other *CalendarSpec) []Change {
	flat := func(c *CalendarSpec) map[string]json.RawMessage {
		if c == nil {
			return nil
		}
		return flatten(c)
	}
	return diff(flat(c), flat(other))
}

func diff(a, b map[string]json.RawMessage) []Change {
	fields := map[string]bool{}
	for _, m := range []map[string]json.RawMessage{a, b} {
		for k := range m {
			fields[k] = true
		}
	}
	var out []Change
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(a[field], b[field]) {
			out = append(out, Change{field, a[field], b[field]})
		}
	}
	return out
}

// flatten is what v encodes to, by the paths of what is no object, without what is empty.
func flatten(v any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // commands are full of && and <
	if e.Encode(v) != nil {
		return out // a definition that is stored can be written
	}
	var walk func(place string, text json.RawMessage)
	walk = func(place string, text json.RawMessage) {
		var inner map[string]json.RawMessage
		if text[0] == '{' && json.Unmarshal(text, &inner) == nil {
			for k, v := range inner {
				field := k
				if place != "" {
					field = place + "." + k
				}
				walk(field, v)
			}
			return
		}
		if s := string(text); s != `""` && s != "null" && s != "[]" {
			out[place] = text
		}
	}
	walk("", bytes.TrimSpace(text.Bytes()))
	return out
}

// Conflicts are the problems of an Apply whose jobs are not at the versions that it wants.
type Conflicts []Problem

func (c Conflicts) Error() string { return Problems(c).Error() }
