package result

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"

	"github.com/google/uuid"
)

// living is a session that stays alive.
type living struct {
	id  uuid.UUID
	now job.Micros
}

func (l *living) ID() uuid.UUID   { return l.id }
func (l *living) Now() job.Micros { return l.now }
func (l *living) Fresh() bool     { return true }

// retaining is a fixture for the removal of records.
type retaining struct {
	*fixture
	now    job.Micros
	wrotes int // how many runs wrote wrote
}

func setUpRetaining(t *testing.T) *retaining {
	f := setUp(t)
	f.exec("DELETE FROM retention")
	return &retaining{f, job.MicrosOf(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)), 0}
}

func (r *retaining) retainer(archive Archive) *Retainer {
	return NewRetainer(RetainerConfig{
		DB: read.Retention{DB: r.beside}, Session: &living{uuid.New(), r.now}, Archive: archive, Lookout: lookout{}, Log: r.log(),
	})
}

func (r *retaining) rule(app, spec string) {
	r.exec("INSERT INTO retention (app, spec) VALUES (?, ?) ON DUPLICATE KEY UPDATE spec = VALUES(spec)", app, spec)
}

// put writes a rule as the API does.
func (r *retaining) put(app string, rule job.Retention) {
	r.Helper()
	err := r.beside.Tx(r.Context(), func(tx *sql.Tx) error {
		if _, err := trip.LockRetention(tx, app); err != nil {
			return err
		}
		return trip.PutRetention(tx, app, rule, "admin", r.now)
	})
	if err != nil {
		r.Error(err)
	}
}

// redefine gives a job a new definition, as an edit does.
func (r *retaining) redefine(id int64, definition string) {
	tx, err := r.beside.Raw().Begin()
	if err != nil {
		r.Error(err)
		return
	}
	defer tx.Rollback()
	_, err = tx.Exec("UPDATE job SET version = version + 1 WHERE id = ?", id)
	if err == nil {
		_, err = tx.Exec("INSERT INTO job_version (job_id, version, definition, created) SELECT id, version, ?, 1 FROM job WHERE id = ?", definition, id)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		r.Error(err)
	}
}

// endedRun describes an ended run.
type endedRun struct {
	job     int64
	outcome job.Outcome
	due     job.Micros
	ended   job.Micros
	output  job.Output
}

