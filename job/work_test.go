package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// minuteWindows makes a calendar with n openings a day, each a minute long, even where Compile
// would refuse it.
func minuteWindows(t testing.TB, n int) *Calendar {
	t.Helper()
	spec := CalendarSpec{Name: "windows", Timezone: "UTC"}
	c, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}

	c.hours = true
	var p Problems
	for d := range c.open {
		c.open[d] = openHours{}[d]
	}

	for at := 0; at < n*2; at += 2 {
		line := fmt.Sprintf("%02d:%02d-%02d:%02d", at/60, at%60, (at+1)/60, (at+1)%60)
		c.windows([]string{line}, "hours.only", &p, func(word, window uint64) uint64 { return word | window })
	}

	if p != nil {
		t.Fatal(p)
	}

	return c
}

// expensive is a definition of the kind that once made healthy starts 10 s late.
func expensive() *Spec {
	start := time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Spec{
		App: "a", Name: "n", Schedule: "* * * * * *", Timezone: "UTC", Start: &start, MaxFires: 1_000_000_000,
		Calendars: []string{"windows"},
	}
}

var workNow = time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)

// TestWorkIsBounded asks everything of an expensive schedule: no answer costs more than the budget.
func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	c := minuteWindows(t, 720)
	s, err := expensive().Compile(c)
	if err != nil {
		t.Fatal(err)
	}

	for name, ask := range map[string]func(s Schedule){
		"next":    func(s Schedule) { s.Next(workNow) },
		"last":    func(s Schedule) { s.Last(time.Unix(0, 0), workNow) },
		"count":   func(s Schedule) { s.Count(time.Unix(0, 0), workNow) },
		"preview": func(s Schedule) { Preview(s, workNow, 1000) },
	} {
		w := NewWork(t.Context(), DefiningWork)
		ask(w.On(s))
		if err := w.Err(); !errors.Is(err, ErrTooExpensive) {
			t.Errorf("%s: got %v after %d units, want that it is too expensive", name, err, w.Spent())
		}
		if w.Spent() > DefiningWork+10 {
			t.Errorf("%s: it cost %d units, the budget was %d", name, w.Spent(), DefiningWork)
		}
	}
}

// TestWorkOfHonestSchedules: a budget changes no answer of a schedule that people have.
func TestWorkOfHonestSchedules(t *testing.T) {
	t.Parallel()
	start := workNow.AddDate(-5, 0, 0)
	hours := CalendarSpec{Name: "hours", Hours: CalendarHours{Only: []string{"mon-fri 08:00-12:00,13:00-18:00"}}}
	c, err := hours.Compile()
	if err != nil {
		t.Fatal(err)
	}

	for name, spec := range map[string]*Spec{
		"each minute of office hours, counted for five years": {
			Schedule: "* * * * *", Timezone: "Europe/Berlin", Start: &start, MaxFires: 10_000_000,
		},
		"three expressions": {
			Schedules: []string{"0 9 * * *", "30 10 * * mon", "0 0 17 L * *"}, Timezone: "Europe/Berlin",
		},
		"never in its hours": {Schedule: "0 3 * * *", Timezone: "Europe/Berlin"},
	} {
		spec.App, spec.Name, spec.Calendars = "a", "n", []string{"hours"}
		s, err := spec.Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWork(t.Context(), DefiningWork)
		got, want := Preview(w.On(s), workNow, 100), Preview(s, workNow, 100)
		if err := w.Err(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v after %d units and\n%v, want\n%v", name, err, w.Spent(), got, want)
		}
	}
}

// TestWorkEndsWithItsContext: the computation stops when the client hangs up.
func TestWorkEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := expensive().Compile(minuteWindows(t, 720))
	if err != nil {
		t.Fatal(err)
	}

	ctx, hangUp := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	hangUp(gone)
	w := NewWork(ctx, 1<<60)
	w.On(s).Next(workNow)
	if !errors.Is(w.Err(), gone) || w.Spent() > 2*ctxEvery {
		t.Errorf("got %v after %d units; want %v after few", w.Err(), w.Spent(), gone)
	}
}

