package auth

import (
	"context"
	"encoding/json"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
)

// maxLogins is the most browsers in which one person may be signed in. A further sign-in ends the
// oldest login.
const maxLogins = 100

// SignIn makes a login for a principal. It returns the browser's secrets and the time at which the
// login ends. A login made with a token has the token's grants. It ends with the token, or
// earlier.
func (i Issuer) SignIn(
	ctx context.Context, p *Principal, life time.Duration,
) (login Login, expires job.Micros, err error) {
	login = newLogin()
	l := LoginRow{Hash: hashOf(login.String()), Who: p.Name, TokenID: p.Token, Origin: job.ActorOf(ctx).Origin}
	if l.Grants, err = grantsJSON(p.Grants); err != nil {
		return Login{}, 0, err
	}
	if err := i.seal(&l, p.Renewal); err != nil {
		return Login{}, 0, err
	}

	err = i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (*job.Entry, error) {
		l.Created, l.Expires = at, at+micros(life)
		if p.Expires != 0 {
			l.Expires = min(l.Expires, p.Expires)
		}
		if l.Sealed != nil {
			l.CheckAt = at + micros(p.Renewal.Within)
		}
		if err := tidyLogins(tx, p.Name, maxLogins-1, at); err != nil {
			return nil, err
		}

		id, err := insertLogin(tx, &l)
		if err != nil {
			return nil, err
		}

		return &job.Entry{Action: ActionSignIn, Kind: KindLogin, Ref: id, Name: p.Name, Reason: p.Kind,
			Became: l.Grants, Actor: p.actor(l.Origin)}, nil
	})

	return login, l.Expires, err
}

// seal seals a renewal into the login's row. Without keys it stores nothing, because the refresh
// token must not be in MySQL unsealed.
func (i Issuer) seal(l *LoginRow, r *Renewal) error {
	if i.Keys == nil || r == nil {
		return nil
	}
	return r.seal(i.Keys, l)
}

// SignOut ends the login of a principal, if it has one.
func (i Issuer) SignOut(ctx context.Context, p *Principal) error {
	if p.Login == 0 {
		return nil
	}
	return i.DB.RecordAt(ctx, func(tx *sql.Tx, _ job.Micros) (*job.Entry, error) {
		existed, err := deleteLogin(tx, p.Login)
		if err != nil || !existed {
			return nil, err
		}
		return &job.Entry{Action: ActionSignOut, Kind: KindLogin, Ref: p.Login, Name: p.Name}, nil
	})
}

// EndLogin ends a login, if `may` allows it. If there is no such login, or `may` refuses it, the
// error is sql.ErrNotFound.
func (i Issuer) EndLogin(ctx context.Context, id int64, may func(*LoginRow) bool) error {
	_, err := i.endLogins(ctx, may, func(*sql.Tx) ([]int64, error) { return []int64{id}, nil })
	return err
}

// EndLogins ends those logins of a person that `may` allows, and returns their number. If there
// are none, the error is sql.ErrNotFound.
func (i Issuer) EndLogins(ctx context.Context, who string, may func(*LoginRow) bool) (int, error) {
	return i.endLogins(ctx, may, func(tx *sql.Tx) ([]int64, error) { return loginsOf(tx, who) })
}

// endLogins ends logins, each with its audit line. For requests that change something, the logins
// end on all nodes with the commit, because such requests look their login up. For reads and
// streams they end within a second.
func (i Issuer) endLogins(
	ctx context.Context, may func(*LoginRow) bool, which func(*sql.Tx) ([]int64, error),
) (n int, err error) {
	err = i.DB.RecordAt(ctx, func(tx *sql.Tx, at job.Micros) (last *job.Entry, err error) {
		ids, err := which(tx)
		if err != nil {
			return nil, err
		}

		rows, err := lockLogins(tx, ids)
		if err != nil {
			return nil, err
		}

		n = 0
		for k := range rows {
			if !may(&rows[k]) {
				continue
			}

			if last != nil {
				last.At = at
				if err := tx.Note(last); err != nil {
					return nil, err
				}
			}

			if _, err := deleteLogin(tx, rows[k].ID); err != nil {
				return nil, err
			}

			last = loginLine(ActionRevoke, &rows[k])
			n++
		}

		if n == 0 {
			return nil, sql.ErrNotFound
		}
		return last, nil
	})

	return n, err
}

// loginLine begins the audit line of a change of a login.
func loginLine(a job.Action, l *LoginRow) *job.Entry {
	return &job.Entry{Action: a, Kind: KindLogin, Ref: l.ID, Name: l.Who, Was: l.Grants}
}

// GrantsOf returns the grants of a login, from its row or its token. If the row was changed
// outside the program and cannot be read, the grants are nil.
func GrantsOf(l *SignedIn) []Grant {
	if l.TokenID != 0 {
		role, err := ParseRole(l.Token.Role)
		if err != nil {
			return nil
		}
		return []Grant{{role, l.Token.Apps}}
	}

	var grants []Grant
	if json.Unmarshal([]byte(l.Grants), &grants) != nil {
		return nil
	}
	return grants
}

func grantsJSON(grants []Grant) (string, error) {
	b, err := json.Marshal(grants)
	return string(b), err
}

func micros(d time.Duration) job.Micros { return job.Micros(d / time.Microsecond) }
