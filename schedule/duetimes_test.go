package schedule

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"go-crontab/job"
	"go-crontab/sql"
)

// instants is a schedule that lists its due times, for comparison with naive counting.
type instants []job.Micros

func (s instants) Next(t time.Time) (time.Time, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].Time().After(t) })
	if i == len(s) {
		return time.Time{}, false
	}
	return s[i].Time(), true
}

func (s instants) Last(from, to time.Time) (time.Time, bool) {
	i := sort.Search(len(s), func(i int) bool { return s[i].Time().After(to) })
	if i == 0 || !s[i-1].Time().After(from) {
		return time.Time{}, false
	}
	return s[i-1].Time(), true
}

func (s instants) Count(from, to time.Time) (n int64) {
	for _, due := range s {
		if due.Time().After(from) && !due.Time().After(to) {
			n++
		}
	}
	return n
}

func (s instants) among(keep func(job.Micros) bool) (out []job.Micros) {
	for _, due := range s {
		if keep(due) {
			out = append(out, due)
		}
	}
	return out
}

// TestUntil holds planning against counting due times one by one.
func TestUntil(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		second := time.Second.Microseconds()
		spread := rapid.SampledFrom([]int64{5, 100, 4000}).Draw(t, "spread") // seconds on each side of t0
		sched := instants{}
		for _, s := range rapid.SliceOfNDistinct(rapid.Int64Range(-spread*4, spread*4), 0, 60, rapid.ID).Draw(t, "due") {
			sched = append(sched, t0+job.Micros(s*second/4))
		}
		if rapid.IntRange(0, 9).Draw(t, "crowd") == 0 { // more due times than are planned in one go
			for i := range int64(planMax + 100) {
				sched = append(sched, t0+job.Micros(-60*second+i*second/20)+1)
			}
		}
		slices.Sort(sched)
		j := &sql.JobRow{Job: job.Job{ID: 5, Hash: 9, Spec: job.Spec{Misfire: job.Misfire{
			Policy: rapid.SampledFrom([]job.MisfirePolicy{job.MisfireLatest, job.MisfireSkip}).Draw(t, "policy"),
			MaxAge: job.Duration(rapid.SampledFrom([]time.Duration{0, 10 * time.Second, 90 * time.Second, time.Hour}).Draw(t, "max age")),
		}}}}
		misfireAfter := rapid.SampledFrom([]time.Duration{0, job.MisfireAfter}).Draw(t, "misfire after")
		if len(sched) == 0 {
			return
		}
		cursor := rapid.SampledFrom(sched).Draw(t, "cursor")
		horizon := after(planHorizon)
		got := until(j, sched, cursor, t0, horizon, misfireAfter)

		oldest := t0.Add(-misfireAfter)
		past := sched.among(func(due job.Micros) bool { return cursor <= due && due <= oldest && cursor < oldest })
		ahead := sched.among(func(due job.Micros) bool { return cursor <= due && (due > oldest || cursor >= oldest) })
		var want dueTimes
		if n := len(past); n > 0 {
			latest := past[n-1]
			passed := sched.among(func(due job.Micros) bool { return latest < due && due <= t0 })
			age := t0.Sub(latest)
			if late := j.Spec.Misfire; late.Policy == job.MisfireLatest && len(passed) == 0 && (late.MaxAge == 0 || age <= time.Duration(late.MaxAge)) {
				want.tasks = append(want.tasks, job.Task{JobID: 5, Hash: 9, Due: latest, DueNow: latest})
				past = past[:n-1]
			}
		}
		if n := len(past); n > 0 {
			want.last = past[n-1]
			want.missed = &job.Run{
				JobID: 5, Due: past[0], Until: want.last, Count: int64(n), Attempt: 1, Final: true, Ended: t0,
				Result: job.Result{Outcome: job.Missed, Reason: fmt.Sprintf("nobody could start it within %s", job.Duration(misfireAfter))},
			}
		}
		for _, due := range ahead {
			if due > horizon || len(want.tasks) == planMax {
				want.next = due
				break
			}
			want.tasks = append(want.tasks, job.Task{JobID: 5, Hash: 9, Due: due, DueNow: due})
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(dueTimes{})); d != "" {
			t.Fatalf("cursor %s, got (+) is not what counting says (-):\n%s", cursor, d)
		}
	})
}

