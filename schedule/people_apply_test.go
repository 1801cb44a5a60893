package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/schedule/edit"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

// wanted is a job as a file describes it. Its command is true.
func wanted(spec job.Spec) job.Wanted {
	if spec.Command == "" {
		spec.Command = "true"
	}
	return job.Wanted{Spec: spec}
}

type wantedList []job.Wanted

func (w wantedList) paused(at int, paused bool) wantedList {
	out := slices.Clone(w)
	out[at].Paused = &paused
	return out
}

func (p *person) applies(want job.Apply) job.Applied {
	p.Helper()
	out, err := p.Apply(p.ctx, want)
	if err != nil {
		p.Fatal(err)
	}
	return out
}

// told returns a summary of an Apply.
func told(a job.Applied) string {
	var out []string
	for _, o := range a.Objects() {
		out = append(out, strings.TrimSpace(string(o.Action)+" "+o.Name)+changesText(o.Changes))
	}
	for _, j := range a.Jobs {
		out = append(out, string(j.Action)+" "+j.Job.Spec.Name+changesText(j.Changes))
	}
	return strings.Join(out, "; ")
}

func changesText(changes []job.Change) (out string) {
	if len(changes) > 4 { // of a new object
		return ""
	}
	for _, c := range changes {
		out += fmt.Sprintf(" %s:%s>%s", c.Field, c.Was, c.Becomes)
	}
	return out
}

// written counts the rows that an Apply may write.
func (c *cluster) written() string {
	c.Helper()
	var out []string
	for _, table := range []string{"job", "job_version", "run", "audit", "grp", "calendar", "job_ref", "stop", "retention", "alert_rule"} {
		out = append(out, c.rows("SELECT COUNT(*) FROM "+table)...)
	}
	return strings.Join(append(out, c.rows("SELECT COALESCE(SUM(changes), 0) FROM job")...), " ")
}

// TestApply: groups, calendars and jobs are created, changed and deleted together. A second Apply
// changes nothing.
func TestApply(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.creates(ofEvery("old", 60))
	p.creates(ofEvery("edited", 10))
	other := ofEvery("other", 3600)
	other.App = "other"
	p.creates(other)
	fresh := ofEvery("new", 20)
	fresh.Group, fresh.Calendars, fresh.Selector = "g", []string{"c"}, "zone=a"
	want := job.Apply{
		Groups: []job.GroupSpec{{Name: "g", Slots: 2}}, Calendars: []job.CalendarSpec{closed("c", 0)},
		Jobs: []job.Wanted{wanted(fresh), wanted(ofEvery("edited", 15))}, Prune: &job.Prune{App: "default"},
	}

	before, dry := c.written(), want
	dry.DryRun = true
	const said = `created new; updated edited every:"10s">"15s"; deleted old`
	if got := told(p.applies(dry)); !strings.HasPrefix(got, "created g slots:>2; created c") || !strings.HasSuffix(got, said) {
		t.Errorf("dry run: got %s", got)
	}
	if got := c.written(); got != before {
		t.Errorf("a dry run has written: got %s, want %s", got, before)
	}

	out := p.applies(want)
	if got := told(out); !strings.HasSuffix(got, said) {
		t.Errorf("got %s", got)
	}
	if j := out.Jobs[0].Job; j.ID == 0 || j.Version != 1 || out.Jobs[1].Job.Version != 2 {
		t.Errorf("got job %d at version %d, and version %d of the edited one", j.ID, j.Version, out.Jobs[1].Job.Version)
	}
	c.wantJobs("cursors", "edited 2 2 next 15.0000", "new 1 1 next 60.0000", "old 1 2 deleted", "other 1 1 next 3600.0000")
	c.want("references", c.rows("SELECT CONCAT(r.kind, r.name) FROM job_ref r JOIN job j ON j.id = r.job_id WHERE j.name = 'new'"), "1g", "2c")
	c.want("audit", c.rows(auditLines)[3:], "alice create  c became", "alice create  g became", "alice create default new became",
		"alice update default edited was became", "alice delete default old was")

	before = c.written()
	if got := told(p.applies(want)); got != "unchanged g; unchanged c; unchanged new; unchanged edited" {
		t.Errorf("again: got %s", got)
	}
	if got := c.written(); got != before {
		t.Errorf("the same was written again: got %s, want %s", got, before)
	}
}

