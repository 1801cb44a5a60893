//go:build faults

package faults

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"go-crontab/internal/privatedb"
	"go-crontab/job"
	"go-crontab/test/faultproxy"
	"go-crontab/test/ledger"
)

// sessions returns the sessions of all nodes, in the order of the nodes.
func (c *cluster) sessions() (all []uuid.UUID) {
	c.looked = time.Now()
	for _, m := range c.nodes {
		all = append(all, m.session())
	}
	return all
}

// same fails the scenario if a node has another session than at the last look, or one of its runs
// is lost. If the machine itself may have caused that, the scenario is invalid.
func (c *cluster) same(before []uuid.UUID, during string) {
	c.t.Helper()
	from := c.looked.Add(-c.expiry / 10) // a beat that was delayed then counts
	if after := c.sessions(); !slices.Equal(before, after) {
		if late := stalled(from); late > c.expiry/5 {
			c.r.invalidate("%s: a node was fenced, and the machine itself had stalled for %s", during, short(late))
			return
		}
		c.t.Errorf("%s: sessions %v, want %v as before", during, after, before)
		return
	}

	for _, id := range before {
		if n := c.count(`
			SELECT COUNT(*)
			FROM run r
			JOIN life l ON l.id = r.session
			WHERE l.session = ? AND r.outcome = 'lost'`, id[:]); n > 0 {
			c.t.Errorf("%s: %d runs of session %s are lost, and it lives", during, n, id)
		}
	}
}

// together waits until all nodes are ready and returns the time that it took.
func (c *cluster) together(limit time.Duration) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for _, m := range c.nodes {
		m.ready(limit)
	}
	return since(begun)
}

// fates lists the possible faults of a COMMIT.
var fates = map[string]func() faultproxy.Action{
	"request lost":  faultproxy.CutBefore,
	"reply lost":    faultproxy.CutAfter,
	"reply late":    func() faultproxy.Action { return faultproxy.Hold(1500 * time.Millisecond) },
	"request late":  func() faultproxy.Action { return faultproxy.HoldBefore(1200 * time.Millisecond) },
	"ghost":         func() faultproxy.Action { return faultproxy.HoldBefore(3 * time.Second) },
	"deadlock":      func() faultproxy.Action { return faultproxy.Error(1213, "40001", "Deadlock found") },
	"lock timeout":  func() faultproxy.Action { return faultproxy.Error(1205, "HY000", "Lock wait timeout exceeded") },
	"server closes": func() faultproxy.Action { return faultproxy.Error(1053, "08S01", "Server shutdown in progress") },
}

// injected are rules, by the step whose COMMIT they break and by the fate of that COMMIT.
type injected map[[2]string][]*faultproxy.Injected

func (in injected) add(stage, fate string, rule *faultproxy.Injected) {
	in[[2]string{stage, fate}] = append(in[[2]string{stage, fate}], rule)
}

// over ends all rules and returns the number of faults. It fails the scenario for a step without a
// fault and for a fate without one; in the long form, for every missing pair.
func (in injected) over(r *report) (fired int) {
	r.t.Helper()
	rules, least := 0, math.MaxInt
	stages, fates := map[string]int{}, map[string]int{}
	for pair, all := range in {
		n := 0
		for _, rule := range all {
			rule.Remove()
			rule.Release()
			n += rule.Fired()
		}

		fired, rules, least = fired+n, rules+len(all), min(least, n)
		stages[pair[0]] += n
		fates[pair[1]] += n
		if n == 0 && long {
			r.t.Errorf("%s at %s: none of %d faults was injected", pair[1], pair[0], len(all))
		}
	}

	var figures []string
	for _, of := range []map[string]int{stages, fates} {
		for _, name := range sorted(of) {
			figures = append(figures, fmt.Sprintf("%s %d", name, of[name]))
			if of[name] == 0 {
				r.t.Errorf("%s: no fault was injected", name)
			}
		}
	}

	r.figure("%d faults (%s), of each fate at each stage %d at least", fired, strings.Join(figures, ", "), least)
	if fired < rules/4 {
		r.t.Errorf("%d of %d faults were injected, which is too few to say anything", fired, rules)
	}

	return fired
}

