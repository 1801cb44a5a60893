package sql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go-crontab/job"
)

// TestCursors: of a batch of cursors either all move, or none does and nothing that was planned from them stands.
func TestCursors(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		change string // what somebody did to the second of three jobs; ? is its id
		cursor func(*Cursor)
		moved  bool
	}{
		"all are where they were seen":      {"", nil, true},
		"one was planned by another node":   {"UPDATE job SET next_due = 2000 WHERE id = ?", nil, false},
		"one is exhausted":                  {"UPDATE job SET next_due = NULL WHERE id = ?", nil, false},
		"one was edited":                    {"UPDATE job SET version = 2 WHERE id = ?", nil, false},
		"one was paused":                    {"UPDATE job SET paused = 1 WHERE id = ?", nil, false},
		"one was deleted":                   {"UPDATE job SET living = NULL WHERE id = ?", nil, false},
		"one is gone":                       {"DELETE FROM job WHERE id = ?", nil, false},
		"one stays where it is":             {"", func(c *Cursor) { c.Next = c.Seen }, true}, // matched rows count, not changed ones
		"one has nothing left":              {"", func(c *Cursor) { c.Next = 0 }, true},
		"one had a later start than it had": {"UPDATE job SET last_due = 77 WHERE id = ?", func(c *Cursor) { c.LastDue = 50 }, true},
		"one skips due times":               {"UPDATE job SET last_due = 77 WHERE id = ?", func(c *Cursor) { c.LastDue = 99 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			ids := []int64{f.newJob(name + " i"), f.newJob(name + " j"), f.newJob(name + " k")}
			if c.change != "" {
				f.exec(c.change, ids[1])
			}
			var cursors []Cursor
			for _, id := range ids {
				cursors = append(cursors, Cursor{JobID: id, Version: 1, Seen: 1000, Next: 3000})
			}
			if c.cursor != nil {
				c.cursor(&cursors[1])
			}
			lastDue := f.number("SELECT MAX(last_due) FROM job WHERE id = ?", ids[1])
			err := f.db.Tx(t.Context(), func(tx *Tx) error {
				if err := tx.InsertTasks([]job.Task{{JobID: ids[0], Due: 1000, DueNow: 1000}}); err != nil {
					return err
				}
				return tx.MoveCursors(cursors)
			})
			if c.moved != (err == nil) || !c.moved && !errors.Is(err, ErrMoved) {
				t.Fatalf("got %v, want moved: %v", err, c.moved)
			}
			if !c.moved {
				f.want("cursor of another job", 1000, "SELECT next_due FROM job WHERE id = ?", ids[0])
				f.want("tasks", 0, "SELECT COUNT(*) FROM task WHERE job_id = ?", ids[0])
				return
			}
			f.want("cursor of another job", 3000, "SELECT next_due FROM job WHERE id = ?", ids[2])
			f.want("its cursor", int64(cursors[1].Next), "SELECT next_due FROM job WHERE id = ?", ids[1])
			f.want("its last due time", max(lastDue, int64(cursors[1].LastDue)), "SELECT last_due FROM job WHERE id = ?", ids[1])
		})
	}
}

// TestLockFreeJobs: it waits for nobody, and tells a row that is locked from one that is not there.
func TestLockFreeJobs(t *testing.T) {
	f := setUp(t)
	a, b := f.newJob("a"), f.newJob("b")
	f.tx(func(tx *Tx) error {
		if _, err := tx.LockJobs([]int64{b}); err != nil {
			return err
		}
		return f.db.Tx(t.Context(), func(tx *Tx) error {
			free, busy, err := tx.LockFreeJobs([]int64{a, b, b + 99})
			if len(free) != 1 || free[a] == nil || len(busy) != 1 || !busy[b] {
				t.Errorf("got free %v and busy %v, want %d and %d", free, busy, a, b)
			}
			return err
		})
	})
	f.tx(func(tx *Tx) error {
		free, busy, err := tx.LockFreeJobs([]int64{a, b})
		if len(free) != 2 || len(busy) != 0 {
			t.Errorf("got free %v and busy %v, want both free", free, busy)
		}
		return err
	})
}

