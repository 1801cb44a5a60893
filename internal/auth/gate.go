package auth

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// Gate tells who asks. It is safe for concurrent use.
type Gate struct {
	db  *sql.DB
	log *slog.Logger

	strangers Strangers     // look-ups of secrets that turned out to be none
	asking    chan struct{} // held while a secret is looked up of which nothing is known
	refusals  refusals      // of strangers
	forbidden refusals      // of those who are known

	mu    sync.Mutex
	known map[Hash]finding
}

// finding is who a secret was found to belong to.
type finding struct {
	who   *Principal
	until time.Time  // believed for reads until then; zero: not at all
	noted job.Micros // when its last use was written down
}

const (
	// believed is how long a reader is not looked up again. Revocations reach readers by then.
	believed = time.Second
	// noteEvery is how exact the time of the last use is. More often would be a write for each request.
	noteEvery = job.Micros(time.Minute / time.Microsecond)
	// maxKnown bounds the findings. When it is reached all are forgotten, and looked up again.
	maxKnown = 4096
	// maxAsking is how many unknown secrets are looked up at once. It is less than the burst of strangers: those who
	// hold good ones and come together wait for each other, and crowd nobody out.
	maxAsking = 16
)

// NewGate makes a gate over the rows of a cluster.
func NewGate(db *sql.DB, log *slog.Logger) *Gate {
	return &Gate{
		db: db, log: log, known: map[Hash]finding{},
		strangers: Strangers{Each: Limiter{Every: 500 * time.Millisecond, Burst: 20}, Rest: Limiter{Every: 100 * time.Millisecond, Burst: 20}},
		asking:    make(chan struct{}, maxAsking),
		refusals:  newStrangers(),
		forbidden: newForbidden(),
	}
}

// Refused is the error of a secret that lets nobody in.
type Refused struct {
	Why  string // to be told to whoever has it: they could find out anyway
	Name string // whose it was, if that is known
}

func (r *Refused) Error() string { return r.Why }

// Busy is the error of an address from which too many came who could not be let in.
type Busy struct{ Wait time.Duration }

func (b *Busy) Error() string { return "too many unknown tokens from this address" }

// ByToken tells who holds a token. changing requests are looked up in any case. address is where the request came
// from, now when.
func (g *Gate) ByToken(ctx context.Context, token, address string, changing bool, now time.Time) (*Principal, error) {
	if !isSecret(tokenPrefix, token) {
		return nil, &Refused{Why: "it is no token that go-crontab made, or it is not complete"}
	}
	return g.find(ctx, hashOf(token), address, changing, now, g.tokenOf)
}

// ByLogin returns who is signed in. It finds nobody for a cookie with the key of another login: only the hash of the pair
// is in the table.
func (g *Gate) ByLogin(ctx context.Context, login Login, address string, changing bool, now time.Time) (*Principal, error) {
	if !login.Complete() {
		return nil, &Refused{Why: "the cookie and the key are none that go-crontab made"}
	}
	return g.find(ctx, hashOf(login.String()), address, changing, now, g.loginOf)
}

// lookup reads who a hash belongs to, at which instant by MySQL's clock, and when that was last noted.
type lookup func(ctx context.Context, hash Hash) (p *Principal, at, used job.Micros, err error)