// TestPartsOfWork: a part ends with itself, and with the whole.
func TestPartsOfWork(t *testing.T) {
	t.Parallel()
	w := NewWork(t.Context(), 10)
	a, b := w.Part(6), w.Part(6)
	if !a.spend(6) || a.spend(1) || w.Err() != nil {
		t.Errorf("the first part: %v, of the whole %v", a.Err(), w.Err())
	}
	if b.spend(5) || !errors.Is(b.Err(), ErrTooExpensive) || !errors.Is(w.Err(), ErrTooExpensive) {
		t.Errorf("the second part: %v, of the whole %v", b.Err(), w.Err())
	}

	var none *Work
	if !none.spend(1<<60) || none.Err() != nil {
		t.Error("no work bounds something")
	}
}

// affordable previews a definition within the budget of a request that defines a job.
func affordable(t *testing.T, s *Spec, calendars ...*Calendar) error {
	t.Helper()
	schedule, err := s.Compile(calendars...)
	if err != nil {
		t.Fatal(err)
	}

	err = Compute(t.Context(), DefiningWork, func(w *Work) error {
		Preview(w.On(schedule), workNow, warnAhead)
		return nil
	})
	return s.Explain(err, calendars)
}

// TestExpensiveDefinitions are refused with what makes them so.
func TestExpensiveDefinitions(t *testing.T) {
	t.Parallel()
	c := minuteWindows(t, 720)
	err := affordable(t, expensive(), c)
	var p Problems
	if !errors.As(err, &p) || p[0].Field != "schedule" ||
		!strings.Contains(p[0].Message, "720 windows a day × 1 schedules, counted since its start, 1971-01-01") {
		t.Errorf("got %v", err)
	}

	cheap := expensive()
	cheap.MaxFires = 0
	if err := affordable(t, cheap, c); err != nil {
		t.Errorf("without max_fires: %v", err)
	}
}

// TestCalendarSpans: the number of openings a day is bounded.
func TestCalendarSpans(t *testing.T) {
	t.Parallel()
	spec := func(n int) *CalendarSpec {
		var each []string
		for at := range n {
			each = append(each, fmt.Sprintf("%02d:%02d-%02d:%02d", at*10/60, at*10%60, (at*10+5)/60, (at*10+5)%60))
		}
		return &CalendarSpec{Name: "c", Hours: CalendarHours{Only: []string{strings.Join(each, ",")}}}
	}
	if err := spec(MaxCalendarSpans).Validate(); err != nil {
		t.Errorf("%d times: %v", MaxCalendarSpans, err)
	}

	err := spec(MaxCalendarSpans + 1).Validate()
	if err == nil || !strings.Contains(err.Error(), "hours: has 97 opening times on one day; at most 96 are allowed") {
		t.Errorf("got %v", err)
	}
}

// TestLongLists: a rule with a list of 100,000 days costs no more than one with each day once.
func TestLongLists(t *testing.T) {
	t.Parallel()
	r, err := parseRecurrence("FREQ=MONTHLY;BYMONTHDAY="+strings.TrimSuffix(strings.Repeat("1,-1,", 50_000), ",")+
		";BYDAY="+strings.TrimSuffix(strings.Repeat("MO,2TU,", 50_000), ","), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.monthDays) != 2 || len(r.weekdays) != 2 {
		t.Errorf("%d days of the month and %d of the week are kept, want 2 and 2", len(r.monthDays), len(r.weekdays))
	}
}

// TestWorkOfImports: a file of many rules is read within its budget.
func TestWorkOfImports(t *testing.T) {
	t.Parallel()
	text := "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" +
		strings.Repeat(
			"BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:19710101\r\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30\r\nEND:VEVENT\r\n", 400) + "END:VCALENDAR\r\n"
	w := NewWork(t.Context(), DefiningWork)
	_, err := ParseICS(w, []byte(text), workNow, "")
	if err == nil || !strings.Contains(err.Error(), "recurring events have too many days") ||
		w.Spent() > DefiningWork+1 {
		t.Errorf("got %v after %d units", err, w.Spent())
	}
}
