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

	Limited   func(job.Limit)      // called when a limit of an app refused a change; nil: nobody counts
	Trip      func() time.Duration // how long a round trip to MySQL took lately; nil: nobody knows
	Unsettled func() time.Duration // for how long a node may go by what MySQL's clock was before it was put forward; nil: none does
}

const (
	// windowMargin is added to a spawn window for what two nodes' readings of MySQL's clock may differ.
	windowMargin = 100 * time.Millisecond
	// longestWindow is after how long nothing of a start may be spawned any more, also when MySQL's clock was put
	// back behind it: it was committed so much before its due instant, and waits for no instant that is a second away.
	longestWindow = maxLead + maxGather + maxWindow + job.SpawnWindow*time.Microsecond
	// pauseLook is between looks at what is on its way to be started when an app was paused.
	pauseLook = 50 * time.Millisecond
)

// Create writes a new job and plans it, unless it is created paused.
func (e *Editor) Create(ctx context.Context, spec job.Spec, paused bool) (job.Job, error) {
	now := e.Session.Now()
	spec.Defaults(now.Time())
	if err := spec.Validate(); err != nil {
		return job.Job{}, err
	}
	if err := e.affordable(ctx, &spec, now); err != nil {
		return job.Job{}, err
	}
	text, err := spec.Encode()
	if err != nil {
		return job.Job{}, err
	}
	j := job.Job{Spec: spec, Version: 1, Hash: job.HashOf(spec.App, spec.Name), Created: now, Updated: now}
	var p plans
	err = e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		p = plans{}
		if err := spec.CheckPastAt(now.Time()); err != nil {
			return nil, err
		}
		pauses, err := tx.SharePauses()
		if err != nil {
			return nil, err
		}
		j.Covers = inForce(pauses)
		if j.Place, err = placeOf(tx, &spec); err != nil {
			return nil, err
		}
		calendars, err := nameCalendars(tx, &spec)
		if err != nil {
			return nil, err
		}
		d, err := outset(&j, paused, job.ActorOf(ctx).Who, now, now.Add(planHorizon), calendars...)
		if err != nil {
			return nil, err
		}
		if j.ID, err = tx.InsertJob(&j, text); err != nil {
			return nil, err
		}
		if err := limitJobs(tx, map[string]int64{spec.App: 1}, true); err != nil {
			return nil, err
		}
		if once := job.OnceOf(ctx); once != nil {
			once.JobID = j.ID
		}
		if err := refer(tx, j.ID, &job.Spec{}, &spec); err != nil {
			return nil, err
		}
		for i := range d.tasks {
			d.tasks[i].JobID = j.ID
		}
		if d.missed != nil {
			d.missed.JobID = j.ID
		}
		p.take(d, now, e.Session)
		if err := p.write(tx); err != nil {
			return nil, err
		}
		line := jobLine(job.ActionCreate, &j)
		line.Became = text
		if !paused {
			return line, nil
		}
		if err := audit(tx, line, now); err != nil {
			return nil, err
		}
		return jobLine(job.ActionPause, &j), nil
	})
	if err != nil {
		return job.Job{}, err
	}
	if p.soon {
		e.Soon()
	}
	return j, nil
}

// affordable refuses a definition whose due times are too expensive to compute, before anything is locked. What is wrong
// with its calendars is found out later, under locks.
func (e *Editor) affordable(ctx context.Context, spec *job.Spec, now job.Micros) error {
	if len(spec.Calendars) == 0 {
		return nil
	}
	calendars, err := e.DB.CalendarsNamed(ctx, spec.Calendars)
	if err != nil {
		if sql.IsAway(err) {
			return err
		}
		return nil
	}
	return spec.Affordable(ctx, now.Time(), calendars)
}

// outset is how a new job begins: paused, held because its app or the cluster is, or with the due times returned, up to
// the horizon.
func outset(j *job.Job, paused bool, who string, now, horizon job.Micros, calendars ...*job.Calendar) (dueTimes, error) {
	j.Paused, j.Held, j.PausedAt, j.NextDue, j.LastDue = paused, false, 0, 0, 0
	if paused {
		j.PausedAt, j.PausedBy = now, who
		return dueTimes{}, nil
	}
	s, err := j.Spec.Compile(calendars...)
	if err != nil {
		return dueTimes{}, err
	}
	d := planned(&sql.JobRow{Job: *j}, s, now, now, horizon)
	if covered(j.Covers, j.Spec.App, d.first(), now) {
		j.Held, j.PausedAt = true, now
		return dueTimes{}, nil
	}
	j.NextDue, j.LastDue = d.next, d.last
	return d, nil
}