// TestUntilLosesNothing plans again and again as time goes on, with pauses of all lengths: each due time is planned or
// counted as missed once, in order, and nothing else is.
func TestUntilLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sched job.Schedule
		spec := job.Spec{App: "a", Name: "n", Command: "true", Timezone: "Europe/Berlin"}
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			spec = every("n", time.Duration(rapid.Int64Range(50, 90_000).Draw(t, "interval ms"))*time.Millisecond, time.Duration(rapid.Int64Range(0, 60).Draw(t, "first"))*time.Second)
			spec.Command = "true"
		case 1:
			spec.Schedule = rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "*/13 * * * * *", "0 */2 * * *"}).Draw(t, "cron")
		case 2:
			spec = at("n", t0.Add(time.Duration(rapid.Int64Range(0, 600).Draw(t, "at"))*time.Second))
			spec.Command = "true"
		}
		spec.Defaults(t0.Time())
		spec.Misfire.Policy = rapid.SampledFrom([]job.MisfirePolicy{job.MisfireLatest, job.MisfireSkip}).Draw(t, "policy")
		sched, err := spec.Compile()
		if err != nil {
			t.Fatal(err)
		}
		j := &sql.JobRow{Job: job.Job{Spec: spec}}
		now, cursor, last, total := t0, firstAfter(sched, t0-1), t0-1, int64(0)
		account := func(from, to job.Micros, n int64) {
			if from <= last {
				t.Fatalf("due time %s comes after %s", from, last)
			}
			if want := sched.Count(last.Time(), to.Time()); n != want {
				t.Fatalf("from behind %s to %s: got %d due times, want %d", last, to, n, want)
			}
			last, total = to, total+n
		}
		for range rapid.IntRange(1, 12).Draw(t, "looks") {
			if cursor == 0 {
				break
			}
			d := until(j, sched, cursor, now, now.Add(planHorizon), job.MisfireAfter)
			if d.missed != nil {
				account(d.missed.Due, d.missed.Until, d.missed.Count)
			}
			for _, task := range d.tasks {
				account(task.Due, task.Due, 1)
			}
			if d.next != 0 && d.next <= last {
				t.Fatalf("got cursor %s behind due time %s", d.next, last)
			}
			cursor = d.next
			now = now.Add(time.Duration(rapid.SampledFrom([]int64{1, 20, 59, 61, 150, 4000, 100_000}).Draw(t, "pause")) * time.Second)
		}
		if cursor == 0 && total != sched.Count((t0-1).Time(), now.Add(time.Hour).Time()) {
			t.Fatalf("%d due times came of a schedule that has others left", total)
		}
	})
}

