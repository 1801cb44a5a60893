package schedule

import (
	"fmt"
	"time"

	"go-crontab/job"
)

// dueTimes holds the due times of a job from its cursor up to a horizon.
type dueTimes struct {
	runs    []job.Micros // to be started
	counted *counted     // due times that will not be started; nil: none
	next    job.Micros   // the new cursor; zero: no further due time
}

// counted is a range of due times that end without runs of their own.
type counted struct {
	first, last job.Micros
	count       int64
	outcome     job.Outcome
	reason      job.Reason
}

// maxRuns bounds the due times that a claim takes from a job.
const maxRuns = 100

// dueFrom lists the due times of a job from its cursor (included) up to the horizon. A due time is
// misfired if it is older than the job's misfire.after, or if it passed before the job was
// resumed. The misfire policy may start the latest misfired due times late. The other misfired due
// times are counted in one record.
func dueFrom(spec *job.Spec, s job.Schedule, cursor job.Micros, resumed resumption, now, horizon job.Micros) dueTimes {
	var d dueTimes
	switch {
	case cursor == 0:
		return d
	case spec.Delay != 0:
		return delayedDue(spec, cursor, resumed, now, horizon)
	}

	from := cursor
	if last := max(now.Add(-spec.MissedAfter()), min(resumed.at, now)-1); from <= last {
		d.misfired(spec, s, from, last, now)
		d.resumedAt(resumed)
		from = last + 1
	}

	for at := from - 1; ; {
		due, ok := next(s, at)
		if !ok {
			return d
		}
		if due > horizon || len(d.runs) >= maxRuns {
			d.next = due
			return d
		}
		d.runs = append(d.runs, due)
		at = due
	}
}

// misfired divides the due times in [from, to]. The latest ones become runs, if the misfire policy
// starts them late. The others are counted.
func (d *dueTimes) misfired(spec *job.Spec, s job.Schedule, from, to, now job.Micros) {
	last, ok := lastIn(s, from, to)
	var late []job.Micros
	for ok && len(late) < spec.CatchUp() && startsLate(spec, s, last, now) {
		late = append(late, last)
		last, ok = lastIn(s, from, last-1)
	}

	if ok {
		d.count(spec, from, last, s.Count((from-1).Time(), last.Time()))
	}

	for i := range late {
		d.runs = append(d.runs, late[len(late)-1-i])
	}
}

// count counts misfired due times.
func (d *dueTimes) count(spec *job.Spec, first, last job.Micros, n int64) {
	d.counted = &counted{
		first: first, last: last, count: n,
		outcome: job.Missed, reason: job.Reason{
			Code: job.ReasonMisfire,
			Text: fmt.Sprintf("no node could start it within %s of its due time", job.Duration(spec.MissedAfter())),
		},
	}
}

// resumedAt gives counted due times that passed in a pause the pause as their reason.
func (d *dueTimes) resumedAt(resumed resumption) {
	if d.counted != nil && d.counted.first < resumed.at {
		d.counted.outcome = job.Skipped
		d.counted.reason = job.Reason{
			Code: resumed.code, Text: fmt.Sprintf("the job was paused until %s", resumed.at),
		}
	}
}

// startsLate reports whether the misfire policy of a job starts a misfired due time.
func startsLate(spec *job.Spec, s job.Schedule, due, now job.Micros) bool {
	if age := time.Duration(spec.Misfire.MaxAge); age > 0 && now.Sub(due) > age {
		return false
	}
	if deadline := time.Duration(spec.StartDeadline); deadline > 0 && now.Sub(due) > deadline {
		return false
	}

	switch spec.Misfire.Policy {
	case job.MisfireLatest: // a due time is the latest if no later one has passed
		later, ok := next(s, due)
		return !ok || later > now
	case job.MisfireAll:
		return s.Count(due.Time(), now.Add(-spec.MissedAfter()).Time()) < int64(spec.CatchUp())
	}

	return false
}

func next(s job.Schedule, after job.Micros) (job.Micros, bool) {
	t, ok := s.Next(after.Time())
	return job.MicrosOf(t), ok
}

func lastIn(s job.Schedule, from, to job.Micros) (job.Micros, bool) {
	if to < from {
		return 0, false
	}
	t, ok := s.Last((from - 1).Time(), to.Time())
	return job.MicrosOf(t), ok
}
