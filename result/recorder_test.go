package result

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"
)

// recorded compares ends with the rows: each was written once, and reported once.
func (f *fixture) recorded(ends []trip.End) {
	f.Helper()
	for _, e := range ends {
		if n := f.written[e.Launch]; n != 1 {
			f.Errorf("run %s: said to be written %d times, want once", e.Launch, n)
		}
		f.want("rows that have ended", 1, "SELECT COUNT(*) FROM run WHERE id = ? AND state = 'ended' AND owner = -2 AND outcome = ? AND ended = ?",
			e.Run, e.Outcome.String(), int64(e.Ended))
	}
	f.want("runs that execute", 0, "SELECT COUNT(*) FROM run WHERE state = 'executing'")
}

// TestBatches: ends share transactions, up to a bound.
func TestBatches(t *testing.T) {
	f := setUp(t)
	all := f.executing(2*finishBatch + 3)
	for _, e := range all {
		f.recorder.Put(e, false)
	}

	before := f.proxy.Counts().Commits
	f.flush()
	if n := f.proxy.Counts().Commits - before; n != 3 {
		t.Errorf("got %d commits, want 3", n)
	}

	f.want("ended", len(all), "SELECT COUNT(*) FROM run WHERE outcome = 'succeeded' AND final = 1 AND started = due AND ended = due + 5")
	f.want("notes", 3, "SELECT COUNT(*) FROM ending")
	for _, e := range all {
		if f.written[e.Launch] != 1 {
			t.Fatalf("run %s: said to be written %d times, want once", e.Launch, f.written[e.Launch])
		}
	}
}

// TestStaleEnds: if a row is at another launch by now, a peer has ended the run or will. Our end is
// dropped, and the others of its batch are written.
func TestStaleEnds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"a peer ended it":                      "UPDATE run SET state = 'ended', owner = -2, outcome = 'lost' WHERE id = ?",
		"it was given back":                    "UPDATE run SET state = 'idle', owner = 0 WHERE id = ?",
		"another session prepared it":          "UPDATE run SET state = 'prepared', owner = 8, claim = 2 WHERE id = ?",
		"another session executes it":          "UPDATE run SET owner = 8, claim = 2 WHERE id = ?",
		"this session executes it again":       "UPDATE run SET claim = 2 WHERE id = ?",
		"this launch is prepared, not started": "UPDATE run SET state = 'prepared' WHERE id = ?",
		"retention removed it":                 "DELETE FROM run WHERE id = ?",
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			all := f.executing(3)
			all[1].Reason.Text, all[1].Output = "stale", job.Output{Head: []byte("stale"), Bytes: 5}
			f.exec(change, all[1].Run)
			f.put(all...)
			for _, e := range all {
				if f.written[e.Launch] != 1 {
					t.Errorf("run %s: said to be written %d times, want once", e.Launch, f.written[e.Launch])
				}
			}
			f.want("the others", 2, "SELECT COUNT(*) FROM run WHERE state = 'ended' AND outcome = 'succeeded'")
			f.want("the stale one", 0, "SELECT COUNT(*) FROM run WHERE reason = 'stale'")
			f.want("its output", 0, "SELECT COUNT(*) FROM output")
		})
	}
}

// TestLongTexts: texts that are too long for a row are cut, and the outcome is written all the
// same.
func TestLongTexts(t *testing.T) {
	f := setUp(t)
	all := f.executing(3)
	all[0].Signal, all[0].Outcome = strings.Repeat("SIG", 20), job.Killed
	all[1].Reason = job.Reason{Code: job.ReasonCode(strings.Repeat("x", 40)), Text: strings.Repeat("ä", 600)}
	all[1].Outcome = job.Failed
	all[2].Reason.Text, all[2].Outcome = "\xff\x00 \u2028 🐇", job.Failed
	f.put(all...)
	f.recorded(all)
	f.want("a long signal", 16, "SELECT CHAR_LENGTH(sig) FROM run WHERE id = ?", all[0].Run)
	f.want("a long reason", 512, "SELECT CHAR_LENGTH(reason) FROM run WHERE id = ?", all[1].Run)
	f.want("a long code", 32, "SELECT CHAR_LENGTH(reason_code) FROM run WHERE id = ?", all[1].Run)
	f.want("no code", 1, "SELECT reason_code IS NULL FROM run WHERE id = ?", all[2].Run)
	f.want("an odd reason", 1, "SELECT reason LIKE '%🐇' FROM run WHERE id = ?", all[2].Run)
}

// TestLockedRowsHoldUpNoOther: while the row of a run or of its job is locked, all other ends are
// written.
func TestLockedRowsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"the run": "SELECT id FROM run WHERE id = ? FOR UPDATE",
		"its job": "SELECT id FROM job WHERE id = (SELECT job_id FROM run WHERE id = ?) FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			f := setUp(t)
			again, others := f.executing(1)[0], f.executing(3)
			again.Outcome, again.Again, again.Final = job.Failed, 9000, false
			holder, err := f.beside.Raw().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Rollback()
			if _, err := holder.Exec(lock, again.Run); err != nil {
				t.Fatal(err)
			}

			f.recorder.Put(again, true)
			for _, e := range others {
				f.recorder.Put(e, false)
			}
			began := time.Now()
			busy, err := f.recorder.finish(t.Context())
			if err != nil || !busy || f.recorder.Waiting() != 1 {
				t.Errorf("got %v, %v, %d wait; want only the one whose row is held", busy, err, f.recorder.Waiting())
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %s beside a lock", took)
			}
			f.want("the others", 3, "SELECT COUNT(*) FROM run WHERE outcome = 'succeeded'")

			if err := holder.Rollback(); err != nil {
				t.Fatal(err)
			}
			f.flush()
			f.recorded(append(others, again))
			f.want("the next attempt", 1, "SELECT COUNT(*) FROM run WHERE state = 'idle' AND attempt = 2 AND due_now = 9000")
		})
	}
}

