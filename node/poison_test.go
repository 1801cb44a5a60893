package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"go-crontab/internal/alert"
	"go-crontab/internal/audit"
	"go-crontab/internal/auth"
	"go-crontab/internal/secret"
	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/schedule/edit"
	"go-crontab/session"
	"go-crontab/sql"
	"go-crontab/sql/read"
	"go-crontab/sql/trip"

	"github.com/google/uuid"
)

// Environment variables of TestPoison.
const (
	poisonSeed   = "GOCRONTAB_POISON_SEED"   // seed of its first round; each round adds one
	poisonRounds = "GOCRONTAB_POISON_ROUNDS" // number of rounds
)

// TestPoison writes values that no API would accept into random columns of random rows of two
// running nodes: any bytes, NULL, extreme numbers, nearly correct definitions. The nodes survive
// and all other jobs continue. A job whose definition cannot be decoded shows that. And no list
// fails because of one row. A failure reports its seed and the written values.
func TestPoison(t *testing.T) {
	t.Parallel()
	long(t)
	rounds, first := 6, uint64(1) // the same each time; make poison continues with other seeds
	for name, to := range map[string]func(uint64){poisonSeed: func(n uint64) { first = n },
		poisonRounds: func(n uint64) { rounds = int(n) }} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s=%q: want a number", name, text)
			}
			to(n)
		}
	}

	c := newLawlessCluster(t)
	said := &heard{}
	var told atomic.Int64 // alert messages that arrived
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/good" {
			told.Add(1)
		}
	}))

	t.Cleanup(hook.Close)
	keys := keyRing(t, secret.NewKey())
	quiet := func(cfg *node.Config) {
		cfg.Expiry = session.DefaultExpiry // so that a session is only lost because of the poison
		cfg.Log = slog.New(slog.NewTextHandler(said, nil)).With("node", cfg.Name)
		cfg.LookAhead = time.Second // earlier claims continue for that long, whatever is written
		cfg.SecretKeys, cfg.HTTPAllow = keys, []string{"127.0.0.0/8"}
	}

	one := c.start("one", quiet)
	two := c.start("two", quiet)
	p := &poisoner{
		t: t, c: c, one: one, two: two, said: said, keys: keys, hook: hook.URL, told: &told, columns: c.columns(),
	}
	p.join = func(name string) { c.start(name, quiet).drain() }
	p.tells("good", job.AlertRule{
		On: []job.AlertEvent{job.AlertFailed}, Apps: []string{job.DefaultApp}, Repeat: job.Duration(time.Second),
	})
	p.good = []job.Job{
		one.create(job.Spec{Name: "good", Every: job.Duration(200 * time.Millisecond), Command: "true"}),
		one.create(job.Spec{
			Name: "queues", Every: job.Duration(500 * time.Millisecond), Command: "sleep 0.6",
			Overlap: job.OverlapQueue, Queue: 2,
		}),
		one.create(job.Spec{Name: "fails", Every: job.Duration(500 * time.Millisecond), Command: "false"}),
		one.create(job.Spec{
			Name: "retries", Every: job.Duration(time.Second), Command: "[ $GOCRONTAB_ATTEMPT = 2 ]",
			Retry: job.Retry{Attempts: 2, Backoff: job.Duration(100 * time.Millisecond)},
		}),
	}

	sessions := one.Status().Session + two.Status().Session
	for n := range rounds {
		p.round(first + uint64(n))
		if t.Failed() {
			t.Fatalf("%s=%d %s=1 repeats it; what the nodes said last:\n%s", poisonSeed, first+uint64(n), poisonRounds,
				said.last())
		}
	}

	time.Sleep(session.DefaultExpiry) // the time that a lease without beats would last
	if now := one.Status().Session + two.Status().Session; now != sessions {
		t.Errorf("a node lost its session: got %s, want %s", now, sessions)
	}

	t.Logf("%d rounds from seed %d, %d values of %d of %d columns of %d tables", rounds, first, p.written,
		len(p.touched), len(p.columns), len(poisonedRows))
	var left []string
	for _, col := range p.columns {
		if name := col.table + "." + col.name; !p.touched[name] {
			left = append(left, name)
		}
	}

	if rounds*poisonColumns >= len(p.columns) && 10*len(left) > len(p.columns) {
		t.Errorf("%d of %d columns took no value: %s", len(left), len(p.columns), strings.Join(left, ", "))
	}
}

// poisoner writes into a cluster.
type poisoner struct {
	t       *testing.T
	c       *cluster
	one     *member
	two     *member
	join    func(name string) // and leaves again
	said    *heard
	keys    *secret.Ring
	hook    string // URL of the receiver of alerts
	told    *atomic.Int64
	columns []column
	good    []job.Job
	rng     *rand.Rand
	written int
	touched map[string]bool
}

