package job

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// english speaks English. A weekday is a day from Monday to Friday.
type english struct{}

func (e english) schedule(w *scheduleWords) string {
	var parts []string
	switch {
	case w.every != 0:
		parts = append(parts, "every "+e.duration(w.every))
		if !w.start.IsZero() {
			parts = append(parts, "first at "+e.instant(w.start))
		}
	case w.delay != 0:
		parts = append(parts, e.length(w.delay)+" after the end of each run")
		if !w.start.IsZero() {
			parts = append(parts, "first at "+e.instant(w.start))
		}
	case w.after != nil:
		parts = append(parts, e.after(w.after))
	case w.manual:
		parts = append(parts, "only when somebody runs it")
	case !w.at.IsZero():
		parts = append(parts, "once, at "+e.instant(w.at))
	default:
		said := make([]string, len(w.crons))
		for i, c := range w.crons {
			said[i] = e.cron(c)
		}
		parts = append(parts, strings.Join(said, ", and ")+", "+w.zone.String())
		if w.weeks != nil {
			parts = append(parts, e.weeks(w.weeks))
		}
		if !w.start.IsZero() {
			parts = append(parts, "from "+e.instant(w.start)+" on")
		}
	}

	if !w.end.IsZero() {
		parts = append(parts, "until "+e.instant(w.end))
	}

	switch {
	case w.fires == 1:
		parts = append(parts, "once in total")
	case w.fires > 1:
		parts = append(parts, fmt.Sprintf("%d times in total", w.fires))
	}

	if len(w.calendars) > 0 {
		parts = append(parts, e.calendars(w.calendars, w.onClosed))
	}

	if w.jitter != 0 {
		parts = append(parts, "each delayed by the job's own fixed part of "+e.duration(w.jitter))
	}

	return strings.Join(parts, "; ")
}

func (e english) calendars(names []string, closed OnClosed) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}

	noun, are := "calendar ", " is open"
	if len(names) > 1 {
		noun, are = "calendars ", " are open"
	}

	if closed.direction() != 0 {
		return fmt.Sprintf("moved to the %s open day of the %s%s", closed, noun, e.list(quoted))
	}
	return "where the " + noun + e.list(quoted) + are
}

func (e english) weeks(w *Weeks) string {
	every := "every week"
	switch {
	case w.Every == 2:
		every = "every second week"
	case w.Every > 2:
		every = fmt.Sprintf("every %s week", ordinal(w.Every))
	}
	return every + " from that of " + w.From + " on"
}

func (e english) after(a *After) string {
	if a.Gathers() {
		did := map[string]string{OnSuccess: "succeeded", OnFailure: "failed"}[a.On]
		return fmt.Sprintf("each time runs of %s have all %s within %s", e.list(a.Jobs), cmp.Or(did, "ended"),
			e.length(time.Duration(a.Within)))
	}
	does := map[string]string{OnSuccess: "succeeds", OnFailure: "fails"}[a.On]
	return fmt.Sprintf("each time a run of %s %s", strings.Join(a.Jobs, " or "), cmp.Or(does, "ends"))
}

func (e english) cron(c *cronWords) string {
	s, dated := e.times(&c.times), false
	if day, is := c.days.date(); is && len(c.months) == 1 && c.months[0].first == c.months[0].last {
		s, dated = fmt.Sprintf("%s on %d %s", s, day, time.Month(c.months[0].first)), true
	} else if !c.days.every || c.times.kind != timesHourly && !c.times.allDay() {
		s += " " + e.days(&c.days)
	}

	if c.months != nil && !dated {
		s += ", in " + e.spans(c.months, func(n int) string { return time.Month(n).String() })
	}

	if c.years != nil {
		s += ", in " + e.spans(c.years, strconv.Itoa)
	}

	return s
}

func (e english) times(t *timeWords) string {
	switch t.kind {
	case timesListed:
		list := make([]string, len(t.list))
		for i, at := range t.list {
			list[i] = e.clock(at)
		}
		return "at " + e.list(list)
	case timesEvery:
		s := "every " + e.pace(t.step)
		switch {
		case t.allDay() && t.step == 3600:
			return s + ", on the hour"
		case t.allDay() && t.step < 3600:
			return s
		}
		return s + " from " + e.clock(t.first) + " to " + e.clock(t.last)
	case timesHourly:
		return "every hour at " + e.values("minute", t.minutes)
	}

	s := e.values("minute", t.minutes) + " of " + e.values("hour", t.hours)
	if len(t.seconds) == 1 && t.seconds[0].first == 0 && t.seconds[0].last == 0 {
		return "at " + s
	}

	return "at " + e.values("second", t.seconds) + " of " + s
}

// values returns, for instance, "minutes 5 and 10 to 20", or "every minute" for nil.
func (e english) values(unit string, list []span) string {
	switch {
	case list == nil:
		return "every " + unit
	case len(list) > 1 || list[0].first != list[0].last:
		unit += "s"
	}
	return unit + " " + e.spans(list, strconv.Itoa)
}

