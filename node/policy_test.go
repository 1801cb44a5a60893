package node_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/execute"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/sql"
	"go-crontab/sql/read"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	l.took = func(execute.Attempt) time.Duration { return 2500 * time.Millisecond }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	c.start("two", func(cfg *node.Config) { cfg.Executor = l })
	skip := n.create(job.Spec{Name: "skip", Every: job.Duration(time.Second)})
	allow := n.create(job.Spec{Name: "allow", Every: job.Duration(time.Second), Overlap: job.OverlapAllow})
	time.Sleep(9 * time.Second)
	until := n.Now().Add(-3 * time.Second)
	c.settled(10*time.Second, until)
	got := account(t, c, l, []job.Job{skip}, until)
	if got[job.Succeeded] < 2 || got[job.Skipped] < 3 {
		t.Errorf("skip: %v", got)
	}

	var end job.Micros
	for _, r := range c.history(skip.ID) {
		switch r.Outcome {
		case job.Succeeded:
			if r.Started < end {
				t.Errorf("run due %s started at %s, before the one before it ended at %s", r.Due, r.Started, end)
			}
			end = r.Ended
		case job.Skipped:
			if r.Reason.Code != job.ReasonPreviousRunExecuting || r.Started != 0 {
				t.Errorf("skipped run: %+v", r.Run)
			}
		}
	}

	if got := account(t, c, l, []job.Job{allow}, until); got[job.Skipped] != 0 {
		t.Errorf("allow: %v", got)
	}
}

// TestPauseHolds pauses a busy job repeatedly: after each answer nothing starts.
func TestPauseHolds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	other := c.start("two", func(cfg *node.Config) { cfg.Executor = l })
	j := n.create(job.Spec{Name: "busy", Every: job.Duration(50 * time.Millisecond)})
	for i := range 5 {
		time.Sleep(700*time.Millisecond + time.Duration(i)*13*time.Millisecond)
		if _, err := other.Editor().Pause(t.Context(), j.ID, job.PauseRequest{}); err != nil || !n.job(j.ID).Paused {
			t.Fatalf("pause: %+v, %v", n.job(j.ID), err)
		}

		answered := n.Now()
		before, _ := l.counts()
		time.Sleep(300 * time.Millisecond)
		if after, _ := l.counts(); after != before {
			t.Errorf("%d runs started after the pause was answered", after-before)
		}

		if n := c.count(`
			SELECT COUNT(*)
			FROM run
			WHERE state IN ('idle', 'prepared') AND due > ?`, answered.UnixMicro()); n != 0 {
			t.Errorf("a paused job has %d due times", n)
		}

		// Runs that were overdue at the pause end skipped.
		n.await("nothing is left to start", 5*time.Second, func() bool {
			return c.count(`
				SELECT COUNT(*)
				FROM run
				WHERE state IN ('idle', 'prepared')`) == 0
		})

		if _, err := n.Editor().Resume(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
	}

	_, doubles := l.counts()
	if doubles != 0 {
		t.Errorf("%d due times were executed twice", doubles)
	}
	if k := c.count("SELECT COUNT(*) FROM run WHERE due_count > 1 AND outcome = 'skipped'"); k > 5 {
		t.Errorf("%d counted runs for five pauses", k)
	}
}

