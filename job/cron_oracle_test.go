package job

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The oracle knows cron and the DST rule by brute force and shares no code with the package: it
// reads the wall clock of every instant of a window and compares field by field. It takes valid
// expressions of 5 or 7 fields, and 6 with the second first.
type oracle struct {
	fields  [7]string // second … year, upper case
	elapsed bool
	as      []time.Weekday // what every day is, whatever it is; nil: itself
}

func newOracle(expr string) oracle {
	words := strings.Fields(strings.ToUpper(expr))
	switch len(words) {
	case 5:
		words = append(append([]string{"0"}, words...), "*")
	case 6:
		words = append(words, "*")
	}

	o := oracle{fields: [7]string(words)}
	for _, f := range o.fields[:3] {
		o.elapsed = o.elapsed || f[0] == '*' || f[0] == '?'
	}

	return o
}

func (o oracle) matches(t time.Time) bool {
	return oracleValue(o.fields[0], t.Second(), 0, 59) && oracleValue(o.fields[1], t.Minute(), 0, 59) &&
		oracleValue(o.fields[2], t.Hour(), 0, 23) && oracleValue(o.fields[4], int(t.Month()), 1, 12) &&
		oracleValue(o.fields[6], t.Year(), 1970, 2099) && o.day(t)
}

func (o oracle) day(t time.Time) bool {
	free := func(f string) bool {
		items := strings.Split(f, ",")
		return slices.Contains(items, "*") || slices.Contains(items, "?")
	}

	dom := func() bool { return oracleDay(o.fields[3], t) }
	dow := func() bool { return o.weekday(t) }
	switch {
	case free(o.fields[3]) && free(o.fields[5]):
		return true
	case free(o.fields[3]):
		return dow()
	case free(o.fields[5]):
		return dom()
	}

	return dom() || dow()
}

var oracleNames = map[string]int{
	"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6, "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11,
	"DEC": 12,
	"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6,
}

func oracleNumber(s string) int {
	if n, ok := oracleNames[s]; ok {
		return n
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("the oracle can't read " + s)
	}
	return n
}

// oracleValue reports whether v is in a list of values, ranges and steps between lo and hi.
func oracleValue(field string, v, lo, hi int) bool {
	for _, item := range strings.Split(field, ",") {
		if item == "*" || item == "?" {
			return true
		}
		body, step := item, 1
		if i := strings.Index(item, "/"); i >= 0 {
			body, step = item[:i], oracleNumber(item[i+1:])
		}
		a, b := lo, hi
		if i := strings.Index(body, "-"); i >= 0 {
			a, b = oracleNumber(body[:i]), oracleNumber(body[i+1:])
			if body[i+1:] == "SUN" && a > 0 {
				b = 7
			}
		} else if body != "*" {
			a = oracleNumber(body)
			if step == 1 && !strings.Contains(item, "/") {
				b = a
			}
		}
		for n := a; n <= b; n += step {
			if n == v {
				return true
			}
		}
	}

	return false
}

func oracleDay(field string, t time.Time) bool {
	last := time.Date(t.Year(), t.Month()+1, 0, 12, 0, 0, 0, time.UTC)
	for _, item := range strings.Split(field, ",") {
		switch {
		case item == "L":
			if t.Day() == last.Day() {
				return true
			}
		case strings.HasSuffix(item, "W"):
			day := last
			if item != "LW" {
				n := oracleNumber(strings.TrimSuffix(item, "W"))
				if n > last.Day() {
					continue
				}
				day = time.Date(t.Year(), t.Month(), n, 12, 0, 0, 0, time.UTC)
			}
			// The nearest weekday of the same month: one day away, or two at the month's edge.
			for _, away := range []int{0, -1, 1, 2, -2} {
				near := day.AddDate(0, 0, away)
				if near.Month() == day.Month() && near.Weekday() != time.Saturday && near.Weekday() != time.Sunday {
					if near.Day() == t.Day() {
						return true
					}
					break
				}
			}
		case oracleValue(item, t.Day(), 1, 31):
			return true
		}
	}

	return false
}

