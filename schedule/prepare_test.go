package schedule

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"go-crontab/job"
)

// modelSet is the prepare set as naively as can be: a map that is searched for everything.
type modelSet map[int64]*modelTask

type modelTask struct {
	job.Task
	at, added job.Micros
	where     string // ahead, exact, aside, or taken
}

// ready lists what waits in a queue up to an instant, as it is to be taken.
func (m modelSet) ready(where string, upTo job.Micros) []*modelTask {
	var out []*modelTask
	for _, t := range m {
		if t.where == where && t.at <= upTo {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *modelTask) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.ID, b.ID)) })
	return out
}

func (m modelSet) take(now job.Micros, lead time.Duration, n int) (tasks []job.Task, waited time.Duration) {
	for _, t := range m.ready("exact", now) {
		if len(tasks) < n {
			tasks = append(tasks, t.Task)
			t.where = "taken"
		}
	}
	for i, t := range m.ready("ahead", now.Add(lead)) {
		if len(tasks) < n {
			tasks = append(tasks, t.Task)
			t.where = "taken"
			if i == 0 {
				waited = now.Sub(max(t.at.Add(-lead), t.added))
			}
		}
	}
	return tasks, waited
}

func (m modelSet) takeAside(now job.Micros, n int) (tasks []job.Task) {
	for _, t := range m.ready("aside", now) {
		if len(tasks) < n {
			tasks = append(tasks, t.Task)
			t.where = "taken"
		}
	}
	return tasks
}

func (m modelSet) next(lead time.Duration) (at job.Micros, ok bool) {
	for _, t := range m {
		when := t.at
		switch t.where {
		case "ahead":
			when = when.Add(-lead)
		case "taken":
			continue
		}
		if !ok || when < at {
			at, ok = when, true
		}
	}
	return at, ok
}