func (e english) spans(list []span, word func(int) string) string {
	items := make([]string, len(list))
	for i, s := range list {
		items[i] = word(s.first)
		if s.last > s.first {
			items[i] += " to " + word(s.last)
		}
		if s.last > s.first && s.step > 1 {
			items[i] += fmt.Sprintf(" in steps of %d", s.step)
		}
	}

	return e.list(items)
}

func (e english) days(d *dayWords) string {
	if d.every {
		return "every day"
	}

	var said []string
	say := func(items []string, of string) {
		if items != nil {
			said = append(said, "on "+e.list(items)+of)
		}
	}

	var monthdays []string
	for _, s := range d.monthdays {
		switch first, last := "the "+ordinal(s.first), "the "+ordinal(s.last); {
		case s.first == s.last:
			monthdays = append(monthdays, first)
		case s.step == 1:
			monthdays = append(monthdays, first+" to "+last)
		default:
			monthdays = append(monthdays, "every "+ordinal(s.step)+" day from "+first+" to "+last)
		}
	}

	for _, n := range d.nearest {
		monthdays = append(monthdays, "the weekday nearest the "+ordinal(n))
	}

	if d.lastWorkday {
		monthdays = append(monthdays, "the last weekday")
	}

	if d.last {
		monthdays = append(monthdays, "the last day")
	}

	say(monthdays, " of the month")
	say(e.weekdays(d.weekdays), "")
	var nth []string
	for week, days := range d.nth {
		for _, day := range e.names(days) {
			nth = append(nth, "the "+weekOrdinals[week]+" "+day)
		}
	}

	for _, day := range e.names(d.lastOf) {
		nth = append(nth, "the last "+day)
	}

	say(nth, " of the month")
	return strings.Join(said, " and also ")
}

var weekOrdinals = [5]string{"first", "second", "third", "fourth", "fifth"}

// names lists days of the week, Monday first.
func (english) names(w weekdays) (names []string) {
	for i := range 7 {
		if d := time.Weekday((i + 1) % 7); w.has(d) {
			names = append(names, d.String())
		}
	}
	return names
}

func (e english) weekdays(w weekdays) (items []string) {
	if w == usualWork {
		return []string{"weekdays"}
	}

	var list []int
	for i := range 7 {
		if w.has(time.Weekday((i + 1) % 7)) {
			list = append(list, i+1)
		}
	}

	for _, s := range spans(list) {
		item := time.Weekday(s.first%7).String() + "s"
		if s.last > s.first {
			item += " to " + time.Weekday(s.last%7).String() + "s"
		}
		items = append(items, item)
	}

	return items
}

func (english) list(items []string) string {
	if n := len(items); n > 1 {
		return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
	}
	return items[0]
}

func ordinal(n int) string {
	suffix := "th"
	if n/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}

	return strconv.Itoa(n) + suffix
}

// clock returns a time of day. The seconds are left out if they are zero.
func (english) clock(at int) string {
	s := fmt.Sprintf("%02d:%02d", at/3600, at/60%60)
	if at%60 != 0 {
		s += fmt.Sprintf(":%02d", at%60)
	}
	return s
}

// pace returns an interval: "minute", "15 minutes", "90 seconds".
func (english) pace(seconds int) string {
	n, unit := seconds, "second"
	switch {
	case n%3600 == 0:
		n, unit = n/3600, "hour"
	case n%60 == 0:
		n, unit = n/60, "minute"
	}

	if n == 1 {
		return unit
	}

	return fmt.Sprintf("%d %ss", n, unit)
}

// length is like duration, but writes the number of a single unit: "1 hour".
func (e english) length(d time.Duration) string {
	said := e.duration(d)
	if said[0] < '0' || said[0] > '9' {
		said = "1 " + said
	}
	return said
}

// duration returns a length of time, to the microsecond: "1 hour and 30 minutes".
func (e english) duration(d time.Duration) string {
	var items []string
	for _, u := range []struct {
		unit string
		size time.Duration
	}{{"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}, {"millisecond", time.Millisecond},
		{"microsecond", time.Microsecond}, {"nanosecond", 1}} {
		n := d / u.size
		if d -= n * u.size; n == 0 {
			continue
		}
		item := fmt.Sprintf("%d %s", n, u.unit)
		if n > 1 {
			item += "s"
		}
		items = append(items, item)
	}

	if len(items) == 1 && strings.HasPrefix(items[0], "1 ") {
		return items[0][2:]
	}

	return e.list(items)
}

func (english) instant(t time.Time) string {
	name := t.Location().String()
	if name != "UTC" {
		name = t.Format("-07:00") + " " + name // tells the passes of a repeated hour apart
	}
	return t.Format("2006-01-02 15:04:05.999999") + " " + name
}
