//go:build faults

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"go-crontab/job"
	crontab "go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/test/ledger"
)

// A load is a set of periodic jobs with the expectations about their runs.
type load struct {
	c     *cluster
	book  *ledger.Ledger
	jobs  []ledger.Job
	every []time.Duration
	first []job.Micros

	forget func(ledger.Entry) bool     // lines that are counted and otherwise ignored
	spare  func(ledger.Violation) bool // violations that no promise excludes
	// early limits how long before its due time a run may start, plus half the time that the
	// machine stalled right before.
	early   time.Duration
	missed  [2]time.Duration // interval after a missed due time in which no start may have happened
	behind  time.Duration    // a lost run may have ended this much before other runs of its session
	starts  int              // limit of due times that a node may be starting at once
	limit   time.Duration    // time limit after the last fault for everything to end
	patient bool             // a shrinking backlog extends the limit
	counts  map[job.Outcome]int64
	runs    []job.Run     // all attempts
	worst   time.Duration // lateness of first attempts
}

// atOnce is how many due times of a mixed load a node may be starting when it dies. Usually it is 0
// or 1.
const atOnce = 4

// object is a body of the API.
type object map[string]any

// load returns an empty load.
func (c *cluster) load() *load {
	c.t.Helper()
	book, err := ledger.Open(c.ledger)
	if err != nil {
		c.t.Fatal(err)
	}
	return &load{c: c, book: book, early: 20 * time.Millisecond, starts: atOnce, limit: c.soon(),
		missed: [2]time.Duration{c.expiry, job.MisfireAfter - 10*time.Second}, behind: 3 * time.Second}
}

// mixed is the load of most scenarios: 8 due times a second of runs that are short, that are long
// and must not overlap, that may be repeated, and that fail. The job patient lives longer than a
// lease, so every fault finds it executing on some node.
func (c *cluster) mixed() *load {
	l := c.load()
	for i := range 4 {
		l.add(fmt.Sprint("short-", i), time.Second, object{"command": l.book.Command(50*time.Millisecond, 0),
			"overlap": "allow"})
	}

	for i := range 2 {
		l.add(fmt.Sprint("long-", i), 2*time.Second, object{"command": l.book.Command(1500*time.Millisecond, 0)})
	}

	for i := range 2 {
		l.add(fmt.Sprint("rerun-", i), time.Second, object{"command": l.book.Command(300*time.Millisecond, 0),
			"overlap": "allow", "on_lost": "rerun"})
	}

	l.add(patient, 3*time.Second, object{"command": l.book.Command(8*time.Second, 0)})
	l.add("fails", 2*time.Second, object{"command": l.book.Command(0, 3), "overlap": "allow",
		"retry": object{"attempts": 2, "backoff": "500ms"}})
	return l
}

const patient = "patient"

// busy waits until the long job executes, and returns its node.
func (c *cluster) busy() *member {
	c.t.Helper()
	var found *member
	await(c.t, "a long run executing", 30*time.Second, func() bool {
		for _, m := range c.nodes {
			const query = "SELECT COUNT(*) FROM run r JOIN job j ON j.id = r.job_id WHERE j.name = ? AND " + executedBy
			if s := m.session(); c.count(query, patient, s[:]) > 0 &&
				len(c.commandsOf(s)) > 0 {
				found = m
				return true
			}
		}
		return false
	})

	return found
}

// soon is the longest delay of a start while a node lives and MySQL answers.
func (c *cluster) soon() time.Duration { return c.expiry + 10*time.Second }

// now returns the time of MySQL's clock.
func (c *cluster) now() time.Time {
	c.t.Helper()
	var micros int64
	if err := c.db.QueryRow("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&micros); err != nil {
		c.t.Fatal(err)
	}
	return time.UnixMicro(micros)
}

// add creates a job through the API of the first node that accepts it.
func (l *load) add(name string, every time.Duration, fields object) {
	t := l.c.t
	t.Helper()
	first := l.c.now().Add(2*time.Second + time.Duration(len(l.jobs))*137*time.Millisecond).Truncate(time.Millisecond)
	body := object{"name": name, "every": every.String(), "start": first.UTC().Format(time.RFC3339Nano)}
	for key, value := range fields {
		body[key] = value
	}

	id := l.c.create(body)
	j := ledger.Job{ID: id, Name: name, Allow: body["overlap"] == "allow", Rerun: body["on_lost"] == "rerun",
		Stopped: body["overlap"] == "replace" || body["timeout"] != nil}
	if retry, ok := body["retry"].(object); ok {
		j.Attempts = retry["attempts"].(int)
	}

	l.jobs, l.every, l.first = append(l.jobs, j), append(l.every, every), append(l.first, job.MicrosOf(first))
}

