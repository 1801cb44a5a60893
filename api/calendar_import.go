package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"mime"
	"net/http"
	"time"

	"go-crontab/api/view"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// The modes of an import.
const (
	importReplace = "replace" // the file's days replace the old days; weekdays and hours stay
	importAdd     = "add"     // the days of the file are added
)

// makeupWord is the word in the name of a day that marks a make-up workday. The import may give
// another word.
const makeupWord = "班"

// importCalendar: POST
// /api/v1/calendars/{name}/import?format=ics|csv&mode=replace|add&workday=班&dry_run=true. The body
// is the file. The request creates the calendar if needed. A file with any error is refused as a
// whole.
func (s *Server) importCalendar(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "name")
	if err != nil {
		return err
	}

	q := newQuery(r)
	format, mode, dry := q.word(importFormat), q.word(importMode), q.word(importDry)
	workday := q.text(importWorkday)
	if workday == "" {
		workday = makeupWord
	}
	if err := q.err(); err != nil {
		return err
	}

	if format == "" {
		if format = formatOf(r); format == "" {
			return unsupportedMedia.problem(
				"The Content-Type is %q; send text/calendar or text/csv, or add ?format=ics or ?format=csv.",
				cutShort(r.Header.Get("Content-Type")))
		}
	}

	file, err := readBody(r)
	if err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	var days job.ImportedDays
	if format == "csv" {
		days, err = job.ParseCSV(file)
	} else {
		err = job.Compute(r.Context(), job.DefiningWork, func(w *job.Work) (err error) {
			days, err = job.ParseICS(w, file, now, workday)
			return err
		})
	}

	if err != nil {
		return err
	}

	c, isNew, err := s.imported(r.Context(), name, days, mode, dry == "true")
	if err != nil {
		return err
	}

	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
		w.Header().Set("Location", calendarPath(name))
	}

	return answer(w, status, view.Import{
		Calendar: viewCalendar(&c),
		Imported: view.Imported{Excludes: len(days.Exclude), Includes: len(days.Include), Ignored: days.Ignored},
	})
}

func formatOf(r *http.Request) string {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "text/calendar":
		return "ics"
	case "text/csv":
		return "csv"
	}
	return ""
}

// imported adds days to a calendar. If somebody else changes the calendar at the same time,
// imported starts again with the changed calendar.
func (s *Server) imported(ctx context.Context, name string, days job.ImportedDays, mode string,
	dry bool) (c trip.CalendarRow, isNew bool, err error) {
	for range maxTries {
		version := int64(mustBeNew)

		spec := job.CalendarSpec{Name: name, Description: days.Title}
		c, err = trip.CalendarNamed(s.cfg.DB.Reader(ctx), name)
		switch {
		case err == nil && c.SpecErr != nil:
			return c, false, unreadable.problem("Replace the whole calendar with PUT.")
		case err == nil:
			version, spec = c.Version, *c.Calendar.Spec()
		case !errors.Is(err, sql.ErrNotFound):
			return c, false, err
		}

		if mode == importAdd {
			spec.Exclude, spec.Include = job.AddDays(spec.Exclude, days.Exclude),
				job.AddDays(spec.Include, days.Include)
		} else {
			spec.Exclude, spec.Include = job.AddDays(nil, days.Exclude), job.AddDays(nil, days.Include)
		}

		if dry {
			spec.Defaults()
			if c.Calendar, err = spec.Compile(); err != nil {
				return c, false, err
			}
			c.Name = name
			return c, false, nil
		}

		isNew, err = s.putSpec(ctx, spec, version)
		var taken *Problem
		if errors.Is(err, job.ErrChanged) || errors.As(err, &taken) && taken.Type == view.ProblemType+exists.name {
			time.Sleep(rand.N(20 * time.Millisecond))
			continue
		}

		// The change is committed, even if it cannot be read back.
		if err == nil {
			if c, err = trip.CalendarNamed(s.cfg.DB.Reader(ctx), name); err != nil {
				c, err = trip.CalendarRow{Name: name, SpecErr: errors.New("the calendar was saved, but could not be read " +
					"back")}, nil
			}
		}

		return c, isNew, err
	}

	return c, false, job.ErrChanged
}