// skip returns the number of COMMITs of a step that pass before one is broken.
func (c *cluster) skip(stage string, most int) int { return c.rng.IntN(few(stage, most)) }

// few reduces a number for steps with few COMMITs: few runs are released, or are idle before they
// are prepared, and waiting for more takes too long.
func few(stage string, many int) int {
	switch stage {
	case "free":
		return 2
	case "take":
		return 8
	}
	return many
}

func TestF09CommitFates(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F09",
		"each fate of a COMMIT (lost, reply lost, late, ghost, deadlock, timeout, shutdown) at claim, take, start,"+
			" finish, free; of beats; and of runs and jobs that are asked for by key")
	c := newCluster(r)
	c.start(3)
	l := c.mixed()
	rules := injected{}

	each := times(2, 34) // on each of three nodes
	for _, m := range c.nodes {
		for _, fate := range sorted(fates) {
			for _, stage := range sorted(trip) {
				// Do not break all COMMITs on a connection in a row: that would be a partition.
				rules.add(stage, fate, m.proxy.Add(faultproxy.Rule{
					Match: faultproxy.CommitOf(trip[stage]), Skip: c.skip(stage, 16), Times: each, Gap: few(stage, 24),
					Action: fates[fate](),
				}))
			}

			rules.add("beat", fate, m.proxy.Add(faultproxy.Rule{
				Match: faultproxy.SQL(`^UPDATE session SET beat`), Skip: c.rng.IntN(20), Times: times(1, each), Gap: 20,
				Action: fates[fate](),
			}))
		}
	}

	begun := time.Now()

	// A request with a key is carried out once, whatever happened to its first attempt.
	runs, id := 0, l.jobs[0].ID
	var made []int64
	for range times(1, each) {
		for _, fate := range sorted(fates) {
			for _, kind := range sorted(asked) {
				m := c.nodes[c.rng.IntN(3)]
				rule := m.proxy.Add(faultproxy.Rule{Match: faultproxy.CommitOf(asked[kind]), Action: fates[fate]()})
				for tries := 0; rule.Fired() == 0 && tries < 5; tries++ { // a rule of the trip may have fired first
					if kind == "run" {
						c.insist(m, "/api/v1/jobs/"+itoa(id)+"/run", object{})
						runs++
					} else {
						a := c.insist(m, "/api/v1/jobs",
							object{"name": fmt.Sprint("asked-", len(made)), "every": "1h", "command": "true"})

						var j struct {
							ID int64 `json:"id,string"`
						}
						if err := json.Unmarshal([]byte(a.body), &j); err != nil {
							t.Errorf("POST /api/v1/jobs: %s", a.body)
						}

						made = append(made, j.ID)
					}
				}

				rules.add(kind, fate, rule)
				rule.Remove()
			}
		}
	}

	// A cordoned node releases its runs, which otherwise happens seldom.
	end := begun.Add(time.Duration(times(30, 1200)) * time.Second)
	for ; time.Now().Before(end); time.Sleep(time.Second) {
		for _, m := range c.nodes {
			node := "/api/v1/nodes/" + m.name
			m.ask("POST", node+"/cordon", object{})
			await(t, "the end of the cordon", 30*time.Second, func() bool {
				return m.ask("POST", node+"/uncordon", object{}).code == 200
			})
		}
	}

	rules.over(r)
	c.together(30 * time.Second)
	time.Sleep(3 * time.Second)

	// A run may meet several faults of up to 3 s in a row: at its start, release, take, and next
	// start.
	l.check(c.soon() + 10*time.Second)
	r.figure("%d runs and %d jobs asked for by key", runs, len(made))
	if n := c.count("SELECT COUNT(DISTINCT request) FROM run WHERE job_id = ? AND kind = 'manual'", id); n != runs {
		t.Errorf("%d runs were asked for and %d were made", runs, n)
	}

	for _, id := range made {
		if n := c.count("SELECT COUNT(*) FROM audit WHERE kind = 'job' AND action = 'create' AND ref = ?", id); n != 1 {
			t.Errorf("job %d: %d records of its creation, want one", id, n)
		}
	}

	if n := c.count("SELECT COUNT(*) FROM job WHERE name LIKE 'asked-%'"); n != len(made) {
		t.Errorf("%d jobs were asked for and %d were made", len(made), n)
	}
}

