package sql

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
)

func newCalendar(t testing.TB, name string, days ...string) *job.Calendar {
	t.Helper()
	spec := job.CalendarSpec{Name: name}
	for _, d := range days {
		spec.Exclude = append(spec.Exclude, job.CalendarDay{Date: d})
	}
	c, err := spec.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fixture) putCalendar(c *job.Calendar) (id int64) {
	f.Helper()
	f.tx(func(tx *Tx) (err error) { id, err = tx.InsertCalendar(c, 1); return err })
	return id
}

// naming is a job as its row would be.
func naming(calendars ...string) *JobRow {
	return &JobRow{Job: job.Job{Spec: job.Spec{Calendars: calendars}}}
}

func TestCalendars(t *testing.T) {
	f := setUp(t)
	c := newCalendar(t, "Ferien", "12-25")
	id := f.putCalendar(c)
	f.putCalendar(newCalendar(t, "ferien")) // another one: names are as they are written
	f.refused("the name again", ErrExists, func(tx *Tx) error { _, err := tx.InsertCalendar(c, 2); return err })
	f.refused("no such", ErrNotFound, func(tx *Tx) error { _, err := tx.LockCalendar("FERIEN"); return err })
	f.tx(func(tx *Tx) error {
		row, err := tx.LockCalendar("Ferien")
		if err != nil || row.ID != id || row.Version != 1 || row.Calendar.Digest() != c.Digest() || row.Updated != 1 {
			t.Errorf("got %+v, %v", row, err)
		}
		return tx.UpdateCalendar(&row, newCalendar(t, "Ferien", "12-25", "12-26"), 5)
	})
	f.refused("a version that is over", ErrMoved, func(tx *Tx) error { return tx.UpdateCalendar(&CalendarRow{ID: id, Version: 1}, c, 6) })
	f.tx(func(tx *Tx) error { return tx.SetRefs(RefCalendar, 7, []string{"Ferien", "ferien"}) })
	row, err := f.db.Calendar(t.Context(), "Ferien")
	if err != nil || row.Version != 2 || row.Jobs != 1 || len(row.Calendar.Spec().Exclude) != 2 || row.Created != 1 || row.Updated != 5 {
		t.Errorf("got %+v, %v", row, err)
	}
	list, err := f.db.Calendars(t.Context(), 0, 1)
	if err != nil || len(list) != 1 || list[0] != (CalendarSummary{ID: id, Version: 2, Name: "Ferien", Excludes: 2, Jobs: 1, Created: 1, Updated: 5}) {
		t.Errorf("got %+v, %v", list, err)
	}
	f.tx(func(tx *Tx) error { return tx.DeleteCalendar(id) })
	f.refused("deleted again", ErrMoved, func(tx *Tx) error { return tx.DeleteCalendar(id) })
	if _, err := f.db.Calendar(t.Context(), "Ferien"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestLearnCalendars: what is known is read by its digest alone, and nothing where no job names a calendar.
func TestLearnCalendars(t *testing.T) {
	f := setUp(t)
	day := fmt.Sprintf("%d-01-01", 1970+time.Now().UnixNano()%100) // calendars that no other test knows
	f.putCalendar(newCalendar(t, "a "+t.Name(), day))
	f.putCalendar(newCalendar(t, "b "+t.Name(), day, "12-25"))
	db, proxy := f.behind(2)
	var asked []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if strings.Contains(c.SQL, "FROM calendar") {
			asked = append(asked, strings.Fields(c.SQL)[2]) // the second column
		}
	})
	learn := func(jobs ...*JobRow) string {
		t.Helper()
		asked = nil
		if err := db.Tx(t.Context(), func(tx *Tx) error { return tx.LearnCalendars(jobs...) }); err != nil {
			t.Fatal(err)
		}
		return strings.Join(asked, " ")
	}
	one, two, none := naming("a "+t.Name()), naming("b "+t.Name(), "nix", "a "+t.Name()), naming()
	if got := learn(none, nil); got != "" {
		t.Errorf("of no calendar: read %s", got)
	}
	if got := learn(one, none); got != "digest spec," || len(one.Calendars) != 1 {
		t.Errorf("for the first time: read %s; got %v", got, one.Calendars)
	}
	if got := learn(one, two); got != "digest spec," || len(two.Calendars) != 2 || two.Calendars[0].Name() != "b "+t.Name() || two.CalendarsErr != nil {
		t.Errorf("another one beside it: read %s; got %v, %v", got, two.Calendars, two.CalendarsErr)
	}
	if got := learn(one, two); got != "digest" || len(two.Calendars) != 2 || one.Calendars[0] != two.Calendars[1] {
		t.Errorf("known: read %s", got)
	}
	f.tx(func(tx *Tx) error {
		row, err := tx.LockCalendar(one.Calendars[0].Name())
		if err != nil {
			return err
		}
		return tx.UpdateCalendar(&row, newCalendar(t, row.Name, day, "12-24"), 2)
	})
	if got := learn(one); got != "digest spec," || len(one.Calendars[0].Spec().Exclude) != 2 {
		t.Errorf("changed: read %s; got %v", got, one.Calendars)
	}
	for what, change := range map[string]string{
		"unknown field":      `spec = '{"name":"x","colour":1}', digest = UNHEX(SHA2(spec, 256))`,
		"exclude[0].date":    `spec = '{"name":"x","exclude":[{"date":"x"}]}', digest = UNHEX(SHA2(spec, 256))`,
		"a hand has changed": `spec = '{"name":"x"}'`,
		"looking for begin":  `spec = 'x', digest = UNHEX(SHA2(spec, 256))`,
	} {
		f.exec("UPDATE calendar SET digest = UNHEX(SHA2(UUID(), 256)) WHERE name = ?", "b "+t.Name()) // else it is known
		f.exec("UPDATE calendar SET "+change+" WHERE name = ?", "b "+t.Name())
		for range 2 {
			learn(one, two)
			var bad *CalendarError
			if !errors.As(two.CalendarsErr, &bad) || bad.Name != "b "+t.Name() || !strings.Contains(bad.Error(), what) || one.CalendarsErr != nil {
				t.Errorf("%s: got %v and %v", what, two.CalendarsErr, one.CalendarsErr)
			}
		}
	}
}