// create makes a job and returns its id.
func (c *cluster) create(body object) (id int64) {
	c.t.Helper()
	await(c.t, fmt.Sprint("job ", body["name"], " made"), 30*time.Second, func() bool {
		for _, m := range c.nodes {
			if m.cmd == nil || m.isDead() || m.url == "" {
				continue
			}

			a := m.ask("POST", "/api/v1/jobs", body, "Idempotency-Key",
				c.schema+"-"+url.QueryEscape(fmt.Sprint(body["name"])))

			var made struct {
				ID int64 `json:"id,string"`
			}
			if a.code == 201 && json.Unmarshal([]byte(a.body), &made) == nil {
				id = made.ID
				return true
			}

			if a.code >= 400 && a.code < 500 {
				c.t.Fatalf("POST /api/v1/jobs: %d %s", a.code, a.body)
			}
		}

		return false
	})

	return id
}

// settle waits until every run due before an instant has ended. Like within, it extends the limit
// by the machine's stalls. A backlog that shrinks extends the limit of a patient load, up to five
// times: an overloaded machine is slow, but nothing is stuck.
func (l *load) settle(until time.Time, limit time.Duration) bool {
	begun, least := time.Now(), math.MaxInt
	latest := begun.Add(5 * limit)
	for ; ; time.Sleep(50 * time.Millisecond) {
		open := l.c.count(`
			SELECT (SELECT COUNT(*) FROM run WHERE due < ? AND state <> 'ended')
				+ (SELECT COUNT(*) FROM job WHERE living = 1 AND next_due < ?)`, until.UnixMicro(), until.UnixMicro())
		if open == 0 {
			return true
		}

		if l.patient && open > 0 && open < least && time.Now().Before(latest) { // below 0: MySQL did not answer
			begun, least = time.Now(), open
		}
		if time.Since(begun) > limit+3*stalled(begun) {
			return false
		}
	}
}

// check compares all due times up to now with history and ledger, and adds the figures to the
// scenario's line. lateness limits how late first attempts may have been started; 0 means no limit.
func (l *load) check(lateness time.Duration) {
	l.c.t.Helper()
	l.checkUntil(l.c.now(), lateness)
}

func (l *load) checkUntil(until time.Time, lateness time.Duration) {
	t, r := l.c.t, l.c.r
	t.Helper()
	if !l.settle(until, l.limit) {
		l.stuck(until)
		t.FailNow() // an unfinished run has no record yet, so check would prove nothing
	}

	entries, err := l.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	stop := job.MicrosOf(until)

	entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool { return e.Due >= stop })
	if l.forget != nil {
		before := len(entries)
		entries = slices.DeleteFunc(entries, l.forget)
		r.figure("%d last signs of life of what was frozen", before-len(entries))
	}

	lived := l.c.living()
	history := slices.DeleteFunc(l.history(), func(r job.Run) bool { return r.Due >= stop })

	expected := ledger.Expected{Unspawned: l.starts, Sessions: l.c.lives(lived), Missed: l.missed, Behind: l.behind,
		Early: func(at job.Micros) time.Duration {
			// A node uses the fastest of its last readings of the clock. It takes one with each
			// beat.
			return l.early + stalledIn(at.Time().Add(-l.c.expiry/5), at.Time())/2
		}}

	n := 0
	for i, j := range l.jobs {
		j.Dues = ledger.Every(l.every[i], l.first[i], stop)
		n += len(j.Dues)
		expected.Jobs = append(expected.Jobs, j)
	}

	found := ledger.Check(expected, entries, history)
	if l.spare != nil {
		all := slices.Clone(found)
		found = slices.DeleteFunc(found, l.spare)
		all = slices.DeleteFunc(all, func(v ledger.Violation) bool { return !l.spare(v) })
		r.figure("not promised, and so not counted: %s", ledger.Figures(all))
	}

	for i, v := range found {
		if i == 10 {
			t.Errorf("and %d more", len(found)-10)
			break
		}
		t.Error(v)
	}

	if n == 0 || len(entries) == 0 {
		t.Errorf("%d due times, %d lines in the ledger: nothing was tried", n, len(entries))
	}

	l.counts, l.runs = ledger.Outcomes(history), history
	r.figure("%d due times, %s", n, ledger.Figures(found))
	r.figure("%s", words(l.counts))
	l.latest(entries, lateness)
}

// latest checks how late first attempts were started. A stall counts for due times in it, and
// within an expiry of it, since it may have fenced a node.
func (l *load) latest(entries []ledger.Entry, limit time.Duration) {
	l.c.t.Helper()
	l.worst = 0

	n, worst := 0, ledger.Entry{}
	for _, e := range entries {
		if e.Kind != ledger.Start || e.Attempt != 1 {
			continue
		}

		took := e.At.Sub(e.Due)
		l.worst = max(l.worst, took)
		if limit == 0 || took <= limit {
			continue
		}

		if late := stalledIn(e.Due.Time().Add(-l.c.expiry), e.At.Time()); late <= told || took > limit+3*late {
			n++
			if took > worst.At.Sub(worst.Due) {
				worst = e
			}
		}
	}

	l.c.r.figure("latest start %s", short(l.worst))

	switch {
	case n > 0:
		l.c.t.Errorf("%d due times were started later than %s, the latest after %s (job %s, due %s),"+
			" and the machine itself had not stalled for so long",
			n, short(limit), short(worst.At.Sub(worst.Due)), worst.Job, worst.Due)
	case limit > 0 && l.worst > limit:
		l.c.r.figure("which is more than %s while the machine itself stalled", short(limit))
	}
}

