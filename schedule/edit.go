package schedule

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// Editor changes jobs. Each change plans the job in its own transaction, so that a job that is due in 300 ms is
// not missed, and is answered once it holds everywhere: no attempt starts under the old definition any more.
//
// A change whose commit is unknown is settled before it is answered. If MySQL stays out of reach, the error is
// sql.Unknown and the client must look.
type Editor struct {
	DB      *sql.DB
	Session Session
	Soon    func() // called when a task was planned that is within the look-ahead of claims
}

const (
	// windowMargin is added to a spawn window for what two nodes' readings of MySQL's clock may differ.
	windowMargin = 100 * time.Millisecond
	// longestWindow is after how long nothing of a start may be spawned any more, also when MySQL's clock was put
	// back behind it: it was committed so much before its due instant, and waits for no instant that is a second away.
	longestWindow = maxLead + gather + 2*job.SpawnWindow*time.Microsecond
	settleEvery   = 100 * time.Millisecond
)

// Create writes a new job and plans it, unless it is created paused.
func (e *Editor) Create(ctx context.Context, spec job.Spec, paused bool) (job.Job, error) {
	now := e.Session.Now()
	spec.Defaults(now.Time())
	if err := spec.Validate(); err != nil {
		return job.Job{}, err
	}
	text, err := spec.Encode()
	if err != nil {
		return job.Job{}, err
	}
	j := job.Job{Spec: spec, Version: 1, Hash: job.HashOf(spec.App, spec.Name), Paused: paused, Created: now, Updated: now}
	if paused {
		j.PausedAt = now
	}
	var p plans
	err = e.change(ctx, func(tx *sql.Tx) error {
		p = plans{}
		var d dueTimes
		if !paused {
			s, err := spec.Compile()
			if err != nil {
				return err
			}
			d = planned(&sql.JobRow{Job: j}, s, now, now)
			j.NextDue, j.LastDue = d.next, d.last
		}
		id, err := tx.InsertJob(&j, text)
		if err != nil {
			return err
		}
		j.ID = id
		for i := range d.tasks {
			d.tasks[i].JobID = id
		}
		if d.missed != nil {
			d.missed.JobID = id
		}
		p.take(d, now, e.Session)
		return p.write(tx)
	}, func(tx *sql.Tx) (bool, error) {
		row, err := tx.LockJobNamed(spec.App, spec.Name)
		if errors.Is(err, sql.ErrNotFound) {
			return false, nil
		}
		j.ID = row.ID
		return row.Created == now && row.SpecText == text, err
	})
	if err != nil {
		return job.Job{}, err
	}
	if p.soon {
		e.Soon()
	}
	return j, nil
}

// planned plans a job from after an instant, or from its overdue single instant.
func planned(j *sql.JobRow, s job.Schedule, after, now job.Micros) dueTimes {
	if j.Spec.At != nil {
		after = j.LastDue // an overdue one is due at once
	}
	first := firstAfter(s, after)
	if first == 0 {
		return dueTimes{}
	}
	return until(j, s, first, now, now.Add(planHorizon), job.MisfireAfter)
}

// Update replaces the definition of a job that is at the given version.
// Due times that have passed stay and run the new definition; later ones are planned anew.
func (e *Editor) Update(ctx context.Context, id, version int64, spec job.Spec) (job.Job, error) {
	now := e.Session.Now()
	spec.Defaults(now.Time())
	if err := spec.Validate(); err != nil {
		return job.Job{}, err
	}
	return e.edit(ctx, id, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if j.Version != version {
			return nil, job.ErrChanged
		}
		later := func(t sql.TaskRow) bool { return t.Origin == 0 && t.Due > now && t.State != job.Executing }
		if err := tx.Withdraw(idsWhere(live, later)); err != nil {
			return nil, err
		}
		j.Spec, j.SpecErr, j.Error, j.NextDue = spec, nil, "", 0
		if j.Paused {
			j.PausedAt = now // what a resume treats as missed is counted by the new schedule, so from now on
			return &plans{}, nil
		}
		s, err := spec.Compile()
		if err != nil {
			return nil, err
		}
		if spec.At != nil && slices.ContainsFunc(live, func(t sql.TaskRow) bool {
			return t.Origin == 0 && !later(t) && t.Due == job.MicrosOf(*spec.At)
		}) {
			return &plans{}, nil // it is there, overdue or executing
		}
		return e.replan(j, planned(j, s, max(now, j.LastDue), now), now), nil
	})
}

func (e *Editor) replan(j *sql.JobRow, d dueTimes, now job.Micros) *plans {
	j.NextDue, j.LastDue = d.next, max(j.LastDue, d.last)
	p := &plans{}
	p.take(d, now, e.Session)
	return p
}