// jobLine is a line of the audit about a job.
func jobLine(action job.Action, j *job.Job) *job.Entry {
	return &job.Entry{Action: action, Kind: job.KindJob, Ref: j.ID, App: j.Spec.App, Name: j.Spec.Name}
}

// planned plans a job from after an instant, or from its overdue single instant, up to the horizon.
func planned(j *sql.JobRow, s job.Schedule, after, now, horizon job.Micros) dueTimes {
	if j.Spec.At != nil {
		after = j.LastDue // an overdue one is due at once
	}
	first := firstAfter(s, after)
	if first == 0 {
		return dueTimes{}
	}
	return until(j, s, first, now, horizon, j.Spec.MissedAfter())
}

// Update replaces the definition of a job that is at the given version.
// Due times that have passed stay and run the new definition; later ones are planned anew.
func (e *Editor) Update(ctx context.Context, id, version int64, spec job.Spec) (job.Job, error) {
	return e.update(ctx, id, version, spec, job.Entry{Action: job.ActionUpdate})
}

// Rollback is Update with a definition that the job has had before, from an earlier version on.
func (e *Editor) Rollback(ctx context.Context, id, version int64, spec job.Spec, earlier int64) (job.Job, error) {
	return e.update(ctx, id, version, spec, job.Entry{Action: job.ActionRollback, Reason: fmt.Sprintf("to version %d", earlier)})
}

func (e *Editor) update(ctx context.Context, id, version int64, spec job.Spec, line job.Entry) (job.Job, error) {
	now := e.Session.Now()
	spec.Defaults(now.Time())
	if err := spec.Validate(); err != nil {
		return job.Job{}, err
	}
	if err := e.affordable(ctx, &spec, now); err != nil {
		return job.Job{}, err
	}
	var calendars []*job.Calendar
	also := locks{
		before: func(tx *sql.Tx) (err error) { calendars, err = nameCalendars(tx, &spec); return err },
		behind: func(tx *sql.Tx, j *sql.JobRow) error {
			if err := limitMove(tx, &j.Spec, &spec); err != nil {
				return err
			}
			return lockGroupsOf(tx, &j.Spec, &spec)
		},
	}
	return e.edit(ctx, id, line, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		if j.Version != version {
			return nil, job.ErrChanged
		}
		if !j.Spec.SameAt(&spec) { // an unchanged one may be long over
			if err := spec.CheckPastAt(now.Time()); err != nil {
				return nil, err
			}
		}
		return e.replace(tx, j, live, &spec, calendars, now, now.Add(planHorizon))
	}, also)
}

// replace gives a job, which is locked with its live tasks, another definition, and plans it up to the horizon.
func (e *Editor) replace(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, spec *job.Spec, calendars []*job.Calendar, now, horizon job.Micros) (*plans, error) {
	later := func(t sql.TaskRow) bool { return ahead(j, t, now) && t.State != job.Executing }
	if err := tx.Withdraw(idsWhere(live, later)); err != nil {
		return nil, err
	}
	if err := refer(tx, j.ID, &j.Spec, spec); err != nil {
		return nil, err
	}
	if err := move(tx, j, spec, live, later); err != nil {
		return nil, err
	}
	if err := reconsider(tx, &j.Spec, spec, live, later, now); err != nil {
		return nil, err
	}
	p, why := &plans{}, ""
	if pause := j.PauseAt(now); pause != nil {
		why = pause.Words()
	}
	same := j.SpecErr == nil && sameDues(&j.Spec, spec) // a pause goes on as if nobody had edited the job
	if (j.Paused || j.Held) && !same {
		p.take(dueTimes{missed: passed(j, why, now)}, now, e.Session)
		j.PausedAt = now // what a resume treats as missed is counted by the new schedule, so from now on
	}
	j.Spec, j.SpecErr, j.Error, j.NextDue = *spec, nil, "", 0
	if j.Paused {
		j.NextDue = wakeUp(j)
		return p, nil
	}
	if j.Held && same { // it stays so, unless it was put into another app
		j.Calendars, j.CalendarsErr = calendars, nil
		due, err := resumedTo(j, why, now, now, horizon)
		for _, d := range due {
			p.take(d, now, e.Session)
		}
		return p, err
	}
	j.Held, j.PausedAt = false, 0
	s, err := spec.Compile(calendars...)
	if err != nil {
		return nil, err
	}
	if spec.At != nil && slices.ContainsFunc(live, func(t sql.TaskRow) bool {
		return t.Origin == 0 && !later(t) && t.Due == job.MicrosOf(*spec.At)
	}) {
		return p, nil // it is there, overdue or executing
	}
	d := planned(j, s, max(now, j.LastDue), now, horizon)
	if covered(j.Covers, spec.App, d.first(), now) {
		j.Held, j.PausedAt = true, now
		return p, nil
	}
	j.NextDue, j.LastDue = d.next, max(j.LastDue, d.last)
	p.take(d, now, e.Session)
	return p, nil
}