// TestMarkStarted: last_due only grows, and the row is written whatever it says.
func TestMarkStarted(t *testing.T) {
	f := setUp(t)
	a, b := f.newJob("a"), f.newJob("b")
	f.tx(func(tx *Tx) error { return tx.MarkStarted([]Mark{{a, 50}, {b, 10}, {a, 70}, {a, 60}}) })
	f.want("the latest of a batch", 70, "SELECT last_due FROM job WHERE id = ?", a)
	f.want("another job's", 10, "SELECT last_due FROM job WHERE id = ?", b)
	f.tx(func(tx *Tx) error { return tx.MarkStarted([]Mark{{JobID: a}, {b, 5}}) })
	f.want("started by hand", 70, "SELECT last_due FROM job WHERE id = ?", a)
	f.want("an earlier one", 10, "SELECT last_due FROM job WHERE id = ?", b)
	f.want("writes of a", 2, "SELECT starts FROM job WHERE id = ?", a)
	f.want("writes of b", 2, "SELECT starts FROM job WHERE id = ?", b)
}

// TestJobNames: a name is taken as long as its job lives, however it came to be there.
func TestJobNames(t *testing.T) {
	f := setUp(t)
	first := f.newJob("j")
	insert := func(tx *Tx, name string) error {
		_, err := tx.InsertJob(&job.Job{Spec: job.Spec{App: "a", Name: name}, Version: 1}, "{}")
		return err
	}
	f.refused("the name of a living job", ErrExists, func(tx *Tx) error { return insert(tx, "j") })
	f.newJob("J") // case tells names apart
	other := f.newJob("k")
	rename := func(tx *Tx) error {
		return tx.UpdateJob(&job.Job{ID: other, Spec: job.Spec{App: "a", Name: "j"}, Version: 2}, "{}")
	}
	f.refused("renamed to that of a living job", ErrExists, rename)
	f.tx(func(tx *Tx) error {
		return tx.UpdateJob(&job.Job{ID: first, Spec: job.Spec{App: "a", Name: "j"}, Version: 2, Deleted: true}, "{}")
	})
	f.tx(rename)
	got, err := f.db.JobNamed(t.Context(), "a", "j")
	if err != nil || got.ID != other {
		t.Errorf("got job %d, %v; want %d", got.ID, err, other)
	}
	if gone, err := f.db.Job(t.Context(), first); err != nil || !gone.Deleted {
		t.Errorf("the deleted one: got %+v, %v; want it still there", gone.Job, err)
	}
	if _, err := f.db.JobNamed(t.Context(), "a", "nobody"); err != ErrNotFound {
		t.Errorf("no such name: got %v, want %v", err, ErrNotFound)
	}
	f.refused("no such name, locked", ErrNotFound, func(tx *Tx) error { _, err := tx.LockJobNamed("a", "nobody"); return err })
}

// TestUpdateJob: only a later version is written, and last_due is only raised.
func TestUpdateJob(t *testing.T) {
	f := setUp(t)
	id := f.newJob("j")
	f.exec("UPDATE job SET version = 5, last_due = 100 WHERE id = ?", id)
	at := func(version int64, lastDue job.Micros) func(tx *Tx) error {
		return func(tx *Tx) error {
			return tx.UpdateJob(&job.Job{ID: id, Spec: job.Spec{App: "a", Name: "j"}, Version: version, LastDue: lastDue, Error: strings.Repeat("ü", 600)}, "{}")
		}
	}
	f.refused("the same version", ErrMoved, at(5, 1))
	f.refused("an earlier version", ErrMoved, at(4, 1))
	f.tx(at(6, 99))
	f.want("last due time, lower", 100, "SELECT last_due FROM job WHERE id = ?", id)
	f.tx(at(7, 101))
	f.want("last due time, higher", 101, "SELECT last_due FROM job WHERE id = ?", id)
	f.want("runes of its error", 512, "SELECT CHAR_LENGTH(error) FROM job WHERE id = ?", id)
}

