package api

import (
	"errors"
	"fmt"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

// live explains the due time by its run that has not ended yet.
func (x *inquiry) live() error {
	run, err := x.cfg.DB.LiveAt(x.ctx, x.j.ID, job.MicrosOf(x.at))
	if errors.Is(err, sql.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	x.e.Due = true
	return x.inProgress(&run)
}

// askedRun is a due time for which somebody requested a run. runs are the ended attempts. If no
// attempt has ended, live is the run in progress.
type askedRun struct {
	runs []read.Run
	live *read.Run
}

func (a *askedRun) any() *read.Run {
	if a.live != nil {
		return a.live
	}
	return &a.runs[0]
}

// by says how the run was requested.
func (a *askedRun) by() string {
	if a.any().Kind == job.FromBackfill {
		return "by a backfill"
	}
	return "by hand"
}

// findAsked finds the runs requested for the instant, by hand or with a backfill. Attempts of the
// same due time and request are adjacent.
func (x *inquiry) findAsked() error {
	runs, err := x.cfg.DB.AskedAt(x.ctx, x.j.ID, x.from, x.before)
	if err != nil {
		return err
	}

	runs = x.readable(runs)
	for i := range runs {
		r := &runs[i]
		if i == 0 || r.Due != runs[i-1].Due || r.Request != runs[i-1].Request {
			x.askedFor = append(x.askedFor, askedRun{})
		}

		last := &x.askedFor[len(x.askedFor)-1]
		switch {
		case r.State == job.Ended:
			last.runs = append(last.runs, *r)
		case len(last.runs) == 0: // no attempt has ended; otherwise the ended attempts describe the run
			last.live = r
		}
	}

	return nil
}

// asked explains an instant at which only a requested run was due, but none by the schedule.
func (x *inquiry) asked() error {
	if len(x.askedFor) == 0 {
		return nil
	}

	first := &x.askedFor[0]
	if first.any().Due != x.from {
		x.e.DueTime = instant(first.any().Due)
	}

	if first.live != nil {
		x.at = first.any().Due.Time()
		if err := x.inProgress(first.live); err != nil {
			return err
		}
	} else {
		x.say(causeOf(&first.runs[len(first.runs)-1]), "%s", inWords(first.runs))
		x.listRuns(first.runs)
	}

	why := "The schedule has no due time at that instant"
	if x.e.Due {
		why = "The schedule has not started this due time"
	}

	x.e.Answer = why + "; the run was requested " + first.by() + ". " + x.e.Answer
	x.askedFor = x.askedFor[1:]
	return nil
}

// beside adds requested runs that the answer does not mention yet.
func (x *inquiry) beside() {
	for i := range x.askedFor {
		a := &x.askedFor[i]
		text := "It has not ended."
		if a.live == nil {
			text = inWords(a.runs)
			x.listRuns(a.runs)
		}
		x.add("Another run, due %s, was requested %s. %s", a.any().Due, a.by(), text)
	}
}

func (x *inquiry) listRuns(runs []read.Run) {
	for i := range runs {
		x.e.Runs = append(x.e.Runs, viewOfRun(&runs[i]))
	}
}

// inProgress describes a run that has not ended.
func (x *inquiry) inProgress(run *read.Run) error {
	paused := x.j.PauseAt(max(x.now, run.DueNow))
	switch {
	case run.State == job.Executing:
		x.say(causeExecuting, "It was started at %s and is still executing, as run %s.", max(run.Started, run.DueNow),
			job.RunID(run.ID))
	case run.State == job.Waiting:
		return x.waits(run)
	case run.Kind == job.FromSchedule && paused != nil:
		x.isPaused(paused)
		x.add("It will be skipped.")
	case run.Kind == job.FromBackfill && x.j.PauseAt(x.now) != nil:
		x.e.Waiting = &view.Wait{For: "pause", Since: instant(x.j.PauseAt(x.now).Since)}
		x.say(causeWaiting, "It belongs to a backfill and is waiting for the end of the pause.")
	case run.DueNow > x.now:
		x.say(causeAhead, "It is planned and will start at %s, in %s.", run.DueNow,
			run.DueNow.Sub(x.now).Round(time.Millisecond))
	default:
		return x.notStarted(run)
	}

	return nil
}

// waits says what a run is waiting for.
func (x *inquiry) waits(run *read.Run) error {
	const most = 2000 // more than the waiting runs that one job may have
	rows, err := x.cfg.DB.Waiting(x.ctx, []int64{x.j.ID}, most)
	if err != nil {
		return err
	}

	w := read.Wait{JobID: x.j.ID, Run: run.ID, Due: run.Due, Kind: run.Kind, Group: x.j.Spec.Group}
	for i := range rows {
		if rows[i].Run == run.ID {
			w = rows[i]
		}
	}

	x.e.Waiting = &view.Wait{For: "job", Since: since(&w), Until: instant(expires(&w, &x.j.Spec))}
	if w.Group != "" {
		x.e.Waiting.For, x.e.Waiting.Group = "group", w.Group
		if err := x.waitsInGroup(w.Group); err != nil {
			return err
		}
	} else {
		x.say(causeWaiting, "It is waiting for earlier runs of the job to end.")
	}

	x.addDeadline(&w)
	return nil
}

// waitsInGroup says what a run in the line of a group is waiting for.
func (x *inquiry) waitsInGroup(name string) error {
	rated, err := x.cfg.DB.Rated(x.ctx, []string{name})
	if err != nil {
		return err
	}

	g, is := rated[name]
	if !is {
		x.say(causeWaiting, "It is waiting for a free slot of its group, %s.", name)
		return nil
	}

	next := g.NextStart(x.now, 0)
	x.e.Waiting.Rate, x.e.Waiting.NextStart = g.Rate.String(), instant(next)
	x.say(causeWaiting, "It is waiting for the rate of its group, %s, which admits %d starts in %s; the next one is at %s.",
		name, g.Rate.Starts, g.Rate.PeriodText(), next)
	return nil
}

// addDeadline adds the time at which a waiting run becomes missed.
func (x *inquiry) addDeadline(w *read.Wait) {
	if at := expires(w, &x.j.Spec); at != 0 {
		x.add("If it has not started by %s, it will be missed.", at)
	}
}

// notStarted says why a due run has not started although it waits for no other run.
func (x *inquiry) notStarted(run *read.Run) error {
	unplaceable, err := x.unplaceable(x.ctx, []read.Job{*x.j}, 1)
	if err != nil {
		return err
	}

	w := read.Wait{Due: run.Due, Kind: run.Kind}
	x.e.Waiting = &view.Wait{For: "slot", Since: instant(run.DueNow), Until: instant(expires(&w, &x.j.Spec))}
	if len(unplaceable) == 0 {
		x.say(causeWaiting, "It is due and is waiting for a node with a free slot.")
		return nil
	}

	x.e.Waiting.For, x.e.Waiting.Selector = "node", placeText(&x.j.Spec)
	x.say(causeNoNode, "It has been waiting since %s for a suitable node: %s.", run.DueNow,
		job.NoNode(x.e.Waiting.Selector))
	x.addDeadline(&w)
	return nil
}

// unrecorded explains why no run is recorded.
func (x *inquiry) unrecorded() error {
	if x.j.SpecErr != nil && x.schedule == nil {
		x.say(causeBroken, "The stored definition cannot be read: %v.", x.j.SpecErr)
		return nil
	}

	if deleted, err := x.wasDeleted(); err != nil || deleted {
		return err
	}

	if !x.e.Due {
		x.notDue()
		return nil
	}

	if job.MicrosOf(x.at) < x.j.Created {
		return x.wasYounger()
	}

	ahead := job.MicrosOf(x.at) > x.now
	if ahead {
		if p := x.j.PauseAt(job.MicrosOf(x.at)); p != nil && (p.Until == 0 || p.Until > job.MicrosOf(x.at)) {
			x.isPaused(p)
			return nil
		}
	} else if paused, err := x.wasPausedAt(job.MicrosOf(x.at)); err != nil || paused {
		return err
	}

	if x.j.Error != "" {
		x.say(causeBroken, "The job cannot be planned: %s.", x.j.Error)
		return nil
	}

	if ahead {
		left := job.MicrosOf(x.at).Sub(x.now).Round(time.Second)
		x.say(causeAhead, "It is in the future: it is due in %s.", job.Duration(left))
		return nil
	}

	if err := x.wasDown(); err != nil {
		return err
	}

	switch {
	case x.e.Down != nil:
		x.say(causeDown, "There is no record of it. %s", outageWords(x.e.Down))
	case x.now.Sub(job.MicrosOf(x.at)) < time.Minute:
		x.say(causeNoRecord, "There is no record of it yet; it will be planned in a moment.")
	default:
		x.say(causeNoRecord,
			"It was a due time, but there is no record of it: either retention has removed the record, or the job "+
				"was changed at that moment.")
	}

	return nil
}

// notDue says why the instant was no due time.
func (x *inquiry) notDue() {
	if x.e.Changed != nil {
		defer func() {
			x.add("The definition was changed later, at %s by %s.", job.MicrosOf(x.e.Changed.At), x.e.Changed.By)
		}()
	}

	if gap := gapNear(x.at, x.e.Before, x.e.After); gap != "" {
		x.say(causeGap,
			"This time of day does not exist, because daylight saving begins. The job fires at the end of the gap, at %s.",
			gap)
		return
	}

	if first := x.firstPass(); first != "" {
		x.say(causeRepeat,
			"This time of day occurs twice, because daylight saving ends. The job fires only the first time, at %s.",
			first)
		return
	}

	if name, why, ok := x.closed(); ok {
		x.e.Calendar = &view.Exclusion{Name: name, Why: why}
		x.say(causeCalendar, "It would be a due time, but calendar %s excludes it: %s.", name, why)
		x.sayWhereTo()
		return
	}

	if weekly := x.spec; weekly.Weeks != nil {
		weekly.Weeks, weekly.Calendars, weekly.OnClosed = nil, nil, ""
		if x.dueBy(weekly) {
			x.say(causeWeeks, "It is in a week that the job leaves out (weeks: %s).", x.spec.Weeks)
			return
		}
	}

	switch unbounded := x.dueUnbounded(); {
	case unbounded && x.spec.Start != nil && x.at.Before(*x.spec.Start):
		x.say(causeTooEarly, "It is before the job's start, %s.", x.spec.Start.Format(time.RFC3339Nano))
	case unbounded && x.spec.End != nil && x.at.After(*x.spec.End):
		x.say(causeTooLate, "It is after the job's end, %s.", x.spec.End.Format(time.RFC3339Nano))
	case unbounded && x.spec.MaxFires > 0:
		x.say(causeUsedUp, "By then the job had reached its maximum of %d due times (max_fires).", x.spec.MaxFires)
	default:
		x.unshifted()
	}
}

// sayWhereTo adds to which time a due time on a closed day moves.
func (x *inquiry) sayWhereTo() {
	if x.spec.OnClosed != job.ClosedNext && x.spec.OnClosed != job.ClosedPrevious {
		return
	}

	to, ok := x.spec.MovesTo(x.at, x.calendars...)
	if !ok {
		x.add("It does not move (on_closed: %s): a due time moves at most %d days, to an open day that is open at its "+
			"time of day.", x.spec.OnClosed, job.MaxMove)
		return
	}

	x.e.Calendar.MovedTo = &to
	x.add("It moves to %s (on_closed: %s).", to.Format(time.RFC3339Nano), x.spec.OnClosed)
}

// dueUnbounded reports whether the instant would be due if the definition had no start, no end and
// no max_fires.
func (x *inquiry) dueUnbounded() bool {
	spec := x.spec
	// Intervals are counted from the start, so move it back by whole intervals.
	if start := spec.Start; spec.Every != 0 && start != nil && x.at.Before(*start) {
		earlier := start.Add(-(start.Sub(x.at)/time.Duration(spec.Every) + 1) * time.Duration(spec.Every))
		spec.Start = &earlier
	} else if spec.Every == 0 {
		spec.Start = nil
	}

	spec.End, spec.MaxFires = nil, 0
	return x.dueBy(spec)
}

// unshifted answers that the instant is no due time, or that it would be a due time without jitter.
func (x *inquiry) unshifted() {
	if x.spec.Manual {
		x.say(causeNotDue, "The job has no schedule: it runs only when somebody runs it.")
		return
	}
	if x.spec.After != nil || x.spec.Delay != 0 {
		x.err = errors.Join(x.err, x.unprompted())
		return
	}
	spec := x.spec
	spec.Jitter = 0
	if x.spec.Jitter != 0 && x.e.After != nil && x.dueBy(spec) {
		x.say(causeShifted, "The jitter of %s gives this job a fixed delay, so it is due later, at %s.",
			x.spec.Jitter, x.e.After.Due.Format(time.RFC3339Nano))
		return
	}
	x.say(causeNotDue, "It is not a due time of this job.")
}

// dueBy reports whether the instant would be due by another definition.
func (x *inquiry) dueBy(spec job.Spec) bool {
	schedule := x.compile(&spec)
	if schedule == nil {
		return false
	}

	is := false
	err := job.Compute(x.ctx, job.DefiningWork, func(w *job.Work) error {
		due, ok := w.On(schedule).Next(x.at.Add(-time.Microsecond))
		is = ok && due.Equal(x.at)
		return nil
	})
	if err != nil {
		x.err = x.spec.Explain(err, x.calendars)
	}

	return is
}

// gapNear returns the due time at the end of a daylight-saving gap, or "" if the instant is more
// than two hours away from it. A time of day in the gap has two readings: with the offset before
// the change, and with the offset after it. One reading lies before the end of the gap, the other
// after it.
func gapNear(at time.Time, neighbours ...*view.DueTime) string {
	for _, v := range neighbours {
		if v == nil || v.Mark != job.Gap {
			continue
		}
		if v.Due.Sub(at).Abs() <= 2*time.Hour {
			return v.Due.Format(time.RFC3339Nano)
		}
	}
	return ""
}

// firstPass returns the due time before the instant if both have the same time of day because the
// clock was set back between them. Otherwise it returns "".
func (x *inquiry) firstPass() string {
	v := x.e.Before
	if v == nil || v.Mark != job.Repeat {
		return ""
	}

	zone, err := job.LoadZone(x.spec.Timezone)
	if err != nil || x.at.Sub(v.Due) > 3*time.Hour ||
		v.Due.In(zone).Format(time.DateTime) != x.at.In(zone).Format(time.DateTime) {
		return ""
	}

	return v.Due.Format(time.RFC3339Nano)
}

// isPaused answers that the job is paused, with author and end of the pause.
func (x *inquiry) isPaused(p *job.Pause) {
	x.e.Pause = viewOfPause(p)
	x.say(causePaused, "%s, and has no due times until %s.", pauseWords(p, "has been paused since"), endWords(p))
}

// pauseWords returns a text such as "The job was paused from … by alice (why)". The end of the
// pause is not in the text.
func pauseWords(p *job.Pause, paused string) string {
	what := "The job"
	switch p.Scope {
	case job.ScopeApp:
		what = "The app " + p.App
	case job.ScopeCluster:
		what = "The cluster"
	}

	text := fmt.Sprintf("%s %s %s", what, paused, p.Since)
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += " (" + p.Reason + ")"
	}

	return text
}

func endWords(p *job.Pause) string {
	if p.Until == 0 {
		return "it is resumed"
	}
	return p.Until.String()
}
