package alert

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

func micros(d job.Duration) job.Micros { return job.Micros(time.Duration(d).Microseconds()) }

// runs evaluates the runs that have ended since the last step.
func (f *finder) runs(ctx context.Context) error {
	f.position.Ends.Patience = f.DB.LongestTransaction()
	attempts, err := f.attempts(ctx) // read before the ends, so that no run is missed
	if err != nil {
		return err
	}

	full := false
	endings, _, lost, err := trail.Follow(&f.position.Ends, f.now, func(e *read.Ending) int64 { return e.ID },
		func(spans []sql.Span) ([]read.Ending, error) { return f.DB.EndedIn(ctx, spans) },
		func(after int64) ([]read.Ending, error) {
			found, err := f.DB.EndedAfter(ctx, after, batch)
			full = runsIn(found) >= batch
			return found, err
		})
	if err != nil {
		return err
	}

	runs, err := f.DB.RunsOf(ctx, endings)
	if err != nil {
		return err
	}
	f.lost += lost
	f.behind = full

	f.began(runs)
	if err := f.starts(ctx, attempts, runs); err != nil {
		return err
	}

	start, finish := f.leastLate()
	successes := f.any(job.AlertSucceeded)
	firing := map[int64]bool{} // jobs with a firing alert
	for _, row := range f.s.firing {
		firing[row.JobID] = true
	}

	pinged, err := f.pinged(ctx, runs)
	if err != nil {
		return err
	}

	// Keep the runs that may fire or end an alert, or call a monitor.
	var wanted []read.Run
	var ids []int64
	touched := map[int64]bool{} // jobs whose alerts may begin to fire in this step
	for _, r := range runs {
		if r.Ended < f.position.Since {
			continue
		}
		late := firstStart(&r) && lateness(&r) >= start || lastEnd(&r) && r.Ended-r.Due >= finish
		if failure(&r) || r.Outcome == job.Missed || late || successes && r.Outcome == job.Succeeded {
			touched[r.JobID] = true
		}
		if touched[r.JobID] || firing[r.JobID] || pinged[r.JobID] {
			wanted, ids = append(wanted, r), append(ids, r.JobID)
		}
	}

	// The position moves past these runs, so no later step judges them again. So read their jobs
	// again now, and not from the cache.
	f.Evaluator.jobs.forget(touched)
	jobs, err := f.known(ctx, ids)
	if err != nil {
		return err
	}
	if err := f.readStreaks(ctx, wanted, jobs); err != nil {
		return err
	}

	rules := f.sortedRules()
	for i := range wanted {
		r := &wanted[i]
		j, there := jobs[r.JobID]
		if !there {
			continue
		}
		f.ping(r, &j)
		for _, rule := range rules {
			if rule.Since <= r.Ended && rule.Takes(&j) {
				f.run(rule, r, &j)
			}
		}
	}

	return f.inTimeAgain(ctx)
}

// runsIn counts the runs of endings.
func runsIn(endings []read.Ending) (n int) {
	for i := range endings {
		n += len(endings[i].Runs)
	}
	return n
}

// began records the due times of started runs, even of old ones, for the jobs that neverRan has
// checked.
func (f *finder) began(runs []read.Run) {
	for i := range runs {
		for _, looks := range f.s.looks {
			if l := looks[runs[i].JobID]; l != nil && runs[i].Started > 0 {
				l.Began = max(l.Began, runs[i].Due)
			}
		}
	}
}

// pinged returns the jobs whose monitors must hear of these runs. It drops these jobs from the
// cache, because a job may have got its ping just before its run ended.
func (f *finder) pinged(ctx context.Context, runs []read.Run) (map[int64]bool, error) {
	ended := map[int64]bool{}
	for i := range runs {
		if pingOf(&runs[i]) != "" {
			ended[runs[i].JobID] = true
		}
	}

	ids, err := pingedJobs(f.DB.Reader(ctx), slices.Sorted(maps.Keys(ended)))
	if err != nil {
		return nil, err
	}

	pinged := make(map[int64]bool, len(ids))
	for _, id := range ids {
		pinged[id] = true
	}
	f.Evaluator.jobs.forget(pinged)
	return pinged, nil
}

func (f *finder) sortedRules() []*rule {
	ids := slices.Sorted(maps.Keys(f.c.rules))
	out := make([]*rule, len(ids))
	for i, id := range ids {
		out[i] = f.c.rules[id]
	}
	return out
}

