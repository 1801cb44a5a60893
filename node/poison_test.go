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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go-crontab/job"
	"go-crontab/node"
	"go-crontab/schedule"
	"go-crontab/session"
	"go-crontab/sql"
)

// What TestPoison can be told.
const (
	poisonSeed   = "GOCRONTAB_POISON_SEED"   // of its first round; each round has the next one
	poisonRounds = "GOCRONTAB_POISON_ROUNDS" // how many there are
)

// TestPoison writes what no API would take into random columns of random rows of two running nodes: any bytes, NULL,
// extreme numbers, definitions that are nearly right. The nodes live and all other jobs go on; a job whose definition
// cannot be read any more says so; and no list is broken by one row. A failure names its seed and what was written.
func TestPoison(t *testing.T) {
	t.Parallel()
	rounds, first := 6, uint64(time.Now().UnixNano()%1e9)
	for name, to := range map[string]func(uint64){poisonSeed: func(n uint64) { first = n }, poisonRounds: func(n uint64) { rounds = int(n) }} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("%s=%q: want a number", name, text)
			}
			to(n)
		}
	}
	c := newCluster(t)
	said := &heard{}
	quiet := func(cfg *node.Config) {
		cfg.Expiry = session.DefaultExpiry // whoever loses a session here lost it to what was written
		cfg.Log = slog.New(slog.NewTextHandler(said, nil)).With("node", cfg.Name)
	}
	one := c.start("one", quiet)
	two := c.start("two", quiet)
	p := &poisoner{t: t, c: c, one: one, said: said, columns: c.columns()}
	if len(p.columns) < 140 {
		t.Fatalf("%d columns: the schema cannot be read", len(p.columns))
	}
	p.good = []job.Job{
		one.create(job.Spec{Name: "good", Every: job.Duration(200 * time.Millisecond), Command: "true"}),
		one.create(job.Spec{Name: "queues", Every: job.Duration(500 * time.Millisecond), Command: "sleep 0.6", Overlap: job.OverlapQueue, Queue: 2}),
		one.create(job.Spec{Name: "retries", Every: job.Duration(time.Second), Command: "[ $GOCRONTAB_ATTEMPT = 2 ]", Retry: job.Retry{Attempts: 2, Backoff: job.Duration(100 * time.Millisecond)}}),
	}
	sessions := one.Status().Session + two.Status().Session
	for n := range rounds {
		p.round(first + uint64(n))
		if t.Failed() {
			t.Fatalf("%s=%d %s=1 repeats it; what the nodes said last:\n%s", poisonSeed, first+uint64(n), poisonRounds, said.last())
		}
	}
	if now := one.Status().Session + two.Status().Session; now != sessions {
		t.Errorf("a node lost its session: got %s, want %s", now, sessions)
	}
	t.Logf("%d rounds from seed %d, %d values of %d columns", rounds, first, p.written, len(p.touched))
}

// poisoner writes into a cluster.
type poisoner struct {
	t       *testing.T
	c       *cluster
	one     *member
	said    *heard
	columns []column
	good    []job.Job
	rng     *rand.Rand
	written int
	touched map[string]bool
}

// column is one of the schema.
type column struct {
	table, name, kind string
	size              int64 // characters or bytes, of texts
	null, unsigned    bool
}

// columns lists all but those that MySQL counts itself: the highest number there leaves none for the next row, of whatever
// job, and no program can do anything about that.
func (c *cluster) columns() (columns []column) {
	c.t.Helper()
	rows, err := c.db.Raw().Query("SELECT c.table_name, c.column_name, c.data_type, COALESCE(c.character_maximum_length, 0), c.is_nullable = 'YES', c.column_type LIKE '%unsigned%'" +
		" FROM information_schema.columns c JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name" +
		" WHERE c.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND c.extra NOT LIKE '%GENERATED%' AND c.extra NOT LIKE '%auto_increment%' AND c.table_name NOT LIKE 'goose%' ORDER BY 1, c.ordinal_position")
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var col column
		if err := rows.Scan(&col.table, &col.name, &col.kind, &col.size, &col.null, &col.unsigned); err != nil {
			c.t.Fatal(err)
		}
		columns = append(columns, col)
	}
	return columns
}

