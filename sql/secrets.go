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
	App     string // whose jobs may use it, "": those of all apps
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
	Name  job.Secret
	Apps  []string // only those of these apps, and those of all apps; nil: all
	After int64    // only ids after it
	Limit int
}

// Secrets lists secrets by id, without what is sealed.
func (db *DB) Secrets(ctx context.Context, f SecretFilter) (out []SecretRow, err error) {
	where, args := []string{"id > ?"}, []any{f.After}
	if f.Name != "" {
		where, args = append(where, "name = ?"), append(args, f.Name)
	}
	if f.Apps != nil {
		restrict(&where, &args, "app", append([]string{""}, f.Apps...))
	}
	err = db.query(ctx, "list secrets", secretRows(&out, false), "SELECT "+secretColumns+" FROM secret WHERE "+strings.Join(where, " AND ")+" ORDER BY id LIMIT ?",
		append(args, f.Limit)...)
	return out, err
}

// SealedSecrets returns those of some secrets that there are, as they are sealed.
func (db *DB) SealedSecrets(ctx context.Context, names []job.Secret) (out []SecretRow, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, args := in(nil, names)
	err = db.query(ctx, "read secrets", secretRows(&out, true), "SELECT "+sealedColumns+" FROM secret WHERE name IN "+list, args...)
	return out, err
}

// SecretApps tells of those of some secrets that there are whose jobs may use them.
func (db *DB) SecretApps(ctx context.Context, names []job.Secret) (map[job.Secret]string, error) {
	out := map[job.Secret]string{}
	if len(names) == 0 {
		return out, nil
	}
	list, args := in(nil, names)
	err := db.query(ctx, "look for secrets", secretApps(out), "SELECT name, app FROM secret WHERE name IN "+list, args...)
	return out, err
}

// ShareSecrets is SecretApps, and keeps others from deleting or changing these secrets until this transaction is over.
// Secrets are locked after all else that a change of a job locks.
func (tx *Tx) ShareSecrets(names []job.Secret) (map[job.Secret]string, error) {
	out := map[job.Secret]string{}
	if len(names) == 0 {
		return out, nil
	}
	list, args := in(nil, names)
	err := tx.query("share secrets", secretApps(out), "SELECT name, app FROM secret WHERE name IN "+list+" ORDER BY name LOCK IN SHARE MODE", args...)
	return out, err
}

func secretApps(out map[job.Secret]string) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		var name job.Secret
		var app string
		err := rows.Scan(&name, &app)
		out[name] = app
		return err
	}
}

// LockSecret locks and returns a secret, or ErrNotFound.
func (tx *Tx) LockSecret(name job.Secret) (SecretRow, error) {
	var out []SecretRow
	err := tx.query("lock secret", secretRows(&out, true), "SELECT "+sealedColumns+" FROM secret WHERE name = ? FOR UPDATE", name)
	return first(out, err)
}

// LockSecretsNotUnder locks and returns the next secrets that are sealed with another key, by id.
func (tx *Tx) LockSecretsNotUnder(key string, after int64, limit int) (out []SecretRow, err error) {
	err = tx.query("lock secrets", secretRows(&out, true), "SELECT "+sealedColumns+" FROM secret WHERE id > ? AND key_id <> ? ORDER BY id LIMIT ? FOR UPDATE", after, key, limit)
	return out, err
}

// InsertSecret writes a secret and sets its id. A name that is taken is ErrExists.
func (tx *Tx) InsertSecret(s *SecretRow) (err error) {
	s.ID, err = tx.insert("insert secret", "INSERT INTO secret (name, app, version, key_id, sealed, created, updated, who) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		s.Name, s.App, s.Version, s.Key, s.Sealed, int64(s.Created), int64(s.Updated), cut(s.By, 128))
	if isDuplicate(err) {
		return fmt.Errorf("secret %q: %w", s.Name, ErrExists)
	}
	return err
}

// UpdateSecret writes all of a secret that this transaction has locked.
func (tx *Tx) UpdateSecret(s *SecretRow) error {
	_, err := tx.exec("update secret", "UPDATE secret SET app = ?, version = ?, key_id = ?, sealed = ?, updated = ?, who = ? WHERE id = ?",
		s.App, s.Version, s.Key, s.Sealed, int64(s.Updated), cut(s.By, 128), s.ID)
	return err
}

// DeleteSecret deletes a secret that this transaction has locked.
func (tx *Tx) DeleteSecret(id int64) error {
	_, err := tx.exec("delete secret", "DELETE FROM secret WHERE id = ?", id)
	return err
}

// SecretUsers lists some of the living jobs that name a secret, those of one app, or with "" of all apps. The caller
// holds the secret's row: no job begins to name it meanwhile.
func (tx *Tx) SecretUsers(name job.Secret, app string, limit int) ([]job.Name, error) {
	if app == "" {
		return tx.Referrers(RefSecret, string(name), limit)
	}
	return tx.secretUsers("j.app = ?", name, app, limit)
}

// SecretUsersElsewhere lists some of the living jobs of other apps that name a secret.
func (tx *Tx) SecretUsersElsewhere(name job.Secret, app string, limit int) ([]job.Name, error) {
	return tx.secretUsers("j.app <> ?", name, app, limit)
}

func (tx *Tx) secretUsers(cond string, name job.Secret, app string, limit int) ([]job.Name, error) {
	var out []job.Name
	err := tx.query("read references", func(rows *stdsql.Rows) error {
		var n job.Name
		err := rows.Scan(&n.App, &n.Name)
		out = append(out, n)
		return err
	}, "SELECT j.app, j.name FROM job_ref r JOIN job j ON j.id = r.job_id WHERE r.kind = ? AND r.name = ? AND j.living = 1 AND "+cond+" ORDER BY j.id LIMIT ?", RefSecret, name, app, limit)
	return out, err
}
