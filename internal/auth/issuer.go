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

// The kinds and actions of audit lines about access.
const (
	AuditToken job.Kind = "token"
	KindLogin  job.Kind = "login"

	KindRequest job.Kind = "request" // a refused request

	ActionRevoke  job.Action = "revoke"
	ActionSignIn  job.Action = "sign_in"
	ActionSignOut job.Action = "sign_out"
	ActionRefuse  job.Action = "refuse"
)

// Issuer makes and revokes tokens and logins in the name of the context's actor. It needs no
// session, because revoking must work even on a node that has lost its session. If the commit of a
// change is unknown, Issuer finds out the result before it returns. If MySQL stays out of reach,
// the error is sql.Unknown.
type Issuer struct {
	DB   *sql.DB
	Keys Sealer // seals refresh tokens; nil: the provider is not asked again
}

// DefaultLife is the life of a token if none is given.
const DefaultLife = 90 * 24 * time.Hour

// Spec describes a token to make.
type Spec struct {
	Name string
	Grant
	Life    time.Duration // from its creation; zero: Expires is used
	Expires job.Micros    // if both are zero the token lives until it is revoked
}

func (s *Spec) check() error {
	var p job.Problems
	if err := CheckName(s.Name); err != nil {
		p.Put("name", problem.Of(err))
	}
	if s.Role <= None || s.Role > Admin {
		p.Add("role", problem.Missing.Advise("give one of viewer, operator, admin"))
	}
	if err := s.Grant.Check(); err != nil {
		p.Put("apps", problem.Of(err))
	}

	if p != nil {
		return p
	}
	return nil
}

// Create makes a token. Only Create returns the token's text. Nobody can read it later. If a
// living token has the name, the error is sql.ErrExists.
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

func (s *Spec) insert(
	ctx context.Context, tx *sql.Tx, token string, at job.Micros,
) (row TokenRow, line *job.Entry, err error) {
	row = TokenRow{
		Name: s.Name, Role: s.Role.String(), Apps: s.Apps, Created: at, By: job.ActorOf(ctx).Who, Expires: s.Expires,
	}
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

// tokenLine begins the audit line of a change of a token.
func tokenLine(a job.Action, t *TokenRow) *job.Entry {
	return &job.Entry{Action: a, Kind: AuditToken, Ref: t.ID, Name: t.Name}
}

// tokenJSON returns a token as the audit keeps it.
func tokenJSON(t *TokenRow) string {
	v := struct {
		Role    string   `json:"role"`
		Apps    []string `json:"apps,omitempty"`
		Expires string   `json:"expires,omitempty"`
	}{t.Role, t.Apps, ""}

	if t.Expires != 0 {
		v.Expires = t.Expires.String()
	}

	b, _ := json.Marshal(v) // strings never fail
	return string(b)
}

// Revoke ends a token at once, on all nodes. A repeated Revoke changes nothing.
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

// bootstrapName is the name of the token that Bootstrap makes.
const bootstrapName = "bootstrap"

// Bootstrap makes the first token of a cluster: an admin's token that does not expire. If the
// first token was made before, it returns "". With again, it makes a new token nevertheless and
// revokes the earlier one, for users who have lost all tokens.
//
// If we die after the commit, nobody knows the token. Then Bootstrap must also be called with
// again.
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

// Replace makes a new token. If a living token has the same name, Replace revokes that one.
func (i Issuer) Replace(ctx context.Context, s Spec) (token string, err error) {
	if err := s.check(); err != nil {
		return "", err
	}
	token = newSecret(tokenPrefix)
	return token, i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (*job.Entry, error) {
		return i.replace(ctx, tx, s, token, at)
	})
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

// Living reports whether the API would accept a token now as that of an admin of all apps.
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
