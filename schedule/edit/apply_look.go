package edit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// look reads the current state and lists the changes.
func (a *applying) look(ctx context.Context, now job.Micros) ([]Change, error) {
	*a = applying{Editor: a.Editor, want: a.want, now: now}
	if err := a.lookAtFolder(ctx); err != nil {
		return nil, err
	}
	if err := a.lookAtJobs(ctx); err != nil {
		return nil, err
	}

	for _, look := range []func(context.Context) error{a.lookAtAlerts, a.lookAtScopes, a.lookForGone, a.lookAtLimits} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}

	a.tell()
	err := a.plan(ctx)
	return a.changes, err
}

// lookAtJobs compares jobs, groups and calendars with the current state.
func (a *applying) lookAtJobs(ctx context.Context) error {
	groups, err := a.lookAtGroups(ctx)
	if err != nil {
		return err
	}
	calendars, err := a.lookAtCalendars(ctx)
	if err != nil {
		return err
	}
	if a.secrets, err = a.lookForSecrets(ctx); err != nil {
		return err
	}

	names := a.names()
	found, err := a.read().JobsNamed(ctx, names)
	if err != nil {
		return err
	}

	var (
		p job.Problems
		c job.Conflicts
	)
	for i, name := range names {
		var old *read.Job
		if row, there := found[name]; there {
			old = &row
		}
		if why := conflict(&a.want.Jobs[i], old); why != nil {
			c = append(c, job.Problem{Field: fmt.Sprintf("jobs[%d].version", i), Text: *why})
		}
		if err := a.lookAtJob(ctx, &p, i, old, groups, calendars); err != nil {
			return err
		}
	}
	if p == nil && c == nil {
		if err := a.lookAtChains(ctx, &p); err != nil {
			return err
		}
	}
	switch {
	case p != nil:
		return p
	case c != nil:
		return c
	}
	return nil
}

// lookAtChains checks the jobs that the wanted jobs follow. The transaction checks them again.
func (a *applying) lookAtChains(ctx context.Context, p *job.Problems) error {
	var changed []*job.Spec
	index, defs := map[*job.Spec]int{}, map[job.Name]*job.Spec{}
	for i := range a.jobs {
		j := &a.jobs[i]
		if defs[j.spec.JobName()] = &j.spec; j.spec.After != nil && !j.same {
			changed, index[&j.spec] = append(changed, &j.spec), j.index
		}
	}
	if len(changed) == 0 {
		return nil
	}

	c, err := checkChains(a.DB.Reader(ctx), changed, defs, nil)
	if err != nil {
		return err
	}
	for _, spec := range changed {
		for _, q := range c.problems[spec] {
			p.Put(fmt.Sprintf("jobs[%d].%s", index[spec], q.Field), q.Text)
		}
	}
	return nil
}

// names returns the names of the wanted jobs.
func (a *applying) names() []job.Name {
	names := make([]job.Name, len(a.want.Jobs))
	for i, w := range a.want.Jobs {
		names[i] = job.Name{App: w.App, Name: w.Name}
	}
	return names
}

// lookForSecrets returns the existing secrets among those that the jobs name. The secrets are
// checked again when the jobs are written.
func (a *applying) lookForSecrets(ctx context.Context) (map[job.AppSecret]bool, error) {
	var uses []job.SecretUse
	var apps []string
	for i := range a.want.Jobs {
		uses = append(uses, a.want.Jobs[i].SecretUses()...)
		apps = append(apps, a.want.Jobs[i].App)
	}
	slices.Sort(apps)
	return trip.SecretsThere(a.DB.Reader(ctx), slices.Compact(apps), job.SecretNames(uses))
}

// adds returns the number of jobs that each app gains or loses.
func (a *applying) adds() map[string]int64 {
	adds := map[string]int64{}
	for i := range a.jobs {
		if j := &a.jobs[i]; j.old == nil {
			adds[j.spec.App]++
		}
	}
	for i := range a.gone {
		adds[a.gone[i].Spec.App]--
	}
	return adds
}

// lookAtLimits checks the job limits of apps in a dry run.
func (a *applying) lookAtLimits(ctx context.Context) error {
	if !a.want.DryRun {
		return nil // the transaction checks them
	}
	limits, err := trip.Limits(a.DB.Reader(ctx))
	if err != nil {
		return err
	}
	adds := a.adds()

	for _, app := range slices.Sorted(maps.Keys(adds)) {
		if limits[app].Jobs == 0 {
			continue
		}
		has, err := trip.CountJobs(a.DB.Reader(ctx), app)
		if err != nil {
			return err
		}
		if err := limits[app].CheckJobs(app, has, adds[app]); err != nil {
			return err
		}
	}
	return nil
}

// conflict explains why a job is not at the wanted version. It returns nil if the job is.
func conflict(w *job.Wanted, old *read.Job) *problem.Text {
	var why problem.Text
	switch {
	case w.Version == nil, old != nil && *w.Version == old.Version, old == nil && *w.Version == 0:
		return nil
	case old == nil:
		why = problem.VersionGone.Of(*w.Version, w.App, w.Name)
	case *w.Version == 0:
		why = problem.VersionOfNone.Of(w.App, w.Name, old.Version)
	default:
		why = problem.VersionDiffers.Of(*w.Version, w.App, w.Name, old.Version)
	}
	return &why
}

func (a *applying) lookAtGroups(ctx context.Context) (map[string]trip.Group, error) {
	var names []string
	for _, g := range a.want.Groups {
		names = append(names, g.Name)
	}

	for _, w := range a.want.Jobs {
		if w.Group != "" {
			names = append(names, w.Group)
		}
	}

	slices.Sort(names)
	found, err := trip.GroupsNamed(a.DB.Reader(ctx), slices.Compact(names))
	if err != nil {
		return nil, err
	}

	for _, g := range a.want.Groups {
		a.groups = append(a.groups, appliedGroup{g, found[g.Name]})
		found[g.Name] = trip.Group{Name: g.Name} // jobs may name it
	}

	return found, nil
}