// any reports whether some rule wants an event.
func (f *finder) any(event job.AlertEvent) bool {
	for _, r := range f.c.rules {
		if r.Has(event) {
			return true
		}
	}
	return false
}

const (
	attemptsAtOnce = 50_000          // executing runs that a step reads
	begunKept      = 5 * time.Minute // how long a run counts as reported after it was last seen
)

// attempts lists the executing runs, if some rule reports starts.
func (f *finder) attempts(ctx context.Context) ([]read.Attempt, error) {
	if !f.any(job.AlertStarted) {
		f.position.Started, f.s.begun = 0, nil
		return nil, nil
	}
	if f.position.Started == 0 { // report only starts from now on
		f.position.Started, f.s.begun = f.now, nil
	}
	if f.s.begun == nil {
		f.s.begun, f.s.begunSince = map[int64]job.Micros{}, f.position.Started
	}
	return f.DB.Attempting(ctx, attemptsAtOnce)
}

// starts reports the runs that have started since the last step: executing runs, and runs that
// have already ended. If this step is not applied, the next step reads the state again and finds
// the same starts.
func (f *finder) starts(ctx context.Context, attempts []read.Attempt, ended []read.Run) error {
	if f.s.begun == nil {
		return nil
	}

	for i := range ended {
		if r := &ended[i]; r.Started > 0 {
			attempts = append(attempts, read.Attempt{Run: r.ID, JobID: r.JobID, Started: r.Started})
		}
	}
	ids := make([]int64, len(attempts))
	for i := range attempts {
		ids[i] = attempts[i].JobID
	}
	jobs, err := f.known(ctx, ids)
	if err != nil {
		return err
	}

	// Pick the new starts.
	rules := slices.DeleteFunc(f.sortedRules(), func(r *rule) bool { return !r.Has(job.AlertStarted) })
	var begun []int64
	for _, a := range attempts {
		j, there := jobs[a.JobID]
		if !there || !slices.ContainsFunc(rules, func(r *rule) bool { return r.Takes(&j) }) {
			continue
		}
		if _, is := f.s.begun[a.Run]; !is && a.Started > f.s.begunSince {
			begun = append(begun, a.Run)
		}
		f.s.begun[a.Run] = f.now
	}
	maps.DeleteFunc(f.s.begun, func(_ int64, seen job.Micros) bool { return f.now.Sub(seen) > begunKept })

	// Report them.
	runs, err := f.DB.RunsInAnyState(ctx, begun)
	if err != nil || len(begun) == 0 {
		return err
	}
	for _, id := range begun {
		run, there := runs[id]
		if !there {
			continue
		}
		j := jobs[run.JobID]
		for _, r := range rules {
			if r.Since <= run.Started && r.Takes(&j) {
				text := fmt.Sprintf("%s/%s started", j.App, j.Name)
				if run.Attempt > 1 {
					text += fmt.Sprintf(" (attempt %d)", run.Attempt)
				}
				f.report(r, job.AlertStarted, finding{job: &j, node: run.Node, run: job.RunID(id),
					at: run.Started, summary: text})
			}
		}
	}
	f.position.Started = f.now
	return nil
}

// leastLate returns the shortest lateness of starts, and of ends, that any rule reports.
func (f *finder) leastLate() (start, finish job.Micros) {
	start, finish = math.MaxInt64, math.MaxInt64
	for _, r := range f.c.rules {
		if r.Has(job.AlertLateStart) {
			start = min(start, micros(r.LateStart))
		}
		if r.Has(job.AlertLateFinish) {
			finish = min(finish, micros(r.LateFinish))
		}
	}
	return start, finish
}

// failure reports whether a due time was started and its last attempt failed.
func failure(r *read.Run) bool {
	switch r.Outcome {
	case job.Failed, job.TimedOut, job.Killed, job.Lost:
		return r.Final
	}
	return false
}

// lateness returns the lateness of a run's start.
func lateness(r *read.Run) job.Micros { return job.Micros(r.Lateness) }

// firstStart reports whether a run's start is the first start of its due time. Only such a start
// can be late: retries start later by design, and the due times of a backfill are long over.
func firstStart(r *read.Run) bool {
	return r.Started > 0 && r.Attempt == 1 && r.Kind != job.FromBackfill
}

// lastEnd reports whether a run's end is the last end of its due time. Only such an end can be
// late.
func lastEnd(r *read.Run) bool {
	return r.Started > 0 && r.Final && r.Kind != job.FromBackfill
}

