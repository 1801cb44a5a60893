package auth

import (
	"log/slog"
	"testing"
	"time"

	"go-crontab/sql"
	"go-crontab/test/faultproxy"
)

// access is a cluster with the tokens ann and bob, a sign-in by ann's token, and two sign-ins of
// eve by a provider.
type access struct {
	*place
	look   *sql.DB // not through the proxy
	gate   *Gate
	check  *Checker
	ann    TokenRow
	token  string // ann's
	byAnn  Login
	eve    *Principal
	byEve  Login
	second Login // eve's too
}

// unlimited allows the end of every login.
func unlimited(*LoginRow) bool { return true }

// setUpAccess makes the rows. The clock of both pools is stopped. One pool does not use the proxy.
func (p *place) setUpAccess(db, look *sql.DB) *access {
	p.Helper()
	keys := plainSealer{"k1"}
	quiet := slog.New(slog.DiscardHandler)
	a := &access{
		place: &place{T: p.T, db: db, dsn: p.dsn, proxy: p.proxy, Issuer: Issuer{DB: db, Keys: keys}},
		look:  look,
		gate:  NewGate(db, quiet),
		check: NewChecker(CheckerConfig{DB: db, Keys: keys, Log: quiet}),
		eve: &Principal{
			Name: "eve@example.com", Kind: KindOIDC, Grants: []Grant{{Operator, []string{"shop"}}},
			Renewal: &Renewal{Subject: "eve", Refresh: "first", Within: time.Hour},
		},
	}

	a.ann, a.token = a.place.token("ann", Admin)
	a.place.token("bob", Viewer, "shop")
	a.byAnn = a.signIn(&Principal{Name: "ann", Kind: "token", Token: a.ann.ID, Grants: []Grant{{Role: Admin}}})
	a.byEve, a.second = a.signIn(a.eve), a.signIn(a.eve)
	return a
}

func (a *access) signIn(p *Principal) Login {
	a.Helper()
	login, _, err := a.SignIn(a.from("10.0.0.9"), p, 12*time.Hour)
	if err != nil {
		a.Fatal(err)
	}
	return login
}

// row is eve's first sign-in.
func (a *access) row() *LoginRow {
	a.Helper()
	rows, err := dueLogins(a.db.Reader(a.Context()), a.ann.Created+micros(2*time.Hour), 10)
	if err != nil || len(rows) != 2 {
		a.Fatalf("got %d sign-ins to check, %v", len(rows), err)
	}
	if rows[0].ID > rows[1].ID {
		return &rows[1]
	}
	return &rows[0]
}

// who lists the secrets that are accepted, and the data that the provider will be shown. It reads
// MySQL, not a node's cache.
func (a *access) who(extra ...string) map[string]string {
	a.Helper()
	out := map[string]string{}
	gate, now := NewGate(a.look, slog.New(slog.DiscardHandler)), time.Now()
	for i, token := range append([]string{a.token}, extra...) {
		if p, err := gate.ByToken(a.Context(), token, "a", true, now); err == nil {
			out["token "+string(rune('0'+i))] = p.String()
		}
	}

	for name, login := range map[string]Login{"ann": a.byAnn, "eve": a.byEve, "eve again": a.second} {
		if p, err := gate.ByLogin(a.Context(), login, "a", true, now); err == nil {
			out[name] = p.String()
		}
	}

	rows, err := dueLogins(a.db.Reader(a.Context()), a.ann.Created+micros(2*time.Hour), 10)
	if err != nil {
		a.Fatal(err)
	}

	for i := range rows {
		r, err := openRenewal(plainSealer{"k1"}, &rows[i])
		if err != nil {
			a.Fatal(err)
		}
		out["refresh "+r.Refresh] = rows[i].Who
	}

	return out
}