// insist sends a POST with a new key to a node until it is answered.
func (c *cluster) insist(m *member, path string, body object) (a answer) {
	c.t.Helper()
	key := uuid.NewString()
	await(c.t, "an answer of "+path, 30*time.Second, func() bool {
		if a = m.ask("POST", path, body, "Idempotency-Key", key); a.code == 500 || a.code/100 == 4 {
			c.t.Fatalf("POST %s: %d %s", path, a.code, a.body)
		}
		return a.code/100 == 2
	})
	return a
}

func TestF10KillMySQL(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F10", "kill -9 of MySQL and restart, shortly and after longer than a lease")
	c := newServer(r, privatedb.Options{})
	c.expiry = 12 * time.Second
	c.start(3)
	l := c.mixed()
	var longest time.Duration

	outage := func(pause time.Duration, meanwhile func()) time.Duration {
		down := time.Now()
		if err := c.server.Kill(); err != nil {
			t.Fatal(err)
		}

		meanwhile()
		time.Sleep(time.Until(down.Add(pause)))
		if err := c.server.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}

		took := time.Since(down)
		longest = max(longest, took)
		return took
	}

	var back, dead, behind time.Duration
	brief, due := 0, 0 // outages too short to fence a node; due times of all outages that were started
	first := time.Now()

	for range times(3, 18) {
		time.Sleep(4 * time.Second)
		before := c.sessions()
		from := c.now()
		took := outage(time.Duration(c.rng.Int64N(int64(time.Second))), func() {})
		back = max(back, c.together(30*time.Second))
		until := c.now()
		time.Sleep(took + 3*time.Second)
		n, late := l.started(from, until, nil)
		due, behind = due+n, max(behind, late-took)

		if took < 2*c.expiry/5 {
			c.same(before, "outage of "+short(took))
			brief++
		}
	}

	r.figure("%d outages up to %s", times(3, 18), short(longest))
	r.within("ready again after", back, returned)
	r.lasted("later than the outage lasted by", behind, 3*time.Second, 3*stalled(first))
	if due == 0 {
		t.Error("nothing that was due in an outage was started")
	}

	if late := stalled(r.begun); brief == 0 && late >= c.expiry/5 {
		r.invalidate("no outage was short, as the machine itself stalled for %s", short(late))
	} else if brief == 0 {
		t.Errorf("no outage was shorter than %s, the longest was %s: that nobody is fenced was not tried", 2*c.expiry/5,
			longest)
	}

	back = 0
	for i := range times(1, 3) {
		time.Sleep(4 * time.Second)
		dies := c.sleeper(fmt.Sprint("sleeper-", i))
		outage(c.expiry+time.Duration(c.rng.Int64N(int64(3*time.Second))), func() { dead = max(dead, dies()) })
		back = max(back, c.together(60*time.Second))
	}

	r.figure("then up to %s", short(longest))
	r.within("commands dead after", dead, c.expiry)
	r.within("ready again after", back, returned)
	time.Sleep(3 * time.Second)
	l.check(longest + c.soon())
}

