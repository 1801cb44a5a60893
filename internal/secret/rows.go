package secret

import (
	"fmt"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Row is the row of a secret.
type Row struct {
	ID      int64
	Name    job.Secret
	App     string // owner of the secret; "": usable in all apps
	Version int64
	Key     string // id of the key that sealed it
	Sealed  []byte // nil in lists
	Created job.Micros
	Updated job.Micros
	By      string
}

const (
	columns       = "id, name, app, version, key_id, created, updated, who"
	sealedColumns = columns + ", sealed"
)

func scanRow(rows *sql.Rows) (s Row, err error) {
	err = rows.Scan(&s.ID, &s.Name, &s.App, &s.Version, &s.Key, &s.Created, &s.Updated, &s.By)
	return s, err
}

func scanSealed(rows *sql.Rows) (s Row, err error) {
	err = rows.Scan(&s.ID, &s.Name, &s.App, &s.Version, &s.Key, &s.Created, &s.Updated, &s.By, &s.Sealed)
	return s, err
}

// Filter selects secrets. Zero fields select all.
type Filter struct {
	Only  job.AppSecret // if it has a name, only this secret
	Apps  []string      // only secrets usable in one of the apps; nil: every secret
	After int64         // only greater ids
	Limit int
}

// List lists secrets by id, without their sealed values.
func List(r sql.Reader, f Filter) ([]Row, error) {
	where, args := []string{"id > ?"}, []any{f.After}
	if f.Only.Name != "" {
		where, args = append(where, "name = ? AND app = ?"), append(args, f.Only.Name, f.Only.App)
	}

	if f.Apps != nil {
		list, all := sql.In(args, append([]string{""}, f.Apps...))
		where, args = append(where, "app IN "+list), all
	}

	return sql.Select(r, "list secrets", scanRow,
		"SELECT "+columns+" FROM secret WHERE "+strings.Join(where, " AND ")+" ORDER BY id LIMIT ?",
		append(args, f.Limit)...)
}

// readSealed returns the sealed values of the named secrets that jobs of the given apps may use,
// including secrets that belong to no app.
func readSealed(r sql.Reader, apps []string, names []job.Secret) ([]Row, error) {
	if len(names) == 0 {
		return nil, nil
	}
	cond, args := trip.Usable(apps, names)
	return sql.Select(r, "read secrets", scanSealed, "SELECT "+sealedColumns+" FROM secret WHERE "+cond, args...)
}

// lock locks and returns a secret. If there is none, the error is sql.ErrNotFound.
func lock(tx *sql.Tx, s job.AppSecret) (Row, error) {
	return sql.First(sql.Select(tx, "lock secret", scanSealed,
		"SELECT "+sealedColumns+" FROM secret WHERE name = ? AND app = ? FOR UPDATE", s.Name, s.App))
}

// lockNotUnder locks and returns the next secrets by id that are not sealed with the given key.
func lockNotUnder(tx *sql.Tx, key string, after int64, limit int) ([]Row, error) {
	return sql.Select(tx, "lock secrets", scanSealed,
		"SELECT "+sealedColumns+" FROM secret WHERE id > ? AND key_id <> ? ORDER BY id LIMIT ? FOR UPDATE",
		after, key, limit)
}

// insert writes a secret and sets its id. If the app has a secret of this name, the error is
// sql.ErrExists.
func insert(tx *sql.Tx, s *Row) (err error) {
	s.ID, err = tx.Insert("insert secret", `
		INSERT INTO secret (name, app, version, key_id, sealed, created, updated, who)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		s.Name, s.App, s.Version, s.Key, s.Sealed, int64(s.Created), int64(s.Updated), sql.Cut(s.By, 128))
	if sql.IsDuplicate(err) {
		return fmt.Errorf("secret %q: %w", s.Name, sql.ErrExists)
	}
	return err
}

// update writes all columns of a secret that the transaction has locked.
func update(tx *sql.Tx, s *Row) error {
	_, err := tx.Exec("update secret",
		"UPDATE secret SET version = ?, key_id = ?, sealed = ?, updated = ?, who = ? WHERE id = ?",
		s.Version, s.Key, s.Sealed, int64(s.Updated), sql.Cut(s.By, 128), s.ID)
	return err
}

// remove deletes a secret that the transaction has locked.
func remove(tx *sql.Tx, id int64) error {
	_, err := tx.Exec("delete secret", "DELETE FROM secret WHERE id = ?", id)
	return err
}

// users lists up to limit living jobs that use a secret. A job uses its app's own secret. If the
// app has none of that name, the job uses the secret that belongs to no app. The caller has locked
// the secret's row, so no job can begin to use it. While jobs name an app's own secret, it cannot
// be deleted, even if another secret of that name belongs to no app.
func users(tx *sql.Tx, s job.AppSecret, limit int) ([]job.Name, error) {
	cond, args := "a.name = ?", []any{trip.RefSecret, s.Name, s.App, limit}
	if s.App == "" {
		cond = "NOT EXISTS (SELECT 1 FROM secret s WHERE s.name = ? AND s.app = a.name)"
		args[2] = s.Name
	}

	scan := func(rows *sql.Rows) (n job.Name, err error) {
		err = rows.Scan(&n.App, &n.Name)
		return n, err
	}

	return sql.Select(tx, "read references", scan,
		`SELECT a.name, j.name
		FROM job_ref r
		JOIN job j ON j.id = r.job_id
		JOIN app a ON a.id = j.app_id
		WHERE r.kind = ? AND r.name = ? AND j.living = 1 AND `+cond+`
		ORDER BY j.id
		LIMIT ?`, args...)
}
