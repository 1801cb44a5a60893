package trip

import (
	"maps"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Named is the id and the name of a job.
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

// Kill writes the request to kill an executing run. It reports whether the run executes.
func Kill(tx *sql.Tx, l Launch) (bool, error) {
	const query = `
		UPDATE run FORCE INDEX (PRIMARY)
		SET wish = 'kill'
		WHERE id = ? AND claim = ? AND state = 'executing'`
	n, err := tx.Exec("write a kill request", query, l.Run, l.Claim)
	return n == 1, err
}

// LockLastRuns locks ended runs, and returns the runs that are the last of their due time. On the
// same server, another rerun of these due times waits until this transaction ends. On another
// member of a cluster with several writers, the other rerun conflicts with this one, because both
// write these rows.
func LockLastRuns(tx *sql.Tx, runs []int64) (map[int64]bool, error) {
	out := make(map[int64]bool, len(runs))
	for part := range slices.Chunk(slices.Sorted(slices.Values(runs)), atOnce) {
		lock := `
			SELECT id
			FROM run FORCE INDEX (PRIMARY)
			WHERE state = 'ended' AND id IN ` + list(slices.Values(part)) + `
			ORDER BY id
			FOR UPDATE`
		locked, err := sql.Select(tx, "lock runs", scanID, lock)
		if err != nil {
			return nil, err
		}
		if len(locked) == 0 { // retention has removed them
			continue
		}

		// A second statement sees what was committed while the first one waited.
		last, err := LastRuns(tx, locked)
		if err != nil {
			return nil, err
		}
		maps.Copy(out, last)
	}

	return out, touch(tx, slices.Sorted(maps.Keys(out)))
}

// touch writes the rows of ended runs. Column awaited has no meaning once a run has ended, so
// touch changes its value: a server does not write a row that stays the same.
func touch(tx *sql.Tx, ended []int64) error {
	for part := range slices.Chunk(ended, atOnce) {
		change := `
			UPDATE run FORCE INDEX (PRIMARY)
			SET awaited = 1 - awaited
			WHERE state = 'ended' AND id IN ` + list(slices.Values(part))
		n, err := tx.Exec("touch ended runs", change)
		if err := expect("touch ended runs", n, len(part), err); err != nil {
			return err
		}
	}
	return nil
}

// GivenTo returns what runs were given. Runs that were given nothing are missing from the result,
// as are most runs.
func GivenTo(r sql.Reader, runs []int64) (map[int64]*job.Given, error) {
	out := map[int64]*job.Given{}
	scan := func(rows *sql.Rows) (id int64, err error) {
		var given string
		err = rows.Scan(&id, &given)
		out[id] = job.ParseGiven(given)
		return id, err
	}
	for part := range slices.Chunk(runs, atOnce) {
		query := `
			SELECT id, given
			FROM run FORCE INDEX (PRIMARY)
			WHERE given IS NOT NULL AND id IN ` + list(slices.Values(part))
		if _, err := sql.Select(r, "read what runs were given", scan, query); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// LastRuns returns the runs that are the last of their due time. It takes at most atOnce runs.
func LastRuns(r sql.Reader, runs []int64) (map[int64]bool, error) {
	query := `
		SELECT r.id
		FROM run r FORCE INDEX (PRIMARY)
		WHERE r.id IN ` + list(slices.Values(runs)) + ` AND r.final = 1 AND NOT EXISTS (
			SELECT 1
			FROM run l FORCE INDEX (attempt)
			WHERE l.job_id = r.job_id AND l.due = r.due AND l.request > r.request)`
	found, err := sql.Select(r, "look for later runs", scanID, query)
	out := make(map[int64]bool, len(found))
	for _, id := range found {
		out[id] = true
	}
	return out, err
}
