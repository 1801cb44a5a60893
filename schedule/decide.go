package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// verdict says what a start does with one task.
type verdict int

const (
	forget   verdict = iota // its row is not ours any more
	hold                    // look again at its due instant
	later                   // look again soon: somebody else has locked its job
	kept                    // look again a little later: somebody keeps its row locked, or one that it needs
	noRoom                  // look again once a slot is free
	begin                   // start it
	refuse                  // write a run that says why it was not started
	wait                    // something must end first: it becomes nobody's until then
	giveBack                // its job was edited and is not for this node any more
)

// decision is one task's part of a start transaction.
type decision struct {
	task job.Task
	verdict
	run        job.Run       // of a refusal
	wait       sql.Wait      // of a wait
	slot       int64         // of a begin: the group of which it takes a slot
	from       int64         // who loses that slot, having not begun; zero: it is free, or of one that is superseded
	replaces   []sql.TaskRow // executing tasks to be killed, whose place it takes
	supersedes []sql.TaskRow // tasks that have not begun and will not, because of it
	attempt    job.Started
	place      int       // of what is given back: whose nodes are to take it
	awaited    bool      // another task may wait for the end of this one
	holds      bool      // it holds a slot of its group
	limit      job.Limit // of a refusal: the limit of the app that caused it
}

// scene is what a decision is made by, beside the task: its job's row, locked, the job's other tasks that are due
// (those that execute or have been woken; if they are ordered also the others that have not begun), and its group, locked, with
// the tasks that hold its slots.
type scene struct {
	job     *sql.JobRow
	others  []sql.TaskRow
	group   *sql.Group
	holders []int64
	idle    []sql.Candidate // those of the holders that nobody has claimed
	off     *sql.HandlerOff // if the job's handler is disabled

	executing int   // how many of the holders do
	cancelled bool  // the task is of a backfill that was
	window    int64 // for how long it may be spawned, in microseconds

	allowance *allowance // of the job's app; nil: it has no limits
}

// without is the scene without some of the others: they wait no more, and hold no slot, once a task has taken their place.
func (s scene) without(gone []sql.TaskRow) scene {
	isGone := func(id int64) bool { return slices.ContainsFunc(gone, func(x sql.TaskRow) bool { return x.ID == id }) }
	s.others = slices.DeleteFunc(slices.Clone(s.others), func(o sql.TaskRow) bool { return isGone(o.ID) })
	s.holders = slices.DeleteFunc(slices.Clone(s.holders), isGone)
	s.idle = slices.DeleteFunc(slices.Clone(s.idle), func(c sql.Candidate) bool { return isGone(c.ID) })
	return s
}

// unused is a task that has a slot of the group and that no node has claimed, and whose slot t may have: it has been woken itself, and
// no node had room for it then, so that it may have lost one. Zero: there is none. If t waited once more, and so did each that nodes
// come to after a while, the slot would go from one to the next, and nobody would begin.
func (s scene) unused(t job.Task, now job.Micros) int64 {
	if woken(t) && now.Sub(t.DueNow) > slotPatience {
		for _, h := range s.idle {
			if h.Priority <= t.Priority {
				return h.ID
			}
		}
	}
	return 0
}

// lacksSlot tells whether a due time has waited, and has no slot of its group: it lost the one that it was woken for, or has none yet.
// It finds one or waits on, and what waits for a slot is no misfire.
func (s scene) lacksSlot(t job.Task) bool {
	return s.group != nil && t.Attempt == 1 && woken(t) && !slices.Contains(s.holders, t.ID)
}

// decide says what becomes of a task that is prepared. What is not a start is final only at or after the due instant:
// before it, what stands in the way may still go.
func decide(t job.Task, s scene, now job.Micros) decision {
	d := s.allowance.judge(judge(t, s, now), now)
	if d.verdict != begin && now < t.DueNow {
		return decision{task: t, verdict: hold}
	}
	return d
}

