package job

import (
	"container/heap"
	"encoding/json"
	"slices"
	"time"
)

// Coming merges the due times of many schedules in order. Due times of the same instant are in the
// order of ids. Each due time is computed only when Next reaches it.
type Coming struct {
	rows comingRows
	to   time.Time
}

// ComingDue is a due time of one of the schedules.
type ComingDue struct {
	Due time.Time
	ID  int64

	schedule Schedule
}

// NewComing makes a list of the due times before an instant.
func NewComing(to time.Time) *Coming { return &Coming{to: to} }

// Add adds the due times of a schedule from an instant on, including the instant itself.
func (c *Coming) Add(id int64, s Schedule, from time.Time) {
	if due, ok := s.Next(from.Add(-time.Microsecond)); ok && due.Before(c.to) {
		heap.Push(&c.rows, ComingDue{due, id, s})
	}
}

// Next returns the next due time. ok is false at the end.
func (c *Coming) Next() (due ComingDue, ok bool) {
	if len(c.rows) == 0 {
		return ComingDue{}, false
	}

	first := &c.rows[0]
	due = *first
	if next, ok := first.schedule.Next(first.Due); ok && next.Before(c.to) {
		first.Due = next
		heap.Fix(&c.rows, 0)
	} else {
		heap.Pop(&c.rows)
	}

	return due, true
}

// Mark says how a clock change or a calendar affects the due time.
func (d *ComingDue) Mark() Mark { return markOf(d.schedule, d.Due) }

// MovedFrom returns the time from which the due time moved, or nil.
func (d *ComingDue) MovedFrom() *time.Time { return MovedFrom(d.schedule, d.Due) }

type comingRows []ComingDue

func (r comingRows) Len() int { return len(r) }
func (r comingRows) Less(i, j int) bool {
	if d := r[i].Due.Compare(r[j].Due); d != 0 {
		return d < 0
	}
	return r[i].ID < r[j].ID
}
func (r comingRows) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *comingRows) Push(x any)   { *r = append(*r, x.(ComingDue)) }
func (r *comingRows) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}

// Tally counts the due times of many definitions for each step of a range.
type Tally struct {
	Counts []int64 // by step
	Jobs   int     // jobs with a due time in the range
	Total  int64   // sum of Counts
	Left   int     // remaining work, see Add
	Work   *Work   // budget for computing the schedules; nil: no bound

	from, to time.Time
	step     time.Duration
	known    map[string]*tallied
}

// tallied caches the results of one schedule. Definitions share the cache if they differ only in
// jitter, or in fields that do not affect the schedule.
type tallied struct {
	work  *Work    // budget of base; nil: no bound
	base  Schedule // without jitter; nil: not valid
	dues  []Micros // due times of base; nil: more than one per step, or not computed yet
	since Micros   // where dues begins
	done  []int64  // counts without jitter; nil: not computed yet
}

// NewTally makes a tally whose steps begin at from. It may compute as many due times as work says.
func NewTally(from time.Time, step time.Duration, steps, work int) *Tally {
	return &Tally{
		Counts: make([]int64, steps), Left: work, from: from, to: from.Add(time.Duration(steps) * step), step: step,
		known: map[string]*tallied{},
	}
}

// The cost of work. The unit is one due time of a cron expression.
const (
	everyShare = 32 // due times of an interval that cost one unit
	parseCost  = 50 // of parsing an expression
)

// Add counts the due times of a definition. The caller passes the calendars that the definition
// names. An invalid definition has no due times. Several definitions with equal schedules cost
// little more than one definition. If the count would exceed the work left, Add returns false and
// counts nothing.
func (t *Tally) Add(s *Spec, calendars ...*Calendar) bool {
	k, ok := t.knownOf(s, calendars)
	if !ok || k.base == nil {
		return ok
	}

	counts := k.done
	if s.Jitter > 0 || counts == nil {
		if counts, ok = t.count(k, s); !ok || k.work.Err() != nil {
			return false
		}
		if s.Jitter == 0 && s.Every == 0 {
			k.done = counts
		}
	}

	sum := int64(0)
	for i, n := range counts {
		t.Counts[i] += n
		sum += n
	}

	if t.Total += sum; sum > 0 {
		t.Jobs++
	}

	return true
}