func TestStartsLate(t *testing.T) {
	t.Parallel()
	hourly, err := job.NewEvery(time.Hour, t0.Time())
	if err != nil {
		t.Fatal(err)
	}
	once := job.NewAt(t0.Time())
	for name, c := range map[string]struct {
		misfire job.Misfire
		sched   job.Schedule
		late    time.Duration
		want    bool
	}{
		"the latest one, in time":                   {job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(10 * time.Minute)}, hourly, 9 * time.Minute, true},
		"as old as it may be":                       {job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(10 * time.Minute)}, hourly, 10 * time.Minute, true},
		"a moment too old":                          {job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(10 * time.Minute)}, hourly, 10*time.Minute + time.Microsecond, false},
		"no bound on its age":                       {job.Misfire{Policy: job.MisfireLatest}, hourly, 59 * time.Minute, true},
		"the next one is due now":                   {job.Misfire{Policy: job.MisfireLatest}, hourly, time.Hour, false},
		"just before the next one":                  {job.Misfire{Policy: job.MisfireLatest}, hourly, time.Hour - time.Microsecond, true},
		"policy skip":                               {job.Misfire{Policy: job.MisfireSkip}, hourly, time.Minute, false},
		"a single instant, ages ago":                {job.Misfire{Policy: job.MisfireLatest}, once, 10_000 * time.Hour, true},
		"a single instant that is bounded":          {job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(time.Hour)}, once, 2 * time.Hour, false},
		"a single instant with policy skip":         {job.Misfire{Policy: job.MisfireSkip}, once, 2 * time.Minute, false},
		"policy all, the latest of so many":         {job.Misfire{Policy: job.MisfireAll, MaxCount: 2}, hourly, 2*time.Hour + time.Minute - time.Microsecond, true},
		"policy all, behind so many":                {job.Misfire{Policy: job.MisfireAll, MaxCount: 2}, hourly, 2*time.Hour + time.Minute, false},
		"a definition that a hand wrote: no policy": {job.Misfire{}, hourly, time.Minute, false},
	} {
		if got := startsLate(&job.Spec{Misfire: c.misfire}, c.sched, t0, after(c.late)); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestUntilTable says in numbers what planning comes to.
func TestUntilTable(t *testing.T) {
	t.Parallel()
	latest := job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(time.Hour)}
	seconds := func(interval, first time.Duration) job.Schedule {
		e, err := job.NewEvery(interval, after(first).Time())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for name, c := range map[string]struct {
		misfire job.Misfire
		sched   job.Schedule
		want    string // tasks, missed as from..until×count, next; seconds after t0
	}{
		"up to the horizon":                            {latest, seconds(15*time.Second, 5*time.Second), "[5 20 35] next 50"},
		"the horizon counts":                           {latest, seconds(20*time.Second, 0), "[0 20 40] next 60"},
		"far away":                                     {latest, seconds(time.Hour, time.Hour), "[] next 3600"},
		"late, and not yet misfired":                   {latest, seconds(time.Hour, -59*time.Second), "[-59] next 3541"},
		"misfired just now, and started still":         {latest, seconds(time.Hour, -60*time.Second-time.Microsecond), "[-60.000001] next 3539.999999"},
		"misfired, with policy skip":                   {job.Misfire{Policy: job.MisfireSkip}, seconds(time.Hour, -61*time.Second), "[] missed -61..-61×1 next 3539"},
		"several, the latest started still":            {latest, seconds(20*time.Minute, -59*time.Minute), "[-1140] missed -3540..-2340×2 next 60"},
		"several, the latest too old":                  {job.Misfire{Policy: job.MisfireLatest, MaxAge: job.Duration(time.Minute)}, seconds(20*time.Minute, -59*time.Minute), "[] missed -3540..-1140×3 next 60"},
		"every second for an hour":                     {latest, seconds(time.Second, -time.Hour), "100 tasks from -59 missed -3600..-60×3541 next 41"},
		"a single instant, long ago":                   {job.Misfire{Policy: job.MisfireLatest}, job.NewAt(after(-48 * time.Hour).Time()), "[-172800] next -"},
		"a single instant, long ago, with policy skip": {job.Misfire{Policy: job.MisfireSkip}, job.NewAt(after(-48 * time.Hour).Time()), "[] missed -172800..-172800×1 next -"},
		"a single instant, soon":                       {latest, job.NewAt(after(300 * time.Millisecond).Time()), "[0.3] next -"},
		"a single instant, next year":                  {latest, job.NewAt(after(8760 * time.Hour).Time()), "[] next 31536000"},
		"more than are planned in one go":              {latest, seconds(10*time.Millisecond, 0), "1000 tasks from 0 next 10"},
		"an end":                                       {latest, job.Bounded{Schedule: seconds(10*time.Second, 0), First: t0.Time(), End: after(25 * time.Second).Time()}, "[0 10 20] next -"},
	} {
		first, _ := c.sched.Next(after(-10_000 * time.Hour).Time())
		d := until(&sql.JobRow{Job: job.Job{Spec: job.Spec{Misfire: c.misfire}}}, c.sched, job.MicrosOf(first), t0, after(planHorizon), job.MisfireAfter)
		if got := d.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func (d dueTimes) String() string {
	s := func(at job.Micros) string {
		if at == 0 {
			return "-"
		}
		return fmt.Sprintf("%.10g", at.Sub(t0).Seconds())
	}
	var out []string
	for _, t := range d.tasks {
		out = append(out, s(t.Due))
	}
	text := fmt.Sprint(out)
	if n := len(out); n > 10 {
		text = fmt.Sprintf("%d tasks from %s", n, out[0])
	}
	if d.missed != nil {
		text += fmt.Sprintf(" missed %s..%s×%d", s(d.missed.Due), s(d.missed.Until), d.missed.Count)
	}
	return text + " next " + s(d.next)
}

// TestCompile: whatever a stored definition holds comes to a schedule or an error, and what is remembered is what the
// definition says.
func TestCompile(t *testing.T) {
	t.Parallel()
	row := func(spec job.Spec) *sql.JobRow { return &sql.JobRow{Job: job.Job{Spec: spec}} }
	next := func(spec job.Spec) string {
		s, err := compile(row(spec))
		if err != nil {
			t.Fatal(err)
		}
		return firstAfter(s, t0).Time().Format(time.RFC3339)
	}
	daily := job.Spec{Schedule: "30 3 * * *", Timezone: "UTC"}
	for range 2 { // the second time from memory
		if got := next(daily); got != "2027-01-16T03:30:00Z" {
			t.Errorf("in UTC: got %s", got)
		}
		daily.Timezone = "Asia/Tokyo"
		if got := next(daily); got != "2027-01-15T18:30:00Z" {
			t.Errorf("in Tokyo: got %s", got)
		}
		bounded := daily
		start := after(100 * time.Hour).Time()
		bounded.Start = &start
		if got := next(bounded); got != "2027-01-19T18:30:00Z" {
			t.Errorf("with a start: got %s", got)
		}
		few := daily
		few.MaxFires = 1 // since 1970, in a row that a hand wrote
		if s, err := compile(row(few)); err != nil || firstAfter(s, t0) != 0 {
			t.Errorf("with a number of fires: got %s, %v; want none left", firstAfter(s, t0), err)
		}
		daily.Timezone = "UTC"
	}
	unreadable := errors.New("a newer version wrote it")
	if _, err := compile(&sql.JobRow{SpecErr: unreadable}); err != unreadable {
		t.Errorf("an unreadable definition: got %v, want %v", err, unreadable)
	}
	for _, spec := range []job.Spec{{}, {Schedule: "1-0 * * * *"}, {Schedule: "* * * * *", Timezone: "Nowhere/Land"}, {Every: -1}, {Every: 1, Schedule: "x"}} {
		if s, err := compile(row(spec)); err == nil {
			t.Errorf("%+v: got %v, want an error", spec, s)
		}
	}
}

// TestCompiledIsBounded: what is remembered does not grow for ever.
func TestCompiledIsBounded(t *testing.T) {
	compiled.Lock()
	clear(compiled.byText)
	for i := range maxCompiled {
		compiled.byText["full "+strings.Repeat("x", i%7)+fmt.Sprint(i)] = instants{}
	}
	compiled.Unlock()
	if _, err := compile(&sql.JobRow{Job: job.Job{Spec: job.Spec{Schedule: "1 2 3 4 *"}}}); err != nil {
		t.Fatal(err)
	}
	compiled.Lock()
	defer compiled.Unlock()
	if n := len(compiled.byText); n > maxCompiled {
		t.Errorf("got %d schedules remembered, want at most %d", n, maxCompiled)
	}
}

// TestCatchUpOfThoseThatWerePlanned: they count among those that policy all starts, of which the latest are started.
func TestCatchUpOfThoseThatWerePlanned(t *testing.T) {
	f := setUp(t)
	spec := every("j", 10*time.Second, 0)
	spec.Misfire = job.Misfire{Policy: job.MisfireAll, MaxCount: 2}
	f.session.set(after(-time.Second))
	j := f.create(spec)
	f.wantDues("planned before the outage", j.ID, 0, 10, 20, 30)
	f.reach(after(10 * time.Minute))
	var got []float64
	for _, s := range f.executing.added {
		got = append(got, s.Due.Sub(t0).Seconds())
	}
	slices.Sort(got)
	if want := []float64{530, 540, 550, 560, 570, 580, 590, 600}; !slices.Equal(got, want) {
		t.Errorf("started %v, want %v: two that were missed, and those that were not", got, want)
	}
	f.want("missed", 53, "SELECT SUM(due_count) FROM history WHERE outcome = 7 AND job_id = ?", j.ID)
}