// run applies a rule to a run.
func (f *finder) run(rule *rule, r *read.Run, j *job.AlertJob) {
	about := aboutJob(j.ID)
	found := finding{job: j, node: r.Node, run: job.RunID(r.ID), at: r.Ended, summary: describe(r, j)}
	succeeded := r.Outcome == job.Succeeded && r.Final

	switch {
	case failure(r):
		// Even if the rule has both events, a lost run fires only one alert.
		switch {
		case r.Outcome == job.Lost && rule.Has(job.AlertLost):
			f.fire(rule, job.AlertLost, about, found)
		case rule.Has(job.AlertFailed):
			f.fire(rule, job.AlertFailed, about, found)
		}
		if rule.Has(job.AlertFailures) {
			f.count(rule, r, j, found)
		}
	case succeeded:
		if rule.Has(job.AlertSucceeded) {
			f.report(rule, job.AlertSucceeded, found)
		}
		f.over(rule, job.AlertFailed, about, "it succeeded again")
		f.over(rule, job.AlertLost, about, "it succeeded again")
	}

	if firstStart(r) && rule.Has(job.AlertLateStart) {
		if lateness(r) > micros(rule.LateStart) {
			late := found
			late.due = r.Due // lateStart may have seen it already
			late.summary = fmt.Sprintf("%s/%s started %s late", j.App, j.Name, span(lateness(r)))
			f.fire(rule, job.AlertLateStart, about, late)
		} else {
			f.inTime = append(f.inTime, inTime{rule, job.AlertLateStart, j.ID, r.Due})
		}
	}

	if lastEnd(r) && rule.Has(job.AlertLateFinish) {
		if r.Ended-r.Due > micros(rule.LateFinish) {
			late := found
			late.due = r.Due // lateFinish may have seen it already
			late.summary = fmt.Sprintf("%s/%s ended %s after its due time (%s)",
				j.App, j.Name, span(r.Ended-r.Due), r.Outcome)
			f.fire(rule, job.AlertLateFinish, about, late)
		} else {
			f.inTime = append(f.inTime, inTime{rule, job.AlertLateFinish, j.ID, r.Due})
		}
	}

	if rule.Has(job.AlertNeverRan) {
		if r.Outcome == job.Missed {
			f.fire(rule, job.AlertNeverRan, about, found)
		} else if r.Started > 0 {
			f.over(rule, job.AlertNeverRan, about, "it ran again")
		}
	}
}

// inTime is a due time that was started, or ended, in time.
type inTime struct {
	rule  *rule
	event job.AlertEvent
	job   int64
	due   job.Micros
}

// late returns the lateness of a run that has not ended, and whether the rule reports that
// lateness. A start counts from DueNow, because the run may have had to wait for its turn. An end
// counts from Due.
func (r *rule) late(event job.AlertEvent, t *read.LateRun, now job.Micros) (by job.Micros, is bool) {
	if event == job.AlertLateFinish {
		by = now - t.Due
		return by, by > micros(r.LateFinish)
	}

	by = now - t.DueNow
	return by, (t.State == job.Idle || t.State == job.Prepared) && t.Attempt == 1 && by > micros(r.LateStart)
}

// inTimeAgain ends a lateness alert of a job when a run with a later due time was in time. If
// another run of the job is still late, the alert stays: one run may hang while others are in
// time.
func (f *finder) inTimeAgain(ctx context.Context) error {
	ends := slices.DeleteFunc(f.inTime, func(n inTime) bool {
		key := subject(n.rule.ID, n.event, aboutJob(n.job))
		return f.current(key) == nil || n.due <= f.s.seen[key]
	})
	ids := map[int64]bool{}
	for i := range ends {
		ids[ends[i].job] = true
	}

	// Read the jobs' runs that may still be late.
	start, finish := f.leastLate()
	live := map[int64][]read.LateRun{}
	runs, all, err := f.DB.LiveRunsOf(ctx, slices.Sorted(maps.Keys(ids)), f.now-min(start, finish))
	if err != nil && f.unread >= 2 && ctx.Err() == nil {
		// Go on without ending these alerts. Otherwise each step would fail at this query, and no
		// alert would ever fire again.
		f.Log.Warn("cannot check which alerts about late runs have ended", "error", err)
		return nil
	}

	if err != nil {
		f.unread++
		return err
	}
	if !all {
		return nil // some runs were not read; the next run in time ends the alert
	}
	for _, t := range runs {
		live[t.JobID] = append(live[t.JobID], t)
	}
	f.unread = 0
	for i := range ends {
		n := &ends[i]
		stillLate := slices.ContainsFunc(live[n.job], func(t read.LateRun) bool {
			_, is := n.rule.late(n.event, &t, f.now)
			return is
		})
		if stillLate {
			continue
		}
		why := "it started in time again"
		if n.event == job.AlertLateFinish {
			why = "it ended in time again"
		}
		f.over(n.rule, n.event, aboutJob(n.job), why)
	}
	return nil
}

