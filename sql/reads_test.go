package sql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"go-crontab/internal/faultproxy"
	"go-crontab/internal/testdb"
	"go-crontab/job"
)

// TestReads runs each statement of the trip among 100,000 jobs with a task each, and holds the rows that the server
// read for it against the rows that it needs, and the index that it used against the one that it should.
func TestReads(t *testing.T) {
	f := setUp(t).patient()
	const (
		jobs  = 100_000
		due   = 400 // of them, spread over all hashes
		ahead = 500 // due times planned ahead of one frequent job
		now   = 1_000_000_000
		later = 9_000_000_000
		dead  = 300 // tasks of a session that is gone
	)
	// The server keeps believing that the tables are empty, as it may after many rows came at once: what then is read
	// is what the hints in the statements make of it.
	for _, table := range []string{"job", "task", "history"} {
		f.exec("ALTER TABLE " + table + " STATS_PERSISTENT=1, STATS_AUTO_RECALC=0")
	}
	f.exec("ANALYZE TABLE job, task, history")
	frequent := f.newJob("1")
	f.exec("UPDATE job SET next_due = ?, hash = 0 WHERE id = ?", later, frequent)
	for n := 1; n < jobs; n *= 2 {
		f.exec("INSERT INTO job (app, name, hash, spec, next_due, created, updated) SELECT app, name + ?, (name + ?) MOD 1024, spec, next_due + name, 1, 1 FROM job ORDER BY id LIMIT ?",
			n, n, min(n, jobs-n))
	}
	f.exec("INSERT INTO task (job_id, due, due_now, hash) SELECT id, next_due, next_due, hash FROM job")
	f.exec("INSERT INTO task (job_id, due, due_now, hash) SELECT id, ? + id, ? + id, hash FROM job ORDER BY id LIMIT ?", now, now, due)
	f.exec("INSERT INTO task (job_id, due, due_now, hash) SELECT ?, ? + id, ? + id, 0 FROM job ORDER BY id LIMIT ?", frequent, 2*later, 2*later, ahead)
	f.exec("UPDATE job SET next_due = ? + id ORDER BY id LIMIT ?", now, due)
	gone := session(99)
	f.exec("UPDATE task SET state = 1 + (id MOD 2), session_id = ?, launch = id WHERE due >= ? ORDER BY id LIMIT ?", gone[:], later, dead)
	f.exec("INSERT INTO history (job_id, due, attempt, session_id, launch, outcome, due_last, ended) SELECT ?, id, 1, ?, id, 1, id, id FROM job ORDER BY id LIMIT 20000", frequent, gone[:])

	db, proxy := f.behind(1)
	var statements []string
	proxy.OnCommand(func(c faultproxy.Command) {
		if c.IsStatement() {
			statements = append(statements, c.SQL)
		}
	})
	read := func() int64 { return handlerReads(t, db) }
	if _, err := db.Glance(t.Context(), GlanceOf{Session: session(7)}); err != nil { // to open a table for the first time the server reads what it knows of it
		t.Fatal(err)
	}
	if _, err := db.Untidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	asking := -read() // which itself reads rows
	asking += read()
	engine := testdb.EngineOf(t)

	var found []Candidate
	var ids, jobIDs []int64
	all := Slice{ToHash: job.Hashes, Before: now + jobs}
	var half []Slice // what one of two nodes prefers
	for b := 0; b < 16; b += 2 {
		half = append(half, Slice{FromHash: b * 64, ToHash: b*64 + 64, Before: now + jobs})
	}
	inTx := func(needed int, fn func(tx *Tx) error) func() (int, error) {
		return func() (int, error) { return needed, db.Tx(t.Context(), fn) }
	}
	me := session(7)
	ended := job.Launch{Session: gone, N: f.number("SELECT MAX(launch) FROM history")}
	var took []job.Task
	for _, c := range []struct {
		name  string
		do    func() (needed int, err error)
		index string // of every statement that reads a table
	}{
		{"scan idle tasks, nothing due", func() (int, error) {
			none, err := db.IdleTasks(t.Context(), []Slice{{ToHash: job.Hashes, Before: now}}, 500)
			return 1, wantLen(err, len(none), 0)
		}, "slice"},
		{"scan idle tasks, one of two nodes", func() (int, error) {
			mine, err := db.IdleTasks(t.Context(), append(half, Slice{ToHash: job.Hashes, Before: now}), 500)
			if err == nil && (len(mine) < due*4/10 || len(mine) > due*6/10) {
				err = fmt.Errorf("found %d tasks, want about half of %d", len(mine), due)
			}
			return len(mine), err
		}, "slice"},
		{"scan idle tasks, alone", func() (_ int, err error) {
			found, err = db.IdleTasks(t.Context(), []Slice{all}, 500)
			for _, c := range found {
				ids = append(ids, c.ID)
			}
			return due, wantLen(err, len(found), due)
		}, "slice"},
		{"scan idle tasks, the first few", func() (int, error) {
			few, err := db.IdleTasks(t.Context(), []Slice{{ToHash: job.Hashes, Before: 3 * later}}, 10)
			return 10, wantLen(err, len(few), 10)
		}, "slice"},
		{"scan due jobs, nothing due", func() (int, error) {
			none, _, err := db.DueJobs(t.Context(), []Slice{{ToHash: job.Hashes, Before: now}}, now, 200)
			return 1, wantLen(err, len(none), 0)
		}, "plan"},
		{"scan due jobs", func() (_ int, err error) {
			jobIDs, _, err = db.DueJobs(t.Context(), []Slice{all}, now, 200)
			return 200, wantLen(err, len(jobIDs), 200)
		}, "plan"},
		{"lock jobs", inTx(400, func(tx *Tx) error { // each with a look at whether its app is paused
			rows, err := tx.LockJobs(jobIDs)
			return wantLen(err, len(rows), 200)
		}), "PRIMARY"},
		{"move cursors", func() (int, error) {
			return 2 * len(jobIDs), db.Tx(t.Context(), func(tx *Tx) error { // each is in the list and in the table
				var cursors []Cursor
				for _, id := range jobIDs {
					cursors = append(cursors, Cursor{JobID: id, Version: 1, Seen: job.Micros(now + id), Next: 2 * later})
				}
				return tx.MoveCursors(cursors)
			})
		}, "PRIMARY"},
		{"take locks", inTx(5, func(tx *Tx) error { return tx.TakeLocks([]LockID{1, 2, 3, 100, 256}) }), "PRIMARY"},
		{"claim", func() (int, error) {
			return 2 * due, db.Tx(t.Context(), func(tx *Tx) (err error) { // each is locked, then written
				took, err = tx.Claim(me, 1_000_000, ids)
				return wantLen(err, len(took), due)
			})
		}, "PRIMARY"},
		{"siblings of a frequent job", inTx(1+dead/2, func(tx *Tx) error { // and what executes although it is due far ahead
			_, err := tx.Siblings([]int64{frequent}, nil, now+1)
			return err
		}), "due|slice"},
		{"mark started", func() (int, error) {
			return 2 * due, db.Tx(t.Context(), func(tx *Tx) error {
				var marks []Mark
				for _, task := range took {
					marks = append(marks, Mark{task.JobID, task.Due})
				}
				return tx.MarkStarted(marks)
			})
		}, "PRIMARY"},
		{"start", inTx(5*300, func(tx *Tx) error { return tx.Start(took[:300], now, 1) }), "PRIMARY"}, // each is in the list, and has a job; both are noted, then written
		{"free", inTx(100, func(tx *Tx) error { return tx.Free(ids[300:]) }), "PRIMARY"},
		// Of these, too, each is in the list and in the table.
		{"end", inTx(200, func(tx *Tx) error {
			var runs []job.Run
			for _, task := range took[:100] {
				runs = append(runs, run(task, job.Succeeded))
			}
			return tx.End(ids[:100], runs)
		}), "PRIMARY"},
		{"withdraw", inTx(20, func(tx *Tx) error { return tx.Withdraw(ids[100:110]) }), "PRIMARY"},
		{"retry", func() (int, error) {
			return 120, db.Tx(t.Context(), func(tx *Tx) error { // each is in the list and in the table, and its run, which failed, is noted
				var again []Again
				var runs []job.Run
				for _, task := range took[110:150] {
					again, runs = append(again, Again{task.ID, later}), append(runs, run(task, job.Failed))
				}
				return tx.Retry(again, runs)
			})
		}, "PRIMARY"},
		{"kills requested", func() (int, error) {
			none, err := db.KillsRequested(t.Context(), gone)
			return dead / 2, wantLen(err, len(none), 0)
		}, "owner"},
		{"all tasks of a job", func() (int, error) {
			return 2 * ahead, db.Tx(t.Context(), func(tx *Tx) error { // each is found, then locked
				rows, err := tx.LiveTasks(frequent)
				if err == nil && len(rows) < ahead {
					err = fmt.Errorf("found %d, want at least %d", len(rows), ahead)
				}
				return err
			})
		}, "due|PRIMARY"},
		{"tasks of a session", func() (int, error) {
			rows, err := db.SessionTasks(t.Context(), gone, 0, 200)
			return 200, wantLen(err, len(rows), 200)
		}, "owner"},
		{"tasks of a session, the next page", func() (int, error) {
			rows, err := db.SessionTasks(t.Context(), gone, 150, 200)
			return 150, wantLen(err, len(rows), 150)
		}, "owner"},
		{"a page of a job's runs", func() (int, error) {
			rows, err := db.Runs(t.Context(), RunFilter{JobID: frequent, Limit: 50, After: &RunPlace{Due: 10_000, Attempt: 1}})
			return 100, wantLen(err, len(rows), 50) // each with its job
		}, "attempt|PRIMARY"},
		{"one run", func() (int, error) {
			_, err := db.Run(t.Context(), ended)
			return dead, err // no index holds launches of tasks: all of the session's are looked at
		}, "owner|launch|PRIMARY"},
		{"status of a page of jobs", func() (int, error) {
			live, err := db.LiveJobs(t.Context(), jobIDs)
			return 2*len(jobIDs) + ahead, wantLen(err, len(live), len(jobIDs)) // all their tasks
		}, "due"},
		{"beat", func() (int, error) { return 1, beat(t, db, me) }, "PRIMARY"},
		{"jobs to hold", func() (int, error) { // of each task also its job
			found, _, more, err := db.Stoppable(t.Context(), "", []Slice{{ToHash: job.Hashes}}, job.Idle, later, 0, 100)
			if err == nil && !more {
				err = fmt.Errorf("it says that these are all")
			}
			return 200, wantLen(err, len(found), 100)
		}, "slice|PRIMARY"},
		{"apps of held jobs, beside one that is paused", func() (int, error) {
			f.exec("UPDATE job SET held = 1, app = IF(id MOD 2, 'a', 'b') ORDER BY id LIMIT 5000")
			apps, err := db.HeldApps(t.Context(), []string{"a"})
			return 1, wantLen(err, len(apps), 1)
		}, "held"},
		{"held jobs", func() (int, error) {
			held, err := db.HeldJobs(t.Context(), "b", []Slice{{ToHash: job.Hashes}}, 100, 200)
			return 200, wantLen(err, len(held), 200)
		}, "held"},
		{"a glance", func() (int, error) { // the end of an index for each fact
			_, err := db.Glance(t.Context(), GlanceOf{Session: session(7)})
			return 12, err
		}, "slice|plan|held|state|expires|grp|job|owner|due|name|firing|PRIMARY"},
		{"a glance of who has seen much that is due", func() (int, error) {
			g, err := db.Glance(t.Context(), GlanceOf{Idle: 5, Cursor: 6})
			if g.FirstIdle != 5 || g.FirstCursor != 6 || g.Owned {
				err = fmt.Errorf("got %+v", g)
			}
			return 10, err
		}, "held|state|expires|grp|job|owner|due|name|firing|PRIMARY"},
		{"what is untidy", func() (int, error) {
			_, err := db.Untidy(t.Context())
			return 6, err
		}, "stage|by_app|listed|created|at|PRIMARY"},
		{"what may start", func() (int, error) { // what executes, each with its job
			_, _, _, err := db.MayStart(t.Context(), "b", now, 0)
			return 2 * int(f.number("SELECT COUNT(*) FROM task WHERE state = 2 OR state = 1 AND due_now < ?", now)), err
		}, "slice|PRIMARY"},
		{"live tasks of some jobs", inTx(2*ahead, func(tx *Tx) error { // each is found, then locked
			rows, err := tx.LiveTasksOf([]int64{frequent, jobIDs[0]}, 10)
			return wantLen(err, len(rows), 1)
		}), "due|PRIMARY"},
		{"a page of the audit", func() (int, error) {
			f.exec("INSERT INTO audit (at, who, action, kind, ref) SELECT id, 'x', 'update', 'job', id MOD 10 FROM job ORDER BY id LIMIT 20000")
			p, err := db.Audit(t.Context(), AuditFilter{Limit: 50, After: &RunPlace{ID: 15_000, Due: 15_000}})
			return 50, wantLen(err, len(p.Lines), 50)
		}, "at"},
		{"a page of a job's audit", func() (int, error) {
			p, err := db.Audit(t.Context(), AuditFilter{JobID: 3, Limit: 50, To: 15_000})
			return 50, wantLen(err, len(p.Lines), 50)
		}, "ref"},
		{"the line of a job's audit that was in force", func() (int, error) {
			_, err := db.AuditBefore(t.Context(), AuditOf{Kind: job.KindJob, Ref: 3, Actions: []job.Action{job.ActionUpdate}}, 15_000)
			return 1, err
		}, "ref"},
		{"owners, once the server knows the table", func() (int, error) { // till then it reads an entry for each owned task
			f.exec("ANALYZE TABLE task")
			owners, err := db.Owners(t.Context())
			return 2, wantLen(err, len(owners), 2)
		}, "owner"},
	} {
		statements = nil
		before := read()
		needed, err := c.do()
		got := read() - before - asking
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		t.Logf("%-36s %5d rows read, %5d needed", c.name, got, needed)
		if most := engine.Reads * needed; got > int64(most+5) {
			t.Errorf("%s: got %d rows read, want at most about %d", c.name, got, most)
		}
		f.wantIndex(c.name, statements, c.index)
	}
}