// Schedule returns the schedule of a definition. It returns false if the definition is invalid, or
// if reading the definition is too much work.
func (t *Tally) Schedule(s *Spec, calendars ...*Calendar) (Schedule, bool) {
	k, ok := t.knownOf(s, calendars)
	if !ok || k.base == nil {
		return nil, false
	}
	if s.Jitter > 0 {
		return Shifted{k.base, s.shift()}, true
	}
	return k.base, true
}

// knownOf returns the cached results for a definition. It returns false if reading the definition
// is too much work.
func (t *Tally) knownOf(s *Spec, calendars []*Calendar) (*tallied, bool) {
	plain := Spec{
		Schedule: s.Schedule, Schedules: s.Schedules, Every: s.Every, At: s.At, Delay: s.Delay, After: s.After,
		Timezone: s.Timezone, Calendars: s.Calendars, OnClosed: s.OnClosed, Weeks: s.Weeks,
		Start: s.Start, End: s.End, MaxFires: s.MaxFires,
		Manual: s.Manual,
	}
	if s.Every != 0 || s.At != nil || s.unscheduled() { // each has its own times, and is quick to read
		k := compiled(&plain, calendars)
		t.bound(k)
		return k, true
	}

	key, err := json.Marshal(&plain)
	if err != nil {
		return &tallied{}, true
	}

	k := t.known[string(key)]
	if k == nil {
		if !t.pay(s, parseCost*max(1, len(s.Schedules))) {
			return nil, false
		}
		k = compiled(&plain, calendars)
		t.bound(k)
		t.known[string(key)] = k
	}

	return k, true
}

// bound gives a schedule its part of the budget Work.
func (t *Tally) bound(k *tallied) {
	if t.Work != nil && k.base != nil {
		k.work = t.Work.Part(JobWork)
		k.base = k.work.On(k.base)
	}
}

func compiled(s *Spec, calendars []*Calendar) *tallied {
	base, err := s.Compile(calendars...)
	if err != nil {
		return &tallied{}
	}
	return &tallied{base: base}
}

// count counts the due times of each step. It visits each due time. If there are more due times
// than steps, it visits each step instead.
func (t *Tally) count(k *tallied, s *Spec) ([]int64, bool) {
	shift := time.Duration(0)
	if s.Jitter > 0 {
		shift = s.shift()
	}

	from, to := t.from.Add(-shift-time.Microsecond), t.to.Add(-shift-time.Microsecond) // (from, to] covers the range
	if !t.pay(s, 1) {
		return nil, false
	}

	n := k.base.Count(from, to)
	if n > int64(len(t.Counts)) {
		if !t.pay(s, len(t.Counts)) {
			return nil, false
		}
		counts := make([]int64, len(t.Counts))
		for i := range counts {
			next := from.Add(t.step)
			counts[i] = k.base.Count(from, next)
			from = next
		}
		return counts, true
	}

	counts := make([]int64, len(t.Counts))
	if n == 0 {
		return counts, true
	}

	if k.dues == nil || k.since > MicrosOf(from)+1 {
		first := t.from
		if s.Jitter > 0 { // other jobs shift the same due times differently
			first = first.Add(-MaxJitter)
		}
		if !t.find(k, s, first, t.to) {
			return nil, false
		}
	}

	begin, _ := slices.BinarySearch(k.dues, MicrosOf(from)+1)
	for _, due := range k.dues[begin:] {
		i := due.Add(shift).Sub(MicrosOf(t.from)) / t.step
		if int(i) >= len(counts) {
			break
		}
		counts[i]++
	}

	return counts, true
}

// find lists the due times from first on that are before last.
func (t *Tally) find(k *tallied, s *Spec, first, last time.Time) bool {
	before := time.Microsecond
	n := k.base.Count(first.Add(-before), last.Add(-before))
	if !t.pay(s, int(min(n, int64(t.Left)*everyShare+1))) {
		return false
	}

	k.dues, k.since = make([]Micros, 0, n), MicrosOf(first)
	for at := first.Add(-before); ; {
		due, ok := k.base.Next(at)
		if !ok || !due.Before(last) {
			return true
		}
		k.dues = append(k.dues, MicrosOf(due))
		at = due
	}
}

// pay subtracts the cost of n due times from the work left. It returns false if too little is left.
func (t *Tally) pay(s *Spec, n int) bool {
	if s.Every != 0 && len(s.Calendars) == 0 {
		n = (n + everyShare - 1) / everyShare
	}
	if n > t.Left {
		return false
	}
	t.Left -= n
	return true
}