// describe says in one line how a due time ended.
func describe(r *read.Run, j *job.AlertJob) string {
	text := fmt.Sprintf("%s/%s %s", j.App, j.Name, outcomeWords(r.Outcome))
	if r.Count > 1 {
		text = fmt.Sprintf("%s/%s: %d due times from %s on %s", j.App, j.Name, r.Count, whenIn(r.Due, j.Timezone),
			strings.Replace(outcomeWords(r.Outcome), "was ", "were ", 1))
	}
	if r.Attempt > 1 {
		text += fmt.Sprintf(" after %d attempts", r.Attempt)
	}
	if reason := strings.TrimSpace(r.Reason.Text); reason != "" && r.Outcome != job.Succeeded {
		text += ": " + reason
	}
	return text
}

func outcomeWords(o job.Outcome) string {
	switch o {
	case job.TimedOut:
		return "timed out"
	case job.Killed:
		return "was killed"
	case job.Lost:
		return "was lost"
	case job.Missed:
		return "was missed"
	}
	return o.String()
}

func span(d job.Micros) string {
	return job.Duration((time.Duration(d) * time.Microsecond).Round(10 * time.Millisecond)).String()
}

// perOf returns the unit for which a rule counts failures: a job, an app or everything.
func perOf(r *rule, j *job.AlertJob) string {
	switch r.Failures.Per {
	case "app":
		return "app " + j.App
	case "rule":
		return "all"
	}
	return aboutJob(j.ID)
}

// readStreaks reads the recent failures of everything that fails in this step.
func (f *finder) readStreaks(ctx context.Context, runs []read.Run, jobs map[int64]job.AlertJob) error {
	rules := map[[16]byte]int64{}
	for i := range runs {
		j, there := jobs[runs[i].JobID]
		if !there || !failure(&runs[i]) {
			continue
		}
		for _, r := range f.c.rules {
			if r.Failures != nil && r.Has(job.AlertFailures) && r.Takes(&j) {
				rules[subject(r.ID, job.AlertFailures, perOf(r, &j))] = r.ID
			}
		}
	}

	for part := range slices.Chunk(slices.Collect(maps.Keys(rules)), 500) {
		found, err := readStreaks(f.DB.Reader(ctx), part)
		if err != nil {
			return err
		}
		for _, key := range part {
			f.streaks[key] = &streak{rules[key], found[key]}
		}
	}
	return nil
}

// count adds a failure to the streak of a rule, and fires when there are too many.
func (f *finder) count(rule *rule, r *read.Run, j *job.AlertJob, found finding) {
	about := perOf(rule, j)
	key := subject(rule.ID, job.AlertFailures, about)
	s := f.streaks[key]
	if s == nil {
		return
	}

	s.times = append(s.times, r.Ended)
	slices.Sort(s.times) // the failure of an end that commits late comes out of order
	if n := len(s.times) - rule.Failures.Count; n > 0 {
		s.times = s.times[n:]
	}

	n := len(s.times)
	if n < rule.Failures.Count || s.times[n-1]-s.times[0] > micros(rule.Failures.Within) {
		if row := f.current(key); row != nil { // too few failures to report, but an alert already fires and goes on
			row = f.change(row)
			f.changes.firing[key] = row
			row.Last = max(row.Last, r.Ended)
		}
		return
	}

	found.summary = fmt.Sprintf("%d failures within %s, the latest: %s",
		rule.Failures.Count, rule.Failures.Within, found.summary)
	if rule.Failures.Per != "job" {
		found.job = nil
		if rule.Failures.Per == "app" {
			found.app = j.App
		}
	}
	f.fire(rule, job.AlertFailures, about, found)
}