func TestF11StopMySQL(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F11", "SIGSTOP of MySQL, shortly and for longer than a lease")
	c := newServer(r, privatedb.Options{})
	c.start(3)
	l := c.mixed()
	time.Sleep(5 * time.Second)

	freeze := func(d time.Duration, meanwhile func()) {
		begun := time.Now()
		_ = syscall.Kill(-c.server.PID(), syscall.SIGSTOP)
		meanwhile()
		time.Sleep(time.Until(begun.Add(d)))
		_ = syscall.Kill(-c.server.PID(), syscall.SIGCONT)
	}

	before, from := c.sessions(), c.now()
	freeze(c.expiry/4, func() {})
	until := c.now()
	time.Sleep(c.expiry/4 + 3*time.Second)
	c.same(before, "a short freeze")
	n, late := l.started(from, until, nil)
	r.lasted("a short freeze: later than it lasted by", max(0, late-c.expiry/4), 3*time.Second, 3*stalled(from))
	if n == 0 {
		t.Error("nothing was due in the freeze that has been started")
	}

	dies := c.sleeper("sleeper")
	var dead time.Duration
	freeze(2*c.expiry, func() { dead = dies() })
	r.within("commands dead after", dead, c.expiry)
	r.within("ready again after", c.together(60*time.Second), returned)
	time.Sleep(3 * time.Second)
	l.check(2*c.expiry + c.soon())
}

// sleeper starts a command that outlives every outage. The returned function waits for its death
// and returns the time that it took.
func (c *cluster) sleeper(name string) (dies func() time.Duration) {
	c.t.Helper()
	token := "sleep\x00" + fmt.Sprint(1e9+c.rng.Int64N(1e9)) + fmt.Sprint(time.Now().UnixNano()%1e6)
	c.once(name, object{"command": "exec " + strings.ReplaceAll(token, "\x00", " ")})
	c.t.Cleanup(func() { killAll(having(c.t, "cmdline", token)) })
	lives := func() bool { return len(having(c.t, "cmdline", token)) > 0 }
	await(c.t, name+" lives", 20*time.Second, lives)
	return func() time.Duration {
		return await(c.t, name+" dead", c.expiry, func() bool { return !lives() })
	}
}

func TestF12Partitions(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F12",
		"partition of one node from MySQL, towards it, from it, and both, shortly and for longer than a lease")
	c := newServer(r, privatedb.Options{})
	c.start(3)
	l := c.mixed()
	time.Sleep(4 * time.Second)

	var dead, back time.Duration
	for range times(1, 4) {
		for _, way := range []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient, faultproxy.BothWays} {
			before := c.sessions()
			m := c.nodes[c.rng.IntN(3)]
			m.proxy.Blackhole(way)
			time.Sleep(c.expiry / 6)
			m.proxy.Heal()
			time.Sleep(3 * time.Second)
			c.same(before, "a short partition")

			m = c.busy()
			session := m.session()
			m.proxy.Blackhole(way)
			cut := time.Now()
			await(t, "its commands dead", c.expiry, func() bool { return len(c.commandsOf(session)) == 0 })
			dead = max(dead, since(cut))
			c.buried(session, 2*c.expiry+5*time.Second)
			time.Sleep(time.Until(cut.Add(2 * c.expiry)))
			m.proxy.Heal()
			back = max(back, await(t, "a new session", 30*time.Second,
				func() bool { s := m.session(); return !isNil(s) && s != session }))
		}
	}

	time.Sleep(3 * time.Second)
	l.check(c.soon())
	r.within("commands dead after", dead, c.expiry)
	r.within("rejoined after", back, returned)
}

func TestF13SlowLink(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F13",
		"20 ms, 100 ms and 1 s more for each round trip of all nodes to MySQL, at the default expiry of 20 s")
	c := newCluster(r)
	c.expiry = 20 * time.Second
	c.start(3)
	l := c.mixed()
	time.Sleep(4 * time.Second)
	before := c.sessions()

	// Counts runs due after each node has noticed the slow link, which takes a beat.
	slow := func(trip, late time.Duration) {
		t.Helper()
		for _, m := range c.nodes {
			m.proxy.Delay(faultproxy.BothWays, trip/2)
		}

		noticed := c.now().Add(c.expiry/10 + 3*trip)
		time.Sleep(time.Duration(times(15, 120))*time.Second + late + 5*trip)
		until := c.now().Add(-late)
		c.same(before, "a slow link")
		starts, worst := l.started(noticed, until, nil)
		r.figure("with %s %d starts", short(trip), starts)
		r.within(fmt.Sprintf("with %s late at most", short(trip)), worst, late)
		if least := int(until.Sub(noticed).Seconds()); starts < least {
			t.Errorf("with %s: %d starts, want %d at least", trip, starts, least)
		}
	}

	slow(20*time.Millisecond, time.Second)

	// A start takes six to eight round trips, and is retried if it finds a job locked.
	slow(100*time.Millisecond, 6*time.Second)
	l.check(0)
	l.none(job.Lost, job.Missed, job.Killed)

	// Three nodes cannot keep up with 8 due times a second then. A due time reached after more than
	// a minute is missed.
	slow(time.Second, job.MisfireAfter+5*time.Second)
	for _, m := range c.nodes {
		m.proxy.Heal()
	}

	time.Sleep(5 * time.Second)

	// With 1 s they fall behind, and miss due times older than a minute: the line says how many.
	l.missed = [2]time.Duration{}
	l.check(0)
}

