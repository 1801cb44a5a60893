package auth

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go-crontab/sql"
)

func TestWhoHoldsAToken(t *testing.T) {
	p := setUp(t)
	g, ctx, now := p.gate(), p.from("10.0.0.1"), time.Now()
	_, limited := p.token("ci", Operator, "billing")
	who, err := g.ByToken(ctx, limited, "10.0.0.1", false, now)
	if err != nil || who.Name != "ci" || who.Kind != KindToken || !who.MayIn(Operator, "billing") || who.May(Viewer) ||
		who.Expires == 0 || who.Token == 0 {
		t.Fatalf("got %+v, %v", who, err)
	}

	row, gone := p.token("gone", Admin)
	if err := p.Revoke(ctx, row.ID); err != nil {
		t.Fatal(err)
	}

	old, expired := p.token("old", Admin)
	p.exec("UPDATE api_token SET expires = 1000 WHERE id = ?", old.ID)
	odd, odder := p.token("odd", Admin)
	p.exec("UPDATE api_token SET role = 'root' WHERE id = ?", odd.ID)
	blind, unseeing := p.token("blind", Admin)
	p.exec("UPDATE api_token SET apps = 'not a list' WHERE id = ?", blind.ID)
	for what, c := range map[string]struct{ token, why string }{
		"nothing": {"", "token is incomplete"}, "a made-up one": {newSecret(tokenPrefix), "does not exist"},
		"a revoked one":                 {gone, "gone was revoked at 2"},
		"an expired one":                {expired, "old expired at 1970"},
		"the hash":                      {fmt.Sprintf("%x", hashOf(limited)), "token is incomplete"},
		"cut off":                       {limited[:40], "token is incomplete"},
		"with a role that a hand wrote": {odder, "unknown to this node"}, "of a cookie": {newSecret(loginPrefix), "token is incomplete"},
		"injected": {"' OR 1=1 -- ", "token is incomplete"},
	} {
		_, err := g.ByToken(ctx, c.token, "10.0.0.1", false, now)
		if r := p.refusal(what, err); !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: got %q, want %q", what, r.Why, c.why)
		}
	}

	if who, err = g.ByToken(ctx, unseeing, "10.0.0.1", false, now); err != nil || who.MayIn(Viewer, "billing") ||
		who.May(Viewer) {
		t.Errorf("apps that a hand wrote and cannot be read: got %+v, %v; want in none", who, err)
	}

	if n := p.number("SELECT COUNT(*) FROM api_token WHERE hash = ? OR name = ?", []byte(limited), limited); n != 0 {
		t.Error("the token itself is in its table")
	}
}

// TestRevocationReachesAllNodes checks that after the answer the token changes nothing on any node,
// and reads nothing a second later.
func TestRevocationReachesAllNodes(t *testing.T) {
	p := setUp(t)
	row, token := p.token("ci", Admin)
	ctx, nodes := p.from("10.0.0.1"), []*Gate{p.gate(), p.gate(), p.gate()}
	now := time.Now()
	for _, g := range nodes {
		for range 3 {
			if _, err := g.ByToken(ctx, token, "10.0.0.1", false, now); err != nil {
				t.Fatal(err)
			}
		}
	}

	if err := p.Revoke(ctx, row.ID); err != nil {
		t.Fatal(err)
	}

	for i, g := range nodes {
		if _, err := g.ByToken(ctx, token, "10.0.0.1", false, now.Add(believed-time.Millisecond)); err != nil {
			t.Errorf("node %d reads on for the second that it believes: got %v", i, err)
		}
		if _, err := g.ByToken(ctx, token, "10.0.0.1", true, now); err == nil {
			t.Errorf("node %d: somebody changes something after the revocation", i)
		}

		// After the refusal the cached result is not used for reads either.
		if _, err := g.ByToken(ctx, token, "10.0.0.1", false, now); err == nil {
			t.Errorf("node %d: read after it was refused", i)
		}
	}

	g := p.gate()
	row, token = p.token("ci", Admin) // the name is free again
	if _, err := g.ByToken(ctx, token, "10.0.0.1", false, now); err != nil {
		t.Fatal(err)
	}
	if err := p.Revoke(ctx, row.ID); err != nil {
		t.Fatal(err)
	}

	_, err := g.ByToken(ctx, token, "10.0.0.1", false, now.Add(believed))
	p.refusal("a read after a second", err)
}