// TestPrepared runs the prepare set and its model side by side.
func TestPrepared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, m := NewPrepared(), modelSet{}
		id := rapid.Int64Range(1, 6)
		instant := rapid.Int64Range(1, 8)
		lead := func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(-2, 4).Draw(t, "lead")) * time.Microsecond
		}
		counter := int64(0)
		some := func(t *rapid.T) job.Task { // one that is there, or was, or never
			id := id.Draw(t, "id")
			task := job.Task{ID: id, Launch: job.Launch{Session: uuid.UUID{1}, N: rapid.Int64Range(0, counter).Draw(t, "launch")}}
			if in := m[id]; in != nil && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
				task = in.Task
			}
			return task
		}
		t.Repeat(map[string]func(*rapid.T){
			"Add": func(t *rapid.T) {
				var tasks []job.Task
				now := job.Micros(instant.Draw(t, "now"))
				for _, id := range rapid.SliceOfNDistinct(id, 0, 4, rapid.ID).Draw(t, "ids") {
					counter++
					task := job.Task{ID: id, DueNow: job.Micros(instant.Draw(t, "due")), Launch: job.Launch{Session: uuid.UUID{1}, N: counter}}
					tasks = append(tasks, task)
					m[id] = &modelTask{task, task.DueNow, now, "ahead"}
				}
				p.Add(tasks, now)
				select {
				case <-p.changed:
				default:
					t.Fatal("nobody is told of tasks that were added")
				}
			},
			"Take": func(t *rapid.T) {
				now, lead, n := job.Micros(instant.Draw(t, "now")), lead(t), rapid.IntRange(0, 6).Draw(t, "n")
				got, waited := p.Take(now, lead, n)
				want, wantWaited := m.take(now, lead, n)
				if !slices.Equal(got, want) || waited != wantWaited {
					t.Fatalf("Take(%d, %s, %d): got %+v, waited %s; want %+v, %s", now, lead, n, got, waited, want, wantWaited)
				}
			},
			"TakeAside": func(t *rapid.T) {
				now, n := job.Micros(instant.Draw(t, "now")), rapid.IntRange(0, 6).Draw(t, "n")
				if got, want := p.TakeAside(now, n), m.takeAside(now, n); !slices.Equal(got, want) {
					t.Fatalf("TakeAside(%d, %d): got %+v, want %+v", now, n, got, want)
				}
			},
			"Return": func(t *rapid.T) {
				task, at, where := some(t), job.Micros(instant.Draw(t, "at")), rapid.SampledFrom([]string{"exact", "aside"}).Draw(t, "where")
				if where == "exact" {
					p.Return(task, at)
				} else {
					p.SetAside(task, at)
				}
				if in := m[task.ID]; in != nil && in.Launch == task.Launch && in.where == "taken" {
					in.where, in.at = where, at
				}
			},
			"ReturnAll": func(t *rapid.T) {
				for _, id := range slices.Sorted(maps.Keys(m)) {
					if in := m[id]; in.where == "taken" {
						in.where, in.at = "exact", job.Micros(instant.Draw(t, "at"))
						p.Return(in.Task, in.at)
					}
				}
			},
			"Drop": func(t *rapid.T) {
				task := some(t)
				p.Drop(task)
				if in := m[task.ID]; in != nil && in.Launch == task.Launch {
					delete(m, task.ID)
				}
			},
			"Has": func(t *rapid.T) {
				task := some(t)
				in := m[task.ID]
				if got, want := p.Has(task.ID, task.Launch), in != nil && in.Launch == task.Launch; got != want {
					t.Fatalf("Has(%d, %d): got %v, want %v", task.ID, task.Launch.N, got, want)
				}
			},
			"Forget": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") > 0 {
					return
				}
				p.Forget()
				clear(m)
			},
			"": func(t *rapid.T) {
				if p.Len() != len(m) {
					t.Fatalf("Len: got %d, want %d", p.Len(), len(m))
				}
				for _, lead := range []time.Duration{0, 3 * time.Microsecond} {
					at, ok := p.Next(lead)
					wantAt, want := m.next(lead)
					if ok != want || at != wantAt {
						t.Fatalf("Next(%s): got %d, %v; want %d, %v", lead, at, ok, wantAt, want)
					}
				}
				for _, now := range []job.Micros{0, 2, 5, 8} {
					want := len(m.ready("ahead", now)) + len(m.ready("exact", now))
					if got := p.Due(now); got != want {
						t.Fatalf("Due(%d): got %d, want %d", now, got, want)
					}
				}
				for _, q := range []queue{p.ahead, p.exact, p.aside} {
					for i, it := range q {
						if it.index != i || it.in == nil || p.byTask[it.ID] != it {
							t.Fatalf("entry %d of a queue is task %d with index %d, and the set knows %v", i, it.ID, it.index, slices.Sorted(maps.Keys(p.byTask)))
						}
					}
				}
			},
		})
	})
}

// TestPreparedIsShared is for the race detector, and for the sum of what comes out.
func TestPreparedIsShared(t *testing.T) {
	t.Parallel()
	p := NewPrepared()
	const tasks = 2000
	done := make(chan map[int64]bool)
	for range 3 {
		go func() {
			mine := map[int64]bool{}
			for n := 0; n < 3 || p.Len() > 0; {
				got, _ := p.Take(1<<40, 0, 7)
				for _, t := range got {
					mine[t.ID] = true
					p.Drop(t)
				}
				if len(got) == 0 {
					n++
				}
			}
			done <- mine
		}()
	}
	for i := range int64(tasks) {
		p.Add([]job.Task{{ID: i, Launch: job.Launch{N: i}}}, 0)
		p.Next(0)
	}
	all := map[int64]bool{}
	for range 3 {
		for id := range <-done {
			if all[id] {
				t.Errorf("task %d was taken twice", id)
			}
			all[id] = true
		}
	}
	for id := range int64(tasks) {
		if !all[id] && !p.Has(id, job.Launch{N: id}) {
			t.Errorf("task %d got lost", id)
		}
	}
}