// TestApplyChangesOneOfMany: a pause that is not mentioned stays; a job in error is written again.
func TestApplyChangesOneOfMany(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	soon := t0.Add(time.Hour).Time()
	plain := wantedList{
		wanted(job.Spec{Name: "a", Every: job.Duration(time.Minute)}), wanted(job.Spec{Name: "b", Schedule: "@daily", MaxFires: 3}),
		wanted(job.Spec{Name: "c", At: &soon}),
	}
	for i, step := range []struct {
		jobs wantedList
		want string
	}{
		{plain, "created a; created b; created c"},
		{plain, "unchanged a; unchanged b; unchanged c"}, // also what begins when it was created
		{plain.paused(1, true), "unchanged a; updated b paused:false>true; unchanged c"},
		{plain, "unchanged a; unchanged b; unchanged c"},
		{plain.paused(1, false), "unchanged a; updated b paused:true>false; unchanged c"},
		{plain.paused(0, false), "unchanged a; unchanged b; unchanged c"},
		{wantedList{plain[2]}, "unchanged c"},
	} {
		if got := told(p.at(float64(i)).applies(job.Apply{Jobs: step.jobs})); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
	c.want("changes", c.rows("SELECT CONCAT_WS(' ', name, version, changes) FROM job"), "a 1 1", "b 1 3", "c 1 1")

	offset := plain[2]
	elsewhere := offset.At.In(time.FixedZone("", 3600))
	offset.At = &elsewhere
	if got := told(p.applies(job.Apply{Jobs: []job.Wanted{offset}})); got != "unchanged c" {
		t.Errorf("the same instant with another offset: got %s", got)
	}
	c.exec("UPDATE job SET error = 'x', next_due = NULL WHERE name = 'a'")
	if got := told(p.applies(job.Apply{Jobs: plain[:1]})); got != "updated a" {
		t.Errorf("a job in error: got %s", got)
	}
	c.want("errors", c.rows("SELECT COUNT(*) FROM job WHERE error <> '' OR name = 'a' AND next_due IS NULL"), "0")
	c.exec(`UPDATE job_version v JOIN job j ON j.id = v.job_id SET v.definition = '{"of": "a newer version"}' WHERE j.name = 'a'`)
	if got := told(p.applies(job.Apply{Jobs: plain[:1]})); got != "updated a" {
		t.Errorf("a job that cannot be read: got %s", got)
	}
}

// TestApplyChangesDefinitionAndPause: both change in one step, and no due time of either definition
// is left to claim.
func TestApplyChangesDefinitionAndPause(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	yes, no := true, false
	p.creates(ofEvery("j", 10))
	m.claims(1)
	w := wanted(ofEvery("j", 15))
	w.Paused = &yes
	p.at(2).applies(job.Apply{Jobs: []job.Wanted{w}})
	c.wantJobs("paused", "j 2 2 parked 15.0000 paused")
	c.want("nothing is left", c.rows(allRuns, int64(t0)))
	c.want("pauses", c.rows("SELECT CONCAT(who, (since - ?) / 1000000) FROM job_pause", int64(t0)), "alice2.0000")

	w = wanted(ofEvery("j", 20))
	w.Paused = &no
	p.at(3).applies(job.Apply{Jobs: []job.Wanted{w}})
	c.wantJobs("resumed", "j 3 3 next 20.0000")
	c.want("no pause", c.rows("SELECT COUNT(*) FROM job_pause"), "0")
	c.want("audit", c.rows(auditLines), "alice create default j became", "alice update default j was became", "alice pause default j",
		"alice update default j was became", "alice resume default j")
	m.claims(11)
	c.want("started", m.starts(20), "j@20")
}

// TestApplyOfAnInstantLongPast: files keep jobs whose single due time is over. Such a job is
// created, but does not run.
func TestApplyOfAnInstantLongPast(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	long, short := t0.Add(-2*time.Hour).Time(), t0.Add(-2*time.Minute).Time()
	files := job.Apply{Jobs: []job.Wanted{wanted(job.Spec{Name: "past", At: &long}), wanted(job.Spec{Name: "young", At: &short})}}
	dry := files
	dry.DryRun = true
	for _, want := range []job.Apply{dry, files} {
		out := p.applies(want)
		if got := told(out); got != "created past; created young" {
			t.Errorf("got %s", got)
		}
		if w := out.Jobs[0].Warnings; len(w) != 1 || !strings.HasSuffix(w[0].Message, "starts at most 1h late (misfire.max_age), so it will not run") {
			t.Errorf("got warnings %q", w)
		}
		if w := out.Jobs[1].Warnings; len(w) != 0 {
			t.Errorf("got warnings %q of a job that is started at once", w)
		}
	}
	m.claims(1)
	c.want("started", m.starts(1), "young@-120")
	c.wantEnded("missed", "-7200.0000 to -7200.0000 1 missed 1 no node could start it within 1m of its due time")

	out := p.at(360_000).applies(files)
	if got := told(out); got != "unchanged past; unchanged young" || len(out.Jobs[0].Warnings) != 0 {
		t.Errorf("again: got %s, warnings %q", got, out.Jobs[0].Warnings)
	}
}

// TestApplyIsAllOrNothing: every problem is reported with its place, and nothing is written.
func TestApplyIsAllOrNothing(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	id := p.creates(ofEvery("there", 3600))
	owned := ofEvery("there", 3600)
	owned.Owner = "me"
	p.must(p.Update(p.ctx, id, 0, owned))
	version := func(v int64, spec job.Spec) job.Wanted { w := wanted(spec); w.Version = &v; return w }
	good := wanted(ofEvery("good", 3600))
	bad := func(change func(*job.Spec)) job.Apply {
		s := ofEvery("bad", 3600)
		change(&s)
		return job.Apply{
			Groups: []job.GroupSpec{{Name: "g", Slots: 1}}, Calendars: []job.CalendarSpec{closed("c")}, Jobs: []job.Wanted{good, wanted(s)},
		}
	}

	before := c.written()
	for name, test := range map[string]struct {
		want   job.Apply
		fields string
	}{
		"a bad cron expression":      {bad(func(s *job.Spec) { s.Every, s.Start, s.Schedule = 0, nil, "61 * * * *" }), "jobs[1].schedule"},
		"no command, a bad priority": {bad(func(s *job.Spec) { s.Command, s.Priority = " ", 1000 }), "jobs[1].command jobs[1].priority"},
		"no such group":              {bad(func(s *job.Spec) { s.Group = "nix" }), "jobs[1].group"},
		"no such calendar":           {bad(func(s *job.Spec) { s.Calendars = []string{"c", "nix"} }), "jobs[1].calendars[1]"},
		"the same job twice":         {bad(func(s *job.Spec) { s.Name, s.App = "good", "default" }), "jobs[1].name"},
		"a group without slots":      {job.Apply{Groups: []job.GroupSpec{{Name: "g"}}, Jobs: []job.Wanted{good}}, "groups[0].slots"},
		"prune of nothing":           {job.Apply{Jobs: []job.Wanted{good}, Prune: &job.Prune{}}, "prune"},
		"too much":                   {job.Apply{Jobs: make([]job.Wanted, job.MaxApplyJobs+1)}, "jobs"},
	} {
		_, err := p.Apply(p.ctx, test.want)
		var problems job.Problems
		var got []string
		if errors.As(err, &problems) {
			for _, q := range problems {
				got = append(got, q.Field)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != test.fields {
			t.Errorf("%s: got %v, want problems of %s", name, err, test.fields)
		}
	}
	for name, w := range map[string]job.Wanted{
		"at another version": version(1, ofEvery("there", 60)),
		"must not exist yet": version(0, ofEvery("there", 3600)),
		"is gone":            version(3, ofEvery("gone", 3600)),
	} {
		_, err := p.Apply(p.ctx, job.Apply{Jobs: []job.Wanted{good, w}})
		var conflicts job.Conflicts
		if !errors.As(err, &conflicts) || len(conflicts) != 1 || conflicts[0].Field != "jobs[1].version" {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	if got := c.written(); got != before {
		t.Errorf("got rows %s, want %s", got, before)
	}
	out := p.applies(job.Apply{Jobs: []job.Wanted{version(0, ofEvery("new", 3600)), version(2, ofEvery("there", 3600))}})
	if got := told(out); got != `created new; updated there owner:"me">` {
		t.Errorf("at the right versions: got %s", got)
	}
}

// TestApplyPrunes: only jobs that belong to the files but are in no file are deleted.
func TestApplyPrunes(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	spec := func(app, name, team string) job.Spec {
		s := ofEvery(name, 3600)
		s.App, s.Labels = app, map[string]string{"team": team, "x": name}
		return s
	}

	for _, name := range []string{"one", "two", "three"} {
		p.creates(spec("a", name, "red"))
		p.creates(spec("b", name, "blue"))
		p.creates(spec("c", name, "red"))
	}

	for _, test := range []struct {
		what  string
		prune job.Prune
		want  string
	}{
		{"another app", job.Prune{App: "x"}, "unchanged two"},
		{"only where one may", job.Prune{Labels: map[string]string{"team": "red"}, Apps: []string{"b"}}, "unchanged two"},
		{"nowhere", job.Prune{App: "a", Apps: []string{}}, "unchanged two"},
		{"by app", job.Prune{App: "a"}, "unchanged two; deleted one; deleted three"},
		{"by labels", job.Prune{Labels: map[string]string{"team": "red", "x": "one"}}, "unchanged two; deleted one"},
		{"by label", job.Prune{Labels: map[string]string{"team": "red"}}, "unchanged two; deleted three; deleted two"},
	} {
		got := told(p.applies(job.Apply{Jobs: []job.Wanted{wanted(spec("a", "two", "red"))}, Prune: &test.prune}))
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.what, got, test.want)
		}
	}

	c.want("left", c.rows("SELECT COUNT(*) FROM job WHERE living = 1"), "4")
}

// TestUnknownCommitOfAnApply: everything is applied, once.
func TestUnknownCommitOfAnApply(t *testing.T) {
	for name, fate := range map[string]faultproxy.Action{"it never arrives": faultproxy.CutBefore(), "the reply is lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			p := c.person(dsn)
			p.creates(ofEvery("edited", 10))
			p.creates(ofEvery("gone", 10))
			rule := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: fate, Times: 1})
			want := job.Apply{
				Groups: []job.GroupSpec{{Name: "g", Slots: 1}}, Prune: &job.Prune{App: "default"},
				Jobs: []job.Wanted{wanted(ofEvery("new", 60)), wanted(ofEvery("edited", 15))},
			}
			p.applies(want)
			if rule.Fired() != 1 {
				t.Errorf("injected %d times", rule.Fired())
			}
			c.wantJobs("jobs", "edited 2 2 next 15.0000", "gone 1 2 deleted", "new 1 1 next 60.0000")
			c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE action <> 'void'"), "6")
			if got := told(p.applies(want)); got != "unchanged g; unchanged new; unchanged edited" {
				t.Errorf("again: got %s", got)
			}
		})
	}
}

