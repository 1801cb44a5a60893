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

// runs looks at the runs that have ended.
func (f *finder) runs(ctx context.Context) error {
	f.position.Ends.Patience = f.DB.LongestTransaction()
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
	start, finish := f.leastLate()
	firing := map[int64]bool{} // jobs of which something fires
	for _, row := range f.s.firing {
		firing[row.JobID] = true
	}
	pinged, err := f.pinged(ctx, runs)
	if err != nil {
		return err
	}
	var wanted []read.Run
	var ids []int64
	touched := map[int64]bool{} // jobs of which something may begin to fire within this step
	for _, r := range runs {
		if r.Ended < f.position.Since {
			continue
		}
		late := firstStart(&r) && lateness(&r) >= start || lastEnd(&r) && r.Ended-r.Due >= finish
		if failure(&r) || r.Outcome == job.Missed || late {
			touched[r.JobID] = true
		}
		if touched[r.JobID] || firing[r.JobID] || pinged[r.JobID] {
			wanted, ids = append(wanted, r), append(ids, r.JobID)
		}
	}
	f.Evaluator.jobs.forget(touched) // the position passes these runs: rules go by what the jobs are now
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

// runsIn is how many runs endings are about.
func runsIn(endings []read.Ending) (n int) {
	for i := range endings {
		n += len(endings[i].Runs)
	}
	return n
}

// began notes which runs have begun of jobs that were looked at whether they run: of earlier due times, too.
func (f *finder) began(runs []read.Run) {
	for i := range runs {
		for _, looks := range f.s.looks {
			if l := looks[runs[i].JobID]; l != nil && runs[i].Started > 0 {
				l.Began = max(l.Began, runs[i].Due)
			}
		}
	}
}

// pinged tells of which jobs a due time has ended that their monitors may want to know of. What is known of these is read
// again: a run may end as soon as its job has got a ping.
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

// leastLate returns from when on some rule takes a start, or an end, for late.
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

// failure tells whether a due time has begun and did not succeed, after all its attempts.
func failure(r *read.Run) bool {
	switch r.Outcome {
	case job.Failed, job.TimedOut, job.Killed, job.Lost:
		return r.Final
	}
	return false
}

// lateness is how late a run was started.
func lateness(r *read.Run) job.Micros { return job.Micros(r.Lateness) }

// firstStart and lastEnd tell whether a run is one of which a due time was started, or has ended, in time or late. Retries
// begin when they do, and a backfill is of due times that are over.
func firstStart(r *read.Run) bool {
	return r.Started > 0 && r.Attempt == 1 && r.Kind != job.FromBackfill
}
func lastEnd(r *read.Run) bool { return r.Started > 0 && r.Final && r.Kind != job.FromBackfill }

// run looks at a run by a rule.
func (f *finder) run(rule *rule, r *read.Run, j *job.AlertJob) {
	about := aboutJob(j.ID)
	see := sight{job: j, node: r.Node, run: job.RunID(r.ID), at: r.Ended, summary: describe(r, j)}
	succeeded := r.Outcome == job.Succeeded && r.Final
	switch {
	case failure(r):
		if rule.Has(job.AlertFailed) {
			f.fire(rule, job.AlertFailed, about, see)
		}
		if rule.Has(job.AlertLost) && r.Outcome == job.Lost {
			f.fire(rule, job.AlertLost, about, see)
		}
		if rule.Has(job.AlertFailures) {
			f.count(rule, r, j, see)
		}
	case succeeded:
		f.over(rule, job.AlertFailed, about, "it succeeded again")
		f.over(rule, job.AlertLost, about, "it succeeded again")
	}
	if firstStart(r) && rule.Has(job.AlertLateStart) {
		if lateness(r) > micros(rule.LateStart) {
			late := see
			late.due = r.Due // it may have been seen before it was over
			late.summary = fmt.Sprintf("%s/%s, due %s, was started %s late", j.App, j.Name, r.Due, span(lateness(r)))
			f.fire(rule, job.AlertLateStart, about, late)
		} else {
			f.inTime = append(f.inTime, inTime{rule, job.AlertLateStart, j.ID, r.Due})
		}
	}
	if lastEnd(r) && rule.Has(job.AlertLateFinish) {
		if r.Ended-r.Due > micros(rule.LateFinish) {
			late := see
			late.due = r.Due // it may have been seen before it was over
			late.summary = fmt.Sprintf("%s/%s, due %s, ended %s after that (%s)", j.App, j.Name, r.Due, span(r.Ended-r.Due), r.Outcome)
			f.fire(rule, job.AlertLateFinish, about, late)
		} else {
			f.inTime = append(f.inTime, inTime{rule, job.AlertLateFinish, j.ID, r.Due})
		}
	}
	if rule.Has(job.AlertNeverRan) {
		if r.Outcome == job.Missed {
			f.fire(rule, job.AlertNeverRan, about, see)
		} else if r.Started > 0 {
			f.over(rule, job.AlertNeverRan, about, "it ran again")
		}
	}
}

// inTime is a due time that was started, or has ended, in time.
type inTime struct {
	rule  *rule
	event job.AlertEvent
	job   int64
	due   job.Micros
}

// late tells by how much a due time that is not over is late, and whether that is too much for a rule. What waited for its
// turn is late from then on; when it should have ended stays.
func (r *rule) late(event job.AlertEvent, t *read.LateRun, now job.Micros) (by job.Micros, is bool) {
	if event == job.AlertLateFinish {
		by = now - t.Due
		return by, by > micros(r.LateFinish)
	}
	by = now - t.DueNow
	return by, (t.State == job.Idle || t.State == job.Prepared) && t.Attempt == 1 && by > micros(r.LateStart)
}

// inTimeAgain ends what was late of jobs of which a later due time was in time, unless another is late still: beside one
// that hangs others may be as they should.
func (f *finder) inTimeAgain(ctx context.Context) error {
	ends := slices.DeleteFunc(f.inTime, func(n inTime) bool {
		key := subject(n.rule.ID, n.event, aboutJob(n.job))
		return f.current(key) == nil || n.due <= f.s.seen[key]
	})
	ids := map[int64]bool{}
	for i := range ends {
		ids[ends[i].job] = true
	}
	start, finish := f.leastLate()
	live := map[int64][]read.LateRun{}
	runs, all, err := f.DB.LiveRunsOf(ctx, slices.Sorted(maps.Keys(ids)), f.now-min(start, finish))
	if err != nil && f.unread >= 2 && ctx.Err() == nil { // it ends no alerting for good: the next step would ask the same
		f.Log.Warn("cannot look which alerts of late due times are over", "error", err)
		return nil
	}
	if err != nil {
		f.unread++
		return err
	}
	if !all {
		return nil // nobody knows what else there is; a due time that is in time later ends it
	}
	for _, t := range runs {
		live[t.JobID] = append(live[t.JobID], t)
	}
	f.unread = 0
	for i := range ends {
		n := &ends[i]
		if slices.ContainsFunc(live[n.job], func(t read.LateRun) bool { _, is := n.rule.late(n.event, &t, f.now); return is }) {
			continue
		}
		why := "it was started in time again"
		if n.event == job.AlertLateFinish {
			why = "it ended in time again"
		}
		f.over(n.rule, n.event, aboutJob(n.job), why)
	}
	return nil
}

// describe says in a line what became of a due time.
func describe(r *read.Run, j *job.AlertJob) string {
	text := fmt.Sprintf("%s/%s, due %s, %s", j.App, j.Name, r.Due, outcomeWords(r.Outcome))
	if r.Count > 1 {
		text = fmt.Sprintf("%s/%s: %d due times from %s on %s", j.App, j.Name, r.Count, r.Due, outcomeWords(r.Outcome))
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
		return "was lost with its node"
	case job.Missed:
		return "was missed"
	}
	return o.String()
}

func span(d job.Micros) string {
	return (time.Duration(d) * time.Microsecond).Round(10 * time.Millisecond).String()
}

// perOf is what a rule counts failures of.
func perOf(r *rule, j *job.AlertJob) string {
	switch r.Failures.Per {
	case "app":
		return "app " + j.App
	case "rule":
		return "all"
	}
	return aboutJob(j.ID)
}

// readStreaks reads what has failed lately of what fails now.
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

// count adds a failure to those of a rule that counts them, and tells of them when they are too many.
func (f *finder) count(rule *rule, r *read.Run, j *job.AlertJob, see sight) {
	about := perOf(rule, j)
	key := subject(rule.ID, job.AlertFailures, about)
	s := f.streaks[key]
	if s == nil {
		return
	}
	s.times = append(s.times, r.Ended)
	slices.Sort(s.times) // those that committed late come late
	if n := len(s.times) - rule.Failures.Count; n > 0 {
		s.times = s.times[n:]
	}
	if len(s.times) < rule.Failures.Count || s.times[len(s.times)-1]-s.times[0] > micros(rule.Failures.Within) {
		if row := f.current(key); row != nil { // too few to tell of, but it is not over
			row = f.change(row)
			f.changes.firing[key] = row
			row.Last = max(row.Last, r.Ended)
		}
		return
	}
	see.summary = fmt.Sprintf("%d failures within %s, the last one: %s", rule.Failures.Count, rule.Failures.Within, see.summary)
	if rule.Failures.Per != "job" {
		see.job = nil
		if rule.Failures.Per == "app" {
			see.app = j.App
		}
	}
	f.fire(rule, job.AlertFailures, about, see)
}

// pingOf is what a monitor is told of a run: "" is nothing.
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

// ping notes that a job's ping is to be called. Of several due times that have ended since the last step the last one
// counts.
func (f *finder) ping(r *read.Run, j *job.AlertJob) {
	what := pingOf(r)
	if what == "" || j.Ping == nil || j.Gone {
		return
	}
	address := pingURL(j.Ping, what)
	if address == "" {
		return
	}
	f.pings[j.ID] = ping{hostOf(address), job.AlertItem{What: what, App: j.App, JobID: idText(j.ID), Job: j.Name, Run: job.RunID(r.ID), Summary: describe(r, j), At: r.Ended.String(), Seen: 1}}
}

// runsAtOnce is how many runs one step looks at whether they are late.
const runsAtOnce = 2000

// lister lists runs of one owner behind a place that were due before an instant.
type lister func(ctx context.Context, after read.LatePlace, before job.Micros, limit int) ([]read.LateRun, error)

// lateStart looks at runs that have not begun, and lateFinish at those that have not ended.
func (f *finder) lateStart(ctx context.Context) error {
	least, _ := f.leastLate()
	return f.late(ctx, lateStart, job.AlertLateStart, f.now-least, "is not started, %s late", f.DB.LateRuns)
}

func (f *finder) lateFinish(ctx context.Context) error {
	return f.late(ctx, lateFinish, job.AlertLateFinish, f.now, "has not ended, %s after that", f.DB.UnendedRuns)
}

// late looks at runs: at some of them in each step, until it was at all.
func (f *finder) late(ctx context.Context, what string, event job.AlertEvent, before job.Micros, words string, list lister) error {
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

// held lists runs that nobody holds, and then those of one session after another, behind a place. More reports that there may be more.
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

// tellLate tells of due times that are late. Those of backfills are left out: they were due when nobody could have started them.
func (f *finder) tellLate(ctx context.Context, rules []*rule, event job.AlertEvent, words string, runs []read.LateRun) error {
	var late []*read.LateRun
	var ids []int64
	for i := range runs {
		t := &runs[i]
		if t.Kind != job.FromBackfill && slices.ContainsFunc(rules, func(r *rule) bool { _, is := r.late(event, t, f.now); return is }) {
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
				f.fire(r, event, aboutJob(j.ID), sight{job: &j, at: f.now, due: t.Due, summary: fmt.Sprintf("%s/%s, due %s, "+words, j.App, j.Name, t.Due, span(by))})
			}
		}
	}
	return nil
}

// overdueAtOnce is how many overdue due times one step counts.
const overdueAtOnce = 20_000

// overdue is how far overdue runs were counted, and how many there are up to there that a rule takes, by rule.
type overdue struct {
	at    read.LatePlace
	found map[int64]int64
}

// backlog counts due times that are overdue: some of them in each step, until it was all, or enough for each rule.
func (f *finder) backlog(ctx context.Context) error {
	rules := slices.DeleteFunc(f.sortedRules(), func(r *rule) bool { return !r.Has(job.AlertBacklog) })
	counted := f.s.overdue
	if f.s.overdue = (overdue{}); len(rules) == 0 {
		return nil
	}
	if counted.found == nil {
		counted.found = map[int64]int64{}
	}
	least := slices.MinFunc(rules, func(a, b *rule) int { return cmp.Compare(a.Backlog.OlderThan, b.Backlog.OlderThan) })
	runs, left, err := f.held(ctx, counted.at, f.now-micros(least.Backlog.OlderThan), overdueAtOnce, f.DB.LateRuns)
	if err != nil {
		return err
	}
	byJob := map[int64][]job.Micros{}
	for i := range runs {
		byJob[runs[i].JobID] = append(byJob[runs[i].JobID], runs[i].DueNow)
	}
	for _, dues := range byJob {
		slices.Sort(dues)
	}
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
			f.fire(r, job.AlertBacklog, "all", sight{at: f.now, state: true, summary: text})
		case left:
			more = true
		default:
			f.over(r, job.AlertBacklog, "all", text)
		}
	}
	if more {
		counted.at = runs[len(runs)-1].LatePlace
		f.s.overdue = counted
		delete(f.s.next, backlog) // the next step goes on
	}
	return nil
}

