package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"go-crontab/api/view"
	"go-crontab/internal/auth"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

func viewOfLogin(l *auth.SignedIn, p *auth.Principal) view.LoginRow {
	v := view.LoginRow{
		ID: strconv.FormatInt(l.ID, 10), Who: l.Who, Kind: auth.KindOIDC, Grants: grantsOf(auth.GrantsOf(l)),
		Since: l.Created.Time(), From: l.Origin, Until: l.Expires.Time(), Used: instant(l.Used), UsedFrom: l.UsedFrom,
		Checked: instant(l.Checked), Next: instant(l.CheckAt), Current: p.Login == l.ID,
	}

	if l.TokenID != 0 {
		v.Kind = auth.KindToken
	}
	return v
}

// ownLogin reports whether a login belongs to the token or person of the caller.
func ownLogin(p *auth.Principal, l *auth.LoginRow) bool {
	return l.TokenID == p.Token && l.Who == p.Name
}

// mayEnd returns a function that reports whether the caller may end a login. Cluster admins may end
// all logins, other callers their own.
func mayEnd(p *auth.Principal) func(*auth.LoginRow) bool {
	return func(l *auth.LoginRow) bool { return p.May(admin) || ownLogin(p, l) }
}

// listLogins: GET /api/v1/logins
func (s *Server) listLogins(w http.ResponseWriter, r *http.Request) error {
	p, q := auth.Of(r.Context()), newQuery(r)
	f := auth.LoginFilter{Who: q.text(loginWho)}
	limit := q.limit()

	if c := q.cursor("logins"); c != nil {
		f.After = c.ID
	}
	if err := q.err(); err != nil {
		return err
	}

	if !p.May(admin) {
		if f.Who != "" && f.Who != p.Name {
			return forbid(p, "The sign-ins of others need the role %s without a limit to apps", admin)
		}
		f.Who, f.TokenID = p.Name, &p.Token
	}

	f.Limit = limit + 1 // one more row shows whether there is a next page
	rows, err := auth.Logins(s.cfg.DB.Reader(r.Context()), f)
	if err != nil {
		return err
	}

	out := view.Page[view.LoginRow]{Items: []view.LoginRow{}}
	rows, out.Next = oneMore("logins", rows, limit, func(l *auth.SignedIn) int64 { return l.ID })
	for i := range rows {
		out.Items = append(out.Items, viewOfLogin(&rows[i], p))
	}

	return answer(w, http.StatusOK, out)
}

func noLogin(id string) error {
	return notFound.problem("There is no sign-in %q; GET /api/v1/logins lists them.", cutShort(id))
}

// endLogin: DELETE /api/v1/logins/{id}. A login that the caller may not end looks missing.
func (s *Server) endLogin(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, noLogin)
	if err != nil {
		return err
	}

	switch err := s.issuer.EndLogin(r.Context(), id, mayEnd(auth.Of(r.Context()))); {
	case errors.Is(err, sql.ErrNotFound):
		return noLogin(strconv.FormatInt(id, 10))
	case err != nil:
		return lookAt(err, "GET /api/v1/logins shows whether it still exists. You can safely repeat the request.")
	}

	s.gate.Forget()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endLogins: DELETE /api/v1/logins?who=NAME. The name is required: without it, every login would
// end.
func (s *Server) endLogins(w http.ResponseWriter, r *http.Request) error {
	p, q := auth.Of(r.Context()), newQuery(r)
	who := q.text(loginWhose)
	if who == "" {
		q.wrong(loginWhose.name, problem.Missing.Advise(
			"give the name of the person or token whose sign-ins should end, as in GET /api/v1/logins"))
	}
	if err := q.err(); err != nil {
		return err
	}
	if !p.May(admin) && who != p.Name {
		return forbid(p, "The sign-ins of others need the role %s without a limit to apps", admin)
	}

	n, err := s.issuer.EndLogins(r.Context(), who, mayEnd(p))
	switch {
	case errors.Is(err, sql.ErrNotFound):
		return notFound.problem("Nobody is signed in as %q. The name must be exact; GET /api/v1/logins lists all sign-ins.",
			cutShort(who))
	case err != nil:
		return lookAt(err, "GET /api/v1/logins shows the remaining sign-ins. You can safely repeat the request.")
	}

	s.gate.Forget()
	return answer(w, http.StatusOK, view.Ended{Ended: n})
}

// checker asks the identity provider again about people who have signed in. It is nil without a
// provider, or without a key to seal the provider's tokens.
func (s *Server) checker() *auth.Checker {
	if s.cfg.OIDC == nil || s.issuer.Keys == nil {
		return nil
	}
	return auth.NewChecker(auth.CheckerConfig{
		DB:   s.cfg.DB.DB,
		OIDC: s.cfg.OIDC,
		Keys: s.issuer.Keys,
		Now:  s.cfg.Now,
		Log:  s.cfg.Log,
	})
}

// startChecks checks sign-ins until ctx ends or stop is called. stop returns when the checks have
// ended.
func (s *Server) startChecks(ctx context.Context) (stop func()) {
	c := s.checker()
	if c == nil {
		return func() {}
	}

	checking, cancel := context.WithCancel(ctx)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		_ = c.Run(checking) // it only ends with its context
	}()

	return func() {
		cancel()
		<-checked
	}
}

// issuerOf makes the issuer of a server. A nil ring must not become a non-nil interface.
func issuerOf(cfg *Config) auth.Issuer {
	i := auth.Issuer{DB: cfg.DB.DB}
	if cfg.SecretKeys != nil {
		i.Keys = cfg.SecretKeys
	}
	return i
}
