package sql

import (
	"context"
	stdsql "database/sql"

	"go-crontab/job"

	"github.com/google/uuid"
)

// Glance is what one cheap statement tells of what there is to do.
type Glance struct {
	FirstIdle   job.Micros // when the earliest idle task is due; zero: there is none
	FirstCursor job.Micros // the earliest planning cursor; zero: there is none
	Waiting     bool       // some task waits
	Backfills   [2]int64   // the lowest and the highest id of jobs of which a backfill runs; zero: none does
	Pauses      bool       // some app or the cluster is paused, or was until a moment ago
	Held        bool       // some job is held
	LastPlace   int        // the greatest number of a place
	Sessions    int64      // changes when sessions come, go or drain, and when nodes are cordoned; its upper half is how many there are
	Owned       bool       // the session that asks owns a task
	Messages    bool       // some message of alerts is neither sent nor given up
	Alerts      bool       // there is a rule, a channel or a ping, something fires, or evaluation is to be ended
	LastLine    int64      // the greatest id of an audit line
	Limits      bool       // some app has limits
	Watermark   Watermark
}

// GlanceOf says who asks, and what that one has just seen itself: while much is overdue, the first entry of an index
// lies behind all those that were deleted and not yet purged, and is better not looked for once more.
type GlanceOf struct {
	Session uuid.UUID  // zero: nobody's, who owns nothing
	Idle    job.Micros // FirstIdle; zero: it is to be read
	Cursor  job.Micros // FirstCursor; zero: it is to be read
}

const (
	firstIdle = "(SELECT MIN(due_now) FROM task FORCE INDEX (slice) WHERE state = 0)"
	// The least next_due that is not null is asked for by its order: of MIN with that condition MariaDB makes a scan.
	firstCursor = "(SELECT next_due FROM job FORCE INDEX (plan) WHERE next_due IS NOT NULL ORDER BY next_due LIMIT 1)"
	theRest     = " EXISTS (SELECT 1 FROM waiting), COALESCE((SELECT MIN(job_id) FROM backfill FORCE INDEX (state) WHERE state = 0), 0), COALESCE((SELECT MAX(job_id) FROM backfill FORCE INDEX (state) WHERE state = 0), 0)," +
		" EXISTS (SELECT 1 FROM pause WHERE app >= '')," +
		" EXISTS (SELECT 1 FROM job FORCE INDEX (held) WHERE held = 1), COALESCE((SELECT MAX(id) FROM place), 0)," +
		" (SELECT CAST(COUNT(*) * 4294967296 + BIT_XOR(CRC32(CONCAT_WS(' ', HEX(s.id), s.draining, n.cordoned, n.since))) AS SIGNED)" +
		" FROM session s FORCE INDEX (PRIMARY) LEFT JOIN node n ON n.name = s.node WHERE s.id >= '')," +
		" EXISTS (SELECT 1 FROM task FORCE INDEX (owner) WHERE session_id = ?)," +
		" EXISTS (SELECT 1 FROM delivery FORCE INDEX (due) WHERE state < ?)," +
		" EXISTS (SELECT 1 FROM alert_rule) OR EXISTS (SELECT 1 FROM alert_channel) OR EXISTS (SELECT 1 FROM job_ref FORCE INDEX (PRIMARY) WHERE kind = ?)" +
		" OR EXISTS (SELECT 1 FROM alert FORCE INDEX (firing) WHERE firing = 1) OR EXISTS (SELECT 1 FROM alert_work FORCE INDEX (PRIMARY) WHERE id = 1 AND position <> '')," +
		" COALESCE((SELECT MAX(id) FROM audit), 0)," +
		" EXISTS (SELECT 1 FROM app_limit)," +
		" COALESCE((SELECT value FROM setting WHERE name = 'epoch'), ''), COALESCE((SELECT value FROM setting WHERE name = 'mark'), '')"
)

// Glance reads one end of an index for each of its facts, and takes no lock.
func (db *DB) Glance(ctx context.Context, of GlanceOf) (Glance, error) {
	var (
		g            Glance
		idle, cursor stdsql.NullInt64
		epoch, mark  string
	)
	var owner any // NULL: what nobody owns belongs to the session zero in the rows
	if of.Session != uuid.Nil {
		owner = of.Session[:]
	}
	query := "SELECT " + unlessKnown(of.Idle, firstIdle) + ", " + unlessKnown(of.Cursor, firstCursor) + "," + theRest
	err := db.query(ctx, "glance", func(rows *stdsql.Rows) error {
		return rows.Scan(&idle, &cursor, &g.Waiting, &g.Backfills[0], &g.Backfills[1], &g.Pauses, &g.Held, &g.LastPlace, &g.Sessions, &g.Owned, &g.Messages, &g.Alerts, &g.LastLine, &g.Limits, &epoch, &mark)
	}, query, owner, DeliverySent, RefPing)
	g.FirstIdle, g.FirstCursor = job.Micros(idle.Int64)+of.Idle, job.Micros(cursor.Int64)+of.Cursor
	g.Watermark = watermarkOf(epoch, mark)
	return g, err
}

func unlessKnown(at job.Micros, query string) string {
	if at != 0 {
		return "NULL"
	}
	return query
}