// TestExpiryIsExact checks that reads do not use a cached result beyond the end of the token by
// MySQL's clock.
func TestExpiryIsExact(t *testing.T) {
	p := setUp(t)
	row, token := p.token("ci", Viewer)
	p.exec("UPDATE api_token SET expires = CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) + 2000000 WHERE id = ?",
		row.ID)
	g, now := p.gate(), time.Now()
	if _, err := g.ByToken(p.from("a"), token, "a", false, now); err != nil {
		t.Fatal(err)
	}

	now = now.Add(believed)
	time.Sleep(1300 * time.Millisecond) // the next result is cached for less than a second
	if _, err := g.ByToken(p.from("a"), token, "a", false, now); err != nil {
		t.Logf("this machine is slow: %v", err)
	}

	time.Sleep(710 * time.Millisecond)
	_, err := g.ByToken(p.from("a"), token, "a", false, now.Add(710*time.Millisecond))
	if r := p.refusal("after its end", err); !strings.Contains(r.Why, "expired") {
		t.Errorf("got %q", r.Why)
	}
}

// TestWhatReadingCosts counts statements: none while a result is cached, one indexed read each
// second, and one read for each change.
func TestWhatReadingCosts(t *testing.T) {
	p := setUp(t)
	_, token := p.token("ci", Admin)
	g, ctx, now := p.gate(), p.from("a"), time.Now()
	cost := func(n int, changing bool, every time.Duration) int64 {
		before := p.statements.Load()
		for range n {
			if _, err := g.ByToken(ctx, token, "a", changing, now); err != nil {
				t.Fatal(err)
			}
			now = now.Add(every)
		}
		return p.statements.Load() - before
	}

	cost(1, false, 0) // this writes the first use
	if got := cost(1000, false, 900*time.Microsecond); got != 0 {
		t.Errorf("1,000 reads within a second: got %d statements, want none", got)
	}

	now = now.Add(believed)
	cost(1, false, 0) // the first read after a transaction costs one more, see sql.conn
	now = now.Add(believed)
	if got := cost(1, false, 0); got != 1 {
		t.Errorf("a read after a second: got %d statements, want 1", got)
	}
	if got := cost(10, true, 0); got != 10 {
		t.Errorf("10 changes: got %d statements, want 10", got)
	}

	var plan string
	if err := p.db.Raw().QueryRow(
		`SELECT GROUP_CONCAT(index_name)
		FROM information_schema.statistics
		WHERE table_schema = DATABASE() AND table_name = 'api_token'
		AND column_name = 'hash' AND non_unique = 0`).Scan(&plan); err != nil || plan != "hash" {
		t.Errorf("the hash has no unique index: %q, %v", plan, err)
	}
}

// TestLastUseIsNotedOnceAMinute checks this for several nodes and many requests.
func TestLastUseIsNotedOnceAMinute(t *testing.T) {
	p := setUp(t)
	row, token := p.token("ci", Admin)
	nodes, now := []*Gate{p.gate(), p.gate()}, time.Now()
	use := func(address string) {
		for _, g := range nodes {
			for range 20 {
				now = now.Add(believed)
				if _, err := g.ByToken(p.from(address), token, address, false, now); err != nil {
					t.Fatal(err)
				}
			}
		}
	}

	used := func() int64 { return p.number("SELECT used FROM api_token WHERE id = ?", row.ID) }
	if used() != 0 {
		t.Error("it was used before it was used")
	}

	use("10.0.0.1")
	first := used()
	if at := p.number("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"); first < at-int64(
		time.Minute/time.Microsecond) || first > at {
		t.Errorf("got %d, want about %d", first, at)
	}

	use("10.0.0.2")
	if used() != first {
		t.Error("it was noted twice within a minute")
	}

	p.exec("UPDATE api_token SET used = used - 61000000 WHERE id = ?", row.ID) // as if a minute had passed
	nodes = append(nodes[:0], p.gate(), p.gate())
	use("10.0.0.2")
	if n := p.number("SELECT COUNT(*) FROM api_token WHERE id = ? AND used > ? AND used_from = '10.0.0.2'", row.ID,
		first-1); n != 1 {
		t.Error("it was not noted again after a minute")
	}
}

