package schedule

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	"go-crontab/sql"
)

// TestRezone: jobs whose cursors other time zone data has computed are planned anew, but not before all nodes have the same, and
// the others stay as they are.
func TestRezone(t *testing.T) {
	f := setUp(t)
	r := &Rezoner{DB: f.beside, Session: f.session, Zones: "new", Log: slog.New(slog.DiscardHandler)}
	join := func(zones string) uuid.UUID { t.Helper(); return f.joinWith(zones) }
	leave := func(id uuid.UUID) { f.exec("DELETE FROM session WHERE id = ?", id[:]) }
	look := func(seconds int) {
		t.Helper()
		f.session.set(after(time.Duration(seconds) * time.Second))
		for more := true; more; {
			var err error
			if more, err = r.look(t.Context(), f.session.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	zoned := func(name, zone string) job.Job {
		return f.create(job.Spec{Name: name, Command: "true", Schedule: "0 0 3 * * *", Timezone: zone})
	}
	early, late, right, utc, paused := zoned("early", "Europe/Berlin"), zoned("late", "Europe/Berlin"), zoned("right", "Europe/Berlin"), zoned("utc", "UTC"), zoned("paused", "Europe/Berlin")
	due := f.row(right.ID).NextDue
	f.pauseJob(paused, 0)
	// What nodes with other data have made of it.
	f.exec("UPDATE job SET next_due = ? WHERE id = ?", int64(due.Add(-time.Hour)), early.ID)
	f.exec("UPDATE job SET next_due = ? WHERE id IN (?, ?)", int64(due.Add(time.Hour)), late.ID, utc.ID)
	marked := func(what string, n int64) {
		t.Helper()
		f.want(what, n, "SELECT COUNT(*) FROM job WHERE replan = 1")
	}
	setting := func(want string) {
		t.Helper()
		f.want("the setting", 1, "SELECT COUNT(*) FROM setting WHERE name = 'zones' AND value LIKE ?", want)
	}

	old := join("old")
	setting("?" + old.String())
	first := join("new")
	look(1)
	marked("while a node has other data", 0)
	leave(old)
	before := join("")
	look(2)
	marked("while nobody knows what a node has", 0)
	leave(before)
	f.session.index = 1
	look(3)
	marked("by another node than the first", 0)
	f.session.index = 0
	look(4)
	marked("once all have the same", 2)
	setting("new")
	f.plan(5 * time.Second)
	marked("once they were planned", 0)
	for _, j := range []job.Job{early, late, right} {
		if got := f.row(j.ID).NextDue; got != due {
			t.Errorf("%s is due at %s, want %s", j.Spec.Name, got, due)
		}
	}
	if got := f.row(utc.ID).NextDue; got != due.Add(time.Hour) {
		t.Errorf("the job in UTC was planned anew: due at %s", got)
	}

	f.exec("UPDATE job SET next_due = ? WHERE id = ?", int64(due.Add(time.Hour)), late.ID)
	join("new")
	setting("new")
	look(6)
	marked("where nothing has changed", 0)

	leave(join("other")) // it was there for a moment, and may have planned something
	look(7)
	marked("behind a node with other data", 1)
	setting("new")

	// One that joins while all jobs are looked at: once more.
	f.exec("UPDATE job SET replan = 0, next_due = ? WHERE id = ?", int64(due.Add(time.Hour)), late.ID)
	leave(join("other"))
	seen, is, err := f.beside.Unzoned(t.Context(), "new")
	if err != nil || !is {
		t.Fatalf("got %q, %t, %v", seen, is, err)
	}
	leave(join("other"))
	if done, err := f.beside.PlannedBy(t.Context(), seen, "new"); err != nil || done {
		t.Errorf("got done %t, %v; want it to be seen that a node has joined", done, err)
	}
	look(8)
	marked("in the end", 1)
	leave(first)
}

// joinWith has a session begin whose node computes with some time zone data.
func (f *fixture) joinWith(zones string) (id uuid.UUID) {
	f.Helper()
	id = uuid.New()
	err := f.beside.Tx(f.Context(), func(tx *sql.Tx) error {
		if err := tx.JoinZones(id, zones); err != nil {
			return err
		}
		return tx.InsertSession(sql.SessionRow{ID: id, Node: "n", Zones: zones})
	})
	if err != nil {
		f.Fatal(err)
	}
	return id
}

// TestRezoneBesideALockedRow: a job whose row somebody has locked holds up the marking of no other, and comes in the end. Nor does a beat
// that is late have the look begin anew.
func TestRezoneBesideALockedRow(t *testing.T) {
	f := setUp(t)
	r := &Rezoner{DB: f.planner.DB, Session: f.session, Zones: "new", Log: slog.New(slog.DiscardHandler)}
	var ids []int64
	for _, name := range []string{"before", "kept", "behind"} {
		ids = append(ids, f.create(job.Spec{Name: name, Command: "true", Schedule: "0 0 3 * * *", Timezone: "Europe/Berlin"}).ID)
	}
	f.exec("UPDATE job SET next_due = next_due + ?", time.Hour.Microseconds())
	f.joinWith("new")
	release := f.keep("SELECT id FROM job WHERE id = ? FOR UPDATE", ids[1])
	look := func() {
		t.Helper()
		if more, err := r.look(t.Context(), f.session.Now()); more || err != nil {
			t.Fatalf("got more %t, %v", more, err)
		}
	}
	for range 2 {
		look()
		f.want("jobs that are marked, of those that are free", 2, "SELECT COUNT(*) FROM job WHERE replan = 1 AND id IN (?, ?)", ids[0], ids[2])
		f.want("jobs that are marked", 2, "SELECT COUNT(*) FROM job WHERE replan = 1")
		f.want("whether all are said to be planned", 0, "SELECT COUNT(*) FROM setting WHERE name = 'zones' AND value = 'new'")
	}
	f.session.stale = true
	look()
	if r.last != ids[2] || r.seen == "" {
		t.Errorf("behind a late beat the look begins behind job %d, of %q; want it to go on behind %d", r.last, r.seen, ids[2])
	}
	f.session.stale = false
	release()
	look()
	f.want("jobs that are marked in the end", 3, "SELECT COUNT(*) FROM job WHERE replan = 1")
	f.want("whether all are said to be planned", 1, "SELECT COUNT(*) FROM setting WHERE name = 'zones' AND value = 'new'")
}

// TestRezoneOfWhatIsPlanned: of a job that has due times planned already these count with its cursor.
func TestRezoneOfWhatIsPlanned(t *testing.T) {
	f := setUp(t)
	r := &Rezoner{DB: f.beside, Session: f.session, Zones: "new", Log: slog.New(slog.DiscardHandler)}
	right := f.create(job.Spec{Name: "right", Command: "true", Schedule: "*/10 * * * * *", Timezone: "Europe/Berlin"})
	wrong := f.create(job.Spec{Name: "wrong", Command: "true", Schedule: "*/10 * * * * *", Timezone: "Europe/Berlin"})
	last := f.create(job.Spec{Name: "last", Command: "true", Schedule: "*/10 * * * * *", Timezone: "Europe/Berlin", MaxFires: 3})
	f.plan(time.Second)
	f.want("planned, of each of two jobs", 4, "SELECT COUNT(*) DIV 2 FROM task WHERE job_id <> ?", last.ID)
	f.want("planned, of the one that ends", 2, "SELECT COUNT(*) FROM task WHERE job_id = ?", last.ID)
	f.exec("UPDATE task SET due = due + 1000000 WHERE job_id = ? ORDER BY due LIMIT 1", wrong.ID)
	f.joinWith("new")
	f.session.set(after(2 * time.Second))
	if _, err := r.look(t.Context(), f.session.Now()); err != nil {
		t.Fatal(err)
	}
	f.want("whether the wrong one is marked", 1, "SELECT replan FROM job WHERE id = ?", wrong.ID)
	f.want("whether the right one is marked", 0, "SELECT replan FROM job WHERE id = ?", right.ID)
	f.want("whether the one that ends is marked", 0, "SELECT replan FROM job WHERE id = ?", last.ID)
	if r.jobs != 3 || r.marked != 1 {
		t.Errorf("%d of %d jobs are said to be planned anew, want 1 of 3", r.marked, r.jobs)
	}
}
