package job

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job/problem"
)

// Bounds of calendars.
const (
	MaxCalendars     = 8        // per job
	MaxCalendarDays  = 10_000   // entries per calendar, exclude and include together
	MaxCalendarHours = 24       // lines of weekly hours, per kind
	MaxCalendarSpans = 96       // openings per day: one every quarter of an hour
	MaxCalendarNote  = 256      // bytes
	MaxCalendarSize  = 1 << 20  // bytes of a stored calendar, and of an imported file
	maxCalendarWords = 16 << 10 // bytes of weekday and hours lines together
)

// CalendarSpec is the definition of a calendar as people write it. A job that names the calendar
// has due times only on the calendar's days and within its hours.
//
// A calendar judges the due time that the schedule gives, before the job's jitter is added. A day
// is closed if exclude or exclude_weekdays names it. An entry in include opens the day again, but
// only in the same calendar. If a job names several calendars, all must be open.
//
// An included day can count as another day of the week (see CalendarDay.As), for example a make-up
// workday. This applies to the job's schedule, and to the weekdays and hours of all of the job's
// calendars.
type CalendarSpec struct {
	Name        string `json:"name" doc:"Its name, which cannot be changed."`
	Description string `json:"description,omitempty" doc:"A description, for people."`
	Timezone    string `json:"timezone,omitempty" doc:"The time zone of its days. Without it, the time zone of each job."`

	Exclude         []CalendarDay `json:"exclude,omitempty" doc:"Days that are closed."`
	ExcludeWeekdays []string      `json:"exclude_weekdays,omitempty" doc:"Days of the week that are closed, such as 'sat'."`
	Hours           CalendarHours `json:"hours,omitzero" doc:"The hours at which it is open."`
	Include         []CalendarDay `json:"include,omitempty" doc:"Days that are open although the calendar excludes them."`
}

// CalendarDay is a single day, or all days from Date to End, both included. The dates have a year
// (2027-02-06), or repeat every year (12-25). If several entries of a list name a day, entries with
// a year win. Among these, the first entry wins.
type CalendarDay struct {
	Date string `json:"date" doc:"The day, such as '2027-02-06', or '12-25' for every year."`
	End  string `json:"end,omitempty" doc:"The last day of a range, inclusive."`
	// As says how an included day counts. mon … sun: as that weekday. workday: as a working day, so
	// that rules for every working day hold on it. Default: as workday if the calendar closes its
	// weekday, otherwise as its own weekday. Closed weekdays are those in exclude_weekdays, or
	// Saturday and Sunday if that is empty.
	As   string `json:"as,omitempty" doc:"For an included day: the day of the week that it counts as, 'mon' to 'sun', or 'workday'. Without it, 'workday' if its weekday is off: a make-up workday."`
	Note string `json:"note,omitempty" doc:"A note such as the name of the holiday, shown wherever the day matters."`
}

// CalendarHours are weekly hours. Each line gives days of the week and times, such as "mon-fri
// 08:00-18:00". The first minute is open. The last minute is closed: a due time at 18:00 is
// outside.
type CalendarHours struct {
	Only   []string `json:"only,omitempty" doc:"Open only in these hours, such as 'mon-fri 08:00-18:00'. The end is exclusive."`
	Except []string `json:"except,omitempty" doc:"Closed in these hours."`
}

// asWorkday is the value of As for a day that counts as a working day.
const asWorkday = "workday"

// Defaults converts fields that can be written in several ways to their stored form.
func (c *CalendarSpec) Defaults() {
	c.Timezone = canonicalZone(c.Timezone)
	if w, err := parseWeekdayList(c.ExcludeWeekdays); err == nil {
		c.ExcludeWeekdays = w.list()
	}

	for _, list := range [][]CalendarDay{c.Exclude, c.Include} {
		for i := range list {
			if d, ok := parseWeekday(list[i].As); ok {
				list[i].As = weekdayTexts[d]
			} else if strings.EqualFold(list[i].As, asWorkday) {
				list[i].As = asWorkday
			}
			if list[i].End == list[i].Date {
				list[i].End = ""
			}
		}
	}
}

