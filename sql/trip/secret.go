package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// Usable is the condition for secrets of some names that jobs of some apps may use: those of the apps, and of all apps.
func Usable(apps []string, names []job.Secret) (string, []any) {
	nameList, args := sql.In(nil, names)
	appList, args := sql.In(args, append([]string{""}, apps...))
	return "name IN " + nameList + " AND app IN " + appList, args
}

// SecretsThere returns which of the named secrets exist for jobs of some apps.
func SecretsThere(r sql.Reader, apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := Usable(apps, names)
	err := sql.Each(r, "look for secrets", secretNames(out), "SELECT app, name FROM secret WHERE "+cond, args...)
	return out, err
}

// ShareSecrets is SecretsThere, and keeps others from deleting or changing these secrets until this transaction is over.
// Secrets are locked after all else that a change of a job locks.
func ShareSecrets(tx *sql.Tx, apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := Usable(apps, names)
	err := sql.Each(tx, "share secrets", secretNames(out), "SELECT app, name FROM secret WHERE "+cond+" ORDER BY name, app LOCK IN SHARE MODE", args...)
	return out, err
}

func secretNames(out map[job.AppSecret]bool) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var s job.AppSecret
		err := rows.Scan(&s.App, &s.Name)
		out[s] = true
		return err
	}
}
