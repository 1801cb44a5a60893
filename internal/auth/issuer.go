package auth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
)

// What the audit calls changes of who may do what.
const (
	AuditToken job.Kind = "token"
	KindLogin  job.Kind = "login"

	KindRequest job.Kind = "request" // one that was refused

	ActionRevoke  job.Action = "revoke"
	ActionSignIn  job.Action = "sign_in"
	ActionSignOut job.Action = "sign_out"
	ActionRefuse  job.Action = "refuse"
)

// Issuer makes and revokes tokens and logins, in the name of the actor of its context. It needs no session: revoking
// must work also while a node may change nothing else. A change whose commit is unknown is settled before it is
// answered; if MySQL stays out of reach the error is sql.Unknown.
type Issuer struct {
	DB   *sql.DB
	Keys Sealer // seal what providers want to see again; nil: they are not asked again
}

// DefaultLife is how long a token lives for which nothing else is said.
const DefaultLife = 90 * 24 * time.Hour

// Spec says which token to make.
type Spec struct {
	Name string
	Grant
	Life    time.Duration // counted from its creation, unless
	Expires job.Micros    // says until when; neither: it lives until it is revoked
}

func (s *Spec) check() error {
	var p job.Problems
	if err := CheckName(s.Name); err != nil {
		p.Put("name", problem.Of(err))
	}
	if s.Role <= None || s.Role > Admin {
		p.Add("role", problem.Missing.Advise("want one of viewer, operator, admin"))
	}
	if err := s.Grant.Check(); err != nil {
		p.Put("apps", problem.Of(err))
	}
	if p != nil {
		return p
	}
	return nil
}

// Create makes a token. Its text is returned this once; nobody can read it again. sql.ErrExists means that a living
// token has the name.
func (i Issuer) Create(ctx context.Context, s Spec) (row TokenRow, token string, err error) {
	if err := s.check(); err != nil {
		return row, "", err
	}
	token = newSecret(tokenPrefix)
	err = i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (line *job.Entry, err error) {
		row, line, err = s.insert(ctx, tx, token, at)
		return line, err
	})
	return row, token, err
}

func (s *Spec) insert(ctx context.Context, tx *sql.Tx, token string, at job.Micros) (row TokenRow, line *job.Entry, err error) {
	row = TokenRow{Name: s.Name, Role: s.Role.String(), Apps: s.Apps, Created: at, By: job.ActorOf(ctx).Who, Expires: s.Expires}
	if s.Life != 0 {
		row.Expires = at + job.Micros(s.Life/time.Microsecond)
	}
	if row.Expires != 0 && row.Expires <= at {
		return row, nil, job.Wrong("expires", problem.InThePast)
	}
	if row.ID, err = insertToken(tx, &row, hashOf(token)); err != nil {
		return row, nil, err
	}
	line = tokenLine(job.ActionCreate, &row)
	line.Became = tokenJSON(&row)
	return row, line, nil
}

// tokenLine begins the line of a change of a token.
func tokenLine(a job.Action, t *TokenRow) *job.Entry {
	return &job.Entry{Action: a, Kind: AuditToken, Ref: t.ID, Name: t.Name}
}

// tokenJSON is what the audit keeps of a token.
func tokenJSON(t *TokenRow) string {
	v := struct {
		Role    string   `json:"role"`
		Apps    []string `json:"apps,omitempty"`
		Expires string   `json:"expires,omitempty"`
	}{t.Role, t.Apps, ""}
	if t.Expires != 0 {
		v.Expires = t.Expires.String()
	}
	b, _ := json.Marshal(v) // texts cannot fail
	return string(b)
}

// Revoke ends a token at once, on all nodes. Revoking again changes nothing.
func (i Issuer) Revoke(ctx context.Context, id int64) error {
	return i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (*job.Entry, error) {
		t, err := lockToken(tx, id)
		if err != nil || t.Revoked != 0 {
			return nil, err
		}
		return revoke(tx, &t, at)
	})
}

func revoke(tx *sql.Tx, t *TokenRow, at job.Micros) (*job.Entry, error) {
	line := tokenLine(ActionRevoke, t)
	line.Was = tokenJSON(t)
	return line, revokeToken(tx, t.ID, at)
}

// bootstrapName is what the token that Bootstrap makes is called.
const bootstrapName = "bootstrap"

// Bootstrap makes the first token of a cluster, an admin's that does not expire; "" if that was done before. With again
// it makes one all the same, in place of the former if that still lives: for whoever has lost them all.
//
// If we die after the commit, nobody knows the token: again is for that, too.
func (i Issuer) Bootstrap(ctx context.Context, again bool) (token string, err error) {
	made := newSecret(tokenPrefix)
	err = i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (*job.Entry, error) {
		token = ""
		first, err := once(tx, "bootstrap", at)
		if err != nil || !first && !again {
			return nil, err
		}
		token = made
		return i.replace(ctx, tx, Spec{Name: bootstrapName, Grant: Grant{Role: Admin}}, made, at)
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Replace makes a token in place of the living one of its name, if there is one.
func (i Issuer) Replace(ctx context.Context, s Spec) (token string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	token = newSecret(tokenPrefix)
	return token, i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (*job.Entry, error) { return i.replace(ctx, tx, s, token, at) })
}

func (i Issuer) replace(ctx context.Context, tx *sql.Tx, s Spec, token string, at job.Micros) (*job.Entry, error) {
	old, err := lockTokenNamed(tx, s.Name)
	switch {
	case err == nil:
		line, err := revoke(tx, &old, at)
		if err != nil {
			return nil, err
		}
		line.At = at
		if err := tx.Note(line); err != nil {
			return nil, err
		}
	case !errors.Is(err, sql.ErrNotFound):
		return nil, err
	}
	_, line, err := s.insert(ctx, tx, token, at)
	return line, err
}

// Living tells whether a token would be let in as an unlimited admin now.
func (i Issuer) Living(ctx context.Context, token string) (bool, error) {
	if !LooksLikeToken(token) {
		return false, nil
	}
	t, at, err := tokenByHash(i.DB.Reader(ctx), hashOf(token))
	if errors.Is(err, sql.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p, err := principalOf(&t, at)
	return err == nil && p.May(Admin), nil
}
