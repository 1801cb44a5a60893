package read

import (
	"fmt"
	"slices"
	"testing"

	"go-crontab/job"
	"go-crontab/sql/trip"
)

// runFilters are filters of run lists, each with its condition in SQL and the most rows that a page
// of 50 may read. Each listed run costs an index entry and a row with its names.
var runFilters = []struct {
	name  string
	f     RunFilter
	where string
	most  int64
}{
	{"everything", RunFilter{}, "TRUE", 320},
	{
		"a time of everything", RunFilter{From: epoch + 2_000_000, To: epoch + 4_000_000},
		"due_now >= @e + 2000000 AND due_now < @e + 4000000", 320,
	},
	{"an app", RunFilter{App: "app-11"}, "app_id = 11", 320},
	{
		"a time of an app", RunFilter{App: "app-11", From: epoch + 2_000_000, To: epoch + 9_000_000},
		"app_id = 11 AND due >= @e + 2000000 AND due < @e + 9000000", 320,
	},
	{"three apps", RunFilter{Apps: []string{"app-11", "rare", "app-9"}}, "app_id IN (11, 41, 9)", 430},
	{
		"many apps", RunFilter{Apps: []string{"app-1", "app-2", "app-3", "app-4", "app-5", "app-6"}},
		"app_id BETWEEN 1 AND 6", 430,
	},
	{"a job", RunFilter{JobID: 2}, "job_id = 2", 320},
	{
		"a time of a job", RunFilter{JobID: 2, From: epoch + 2_000_000, To: epoch + 9_000_000},
		"job_id = 2 AND due >= @e + 2000000 AND due < @e + 9000000", 320,
	},
	{"what failed", RunFilter{Outcomes: []job.Outcome{job.Failed}}, "outcome = 'failed'", 320},
	{
		"what did not succeed", RunFilter{Outcomes: job.Unsuccessful()},
		"outcome IN ('failed', 'timed_out', 'killed', 'lost')", 620,
	},
	{
		"what did not succeed of an app", RunFilter{App: "app-11", Outcomes: job.Unsuccessful()},
		"app_id = 11 AND outcome IN ('failed', 'timed_out', 'killed', 'lost')", 620,
	},
	{
		"what did not succeed of a job", RunFilter{JobID: 50, Outcomes: job.Unsuccessful()},
		"job_id = 50 AND outcome IN ('failed', 'timed_out', 'killed', 'lost')", 620,
	},
	{"what was skipped", RunFilter{Outcomes: []job.Outcome{job.Skipped}}, "outcome = 'skipped'", 380},
	{
		"what was skipped of an app", RunFilter{App: "app-11", Outcomes: []job.Outcome{job.Skipped}},
		"app_id = 11 AND outcome = 'skipped'", 750,
	},
	{
		"what was skipped of a job", RunFilter{JobID: 50, Outcomes: []job.Outcome{job.Skipped}},
		"job_id = 50 AND outcome = 'skipped'", 380,
	},
	{
		"what succeeded of a job", RunFilter{JobID: 2, Outcomes: []job.Outcome{job.Succeeded}},
		"job_id = 2 AND outcome = 'succeeded'", 440,
	},
	{"a node", RunFilter{Node: "node-2"}, "session = 2", 600},
	{"a rare node", RunFilter{Node: "elsewhere"}, "session = 4", 5000},
	{"what was asked for", RunFilter{Kind: trip.Manual}, "kind = 'manual'", 5000},
	{"a job in another app", RunFilter{JobID: 2, App: "rare"}, "job_id = 2 AND app_id = 41", 5000},
	{"an app that does not exist", RunFilter{App: "x"}, "FALSE", 3},
	{"no apps", RunFilter{Apps: []string{}}, "FALSE", 3},
}

// TestRunLists: each list has the runs that match its filter, each once, and a page reads no more
// rows than it needs.
func TestRunLists(t *testing.T) {
	for _, n := range []int{10_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			f := setUp(t)
			f.jobs(1000)
			f.runs(1000, n)
			f.exec("SET @e = ?", int64(epoch))
			for _, c := range runFilters {
				c.f.Limit = 50
				f.readsAtMost(c.most, c.name, func() { must(f.db.RunPage(f.Context(), c.f)) })
				if n > 10_000 {
					continue
				}

				seen, pages := map[int64]bool{}, 0
				for at := c.f; ; pages++ {
					at.Limit = 190
					p := must(f.db.RunPage(f.Context(), at))
					for _, r := range p.Rows {
						if seen[r.ID] || r.State != trip.Ended {
							f.Fatalf("%s: run %d is listed twice, or has not ended", c.name, r.ID)
						}
						seen[r.ID] = true
					}

					if at.After = p.Next; p.Next == nil {
						break
					}
				}

				if want := f.number("SELECT COUNT(*) FROM run WHERE state = 'ended' AND " +
					c.where); int64(len(seen)) != want {
					f.Errorf("%s: got %d runs, want %d", c.name, len(seen), want)
				}
			}
		})
	}
}

