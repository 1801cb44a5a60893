package api

var (
	importFormat  = wordParam{declared{"format", "What the file is. Without it, the `Content-Type` says so.", "csv"}, []string{"ics", "csv"}}
	importMode    = wordParam{declared{"mode", "Whether the days of the file come in place of those that there are, or beside them. Without it, in place.", "add"}, []string{importReplace, importAdd}}
	importWorkday = textParam{declared{"workday", "Of an iCalendar file: a word that is in the names of make-up workdays. Without it, " + makeupWord + ".", "make-up"}, maxWorkday}
	importDry     = wordParam{declared{"dry_run", "Only show what would come of it.", "true"}, []string{"true", "false"}}
	daysFrom      = dateParam{declared{"from", "The first day. Without it, today in the calendar's time zone.", "2027-02-01"}}
	daysTo        = dateParam{declared{"to", "The last day. Without it, 31 days are listed.", "2027-02-28"}}
)

const maxWorkday = 60 // characters

var (
	listCalendarsDoc  = operation{id: "listCalendars", query: []parameter{limitParam, pageParam}}
	createCalendarDoc = operation{id: "createCalendar"}
	getCalendarDoc    = operation{id: "getCalendar"}
	putCalendarDoc    = operation{id: "putCalendar"}
	deleteCalendarDoc = operation{id: "deleteCalendar"}
	importCalendarDoc = operation{id: "importCalendar", query: []parameter{importFormat, importMode, importWorkday, importDry}}
	calendarDaysDoc   = operation{id: "listCalendarDays", query: []parameter{daysFrom, daysTo}}
)
