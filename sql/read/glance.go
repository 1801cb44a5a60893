package read

import (
	"context"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Glance says which kinds of work are waiting. One cheap statement reads it.
type Glance struct {
	FirstIdle   job.Micros // the earliest due time of an idle run; zero: none
	FirstWake   job.Micros // the earliest instant at which waiting runs of a group wake by time; zero: none
	FirstCursor job.Micros // the earliest cursor of a job; zero: none
	Held        bool       // some session owns runs
	Backfills   bool       // some backfill is running
	// Sessions changes when sessions come, go or drain, and when nodes are cordoned. Its upper half
	// is the number of sessions.
	Sessions  int64
	Messages  bool  // some alert message has been neither sent nor given up
	Alerts    bool  // there is a rule, channel, ping or firing alert, or the evaluation must be ended
	LastLine  int64 // the highest id of an audit line
	Limits    bool  // some app has limits
	Watermark sql.Watermark
}

// sentDelivery is the state of a sent message. It repeats a constant of package alert, which
// imports this package.
const sentDelivery = 2

// Glance reads each fact from one end of an index. It takes no lock.
func (db *DB) Glance(ctx context.Context) (Glance, error) {
	const query = `
		SELECT
			COALESCE((SELECT MIN(due_now) FROM run FORCE INDEX (live) WHERE owner = 0), 0),
			COALESCE((SELECT MIN(wake_at) FROM grp FORCE INDEX (wake) WHERE wake_at > 0), 0),
			COALESCE((
				SELECT next_due
				FROM job FORCE INDEX (claim)
				WHERE next_due IS NOT NULL
				ORDER BY next_due
				LIMIT 1), 0),
			EXISTS (SELECT 1 FROM run FORCE INDEX (live) WHERE owner > 0),
			EXISTS (SELECT 1 FROM backfill FORCE INDEX (state) WHERE state = 'running'),
			(SELECT CAST(COUNT(*) * 4294967296 +
					BIT_XOR(CRC32(CONCAT_WS(' ', HEX(s.id), s.draining, n.cordoned, n.since))) AS SIGNED)
				FROM session s FORCE INDEX (PRIMARY)
				LEFT JOIN node n ON n.name = s.node),
			EXISTS (SELECT 1 FROM delivery FORCE INDEX (due) WHERE state < ?),
			EXISTS (SELECT 1 FROM alert_rule) OR EXISTS (SELECT 1 FROM alert_channel)
				OR EXISTS (SELECT 1 FROM job_ref FORCE INDEX (PRIMARY) WHERE kind = ?)
				OR EXISTS (SELECT 1 FROM alert FORCE INDEX (firing) WHERE firing = 1)
				OR EXISTS (SELECT 1 FROM alert_work FORCE INDEX (PRIMARY) WHERE id = 1 AND position <> ''),
			COALESCE((SELECT MAX(id) FROM audit), 0),
			EXISTS (SELECT 1 FROM app_limit),
			COALESCE((SELECT value FROM setting WHERE name = 'epoch'), ''),
			COALESCE((SELECT value FROM setting WHERE name = 'mark'), '')`

	scan := func(rows *sql.Rows) (g Glance, err error) {
		var epoch, mark string
		err = rows.Scan(&g.FirstIdle, &g.FirstWake, &g.FirstCursor, &g.Held, &g.Backfills, &g.Sessions, &g.Messages, &g.Alerts,
			&g.LastLine, &g.Limits, &epoch, &mark)
		g.Watermark = sql.WatermarkOf(epoch, mark)
		return g, err
	}

	found, err := sql.Select(db.Reader(ctx), "look for waiting work", scan, query, sentDelivery, trip.RefPing)
	if err != nil {
		return Glance{}, err
	}
	return found[0], nil
}