// TestRunListOrder: a list continues after its last row even if runs end in between.
func TestRunListOrder(t *testing.T) {
	f := setUp(t)
	f.jobs(100)
	f.runs(100, 1000)
	f.exec("UPDATE run SET due_now = due DIV 20000 * 20000") // many have the same time
	for i, filter := range []RunFilter{{}, {App: "app-3"}, {Apps: []string{"app-3", "app-4", "app-5"}}, {JobID: 2},
		{Outcomes: []job.Outcome{job.Skipped}}} {
		want := f.listed(filter)
		at := func(r *Run) job.Micros { return r.Due }
		if i == 0 {
			at = func(r *Run) job.Micros { return r.DueNow }
		}

		if !slices.IsSortedFunc(want, func(a, b Run) int { return int(at(&b) - at(&a)) }) ||
			slices.ContainsFunc(want, func(r Run) bool { return r.Executing }) {
			f.Errorf("%+v: the list is not in order", filter)
		}

		filter.Limit = 7
		got := must(f.db.RunPage(f.Context(), filter))
		f.exec(`
			UPDATE run
			SET state = 'ended', owner = -2, outcome = 'succeeded'
			WHERE state = 'executing'
			ORDER BY id
			LIMIT 5`)

		filter.After = got.Next
		rest := f.listed(filter)
		all := append(got.Rows, rest...)
		id := func(r *Run) int64 { return r.ID }
		if ids(all, id) != ids(want, id) {
			f.Errorf("%+v: got %s, want %s", filter, ids(all, id), ids(want, id))
		}
	}
}

func (f *fixture) listed(filter RunFilter) []Run {
	f.Helper()
	filter.Limit = 100_000
	return must(f.db.Runs(f.Context(), filter))
}

// TestRunRow: a run shows its row and the rows to which it refers.
func TestRunRow(t *testing.T) {
	f := setUp(t)
	f.jobs(100)
	f.runs(100, 100)
	f.exec(`
		UPDATE run
		SET outcome = 'failed', exit_code = 3, reason_code = 'exit_code', reason = 'exit status 3',
			kind = 'backfill', request = 9,
			attempt = 2, due_now = due + 5000, started = due + 4000, output_bytes = 10, output_kept = 6
		WHERE id = 50`)

	f.exec("INSERT INTO output (run_id, head, tail) VALUES (50, 'abc', 'xyz')")

	r := must(f.db.Run(f.Context(), 50))
	due := epoch + 50_000
	got := fmt.Sprint(r.ID, r.Job, r.App, r.Due == due, r.DueNow == due+5000, r.Started == due+5000, r.Lateness,
		r.Request, r.Attempt, r.Final,
		r.Outcome.String(), *r.ExitCode, r.Reason.Code, r.Reason, r.Node, r.Launch, string(r.State), r.Executing,
		r.Output.Bytes, r.Kept, string(r.Output.Head), string(r.Output.Tail), r.Count)

	job2 := must(f.db.Job(f.Context(), r.JobID))
	if r.Job == "" || r.App == "" || job2.ID != r.JobID {
		f.Errorf("names: got job %q app %q", r.Job, r.App)
	}

	want := fmt.Sprint(50, r.Job, r.App, true, true, true, 0, 9, 2, true, "failed", 3, job.ReasonExitCode, job.Reason{Text: "exit status 3"}, "node-3",
		"50-1", "ended", false, 10, 6, "abc", "xyz", 1)
	if got != want {
		f.Errorf("got\n%s\nwant\n%s", got, want)
	}

	executing := must(f.db.Run(f.Context(), 130))
	if !executing.Executing || executing.Outcome != 0 || executing.Node != "node-2" {
		f.Errorf("executing run: got %+v", executing)
	}

	f.exec("UPDATE run SET state = 'waiting', owner = -1 WHERE id = 130")
	if _, err := f.db.Run(f.Context(), 130); err == nil {
		f.Error("a run that has not begun was returned")
	}
}

// TestExecutingRuns: executing runs are listed without reading prepared runs.
func TestExecutingRuns(t *testing.T) {
	f := setUp(t)
	f.jobs(1000)
	f.runs(1000, 10_000)
	f.exec(`
		INSERT INTO run (id, job_id, app_id, due, due_now, hash, kind, state, owner, claim)
		SELECT 1000000 + n, n, 1, ? + n, ? + n, 1, 'schedule', 'prepared', 1, 1
		FROM num`,
		int64(1)<<52, int64(1)<<52)

	f.readsAtMost(400, "what executes", func() {
		if rows := must(f.db.ExecutingRuns(f.Context(), RunFilter{Limit: 200})); len(rows) != 60 {
			f.Errorf("got %d runs, want 60", len(rows))
		}
	})

	for _, c := range []struct {
		f     RunFilter
		where string
	}{
		{RunFilter{JobID: 2}, "job_id = 2"}, {RunFilter{App: "app-11"}, "app_id = 11"},
		{RunFilter{Node: "node-2"}, "owner = 2"},
		{RunFilter{From: epoch + 10_020_000}, "id >= 10020"}, {RunFilter{To: epoch + 10_020_000}, "id < 10020"},
		{RunFilter{After: &RunPlace{ID: 10_020, Due: epoch + 10_020_000}}, "id < 10020"},
	} {
		c.f.Limit = 200
		got := must(f.db.ExecutingRuns(f.Context(), c.f))
		if want := f.number(`
			SELECT COUNT(*)
			FROM run
			WHERE state = 'executing' AND ` + c.where); int64(len(got)) != want {
			f.Errorf("%+v: got %d runs, want %d", c.f, len(got), want)
		}
	}
}

func TestChunks(t *testing.T) {
	f := setUp(t)
	f.exec(`
		INSERT INTO chunk (run_id, claim, at_byte, data)
		VALUES (7, 1, 0, 'zzzz'), (7, 2, 0, 'abc'), (7, 2, 3, 'def'), (7, 2, 6, 'gh'), (8, 2, 0, 'x')`)
	got := ""
	for _, p := range must(f.db.Chunks(f.Context(), trip.Launch{Run: 7, Claim: 2}, 4)) {
		got += fmt.Sprintf("%d:%s ", p.At, p.Data)
	}

	if want := "3:def 6:gh "; got != want {
		f.Errorf("got %q, want %q", got, want)
	}
}
