package auth

import (
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
)

// LoginRow is a signed-in browser.
type LoginRow struct {
	ID       int64
	Hash     [32]byte
	Who      string
	TokenID  int64  // zero: Grants is used
	Grants   string // JSON; only of logins by a provider
	Created  job.Micros
	Expires  job.Micros
	Origin   string
	Used     job.Micros // zero: never
	UsedFrom string
	Checked  job.Micros // when the provider last confirmed Grants; zero: at the sign-in

	CheckAt job.Micros // when to ask the provider next; zero: never
	Key     string     // id of the key that Sealed is sealed with
	Sealed  []byte     // the Renewal to show to the provider
}

const loginColumns = `l.id, l.hash, l.who, l.token_id, l.grants, l.created, l.expires, l.origin,
	l.used, l.used_from, l.checked, l.check_at, l.key_id, l.sealed`

// loginWithToken reads logins with the tokens that they were made with, and MySQL's clock.
const loginWithToken = "SELECT " + loginColumns + ", " + tokenColumns + ", " + sql.Clock + `
	FROM login l
	LEFT JOIN api_token t ON t.id = l.token_id AND l.token_id <> 0 `

func (l *LoginRow) fields(hash *[]byte, grants **string) []any {
	return []any{&l.ID, hash, &l.Who, &l.TokenID, grants, &l.Created, &l.Expires, &l.Origin,
		&l.Used, &l.UsedFrom, &l.Checked, &l.CheckAt, &l.Key, &l.Sealed}
}

func scanLogin(rows *sql.Rows, more ...any) (l LoginRow, err error) {
	var (
		hash   []byte
		grants *string
	)
	err = rows.Scan(append(l.fields(&hash, &grants), more...)...)
	copy(l.Hash[:], hash)
	l.Grants = orZero(grants)
	return l, err
}

// SignedIn is a login with the token that it was made with. For a login by a provider, Token is
// zero.
type SignedIn struct {
	LoginRow
	Token TokenRow
}

func scanLoginWithToken(rows *sql.Rows, at *job.Micros) (l SignedIn, err error) {
	var (
		id                              *int64
		name, role, apps, by, from      *string
		created, expires, revoked, used *job.Micros
	)
	l.LoginRow, err = scanLogin(rows, &id, &name, &role, &apps, &created, &by, &expires, &revoked, &used, &from, at)
	l.Token = TokenRow{
		ID: orZero(id), Name: orZero(name), Role: orZero(role), Apps: appsOf(apps), Created: orZero(created),
		By:      orZero(by),
		Expires: orZero(expires), Revoked: orZero(revoked), Used: orZero(used), UsedFrom: orZero(from),
	}

	return l, err
}

// orZero returns the value of a column, or the zero value for NULL.
func orZero[T any](column *T) (v T) {
	if column != nil {
		v = *column
	}
	return v
}

// loginByHash returns the login of a hash and the instant of the read. If there is none, the error
// is sql.ErrNotFound.
func loginByHash(r sql.Reader, hash [32]byte) (l SignedIn, at job.Micros, err error) {
	err = sql.Each(r, "find login", func(rows *sql.Rows) (err error) {
		l, err = scanLoginWithToken(rows, &at)
		return err
	}, loginWithToken+"WHERE l.hash = ?", hash[:])
	if err == nil && l.ID == 0 {
		err = sql.ErrNotFound
	}
	return l, at, err
}

// LoginFilter selects logins. Zero fields select all.
type LoginFilter struct {
	Who     string
	TokenID *int64 // logins made with this token; 0: logins by a provider
	After   int64  // only greater ids
	Limit   int
}

// Logins lists the logins that have not expired, by id.
func Logins(r sql.Reader, f LoginFilter) (out []SignedIn, err error) {
	where, args := []string{"l.id > ?", "l.expires > " + sql.Clock}, []any{f.After}
	if f.Who != "" {
		where, args = append(where, "l.who = ?"), append(args, f.Who)
	}
	if f.TokenID != nil {
		where, args = append(where, "l.token_id = ?"), append(args, *f.TokenID)
	}

	var at job.Micros
	err = sql.Each(r, "list logins", func(rows *sql.Rows) error {
		l, err := scanLoginWithToken(rows, &at)
		out = append(out, l)
		return err
	}, loginWithToken+"WHERE "+strings.Join(where, " AND ")+" ORDER BY l.id LIMIT ?", append(args, f.Limit)...)

	return out, err
}

