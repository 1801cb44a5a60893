package result

import (
	"context"
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// together are ends that concern other runs: of runs that others wait for, that hold slots, or that are tried again.
type together struct {
	ends    []trip.End
	endings map[trip.Launch]trip.Ending // those whose rows are still ours
	groups  map[int32]*trip.Group       // locked
	free    map[int64]bool              // jobs that are locked, or gone

	write []trip.End // what is written
	busy  []trip.End // what is left for later: somebody else has locked what it needs
	woken int
}

// finisher writes ends that concern other runs, for a session or for one that is dead.
type finisher struct {
	exclusion *lock.Exclusion
	session   Session    // mints the next attempts, and tells the time
	owner     trip.Owner // whose runs have ended
	woken     func()     // called when runs became idle; nil: nobody asks

	audit func([]trip.End) *job.Entry // the audit's line of what was written; nil: there is none
}

// finish writes the ends, the next attempts, and wakes the runs that come next, all in one transaction. Then it tells sets which
// ends are written, or were by somebody else, and which are left for later, because somebody has locked a row that they need.
func (f *finisher) finish(ctx context.Context, ends []trip.End, sets func(done, busy []trip.End)) error {
	var t *together
	write := func(tx *sql.Tx) error {
		t = &together{ends: ends}
		if err := t.read(tx, f.owner); err != nil {
			return err
		}
		t.judge()
		if err := t.writeRows(tx, f.session, f.owner); err != nil || f.audit == nil || len(t.write) == 0 {
			return err
		}
		_, err := tx.InsertAudit(f.audit(t.write))
		return err
	}
	err := f.exclusion.Do(ctx, lock.Change{
		Name:   "finish together",
		Rows:   write,
		Settle: write, // runs that have ended already are not ours any more: neither they nor what follows is written again
		// If we die before this, the rows say how the runs ended, and the next attempts and woken runs are idle.
		Sets: func() { sets(t.done(), t.busy) },
	})
	if err == nil && t.woken > 0 && f.woken != nil {
		f.woken()
	}
	return err
}

// done are the ends that are not left for later.
func (t *together) done() []trip.End {
	left := make(map[trip.Launch]bool, len(t.busy))
	for i := range t.busy {
		left[t.busy[i].Launch] = true
	}
	return slices.DeleteFunc(slices.Clone(t.ends), func(e trip.End) bool { return left[e.Launch] })
}

// read locks the groups, jobs and rows of the runs, those of them that nobody else has locked.
func (t *together) read(tx *sql.Tx, session trip.Owner) error {
	launches := launchesOf(t.ends)
	ours, err := trip.Endings(tx, session, launches)
	if err != nil {
		return err
	}
	groups, jobs := map[int32]bool{}, map[int64]bool{}
	t.endings = make(map[trip.Launch]trip.Ending, len(ours))
	for _, e := range ours {
		t.endings[e.Launch] = e
		jobs[e.JobID] = true
		if e.Group != 0 {
			groups[e.Group] = true
		}
	}

	if t.groups, err = trip.LockGroupIDs(tx, slices.Sorted(maps.Keys(groups))); err != nil {
		return err
	}
	if err := t.lockJobs(tx, slices.Sorted(maps.Keys(jobs))); err != nil {
		return err
	}

	var free []trip.Launch
	for _, e := range t.ends {
		o, is := t.endings[e.Launch]
		switch {
		case !is:
		case !t.free[o.JobID], o.Group != 0 && t.groups[o.Group] == nil:
			t.busy = append(t.busy, e)
			delete(t.endings, e.Launch)
		default:
			free = append(free, e.Launch)
		}
	}
	return t.lockRuns(tx, session, free)
}

// lockJobs locks jobs that nobody else has locked. A job that is gone needs no lock.
func (t *together) lockJobs(tx *sql.Tx, ids []int64) error {
	locked, err := trip.LockJobs(tx, ids)
	if err != nil {
		return err
	}
	t.free = make(map[int64]bool, len(ids))
	var missing []int64
	for _, id := range ids {
		if t.free[id] = locked[id] != nil; !t.free[id] {
			missing = append(missing, id)
		}
	}
	exist, err := trip.Existing(tx, missing)
	for _, id := range missing {
		t.free[id] = !exist[id]
	}
	return err
}

// lockRuns locks the rows of runs, and reads them once more: somebody may have ended them, or want them killed, since.
func (t *together) lockRuns(tx *sql.Tx, session trip.Owner, launches []trip.Launch) error {
	locked, err := trip.LockEndings(tx, session, launches)
	if err != nil {
		return err
	}
	byLaunch := make(map[trip.Launch]trip.Ending, len(locked))
	for _, e := range locked {
		byLaunch[e.Launch] = e
	}
	for _, e := range t.ends {
		if _, was := t.endings[e.Launch]; !was {
			continue
		}
		if o, is := byLaunch[e.Launch]; is {
			t.endings[e.Launch] = o
		} else { // locked by somebody else, or ended by now: the next try tells
			delete(t.endings, e.Launch)
			t.busy = append(t.busy, e)
		}
	}
	return nil
}

// judge says which ends are final. A run that somebody wanted killed is not tried again.
func (t *together) judge() {
	for _, e := range t.ends {
		o, is := t.endings[e.Launch]
		if !is {
			continue
		}
		if o.Wished {
			e.Again = 0
		}
		e.Final = e.Again == 0
		t.write = append(t.write, e)
	}
}

// writeRows writes the ends and what follows from them.
func (t *together) writeRows(tx *sql.Tx, s Session, owner trip.Owner) error {
	if len(t.write) == 0 {
		return nil
	}
	if err := trip.Finish(tx, owner, t.write); err != nil {
		return err
	}
	if err := trip.InsertAgain(tx, t.attempts(s)); err != nil {
		return err
	}
	if err := t.giveBack(tx); err != nil {
		return err
	}

	jobs, afterSchedule := map[int64]bool{}, map[int64]bool{}
	for _, e := range t.endings {
		jobs[e.JobID] = true
		afterSchedule[e.JobID] = afterSchedule[e.JobID] || e.Kind != trip.Backfill
	}
	now := s.Now()
	byJobs, err := trip.WakeJobs(tx, slices.Sorted(maps.Keys(jobs)), afterSchedule, now)
	if err != nil {
		return err
	}
	byGroups, err := trip.WakeGroups(tx, slices.Collect(maps.Values(t.groups)), now)
	t.woken = byJobs + byGroups
	return err
}

// attempts are the next attempts of runs that are not over.
func (t *together) attempts(s Session) []trip.Again {
	var out []trip.Again
	for i := range t.write {
		if e := &t.write[i]; e.Again != 0 {
			out = append(out, trip.Again{After: e.Run, At: e.Again})
		}
	}
	if len(out) == 0 {
		return nil
	}
	id := s.Mint(len(out))
	for i := range out {
		out[i].Run = id + int64(i)
	}
	return out
}

// giveBack gives the slots of runs back to their groups.
func (t *together) giveBack(tx *sql.Tx) error {
	given := map[int32]int{}
	for _, e := range t.endings {
		if e.Group != 0 {
			given[e.Group]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(given)) {
		if err := trip.MoveTaken(tx, id, -given[id]); err != nil {
			return err
		}
		t.groups[id].Taken -= given[id]
	}
	return nil
}