// pingOf returns the result to report to the monitor of a run's job: "success", "fail", or "" for
// none.
func pingOf(r *read.Run) string {
	switch {
	case !r.Final:
		return ""
	case r.Outcome == job.Succeeded:
		return "success"
	case failure(r), r.Outcome == job.Missed:
		return "fail"
	}
	return ""
}

// ping records that the monitor of a job must be called. If several due times have ended since the
// last step, only the last one is reported.
func (f *finder) ping(r *read.Run, j *job.AlertJob) {
	what := pingOf(r)
	if what == "" || j.Ping == nil || j.Gone {
		return
	}

	address := pingURL(j.Ping, what)
	if address == "" {
		return
	}

	f.pings[j.ID] = ping{hostOf(address), job.AlertItem{
		What: what, App: j.App, JobID: idText(j.ID), Job: j.Name, Run: job.RunID(r.ID),
		Summary: describe(r, j), At: r.Ended.String(), Seen: 1,
	}}
}

// runsAtOnce is the number of runs that one step checks for lateness.
const runsAtOnce = 2000

// lister lists runs of one owner that were due before an instant, from a place on.
type lister func(ctx context.Context, after read.LatePlace, before job.Micros, limit int) ([]read.LateRun, error)

// lateStart checks the runs that have not been started.
func (f *finder) lateStart(ctx context.Context) error {
	least, _ := f.leastLate()
	return f.late(ctx, lateStart, job.AlertLateStart, f.now-least, "has not started and is %s late", f.DB.LateRuns)
}

// lateFinish checks the runs that have not ended.
func (f *finder) lateFinish(ctx context.Context) error {
	return f.late(ctx, lateFinish, job.AlertLateFinish, f.now, "has not ended %s after its due time", f.DB.UnendedRuns)
}

// late checks runs, a part in each step, until all are checked. words is the end of the alert's
// summary.
func (f *finder) late(
	ctx context.Context, what string, event job.AlertEvent, before job.Micros, words string, list lister,
) error {
	rules := slices.DeleteFunc(f.sortedRules(), func(r *rule) bool { return !r.Has(event) })
	at := f.s.late[what]
	delete(f.s.late, what)
	if len(rules) == 0 {
		return nil
	}

	runs, more, err := f.held(ctx, at, before, runsAtOnce, list)
	if err == nil {
		err = f.tellLate(ctx, rules, event, words, runs)
	}
	if err == nil && more {
		f.s.late[what] = runs[len(runs)-1].LatePlace
		delete(f.s.next, what) // the next step goes on
	}
	return err
}

// held lists runs after a place: first the runs without an owner, then those of each session in
// turn. more reports whether there may be further runs.
func (f *finder) held(
	ctx context.Context, at read.LatePlace, before job.Micros, most int, list lister,
) (runs []read.LateRun, more bool, err error) {
	owners, err := f.DB.Holders(ctx)
	if err != nil {
		return nil, false, err
	}

	for _, owner := range owners {
		if owner < at.Owner {
			continue
		}
		after := read.LatePlace{Owner: owner}
		if owner == at.Owner {
			after = at
		}
		found, err := list(ctx, after, before, most-len(runs))
		if err != nil {
			return nil, false, err
		}
		if runs = append(runs, found...); len(runs) == most {
			return runs, true, nil
		}
	}
	return runs, false, nil
}

// tellLate fires the rules for late runs. It leaves out backfills, because their due times had
// already passed when they were requested.
func (f *finder) tellLate(
	ctx context.Context, rules []*rule, event job.AlertEvent, words string, runs []read.LateRun,
) error {
	var late []*read.LateRun
	var ids []int64
	for i := range runs {
		t := &runs[i]
		tooLate := slices.ContainsFunc(rules, func(r *rule) bool {
			_, is := r.late(event, t, f.now)
			return is
		})
		if t.Kind != job.FromBackfill && tooLate {
			late, ids = append(late, t), append(ids, t.JobID)
		}
	}
	jobs, err := f.known(ctx, ids)
	if err != nil {
		return err
	}

	for _, t := range late {
		j, there := jobs[t.JobID]
		if !there || j.Gone {
			continue
		}
		for _, r := range rules {
			if by, is := r.late(event, t, f.now); is && r.Takes(&j) {
				text := fmt.Sprintf("%s/%s "+words, j.App, j.Name, span(by))
				f.fire(r, event, aboutJob(j.ID), finding{job: &j, node: t.Node, run: job.RunID(t.ID), at: f.now,
					due: t.Due, summary: text})
			}
		}
	}
	return nil
}

