package schedule

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// dueTimes is what planning one job up to a horizon comes to.
type dueTimes struct {
	tasks  []job.Task
	missed *job.Run   // stands for a counted range of due times that nobody can start any more, or nil
	next   job.Micros // the new cursor; zero when nothing is left
	last   job.Micros // last due time that missed stands for
}

// first is the earliest of the due times; zero when there is none.
func (d *dueTimes) first() job.Micros {
	switch {
	case d.missed != nil:
		return d.missed.Due
	case len(d.tasks) > 0:
		return d.tasks[0].Due
	}
	return d.next
}

// until returns the due times from the cursor (included) up to the horizon. Due times that were misfired before
// the planning even got to them, as after an outage of the whole cluster, end missed as one counted run, but for
// the latest, one or several, where the policy wants them started. misfireAfter is how late that is. What was due before the
// database was restored counts with them, and none of it is started.
func until(j *sql.JobRow, s job.Schedule, cursor, now, horizon job.Micros, misfireAfter time.Duration) dueTimes {
	var d dueTimes
	from, restored := cursor, restored(j, now)
	oldest := min(max(now.Add(-misfireAfter), restored-1), horizon)
	if from < oldest {
		last, ok := lastIn(s, from, oldest)
		if ok {
			var keep []job.Micros
			for most := j.Spec.CatchUp(); ok && len(keep) < most && last >= restored && startsLate(&j.Spec, s, last, now); {
				keep = append(keep, last)
				last, ok = lastIn(s, from, last-1)
			}
			if ok {
				d.missed = counted(j, s, from, last, now, job.Missed, fmt.Sprintf("nobody could start it within %s", job.Duration(misfireAfter)))
				d.last = last
				if d.missed.Due < restored {
					d.missed.Outcome, d.missed.Reason = job.Skipped, restoredReason(j)
					if last >= restored {
						d.missed.Reason += fmt.Sprintf(". And due since, and nobody could start it within %s", job.Duration(misfireAfter))
					}
				}
			}
			for _, due := range slices.Backward(keep) {
				d.tasks = append(d.tasks, task(j, due))
			}
		}
		from = oldest + 1
	}
	for at := from - 1; ; {
		t, ok := s.Next(at.Time())
		if !ok {
			return d
		}
		due := job.MicrosOf(t)
		if due > horizon || len(d.tasks) >= planMax {
			d.next = due
			return d
		}
		d.tasks = append(d.tasks, task(j, due))
		at = due
	}
}

// restored is when the database was restored, of a job that is older. While that is later than now it counts for nothing: MySQL's clock
// was put back since, and else nothing would start until it is there again.
func restored(j *sql.JobRow, now job.Micros) job.Micros {
	if j.Restored > now {
		return 0
	}
	return j.Restored
}

// restoredReason is why nothing starts that was due before the database was restored.
func restoredReason(j *sql.JobRow) string {
	return fmt.Sprintf("due before the database was restored at %s: whether it ran nobody knows; see docs/backup.md", j.Restored)
}

// counted is the run that stands for the due times from one to another, which nobody starts.
func counted(j *sql.JobRow, s job.Schedule, from, to, now job.Micros, o job.Outcome, reason string) *job.Run {
	return &job.Run{
		JobID: j.ID, App: j.Spec.App, Due: from, Until: to, Count: s.Count((from - 1).Time(), to.Time()), Attempt: 1, Final: true, Ended: now,
		Result: job.Result{Outcome: o, Reason: reason},
	}
}

func task(j *sql.JobRow, due job.Micros) job.Task {
	return job.Task{JobID: j.ID, Due: due, DueNow: due, Hash: j.Hash, Place: j.Place, Priority: j.Spec.Priority}
}

// lastIn returns the last due time in [from, to].
func lastIn(s job.Schedule, from, to job.Micros) (job.Micros, bool) {
	if to < from {
		return 0, false
	}
	t, ok := s.Last((from - 1).Time(), to.Time())
	return job.MicrosOf(t), ok
}

// startsLate tells whether a misfired due time is still to be started: it is not too old, and the policy is latest and no
// later due time of the job has passed, or all and it is among the latest so many that are late enough to be misfired.
func startsLate(spec *job.Spec, s job.Schedule, due, now job.Micros) bool {
	if spec.Misfire.Policy != job.MisfireLatest && spec.Misfire.Policy != job.MisfireAll {
		return false
	}
	if age := time.Duration(spec.Misfire.MaxAge); age > 0 && now.Sub(due) > age {
		return false
	}
	if d := time.Duration(spec.StartDeadline); d > 0 && now.Sub(due) > d {
		return false
	}
	if spec.Misfire.Policy == job.MisfireAll {
		return s.Count(due.Time(), now.Add(-spec.MissedAfter()).Time()) < int64(spec.CatchUp())
	}
	later, ok := s.Next(due.Time())
	return !ok || job.MicrosOf(later) > now
}

// firstAfter is the first due time after an instant, zero when there is none.
func firstAfter(s job.Schedule, at job.Micros) job.Micros {
	t, ok := s.Next(at.Time())
	if !ok {
		return 0
	}
	return job.MicrosOf(t)
}

// sameDues tells whether two definitions of one job have the same due times, but for what becomes of their calendars.
func sameDues(a, b *job.Spec) bool {
	when := func(s *job.Spec) *job.Spec {
		w := job.Spec{Schedule: s.Schedule, Schedules: s.Schedules, Every: s.Every, At: s.At, Timezone: s.Timezone,
			Start: s.Start, End: s.End, MaxFires: s.MaxFires, Jitter: s.Jitter, Calendars: s.Calendars}
		if s.Jitter != 0 {
			w.App, w.Name = s.App, s.Name // which its part of it comes from
		}
		return &w
	}
	return when(a).Same(when(b))
}

// compiled remembers cron schedules, which take far longer to parse than to ask, by their text. It is emptied
// when it is full.
var compiled = struct {
	sync.Mutex
	byText map[string]job.Schedule
}{byText: map[string]job.Schedule{}}

const maxCompiled = 10_000

// compile makes the schedule of a stored definition, whose calendars LearnCalendars has read. One bad job must not stop a node, so even a panic in
// there is an error.
func compile(j *sql.JobRow) (s job.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("schedule: %v", r)
		}
	}()
	if j.SpecErr != nil {
		return nil, j.SpecErr
	}
	if j.CalendarsErr != nil {
		return nil, j.CalendarsErr
	}
	if sp := &j.Spec; sp.Schedule == "" || sp.Start != nil || sp.End != nil || sp.MaxFires != 0 || sp.Jitter != 0 {
		return j.Spec.Compile(j.Calendars...) // cheap, or not shared by jobs
	}
	key := j.Spec.Timezone + "\x00" + j.Spec.Schedule
	for _, name := range j.Spec.Calendars {
		key += "\x00" + name
	}
	for _, c := range j.Calendars {
		digest := c.Digest()
		key += string(digest[:])
	}
	compiled.Lock()
	s = compiled.byText[key]
	compiled.Unlock()
	if s != nil {
		return s, nil
	}
	if s, err = j.Spec.Compile(j.Calendars...); err != nil {
		return nil, err
	}
	compiled.Lock()
	defer compiled.Unlock()
	if len(compiled.byText) >= maxCompiled {
		clear(compiled.byText)
	}
	compiled.byText[key] = s
	return s, nil
}
