package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/testdb"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/go-cmp/cmp"
)

// wanted is a job that runs true.
func wanted(spec job.Spec) job.Wanted {
	if spec.Command == "" {
		spec.Command = "true"
	}
	return job.Wanted{Spec: spec}
}

func (w wantedList) paused(at int, paused bool) wantedList {
	out := slices.Clone(w)
	out[at].Paused = &paused
	return out
}

type wantedList []job.Wanted

func (f *fixture) apply(want job.Apply) job.Applied {
	f.Helper()
	out, err := f.editor.Apply(f.Context(), want)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// said is what was done, in short.
func said(a job.Applied) string {
	var out []string
	for _, list := range [][]job.AppliedObject{a.Groups, a.Calendars} {
		for _, o := range list {
			out = append(out, string(o.Action)+" "+o.Name+fields(o.Changes))
		}
	}
	for _, j := range a.Jobs {
		out = append(out, string(j.Action)+" "+j.Job.Spec.Name+fields(j.Changes))
	}
	return strings.Join(out, "; ")
}

func fields(changes []job.Change) (out string) {
	if len(changes) > 4 { // of a new one
		return ""
	}
	for _, c := range changes {
		out += fmt.Sprintf(" %s:%s>%s", c.Field, c.Was, c.Becomes)
	}
	return out
}

// rows counts what an Apply may write.
func (f *fixture) rows() (out string) {
	f.Helper()
	for _, table := range []string{"job", "task", "history", "audit", "grp", "calendar", "job_ref", "place"} {
		out += fmt.Sprint(f.number("SELECT COUNT(*) FROM "+table), " ")
	}
	return out + fmt.Sprint(f.number("SELECT COALESCE(SUM(version), 0) FROM job"))
}

func TestApply(t *testing.T) {
	f := setUp(t)
	old := f.create(every("old", time.Minute, time.Second))
	edited := f.create(every("edited", 10*time.Second, 5*time.Second))
	f.create(job.Spec{App: "other", Name: "other", Every: job.Duration(time.Hour)})
	inGroup := every("new", 20*time.Second, 10*time.Second)
	inGroup.Group, inGroup.Calendars, inGroup.Selector = "g", []string{"c"}, "zone=a"
	change := every("edited", 15*time.Second, 5*time.Second)
	want := job.Apply{
		Groups:    []job.GroupSpec{{Name: "g", Slots: 2}},
		Calendars: []job.CalendarSpec{closing("c", 0)},
		Jobs:      []job.Wanted{wanted(inGroup), wanted(change)},
		Prune:     &job.Prune{App: "default"},
	}
	before := f.rows()
	dry := want
	dry.DryRun = true
	if got := said(f.apply(dry)); !strings.HasPrefix(got, "created g slots:>2; created c") || !strings.HasSuffix(got, `created new; updated edited every:"10s">"15s"; deleted old`) {
		t.Errorf("dry run: got %s", got)
	}
	if got := f.rows(); got != before {
		t.Errorf("a dry run has written: got rows %s, want %s", got, before)
	}
	out := f.apply(want)
	if got := said(out); !strings.HasSuffix(got, `created new; updated edited every:"10s">"15s"; deleted old`) {
		t.Errorf("got %s", got)
	}
	made := out.Jobs[0].Job
	f.wantDues("the new one, whose calendar closes the first minute", made.ID)
	f.want("its cursor", int64(after(70*time.Second)), "SELECT next_due FROM job WHERE id = ?", made.ID)
	f.wantDues("the edited one", edited.ID, 5, 20, 35)
	f.wantDues("the deleted one", old.ID)
	f.want("deleted ones", 1, "SELECT COUNT(*) FROM job WHERE living IS NULL AND id = ?", old.ID)
	f.want("references", 2, "SELECT COUNT(*) FROM job_ref WHERE job_id = ?", made.ID)
	f.want("its place", 1, "SELECT COUNT(*) FROM job j JOIN place p ON p.id = j.place WHERE j.id = ? AND p.selector = 'zone=a'", made.ID)
	f.wantAudit("of it all", "anonymous create job default/old", "anonymous create job default/edited", "anonymous create job other/other",
		"anonymous create calendar /c", "anonymous create group /g", "anonymous delete job default/old", "anonymous update job default/edited", "anonymous create job default/new")

	before = f.rows()
	if got := said(f.apply(want)); got != "unchanged g; unchanged c; unchanged new; unchanged edited" {
		t.Errorf("again: got %s", got)
	}
	if got := f.rows(); got != before {
		t.Errorf("what is there was written again: got rows %s, want %s", got, before)
	}
}

func TestApplyChangesOneOfMany(t *testing.T) {
	f := setUp(t)
	plain := wantedList{wanted(job.Spec{Name: "a", Every: job.Duration(time.Minute)}), wanted(job.Spec{Name: "b", Schedule: "@daily", MaxFires: 3}),
		wanted(at("c", after(time.Hour)))}
	for i, step := range []struct {
		jobs wantedList
		want string
	}{
		{plain, "created a; created b; created c"},
		{plain, "unchanged a; unchanged b; unchanged c"}, // also what begins when it was created
		{plain.paused(1, true), "unchanged a; updated b paused:false>true; unchanged c"},
		{plain, "unchanged a; unchanged b; unchanged c"}, // a pause that is not mentioned stays
		{plain.paused(1, false), "unchanged a; updated b paused:true>false; unchanged c"},
		{plain.paused(0, false), "unchanged a; unchanged b; unchanged c"},
		{wantedList{plain[2]}, "unchanged c"},
	} {
		f.session.set(after(time.Duration(i) * time.Second))
		if got := said(f.apply(job.Apply{Jobs: step.jobs})); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
	f.want("versions", 5, "SELECT SUM(version) FROM job")
	offset := plain[2]
	elsewhere := offset.At.In(time.FixedZone("", 3600))
	offset.At = &elsewhere
	if got := said(f.apply(job.Apply{Jobs: []job.Wanted{offset}})); got != "unchanged c" {
		t.Errorf("the same instant with another offset: got %s", got)
	}
	f.exec("UPDATE job SET error = 'x', next_due = NULL WHERE name = 'a'")
	if got := said(f.apply(job.Apply{Jobs: plain[:1]})); got != "updated a" {
		t.Errorf("one in error: got %s", got)
	}
	f.want("errors", 0, "SELECT COUNT(*) FROM job WHERE error <> '' OR name = 'a' AND next_due IS NULL")
	f.exec("UPDATE job SET spec = '{\"of\": \"a newer version\"}' WHERE name = 'a'")
	if got := said(f.apply(job.Apply{Jobs: plain[:1]})); got != "updated a" {
		t.Errorf("one that cannot be read: got %s", got)
	}
}

// TestApplyOfAnInstantLongPast: files keep jobs whose single due time is over. Where such a job is new it is made, as with
// the others of its file, and not run.
func TestApplyOfAnInstantLongPast(t *testing.T) {
	f := setUp(t)
	files := job.Apply{Jobs: []job.Wanted{wanted(at("past", after(-2*time.Hour))), wanted(at("young", after(-2*time.Minute)))}}
	dry := files
	dry.DryRun = true
	for _, want := range []job.Apply{dry, files} {
		out := f.apply(want)
		if got := said(out); got != "created past; created young" {
			t.Errorf("got %s", got)
		}
		if w := out.Jobs[0].Warnings; len(w) != 1 || !strings.HasSuffix(w[0], "starts at most 1h late (misfire.max_age), so it is not run") {
			t.Errorf("got warnings %q", w)
		}
		if w := out.Jobs[1].Warnings; len(w) != 0 {
			t.Errorf("got warnings %q of one that is started at once", w)
		}
	}
	id := func(name string) (id int64) {
		if err := f.beside.Raw().QueryRow("SELECT id FROM job WHERE name = ?", name).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	f.wantDues("long past", id("past"))
	f.wantRuns("long past", id("past"), "missed -7200..-7200×1 nobody could start it within 1m")
	f.wantDues("just past", id("young"), -120)

	f.session.set(after(100 * time.Hour))
	out := f.apply(files)
	if got := said(out); got != "unchanged past; unchanged young" || len(out.Jobs[0].Warnings) != 0 {
		t.Errorf("again: got %s, warnings %q", got, out.Jobs[0].Warnings)
	}
}

func TestApplyIsAllOrNothing(t *testing.T) {
	f := setUp(t)
	j := f.create(every("there", time.Hour, time.Hour))
	f.update(j, func(s *job.Spec) { s.Owner = "me" })
	version := func(v int64, spec job.Spec) job.Wanted { w := wanted(spec); w.Version = &v; return w }
	good := wanted(every("good", time.Hour, time.Hour))
	bad := func(change func(*job.Spec)) job.Apply {
		s := every("bad", time.Hour, time.Hour)
		change(&s)
		return job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 1}}, Calendars: []job.CalendarSpec{closing("c")}, Jobs: []job.Wanted{good, wanted(s)}}
	}
	before := f.rows()
	for name, c := range map[string]struct {
		want   job.Apply
		fields string
	}{
		"a bad cron expression":      {bad(func(s *job.Spec) { s.Every, s.Start, s.Schedule = 0, nil, "61 * * * *" }), "jobs[1].schedule"},
		"no command, a bad priority": {bad(func(s *job.Spec) { s.Command, s.Priority = " ", 1000 }), "jobs[1].command jobs[1].priority"},
		"no such group":              {bad(func(s *job.Spec) { s.Group = "nix" }), "jobs[1].group"},
		"no such calendar":           {bad(func(s *job.Spec) { s.Calendars = []string{"c", "nix"} }), "jobs[1].calendars[1]"},
		"the same job twice":         {bad(func(s *job.Spec) { s.Name, s.App = "good", "default" }), "jobs[1].name"},
		"the same group twice":       {job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 1}, {Name: "g", Slots: 2}}}, "groups[1].name"},
		"a group without slots":      {job.Apply{Groups: []job.GroupSpec{{Name: "g"}}, Jobs: []job.Wanted{good}}, "groups[0].slots"},
		"a bad calendar":             {job.Apply{Calendars: []job.CalendarSpec{{Name: "c", ExcludeWeekdays: []string{"x"}}}, Jobs: []job.Wanted{good}}, "calendars[0].exclude_weekdays[0]"},
		"prune of nothing":           {job.Apply{Jobs: []job.Wanted{good}, Prune: &job.Prune{}}, "prune"},
		"prune of two things":        {job.Apply{Jobs: []job.Wanted{good}, Prune: &job.Prune{App: "a", Labels: map[string]string{"a": "b"}}}, "prune"},
		"too much":                   {job.Apply{Jobs: make([]job.Wanted, job.MaxApplyJobs+1)}, "jobs"},
		"an end before the start":    {bad(func(s *job.Spec) { s.End = s.Start; e := s.Start.Add(-time.Minute); s.End = &e }), "jobs[1].end"},
	} {
		_, err := f.editor.Apply(t.Context(), c.want)
		var p job.Problems
		var got []string
		if errors.As(err, &p) {
			for _, q := range p {
				got = append(got, q.Field)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.fields {
			t.Errorf("%s: got %v, want problems of %s", name, err, c.fields)
		}
	}
	for name, w := range map[string]job.Wanted{
		"at another version": version(1, every("there", time.Minute, time.Hour)),
		"must not be there":  version(0, every("there", time.Hour, time.Hour)),
		"is gone":            version(3, every("gone", time.Hour, time.Hour)),
	} {
		_, err := f.editor.Apply(t.Context(), job.Apply{Jobs: []job.Wanted{good, w}})
		var c job.Conflicts
		if !errors.As(err, &c) || len(c) != 1 || c[0].Field != "jobs[1].version" {
			t.Errorf("%s: got %v, want a conflict", name, err)
		}
	}
	if got := f.rows(); got != before {
		t.Errorf("got rows %s, want %s", got, before)
	}
	if got := said(f.apply(job.Apply{Jobs: []job.Wanted{version(0, every("new", time.Hour, time.Hour)), version(2, every("there", time.Hour, time.Hour))}})); got != `created new; updated there owner:"me">` {
		t.Errorf("at the right versions: got %s", got)
	}
}

func TestApplyPrunes(t *testing.T) {
	f := setUp(t)
	add := func(app, name, team string) {
		f.create(job.Spec{App: app, Name: name, Every: job.Duration(time.Hour), Labels: map[string]string{"team": team, "x": name}})
	}
	for _, name := range []string{"one", "two", "three"} {
		add("a", name, "red")
		add("b", name, "blue")
		add("c", name, "red")
	}
	keep := wanted(job.Spec{App: "a", Name: "two", Every: job.Duration(time.Hour), Labels: map[string]string{"team": "red", "x": "two"}})
	for _, c := range []struct {
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
		if got := said(f.apply(job.Apply{Jobs: []job.Wanted{keep}, Prune: &c.prune})); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	f.want("left", 4, "SELECT COUNT(*) FROM job WHERE living = 1")
}

// TestApplyFates loses the COMMIT: all of it stands, once.
func TestApplyFates(t *testing.T) {
	f := setUp(t)
	for name, fate := range map[string]faultproxy.Action{"never arrives": faultproxy.CutBefore(), "reply lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			f := f.anew(t)
			f.create(every("edited", 10*time.Second, 5*time.Second))
			f.create(every("gone", 10*time.Second, 5*time.Second))
			rule := f.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("INSERT INTO audit"), Action: fate})
			want := job.Apply{
				Groups: []job.GroupSpec{{Name: "g", Slots: 1}},
				Jobs:   []job.Wanted{wanted(every("new", time.Minute, time.Second)), wanted(every("edited", 10*time.Second, 6*time.Second))},
				Prune:  &job.Prune{App: "default"},
			}
			out := f.apply(want)
			if rule.Fired() != 1 {
				t.Errorf("injected %d times", rule.Fired())
			}
			f.wantDues("new", out.Jobs[0].Job.ID, 1)
			f.wantDues("edited", out.Jobs[1].Job.ID, 6, 16, 26, 36)
			f.want("living", 2, "SELECT COUNT(*) FROM job WHERE living = 1")
			f.want("lines of the audit", 6, "SELECT COUNT(*) FROM audit WHERE action <> 'void'")
			f.want("version", 2, "SELECT version FROM job WHERE name = 'edited'")
			if got := said(f.apply(want)); got != "unchanged g; unchanged new; unchanged edited" {
				t.Errorf("again: got %s", got)
			}
		})
	}
}

