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

// Bounds of one Apply, which is a single transaction.
const (
	MaxApplyJobs      = 1000 // bound of the named jobs, and of the jobs that Prune deletes
	MaxApplyGroups    = 200
	MaxApplyCalendars = 100
)

// Apply is the wanted state of a cluster, as read from files. It holds groups, calendars, alert
// channels and rules, retention rules, pauses of apps and of the cluster, and jobs.
type Apply struct {
	Groups    []GroupSpec
	Calendars []CalendarSpec
	Channels  []AlertChannel
	Rules     []AlertRule
	Retention []RetentionSpec
	Pauses    []PauseSpec
	Jobs      []Wanted
	Prune     *Prune  // jobs to delete if they are not in Jobs
	Force     bool    // delete jobs even if other jobs follow them
	DryRun    bool    // report the changes without making them
	Folder    *Folder // the folder that the files belong to, or nil
}

// GroupSpec is a group as files define it.
type GroupSpec struct {
	Name  string `json:"name" doc:"Its name, which cannot be changed."`
	Slots int    `json:"slots,omitempty" doc:"How many runs of its jobs can execute at once in the whole cluster. It may be left out beside a rate: no limit."`
	Rate  string `json:"rate,omitempty" doc:"How many runs of its jobs can start within any period, such as 10/1m. Default: no limit."`
}

// Wanted is a job as files define it.
type Wanted struct {
	Spec
	Paused  *bool  // nil: unchanged; a new job is not paused
	Version *int64 // the version that the job must have; 0: it must not exist; nil: any
}

// Prune selects the jobs that belong to a set of files. A selected job that is not in the files is
// deleted. A zero field selects all jobs. App or Labels must be set.
type Prune struct {
	App    string
	Labels map[string]string // the job must have all
	Apps   []string          // restricts further than App; nil: all apps
}

// KindGroup is the kind of groups in audit lines.
const KindGroup Kind = "group"

// Applying is the effect of an Apply on one object.
type Applying string

// The effects.
const (
	Created   Applying = "created"
	Updated   Applying = "updated"
	Unchanged Applying = "unchanged"
	Deleted   Applying = "deleted"
)

// Applied lists the changes of an Apply, made or planned.
type Applied struct {
	Groups    []AppliedObject
	Calendars []AppliedObject
	Channels  []AppliedObject
	Rules     []AppliedObject
	Retention []AppliedObject // named by app; "" is the cluster
	Pauses    []AppliedObject // named by app, too
	Jobs      []AppliedJob    // the jobs of the Apply in its order, then the deleted jobs by name
}

// Objects returns everything but the jobs.
func (a *Applied) Objects() []AppliedObject {
	return slices.Concat(a.Groups, a.Calendars, a.Channels, a.Rules, a.Retention, a.Pauses)
}

// AppliedObject is the result for an object other than a job.
type AppliedObject struct {
	Name    string
	Action  Applying
	Changes []Change
}

// AppliedJob is the result for a job. The id and the version are zero if the job would be created.
type AppliedJob struct {
	Action   Applying
	Job      Job // after the change
	Changes  []Change
	Warnings []problem.Text // see Spec.Warnings
}

// Change is a changed field. Values are JSON. A nil value means not set.
type Change struct {
	Field   string          `json:"field" doc:"The path of the field, such as 'retry.attempts'."`
	Was     json.RawMessage `json:"was,omitempty" doc:"The old value. Absent if it was not set."`
	Becomes json.RawMessage `json:"becomes,omitempty" doc:"The new value. Absent if it is no longer set."`
}

// Check fills in the defaults, and returns Problems or nil. The fields of the Problems are paths in
// the manifest, such as jobs[3].schedule.
func (a *Apply) Check(now time.Time) error {
	var p Problems
	tooMany := func(field string, n, most int) {
		if n > most {
			p.Add(field, problem.TooMany.Advise("apply them in several requests"), n, most)
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

// within adds the problems of a part of the manifest.
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

// twice adds a problem if the same name was given before. list and i say where the name is.
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
		p.within(fmt.Sprintf("groups[%d]", i), CheckGroup(g))
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
		w.Start = start // an existing job may have another Start
		twice(p, seen, Name{w.App, w.Name}, "jobs", i)
		if v := w.Version; v != nil && *v < 0 {
			p.Add(fmt.Sprintf("jobs[%d].version", i),
				problem.Negative.Advise("give 0 for a job that must not exist yet"), *v)
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

// KeepStart copies the start of the replaced definition if s has no start. So an interval keeps its
// phase, and the count for MaxFires continues.
func (s *Spec) KeepStart(old *Spec) {
	if s.Start != nil {
		return
	}
	if s.Every != 0 && s.Every == old.Every ||
		s.Every == 0 && old.Every == 0 && s.MaxFires != 0 && s.MaxFires == old.MaxFires {
		s.Start = old.Start
	}
}

// Same reports whether two definitions mean the same. Both must have their defaults filled in.
// Equal instants may have different offsets.
func (s *Spec) Same(other *Spec) bool {
	a, err1 := s.inUTC().Encode()
	b, err2 := other.inUTC().Encode()
	return err1 == nil && err2 == nil && a == b
}

// inUTC returns the definition with its instants in UTC.
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

// Diff lists the fields in which two definitions differ. Both must have their defaults filled in.
// Either may be nil.
func (s *Spec) Diff(other *Spec) []Change {
	return diff(s.flat(), other.flat())
}

func (s *Spec) flat() map[string]json.RawMessage {
	if s == nil {
		return nil
	}
	return flatten(s.inUTC())
}

// Diff lists the fields in which two calendars differ. Either may be nil.
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

// flatten encodes v and returns its non-empty leaves by path. Every value except an object is a
// leaf.
func flatten(v any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // commands are full of && and <
	if e.Encode(v) != nil {
		return out // cannot happen: stored definitions encode
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

// Conflicts lists the jobs of an Apply that do not have the wanted version.
type Conflicts []Problem

func (c Conflicts) Error() string { return Problems(c).Error() }