// passed is the run that counts what passed while a job was stopped, by the schedule that it is about to lose; nil if
// nothing did. why is the end of the sentence that says how long it was paused.
func passed(j *sql.JobRow, why string, now job.Micros) *job.Run {
	s, err := compile(j)
	if err != nil {
		return nil // it has no due times that anybody knows
	}
	after := max(j.PausedAt, j.LastDue)
	if j.Spec.At != nil {
		after = j.LastDue
	}
	last, ok := lastIn(s, after+1, now)
	if !ok {
		return nil
	}
	j.LastDue = last
	return counted(j, s, firstAfter(s, after), last, now, job.Skipped, fmt.Sprintf("paused from %s to %s, when its schedule was changed%s", j.PausedAt, now, why))
}

// ahead tells whether a scheduled task is none of those that have passed. One that was started before it was due and given
// back, or that MySQL's clock was put back behind, is no less begun: planning goes on behind last_due, so it must stay.
func ahead(j *sql.JobRow, t sql.TaskRow, now job.Micros) bool {
	return t.Origin == 0 && t.Due > max(now, j.LastDue)
}

// reconsider has what waits of a job looked at once more, under its new definition: nobody would wake what waits for
// something that does not matter any more. In another group nothing that has not begun holds a slot, and what executes holds
// one there, though there may be too few: nothing more is started beside it then.
func reconsider(tx *sql.Tx, from, to *job.Spec, live []sql.TaskRow, withdrawn func(sql.TaskRow) bool, now job.Micros) error {
	stay := slices.DeleteFunc(slices.Clone(live), func(t sql.TaskRow) bool { return t.State == job.Executing || withdrawn(t) })
	if from.Group != to.Group || unread(from) {
		if err := tx.FreeSlots(idsWhere(stay, func(sql.TaskRow) bool { return true })); err != nil {
			return err
		}
		if err := moveSlots(tx, to.Group, idsWhere(live, func(t sql.TaskRow) bool { return t.State == job.Executing })); err != nil {
			return err
		}
	}
	return tx.Reconsider(stay, now)
}

// moveSlots has tasks that execute hold slots of a group, "" for none, in place of those of the group that their job was in.
// Who was woken there and has not begun gives way to them.
func moveSlots(tx *sql.Tx, group string, executing []int64) error {
	if len(executing) == 0 {
		return nil
	}
	if group == "" {
		return tx.FreeSlots(executing)
	}
	groups, err := tx.LockGroups([]string{group})
	if err != nil {
		return err
	}
	slots := make([]sql.Slot, len(executing))
	for i, id := range executing {
		slots[i] = sql.Slot{TaskID: id, GroupID: groups[group].ID}
	}
	if err := tx.TakeSlots(slots); err != nil {
		return err
	}
	return tx.FreeUnbegun(groups[group])
}

// Delete ends a job. Its attempts that are executing run to their end; its history stays.
func (e *Editor) Delete(ctx context.Context, id int64) error {
	now := e.Session.Now()
	_, err := e.edit(ctx, id, job.Entry{Action: job.ActionDelete}, func(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow) (*plans, error) {
		return &plans{}, e.remove(tx, j, live, now)
	})
	return err
}