// Pause stops all due times of a job until it is resumed. Those that nobody has begun end skipped if they were
// claimed or had passed already, and are no due times any more if they lie ahead.
func (e *Editor) Pause(ctx context.Context, id int64) (job.Job, error) {
	now := e.Session.Now()
	return e.edit(ctx, id, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if j.Paused {
			return nil, nil
		}
		ahead := func(t sql.TaskRow) bool { return t.State == job.Idle && t.Due > now }
		begun := func(t sql.TaskRow) bool { return t.State != job.Executing && !ahead(t) }
		if err := tx.Withdraw(idsWhere(live, ahead)); err != nil {
			return nil, err
		}
		if err := e.skip(tx, j, live, begun, "paused", now); err != nil {
			return nil, err
		}
		j.Paused, j.PausedAt, j.NextDue = true, now, 0
		return &plans{}, nil
	})
}

// Resume gives a paused job its due times back. What passed meanwhile is treated by the misfire policy and leaves
// at most one run, which counts it.
func (e *Editor) Resume(ctx context.Context, id int64) (job.Job, error) {
	now := e.Session.Now()
	return e.edit(ctx, id, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if !j.Paused {
			return nil, nil
		}
		from := j.PausedAt
		j.Paused, j.PausedAt, j.NextDue, j.Error = false, 0, 0, ""
		s, err := compile(j)
		if err != nil {
			return nil, job.Problems{{Field: "schedule", Message: err.Error()}}
		}
		after := max(from, j.LastDue)
		if j.Spec.At != nil {
			after = j.LastDue
		}
		first := firstAfter(s, after)
		if first == 0 {
			return &plans{}, nil
		}
		d := until(j, s, first, now, now.Add(planHorizon), 0)
		if d.missed != nil {
			d.missed.Outcome, d.missed.Reason = job.Skipped, fmt.Sprintf("paused from %s to %s", from, now)
		}
		return e.replan(j, d, now), nil
	})
}

// Delete ends a job. Its attempts that are executing run to their end; its history stays.
func (e *Editor) Delete(ctx context.Context, id int64) error {
	now := e.Session.Now()
	_, err := e.edit(ctx, id, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		ahead := func(t sql.TaskRow) bool { return t.State != job.Executing && t.Due > now }
		passed := func(t sql.TaskRow) bool { return t.State != job.Executing && t.Due <= now }
		if err := tx.Withdraw(idsWhere(live, ahead)); err != nil {
			return nil, err
		}
		if err := e.skip(tx, j, live, passed, "job was deleted", now); err != nil {
			return nil, err
		}
		j.Deleted, j.NextDue = true, 0
		return &plans{}, nil
	})
	return err
}

// skip ends the tasks that which picks, skipped for a reason.
func (e *Editor) skip(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, which func(sql.TaskRow) bool, reason string, now job.Micros) error {
	var ids []int64
	var runs []job.Run
	for _, t := range live {
		if !which(t) {
			continue
		}
		launch := t.Launch
		if launch.IsZero() {
			launch = e.Session.Mint()
		}
		ids = append(ids, t.ID)
		runs = append(runs, job.Run{
			Launch: launch, JobID: j.ID, Due: t.Due, Until: t.Due, Count: 1, Origin: t.Origin, Attempt: t.Attempt, Final: true, Ended: now,
			Node: e.Session.Node(), Result: job.Result{Outcome: job.Skipped, Reason: reason},
		})
		if t.Origin == 0 {
			j.LastDue = max(j.LastDue, t.Due)
		}
	}
	return tx.End(ids, runs)
}

// edit changes one job under its row's lock. fn gets the job and its live tasks, all locked, changes the job, and
// returns what to plan, or nil when there is nothing to change. The next version is written once fn is done.
func (e *Editor) edit(ctx context.Context, id int64, fn func(*sql.Tx, *sql.JobRow, []sql.TaskRow) (*plans, error)) (job.Job, error) {
	var (
		j       *sql.JobRow
		p       *plans
		window  job.Micros // until when something of the job may still be spawned
		updated job.Micros
		changed bool
	)
	err := e.change(ctx, func(tx *sql.Tx) error {
		window, changed, p = 0, false, nil
		rows, err := tx.LockJobs([]int64{id})
		if err != nil {
			return err
		}
		if j = rows[id]; j == nil || j.Deleted {
			return fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		}
		live, err := tx.LiveTasks(id)
		if err != nil {
			return err
		}
		for _, t := range live {
			if t.State == job.Executing {
				window = max(window, t.SpawnBy)
			}
		}
		p, err = fn(tx, j, live)
		if err != nil {
			return err
		}
		if p == nil {
			return nil
		}
		text := j.SpecText
		if j.SpecErr == nil {
			if text, err = j.Spec.Encode(); err != nil {
				return err
			}
		}
		updated = max(e.Session.Now(), j.Updated+1)
		j.Version, j.Updated, changed = j.Version+1, updated, true
		if err := tx.UpdateJob(&j.Job, text); err != nil {
			return err
		}
		return p.write(tx)
	}, func(tx *sql.Tx) (bool, error) {
		if !changed {
			return true, nil
		}
		rows, err := tx.LockJobs([]int64{id})
		if err != nil || rows[id] == nil {
			return false, err
		}
		return rows[id].Version > j.Version || rows[id].Version == j.Version && rows[id].Updated == updated, nil
	})
	if err != nil {
		return job.Job{}, err
	}
	if changed {
		if p.soon {
			e.Soon()
		}
	}
	// Also when there was nothing to change: who asks again must not be answered before who asked first.
	if err := e.passed(ctx, window); err != nil {
		return job.Job{}, err
	}
	return j.Job, nil
}

