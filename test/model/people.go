package model

import "fmt"

// people emits the actions of people on job 0: pause, resume, edit, delete, run by hand, kill. Each
// locks the job row.
func (w *World) people(s *S, emit emitter) {
	say := func(name string, f func(*S)) {
		t := *s
		f(&t)
		emit(name, -1, -1, people, &t)
	}

	j := &s.job[0]
	free := !w.locked(s, 0) && !j.deleted

	if w.Manual != 0 && free {
		w.byHand(s, say)
	}

	if w.Pause && free && !j.paused && !s.said.resumed {
		say("pause commits", func(t *S) {
			t.job[0].paused = true
			if first := w.takeBack(t); first < w.Runs {
				t.job[0].cursor = first
			}
			w.wakeAll(t)
		})
	}

	if w.Pause && free && j.paused {
		say("resume", func(t *S) {
			t.job[0].paused, t.said.pause, t.said.resumed = false, false, true
			w.moveCursor(t, 0, t.job[0].cursor)
		})
	}

	if w.Edit && free && !j.edited {
		w.edits(s, say)
	}

	if w.Delete && free {
		say("delete commits", func(t *S) {
			w.takeBack(t)
			w.settlePast(t)
			t.job[0].deleted, t.job[0].paused = true, false
			w.wakeAll(t)
		})
	}

	if w.StuckLock && !s.stuckLock {
		say("somebody locks the rows of job 1 for ever", func(t *S) { t.stuckLock = true })
	}

	for r := range w.Runs {
		if w.Kill && !s.said.killed && s.run[r].state == executing && !w.rowLocked(s, r) {
			say("somebody has the run killed", func(t *S) { t.said.killed = true; w.kill(t, r) })
		}
	}

	w.answers(s, say)
}

// answers emits the answers, which come after the spawn windows of the job's executing runs.
func (w *World) answers(s *S, say func(string, func(*S))) {
	for r := range w.Runs {
		if w.Window && w.Job[r] == 0 && s.run[r].state == executing && !s.run[r].closed {
			return
		}
	}

	j := &s.job[0]
	if j.paused && !s.said.pause {
		say("pause is answered", func(t *S) { t.said.pause = true })
	}
	if j.edited && !s.said.edit {
		say("edit is answered", func(t *S) { t.said.edit = true })
	}
	if j.deleted && !s.said.del {
		say("delete is answered", func(t *S) { t.said.del = true })
	}
}

// byHand requests a run. A caller without an answer repeats the request with the same key.
func (w *World) byHand(s *S, say func(string, func(*S))) {
	for r := range w.Runs {
		if !has(w.Manual, r) || s.said.asked >= 2 {
			continue
		}

		switch {
		case s.said.asked == 0:
			say("a run by hand is acknowledged", func(t *S) {
				t.said.asked, t.lastID[r], t.must = 1, 1, t.must|1<<r
				t.run[r] = Run{state: idle, id: 1}
			})

		case w.RequestKey:
			say("the request is repeated, finds its run", func(t *S) { t.said.asked = 2 })
		default:
			say("the request is repeated", func(t *S) { t.said.asked = 2; t.flag(vRequest) })
		}
	}
}

func (w *World) edits(s *S, say func(string, func(*S))) {
	j := &s.job[0]
	full := j.schedule
	for _, schedule := range []uint8{full, full & 2, full & 5} {
		if w.Overlap[0] != w.Overlap[1] && schedule != full || schedule == 0 {
			continue // one change at a time
		}

		say(fmt.Sprintf("edit commits (due times %03b)", schedule), func(t *S) {
			first := w.takeBack(t)
			w.settlePast(t)
			j := &t.job[0]
			j.edited, j.version, j.schedule = true, j.version+1, schedule
			if first >= w.Runs {
				first = max(w.passedTo(t, 0), j.begunTo)
			}

			w.moveCursor(t, 0, first)

			for r := range w.Runs {
				if w.Crowded && w.Overlap[0] == Allow && w.Job[r] == 0 && t.run[r].state == executing {
					j.crowded = true
				}
			}

			w.wakeAll(t)
		})
	}
}

// takeBack deletes runs of job 0 that have not begun, and returns the earliest, or w.Runs.
func (w *World) takeBack(t *S) uint8 {
	first := w.Runs
	for r := range w.Runs {
		o := &t.run[r]
		switch {
		case w.Job[r] != 0 || o.state != idle && o.state != prepared:
		case w.BackFirst && (o.attempt > 0 || has(w.Manual, r)):
		case w.BackBegun && r < t.job[0].begunTo:
		case w.BackFuture && w.isDue(t, r):
		default:
			*o = Run{}
			first = min(first, r)
		}
	}

	return first
}

// settlePast writes a counted row for due times that passed and were never claimed.
func (w *World) settlePast(t *S) {
	for r := t.job[0].cursor; w.SettlePast && r < w.Runs; r++ {
		if w.Job[r] == 0 && w.isDue(t, r) && has(t.job[0].schedule, r) {
			w.record(t, r)
		}
	}
}

// wakeAll makes the waiting runs of job 0 idle. Start then judges them under the current flags and
// version.
func (w *World) wakeAll(t *S) {
	for r := range w.Runs {
		if w.PeopleWake && w.Job[r] == 0 && t.run[r].state == waiting {
			t.run[r].state = idle
		}
	}
}