// A dueTime is one due time of a job, by their names in the ledger.
type dueTime struct {
	job string
	at  job.Micros
}

// held returns the due times that a session has claimed.
func (c *cluster) held(session uuid.UUID) map[dueTime]bool {
	c.t.Helper()
	rows, err := c.db.Query(`
		SELECT j.name, r.due
		FROM run r
		JOIN job j ON j.id = r.job_id
		JOIN life l ON l.id = r.owner
		WHERE l.session = ?`, session[:])
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()

	found := map[dueTime]bool{}
	for rows.Next() {
		var d dueTime
		if err := rows.Scan(&d.job, &d.at); err != nil {
			c.t.Fatal(err)
		}
		found[d] = true
	}

	return found
}

// started counts the started due times between two instants, except for some, and returns the
// lateness of the latest.
func (l *load) started(from, until time.Time, but map[dueTime]bool) (n int, worst time.Duration) {
	l.c.t.Helper()
	entries, err := l.book.Entries()
	if err != nil {
		l.c.t.Fatal(err)
	}

	for _, e := range entries {
		if e.Kind == ledger.Start && e.Attempt == 1 && e.Due >= job.MicrosOf(from) && e.Due < job.MicrosOf(until) &&
			!but[dueTime{e.Job, e.Due}] {
			n, worst = n+1, max(worst, e.At.Sub(e.Due))
		}
	}

	return n, worst
}

func TestF16Resets(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F16", "connections reset after a random number of bytes, several times a second, on all nodes")
	c := newCluster(r)
	c.start(3)
	l := c.mixed()
	time.Sleep(3 * time.Second)

	n := 0
	for end := time.Now().Add(time.Duration(times(20, 120)) * time.Second); time.Now().Before(end); {
		m := c.nodes[c.rng.IntN(3)]
		way := []faultproxy.Direction{faultproxy.ToServer, faultproxy.ToClient, faultproxy.BothWays}[c.rng.IntN(3)]
		m.proxy.ResetAfter(way, c.rng.Int64N(4000))
		time.Sleep(time.Duration(c.rng.IntN(400)) * time.Millisecond)
		m.proxy.Heal()
		n++
	}

	cut := 0
	for _, m := range c.nodes {
		cut += m.proxy.Counts().Resets
	}

	c.together(30 * time.Second)
	time.Sleep(3 * time.Second)
	l.check(c.soon())
	r.figure("%d times, %d connections", n, cut)
	if cut < n {
		t.Errorf("%d connections were reset, want %d at least", cut, n)
	}
}

// persist repeats a statement while it is a deadlock's victim.
func (c *cluster) persist(query string, args ...any) (result sql.Result, err error) {
	for range 20 {
		result, err = c.db.Exec(query, args...)
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != 1213 {
			break
		}
	}
	return result, err
}

