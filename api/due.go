package api

import (
	"net/http"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
)

const (
	defaultDue = 10
	maxDue     = 1000
)

// dueView shows a due time in the time zone of its job.
type dueView struct {
	Due  string   `json:"due" format:"date-time" doc:"The due time, in the job's time zone."`
	Mark job.Mark `json:"mark,omitempty" doc:"Whether daylight saving or a calendar affects it."`
}

// dueTimes returns the first n due times of a definition after an instant.
func dueTimes(w *job.Work, spec *job.Spec, from time.Time, n int, calendars []*job.Calendar) ([]dueView, error) {
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
	out := []dueView{}
	for _, due := range job.Preview(schedule, from, n) {
		v := dueView{Due: due.In(zone).Format(time.RFC3339Nano)}
		if marker != nil {
			v.Mark = marker.Mark(due)
		}
		out = append(out, v)
	}

	return out, nil
}

// now reads MySQL's clock. A node that has just started may not know it yet.
func (s *Server) now() (time.Time, error) {
	now := s.cfg.Now()
	if now.IsZero() {
		return now, unavailable.problem("This node has not read the database's clock yet. Try again in a moment.")
	}
	return now, nil
}

// nextDue: GET /api/v1/jobs/{id}/next. It lists due times by the definition, even if the job is
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

	var items []dueView
	err = job.Compute(r.Context(), job.DefiningWork, func(w *job.Work) (err error) {
		items, err = dueTimes(w, &j.Spec, from, int(n), calendars)
		return err
	})
	if err != nil {
		return j.Spec.Explain(err, calendars)
	}

	return answer(w, http.StatusOK, page[dueView]{Items: items})
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
	// The names decide the job's share of its jitter; handler and selector only matter for a
	// warning.
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

	spec.Defaults(*from) // an interval starts as if the job were created at this instant

	calendars, err := s.calendarsOf(r.Context(), &spec)
	if err != nil {
		return err
	}

	var (
		next     []dueView
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
	return answer(w, http.StatusOK, previewView{spec.Words(languageOf(r)), next, warnings})
}

// languageOf returns the language that a request prefers.
func languageOf(r *http.Request) job.Language {
	return job.LanguageOf(r.Header.Get("Accept-Language"))
}

// previewView is the preview of a schedule.
type previewView struct {
	Words    string         `json:"words" doc:"The schedule in words, in English or Chinese by 'Accept-Language'."`
	Next     []dueView      `json:"next" doc:"The due times, the earliest first."`
	Warnings []problem.Text `json:"warnings,omitempty" doc:"Warnings: settings that are allowed, but probably not intended."`
}

// warningsOf lists probable mistakes in a valid definition.
func warningsOf(w *job.Work, spec *job.Spec, now time.Time, calendars []*job.Calendar) []problem.Text {
	s, err := spec.Compile(calendars...)
	if err != nil {
		return nil
	}
	return spec.Warnings(w.On(s), now)
}
