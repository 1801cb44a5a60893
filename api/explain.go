package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// explanation answers why a job did, or did not, run at an instant.
type explanation struct {
	At     string     `json:"at"`
	Due    bool       `json:"due"`    // is it a due time of the definition as it stands?
	Cause  string     `json:"cause"`  // one word, for programs
	Answer string     `json:"answer"` // for people
	Runs   []*runView `json:"runs,omitempty"`
	Before *dueView   `json:"before,omitempty"` // the due times around it
	After  *dueView   `json:"after,omitempty"`
}

// The causes, beside the outcomes of runs. They never change.
const (
	causeNotDue    = "not_due"
	causeGap       = "gap"
	causeAhead     = "ahead"
	causePaused    = "paused"
	causeWaiting   = "waiting"
	causeExecuting = "executing"
	causeEarlier   = "definition_is_younger"
	causeBroken    = "error"
	causeNoRecord  = "no_record"
)

// explain: GET /api/v1/jobs/{id}/explain?at=
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	at := q.instant("at")
	if at.IsZero() && q.err() == nil {
		q.wrong("at", "is missing; want a time such as 2027-01-31T03:00:00Z")
	}
	if err := q.err(); err != nil {
		return err
	}
	now, err := s.now()
	if err != nil {
		return err
	}
	j, err := s.livingJob(r)
	if err != nil {
		return err
	}
	e := explanation{At: stamp(job.MicrosOf(at))}
	// What was recorded comes first: it stands, whatever the definition has become since.
	runs, err := s.cfg.DB.RunsAt(r.Context(), j.ID, job.MicrosOf(at))
	if err != nil {
		return err
	}
	if len(runs) > 0 && (runs[0].Count == 1 || dueAt(&j.Spec, at)) {
		last := &runs[len(runs)-1]
		e.Due, e.Cause, e.Answer = true, last.Outcome.String(), inWords(runs)
		for i := range runs {
			e.Runs = append(e.Runs, viewOfRun(&runs[i]))
		}
	}
	if j.SpecErr != nil {
		if e.Cause == "" {
			e.Cause, e.Answer = causeBroken, "The stored definition cannot be read: "+j.Error
		}
		return answer(w, http.StatusOK, e)
	}
	if err := e.around(&j.Spec, at); err != nil {
		return err
	}
	if e.Cause == "" {
		err = s.explainUnrecorded(r, &e, &j, at, now)
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, e)
}

// around finds the due times before and after.
func (e *explanation) around(spec *job.Spec, at time.Time) error {
	schedule, err := spec.Compile()
	if err != nil {
		return err
	}
	zone, err := job.LoadZone(spec.Timezone)
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
	if t, ok := schedule.Last(time.Unix(0, 0), at.Add(-time.Microsecond)); ok {
		e.Before = view(t)
	}
	if t, ok := schedule.Next(at); ok {
		e.After = view(t)
	}
	return nil
}

func dueAt(spec *job.Spec, at time.Time) bool {
	schedule, err := spec.Compile()
	if err != nil {
		return false
	}
	due, ok := schedule.Next(at.Add(-time.Microsecond))
	return ok && due.Equal(at)
}

// inWords says what became of a due time that has its runs.
func inWords(runs []sql.RunRow) string {
	r := &runs[len(runs)-1]
	text := ""
	if n := len(runs); n > 1 {
		text = fmt.Sprintf("It was attempted %d times. The last attempt: ", n)
	}
	switch {
	case r.Count > 1:
		text += fmt.Sprintf("It is one of %d due times from %s to %s that ended %s: %s.", r.Count, r.Due, r.Until, r.Outcome, r.Reason)
	case r.Started == 0:
		text += fmt.Sprintf("It was not started; it ended %s: %s.", r.Outcome, r.Reason)
	default:
		text += fmt.Sprintf("It was started %s late on %s and ended %s after %s", time.Duration(r.Lateness)*time.Microsecond, r.Node, r.Outcome,
			r.Ended.Sub(r.Started).Round(time.Microsecond))
		if r.Reason != "" {
			text += ": " + r.Reason
		}
		text += "."
	}
	if !r.Final {
		text += " Another attempt is to come."
	}
	return text
}

// explainUnrecorded finds out why there is no run.
func (s *Server) explainUnrecorded(r *http.Request, e *explanation, j *sql.JobRow, at, now time.Time) error {
	e.Due = dueAt(&j.Spec, at)
	task, err := s.cfg.DB.TaskAt(r.Context(), j.ID, job.MicrosOf(at))
	switch {
	case err != nil && !errors.Is(err, sql.ErrNotFound):
		return err
	case err == nil && task.State == job.Executing:
		e.Due, e.Cause, e.Answer = true, causeExecuting, fmt.Sprintf("It was started at %s and is executing; its run is %s.", max(task.Started, task.DueNow), task.Launch)
	case err == nil && task.DueNow > job.MicrosOf(now):
		e.Due, e.Cause, e.Answer = true, causeAhead, fmt.Sprintf("It is planned and will be started at %s, in %s.", task.DueNow, task.DueNow.Sub(job.MicrosOf(now)).Round(time.Millisecond))
	case err == nil:
		e.Due, e.Cause, e.Answer = true, causeWaiting, "It is due and waits for a node with a free slot."
	case !e.Due && gapNear(at, e.Before, e.After) != "":
		e.Cause, e.Answer = causeGap, "The clock skips a time of day here: daylight saving begins. The job fires at the end of the gap, at "+gapNear(at, e.Before, e.After)+"."
	case !e.Due:
		e.Cause, e.Answer = causeNotDue, "It is no due time of the definition as it stands."
	case j.Paused && at.After(j.PausedAt.Time()):
		e.Cause, e.Answer = causePaused, fmt.Sprintf("The job is paused since %s, and a paused job has no due times.", j.PausedAt)
	case at.After(now):
		e.Cause, e.Answer = causeAhead, fmt.Sprintf("It lies ahead: it is due in %s.", at.Sub(now).Round(time.Second))
	case at.Before(j.Created.Time()):
		e.Cause, e.Answer = causeEarlier, fmt.Sprintf("The job was created later, at %s.", j.Created)
	case j.Error != "":
		e.Cause, e.Answer = causeBroken, "The job cannot be planned: "+j.Error
	case at.Before(j.Updated.Time()):
		e.Cause, e.Answer = causeEarlier, fmt.Sprintf("There is no record. The definition was changed last at %s, and that time may have been none of its due times before, or the job was paused.", j.Updated)
	default:
		e.Cause, e.Answer = causeNoRecord, "There is no record of it: it is about to be planned, or its record was removed."
	}
	return nil
}

// gapNear returns the due time at the end of a gap that lies near an instant, or "". A time of day that the clock skips
// is no instant: with one offset it reads as one before the gap's end, with the other as one behind it.
func gapNear(at time.Time, around ...*dueView) string {
	for _, v := range around {
		if v == nil || v.Mark != job.Gap {
			continue
		}
		if t, err := time.Parse(time.RFC3339Nano, v.Due); err == nil && t.Sub(at).Abs() <= 2*time.Hour {
			return v.Due
		}
	}
	return ""
}
