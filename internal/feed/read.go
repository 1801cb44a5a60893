package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"go-crontab/internal/trail"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

const (
	batch      = 20_000 // ended runs, or audit lines, read at once
	behindMost = 5      // after this number of full batches in a row, listeners must reload
	manyRuns   = 200    // if one look finds more starts, or more ends, than this, they are only counted
	executing  = 50_000 // executing runs read at once
	backfills  = 200
	rarely     = 2      // sessions, backfills and alerts are read at every second look
	startAhead = 10_000 // how far before the latest audit line a new trail starts
	endsAhead  = 1000   // the same for the rows of ended runs
	manyNames  = 20_000
)

// reader reads the changes since its last look. Only one goroutine uses it.
type reader struct {
	db    read.Watch
	clock func() job.Micros // MySQL's clock
	looks int

	ends, lines trail.Trail
	attempts    map[read.Attempt]bool
	sessions    map[uuid.UUID]sql.SessionRow
	backfills   map[int64]job.Micros // last change of each running backfill
	backfill    int64                // latest backfill
	alerts      map[int64]int64      // the silence, or 0, of each firing alert
	alert       int64                // latest alert
	names       map[int64]read.JobName

	full   int  // number of full batches in a row
	behind bool // there is more to read at once
}

func newReader(db read.Watch, clock func() job.Micros) *reader {
	return &reader{db: db, clock: clock, names: map[int64]read.JobName{}}
}

// anchor finds the starting point: everything that commits from now on is reported. Transactions
// that have not committed yet may have slightly smaller ids. So the trails start a bit before the
// latest ids.
func (r *reader) anchor(ctx context.Context, now time.Time) error {
	lastEnding, lastLine, err := r.db.LastIDs(ctx)
	if err != nil {
		return err
	}
	patience := r.db.LongestTransaction() // all nodes of a cluster have the same timeouts
	r.ends = trail.Trail{High: max(0, lastEnding-endsAhead), Patience: patience}
	r.lines = trail.Trail{High: max(0, lastLine-startAhead), Patience: patience}

	// Read the present state.
	ended, err := r.db.EndedAfter(ctx, r.ends.High, math.MaxInt)
	if err != nil {
		return err
	}

	lines, err := read.LinesAfter(r.db.Reader(ctx), r.lines.High, 2*startAhead)
	if err != nil {
		return err
	}

	attempts, err := r.db.Attempting(ctx, executing)
	if err != nil {
		return err
	}

	sessions, err := r.db.Sessions(ctx)
	if err != nil {
		return err
	}

	if r.backfill, err = r.db.LastBackfill(ctx); err != nil {
		return err
	}
	running, err := r.db.RunningBackfills(ctx, backfills)
	if err != nil {
		return err
	}

	if r.alert, err = lastAlert(r.db.Reader(ctx)); err != nil {
		return err
	}
	firing, err := firingAlerts(r.db.Reader(ctx), alertsAtOnce)
	if err != nil {
		return err
	}

	// Remember it.
	r.ends.Pass(ids(ended, func(e read.Ending) int64 { return e.ID }), job.MicrosOf(now))
	r.lines.Pass(ids(lines, func(e job.Entry) int64 { return e.ID }), job.MicrosOf(now))
	r.attempts = map[read.Attempt]bool{}
	r.sessions = map[uuid.UUID]sql.SessionRow{}
	r.backfills = map[int64]job.Micros{}

	for _, a := range attempts {
		r.attempts[a] = true
	}
	for _, s := range sessions {
		r.sessions[s.ID] = s
	}
	for _, b := range running {
		r.backfills[b.ID] = b.Updated
	}

	r.alerts = map[int64]int64{}
	for _, a := range firing {
		r.alerts[a.ID] = a.Silence
	}
	return nil
}

func ids[T any](rows []T, id func(T) int64) []int64 {
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = id(r)
	}
	return out
}

// look returns the events since the last look. If it fails, it returns the events found so far, and
// the next look finds only the rest.
func (r *reader) look(ctx context.Context, now time.Time) ([]Event, error) {
	var out []Event
	counts := map[int64]*Count{}
	r.behind = false
	steps := []func() error{
		func() error { return r.lookAtAudit(ctx, now, &out) },
		func() error { return r.lookAtStarts(ctx, counts, &out) },
		func() error { return r.lookAtEnds(ctx, now, counts, &out) },
	}

	if r.looks++; r.looks%rarely == 0 {
		steps = append(steps,
			func() error { return r.lookAtSessions(ctx, &out) },
			func() error { return r.lookAtBackfills(ctx, &out) },
			func() error { return r.lookAtAlerts(ctx, &out) })
	}

	var err error
	for _, step := range steps {
		if err = step(); err != nil {
			break
		}
	}

	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	if len(counts) > 0 {
		e := Event{ID: "c" + uuid.NewString(), Kind: KindRuns, Action: Counted, At: r.clock(), Open: true}
		for _, id := range slices.Sorted(maps.Keys(counts)) {
			e.Counts = append(e.Counts, *counts[id])
		}
		slices.SortStableFunc(e.Counts, func(a, b Count) int { return cmp.Compare(b.Total(), a.Total()) })
		out = append(out, e)
	}

	if err == nil && r.full >= behindMost {
		if err = r.anchor(ctx, now); err == nil {
			r.full = 0
			out = append(out, reload(r.clock(), "too many changes at once"))
		}
	}
	return out, err
}

