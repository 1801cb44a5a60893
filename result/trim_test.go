package result

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/faultproxy"
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// limit gives an app a limit of kept output; 0 takes it away.
func (r *retaining) limit(app string, bytes int) {
	r.exec("REPLACE INTO app_limit (app, output) VALUES (?, NULLIF(?, 0))", app, bytes)
}

// wrote records a run of a job with so many bytes of output, and returns its launch.
func (r *retaining) wrote(id int64, app string, bytes int) job.Launch {
	r.Helper()
	r.n++
	at := r.now.Add(time.Duration(r.n-10_000) * time.Second)
	run := job.Run{
		Launch: job.Launch{Session: r.session, N: r.n}, JobID: id, App: app, Due: at, Until: at, Count: 1, Attempt: 1, Final: true,
		Started: at, Ended: at, Result: job.Result{Outcome: job.Succeeded},
	}
	run.Output = job.Output{Head: []byte(strings.Repeat("x", bytes)), Bytes: int64(bytes)}
	if err := r.beside.Tx(r.Context(), func(tx *sql.Tx) error { return tx.InsertRuns([]job.Run{run}) }); err != nil {
		r.Fatal(err)
	}
	return run.Launch
}

func (r *retaining) trimmer() *Trimmer {
	return &Trimmer{DB: r.through, Session: &living{uuid.UUID{9}, r.now}, Log: r.log()}
}

