package api

import (
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/job/problem"
)

// calendarFields reads the fields of a calendar.
func calendarFields(f *fields) job.CalendarSpec {
	var c job.CalendarSpec
	f.text("name", &c.Name)
	f.text("description", &c.Description)
	f.text("timezone", &c.Timezone)
	f.days("exclude", &c.Exclude)
	f.texts("exclude_weekdays", &c.ExcludeWeekdays)

	f.inner("hours", func(f *fields) {
		f.texts("only", &c.Hours.Only)
		f.texts("except", &c.Hours.Except)
	})

	f.days("include", &c.Include)
	return c
}

// days reads a list of days. Each is an object or a short text: "2027-02-06" or
// "2027-02-05..2027-02-11".
func (f *fields) days(name string, to *[]job.CalendarDay) {
	v, ok := f.take(name)
	if !ok {
		return
	}

	list, ok := v.([]any)
	if !ok {
		f.want(name, v, problem.WantDays)
		return
	}

	if len(list) > job.MaxCalendarDays {
		f.wrong(name, problem.TooMany, len(list), job.MaxCalendarDays)
		return
	}

	out := make([]job.CalendarDay, 0, len(list))
	for i, item := range list {
		if len(*f.problems) > maxProblems {
			return // enough problems to report
		}

		place := fmt.Sprintf("%s[%d]", name, i)
		var d job.CalendarDay
		switch item := item.(type) {
		case string:
			d.Date, d.End, _ = strings.Cut(item, "..")
		case map[string]any:
			in := &fields{object: item, place: join(f.place, place), problems: f.problems}
			in.text("date", &d.Date)
			in.text("end", &d.End)
			in.text("as", &d.As)
			in.text("note", &d.Note)
			in.unknown()
		default:
			f.want(place, item, problem.WantDay)
			continue
		}

		out = append(out, d)
	}

	*to = out
}
