package schedule

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
)

// Prepared is the prepare set: the tasks that this session has claimed and not started, by when each is to be
// looked at. It changes only where rows are known to say the same (lock.Do).
type Prepared struct {
	mu      sync.Mutex
	byTask  map[int64]*prepared
	ahead   queue // by due instant; looked at the lead before it
	exact   queue // looked at before, and to be looked at again at that very instant
	aside   queue // set aside, since somebody had locked what they need, and to be looked at again beside the others
	ranked  int   // tasks with a priority
	changed wake
}

type prepared struct {
	job.Task
	at    job.Micros
	added job.Micros // when it came into the set
	in    *queue     // nil while a start is under way
	index int
}

// NewPrepared returns an empty set.
func NewPrepared() *Prepared {
	return &Prepared{byTask: map[int64]*prepared{}, changed: newWake()}
}

// Add puts claimed tasks into the set.
func (p *Prepared) Add(tasks []job.Task, now job.Micros) {
	p.mu.Lock()
	for _, t := range tasks {
		if old := p.byTask[t.ID]; old != nil {
			old.leave() // an older claim of ours whose row compensation has freed
			p.count(old, -1)
		}
		it := &prepared{Task: t, at: t.DueNow, added: now}
		p.byTask[t.ID] = it
		p.count(it, +1)
		it.enter(&p.ahead)
	}
	p.mu.Unlock()
	p.changed.up()
}

// Take returns up to n tasks to look at now, when starts are begun lead ahead of the due instant, and for how
// long the first of them has been waiting for this look. They stay in the set until Drop or Return.
func (p *Prepared) Take(now job.Micros, lead time.Duration, n int) (tasks []job.Task, waited time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if due := now.Add(min(lead, 0)); p.ranked > 0 && p.exact.upTo(due, 0)+p.ahead.upTo(due, 0) > n {
		return p.takeHighest(due, n), 0
	}
	for len(tasks) < n && len(p.exact) > 0 && p.exact[0].at <= now {
		tasks = append(tasks, p.exact.pop().Task)
	}
	for first := true; len(tasks) < n && len(p.ahead) > 0 && p.ahead[0].at <= now.Add(lead); first = false {
		it := p.ahead.pop()
		tasks = append(tasks, it.Task)
		if first {
			waited = now.Sub(max(it.at.Add(-lead), it.added))
		}
	}
	return tasks, waited
}

// TakeAside returns up to n of the tasks that were set aside and are to be looked at again now.
func (p *Prepared) TakeAside(now job.Micros, n int) (tasks []job.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(tasks) < n && len(p.aside) > 0 && p.aside[0].at <= now {
		tasks = append(tasks, p.aside.pop().Task)
	}
	return tasks
}

// takeHighest takes n of the tasks that are due, of which there are more, by priority.
func (p *Prepared) takeHighest(due job.Micros, n int) []job.Task {
	var all []*prepared
	var from []*queue
	for _, q := range []*queue{&p.exact, &p.ahead} {
		for len(*q) > 0 && (*q)[0].at <= due {
			all, from = append(all, q.pop()), append(from, q)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].Priority, all[a].Priority) })
	var tasks []job.Task
	for i, o := range order {
		if i < n {
			tasks = append(tasks, all[o].Task)
		} else {
			all[o].enter(from[o])
		}
	}
	return tasks
}

// Next is when Take or TakeAside has something to return.
func (p *Prepared) Next(lead time.Duration) (at job.Micros, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := func(q queue, lead time.Duration) {
		if len(q) > 0 && (!ok || q[0].at.Add(-lead) < at) {
			at, ok = q[0].at.Add(-lead), true
		}
	}
	first(p.ahead, lead)
	first(p.exact, 0)
	first(p.aside, 0)
	return at, ok
}

// Drop removes a task at the given launch: it was started, ended, or is not ours any more.
func (p *Prepared) Drop(t job.Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it := p.byTask[t.ID]; it != nil && it.Launch == t.Launch {
		it.leave()
		p.count(it, -1)
		delete(p.byTask, t.ID)
	}
}

// Return puts a task that was taken back, to be looked at again at an instant.
func (p *Prepared) Return(t job.Task, at job.Micros) { p.putBack(t, at, &p.exact) }

// SetAside is Return for a task that needs what somebody else has locked. As long as that is so it takes the place of no
// other, neither when tasks are taken nor when they are claimed.
func (p *Prepared) SetAside(t job.Task, at job.Micros) { p.putBack(t, at, &p.aside) }

func (p *Prepared) putBack(t job.Task, at job.Micros, q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it := p.byTask[t.ID]; it != nil && it.Launch == t.Launch && it.in == nil {
		it.at = at
		it.enter(q)
	}
}

// Has tells whether the set knows the launch of a task.
func (p *Prepared) Has(task int64, l job.Launch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.byTask[task]
	return it != nil && it.Launch == l
}

// Due is how many tasks are to be started now or should have been; those whose start is under way do not count, nor those
// that were set aside.
func (p *Prepared) Due(now job.Micros) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ahead.upTo(now, 0) + p.exact.upTo(now, 0)
}

// upTo counts the entries of the heap under i that are not after an instant, and looks at few others.
func (q queue) upTo(at job.Micros, i int) int {
	if i >= len(q) || q[i].at > at {
		return 0
	}
	return 1 + q.upTo(at, 2*i+1) + q.upTo(at, 2*i+2)
}

// Len is how many tasks the set holds.
func (p *Prepared) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byTask)
}

// Forget empties the set. The rows are still ours and in no set now: compensation frees them. No start may be under
// way.
func (p *Prepared) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.byTask)
	p.ahead, p.exact, p.aside, p.ranked = nil, nil, nil, 0
}

func (p *Prepared) count(it *prepared, n int) {
	if it.Priority != 0 {
		p.ranked += n
	}
}

// GiveUp forgets the tasks that are not in the middle of a start, and returns how many there were and how many are left.
// The rows are still ours and in no set now: compensation frees them.
func (p *Prepared) GiveUp() (gone, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, it := range p.byTask {
		if it.in != nil {
			it.leave()
			p.count(it, -1)
			delete(p.byTask, id)
			gone++
		}
	}
	return gone, len(p.byTask)
}

func (it *prepared) enter(q *queue) {
	it.in = q
	heap.Push(q, it)
}

func (it *prepared) leave() {
	if it.in != nil {
		heap.Remove(it.in, it.index)
		it.in = nil
	}
}

// queue is a heap by instant; equal instants go in the order of ids, which is the order of planning.
type queue []*prepared

func (q *queue) pop() *prepared {
	it := heap.Pop(q).(*prepared)
	it.in = nil
	return it
}

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].ID < q[j].ID
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
	return it
}
