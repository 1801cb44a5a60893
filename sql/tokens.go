package sql

import (
	"context"
	stdsql "database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"go-crontab/job"
)

// TokenRow is an API token as its row has it. What its role may do is no affair of this package.
type TokenRow struct {
	ID       int64
	Name     string
	Role     string
	Apps     []string // nil: all
	Created  job.Micros
	By       string
	Expires  job.Micros // zero: never
	Revoked  job.Micros // zero: it is not
	Used     job.Micros // zero: never
	UsedFrom string
}

const tokenColumns = "t.id, t.name, t.role, t.apps, t.created, t.created_by, t.expires, t.revoked, t.used, t.used_from"

// appsOf reads a list of apps. What a hand wrote there and cannot be read is no list of all apps, but of none.
func appsOf(text stdsql.NullString) []string {
	if !text.Valid {
		return nil
	}
	var apps []string
	if json.Unmarshal([]byte(text.String), &apps) != nil || apps == nil {
		return []string{}
	}
	return apps
}

// jsonOf encodes a list, nil as NULL.
func jsonOf[T any](list []T) (any, error) {
	if list == nil {
		return nil, nil
	}
	b, err := json.Marshal(list)
	return string(b), err
}

func scanToken(rows *stdsql.Rows, more ...any) (t TokenRow, err error) {
	var apps stdsql.NullString
	err = rows.Scan(append([]any{&t.ID, &t.Name, &t.Role, &apps, &t.Created, &t.By, &t.Expires, &t.Revoked, &t.Used, &t.UsedFrom}, more...)...)
	t.Apps = appsOf(apps)
	return t, err
}

// TokenByHash returns the token of a hash and the instant at which that was read, by MySQL's clock; or ErrNotFound.
func (db *DB) TokenByHash(ctx context.Context, hash [32]byte) (t TokenRow, at job.Micros, err error) {
	err = db.query(ctx, "find token", func(rows *stdsql.Rows) (err error) {
		t, err = scanToken(rows, &at)
		return err
	}, "SELECT "+tokenColumns+", "+now+" FROM api_token t WHERE t.hash = ?", hash[:])
	if err == nil && t.ID == 0 {
		err = ErrNotFound
	}
	return t, at, err
}

// TokenFilter says which tokens to list. Zero fields do not restrict.
type TokenFilter struct {
	ID     int64
	Name   string
	Living bool  // only those that are not revoked; they may have expired
	After  int64 // only ids after it
	Limit  int
}

// Tokens lists tokens by id.
func (db *DB) Tokens(ctx context.Context, f TokenFilter) (out []TokenRow, err error) {
	where, args := []string{"t.id > ?"}, []any{f.After}
	if f.ID != 0 {
		where, args = append(where, "t.id = ?"), append(args, f.ID)
	}
	if f.Name != "" {
		where, args = append(where, "t.name = ?"), append(args, f.Name)
	}
	if f.Living {
		where = append(where, "t.living = 1")
	}
	err = db.query(ctx, "list tokens", func(rows *stdsql.Rows) error {
		t, err := scanToken(rows)
		out = append(out, t)
		return err
	}, "SELECT "+tokenColumns+" FROM api_token t WHERE "+strings.Join(where, " AND ")+" ORDER BY t.id LIMIT ?", append(args, f.Limit)...)
	return out, err
}

// Now is MySQL's clock.
func (tx *Tx) Now() (at job.Micros, err error) {
	err = tx.query("read clock", func(rows *stdsql.Rows) error { return rows.Scan(&at) }, "SELECT "+now)
	return at, err
}

// InsertToken writes a token and returns its id. A name that a living one has is ErrExists.
func (tx *Tx) InsertToken(t *TokenRow, hash [32]byte) (int64, error) {
	apps, err := jsonOf(t.Apps)
	if err != nil {
		return 0, err
	}
	id, err := tx.insert("insert token", "INSERT INTO api_token (name, hash, role, apps, created, created_by, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
		t.Name, hash[:], t.Role, apps, int64(t.Created), cut(t.By, 128), int64(t.Expires))
	if isDuplicate(err) {
		return 0, fmt.Errorf("token %q: %w", t.Name, ErrExists)
	}
	return id, err
}

// LockToken locks and returns a token, or ErrNotFound.
func (tx *Tx) LockToken(id int64) (TokenRow, error) { return tx.lockToken("t.id = ?", id) }

// LockTokenNamed locks and returns the living token of a name, or ErrNotFound.
func (tx *Tx) LockTokenNamed(name string) (TokenRow, error) {
	return tx.lockToken("t.name = ? AND t.living = 1", name)
}

func (tx *Tx) lockToken(cond string, args ...any) (t TokenRow, err error) {
	err = tx.query("lock token", func(rows *stdsql.Rows) (err error) {
		t, err = scanToken(rows)
		return err
	}, "SELECT "+tokenColumns+" FROM api_token t WHERE "+cond+" FOR UPDATE", args...)
	if err == nil && t.ID == 0 {
		err = ErrNotFound
	}
	return t, err
}