func TestF21Orphans(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F21", "runs planted whose owner has no session, prepared and executing ones")
	c := newCluster(r)
	c.start(2)
	l := c.mixed()
	time.Sleep(4 * time.Second)

	planted, freed := 0, time.Duration(0)
	for range times(4, 30) {
		stranger := uuid.New()
		result, err := c.persist("INSERT INTO life (session, node, started) VALUES (?, 'stranger', 1)", stranger[:])
		if err != nil {
			t.Fatal(err)
		}
		number, err := result.LastInsertId()
		if err != nil {
			t.Fatal(err)
		}

		for i, state := range []job.State{job.Prepared, job.Executing} {
			result, err := c.persist(`
				UPDATE run
				SET owner = ?, session = ?, claim = claim + 1, state = ?,
					started = IF(? = 'executing', due, 0), spawn_by = started
				WHERE state = 'prepared' AND due > ?
					AND (? = 'prepared' OR job_id IN (SELECT id FROM job WHERE name NOT LIKE 'rerun%'))
				ORDER BY due
				LIMIT 3`,
				// Not a run that would be executed again: it is not due yet.
				number, number, state, state, c.now().Add(time.Second).UnixMicro(), state)
			if err != nil {
				t.Fatal(err)
			}

			n, _ := result.RowsAffected()
			planted += int(n)
			if n == 0 && i == 0 {
				time.Sleep(time.Second)
			}
		}

		freed = max(freed, await(t, "orphans freed", 30*time.Second, func() bool {
			return c.count("SELECT COUNT(*) FROM run WHERE owner = ?", number) == 0
		}))
	}

	l.check(0)
	r.figure("%d planted", planted)
	if planted == 0 {
		t.Error("nothing could be planted")
	}

	r.within("freed after", freed, c.expiry+5*time.Second)
}

