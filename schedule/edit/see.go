package edit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// view holds everything that a decision about a job needs and that can be read without a lock.
type view struct {
	*Change
	seen    *trip.Seen // nil: there is no such job, or not yet
	was     *job.Spec  // the old definition; nil: unreadable
	problem error      // the reason of a refusal

	// Set only if the change gives the job a definition.
	def       *job.Spec
	appID     int32
	text      string
	calendars string
	sameDues  bool     // same due times as before: cursor and runs stay
	next      upcoming // the new due times

	live   bool        // for Change.Finished: a run of the job is not over, or a backfill will make more runs
	latest *trip.Ahead // with a delay: the last run of the schedule; nil: none
	past   *past       // due times up to now without a run; nil: no such due times
}

// upcoming are the due times of a schedule after an instant.
type upcoming struct {
	after job.Micros
	dues  []job.Micros
	all   bool // dues is complete: the schedule ends with them
}

// first returns the first due time after an instant; zero: the schedule has ended. known is false
// if the due times were not computed that far.
func (u *upcoming) first(after job.Micros) (due job.Micros, known bool) {
	if after < u.after {
		return 0, false
	}
	for _, due := range u.dues {
		if due > after {
			return due, true
		}
	}
	return 0, u.all
}

// past are due times that passed without a run.
type past struct {
	first, last job.Micros
	count       int64 // zero: unknown
}

const (
	// knownDues and knownFor bound the due times that a change computes ahead. A change needs
	// several, because runs of the first due times may begin before the change has locked the job.
	knownDues = 16
	knownFor  = 10 * time.Second
)

// see reads the jobs of a batch, and computes their due times. It takes no lock.
func (e *Editor) see(ctx context.Context, b batch) ([]*view, error) {
	var ids []int64
	for i := range b.changes {
		if b.changes[i].ID != 0 {
			ids = append(ids, b.changes[i].ID)
		}
	}
	seen, err := trip.SeeJobs(e.DB.Reader(ctx), ids)
	if err != nil {
		return nil, err
	}

	views := make([]*view, len(b.changes))
	for i := range b.changes {
		v := &view{Change: &b.changes[i], seen: seen[b.changes[i].ID]}
		v.open(b.now)
		views[i] = v
	}

	calendars, err := e.calendarsOf(ctx, views, b)
	if err != nil {
		return nil, err
	}
	apps, err := e.appsOf(ctx, views)
	if err != nil {
		return nil, err
	}

	work := job.NewWork(ctx, int64(max(10, len(views)))*job.JobWork)
	for _, v := range views {
		if v.problem != nil {
			continue
		}
		if v.def != nil {
			v.appID = apps[v.def.App]
		}
		err := work.Turn(func() error { v.compute(work.Part(job.DefiningWork), calendars, b.now); return nil })
		if err != nil && !errors.Is(err, job.ErrTooExpensive) {
			return nil, err
		}
	}
	return views, nil
}

// open reads the old definition and checks the change.
func (v *view) open(now job.Micros) {
	if v.Action != job.ActionCreate {
		if v.seen == nil || v.seen.Deleted {
			v.problem = fmt.Errorf("job %d: %w", v.ID, sql.ErrNotFound)
			return
		}
		if spec, err := job.DecodeSpec(v.seen.Text); err == nil {
			v.was = &spec
		}
	}

	switch v.Action {
	case recalendar:
		if v.was == nil {
			v.problem = errUnreadable
			return
		}
		v.def, v.text = v.was, v.seen.Text
	case job.ActionCreate, job.ActionUpdate, job.ActionRollback:
		spec := *v.Spec
		spec.Defaults(now.Time())
		if v.problem = spec.Validate(); v.problem != nil {
			return
		}
		v.def = &spec
		v.text, v.problem = spec.Encode()
	}
}

var errUnreadable = errors.New("the definition of the job cannot be read")

// calendarsOf reads the calendars that old and new definitions name.
func (e *Editor) calendarsOf(ctx context.Context, views []*view, b batch) (map[string]*job.Calendar, error) {
	names := map[string]bool{}
	for _, v := range views {
		for _, spec := range []*job.Spec{v.was, v.def} {
			if spec != nil {
				for _, name := range spec.Calendars {
					names[name] = true
				}
			}
		}
	}

	out := map[string]*job.Calendar{}
	found, err := trip.CalendarsNamed(e.DB.Reader(ctx), slices.Sorted(maps.Keys(names)))
	if sql.IsAway(err) {
		return nil, err
	}
	for _, c := range found { // unreadable calendars count as missing
		out[c.Name()] = c
	}

	if b.calendars != nil {
		for _, c := range b.calendars() {
			out[c.Name()] = c
		}
	}
	return out, nil
}

// appsOf returns the numbers of the apps of new definitions.
func (e *Editor) appsOf(ctx context.Context, views []*view) (map[string]int32, error) {
	var names []string
	for _, v := range views {
		if v.def != nil && v.problem == nil {
			names = append(names, v.def.App)
		}
	}
	return e.numbers(ctx, names)
}

