package legal_test

import (
	"context"
	"strings"
	"testing"

	"go-crontab/sql"
	"go-crontab/test/legal"
	"go-crontab/test/testdb"
)

// TestRefusals breaks each rule once.
func TestRefusals(t *testing.T) {
	t.Parallel()

	db, err := sql.Open(testdb.DSN(t), sql.DefaultTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	silent := &quiet{TB: t}
	if _, _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}

	legal.Watch(silent, db)
	kept := legal.Keeps(t, db)

	const run = `INSERT INTO run
		(id, job_id, app_id, due, kind, request, attempt, state, owner, claim, due_now, hash, outcome) VALUES `

	must := func(statement string) {
		t.Helper()
		if _, err := db.Raw().Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}

	must("INSERT INTO job (id, app_id, name, hash, next_due, begun_to) VALUES (1, 1, 'j', 0, 100, 50)")
	for name, state := range map[string]string{"1": "'idle', 0, 0", "2": "'prepared', 7, 1", "3": "'prepared', 7, 1"} {
		must(run + "(" + name + ", 1, 1, 10" + name + ", 'schedule', 0, 1, " + state + ", 100, 0, 'none')")
	}

	must("UPDATE run SET state = 'executing', started = 5, spawn_by = 200 WHERE id = 3")
	must(run + "(4, 1, 1, 104, 'schedule', 0, 1, 'ended', -2, 1, 100, 0, 'succeeded')")
	must(run + "(5, 1, 1, 40, 'schedule', 0, 1, 'prepared', 7, 1, 100, 0, 'none')")
	must(run + "(6, 1, 1, 106, 'manual', 9, 1, 'idle', 0, 0, 100, 0, 'none')")

	for _, c := range []struct{ statement, rule string }{
		{run + "(9, 1, 1, 109, 'schedule', 0, 1, 'executing', 7, 1, 100, 0, 'none')",
			"a run that starts as it is claimed is of the schedule, and has a session and a spawn window"},
		{run + "(9, 1, 1, 109, 'schedule', 0, 1, 'prepared', 0, 1, 100, 0, 'none')",
			"a session as its owner"},
		{run + "(9, 1, 1, 109, 'schedule', 3, 1, 'prepared', 7, 1, 100, 0, 'none')",
			"the schedule is no request"},
		{run + "(9, 1, 1, 109, 'manual', 0, 1, 'idle', 0, 0, 100, 0, 'none')",
			"somebody has asked"},
		{"UPDATE run SET due = 7 WHERE id = 1",
			"what a run is never changes"},
		{"UPDATE run SET claim = 0 WHERE id = 2",
			"the claim count never falls"},
		{"UPDATE run SET outcome = 'failed' WHERE id = 4",
			"an end is written once"},
		{"UPDATE run SET state = 'prepared', owner = 7 WHERE id = 1",
			"taking a run raises"},
		{"UPDATE run SET owner = 8 WHERE id = 2",
			"taking a run over raises"},
		{"UPDATE run SET state = 'executing', owner = 8, started = 1, spawn_by = 200 WHERE id = 2",
			"a start is by the owner"},
		{"UPDATE run SET state = 'executing' WHERE id = 2",
			"a start says when"},
		{"UPDATE run SET owner = 8, claim = 2 WHERE id = 3",
			"nobody takes an executing run"},
		{"UPDATE run SET state = 'waiting', owner = -1 WHERE id = 3",
			"an executing run ends"},
		{"UPDATE run SET state = 'ended', owner = -2 WHERE id = 3",
			"an ended run has an outcome"},
		{"UPDATE run SET state = 'ended', owner = -2, outcome = 'lost', claim = 2 WHERE id = 3",
			"at the launch that executed"},
		{"UPDATE run SET state = 'executing', owner = 7, claim = 1 WHERE id = 1",
			"a start begins with a prepared run"},
		{"UPDATE run SET reason_code = 'timeout', reason = 'late' WHERE id = 3",
			"the code of a reason comes with the text"},
		{"UPDATE run SET reason_code = 'timeout' WHERE id = 4",
			"the code of a reason comes with the text"},
		{"DELETE FROM run WHERE id = 3",
			"leaves a record"},
		{"DELETE FROM run WHERE id = 5",
			"after the last one that has begun"},
		{"DELETE FROM run WHERE id = 6",
			"only first attempts of the schedule"},
		{"UPDATE job SET begun_to = 40",
			"begun_to never falls"},
		{"UPDATE job SET next_due = 50",
			"the cursor never moves to or behind"},
		{"UPDATE job SET living = NULL",
			"a deleted job has no cursor"},
		{"UPDATE job SET version = 0",
			"the version never falls"},
	} {
		before := len(legal.Refused(t, db))
		_, err := db.Raw().Exec(c.statement)
		if err == nil || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("%s: got %v, want %q", c.statement, err, c.rule)
		}
		if after := len(legal.Refused(t, db)); kept && err != nil && after != before+1 {
			t.Errorf("%s: %d lines on record, want one more than %d", c.statement, after, before)
		}
	}

	must("DELETE FROM run WHERE id IN (1, 2, 4)")
	must("UPDATE run SET state = 'ended', owner = -2, outcome = 'lost' WHERE id = 3")
	must("UPDATE job SET living = NULL, next_due = NULL")
}

// quiet is a test that does not fail on the expected refusals.
type quiet struct{ testing.TB }

func (q *quiet) Cleanup(func()) {}