func parseWeekdayList(list []string) (weekdays, error) {
	var all weekdays
	for _, item := range list {
		w, err := parseWeekdays(item)
		if err != nil {
			return 0, err
		}
		all |= w
	}
	return all, nil
}

// Validate returns all problems of a definition, as Problems, or nil.
func (c *CalendarSpec) Validate() error {
	_, err := c.Compile()
	return err
}

// Compile makes a calendar from the definition. Errors are Problems. The calendar keeps a reference
// to the definition, so the definition must not be changed afterwards.
func (c *CalendarSpec) Compile() (*Calendar, error) {
	var p Problems
	checkName(&p, "name", c.Name)
	checkText(&p, "description", c.Description, MaxText)
	if n := len(c.Exclude) + len(c.Include); n > MaxCalendarDays {
		p.Add("exclude", problem.CalendarEntries, n, MaxCalendarDays)
		return nil, p
	}

	out := &Calendar{name: c.Name, spec: c}
	if c.Timezone != "" {
		zone, err := LoadZone(c.Timezone)
		if err != nil {
			p.Put("timezone", problem.Of(err))
		}
		out.zone = zone
	}

	out.weeklyRules(c, &p)
	out.exclude = newDaySet(c.Exclude, "exclude", &p)
	out.include = newDaySet(c.Include, "include", &p)
	out.lend(&p)
	text, err := c.Encode()
	if err != nil || len(text) > MaxCalendarSize {
		p.Add("calendar", problem.TooManyBytes.Advise("shorten the notes"), len(text), MaxCalendarSize)
	}

	out.digest = sha256.Sum256([]byte(text))
	if p != nil {
		return nil, p
	}

	return out, nil
}

// weeklyRules reads the rules that repeat every week.
func (c *Calendar) weeklyRules(s *CalendarSpec, p *Problems) {
	size := 0
	for _, list := range [][]string{s.ExcludeWeekdays, s.Hours.Only, s.Hours.Except} {
		for _, line := range list {
			size += len(line)
		}
	}

	if size > maxCalendarWords {
		p.Add("hours", problem.HoursTooLong, size, maxCalendarWords)
		return
	}

	for i, item := range s.ExcludeWeekdays {
		w, err := parseWeekdays(item)
		if err != nil {
			p.Put(fmt.Sprintf("exclude_weekdays[%d]", i), problem.Of(err))
		}
		c.off |= w
	}

	c.work = allWeekdays &^ c.off
	if c.off == 0 {
		c.work = usualWork
	}

	c.hours = len(s.Hours.Only)+len(s.Hours.Except) > 0
	if len(s.Hours.Only) == 0 {
		for d := range c.open {
			c.open[d] = allMinutes()
		}
	}

	c.windows(s.Hours.Only, "hours.only", p, func(word, window uint64) uint64 { return word | window })
	c.windows(s.Hours.Except, "hours.except", p, func(word, window uint64) uint64 { return word &^ window })
	if n := c.windowsADay(); n > MaxCalendarSpans {
		p.Add("hours", problem.HoursTooMany, n, MaxCalendarSpans)
	}
}

// windowsADay returns the largest number of openings on one day of the week.
func (c *Calendar) windowsADay() (most int) {
	if !c.hours {
		return 0
	}
	for d := range c.open {
		most = max(most, len(c.open.stretches(onlyWeekday(time.Weekday(d)))))
	}
	return most
}

func (c *Calendar) windows(lines []string, field string, p *Problems, apply func(word, window uint64) uint64) {
	if len(lines) > MaxCalendarHours {
		p.Add(field, problem.TooMany.Advise("one line may name several days and times"), len(lines), MaxCalendarHours)
		return
	}

	for i, line := range lines {
		o, err := parseWindow(line)
		if err != nil {
			p.Put(fmt.Sprintf("%s[%d]", field, i), problem.Of(err))
			continue
		}
		for d := range c.open {
			for j := range c.open[d] {
				c.open[d][j] = apply(c.open[d][j], o[d][j])
			}
		}
	}
}