// TestApplyWithoutSpawnWindows: if the read after the commit fails, the answer does not say that
// nothing was changed.
func TestApplyWithoutSpawnWindows(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	p, m := c.person(dsn), c.member(1, c.dsn)
	p.creates(ofEvery("busy", 4))
	p.creates(ofEvery("edited", 3600))
	m.claims(0)
	c.want("busy", m.starts(4), "busy@4")

	rule := proxy.Add(faultproxy.Rule{Match: faultproxy.SQL(`MAX\(IF\(state IN`), Times: -1,
		Action: faultproxy.Error(1317, "70100", "Query execution was interrupted")})
	_, err := p.Apply(p.ctx, job.Apply{Jobs: []job.Wanted{wanted(ofEvery("busy", 4)), wanted(ofEvery("edited", 1800))}})
	if !sql.IsUnknown(err) || rule.Fired() == 0 {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	c.want("the change", c.rows("SELECT version FROM job WHERE name = 'edited'"), "2")
}

// TestApplyLooksAgain: others change the same objects between the look and the transaction.
func TestApplyLooksAgain(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	p, other := c.person(dsn), c.person(c.dsn)
	id := p.creates(ofEvery("edited", 10))
	p.applies(job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 1}}, Calendars: []job.CalendarSpec{closed("c")}})
	want := job.Apply{
		Groups: []job.GroupSpec{{Name: "g", Slots: 5}}, Calendars: []job.CalendarSpec{closed("c", 0)},
		Jobs: []job.Wanted{wanted(ofEvery("edited", 15)), wanted(ofEvery("new", 3600))},
	}

	begun := 0
	var one sync.Mutex
	proxy.OnCommand(func(command faultproxy.Command) {
		if !strings.Contains(command.SQL, "UPDATE calendar SET named") {
			return
		}
		one.Lock()
		defer one.Unlock()
		var err error
		switch begun++; begun {
		case 1:
			_, err = other.Create(other.ctx, want.Jobs[1].Spec, false)
		case 2:
			spec := ofEvery("edited", 10)
			spec.Owner = "other"
			_, err = other.Update(other.ctx, id, 0, spec)
		case 3:
			_, err = other.PutGroup(other.ctx, job.GroupSpec{Name: "g", Slots: 3})
		case 4:
			go other.PutCalendar(other.ctx, closed("c", 2), edit.AnyVersion) // it comes before or after
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	got := told(p.applies(want))
	if !strings.HasPrefix(got, "updated g slots:3>5; updated c") || !strings.HasSuffix(got, "unchanged new") ||
		!strings.Contains(got, `updated edited every:"10s">"15s" owner:"other">`) || begun < 4 {
		t.Errorf("got %s after %d tries", got, begun)
	}
	c.want("jobs", c.rows("SELECT CONCAT_WS(' ', name, version) FROM job ORDER BY name"), "edited 3", "new 1")
}

// TestAppliesAtOnce: several people apply the same files at the same time. All succeed, and
// everything exists once.
func TestAppliesAtOnce(t *testing.T) {
	c := newCluster(t)
	people := []*person{c.person(c.dsn), c.person(c.dsn), c.person(c.dsn)}
	for i, p := range people {
		p.session.minted.Store(int64(1 + i<<20)) // each has ids of its own
	}

	for round := range 3 {
		var want job.Apply
		for i := range 40 {
			want.Jobs = append(want.Jobs, wanted(ofEvery(fmt.Sprintf("j%02d", i), 3600*(round+1))))
		}
		var all sync.WaitGroup
		for i, p := range people {
			all.Go(func() {
				mine := job.Apply{Jobs: slices.Clone(want.Jobs)}
				if i == 1 {
					slices.Reverse(mine.Jobs)
				}
				if _, err := p.Apply(p.ctx, mine); err != nil {
					t.Errorf("round %d: person %d: %v", round, i, err)
				}
			})
		}
		all.Wait()
		c.want("jobs and versions", c.rows("SELECT CONCAT_WS(' ', COUNT(*), SUM(version)) FROM job"), fmt.Sprint("40 ", 40*(round+1)))
	}
}

// TestApplyAnswerWaits: the answer waits while a run may begin under the old definition, even if
// the Apply changes nothing.
func TestApplyAnswerWaits(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	p.creates(ofEvery("j", 4))
	m.claims(1)
	c.want("started", m.starts(4), "j@4")
	for i, want := range []job.Apply{
		{Jobs: []job.Wanted{wanted(ofEvery("j", 20))}},
		{Jobs: []job.Wanted{wanted(ofEvery("j", 20))}},
		{Prune: &job.Prune{App: "default"}},
	} {
		began := time.Now()
		p.at(4.1).applies(want)
		if waited := time.Since(began); waited < 800*time.Millisecond {
			t.Errorf("apply %d: answered after %s, in the spawn window", i, waited)
		}
	}
}

// TestApplyOfMany: a thousand jobs are created, changed and deleted with few statements each.
func TestApplyOfMany(t *testing.T) {
	c := newCluster(t)
	dsn, proxy := c.proxied()
	p := c.person(dsn)
	var want job.Apply
	for i := range job.MaxApplyJobs {
		want.Jobs = append(want.Jobs, wanted(ofEvery(fmt.Sprint("job-", i), 4)))
	}

	step := func(what string) {
		t.Helper()
		before := proxy.Statements()
		p.applies(want)
		if n := proxy.Statements() - before; n > 60 {
			t.Errorf("%s: %d statements, want at most 60", what, n)
		}
	}

	step("create")
	step("nothing")
	for i := range want.Jobs {
		want.Jobs[i].Owner = "new"
	}

	step("change")
	c.want("versions", c.rows("SELECT SUM(version) FROM job"), fmt.Sprint(2*job.MaxApplyJobs))
	want = job.Apply{Prune: &job.Prune{App: "default"}}
	step("delete")
	c.want("jobs", c.rows("SELECT COUNT(*) FROM job WHERE living = 1"), "0")
}

// TestApplyOfACalendar: when a calendar changes, the jobs that name it follow the new one, in the
// files or not.
func TestApplyOfACalendar(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	p.puts(closed("c"))
	p.withCalendar("known", "c")
	p.withCalendar("other", "c")
	known := ofEvery("known", 30)
	known.Calendars = []string{"c"}
	want := job.Apply{Calendars: []job.CalendarSpec{closed("c", 0)}, Jobs: wantedList{wanted(known)}.paused(0, true)}
	if got := told(p.applies(want)); !strings.HasSuffix(got, "updated known paused:false>true") || !strings.HasPrefix(got, "updated c") {
		t.Errorf("got %s", got)
	}
	c.wantJobs("cursors", "known 2 2 parked 60.0000 paused", "other 2 2 next 60.0000")
	p.applies(job.Apply{Calendars: []job.CalendarSpec{closed("c", 0, 1)}})
	c.wantJobs("without the jobs", "known 3 3 parked 120.0000 paused", "other 3 3 next 120.0000")
}

// TestApplyRetentionAndPauses: they are applied together with the jobs, or not at all.
func TestApplyRetentionAndPauses(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	c.exec("DELETE FROM retention")
	until := t0.Add(time.Hour).Time()
	want := func() job.Apply {
		shop := ofEvery("a", 60)
		shop.App = "shop"
		return job.Apply{
			Retention: []job.RetentionSpec{{App: "shop", Runs: 10}, {Scope: "cluster", Age: job.Duration(time.Hour)}},
			Pauses:    []job.PauseSpec{{App: "shop", Reason: "stocktaking", Until: &until}, {App: "ops"}},
			Jobs:      []job.Wanted{wanted(shop)},
		}
	}
	actions := func(a job.Apply) (out string) {
		t.Helper()
		done := p.applies(a)
		for _, o := range done.Objects() {
			out += " " + o.Name + ":" + string(o.Action)
		}
		return out
	}
	dry := want()
	dry.DryRun = true
	const fresh = " :created shop:created ops:created shop:created"
	if got := actions(dry); got != fresh {
		t.Errorf("a dry run: got %s", got)
	}
	wrong := want()
	wrong.Jobs[0].Group = "none"
	if _, err := p.Apply(p.ctx, wrong); !errors.As(err, new(job.Problems)) {
		t.Errorf("a job that is wrong: got %v", err)
	}
	c.want("rules, pauses and jobs", c.rows("SELECT (SELECT COUNT(*) FROM retention) + (SELECT COUNT(*) FROM stop) + (SELECT COUNT(*) FROM job)"), "0")

	if got := actions(want()); got != fresh {
		t.Errorf("got %s", got)
	}
	if got := actions(want()); strings.Contains(got, "created") || strings.Contains(got, "updated") {
		t.Errorf("the same again: got %s", got)
	}
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE kind IN ('retention', 'app')"), "4")
	const pause = "SELECT CONCAT_WS(' ', kind, s.app_id = a.id, (since - ?) / 1000000, (until - ?) / 1000000, who, reason)" +
		" FROM stop s JOIN app a ON a.name = s.name WHERE s.name = 'shop'"
	c.want("the pause", c.rows(pause, int64(t0), int64(t0)), "app 1 0.0000 3600.0000 alice stocktaking")

	changed := want()
	changed.Pauses[0].Reason, changed.Retention[1].Archive, changed.Retention[0].Runs = "", true, 0
	if got := actions(changed); got != " :updated shop:updated ops:unchanged shop:updated" {
		t.Errorf("a change: got %s", got)
	}
	p.at(10)
	c.want("since when the pause is", c.rows(pause, int64(t0), int64(t0)), "app 1 0.0000 3600.0000 alice ")
	c.want("an empty rule of an app", c.rows("SELECT COUNT(*) FROM retention WHERE app = 'shop'"), "0")

	// A pause in a file that has ended by itself does no harm.
	p.at(3601)
	if got := actions(want()); !strings.HasSuffix(got, " ops:unchanged shop:unchanged") {
		t.Errorf("after its end: got %s", got)
	}
	open := want()
	open.Pauses[0].Until = nil
	if got := actions(open); !strings.HasSuffix(got, " ops:unchanged shop:created") {
		t.Errorf("anew: got %s", got)
	}
	c.want("the end of the one before, in the audit",
		c.rows("SELECT who FROM audit WHERE kind = 'app' AND app = 'shop' AND action = 'resume'"), "go-crontab")
}

// TestApplyScopesByMany: several people apply different files at the same time. The cluster ends
// with one complete set of files.
func TestApplyScopesByMany(t *testing.T) {
	c := newCluster(t)
	var all sync.WaitGroup
	for i := range 4 {
		p := c.person(c.dsn)
		reason := strings.Repeat("x", i+1)
		all.Go(func() {
			for range 5 {
				_, err := p.Apply(p.ctx, job.Apply{
					Retention: []job.RetentionSpec{{App: "b", Runs: int64(i + 1)}, {App: "a", Runs: int64(i + 1)}},
					Pauses:    []job.PauseSpec{{App: "b", Reason: reason}, {App: "a", Reason: reason}},
				})
				if err != nil && !errors.Is(err, job.ErrChanged) {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()
	c.want("pauses", c.rows("SELECT CONCAT_WS(' ', COUNT(*), COUNT(DISTINCT reason)) FROM stop"), "2 1")
	c.want("rules", c.rows("SELECT COUNT(DISTINCT spec) FROM retention WHERE app <> ''"), "1")
}

// TestApplyAlerts: channels and rules are applied together with the jobs, or not at all.
func TestApplyAlerts(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	want := func() job.Apply {
		return job.Apply{
			Channels: []job.AlertChannel{{Name: "hook", Type: job.ChannelWebhook, URL: "https://example.com/alerts"}},
			Rules:    []job.AlertRule{{Name: "ops", On: []job.AlertEvent{job.AlertFailed}, Channels: []string{"hook"}}},
			Jobs:     []job.Wanted{wanted(ofEvery("a", 3600))},
		}
	}
	actions := func(a job.Apply) string {
		t.Helper()
		done := p.applies(a)
		return fmt.Sprint(done.Channels[0].Action, done.Rules[0].Action, done.Jobs[0].Action)
	}
	for name, test := range map[string]struct {
		change      func(*job.Apply)
		field, want string
	}{
		"no such channel":     {func(a *job.Apply) { a.Rules[0].Channels = []string{"hook", "chat"} }, "rules[0].channels[1]", "no channel"},
		"no such secret":      {func(a *job.Apply) { a.Channels[0].Sign = "{{secret.nothing}}" }, "channels[0].sign", "no secret"},
		"to a heartbeat":      {func(a *job.Apply) { a.Channels[0].Type = job.ChannelHeartbeat }, "rules[0].channels[0]", "heartbeat"},
		"a job that is wrong": {func(a *job.Apply) { a.Jobs[0].Group = "none" }, "jobs[0].group", "no group"},
	} {
		a := want()
		test.change(&a)
		_, err := p.Apply(p.ctx, a)
		var problems job.Problems
		if !errors.As(err, &problems) || problems[0].Field != test.field || !strings.Contains(problems[0].Message, test.want) {
			t.Errorf("%s: got %v, want %s: …%s…", name, err, test.field, test.want)
		}
	}
	c.want("channels, rules and jobs",
		c.rows("SELECT (SELECT COUNT(*) FROM alert_channel) + (SELECT COUNT(*) FROM alert_rule) + (SELECT COUNT(*) FROM job)"), "0")

	if got := actions(want()); got != "createdcreatedcreated" {
		t.Errorf("got %s", got)
	}
	if got := actions(want()); got != "unchangedunchangedunchanged" {
		t.Errorf("the same again: got %s", got)
	}
	changed := want()
	changed.Rules[0].Severity = "critical"
	if got := actions(changed); got != "unchangedupdatedunchanged" {
		t.Errorf("a change: got %s", got)
	}
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE kind IN ('alert_rule', 'alert_channel') AND became <> ''"), "3")
	c.want("the rule's version", c.rows("SELECT version FROM alert_rule"), "2")
}

// copyOf is a node's copy of the folder /jobs, which holds one job.
func copyOf(node, version string) job.Apply {
	j := wanted(ofEvery("j", 3600))
	j.Owner = version
	return job.Apply{Jobs: []job.Wanted{j}, Folder: &job.Folder{Name: "/jobs", Node: node, Digest: strings.Repeat(version, job.DigestSize)}}
}

// follows does the work of a node whose copy has changed: it applies the copy and records the
// result.
func (p *person) follows(node, version string) string {
	p.Helper()
	want := copyOf(node, version)
	done, err := p.Apply(p.ctx, want)
	n := job.FolderNode{Node: node, Digest: want.Folder.Digest, State: job.FolderApplied}
	out, _, _ := strings.Cut(told(done), " owner")
	switch {
	case errors.Is(err, job.ErrBehind):
		n.State, out = job.FolderBehind, "behind"
	case err != nil:
		p.Fatal(err)
	}
	if err := p.NoteFolder(p.ctx, "/jobs", n); err != nil {
		p.Fatal(err)
	}
	return out
}

// TestForgetFolders: a node forgets the folders that it no longer follows, and no other node does.
func TestForgetFolders(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	for _, f := range []struct{ name, node string }{{"/old", "a"}, {"/old", "b"}, {"/new", "a"}} {
		if err := p.NoteFolder(p.ctx, f.name, job.FolderNode{Node: f.node, State: job.FolderRefused}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		folder string
		want   []string
	}{{"/new", []string{"/new a", "/old b"}}, {"", []string{"/old b"}}} {
		if err := p.ForgetFolders(p.ctx, "a", step.folder); err != nil {
			t.Fatal(err)
		}
		c.want("left when a follows "+step.folder, c.rows(`SELECT CONCAT_WS(' ', f.name, n.node) FROM folder_node n
			JOIN folder f ON f.id = n.folder_id ORDER BY 1`), step.want...)
	}
}

// TestFolderOfTwoNodes: a copy that was never applied is ahead. A copy that was applied before is
// outdated, unless its folder held the applied version.
func TestFolderOfTwoNodes(t *testing.T) {
	c := newCluster(t)
	p := c.person(c.dsn)
	for i, node := range []string{"a", "b"} {
		c.exec("INSERT INTO session (id, node, started, beat_at) VALUES (?, ?, 0, 0)", append(make([]byte, 15), byte(101+i)), node)
	}
	for i, step := range []struct{ node, version, want string }{
		{"a", "1", "created j"}, {"b", "1", ""}, {"a", "2", "updated j"}, {"b", "1", "behind"}, {"b", "2", ""}, {"b", "1", "updated j"}, {"a", "2", "behind"},
	} {
		if got := p.at(float64(i)).follows(step.node, step.version); got != step.want {
			t.Errorf("step %d, %s has %s: got %q, want %q", i, step.node, step.version, got, step.want)
		}
	}
	c.want("applied", c.rows("SELECT CONCAT_WS(' ', name, LEFT(digest, 1), node) FROM folder"), "/jobs 1 b")
	c.want("lines of the audit", c.rows("SELECT COUNT(*) FROM audit WHERE kind = 'folder'"), "3")
	if _, err := p.Apply(context.Background(), job.Apply{Folder: &job.Folder{Name: "/jobs", Node: "b", Digest: copyOf("b", "1").Folder.Digest}}); err != nil {
		t.Errorf("what is applied: %v", err)
	}
}