// lateIDs is the reason to reload when a trail stops looking for missing ids.
const lateIDs = "too many transactions were open at once"

// lookAtEnds finds ended runs.
func (r *reader) lookAtEnds(ctx context.Context, now time.Time, counts map[int64]*Count, out *[]Event) error {
	t, full := r.ends.Clone(), false
	rows, _, lost, err := trail.Follow(&t, job.MicrosOf(now), func(e *read.Ending) int64 { return e.ID },
		func(spans []sql.Span) ([]read.Ending, error) { return r.db.EndedIn(ctx, spans) },
		func(after int64) ([]read.Ending, error) {
			found, err := r.db.EndedAfter(ctx, after, batch)
			full = len(notesOf(found)) >= batch
			return found, err
		})
	if err != nil {
		return err
	}

	notes := notesOf(rows)
	if len(notes) > manyRuns {
		if err := r.learn(ctx, ids(notes, func(n trip.Note) int64 { return n.JobID })); err != nil {
			return err
		}
		for _, n := range notes {
			if c := r.count(counts, n.JobID); int(n.Outcome) < len(c.Ended) && n.Outcome >= 0 {
				c.Ended[n.Outcome]++
			}
		}
	} else {
		found, err := r.db.RunsByID(ctx, ids(notes, func(n trip.Note) int64 { return n.Run }))
		if err != nil {
			return err
		}
		for _, n := range notes {
			if run, ok := found[n.Run]; ok {
				*out = append(*out, Event{
					ID: "e" + job.RunID(n.Run), Kind: KindRun, Action: Ended, At: run.Ended,
					App: run.App, JobID: run.JobID, Job: run.Job, Run: &run,
				})
			}
		}
	}

	if r.full++; !full {
		r.full = 0
	}
	r.behind = r.behind || full
	if r.ends = t; lost > 0 {
		*out = append(*out, reload(r.clock(), lateIDs))
	}
	return nil
}

// notesOf returns the runs of endings.
func notesOf(endings []read.Ending) []trip.Note {
	var out []trip.Note
	for i := range endings {
		out = append(out, endings[i].Runs...)
	}
	return out
}

// count returns the count of a job. It adds an empty count for a new job.
func (r *reader) count(counts map[int64]*Count, id int64) *Count {
	c := counts[id]
	if c == nil {
		c = &Count{JobID: id, JobName: r.names[id]}
		counts[id] = c
	}
	return c
}

// learn reads the names of jobs that are not known yet.
func (r *reader) learn(ctx context.Context, all []int64) error {
	if len(r.names) > manyNames {
		clear(r.names)
	}

	wanted := map[int64]bool{}
	for _, id := range all {
		if _, known := r.names[id]; !known {
			wanted[id] = true
		}
	}

	for part := range slices.Chunk(slices.Sorted(maps.Keys(wanted)), 1000) {
		found, err := r.db.JobNames(ctx, part)
		if err != nil {
			return err
		}
		maps.Copy(r.names, found)
	}
	return nil
}

// lookAtStarts finds runs that were not executing at the last look. A run that has already ended is
// reported only as ended.
func (r *reader) lookAtStarts(ctx context.Context, counts map[int64]*Count, out *[]Event) error {
	rows, err := r.db.Attempting(ctx, executing)
	if err != nil {
		return err
	}

	now := make(map[read.Attempt]bool, len(rows))
	var begun []read.Attempt
	for _, a := range rows {
		now[a] = true
		if !r.attempts[a] {
			begun = append(begun, a)
		}
	}

	if len(begun) > manyRuns {
		if err := r.learn(ctx, ids(begun, func(a read.Attempt) int64 { return a.JobID })); err != nil {
			return err
		}
		for _, a := range begun {
			r.count(counts, a.JobID).Started++
		}
	} else {
		found, err := r.db.ExecutingByID(ctx, ids(begun, func(a read.Attempt) int64 { return a.Run }))
		if err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b read.Run) int { return cmp.Compare(a.Started, b.Started) })
		for _, run := range found {
			*out = append(*out, Event{
				ID: "s" + run.Launch.String(), Kind: KindRun, Action: Started, At: run.Started,
				App: run.App, JobID: run.JobID, Job: run.Job, Run: &run,
			})
		}
	}

	r.attempts = now
	return nil
}