// TestEdit changes the command and the schedule of a busy job: no due time runs twice, and after
// the answer nothing runs under the old definition.
func TestEdit(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	seen := make(chan string, 10_000)
	l := newLedger()
	l.took = func(a execute.Attempt) time.Duration { seen <- a.Command; return 0 }
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	j := n.create(job.Spec{Name: "busy", Every: job.Duration(50 * time.Millisecond), Command: "old"})
	time.Sleep(time.Second)
	spec := j.Spec
	spec.Command = "new"
	edited, err := n.Editor().Update(t.Context(), j.ID, j.Changes, spec)
	if err != nil || int64(edited.Version) != j.Version+1 {
		t.Fatalf("update: %+v, %v", edited, err)
	}

	for len(seen) > 0 {
		<-seen
	}

	for i := range 10 {
		select {
		case got := <-seen:
			if got != "new" {
				t.Fatalf("%q ran after the edit was answered", got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("only %d runs after the edit", i)
		}
	}

	if _, err := n.Editor().Update(t.Context(), j.ID, j.Changes, spec); err != job.ErrChanged {
		t.Errorf("update of an old version: %v, want %v", err, job.ErrChanged)
	}
	if _, err := n.Editor().Delete(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}

	before, doubles := l.counts()
	time.Sleep(500 * time.Millisecond)
	if after, _ := l.counts(); after != before || doubles != 0 {
		t.Errorf("%d runs after the delete was answered, %d doubles", after-before, doubles)
	}

	again := n.create(job.Spec{Name: "busy", Every: job.Duration(time.Hour)})
	if again.ID == j.ID {
		t.Error("the name of a deleted job is not free")
	}
}

func TestRunNow(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	c.start("two", nil)
	j := n.create(job.Spec{Name: "by hand", Schedule: "0 0 1 1 *"})
	var worst time.Duration
	for range 5 {
		runs := len(c.history(j.ID))
		if _, err := n.Editor().RunNow(t.Context(), []int64{j.ID}, 0, ""); err != nil {
			t.Fatal(err)
		}
		n.await("its run", 5*time.Second, func() bool { return len(c.history(j.ID)) > runs })
	}

	for _, r := range c.history(j.ID) {
		if r.Outcome != job.Succeeded || r.Request == 0 {
			t.Errorf("got %+v", r.Run)
		}
		worst = max(worst, time.Duration(r.Lateness)*time.Microsecond)
	}

	t.Logf("started after %s at most", worst)
	a, err := n.Editor().RunNow(t.Context(), []int64{j.ID}, 0, "key")
	if err != nil {
		t.Fatal(err)
	}

	if b, err := n.Editor().RunNow(t.Context(), []int64{j.ID}, 0, "key"); err != nil || a.Request != b.Request ||
		a.Due != b.Due {
		t.Errorf("the same key: %+v, then %+v, %v", a, b, err)
	}

	other := n.create(job.Spec{Name: "other", Schedule: "0 0 1 1 *"})
	if _, err := n.Editor().RunNow(t.Context(), []int64{other.ID}, 0, "key"); err != job.ErrKeyReused {
		t.Errorf("the key for another job: %v, want %v", err, job.ErrKeyReused)
	}
}

// TestMisfire puts a job's cursor into the past, as after an outage of the whole cluster.
func TestMisfire(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	l := newLedger()
	n := c.start("one", func(cfg *node.Config) { cfg.Executor = l })
	gap := func(name string, every, ago time.Duration, m job.Misfire) job.Job {
		spec := job.Spec{Name: name, Every: job.Duration(every), Start: ptr(n.Now().Add(24 * time.Hour)), Misfire: m}
		j := n.create(spec)
		start := n.Now().Add(-ago).Truncate(time.Microsecond)
		j.Spec.Start = &start
		text, _ := j.Spec.Encode()

		// The next version, written together with the cursor.
		c.exec(`
			INSERT INTO job_version (job_id, version, definition, created)
			VALUES (?, 2, ?, ?)`, j.ID, text, start.UnixMicro())
		c.exec("UPDATE job SET version = 2, next_due = ? WHERE id = ?", start.UnixMicro(), j.ID)
		return j
	}

	latest := gap("latest", 10*time.Minute, 2*time.Hour-time.Minute, job.Misfire{})
	old := gap("too old", 3*time.Hour, 8*time.Hour, job.Misfire{})
	skip := gap("skip", 10*time.Minute, 2*time.Hour-time.Minute, job.Misfire{Policy: job.MisfireSkip})
	seconds := gap("every second", time.Second, time.Hour, job.Misfire{})
	written := n.Now().UnixMicro()
	n.await("all cursors have passed the outage", 15*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM job WHERE next_due <= ?", written) == 0
	})
	until := n.Now()
	c.settled(60*time.Second, until)
	got := account(t, c, l, []job.Job{latest}, until)
	if got[job.Missed] != 11 || got[job.Succeeded] != 1 || len(c.history(latest.ID)) != 2 {
		t.Errorf("latest: %v in %d runs, want 11 missed and 1 succeeded in 2", got, len(c.history(latest.ID)))
	}

	if got := account(t, c, l, []job.Job{old}, until); got[job.Missed] != 3 || len(got) != 1 {
		t.Errorf("too old: %v, want 3 missed", got)
	}
	if got := account(t, c, l, []job.Job{skip}, until); got[job.Missed] != 12 || len(got) != 1 {
		t.Errorf("skip: %v, want 12 missed", got)
	}

	got = account(t, c, l, []job.Job{seconds}, until)
	if got[job.Missed] < 3530 || c.count(`
		SELECT COUNT(*)
		FROM run
		WHERE state = 'ended' AND job_id = ?`, seconds.ID) > 80 {
		t.Errorf("every second: %v in %d rows", got, len(c.history(seconds.ID)))
	}
}

func TestAtInThePastFiresAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	j := n.create(job.Spec{Name: "late", At: ptr(n.Now().Add(-30 * time.Minute))})
	n.await("its run", 5*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	row, err := c.db.Job(t.Context(), j.ID)
	if err != nil || row.Status(false, job.MicrosOf(n.Now())) != job.Finished {
		t.Errorf("status %s, want finished; %v", row.Status(false, job.MicrosOf(n.Now())), err)
	}
}

// TestBadRowsHarmNobody inserts definitions that no API would accept.
func TestBadRowsHarmNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	good := n.create(job.Spec{Name: "good", Every: job.Duration(time.Second)})
	for i, spec := range []string{"", "{", `{"name":"x","schedule":"61 * * * *"}`,
		`{"schedule":"1-0 * * * *","command":"x"}`,
		`{"every":"1s","timezone":"Nowhere/Land"}`, `{"future":true}`, `{"every":"-1s"}`,
		`{"every":"1s","start":"0001-01-01T00:00:00Z"}`} {
		c.exec("INSERT IGNORE INTO app (name) VALUES ('bad')")
		c.exec("INSERT INTO job (app_id, name, hash) SELECT id, ?, 7 FROM app WHERE name = 'bad'", i)
		c.exec(`
			INSERT INTO job_version (job_id, version, definition, created)
			SELECT id, 1, ?, 1
			FROM job
			WHERE name = ?`, spec, fmt.Sprint(i))
		c.exec("UPDATE job SET next_due = 1 WHERE name = ?", fmt.Sprint(i))
	}

	before := len(c.history(good.ID))
	n.await("the good one goes on", 8*time.Second, func() bool { return len(c.history(good.ID)) >= before+4 })

	// Their cursors are older than the bound of ordinary claims; a claim without the bound runs
	// once a minute.
	n.await("the broken ones have no due time", 20*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM v_job WHERE app = 'bad' AND next_due IS NOT NULL AND name < 7") == 0
	})
}

