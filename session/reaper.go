package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Members is who shares the work, as of the last look.
type Members struct {
	IDs    []uuid.UUID         // sessions that take work, ascending
	Labels []map[string]string // of each, those of its handlers included
	Index  int                 // of this session among them, -1 when it is not there
	Seen   int64               // changes whenever they do; zero before the first look
}

// Reaper buries sessions that are dead and frees what dead sessions owned.
type Reaper struct {
	DB      *sql.DB
	Session *Session
	Changed func() // called when tasks were freed, or others share the work now
	// Cordoned is called at each look while the node is cordoned: what is prepared is to be given back.
	Cordoned func()
	Log      *slog.Logger

	seen  map[uuid.UUID]sighting
	nodes map[uuid.UUID]string // names of sessions seen at some time, for the runs they lost
}

// sighting is since when, on this node's own clock, a session shows the same beat.
type sighting struct {
	beat  int64
	since time.Duration
}

// batch bounds one transaction.
const batch = 200

// Run looks until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	wait := rand.N(r.Session.Timings.Scan) // so that nodes do not march in step
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = r.Session.Timings.Scan
		if err := r.reap(ctx, boottime()); err != nil && ctx.Err() == nil {
			r.Log.Warn("reaper", "error", err)
		}
	}
}

// reap takes one look; mono is the reading of this node's own clock that goes with it.
func (r *Reaper) reap(ctx context.Context, mono time.Duration) error {
	if !r.Session.Fresh() {
		return nil // who cannot be sure of its own life buries nobody
	}
	// Owners first, sessions second. A session's row is committed before it owns anything and its id never
	// comes back, so an owner without a row is dead for good. The other way round, a session that registered
	// between the two readings would look dead.
	owners, err := r.DB.Owners(ctx)
	if err != nil {
		return err
	}
	rows, err := r.DB.Sessions(ctx)
	if err != nil {
		return err
	}
	alive := make([]sql.SessionRow, 0, len(rows))
	for _, row := range rows {
		if !r.expired(row, mono) {
			alive = append(alive, row)
			continue
		}
		if err := r.bury(ctx, row); err != nil {
			return err
		}
	}
	r.remember(rows, mono)
	r.publish(alive)
	for _, id := range owners {
		dead := !slices.ContainsFunc(rows, func(s sql.SessionRow) bool { return s.ID == id })
		if dead {
			if err := r.free(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// expired needs both: the same beat on this node's own clock for the whole expiry, and a last beat that is as
// old by MySQL's clock.
func (r *Reaper) expired(row sql.SessionRow, mono time.Duration) bool {
	if row.ID == r.Session.id {
		return false
	}
	seen, ok := r.seen[row.ID]
	expiry := r.Session.Timings.Expiry
	return ok && seen.beat == row.Beat && mono-seen.since > expiry && r.Session.Clock.Now().Sub(row.BeatAt) > expiry
}

func (r *Reaper) remember(rows []sql.SessionRow, mono time.Duration) {
	next := make(map[uuid.UUID]sighting, len(rows))
	if r.nodes == nil || len(r.nodes) > 1000 {
		r.nodes = map[uuid.UUID]string{}
	}
	for _, row := range rows {
		s, ok := r.seen[row.ID]
		if !ok || s.beat != row.Beat {
			s = sighting{row.Beat, mono}
		}
		next[row.ID] = s
		r.nodes[row.ID] = row.Node
	}
	r.seen = next
}

func (r *Reaper) publish(alive []sql.SessionRow) {
	m := Members{Index: -1}
	for _, row := range alive {
		mine := row.ID == r.Session.id
		if mine && r.Session.cordon(row.Cordoned) {
			r.Log.Info("cordon changed", "cordoned", row.Cordoned != 0, "since", row.Cordoned)
		}
		if row.Draining || row.Cordoned != 0 {
			continue
		}
		if mine {
			m.Index = len(m.IDs)
		}
		m.IDs, m.Labels = append(m.IDs, row.ID), append(m.Labels, row.AllLabels())
	}
	if r.Session.Cordoned() {
		r.Cordoned()
	}
	old := r.Session.members.Load()
	if old.Seen > 0 && old.Index == m.Index && slices.Equal(old.IDs, m.IDs) {
		return // a session's labels never change
	}
	m.Seen = old.Seen + 1
	r.Session.members.Store(&m)
	r.Log.Info("cluster changed", "sessions", len(m.IDs))
	r.Changed()
}

// bury deletes the row of a dead session. If we die behind it, its tasks have an owner without a row, and the
// next look of anybody frees them.
func (r *Reaper) bury(ctx context.Context, row sql.SessionRow) error {
	var buried bool
	err := r.DB.Tx(ctx, func(tx *sql.Tx) error {
		if err := tx.TakeLocks([]sql.LockID{sql.LockSessions}); err != nil {
			return err
		}
		var err error
		if buried, err = tx.DeleteSession(row.ID, row.Beat); err != nil || !buried {
			return err
		}
		_, err = tx.InsertAudit(r.obituary(row))
		return err
	})
	if err != nil {
		return err // unknown too: the next look sees what stands
	}
	if buried {
		r.Log.Warn("buried a dead session", "session", row.ID, "node", row.Node, "last_beat", row.BeatAt)
	}
	return nil
}

// obituary is the audit's line of a session that vanished.
func (r *Reaper) obituary(row sql.SessionRow) *job.Entry {
	life, _ := json.Marshal(job.SessionLife{Session: row.ID.String(), Started: row.Started.Time(), LastBeat: row.BeatAt.Time()}) // cannot fail
	return &job.Entry{
		At: r.Session.Clock.Now(), Actor: r.Session.itself(), Action: job.ActionReap, Kind: job.KindSession, Name: row.Node,
		Reason: "its last beat was at " + row.BeatAt.String(), Was: string(life),
	}
}

// free gives the tasks of a dead session back: those that were only prepared become idle, those that were
// executing end lost.
func (r *Reaper) free(ctx context.Context, dead uuid.UUID) error {
	for after := int64(0); ; {
		rows, err := r.DB.SessionTasks(ctx, dead, after, batch)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = rows[len(rows)-1].ID
		if err := r.freeHalves(ctx, dead, rows); err != nil {
			return err
		}
	}
}

// freeHalves frees rows in one transaction. If MySQL refuses it, halves of it find out which row is to blame; that one
// stays as it is.
func (r *Reaper) freeHalves(ctx context.Context, dead uuid.UUID, rows []sql.TaskRow) error {
	err := r.freeBatch(ctx, dead, rows)
	switch {
	case err == nil || !sql.BlamesRows(err):
		return err
	case len(rows) == 1:
		r.Log.Error("task of a dead session cannot be freed", "task", rows[0].ID, "job_id", rows[0].JobID, "due", rows[0].Due, "error", err)
		return nil
	}
	half := len(rows) / 2
	return errors.Join(r.freeHalves(ctx, dead, rows[:half]), r.freeHalves(ctx, dead, rows[half:]))
}

func (r *Reaper) freeBatch(ctx context.Context, dead uuid.UUID, rows []sql.TaskRow) error {
	ids := make([]int64, len(rows))
	for i, t := range rows {
		ids[i] = t.ID
	}
	var idle []int64
	var lost []job.Run
	woken := 0
	err := r.DB.Tx(ctx, func(tx *sql.Tx) error {
		idle, lost = nil, nil
		var ended []int64
		var again []sql.Again
		var tried, over []job.Run
		now := r.Session.Clock.Now()
		jobs, err := tx.LockJobs(executingJobs(rows))
		if err != nil {
			return err
		}
		if _, err := tx.LockGroups(groupsOf(jobs)); err != nil {
			return err
		}
		locked, err := tx.LockTasks(ids)
		if err != nil {
			return err
		}
		written, err := tx.TakeChunks(dead, executingLaunches(locked, dead))
		if err != nil {
			return err
		}
		for _, id := range ids {
			t, ok := locked[id]
			switch {
			case !ok || t.Launch.Session != dead: // somebody was faster
			case t.State == job.Prepare:
				idle = append(idle, id)
			case t.State == job.Executing:
				run := r.lostRun(t, now)
				run.Output = written[t.Launch.N]
				if rerun(jobs[t.JobID], t.Attempt) {
					run.Final = false
					again, tried = append(again, sql.Again{ID: id, DueNow: now}), append(tried, run)
				} else {
					ended, over = append(ended, id), append(over, run)
				}
				lost = append(lost, run)
			}
		}
		if err := tx.Free(idle); err != nil {
			return err
		}
		if err := tx.Retry(again, tried); err != nil {
			return err
		}
		if err := tx.End(ended, over); err != nil {
			return err
		}
		stopped := ended
		for _, a := range again {
			stopped = append(stopped, a.ID)
		}
		woken, err = wakeBehind(tx, lost, stopped, jobs, now)
		return err
	})
	if err != nil {
		return err // unknown too: the next look sees what stands
	}
	if woken > 0 {
		r.Changed()
	}
	for _, run := range lost {
		r.Log.Error("run lost: its node vanished", "run", run.Launch, "job_id", run.JobID, "due", run.Due, "node", run.Node, "started_again", !run.Final)
	}
	if len(lost) > 0 {
		r.Changed()
	}
	if len(idle) > 0 {
		r.Log.Info("freed prepared tasks of a dead session", "session", dead, "tasks", len(idle))
		r.Changed()
	}
	return nil
}

// executingLaunches lists the counters of the attempts that end lost. What they wrote while their node lived is all
// that is known of their output.
func executingLaunches(locked map[int64]sql.TaskRow, dead uuid.UUID) []int64 {
	var counters []int64
	for _, t := range locked {
		if t.Launch.Session == dead && t.State == job.Executing {
			counters = append(counters, t.Launch.N)
		}
	}
	slices.Sort(counters)
	return counters
}

// groupsOf lists, in order, the groups of jobs.
func groupsOf(jobs map[int64]*sql.JobRow) []string {
	var out []string
	for _, j := range jobs {
		if j.Spec.Group != "" {
			out = append(out, j.Spec.Group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// wakeBehind wakes who waited for runs that are lost.
func wakeBehind(tx *sql.Tx, lost []job.Run, tasks []int64, jobs map[int64]*sql.JobRow, now job.Micros) (int, error) {
	var awaited, unslotted []int64
	for _, run := range lost {
		if j := jobs[run.JobID]; j != nil && j.SpecErr == nil && j.Spec.Awaited(run.Origin) {
			awaited = append(awaited, run.JobID)
		}
	}
	if len(groupsOf(jobs)) > 0 {
		unslotted = tasks
	}
	slices.Sort(awaited)
	return tx.Wake(slices.Compact(awaited), unslotted, now)
}

// executingJobs lists, in order, the jobs whose definition says what becomes of a lost run.
func executingJobs(rows []sql.TaskRow) []int64 {
	var ids []int64
	for _, t := range rows {
		if t.State == job.Executing {
			ids = append(ids, t.JobID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rerun tells whether a lost attempt is followed by another.
func rerun(j *sql.JobRow, attempt int) bool {
	if j == nil || j.SpecErr != nil {
		return false
	}
	_, ok := j.Spec.Again(attempt, job.Lost, 0)
	return ok
}

func (r *Reaper) lostRun(t sql.TaskRow, now job.Micros) job.Run {
	started := max(t.Started, t.DueNow)
	return job.Run{
		Launch: t.Launch, JobID: t.JobID, Due: t.Due, Until: t.Due, Count: 1, Origin: t.Origin, Attempt: t.Attempt, Final: true,
		Started: started, Ended: max(now, started), Lateness: int64(started - t.DueNow), Node: r.nodes[t.Launch.Session],
		Result: job.Result{Outcome: job.Lost, Reason: "its node vanished while it was running"},
	}
}
