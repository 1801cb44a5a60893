package audit

import (
	stdsql "database/sql"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go-crontab/internal/loop"
	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
	"go-crontab/test/testdb"
)

const day = 24 * time.Hour

// place is a migrated schema with a chainer.
type place struct {
	*testing.T
	dsn     string
	db      *sql.DB
	raw     *stdsql.DB // the tests' own pool, with long timeouts
	session *fakeSession
	chainer *Chainer
	now     job.Micros
}

type fakeSession struct {
	index, of int
	now       job.Micros
}

func (s *fakeSession) Share() (index, of int) { return s.index, s.of }
func (s *fakeSession) Fresh() bool            { return true }
func (s *fakeSession) Now() job.Micros        { return s.now }

func setUp(t *testing.T) *place {
	t.Helper()
	t.Parallel()
	dsn := testdb.DSN(t)
	m, err := sql.Open(dsn, sql.MigrateTimeouts, 8)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { m.Close() })
	if _, _, err := m.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}

	db, err := sql.Open(dsn, sql.DefaultTimeouts, 8)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { db.Close() })
	now, err := db.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	p := &place{T: t, dsn: dsn, db: db, raw: m.Raw(), now: now}
	p.session = &fakeSession{of: 1, now: now}
	p.chainer = p.newChainer(p.session)
	return p
}

// newChainer returns a chainer that does not know the newest line, so it looks each time.
func (p *place) newChainer(s *fakeSession) *Chainer {
	return NewChainer(ChainerConfig{
		DB: p.db, Session: s, Lookout: blind{}, Log: slog.New(slog.NewTextHandler(p.Output(), nil)),
	})
}

// blind is a Lookout that never knows.
type blind struct{}

func (blind) LastLine() (int64, bool) { return 0, false }

// proxied opens a pool of one connection through a fault proxy.
func (p *place) proxied() (*sql.DB, *faultproxy.Proxy) {
	p.Helper()
	proxy := faultproxy.Before(p.T, p.dsn)
	db, err := sql.Open(proxy.DSN(p.dsn), sql.DefaultTimeouts, 1)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { db.Close() })
	return db, proxy
}

func (p *place) exec(query string, args ...any) {
	p.Helper()
	if _, err := p.raw.Exec(query, args...); err != nil {
		p.Fatalf("%s: %v", query, err)
	}
}

func (p *place) number(query string, args ...any) (n int64) {
	p.Helper()
	if err := p.raw.QueryRow(query, args...).Scan(&n); err != nil {
		p.Fatalf("%s: %v", query, err)
	}
	return n
}

// lines inserts audit lines, each a second later than the previous one.
func (p *place) lines(n int, from job.Micros) {
	p.Helper()
	for i := range n {
		p.exec(`INSERT INTO audit (at, who, action, kind, ref, name, was, became)
			VALUES (?, 'ann', 'update', 'job', ?, 'täglich', NULL, '{"a": 1}')`,
			int64(from.Add(time.Duration(i)*time.Second)), i)
	}
}

func (p *place) chain() {
	p.Helper()
	if err := p.chainer.step(p.Context(), time.Now()); err != nil {
		p.Fatal(err)
	}
}

func (p *place) verify() Verified {
	p.Helper()
	v, err := VerifyAll(p.Context(), p.db, 0, Kept)
	if err != nil {
		p.Fatal(err)
	}
	return v
}

// whole expects a chain of n links without a fault.
func (p *place) whole(links int) {
	p.Helper()
	if v := p.verify(); v.Links != links || len(v.Faults) > 0 {
		p.Fatalf("got %d links and the faults %v; want %d and none", v.Links, v.Faults, links)
	}
}

// restore undoes manual changes of lines and links.
func (p *place) restore() {
	p.Helper()
	p.exec("DELETE FROM audit")
	p.exec("DELETE FROM audit_chain")
	p.exec("INSERT INTO audit SELECT * FROM audit_kept")
	p.exec("INSERT INTO audit_chain SELECT * FROM chain_kept")
}

