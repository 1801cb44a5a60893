package schedule

import (
	"fmt"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// write changes the rows as the verdicts say. If a run's row is not as expected, another node has
// taken the run over, or an edit has taken it back. Such a run loses its verdict. The transaction
// has locked the rows of the groups and jobs. write returns the number of runs that it woke.
func write(tx *sql.Tx, session trip.Owner, verdicts []verdict, s *scene, window int64) (woken int, err error) {
	for _, step := range []func() error{
		func() error { return writeStarts(tx, session, verdicts, s.now, window) },
		func() error { doubt(verdicts, refuse, wait, drop); return nil },
		func() error { return writeWaits(tx, session, verdicts) },
		func() error { doubt(verdicts, refuse, drop); return nil },
		func() error { return writeRefusals(tx, session, verdicts, s.now) },
		func() error { return writeReleases(tx, session, verdicts) },
		func() error { return writeSuperseded(tx, session, verdicts, s.now) },
		func() error { return writeGathered(tx, session, verdicts) },
		func() error { return trip.MarkBegun(tx, begunOf(verdicts, s)) },
		func() error { return trip.MoveDelayed(tx, delayedOf(verdicts, s)) },
		func() error { return trip.Uncrowd(tx, aloneOf(verdicts)) },
	} {
		if err := step(); err != nil {
			return 0, err
		}
	}

	return wakeNext(tx, verdicts, s)
}

// takeOver makes this session the owner of runs that others hold, but only of runs whose rows the
// verdicts change.
func takeOver(tx *sql.Tx, session trip.Owner, verdicts []verdict, holders map[int64]trip.Owner) error {
	if len(holders) == 0 {
		return nil
	}

	before := map[trip.Owner][]trip.Launch{} // by owner, the launches before the takeover
	for i := range verdicts {
		v := &verdicts[i]
		if v.action == start || v.action == refuse || v.action == wait || v.action == postpone ||
			v.action == drop {
			owner := holders[v.run.Run]
			before[owner] = append(before[owner], trip.Launch{Run: v.run.Run, Claim: v.run.Claim - 1})
		}
	}

	taken := map[trip.Launch]bool{}
	for _, owner := range slices.Sorted(maps.Keys(before)) {
		launches, err := trip.Take(tx, session, owner, before[owner])
		if err != nil {
			return err
		}
		for _, l := range launches {
			taken[l] = true
		}
	}

	forgetOthers(verdicts, start, taken)
	forgetOthers(verdicts, refuse, taken)
	forgetOthers(verdicts, wait, taken)
	forgetOthers(verdicts, postpone, taken)
	forgetOthers(verdicts, drop, taken)
	return nil
}

func writeStarts(tx *sql.Tx, session trip.Owner, verdicts []verdict, now job.Micros, window int64) error {
	type kind struct {
		group   int32
		watched bool
	}
	byKind := map[kind][]trip.Launch{} // nearly all runs have no group and nobody watches, so this is usually one list
	for i := range verdicts {
		if v := &verdicts[i]; v.action == start {
			k := kind{v.group, v.run.Watched}
			byKind[k] = append(byKind[k], v.run.Launch)
		}
	}

	moved := true
	for k, launches := range byKind {
		n, err := trip.Start(tx, session, k.group, k.watched, launches, now, window)
		if err != nil {
			return err
		}
		moved = moved && n == int64(len(launches))
	}

	if moved {
		return nil
	}

	started, err := trip.StartedAmong(tx, session, launchesOf(verdicts, start))
	forgetOthers(verdicts, start, started)
	return err
}

func writeRefusals(tx *sql.Tx, session trip.Owner, verdicts []verdict, now job.Micros) error {
	var refusals []trip.Refusal
	for i := range verdicts {
		if v := &verdicts[i]; v.action == refuse {
			refusals = append(refusals, trip.Refusal{Launch: v.run.Launch, Outcome: v.outcome, Reason: v.reason})
		}
	}

	n, err := trip.Refuse(tx, session, refusals, now)
	if err != nil || n == int64(len(refusals)) {
		return err
	}

	ended, err := trip.EndedAmong(tx, launchesOf(verdicts, refuse))
	forgetOthers(verdicts, refuse, ended)
	return err
}

// writeWaits makes runs wait. It marks the run that each waits for, so the end of that run wakes
// the waiting run. If the mark fails, the marked run has ended or is ending. Then the waiting run
// is judged again later.
func writeWaits(tx *sql.Tx, session trip.Owner, verdicts []verdict) error {
	awaited, replaced := map[int64]bool{}, map[int64]bool{}
	for i := range verdicts {
		if v := &verdicts[i]; v.action == wait && v.turn != v.run.Launch.Run {
			awaited[v.turn] = true
			replaced[v.turn] = replaced[v.turn] || v.replaces
		}
	}

	marked, err := trip.MarkAwaited(tx, slices.Sorted(maps.Keys(awaited)))
	if err != nil {
		return err
	}

	maps.DeleteFunc(replaced, func(run int64, is bool) bool { return !is || !marked[run] })
	if err := trip.Replace(tx, slices.Sorted(maps.Keys(replaced))); err != nil {
		return err
	}

	var waiters []trip.Waiter
	for i := range verdicts {
		v := &verdicts[i]
		switch {
		case v.action != wait:
		case awaited[v.turn] && !marked[v.turn]:
			*v = verdict{action: hold, run: v.run, def: v.def}
		default:
			waiters = append(waiters, trip.Waiter{Launch: v.run.Launch, Place: v.place})
		}
	}

	n, err := trip.Wait(tx, session, waiters)
	if err != nil || n == int64(len(waiters)) {
		return err
	}

	waiting, err := trip.WaitingAmong(tx, launchesOf(verdicts, wait))
	forgetOthers(verdicts, wait, waiting)
	return err
}

// writeReleases makes prepared runs of this session idle, at once or for a later instant.
func writeReleases(tx *sql.Tx, session trip.Owner, verdicts []verdict) error {
	for i := range verdicts {
		if v := &verdicts[i]; v.action == postpone {
			if _, err := trip.Postpone(tx, session, launchesOf(verdicts, postpone), v.at); err != nil {
				return err
			}
			break // one call is enough: all postponed runs rest until the same instant
		}
	}
	_, err := trip.Release(tx, session, trip.Prepared, launchesOf(verdicts, release))
	return err
}

// writeSuperseded ends runs that a starting or waiting run replaces. The replaced runs have not
// begun.
func writeSuperseded(tx *sql.Tx, session trip.Owner, verdicts []verdict, now job.Micros) error {
	var refusals []trip.Refusal
	for i := range verdicts {
		v := &verdicts[i]
		if v.action != start && v.action != wait {
			continue
		}
		for _, h := range v.supersedes {
			reason := job.Reason{Code: job.ReasonReplaced, Text: fmt.Sprintf(replacedBy, v.run.Due)}
			refusals = append(refusals, trip.Refusal{Launch: h.Launch, Reason: reason})
		}
	}

	return trip.Supersede(tx, session, refusals, now)
}

// wakeNext wakes the next run of each job whose turn was not used, and the next runs of groups
// with free slots. It returns the number of runs that it woke.
func wakeNext(tx *sql.Tx, verdicts []verdict, s *scene) (woken int, err error) {
	jobs, afterSchedule := map[int64]bool{}, map[int64]bool{}
	for i := range verdicts {
		if v := &verdicts[i]; (v.action == refuse || v.action == postpone) && v.passes {
			jobs[v.run.JobID] = true
			afterSchedule[v.run.JobID] = v.run.Kind != trip.Backfill
		}
	}

	groups, err := writeSlots(tx, verdicts, s)
	if err != nil {
		return 0, err
	}

	byJobs, err := trip.WakeJobs(tx, slices.Sorted(maps.Keys(jobs)), afterSchedule, s.now)
	if err != nil || len(groups) == 0 {
		return byJobs, err
	}

	byGroups, err := trip.WakeGroups(tx, groups, s.now)
	return byJobs + byGroups, err
}

// writeSlots writes the numbers of taken slots and the starts of the groups, as they are after the
// verdicts. It returns the groups.
func writeSlots(tx *sql.Tx, verdicts []verdict, s *scene) (groups []*trip.Group, err error) {
	moved, started := map[int32]int{}, map[int32]bool{}
	for _, g := range s.slots {
		g.Starts = g.known
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.action == start && v.rated != 0 {
			started[v.rated] = true
			s.slots[v.rated].Count(v.begins)
		}
		switch {
		case v.action == start && v.takes:
			moved[v.group]++
		case v.gives && (v.action == wait || v.action == refuse || v.action == postpone):
			moved[v.run.Group]--
		}
	}

	groups = s.lockedGroups()
	for _, g := range groups {
		by := moved[g.ID]
		g.Taken = s.slots[g.ID].before + by
		switch {
		case started[g.ID]:
			err = trip.MoveStarted(tx, g, by)
		case by != 0:
			err = trip.MoveTaken(tx, g.ID, by)
		}
		if err != nil {
			return nil, err
		}
	}

	return groups, nil
}

func launchesOf(verdicts []verdict, a action) (launches []trip.Launch) {
	for i := range verdicts {
		if verdicts[i].action == a {
			launches = append(launches, verdicts[i].run.Launch)
		}
	}
	return launches
}

// forgetOthers turns a verdict with action a into forget if the row of its run was not changed.
func forgetOthers(verdicts []verdict, a action, changed map[trip.Launch]bool) {
	for i := range verdicts {
		if v := &verdicts[i]; v.action == a && !changed[v.run.Launch] {
			v.action = forget
		}
	}
}

// begunOf collects the effects of the verdicts on jobs: the latest due time that has begun or
// ended, and the run that has the turn.
func begunOf(verdicts []verdict, s *scene) []trip.Begun {
	index := map[int64]int{}
	var out []trip.Begun
	for i := range verdicts {
		v := &verdicts[i]
		if v.action != start && v.action != refuse && v.action != wait && v.action != postpone ||
			s.jobs[v.run.JobID].gone {
			continue
		}
		at, ok := index[v.run.JobID]
		if !ok {
			at = len(out)
			index[v.run.JobID] = at
			out = append(out, trip.Begun{JobID: v.run.JobID})
		}
		b := &out[at]
		if (v.action == start || v.action == refuse) && due(&v.run) {
			b.To = max(b.To, v.run.Due)
		}
		for j := range v.supersedes {
			b.To = max(b.To, v.supersedes[j].Due)
		}
		if v.turn != 0 {
			b.Running = v.turn
		}
	}

	return out
}

// aloneOf lists the jobs that have a starting run and are no longer crowded.
func aloneOf(verdicts []verdict) (jobs []int64) {
	for i := range verdicts {
		if v := &verdicts[i]; v.action == start && v.alone {
			jobs = append(jobs, v.run.JobID)
		}
	}
	return jobs
}
