package api

import (
	"net/http"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/job/problem"
)

const (
	defaultDue = 10
	maxDue     = 1000
)

// dueTimes returns the first n due times of a definition after an instant.
func dueTimes(w *job.Work, spec *job.Spec, from time.Time, n int, calendars []*job.Calendar) ([]view.DueTime, error) {
	schedule, err := spec.Compile(calendars...)
	if err != nil {
		return nil, err
	}

	zone, err := job.LoadZone(spec.Timezone)
	if err != nil {
		return nil, err
	}

	schedule = w.On(schedule)

	marker, _ := schedule.(job.Marker)
	out := []view.DueTime{}
	for _, due := range job.Preview(schedule, from, n) {
		v := view.DueTime{Due: due.In(zone)}
		if marker != nil {
			v.Mark = marker.Mark(due)
		}
		if v.Mark == job.Moved {
			v.MovedFrom = job.MovedFrom(schedule, due)
		}
		out = append(out, v)
	}

	return out, nil
}

// now reads MySQL's clock. A node that has just started may not know MySQL's time yet.
func (s *Server) now() (time.Time, error) {
	now := s.cfg.Now()
	if now.IsZero() {
		return now, unavailable.problem("This node has not read the database's clock yet. Try again in a moment.")
	}
	return now, nil
}

// nextDue: GET /api/v1/jobs/{id}/next. It lists the due times of the definition, even if the job is
// paused.
func (s *Server) nextDue(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	n, from := q.number(dueCount), q.instant(dueAfter)
	if err := q.err(); err != nil {
		return err
	}

	j, err := s.livingJob(r)
	if err != nil {
		return err
	}
	if j.SpecErr != nil {
		return unreadable.problem("Replace the whole definition with PUT.")
	}

	if from.IsZero() {
		if from, err = s.now(); err != nil {
			return err
		}
	}

	calendars, err := s.calendarsOf(r.Context(), &j.Spec)
	if err != nil {
		return err
	}

	var items []view.DueTime
	err = job.Compute(r.Context(), job.DefiningWork, func(w *job.Work) (err error) {
		items, err = dueTimes(w, &j.Spec, from, int(n), calendars)
		return err
	})
	if err != nil {
		return j.Spec.Explain(err, calendars)
	}

	return answer(w, http.StatusOK, view.Page[view.DueTime]{Items: items})
}

// preview: POST /api/v1/preview
func (s *Server) preview(w http.ResponseWriter, r *http.Request) error {
	body, err := readObject(r)
	if err != nil {
		return err
	}

	var (
		spec job.Spec
		from *time.Time
		n    = defaultDue
	)

	f := newFields(body)
	scheduleFields(f, &spec)
	// The app and name decide how the job's jitter falls. The handler and selector are only needed
	// for a warning.
	f.text("app", &spec.App)
	f.text("name", &spec.Name)
	f.text("handler", &spec.Handler)
	f.text("selector", &spec.Selector)
	if _, err := spec.Place(); err != nil {
		f.put("selector", problem.Of(err))
	}

	f.instant("from", &from)
	f.count("n", &n, maxDue)
	if err := f.done(); err != nil {
		return err
	}

	if from == nil {
		now, err := s.now()
		if err != nil {
			return err
		}
		from = &now
	}

	spec.Defaults(*from) // intervals start at *from, as if the job were created then

	calendars, err := s.calendarsOf(r.Context(), &spec)
	if err != nil {
		return err
	}

	var (
		next     []view.DueTime
		warnings []problem.Text
	)
	err = job.Compute(r.Context(), job.DefiningWork, func(w *job.Work) (err error) {
		if next, err = dueTimes(w, &spec, *from, n, calendars); err == nil {
			warnings = warningsOf(w, &spec, *from, calendars)
		}
		return err
	})
	if err != nil {
		return spec.Explain(err, calendars)
	}

	if place, err := s.placeWarning(r.Context(), &spec); err != nil {
		return err
	} else if place != nil {
		warnings = append(warnings, *place)
	}

	w.Header().Add("Vary", "Accept-Language")
	return answer(w, http.StatusOK, view.Preview{Words: spec.Words(languageOf(r)), Next: next, Warnings: warnings})
}

// languageOf returns the language that a request prefers.
func languageOf(r *http.Request) job.Language {
	return job.LanguageOf(r.Header.Get("Accept-Language"))
}

// warningsOf lists probable mistakes in a valid definition.
func warningsOf(w *job.Work, spec *job.Spec, now time.Time, calendars []*job.Calendar) []problem.Text {
	s, err := spec.Compile(calendars...)
	if err != nil {
		return nil
	}
	return spec.Warnings(w.On(s), now)
}