// TestKilledRunsAreNotTriedAgain: a run failed before its node had read the request to kill it.
func TestKilledRunsAreNotTriedAgain(t *testing.T) {
	f := setUp(t)
	all := f.executing(2)
	f.exec("UPDATE run SET wish = 'kill' WHERE id = ?", all[0].Run)
	for i := range all {
		all[i].Outcome, all[i].Again, all[i].Final = job.Failed, 9000, false
	}
	f.put(all...)
	f.recorded(all)
	f.want("next attempts", 1, "SELECT COUNT(*) FROM run WHERE attempt = 2")
	f.want("final ends", 1, "SELECT COUNT(*) FROM run WHERE id = ? AND final = 1", all[0].Run)
}

// definitions are those of jobs, by id.
type definitions map[int64]*job.Spec

func (d definitions) Spec(id int64, _ int32) (*job.Spec, bool) { s, is := d[id]; return s, is }
func (definitions) Learn(context.Context, []int64) error       { return nil }

// TestResultsRunAgain refuses each statement once, as a deadlock does, in the transactions that
// write ends, write live output, and remove old rows.
func TestResultsRunAgain(t *testing.T) {
	r := setUpRetaining(t)
	f := r.fixture
	schema := faultproxy.NewSchema(t, f.beside.Raw())
	for name, change := range map[string]func() func() (any, error){
		"finish": func() func() (any, error) {
			ends := f.executing(4)
			ends[0].Again, ends[0].Final, ends[0].Outcome = 5_000, false, job.Failed
			f.exec("UPDATE run SET awaited = 1 WHERE id = ?", ends[1].Run)
			ends[2].Output = job.Output{Head: []byte("text"), Bytes: 4}
			ends[3].Live = true
			f.pieces(ends[3].Launch)
			for _, e := range ends {
				f.recorder.Put(e, false)
			}
			return func() (any, error) {
				f.flush()
				f.exec("UPDATE run SET id = 1 WHERE attempt = 2") // each try mints an id
				return f.recorder.Waiting(), nil
			}
		},

		"finish a run that others follow": func() func() (any, error) {
			ends := f.executing(2)
			id, name := ends[0].JobID, fmt.Sprint(f.jobs)
			after := &job.After{Jobs: []string{name, "other"}, On: job.OnSuccess, Match: job.MatchAll}
			follower := f.job("x", "{}")
			f.recorder.Definitions = definitions{
				id: {App: "x", Name: name, Delay: 5e9}, follower: {App: "x", Name: "f", After: after},
			}
			f.exec("INSERT INTO job_ref (kind, name, job_id) VALUES (6, ?, ?)", name, follower)
			f.exec("UPDATE run SET awaited = 2 WHERE id = ?", ends[1].Run)
			for _, e := range ends {
				f.recorder.Put(e, false)
			}
			return func() (any, error) {
				f.flush()
				f.exec("UPDATE run SET id = 1 WHERE kind = 'after'") // each try mints an id
				f.want("the follower is due", 1, "SELECT COUNT(*) FROM run WHERE kind = 'after' AND state = 'idle'")
				f.want("the job is due again", 1, "SELECT COUNT(*) FROM job WHERE id = ? AND next_due > 0", id)
				f.want("the end has arrived", 1, "SELECT COUNT(*) FROM arrival WHERE run_id = ?", ends[1].Run)
				return f.recorder.Waiting(), nil
			}
		},

		"keep what a run writes": func() func() (any, error) {
			v := f.live()
			v.Sink(f.launch(1))([]byte("some text"))
			f.tick(v, quietTicks)
			return func() (any, error) { return nil, v.flush(t.Context()) }
		},

		"retain": func() func() (any, error) {
			r.rule("", `{"age":"24h"}`)
			id := r.job("shop", "{}")
			r.ran(id, job.Failed, 10, hours(50, 30, 20)...)
			x := r.retainer(nil)
			x.DB = read.Retention{DB: f.through}
			return func() (any, error) {
				mine, err := x.Round(t.Context())
				f.exec("DELETE FROM chore") // says how long it took
				return mine, err
			}
		},

		"trim": func() func() (any, error) {
			id := r.job("shop", "{}")
			for range 3 {
				r.wrote(id, 10)
			}
			r.limit("shop", 15)
			x := r.trimmer()
			x.looked, x.latest = true, int64(f.number("SELECT MAX(id) FROM ending"))
			return func() (any, error) {
				more, err := x.Look(t.Context())
				f.exec("DELETE FROM chore")                                // says how long it took
				f.exec("UPDATE app_output SET count = 1 WHERE app_id > 0") // when it began
				f.exec("UPDATE output SET counted = 1 WHERE counted > 0")  // so does this
				return more, err
			}
		},

		"tidy": func() func() (any, error) {
			f.exec("INSERT INTO request (kind, job_id, digest, created) VALUES ('x', 0, REPEAT('x', 32), 1)")
			f.exec("INSERT INTO ending (at, runs) VALUES (1, ''), (1, '')")
			f.exec("INSERT INTO app_start (app, at, session_id, starts) VALUES ('x', 1, '', 1)")
			x := f.tidier()
			x.DB = f.through
			return func() (any, error) { return x.Tidy(t.Context(), r.now) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				f.session.minted.Store(0)
				f.jobs, r.wrotes = 0, 0
				f.exec("INSERT IGNORE INTO app (id, name) VALUES (1, 'x'), (2, 'shop')")
				return f.proxy, change()
			})
		})
	}
}