// insert writes ended runs, and returns their ids.
func (r *retaining) insert(runs ...endedRun) (ids []int64) {
	r.Helper()
	for part := range slices.Chunk(runs, 500) {
		var rows, outputs []string
		var args, kept []any
		for _, e := range part {
			id := r.session.Mint(1)
			ids = append(ids, id)
			rows = append(rows, "(?, ?, (SELECT app_id FROM job WHERE id = ?), ?, 'schedule', 'ended', -2, 1, ?, 1, 7, ?, ?, ?, 1, ?, ?)")
			args = append(args, id, e.job, e.job, int64(e.due), int64(e.due), int64(e.due), int64(e.ended), e.outcome.String(),
				e.output.Bytes, e.output.Kept())
			if e.output.Kept() > 0 {
				outputs = append(outputs, "(?, ?, ?, ?)")
				kept = append(kept, id, e.output.Head, []byte{}, e.output.Encoding)
			}
		}
		r.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, session, started, ended, outcome, final,
			output_bytes, output_kept) VALUES `+strings.Join(rows, ", "), args...)
		if len(kept) > 0 {
			r.exec("INSERT INTO output (run_id, head, tail, encoding) VALUES "+strings.Join(outputs, ", "), kept...)
		}
	}

	r.exec("INSERT IGNORE INTO notable SELECT outcome, due, id, app_id, job_id FROM run WHERE outcome <> 'succeeded'")
	return ids
}

// ran records runs that ended so long ago, the earliest first, with an output of some bytes each.
func (r *retaining) ran(id int64, outcome job.Outcome, output int, ago ...time.Duration) {
	r.Helper()
	var runs []endedRun
	for _, d := range ago {
		at := r.now.Add(-d)
		e := endedRun{job: id, outcome: outcome, due: at.Add(-time.Second), ended: at}
		if output > 0 {
			e.output = job.Output{Head: []byte(strings.Repeat("x", output)), Bytes: int64(output)}
			e.output.Pack()
		}
		runs = append(runs, e)
	}
	r.insert(runs...)
}

// left returns the ages of the remaining runs, in hours. It checks that the other tables have no
// rows of removed runs.
func (r *retaining) left(id int64) string {
	r.Helper()
	rows, err := r.beside.Raw().Query("SELECT ended FROM run WHERE job_id = ? ORDER BY ended", id)
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var at job.Micros
		if err := rows.Scan(&at); err != nil {
			r.Fatal(err)
		}
		out = append(out, fmt.Sprint(int(r.now.Sub(at)/time.Hour)))
	}

	r.want("output without a run", 0, "SELECT COUNT(*) FROM output o WHERE NOT EXISTS (SELECT 1 FROM run r WHERE r.id = o.run_id)")
	r.want("runs without output", 0, "SELECT COUNT(*) FROM run r WHERE r.output_bytes > 0 AND NOT EXISTS (SELECT 1 FROM output o WHERE r.id = o.run_id)")
	r.want("notes without a run", 0, "SELECT COUNT(*) FROM notable n WHERE NOT EXISTS (SELECT 1 FROM run r WHERE r.id = n.run_id)")
	return strings.Join(out, " ")
}

func hours(list ...int) (out []time.Duration) {
	for _, n := range list {
		out = append(out, time.Duration(n)*time.Hour)
	}
	return out
}

func (r *retaining) round(x *Retainer) {
	r.Helper()
	if mine, err := x.Round(r.Context()); err != nil || !mine {
		r.Fatalf("got %v, %v; want a round", mine, err)
	}
}

func TestRetention(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"100h","failures":"300h"}`)
	r.rule("shop", `{"age":"50h"}`)
	cases := map[string]struct {
		app, spec, left string
		id              int64
	}{
		"the cluster's rule, and failures longer": {"x", `{}`, "250 90 20 10", 0},
		"the app's rule, failures as the cluster": {"shop", `{}`, "250 20 10", 0},
		"the job's rule":                    {"shop", `{"keep":{"age":"15h","failures":"1m"}}`, "10", 0},
		"so many":                           {"x", `{"keep":{"runs":2,"failures":"1m"}}`, "20 10", 0},
		"so many, but failures longer":      {"x", `{"keep":{"runs":1}}`, "250 10", 0},
		"for ever":                          {"x", `{"keep":{"age":"876000h"}}`, "400 390 250 200 90 20 10", 0},
		"a rule that nobody can read":       {"x", `{"keep":{"age":7}}`, "400 390 250 200 90 20 10", 0},
		"a definition that nobody can read": {"x", `{"keep`, "250 90 20 10", 0},
		"bytes":                             {"x", `{"keep":{"age":"876000h","bytes":"2000B","failures":"1m"}}`, "20 10", 0},
	}

	for name, c := range cases {
		c.id = r.job(c.app, c.spec)
		cases[name] = c
		r.ran(c.id, job.Succeeded, 1000, hours(400, 200, 90, 20, 10)...)
		r.ran(c.id, job.Failed, 700, hours(390, 250)...)
	}

	r.exec("UPDATE job SET living = NULL WHERE id = ?", cases["the cluster's rule, and failures longer"].id) // also of jobs that are gone
	r.round(r.retainer(nil))
	removed := 7*9 - int(r.number("SELECT COUNT(*) FROM run"))
	r.want("records that are told to be removed", removed, "SELECT removed FROM chore WHERE name = 'retention'")
	for name, c := range cases {
		if got := r.left(c.id); got != c.left {
			t.Errorf("%s: left are %q, want %q", name, got, c.left)
		}
	}

	before := r.number("SELECT COUNT(*) FROM run")
	r.round(r.retainerWith(nil))
	r.want("records after another round", before, "SELECT COUNT(*) FROM run")
}

// TestRetentionOfLargeOutputs removes the parts of outputs with them, and leaves those of other runs.
// finishedIn answers for the editor of jobs.
type finishedIn struct {
	asked [][]int64
	err   error
}

func (f *finishedIn) DeleteFinished(_ context.Context, jobs []job.FinishedJob) (int, error) {
	var ids []int64
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	f.asked = append(f.asked, ids)
	return len(ids), f.err
}

