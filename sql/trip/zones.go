package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// Zoned holds the columns of a living job that a check of its cursor needs.
type Zoned struct {
	JobID   int64
	Version int32
	NextDue job.Micros // zero: none
	Paused  bool
}

// JobsAfter lists living jobs in the order of ids, beginning after the id `after`.
func JobsAfter(r sql.Reader, after int64, limit int) ([]Zoned, error) {
	const query = `
		SELECT id, version, COALESCE(next_due, 0), paused <> 0
		FROM job FORCE INDEX (PRIMARY)
		WHERE id > ? AND living = 1
		ORDER BY id
		LIMIT ?`
	scan := func(rows *sql.Rows) (z Zoned, err error) {
		err = rows.Scan(&z.JobID, &z.Version, &z.NextDue, &z.Paused)
		return z, err
	}
	return sql.Select(r, "list jobs by id", scan, query, after, limit)
}