// TestLastSuccess: commands and Go functions learn the due time of the last success, also of a run a moment ago.
func TestLastSuccess(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	c.start("two", nil)
	j := n.create(job.Spec{
		Name: "alternates", Every: job.Duration(time.Second), MaxFires: 8, Overlap: job.OverlapQueue,
		Command: `echo "$GOCRONTAB_LAST_SUCCESS"; sleep 0.7; s=${GOCRONTAB_DUE%Z}; s=${s%.*}; [ $((10#${s: -2} % 3)) != 0 ]`,
	})
	await(t, "all have run", 40*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE final = 1 AND started > 0") == 8
	})

	var ids []int64
	for _, r := range c.history(j.ID) {
		ids = append(ids, r.ID)
	}
	runs, err := c.db.RunsWithOutput(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(runs, func(a, b read.Run) int { return cmp.Compare(a.Due, b.Due) })
	last := ""
	for _, r := range runs {
		if got := strings.TrimSpace(r.Output.Text()); got != last {
			t.Errorf("due %s: got %q, want %q", r.Due, got, last)
		}
		if r.Outcome == job.Succeeded {
			last = r.Due.String()
		}
	}
	if last == "" || len(runs) != 8 {
		t.Errorf("got %d runs, the last success %q", len(runs), last)
	}
}