// TestRetentionOfJobs: the node with the chore hands over the jobs whose time has come. If they cannot be deleted, it
// still removes records.
func TestRetentionOfJobs(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	ids := map[string]int64{}
	for name, ago := range map[string]time.Duration{"over": 31 * 24 * time.Hour, "not yet": 29 * 24 * time.Hour} {
		id := r.job("x", `{"at":"2026-01-01T00:00:00Z","keep_job":"720h"}`)
		term := job.KeepJobTerm()
		r.exec("INSERT INTO job_term (term, job_id) VALUES (?, ?)", term[:], id)
		r.exec("UPDATE job SET next_due = NULL WHERE id = ?", id)
		r.ran(id, job.Succeeded, 0, ago)
		ids[name] = id
	}
	f := &finishedIn{err: errors.New("MySQL is away")}
	x := r.retainer(nil)
	x.Jobs = f
	if mine, err := x.Round(t.Context()); !mine || err != nil {
		t.Fatalf("got %v, %v", mine, err)
	}
	if len(f.asked) != 1 || !slices.Equal(f.asked[0], []int64{ids["over"]}) {
		t.Errorf("asked for %v, want job %d", f.asked, ids["over"])
	}
	if n := r.number("SELECT COUNT(*) FROM run"); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func TestRetentionOfLargeOutputs(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"100h"}`)
	id := r.job("x", `{}`)
	r.ran(id, job.Succeeded, 1000, hours(300, 200, 10)...)
	r.exec("UPDATE run SET output_kept = 5000000 WHERE job_id = ?", id)
	r.exec("UPDATE output SET parts = 20")
	r.exec(`INSERT INTO output_part (run_id, at_byte, size, line, data)
		SELECT o.run_id, n.seq, 1, 0, 'x'
		FROM output o, (SELECT 40 seq UNION SELECT 41 UNION SELECT 42 UNION SELECT 43 UNION SELECT 44 UNION SELECT 45
			UNION SELECT 46 UNION SELECT 47 UNION SELECT 48 UNION SELECT 49 UNION SELECT 50 UNION SELECT 51) n`)

	r.round(r.retainer(nil))
	if got := r.left(id); got != "10" {
		t.Errorf("left are %q", got)
	}
	r.want("parts", 12, "SELECT COUNT(*) FROM output_part")
	r.want("parts without output", 0, "SELECT COUNT(*) FROM output_part p WHERE p.run_id NOT IN (SELECT run_id FROM output)")
}

// TestRetentionInBatches removes more than one batch, in several jobs, by one node at a time.
func TestRetentionInBatches(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"runs":3}`)
	var ids []int64
	for range 3 {
		id := r.job("x", `{}`)
		ids = append(ids, id)
		var ago []time.Duration
		for i := range 2*dropBatch + 17 {
			ago = append(ago, time.Duration(i+1)*time.Minute)
		}
		r.ran(id, job.Succeeded, 0, ago...)
	}

	one, two := r.retainer(nil), r.retainer(nil)
	if mine, _, err := takeChore(t.Context(), r.beside.DB, choreRetention, one.Session.ID(), time.Minute); !mine || err != nil {
		t.Fatalf("got %v, %v", mine, err)
	}

	if mine, err := two.Round(t.Context()); mine || err != nil {
		t.Errorf("beside another node: got %v, %v; want it to leave the chore alone", mine, err)
	}

	r.round(one)
	for _, id := range ids {
		r.want("records", 3, "SELECT COUNT(*) FROM run WHERE job_id = ?", id)
	}

	r.want("records that are told to be removed", 3*(2*dropBatch+14), "SELECT removed FROM chore WHERE name = 'retention'")
	r.exec("UPDATE chore SET until = 0") // its node is gone
	r.round(two)
}

// TestRetentionOfMany: old records go even if they follow more long-kept failures than one look
// reads; and more records are kept than one look counts.
func TestRetentionOfMany(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h","failures":"100000h"}`)
	failing, long := r.job("x", `{}`), r.job("x", fmt.Sprintf(`{"keep":{"age":"100000h","runs":%d}}`, read.LookMost+5))
	for i := 0; i < read.LookMost+20; i += 510 {
		var ago []time.Duration
		for k := range min(510, read.LookMost+20-i) {
			ago = append(ago, 400*time.Hour-time.Duration(i+k)*time.Second)
		}
		r.ran(failing, job.Failed, 0, ago...)
		r.ran(long, job.Succeeded, 0, ago...)
	}

	r.ran(failing, job.Succeeded, 0, hours(9, 8, 0)...)
	r.round(r.retainer(nil))
	r.want("failures", read.LookMost+20, "SELECT COUNT(*) FROM run WHERE job_id = ? AND outcome = ?", failing, job.Failed)
	r.want("successes", 1, "SELECT COUNT(*) FROM run WHERE job_id = ? AND outcome = ?", failing, job.Succeeded)
	r.want("records of the other", read.LookMost+5, "SELECT COUNT(*) FROM run WHERE job_id = ?", long)
}

