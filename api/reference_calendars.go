package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	importFormat = wordParam{
		declared{"format", "The format of the file. Without it, the `Content-Type` decides.", "csv"}, []string{"ics", "csv"},
	}
	importMode = wordParam{
		declared{"mode",
			"Whether the days of the file replace the existing days or are added to them. Without it, they replace them.",
			"add"}, []string{importReplace, importAdd},
	}
	importWorkday = textParam{
		declared{"workday", "For an iCalendar file: a word that is part of the names of make-up workdays. Without it, " +
			makeupWord + ".", "make-up"}, maxWorkday,
	}
	importDry = wordParam{declared{"dry_run", "Change nothing; show what the import would " +
		"do.", "true"}, []string{"true", "false"}}
	daysFrom = dateParam{
		declared{"from", "The first day. Without it, today in the calendar's time zone.", "2027-02-01"},
	}
	daysTo = dateParam{declared{"to", "The last day. Without it, 31 days are listed.", "2027-02-28"}}
)

const maxWorkday = 60 // characters

// calendarBody is a calendar in a request. An answer of GET may be sent as a request, even an item
// of a list.
type calendarBody struct {
	view.Calendar
	Excludes int `json:"excludes"`
	Includes int `json:"includes"`
}

const calendarExample = `{"timezone": "Asia/Shanghai", "exclude_weekdays": ["sat", "sun"],
 "exclude": [{"date": "2027-02-05", "end": "2027-02-11", "note": "Spring Festival"}, "05-01"],
 "include": [{"date": "2027-02-13", "note": "make-up workday"}]}`

// putReplies are the replies of operations that create or replace a calendar.
func putReplies[T any]() []reply {
	return []reply{
		{status: http.StatusOK, about: "The current calendar.", of: of[T]()},
		{status: http.StatusCreated, about: "The new calendar.", of: of[T](), headers: []string{"Location"}},
	}
}

var (
	listCalendarsDoc = operation{
		id: "listCalendars", tag: tagCalendars, summary: "List calendars",
		about: "In the order of their creation, without their days.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.CalendarItem]]("A page of calendars."),
	}
	createCalendarDoc = operation{
		id: "createCalendar", tag: tagCalendars, once: true, most: maxCalendarBody, summary: "Add a calendar",
		about: "A calendar says on which days, and in which hours, jobs that use it have due times.",
		body: &requestBody{of: of[job.CalendarSpec](), about: "The calendar.",
			example: `{"name": "china", ` + calendarExample[1:]},
		replies: []reply{
			{status: http.StatusCreated, about: "The calendar.", of: of[view.Calendar](), headers: []string{"Location"}},
		},
		changes: true, problems: []kind{exists, changed, inUse, unreadable},
	}
	getCalendarDoc = operation{
		id: "getCalendar", tag: tagCalendars, summary: "Show a calendar", about: "With all its days.",
		replies: found[view.Calendar]("The calendar."), problems: []kind{notFound},
	}
	putCalendarDoc = operation{
		id: "putCalendar", tag: tagCalendars, matched: true, unless: true, most: maxCalendarBody,
		summary: "Create or replace a calendar",
		about:   "A change applies to due times that have not begun, of all jobs that use the calendar.",
		body: &requestBody{of: of[calendarBody](), example: calendarExample,
			about: "The whole calendar. An answer of GET can be edited and sent back: fields that only the server sets are " +
				"ignored."},
		replies: putReplies[view.Calendar](), changes: true, problems: []kind{changed, unreadable},
	}
	deleteCalendarDoc = operation{
		id: "deleteCalendar", tag: tagCalendars, summary: "Delete a calendar", about: "A calendar that jobs use cannot " +
			"be deleted.",
		replies: gone, changes: true, problems: []kind{notFound, inUse},
	}
	importCalendarDoc = operation{
		id: "importCalendar", tag: tagCalendars, once: true, most: job.MaxCalendarSize,
		summary: "Import days from a file",
		about: "Imports the days of a file into a calendar, and creates the calendar if it does not exist. If the file " +
			"has an " +
			"error, nothing is imported.",
		query: []parameter{importFormat, importMode, importWorkday, importDry},
		body: &requestBody{files: []string{mediaCSV, mediaICS, mediaAny},
			about: "The file. With `format`, any `Content-Type` is accepted.",
			example: "date,end,kind,note\n2027-06-09,,exclude,Dragon Boat Festival\n2027-09-18,,include,make-up " +
				"workday\n"},
		replies: putReplies[view.Import](), changes: true, problems: []kind{changed, unreadable},
	}
	calendarDaysDoc = operation{
		id: "listCalendarDays", tag: tagCalendars, summary: "List days of a calendar",
		about: "Whether they are open, closed or make-up days in this calendar. At most three years are " +
			"listed at once.",
		query: []parameter{daysFrom, daysTo}, replies: found[view.Page[job.DayState]]("The days."),
		problems: []kind{notFound, unreadable},
	}
)
