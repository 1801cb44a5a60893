package api

import (
	"net/http"

	"go-crontab/api/view"
	"go-crontab/job"
)

var (
	importFormat = wordParam{
		declared{"format", "What the file is. Without it, the `Content-Type` says so.", "csv"}, []string{"ics", "csv"},
	}
	importMode = wordParam{
		declared{"mode",
			"Whether the days of the file come in place of those that there are, or beside them. Without it, in place.",
			"add"}, []string{importReplace, importAdd},
	}
	importWorkday = textParam{
		declared{"workday", "Of an iCalendar file: a word that is in the names of make-up workdays. Without it, " +
			makeupWord + ".", "make-up"}, maxWorkday,
	}
	importDry = wordParam{declared{"dry_run", "Only show what would come of it.", "true"}, []string{"true", "false"}}
	daysFrom  = dateParam{
		declared{"from", "The first day. Without it, today in the calendar's time zone.", "2027-02-01"},
	}
	daysTo = dateParam{declared{"to", "The last day. Without it, 31 days are listed.", "2027-02-28"}}
)

const maxWorkday = 60 // characters

// calendarBody is a calendar in a request. It also takes the answers of GET, from a list too.
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
		{status: http.StatusOK, about: "The calendar as it is now.", of: of[T]()},
		{status: http.StatusCreated, about: "The calendar, which is new.", of: of[T](), headers: []string{"Location"}},
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
		about: "A calendar says on which days, and at which hours of them, the jobs that name it have due times.",
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
		summary: "Make or replace a calendar",
		about:   "A change holds for due times that have not begun, of all jobs that name the calendar.",
		body: &requestBody{of: of[calendarBody](), example: calendarExample,
			about: "The whole calendar. What GET answered can be edited and sent back: what only the server sets is " +
				"ignored."},
		replies: putReplies[view.Calendar](), changes: true, problems: []kind{changed, unreadable},
	}
	deleteCalendarDoc = operation{
		id: "deleteCalendar", tag: tagCalendars, summary: "Delete a calendar", about: "Only one that no job names.",
		replies: gone, changes: true, problems: []kind{notFound, inUse},
	}
	importCalendarDoc = operation{
		id: "importCalendar", tag: tagCalendars, once: true, most: job.MaxCalendarSize,
		summary: "Import days from a file",
		about: "Takes the days of a file into a calendar, and makes the calendar if there is none. Of a file with " +
			"which something is wrong nothing is taken.",
		query: []parameter{importFormat, importMode, importWorkday, importDry},
		body: &requestBody{files: []string{mediaCSV, mediaICS, mediaAny},
			about: "The file. With `format` it may be of any type.",
			example: "date,end,kind,note\n2027-06-09,,exclude,Dragon Boat Festival\n2027-09-18,,include,make-up " +
				"workday\n"},
		replies: putReplies[view.Import](), changes: true, problems: []kind{changed, unreadable},
	}
	calendarDaysDoc = operation{
		id: "listCalendarDays", tag: tagCalendars, summary: "List days of a calendar",
		about: "Which of them are open, closed or make-up days, by this calendar alone. At most three years are " +
			"listed at once.",
		query: []parameter{daysFrom, daysTo}, replies: found[view.Page[job.DayState]]("The days."),
		problems: []kind{notFound, unreadable},
	}
)
