package result

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
	"go-crontab/test/faultproxy"

	"github.com/google/uuid"
)

// limit gives an app a limit of kept output; 0 removes it.
func (r *retaining) limit(app string, bytes int) {
	r.exec("REPLACE INTO app_limit (app, output) VALUES (?, NULLIF(?, 0))", app, bytes)
}

// wrote records a run of a job with some bytes of output, due after all earlier ones, and notes its
// end. It returns its id.
func (r *retaining) wrote(id int64, bytes int) int64 {
	r.Helper()
	r.wrotes++
	return r.wroteAt(id, bytes, r.now.Add(time.Duration(r.wrotes-10_000)*time.Second))
}

// wroteAt is wrote for a due time.
func (r *retaining) wroteAt(id int64, bytes int, due job.Micros) int64 {
	r.Helper()
	output := job.Output{Head: []byte(strings.Repeat("x", bytes)), Bytes: int64(bytes)}
	run := r.insert(endedRun{job: id, outcome: job.Succeeded, due: due, ended: due, output: output})[0]
	r.exec("INSERT INTO ending (at, runs) VALUES (?, ?)", int64(r.now), noteOf(trip.Note{Run: run, JobID: id, Outcome: job.Succeeded}))
	return run
}

// noteOf writes a row of ending about one run.
func noteOf(n trip.Note) []byte {
	return append(binary.AppendVarint(binary.AppendVarint(nil, n.Run), n.JobID), byte(n.Outcome))
}

func (r *retaining) trimmer() *Trimmer {
	return NewTrimmer(TrimmerConfig{
		DB: r.through, Session: &living{uuid.UUID{9}, r.now}, Lookout: lookout{}, Log: r.log(),
	})
}

// looks makes looks until nothing is left. New output is counted by the second look after it.
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

// keeps checks the output of an app in the rows and in the sum, and that rows of output and records
// agree.
func (r *retaining) keeps(app string, want int) {
	r.Helper()
	r.want("kept output of "+app, want, "SELECT COALESCE(SUM(r.output_kept), 0) FROM run r JOIN app a ON a.id = r.app_id WHERE a.name = ?", app)
	r.want("the sum of "+app, want, "SELECT COALESCE(SUM(o.bytes), 0) FROM app_output o JOIN app a ON a.id = o.app_id WHERE a.name = ?", app)
	r.want("output that no run names", 0, "SELECT COUNT(*) FROM output o LEFT JOIN run r ON r.id = o.run_id WHERE COALESCE(r.output_kept, 0) = 0")
	r.want("runs whose output is missing", 0, "SELECT COUNT(*) FROM run r LEFT JOIN output o ON o.run_id = r.id WHERE r.output_kept > 0 AND o.run_id IS NULL")
}

// TestTrimOldestOutput: the oldest output of an app over its limit goes, from any of its jobs. The
// records stay and say so, and other apps are not touched.
func TestTrimOldestOutput(t *testing.T) {
	r := setUpRetaining(t)
	one, two, other := r.job("shop", "{}"), r.job("shop", "{}"), r.job("x", "{}")
	var runs []int64
	for i := range 6 {
		runs = append(runs, r.wrote([]int64{one, two}[i%2], 1000))
		r.wrote(other, 1000)
	}
	x := r.trimmer()
	r.looks(x)
	r.want("sums while no app has a limit", 0, "SELECT COUNT(*) FROM app_output")

	r.limit("shop", 3500)
	r.looks(x)
	r.keeps("shop", 3000)
	r.want("of the other app", 6000, "SELECT SUM(output_kept) FROM run WHERE job_id = ?", other)
	r.want("records", 12, "SELECT COUNT(*) FROM run")
	for i, id := range runs {
		run, err := r.beside.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if removed := i < 3; run.OutputRemoved() != removed || (len(run.Output.Head) == 0) != removed {
			t.Errorf("run %d: removed is %v, and %d bytes are there", i, run.OutputRemoved(), len(run.Output.Head))
		}
	}

	// Later output is counted together with the existing one.
	r.wrote(one, 700)
	r.looks(x)
	r.keeps("shop", 2700)
	r.limit("shop", 0)
	r.wrote(one, 5000)
	r.looks(x)
	r.want("without a limit", 7700, "SELECT SUM(output_kept) FROM run WHERE app_id = (SELECT id FROM app WHERE name = 'shop')")
	r.limit("shop", 6000)
	r.looks(x)
	r.keeps("shop", 5700)
}

