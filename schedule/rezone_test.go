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
	join := func(zones string) (id uuid.UUID) {
		t.Helper()
		id = uuid.New()
		err := f.beside.Tx(t.Context(), func(tx *sql.Tx) error {
			if err := tx.JoinZones(id, zones); err != nil {
				return err
			}
			return tx.InsertSession(sql.SessionRow{ID: id, Node: "n", Zones: zones})
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
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
