package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go-crontab/internal/boottime"
	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

// TestRegister loses the COMMIT that inserts the session in every way. The resulting session has
// its row, and is the only one that will ever beat.
func TestRegister(t *testing.T) {
	f := setUp(t)
	commit := faultproxy.CommitOf("INSERT INTO session")
	for name, c := range map[string]struct {
		rules []faultproxy.Rule
		rows  int64 // sessions in the table; one without a process is buried later
	}{
		"nothing goes wrong":       {nil, 1},
		"the reply is lost":        {[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutAfter()}}, 1},
		"the commit never arrives": {[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutBefore()}}, 1},
		"it never arrives, twice": {
			[]faultproxy.Rule{{Match: commit, Times: 2, Action: faultproxy.CutBefore()}}, 1,
		},
		"the commit is refused": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.Error(1213, "40001", "Deadlock found")}}, 1,
		},
		"the statement is cut": {
			[]faultproxy.Rule{{Match: faultproxy.SQL("INSERT INTO session"), Action: faultproxy.CutAfter()}}, 1,
		},
		"the commit is held for long": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.HoldBefore(1800 * time.Millisecond)}}, 1,
		},
		"lost, and not to be settled": {
			[]faultproxy.Rule{{Match: commit, Action: faultproxy.CutAfter()},
				{Match: faultproxy.SQL("FROM session WHERE id .* FOR UPDATE"), Action: faultproxy.CutBefore()}}, 2,
		},
		"MySQL is not there at first": {
			[]faultproxy.Rule{{Match: faultproxy.SQL("SELECT VERSION"), Times: 3, Action: faultproxy.CutBefore()}}, 1,
		},
		"the server is starting at first": {
			[]faultproxy.Rule{{Match: faultproxy.SQL("FROM setting"),
				Action: faultproxy.Error(1053, "08S01", "Server shutdown in progress")}}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.reset(t)
			var injected []*faultproxy.Injected
			for _, r := range c.rules {
				injected = append(injected, f.proxy.Add(r))
			}

			before := boottime.Now()
			var said bytes.Buffer
			s, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{
				Node: "n", Address: "a:1", PID: 7, Version: "v", Slots: 3,
			},
				slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), &said), nil)))
			if err != nil {
				t.Fatal(err)
			}

			if strings.Contains(said.String(), "waiting to join") {
				t.Error("it waited for a session that it had inserted itself")
			}

			for _, i := range injected {
				if i.Fired() == 0 {
					t.Error("a fault was not in effect")
				}
			}

			f.want("its row", 1, `
				SELECT COUNT(*)
				FROM session
				WHERE id = ? AND node = 'n' AND address = 'a:1' AND pid = 7 AND version = 'v' AND slots = 3`, s.id[:])

			f.want("sessions", c.rows, "SELECT COUNT(*) FROM session")
			f.want("its number", int64(s.Number()), `
				SELECT id
				FROM life
				WHERE session = ? AND node = 'n' AND started > 1 AND gone IS NULL`, s.id[:])

			if sent := time.Duration(s.lease.sent.Load()); sent < before || sent > boottime.Now() {
				t.Errorf("got a lease that counts from %s, want from its insert, after %s", sent, before)
			}
			if index, of := s.Share(); index != -1 || of != 0 {
				t.Errorf("got share %d of %d; want none before the first look", index, of)
			}
		})
	}
}

func TestRegisterRefused(t *testing.T) {
	f := setUp(t)
	for name, c := range map[string]struct {
		damage func(f *fixture)
		text   string
	}{
		"a node with another expiry": {func(f *fixture) {
			f.exec("INSERT INTO setting VALUES ('session_expiry_ms', '20000')")
			f.peer(1)
		}, "this node's session expiry is 5s, but the cluster's is 20s (running nodes: 1); start it with --session-expiry=20s"},
		"a lock row is missing": {func(f *fixture) {
			f.exec("DELETE FROM locks")
			f.Cleanup(func() { f.exec("INSERT INTO locks (id, name) VALUES (0, 'session')") })
		}, "the table locks lacks the row session"},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.reset(t)
			c.damage(f)
			before := f.number("SELECT COUNT(*) FROM session")
			s, err := Register(t.Context(), f.db, NewClock(), f.timings, Identity{}, f.log)
			if s != nil || !errors.Is(err, sql.ErrRefuseJoin) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want a refusal: %s", err, c.text)
			}
			f.want("sessions", before, "SELECT COUNT(*) FROM session")
		})
	}
}