func TestF22Deadlocks(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F22", "8 outsiders that lock rows of jobs and runs in the reverse order")
	c := newServer(r, privatedb.Options{})
	c.start(3)
	l := c.mixed()
	time.Sleep(3 * time.Second)
	before := c.sessions()
	c.db.SetMaxOpenConns(10)
	var victims, rounds atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(times(20, 300))*time.Second)
	defer cancel()

	var outsiders sync.WaitGroup
	for range 8 {
		outsiders.Go(func() {
			for ctx.Err() == nil {
				tx, err := c.db.BeginTx(context.Background(), nil)
				if err != nil {
					continue
				}
				rounds.Add(1)
				_, err = tx.Exec("UPDATE run SET wish = wish ORDER BY id DESC LIMIT 20")
				if err == nil {
					_, err = tx.Exec("UPDATE job SET changes = changes + 1 ORDER BY id DESC")
				}

				var refused *mysql.MySQLError
				if errors.As(err, &refused) && refused.Number == 1213 {
					victims.Add(1)
				}
				_ = tx.Rollback()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}

	outsiders.Wait()
	c.same(before, "a storm of deadlocks")
	retries := c.metric("gocrontab_mysql_transaction_retries_total")
	time.Sleep(3 * time.Second)
	l.check(c.soon())
	l.none(job.Lost, job.Missed, job.Killed)

	// Usually a node is the victim, as it has changed fewer rows.
	deadlocks := c.count("SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'")
	r.figure("%d transactions of outsiders, %d deadlocks, %d of them at the outsiders' cost,"+
		" %.0f transactions of nodes begun again", rounds.Load(), deadlocks, victims.Load(), retries)
	if deadlocks <= 0 || retries == 0 {
		t.Error("nothing was tried: want deadlocks, and transactions of nodes that were begun again")
	}
}

// metric adds up a metric of all nodes.
func (c *cluster) metric(name string) (sum float64) {
	c.t.Helper()
	found := false
	for _, m := range c.nodes {
		for line := range strings.Lines(m.ask("GET", "/metrics", nil).body) {
			fields := strings.Fields(line)
			if len(fields) >= 2 && (fields[0] == name || strings.HasPrefix(fields[0], name+"{")) {
				value, err := strconv.ParseFloat(fields[1], 64)
				if err != nil {
					c.t.Errorf("metric %q: %v", line, err)
				}
				sum, found = sum+value, true
			}
		}
	}

	if !found {
		c.t.Errorf("no node has the metric %s", name)
	}

	return sum
}

func TestF23LongTransaction(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F23", "an outsider's transaction that keeps all rows of jobs locked")
	c := newCluster(r)
	c.start(3)
	l := c.mixed()
	time.Sleep(4 * time.Second)
	before := c.sessions()
	tx, err := c.db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := tx.Exec("SELECT id FROM job FOR UPDATE"); err != nil {
		t.Fatal(err)
	}

	held := time.Duration(times(10, 30)) * time.Second
	failed := c.metric("gocrontab_mysql_statement_errors_total")
	time.Sleep(held)
	failed = (c.metric("gocrontab_mysql_statement_errors_total") - failed) / held.Seconds()
	_ = tx.Rollback()
	free := c.now()
	c.same(before, "a long transaction")
	time.Sleep(10 * time.Second)
	n, late := l.started(free.Add(5*time.Second), c.now().Add(-onTime), nil)
	r.figure("%.1f statements a second failed meanwhile", failed)

	if failed > 10 {
		t.Errorf("%.1f statements a second failed on three nodes, want 10 at most", failed)
	}

	r.lasted("5 s later late at most", late, onTime, 3*stalled(free))
	if n < 10 {
		t.Errorf("%d due times were started 5 s later, want 10 at least", n)
	}

	l.check(held + 5*time.Second)
	l.none(job.Lost, job.Missed, job.Killed)
}

func TestF55ReadView(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F55",
		"an outsider's read view, open while 48 due times a second come and go, as of a long backup")
	c := newServer(r, privatedb.Options{})
	c.start(3)

	l := c.mixed()
	for i := range 40 {
		l.add(fmt.Sprint("brief-", i), time.Second, object{"command": l.book.Command(0, 0), "overlap": "allow"})
	}

	time.Sleep(4 * time.Second)
	before := c.sessions()

	view, err := c.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()

	for _, query := range []string{"START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT COUNT(*) FROM run"} {
		if _, err := view.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}

	opened := c.now()
	time.Sleep(time.Duration(times(30, 3600)) * time.Second)
	const compared = 10 * time.Second
	atFirst, first := l.started(opened, opened.Add(compared), nil)
	until := c.now().Add(-onTime)
	inTheEnd, last := l.started(until.Add(-compared), until, nil)
	r.figure("%d versions of rows kept", c.count(`
		SELECT COUNT
		FROM information_schema.INNODB_METRICS
		WHERE NAME = 'trx_rseg_history_len'`))

	r.figure("at first late at most %s", short(first))
	r.lasted("in the end", last, onTime, 3*stalled(until.Add(-compared)))
	if most := 40 * int(compared.Seconds()); atFirst < most || inTheEnd < most {
		t.Errorf("%d due times were started at first and %d in the end, want %d at least", atFirst, inTheEnd, most)
	}
	if _, err := view.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Errorf("the read view did not stay open: %v", err)
	}
	l.check(c.soon())
	l.none(job.Missed)
	if !long { // in an hour a busy machine may stall for longer than a lease of these six seconds lasts
		c.same(before, "a read view")
		l.none(job.Lost, job.Killed)
	}
}

func TestF24Connections(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F24", "max_connections reached, and a flood of requests to the API")
	c := newServer(r, privatedb.Options{})
	c.start(2)
	l := c.mixed()
	time.Sleep(4 * time.Second)
	before := c.sessions()
	c.db.SetMaxOpenConns(1) // a superuser has one extra connection
	c.exec("SET GLOBAL max_connections = 10")
	var answers [600]atomic.Int64
	var unsaid atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(times(12, 60))*time.Second)
	defer cancel()

	var flood sync.WaitGroup
	for i := range 16 {
		m := c.nodes[i%2]
		flood.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a := m.ask("POST", "/api/v1/jobs/"+itoa(l.jobs[n%4].ID)+"/resume", object{})
				if a.code < len(answers) {
					answers[a.code].Add(1)
				}
				if a.code == 503 && a.header.Get("Retry-After") == "" {
					unsaid.Add(1)
				}
				if a.code == 500 {
					t.Errorf("500 %s", a.body)
				}

				time.Sleep(20 * time.Millisecond)
			}
		})
	}

	flood.Wait()
	c.same(before, "no connections left")
	c.exec("SET GLOBAL max_connections = 500")
	if n := unsaid.Load(); n > 0 {
		t.Errorf("%d answers 503 do not say when to try again", n)
	}
	if answers[503].Load() == 0 {
		t.Error("no answer was 503: there were connections enough")
	}

	c.together(30 * time.Second)
	time.Sleep(3 * time.Second)
	l.check(12*time.Second + c.soon())
	l.none(job.Lost, job.Missed, job.Killed)
	r.figure("answers: %d × 200, %d × 503", answers[200].Load(), answers[503].Load())

	for code := range answers {
		if n := answers[code].Load(); n > 0 && code != 200 && code != 503 {
			t.Errorf("%d answers %d, want 200 and 503 only", n, code)
		}
	}
}