// RevokeToken ends a token that the transaction has locked, and signs out the browsers that were signed in with it:
// their rows would let nobody in, and are of no use any more.
func (tx *Tx) RevokeToken(id int64, at job.Micros) error {
	if _, err := tx.exec("revoke token", "UPDATE api_token SET living = NULL, revoked = ? WHERE id = ? AND living = 1", int64(at), id); err != nil {
		return err
	}
	_, err := tx.exec("end logins of a token", "DELETE FROM login WHERE token_id = ?", id)
	return err
}

// UseToken notes that a token was used, unless that was noted after an earlier instant already.
func (tx *Tx) UseToken(id int64, at, unless job.Micros, from string) error {
	_, err := tx.exec("note use of token", "UPDATE api_token SET used = ?, used_from = ? WHERE id = ? AND used <= ?", int64(at), cut(from, 64), id, int64(unless))
	return err
}

// Once writes down, for good, that something was done which is done once for a cluster. It tells whether that was not
// so yet; who asks at the same time waits for the answer.
func (tx *Tx) Once(what string, at job.Micros) (first bool, err error) {
	_, err = tx.exec("note "+what, "INSERT INTO setting (name, value) VALUES (?, ?)", "once/"+what, fmt.Sprint(int64(at)))
	if isDuplicate(err) {
		return false, nil
	}
	return err == nil, err
}

// LoginRow is a browser that is signed in.
type LoginRow struct {
	ID      int64
	Who     string
	TokenID int64  // zero: Grants counts
	Grants  string // JSON, of whom a provider vouched for
	Created job.Micros
	Expires job.Micros
	Origin  string
}

// LoginByHash returns the login of a hash, the token that it was made with if there is one, and the instant at which
// that was read; or ErrNotFound.
func (db *DB) LoginByHash(ctx context.Context, hash [32]byte) (l LoginRow, t TokenRow, at job.Micros, err error) {
	err = db.query(ctx, "find login", func(rows *stdsql.Rows) (err error) {
		var (
			grants, name, role, apps, by, from stdsql.NullString
			id, created, expires, revoked      stdsql.NullInt64
			used                               stdsql.NullInt64
		)
		err = rows.Scan(&id, &name, &role, &apps, &created, &by, &expires, &revoked, &used, &from,
			&l.ID, &l.Who, &l.TokenID, &grants, &l.Created, &l.Expires, &l.Origin, &at)
		l.Grants = grants.String
		t = TokenRow{
			ID: id.Int64, Name: name.String, Role: role.String, Apps: appsOf(apps), Created: job.Micros(created.Int64), By: by.String,
			Expires: job.Micros(expires.Int64), Revoked: job.Micros(revoked.Int64), Used: job.Micros(used.Int64), UsedFrom: from.String,
		}
		return err
	}, "SELECT "+tokenColumns+", l.id, l.who, l.token_id, l.grants, l.created, l.expires, l.origin, "+now+
		" FROM login l LEFT JOIN api_token t ON t.id = l.token_id AND l.token_id <> 0 WHERE l.hash = ?", hash[:])
	if err == nil && l.ID == 0 {
		err = ErrNotFound
	}
	return l, t, at, err
}

// InsertLogin writes a login and returns its id.
func (tx *Tx) InsertLogin(l *LoginRow, hash [32]byte) (int64, error) {
	var grants any
	if l.TokenID == 0 {
		grants = l.Grants
	}
	return tx.insert("insert login", "INSERT INTO login (hash, who, token_id, grants, created, expires, origin) VALUES (?, ?, ?, ?, ?, ?, ?)",
		hash[:], cut(l.Who, 128), l.TokenID, grants, int64(l.Created), int64(l.Expires), cut(l.Origin, 64))
}

// DeleteLogin ends a login and tells whether there was one.
func (tx *Tx) DeleteLogin(id int64) (bool, error) {
	n, err := tx.exec("end login", "DELETE FROM login WHERE id = ?", id)
	return n > 0, err
}

// TidyLogins removes logins that have expired, and of somebody who has more than keep the oldest ones; some of them at
// a time. The table stays small by it.
func (tx *Tx) TidyLogins(who string, keep int, at job.Micros) error {
	const batch = 200
	var ids []int64
	collect := func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}
	// Read first, deleted by primary key: deletes over the other indexes would wait for each other.
	if err := tx.query("list expired logins", collect, "SELECT id FROM login FORCE INDEX (expires) WHERE expires <= ? LIMIT ?", int64(at), batch); err != nil {
		return err
	}
	err := tx.query("list logins of one", collect, "SELECT id FROM login FORCE INDEX (who) WHERE who = ? ORDER BY id DESC LIMIT ? OFFSET ?", cut(who, 128), batch, keep)
	if err != nil || len(ids) == 0 {
		return err
	}
	list, args := in(nil, ids)
	_, err = tx.exec("remove old logins", "DELETE FROM login WHERE id IN "+list, args...)
	return err
}