// weekday reports whether the day-of-week field matches a day, or all weekdays that it counts as.
func (o oracle) weekday(t time.Time) bool {
	if o.as == nil {
		return oracleWeekday(o.fields[5], t, int(t.Weekday()))
	}
	field := o.fields[5]
	if len(o.as) > 1 { // the second Friday is no working day
		field = strings.Join(slices.DeleteFunc(strings.Split(field, ","),
			func(item string) bool { return strings.ContainsAny(item, "#L") }), ",")
	}
	return field != "" && !slices.ContainsFunc(o.as, func(d time.Weekday) bool {
		return !oracleWeekday(field, t, int(d))
	})
}

func oracleWeekday(field string, t time.Time, day int) bool {
	last := time.Date(t.Year(), t.Month()+1, 0, 12, 0, 0, 0, time.UTC).Day()
	for _, item := range strings.Split(field, ",") {
		switch {
		case strings.Contains(item, "#"):
			i := strings.Index(item, "#")
			if oracleNumber(item[:i])%7 == day && (t.Day()+6)/7 == oracleNumber(item[i+1:]) {
				return true
			}
		case strings.HasSuffix(item, "L"):
			if oracleNumber(strings.TrimSuffix(item, "L"))%7 == day && t.Day() > last-7 {
				return true
			}
		case oracleValue(item, day, 0, 6), day == 0 && oracleValue(item, 7, 0, 6):
			return true
		}
	}

	return false
}

// window holds a zone's wall clock at each step of [from, to), in Unix seconds, with a margin on
// both sides. Every change in it happens at a multiple of the step.
type window struct {
	from, to, step int64
	civil          []int64 // of the instants from-margin, from-margin+step, …
	margin         int64
}

func newWindow(loc *time.Location, from, to, step, margin int64) window {
	w := window{from: from, to: to, step: step, margin: margin}
	for t := from - margin; t < to+margin; t += step {
		at := time.Unix(t, 0).In(loc)
		shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
		w.civil = append(w.civil, shown.Unix())
	}
	return w
}

// fires returns the due instants in [from, to).
func (w window) fires(o oracle) []int64 {
	first := map[int64]int64{} // civil time → the first instant that shows it
	fires := map[int64]bool{}
	for i, civil := range w.civil {
		t := w.from - w.margin + int64(i)*w.step
		if _, ok := first[civil]; !ok {
			first[civil] = t
		}
		if o.elapsed && o.matches(time.Unix(civil, 0).UTC()) {
			fires[t] = true
		}
	}

	if !o.elapsed {
		for civil := w.civil[0]; civil < w.civil[len(w.civil)-1]; civil += w.step {
			if !o.matches(time.Unix(civil, 0).UTC()) {
				continue
			}
			t, shown := first[civil]
			if !shown { // a gap's end is the first instant that shows a later time
				i := slices.IndexFunc(w.civil, func(c int64) bool { return c > civil })
				t = w.from - w.margin + int64(i)*w.step
			}
			fires[t] = true
		}
	}

	var list []int64
	for t := range fires {
		if w.from <= t && t < w.to {
			list = append(list, t)
		}
	}

	slices.Sort(list)
	return list
}

// transitionsOf finds where the offset of a zone changes in [from, to), by trying every half day.
func transitionsOf(loc *time.Location, from, to time.Time) (at []int64) {
	offset := func(t int64) int { _, o := time.Unix(t, 0).In(loc).Zone(); return o }
	for t := from.Unix(); t < to.Unix(); t += 12 * 3600 {
		lo, hi := t, t+12*3600
		if offset(lo) == offset(hi) {
			continue
		}
		for hi-lo > 1 {
			if m := (lo + hi) / 2; offset(m) == offset(lo) {
				lo = m
			} else {
				hi = m
			}
		}
		at = append(at, hi)
	}

	return at
}
