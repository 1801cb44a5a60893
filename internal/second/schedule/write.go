package schedule

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// write makes the rows say what the verdicts say. A run whose row is not as expected loses its verdict: somebody else has
// taken it, or an edit has taken it back. The transaction has locked the rows of the jobs.
func write(tx *sql.Tx, session trip.Owner, verdicts []verdict, now job.Micros, window int64) error {
	if err := writeStarts(tx, session, verdicts, now, window); err != nil {
		return err
	}
	if err := writeRefusals(tx, session, verdicts, now); err != nil {
		return err
	}
	return trip.MarkBegun(tx, begunOf(verdicts))
}

// takeOver makes runs of other holders runs of this session, where the verdict changes them. Its own runs and the others stay as they are.
func takeOver(tx *sql.Tx, session trip.Owner, verdicts []verdict, holders map[int64]trip.Owner) error {
	if len(holders) == 0 {
		return nil
	}
	before := map[trip.Owner][]trip.Launch{} // the launches at which the holders have the runs
	for i := range verdicts {
		v := &verdicts[i]
		if v.action == start || v.action == refuse {
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
	return nil
}

func writeStarts(tx *sql.Tx, session trip.Owner, verdicts []verdict, now job.Micros, window int64) error {
	launches := launchesOf(verdicts, start)
	n, err := trip.Start(tx, session, launches, now, window)
	if err != nil || n == int64(len(launches)) {
		return err
	}
	started, err := trip.StartedAmong(tx, session, launches)
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

func launchesOf(verdicts []verdict, a action) (launches []trip.Launch) {
	for i := range verdicts {
		if verdicts[i].action == a {
			launches = append(launches, verdicts[i].run.Launch)
		}
	}
	return launches
}

// forgetOthers changes the verdicts of one action on runs that are not among those whose rows were changed.
func forgetOthers(verdicts []verdict, a action, changed map[trip.Launch]bool) {
	for i := range verdicts {
		if v := &verdicts[i]; v.action == a && !changed[v.run.Launch] {
			v.action = forget
		}
	}
}

// begunOf is what the verdicts say about jobs: how far the schedule has begun (rule B), and which run now excludes others.
func begunOf(verdicts []verdict) []trip.Begun {
	index := map[int64]int{}
	var out []trip.Begun
	for i := range verdicts {
		v := &verdicts[i]
		if v.action != start && v.action != refuse || v.outcome == job.Superseded {
			continue
		}
		at, ok := index[v.run.JobID]
		if !ok {
			at = len(out)
			index[v.run.JobID] = at
			out = append(out, trip.Begun{JobID: v.run.JobID})
		}
		if v.run.Kind == trip.Schedule {
			out[at].To = max(out[at].To, v.run.Due)
		}
		if v.action == start {
			out[at].Running = v.run.Run
		}
	}
	return out
}