// passed waits until a spawn window has passed: the last attempts that were started under the old definition are
// running by then, or will never be.
func (e *Editor) passed(ctx context.Context, window job.Micros) error {
	wait := min(window.Sub(e.Session.Now()), longestWindow) + windowMargin
	if window == 0 || wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return &sql.Unknown{Err: fmt.Errorf("the change is made; a run that was starting may still begin: %w", context.Cause(ctx))}
	case <-time.After(wait):
		return nil
	}
}

// change runs fn in a transaction until it is known to be applied or refused; settled tells, by locking reads,
// whether one whose commit is unknown was applied.
func (e *Editor) change(ctx context.Context, fn func(*sql.Tx) error, settled func(*sql.Tx) (bool, error)) error {
	for {
		err := e.DB.Tx(ctx, fn)
		if !sql.IsUnknown(err) {
			return err
		}
		unknown := err
		for {
			var applied bool
			err := e.DB.Tx(ctx, func(tx *sql.Tx) (err error) { applied, err = settled(tx); return err })
			if err == nil || sql.IsUnknown(err) {
				if applied {
					return nil
				}
				break // nothing of it stands: once more
			}
			select {
			case <-ctx.Done():
				return unknown
			case <-time.After(settleEvery):
			}
		}
	}
}

// Kill asks for an executing attempt to be killed, on whichever node it is. It is killed within a second or so, and
// ends killed; sql.ErrNotFound means that it does not execute. Asking twice does no harm.
func (e *Editor) Kill(ctx context.Context, l job.Launch) error {
	found := false
	ask := func(tx *sql.Tx) (err error) {
		found, err = tx.RequestKill(l)
		return err
	}
	err := e.change(ctx, ask, func(tx *sql.Tx) (bool, error) { return false, nil })
	if err == nil && !found {
		return fmt.Errorf("run %s: %w", l, sql.ErrNotFound)
	}
	return err
}

// RunNow adds a task that is due at once. The same key answers with the first request again; key may be empty.
func (e *Editor) RunNow(ctx context.Context, id int64, key string) (job.Requested, error) {
	now := e.Session.Now()
	digest := sha256.Sum256(fmt.Appendf(nil, "run %d", id))
	mine := key
	if key == "" {
		mine = uuid.NewString() // so that an unknown commit can be found again
	}
	var out job.Requested
	find := func(tx *sql.Tx) (bool, error) {
		r, err := tx.LockRequest(mine)
		if errors.Is(err, sql.ErrNotFound) {
			return false, nil
		}
		if err == nil && r.Digest != digest {
			return false, job.ErrKeyReused
		}
		out = job.Requested{JobID: id, Due: r.Created, Origin: r.ID}
		return err == nil, err
	}
	err := e.change(ctx, func(tx *sql.Tx) error {
		rows, err := tx.LockJobs([]int64{id})
		if err != nil {
			return err
		}
		j := rows[id]
		if j == nil || j.Deleted {
			return fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		}
		if j.SpecErr != nil {
			return job.Problems{{Field: "job", Message: j.SpecErr.Error()}}
		}
		if there, err := find(tx); err != nil || there {
			return err
		}
		origin, err := tx.InsertRequest("run", mine, digest, id, now)
		if err != nil {
			return err
		}
		out = job.Requested{JobID: id, Due: now, Origin: origin}
		return tx.InsertTasks([]job.Task{{JobID: id, Due: now, DueNow: now, Origin: origin, Hash: j.Hash, Place: j.Place, Priority: j.Spec.Priority}})
	}, find)
	if err != nil {
		return job.Requested{}, err
	}
	e.Soon()
	return out, nil
}

func idsWhere(rows []sql.TaskRow, which func(sql.TaskRow) bool) []int64 {
	var ids []int64
	for _, t := range rows {
		if which(t) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}
