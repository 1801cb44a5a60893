package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql/read"
)

// The causes in an explanation, besides the outcomes of runs. They are part of the API and never
// change.
const (
	causeNotDue    = "not_due"
	causeGap       = "gap"
	causeRepeat    = "repeat"
	causeCalendar  = "calendar"
	causeWeeks     = "weeks"
	causeShifted   = "shifted"
	causeTooEarly  = "before_start"
	causeTooLate   = "after_end"
	causeUsedUp    = "max_fires"
	causeAhead     = "ahead"
	causePaused    = "paused"
	causeOverlap   = "overlap"
	causeGroup     = "group"
	causeNothing   = "nothing_to_do"
	causeHandler   = "handler_disabled"
	causeDeadline  = "deadline"
	causeDown      = "cluster_down"
	causeWaiting   = "waiting"
	causeNoNode    = "no_node"
	causeLimit     = "app_limit"
	causeExecuting = "executing"
	causeEarlier   = "definition_is_younger"
	causeDeleted   = "deleted"
	causeBroken    = "error"
	causeNoRecord  = "no_record"
)

// causes lists all causes, including the outcomes.
func causes() []string {
	return slices.Concat([]string{
		causeNotDue, causeGap, causeRepeat, causeCalendar, causeWeeks, causeShifted, causeTooEarly, causeTooLate, causeUsedUp,
		causeAhead, causePaused, causeOverlap,
		causeGroup, causeNothing, causeHandler, causeDeadline, causeDown, causeWaiting, causeNoNode, causeLimit, causeExecuting,
		causeEarlier, causeDeleted, causeBroken, causeNoRecord,
	}, job.Outcomes())
}

// inquiry holds the data and the result of an explanation.
type inquiry struct {
	*Server
	ctx context.Context
	j   *read.Job
	now job.Micros
	at  time.Time // the due time in question

	spec      job.Spec // the definition in force at that time; for a future time, the present one
	calendars []*job.Calendar
	schedule  job.Schedule // nil if the definition has no valid schedule
	e         view.Explanation

	from, before job.Micros // the range of instants that the request may mean, see instantRange
	askedFor     []askedRun // requested runs that the answer does not mention yet

	err error // why a schedule could not be computed
}

// explain: GET /api/v1/jobs/{id}/explain?at=. Deleted jobs are explained as well.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	at := q.instant(explainAt)
	if err := q.err(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	id, err := jobID(r)
	if err != nil {
		return err
	}

	j, err := s.cfg.DB.Job(r.Context(), id)
	if err != nil {
		return err
	}

	x := inquiry{
		Server: s, ctx: r.Context(), j: &j, now: job.MicrosOf(now), at: at,
		e: view.Explanation{At: job.MicrosOf(at).Time()},
	}
	if err := x.explain(); err != nil {
		return err
	}
	return answer(w, http.StatusOK, x.e)
}

func (x *inquiry) explain() error {
	if err := x.findDefinition(); err != nil || x.e.Cause != "" {
		return err
	}

	x.from, x.before = instantRange(x.at)
	if err := x.findAsked(); err != nil {
		return err
	}
	if err := x.findDueTimes(); err != nil {
		return err
	}

	// Records come first, because they stay true even if the definition was changed later. Runs in
	// progress and requested runs come next.
	for _, look := range []func() error{x.recorded, x.live, x.asked, x.unrecorded} {
		if err := errors.Join(look(), x.err); err != nil {
			return err
		}
		if x.e.Cause != "" {
			break
		}
	}

	x.beside()
	return nil
}

func (x *inquiry) say(cause, format string, args ...any) {
	x.e.Cause, x.e.Answer = cause, fmt.Sprintf(format, args...)
}

// add appends a sentence to the answer.
func (x *inquiry) add(format string, args ...any) {
	x.e.Answer += " " + fmt.Sprintf(format, args...)
}

// instantRange returns the range that an instant may mean. Commands print instants with seconds or
// milliseconds. So an instant without a fraction means its whole second.
func instantRange(at time.Time) (from, before job.Micros) {
	from = job.MicrosOf(at)
	switch {
	case at.Nanosecond() == 0:
		return from, from.Add(time.Second)
	case at.Nanosecond()%int(time.Millisecond) == 0:
		return from, from.Add(time.Millisecond)
	}
	return from, from + 1
}

// findDueTimes finds the due times around the instant. An instant in whole seconds means the due
// time within that second.
func (x *inquiry) findDueTimes() error {
	if x.schedule == nil {
		return nil
	}
	err := job.Compute(x.ctx, job.DefiningWork, func(w *job.Work) error { return x.dueTimesAround(w.On(x.schedule)) })
	return x.spec.Explain(err, x.calendars)
}

