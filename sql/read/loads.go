package read

import (
	"cmp"
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Load is the number of runs of a node.
type Load struct{ Prepared, Executing int }

// Loads counts the runs of each node. It reads the rows of the runs, which are newer than the
// node's last beat.
func (db *DB) Loads(ctx context.Context) (map[string]Load, error) {
	r := db.Reader(ctx)
	out := map[string]Load{}
	owners, err := trip.Owners(r)
	if err != nil || len(owners) == 0 {
		return out, err
	}

	query := `
		SELECT l.node, SUM(r.state = 'prepared'), SUM(r.state = 'executing')
		FROM run r FORCE INDEX (live)
		STRAIGHT_JOIN life l FORCE INDEX (PRIMARY) ON l.id = r.owner
		WHERE r.owner IN ` + list(owners) + `
		GROUP BY l.node`

	scan := func(rows *sql.Rows) (l Load, err error) {
		var node string
		err = rows.Scan(&node, &l.Prepared, &l.Executing)
		out[node] = l
		return l, err
	}

	_, err = sql.Select(r, "count runs of nodes", scan, query)
	return out, err
}

// Untaken lists due runs of jobs that no node has claimed, the earliest first. To find them it
// reads all idle runs that are due.
func (db *DB) Untaken(ctx context.Context, jobs []int64, now job.Micros, limit int) (out []Wait, err error) {
	scan := func(rows *sql.Rows) (w Wait, err error) {
		err = rows.Scan(&w.JobID, &w.Run, &w.Due, &w.Kind)
		return w, err
	}

	for part := range slices.Chunk(jobs, idsAtOnce) {
		query := `
			SELECT job_id, id, due, kind
			FROM run FORCE INDEX (live)
			WHERE owner = 0 AND due_now <= ? AND job_id IN ` + list(part) + `
			ORDER BY due_now
			LIMIT ?`

		found, err := sql.Select(db.Reader(ctx), "list unclaimed runs", scan, query, int64(now), limit)
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	slices.SortStableFunc(out, func(a, b Wait) int { return cmp.Compare(a.Due, b.Due) })
	return out[:min(len(out), limit)], nil
}