// lend reads the As of included days. It lists the days that count as another weekday.
func (c *Calendar) lend(p *Problems) {
	list := c.spec.Include
	c.as = make([]weekdays, len(list))
	for i, e := range list {
		switch d, ok := parseWeekday(e.As); {
		case ok:
			c.as[i] = onlyWeekday(d)
		case e.As == asWorkday:
			c.as[i] = c.work
		case e.As != "":
			p.Add(fmt.Sprintf("include[%d].as", i), problem.NotOneOf, shorten(e.As),
				"mon, tue, wed, thu, fri, sat, sun, workday")
		}
	}

	for i, e := range c.spec.Exclude {
		if e.As != "" {
			p.Add(fmt.Sprintf("exclude[%d].as", i), problem.AsOfClosedDay)
		}
	}

	if *p != nil {
		return
	}

	c.include.each(func(day int64, entry int) {
		if c.lentBy(day, entry) != 0 {
			c.lent = append(c.lent, int32(day))
		}
	})
}

// Encode returns the definition as it is stored, in JSON.
func (c *CalendarSpec) Encode() (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

// DecodeCalendar reads the output of Encode. An unknown field is an error: a newer version has
// written it. If the field were ignored, jobs would be due at times that the calendar closes.
func DecodeCalendar(text string) (CalendarSpec, error) {
	var c CalendarSpec
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return CalendarSpec{}, fmt.Errorf("stored calendar: %w", err)
	}
	return c, nil
}

// Calendar is a compiled definition. It is immutable and safe for concurrent use.
type Calendar struct {
	name   string
	digest [sha256.Size]byte
	spec   *CalendarSpec
	zone   *time.Location // nil: the caller's

	exclude, include daySet
	off, work        weekdays   // closed by weekday; the working days of the week
	as               []weekdays // by entry of include: the weekdays it counts as; empty: its own, or the default
	lent             []int32    // days that count as others, sorted
	hours            bool       // it has weekly hours
	open             openHours
}

// Name returns the name.
func (c *Calendar) Name() string { return c.name }

// Spec returns the definition, which is read-only.
func (c *Calendar) Spec() *CalendarSpec { return c.spec }

// Digest returns the hash of the definition's stored form. Calendars with equal digests are equal.
func (c *Calendar) Digest() [sha256.Size]byte { return c.digest }

// civilOf returns what the wall clock of a zone shows at an instant. Both are in seconds.
func civilOf(zone *time.Location, t int64) int64 {
	_, offset := time.Unix(t, 0).In(zone).Zone()
	return t + int64(offset)
}

// lends returns the weekdays that a day counts as. The empty set means the day's own weekday.
func (c *Calendar) lends(day int64) weekdays {
	if entry := c.include.at(day); entry >= 0 {
		return c.lentBy(day, entry)
	}
	return 0
}

func (c *Calendar) lentBy(day int64, entry int) weekdays {
	own := onlyWeekday(weekdayOf(day))
	switch {
	case c.as[entry] == own:
		return 0
	case c.as[entry] != 0:
		return c.as[entry]
	case own&c.work == 0:
		return c.work // if the calendar closes every weekday, this is empty, and the day counts as itself
	}

	return 0
}

// at reports whether a minute of a day is open, and until which minute that stays so. as holds the
// weekdays that the day counts as. If as is empty, the day counts as its own weekday. The minute is
// open only if it is open on each of the weekdays.
func (c *Calendar) at(day int64, minute int, as weekdays) (open bool, until int) {
	if as == 0 {
		as = onlyWeekday(weekdayOf(day))
	}

	if c.include.at(day) < 0 && (c.exclude.at(day) >= 0 || c.off&as != 0) {
		return false, minutesPerDay
	}

	if !c.hours {
		return true, minutesPerDay
	}

	return c.open.at(as, minute)
}

