package auth

import (
	"encoding/json"
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// TokenRow is the row of an API token.
type TokenRow struct {
	ID       int64
	Name     string
	Role     string
	Apps     []string // nil: all
	Created  job.Micros
	By       string
	Expires  job.Micros // zero: never
	Revoked  job.Micros // zero: not revoked
	Used     job.Micros // zero: never
	UsedFrom string
}

const tokenColumns = "t.id, t.name, t.role, t.apps, t.created, t.created_by, t.expires, t.revoked, t.used, t.used_from"

// appsOf parses a list of apps. A list that cannot be read was changed outside the program. It
// counts as no app, not as all apps.
func appsOf(text *string) []string {
	if text == nil {
		return nil
	}
	var apps []string
	if json.Unmarshal([]byte(*text), &apps) != nil || apps == nil {
		return []string{}
	}
	return apps
}

// jsonOf encodes a list. It encodes nil as NULL.
func jsonOf[T any](list []T) (any, error) {
	if list == nil {
		return nil, nil
	}
	b, err := json.Marshal(list)
	return string(b), err
}

func scanToken(rows *sql.Rows, more ...any) (t TokenRow, err error) {
	var apps *string
	err = rows.Scan(
		append([]any{&t.ID, &t.Name, &t.Role, &apps, &t.Created, &t.By, &t.Expires, &t.Revoked, &t.Used, &t.UsedFrom},
			more...)...)
	t.Apps = appsOf(apps)
	return t, err
}

// tokenByHash returns the token of a hash, and the instant of the read by MySQL's clock. If there
// is none, the error is sql.ErrNotFound.
func tokenByHash(r sql.Reader, hash [32]byte) (t TokenRow, at job.Micros, err error) {
	err = sql.Each(r, "find token", func(rows *sql.Rows) (err error) {
		t, err = scanToken(rows, &at)
		return err
	}, "SELECT "+tokenColumns+", "+sql.Clock+" FROM api_token t WHERE t.hash = ?", hash[:])
	if err == nil && t.ID == 0 {
		err = sql.ErrNotFound
	}
	return t, at, err
}

// TokenFilter selects tokens. Zero fields select all.
type TokenFilter struct {
	ID     int64
	Name   string
	Living bool  // only tokens that are not revoked; they may have expired
	After  int64 // only greater ids
	Limit  int
}

// Tokens lists tokens by id.
func Tokens(r sql.Reader, f TokenFilter) (out []TokenRow, err error) {
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

	err = sql.Each(r, "list tokens", func(rows *sql.Rows) error {
		t, err := scanToken(rows)
		out = append(out, t)
		return err
	}, "SELECT "+tokenColumns+" FROM api_token t WHERE "+strings.Join(where, " AND ")+" ORDER BY t.id LIMIT ?",
		append(args, f.Limit)...)

	return out, err
}

// insertToken writes a token and returns its id. If a living token has the name, the error is
// sql.ErrExists.
func insertToken(tx *sql.Tx, t *TokenRow, hash [32]byte) (int64, error) {
	apps, err := jsonOf(t.Apps)
	if err != nil {
		return 0, err
	}

	id, err := tx.Insert("insert token",
		"INSERT INTO api_token (name, hash, role, apps, created, created_by, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
		t.Name, hash[:], t.Role, apps, int64(t.Created), sql.Cut(t.By, 128), int64(t.Expires))
	if sql.IsDuplicate(err) {
		return 0, fmt.Errorf("token %q: %w", t.Name, sql.ErrExists)
	}
	return id, err
}

// lockToken locks and returns a token. If there is none, the error is sql.ErrNotFound.
func lockToken(tx *sql.Tx, id int64) (TokenRow, error) { return lockTokenWhere(tx, "t.id = ?", id) }

// lockTokenNamed locks and returns the living token of a name. If there is none, the error is
// sql.ErrNotFound.
func lockTokenNamed(tx *sql.Tx, name string) (TokenRow, error) {
	return lockTokenWhere(tx, "t.name = ? AND t.living = 1", name)
}

func lockTokenWhere(tx *sql.Tx, cond string, args ...any) (t TokenRow, err error) {
	err = sql.Each(tx, "lock token", func(rows *sql.Rows) (err error) {
		t, err = scanToken(rows)
		return err
	}, "SELECT "+tokenColumns+" FROM api_token t WHERE "+cond+" FOR UPDATE", args...)
	if err == nil && t.ID == 0 {
		err = sql.ErrNotFound
	}
	return t, err
}

// revokeToken ends a token that the transaction has locked. It also deletes the logins that were
// made with the token, because they no longer work.
func revokeToken(tx *sql.Tx, id int64, at job.Micros) error {
	if _, err := tx.Exec("revoke token", "UPDATE api_token SET living = NULL, revoked = ? WHERE id = ? AND living = 1",
		int64(at), id); err != nil {
		return err
	}
	_, err := tx.Exec("end logins of a token", "DELETE FROM login WHERE token_id = ?", id)
	return err
}

// useToken records that a token was used at an instant. If a use after since is already recorded,
// it changes nothing.
func useToken(tx *sql.Tx, id int64, at, since job.Micros, from string) error {
	_, err := tx.Exec("record the use of a token",
		"UPDATE api_token SET used = ?, used_from = ? WHERE id = ? AND used <= ?",
		int64(at), sql.Cut(from, 64), id, int64(since))
	return err
}

// once marks for good that a step was done which happens only once in a cluster. It reports
// whether this call was the first. A concurrent call waits for the commit of this one.
func once(tx *sql.Tx, what string, at job.Micros) (first bool, err error) {
	_, err = tx.Exec("note "+what, "INSERT INTO setting (name, value) VALUES (?, ?)", "once/"+what,
		fmt.Sprint(int64(at)))
	if sql.IsDuplicate(err) {
		return false, nil
	}
	return err == nil, err
}