func wantLen(err error, got, want int) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %d rows, want %d", got, want)
	}
	return err
}

func beat(t *testing.T, db *DB, id uuid.UUID) error {
	_, err := (&Pulse{db}).Beat(t.Context(), id, Vitals{})
	return err
}

// wantIndex asks the server how it would run the statements now.
func (f *fixture) wantIndex(name string, statements []string, want string) {
	f.Helper()
	explained := 0
	for _, s := range statements {
		verb, _, _ := strings.Cut(strings.TrimPrefix(s, "("), " ")
		if !strings.Contains("SELECT UPDATE DELETE", verb) {
			continue
		}
		rows, err := f.db.Raw().Query("EXPLAIN FORMAT=TRADITIONAL " + s)
		if err != nil {
			f.Fatalf("EXPLAIN %.80s: %v", s, err)
		}
		columns, _ := rows.Columns()
		for rows.Next() {
			values, ptrs := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				ptrs[i] = &values[i]
			}
			if err := rows.Scan(ptrs...); err != nil {
				f.Fatal(err)
			}
			line := map[string]string{}
			for i, c := range columns {
				if b, ok := values[i].([]byte); ok {
					line[c] = string(b)
				}
			}
			if line["table"] == "" || line["table"] == "n" { // a constant, or the list that came with the statement
				continue
			}
			explained++
			if key := line["key"]; key == "" || !strings.Contains("|"+want+"|", "|"+key+"|") || line["type"] == "ALL" {
				f.Errorf("%s: got index %q (access %s) of table %s, want %s, in %.120s", name, key, line["type"], line["table"], want, s)
			}
		}
		rows.Close()
	}
	if explained == 0 {
		f.Errorf("%s: no statement was seen", name)
	}
}