func judge(t job.Task, s scene, now job.Micros) decision {
	j := s.job
	switch {
	case j == nil || j.Deleted:
		return refused(t, job.Skipped, now, "job was deleted")
	case t.Origin == 0 && j.PauseAt(now) != nil:
		return refused(t, job.Skipped, now, "%s", j.PauseAt(now))
	case t.Origin == 0 && t.Due < restored(j, now):
		return refused(t, job.Skipped, now, "%s", restoredReason(j))
	case j.SpecErr != nil:
		return refused(t, job.Skipped, now, "%v", j.SpecErr)
	case s.off != nil:
		return refused(t, job.Skipped, now, "%s", disabled(s.off))
	case s.cancelled:
		return refused(t, job.Skipped, now, "%s", cancelledBackfill)
	case t.Origin < 0 && j.PauseAt(now) != nil:
		return waits(t, s, sql.WaitPause, now, "paused") // the sweeper wakes it once the pause is over
	}
	spec := &j.Spec
	if end := spec.Expires(t); end != 0 && now > end {
		return refused(t, job.Missed, now, "could not be started by its deadline, %s after it was due", spec.StartDeadline)
	}
	switch gone, err := withdrawn(t, j); {
	case err != nil:
		return refused(t, job.Skipped, now, "%v", err)
	case gone:
		return refused(t, job.Skipped, now, "a calendar was changed: it is no due time any more")
	}
	if now.Sub(t.DueNow) > spec.MissedAfter() && !s.lacksSlot(t) {
		sched, err := compile(j)
		switch {
		case err != nil:
			return refused(t, job.Skipped, now, "%v", err)
		case t.Origin != 0: // asked for: there is no later due time that takes its place
		case !startsLate(spec, sched, t.Due, now):
			return refused(t, job.Missed, now, "nobody could start it within %s; misfire policy %s", job.Duration(spec.MissedAfter()), spec.Misfire.Policy)
		}
	}
	d := overlap(t, s, now)
	if d.verdict == begin && s.group != nil {
		d = slot(t, s.without(d.supersedes), d, now)
	}
	if d.verdict == begin {
		d.attempt = job.Started{Task: t, Spec: spec, At: now, SpawnBy: max(t.DueNow, now) + job.Micros(s.window)}
	}
	return d
}

// slot has a task that would begin take a slot of its group, or wait for one. It keeps the one that it holds, unless the group has
// fewer slots than holders: some were taken away, or what executed was moved into it, and was given back since. Then those that
// begin are no more than there are slots all the same.
func slot(t job.Task, s scene, d decision, now job.Micros) decision {
	holds, from := slices.Contains(s.holders, t.ID), s.unused(t, now)
	switch {
	case holds && len(s.holders) <= s.group.Slots:
	case holds && s.executing < s.group.Slots:
		d.slot = s.group.ID // it writes the group: nobody begins beside it by what was read before, on multi-writer engines either
	case !holds && len(s.holders) < s.group.Slots:
		d.slot = s.group.ID
	case !holds && len(s.holders) == s.group.Slots && from != 0:
		d.slot, d.from = s.group.ID, from
	default:
		supersedes := d.supersedes
		d = waits(t, s, sql.WaitGroup, now, "group %s has no free slot", s.group.Name)
		if d.verdict == wait {
			d.supersedes = supersedes
		}
	}
	return d
}