// TestApplyLooksAgain has others change the same between the look and the transaction.
func TestApplyLooksAgain(t *testing.T) {
	f := setUp(t)
	other := node(t, f.dsn, 2)
	j := f.create(every("edited", 10*time.Second, 5*time.Second))
	f.apply(job.Apply{Groups: []job.GroupSpec{{Name: "g", Slots: 1}}, Calendars: []job.CalendarSpec{closing("c")}})
	want := job.Apply{
		Groups:    []job.GroupSpec{{Name: "g", Slots: 5}},
		Calendars: []job.CalendarSpec{closing("c", 0)},
		Jobs:      []job.Wanted{wanted(every("edited", 10*time.Second, 6*time.Second)), wanted(every("new", time.Hour, time.Hour))},
	}
	begun := 0
	var once sync.Mutex
	f.proxy.OnCommand(func(c faultproxy.Command) {
		if !strings.Contains(c.SQL, "FROM pause ORDER BY app LOCK IN SHARE MODE") {
			return
		}
		once.Lock()
		defer once.Unlock()
		var err error
		switch begun++; begun {
		case 1:
			_, err = other.editor.Create(t.Context(), want.Jobs[1].Spec, false)
		case 2:
			spec := j.Spec
			spec.Owner = "other"
			_, err = other.editor.Update(t.Context(), j.ID, 1, spec)
		case 3:
			_, err = other.editor.PutGroup(t.Context(), "g", 3)
		case 4:
			_, err = other.editor.PutCalendar(t.Context(), closing("c", 2), AnyVersion)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if got := said(f.apply(want)); !strings.HasPrefix(got, "updated g slots:3>5; updated c") || !strings.HasSuffix(got, `unchanged new`) || !strings.Contains(got, `updated edited owner:"other">`) || begun != 5 {
		t.Errorf("got %s after %d tries", got, begun)
	}
	f.want("jobs", 2, "SELECT COUNT(*) FROM job")
	f.want("version", 3, "SELECT version FROM job WHERE name = 'edited'")
}

// TestAppliesAtOnce: of several who apply the same at the same time each gets it, and it is there once.
func TestAppliesAtOnce(t *testing.T) {
	f := setUp(t)
	nodes := []*fixture{f, node(t, f.dsn, 2), node(t, f.dsn, 3)}
	for round := range 3 {
		var want job.Apply
		for i := range 40 {
			want.Jobs = append(want.Jobs, wanted(every(fmt.Sprintf("j%02d", i), time.Duration(round+1)*time.Hour, time.Hour)))
		}
		var all sync.WaitGroup
		for i, n := range nodes {
			all.Go(func() {
				mine := job.Apply{Jobs: slices.Clone(want.Jobs)}
				if i == 1 {
					slices.Reverse(mine.Jobs)
				}
				if _, err := n.editor.Apply(t.Context(), mine); err != nil {
					t.Errorf("round %d: node %d: %v", round, i, err)
				}
			})
		}
		all.Wait()
		f.want("jobs", 40, "SELECT COUNT(*) FROM job")
		f.want("versions", int64(40*(round+1)), "SELECT SUM(version) FROM job")
	}
}

// TestApplyAnswerWaits: it is not answered while an attempt may begin as it was.
func TestApplyAnswerWaits(t *testing.T) {
	f := setUp(t)
	f.create(every("j", 10*time.Second, time.Second))
	f.reach(after(time.Second))
	for i, want := range []job.Apply{
		{Jobs: []job.Wanted{wanted(every("j", 20*time.Second, time.Second))}},
		{Jobs: []job.Wanted{wanted(every("j", 20*time.Second, time.Second))}}, // who asks again is not answered before
		{Prune: &job.Prune{App: "default"}},
	} {
		begin := time.Now()
		f.apply(want)
		if waited := time.Since(begin); waited < 900*time.Millisecond {
			t.Errorf("apply %d: answered after %s, in the spawn window", i, waited)
		}
	}
}

// TestApplyOfMany: a thousand jobs, most of them due every second, in one transaction.
func TestApplyOfMany(t *testing.T) {
	f := setUp(t)
	var want job.Apply
	for i := range job.MaxApplyJobs {
		want.Jobs = append(want.Jobs, wanted(every(fmt.Sprintf("j%d", i), time.Second, time.Second)))
	}
	measure := func(what string) {
		t.Helper()
		begin := time.Now()
		f.apply(want)
		t.Logf("%s: %s", what, time.Since(begin).Round(time.Millisecond))
	}
	measure("create")
	f.want("jobs", job.MaxApplyJobs, "SELECT COUNT(*) FROM job")
	f.want("jobs without a due time soon", 0, "SELECT COUNT(*) FROM job WHERE NOT EXISTS (SELECT 1 FROM task WHERE job_id = job.id AND due <= ?)", int64(after(2*time.Second)))
	if n := f.number("SELECT COUNT(*) FROM task"); n > 7*planRows {
		t.Errorf("got %d tasks", n)
	}
	// The planner goes on where it was left.
	for range 50 {
		if _, err := f.planner.plan(t.Context(), t0); err != nil {
			t.Fatal(err)
		}
	}
	f.want("jobs that are not planned ahead", 0, "SELECT COUNT(*) FROM job WHERE next_due < ?", int64(after(planWindow)))
	f.want("holes", 0, "SELECT COUNT(*) FROM (SELECT job_id, COUNT(*) n, MAX(due) - MIN(due) span FROM task GROUP BY job_id) x WHERE span <> (n - 1) * 1000000")
	measure("nothing")
	for i := range want.Jobs {
		want.Jobs[i].Owner = "new"
	}
	measure("change")
	f.want("versions", 2*job.MaxApplyJobs, "SELECT SUM(version) FROM job")
	want = job.Apply{Prune: &job.Prune{App: "default"}}
	measure("delete")
	f.want("jobs", 0, "SELECT COUNT(*) FROM job WHERE living = 1")
	f.want("tasks", 0, "SELECT COUNT(*) FROM task")
}

// TestApplyIsAsOneByOne holds a story of random changes, each made by one Apply, against the same story in which each
// object is changed by itself.
func TestApplyIsAsOneByOne(t *testing.T) {
	f, g := setUp(t), alone(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f, g := f.anew(t), g.anew(t)
			r := rand.New(rand.NewPCG(seed, 7))
			now := t0
			for step := range 8 {
				want := randomApply(r)
				for _, x := range []*fixture{f, g} {
					x.session.set(now)
				}
				f.apply(want)
				g.oneByOne(want)
				if a, b := f.dump(), g.dump(); !slices.Equal(a, b) {
					t.Fatalf("step %d at %s: %+v\nby one Apply (-), one by one (+):\n%s", step, now, want, cmp.Diff(a, b))
				}
				now = now.Add(time.Duration(r.IntN(30_000)) * time.Millisecond)
				for _, x := range []*fixture{f, g} {
					x.session.set(now)
					x.reach(now)
					x.session.set(now.Add(3 * time.Second)) // nothing can be spawned any more
					x.finish()
				}
				now = now.Add(3 * time.Second)
			}
		})
	}
}

// alone is a fixture on a schema of its own.
func alone(t *testing.T) *fixture {
	t.Helper()
	dsn := testdb.DSN(t)
	migrator := open(t, dsn, sql.MigrateTimeouts)
	if _, _, err := migrator.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return node(t, dsn, 1)
}

func randomApply(r *rand.Rand) job.Apply {
	var a job.Apply
	a.Groups = []job.GroupSpec{{Name: "g", Slots: 1 + r.IntN(2)}}
	a.Calendars = []job.CalendarSpec{closing("c", r.IntN(3)), closing("d")}
	for i := range 5 {
		if r.IntN(4) == 0 {
			continue
		}
		s := every(fmt.Sprintf("j%d", i), time.Duration(1+r.IntN(3))*7*time.Second, time.Duration(r.IntN(60))*time.Second)
		switch r.IntN(6) {
		case 0:
			s.Group = "g"
		case 1:
			s.Calendars = []string{[]string{"c", "d"}[r.IntN(2)]}
		case 2:
			s = job.Spec{Name: s.Name, Schedule: fmt.Sprintf("*/%d * * * * *", 5+r.IntN(20)), MaxFires: int64(r.IntN(2) * 5)}
		case 3:
			s = at(s.Name, after(time.Duration(r.IntN(120))*time.Second))
		case 4:
			s.Misfire.Policy, s.Selector = job.MisfireSkip, []string{"", "zone=a"}[r.IntN(2)]
		}
		w := wanted(s)
		if n := r.IntN(4); n < 2 {
			paused := n == 0
			w.Paused = &paused
		}
		a.Jobs = append(a.Jobs, w)
	}
	if r.IntN(2) == 0 {
		a.Prune = &job.Prune{App: job.DefaultApp}
	}
	return a
}

// oneByOne makes the same changes each by itself.
func (f *fixture) oneByOne(want job.Apply) {
	f.Helper()
	ctx := f.Context()
	do := func(err error) {
		f.Helper()
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, c := range want.Calendars {
		_, err := f.editor.PutCalendar(ctx, c, AnyVersion)
		do(err)
	}
	for _, g := range want.Groups { // at last, if it is there: it wakes those for whom there is room then
		is, err := f.beside.GroupsNamed(ctx, []string{g.Name})
		do(err)
		put := func() {
			_, err := f.editor.PutGroup(ctx, g.Name, g.Slots)
			do(err)
		}
		switch is[g.Name].Slots {
		case 0:
			put()
		case g.Slots: // who puts the same wakes whom the sweeper would wake
		default:
			defer put()
		}
	}
	stay := map[string]bool{}
	for _, w := range want.Jobs {
		stay[w.Name] = true
		old, err := f.beside.JobNamed(ctx, job.DefaultApp, w.Name)
		if errors.Is(err, sql.ErrNotFound) {
			continue
		}
		do(err)
		j, spec := old.Job, w.Spec
		if w.Paused != nil && *w.Paused {
			j, err = f.editor.Pause(ctx, j.ID, job.PauseRequest{})
			do(err)
		}
		spec.KeepStart(&old.Spec)
		full := spec
		full.Defaults(f.session.Now().Time())
		if !full.Same(&old.Spec) {
			j, err = f.editor.Update(ctx, j.ID, j.Version, spec)
			do(err)
		}
		if w.Paused != nil && !*w.Paused {
			_, err = f.editor.Resume(ctx, j.ID)
			do(err)
		}
	}
	rows, err := f.beside.Jobs(ctx, sql.JobFilter{Limit: 100})
	do(err)
	for _, r := range rows {
		if want.Prune != nil && !stay[r.Spec.Name] {
			do(f.editor.Delete(ctx, r.ID))
		}
	}
	for _, w := range want.Jobs {
		if _, err := f.beside.JobNamed(ctx, job.DefaultApp, w.Name); errors.Is(err, sql.ErrNotFound) {
			_, err = f.editor.Create(ctx, w.Spec, w.Paused != nil && *w.Paused)
			do(err)
		}
	}
}

// dump is what the schema holds, but for ids and versions.
func (f *fixture) dump() (out []string) {
	f.Helper()
	for _, query := range []string{
		"SELECT CONCAT_WS(' ', 'job', name, COALESCE(living, 0), place, spec, paused, held, paused_at, COALESCE(next_due, 0), last_due, error, replan) FROM job ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'task', j.name, COALESCE(j.living, 0), t.due, t.origin, t.state, t.due_now, t.place, t.attempt) FROM task t JOIN job j ON j.id = t.job_id ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'run', j.name, COALESCE(j.living, 0), h.due, h.due_last, h.due_count, h.outcome, h.reason) FROM history h JOIN job j ON j.id = h.job_id ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'ref', r.kind, r.name, j.name) FROM job_ref r JOIN job j ON j.id = r.job_id ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'group', name, slots) FROM grp ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'calendar', name, version, spec) FROM calendar ORDER BY 1",
		"SELECT CONCAT_WS(' ', 'audit', action, kind, name, COALESCE(became, '')) FROM audit WHERE kind IN ('job', 'calendar') ORDER BY 1",
	} {
		rows, err := f.beside.Raw().Query(query)
		if err != nil {
			f.Fatalf("%s: %v", query, err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				f.Fatal(err)
			}
			out = append(out, line)
		}
		rows.Close()
	}
	return out
}
