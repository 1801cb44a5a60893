package result

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// living is a session that only lives.
type living struct {
	id  uuid.UUID
	now job.Micros
}

func (l *living) ID() uuid.UUID   { return l.id }
func (l *living) Now() job.Micros { return l.now }
func (l *living) Fresh() bool     { return true }

// retaining is a day on which records are removed.
type retaining struct {
	*fixture
	now job.Micros
	n   int64
}

func setUpRetaining(t *testing.T) *retaining {
	f := setUp(t)
	f.exec("DELETE FROM retention")
	return &retaining{f, job.MicrosOf(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)), 0}
}

func (r *retaining) retainer(archive Archive) *Retainer {
	return &Retainer{DB: r.beside, Session: &living{uuid.New(), r.now}, Archive: archive, Log: slog.New(slog.NewTextHandler(r.Output(), nil))}
}

func (r *retaining) rule(app, spec string) {
	r.exec("INSERT INTO retention (app, spec) VALUES (?, ?) ON DUPLICATE KEY UPDATE spec = VALUES(spec)", app, spec)
}

// job makes one, which keeps what it says.
func (r *retaining) job(app, keep string) (id int64) {
	r.Helper()
	r.n++
	res, err := r.beside.Raw().Exec("INSERT INTO job (app, name, hash, spec, created, updated) VALUES (?, ?, 1, ?, 1, 1)", app, fmt.Sprint(r.n), keep)
	if err != nil {
		r.Fatal(err)
	}
	id, _ = res.LastInsertId()
	return id
}

// ran records runs that ended so long ago, the earliest first, with an output of some bytes each.
func (r *retaining) ran(id int64, outcome job.Outcome, output int, ago ...time.Duration) {
	r.Helper()
	var runs []job.Run
	for _, d := range ago {
		r.n++
		at := r.now.Add(-d)
		run := job.Run{Launch: job.Launch{Session: r.session, N: r.n}, JobID: id, App: "x", Due: at.Add(-time.Second), Until: at.Add(-time.Second), Count: 1, Attempt: 1, Final: true, Started: at, Ended: at,
			Result: job.Result{Outcome: outcome}}
		if output > 0 {
			run.Output = job.Output{Head: []byte(strings.Repeat("x", output)), Bytes: int64(output)}
			run.Output.Pack()
		}
		runs = append(runs, run)
	}
	if err := r.beside.Tx(r.Context(), func(tx *sql.Tx) error { return tx.InsertRuns(runs) }); err != nil {
		r.Fatal(err)
	}
}

// left is how long ago the runs ended that are still recorded, in hours. Nothing of others is left in the other tables.
func (r *retaining) left(id int64) string {
	r.Helper()
	rows, err := r.beside.Raw().Query("SELECT ended FROM history WHERE job_id = ? ORDER BY ended", id)
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
	r.want("output without a record", 0, "SELECT COUNT(*) FROM output o WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.session_id = o.session_id AND h.launch = o.launch)")
	r.want("records without output", 0, "SELECT COUNT(*) FROM history h WHERE h.output_bytes > 0 AND NOT EXISTS (SELECT 1 FROM output o WHERE h.session_id = o.session_id AND h.launch = o.launch)")
	r.want("notes without a record", 0, "SELECT COUNT(*) FROM notable n WHERE NOT EXISTS (SELECT 1 FROM history h WHERE h.id = n.id)")
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
	removed := 7*9 - int(r.number("SELECT COUNT(*) FROM history"))
	r.want("records that are told to be removed", removed, "SELECT removed FROM chore")
	for name, c := range cases {
		if got := r.left(c.id); got != c.left {
			t.Errorf("%s: left are %q, want %q", name, got, c.left)
		}
	}
	before := r.number("SELECT COUNT(*) FROM history")
	r.round(r.retainerWith(nil))
	r.want("records after another round", before, "SELECT COUNT(*) FROM history")
}

// TestRetentionInBatches is of more than goes at once, in several jobs, by one node at a time.
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
	if mine, _, err := r.beside.TakeChore(t.Context(), one.Session.ID(), time.Minute); !mine || err != nil {
		t.Fatalf("got %v, %v", mine, err)
	}
	if mine, err := two.Round(t.Context()); mine || err != nil {
		t.Errorf("beside another node: got %v, %v; want it to leave the chore alone", mine, err)
	}
	r.round(one)
	for _, id := range ids {
		r.want("records", 3, "SELECT COUNT(*) FROM history WHERE job_id = ?", id)
	}
	r.want("records that are told to be removed", 3*(2*dropBatch+14), "SELECT removed FROM chore")
	r.exec("UPDATE chore SET until = 0") // its node is gone
	r.round(two)
}

// TestRetentionGoesOn begins where the one before was.
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
		r, began := &Retainer{held: time.Now()}, time.Now()
		for range batches {
			if err := r.restLater(t.Context(), took); err != nil {
				t.Fatal(err)
			}
		}
		if rested, want := time.Since(began), rest*batches*took; rested > want || rested < want-restLeast {
			t.Errorf("it rested for %s, want %s", rested, want)
		}
	})
}

// TestRetentionWaits: while due times are overdue the next batch waits, but not for ever; so it goes on as soon as they
// are not, or when it is to end.
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
				r := &Retainer{Behind: func() bool { return time.Since(began) < c.behind }}
				if c.nobody {
					r.Behind = nil
				}
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
		if _, err := r.retainerWith(a).Round(t.Context()); err == nil {
			t.Errorf("%s: got no error", name)
		}
		r.want("records when "+name, archiveBatch+6, "SELECT COUNT(*) FROM history")
		r.want("failures", 1, "SELECT failures FROM chore")
	}
	if _, err := r.retainerWith(bad["it fails"]).Round(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3: no room") {
		t.Errorf("got %v, want what it said", err)
	}
	r.round(r.retainerWith(ArchiveCommand("cat >> '"+strings.ReplaceAll(file, "'", `'\''`)+"'", time.Minute)))
	if r.left(id) != "" {
		t.Errorf("left are %q", r.left(id))
	}
	r.want("failures", 0, "SELECT failures FROM chore")
	r.want("records that are told to be archived", archiveBatch+6, "SELECT archived FROM chore")
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
			if a.Head != strings.Repeat("x", 1000) || a.Bytes != 1000 {
				t.Errorf("got %s", s.Text())
			}
		}
	}
	if len(seen) != archiveBatch+6 || failed != 1 {
		t.Errorf("%d records are archived, %d of them failed", len(seen), failed)
	}
}

// retainerWith is the next one, once the one before has let go.
func (r *retaining) retainerWith(a Archive) *Retainer {
	r.exec("UPDATE chore SET until = 0")
	return r.retainer(a)
}

// TestArchivedAtLeastOnce loses the COMMIT of the removal, or its answer: what is still there is archived once more, and
// nothing goes that was not.
func TestArchivedAtLeastOnce(t *testing.T) {
	for name, fate := range map[string]faultproxy.Action{"the request is lost": faultproxy.CutBefore(), "the answer is lost": faultproxy.CutAfter()} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			r.rule("", `{"age":"1h"}`)
			id := r.job("x", `{}`)
			r.ran(id, job.Succeeded, 0, hours(5, 4, 3)...)
			archived := 0
			x := r.retainer(nil)
			x.DB = r.through
			x.Archive = func(_ context.Context, runs []sql.RunRow) error {
				archived += len(runs)
				return nil
			}
			r.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("DELETE h FROM history"), Action: fate})
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