// TestRegisterGivesUp: the end of the context ends the wait for an absent MySQL.
func TestRegisterGivesUp(t *testing.T) {
	f := setUp(t)
	f.proxy.Refuse()
	stop := errors.New("the node was stopped")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { end(stop) })
	if _, err := Register(ctx, f.db, NewClock(), f.timings, Identity{}, f.log); err != stop {
		t.Errorf("got %v, want %v", err, stop)
	}
}

// TestSessionOutlivesItsRegistration: the context of the registration may end before the session.
func TestSessionOutlivesItsRegistration(t *testing.T) {
	f := setUp(t)
	ctx, end := context.WithCancel(t.Context())
	s, err := Register(ctx, f.db, NewClock(), f.timings, Identity{Node: "n"}, f.log)
	if err != nil {
		t.Fatal(err)
	}

	end()
	if s.Context().Err() != nil || !s.Fresh() {
		t.Error("the session ended with the context that registered it")
	}
	if err := s.End(t.Context(), f.db); err != nil {
		t.Fatal(err)
	}

	f.want("sessions after its end", 0, "SELECT COUNT(*) FROM session")
	if !f.gone(s.id) {
		t.Error("its life is not over")
	}
}

// TestMint: a run id is never issued twice, and no other session can issue it.
func TestMint(t *testing.T) {
	f := setUp(t)
	one, two := f.join("one"), f.join("two")
	base := int64(one.Number()) << counterBits
	for _, c := range []struct {
		n    int
		want int64
	}{{1, 1}, {10, 2}, {1, 12}} {
		if got := one.Mint(c.n); got != base+c.want {
			t.Errorf("%d ids begin with %d, want %d", c.n, got, base+c.want)
		}
	}

	if got, want := two.Mint(1), int64(two.Number())<<counterBits+1; got != want || two.Number() <= one.Number() {
		t.Errorf("another session gives %d, its number is %d behind %d; want %d", got, two.Number(), one.Number(), want)
	}

	const last = 1<<counterBits - 1<<20 - 1
	one.minted.Store(last - 2)
	if got := one.Mint(2); got != base+last-1 || one.Lost() {
		t.Errorf("nearly the last two begin with %d, it is lost: %v; want %d, false", got, one.Lost(), base+last-1)
	}
	if one.Mint(1); !one.Lost() || one.Fresh() {
		t.Error("a session that has no ids left goes on")
	}
}

// TestRegisterBesideTheDead: a node with a different expiry than a cluster that lost all its nodes
// waits until it has seen them silent for that time, and is refused if a node beats in between.
func TestRegisterBesideTheDead(t *testing.T) {
	f := setUp(t)
	const theirs = 5500 * time.Millisecond
	register := func() (took time.Duration, err error) {
		began := time.Now()
		_, err = Register(t.Context(), f.db, NewClock(), f.timings, Identity{Node: "n"}, f.log)
		return time.Since(began), err
	}

	f.exec("INSERT INTO setting VALUES ('session_expiry_ms', '5500')")
	f.peer(1)
	f.exec("UPDATE session SET beat_at = 1")
	time.AfterFunc(time.Second, func() {
		_, _ = f.direct.Raw().Exec(`
			UPDATE session
			SET beat = beat + 1, beat_at = CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)`)
	})

	if took, err := register(); !errors.Is(err, sql.ErrRefuseJoin) {
		t.Errorf("one beats after a second: got %v after %s, want a refusal", err, took)
	}

	f.exec("UPDATE session SET beat_at = 1")
	if took, err := register(); err != nil || took < theirs {
		t.Errorf("none beats: got %v after %s, want it to join after %s", err, took, theirs)
	}

	f.want("the expiry", 5000, "SELECT CAST(value AS SIGNED) FROM setting WHERE name = 'session_expiry_ms'")
}