func (a *applying) lookAtCalendars(ctx context.Context) (map[string]*job.Calendar, error) {
	var names []string
	for _, c := range a.want.Calendars {
		names = append(names, c.Name)
	}

	for _, w := range a.want.Jobs {
		names = append(names, w.Calendars...)
	}

	slices.Sort(names)
	rows, err := trip.CalendarRows(a.DB.Reader(ctx), slices.Compact(names))
	if err != nil {
		return nil, err
	}

	found := map[string]*job.Calendar{}
	for name, row := range rows {
		if row.SpecErr == nil {
			found[name] = row.Calendar
		}
	}

	for i := range a.want.Calendars {
		c, err := a.want.Calendars[i].Compile()
		if err != nil {
			return nil, err // unexpected: Check has compiled them before
		}
		row, there := rows[c.Name()]
		same := there && row.SpecErr == nil && row.Calendar.Digest() == c.Digest()
		a.calendars = append(a.calendars, appliedCalendar{c, row, !there, same})
		found[c.Name()] = c
	}

	return found, nil
}

// lookAtJob compares a job with the current state, and validates the change.
func (a *applying) lookAtJob(
	ctx context.Context, p *job.Problems, i int, old *read.Job,
	groups map[string]trip.Group, calendars map[string]*job.Calendar,
) error {
	w := &a.want.Jobs[i]
	j := appliedJob{index: i, spec: w.Spec, old: old}
	place := fmt.Sprintf("jobs[%d]", i)
	if old != nil {
		j.spec.KeepStart(&old.Spec)
		j.same = old.SpecErr == nil && old.Error == "" // a job in error must be planned again
		if w.Paused != nil && *w.Paused != old.Paused {
			j.pause = w.Paused
		}
	} else if w.Paused != nil && *w.Paused {
		j.pause = w.Paused
	}
	j.spec.Defaults(a.now.Time())
	j.same = j.same && j.spec.Same(&old.Spec)

	wrong := func(field string, t problem.Text) { p.Put(place+"."+field, t) }
	if _, there := groups[j.spec.Group]; j.spec.Group != "" && !there {
		wrong("group", problem.NoGroup.Advise("create it first, or add it to groups with its slots").Of(j.spec.Group))
	}
	for _, q := range j.spec.MissingSecrets(a.secrets) {
		wrong(q.Field, q.Text)
	}

	found := true
	for n, name := range j.spec.Calendars {
		c, there := calendars[name]
		if !there {
			wrong(
				fmt.Sprintf("calendars[%d]", n),
				problem.NoCalendarReadable.Advise("create it first, or add it to calendars").Of(name))
			found = false
			continue
		}
		j.calendars = append(j.calendars, c)
	}

	if !found {
		return nil
	}
	if err := a.lookAtSchedule(ctx, &j, wrong); err != nil {
		return err
	}
	a.jobs = append(a.jobs, j)
	return nil
}

// lookAtSchedule compiles the schedule of a job. All its calendars exist.
func (a *applying) lookAtSchedule(ctx context.Context, j *appliedJob, wrong func(field string, t problem.Text)) error {
	s, err := j.spec.Compile(j.calendars...)
	var more job.Problems
	switch {
	case errors.As(err, &more):
		for _, q := range more {
			wrong(q.Field, q.Text)
		}
		return nil
	case err != nil:
		wrong("schedule", problem.Of(err))
		return nil
	}

	switch err := a.warn(ctx, j, s); {
	case errors.As(err, &more):
		wrong("schedule", more[0].Text)
	case err != nil:
		return err
	}

	if late := j.spec.PastAt(a.now.Time()); late != nil && (j.old == nil || !j.old.Spec.SameAt(&j.spec)) {
		j.warnings = append(j.warnings, problem.AtIsPast.Of(late...))
	}
	return nil
}

// warn lists warnings about a definition. It fails if the due times are too expensive to compute.
func (a *applying) warn(ctx context.Context, j *appliedJob, s job.Schedule) error {
	if len(j.spec.Calendars) == 0 {
		j.warnings = j.spec.Warnings(s, a.now.Time())
		return nil
	}

	err := job.Compute(ctx, job.DefiningWork, func(w *job.Work) error {
		j.warnings = j.spec.Warnings(w.On(s), a.now.Time())
		return nil
	})
	return j.spec.Explain(err, j.calendars)
}

// lookForGone finds the jobs to prune: jobs that match the prune filter but are in no file.
func (a *applying) lookForGone(ctx context.Context) error {
	prune := a.want.Prune
	if prune == nil {
		return nil
	}

	stay := map[job.Name]bool{}
	for _, n := range a.names() {
		stay[n] = true
	}

	f := read.JobFilter{App: prune.App, Labels: prune.Labels, Apps: prune.Apps, Limit: 500}
	for {
		rows, err := a.read().Jobs(ctx, f)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if f.After = r.ID; !stay[job.Name{App: r.Spec.App, Name: r.Spec.Name}] {
				a.gone = append(a.gone, r)
			}
		}
		switch {
		case len(a.gone) > job.MaxApplyJobs:
			return job.Wrong("prune", problem.PruneOfMany, job.MaxApplyJobs)
		case len(rows) < f.Limit:
			slices.SortFunc(a.gone, func(a, b read.Job) int {
				return strings.Compare(a.Spec.App+"\x00"+a.Spec.Name, b.Spec.App+"\x00"+b.Spec.Name)
			})
			return nil
		}
	}
}