// TestTampering: every manual change of old lines or links is found at its place. One change is one
// fault.
func TestTampering(t *testing.T) {
	p := setUp(t)
	p.lines(12, p.now)
	p.chain()
	p.whole(12)
	p.exec("CREATE TABLE audit_kept LIKE audit")
	p.exec("CREATE TABLE chain_kept LIKE audit_chain")
	p.exec("INSERT INTO audit_kept SELECT * FROM audit")
	p.exec("INSERT INTO chain_kept SELECT * FROM audit_chain")
	head, err := Head(p.db.Reader(t.Context()))
	if err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		do     string
		faults string // expected from VerifyAll
		head   string // expected from CheckHead
	}{
		"nothing":                {"DO 0", "", ""},
		"a field":                {"UPDATE audit SET who = 'bob' WHERE ref = 4", "5: audit line", ""},
		"a time":                 {"UPDATE audit SET at = at + 1 WHERE ref = 4", "5: audit line", ""},
		"the time of a link":     {"UPDATE audit_chain SET at = at + 1 WHERE seq = 5", "5: audit line", ""},
		"letters between fields": {"UPDATE audit SET who = 'an', origin = 'n' WHERE ref = 4", "5: audit line", ""},
		"a definition":           {"UPDATE audit SET became = '{\"a\": 2}' WHERE ref = 0", "1: audit line", ""},
		"a hash": {"UPDATE audit_chain SET hash = REPEAT('x', 32) WHERE seq = 5",
			"5: audit line, 6: audit line", ""},
		"a line is gone": {"DELETE FROM audit WHERE ref = 4", "5: audit line 5 is missing", ""},
		"a link is gone": {"DELETE FROM audit_chain WHERE seq = 5", "6: the links from 5 to 5", ""},
		"line and link": {"DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.ref = 4",
			"6: the links from 5 to 5", ""},
		"the last of both": {"DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.ref = 11", "",
			"the chain ends at link 11"},
		"the first of both": {"DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.ref < 3",
			"4: the links before it are missing", ""},
		"as if removed by age": {"DELETE a FROM audit a WHERE a.ref < 3",
			"1: audit line 1 is missing, 2: audit line 2 is missing, 3: audit line 3 is missing", ""},
		"dated back": {`DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.ref < 3; ` +
			`DELETE FROM audit WHERE ref = 3; UPDATE audit_chain SET at = 1 WHERE seq = 4`,
			"4: the links before it are missing, 4: audit line 4 is missing", ""},
		"dated back, in the hash": {`DELETE a, c FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.ref < 3; ` +
			`DELETE FROM audit WHERE ref = 3; ` +
			`UPDATE audit_chain SET at = 1, hash = CONCAT(UNHEX('0000000000000001'), SUBSTR(hash, 9)) WHERE seq = 4`,
			"5: audit line 5", ""},
		"all lines": {"DELETE FROM audit", "1: audit line 1 is missing", ""},
		"two lines change places": {`UPDATE audit_chain
			SET line = IF(line = 4, 1004, IF(line = 5, 4, line))
			WHERE line IN (4, 5)`, "4: audit line, 5: audit line", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{T: t, db: p.db, raw: p.raw}
			p.restore()
			for do := range strings.SplitSeq(c.do, "; ") {
				p.exec(do)
			}

			v := p.verify()
			var got []string
			for _, f := range v.Faults {
				got = append(got, fmt.Sprintf("%d: %s", f.Seq, f.What))
			}
			wanted := strings.Split(c.faults, ", ")
			if c.faults == "" {
				wanted = nil
			}
			if name == "all lines" {
				got = got[:1]
			}
			if len(got) != len(wanted) {
				t.Fatalf("got %q, want %q", got, wanted)
			}
			for i := range wanted {
				if !strings.HasPrefix(got[i], wanted[i]) {
					t.Errorf("got %q, want %q", got[i], wanted[i])
				}
			}

			what, err := CheckHead(t.Context(), p.db, head, Kept)
			if err != nil || (what == "") != (c.head == "") && name != "a hash" || !strings.Contains(what, c.head) {
				t.Errorf("the kept head: got %q, %v; want %q", what, err, c.head)
			}
		})
	}

	t.Run("old links are gone", func(t *testing.T) {
		p := &place{T: t, db: p.db, raw: p.raw}
		p.restore()
		third, err := linkOf(p.db.Reader(t.Context()), 3)
		if err != nil {
			t.Fatal(err)
		}
		p.exec("DELETE FROM audit_chain WHERE seq < 5")
		for age, want := range map[time.Duration]string{day: "was not old enough to be removed",
			-day: "use a newer head"} {
			if what, err := CheckHead(t.Context(), p.db, third, age); err != nil || !strings.Contains(what, want) {
				t.Errorf("a head of before, lines are kept for %s: got %q, %v; want %q", age, what, err, want)
			}
		}
	})

	t.Run("computed again", func(t *testing.T) {
		p := &place{T: t, db: p.db, raw: p.raw, session: &fakeSession{of: 1, now: p.now}}
		p.chainer = p.newChainer(p.session)
		p.exec("DELETE FROM audit")
		p.exec("INSERT INTO audit SELECT * FROM audit_kept")
		p.exec("UPDATE audit SET who = 'bob' WHERE ref = 4")
		p.exec("DELETE FROM audit_chain")
		p.chain()
		if v := p.verify(); len(v.Faults) != 0 {
			t.Errorf("a chain that was computed again shows by itself: %v", v.Faults)
		}
		if what, err := CheckHead(t.Context(), p.db, head, Kept); err != nil ||
			!strings.Contains(what, "was computed again") {
			t.Errorf("the kept head: got %q, %v", what, err)
		}
	})
}