// shutUntil returns the first day, from day on, that no dated exclusion closes. If all days before
// limit are closed, it returns limit.
func (c *Calendar) shutUntil(day, limit int64) int64 {
	for limit = min(limit, lastCalendarDay); day < limit && c.exclude.at(day) >= 0 && c.include.at(day) < 0; {
		day++
	}
	return day
}

// why gives the reason for which a closed minute is closed.
func (c *Calendar) why(day int64, as weekdays) string {
	own := weekdayOf(day)
	if entry := c.exclude.at(day); entry >= 0 && c.include.at(day) < 0 {
		return noteOf(c.spec.Exclude[entry])
	}

	if as == 0 && c.include.at(day) < 0 && c.off.has(own) {
		return own.String() + " is off"
	}

	if as == 0 {
		as = onlyWeekday(own)
	}

	if c.include.at(day) < 0 && c.off&as != 0 {
		return fmt.Sprintf("the day counts as %s, and %s is off", as, c.off&as)
	}

	hours := c.open.stretches(as)
	if len(hours) == 0 {
		return "no hour of the day is open"
	}

	return "the hours of the day are " + strings.Join(hours, ", ")
}

// noteOf returns the note of an entry. For an entry without a note it returns the dates.
func noteOf(e CalendarDay) string {
	switch {
	case e.Note != "":
		return e.Note
	case e.End != "":
		return e.Date + " to " + e.End
	}
	return e.Date
}

// DayState is the state of a day in a calendar.
type DayState struct {
	Date    string   `json:"date" format:"date" doc:"The day."`
	Weekday string   `json:"weekday" doc:"Its day of the week."`
	State   string   `json:"state" enum:"open,closed,makeup" doc:"The state of the day."`
	As      string   `json:"as,omitempty" doc:"The days of the week that a make-up day counts as."`
	Hours   []string `json:"hours,omitempty" doc:"When it is open, if not all day."`
	Why     string   `json:"why,omitempty" doc:"The note of the entry that decides it, or the rule."`
}

// The states of a day.
const (
	DayOpen   = "open"
	DayClosed = "closed"
	DayMakeup = "makeup"
)

// Days lists n days from a date such as 2027-02-06 on. Only this calendar counts.
func (c *Calendar) Days(date string, n int) ([]DayState, error) {
	first, yearly, err := parseDate(date)
	if err != nil || yearly {
		return nil, problem.Errorf(problem.NotADateWithYear, shorten(date), firstYear, lastYear)
	}
	out := []DayState{}
	for day := first; day < min(first+int64(n), lastCalendarDay+1); day++ {
		out = append(out, c.state(day))
	}
	return out, nil
}

func (c *Calendar) state(day int64) DayState {
	as := c.lends(day)
	s := DayState{Date: dateText(day), Weekday: weekdayTexts[weekdayOf(day)], State: DayOpen}
	if entry := c.include.at(day); entry >= 0 {
		s.Why = c.spec.Include[entry].Note
	}

	effective := as
	if as != 0 {
		s.State, s.As = DayMakeup, as.String()
	} else {
		effective = onlyWeekday(weekdayOf(day))
	}

	open, until := c.at(day, 0, as)
	if open && until == minutesPerDay {
		return s
	}

	if until < minutesPerDay {
		s.Hours = c.open.stretches(effective)
		return s
	}

	return DayState{Date: s.Date, Weekday: s.Weekday, State: DayClosed, Why: c.why(day, as)}
}

// AddDays adds entries to a list. If the list already has the same entry, only the note is
// replaced.
func AddDays(list, more []CalendarDay) []CalendarDay {
	out := slices.Clone(list)
	seen := map[CalendarDay]int{}
	for i, d := range out {
		d.Note = ""
		seen[d] = i
	}

	for _, d := range more {
		key := d
		key.Note = ""
		if i, there := seen[key]; there {
			if d.Note != "" {
				out[i].Note = d.Note
			}
			continue
		}
		seen[key] = len(out)
		out = append(out, d)
	}

	return out
}