// lines looks which nodes have vanished.
func (f *finder) lines(ctx context.Context) error {
	if f.position.Lines.High == 0 { // nobody wanted it up to now
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
		if l.Kind == job.KindSession && l.Action == job.ActionReap && l.At >= f.position.Since && len(f.position.Gone) < 1000 {
			f.position.Gone[l.Name] = max(f.position.Gone[l.Name], l.At)
		}
	}
	return nil
}

// nodes looks at the nodes that there are.
func (f *finder) nodes(ctx context.Context) error {
	skews := false
	for _, r := range f.c.rules {
		skews = skews || r.Has(job.AlertClockSkew)
	}
	if !skews && !f.c.lines {
		return nil
	}
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
			for node, at := range f.position.Gone {
				if at >= r.Since && f.now-at >= micros(r.NodeGone) {
					f.fire(r, job.AlertNodeGone, "node "+node, sight{node: node, at: f.now, state: true, summary: fmt.Sprintf("the node %s vanished at %s, and is not back", node, at)})
				}
			}
		}
		if r.Has(job.AlertClockSkew) {
			for node, n := range skew {
				if off := max(n, -n); off > int64(micros(r.ClockSkew)) {
					f.fire(r, job.AlertClockSkew, "node "+node, sight{node: node, at: f.now, state: true,
						summary: fmt.Sprintf("the clock of the node %s differs from MySQL's by %s; due times go by MySQL's", node, span(job.Micros(off)))})
				}
			}
		}
	}
	for _, row := range sorted(f.s.firing) {
		r := f.c.rules[row.RuleID]
		row = f.current(row.Subject)
		if r == nil || row == nil {
			continue
		}
		n := skew[row.Node]
		switch {
		case row.Event == job.AlertNodeGone && alive[row.Node]:
			f.end(r, row, "the node is back")
		case row.Event == job.AlertNodeGone && r.Has(job.AlertNodeGone) && f.position.Gone[row.Node] == 0:
			f.end(r, row, "the node has been gone for so long that it counts as removed")
		case row.Event == job.AlertClockSkew && !alive[row.Node]:
			f.end(r, row, "the node is gone")
		case row.Event == job.AlertClockSkew && max(n, -n) <= int64(micros(r.ClockSkew)):
			f.end(r, row, "the clock of the node is right again")
		}
	}
	return nil
}

