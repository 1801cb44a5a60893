package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Group is a group with its use.
type Group struct {
	trip.Group
	Waiting int // runs that wait for a slot
	Jobs    int // living jobs that use the group
	Created job.Micros
	Updated job.Micros
}

// Groups lists groups with higher ids, by id, or only the group with the given name.
func (db *DB) Groups(ctx context.Context, name string, after int32, limit int) ([]Group, error) {
	const query = `
		SELECT g.id, g.name, g.slots, g.taken, g.created, g.updated,
			(SELECT COUNT(*) FROM job_ref f FORCE INDEX (PRIMARY) WHERE f.kind = ? AND f.name = g.name)
		FROM grp g
		WHERE g.id > ? AND ? IN ('', g.name)
		ORDER BY g.id
		LIMIT ?`

	r := db.Reader(ctx)
	scan := func(rows *sql.Rows) (g Group, err error) {
		err = rows.Scan(&g.ID, &g.Name, &g.Slots, &g.Taken, &g.Created, &g.Updated, &g.Jobs)
		return g, err
	}

	groups, err := sql.Select(r, "list groups", scan, query, trip.RefGroup, after, name, limit)
	for i := range groups {
		if err != nil {
			return nil, err
		}
		groups[i].Waiting, err = trip.CountLine(r, groups[i].ID)
	}

	return groups, err
}
