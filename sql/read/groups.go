package read

import (
	"context"
	"maps"

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

// Groups lists groups with higher ids, by id. With a name it lists only the group of that name.
func (db *DB) Groups(ctx context.Context, name string, after int32, limit int) ([]Group, error) {
	const query = `
		SELECT g.id, g.name, g.slots, g.taken, g.rate, g.period, g.starts, g.created, g.updated,
			(SELECT COUNT(*) FROM job_ref f FORCE INDEX (PRIMARY) WHERE f.kind = ? AND f.name = g.name)
		FROM grp g
		WHERE g.id > ? AND ? IN ('', g.name)
		ORDER BY g.id
		LIMIT ?`

	r := db.Reader(ctx)
	scan := func(rows *sql.Rows) (g Group, err error) {
		var starts []byte
		err = rows.Scan(&g.ID, &g.Name, &g.Slots, &g.Taken, &g.Rate.Starts, &g.Rate.Period, &starts, &g.Created,
			&g.Updated, &g.Jobs)
		g.SetStarts(starts)
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

// Rated returns the named groups that have a rate and a free slot. Runs in the lines of these
// groups wait for the rate.
func (db *DB) Rated(ctx context.Context, names []string) (map[string]trip.Group, error) {
	groups, err := trip.GroupsNamed(db.Reader(ctx), names)
	maps.DeleteFunc(groups, func(_ string, g trip.Group) bool { return !g.Rate.Any() || g.Slots <= g.Taken })
	return groups, err
}