// jobsAtOnce is how many jobs one step looks at whether they run.
const jobsAtOnce = 200

// neverRan looks for jobs of which no run has begun for too long: at some of them in each step, until it was at all.
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
	after := f.s.notRun
	jobs, err := f.DB.AlertJobsAfter(ctx, after, jobsAtOnce)
	if err != nil {
		return err
	}
	if f.s.notRun = 0; len(jobs) == jobsAtOnce { // also if it fails: the jobs behind do not wait for that
		f.s.notRun = jobs[len(jobs)-1].ID
	}
	resting, err := f.resting(ctx)
	if err != nil {
		return err
	}
	more := false // to be read of these
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
			f.fire(r, job.AlertNeverRan, aboutJob(id), sight{job: j, at: f.now, state: true, summary: fmt.Sprintf("%s/%s has not run for %s", j.App, j.Name, r.NeverRan)})
		}
		for _, id := range ids {
			row := f.current(subject(r.ID, job.AlertNeverRan, aboutJob(id)))
			if row != nil && row.Run == "" && !slices.Contains(found, id) && !slices.Contains(open, id) { // one of a due time that was missed has its run
				f.end(r, row, "it has begun a run, or has nothing to run any more")
			}
		}
	}
	if more {
		f.s.notRun = after
	}
	if more || f.s.notRun != 0 {
		delete(f.s.next, notRun) // the next step goes on
	}
	return nil
}

// resting reads which apps are paused, or were since an instant until their pause ended by itself.
func (f *finder) resting(ctx context.Context) (func(app string, since job.Micros) bool, error) {
	stops, err := trip.Stops(f.DB.Reader(ctx))
	return func(app string, since job.Micros) bool {
		return slices.ContainsFunc(stops, func(s trip.Stop) bool {
			about := s.Kind == trip.StopCluster || s.Kind == trip.StopApp && s.Name == app
			return about && (s.Until == 0 || s.Until >= since)
		})
	}, err
}

// onTime is how late the earliest due time, or the planning of one, may be before a heartbeat is held back.
const onTime = job.Micros(60_000_000)

// heartbeats looks whether the cluster plans and starts in time, for those who are to be told so.
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

// behindTime says what the cluster does not start or plan in time, "" if there is nothing.
func (f *finder) behindTime(ctx context.Context) (string, error) {
	runs, _, err := f.held(ctx, read.LatePlace{}, f.now-onTime, 1, f.DB.LateRuns)
	if err != nil {
		return "", err
	}
	if len(runs) > 0 {
		return "a due time of " + runs[0].DueNow.String() + " is not started", nil
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
		return "a due time of " + cursor.String() + " is not planned", nil
	}
	return "", err
}