// looks looks until nothing is left: what is new is counted by the second look that sees it.
func (r *retaining) looks(x *Trimmer) {
	r.Helper()
	for range 2 {
		for more := true; more; {
			var err error
			if more, err = x.Look(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// keeps checks how much output an app keeps in the rows and in the sum, and that rows of output and records fit.
func (r *retaining) keeps(app string, want int) {
	r.Helper()
	r.want("kept output of "+app, want, "SELECT COALESCE(SUM(h.output_kept), 0) FROM history h WHERE h.app = CRC32(?)", app)
	r.want("the sum of "+app, want, "SELECT COALESCE(SUM(bytes), 0) FROM app_output WHERE app = ?", app)
	r.want("output that no record names", 0, "SELECT COUNT(*) FROM output o LEFT JOIN history h USING (session_id, launch) WHERE COALESCE(h.output_kept, 0) = 0")
	r.want("records whose output is missing", 0, "SELECT COUNT(*) FROM history h LEFT JOIN output o USING (session_id, launch) WHERE h.output_kept > 0 AND o.launch IS NULL")
}

// TestTrimOldestOutput: the oldest output of an app over its limit goes, whichever of its jobs wrote it. The records stay and
// say so, and nothing of another app is touched.
func TestTrimOldestOutput(t *testing.T) {
	r := setUpRetaining(t)
	one, two, other := r.job("shop", "{}"), r.job("shop", "{}"), r.job("x", "{}")
	var launches []job.Launch
	for i := range 6 {
		launches = append(launches, r.wrote([]int64{one, two}[i%2], "shop", 1000))
		r.wrote(other, "x", 1000)
	}
	x := r.trimmer()
	r.looks(x)
	r.want("sums while no app has a limit", 0, "SELECT COUNT(*) FROM app_output")

	r.limit("shop", 3500)
	r.looks(x)
	r.keeps("shop", 3000)
	r.keeps("x", 6000)
	r.want("records", 12, "SELECT COUNT(*) FROM history")
	for i, l := range launches {
		run, err := r.beside.Run(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if removed := i < 3; run.OutputRemoved() != removed || (len(run.Output.Head) == 0) != removed {
			t.Errorf("run %d: removed is %v, and %d bytes are there", i, run.OutputRemoved(), len(run.Output.Head))
		}
	}

	// What comes later is counted with what is there already.
	r.wrote(one, "shop", 700)
	r.looks(x)
	r.keeps("shop", 2700)
	r.limit("shop", 0)
	r.wrote(one, "shop", 5000)
	r.looks(x)
	r.want("without a limit", 7700, "SELECT SUM(output_kept) FROM history WHERE app = CRC32('shop')")
	r.limit("shop", 6000)
	r.looks(x)
	r.keeps("shop", 5700)
}

// TestTrimBelowTheLimit: of an app below its limit nothing is read but its new records, once.
func TestTrimBelowTheLimit(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, "shop", 1000)
	r.limit("shop", 1_000_000)
	x := r.trimmer()
	r.looks(x)
	r.keeps("shop", 1000)

	reads := func(c faultproxy.Command) bool {
		return c.IsStatement() && strings.Contains(c.SQL, "history") && !strings.Contains(c.SQL, "MAX(id)")
	}
	r.proxy.Add(faultproxy.Rule{Match: reads, Action: faultproxy.Error(1064, "42000", "nobody reads history here")})
	r.looks(x)
}

// TestTrimMany: more than one transaction removes, and of a very long history no statement reads more than a part.
func TestTrimMany(t *testing.T) {
	r := setUpRetaining(t)
	id, other := r.job("shop", "{}"), r.job("x", "{}")
	// The first records are far more than one statement reads, and none of them is of the app.
	r.exec(`INSERT INTO history (job_id, app, due, session_id, launch, outcome, due_last, ended, output_bytes, output_kept)
		SELECT ?, CRC32('x'), seq, REPEAT('s', 16), seq, 1, seq, seq, 0, 0 FROM seq_1_to_25000`, other)
	for range trimBatch + 20 {
		r.wrote(id, "shop", 10)
	}
	r.limit("shop", 55)
	r.looks(r.trimmer())
	r.keeps("shop", 50)
}

// TestTrimAndRetention: records that the retention removes leave the sums, and count once whether or not they were counted,
// or their output was removed before.
func TestTrimAndRetention(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"runs":6}`)
	id := r.job("shop", "{}")
	for range 4 {
		r.wrote(id, "shop", 1000)
	}
	r.limit("shop", 3000)
	x := r.trimmer()
	r.looks(x)
	r.keeps("shop", 3000) // the first has none any more

	for range 5 { // nobody has counted these
		r.wrote(id, "shop", 10)
	}
	retainer := r.retainer(nil)
	r.round(retainer)
	r.want("records", 6, "SELECT COUNT(*) FROM history")
	r.looks(x)
	r.keeps("shop", 1050)
	r.rule("", `{"runs":1}`)
	r.wrote(id, "shop", 7)
	r.round(retainer)
	r.looks(x)
	r.keeps("shop", 7)
}

// TestTrimAndRetentionAtOnce: both list the same runs before either removes them. Their output leaves the sum once.
func TestTrimAndRetentionAtOnce(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	for range 5 {
		r.wrote(id, "shop", 1000)
	}
	r.limit("shop", 4000)
	x := r.trimmer()
	x.Look(t.Context())
	// The count stands, and the trimmer has listed what goes, when the retention removes it.
	done := false
	r.proxy.OnCommand(func(c faultproxy.Command) {
		if !done && strings.Contains(c.SQL, "FOR UPDATE") && strings.Contains(c.SQL, "h.output_kept") {
			done = true
			r.rule("", `{"runs":3}`)
			r.round(r.retainer(nil))
		}
	})
	r.looks(x)
	if !done {
		t.Fatal("the retention removed nothing in between")
	}
	r.want("records", 3, "SELECT COUNT(*) FROM history")
	r.keeps("shop", 3000)
}

// TestTrimByTheLimitThatStands: when the limit was raised since, nothing goes.
func TestTrimByTheLimitThatStands(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	l := r.wrote(id, "shop", 1000)
	r.limit("shop", 2000)
	err := r.beside.Tx(t.Context(), func(tx *sql.Tx) error {
		return tx.DropOutput("shop", 500, []sql.KeptOutput{{ID: 1, App: "shop", Launch: l, Bytes: 1000}}, 1)
	})
	if !errors.Is(err, sql.ErrMoved) {
		t.Errorf("got %v", err)
	}
	r.want("kept", 1000, "SELECT SUM(output_kept) FROM history")
	r.want("outputs", 1, "SELECT COUNT(*) FROM output")
}

// TestTrimCountsAgain: where the rows do not bear the sum out, all is counted again.
func TestTrimCountsAgain(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, "shop", 1000)
	r.limit("shop", 3000)
	x := r.trimmer()
	r.looks(x)
	r.exec("UPDATE app_output SET bytes = 9000 WHERE app = 'shop'")
	r.exec("UPDATE app_output SET upto = 1 WHERE app = 'shop'")
	r.looks(x)
	r.looks(x)
	r.keeps("shop", 1000)
}

// TestTrimSpoiledRows: what a hand wrote into sums and records stops neither the trimmer nor the retention.
func TestTrimSpoiledRows(t *testing.T) {
	for name, spoil := range map[string]string{
		"counted farther than records reach": "UPDATE app_output SET upto = 9223372036854775807 WHERE app = ''",
		"the app's output is all gone":       "UPDATE app_output SET bytes = 9223372036854775807, upto = 9223372036854775807 WHERE app = 'shop'",
		"nobody has counted":                 "UPDATE app_output SET app = 'x' WHERE app = ''",
		"an enormous output":                 "UPDATE history SET output_kept = 9223372036854775807 WHERE id < 3",
		"the highest number of changes":      "UPDATE app_output SET taken = 9223372036854775807",
	} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			id := r.job("shop", "{}")
			for range 5 {
				r.wrote(id, "shop", 1000)
			}
			r.limit("shop", 3000)
			x := r.trimmer()
			records := strings.Contains(spoil, "history")
			if records {
				r.exec(spoil)
			}
			r.looks(x)
			if !records {
				r.exec(spoil)
			}
			r.wrote(id, "shop", 500)
			r.looks(x)
			r.looks(x)
			r.keeps("shop", 2500)
			r.exec("UPDATE app_output SET bytes = -9223372036854775808")
			r.rule("", `{"runs":1}`)
			r.round(r.retainer(nil))
			r.want("records", 1, "SELECT COUNT(*) FROM history")
		})
	}
}

// TestTrimOneNode: what one node does no other does beside it.
func TestTrimOneNode(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, "shop", 1000)
	r.limit("shop", 500)
	if mine, _, err := r.beside.TakeChore(t.Context(), sql.ChoreOutput, uuid.UUID{7}, time.Minute); err != nil || !mine {
		t.Fatal(mine, err)
	}
	r.looks(r.trimmer())
	r.want("kept", 1000, "SELECT SUM(output_kept) FROM history")
}

// TestEnough is of how much goes.
func TestEnough(t *testing.T) {
	t.Parallel()
	old := []sql.KeptOutput{{ID: 3, Bytes: 10}, {ID: 5, Bytes: 10}, {ID: 8, Bytes: 10}}
	for _, c := range []struct {
		over, bytes, upto int64
		runs              int
	}{{1, 10, 3, 1}, {10, 10, 3, 1}, {11, 20, 5, 2}, {30, 30, 8, 3}, {31, 30, 99, 3}} {
		runs, bytes, upto := enough(old, c.over, 99)
		if len(runs) != c.runs || bytes != c.bytes || upto != c.upto || !slices.Equal(runs, old[:c.runs]) {
			t.Errorf("%d too much: got %d runs, %d bytes, up to %d", c.over, len(runs), bytes, upto)
		}
	}
}
