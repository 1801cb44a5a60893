package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// Limits of one answer about slots.
const (
	maxSlots        = 1000
	defaultSlots    = 200
	maxParts        = 400
	defaultParts    = 96
	maxSlotJobs     = 50
	defaultSlotJobs = 20
	maxSlotRange    = 31 * 24 * time.Hour
	slotRows        = 200_000 // due times of all jobs together
	slotRuns        = 10_000  // most runs of a job whose due times are shown one by one
	slotCounted     = 1000    // most runs of a job that count several due times each
	slotVersions    = 50      // definitions of a job in the range
)

// reign is the stretch of time [from, to) in which one definition was in force.
type reign struct {
	spec      job.Spec
	calendars []*job.Calendar
	schedule  job.Schedule // nil: it cannot be planned
	from, to  time.Time
}

// strip is a job whose slots are being found.
type strip struct {
	j      *read.Job
	reigns []reign
	view   *view.JobSlots
	work   *job.Work
}

// slotRange is the time range of a request.
type slotRange struct {
	from, to time.Time
	now      job.Micros
	most     int64 // due times that are shown one by one
	length   time.Duration
}

// slots: GET /api/v1/stats/slots
func (s *Server) slots(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	x, err := s.slotRange(q)
	if err != nil {
		return err
	}

	f := read.JobFilter{App: q.text(ofAppParam), Apps: auth.Of(r.Context()).Sees(), Limit: int(q.number(slotsJobs))}
	id := q.number(ofJobParam)
	if id != 0 && f.App != "" {
		q.wrong(ofAppParam.name, problem.NotWith.Advise("give only one of them"), ofJobParam.name)
	}
	if c := q.cursor("slots"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	page, err := s.slotJobs(r.Context(), f, id)
	if err != nil {
		return err
	}

	v := view.Slots{From: x.from, To: x.to, Now: x.now.Time(), Items: []*view.JobSlots{}}
	if n := page.Next; n != nil {
		v.Next = (&cursor{list: "slots", RunPlace: read.RunPlace{ID: n.ID}}).String()
	}
	if v.Items, err = s.strips(r.Context(), page.Rows, x); err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

func (s *Server) slotRange(q *query) (*slotRange, error) {
	now, err := s.now()
	if err != nil {
		return nil, err
	}

	x := &slotRange{from: q.instant(slotsFrom), to: q.instant(slotsTo), now: job.MicrosOf(now), most: q.number(slotsMost)}
	parts := time.Duration(q.number(slotsParts))
	x.from = x.from.UTC().Truncate(time.Microsecond)
	if x.to.IsZero() {
		x.to = x.from.Add(24 * time.Hour)
	}
	x.to = x.to.UTC().Truncate(time.Microsecond)

	switch d := x.to.Sub(x.from); {
	case q.problems != nil:
	case d <= 0:
		q.wrong(slotsTo.name, problem.NotAfter, x.to.Format(time.RFC3339), "from", x.from.Format(time.RFC3339))
	case d > maxSlotRange:
		q.wrong(slotsTo.name, problem.TooFarApart, int(maxSlotRange.Hours()/24))
	default:
		second := parts * time.Second // of each part
		x.length = (d + second - 1) / second * time.Second
	}
	return x, nil
}

// slotJobs returns one job, or a page of jobs.
func (s *Server) slotJobs(ctx context.Context, f read.JobFilter, id int64) (read.JobPage, error) {
	if id == 0 {
		return s.cfg.DB.JobPage(ctx, f)
	}

	j, err := s.jobByID(ctx, id)
	if err == nil && !mayRead(ctx, j.Spec.App) {
		err = noJob(strconv.FormatInt(id, 10))
	}
	return read.JobPage{Rows: []read.Job{j}}, err
}

// strips finds the slots of jobs. It reads the definitions, counts the due times, reads the runs,
// and then combines them. Computing due times can take long, so it has a budget and happens outside
// all transactions.
func (s *Server) strips(ctx context.Context, jobs []read.Job, x *slotRange) ([]*view.JobSlots, error) {
	leave, err := s.waitTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	work := job.NewWork(ctx, job.ListingWork)
	all, out := make([]*strip, len(jobs)), make([]*view.JobSlots, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		all[i] = &strip{j: j, work: work.Part(job.JobWork), view: &view.JobSlots{
			JobID: strconv.FormatInt(j.ID, 10), Job: j.Spec.Name, App: j.Spec.App, Timezone: j.Spec.Timezone,
		}}
		out[i] = all[i].view
		if all[i].reigns, out[i].Uncounted, err = s.reigns(ctx, j, x); err != nil {
			return nil, err
		}
	}
	if err := s.readCalendars(ctx, all); err != nil {
		return nil, err
	}

	compute := func(do func(*strip)) error {
		err := work.Turn(func() error {
			for _, t := range all {
				if !t.view.Uncounted {
					do(t)
				}
				t.view.Uncounted = t.view.Uncounted || t.work.Err() != nil
			}
			return nil
		})
		if errors.Is(err, job.ErrTooExpensive) {
			err = nil // each job that was too expensive is marked Uncounted
		}
		return err
	}

	left := int64(slotRows)
	err = compute(func(t *strip) {
		t.compile()
		t.view.Total = t.count(x.from, x.to)
		if left -= t.view.Total; left < 0 {
			t.view.Uncounted = true
		}
	})
	if err != nil {
		return nil, err
	}

	records := map[*strip]*slotRecords{}
	for _, t := range all {
		if !t.view.Uncounted {
			if records[t], err = s.slotRecords(ctx, t, x); err != nil {
				return nil, err
			}
		}
	}

	err = compute(func(t *strip) { t.fill(x, records[t]) })
	return out, err
}

// reigns returns the definitions of a job that were in force in the range, the earliest first. cut
// reports whether there are more than slotVersions definitions.
func (s *Server) reigns(ctx context.Context, j *read.Job, x *slotRange) (out []reign, cut bool, err error) {
	if j.Version == 1 || j.Updated <= job.MicrosOf(x.from) {
		if j.SpecErr == nil {
			out = []reign{{spec: j.Spec, from: laterOf(x.from, j.Created.Time()), to: x.to}}
		}
	} else {
		versions, err := s.cfg.DB.Versions(ctx, j.ID, 0, slotVersions)
		if err != nil {
			return nil, false, err
		}

		to := x.to
		for _, v := range versions { // the latest first
			from := laterOf(x.from, v.At.Time())
			if from.Before(to) && v.SpecErr == nil && mayRead(ctx, v.Spec.App) {
				out = append([]reign{{spec: v.Spec, from: from, to: to}}, out...)
			}
			if to = v.At.Time(); !to.After(x.from) {
				break
			}
		}
		cut = len(versions) == slotVersions && to.After(x.from) && versions[slotVersions-1].Version > 1
	}

	return out, cut, nil
}

// readCalendars reads the calendars of all definitions at once.
func (s *Server) readCalendars(ctx context.Context, all []*strip) error {
	named := map[string]bool{}
	for _, t := range all {
		for i := range t.reigns {
			for _, name := range t.reigns[i].spec.Calendars {
				named[name] = true
			}
		}
	}

	found, err := trip.ReadCalendars(s.cfg.DB.Reader(ctx), slices.Sorted(maps.Keys(named)))
	if err != nil {
		return err
	}
	for _, t := range all {
		for i := range t.reigns {
			r := &t.reigns[i]
			if r.calendars, err = found.Of(r.spec.Calendars); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile compiles the definitions. A definition that cannot be planned has no due times.
func (t *strip) compile() {
	for i := range t.reigns {
		r := &t.reigns[i]
		if schedule, err := r.spec.Compile(r.calendars...); err == nil {
			r.schedule = t.work.On(schedule)
		}
	}
}

// clipped calls do with each schedule and the part of [from, to) in which the schedule was in
// force. The part is given as (after, last]: without its beginning, with its end.
func (t *strip) clipped(from, to time.Time, do func(s job.Schedule, after, last time.Time)) {
	for i := range t.reigns {
		r := &t.reigns[i]
		a, b := r.from, r.to
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		if r.schedule != nil && a.Before(b) {
			do(r.schedule, a.Add(-time.Microsecond), b.Add(-time.Microsecond))
		}
	}
}

// count returns the number of due times in [from, to).
func (t *strip) count(from, to time.Time) (n int64) {
	t.clipped(from, to, func(s job.Schedule, after, last time.Time) { n += s.Count(after, last) })
	return n
}

// dues returns the due times in [from, to), the earliest first.
func (t *strip) dues(from, to time.Time) (out []job.Micros) {
	t.clipped(from, to, func(s job.Schedule, after, last time.Time) {
		for due, ok := s.Next(after); ok && !due.After(last); due, ok = s.Next(due) {
			out = append(out, job.MicrosOf(due))
		}
	})
	return out
}

// slotRecords are the runs of a job in the range: listed one by one, or counted.
type slotRecords struct {
	runs    []read.Run
	counts  []read.SlotCount
	several []read.Run // runs that count several due times
}

func (s *Server) slotRecords(ctx context.Context, t *strip, x *slotRange) (*slotRecords, error) {
	var (
		out      slotRecords
		err      error
		from, to = job.MicrosOf(x.from), job.MicrosOf(x.to)
	)
	if t.view.Total <= x.most {
		out.runs, err = s.cfg.DB.RunsDue(ctx, t.j.ID, from, to, slotRuns)
		t.view.Uncounted = len(out.runs) >= slotRuns
	} else {
		out.counts, out.several, err = s.cfg.DB.CountSlots(ctx, t.j.ID, from, to, job.Micros(x.length.Microseconds()),
			x.now, slotCounted, auth.Of(ctx).Sees())
	}

	// A job that moves leaves its runs in the old app. So each run is checked by its own app.
	hidden := func(r read.Run) bool { return !mayRead(ctx, r.App) }
	out.runs, out.several = slices.DeleteFunc(out.runs, hidden), slices.DeleteFunc(out.several, hidden)
	return &out, err
}

// fill combines due times and runs into the slots of the view.
func (t *strip) fill(x *slotRange, records *slotRecords) {
	if t.view.Total <= x.most {
		t.view.Slots = slotsOf(t.dues(x.from, x.to), records.runs, t.unrecorded(x.now), x.now)
		t.view.Total = int64(len(t.view.Slots))
		for i := range t.view.Slots {
			if t.view.Slots[i].State == view.SlotHole {
				t.view.Holes++
			}
		}
		return
	}

	t.fillBuckets(x, records)
}

// cursor is the first due time that has no run yet; zero: there is none.
func (t *strip) cursor() job.Micros {
	if t.j.Paused {
		return t.j.Parked
	}
	return t.j.NextDue
}

// paused is the reason why due times from the cursor on get no run now. Without a pause it is "".
func (t *strip) paused(now job.Micros) job.ReasonCode {
	p := t.j.PauseAt(now)
	switch {
	case p == nil:
		return ""
	case p.Scope == job.ScopeApp:
		return job.ReasonAppPaused
	case p.Scope == job.ScopeCluster:
		return job.ReasonClusterPaused
	}
	return job.ReasonJobPaused
}

// unrecorded returns a function that makes the slot of a due time without a run. The slot is ahead,
// waiting, paused (with the reason), or a hole.
func (t *strip) unrecorded(now job.Micros) func(due job.Micros) view.Slot {
	cursor, reason := t.cursor(), t.paused(now)
	return func(due job.Micros) view.Slot {
		s := view.Slot{Due: due.Time(), State: view.SlotHole}
		switch {
		case due > now:
			s.State = view.SlotAhead
		case cursor == 0 || due < cursor:
		case reason != "":
			s.State, s.Reason = view.SlotPaused, string(reason)
		default:
			s.State = view.SlotWaiting
		}
		return s
	}
}

// slotState is the state of a run.
func slotState(state trip.State, outcome job.Outcome, ahead bool) view.SlotState {
	switch {
	case state == trip.Ended:
		return view.SlotState(outcome.String())
	case state == trip.Executing:
		return view.SlotRunning
	case ahead:
		return view.SlotAhead
	}
	return view.SlotWaiting
}

// slotsOf makes the slot of each due time. Runs must be ordered by due time, request and attempt. A
// definition may have been in force only for a moment. Then its scheduled runs have due times that
// are not in dues. These runs are shown, too.
func slotsOf(dues []job.Micros, runs []read.Run, unrecorded func(job.Micros) view.Slot, now job.Micros) []view.Slot {
	out := []view.Slot{}
	next := 0 // the first due time that is not shown yet
	show := func(before job.Micros) {
		for ; next < len(dues) && dues[next] < before; next++ {
			out = append(out, unrecorded(dues[next]))
		}
	}

	for i := range runs {
		r := &runs[i]
		switch {
		case r.Request > 0:
			show(r.Due + 1)
			if n := len(out); n > 0 && out[n-1].Due.Equal(r.Due.Time()) && r.State == trip.Ended {
				out[n-1].Again = r.Outcome
			}
		case r.Count > 1:
			show(r.Due)
			for ; next < len(dues) && dues[next] <= r.Until; next++ {
				out = append(out, slotOf(r, dues[next], now))
			}
		case len(out) > 0 && out[len(out)-1].Due.Equal(r.Due.Time()): // a later attempt replaces the earlier one
			out[len(out)-1] = slotOf(r, r.Due, now)
		default:
			show(r.Due)
			if next < len(dues) && dues[next] == r.Due {
				next++
			}
			out = append(out, slotOf(r, r.Due, now))
		}
	}

	show(1<<63 - 1)
	return out
}

func slotOf(r *read.Run, due, now job.Micros) view.Slot {
	v := view.Slot{
		Due: due.Time(), State: slotState(r.State, r.Outcome, r.DueNow > now), Attempt: r.Attempt, Node: r.Node,
		Reason: string(r.Reason.Code),
	}
	if r.State == trip.Ended || r.State == trip.Executing {
		v.RunID = job.RunID(r.ID)
	}
	return v
}

// fillBuckets counts the due times of each part of the range.
func (t *strip) fillBuckets(x *slotRange, records *slotRecords) {
	byPart := map[int64][]read.SlotCount{}
	for _, c := range records.counts {
		byPart[c.Part] = append(byPart[c.Part], c)
	}

	for part, from := int64(0), x.from; from.Before(x.to); part, from = part+1, from.Add(x.length) {
		to := from.Add(x.length)
		if to.After(x.to) {
			to = x.to
		}

		b := view.SlotBucket{From: from, To: to, Total: t.count(from, to), States: map[view.SlotState]int64{}}
		recorded := map[bool]int64{} // runs by whether they are ahead
		for _, c := range byPart[part] {
			state := slotState(c.State, c.Outcome, c.Ahead)
			b.States[state] += c.N
			recorded[c.Ahead] += c.N
			if c.Outcome.Wrong() && (b.Worst == nil || c.Last.Time().After(b.Worst.Due)) {
				b.Worst = &view.Slot{Due: c.Last.Time(), State: state}
			}
		}

		for i := range records.several {
			r := &records.several[i]
			if n := t.count(laterOf(from, r.Due.Time()), earlierOf(to, (r.Until+1).Time())); n > 0 {
				b.States[view.SlotState(r.Outcome.String())] += n
				recorded[false] += n
			}
		}

		t.addUnrecorded(&b, recorded, x.now)
		if b.Total > 0 || len(b.States) > 0 {
			t.view.Holes += b.States[view.SlotHole]
			t.view.Buckets = append(t.view.Buckets, b)
		}
	}
}

// addUnrecorded adds the due times of a bucket that have no run.
func (t *strip) addUnrecorded(b *view.SlotBucket, recorded map[bool]int64, now job.Micros) {
	add := func(state view.SlotState, n int64) {
		if n > 0 {
			b.States[state] += n
		}
	}

	passed := earlierOf(b.To, (now + 1).Time())
	ahead := t.count(laterOf(b.From, passed), b.To)
	add(view.SlotAhead, ahead-recorded[true])

	missing := b.Total - ahead - recorded[false]
	if missing <= 0 {
		return
	}

	// Runs are planned in order, so due times from the cursor on have no run yet. A due time before
	// the cursor without a run is a hole.
	if cursor := t.cursor(); cursor != 0 {
		state := view.SlotWaiting
		if t.paused(now) != "" {
			state = view.SlotPaused
		}
		n := min(missing, t.count(laterOf(b.From, cursor.Time()), passed))
		add(state, n)
		missing -= n
	}
	add(view.SlotHole, missing)
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