// TestLateLines: a line that commits after lines with higher ids is chained when it appears. A line
// that the trail has given up is chained by the next sweep.
func TestLateLines(t *testing.T) {
	p := setUp(t)
	p.lines(3, p.now)
	p.chain()
	late, err := p.raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Exec("INSERT INTO audit (at, who, action, kind) VALUES (?, 'late', 'update', 'job')",
		int64(p.now)); err != nil {
		t.Fatal(err)
	}
	p.lines(3, p.now)
	p.chain()
	p.whole(6)
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	p.chain()
	p.whole(7)
	if n := p.number("SELECT c.seq FROM audit a JOIN audit_chain c ON c.line = a.id WHERE a.who = 'late'"); n != 7 {
		t.Errorf("the late line is link %d, want 7", n)
	}

	p.exec("INSERT INTO audit (id, at, who, action, kind) VALUES (1000, ?, 'x', 'update', 'job')", int64(p.now))
	p.chain()
	p.chainer.seen.Gaps = nil // as if their time were over
	p.exec("INSERT INTO audit (id, at, who, action, kind) VALUES (500, ?, 'forgotten', 'update', 'job')", int64(p.now))
	p.chain()
	p.whole(8)
	p.chainer.swept = time.Now().Add(-2 * sweepPeriod)
	p.chain()
	p.whole(9)
}

// TestTwoChainers: several nodes that chain at the same time make a single chain with each line
// once.
func TestTwoChainers(t *testing.T) {
	p := setUp(t)
	var chaining sync.WaitGroup
	for range 3 {
		c := p.newChainer(&fakeSession{of: 3, now: p.now})
		chaining.Go(func() {
			for range 30 {
				_ = c.step(t.Context(), time.Now()) // another chainer may be first
			}
		})
	}
	p.lines(200, p.now)
	chaining.Wait()
	p.chain()
	p.whole(200)

	other := p.newChainer(&fakeSession{index: 1, of: 2, now: p.now})
	p.lines(1, p.now)
	if err := other.step(t.Context(), time.Now()); err != loop.ErrSkipped {
		t.Fatalf("got %v, want %v", err, loop.ErrSkipped)
	}
	p.whole(200)
}

