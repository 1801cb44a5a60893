package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
)

// explanation says why a job did, or did not, run at an instant, in words and as data.
type explanation struct {
	At      string     `json:"at" format:"date-time" doc:"The instant in question."`
	DueTime string     `json:"due_time,omitempty" format:"date-time" doc:"The exact due time, if only its second was given."`
	Due     bool       `json:"due" doc:"Whether it was a due time of the definition in force at that time."`
	Cause   string     `json:"cause" doc:"The cause, in one word: the outcome of its run, or why there was none."`
	Answer  string     `json:"answer" doc:"The explanation, for people."`
	Runs    []*runView `json:"runs,omitempty" doc:"The attempts of the due time."`
	Before  *dueView   `json:"before,omitempty" doc:"The due time before the instant."`
	After   *dueView   `json:"after,omitempty" doc:"The due time after it."`

	Pause    *pauseView  `json:"pause,omitempty" doc:"The pause that covered it."`
	Waiting  *waitView   `json:"waiting,omitempty" doc:"What the run is waiting for."`
	Calendar *closedView `json:"calendar,omitempty" doc:"The calendar that excludes it."`
	Down     *downView   `json:"down,omitempty" doc:"The period in which no node was running."`
	Changed  *changeView `json:"changed,omitempty" doc:"When the definition in force at that time was replaced."`
	Created  *changeView `json:"created,omitempty" doc:"When the job was created, if that was after the instant."`
	Deleted  *changeView `json:"deleted,omitempty" doc:"When the job was deleted."`
}

// waitView says what a due time is waiting for.
type waitView struct {
	For      string `json:"for" enum:"job,group,node,pause,slot" doc:"What the run is waiting for: earlier runs of its job, a slot of its group, a suitable node, the end of a pause (only backfills), or a free slot of a node."`
	Group    string `json:"group,omitempty" doc:"The group without a free slot."`
	Selector string `json:"selector,omitempty" doc:"The selector of the job."`
	Since    string `json:"since,omitempty" format:"date-time" doc:"When it began to wait."`
	Until    string `json:"until,omitempty" format:"date-time" doc:"When it will be missed."`
}

// closedView names the calendar that excludes an instant.
type closedView struct {
	Name string `json:"name" doc:"Its name."`
	Why  string `json:"why,omitempty" doc:"The note of the day, or the rule that excludes it."`
}

// downView is the time without any node, as far as it is known.
type downView struct {
	From string `json:"from,omitempty" format:"date-time" doc:"The last heartbeat of a node before. Absent if it is unknown."`
	To   string `json:"to,omitempty" format:"date-time" doc:"The start of the first session since. Absent if there is none yet."`
}

// changeView is a change of the job with its author.
type changeView struct {
	At string `json:"at" format:"date-time" doc:"When the change was made."`
	By string `json:"by,omitempty" doc:"Who made the change."`
}

// The causes, besides the outcomes of runs. They are part of the API and never change.
const (
	causeNotDue    = "not_due"
	causeGap       = "gap"
	causeRepeat    = "repeat"
	causeCalendar  = "calendar"
	causeShifted   = "shifted"
	causeTooEarly  = "before_start"
	causeTooLate   = "after_end"
	causeUsedUp    = "max_fires"
	causeAhead     = "ahead"
	causePaused    = "paused"
	causeOverlap   = "overlap"
	causeGroup     = "group"
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
		causeNotDue, causeGap, causeRepeat, causeCalendar, causeShifted, causeTooEarly, causeTooLate, causeUsedUp,
		causeAhead, causePaused, causeOverlap,
		causeGroup, causeHandler, causeDeadline, causeDown, causeWaiting, causeNoNode, causeLimit, causeExecuting,
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

	spec      job.Spec // the definition in force at that time; for the future, the present one
	calendars []*job.Calendar
	schedule  job.Schedule // nil if it cannot be made
	e         explanation

	from, before job.Micros // the range that the instant may mean: its whole second if it has no fraction, and so on
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
		Server: s, ctx: r.Context(), j: &j, now: job.MicrosOf(now), at: at, e: explanation{At: stamp(job.MicrosOf(at))},
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

	// Records come first: they are true whatever the definition has become since. Runs in progress
	// and requested runs come next.
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

// instantRange returns the range that a given instant may mean, because commands print instants to
// the second or to the millisecond.
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

// findDueTimes finds the due times around the instant. A whole second means the due time within it.
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
			x.at, x.e.Due, x.e.DueTime = due, true, stamp(job.MicrosOf(due))
		}
	}

	zone, err := job.LoadZone(x.spec.Timezone)
	if err != nil {
		return err
	}

	marker, _ := schedule.(job.Marker)
	view := func(t time.Time) *dueView {
		v := &dueView{Due: t.In(zone).Format(time.RFC3339Nano)}
		if marker != nil {
			v.Mark = marker.Mark(t)
		}
		return v
	}

	if t, ok := schedule.Last(time.Unix(0, 0), x.at.Add(-time.Microsecond)); ok {
		x.e.Before = view(t)
	}
	if t, ok := schedule.Next(x.at); ok {
		x.e.After = view(t)
	}
	return nil
}

// recorded explains by the recorded runs of the due time.
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
			// it was due before the pause, and had not started when the pause began
			_, err = x.wasPausedAt(last.Ended)
		}
	case job.Missed.String():
		if err = x.wasDown(); err == nil && x.e.Down != nil {
			x.e.Cause = causeDown
			x.add("%s", x.e.Down.words())
		}
	}

	return err
}

// readable removes runs from the job's earlier apps that the caller may not read.
func (x *inquiry) readable(runs []read.Run) []read.Run {
	return slices.DeleteFunc(runs, func(r read.Run) bool { return !mayRead(x.ctx, r.App) })
}

// causesByReason are the causes of due times that were not started. The others have their outcome as the cause.
var causesByReason = map[job.ReasonCode]string{
	job.ReasonJobPaused:            causePaused,
	job.ReasonAppPaused:            causePaused,
	job.ReasonClusterPaused:        causePaused,
	job.ReasonPreviousRunExecuting: causeOverlap,
	job.ReasonPreviousRunWaiting:   causeOverlap,
	job.ReasonBackfillRunAhead:     causeOverlap,
	job.ReasonQueueFull:            causeOverlap,
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

// causeOf says in one word why a run ended as it did: its outcome, or what a due time that was not started met.
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
		text += fmt.Sprintf("It was not started; it ended %s: %s.", r.Outcome, r.Reason)
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
