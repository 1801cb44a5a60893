package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"
)

// Glance is what one cheap statement tells of what there is to do.
type Glance struct {
	FirstIdle   job.Micros // when the earliest idle task is due; zero: there is none
	FirstCursor job.Micros // the earliest planning cursor; zero: there is none
	Waiting     bool       // some task waits
	Backfill    bool       // some backfill runs
	Pauses      bool       // some app or the cluster is paused, or was until a moment ago
	Held        bool       // some job is held
	LastPlace   int        // the greatest number of a place
	Sessions    int64      // changes when sessions come, go or drain, and when nodes are cordoned
}

// Glance reads one end of an index for each of its facts, and takes no lock. The least next_due that is not null is asked
// for by its order: of MIN with that condition MariaDB makes a scan.
func (db *DB) Glance(ctx context.Context) (Glance, error) {
	var (
		g            Glance
		idle, cursor stdsql.NullInt64
	)
	err := db.query(ctx, "glance", func(rows *stdsql.Rows) error {
		return rows.Scan(&idle, &cursor, &g.Waiting, &g.Backfill, &g.Pauses, &g.Held, &g.LastPlace, &g.Sessions)
	}, "SELECT (SELECT MIN(due_now) FROM task FORCE INDEX (slice) WHERE state = 0), (SELECT next_due FROM job FORCE INDEX (plan) WHERE next_due IS NOT NULL ORDER BY next_due LIMIT 1),"+
		" EXISTS (SELECT 1 FROM waiting), EXISTS (SELECT 1 FROM backfill WHERE state = 0), EXISTS (SELECT 1 FROM pause),"+
		" EXISTS (SELECT 1 FROM job FORCE INDEX (held) WHERE held = 1), COALESCE((SELECT MAX(id) FROM place), 0),"+
		" (SELECT CAST(COUNT(*) * 4294967296 + BIT_XOR(CRC32(CONCAT_WS(' ', HEX(s.id), s.draining, n.cordoned, n.since))) AS SIGNED)"+
		" FROM session s FORCE INDEX (PRIMARY) LEFT JOIN node n ON n.name = s.node WHERE s.id >= '')")
	g.FirstIdle, g.FirstCursor = job.Micros(idle.Int64), job.Micros(cursor.Int64)
	return g, err
}
