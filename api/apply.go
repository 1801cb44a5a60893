package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
)

// maxApplyBody is the largest body to apply, in bytes.
const maxApplyBody = 16 << 20

// apply: POST /api/v1/apply
func (s *Server) apply(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	want, err := applyFields(body)
	if err != nil {
		return err
	}
	if err := mayApply(r, &want); err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	done, err := e.Apply(r.Context(), want)
	if err != nil {
		return lookAt(err, "GET /api/v1/export shows the current state. You can safely repeat the request.")
	}

	v, err := s.viewApplied(r, &want, &done)
	if err != nil {
		// The change is committed, so missing warnings are no error for the client.
		s.cfg.Log.Warn("cannot compute warnings about applied jobs", "error", err)
	}
	return answer(w, http.StatusOK, v)
}

// ReadApply reads a body of POST /api/v1/apply. A node that follows a folder calls it. Mistakes in
// the body are returned as job.Problems.
func ReadApply(body []byte) (job.Apply, error) {
	object, err := parseObject(context.Background(), body)
	if err != nil {
		return job.Apply{}, err
	}
	want, err := applyFields(object)
	if p := (*Problem)(nil); errors.As(err, &p) && p.Errors != nil {
		err = job.Problems(p.Errors)
	}
	return want, err
}

// applyFields reads the body: the objects of a manifest, and how to apply them.
func applyFields(body map[string]any) (job.Apply, error) {
	var want job.Apply
	f := newFields(body)

	f.objects("groups", job.MaxApplyGroups, func(f *fields) {
		var g job.GroupSpec
		f.text("name", &g.Name)
		groupFields(f, &g)
		want.Groups = append(want.Groups, g)
	})

	f.objects("calendars", job.MaxApplyCalendars, func(f *fields) {
		want.Calendars = append(want.Calendars, calendarFields(f))
	})

	f.objects("channels", job.MaxAlertChannels, func(f *fields) {
		c := channelFields(f)
		f.text("name", &c.Name)
		want.Channels = append(want.Channels, c)
	})

	f.objects("rules", job.MaxAlertRules, func(f *fields) {
		r := ruleFields(f)
		f.text("name", &r.Name)
		want.Rules = append(want.Rules, r)
	})

	f.objects("retention", job.MaxApplyScopes, func(f *fields) {
		var r job.RetentionSpec
		var k job.Keep
		f.text("scope", &r.Scope)
		f.text("app", &r.App)
		keepFields(f, &k)
		f.flag("archive", &r.Archive)
		r.Age, r.Runs, r.Bytes, r.Failures = k.Age, k.Runs, k.Bytes, k.Failures
		want.Retention = append(want.Retention, r)
	})

	f.objects("pauses", job.MaxApplyScopes, func(f *fields) {
		var p job.PauseSpec
		f.text("scope", &p.Scope)
		f.text("app", &p.App)
		f.text("reason", &p.Reason)
		f.instant("until", &p.Until)
		want.Pauses = append(want.Pauses, p)
	})

	f.objects("jobs", job.MaxApplyJobs, func(f *fields) {
		b := jobFields(f)
		w := job.Wanted{Spec: b.spec, Paused: b.paused}
		f.version("version", &w.Version)
		f.refuse(except(readOnly, "version")...)
		want.Jobs = append(want.Jobs, w)
	})

	f.inner("prune", func(f *fields) {
		want.Prune = &job.Prune{}
		f.text("app", &want.Prune.App)
		f.textMap("labels", &want.Prune.Labels)
	})

	dry, force := new(bool), new(bool)
	f.boolean("dry_run", &dry)
	f.boolean("force", &force)
	want.DryRun, want.Force = *dry, *force
	if _, given := body["jobs"]; want.Prune != nil && !given {
		f.wrong("jobs", problem.MissingPlural.Advise("give [] if no job should remain"))
	}
	return want, f.done()
}

func except(names []string, but string) (out []string) {
	for _, n := range names {
		if n != but {
			out = append(out, n)
		}
	}
	return out
}