// TestRetentionGoesOn: a round begins where the last one ended.
func TestRetentionGoesOn(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	a, b := r.job("x", `{}`), r.job("x", `{}`)
	r.ran(a, job.Succeeded, 0, hours(5)...)
	r.ran(b, job.Succeeded, 0, hours(5)...)
	r.exec("UPDATE chore SET at_id = ?", a)
	x := r.retainer(nil)
	r.round(x)
	if r.left(a) != "5" || r.left(b) != "" {
		t.Errorf("left are %q and %q, want those of the first job", r.left(a), r.left(b))
	}
	r.round(x)
	if r.left(a) != "" {
		t.Errorf("left are %q after a round over all", r.left(a))
	}
}

// TestRetentionRests: many small batches get as much rest as few large ones, in pieces.
func TestRetentionRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches, took = 100, 2 * time.Millisecond
		r, began := NewRetainer(RetainerConfig{Lookout: lookout{}}), time.Now()
		for range batches {
			r.restLater(t.Context(), took)
		}
		if rested, want := time.Since(began), rest*batches*took; rested > want || rested < want-restLeast {
			t.Errorf("it rested for %s, want %s", rested, want)
		}
		began = time.Now()
		r.rest(t.Context(), time.Hour)
		if rested := time.Since(began); rested != restLongest {
			t.Errorf("it rested for %s after a batch that took an hour, want %s", rested, restLongest)
		}
	})
}

// TestRetentionByTheRuleOfNow withdraws a rule in several ways while its first batch is being
// removed. The rule removes nothing more.
func TestRetentionByTheRuleOfNow(t *testing.T) {
	t.Parallel()
	longer := job.Retention{Keep: job.Keep{Age: job.Duration(2160 * time.Hour)}}
	for name, c := range map[string]struct {
		change func(r *retaining, id int64)
		err    error
	}{
		"the cluster's rule": {func(r *retaining, _ int64) { r.put("", longer) }, nil},
		"the app gets one":   {func(r *retaining, _ int64) { r.put("x", longer) }, nil},
		"the job keeps more": {func(r *retaining, id int64) {
			r.redefine(id, `{"keep":{"age":"2160h"}}`)
		}, nil},

		"nobody can read what the job keeps": {func(r *retaining, id int64) {
			r.redefine(id, `{"keep":{"age":7}}`)
		}, nil},

		"the archive is to have them": {func(r *retaining, _ int64) { r.rule("", `{"age":"1h","archive":true}`) }, errNoArchive},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			r.rule("", `{"age":"1h"}`)
			var ids []int64
			for range 2 {
				id := r.job("x", `{}`)
				var ago []time.Duration
				for i := range dropBatch + 5 {
					ago = append(ago, 2*time.Hour+time.Duration(i)*time.Minute)
				}
				r.ran(id, job.Succeeded, 0, ago...)
				ids = append(ids, id)
			}
			x := r.retainer(nil)
			x.Lookout = lookout{func() bool { // it rests after the first batch
				for _, id := range ids {
					c.change(r, id)
				}
				x.Lookout = lookout{}
				return false
			}}
			mine, err := x.Round(t.Context())
			if !mine || !errors.Is(err, c.err) {
				t.Errorf("got %v, %v; want a round, and %v", mine, err, c.err)
			}
			r.want("records of the first job", 5, "SELECT COUNT(*) FROM run WHERE job_id = ?", ids[0])
			r.want("records of the other", dropBatch+5, "SELECT COUNT(*) FROM run WHERE job_id = ?", ids[1])
			r.want("records that are told to be removed", dropBatch, "SELECT removed FROM chore WHERE name = 'retention'")
		})
	}
}

