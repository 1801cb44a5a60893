package job

import (
	"strings"
	"time"
)

// Language is a language for schedules in words, by its BCP 47 tag.
type Language string

// The languages. English is the fallback.
const (
	English Language = "en"
	Chinese Language = "zh" // simplified
)

// LanguageOf picks the first known language in an Accept-Language header. Browsers list languages
// by preference, so other weights do not matter. A language with weight zero is refused.
func LanguageOf(accept string) Language {
	for part := range strings.SplitSeq(accept, ",") {
		tag, weight, _ := strings.Cut(part, ";")
		first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if _, known := tongues[Language(first)]; known && strings.Trim(weight, " q=0.") != "" || known && weight == "" {
			return Language(first)
		}
	}
	return English
}

// tongue writes schedules in one language. Its input is the same for every language. So a new
// language needs only a tongue and a line in tongues.
type tongue interface {
	schedule(w *scheduleWords) string
}

var tongues = map[Language]tongue{English: english{}, Chinese: chinese{}}

// Words describes in plain words when a job is due: "at 03:00 on weekdays, Europe/Berlin". The
// description is complete: two definitions with the same words have the same due times, except for
// clock changes, the content of the named calendars, and jitter. For an invalid definition it
// returns "". For an unknown language it returns English.
func (s *Spec) Words(l Language) string {
	w, ok := s.inWords()
	if !ok {
		return ""
	}
	t, ok := tongues[l]
	if !ok {
		t = tongues[English]
	}
	return t.schedule(w)
}

// scheduleWords is the content of a description. One of crons, every, at, delay and after is set.
type scheduleWords struct {
	crons []*cronWords
	every time.Duration
	at    time.Time
	delay time.Duration
	after *After

	manual bool

	zone      *time.Location // of crons and of the instants
	start     time.Time      // the first due time, for every and delay
	end       time.Time
	fires     int64
	jitter    time.Duration
	calendars []string
	onClosed  OnClosed
	weeks     *Weeks // of crons; nil: all
}

func (s *Spec) inWords() (*scheduleWords, bool) {
	if _, err := s.uncalendared().Compile(); err != nil {
		return nil, false
	}

	zone, err := LoadZone(s.Timezone)
	if err != nil {
		return nil, false
	}

	w := &scheduleWords{
		every: time.Duration(s.Every), delay: time.Duration(s.Delay), after: s.After, zone: zone,
		fires: s.MaxFires, jitter: time.Duration(s.Jitter),
		calendars: s.Calendars, onClosed: s.OnClosed, weeks: s.Weeks, manual: s.Manual,
	}
	for _, set := range []struct {
		from *time.Time
		to   *time.Time
	}{{s.At, &w.at}, {s.Start, &w.start}, {s.End, &w.end}} {
		if set.from != nil {
			*set.to = set.from.In(zone)
		}
	}

	exprs := s.Schedules
	if s.Schedule != "" {
		exprs = []string{s.Schedule}
	}

	for _, expr := range exprs {
		c, err := ParseCron(expr, zone)
		if err != nil {
			return nil, false
		}
		w.crons = append(w.crons, c.inWords())
	}

	return w, true
}

// cronWords describes a cron expression: the days, and the times on these days.
type cronWords struct {
	times  timeWords
	days   dayWords
	months []span // nil: all
	years  []span // nil: all
}

func (c *Cron) inWords() *cronWords {
	f := &c.fields
	return &cronWords{
		times: f.timesInWords(), days: f.daysInWords(), months: f[monthAt].restricted(), years: f[yearAt].restricted(),
	}
}

// restricted returns the field's values as spans. If the field has all values, it returns nil.
func (f *cronField) restricted() []span {
	size := f.kind.max - f.kind.min + 1
	if int(f.values.below(size)) == size {
		return nil
	}
	return spans(f.members())
}

// members lists the field's values in order.
func (f *cronField) members() []int {
	var out []int
	for i := range f.kind.max - f.kind.min + 1 {
		if f.values.has(i) {
			out = append(out, i+f.kind.min)
		}
	}
	return out
}

// The fewest members of a span: 3 to 5, and 0 to 40 in steps of 10.
const (
	leastRange = 3
	leastSteps = 5
)

// spans splits an increasing list greedily into few spans.
func spans(list []int) []span {
	var out []span
	for i := 0; i < len(list); {
		n, step := 1, 1
		if i+1 < len(list) {
			step = list[i+1] - list[i]
			for n = 2; i+n < len(list) && list[i+n]-list[i+n-1] == step; n++ {
			}
		}
		if step == 1 && n < leastRange || step > 1 && n < leastSteps {
			n, step = 1, 1
		}
		out = append(out, span{list[i], list[i+n-1], step})
		i += n
	}

	return out
}