// numbers returns the numbers of apps, and assigns missing ones.
func (e *Editor) numbers(ctx context.Context, apps []string) (map[string]int32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	unknown := map[string]bool{}
	for _, app := range apps {
		if e.apps[app] == 0 {
			unknown[app] = true
		}
	}
	names := slices.Sorted(maps.Keys(unknown))
	if len(names) == 0 {
		return e.apps, nil
	}

	found, err := trip.Apps(e.DB.Reader(ctx), names)
	if err == nil && len(found) < len(names) {
		if err = e.DB.Tx(ctx, func(tx *sql.Tx) error { return trip.NumberApps(tx, names) }); err == nil || sql.IsUnknown(err) {
			found, err = trip.Apps(e.DB.Reader(ctx), names)
		}
	}
	if err == nil && len(found) < len(names) {
		err = errAgain
	}

	if e.apps == nil {
		e.apps = map[string]int32{}
	}
	known := maps.Clone(e.apps) // callers may still be reading the old map
	maps.Copy(known, found)
	e.apps = known
	return known, err
}

// compute computes all due times that the decision may need.
func (v *view) compute(work *job.Work, calendars map[string]*job.Calendar, now job.Micros) {
	v.sameDues = v.Action != recalendar && v.was != nil && v.def != nil && v.seen.Error == "" &&
		sameDues(v.was, v.def) &&
		digestsOf(v.def, calendars) == v.seen.Calendars
	if v.Action == job.ActionDelete ||
		v.Action != job.ActionCreate && v.Action != recalendar && v.def != nil && !v.sameDues {
		v.past = passed(work, v.was, calendars, v.seen.Cursor(), now)
	}
	if v.def == nil {
		return
	}

	v.calendars = digestsOf(v.def, calendars)
	schedule, err := compile(work, v.def, calendars)
	begun := job.Micros(0)
	if v.seen != nil {
		begun = v.seen.BegunTo
	}

	if err == nil && !v.sameDues && v.def.Delay == 0 {
		v.next = upcomingOf(schedule, v.outset(begun, now))
		err = v.def.Explain(work.Err(), nil)
	}
	if err == nil && v.Action != recalendar && !v.Past && (v.was == nil || !v.was.SameAt(v.def)) {
		err = v.def.CheckPastAt(now.Time())
	}
	v.problem = err
}

// outset returns the instant after which the due times of the new definition are computed. A
// single due time in the past is due at once, unless a run at that time or later has begun.
func (v *view) outset(begun, now job.Micros) job.Micros {
	if v.def.At != nil {
		return begun
	}
	return max(now, begun)
}

// passed finds the due times from a cursor up to now. If the schedule cannot be computed, the
// number of due times is unknown.
func passed(work *job.Work, spec *job.Spec, calendars map[string]*job.Calendar, cursor, now job.Micros) *past {
	if cursor == 0 || cursor > now {
		return nil
	}
	unknown := &past{first: cursor, last: now}
	if spec == nil {
		return unknown
	}
	schedule, err := compile(work, spec, calendars)
	if err != nil {
		return unknown
	}

	last, ok := schedule.Last((cursor - 1).Time(), now.Time())
	count := schedule.Count((cursor - 1).Time(), now.Time())
	if work.Err() != nil {
		return unknown
	}

	if !ok { // a calendar has changed since, and the cursor is no due time any more
		return &past{first: cursor, last: cursor, count: 1}
	}
	return &past{first: cursor, last: job.MicrosOf(last), count: count}
}

func upcomingOf(s job.Schedule, after job.Micros) upcoming {
	u := upcoming{after: after}
	for at := after; len(u.dues) < knownDues && (len(u.dues) == 0 || at.Sub(u.dues[0]) < knownFor); {
		due, ok := s.Next(at.Time())
		if !ok {
			u.all = true
			break
		}
		at = job.MicrosOf(due)
		u.dues = append(u.dues, at)
	}
	return u
}

// compile compiles the schedule of a definition.
func compile(work *job.Work, spec *job.Spec, calendars map[string]*job.Calendar) (s job.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil { // one bad definition must not stop a node
			err = fmt.Errorf("schedule: %v", r)
		}
	}()

	var used []*job.Calendar
	for _, name := range spec.Calendars {
		if c := calendars[name]; c != nil {
			used = append(used, c)
		}
	}
	s, err = spec.Compile(used...)
	if err != nil {
		return nil, err
	}
	return work.On(s), nil
}

// digestsOf returns the digests of the calendars that a definition names, in the definition's
// order. See job_version.calendars.
func digestsOf(spec *job.Spec, calendars map[string]*job.Calendar) string {
	var named []*job.Calendar
	for _, name := range spec.Calendars {
		if c := calendars[name]; c != nil {
			named = append(named, c)
		}
	}
	return trip.DigestsOf(named)
}

// sameDues reports whether two definitions have the same due times on the same nodes. Then runs
// that were claimed under one definition may start under the other.
func sameDues(a, b *job.Spec) bool {
	when := func(s *job.Spec) *job.Spec {
		w := job.Spec{
			Schedule: s.Schedule, Schedules: s.Schedules, Every: s.Every, At: s.At, Delay: s.Delay, Timezone: s.Timezone,
			Start: s.Start, End: s.End, MaxFires: s.MaxFires, Jitter: s.Jitter, Calendars: s.Calendars,
			OnClosed: s.OnClosed, Weeks: s.Weeks, Selector: s.Selector,
			Manual: s.Manual,
		}
		if s.After != nil {
			w.After = &job.After{} // no due times, whatever it follows
		}
		if s.Jitter != 0 {
			w.App, w.Name = s.App, s.Name // the jitter is derived from the job's name
		}
		return &w
	}
	return when(a).Same(when(b))
}