// of says which rows of a table belong to the jobs that are poisoned, or to nobody; "" for tables whose rows are all of
// the cluster and have their own tests: what is wrong there is said at start.
var poisonedRows = map[string]string{
	"job":         "app = 'bad'",
	"task":        "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"history":     "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"request":     "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"waiting":     "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"job_ref":     "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"job_term":    "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"job_part":    "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"job_version": "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"notable":     "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"moved":       "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"backfill":    "job_id IN (SELECT id FROM job WHERE app = 'bad')",
	"output":      "1 = 1",
	"grp":         "name = 'bad'",
	"slot":        "1 = 1",
	"calendar":    "name = 'bad'",
	"place":       "selector <> ''",
	"node":        "name = 'bad'",
	"session":     "node = 'bad'",
	"handler_off": "handler = 'bad'",
	"pause":       "app = 'bad'",
	"chunk":       "1 = 1",
	"audit":       "1 = 1",
	"secret":      "name = 'bad'",
	"setting":     "name IN ('bad', 'buckets')",
	"api_token":   "1 = 1",
	"login":       "1 = 1",
	"locks":       "1 = 1",
}

// never is what stays: it would mean something else, and rightly so.
func (p *poisoner) never(c column, v any) bool {
	switch c.table + "." + c.name {
	case "locks.id", "locks.name": // whose rows must be there; see TestMissingLockRow
		return true
	case "setting.name": // the same
		return true
	case "job.app", "pause.app": // an empty one pauses everything; another one takes the row out of our sight
		return true
	}
	return false
}