// column is a column of the schema.
type column struct {
	table, name, kind string
	size              int64 // of texts, in characters or bytes
	null, unsigned    bool
}

// columns lists all columns except the AUTO_INCREMENT ones: after the highest number no row of any
// job could be inserted, and no program can cure that. A table for which poisonedRows does not say
// which rows to poison is an error.
func (c *cluster) columns() (columns []column) {
	c.t.Helper()
	rows, err := c.db.Raw().Query(`
		SELECT c.table_name, c.column_name, c.data_type, COALESCE(c.character_maximum_length, 0),
			c.is_nullable = 'YES', c.column_type LIKE '%unsigned%',
			c.extra LIKE '%GENERATED%' OR c.extra LIKE '%auto_increment%'
		FROM information_schema.columns c
		JOIN information_schema.tables t ON t.table_schema = c.table_schema
			AND t.table_name = c.table_name
		WHERE c.table_schema = DATABASE()
			AND t.table_type = 'BASE TABLE'
		ORDER BY 1, c.ordinal_position`)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var col column
		var own bool
		if err := rows.Scan(&col.table, &col.name, &col.kind, &col.size, &col.null, &col.unsigned, &own); err != nil {
			c.t.Fatal(err)
		}
		if notPoisoned[col.table] {
			continue
		}
		if poisonedRows[col.table] == "" {
			c.t.Fatalf("table %s is neither poisoned nor among those that are not", col.table)
		}

		if !own && !meansElse[col.table+"."+col.name] {
			columns = append(columns, col)
		}
	}

	return columns
}

// notPoisoned are the tables of migrations. Programs read them before they join, and refuse to
// continue with other values.
var notPoisoned = map[string]bool{"schema_version": true, "schema_lock": true, "schema_step": true}

const ofBadJobs = "job_id IN (SELECT id FROM job WHERE " + ofBadApps + ")"
const ofBadApps = "app_id IN (SELECT id FROM app WHERE name IN ('bad', 'bad-held'))"

// poisonedRows selects the rows of a table to poison: rows of the poisoned jobs, or rows without a
// job; or all rows, where rows of all jobs and nodes must tolerate it.
var poisonedRows = map[string]string{
	"app":         "name = 'bad'",
	"job":         ofBadApps,
	"job_pause":   ofBadJobs,
	"job_version": ofBadJobs,
	"run":         ofBadJobs,
	"ending":      "1 = 1",
	"life":        "node = 'bad'",
	"request":     ofBadJobs,
	"job_ref":     ofBadJobs,
	"job_term":    ofBadJobs,
	"job_part":    ofBadJobs,
	"notable":     ofBadJobs,
	"backfill":    ofBadJobs,
	"output":      "1 = 1",
	"output_part": "1 = 1",
	"grp":         "name = 'bad'",
	"calendar":    "name = 'bad'",
	"node":        "name = 'bad'",
	"session":     "1 = 1",
	"stop":        "name IN ('bad', 'bad-held')",
	"chunk":       "1 = 1",
	"audit":       "1 = 1",
	"audit_chain": "1 = 1",
	"secret":      "name = 'bad'",
	// The other settings determine whether the database is an older one, the start of the due
	// times, and values on which nodes must agree.
	"setting":       "name IN ('bad', 'buckets', 'zones')",
	"api_token":     "1 = 1",
	"login":         "1 = 1",
	"locks":         "1 = 1",
	"folder":        "name = 'bad'",
	"folder_node":   "node = 'bad'",
	"node_note":     "1 = 1",
	"figure":        "1 = 1",
	"retention":     "1 = 1",
	"app_limit":     "app = 'bad'",
	"app_start":     "1 = 1",
	"app_output":    "1 = 1",
	"arrival":       "1 = 1",
	"chore":         "1 = 1",
	"alert_channel": "name = 'bad'",
	"alert_rule":    "name = 'bad'",
	"alert_silence": "rule = 'bad'",
	"alert":         "rule = 'bad'",
	"delivery":      "channel = 'bad' OR kind = 'ping'",
	"alert_streak":  "1 = 1",
	"alert_work":    "1 = 1",
}

// poisonedRowsOf does the same for single columns.
var poisonedRowsOf = map[string]string{
	// A node with the name of a cordoned node rightly takes nothing.
	"session.node": "node NOT IN ('one', 'two')",
}

// meansElse are the columns that are not poisoned, because a different value there rightly means
// something different.
var meansElse = map[string]bool{
	"locks.id": true, "locks.name": true, // rows that must exist, see TestMissingLockRow
	"setting.name": true, "alert_work.id": true, "chore.name": true, // the same
	"job.app_id": true, "app.name": true, // these hide the row from the test
	"stop.kind": true, "stop.name": true, "stop.app_id": true, // these stop everything, or the jobs of others
	"retention.app": true, // a different app changes the retention of others
	"app_limit.app": true, // a different app limits others
	"session.id":    true, // this fences a node
}