// overdueAtOnce is the number of overdue runs that one step counts.
const overdueAtOnce = 20_000

// overdue is an unfinished count of overdue runs.
type overdue struct {
	at    read.LatePlace  // everything up to here is counted
	found map[int64]int64 // overdue runs, by rule
}

// backlog counts overdue runs, a part in each step, until all are counted or each rule has enough.
func (f *finder) backlog(ctx context.Context) error {
	rules := slices.DeleteFunc(f.sortedRules(), func(r *rule) bool { return !r.Has(job.AlertBacklog) })
	counted := f.s.overdue
	if f.s.overdue = (overdue{}); len(rules) == 0 {
		return nil
	}
	if counted.found == nil {
		counted.found = map[int64]int64{}
	}

	// Read the next part: all runs that are old enough for the rule with the smallest age.
	least := slices.MinFunc(rules, func(a, b *rule) int {
		return cmp.Compare(a.Backlog.OlderThan, b.Backlog.OlderThan)
	})
	before := f.now - micros(least.Backlog.OlderThan)
	runs, left, err := f.held(ctx, counted.at, before, overdueAtOnce, f.DB.LateRuns)
	if err != nil {
		return err
	}

	// Collect the due times by job.
	byJob := map[int64][]job.Micros{}
	for i := range runs {
		byJob[runs[i].JobID] = append(byJob[runs[i].JobID], runs[i].DueNow)
	}
	for _, dues := range byJob {
		slices.Sort(dues)
	}

	// Read the jobs, unless all rules cover all jobs.
	var jobs map[int64]job.AlertJob
	if slices.ContainsFunc(rules, func(r *rule) bool { return !r.OfAll() }) {
		if jobs, err = f.known(ctx, slices.Collect(maps.Keys(byJob))); err != nil {
			return err
		}
	}

	more := false // some rule may find more
	for _, r := range rules {
		for id, dues := range byJob {
			if j, there := jobs[id]; r.OfAll() || there && r.Takes(&j) {
				n, _ := slices.BinarySearch(dues, f.now-micros(r.Backlog.OlderThan))
				counted.found[r.ID] += int64(n)
			}
		}

		text := fmt.Sprintf("%d due times are overdue by more than %s", counted.found[r.ID], r.Backlog.OlderThan)
		switch {
		case counted.found[r.ID] >= int64(r.Backlog.Tasks):
			f.fire(r, job.AlertBacklog, "all", finding{at: f.now, state: true, summary: text})
		case left:
			more = true
		default:
			f.over(r, job.AlertBacklog, "all", text)
		}
	}

	if more {
		counted.at = runs[len(runs)-1].LatePlace
		f.s.overdue = counted
		delete(f.s.next, backlog) // the next step continues
	}
	return nil
}

// lines follows the audit to find nodes that have vanished.
func (f *finder) lines(ctx context.Context) error {
	if f.position.Lines.High == 0 { // no rule needed the audit until now
		_, last, err := f.DB.LastIDs(ctx)
		if err != nil {
			return err
		}
		f.position.Lines.High = max(0, last-linesAhead)
	}

	f.position.Lines.Patience = f.DB.LongestTransaction()
	lines, fresh, lost, err := trail.Follow(&f.position.Lines, f.now, func(l *job.Entry) int64 { return l.ID },
		func(spans []sql.Span) ([]job.Entry, error) { return read.LinesIn(f.DB.Reader(ctx), spans) },
		func(after int64) ([]job.Entry, error) { return read.LinesAfter(f.DB.Reader(ctx), after, batch) })
	if err != nil {
		return err
	}

	f.lost += lost
	f.behind = f.behind || fresh == batch
	for _, l := range lines {
		reaped := l.Kind == job.KindSession && l.Action == job.ActionReap
		if reaped && l.At >= f.position.Since && len(f.position.Gone) < 1000 {
			f.position.Gone[l.Name] = max(f.position.Gone[l.Name], l.At)
		}
	}

	return nil
}