// round makes some jobs, poisons them, and looks at everything else.
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
	for range 12 {
		if what := p.poison(); what != "" {
			did = append(did, what)
		}
		time.Sleep(time.Duration(p.rng.IntN(60)) * time.Millisecond)
	}
	begun, lines := time.Now(), p.said.count()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("seed %d: %s\nafter\n%s", seed, fmt.Sprintf(format, args...), strings.Join(did, "\n"))
	}
	for end := time.Now().Add(40 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now := p.progress()
		on := true
		for i := range now {
			on = on && now[i] >= before[i]+5
		}
		if on {
			break
		}
		if time.Now().After(end) {
			fail("of the good jobs so many runs ended: %v, before %v, after 40s %v", []string{"good", "queues", "retries"}, before, now)
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
	// What was written goes; what it has done to the nodes would show in the next rounds.
	for _, table := range []string{"task", "history", "waiting", "job_ref", "job_term", "job_part", "backfill", "request", "job", "session", "grp", "calendar", "place", "node", "handler_off", "pause", "secret"} {
		p.must("DELETE FROM " + table + " WHERE " + poisonedRows[table])
	}
	p.must("DELETE FROM slot WHERE task_id NOT IN (SELECT id FROM task)")
}

// must runs a statement, again if it and the nodes were in each other's way.
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

// victims are jobs of every kind, and what they refer to.
func (p *poisoner) victims(seed uint64) {
	t := p.t
	t.Helper()
	ctx := t.Context()
	// A machine that has no time for MySQL is no news here.
	ask := func(what string, f func(e *schedule.Editor) error) {
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
	ask("group", func(e *schedule.Editor) error { _, err := e.PutGroup(ctx, "bad", 1); return err })
	ask("calendar", func(e *schedule.Editor) error {
		_, err := e.PutCalendar(ctx, job.CalendarSpec{Name: "bad", Exclude: []job.CalendarDay{{Date: "2099-01-01"}}}, 0)
		return err
	})
	every := func(name string, d time.Duration, mod func(*job.Spec)) job.Job {
		spec := job.Spec{App: "bad", Name: fmt.Sprint(name, " ", seed), Every: job.Duration(d), Command: "sleep 0.1"}
		if mod != nil {
			mod(&spec)
		}
		var j job.Job
		ask(name, func(e *schedule.Editor) (err error) {
			if j, err = e.Create(ctx, spec, false); errors.Is(err, sql.ErrExists) { // MySQL did not say so the first time
				row, err := p.c.db.JobNamed(ctx, spec.App, spec.Name)
				j = row.Job
				return err
			}
			return err
		})
		return j
	}
	now := p.one.Now()
	plain := every("plain", 200*time.Millisecond, func(s *job.Spec) { s.Start = ptr(now.Add(-5 * time.Second)) })
	every("queue", 300*time.Millisecond, func(s *job.Spec) { s.Overlap, s.Command = job.OverlapQueue, "sleep 0.5" })
	every("replace", 300*time.Millisecond, func(s *job.Spec) { s.Overlap, s.Command = job.OverlapReplace, "echo a; sleep 0.5" })
	every("group", 300*time.Millisecond, func(s *job.Spec) { s.Group = "bad" })
	every("group too", 300*time.Millisecond, func(s *job.Spec) { s.Group = "bad" })
	every("retry", 300*time.Millisecond, func(s *job.Spec) {
		s.Command, s.Retry = "false", job.Retry{Attempts: 3, Backoff: job.Duration(100 * time.Millisecond)}
	})
	every("calendar", 300*time.Millisecond, func(s *job.Spec) { s.Calendars = []string{"bad"} })
	every("nowhere", 300*time.Millisecond, func(s *job.Spec) { s.Selector = "nowhere" })
	every("speaks", time.Second, func(s *job.Spec) { s.Command = "for i in 1 2 3 4; do echo $i; sleep 0.4; done" })
	every("cron", 0, func(s *job.Spec) { s.Schedule, s.Timezone = "* * * * * *", "Europe/Berlin" })
	paused := every("paused", 300*time.Millisecond, nil)
	ask("pause", func(e *schedule.Editor) error { _, err := e.Pause(ctx, paused.ID, job.PauseRequest{}); return err })
	ask("run", func(e *schedule.Editor) error {
		_, err := e.RunNow(ctx, plain.ID, fmt.Sprint("key ", seed))
		return err
	})
	ask("backfill", func(e *schedule.Editor) error {
		_, err := e.Backfill(ctx, plain.ID, now.Add(-4*time.Second), now.Add(-time.Second), 1, false, "")
		return err
	})
	for _, q := range []string{
		"INSERT INTO session (id, node, started, beat_at, labels, handlers) VALUES (?, 'bad', 1, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED), '{}', '[]')",
		"INSERT INTO chunk (session_id, launch, at_byte, data) VALUES (?, 1, 0, 'x')",
	} {
		id := make([]byte, 16)
		for i := range id {
			id[i] = byte(p.rng.Uint32())
		}
		p.must(q, id)
	}
	for _, q := range []string{
		"INSERT INTO node (name, cordoned, since) VALUES ('bad', 1, 1)",
		"INSERT INTO handler_off (handler, since) VALUES ('bad', 1)",
		"INSERT INTO setting (name, value) VALUES ('bad', 'x') ON DUPLICATE KEY UPDATE value = 'x'",
		"UPDATE setting SET value = '16' WHERE name = 'buckets'",
	} {
		p.must(q)
	}
}

// poison writes one value, and says what; "" if the schema does not take it.
func (p *poisoner) poison() string {
	col := p.columns[p.rng.IntN(len(p.columns))]
	if p.rng.IntN(3) == 0 { // most comes from these
		for col.table != "job" && col.table != "task" {
			col = p.columns[p.rng.IntN(len(p.columns))]
		}
	}
	if p.rng.IntN(6) == 0 {
		for col.table+"."+col.name != "job.spec" {
			col = p.columns[p.rng.IntN(len(p.columns))]
		}
	}
	where := poisonedRows[col.table]
	if where == "" {
		return ""
	}
	raw := p.c.db.Raw()
	if col.table+"."+col.name == "job.spec" {
		var id int64
		var spec []byte
		if raw.QueryRow("SELECT id, spec FROM job WHERE app = 'bad' ORDER BY RAND(?) LIMIT 1", p.rng.Int32()).Scan(&id, &spec) != nil {
			return ""
		}
		v := p.mutated(spec)
		if p.write(col, v, "id = "+strconv.FormatInt(id, 10)) == 0 {
			return ""
		}
		return fmt.Sprintf("job %d: spec = %q", id, v)
	}
	v := p.value(col)
	if p.never(col, v) {
		return ""
	}
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

func (p *poisoner) write(col column, v any, where string) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := p.c.db.Raw().ExecContext(ctx, "UPDATE `"+col.table+"` SET `"+col.name+"` = ? WHERE "+where, v)
	if err != nil {
		return 0 // the schema says no
	}
	n, _ := r.RowsAffected()
	if n > 0 {
		p.written++
		p.touched[col.table+"."+col.name] = true
	}
	return n
}

// value draws one that the column may take.
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
			values = append(values, now, now+int64(r.Int32()), now-int64(r.Int32()), now+1000*int64(r.Int32()), now*1000)
		}
		return values[r.IntN(len(values))]
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

// text draws characters: of all kinds, or something that looks like what is expected.
func (p *poisoner) text(n int) string {
	r := p.rng
	if r.IntN(2) == 0 {
		s := []string{"", "null", "{}", "[]", "{\"", "0", "-1", "NaN", "\x00", "'; DROP TABLE job; --", "…", "\u202e", "\U0001F4A9", "0000-00-00", "[1,\"a\",null]",
			"{\"a\":{\"b\":[[[[[[]]]]]]}}", strings.Repeat("[", 5000), strings.Repeat("a", n), "zone in (", "!", "9999999999999999999999", "bad"}[r.IntN(22)]
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

// mutated is a definition with something wrong in it.
func (p *poisoner) mutated(spec []byte) any {
	r := p.rng
	spec = bytes.Clone(spec)
	switch r.IntN(4) {
	case 0:
		return p.text(1 + r.IntN(5000))
	case 1: // a few bytes, as they come
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
	names := []string{"every", "schedule", "schedules", "timezone", "start", "end", "max_fires", "jitter", "calendars", "command", "http", "handler", "payload", "timeout",
		"selector", "overlap", "queue", "group", "priority", "start_deadline", "misfire", "retry", "on_lost", "labels", "app", "name", "env", "limits", "success_codes", "at", "grace"}
	values := []any{nil, 0, -1, 1e308, math.MaxInt64, "", "x", "0s", "-1s", "2540400h", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "* * * * *", "1-0 * * * *", "@never",
		"Nowhere/Land", []any{}, []any{nil}, []any{"bad", "bad"}, map[string]any{}, map[string]any{"policy": "all", "max_count": -1}, map[string]any{"attempts": 1 << 40},
		map[string]any{"url": "http://"}, true, strings.Repeat("x", 70000)}
	for range 1 + r.IntN(3) {
		if name := names[r.IntN(len(names))]; r.IntN(5) == 0 {
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
		counts[i] = p.c.count("SELECT COUNT(*) FROM history WHERE job_id = ?", j.ID)
	}
	return counts
}

// unsaid lists the jobs whose definitions cannot be read, that should be due, and that do not say so.
func (p *poisoner) unsaid() (bad []string) {
	var rows []sql.JobRow
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
				rows = append(rows, j)
				now := job.MicrosOf(p.one.Now())
				if j.SpecErr != nil && j.Error == "" && !j.Deleted && !j.Paused && !j.Held && j.NextDue != 0 && j.NextDue < now {
					bad = append(bad, fmt.Sprintf("job %d is due since %s, its definition cannot be read (%v), and it does not say so", id, j.NextDue, j.SpecErr))
				}
			}
		}
	}
	for end := time.Now().Add(15 * time.Second); len(look()) > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	return bad
}

func (p *poisoner) ids(after int64) (ids []int64) {
	rows, err := p.c.db.Raw().Query("SELECT id FROM job WHERE app = 'bad' AND id > ? ORDER BY id LIMIT 100", after)
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

// lists reads what people look at.
func (p *poisoner) lists() map[string]error {
	ctx, db := context.Background(), p.one.Reads()
	_, jobs := db.Jobs(ctx, sql.JobFilter{Limit: 200})
	_, runs := db.Runs(ctx, sql.RunFilter{Limit: 1000})
	_, sessions := db.Sessions(ctx)
	_, groups := db.Groups(ctx, "", 0, 100)
	_, calendars := db.Calendars(ctx, 0, 100)
	_, backfills := db.Backfills(ctx, 0, 0, nil, 100)
	_, pauses := db.Pauses(ctx)
	return map[string]error{"jobs": jobs, "runs": runs, "sessions": sessions, "groups": groups, "calendars": calendars, "backfills": backfills, "pauses": pauses}
}

// heard keeps what nodes log.
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

// last is what was said last, without what was said before.
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