// TestRetentionGoesOnByNewRules: archived records stay if their rule is withdrawn before the
// delete, and the same round follows the new rule.
func TestRetentionGoesOnByNewRules(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	a, b := r.job("x", `{}`), r.job("x", `{}`)
	for _, id := range []int64{a, b} {
		r.ran(id, job.Succeeded, 100, hours(50, 40, 5, 4)...)
		r.ran(id, job.Failed, 100, hours(49, 3)...)
	}

	archived := 0
	x := r.retainer(func(_ context.Context, runs []read.Run) error {
		if archived += len(runs); archived == 6 {
			r.put("", job.Retention{Keep: job.Keep{Age: job.Duration(30 * time.Hour)}})
		}
		return nil
	})

	r.round(x)
	for _, id := range []int64{a, b} {
		if got := r.left(id); got != "5 4 3" {
			t.Errorf("left are %q, want what the new rule keeps", got)
		}
	}

	if archived != 6+3+3 {
		t.Errorf("%d records were archived, want all of the first job, and what went", archived)
	}

	r.want("records that are told to be removed", 6, "SELECT removed FROM chore WHERE name = 'retention'")
}

// TestRuleWaitsForABatch: a change of a rule or of a job's own limits is answered once no batch
// follows the old ones.
func TestRuleWaitsForABatch(t *testing.T) {
	t.Parallel()
	longer := job.Retention{Keep: job.Keep{Age: job.Duration(2160 * time.Hour)}}
	for name, change := range map[string]func(r *retaining, id int64){
		"the cluster's rule":      func(r *retaining, _ int64) { r.put("", longer) },
		"the first one of an app": func(r *retaining, _ int64) { r.put("x", longer) },
		"what a job keeps": func(r *retaining, id int64) {
			r.redefine(id, `{"keep":{"age":"2160h"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			r.rule("", `{"age":"1h"}`)
			id := r.job("x", `{}`)
			r.ran(id, job.Succeeded, 0, hours(5, 4)...)
			x := r.retainer(nil)
			x.DB = read.Retention{DB: r.through}
			held := r.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("DELETE r"), Action: faultproxy.HoldBefore(0)})

			var going sync.WaitGroup
			going.Go(func() { r.round(x) })
			if err := held.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}

			changed := make(chan bool)
			going.Go(func() { change(r, id); close(changed) })
			select {
			case <-changed:
				t.Error("it is answered while a batch goes by the old one")
			case <-time.After(100 * time.Millisecond):
			}
			held.Release()
			going.Wait()
			if got := r.left(id); got != "" {
				t.Errorf("left are %q", got)
			}
		})
	}
}

// TestOneNodeAtATime: after a rest, after the archive command of another job, and after slow reads,
// a node checks that it still has the chore before it removes or archives anything.
func TestOneNodeAtATime(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	a, b, c := r.job("x", `{}`), r.job("x", `{}`), r.job("x", `{}`)
	var many []time.Duration
	for i := range dropBatch + 5 {
		many = append(many, 2*time.Hour+time.Duration(i)*time.Minute)
	}
	r.ran(a, job.Succeeded, 0, many...)
	r.ran(b, job.Succeeded, 0, hours(5)...)
	r.ran(c, job.Succeeded, 0, hours(5)...)
	// late is what a node finds that took the chore long ago: another one has it.
	late := func(x *Retainer) {
		x.held = time.Now().Add(-choreKeep)
		r.exec("UPDATE chore SET session_id = 'somebody else', until = UNIX_TIMESTAMP() * 1000000 + ?", choreHold.Microseconds())
	}
	stops := func(what string, x *Retainer, left int) {
		t.Helper()
		if _, err := x.Round(t.Context()); !errors.Is(err, errTaken) {
			t.Errorf("%s: got %v, want %v", what, err, errTaken)
		}
		r.want("records behind "+what, left, "SELECT COUNT(*) FROM run")
	}
	x := r.retainer(nil)
	x.Lookout = lookout{func() bool { late(x); return false }}
	stops("a rest", x, 5+2)

	x = r.retainerWith(nil)
	x.Archive = func(_ context.Context, runs []read.Run) error {
		if runs[0].JobID == b {
			late(x)
		}
		return nil
	}
	stops("another job's command", x, 1)

	x = r.retainerWith(func(context.Context, []read.Run) error {
		t.Error("reads: records are archived")
		return nil
	})
	late(x)
	if _, err := x.archive(t.Context(), c, []trip.OldRun{{ID: 1}}); !errors.Is(err, errTaken) {
		t.Errorf("reads: got %v, want %v", err, errTaken)
	}
}

// TestArchiveDoesNotCountForTheRest: the command may take minutes, in which MySQL is idle.
func TestArchiveDoesNotCountForTheRest(t *testing.T) {
	const command = time.Second
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	id := r.job("x", `{}`)
	r.ran(id, job.Succeeded, 0, hours(5)...)
	x := r.retainer(func(context.Context, []read.Run) error {
		time.Sleep(command)
		return nil
	})

	x.held = time.Now()
	rules := map[string]job.Retention{"": {Keep: job.Keep{Age: job.Duration(time.Hour)}}}
	j := &read.KeptJob{ID: id, App: "x", Version: 1}
	n, took, err := x.batch(t.Context(), j, &read.Cut{JobID: id, Due: r.now, Ended: r.now, Failed: r.now}, rules, archiveBatch)
	if n != 1 || err != nil || took <= 0 || took >= command {
		t.Errorf("got %d, %s, %v; want one record, in less time than the command", n, took, err)
	}
}

// TestRetentionOfJobsBehind: records that cannot go, because one is locked or its output is
// unreadable, do not keep the records of other jobs.
func TestRetentionOfJobsBehind(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		archive Archive
		prepare func(r *retaining, id int64) (release func())
		told    bool
	}{
		"an output of a newer version": {`{"age":"1h","archive":true}`, func(context.Context, []read.Run) error { return nil }, func(r *retaining, id int64) func() {
			r.exec("UPDATE output SET encoding = 9 WHERE run_id = (SELECT MAX(id) FROM run WHERE job_id = ?)", id)
			return func() { r.exec("UPDATE output SET encoding = 1 WHERE encoding = 9") }
		}, true},

		"a record that somebody holds": {`{"age":"1h"}`, nil, func(r *retaining, id int64) func() {
			holder, err := r.beside.Raw().BeginTx(r.Context(), nil)
			if err == nil {
				_, err = holder.Exec("SELECT id FROM run WHERE id = ? FOR UPDATE", r.number("SELECT MIN(id) FROM run WHERE job_id = ?", id))
			}
			if err != nil {
				r.Fatal(err)
			}
			return func() { _ = holder.Rollback() }
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			r.rule("", c.spec)
			first, second := r.job("x", `{}`), r.job("x", `{}`)
			r.ran(first, job.Succeeded, 1000, hours(5, 4)...)
			r.ran(second, job.Succeeded, 1000, hours(5, 4)...)
			var many []time.Duration // or the server looks at all rows for some of them
			for i := range 500 {
				many = append(many, time.Duration(i)*time.Second)
			}
			r.ran(r.job("x", `{}`), job.Succeeded, 0, many...)
			release := c.prepare(r, first)
			x := r.retainer(c.archive)
			x.DB = read.Retention{DB: r.through} // waits for locks as a node does
			r.round(x)
			if left := r.left(first) + "; " + r.left(second); left != "5 4; " {
				t.Errorf("left are %q, want what cannot go", left)
			}
			told := fmt.Sprintf("cannot remove records of job %d: ", first)
			if said := r.number("SELECT COUNT(*) FROM chore WHERE error LIKE CONCAT(?, '%')", told) == 1; said != c.told {
				t.Errorf("told that it cannot be read: %v, want %v", said, c.told)
			}
			release()
			r.round(x)
			if left := r.left(first); left != "" {
				t.Errorf("left are %q when nothing is in the way any more", left)
			}
		})
	}
}

// TestArchiveOfJobsBehind: records that the archive refuses do not keep the records of other jobs,
// even if several such jobs are adjacent. They are reported as long as there are any.
func TestArchiveOfJobsBehind(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h","archive":true}`)
	var ids []int64
	for range 7 {
		id := r.job("x", `{}`)
		ids = append(ids, id)
		r.ran(id, job.Succeeded, 0, hours(5)...)
	}

	var refused []int64
	asked := 0
	x := r.retainer(func(_ context.Context, runs []read.Run) error {
		asked++
		if slices.Contains(refused, runs[0].JobID) {
			return errors.New("no such field")
		}
		return nil
	})

	for _, c := range []struct {
		what                  string
		refused               []int64
		ended                 bool // it came to the end of the jobs
		asked, left, failures int
	}{
		{"one is refused", ids[:1], true, 7, 1, 1},
		{"it still is", ids[:1], true, 1, 1, 2},
		{"it is taken", nil, true, 1, 0, 0},
		{"side by side", ids[1:6], false, 4, 6, 3},
		{"the next one, too", ids[1:6], false, 1, 6, 4},
		{"and the one behind it", ids[1:6], false, 1, 6, 5},
		{"behind them", ids[1:6], true, 1, 5, 5},
		{"they are taken", nil, true, 5, 0, 0},
	} {
		if c.what == "side by side" {
			for _, id := range ids {
				r.ran(id, job.Succeeded, 0, hours(4)...)
			}
		}
		asked, refused = 0, c.refused
		if mine, err := x.Round(t.Context()); !mine || c.ended != (err == nil) || err != nil && !errors.Is(err, errArchive) {
			t.Errorf("%s: got %v, %v", c.what, mine, err)
		}
		if asked != c.asked {
			t.Errorf("%s: the archive was asked %d times, want %d", c.what, asked, c.asked)
		}
		r.want("records left, "+c.what, c.left, "SELECT COUNT(*) FROM run")
		r.want("failures, "+c.what, c.failures, "SELECT failures FROM chore WHERE name = 'retention'")
	}
}

// TestRetentionStaysWhereItWas: if a node takes over and dies in the middle of a job, the recorded
// place is unchanged.
func TestRetentionStaysWhereItWas(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h"}`)
	a, b := r.job("x", `{}`), r.job("x", `{}`)
	r.ran(a, job.Succeeded, 0, hours(5)...)
	r.ran(b, job.Succeeded, 0, hours(5)...)
	r.exec("UPDATE chore SET at_id = ?", a)
	ctx, die := context.WithCancel(t.Context())
	x := r.retainer(func(context.Context, []read.Run) error { die(); return ctx.Err() })
	if _, err := x.Round(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	r.want("where it is", int(a), "SELECT at_id FROM chore WHERE name = 'retention'")
}

// TestArchiveKnowsNoSettings: the command has the node's environment without the database's
// password and the secrets.
func TestArchiveKnowsNoSettings(t *testing.T) {
	for _, name := range []string{"GOCRONTAB_DSN", "GOCRONTAB_SECRET_KEY", "GOCRONTAB_SECRET_TOKEN", "ARCHIVE_BUCKET"} {
		t.Setenv(name, "x")
	}
	file := filepath.Join(t.TempDir(), "env")
	archive := ArchiveCommand("cat > /dev/null; env | grep -oE '^GOCRONTAB_[^=]*|^ARCHIVE_.*' | sort > '"+file+"'", time.Minute)
	if err := archive(t.Context(), make([]read.Run, 3)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "ARCHIVE_BUCKET=x\nGOCRONTAB_RECORDS\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// TestRetentionWaits: while due times are overdue, the next batch waits, for a limited time. It
// goes on as soon as none is overdue, and stops waiting when it must end.
func TestRetentionWaits(t *testing.T) {
	const took = 100 * time.Millisecond
	for name, c := range map[string]struct {
		behind, until    time.Duration // for how long due times are overdue; when it is to end, zero: never
		nobody           bool
		atLeast, andMost time.Duration
	}{
		"nobody knows":                  {nobody: true, atLeast: rest * took, andMost: rest * took},
		"nothing is overdue":            {atLeast: rest * took, andMost: rest * took},
		"for a while":                   {behind: 5 * time.Second, atLeast: 5 * time.Second, andMost: 5*time.Second + restLeast},
		"all the time":                  {behind: time.Hour, atLeast: restMost, andMost: restMost + rest*took},
		"it is to end while they are":   {behind: time.Hour, until: 3 * time.Second, atLeast: 3 * time.Second, andMost: 3 * time.Second},
		"it is to end while it rests":   {until: took, atLeast: took, andMost: took},
		"they are not when it has done": {behind: rest*took - 1, atLeast: rest * took, andMost: rest * took},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				known := lookout{func() bool { return time.Since(began) < c.behind }}
				if c.nobody {
					known = lookout{}
				}
				r := NewRetainer(RetainerConfig{Lookout: known})
				ctx := t.Context()
				if c.until > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.until)
					defer cancel()
				}

				r.rest(ctx, took)
				if waited := time.Since(began); waited < c.atLeast || waited > c.andMost {
					t.Errorf("it waited for %s, want %s to %s", waited, c.atLeast, c.andMost)
				}
			})
		})
	}
}