// remove ends a job, which is locked with its live tasks.
func (e *Editor) remove(tx *sql.Tx, j *sql.JobRow, live []sql.TaskRow, now job.Micros) error {
	var st stopping
	for _, t := range live {
		switch {
		case t.State == job.Executing:
		case ahead(j, t, now):
			st.ahead = append(st.ahead, t.ID)
		default:
			st.skip(j, t, "job was deleted", e.Session, now)
		}
	}
	if err := st.write(tx); err != nil {
		return err
	}
	if err := refer(tx, j.ID, &j.Spec, &job.Spec{}); err != nil {
		return err
	}
	j.Deleted, j.NextDue, j.Held = true, 0, false
	return nil
}

// locks is what an edit locks beside the job and its tasks.
type locks struct {
	before func(*sql.Tx) error              // what comes before jobs
	behind func(*sql.Tx, *sql.JobRow) error // what comes behind them and before tasks
}

// edit changes one job under its row's lock. fn gets the job, with the pauses that cover it, and its live tasks, all
// locked, changes the job, and returns what to plan, or nil when there is nothing to change. The next version is written
// once fn is done. line is the beginning of its line of the audit.
func (e *Editor) edit(ctx context.Context, id int64, line job.Entry, fn func(*sql.Tx, *sql.JobRow, []sql.TaskRow) (*plans, error),
	also ...locks) (job.Job, error) {
	var (
		j      *sql.JobRow
		p      *plans
		soon   bool
		window job.Micros // until when something of the job may still be spawned
	)
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		window, soon, p = 0, false, nil
		pauses, err := tx.SharePauses()
		if err != nil {
			return nil, err
		}
		for _, l := range also {
			if err := l.before(tx); err != nil {
				return nil, err
			}
		}
		rows, err := tx.LockJobs([]int64{id})
		if err != nil {
			return nil, err
		}
		if j = rows[id]; j == nil || j.Deleted {
			return nil, fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		}
		if at := job.VersionOf(ctx); at != 0 && j.Version != at {
			return nil, job.ErrChanged
		}
		for _, l := range also {
			if err := l.behind(tx, j); err != nil {
				return nil, err
			}
		}
		if once := job.OnceOf(ctx); once != nil {
			once.JobID = id
		}
		j.Covers = inForce(pauses)
		if err := tx.LearnCalendars(j); err != nil {
			return nil, err
		}
		late, err := wakeUpLate(tx, j, pauses, e.Session.Now(), e.Session)
		if err != nil {
			return nil, err
		}
		soon = late != nil && late.soon
		resumed := late != nil && len(late.resumed) > 0
		if err := catchUp(tx, j, e.Session.Now(), e.Session); err != nil {
			return nil, err
		}
		live, err := tx.LiveTasks(id)
		if err != nil {
			return nil, err
		}
		for _, t := range live {
			if t.State == job.Executing {
				window = max(window, t.SpawnBy)
			}
		}
		was := j.SpecText
		p, err = fn(tx, j, live)
		switch {
		case err != nil:
			return nil, err
		case p == nil && resumed: // what it asks for is so by itself; if that does not stand, a planner does it
			return nil, nextVersion(tx, j, e.Session.Now())
		case p == nil:
			return nil, nil
		}
		soon = soon || p.soon
		if err := nextVersion(tx, j, e.Session.Now()); err != nil {
			return nil, err
		}
		if err := p.write(tx); err != nil {
			return nil, err
		}
		made := jobLine(line.Action, &j.Job)
		made.Reason, made.Became = line.Reason, line.Became
		switch {
		case j.Deleted:
			made.Was = was
		case j.SpecText != was:
			made.Was, made.Became = was, j.SpecText
		}
		return made, nil
	})
	if err != nil {
		return job.Job{}, err
	}
	if soon {
		e.Soon()
	}
	// Also when there was nothing to change: who asks again must not be answered before who asked first.
	if err := e.passed(ctx, window); err != nil {
		return job.Job{}, err
	}
	return j.Job, nil
}