// TestBadDefinition: a row that this program cannot read is returned with what is wrong, beside the others.
func TestBadDefinition(t *testing.T) {
	f := setUp(t)
	good, bad := f.newJob("good"), f.newJob("bad")
	f.exec(`UPDATE job SET spec = '{"future":1}' WHERE id = ?`, bad)
	f.tx(func(tx *Tx) error {
		rows, err := tx.LockJobs([]int64{bad, good, 12345})
		if err != nil || len(rows) != 2 {
			t.Fatalf("got %d rows, %v; want 2", len(rows), err)
		}
		if rows[good].SpecErr != nil || rows[good].Spec.Name != "good" {
			t.Errorf("the good one: got %q, %v", rows[good].Spec.Name, rows[good].SpecErr)
		}
		if r := rows[bad]; r.SpecErr == nil || r.Spec.Name != "bad" || r.Spec.App != "a" || r.SpecText != `{"future":1}` {
			t.Errorf("the bad one: got %+v, %v; want an error, and its name", r.Spec, r.SpecErr)
		}
		return nil
	})
}

// TestRequests: a key stands for one request; without one there is nothing to find again.
func TestRequests(t *testing.T) {
	f := setUp(t)
	id := f.newJob("j")
	var first int64
	f.tx(func(tx *Tx) (err error) { first, err = tx.InsertRequest("run", "key", [32]byte{1}, id, 5); return err })
	f.refused("the key again", ErrExists, func(tx *Tx) error { _, err := tx.InsertRequest("run", "key", [32]byte{2}, id, 6); return err })
	f.tx(func(tx *Tx) error {
		got, err := tx.LockRequest("key")
		if want := (Request{ID: first, JobID: id, Digest: [32]byte{1}, Created: 5}); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		return nil
	})
	f.refused("another key", ErrNotFound, func(tx *Tx) error { _, err := tx.LockRequest("Key"); return err })
	f.tx(func(tx *Tx) error {
		a, err1 := tx.InsertRequest("run", "", [32]byte{}, id, 6)
		b, err2 := tx.InsertRequest("run", "", [32]byte{}, id, 6)
		if err1 != nil || err2 != nil || a == b || a == first {
			t.Errorf("without a key: got %d, %v and %d, %v; want two others", a, err1, b, err2)
		}
		return nil
	})
}