func TestArchive(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"age":"1h","archive":true}`)
	id := r.job("x", `{}`)
	r.ran(id, job.Failed, 1000, hours(50)...)
	r.exec("UPDATE run SET reason_code = 'exit_code', reason = 'exit status 3' WHERE outcome = 'failed'")
	var many []time.Duration
	for i := range archiveBatch + 5 {
		many = append(many, time.Duration(200+i)*time.Minute)
	}

	r.ran(id, job.Succeeded, 0, many...)
	if _, err := r.retainer(nil).Round(t.Context()); !errors.Is(err, errNoArchive) {
		t.Errorf("a node without the command: got %v, want %v", err, errNoArchive)
	}

	file := filepath.Join(t.TempDir(), "it's archived")
	bad := map[string]Archive{
		"it fails":      ArchiveCommand("cat > /dev/null; echo no room >&2; exit 3", time.Minute),
		"it hangs":      ArchiveCommand("sleep 1000 & sleep 1000", 300*time.Millisecond),
		"there is none": ArchiveCommand("/there/is/none", time.Minute),
	}

	for name, a := range bad {
		r.round(r.retainerWith(a))
		r.want("records when "+name, archiveBatch+6, "SELECT COUNT(*) FROM run")
		r.want("failures", 1, "SELECT failures FROM chore WHERE name = 'retention'")
	}

	r.round(r.retainerWith(bad["it fails"]))
	r.want("what it said", 1, "SELECT COUNT(*) FROM chore WHERE error LIKE CONCAT('job ', ?, ': exit status 3: no room%')", id)
	r.round(r.retainerWith(ArchiveCommand("cat >> '"+strings.ReplaceAll(file, "'", `'\''`)+"'", time.Minute)))
	if r.left(id) != "" {
		t.Errorf("left are %q", r.left(id))
	}

	r.want("failures", 0, "SELECT failures FROM chore WHERE name = 'retention'")
	r.want("records that are told to be archived", archiveBatch+6, "SELECT archived FROM chore WHERE name = 'retention'")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen, failed := map[string]bool{}, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		var a archived
		if err := json.Unmarshal(s.Bytes(), &a); err != nil {
			t.Fatalf("%v: %s", err, s.Text())
		}
		if seen[a.ID] = true; a.App != "x" || a.JobID != id || a.Job == "" || a.Due == "" || a.Ended == "" {
			t.Errorf("got %s", s.Text())
		}
		if a.Outcome == "failed" {
			failed++
			if a.Head != strings.Repeat("x", 1000) || a.Bytes != 1000 || a.ReasonCode != "exit_code" || a.Reason != "exit status 3" {
				t.Errorf("got %s", s.Text())
			}
		}
	}

	if len(seen) != archiveBatch+6 || failed != 1 {
		t.Errorf("%d records are archived, %d of them failed", len(seen), failed)
	}
}

// retainerWith returns the next retainer, once the last one has released the chore.
func (r *retaining) retainerWith(a Archive) *Retainer {
	r.exec("UPDATE chore SET until = 0")
	return r.retainer(a)
}

// TestArchivedAtLeastOnce loses the COMMIT of the removal, or its answer. Remaining records are
// archived again, and no record goes without having been archived.
func TestArchivedAtLeastOnce(t *testing.T) {
	for name, fate := range map[string]faultproxy.Action{"the request is lost": faultproxy.CutBefore(), "the answer is lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			r.rule("", `{"age":"1h"}`)
			id := r.job("x", `{}`)
			r.ran(id, job.Succeeded, 0, hours(5, 4, 3)...)
			archived := 0
			x := r.retainer(nil)
			x.DB = read.Retention{DB: r.through}
			x.Archive = func(_ context.Context, runs []read.Run) error {
				archived += len(runs)
				return nil
			}
			r.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("DELETE r"), Action: fate})
			if _, err := x.Round(t.Context()); err == nil {
				t.Error("got no error, want one of an unknown commit")
			}
			r.exec("UPDATE chore SET until = 0")
			r.round(x)
			if r.left(id) != "" || archived < 3 {
				t.Errorf("left are %q, %d were archived", r.left(id), archived)
			}
		})
	}
}