// TestNobodyIsLetInWithoutMySQL also checks that the error does not blame the token.
func TestNobodyIsLetInWithoutMySQL(t *testing.T) {
	p := setUp(t)
	_, token := p.token("ci", Admin)
	g, now := p.gate(), time.Now()
	if _, err := g.ByToken(p.from("a"), token, "a", false, now); err != nil {
		t.Fatal(err)
	}

	p.proxy.Refuse()
	p.proxy.CutAll()
	if _, err := g.ByToken(p.from("a"), token, "a", false, now.Add(believed/2)); err != nil {
		t.Errorf("a reader who is believed: got %v", err)
	}

	for _, late := range []time.Duration{0, believed} {
		_, err := g.ByToken(p.from("a"), token, "a", late == 0, now.Add(late))
		if errors.As(err, new(*Refused)) || !sql.IsAway(err) {
			t.Errorf("MySQL is away: got %v, want that said", err)
		}
	}

	p.proxy.Heal()
	if _, err := g.ByToken(p.from("a"), token, "a", true, now); err != nil {
		t.Errorf("MySQL is back: got %v", err)
	}
}

// TestStrangersAreHeldUp checks that a sender of many made-up tokens does not cause a look-up for
// each, and that known callers of the same address still get in.
func TestStrangersAreHeldUp(t *testing.T) {
	p := setUp(t)
	_, known := p.token("known", Viewer)
	_, fresh := p.token("fresh", Viewer)
	g, ctx, now := p.gate(), p.from("10.0.0.1"), time.Now()
	if _, err := g.ByToken(ctx, known, "10.0.0.1", false, now); err != nil {
		t.Fatal(err)
	}

	// The first read after a transaction costs one more statement.
	if _, err := g.ByToken(ctx, newSecret(tokenPrefix), "10.0.0.3", false, now); err == nil {
		t.Error("a stranger was let in")
	}

	before, busy := p.statements.Load(), 0
	for range 200 {
		_, err := g.ByToken(ctx, newSecret(tokenPrefix), "10.0.0.1", false, now)
		if errors.As(err, new(*Busy)) {
			busy++
		}
	}

	if asked := p.statements.Load() - before; busy != 160 || asked != 40 { // 20 for the address and 20 for the node
		t.Errorf("200 strangers: got %d held up and %d looked up, want 160 and 40", busy, asked)
	}
	if _, err := g.ByToken(ctx, fresh, "10.0.0.1", false, now); !errors.As(err, new(*Busy)) {
		t.Errorf("one of whom nothing is known: got %v, want held up", err)
	}

	secret, _, err := p.SignIn(ctx, &Principal{Name: "ann@b.c", Kind: KindOIDC, Grants: []Grant{{Role: Viewer}}},
		time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	g.Expect(secret)
	if who, err := g.ByLogin(ctx, secret, "10.0.0.1", false, now); err != nil || who.Name != "ann@b.c" {
		t.Errorf("one who has just signed in: got %v, %v", who, err)
	}

	now = now.Add(believed)
	if _, err := g.ByToken(ctx, known, "10.0.0.1", true, now); err != nil {
		t.Errorf("one who was let in before: got %v", err)
	}
	if _, err := g.ByToken(ctx, fresh, "10.0.0.2", false, now); err != nil {
		t.Errorf("from another address: got %v", err)
	}
	if _, err := g.ByToken(ctx, fresh, "10.0.0.1", false, now.Add(time.Second)); err != nil {
		t.Errorf("a while later: got %v", err)
	}
}

// TestCrowdedAtTheStart checks that a good token is accepted even if strangers came first from the
// same address, unless there are very many.
func TestCrowdedAtTheStart(t *testing.T) {
	p := setUp(t)
	_, fresh := p.token("fresh", Viewer)
	g, ctx, now := p.gate(), p.from("10.0.0.1"), time.Now()
	for range 30 {
		_, err := g.ByToken(ctx, newSecret(tokenPrefix), "10.0.0.1", false, now)
		p.refusal("a stranger", err)
	}

	if _, err := g.ByToken(ctx, fresh, "10.0.0.1", false, now); err != nil {
		t.Error(err)
	}
}

// TestAllAtOnce checks that concurrent strangers cause no more look-ups than sequential ones, and
// that holders of good tokens do not delay each other.
func TestAllAtOnce(t *testing.T) {
	p := setUp(t)
	g, now := p.gate(), time.Now()
	ask := func(address string, tokens []string) (refused, busy, in int64) {
		var counts [3]atomic.Int64
		var wg sync.WaitGroup
		for _, token := range tokens {
			wg.Go(func() {
				_, err := g.ByToken(p.from(address), token, address, false, now)
				switch {
				case errors.As(err, new(*Refused)):
					counts[0].Add(1)
				case errors.As(err, new(*Busy)):
					counts[1].Add(1)
				case err == nil:
					counts[2].Add(1)
				default:
					t.Error(err)
				}
			})
		}

		wg.Wait()
		return counts[0].Load(), counts[1].Load(), counts[2].Load()
	}

	var good, bad []string
	for i := range 40 {
		_, token := p.token(fmt.Sprint("t", i), Viewer)
		good = append(good, token, token, token)
	}

	for range 200 {
		bad = append(bad, newSecret(tokenPrefix))
	}

	if refused, busy, in := ask("10.0.0.1", good); in != 120 {
		t.Errorf("40 good tokens at once: got %d refused, %d held up and %d let in, want all let in", refused, busy, in)
	}
	if refused, busy, _ := ask("10.0.0.1", bad); refused != 40 || busy != 160 {
		t.Errorf("200 strangers at once: got %d looked up and %d held up, want 40 and 160", refused, busy)
	}
}

// TestRefusalsAreInTheAudit checks for one line a minute for each address, and few lines for many
// addresses.
func TestRefusalsAreInTheAudit(t *testing.T) {
	p := setUp(t)
	g, now := p.gate(), time.Now()
	refuse := func(address string, n int) {
		for range n {
			g.Refuse(p.from(address), &Refused{Why: "no such token exists"}, now)
		}
	}

	lines := func(address string) int64 {
		return p.number(
			`SELECT COUNT(*)
				FROM audit
				WHERE kind = 'login' AND action = 'refuse' AND who = 'anonymous' AND origin = ?`, address)
	}

	refuse("10.0.0.1", 58)
	refuse("10.0.0.2", 1)
	if a, b := lines("10.0.0.1"), lines("10.0.0.2"); a != 1 || b != 1 {
		t.Errorf("got %d and %d lines, want one of each address", a, b)
	}

	now = now.Add(time.Minute)
	refuse("10.0.0.1", 5)
	if n := p.number(
		"SELECT COUNT(*) FROM audit WHERE reason LIKE '%no such token exists; 57 more were refused since%'"); n != 1 ||
		lines("10.0.0.1") != 2 {
		t.Errorf("a minute later: got %d lines in all, %d that count the others", lines("10.0.0.1"), n)
	}

	for i := range 300 {
		refuse(fmt.Sprintf("10.1.%d.%d", i/250, i%250), 1)
	}

	if n := p.number("SELECT COUNT(*) FROM audit"); n > 45 {
		t.Errorf("300 addresses leave %d lines, want them bounded", n)
	}

	// A caller is refused even if MySQL is away and the audit cannot be written.
	p.proxy.Refuse()
	p.proxy.CutAll()
	now = now.Add(time.Hour)
	refuse("10.0.0.9", 1)
}

// TestForbiddenIsInTheAudit checks that refusals of known callers have lines in their names, some
// at once and then one a minute, and that strangers cannot use these lines up.
func TestForbiddenIsInTheAudit(t *testing.T) {
	p := setUp(t)
	g, now := p.gate(), time.Now()
	forbid := func(who *Principal, address string, n int) {
		for range n {
			g.Forbid(p.from(address), who, "DELETE /api/v1/groups/{name}", "that takes role admin", now)
		}
	}

	lines := func(who string) int64 {
		return p.number(
			`SELECT COUNT(*)
				FROM audit
				WHERE kind = 'request' AND action = 'refuse'
				AND name = 'DELETE /api/v1/groups/{name}' AND who = ?`, who)
	}

	for i := range 300 {
		forbid(nil, fmt.Sprintf("10.1.%d.%d", i/250, i%250), 1)
	}

	if n := lines("anonymous"); n < 20 || n > 40 {
		t.Errorf("300 strangers leave %d lines, want them bounded", n)
	}

	forbid(&Principal{Name: "ann", Kind: "token"}, "10.0.0.1", 25)
	forbid(&Principal{Name: "bob", Kind: "token"}, "10.0.0.1", 1)
	if a, b := lines("ann"), lines("bob"); a != 10 || b != 1 {
		t.Errorf("got %d lines of one who was refused 25 times and %d of one who was once, want 10 and 1", a, b)
	}

	now = now.Add(time.Minute)
	forbid(&Principal{Name: "ann", Kind: "token"}, "10.0.0.1", 2)
	if n := p.number(
		`SELECT COUNT(*)
			FROM audit
			WHERE who = 'ann' AND
				reason = 'that takes role admin; 15 more were refused since the last line of this name'`,
	); n != 1 || lines("ann") != 11 {
		t.Errorf("a minute later: got %d lines, %d that count the others; want 11 and 1", lines("ann"), n)
	}
}