func (g *Gate) find(ctx context.Context, hash Hash, address string, changing bool, now time.Time, look lookup) (*Principal, error) {
	f, known := g.recall(hash)
	if known && !changing && now.Before(f.until) {
		return f.who, nil
	}
	if !known {
		select {
		case g.asking <- struct{}{}:
			defer func() { <-g.asking }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		f, known = g.recall(hash) // another request with it may have been let in meanwhile
	}
	// One who was let in before is looked up also when strangers crowd his address: behind a proxy they share it. After a
	// start nobody is known.
	giveBack := func() {}
	if !known {
		var wait time.Duration
		var ok bool
		if giveBack, wait, ok = g.strangers.Take(AddressKey(address), now); !ok {
			return nil, &Busy{wait}
		}
	}
	p, at, used, err := look(ctx, hash)
	if errors.As(err, new(*Refused)) {
		g.forget(hash)
		if known {
			g.strangers.Each.Take(AddressKey(address), now, 0)
		}
		return nil, err
	}
	giveBack()
	if err != nil {
		return nil, err
	}
	f = finding{who: p, until: now.Add(believed), noted: max(used, f.noted)}
	if p.Expires != 0 {
		f.until = now.Add(min(believed, p.Expires.Sub(at)))
	}
	if at-f.noted >= noteEvery {
		f.noted = at
		g.note(ctx, p, at, address)
	}
	g.remember(hash, f)
	return p, nil
}

func (g *Gate) tokenOf(ctx context.Context, hash Hash) (*Principal, job.Micros, job.Micros, error) {
	t, at, err := tokenByHash(g.db.Reader(ctx), hash)
	if errors.Is(err, sql.ErrNotFound) {
		return nil, 0, 0, &Refused{Why: "there is no such token"}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	p, err := principalOf(&t, at)
	return p, at, t.Used, err
}

// principalOf tells what a token's holder may do at an instant.
func principalOf(t *TokenRow, at job.Micros) (*Principal, error) {
	role, err := ParseRole(t.Role)
	switch {
	case t.Revoked != 0:
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("token %s was revoked at %s", t.Name, t.Revoked)}
	case t.Expires != 0 && t.Expires <= at:
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("token %s expired at %s", t.Name, t.Expires)}
	case err != nil: // a hand wrote it
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("token %s has no role that this node knows", t.Name)}
	}
	return &Principal{Name: t.Name, Kind: KindToken, Grants: []Grant{{role, t.Apps}}, Token: t.ID, Expires: t.Expires}, nil
}

func (g *Gate) loginOf(ctx context.Context, hash Hash) (*Principal, job.Micros, job.Micros, error) {
	l, at, err := loginByHash(g.db.Reader(ctx), hash)
	if errors.Is(err, sql.ErrNotFound) {
		return nil, 0, 0, &Refused{Why: "you are signed out"}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	if l.Expires <= at {
		return nil, 0, 0, &Refused{Name: l.Who, Why: fmt.Sprintf("the sign-in expired at %s", l.Expires)}
	}
	p := &Principal{Name: l.Who, Kind: KindOIDC}
	if l.TokenID != 0 {
		if l.Token.ID != l.TokenID {
			return nil, 0, 0, &Refused{Name: l.Who, Why: "you are signed out"}
		}
		if p, err = principalOf(&l.Token, at); err != nil {
			return nil, 0, 0, err
		}
	} else if err := json.Unmarshal([]byte(l.Grants), &p.Grants); err != nil {
		return nil, 0, 0, &Refused{Name: l.Who, Why: "the sign-in has no role that this node knows"}
	}
	p.Login = l.ID
	if p.Expires == 0 || l.Expires < p.Expires {
		p.Expires = l.Expires
	}
	return p, at, l.Used, nil
}

// note writes down that a login and a token were used. It does not matter if that fails, or if two nodes do it: the later
// one finds it done.
func (g *Gate) note(ctx context.Context, p *Principal, at job.Micros, address string) {
	err := g.db.Tx(ctx, func(tx *sql.Tx) error {
		if p.Login != 0 {
			if err := useLogin(tx, p.Login, at, at-noteEvery, address); err != nil {
				return err
			}
		}
		if p.Token == 0 {
			return nil
		}
		return useToken(tx, p.Token, at, at-noteEvery, address)
	})
	if err != nil {
		g.log.Debug("the use of a token or login is not noted", "token", p.Token, "login", p.Login, "error", err)
	}
}

func (g *Gate) recall(hash Hash) (finding, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, known := g.known[hash]
	return f, known
}

func (g *Gate) remember(hash Hash, f finding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnown {
		clear(g.known)
	}
	g.known[hash] = f
}

func (g *Gate) forget(hash Hash) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, hash)
}

// Expect tells of a login that was just made: it is looked up also when strangers crowd its address.
func (g *Gate) Expect(login Login) { g.remember(hashOf(login.String()), finding{}) }

// Forget has everybody looked up again: somebody was signed out or revoked by way of this node, and nobody should find
// that it did not work.
func (g *Gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for hash, f := range g.known { // whom the node has let in before it still knows
		f.until = time.Time{}
		g.known[hash] = f
	}
}

// equal compares two texts in a time that tells nothing about where they differ.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