// round makes some jobs, poisons them, and checks everything around them.
func (p *poisoner) round(seed uint64) {
	t := p.t
	p.rng = rand.New(rand.NewPCG(seed, 5))
	if p.touched == nil {
		p.touched = map[string]bool{}
	}

	p.victims(seed)
	time.Sleep(time.Duration(500+p.rng.IntN(700)) * time.Millisecond)
	before := p.progress()
	var did []string
	defer func() {
		if t.Failed() {
			t.Logf("seed %d wrote\n%s", seed, strings.Join(did, "\n"))
		}
	}()

	for _, col := range p.draw(seed) {
		for range 8 { // the schema may refuse values
			if what := p.poison(col); what != "" {
				did = append(did, what)
				break
			}
		}
		time.Sleep(time.Duration(p.rng.IntN(40)) * time.Millisecond)
	}

	told := p.told.Load()
	begun, lines := time.Now(), p.said.count()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("seed %d: %s", seed, fmt.Sprintf(format, args...))
	}

	for end := time.Now().Add(40 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now := p.progress()
		on := true
		for i := range now {
			on = on && now[i] >= before[i]+8
		}

		if on {
			break
		}
		if time.Now().After(end) {
			fail("of the good jobs so many runs ended: %v, before %v, after 40s %v",
				[]string{"good", "queues", "fails", "retries"}, before, now)
			break
		}
	}

	for end := time.Now().Add(60 * time.Second); p.told.Load() <= told; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			fail("nobody is told any more of what fails")
			break
		}
	}

	time.Sleep(time.Second)
	if n := p.said.count() - lines; n > 400*int(time.Since(begun)/time.Second+1) {
		fail("the nodes wrote %d lines in %s", n, time.Since(begun).Round(time.Second))
	}
	if bad := p.said.find("panic", "runtime error"); bad != "" {
		fail("a node said: %s", bad)
	}

	for _, bad := range p.unsaid() {
		fail("%s", bad)
	}

	for what, err := range p.lists() {
		if err != nil {
			fail("%s cannot be listed: %v", what, err)
		}
	}

	if seed%8 == 0 { // a joining node must tolerate all this
		p.join(fmt.Sprint("late ", seed))
	}

	// Remove the poison. Its effects on the nodes would show in the next rounds.
	for _, table := range []string{"run", "job_pause", "job_ref", "job_term", "job_part", "job_version", "notable",
		"backfill", "request", "job", "grp", "calendar", "node", "life", "stop", "secret", "api_token", "login",
		"folder", "folder_node", "node_note", "figure", "alert_channel", "alert_rule", "alert_silence", "delivery", "alert_streak"} {
		p.must("DELETE FROM " + table + " WHERE " + poisonedRows[table])
	}

	p.must("DELETE FROM retention WHERE app <> ''")
	p.must("UPDATE retention SET spec = '{}'")
	p.living()
}

// living restores the rows of the two nodes and removes all others.
func (p *poisoner) living() {
	p.t.Helper()
	var ids []any
	for _, m := range []*member{p.one, p.two} {
		id := uuid.MustParse(m.Status().Session)
		ids = append(ids, id[:])
		p.must(`
			UPDATE session
			SET node = ?, address = '', pid = 0, version = '', labels = '{}', handlers = '[]', slots = 100,
				zones = ?, zones_from = ''
			WHERE id = ?`, m.Status().Node, job.ZoneData(), id[:])
	}

	p.must("DELETE FROM session WHERE id NOT IN (?, ?)", ids...)
}