// nodes checks which nodes are gone, and which nodes have a clock that is wrong.
func (f *finder) nodes(ctx context.Context) error {
	skews := false
	for _, r := range f.c.rules {
		skews = skews || r.Has(job.AlertClockSkew)
	}
	if !skews && !f.c.lines {
		return nil
	}

	// Read the living nodes, and the largest clock offset of each node's sessions.
	sessions, err := f.DB.Sessions(ctx)
	if err != nil {
		return err
	}
	alive := map[string]bool{}
	skew := map[string]int64{}
	for _, s := range sessions {
		alive[s.Node] = true
		if n := s.Offset; max(n, -n) > max(skew[s.Node], -skew[s.Node]) {
			skew[s.Node] = n
		}
	}

	for node, at := range f.position.Gone {
		if alive[node] || f.now-at > micros(job.Duration(Kept)) {
			delete(f.position.Gone, node)
		}
	}

	for _, r := range f.sortedRules() {
		if r.Has(job.AlertNodeGone) {
			f.goneNodes(r)
		}
		if r.Has(job.AlertClockSkew) {
			f.skewedNodes(r, skew)
		}
	}

	// End the alerts about nodes that are back or removed, or whose clocks are right again.
	for _, row := range sorted(f.s.firing) {
		r := f.c.rules[row.RuleID]
		row = f.current(row.Subject)
		if r == nil || row == nil {
			continue
		}
		n := skew[row.Node]
		switch {
		case row.Event == job.AlertNodeGone && alive[row.Node]:
			f.end(r, row, "the node returned")
		case row.Event == job.AlertNodeGone && r.Has(job.AlertNodeGone) && f.position.Gone[row.Node] == 0:
			f.end(r, row, "the node has been gone so long that it counts as removed")
		case row.Event == job.AlertClockSkew && !alive[row.Node]:
			f.end(r, row, "the node is gone")
		case row.Event == job.AlertClockSkew && max(n, -n) <= int64(micros(r.ClockSkew)):
			f.end(r, row, "the node's clock is correct again")
		}
	}
	return nil
}

// goneNodes fires a rule for the nodes that have been gone long enough.
func (f *finder) goneNodes(r *rule) {
	for node, at := range f.position.Gone {
		if at < r.Since || f.now-at < micros(r.NodeGone) {
			continue
		}
		text := fmt.Sprintf("the node %s stopped responding at %s and has not returned", node, whenIn(at, ""))
		f.fire(r, job.AlertNodeGone, "node "+node, finding{node: node, at: f.now, state: true, summary: text})
	}
}

// skewedNodes fires a rule for the nodes whose clocks are too far off.
func (f *finder) skewedNodes(r *rule, skew map[string]int64) {
	for node, n := range skew {
		off := max(n, -n)
		if off <= int64(micros(r.ClockSkew)) {
			continue
		}
		text := fmt.Sprintf("the clock of the node %s differs from MySQL's by %s (due times follow MySQL's clock)",
			node, span(job.Micros(off)))
		f.fire(r, job.AlertClockSkew, "node "+node, finding{node: node, at: f.now, state: true, summary: text})
	}
}

// troubles checks the cluster for troubles, and ends the alerts about troubles that are over.
func (f *finder) troubles(ctx context.Context) error {
	wanted := func(r *rule) bool { return slices.ContainsFunc(job.AlertTroubles(), r.Has) }
	rules := slices.DeleteFunc(f.sortedRules(), func(r *rule) bool { return !wanted(r) })
	if len(rules) == 0 {
		return nil
	}

	found, err := f.DB.Troubles(ctx, f.now)
	if err != nil {
		return err
	}

	lasts := map[[16]byte]bool{}
	for _, r := range rules {
		for _, t := range found {
			if r.Has(t.Event) {
				lasts[subject(r.ID, t.Event, t.About)] = true
				f.fire(r, t.Event, t.About, finding{node: t.Node, at: f.now, state: true, summary: t.Text})
			}
		}
	}

	for _, row := range sorted(f.s.firing) {
		r, row := f.c.rules[row.RuleID], f.current(row.Subject)
		if r != nil && row != nil && slices.Contains(job.AlertTroubles(), row.Event) && !lasts[row.Subject] {
			f.end(r, row, "it is over: "+row.Summary)
		}
	}
	return nil
}

// jobsAtOnce is the number of jobs that one step checks for runs.
const jobsAtOnce = 200