// timeKind is a way to describe the times of a day.
type timeKind int

const (
	timesListed timeKind = iota // every time by itself
	timesEvery                  // first to last in equal steps
	timesHourly                 // some minutes of every hour
	timesFields                 // hours, minutes and seconds separately
)

// timeWords describes the times of a day, in seconds of the wall clock since midnight.
type timeWords struct {
	kind  timeKind
	list  []int
	step  int
	first int
	last  int

	// Nil means all.
	seconds, minutes, hours []span
}

// allDay reports whether the times go on at the same pace across midnight.
func (t *timeWords) allDay() bool {
	return t.kind == timesEvery && t.first == 0 && t.last+t.step == secondsPerDay
}

// mostListed is how many times of a day are listed one by one.
const mostListed = 6

func (c *cronFields) timesInWords() timeWords {
	seconds, minutes, hours := c[secondAt].members(), c[minuteAt].members(), c[hourAt].members()
	n := len(seconds) * len(minutes) * len(hours)
	w := timeWords{}
	if n <= mostListed {
		eachTime(hours, minutes, seconds, func(at int) bool { w.list = append(w.list, at); return true })
		return w
	}

	step, even := pace(hours, minutes, seconds)
	w.step, w.first, w.last = step, timeOf(hours[0], minutes[0], seconds[0]),
		timeOf(hours[len(hours)-1], minutes[len(minutes)-1], seconds[len(seconds)-1])
	w.kind = timesEvery
	onTheMinute := len(seconds) == 1 && seconds[0] == 0
	switch {
	case even && w.allDay():
		return w
	case onTheMinute && len(hours) == 24:
		w.kind, w.minutes = timesHourly, spans(minutes)
		return w
	case even:
		return w
	}

	w.kind = timesFields
	w.seconds, w.minutes, w.hours = c[secondAt].restricted(), c[minuteAt].restricted(), c[hourAt].restricted()
	return w
}

func timeOf(hour, minute, second int) int { return (hour*60+minute)*60 + second }

// eachTime calls fn with the times in order, until fn returns false.
func eachTime(hours, minutes, seconds []int, fn func(at int) bool) {
	for _, h := range hours {
		for _, m := range minutes {
			for _, s := range seconds {
				if !fn(timeOf(h, m, s)) {
					return
				}
			}
		}
	}
}

// pace reports whether the times of a day have equal distances. It also returns the distance in
// seconds.
func pace(hours, minutes, seconds []int) (step int, even bool) {
	last, even := -1, true
	eachTime(hours, minutes, seconds, func(at int) bool {
		switch {
		case last < 0:
		case step == 0:
			step = at - last
		default:
			even = at-last == step
		}
		last = at
		return even
	})

	return step, even
}

// dayWords describes the matching days. A day matches if at least one of the fields matches.
type dayWords struct {
	every bool // all days; no other field is set

	monthdays         []span // of the month
	nearest           []int  // these dates, moved to the nearest Monday to Friday
	last, lastWorkday bool   // of the month

	weekdays weekdays
	nth      [5]weekdays // of the month: the first to the fifth such day
	lastOf   weekdays    // of the month: the last such day
}

func (c *cronFields) daysInWords() dayWords {
	var w dayWords
	dom, dow := &c[domAt], &c[dowAt]
	if dom.any && dow.any || !dom.any && dom.values.below(31) == 31 || !dow.any && dow.values.below(7) == 7 {
		w.every = true // a match of either field suffices, even if both are restricted
		return w
	}

	if !dom.any {
		w.monthdays = spans(dom.members())
		w.last, w.lastWorkday = dom.lastDay, dom.lastWorkday
		for i := range 31 {
			if dom.nearest.has(i) {
				w.nearest = append(w.nearest, i+1)
			}
		}
	}

	if !dow.any {
		w.weekdays, w.lastOf = weekdays(dow.values[0]), weekdays(dow.lastOf[0])
		for i := range w.nth {
			w.nth[i] = weekdays(dow.nth[i][0])
		}
	}

	return w
}

// date returns the day of the month, if only that day matches.
func (d *dayWords) date() (day int, is bool) {
	if len(d.monthdays) != 1 || d.monthdays[0].first != d.monthdays[0].last || d.nearest != nil || d.last ||
		d.lastWorkday {
		return 0, false
	}
	if d.weekdays|d.lastOf != 0 || d.nth != [5]weekdays{} {
		return 0, false
	}
	return d.monthdays[0].first, true
}