// TestDueJobs: mine a little ahead, those of others only when nobody seems to care.
func TestDueJobs(t *testing.T) {
	f := setUp(t)
	ids := map[string]int64{}
	for name, at := range map[string][2]int64{
		"mine, overdue": {100, 1}, "mine, soon": {110, 40}, "mine, later": {120, 51}, "mine, none": {130, 0},
		"theirs, overdue": {500, 2}, "theirs, soon": {510, 40}, "mine, the last hash": {199, 3}, "theirs, the next hash": {200, 41},
	} {
		ids[name] = f.newJob(name)
		f.exec("UPDATE job SET hash = ?, next_due = NULLIF(?, 0) WHERE id = ?", at[0], at[1], ids[name])
	}
	for name, c := range map[string]struct {
		mine  []Slice
		limit int
		want  []string
	}{
		"with a share":          {[]Slice{hashes(100, 150, 50), hashes(150, 200, 50)}, 99, []string{"mine, overdue", "theirs, overdue", "mine, the last hash", "mine, soon"}},
		"without a share":       {nil, 99, []string{"mine, overdue", "theirs, overdue", "mine, the last hash"}},
		"only the most overdue": {[]Slice{hashes(100, 200, 50)}, 2, []string{"mine, overdue", "theirs, overdue"}},
	} {
		got, _, err := f.db.DueJobs(t.Context(), c.mine, 10, c.limit)
		var want []int64
		for _, n := range c.want {
			want = append(want, ids[n])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
}

// hashes is the slice of a range of hashes.
func hashes(from, to int, before job.Micros) Slice {
	return Slice{FromHash: from, ToHash: to, Before: before}
}

// TestIdleTasks: what is idle and due in any of the slices, the earliest first, each once.
func TestIdleTasks(t *testing.T) {
	f := setUp(t)
	ids := map[string]int64{}
	for name, at := range map[string][3]int64{ // hash, due, state
		"first": {10, 1, 0}, "claimed": {10, 2, 1}, "executing": {10, 2, 2}, "second": {11, 5, 0}, "not yet": {12, 50, 0},
		"elsewhere, overdue": {900, 3, 0}, "elsewhere, soon": {901, 20, 0}, "the last hash": {19, 6, 0}, "the next hash": {20, 40, 0},
	} {
		ids[name] = f.tasks(f.newJob(name), job.Micros(at[1]))[0]
		f.exec("UPDATE task SET hash = ?, state = ? WHERE id = ?", at[0], at[2], ids[name])
	}
	for name, c := range map[string]struct {
		slices []Slice
		limit  int
		want   []string
	}{
		"mine, and whatever is overdue": {[]Slice{hashes(10, 20, 50), hashes(0, job.Hashes, 4)}, 99, []string{"first", "elsewhere, overdue", "second", "the last hash"}},
		"the order of slices":           {[]Slice{hashes(0, job.Hashes, 4), hashes(10, 20, 50)}, 99, []string{"first", "elsewhere, overdue", "second", "the last hash"}},
		"everything":                    {[]Slice{hashes(0, job.Hashes, 50)}, 99, []string{"first", "elsewhere, overdue", "second", "the last hash", "elsewhere, soon", "the next hash"}},
		"only the earliest":             {[]Slice{hashes(0, job.Hashes, 50)}, 2, []string{"first", "elsewhere, overdue"}},
		"an instant is not before it":   {[]Slice{hashes(10, 20, 5)}, 99, []string{"first"}},
	} {
		got, err := f.db.IdleTasks(t.Context(), c.slices, c.limit)
		var have, want []int64
		for _, g := range got {
			have = append(have, g.ID)
		}
		for _, n := range c.want {
			want = append(want, ids[n])
		}
		if err != nil || !slices.Equal(have, want) {
			t.Errorf("%s: got %v, %v; want %v", name, have, err, want)
		}
	}
}

// TestSessions: who buries needs the beat that was seen, and each session is there or not.
func TestSessions(t *testing.T) {
	f := setUp(t)
	f.tx(func(tx *Tx) error { return tx.InsertSession(SessionRow{ID: session(1), Node: "one"}) })
	f.tx(func(tx *Tx) error {
		for id, want := range map[byte]bool{1: true, 2: false} {
			if there, err := tx.LockSession(session(id)); err != nil || there != want {
				t.Errorf("session %d: got there %v, %v; want %v", id, there, err, want)
			}
		}
		return nil
	})
	pulse, err := OpenPulse(f.dsn, DefaultTimeouts)
	if err != nil {
		t.Fatal(err)
	}
	defer pulse.Close()
	if there, err := pulse.Beat(t.Context(), session(1), Vitals{Prepared: 3, Executing: 4, Draining: true, Offset: -5000}); err != nil || !there {
		t.Errorf("beat: got %v, %v", there, err)
	}
	rows, err := f.db.Sessions(t.Context())
	if err != nil || len(rows) != 1 {
		t.Fatalf("got %d sessions, %v", len(rows), err)
	}
	if r := rows[0]; r.Beat != 1 || r.Prepared != 3 || r.Executing != 4 || !r.Draining || r.Offset != -5 || r.BeatAt < r.Started || r.Started == 0 {
		t.Errorf("got %+v after one beat", r)
	}
	bury := func(beat int64) (buried bool) {
		f.tx(func(tx *Tx) (err error) { buried, err = tx.DeleteSession(session(1), beat); return err })
		return buried
	}
	if bury(0) {
		t.Error("a session was buried for a beat that is not its last")
	}
	if !bury(1) || bury(1) {
		t.Error("a session was not buried once for its last beat")
	}
	if there, err := pulse.Beat(t.Context(), session(1), Vitals{}); err != nil || there {
		t.Errorf("beat of a buried session: got there %v, %v", there, err)
	}
}