// overlap applies the job's overlap policy.
func overlap(t job.Task, s scene, now job.Micros) decision {
	executing, ahead := []sql.TaskRow(nil), []sql.TaskRow(nil) // ahead: those that come before t and have not begun
	for _, o := range s.others {
		switch {
		case o.ID == t.ID:
		case o.State == job.Executing:
			executing = append(executing, o)
		case o.DueNow <= now && before(o, t):
			ahead = append(ahead, o)
		}
	}
	yes := decision{task: t, verdict: begin}
	if t.Origin < 0 && s.job.Spec.Overlap != job.OverlapAllow { // it neither takes a place nor loses it
		if len(executing)+len(ahead) > 0 {
			return waits(t, s, sql.WaitJob, now, "overlap")
		}
		return yes
	}
	switch spec := &s.job.Spec; spec.Overlap {
	case job.OverlapAllow:
		return yes
	case job.OverlapQueue:
		if len(executing)+len(ahead) == 0 {
			return yes
		}
		return waits(t, s, sql.WaitJob, now, "overlap: the queue is full")
	case job.OverlapReplace:
		for _, o := range s.others {
			if (o.State == job.Executing || o.State == job.Waiting) && o.ID != t.ID && o.Origin >= 0 && byDue(o.Task, t) > 0 {
				// t was delayed, or is a retry: it neither kills what is later nor keeps it waiting.
				return refused(t, job.Superseded, now, "the due time %s took its place", o.Due)
			}
		}
		supersedes := slices.DeleteFunc(slices.Clone(ahead), isBackfill)
		d := yes
		if len(executing) > 0 || slices.ContainsFunc(ahead, isBackfill) {
			d = waits(t, s.without(supersedes), sql.WaitJob, now, "overlap")
		}
		if d.verdict != refuse {
			d.replaces, d.supersedes = slices.DeleteFunc(executing, isBackfill), supersedes
		}
		return d
	default: // skip
		turn := slices.ContainsFunc(ahead, isBackfill)
		waiting := slices.DeleteFunc(ahead, func(o sql.TaskRow) bool { return isBackfill(o) || o.State != job.Waiting && !woken(o.Task) })
		caughtUp := catchesUp(t, spec, now)
		overtaken := woken(t) && (spec.Orders() || slices.ContainsFunc(s.others, isBackfill)) // who ends then wakes it again
		stopped := len(executing) > 0 || turn
		switch {
		case stopped && (t.Attempt > 1 || caughtUp || overtaken):
			// A retry began before the other one did, and is not over. What is caught up goes one after the other. And
			// what waited for its turn loses it to no later due time that overtook it.
			return waits(t, s, sql.WaitJob, now, "overlap")
		case slices.ContainsFunc(executing, isNoBackfill):
			return refused(t, job.Skipped, now, "overlap: the run due %s is still executing", executing[0].Due)
		case len(waiting) > 0 && t.Attempt == 1 && !caughtUp:
			return refused(t, job.Skipped, now, "overlap: the run due %s still waits for its start", waiting[0].Due)
		case stopped: // a backfill and the schedule take turns: neither is to lose due times to the other
			return waits(t, s, sql.WaitJob, now, "overlap")
		}
		return yes
	}
}

// before tells whether a task that is due comes before another one of its job: the earlier due time. Between the schedule and
// a backfill it is who has been woken, for then it is its turn, and else what is ready for longer: where due times come as
// fast as runs end, there is always one that is. What waits is not: it will be woken when it is its turn.
func before(o sql.TaskRow, t job.Task) bool {
	switch {
	case isBackfill(o) == (t.Origin < 0):
		return byDue(o.Task, t) < 0
	case o.State == job.Waiting:
		return false
	case woken(o.Task) != woken(t):
		return woken(o.Task)
	}
	return o.DueNow < t.DueNow || o.DueNow == t.DueNow && isNoBackfill(o)
}

// catchesUp tells whether a task is one of those that policy all starts late.
func catchesUp(t job.Task, spec *job.Spec, now job.Micros) bool {
	return spec.Misfire.Policy == job.MisfireAll && now.Sub(t.Due) > spec.MissedAfter()
}

// woken tells whether a task has waited already: it keeps its place.
func woken(t job.Task) bool { return t.DueNow > t.Due }

func isBackfill(t sql.TaskRow) bool   { return t.Origin < 0 }
func isNoBackfill(t sql.TaskRow) bool { return t.Origin >= 0 }