var changesOfAccess = map[string]func(*access) func() (any, error){
	"make a token": func(a *access) func() (any, error) {
		return func() (any, error) {
			_, token, err := a.Create(a.from("a"), Spec{
				Name: "new", Grant: Grant{Operator, []string{"shop"}}, Life: time.Hour,
			})
			return a.who(token), err
		}
	},
	"revoke a token": func(a *access) func() (any, error) {
		return func() (any, error) {
			err := a.Revoke(a.from("a"), a.ann.ID)
			return a.who(), err
		}
	},
	"make the first token": func(a *access) func() (any, error) {
		return func() (any, error) {
			token, err := a.Bootstrap(a.from("a"), false)
			return a.who(token), err
		}
	},
	"make the first token again": func(a *access) func() (any, error) {
		old, err := a.Bootstrap(a.from("a"), false)
		if err != nil {
			a.Fatal(err)
		}
		return func() (any, error) {
			token, err := a.Bootstrap(a.from("a"), true)
			return a.who(token, old), err
		}
	},
	"replace a token": func(a *access) func() (any, error) {
		return func() (any, error) {
			token, err := a.Replace(a.from("a"), Spec{Name: "ann", Grant: Grant{Role: Viewer}})
			return a.who(token), err
		}
	},
	"sign in": func(a *access) func() (any, error) {
		return func() (any, error) {
			p := *a.eve
			p.Renewal = &Renewal{Subject: "eve", Refresh: "third", Within: time.Hour}
			_, expires, err := a.SignIn(a.from("a"), &p, time.Hour)
			return []any{a.who(), expires}, err
		}
	},
	"sign out": func(a *access) func() (any, error) {
		id := a.row().ID
		return func() (any, error) {
			err := a.SignOut(a.from("a"), &Principal{Name: "eve@example.com", Login: id})
			return a.who(), err
		}
	},
	"end a sign-in": func(a *access) func() (any, error) {
		id := a.row().ID
		return func() (any, error) {
			err := a.EndLogin(a.from("a"), id, unlimited)
			return a.who(), err
		}
	},
	"end all sign-ins of somebody": func(a *access) func() (any, error) {
		return func() (any, error) {
			n, err := a.EndLogins(a.from("a"), "eve@example.com", unlimited)
			return []any{a.who(), n}, err
		}
	},
	"note a use": func(a *access) func() (any, error) {
		id := a.row().ID
		return func() (any, error) {
			a.gate.note(a.Context(), &Principal{Token: a.ann.ID, Login: id}, a.ann.Created+micros(time.Hour),
				"10.0.0.8")
			return nil, nil
		}
	},
	"note a refusal": func(a *access) func() (any, error) {
		return func() (any, error) {
			a.gate.Forbid(a.Context(), &Principal{Name: "bob"}, "GET /x", "no", time.Now())
			return nil, nil
		}
	},
	"move a check": func(a *access) func() (any, error) {
		l := a.row()
		return func() (any, error) { return a.check.move(a.Context(), l, l.CheckAt+micros(time.Hour)) }
	},
	"keep another role": func(a *access) func() (any, error) {
		l := a.row()
		return func() (any, error) {
			v := &Vouched{
				Grants: []Grant{{Role: Viewer}}, Known: true, Renewal: &Renewal{
					Subject: "eve", Refresh: "next", Within: time.Hour,
				},
			}
			err := a.check.write(a.Context(), l, v, l.CheckAt)
			return a.who(), err
		}
	},
	"end what the provider does not vouch for": func(a *access) func() (any, error) {
		l := a.row()
		return func() (any, error) {
			err := a.check.end(a.Context(), l, &Refused{Name: l.Who, Why: "gone"})
			return a.who(), err
		}
	},
}

// TestAccessRunsAgain refuses each statement of each change of tokens and sign-ins once, as after a
// deadlock.
func TestAccessRunsAgain(t *testing.T) {
	p := setUp(t)
	direct, err := sql.Open(p.dsn, sql.DefaultTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { direct.Close() })
	schema := faultproxy.NewSchema(t, direct.Raw())

	standing := *p
	standing.dsn = faultproxy.StandStill(p.dsn, 1_800_000_000)
	db := standing.open()
	look, err := sql.Open(standing.dsn, sql.DefaultTimeouts, 2)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { look.Close() })
	for name, change := range changesOfAccess {
		t.Run(name, func(t *testing.T) {
			q := standing
			q.T = t
			faultproxy.RefuseEach(t, schema, func() (*faultproxy.Proxy, func() (any, error)) {
				a := q.setUpAccess(db, look)
				changed := change(a)
				return p.proxy, func() (any, error) {
					answer, err := changed()
					for _, random := range []string{"UPDATE api_token SET hash = RPAD(id, 32, '.')",
						"UPDATE login SET hash = RPAD(id, 32, '.'), sealed = ''"} {
						if _, err := direct.Raw().Exec(random); err != nil {
							t.Fatal(err)
						}
					}
					return answer, err
				}
			})
		})
	}
}