// TestRemovalByAge: old lines are removed from the start of the chain. The rest is verified from
// the link that remains.
func TestRemovalByAge(t *testing.T) {
	p := setUp(t)
	p.lines(10, p.now.Add(-Kept-day))
	p.lines(5, p.now.Add(-day))
	p.lines(1, p.now.Add(-Kept-day)) // an old time at a new place
	p.chain()
	p.whole(16)

	before := p.now.Add(-Kept)
	for _, want := range []int{5, 4, 1, 0} { // the previous base counts towards the limit, but has no line
		n, err := Drop(t.Context(), p.db, before, 4)
		if err != nil || n != want {
			t.Fatalf("got %d lines, %v; want %d", n, err, want)
		}
		if v := p.verify(); len(v.Faults) > 0 {
			t.Fatalf("while lines are removed: %v", v.Faults)
		}
	}
	if n := p.number("SELECT COUNT(*) FROM audit"); n != 6 {
		t.Errorf("%d lines are left, want 6", n)
	}
	p.whole(7)

	p.exec("DELETE FROM audit WHERE at > ? ORDER BY id LIMIT 1", int64(before))
	if v := p.verify(); len(v.Faults) != 1 || v.Faults[0].Seq != 11 {
		t.Errorf("a line behind the base is gone: got %v", v.Faults)
	}
}