func TestF44AllReturn(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F44", "five nodes lose MySQL for longer than a lease and return together")
	c := newServer(r, privatedb.Options{})
	c.start(5)
	l := c.mixed()
	time.Sleep(4 * time.Second)
	c.busy()

	for _, m := range c.nodes {
		m.proxy.Blackhole(faultproxy.BothWays)
	}

	away := time.Duration(times(15, 300)) * time.Second
	time.Sleep(away)
	c.light(80)

	for _, m := range c.nodes {
		m.proxy.CutAll()
		m.proxy.Heal()
	}

	back := c.together(60 * time.Second)
	time.Sleep(4 * time.Second)
	l.check(away + c.soon())
	r.within("rejoined after", back, 8*time.Second)
	var name string
	var waits, millis, longest int

	// Since the server began.
	for status, value := range map[string]*int{"waits": &waits, "time": &millis, "time_max": &longest} {
		if err := c.db.QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_"+status+"'").Scan(&name, value); err != nil {
			t.Fatal(err)
		}
	}

	r.figure("%d waits for row locks of %d ms on average", waits, millis/max(1, waits))
	r.lasted("the longest", time.Duration(longest)*time.Millisecond, 2*time.Second, 3*stalled(r.begun))
	if n := c.count("SELECT COUNT(*) FROM session"); n != 5 {
		t.Errorf("%d sessions, want 5", n)
	}
}

func TestF47Spool(t *testing.T) {
	t.Parallel()

	r := scenario(t, "F47",
		"the only node loses MySQL, its runs end, it is stopped; a next life begins within the expiry")
	c := newCluster(r)
	c.expiry = 20 * time.Second
	c.start(1)

	l := c.load()
	for _, name := range []string{"a", "b", "c", "d"} {
		l.add(name, 4*time.Second, object{"command": l.book.Command(1500*time.Millisecond, 0), "overlap": "allow"})
	}

	m := c.nodes[0]
	executing := func() int { return c.count("SELECT COUNT(*) FROM run WHERE state = 'executing'") }

	// In the ledger as well: others see a start before its node learns of it, and a node that never
	// does spawns nothing.
	begun := func() (n int) {
		entries, err := l.book.Entries()
		if err != nil {
			t.Fatal(err)
		}

		for _, e := range entries {
			switch e.Kind {
			case ledger.Start:
				n++
			case ledger.End:
				n--
			}
		}

		return n
	}

	await(t, "all run", 20*time.Second, func() bool { return executing() == 4 && begun() == 4 })
	m.proxy.Blackhole(faultproxy.BothWays)
	time.Sleep(2500 * time.Millisecond)
	code, took := m.leave(20 * time.Second)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if !strings.Contains(m.logged(), "spooled results of runs") {
		t.Error("the node says nothing of ends that it spooled")
	}

	m.proxy.CutAll()
	m.proxy.Heal()
	m.start()
	m.ready(60 * time.Second)
	time.Sleep(3 * time.Second)
	l.limit = c.expiry + 15*time.Second
	l.check(0)
	r.figure("drained in %s", short(took))

	if n := l.counts[job.Lost]; n > 0 {
		t.Errorf("%d outcomes were lost, want none: they were spooled", n)
	}
}
