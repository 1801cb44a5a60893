package schedule

import (
	"container/heap"
	"sync"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql/trip"
)

// Prepared holds the prepared runs of this session, ordered by when each must be looked at next.
// The set mirrors the rows of the runs: set and rows change only through lock.Exclusion.
type Prepared struct {
	mu     sync.Mutex
	byRun  map[int64]*prepared
	queue  queue     // by the instant of the next look
	ready  queue     // runs whose instant has come: the highest priority first
	signal loop.Wake // wakes the starter
}

type prepared struct {
	trip.Run
	at    job.Micros // when to look at the run next
	busy  int        // looks that found a row locked
	ready bool       // it is in the ready queue
	index int        // its place in its heap; -1 after Take, while a start is under way
}

// NewPrepared returns an empty set.
func NewPrepared() *Prepared {
	return &Prepared{byRun: map[int64]*prepared{}, signal: loop.NewWake()}
}

// Add puts claimed runs into the set.
func (p *Prepared) Add(runs []trip.Run) {
	p.mu.Lock()
	for _, r := range runs {
		it := &prepared{Run: r, at: r.DueNow, index: -1}
		if old := p.byRun[r.Run]; old != nil {
			p.leave(old)
		}
		p.byRun[r.Run] = it
		heap.Push(&p.queue, it)
	}
	p.mu.Unlock()
	p.signal.Up()
}

// Take returns up to n runs that must be looked at by an instant: the highest priority first, then
// the earliest. The runs stay in the set, but Take does not return them again until Return puts
// them back.
func (p *Prepared) Take(before job.Micros, n int) (runs []trip.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.queue[0].at <= before {
		it := heap.Pop(&p.queue).(*prepared)
		it.ready = true
		heap.Push(&p.ready, it)
	}

	for len(runs) < n && len(p.ready) > 0 {
		it := heap.Pop(&p.ready).(*prepared)
		it.ready = false
		runs = append(runs, it.Run)
	}

	return runs
}

// Return puts back a run that Take returned. The run must be looked at again at an instant.
func (p *Prepared) Return(r trip.Run, at job.Micros) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it := p.byRun[r.Run]; it != nil && it.Launch == r.Launch && it.index < 0 {
		it.at = at
		heap.Push(&p.queue, it)
	}
}

// Hold is Return for a run that could not be judged yet. If at is zero, the run waits for a pause
// that grows each time.
func (p *Prepared) Hold(r trip.Run, at, now job.Micros) {
	if at == 0 {
		at = now.Add(busyPause(p.busy(r.Launch)))
	}
	p.Return(r, at)
}

// busy counts a look that found a needed row locked. It returns the number of such looks before
// this one.
func (p *Prepared) busy(l trip.Launch) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.byRun[l.Run]
	if it == nil {
		return 0
	}
	it.busy++
	return it.busy - 1
}

// Drop removes a run that was started, has ended, or belongs to another node now.
func (p *Prepared) Drop(l trip.Launch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it := p.byRun[l.Run]; it != nil && it.Launch == l {
		p.leave(it)
		delete(p.byRun, l.Run)
	}
}

func (p *Prepared) leave(it *prepared) {
	switch {
	case it.index < 0:
	case it.ready:
		heap.Remove(&p.ready, it.index)
	default:
		heap.Remove(&p.queue, it.index)
	}
}

// Has reports whether the set holds a launch.
func (p *Prepared) Has(l trip.Launch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.byRun[l.Run]
	return it != nil && it.Launch == l
}

// Next returns the earliest instant at which a run must be looked at.
func (p *Prepared) Next() (at job.Micros, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range p.ready {
		if !ok || it.at < at {
			at, ok = it.at, true
		}
	}
	if !ok && len(p.queue) > 0 {
		return p.queue[0].at, true
	}
	return at, ok
}

// Len returns the number of runs in the set.
func (p *Prepared) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byRun)
}

// Overdue returns how late the earliest look is; zero: no look is late.
func (p *Prepared) Overdue(now job.Micros) time.Duration {
	at, ok := p.Next()
	if !ok {
		return 0
	}
	return max(0, now.Sub(at))
}

// Forget empties the set. The rows stay: they become overdue, and any node starts them.
func (p *Prepared) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.byRun)
	p.queue, p.ready = nil, nil
}

// queue is a heap. Ready runs are ordered by priority, then by instant, then by id, which is the
// order of claims. Other runs are ordered by instant and id.
type queue []*prepared

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].ready && q[i].Rank != q[j].Rank {
		return q[i].Rank > q[j].Rank
	}
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].Launch.Run < q[j].Launch.Run
}

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(x any) {
	it := x.(*prepared)
	it.index = len(*q)
	*q = append(*q, it)
}

func (q *queue) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	it.index = -1
	return it
}
