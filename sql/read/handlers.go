package read

import (
	"context"

	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// HandlerJobs counts, for each handler, the living jobs in the given apps. If apps is nil, it
// counts the jobs of all apps.
func (db *DB) HandlerJobs(ctx context.Context, apps []string) (map[string]int, error) {
	r := db.Reader(ctx)
	out := map[string]int{}
	in, none, err := appsOf(r, "", apps)
	if err != nil || none {
		return out, err
	}

	query := `
		SELECT f.name, COUNT(*)
		FROM job_ref f FORCE INDEX (PRIMARY)
		WHERE f.kind = ?
		GROUP BY f.name`

	if in != nil {
		query = `
			SELECT f.name, COUNT(*)
			FROM job_ref f FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = f.job_id
			WHERE f.kind = ? AND j.app_id IN ` + list(in) + `
			GROUP BY f.name`
	}

	scan := func(rows *sql.Rows) (n int, err error) {
		var name string
		err = rows.Scan(&name, &n)
		out[name] = n
		return n, err
	}

	_, err = sql.Select(r, "count jobs of handlers", scan, query, trip.RefHandler)
	return out, err
}
