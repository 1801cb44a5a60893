package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// Usable returns the condition for the named secrets that jobs of the apps may use: secrets of
// these apps, and secrets that belong to no app.
func Usable(apps []string, names []job.Secret) (string, []any) {
	nameList, args := sql.In(nil, names)
	appList, args := sql.In(args, append([]string{""}, apps...))
	return "name IN " + nameList + " AND app IN " + appList, args
}

// SecretsThere returns the named secrets that exist for jobs of the apps.
func SecretsThere(r sql.Reader, apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := Usable(apps, names)
	err := sql.Each(r, "look for secrets", secretNames(out), "SELECT app, name FROM secret WHERE "+cond, args...)
	return out, err
}

// ShareSecrets is like SecretsThere, and keeps others from deleting or changing these secrets until
// this transaction is over. A change of a job locks secrets last.
func ShareSecrets(tx *sql.Tx, apps []string, names []job.Secret) (map[job.AppSecret]bool, error) {
	out := map[job.AppSecret]bool{}
	if len(names) == 0 {
		return out, nil
	}
	cond, args := Usable(apps, names)
	query := `
		SELECT app, name
		FROM secret
		WHERE ` + cond + `
		ORDER BY name, app
		LOCK IN SHARE MODE`
	err := sql.Each(tx, "lock secrets for reading", secretNames(out), query, args...)
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