// dueLogins returns the logins whose check is due at an instant, the longest overdue first.
func dueLogins(r sql.Reader, at job.Micros, limit int) (out []LoginRow, err error) {
	err = sql.Each(r, "list logins to check", func(rows *sql.Rows) error {
		l, err := scanLogin(rows)
		out = append(out, l)
		return err
	}, "SELECT "+loginColumns+`
		FROM login l FORCE INDEX (check_at)
		WHERE l.check_at > 0 AND l.check_at <= ? AND l.expires > ?
		ORDER BY l.check_at
		LIMIT ?`, int64(at), int64(at), limit)

	return out, err
}

// insertLogin writes a login and returns its id.
func insertLogin(tx *sql.Tx, l *LoginRow) (int64, error) {
	var grants any
	if l.TokenID == 0 {
		grants = l.Grants
	}
	return tx.Insert("insert login", `
		INSERT INTO login (hash, who, token_id, grants, created, expires, origin, check_at, key_id, sealed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Hash[:], sql.Cut(l.Who, 128), l.TokenID, grants, int64(l.Created), int64(l.Expires), sql.Cut(l.Origin, 64),
		int64(l.CheckAt), l.Key, l.Sealed)
}

// useLogin records that a login was used at an instant. If a use after since is already recorded,
// it changes nothing.
func useLogin(tx *sql.Tx, id int64, at, since job.Micros, from string) error {
	_, err := tx.Exec("record the use of a sign-in",
		"UPDATE login SET used = ?, used_from = ? WHERE id = ? AND used <= ?",
		int64(at), sql.Cut(from, 64), id, int64(since))
	return err
}

// moveCheck moves the next check of a login to another instant. It reports whether the row still
// had the check time of l. If several nodes want to check a login, only one of their moves
// succeeds.
func moveCheck(tx *sql.Tx, l *LoginRow, to job.Micros) (bool, error) {
	n, err := tx.Exec("move check of login",
		"UPDATE login SET check_at = ? WHERE id = ? AND check_at = ?",
		int64(to), l.ID, int64(l.CheckAt))
	return n > 0, err
}

// writeCheck writes the provider's answer about a login, unless another node has checked the login
// since l.CheckAt.
func writeCheck(tx *sql.Tx, l *LoginRow, next job.Micros) (bool, error) {
	n, err := tx.Exec("write check of login", `
		UPDATE login
		SET grants = ?, checked = ?, check_at = ?, key_id = ?, sealed = ?
		WHERE id = ? AND check_at = ?`,
		l.Grants, int64(l.Checked), int64(next), l.Key, l.Sealed, l.ID, int64(l.CheckAt))
	return n > 0, err
}

// lockLogins locks and returns the existing logins among ids.
func lockLogins(tx *sql.Tx, ids []int64) (out []LoginRow, err error) {
	if len(ids) == 0 {
		return nil, nil
	}

	list, args := sql.In(nil, ids)
	err = sql.Each(tx, "lock logins", func(rows *sql.Rows) error {
		l, err := scanLogin(rows)
		out = append(out, l)
		return err
	}, "SELECT "+loginColumns+" FROM login l WHERE l.id IN "+list+" ORDER BY l.id FOR UPDATE", args...)

	return out, err
}

// loginsOf lists the ids of a person's logins.
func loginsOf(tx *sql.Tx, who string) ([]int64, error) {
	return sql.IDs(tx, "list logins of one", "SELECT id FROM login FORCE INDEX (who) WHERE who = ? ORDER BY id", who)
}

// deleteLogin ends a login. It reports whether the login existed.
func deleteLogin(tx *sql.Tx, id int64) (bool, error) {
	n, err := tx.Exec("end login", "DELETE FROM login WHERE id = ?", id)
	return n > 0, err
}

// tidyLogins keeps the table small. It removes expired logins. Of a person's logins it keeps the
// newest, as many as keep says, and removes the older ones. One call removes at most 200 logins of
// either kind.
func tidyLogins(tx *sql.Tx, who string, keep int, at job.Micros) error {
	const batch = 200
	// Read first, then delete by primary key. Deletes through the other indexes would wait for
	// each other.
	ids, err := sql.IDs(tx, "list expired logins",
		"SELECT id FROM login FORCE INDEX (expires) WHERE expires <= ? LIMIT ?", int64(at), batch)
	if err != nil {
		return err
	}

	more, err := sql.IDs(tx, "list logins of one",
		"SELECT id FROM login FORCE INDEX (who) WHERE who = ? ORDER BY id DESC LIMIT ? OFFSET ?",
		sql.Cut(who, 128), batch, keep)
	if ids = append(ids, more...); err != nil || len(ids) == 0 {
		return err
	}

	list, args := sql.In(nil, ids)
	_, err = tx.Exec("remove old logins", "DELETE FROM login WHERE id IN "+list, args...)
	return err
}