// must runs a statement, again if it collides with the nodes.
func (p *poisoner) must(query string, args ...any) {
	p.t.Helper()
	for try := 1; ; try++ {
		_, err := p.c.db.Raw().Exec(query, args...)
		if err == nil {
			return
		}
		if try == 20 {
			p.t.Fatalf("%s: %v", query, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tells makes a rule that alerts through a channel with the same name.
func (p *poisoner) tells(name string, rule job.AlertRule) {
	p.t.Helper()
	store := &alert.Store{DB: p.c.db.DB}
	for try := 1; ; try++ {
		_, _, err := store.PutChannel(p.t.Context(), job.AlertChannel{
			Name: name, Type: job.ChannelWebhook, URL: p.hook + "/" + name, Wait: job.Duration(time.Second), Rate: 600,
		})
		if err == nil {
			rule.Name, rule.Channels = name, []string{name}
			_, _, err = store.PutRule(p.t.Context(), rule)
		}

		if err == nil {
			return
		}
		if try == 20 {
			p.t.Fatalf("rule %s: %v", name, err)
		}

		time.Sleep(100 * time.Millisecond)
	}
}

// victims makes jobs of every kind, and the objects to which they refer.
func (p *poisoner) victims(seed uint64) {
	t := p.t
	t.Helper()
	ctx := t.Context()

	// A machine without time for MySQL is no failure of this test.
	ask := func(what string, f func(e *edit.Editor) error) {
		t.Helper()
		var err error
		for range 20 {
			if e := p.one.Editor(); e != nil {
				if err = f(e); err == nil {
					return
				}
			}
			time.Sleep(250 * time.Millisecond)
		}

		t.Fatalf("seed %d: %s: %v", seed, what, err)
	}

	ask("group", func(e *edit.Editor) error {
		_, err := e.PutGroup(ctx, job.GroupSpec{Name: "bad", Slots: 1})
		return err
	})
	ask("calendar", func(e *edit.Editor) error {
		_, err := e.PutCalendar(ctx, job.CalendarSpec{Name: "bad", Exclude: []job.CalendarDay{{Date: "2099-01-01"}}}, 0)
		return err
	})

	ask("secret", func(*edit.Editor) error {
		_, err := (&secret.Store{DB: p.c.db.DB, Keys: p.keys}).Put(ctx, secret.New{
			AppSecret: job.AppSecret{Name: "bad"}, Value: "not to be known",
		})
		return err
	})

	p.tells("bad", job.AlertRule{
		On: []job.AlertEvent{
			job.AlertFailed, job.AlertLost, job.AlertFailures, job.AlertLateStart, job.AlertLateFinish,
			job.AlertNeverRan, job.AlertBacklog, job.AlertNodeGone, job.AlertClockSkew, job.AlertRecovered,
		},
		Apps: []string{"bad", "bad-held"}, Repeat: job.Duration(time.Second), LateStart: job.Duration(time.Second),
		LateFinish: job.Duration(time.Second), NeverRan: job.Duration(time.Minute),
		Failures: &job.AlertFailing{Count: 2, Within: job.Duration(time.Minute)},
	})

	every := func(name string, d time.Duration, mod func(*job.Spec)) job.Job {
		spec := job.Spec{App: "bad", Name: fmt.Sprint(name, " ", seed), Every: job.Duration(d), Command: "sleep 0.1"}
		if mod != nil {
			mod(&spec)
		}

		var j job.Job
		ask(name, func(e *edit.Editor) (err error) {
			// the first reply was lost
			if _, err = e.Create(ctx, spec, false); err != nil && !errors.Is(err, sql.ErrExists) {
				return err
			}
			row, err := p.c.db.JobNamed(ctx, spec.App, spec.Name)
			j = row.Job
			return err
		})

		return j
	}

	now := p.one.Now()
	plain := every("plain", 200*time.Millisecond, func(s *job.Spec) { s.Start = ptr(now.Add(-5 * time.Second)) })
	every("queue", 300*time.Millisecond, func(s *job.Spec) { s.Overlap, s.Command = job.OverlapQueue, "sleep 0.5" })
	every("replace", 300*time.Millisecond, func(s *job.Spec) {
		s.Overlap, s.Command = job.OverlapReplace, "echo a; sleep 0.5"
	})
	every("group", 300*time.Millisecond, func(s *job.Spec) { s.Group = "bad" })
	every("group too", 300*time.Millisecond, func(s *job.Spec) { s.Group = "bad" })
	every("retry", 300*time.Millisecond, func(s *job.Spec) {
		s.Command, s.Retry = "false", job.Retry{Attempts: 3, Backoff: job.Duration(100 * time.Millisecond)}
	})
	every("calendar", 300*time.Millisecond, func(s *job.Spec) { s.Calendars = []string{"bad"} })
	every("nowhere", 300*time.Millisecond, func(s *job.Spec) { s.Selector = "nowhere" })
	every("speaks", time.Second, func(s *job.Spec) { s.Command = "for i in 1 2 3 4; do echo $i; sleep 0.4; done" })
	every("secret", time.Second, func(s *job.Spec) { s.Env = map[string]string{"S": "{{secret.bad}}"} })
	every("ping", time.Second, func(s *job.Spec) { s.Ping = &job.Ping{URL: p.hook + "/ping"} })
	every("http", time.Second, func(s *job.Spec) { s.Command, s.HTTP = "", &job.HTTP{URL: p.hook + "/http"} })
	every("fails", 300*time.Millisecond, func(s *job.Spec) { s.Command, s.Owner = "false", "bad" })
	every("held", 300*time.Millisecond, func(s *job.Spec) { s.App = "bad-held" })
	ask("pause of an app", func(e *edit.Editor) error {
		_, err := e.PauseApp(ctx, "bad-held", job.PauseRequest{Until: job.MicrosOf(p.one.Now().Add(3 * time.Second))})
		return err
	})

	every("cron", 0, func(s *job.Spec) { s.Schedule, s.Timezone = "* * * * * *", "Europe/Berlin" })
	paused := every("paused", 300*time.Millisecond, nil)
	ask("pause", func(e *edit.Editor) error { _, err := e.Pause(ctx, paused.ID, job.PauseRequest{}); return err })
	ask("run", func(e *edit.Editor) error {
		_, err := e.RunNow(ctx, []int64{plain.ID}, 0, fmt.Sprint("key ", seed))
		return err
	})

	ask("backfill", func(e *edit.Editor) error {
		_, err := e.Backfill(ctx, plain.ID,
			edit.Range{From: now.Add(-4 * time.Second), To: now.Add(-time.Second), Parallel: 1}, "")
		return err
	})

	for _, q := range []string{
		"INSERT INTO session (id, node, started, beat_at, labels, handlers) VALUES (?, 'bad', 1, " +
			"CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED), '{}', '[]')",
		"INSERT INTO life (session, node, started) VALUES (?, 'bad', 1)",
	} {
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(p.rng.Uint32())
		}
		p.must(q, id)
	}

	for _, q := range []string{
		"INSERT INTO node (name, cordoned, since) VALUES ('bad', 1, 1)",
		"REPLACE INTO stop (kind, name, since) VALUES ('handler', 'bad', 1)",
		"INSERT IGNORE INTO chunk (run_id, claim, at_byte, data) VALUES (1, 1, 0, 'x')",
		"INSERT IGNORE INTO output_part (run_id, at_byte, size, line, data) SELECT run_id, 0, 1, 0, 'x' FROM output LIMIT 9",
		"INSERT INTO setting (name, value) VALUES ('bad', 'x') ON DUPLICATE KEY UPDATE value = 'x'",
		"UPDATE setting SET value = '16' WHERE name = 'buckets'",
		"INSERT INTO api_token (name, hash, role, apps, created, created_by, expires) VALUES ('bad', " +
			"UNHEX(SHA2(UUID(), 256)), 'viewer', '[\"bad\"]', 1, 'bad', 1)",
		"INSERT INTO login (hash, who, grants, created, expires) VALUES (UNHEX(SHA2(UUID(), 256)), 'bad', '[]', 1, 1)",
		"INSERT INTO folder (name, past) VALUES ('bad', '')",
		"INSERT INTO folder_node (folder_id, node, state, error, since) SELECT id, 'bad', 'applied', '', 1 FROM " +
			"folder WHERE name = 'bad'",
		"REPLACE INTO node_note (node, what, error, since) VALUES ('bad', 'bad', 'bad', 1)",
		"INSERT INTO figure (at, source, starts, ends, failed, late) VALUES (CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 " +
			"AS SIGNED), UNHEX(REPLACE(UUID(), '-', '')), 1, 1, 1, '[[1,1]]')",
		"INSERT INTO retention (app, spec) VALUES ('bad', '{\"age\":\"24h0m0s\"}')",
		"INSERT INTO alert_silence (app, rule, until, reason, created) VALUES ('bad-held', 'bad', " +
			"CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) + 3000000, 'x', 1)",
	} {
		p.must(q)
	}
}

// poisonColumns is the number of columns that a round poisons and the rounds before it did not.
// Together the rounds reach all columns.
const poisonColumns = 16

// draw picks the columns of a round. They depend only on its seed: consecutive rounds take
// consecutive columns of the same shuffled list.
func (p *poisoner) draw(seed uint64) (out []column) {
	n := uint64(len(p.columns))
	for at := seed * poisonColumns; at < (seed+1)*poisonColumns; at++ {
		out = append(out, p.columns[rand.New(rand.NewPCG(at/n, 5)).Perm(len(p.columns))[at%n]])
	}

	var most []column // most values go into these
	for _, col := range p.columns {
		if col.table == "job" || col.table == "run" {
			most = append(most, col)
		}
	}

	for range 4 {
		out = append(out, most[p.rng.IntN(len(most))])
	}

	for _, col := range p.columns {
		switch col.table + "." + col.name {
		case "job_version.definition":
			out = append(out, col, col)
		case "alert_rule.spec", "calendar.spec":
			if p.rng.IntN(3) == 0 {
				out = append(out, col)
			}
		}
	}

	p.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// poison writes one value and describes it; "" if the schema refuses it.
func (p *poisoner) poison(col column) string {
	where := poisonedRows[col.table]
	if of := poisonedRowsOf[col.table+"."+col.name]; of != "" {
		where = of
	}

	if fields := fieldsOf[col.table]; fields != nil && (col.name == "spec" || col.name == "definition") &&
		p.rng.IntN(4) > 0 {
		return p.poisonSpec(col, where, fields)
	}

	v := p.value(col)
	limit := []string{" LIMIT 1", " LIMIT 3", ""}[p.rng.IntN(3)]
	n := p.write(col, v, where+" ORDER BY RAND("+strconv.Itoa(p.rng.IntN(1000))+")"+limit)
	if n == 0 {
		return ""
	}
	if b, ok := v.([]byte); ok {
		v = fmt.Sprintf("%.100x", b)
	}

	return fmt.Sprintf("%s.%s = %.200q, %d rows", col.table, col.name, fmt.Sprint(v), n)
}

// poisonSpec writes a nearly correct definition.
func (p *poisoner) poisonSpec(col column, where string, fields []string) string {
	var spec []byte
	if p.c.db.Raw().QueryRow(`
		SELECT `+col.name+`
		FROM `+col.table+`
		WHERE `+where+`
		ORDER BY RAND(?)
		LIMIT 1`, p.rng.Int32()).Scan(&spec) != nil {
		return ""
	}

	v := p.mutated(spec, fields)
	n := p.write(col, v, col.name+" = CONVERT("+quoted(spec)+" USING utf8mb4) AND "+where)
	if n > 0 && col.table == "calendar" && p.rng.IntN(2) == 0 {
		p.must("UPDATE calendar SET digest = UNHEX(SHA2(spec, 256)) WHERE " + where) // as if intended
	}
	if n == 0 {
		return ""
	}

	return fmt.Sprintf("%s.%s = %q, %d rows", col.table, col.name, v, n)
}

// quoted returns bytes as an SQL literal.
func quoted(b []byte) string { return fmt.Sprintf("x'%x'", b) }

func (p *poisoner) write(col column, v any, where string) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := p.c.db.Raw().ExecContext(ctx, "UPDATE `"+col.table+"` SET `"+col.name+"` = ? WHERE "+where, v)
	if err != nil {
		return 0 // the schema refuses it
	}

	n, _ := r.RowsAffected()
	if n > 0 {
		p.written++
		p.touched[col.table+"."+col.name] = true
	}

	return n
}

// value draws a value that the column may accept.
func (p *poisoner) value(col column) any {
	r := p.rng
	if col.null && r.IntN(5) == 0 {
		return nil
	}

	switch col.kind {
	case "tinyint", "smallint", "int", "bigint":
		bits := map[string]uint{"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[col.kind]
		if col.unsigned {
			return []uint64{0, 1, math.MaxUint64 >> (64 - bits), r.Uint64() >> (64 - bits)}[r.IntN(4)]
		}

		least := int64(math.MinInt64) >> (64 - bits)
		now := int64(p.one.Now().UnixMicro())
		values := []int64{0, -1, 1, 2, 3, 7, least, least + 1, ^least, ^least - 1, int64(r.Uint64()) >> (64 - bits)}
		if bits == 64 {
			values = append(values, now, now+int64(r.Int32()), now-int64(r.Int32()), now+1000*int64(r.Int32()),
				now*1000)
		}

		return values[r.IntN(len(values))]
	case "enum":
		return r.IntN(12) // one of its values, or none
	case "binary", "varbinary", "blob", "mediumblob", "longblob":
		return p.bytes(int(min(col.size, 1+int64(r.IntN(2000)))), col.kind == "binary", int(col.size))
	default:
		return p.text(int(min(col.size, 1<<uint(r.IntN(17)))))
	}
}

func (p *poisoner) bytes(n int, exact bool, size int) []byte {
	if exact {
		n = size
	}

	b := make([]byte, n)
	if p.rng.IntN(4) > 0 {
		for i := range b {
			b[i] = byte(p.rng.Uint32())
		}
	}

	return b
}

// text draws characters: of all kinds, or a text that resembles an expected one.
func (p *poisoner) text(n int) string {
	r := p.rng
	if r.IntN(2) == 0 {
		s := []string{"", "null", "{}", "[]", "{\"", "0", "-1", "NaN", "\x00", "'; DROP TABLE job; --", "…", "\u202e",
			"\U0001F4A9", "0000-00-00", "[1,\"a\",null]",
			"{\"a\":{\"b\":[[[[[[]]]]]]}}", strings.Repeat("[", 5000), strings.Repeat("a", n), "zone in (", "!",
			"9999999999999999999999", "bad"}[r.IntN(22)]
		for utf8.RuneCountInString(s) > n {
			s = string([]rune(s)[:n])
		}
		return s
	}

	out := make([]rune, r.IntN(n+1))
	for i := range out {
		switch r.IntN(3) {
		case 0:
			out[i] = rune(r.IntN(128))
		case 1:
			out[i] = rune(r.IntN(0xd800))
		default:
			out[i] = 0x10000 + rune(r.IntN(0x100000))
		}
	}

	return string(out)
}

// fieldsOf lists the fields of definitions by table.
var fieldsOf = map[string][]string{
	"job_version": {"every", "schedule", "schedules", "timezone", "start", "end", "max_fires", "jitter", "calendars",
		"command", "http", "handler", "payload", "timeout", "selector", "overlap", "queue", "group",
		"priority", "start_deadline", "misfire", "retry", "on_lost", "labels", "app", "name", "env", "limits",
		"success_codes", "skip_exit_codes", "at", "grace", "ping", "keep", "keep_job", "owner"},
	"calendar":  {"name", "timezone", "exclude", "exclude_weekdays", "include", "hours"},
	"retention": {"age", "failures", "runs", "bytes", "archive"},
	"alert_channel": {
		"name", "type", "disabled", "url", "headers", "sign", "body", "routing_key", "email", "every", "wait", "rate",
		"timeout",
	},
	"alert_rule": {"name", "on", "apps", "jobs", "owner", "labels", "channels", "severity", "repeat", "late_start",
		"late_finish", "never_ran", "failures", "node_gone", "backlog", "clock_skew", "title", "text",
		"disabled"},
}

// mutated returns a definition with an error in it.
func (p *poisoner) mutated(spec []byte, names []string) any {
	r := p.rng
	spec = bytes.Clone(spec)
	switch r.IntN(4) {
	case 0:
		return p.text(1 + r.IntN(5000))
	case 1: // a few random bytes
		for range 1 + r.IntN(4) {
			if len(spec) > 0 {
				spec[r.IntN(len(spec))] = byte(32 + r.IntN(95))
			}
		}
		return string(spec)
	case 2:
		return string(spec[:r.IntN(len(spec)+1)])
	}

	var fields map[string]any
	if json.Unmarshal(spec, &fields) != nil {
		return "{"
	}

	values := []any{nil, 0, -1, 1e308, math.MaxInt64, "", "x", "0s", "-1s", "2540400h", "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "* * * * *", "1-0 * * * *", "@never",
		"Nowhere/Land", []any{}, []any{nil}, []any{"bad", "bad"}, map[string]any{},
		map[string]any{"policy": "all", "max_count": -1}, map[string]any{"attempts": 1 << 40},
		map[string]any{"url": "http://"}, true, strings.Repeat("x", 70000)}

	for range 1 + r.IntN(3) {
		if name := names[r.IntN(len(names))]; r.IntN(4) == 0 {
			delete(fields, name)
		} else {
			fields[name] = values[r.IntN(len(values))]
		}
	}

	text, err := json.Marshal(fields)
	if err != nil {
		return "{"
	}
	return string(text)
}

// progress counts the runs of the good jobs.
func (p *poisoner) progress() []int {
	counts := make([]int, len(p.good))
	for i, j := range p.good {
		counts[i] = p.c.count("SELECT COUNT(*) FROM run WHERE state = 'ended' AND job_id = ?", j.ID)
	}
	return counts
}

// unsaid lists the jobs that should be due, whose definition or calendars cannot be decoded, and
// that do not show an error.
func (p *poisoner) unsaid() (bad []string) {
	look := func() []string {
		bad = nil
		for after := int64(0); ; {
			ids := p.ids(after)
			if len(ids) == 0 {
				return bad
			}

			for _, id := range ids {
				after = id
				j, err := p.c.db.Job(context.Background(), id)
				if err != nil {
					bad = append(bad, fmt.Sprintf("job %d cannot be read: %v", id, err))
					continue
				}

				why := j.SpecErr
				if err := p.c.db.LearnCalendars(context.Background(), &j); err != nil {
					bad = append(bad, fmt.Sprintf("the calendars of job %d cannot be read: %v", id, err))
				} else if why == nil {
					why = j.CalendarsErr
				}

				now := job.MicrosOf(p.one.Now())
				if why != nil && j.Error == "" && !j.Deleted && !j.Paused && j.NextDue != 0 && j.NextDue < now {
					bad = append(bad,
						fmt.Sprintf(
							"job %d is due since %s, what says when cannot be read (%v), and it does not say so", id,
							j.NextDue, why))
				}
			}
		}
	}

	// Once a minute a round finds cursors that lie far back.
	for end := time.Now().Add(90 * time.Second); len(look()) > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}

	return bad
}

func (p *poisoner) ids(after int64) (ids []int64) {
	rows, err := p.c.db.Raw().Query(`
		SELECT id
		FROM job
		WHERE `+ofBadApps+` AND id > ?
		ORDER BY id
		LIMIT 100`, after)
	if err != nil {
		p.t.Fatal(err)
	}
	defer rows.Close()

	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			p.t.Fatal(err)
		}
		ids = append(ids, id)
	}

	return ids
}

// lists reads the lists that people use.
func (p *poisoner) lists() map[string]error {
	ctx, db := context.Background(), p.one.Reads()
	out := map[string]error{}
	for what, list := range map[string]func() error{
		"jobs": func() error { _, err := db.Jobs(ctx, read.JobFilter{Limit: 200}); return err },
		"versions": func() error {
			return p.each(func(id int64) error { _, err := db.Versions(ctx, id, 0, 100); return err })
		},
		"waits": func() error {
			return p.each(func(id int64) error { _, err := db.Waiting(ctx, []int64{id}, 100); return err })
		},
		"runs":             func() error { _, err := db.Runs(ctx, read.RunFilter{Limit: 1000}); return err },
		"executing runs":   func() error { _, err := db.ExecutingRuns(ctx, read.RunFilter{Limit: 1000}); return err },
		"sessions":         func() error { _, err := db.Sessions(ctx); return err },
		"cordoned nodes":   func() error { _, err := trip.CordonedNodes(db.Reader(ctx)); return err },
		"handlers":         func() error { _, err := db.HandlersOff(ctx); return err },
		"jobs of handlers": func() error { _, err := db.HandlerJobs(ctx, nil); return err },
		"groups":           func() error { _, err := db.Groups(ctx, "", 0, 100); return err },
		"calendars":        func() error { _, err := read.Calendars(db.Reader(ctx), 0, 100); return err },
		"backfills":        func() error { _, err := db.Backfills(ctx, 0, 0, nil, 100); return err },
		"pauses":           func() error { _, err := db.Pauses(ctx); return err },
		"audit":            func() error { _, err := audit.List(db.Reader(ctx), audit.Filter{Limit: 500}); return err },
		"secrets": func() error {
			_, err := secret.List(db.Reader(ctx), secret.Filter{Limit: 100})
			return err
		},
		"tokens":  func() error { _, err := auth.Tokens(db.Reader(ctx), auth.TokenFilter{Limit: 100}); return err },
		"folders": func() error { _, err := edit.Folders(db.Reader(ctx), ""); return err },
		"figures": func() error { _, err := read.Figures(db.Reader(ctx), math.MinInt64); return err },
		"removal": func() error { _, err := read.Retaining(db.Reader(ctx)); return err },
		"channels": func() error {
			_, err := alert.Definitions(db.Reader(ctx), alert.ChannelTable, 0, 100)
			return err
		},
		"rules":    func() error { _, err := alert.Definitions(db.Reader(ctx), alert.RuleTable, 0, 100); return err },
		"silences": func() error { _, err := alert.Silences(db.Reader(ctx), 0, 0, 100); return err },
		"alerts": func() error {
			_, _, err := alert.Fired(db.Reader(ctx), alert.FiredFilter{Limit: 500})
			return err
		},
		"messages": func() error {
			_, _, err := alert.Deliveries(db.Reader(ctx), alert.DeliveryFilter{Limit: 500})
			return err
		},
		"alert counts":          func() error { _, err := alert.Count(db.Reader(ctx), nil); return err },
		"look for waiting work": func() error { _, err := db.Glance(ctx); return err },
	} {
		out[what] = list()
	}

	return out
}

// each applies do to each of the bad jobs.
func (p *poisoner) each(do func(id int64) error) error {
	for after := int64(math.MinInt64); ; {
		ids := p.ids(after)
		if len(ids) == 0 {
			return nil
		}
		for _, id := range ids {
			if after = id; do(id) != nil {
				return do(id)
			}
		}
	}
}

// heard keeps the log lines of nodes.
type heard struct {
	mu    sync.Mutex
	lines [][]byte
	n     int
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	h.lines = append(h.lines, bytes.Clone(b[:min(len(b), 500)]))
	if len(h.lines) > 5000 {
		h.lines = slices.Delete(h.lines, 0, 1000)
	}
	return len(b), nil
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n
}

func (h *heard) find(words ...string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.lines {
		for _, w := range words {
			if bytes.Contains(line, []byte(w)) {
				return string(line)
			}
		}
	}

	return ""
}

// last returns the latest lines above INFO, at most 25.
func (h *heard) last() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, line := range slices.Backward(h.lines) {
		if bytes.Contains(line, []byte("level=INFO")) {
			continue
		}
		if out = append(out, string(bytes.TrimSpace(line))); len(out) == 25 {
			break
		}
	}

	slices.Reverse(out)
	return strings.Join(out, "\n")
}