// waits lets a task wait, unless as many of its job do so as may: then the due time is skipped, for the reason. What
// backfills have waiting does not count: they bound themselves.
func waits(t job.Task, s scene, kind sql.WaitKind, now job.Micros, reason string, args ...any) decision {
	n := 0
	for _, o := range s.others {
		if o.State == job.Waiting && o.ID != t.ID && o.Origin >= 0 {
			n++
		}
	}
	most := s.job.Spec.QueueMax()
	if catchesUp(t, &s.job.Spec, now) {
		most = max(most, s.job.Spec.CatchUp())
	}
	if n >= most && t.Attempt == 1 && t.Origin >= 0 && !woken(t) && !slices.Contains(s.holders, t.ID) {
		return refused(t, job.Skipped, now, "%s; %d due times wait already", fmt.Sprintf(reason, args...), n)
	}
	d := decision{task: t, verdict: wait, wait: sql.Wait{
		TaskID: t.ID, JobID: t.JobID, Kind: kind, Priority: s.job.Spec.Priority, Due: t.Due, Since: now, Expires: s.job.Spec.Expires(t),
	}}
	if t.Origin < 0 { // its due time is before all others: it comes when it was ready
		d.wait.Due = t.DueNow
	}
	if kind == sql.WaitGroup {
		d.wait.GroupID = s.group.ID
	}
	return d
}

// refused ends a task without a start.
func refused(t job.Task, o job.Outcome, now job.Micros, format string, args ...any) decision {
	return decision{task: t, verdict: refuse, run: unstarted(t, o, fmt.Sprintf(format, args...), now)}
}

// unwanted ends a task whose start was given back after somebody, or a later due time, wanted it killed.
func unwanted(t job.Task, w sql.Wish, now job.Micros) decision {
	if w == sql.ReplaceIt {
		return refused(t, job.Superseded, now, "a later due time took its place before it began")
	}
	return refused(t, job.Killed, now, "killed on request before it began")
}

// unstarted is the run of a task that was not started.
func unstarted(t job.Task, o job.Outcome, reason string, now job.Micros) job.Run {
	return job.Run{
		Launch: t.Launch, JobID: t.JobID, Due: t.Due, Until: t.Due, Count: 1, Origin: t.Origin, Attempt: t.Attempt, Final: true, Ended: now,
		Result: job.Result{Outcome: o, Reason: reason},
	}
}

// settle corrects a decision by what its row says after an unknown commit.
func (d *decision) settle(rows map[int64]sql.TaskRow) {
	r, ok := rows[d.task.ID]
	switch {
	case ok && r.Is(d.task.Launch, job.Executing):
		d.verdict = begin
	case ok && r.Is(d.task.Launch, job.Prepare):
		d.verdict = hold
	default:
		d.verdict = forget
	}
}

// outdated are, of the tasks of one transaction, those of jobs whose later due times take the place of earlier ones,
// when a later one of them is due as well: deciding them one after the other, the earlier one would be started and
// killed at once.
func outdated(tasks []job.Task, jobs map[int64]*sql.JobRow, now job.Micros) map[int64]job.Task {
	last := map[int64]job.Task{}
	replaces := func(t job.Task) bool {
		j := jobs[t.JobID]
		return j != nil && j.Spec.Overlap == job.OverlapReplace && t.Origin >= 0 && t.DueNow <= now
	}
	for _, t := range tasks {
		if l, ok := last[t.JobID]; replaces(t) && (!ok || l.Due < t.Due || l.Due == t.Due && l.ID < t.ID) {
			last[t.JobID] = t
		}
	}
	out := map[int64]job.Task{}
	for _, t := range tasks {
		if l, ok := last[t.JobID]; ok && replaces(t) && l.ID != t.ID {
			out[t.ID] = l
		}
	}
	return out
}

// byDue orders tasks as they are decided: the earliest due first.
func byDue(a, b job.Task) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
}