// nextVersion writes a job that was changed.
func nextVersion(tx *sql.Tx, j *sql.JobRow, now job.Micros) error {
	if j.SpecErr == nil {
		text, err := j.Spec.Encode()
		if err != nil {
			return err
		}
		j.SpecText = text
	}
	j.Version, j.Updated = j.Version+1, max(now, j.Updated+1)
	return tx.UpdateJob(&j.Job, j.SpecText)
}

// passed waits until a spawn window has passed: the last attempts that were started under the old definition are
// running by then, or will never be.
func (e *Editor) passed(ctx context.Context, window job.Micros) error {
	wait := min(window.Sub(e.Session.Now()), longestWindow) + windowMargin + orNone(e.Trip)/2
	wait = max(wait, min(orNone(e.Unsettled), longestWindow)) // by a clock that is behind it has not passed
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

// orOne asks, if there is somebody to ask.
func orOne(n func() int) int {
	if n == nil {
		return 1
	}
	return n()
}

// orNone asks, if there is somebody to ask.
func orNone(d func() time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d()
}

// Kill asks for an executing attempt to be killed, on whichever node it is. It is killed within a second or so, and
// ends killed; sql.ErrNotFound means that it does not execute. Asking twice does no harm.
func (e *Editor) Kill(ctx context.Context, l job.Launch) error {
	return e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		id, app, name, err := tx.JobOf(l)
		if err != nil {
			return nil, err
		}
		found, err := tx.RequestKill(l)
		if err == nil && !found {
			err = fmt.Errorf("run %s: %w", l, sql.ErrNotFound)
		}
		return &job.Entry{Action: job.ActionKill, Kind: job.KindJob, Ref: id, App: app, Name: name, Reason: "run " + l.String()}, err
	})
}

// RunNow adds a task that is due at once. The same key answers with the first request again; key may be empty.
func (e *Editor) RunNow(ctx context.Context, id int64, key string) (job.Requested, error) {
	now := e.Session.Now()
	digest := askedFor(ctx, "run %d", id)
	var out job.Requested
	err := e.record(ctx, func(tx *sql.Tx) (*job.Entry, error) {
		rows, err := tx.LockJobs([]int64{id})
		if err != nil {
			return nil, err
		}
		// First of all: whoever asks again gets the same answer, whatever has become of the job.
		if there, err := asked(tx, id, key, digest); err != nil || there != nil {
			if there != nil {
				out = *there
			}
			return nil, err
		}
		j := rows[id]
		if j == nil || j.Deleted {
			return nil, fmt.Errorf("job %d: %w", id, sql.ErrNotFound)
		}
		if j.SpecErr != nil {
			return nil, job.Problems{{Field: "job", Message: j.SpecErr.Error()}}
		}
		if err := admit(tx, j.Spec.App, now); err != nil {
			return nil, err
		}
		origin, err := tx.InsertRequest("run", key, digest, id, now)
		if err != nil {
			return nil, err
		}
		out = job.Requested{JobID: id, Due: now, Origin: origin}
		task := job.Task{JobID: id, Due: now, DueNow: now, Origin: origin, Hash: j.Hash, Place: j.Place, Priority: j.Spec.Priority}
		return jobLine(job.ActionRun, &j.Job), tx.InsertTasks([]job.Task{task})
	})
	if err != nil {
		return job.Requested{}, err
	}
	e.Soon()
	return out, nil
}

// askedFor is the digest of what is asked for under an idempotency key, and of who asks by the API. Programs with a node
// of their own are one caller, whichever of their nodes they ask.
func askedFor(ctx context.Context, format string, args ...any) [32]byte {
	what := fmt.Appendf(nil, format, args...)
	if caller := job.ActorOf(ctx).Caller; caller != "" {
		what = fmt.Appendf(what, " for %s", caller)
	}
	return sha256.Sum256(what)
}

// asked returns the request that carries an idempotency key, or nil.
func asked(tx *sql.Tx, id int64, key string, digest [32]byte) (*job.Requested, error) {
	if key == "" {
		return nil, nil
	}
	r, err := tx.LockRequest(key)
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return nil, nil
	case err == nil && r.Digest != digest:
		return nil, job.ErrKeyReused
	}
	return &job.Requested{JobID: id, Due: r.Created, Origin: r.ID}, err
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