// TestTrimBelowTheLimit: for an app below its limit, only new records are read, once.
func TestTrimBelowTheLimit(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, 1000)
	r.limit("shop", 1_000_000)
	x := r.trimmer()
	r.looks(x)
	r.keeps("shop", 1000)

	reads := func(c faultproxy.Command) bool {
		return c.IsStatement() && (strings.Contains(c.SQL, "FROM run") || strings.Contains(c.SQL, "JOIN run"))
	}
	r.proxy.Add(faultproxy.Rule{Match: reads, Action: faultproxy.Error(1064, "42000", "nobody reads runs here")})
	r.looks(x)
}

// TestTrimMany: the removal takes several transactions, and each statement reads only a part of a
// very long history.
func TestTrimMany(t *testing.T) {
	r := setUpRetaining(t)
	id, other := r.job("shop", "{}"), r.job("x", "{}")
	// Many runs of the app have no output, and many runs of another app precede them.
	r.exec(`INSERT INTO run (id, job_id, app_id, due, kind, state, owner, claim, due_now, hash, outcome, ended, final)
		SELECT n, IF(n MOD 2, ?, ?), IF(n MOD 2, 1, 2), n, 'schedule', 'ended', -2, 1, n, 1, 'succeeded', n, 1
		FROM (SELECT 1 + a.id * 257 + b.id n FROM locks a JOIN locks b) numbers
		WHERE n <= 50000`, other, id)
	for range trimBatch + 20 {
		r.wrote(id, 10)
	}
	r.limit("shop", 55)
	r.looks(r.trimmer())
	r.keeps("shop", 50)
}

// TestTrimAndRetention: records that the retention removes leave the sums, and count once, whether
// or not they were counted before, or had lost their output.
func TestTrimAndRetention(t *testing.T) {
	r := setUpRetaining(t)
	r.rule("", `{"runs":6}`)
	id := r.job("shop", "{}")
	for range 4 {
		r.wrote(id, 1000)
	}
	r.limit("shop", 3000)
	x := r.trimmer()
	r.looks(x)
	r.keeps("shop", 3000) // the first has none any more

	for range 5 { // nobody has counted these
		r.wrote(id, 10)
	}
	retainer := r.retainer(nil)
	r.round(retainer)
	r.want("records", 6, "SELECT COUNT(*) FROM run")
	r.looks(x)
	r.keeps("shop", 1050)
	r.rule("", `{"runs":1}`)
	r.wrote(id, 7)
	r.round(retainer)
	r.looks(x)
	r.keeps("shop", 7)
}

// TestTrimAndRetentionAtOnce: both list the same runs before either removes them. Their output leaves the sum once.
func TestTrimAndRetentionAtOnce(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	for range 5 {
		r.wrote(id, 1000)
	}

	r.limit("shop", 4000)
	x := r.trimmer()
	x.Look(t.Context())
	// The count is done, and the trimmer has listed its batch, when the retention removes it.
	done := false
	r.proxy.OnCommand(func(c faultproxy.Command) {
		if !done && strings.Contains(c.SQL, "SELECT run_id, counted") {
			done = true
			r.rule("", `{"runs":3}`)
			r.round(r.retainer(nil))
		}
	})

	r.looks(x)
	if !done {
		t.Fatal("the retention removed nothing in between")
	}

	r.want("records", 3, "SELECT COUNT(*) FROM run")
	r.keeps("shop", 3000)
}

// TestTrimBackfills: a run with a long past due time has the oldest output, even if it ends later
// than others.
func TestTrimBackfills(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	for range 4 {
		r.wrote(id, 1000)
	}
	r.limit("shop", 3000)
	x := r.trimmer()
	r.looks(x)
	r.keeps("shop", 3000)

	old := r.wroteAt(id, 600, r.now.Add(-9000*time.Hour))
	r.looks(x)
	r.keeps("shop", 3000)
	r.want("output of the old due time", 0, "SELECT output_kept FROM run WHERE id = ?", old)
}

