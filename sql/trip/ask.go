package trip

import (
	"go-crontab/sql"
)

// Named is a job by its name.
type Named struct {
	JobID     int64
	App, Name string
}

// NameOf returns the name of an executing run's job, and the app of the run. If the run does not
// execute, it returns sql.ErrNotFound.
func NameOf(tx *sql.Tx, l Launch) (Named, error) {
	const query = `
		SELECT j.id, a.name, j.name
		FROM run r FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j ON j.id = r.job_id
		STRAIGHT_JOIN app a ON a.id = r.app_id
		WHERE r.id = ? AND r.claim = ? AND r.state = 'executing'`

	scan := func(rows *sql.Rows) (n Named, err error) {
		err = rows.Scan(&n.JobID, &n.App, &n.Name)
		return n, err
	}
	found, err := sql.Select(tx, "read job of a run", scan, query, l.Run, l.Claim)
	if err == nil && len(found) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return Named{}, err
	}
	return found[0], nil
}

// Kill asks for an executing run to be killed, and reports whether it executes.
func Kill(tx *sql.Tx, l Launch) (bool, error) {
	const query = `
		UPDATE run FORCE INDEX (PRIMARY)
		SET wish = 'kill'
		WHERE id = ? AND claim = ? AND state = 'executing'`
	n, err := tx.Exec("write a kill request", query, l.Run, l.Claim)
	return n == 1, err
}