// lookAtAudit finds new audit lines.
func (r *reader) lookAtAudit(ctx context.Context, now time.Time, out *[]Event) error {
	t := r.lines.Clone()
	rows, fresh, lost, err := trail.Follow(&t, job.MicrosOf(now), func(e *job.Entry) int64 { return e.ID },
		func(spans []sql.Span) ([]job.Entry, error) { return read.LinesIn(r.db.Reader(ctx), spans) },
		func(after int64) ([]job.Entry, error) { return read.LinesAfter(r.db.Reader(ctx), after, batch) })
	if err != nil {
		return err
	}

	for i := range rows {
		*out = append(*out, ofLine(&rows[i]))
		if rows[i].Kind == job.KindJob {
			delete(r.names, rows[i].Ref) // it may have been renamed
		}
	}

	r.behind = r.behind || fresh == batch
	if r.lines = t; lost > 0 {
		*out = append(*out, reload(r.clock(), lateIDs))
	}
	return nil
}

// ofLine returns the event of an audit line.
func ofLine(l *job.Entry) Event {
	e := Event{
		ID: fmt.Sprint("a", l.ID), At: l.At, Action: string(l.Action), App: l.App, Who: l.Who, Reason: l.Reason,
	}
	paused := l.Action == job.ActionPause || l.Action == job.ActionResume
	switch {
	case l.Kind == job.KindJob:
		e.Kind, e.JobID, e.Job = KindJob, l.Ref, l.Name
	case (l.Kind == job.KindApp || l.Kind == job.KindCluster) && paused:
		e.Kind, e.Open = KindPause, l.Kind == job.KindCluster
	case l.Kind == job.KindSession || l.Kind == job.KindNode:
		e.Kind, e.Name, e.Open = KindNode, l.Name, true
	default:
		e.Kind, e.Name, e.What = KindChange, l.Name, string(l.Kind)
	}
	return e
}

// lookAtSessions finds nodes that joined, or that are about to stop. Nodes that have left are in
// the audit.
func (r *reader) lookAtSessions(ctx context.Context, out *[]Event) error {
	rows, err := r.db.Sessions(ctx)
	if err != nil {
		return err
	}

	now := make(map[uuid.UUID]sql.SessionRow, len(rows))
	for _, s := range rows {
		now[s.ID] = s
		before, known := r.sessions[s.ID]
		if !known {
			*out = append(*out, Event{
				ID: "j" + s.ID.String(), Kind: KindNode, Action: Joined, At: s.Started, Name: s.Node, Open: true,
			})
		}
		if s.Draining && !before.Draining {
			*out = append(*out, Event{
				ID: "d" + s.ID.String(), Kind: KindNode, Action: Stops, At: s.BeatAt, Name: s.Node, Open: true,
			})
		}
	}

	r.sessions = now
	return nil
}

// lookAtBackfills finds backfills that began, progressed or ended.
func (r *reader) lookAtBackfills(ctx context.Context, out *[]Event) error {
	rows, err := r.db.RunningBackfills(ctx, backfills)
	if err != nil {
		return err
	}

	now := make(map[int64]job.Micros, len(rows))
	for _, b := range rows {
		now[b.ID] = b.Updated
	}

	// A new backfill may have ended before any look saw it running.
	fresh, err := r.db.BackfillsAfter(ctx, r.backfill, backfills)
	if err != nil {
		return err
	}
	last := r.backfill
	for _, b := range fresh {
		last = max(last, b.ID)
		if _, runs := now[b.ID]; !runs {
			rows = append(rows, b)
		}
	}

	// These backfills ran at the last look and do not run now.
	for id := range r.backfills {
		if _, runs := now[id]; !runs {
			b, err := trip.BackfillOf(r.db.Reader(ctx), id)
			if errors.Is(err, sql.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			rows = append(rows, b)
		}
	}

	if err := r.learn(ctx, ids(rows, func(b trip.BackfillRow) int64 { return b.JobID })); err != nil {
		return err
	}

	for _, b := range rows {
		if before, known := r.backfills[b.ID]; known && before == b.Updated {
			continue
		}
		name := r.names[b.JobID]
		*out = append(*out, Event{
			ID: fmt.Sprintf("b%d-%d", b.ID, b.Updated), Kind: KindBackfill, Action: string(b.State), At: b.Updated,
			App: name.App, JobID: b.JobID, Job: name.Name, Who: b.Who, Backfill: &b,
		})
	}

	r.backfills, r.backfill = now, last
	return nil
}