// TestTrimOldRunsWithoutNotes: when an app gets its limit, runs whose notes are gone are counted,
// as are runs that end during the count, each once.
func TestTrimOldRunsWithoutNotes(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	for range 3 {
		r.wrote(id, 1000)
	}

	r.exec("DELETE FROM ending")
	r.limit("shop", 100_000)
	x := r.trimmer()
	for range 3 { // a first look counts nothing yet
		r.wrote(id, 10)
		if _, err := x.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	r.looks(x)
	r.keeps("shop", 3030)
	r.want("runs that are counted", 6, "SELECT COUNT(*) FROM output WHERE counted > 0")
}

// TestTrimByTheLimitThatStands: if the limit was raised in between, no output goes.
func TestTrimByTheLimitThatStands(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	l := r.wrote(id, 1000)
	r.limit("shop", 2000)
	x := r.trimmer()
	r.looks(x)
	sums, err := trip.ReadOutputSums(r.beside.Reader(t.Context()))
	if err != nil {
		t.Fatal(err)
	}

	err = r.beside.Tx(t.Context(), func(tx *sql.Tx) error {
		limit := trip.OutputLimit{AppID: 2, App: "shop", Limit: 500}
		return trip.DropOutput(tx, limit, sums.Apps[2], []trip.KeptOutput{{Run: l, Bytes: 1000}}, r.now)
	})
	if !errors.Is(err, sql.ErrMoved) {
		t.Errorf("got %v", err)
	}

	r.want("kept", 1000, "SELECT SUM(output_kept) FROM run")
	r.want("outputs", 1, "SELECT COUNT(*) FROM output")
}

// TestTrimCountsAgain: if the rows do not confirm the sum, everything is counted again.
func TestTrimCountsAgain(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, 1000)
	r.limit("shop", 3000)
	x := r.trimmer()
	r.looks(x)
	r.exec("UPDATE app_output SET bytes = 9000, upto = 9000000000000000000 WHERE app_id = 2")
	r.looks(x)
	r.looks(x)
	r.keeps("shop", 1000)
}

// TestTrimSpoiledRows: manual edits of sums and records stop neither the trimmer nor the retention.
func TestTrimSpoiledRows(t *testing.T) {
	for name, spoil := range map[string]string{
		"counted farther than notes reach": "UPDATE app_output SET upto = 9223372036854775807 WHERE app_id = 0",
		"the app's output is all gone":     "UPDATE app_output SET bytes = 9223372036854775807, upto = 9223372036854775807 WHERE app_id = 2",
		"nobody has counted":               "DELETE FROM app_output",
		"the notes are forgotten":          "DELETE FROM app_output WHERE app_id = 0",
		"notes that nobody can read":       "UPDATE ending SET runs = 'x'",
	} {
		t.Run(name, func(t *testing.T) {
			r := setUpRetaining(t)
			id := r.job("shop", "{}")
			for range 5 {
				r.wrote(id, 1000)
			}
			r.limit("shop", 3000)
			x := r.trimmer()
			r.looks(x)
			r.exec(spoil)
			r.wrote(id, 500)
			r.looks(x)
			r.looks(x)
			r.keeps("shop", 2500)
			r.exec("UPDATE app_output SET bytes = -9223372036854775808")
			r.rule("", `{"runs":1}`)
			r.round(r.retainer(nil))
			r.want("records", 1, "SELECT COUNT(*) FROM run")
		})
	}
}

// TestTrimOneNode: only one node trims at a time.
func TestTrimOneNode(t *testing.T) {
	r := setUpRetaining(t)
	id := r.job("shop", "{}")
	r.wrote(id, 1000)
	r.limit("shop", 500)
	if mine, _, err := takeChore(t.Context(), r.beside.DB, choreOutput, uuid.UUID{7}, time.Minute); err != nil || !mine {
		t.Fatal(mine, err)
	}
	r.looks(r.trimmer())
	r.want("kept", 1000, "SELECT SUM(output_kept) FROM run")
}

// TestEnough checks the choice of the output to remove.
func TestEnough(t *testing.T) {
	t.Parallel()
	old := []trip.KeptOutput{{Due: 3, Bytes: 10}, {Due: 5, Bytes: 10}, {Due: 8, Bytes: 10}}
	for _, c := range []struct {
		over, bytes int64
		upto        job.Micros
		runs        int
	}{{1, 10, 3, 1}, {10, 10, 3, 1}, {11, 20, 5, 2}, {30, 30, 8, 3}, {31, 30, 99, 3}} {
		runs, bytes, upto := enough(old, c.over, 99)
		if len(runs) != c.runs || bytes != c.bytes || upto != c.upto || !slices.Equal(runs, old[:c.runs]) {
			t.Errorf("%d too much: got %d runs, %d bytes, up to %d", c.over, len(runs), bytes, upto)
		}
	}
}