// neverRan finds jobs without a recent run. It checks a part of the jobs in each step, until all
// jobs are checked.
func (f *finder) neverRan(ctx context.Context) error {
	var rules []*rule
	for _, r := range f.sortedRules() {
		if r.Has(job.AlertNeverRan) && r.NeverRan != 0 {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		f.s.notRun, f.s.looks = 0, map[int64]map[int64]*read.RunLook{}
		return nil
	}

	// Pick the next jobs. If the read of their runs fails, the next step still goes on with the
	// jobs after them.
	after := f.s.notRun
	jobs, err := f.DB.AlertJobsAfter(ctx, after, jobsAtOnce)
	if err != nil {
		return err
	}
	if f.s.notRun = 0; len(jobs) == jobsAtOnce {
		f.s.notRun = jobs[len(jobs)-1].ID
	}

	resting, err := f.resting(ctx)
	if err != nil {
		return err
	}

	more := false // some jobs need another step
	for _, r := range rules {
		since := f.now - micros(r.NeverRan)
		var ids []int64
		byID := map[int64]*job.AlertJob{}
		for i := range jobs {
			if j := &jobs[i]; !j.Paused && !resting(j.App, since) && j.Created < since && r.Takes(j) {
				ids, byID[j.ID] = append(ids, j.ID), j
			}
		}

		if f.s.looks[r.ID] == nil {
			f.s.looks[r.ID] = map[int64]*read.RunLook{}
		}
		found, open, err := f.DB.NotRun(ctx, f.s.looks[r.ID], ids, since)
		if err != nil {
			return err
		}

		more = more || len(open) > 0
		for _, id := range found {
			j := byID[id]
			text := fmt.Sprintf("%s/%s has not run for %s", j.App, j.Name, r.NeverRan)
			f.fire(r, job.AlertNeverRan, aboutJob(id), finding{job: j, at: f.now, state: true, summary: text})
		}
		for _, id := range ids {
			row := f.current(subject(r.ID, job.AlertNeverRan, aboutJob(id)))
			settled := !slices.Contains(found, id) && !slices.Contains(open, id)
			if row != nil && row.Run == "" && settled { // an alert with a run is about a missed due time and stays
				f.end(r, row, "it started a run, or has nothing left to run")
			}
		}
	}

	if more {
		f.s.notRun = after
	}
	if more || f.s.notRun != 0 {
		delete(f.s.next, notRun) // the next step continues
	}
	return nil
}

// resting returns a function that reports whether an app is paused. An app whose pause ended by
// itself after the instant since also counts as paused.
func (f *finder) resting(ctx context.Context) (func(app string, since job.Micros) bool, error) {
	stops, err := trip.Stops(f.DB.Reader(ctx))
	return func(app string, since job.Micros) bool {
		return slices.ContainsFunc(stops, func(s trip.Stop) bool {
			about := s.Kind == trip.StopCluster || s.Kind == trip.StopApp && s.Name == app
			return about && (s.Until == 0 || s.Until >= since)
		})
	}, err
}

// onTime is the greatest lateness of the earliest due time with which heartbeats are still sent.
// If a due time is claimed or started later, heartbeats are held back.
const onTime = job.Micros(60_000_000)

// heartbeats does nothing until a heartbeat is due. Then it checks whether the cluster claims and
// starts due times in time.
func (f *finder) heartbeats(ctx context.Context) error {
	var due []*channel
	for _, ch := range f.c.channels {
		if ch.beats() && (f.now-ch.Beat >= micros(ch.Every) || f.now < ch.Beat) {
			due = append(due, ch)
		}
	}
	if len(due) == 0 {
		return nil
	}

	held, err := f.behindTime(ctx)
	if err != nil {
		return err
	}
	for _, ch := range due {
		f.beats = append(f.beats, beat{ch, held})
	}
	return nil
}

// behindTime describes a due time that was not claimed or started in time; "": there is none.
func (f *finder) behindTime(ctx context.Context) (string, error) {
	runs, _, err := f.held(ctx, read.LatePlace{}, f.now-onTime, 1, f.DB.LateRuns)
	if err != nil {
		return "", err
	}
	if len(runs) > 0 {
		return "a run due at " + runs[0].DueNow.String() + " has not started", nil
	}

	stops, err := trip.Stops(f.DB.Reader(ctx))
	if err != nil {
		return "", err
	}

	var paused []int32
	for i := range stops {
		s := &stops[i]
		if !s.Pauses(s.AppID, f.now) {
			continue
		}
		if s.Kind == trip.StopCluster {
			return "", nil
		}
		paused = append(paused, s.AppID)
	}

	cursor, err := f.DB.FirstCursor(ctx, paused)
	if err == nil && cursor != 0 && cursor < f.now-onTime {
		return "the due time " + cursor.String() + " has not been claimed", nil
	}
	return "", err
}
