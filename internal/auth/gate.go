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

// Gate finds the principal of a request. It is safe for concurrent use.
type Gate struct {
	db  *sql.DB
	log *slog.Logger

	strangers Strangers     // bounds look-ups of secrets that turn out to be unknown
	asking    chan struct{} // a place for each look-up of a secret that is not in known
	refusals  refusals      // audit lines of callers that were not identified
	forbidden refusals      // audit lines of known callers

	mu    sync.Mutex
	known map[Hash]finding
}

// finding is the cached result of looking up a secret.
type finding struct {
	who   *Principal
	until time.Time  // reads may use the finding until then; zero: never
	noted job.Micros // the last use that was written to the row
}

const (
	// believed is the time for which reads use a finding. A revocation reaches readers by then.
	believed = time.Second
	// noteEvery is the precision of the recorded last use of a secret. A finer precision would
	// cost a write for each request.
	noteEvery = job.Micros(time.Minute / time.Microsecond)
	// maxKnown bounds the cached findings. When this number is reached, the cache is emptied.
	maxKnown = 4096
	// maxAsking bounds the concurrent look-ups of unknown secrets. It is less than the burst that
	// strangers may use. So if callers with good secrets arrive together, they wait for each
	// other, and none is refused.
	maxAsking = 16
)

// NewGate makes a gate over the rows of a cluster.
func NewGate(db *sql.DB, log *slog.Logger) *Gate {
	return &Gate{
		db: db, log: log, known: map[Hash]finding{},
		strangers: Strangers{
			Each: Limiter{Every: 500 * time.Millisecond, Burst: 20},
			Rest: Limiter{Every: 100 * time.Millisecond, Burst: 20},
		},
		asking:    make(chan struct{}, maxAsking),
		refusals:  newStrangers(),
		forbidden: newForbidden(),
	}
}

// Refused is the error for a secret that is not accepted.
type Refused struct {
	Why  string // shown to the caller; it never repeats the caller's secret
	Name string // of the secret's owner, if it is known
}

func (r *Refused) Error() string { return r.Why }

// Busy is the error for an address that has sent too many unknown secrets.
type Busy struct{ Wait time.Duration }

func (b *Busy) Error() string { return "too many unknown tokens from this address" }

// ByToken returns the holder of a token. If changing is true, the token is always looked up in the
// database. address is where the request came from, and now is when it came.
func (g *Gate) ByToken(ctx context.Context, token, address string, changing bool, now time.Time) (*Principal, error) {
	if !isSecret(tokenPrefix, token) {
		return nil, &Refused{Why: "the token is incomplete, or go-crontab did not issue it"}
	}
	return g.find(ctx, hashOf(token), address, changing, now, g.tokenOf)
}

// ByLogin returns the principal of a login. The table has only the hash of cookie and key
// together. So a cookie with the key of another login finds nothing.
func (g *Gate) ByLogin(
	ctx context.Context, login Login, address string, changing bool, now time.Time,
) (*Principal, error) {
	if !login.Complete() {
		return nil, &Refused{Why: "the cookie and its key were not issued by go-crontab"}
	}
	return g.find(ctx, hashOf(login.String()), address, changing, now, g.loginOf)
}

// lookup finds the principal of a hash. at is the instant of the read by MySQL's clock. used is
// the last use that is recorded in the row.
type lookup func(ctx context.Context, hash Hash) (p *Principal, at, used job.Micros, err error)

// find looks a hash up in the cache and then in the database. It bounds the look-ups of strangers.
func (g *Gate) find(
	ctx context.Context, hash Hash, address string, changing bool, now time.Time, look lookup,
) (*Principal, error) {
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
		f, known = g.recall(hash) // meanwhile another request may have found the secret
	}

	// Look up a known secret even if the limit of its address is used up, because behind a proxy
	// all callers share one address. A node that has just started knows no secret.
	giveBack := func() {}
	if !known {
		var wait time.Duration
		var ok bool
		if giveBack, wait, ok = g.strangers.Take(AddressKey(address), now); !ok {
			return nil, &Busy{wait}
		}
	}

	// A known secret that is refused now also counts as a stranger.
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
		return nil, 0, 0, &Refused{Why: "the token does not exist"}
	}
	if err != nil {
		return nil, 0, 0, err
	}
	p, err := principalOf(&t, at)
	return p, at, t.Used, err
}

// principalOf returns the principal of a token. If the token is not valid at an instant, the error
// is Refused.
func principalOf(t *TokenRow, at job.Micros) (*Principal, error) {
	role, err := ParseRole(t.Role)
	switch {
	case t.Revoked != 0:
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("token %s was revoked at %s", t.Name, t.Revoked)}
	case t.Expires != 0 && t.Expires <= at:
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("token %s expired at %s", t.Name, t.Expires)}
	case err != nil: // the row was changed outside the program
		return nil, &Refused{Name: t.Name, Why: fmt.Sprintf("the role of token %s is unknown to this node", t.Name)}
	}

	return &Principal{
		Name: t.Name, Kind: KindToken, Grants: []Grant{{role, t.Apps}}, Token: t.ID, Expires: t.Expires,
	}, nil
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
	// A login that was made with a token has the grants of the token.
	if l.TokenID != 0 {
		if l.Token.ID != l.TokenID {
			return nil, 0, 0, &Refused{Name: l.Who, Why: "you are signed out"}
		}
		if p, err = principalOf(&l.Token, at); err != nil {
			return nil, 0, 0, err
		}
	} else if err := json.Unmarshal([]byte(l.Grants), &p.Grants); err != nil {
		return nil, 0, 0, &Refused{Name: l.Who, Why: "the role of the sign-in is unknown to this node"}
	}

	p.Login = l.ID
	if p.Expires == 0 || l.Expires < p.Expires {
		p.Expires = l.Expires
	}
	return p, at, l.Used, nil
}

// note writes the last use of a login and its token. A failed write does not matter. If two nodes
// write the same use, the second write changes nothing.
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
		g.log.Debug("cannot record the use of a token or sign-in", "token", p.Token, "login", p.Login, "error", err)
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

// Expect caches a new login as known. So it is looked up even if strangers have used up the limit
// of its address.
func (g *Gate) Expect(login Login) { g.remember(hashOf(login.String()), finding{}) }

// Forget makes the next request of every caller look up its secret. A node calls Forget after a
// revocation, so that the user who revoked something sees the effect at once.
func (g *Gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for hash, f := range g.known { // the secrets stay known, so strangers cannot keep the holders out
		f.until = time.Time{}
		g.known[hash] = f
	}
}

// equal compares two texts in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
