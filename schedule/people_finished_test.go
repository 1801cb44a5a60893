package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go-crontab/job"
	"go-crontab/sql/read"
	"go-crontab/test/faultproxy"
)

// onceAt is a job with one due time that is deleted two minutes after it has finished.
func onceAt(name string, seconds float64) job.Spec {
	at := t0.Add(time.Duration(seconds * float64(time.Second))).Time()
	return job.Spec{Name: name, At: &at, Command: "true", KeepJob: job.Duration(2 * time.Minute)}
}

// finished lists the finished jobs that their definitions delete.
func (p *person) finished() []job.FinishedJob {
	p.Helper()
	found, last, err := read.Retention{DB: &read.DB{DB: p.Editor.DB}}.FinishedJobs(p.Context(), 0, 100)
	if err != nil || last != 0 {
		p.Fatalf("got %v, and more after %d, %v", found, last, err)
	}
	return found
}

func (c *cluster) living() []string {
	c.Helper()
	return c.rows("SELECT name FROM job WHERE living = 1 ORDER BY name")
}

// TestDeleteFinished: a finished job is deleted like by a person. Whatever is not over any more, or has changed since it
// was looked at, stays.
func TestDeleteFinished(t *testing.T) {
	c := newCluster(t)
	p, m := c.person(c.dsn), c.member(1, c.dsn)
	id := map[string]int64{}
	for _, name := range []string{
		"backfill", "broken", "due", "edited", "executing", "gone", "idle", "manual", "paused", "raced", "waiting", "without",
	} {
		spec := onceAt(name, 4)
		if name == "without" {
			spec.KeepJob = 0
		}
		id[name] = p.creates(spec)
	}
	p.creates(onceAt("ahead", 500))
	m.claims(1)
	m.starts(4)
	if got := p.finished(); len(got) != 11 || got[0].Keep != job.Duration(2*time.Minute) {
		t.Fatalf("got %+v", got)
	}
	c.exec("UPDATE run SET state = 'ended', owner = -2, outcome = 'succeeded', final = 1, ended = ? WHERE state = 'executing'",
		int64(t0.Add(5*time.Second)))
	p.must(p.at(6).Pause(p.ctx, id["paused"], job.PauseRequest{}))
	c.exec("UPDATE job SET error = 'x' WHERE name = 'broken'")
	found := p.finished()
	if at := found[0].RemoveAt(); len(found) != 9 || at != t0.Add(125*time.Second) {
		t.Fatalf("got %+v, to be removed at %s", found, at)
	}

	// What happens between the look and the deletion.
	edited := onceAt("edited", 600)
	p.must(p.Update(p.ctx, id["edited"], 0, edited))
	c.exec("UPDATE job SET next_due = ? WHERE name = 'due'", int64(t0.Add(900*time.Second)))
	for i, state := range []string{"executing", "idle", "waiting"} {
		c.exec(`INSERT INTO run (id, job_id, app_id, due, kind, request, state, owner, claim, due_now, hash, started, spawn_by)
			SELECT ?, job_id, app_id, due, 'manual', 99, IF(? = 'waiting', 'idle', 'prepared'), IF(? = 'waiting', 0, 7), 1, due_now, hash, 0, 0
			FROM run WHERE job_id = ?`, 1<<40+i, state, state, id[state])
		owner := map[string]int{"executing": 7, "idle": 0, "waiting": -1}[state]
		c.exec("UPDATE run SET state = ?, owner = ?, started = 1, spawn_by = due_now + 1 WHERE id = ?", state, owner, 1<<40+i)
	}
	c.exec(`INSERT INTO backfill (id, job_id, first, last, done_to, parallel, total, state, created, updated)
		VALUES (77, ?, 1, 2, 0, 1, 2, 'running', 1, 1)`, id["backfill"])
	p.must(p.Pause(p.ctx, id["raced"], job.PauseRequest{}))
	p.must(p.Resume(p.ctx, id["raced"]))

	c.exec("DELETE FROM audit")
	by := job.WithActor(p.Context(), job.Actor{Who: job.Itself, Origin: "one"})
	if n, err := p.DeleteFinished(by, found); n != 2 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	c.want("living", c.living(), "ahead", "backfill", "broken", "due", "edited", "executing", "idle", "paused", "raced",
		"waiting", "without")
	c.want("audit", c.rows(auditLines), "go-crontab delete default gone keep_job 2m was", "go-crontab delete default manual keep_job 2m was")
	c.want("its record stays", c.rows("SELECT outcome FROM run WHERE job_id = ?", id["gone"]), "succeeded")
	c.want("the index", c.rows("SELECT COUNT(*) FROM job_term WHERE job_id = ?", id["gone"]), "0")
	if n, err := p.DeleteFinished(by, found); n != 0 || err != nil {
		t.Errorf("again: deleted %d, %v", n, err)
	}
}

// TestDeleteFinishedInFaults: a commit that is refused, lost, or whose reply is lost deletes all jobs with one line each.
func TestDeleteFinishedInFaults(t *testing.T) {
	for what, action := range map[string]faultproxy.Action{
		"refused": faultproxy.Error(1213, "40001", "Deadlock found"), "lost": faultproxy.CutBefore(), "its reply is lost": faultproxy.CutAfter(),
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t)
			dsn, proxy := c.proxied()
			p := c.person(dsn)
			for i := range 3 {
				p.creates(onceAt(fmt.Sprint("j", i), 4))
			}
			c.exec("UPDATE job SET next_due = NULL, begun_to = ?", int64(t0))
			c.exec("DELETE FROM audit")
			found := p.finished()
			injected := proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf("UPDATE job|job j"), Action: action, Times: 1})
			n, err := p.DeleteFinished(p.ctx, found)
			if injected.Fired() != 1 {
				t.Fatalf("%d faults", injected.Fired())
			}
			if err != nil { // the next round of the chore
				n, err = p.DeleteFinished(p.ctx, p.finished())
			}
			if err != nil {
				t.Fatal(err)
			}
			if n != 3 && what != "its reply is lost" {
				t.Errorf("deleted %d", n)
			}
			c.want("living", c.living())
			lines := slices.DeleteFunc(c.rows(auditLines), func(line string) bool { return strings.Contains(line, " void ") })
			slices.Sort(lines)
			c.want("audit", lines, "alice delete default j0 keep_job 2m was", "alice delete default j1 keep_job 2m was",
				"alice delete default j2 keep_job 2m was")
		})
	}
}