func (x *inquiry) dueTimesAround(schedule job.Schedule) error {
	if due, ok := schedule.Next(x.at.Add(-time.Microsecond)); ok {
		x.e.Due = due.Equal(x.at)
		if !x.e.Due && job.MicrosOf(due) < x.before {
			x.at, x.e.Due, x.e.DueTime = due, true, instant(job.MicrosOf(due))
		}
	}

	zone, err := job.LoadZone(x.spec.Timezone)
	if err != nil {
		return err
	}

	marker, _ := schedule.(job.Marker)
	show := func(t time.Time) *view.DueTime {
		v := &view.DueTime{Due: t.In(zone)}
		if marker != nil {
			v.Mark = marker.Mark(t)
		}
		if v.Mark == job.Moved {
			v.MovedFrom = job.MovedFrom(schedule, t)
		}
		return v
	}

	if t, ok := schedule.Last(time.Unix(0, 0), x.at.Add(-time.Microsecond)); ok {
		x.e.Before = show(t)
	}
	if t, ok := schedule.Next(x.at); ok {
		x.e.After = show(t)
	}
	return nil
}

// recorded explains the due time by its recorded runs.
func (x *inquiry) recorded() error {
	runs, err := x.cfg.DB.RunsAt(x.ctx, x.j.ID, job.MicrosOf(x.at))
	if err != nil {
		return err
	}
	if runs = x.readable(runs); len(runs) == 0 || runs[0].Count > 1 && !x.e.Due {
		return nil
	}

	last := &runs[len(runs)-1]
	x.e.Due = true
	x.say(causeOf(last), "%s", inWords(runs))
	for i := range runs {
		x.e.Runs = append(x.e.Runs, viewOfRun(&runs[i]))
	}

	switch x.e.Cause {
	case causePaused:
		var found bool
		if found, err = x.wasPausedAt(job.MicrosOf(x.at)); err == nil && !found {
			// The run was due before the pause, and had not started when the pause began.
			_, err = x.wasPausedAt(last.Ended)
		}
	case job.Missed.String():
		if err = x.wasDown(); err == nil && x.e.Down != nil {
			x.e.Cause = causeDown
			x.add("%s", outageWords(x.e.Down))
		}
	}

	return err
}

// readable removes runs from the job's earlier apps that the caller may not read.
func (x *inquiry) readable(runs []read.Run) []read.Run {
	return slices.DeleteFunc(runs, func(r read.Run) bool { return !mayRead(x.ctx, r.App) })
}

// causesByReason gives the causes of due times that were not started or had nothing to do. For all
// other reasons the cause is the outcome.
var causesByReason = map[job.ReasonCode]string{
	job.ReasonJobPaused:            causePaused,
	job.ReasonAppPaused:            causePaused,
	job.ReasonClusterPaused:        causePaused,
	job.ReasonPreviousRunExecuting: causeOverlap,
	job.ReasonPreviousRunWaiting:   causeOverlap,
	job.ReasonBackfillRunAhead:     causeOverlap,
	job.ReasonQueueFull:            causeOverlap,
	job.ReasonNothingToDo:          causeNothing,
	job.ReasonGroupFull:            causeGroup,
	job.ReasonGroupMissing:         causeGroup,
	job.ReasonHandlerDisabled:      causeHandler,
	job.ReasonJobDeleted:           causeDeleted,
	job.ReasonStartDeadline:        causeDeadline,
	job.ReasonWaitDeadline:         causeDeadline,
	job.ReasonNoNode:               causeNoNode,
	job.ReasonAppRunsLimit:         causeLimit,
	job.ReasonAppWaitingLimit:      causeLimit,
}

// causeOf returns the cause of a run's end in one word. If causesByReason has no cause for the
// reason, the cause is the outcome.
func causeOf(r *read.Run) string {
	if r.Outcome == job.Skipped || r.Outcome == job.Missed || r.Outcome == job.Superseded {
		if cause, ok := causesByReason[r.Reason.Code]; ok {
			return cause
		}
	}

	return r.Outcome.String()
}

// inWords describes the recorded runs of a due time.
func inWords(runs []read.Run) string {
	r := &runs[len(runs)-1]
	text := ""
	if n := len(runs); n > 1 {
		text = fmt.Sprintf("It was attempted %d times. The last attempt: ", n)
	}

	switch {
	case r.Count > 1:
		text += fmt.Sprintf("It is one of %d due times from %s to %s that ended %s: %s.", r.Count, r.Due, r.Until,
			r.Outcome, r.Reason)
	case r.Started == 0:
		outcome := r.Outcome.String()
		text += fmt.Sprintf("%s%s: %s.", strings.ToUpper(outcome[:1]), outcome[1:], r.Reason)
	default:
		text += fmt.Sprintf("It was started %s late on %s and ended %s after %s",
			time.Duration(r.Lateness)*time.Microsecond, r.Node, r.Outcome,
			r.Ended.Sub(r.Started).Round(time.Microsecond))
		if r.Reason.Text != "" {
			text += ": " + r.Reason.Text
		}
		text += "."
	}

	if !r.Final {
		text += " Another attempt will follow."
	}
	return text
}