// TestRetry lets attempts fail until one succeeds or none is left.
func TestRetry(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	n := c.start("one", nil)
	c.start("two", nil)
	retry := job.Retry{Attempts: 3, Backoff: job.Duration(300 * time.Millisecond), Factor: 2}
	lucky := n.create(job.Spec{
		Name: "lucky", At: ptr(n.Now()), Retry: retry,
		Command: `echo "attempt $GOCRONTAB_ATTEMPT"; [ $GOCRONTAB_ATTEMPT = 2 ]`,
	})

	hopeless := n.create(job.Spec{Name: "hopeless", At: ptr(n.Now()), Retry: retry, Command: "exit 7"})
	slow := n.create(job.Spec{Name: "slow", At: ptr(n.Now()), Retry: job.Retry{
		Attempts: 2, Backoff: job.Duration(10 * time.Millisecond), On: []job.Outcome{job.TimedOut},
	},
		Timeout: job.Duration(200 * time.Millisecond), Command: "sleep 60"})

	other := n.create(job.Spec{
		Name: "other", At: ptr(n.Now()), Retry: job.Retry{Attempts: 2, On: []job.Outcome{job.TimedOut}},
		Command: "exit 1",
	})

	for _, want := range []struct {
		job      job.Job
		outcomes []job.Outcome
	}{
		{lucky, []job.Outcome{job.Failed, job.Succeeded}},
		{hopeless, []job.Outcome{job.Failed, job.Failed, job.Failed}},
		{slow, []job.Outcome{job.TimedOut, job.TimedOut}},
		{other, []job.Outcome{job.Failed}},
	} {
		n.await(want.job.Spec.Name+" is over", 10*time.Second, func() bool {
			runs := c.history(want.job.ID)
			return len(runs) > 0 && slices.ContainsFunc(runs, func(r read.Run) bool { return r.Final })
		})

		runs := c.history(want.job.ID)
		slices.SortFunc(runs, func(a, b read.Run) int { return a.Attempt - b.Attempt })
		if len(runs) != len(want.outcomes) {
			t.Errorf("%s: %d runs, want %v", want.job.Spec.Name, len(runs), want.outcomes)
			continue
		}

		for i, r := range runs {
			if r.Outcome != want.outcomes[i] || r.Attempt != i+1 || r.Final != (i == len(runs)-1) ||
				r.Due != runs[0].Due {
				t.Errorf("%s: run %d is %+v", want.job.Spec.Name, i, r.Run)
			}

			if i > 0 {
				// a factor of 2, or a single retry
				backoff := time.Duration(want.job.Spec.Retry.Backoff) << (i - 1)
				if wait := r.Started.Sub(runs[i-1].Ended); wait < backoff || wait > backoff+10*time.Second {
					t.Errorf("%s: attempt %d began %s after the one before, want %s", want.job.Spec.Name, i+1, wait,
						backoff)
				}
			}
		}
	}
}

// TestKillFromAnyNode kills a run through a node other than its own.
func TestKillFromAnyNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	one := c.start("one", nil)
	two := c.start("two", nil)
	j := one.create(job.Spec{
		Name: "long", At: ptr(one.Now()), Command: "sleep 60", Retry: job.Retry{
			Attempts: 3, On: []job.Outcome{job.Killed},
		},
	})

	var running []read.Run
	one.await("it runs", 5*time.Second, func() bool {
		running, _ = c.db.ExecutingRuns(t.Context(), read.RunFilter{JobID: j.ID, Limit: 10})
		return len(running) == 1
	})

	other := one
	if running[0].Node == "one" {
		other = two
	}

	asked := time.Now()
	for range 2 { // repeating it is harmless
		if err := other.Editor().Kill(t.Context(), running[0].Launch); err != nil {
			t.Fatal(err)
		}
	}

	one.await("its end", 5*time.Second, func() bool { return len(c.history(j.ID)) == 1 })
	t.Logf("killed after %s", time.Since(asked).Round(time.Millisecond))
	if r := c.history(j.ID)[0]; r.Outcome != job.Killed || r.Reason.Code != job.ReasonKilledByUser || !r.Final {
		t.Errorf("got %+v", r.Run)
	}
	if err := other.Editor().Kill(t.Context(), running[0].Launch); !errors.Is(err, sql.ErrNotFound) {
		t.Errorf("kill of what has ended: %v, want %v", err, sql.ErrNotFound)
	}
}

// TestAnEditOfAnOverdueInstantEndsItOnce edits a job whose single due time has passed without a
// start.
func TestAnEditOfAnOverdueInstantEndsItOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	release := make(chan struct{})
	l := newLedger()
	l.took = func(a execute.Attempt) time.Duration {
		if a.Command == "block" {
			<-release
		}
		return 0
	}

	n := c.start("one", func(cfg *node.Config) { cfg.Executor, cfg.Slots = l, 1 })
	n.create(job.Spec{Name: "blocks", At: ptr(n.Now()), Command: "block"})
	n.await("no slot is free", 5*time.Second, func() bool { return n.Status().Executing == 1 })
	j := n.create(job.Spec{Name: "late", At: ptr(n.Now().Add(-30 * time.Minute))})
	spec := j.Spec
	spec.Misfire.Policy = job.MisfireSkip
	if _, err := n.Editor().Update(t.Context(), j.ID, j.Changes, spec); err != nil {
		t.Fatal(err)
	}

	close(release)
	// The edit may have taken its run back, so it may have no row until it is claimed again.
	n.await("it ended", 10*time.Second, func() bool {
		return len(c.history(j.ID)) > 0 && c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended'") == 0
	})

	// A claim or a start ends it, whichever follows the edit first.
	if runs := c.history(j.ID); len(runs) != 1 || runs[0].Outcome != job.Missed ||
		runs[0].Reason.Code != job.ReasonMisfire {
		t.Errorf("runs: %+v, want one that was missed", runs)
	}
}