// objects calls fn for each object of a list, with its fields.
func (f *fields) objects(name string, most int, fn func(*fields)) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	list, ok := v.([]any)
	if !ok {
		f.want(name, v, problem.WantObjects)
		return
	}

	if len(list) > most {
		f.wrong(name, problem.TooMany.Advise("apply them in several requests"), len(list), most)
		return
	}

	for i, item := range list {
		if len(*f.problems) > maxProblems {
			return // enough problems to report
		}

		place := fmt.Sprintf("%s[%d]", name, i)
		o, ok := item.(map[string]any)
		if !ok {
			f.want(place, item, problem.WantObject)
			continue
		}

		in := &fields{object: o, place: join(f.place, place), problems: f.problems}
		fn(in)
		in.unknown()
	}
}

// version reads the version that the client expects of an object.
func (f *fields) version(name string, to **int64) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	number, _ := v.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if err != nil || n < 0 {
		f.want(name, v, problem.WantVersion)
		return
	}

	*to = &n
}

// mayApply returns why the caller may not apply these changes, or nil. If the caller's role is
// limited to some apps, mayApply limits pruning to the same apps.
func mayApply(r *http.Request, want *job.Apply) error {
	p := auth.Of(r.Context())
	if p.May(admin) {
		return nil
	}

	if len(want.Groups)+len(want.Calendars)+len(want.Channels)+len(want.Rules) > 0 {
		return forbid(p,
			"Groups, calendars, and alert channels and rules concern the whole cluster and need the role %s without "+
				"a limit to apps", admin)
	}

	var apps []string
	for _, s := range want.Retention {
		apps = append(apps, s.App)
	}
	for _, s := range want.Pauses {
		apps = append(apps, s.App)
	}

	if slices.Contains(apps, "") {
		return forbid(p, "Retention and pauses of the cluster need the role %s without a limit to apps", admin)
	}

	for _, w := range want.Jobs {
		apps = append(apps, cmp.Or(w.App, job.DefaultApp))
	}

	for _, app := range apps {
		if err := mayWrite(r.Context(), app); err != nil {
			return err
		}
	}

	if want.Prune == nil {
		return nil
	}

	want.Prune.Apps = []string{}
	for _, g := range p.Grants {
		if g.Role >= admin {
			want.Prune.Apps = append(want.Prune.Apps, g.Apps...)
		}
	}

	if app := want.Prune.App; app != "" {
		return mayWrite(r.Context(), app)
	}
	return nil
}

func (s *Server) viewApplied(r *http.Request, want *job.Apply, done *job.Applied) (*view.Apply, error) {
	v := &view.Apply{DryRun: want.DryRun, Jobs: []*view.AppliedJob{}}
	count := func(a job.Applying) job.Applying {
		if a != job.Unchanged {
			v.Changed++
		}
		return a
	}

	for _, part := range []struct {
		to   *[]view.AppliedObject
		from []job.AppliedObject
	}{{&v.Groups, done.Groups}, {&v.Calendars, done.Calendars}, {&v.Channels, done.Channels}, {&v.Rules, done.Rules},
		{&v.Retention, done.Retention}, {&v.Pauses, done.Pauses}} {
		*part.to = make([]view.AppliedObject, len(part.from))
		for i, o := range part.from {
			(*part.to)[i] = view.AppliedObject{Name: o.Name, Action: count(o.Action), Changes: o.Changes}
		}
	}

	var errs error
	live := map[string][]problem.Text{} // by liveKey: even a thousand jobs have few of them
	for i := range done.Jobs {
		d := &done.Jobs[i]
		j := &view.AppliedJob{
			App: d.Job.Spec.App, Name: d.Job.Spec.Name, Action: count(d.Action), Changes: d.Changes,
			Warnings: d.Warnings,
		}

		if d.Job.ID != 0 {
			j.ID = strconv.FormatInt(d.Job.ID, 10)
		}
		if d.Action != job.Deleted {
			j.Version = d.Job.Version
		}

		if d.Action == job.Created || d.Action == job.Updated {
			key := liveKey(&d.Job.Spec)
			warnings, known := live[key]
			if !known {
				var err error
				warnings, err = s.liveWarnings(r.Context(), &d.Job.Spec)
				errs, live[key] = errors.Join(errs, err), warnings
			}
			j.Warnings = append(j.Warnings, warnings...)
		}

		v.Jobs = append(v.Jobs, j)
	}

	return v, errs
}
