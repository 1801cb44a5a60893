package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
)

// calendarReadOnly are the fields of a calendar that only the server sets.
var calendarReadOnly = []string{"jobs", "version", "created", "updated", "error", "excludes", "includes"}

func viewCalendar(c *trip.CalendarRow) *view.Calendar {
	v := &view.Calendar{Jobs: c.Jobs, Version: c.Version, Created: c.Created.Time(), Updated: c.Updated.Time()}
	v.Name = c.Name
	if c.SpecErr != nil {
		v.Error = c.SpecErr.Error()
	} else {
		v.CalendarSpec = *c.Calendar.Spec()
	}
	return v
}

// listCalendars: GET /api/v1/calendars
func (s *Server) listCalendars(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	limit, after := q.limit(), int64(0)
	if c := q.cursor("calendars"); c != nil {
		after = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	rows, err := read.Calendars(s.cfg.DB.Reader(r.Context()), after, limit+1)
	if err != nil {
		return err
	}

	p := view.Page[view.CalendarItem]{Items: []view.CalendarItem{}}
	rows, p.Next = oneMore("calendars", rows, limit, func(r *read.CalendarSummary) int64 { return r.ID })
	for _, c := range rows {
		p.Items = append(p.Items, view.CalendarItem{
			Name: c.Name, Timezone: c.Timezone, Excludes: c.Excludes, Includes: c.Includes, Jobs: c.Jobs,
			Version: c.Version, Created: c.Created.Time(), Updated: c.Updated.Time(),
		})
	}

	return answer(w, http.StatusOK, p)
}

// calendar reads the calendar that the path names.
func (s *Server) calendar(r *http.Request) (trip.CalendarRow, error) {
	name, err := param(r, "name")
	if err != nil {
		return trip.CalendarRow{}, err
	}
	c, err := trip.CalendarNamed(s.cfg.DB.Reader(r.Context()), name)
	if errors.Is(err, sql.ErrNotFound) {
		err = noCalendar(name)
	}
	return c, err
}

func noCalendar(name string) error {
	return notFound.problem("There is no calendar %q; create it with PUT, or with go-crontab calendar apply.",
		cutShort(name))
}

// getCalendar: GET /api/v1/calendars/{name}
func (s *Server) getCalendar(w http.ResponseWriter, r *http.Request) error {
	c, err := s.calendar(r)
	if err != nil {
		return err
	}
	return answerTagged(w, http.StatusOK, c.Version, viewCalendar(&c))
}

// createCalendar: POST /api/v1/calendars
func (s *Server) createCalendar(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	spec := calendarFields(f)
	f.refuse(calendarReadOnly...)
	if err := f.done(); err != nil {
		return err
	}
	return s.writeCalendar(w, r, spec, mustBeNew)
}

// putCalendar: PUT /api/v1/calendars/{name}
func (s *Server) putCalendar(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	body, err := readObject(r)
	if err != nil {
		return err
	}

	f := newFields(body)
	spec := calendarFields(f)
	f.ignore(calendarReadOnly...)
	if spec.Name != "" && spec.Name != name {
		f.wrong("name", problem.NotAsThePathSays.Advise("leave it out: calendars cannot be renamed"),
			cutShort(spec.Name), cutShort(name))
	}

	if err := f.done(); err != nil {
		return err
	}

	spec.Name = name
	ctx, err := wanted(r, "calendar")
	if err != nil {
		return err
	}
	return s.writeCalendar(w, r.WithContext(ctx), spec, anyVersion)
}

// Values for the expected version of a calendar: any version, or no calendar yet.
const (
	anyVersion = 0
	mustBeNew  = -1
)

// writeCalendar writes a calendar and answers with it.
func (s *Server) writeCalendar(w http.ResponseWriter, r *http.Request, spec job.CalendarSpec, version int64) error {
	isNew, err := s.putSpec(r.Context(), spec, version)
	if err != nil {
		return err
	}

	// The change is committed. If the calendar cannot be read back, or was deleted already, the
	// answer must not look like a failed change.
	c, err := trip.CalendarNamed(s.cfg.DB.Reader(r.Context()), spec.Name)
	if err != nil {
		c = trip.CalendarRow{Name: spec.Name, SpecErr: errors.New("the calendar was saved, but could not be read back")}
	}
	return showCalendar(w, isNew, &c)
}

// showCalendar answers with a calendar that was created or changed.
func showCalendar(w http.ResponseWriter, isNew bool, c *trip.CalendarRow) error {
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
		w.Header().Set("Location", calendarPath(c.Name))
	}
	return answerTagged(w, status, c.Version, viewCalendar(c))
}

