//go:build faults

package faults

import (
	"context"
	"testing"
	"time"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/ledger"
)

// A link is a run of the chains of F57.
type link struct {
	id, due, request      int64
	job, outcome          string
	started, ended, claim int64
	attempt               int
	given                 *job.Given
}

// TestF57Chains breaks a cluster whose jobs follow each other. Each success of an upstream job has one
// run of each follower, each complete wave has one run of the job that gathers it, and the chain of a
// job with a delay neither ends nor overlaps.
func TestF57Chains(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F57", "kill -9 of nodes and of MySQL, and pauses, while jobs follow each other")
	c := newServer(r, privatedb.Options{})
	c.start(3)
	l := c.load()
	follow := func(name, match string, jobs ...string) {
		c.create(object{
			"name": name, "command": l.book.Command(50*time.Millisecond, 0), "overlap": "allow",
			"after": object{"jobs": jobs, "match": match},
		})
	}

	head := c.create(object{
		"name": "head", "every": "1s", "command": l.book.Command(100*time.Millisecond, 0), "overlap": "allow",
	})
	follow("any", "any", "head")
	follow("left", "all", "head")
	follow("right", "all", "default/head")
	follow("joined", "all", "left", "right")
	delayed := c.create(object{"name": "delayed", "delay": "1s", "command": l.book.Command(300*time.Millisecond, 0)})

	ask := func(id int64, action string) {
		await(t, action, 30*time.Second, func() bool {
			for _, m := range c.nodes {
				if a := m.ask("POST", "/api/v1/jobs/"+itoa(id)+"/"+action, object{}); a.code == 200 {
					return true
				}
			}
			return false
		})
	}
	kill := func() {
		var m *member
		await(t, "a node executes", 30*time.Second, func() bool {
			m = c.nodes[c.rng.IntN(len(c.nodes))]
			return c.executing(m.session()) > 0
		})
		m.kill()
		m.start()
		m.ready(60 * time.Second)
	}

	for range times(3, 20) {
		time.Sleep(3 * time.Second)
		kill()
	}
	time.Sleep(2 * time.Second)
	if err := c.server.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(c.rng.Int64N(int64(3 * time.Second))))
	if err := c.server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.together(60 * time.Second)

	time.Sleep(2 * time.Second)
	ask(head, "pause")
	ask(delayed, "pause")
	time.Sleep(2 * time.Second)
	ask(head, "resume")
	ask(delayed, "resume")
	for range times(2, 20) {
		time.Sleep(2 * time.Second)
		kill()
	}
	time.Sleep(3 * time.Second)

	// The chain goes on: it begins again and again while nothing is broken.
	before := c.now()
	await(t, "three further runs of the job with a delay", 30*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE job_id = ? AND started > ? AND state = 'ended'", delayed,
			before.UnixMicro()) >= 3
	})
	ask(delayed, "pause")
	ask(head, "pause")
	await(t, "everything has ended", 60*time.Second, func() bool {
		return c.count("SELECT COUNT(*) FROM run WHERE state <> 'ended'") == 0
	})

	links := c.links()
	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	checkFollowers(r, links)
	checkWaves(r, links)
	checkDelay(r, links)
	checkBook(r, links, entries)
}