// TestReplan marks living jobs that have due times, and puts their cursors where the change is.
func TestReplan(t *testing.T) {
	f := setUp(t)
	var ids []int64
	for i, change := range []string{"next_due = 5000", "next_due = 100", "next_due = NULL", "error = 'x', next_due = NULL", "paused = 1, next_due = NULL", "held = 1, next_due = NULL", "living = NULL, next_due = NULL", "next_due = 7000"} {
		id := f.newJob(fmt.Sprint(i))
		f.exec("UPDATE job SET "+change+" WHERE id = ?", id)
		ids = append(ids, id)
		name := "c"
		if i == 7 {
			name = "other"
		}
		f.tx(func(tx *Tx) error { return tx.SetRefs(RefCalendar, id, []string{name}) })
	}
	f.tx(func(tx *Tx) error {
		n, err := tx.Replan("c", 1000)
		if n != 4 {
			t.Errorf("marked %d jobs, want 4", n)
		}
		return err
	})
	for i, want := range []int64{1000, 100, 1000, 1000, 0, 0, 0, 7000} {
		marked := int64(0)
		if i < 4 {
			marked = 1
		}
		f.want(fmt.Sprintf("job %d: cursor", i), want, "SELECT COALESCE(next_due, 0) FROM job WHERE id = ?", ids[i])
		f.want(fmt.Sprintf("job %d: mark", i), marked, "SELECT replan FROM job WHERE id = ?", ids[i])
	}
	f.want("jobs in error", 0, "SELECT COUNT(*) FROM job WHERE error <> ''")
	cursor := Cursor{JobID: ids[0], Version: 1, Seen: 1000, Next: 9000}
	f.refused("a planner that saw no mark", ErrMoved, func(tx *Tx) error { return tx.MoveCursors([]Cursor{cursor}) })
	cursor.Replan = true
	f.tx(func(tx *Tx) error { return tx.MoveCursors([]Cursor{cursor}) })
	f.want("marks that are left", 3, "SELECT COUNT(*) FROM job WHERE replan = 1")
	f.want("its cursor", 9000, "SELECT next_due FROM job WHERE id = ?", ids[0])
}

// TestNameCalendarsExcludes: a job that begins to name a calendar and a change of the calendar wait for each other.
func TestNameCalendarsExcludes(t *testing.T) {
	f := setUp(t)
	f.putCalendar(newCalendar(t, "c"))
	id := f.newJob("j")
	named, goOn := make(chan struct{}), make(chan struct{})
	var marked int64
	var both sync.WaitGroup
	both.Go(func() {
		err := f.db.Tx(background(t), func(tx *Tx) error {
			if found, err := tx.NameCalendars([]string{"c", "nix"}); err != nil || len(found) != 1 {
				t.Errorf("got %v, %v", found, err)
			}
			close(named)
			<-goOn
			return tx.SetRefs(RefCalendar, id, []string{"c"})
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-named
	both.Go(func() {
		err := f.db.Tx(background(t), func(tx *Tx) error {
			row, err := tx.LockCalendar("c")
			if err != nil {
				return err
			}
			if err := tx.UpdateCalendar(&row, newCalendar(t, "c", "12-25"), 2); err != nil {
				return err
			}
			marked, err = tx.Replan("c", 500)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	f.awaitLockWait()
	close(goOn)
	both.Wait()
	if marked != 1 {
		t.Errorf("the change marked %d jobs, want the one that began to name the calendar meanwhile", marked)
	}
}

// TestBegunAheadOfMany: of jobs that name a calendar in any number each is asked, some at a time.
func TestBegunAheadOfMany(t *testing.T) {
	f := setUp(t)
	const jobs = 2*replanBatch + 50
	for n, first := 1, f.newJob("0"); n < jobs; n *= 2 {
		f.exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) SELECT app, id + ?, hash, spec, next_due, 1, 1 FROM job WHERE id >= ? ORDER BY id LIMIT ?", 10_000*n, first, min(n, jobs-n))
	}
	f.exec("INSERT INTO job_ref (kind, name, job_id) SELECT ?, 'c', id FROM job", RefCalendar)
	f.exec("INSERT INTO task (job_id, due, due_now, hash, state, spawn_by) SELECT id, 100, 100, 7, 2, 1000 + id FROM job")
	last := f.number("SELECT MAX(id) FROM job")
	f.exec("UPDATE task SET due = 10 WHERE job_id = ?", last) // which is not ahead
	db, proxy := f.behind(1)
	asked := 0
	proxy.OnCommand(func(c faultproxy.Command) {
		if strings.Contains(c.SQL, "spawn_by") {
			asked++
		}
	})
	err := db.Tx(t.Context(), func(tx *Tx) error {
		window, err := tx.BegunAhead("c", 50, 200)
		if want := job.Micros(1000 + f.number("SELECT MAX(id) FROM job WHERE id < ?", last)); window != want {
			t.Errorf("got a window up to %d, want %d", int64(window), int64(want))
		}
		return err
	})
	if err != nil || asked != 3 {
		t.Errorf("got %v, and asked in %d parts; want 3", err, asked)
	}
}
