package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/sql/read"
)

const (
	maxFeedDays   = 60
	maxFeedEvents = 5000
	often         = 6 // a day with more due times than this becomes one event
)

// feedEvent is a single due time, or all due times of a day.
type feedEvent struct {
	at    time.Time
	times int64 // due times of the whole day; 0: a single due time
	id    int64
	title string
	about string
}

// upcomingFeed: GET /api/v1/upcoming.ics
func (s *Server) upcomingFeed(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r)
	f, days := aheadFilter(q, r), int(q.number(feedDays))
	if err := q.err(); err != nil {
		return err
	}

	now, err := s.now()
	if err != nil {
		return err
	}

	leave, err := s.waitTurn(r.Context())
	if err != nil {
		return err
	}
	defer leave()

	var events []feedEvent
	work, cut := job.NewWork(r.Context(), job.ListingWork), false
	all, err := s.eachAhead(r.Context(), work, f, func(j *read.Job) {
		part := work.Part(job.JobWork)
		events = append(events, eventsOf(part, j, now, days, languageOf(r))...)
		cut = cut || part.Err() != nil
	})
	if err != nil {
		return err
	}

	all = all && !cut
	slices.SortStableFunc(events, func(a, b feedEvent) int { return a.at.Compare(b.at) })
	if len(events) > maxFeedEvents {
		events, all = events[:maxFeedEvents], false
	}

	w.Header().Set("Content-Type", mediaICS+"; charset=utf-8")
	w.Header().Set("Content-Disposition", `inline; filename="go-crontab.ics"`)

	c := calendarText{}
	c.line("BEGIN", "VCALENDAR")
	c.line("VERSION", "2.0")
	c.line("PRODID", "-//go-crontab//upcoming//EN")
	c.line("CALSCALE", "GREGORIAN")
	c.line("METHOD", "PUBLISH")
	c.text("X-WR-CALNAME", "go-crontab")
	if !all {
		c.text("X-WR-CALDESC", "There are more due times. Filter by app or label to see them.")
	}

	c.line("REFRESH-INTERVAL;VALUE=DURATION", "PT1H")
	c.line("X-PUBLISHED-TTL", "PT1H")
	for _, e := range events {
		s.writeEvent(&c, &e, now)
	}

	c.line("END", "VCALENDAR")
	_, err = w.Write([]byte(c.String()))
	return err
}

// eventsOf returns the events of a job, day by day in its time zone.
func eventsOf(work *job.Work, j *read.Job, now time.Time, days int, language job.Language) []feedEvent {
	schedule, err := j.Spec.Compile(j.Calendars...)
	if err != nil {
		return nil
	}

	schedule = work.On(schedule)
	zone, err := job.LoadZone(j.Spec.Timezone)
	if err != nil {
		zone = time.UTC
	}

	title := j.Spec.Name
	if j.Spec.App != job.DefaultApp {
		title = j.Spec.App + "/" + j.Spec.Name
	}

	about := j.Spec.Words(language)
	if j.Spec.Description != "" {
		about = j.Spec.Description + "\n" + about
	}

	var out []feedEvent
	from := now.In(zone)
	y, m, d := from.Date()
	for i := range days {
		end := time.Date(y, m, d+i+1, 0, 0, 0, 0, zone)
		before := from.Add(-time.Microsecond)
		switch n := schedule.Count(before, end.Add(-time.Microsecond)); {
		case n > often:
			out = append(out, feedEvent{
				time.Date(y, m, d+i, 0, 0, 0, 0, zone), n, j.ID, fmt.Sprintf("%s ×%d", title, n), about,
			})
		case n > 0:
			for at := before; ; {
				due, ok := schedule.Next(at)
				if !ok || !due.Before(end) {
					break
				}
				out = append(out, feedEvent{due, 0, j.ID, title, about})
				at = due
			}
		}

		from = end
	}

	return out
}

func (s *Server) writeEvent(c *calendarText, e *feedEvent, now time.Time) {
	c.line("BEGIN", "VEVENT")
	id := strconv.FormatInt(e.id, 10)
	if e.times > 0 {
		day := e.at.Format("20060102")
		c.line("UID", id+"-"+day+"@go-crontab")
		c.line("DTSTART;VALUE=DATE", day)
	} else {
		c.line("UID", id+"-"+strconv.FormatInt(e.at.UnixMicro(), 10)+"@go-crontab")
		c.line("DTSTART", icalTime(e.at))
	}

	c.line("DTSTAMP", icalTime(now))
	c.text("SUMMARY", e.title)
	c.text("DESCRIPTION", e.about)
	if s.public != nil {
		c.line("URL", s.public.JoinPath("jobs", id).String())
	}

	c.line("TRANSP", "TRANSPARENT") // a running job makes no person busy
	c.line("END", "VEVENT")
}

func icalTime(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// calendarText builds iCalendar text.
type calendarText struct{ strings.Builder }

// text writes a line whose value is text, escaped.
func (c *calendarText) text(name, value string) {
	value = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return -1
		}
		return r
	}, value)
	c.line(name, strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`).Replace(value))
}

// line writes a line, folded at 75 bytes, the longest line that iCalendar permits.
func (c *calendarText) line(name, value string) {
	line := strings.ToValidUTF8(name+":"+value, "\uFFFD")
	for most := 75; len(line) > most; most = 74 { // the leading space counts
		end := most
		for !utf8.RuneStart(line[end]) {
			end--
		}
		c.WriteString(line[:end] + "\r\n ")
		line = line[end:]
	}

	c.WriteString(line + "\r\n")
}