// TestVerifyInParts: verifying in parts finds the same faults as verifying at once.
func TestVerifyInParts(t *testing.T) {
	p := setUp(t)
	p.lines(25, p.now)
	p.chain()
	p.exec("DELETE FROM audit_chain WHERE seq IN (10, 11)") // at the border of two parts
	p.exec("UPDATE audit SET who = 'bob' WHERE ref = 20")
	var all Verified
	for after, parts := int64(0), 0; ; parts++ {
		v, err := Verify(t.Context(), p.db, after, 10, Kept, time.Minute)
		if err != nil || parts > 5 {
			t.Fatalf("%d parts: %v", parts, err)
		}
		all.add(v)
		if after = v.Next; after == 0 {
			break
		}
	}

	if all.Links != 23 || len(all.Faults) != 2 || all.Faults[0].Seq != 12 || all.Faults[1].Seq != 21 ||
		all.From.Seq != 1 || all.To.Seq != 25 {
		t.Errorf("got %+v", all)
	}

	if v, err := Verify(t.Context(), p.db, 11, 100, Kept, time.Minute); err != nil || len(v.Faults) != 2 {
		t.Errorf("from a link that is missing: got %v, %v", v.Faults, err)
	}

	if v, err := Verify(t.Context(), p.db, 0, 100, Kept, 0); err != nil || v.Links != 1 || v.Next != 1 {
		t.Errorf("without patience: got %d links, next %d, %v", v.Links, v.Next, err)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	l := job.Link{}.Next(&job.Entry{ID: 3, At: 5})
	if got, err := job.ParseHead(l.Head()); err != nil || got.Seq != 1 || got.Hash != l.Hash {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "1", "1:", "0:" + strings.Repeat("0", 64), "x:" + strings.Repeat("0", 64),
		"1:" + strings.Repeat("0", 63), "1:" + strings.Repeat("g", 64)} {
		if _, err := job.ParseHead(text); err == nil || !strings.Contains(err.Error(), "write it as SEQ:HASH") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestStrayLinks: a user who may only insert cannot stop the chain or its copies with forged links.
func TestStrayLinks(t *testing.T) {
	for name, numbers := range map[string][]int64{
		"the highest number":    {math.MaxInt64},
		"the lowest":            {math.MinInt64},
		"zero":                  {0},
		"several, far apart":    {-7, 1 << 42, 1 << 50, 1<<62 + 1, math.MaxInt64 - 1, math.MaxInt64},
		"with room behind them": {math.MaxInt64 - 100},
	} {
		t.Run(name, func(t *testing.T) {
			p := setUp(t)
			p.lines(3, p.now)
			p.chain()
			sink := &brokenSink{}
			c, _ := p.copierTo("", sink)
			p.copies(c)
			for i, seq := range numbers {
				p.exec("INSERT INTO audit_chain (seq, line, at, hash) VALUES (?, ?, ?, REPEAT('x', 32))", seq,
					1_000_000+i, int64(p.now)+int64(i))
			}

			p.lines(3, p.now)
			p.chain()
			p.lines(3, p.now)
			p.chain() // the chain continues
			p.chainer = p.newChainer(p.session)
			p.lines(1, p.now)
			p.chain() // on another node, too
			if n := p.number(`SELECT COUNT(*)
				FROM audit a
				JOIN audit_chain c ON c.line = a.id
				WHERE c.seq BETWEEN 1 AND 10`); n != 10 {
				t.Errorf("%d of 10 lines are links 1 to 10", n)
			}

			v := p.verify()
			if v.Links != 10 || v.To.Seq != 10 {
				t.Errorf("got %d links up to %d", v.Links, v.To.Seq)
			}
			var named []int64
			for _, f := range v.Faults {
				named = append(named, f.Seq)
				if !strings.Contains(f.What, "the chain ends at link 10 and continues") ||
					!strings.Contains(f.What, fmt.Sprintf("DELETE FROM audit_chain WHERE seq = %d", f.Seq)) {
					t.Errorf("got %q", f.What)
				}
			}
			if !slices.Equal(named, numbers) {
				t.Errorf("faults name the links %v, want %v", named, numbers)
			}

			p.copies(c)
			if sink.lines != 7 || c.at.Seq != 10 {
				t.Errorf("%d lines were copied, up to %d; want 7, up to 10", sink.lines, c.at.Seq)
			}
			if n, err := Drop(t.Context(), p.db, p.now.Add(day), 100); err != nil || n != 10 {
				t.Errorf("removal by age: got %d lines, %v", n, err)
			}
		})
	}
}

// TestLinkWithinReach: after a forged link a little ahead of the end, the chain continues after it,
// and the gap is reported.
func TestLinkWithinReach(t *testing.T) {
	for _, seq := range []int64{7, 1 << 20, 4 + 1<<40} { // the last one is out of reach until the chain has grown
		t.Run(fmt.Sprint(seq), func(t *testing.T) {
			p := setUp(t)
			p.lines(3, p.now)
			p.chain()
			p.exec("INSERT INTO audit_chain (seq, line, at, hash) VALUES (?, 1000000, ?, REPEAT('x', 32))", seq,
				int64(p.now))
			for range 3 {
				p.lines(3, p.now)
				p.chain()
			}
			if n := p.number("SELECT COUNT(*) FROM audit a JOIN audit_chain c ON c.line = a.id"); n != 12 {
				t.Errorf("%d of 12 lines have links", n)
			}
			v := p.verify()
			if v.Links != 13 || len(v.Faults) != 2 || v.Faults[0].Seq != seq ||
				!strings.Contains(v.Faults[0].What, "missing") {
				t.Errorf("got %d links and the faults %v", v.Links, v.Faults)
			}
		})
	}
}

// TestFarLines: audit lines with huge ids are chained like others, and so are the lines after them.
func TestFarLines(t *testing.T) {
	p := setUp(t)
	p.lines(2, p.now)
	p.chain()
	p.exec("INSERT INTO audit (id, at, who, action, kind) VALUES (?, ?, 'x', 'update', 'job')", int64(1)<<62,
		int64(p.now))
	p.chain()
	p.lines(2, p.now)
	p.chain()
	p.exec("INSERT INTO audit (id, at, who, action, kind) VALUES (?, ?, 'x', 'update', 'job')", int64(math.MaxInt64),
		int64(p.now))
	p.chain()
	p.whole(6)
}