// links reads all runs.
func (c *cluster) links() (out []link) {
	c.t.Helper()
	rows, err := c.db.Query(`
		SELECT r.id, r.due, r.request, j.name, r.outcome, r.started, r.ended, r.claim, r.attempt, COALESCE(r.given, '')
		FROM run r JOIN job j ON j.id = r.job_id
		ORDER BY j.name, r.started, r.id`)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n link
		var given string
		if err := rows.Scan(&n.id, &n.due, &n.request, &n.job, &n.outcome, &n.started, &n.ended, &n.claim, &n.attempt,
			&given); err != nil {
			c.t.Fatal(err)
		}
		n.given = job.ParseGiven(given)
		out = append(out, n)
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// checkFollowers compares the successes of upstream jobs with the runs of their followers.
func checkFollowers(r *report, links []link) {
	lost, doubled, triggered := 0, 0, 0
	for follower, upstream := range map[string]string{"any": "head", "left": "head", "right": "head"} {
		runs := map[int64]int{}
		for _, n := range links {
			if n.job == follower && n.attempt == 1 {
				runs[n.given.Upstream.Run]++
			}
		}
		for _, n := range links {
			if n.job != upstream {
				continue
			}
			switch got := runs[n.id]; {
			case n.outcome != "succeeded" && got > 0, got > 1:
				doubled++
			case n.outcome == "succeeded" && got == 0:
				lost++
				r.t.Errorf("run %d of %s succeeded, and %s did not run", n.id, upstream, follower)
			default:
				triggered += got
			}
		}
	}
	if triggered < 60 {
		r.t.Errorf("only %d runs were triggered", triggered)
	}
	r.figure("%d runs triggered by one job, %d lost, %d doubled", triggered, lost, doubled)
	if lost+doubled > 0 {
		r.t.Errorf("%d lost, %d doubled", lost, doubled)
	}
}

// checkWaves compares the waves in which both branches succeeded with the runs of the job that gathers
// them.
func checkWaves(r *report, links []link) {
	done := map[job.Micros]map[string]bool{}
	joined := map[job.Micros]int{}
	for _, n := range links {
		if n.given == nil {
			continue
		}
		wave := n.given.Upstream.Scheduled
		switch {
		case n.job == "joined":
			joined[wave]++
		case (n.job == "left" || n.job == "right") && n.outcome == "succeeded":
			if done[wave] == nil {
				done[wave] = map[string]bool{}
			}
			done[wave][n.job] = true
		}
	}

	complete, wrong := 0, 0
	for wave, of := range done {
		want := 0
		if len(of) == 2 {
			want = 1
			complete++
		}
		if joined[wave] != want {
			wrong++
			r.t.Errorf("the wave of %s has %d complete branches and %d joined runs", wave, len(of), joined[wave])
		}
	}
	for wave := range joined {
		if done[wave] == nil {
			wrong++
		}
	}
	if complete < 20 {
		r.t.Errorf("only %d waves were complete", complete)
	}
	r.figure("%d waves complete, %d without exactly one run", complete, wrong)
}

// checkDelay checks that no run of the job with a delay begins before the last one has ended.
func checkDelay(r *report, links []link) {
	var last *link
	runs, overlaps := 0, 0
	for i := range links {
		n := &links[i]
		if n.job != "delayed" || n.started == 0 {
			continue
		}
		runs++
		if last != nil && n.due < last.ended+time.Second.Microseconds() {
			overlaps++
			r.t.Errorf("run %d was due %s after run %d had ended", n.id,
				time.Duration(n.due-last.ended)*time.Microsecond, last.id)
		}
		last = n
	}
	r.figure("%d runs with a delay, %d too early", runs, overlaps)
}

// checkBook compares the history with what the commands have written: each launch began at most once,
// and each success once.
func checkBook(r *report, links []link, entries []ledger.Entry) {
	began := map[string]int{}
	for _, e := range entries {
		if e.Kind == ledger.Start {
			began[e.Launch]++
		}
	}
	missing, twice := 0, 0
	for launch, n := range began {
		if n > 1 {
			twice++
			r.t.Errorf("launch %s began %d times", launch, n)
		}
	}
	for _, n := range links {
		launch := job.Launch{Run: n.id, Claim: int32(n.claim)}.String()
		if n.outcome == "succeeded" && began[launch] != 1 {
			missing++
			r.t.Errorf("run %d of %s succeeded, and began %d times", n.id, n.job, began[launch])
		}
	}
	r.figure("%d commands began, %d missing, %d twice", len(began), missing, twice)
}
