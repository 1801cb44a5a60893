package trip

import "go-crontab/sql"

// CountJobs counts the living jobs of an app, those that the transaction has made included.
func CountJobs(r sql.Reader, app string) (int64, error) {
	const query = `
		SELECT COUNT(*)
		FROM job FORCE INDEX (listed)
		WHERE app_id = (SELECT id FROM app WHERE name = ?) AND living = 1`
	found, err := sql.Select(r, "count jobs of an app", scanID, query, app)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}

// CountWaiting counts the waiting runs of an app, up to a number. It reads the waiting runs of all apps.
func CountWaiting(r sql.Reader, app string, most int64) (int64, error) {
	const query = `
		SELECT COUNT(*)
		FROM (
			SELECT 1
			FROM run FORCE INDEX (live)
			WHERE owner = -1 AND app_id = (SELECT id FROM app WHERE name = ?)
			LIMIT ?) some`
	found, err := sql.Select(r, "count waiting runs of an app", scanID, query, app, most)
	if err != nil {
		return 0, err
	}
	return found[0], nil
}