// none fails the scenario if an attempt had such an outcome by the last check. If the machine
// itself may have fenced the node, the scenario is invalid.
func (l *load) none(outcomes ...job.Outcome) {
	l.c.t.Helper()
	n := 0
	for _, r := range l.runs {
		if !slices.Contains(outcomes, r.Outcome) {
			continue
		}
		if late := stalledIn(r.Due.Time().Add(-l.c.expiry), r.Ended.Time()); late > l.c.expiry/5 {
			l.c.r.invalidate("a run %s, and the machine itself had stalled for %s", r.Outcome, short(late))
			continue
		}
		if n++; n <= 3 {
			l.c.t.Errorf("job %d, due %s, session %s: %s (%s), want none of these", r.JobID, r.Due, r.Session,
				r.Outcome, r.Reason)
		}
	}

	if n > 3 {
		l.c.t.Errorf("and %d more", n-3)
	}
}

// light fails the scenario if a node uses much memory. While MySQL is away a node keeps outcomes in
// memory, at most one per slot.
func (c *cluster) light(megabytes float64) {
	c.t.Helper()
	most := c.heaviest()
	c.r.figure("memory %.0f MB", most)
	if most > megabytes {
		c.t.Errorf("a node holds %.0f MB, want %.0f at most", most, megabytes)
	}
}

// living returns the sessions of all nodes with a fresh lease.
func (c *cluster) living() (all []uuid.UUID) {
	for _, m := range c.nodes {
		if m.cmd != nil && !m.isDead() && m.url != "" && m.isReady() {
			all = append(all, m.session())
		}
	}
	return all
}

// lives returns the known ends of sessions. Known are sessions that lived before and live now, and
// sessions that ended in order, which nodes record in the transaction that removes their row.
func (c *cluster) lives(before []uuid.UUID) map[uuid.UUID]ledger.Life {
	t := c.t
	t.Helper()
	lives := map[uuid.UUID]ledger.Life{}
	now := c.living()
	for _, id := range before {
		if !isNil(id) && slices.Contains(now, id) {
			lives[id] = ledger.Lives
		}
	}

	rows, err := c.db.Query(`
		SELECT JSON_UNQUOTE(JSON_EXTRACT(was, '$.session'))
		FROM audit
		WHERE kind = ? AND action = ?`, job.KindSession, job.ActionLeave)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		lives[id] = ledger.Left
	}

	return lives
}

// stuck reports the runs that have not ended.
func (l *load) stuck(until time.Time) {
	t := l.c.t
	t.Helper()
	rows, err := l.c.db.Query(`
		SELECT CONCAT_WS(' ', j.name, TIMESTAMPADD(MICROSECOND, r.due, '1970-01-01'),
			r.state, r.attempt, r.id, r.claim, 'owner', r.owner)
		FROM run r
		JOIN job j ON j.id = r.job_id
		WHERE r.state <> 'ended' AND r.due < ?
		UNION ALL
		SELECT CONCAT_WS(' ', name, TIMESTAMPADD(MICROSECOND, next_due, '1970-01-01'),
			'has no run', IF(crowded, 'crowded', NULL), error)
		FROM job
		WHERE living = 1 AND next_due < ?
		LIMIT 10`, until.UnixMicro(), until.UnixMicro())
	if err != nil {
		t.Errorf("due times before %s have not ended within %s, and MySQL does not say which: %v", until.UTC(), l.limit,
			err)
		return
	}
	defer rows.Close()

	var open []string
	for rows.Next() {
		var text string
		_ = rows.Scan(&text)
		open = append(open, text)
	}

	t.Errorf("stuck %s after the last fault: %s", l.limit, strings.Join(open, "; "))
}

// history reads all runs of the load's jobs.
func (l *load) history() (runs []job.Run) {
	t := l.c.t
	t.Helper()
	db, err := crontab.Open(l.c.server.DSN(l.c.schema), crontab.MigrateTimeouts, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	reads := &read.DB{DB: db}
	for _, j := range l.jobs {
		rows, err := reads.Runs(context.Background(), read.RunFilter{JobID: j.ID, Limit: 100_000})
		if err != nil {
			t.Fatal(err)
		}

		for _, row := range rows {
			if row.State == job.Ended {
				runs = append(runs, row.Run)
			}
		}
	}

	return runs
}

func words(counts map[job.Outcome]int64) string {
	var parts []string
	for o := job.Succeeded; o <= job.Superseded; o++ {
		if n := counts[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	return strings.Join(parts, " ")
}
