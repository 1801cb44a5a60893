package edit

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/job/problem"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// lackingGroups finds the changes whose jobs newly name a missing group. It locks the existing
// groups until the end of the transaction. So a concurrent deletion of a group waits, and then
// finds the job.
func lackingGroups(tx *sql.Tx, views []*view) (map[*view]error, error) {
	wanted := map[string]bool{}
	for _, v := range views {
		if v.names() && v.def.Group != "" && (v.was == nil || v.was.Group != v.def.Group) {
			wanted[v.def.Group] = true
		}
	}

	exist, err := trip.ShareGroups(tx, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return nil, err
	}

	problems := map[*view]error{}
	for _, v := range views {
		if v.names() && wanted[v.def.Group] && !exist[v.def.Group] {
			problems[v] = job.Wrong(
				"group", problem.NoGroup.Advise("create it first, with its number of slots"), v.def.Group)
		}
	}
	return problems, nil
}

// lackSecrets refuses changes whose jobs newly name a secret that does not exist: their app does
// not have it, and no node can have one of its own. lackSecrets locks the existing secrets until
// the end of the transaction.
func lackSecrets(tx *sql.Tx, verdicts []verdict) error {
	apps, names := map[string]bool{}, map[job.Secret]bool{}
	var naming []*verdict
	for i := range verdicts {
		v := &verdicts[i]
		if v.Result != job.BulkChanged || !v.names() {
			continue
		}
		became := job.SecretNames(v.def.SecretUses())
		if v.was != nil && v.was.App == v.def.App && slices.Equal(job.SecretNames(v.was.SecretUses()), became) {
			continue
		}
		for _, name := range became {
			apps[v.def.App], names[name] = true, true
		}
		naming = append(naming, v)
	}

	exist, err := trip.ShareSecrets(tx, slices.Sorted(maps.Keys(apps)), slices.Sorted(maps.Keys(names)))
	if err != nil {
		return err
	}
	for _, v := range naming {
		if p := v.def.MissingSecrets(exist); p != nil {
			*v = v.refuse(p)
		}
	}
	return nil
}

// referrers lists some living jobs that refer to an object. The caller has locked the object's row,
// so no new references appear.
func referrers(tx *sql.Tx, kind trip.RefKind, name string, limit int) ([]job.Name, error) {
	scan := func(rows *sql.Rows) (n job.Name, err error) {
		err = rows.Scan(&n.App, &n.Name)
		return n, err
	}
	const query = `
		SELECT a.name, j.name
		FROM job_ref r
		JOIN job j ON j.id = r.job_id
		JOIN app a ON a.id = j.app_id
		WHERE r.kind = ? AND r.name = ? AND j.living = 1
		ORDER BY j.id
		LIMIT ?`
	return sql.Select(tx, "read references", scan, query, kind, name, limit)
}