func (s *Server) putSpec(ctx context.Context, spec job.CalendarSpec, version int64) (isNew bool, err error) {
	e, err := s.editor()
	if err != nil {
		return false, err
	}

	isNew, err = e.PutCalendar(ctx, spec, version)
	for try := 1; errors.Is(err, sql.ErrExists) && version == anyVersion && try < maxTries; try++ {
		isNew, err = e.PutCalendar(ctx, spec, version) // another request has just created it
	}

	if errors.Is(err, sql.ErrExists) {
		return false, exists.problem("A calendar with this name already exists; replace it with PUT.")
	}
	return isNew, lookAt(err, "GET %s shows the current state. You can safely repeat the "+
		"request.", calendarPath(spec.Name))
}

func calendarPath(name string) string { return "/api/v1/calendars/" + url.PathEscape(name) }

// deleteCalendar: DELETE /api/v1/calendars/{name}
func (s *Server) deleteCalendar(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	e, err := s.editor()
	if err != nil {
		return err
	}

	switch err := e.DeleteCalendar(r.Context(), name); {
	case errors.Is(err, sql.ErrNotFound):
		return noCalendar(name)
	case err != nil:
		return lookAt(err, "GET %s shows whether it still exists.", calendarPath(name))
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

const (
	defaultDays = 31
	maxDays     = 3 * 366
)

// calendarDays: GET /api/v1/calendars/{name}/days?from=2027-02-01&to=2027-02-28, both included. It
// lists the days as open, closed or make-up days. Only this calendar counts.
func (s *Server) calendarDays(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	from, to := q.date(daysFrom), q.date(daysTo)
	if err := q.err(); err != nil {
		return err
	}

	c, err := s.calendar(r)
	if err != nil {
		return err
	}
	if c.SpecErr != nil {
		return unreadable.problem("Replace the whole calendar with PUT.")
	}

	if from.IsZero() {
		now, err := s.now()
		if err != nil {
			return err
		}
		if zone, err := job.LoadZone(c.Calendar.Spec().Timezone); err == nil {
			now = now.In(zone)
		}
		from = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	}

	n := defaultDays
	if !to.IsZero() {
		n = int(to.Sub(from)/(24*time.Hour)) + 1
	}

	switch {
	case n < 1:
		return invalidField("to", problem.Before, to.Format(time.DateOnly), "from", from.Format(time.DateOnly))
	case n > maxDays:
		return invalidField("to", problem.TooManyDays, n, maxDays)
	}

	days, err := c.Calendar.Days(from.Format(time.DateOnly), n)
	if err != nil {
		return invalidFields(job.Problems{{Field: "from", Text: problem.Of(err)}})
	}
	return answer(w, http.StatusOK, view.Page[job.DayState]{Items: days})
}

// date returns a day as midnight UTC; the zero time if absent.
func (q *query) date(p dateParam) time.Time {
	v := q.given(p.name)
	if v == "" {
		return time.Time{}
	}

	t, err := time.Parse(time.DateOnly, v)
	if err != nil || t.Year() < 1970 || t.Year() > 2099 {
		q.wrong(p.name, problem.NotADay, cutShort(v))
		return time.Time{}
	}

	return t
}

// calendarsOf reads the calendars that a definition names.
func (s *Server) calendarsOf(ctx context.Context, spec *job.Spec) ([]*job.Calendar, error) {
	if len(spec.Calendars) == 0 || len(spec.Calendars) > job.MaxCalendars {
		return nil, nil // the compiler of the definition refuses too many calendars
	}
	return trip.CalendarsNamed(s.cfg.DB.Reader(ctx), spec.Calendars)
}
