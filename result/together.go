package result

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/lock"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// together holds ends that affect other runs: another run waits for the ended run, or the ended
// run holds a slot or has a retry.
type together struct {
	ends    []trip.End
	sequels *sequels
	endings map[trip.Launch]trip.Ending // ends whose rows are still ours
	groups  map[int32]*trip.Group       // all locked
	jobs    map[int64]*trip.Job         // all locked
	free    map[int64]bool              // jobs that we have locked, or that are gone

	write []trip.End // the ends to write
	busy  []trip.End // postponed ends: another transaction has locked their rows
	woken int        // runs that became idle
}

// finisher writes ends that affect other runs, for its own session or for a dead one.
type finisher struct {
	exclusion   *lock.Exclusion
	session     Session    // mints the ids of next attempts, and has the time
	owner       trip.Owner // the owner of the ended runs
	wakeOverdue loop.Wake  // runs became idle
	definitions Definitions

	audit func([]trip.End) *job.Entry // makes the audit line of written ends; may be nil
}

// finish writes the ends and the next attempts, and wakes the runs that come next, all in one
// transaction. Then it calls sets. done are the ends that are written, by us or by another owner.
// busy are the ends that finish postpones, because a row that they need is locked.
func (f *finisher) finish(ctx context.Context, ends []trip.End, sets func(done, busy []trip.End)) error {
	var t *together
	write := func(tx *sql.Tx) error {
		t = &together{ends: ends, sequels: &sequels{definitions: f.definitions}}
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

	do := func() error {
		return f.exclusion.Do(ctx, lock.Change{
			Name: "finish together",
			Rows: write,
			// Runs that have ended are not ours any more, so nothing is written twice.
			Settle: func(tx *sql.Tx) error { _, err := f.learn(ctx, write(tx)); return err },
			// If we die before this, the ends are in the rows. The next attempts, woken runs and
			// runs of followers are idle, and any node starts them.
			Sets: func() { sets(t.done(), t.busy) },
		})
	}
	learned, err := f.learn(ctx, do())
	if learned {
		err = do() // if an edit interferes again just now, the next try of the ends succeeds
	}
	if err == nil && t.woken > 0 {
		f.wakeOverdue.Up()
	}

	return err
}

// learn reads the definitions that a transaction lacked, outside of the transaction.
func (f *finisher) learn(ctx context.Context, err error) (learned bool, _ error) {
	unread := new(unreadJobs)
	if !errors.As(err, &unread) {
		return false, err
	}
	failed := f.definitions.Learn(ctx, unread.ids)
	return failed == nil, cmp.Or(failed, err)
}

// done returns the ends that are not postponed.
func (t *together) done() []trip.End {
	left := make(map[trip.Launch]bool, len(t.busy))
	for i := range t.busy {
		left[t.busy[i].Launch] = true
	}
	return slices.DeleteFunc(slices.Clone(t.ends), func(e trip.End) bool { return left[e.Launch] })
}

// read locks the groups, jobs and rows of the runs. It skips rows that are locked already.
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
	if err := t.lockRuns(tx, session, free); err != nil {
		return err
	}
	return t.sequels.read(tx, t.endings, t.jobs)
}

// lockJobs locks jobs, and skips locked ones. A job that is gone needs no lock.
func (t *together) lockJobs(tx *sql.Tx, ids []int64) error {
	locked, err := trip.LockJobs(tx, ids)
	if err != nil {
		return err
	}
	t.jobs = locked
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

// lockRuns locks the rows of runs, and reads them again. Meanwhile the runs may have ended or got
// a kill request.
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
		} else { // locked elsewhere, or ended by now: left to the next try
			delete(t.endings, e.Launch)
			t.busy = append(t.busy, e)
		}
	}

	return nil
}

// judge decides which ends are final. A run with a kill request has no retry.
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

// writeRows writes the ends and their consequences.
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
	due, err := t.sequels.write(tx, s, t.write, t.endings)
	if err != nil {
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
	t.woken = byJobs + byGroups + due
	return err
}

// attempts returns the next attempts of runs with a retry.
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

// giveBack returns the slots of ended runs to their groups.
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
