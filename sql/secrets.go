package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strings"

	"go-crontab/job"
)

// SecretRow is a secret as its row has it. What Sealed holds is no affair of this package.
type SecretRow struct {
	ID      int64
	Name    job.Secret
	App     string // the app that it belongs to, "": all apps
	Version int64
	Key     string // the id of the key that it is sealed with
	Sealed  []byte // nil in lists
	Created job.Micros
	Updated job.Micros
	By      string
}

const (
	secretColumns = "id, name, app, version, key_id, created, updated, who"
	sealedColumns = secretColumns + ", sealed"
)

func secretRows(out *[]SecretRow, sealed bool) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var s SecretRow
		to := []any{&s.ID, &s.Name, &s.App, &s.Version, &s.Key, &s.Created, &s.Updated, &s.By}
		if sealed {
			to = append(to, &s.Sealed)
		}
		err := rows.Scan(to...)
		*out = append(*out, s)
		return err
	}
}

// SecretFilter says which secrets to list. Zero fields do not restrict.
type SecretFilter struct {
	Only  job.AppSecret // only this one, if it has a name
	Apps  []string      // only those of these apps, and those of all apps; nil: all
	After int64         // only ids after it
	Limit int
}

// Secrets lists secrets by id, without what is sealed.
func (db *DB) Secrets(ctx context.Context, f SecretFilter) (out []SecretRow, err error) {
	where, args := []string{"id > ?"}, []any{f.After}
	if f.Only.Name != "" {
		where, args = append(where, "name = ? AND app = ?"), append(args, f.Only.Name, f.Only.App)
	}
	if f.Apps != nil {
		list, all := In(args, append([]string{""}, f.Apps...))
		where, args = append(where, "app IN "+list), all
	}
	err = db.query(ctx, "list secrets", secretRows(&out, false),
		"SELECT "+secretColumns+" FROM secret WHERE "+strings.Join(where, " AND ")+" ORDER BY id LIMIT ?", append(args, f.Limit)...)
	return out, err
}

// usable is the condition for secrets of some names that jobs of some apps may use: those of the apps, and of all apps.
func usable(apps []string, names []job.Secret) (string, []any) {
	nameList, args := In(nil, names)
	appList, args := In(args, append([]string{""}, apps...))
	return "name IN " + nameList + " AND app IN " + appList, args
}

// SealedSecrets returns the sealed values of the named secrets that jobs of some apps may use, those of all apps included.
func (db *DB) SealedSecrets(ctx context.Context, apps []string, names []job.Secret) (out []SecretRow, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	cond, args := usable(apps, names)
	err = db.query(ctx, "read secrets", secretRows(&out, true), "SELECT "+sealedColumns+" FROM secret WHERE "+cond, args...)
	return out, err
}

// SecretsThere returns which of the named secrets exist for jobs of some apps.
func (db *DB) SecretsThere(ctx context.Context, apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := usable(apps, names)
	err := db.query(ctx, "look for secrets", secretNames(out), "SELECT app, name FROM secret WHERE "+cond, args...)
	return out, err
}

// ShareSecrets is SecretsThere, and keeps others from deleting or changing these secrets until this transaction is over.
// Secrets are locked after all else that a change of a job locks.
func (tx *Tx) ShareSecrets(apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := usable(apps, names)
	err := tx.query("share secrets", secretNames(out), "SELECT app, name FROM secret WHERE "+cond+" ORDER BY name, app LOCK IN SHARE MODE", args...)
	return out, err
}

func secretNames(out map[job.AppSecret]bool) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var s job.AppSecret
		err := rows.Scan(&s.App, &s.Name)
		out[s] = true
		return err
	}
}

// LockSecret locks and returns a secret, or ErrNotFound.
func (tx *Tx) LockSecret(s job.AppSecret) (SecretRow, error) {
	var out []SecretRow
	err := tx.query("lock secret", secretRows(&out, true),
		"SELECT "+sealedColumns+" FROM secret WHERE name = ? AND app = ? FOR UPDATE", s.Name, s.App)
	return First(out, err)
}

// LockSecretsNotUnder locks and returns the next secrets that are sealed with another key, by id.
func (tx *Tx) LockSecretsNotUnder(key string, after int64, limit int) (out []SecretRow, err error) {
	err = tx.query("lock secrets", secretRows(&out, true), "SELECT "+sealedColumns+" FROM secret WHERE id > ? AND key_id <> ? ORDER BY id LIMIT ? FOR UPDATE", after, key, limit)
	return out, err
}

// InsertSecret writes a secret and sets its id. A name that the app has is ErrExists.
func (tx *Tx) InsertSecret(s *SecretRow) (err error) {
	s.ID, err = tx.Insert("insert secret", "INSERT INTO secret (name, app, version, key_id, sealed, created, updated, who) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		s.Name, s.App, s.Version, s.Key, s.Sealed, int64(s.Created), int64(s.Updated), Cut(s.By, 128))
	if IsDuplicate(err) {
		return fmt.Errorf("secret %q: %w", s.Name, ErrExists)
	}
	return err
}

// UpdateSecret writes all of a secret that this transaction has locked.
func (tx *Tx) UpdateSecret(s *SecretRow) error {
	_, err := tx.Exec("update secret", "UPDATE secret SET version = ?, key_id = ?, sealed = ?, updated = ?, who = ? WHERE id = ?",
		s.Version, s.Key, s.Sealed, int64(s.Updated), Cut(s.By, 128), s.ID)
	return err
}

// DeleteSecret deletes a secret that this transaction has locked.
func (tx *Tx) DeleteSecret(id int64) error {
	_, err := tx.Exec("delete secret", "DELETE FROM secret WHERE id = ?", id)
	return err
}

// SecretUsers lists some of the living jobs that use a secret: those of its app that name it, or, if it is one of all apps,
// those that name it and whose app has none of its own. The caller holds the secret's row: no job begins to use it
// meanwhile. Nor can an app's own secret go while its jobs name it.
func (tx *Tx) SecretUsers(s job.AppSecret, limit int) ([]job.Name, error) {
	cond, args := "a.name = ?", []any{RefSecret, s.Name, s.App, limit}
	if s.App == "" {
		cond = "NOT EXISTS (SELECT 1 FROM secret s WHERE s.name = ? AND s.app = a.name)"
		args[2] = s.Name
	}

	scan := func(rows *stdsql.Rows) (n job.Name, err error) {
		err = rows.Scan(&n.App, &n.Name)
		return n, err
	}
	return Select(tx, "read references", scan, "SELECT a.name, j.name FROM job_ref r JOIN job j ON j.id = r.job_id JOIN app a ON a.id = j.app_id"+
		" WHERE r.kind = ? AND r.name = ? AND j.living = 1 AND "+cond+" ORDER BY j.id LIMIT ?", args...)
}
