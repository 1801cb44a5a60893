package read

import (
	"context"
	"encoding/json"

	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// GoneNode is a node that has no session now but had one a while ago.
type GoneNode struct {
	Node string
	At   job.Micros // end of its last session
	Died bool       // it was declared dead or had lost its session; false: it left in order
	Lost int64      // runs that were lost with that session
}

const (
	goneMost = 500  // most audit lines of gone nodes that are read
	lostMost = 5000 // lost runs that are read
)

// GoneNodes lists the nodes that have no session now and whose last session ended at or after
// since. The latest comes first.
func (db *DB) GoneNodes(ctx context.Context, since job.Micros) ([]GoneNode, error) {
	r := db.Reader(ctx)
	const query = `
		SELECT a.at, a.name, a.action, COALESCE(a.was, '')
		FROM audit a FORCE INDEX (kind)
		WHERE a.kind = ? AND a.at >= ? AND a.action IN (?, ?, ?)
			AND NOT EXISTS (SELECT 1 FROM session s WHERE s.node = a.name)
		ORDER BY a.at DESC, a.id DESC
		LIMIT ?`

	var (
		out      []GoneNode
		sessions []uuid.UUID
		seen     = map[string]int{} // index of a node in out, from 1
	)
	err := sql.Each(r, "list nodes that are gone", func(rows *sql.Rows) error {
		var (
			n      GoneNode
			action job.Action
			was    string
			life   job.SessionLife
		)
		if err := rows.Scan(&n.At, &n.Node, &action, &was); err != nil {
			return err
		}

		// If the line was changed outside the program, only the number of lost runs is missing.
		_ = json.Unmarshal([]byte(was), &life)
		id, _ := uuid.Parse(life.Session)
		if i := seen[n.Node]; i > 0 {
			// After a session was buried, its node may add a second audit line. That line does not
			// name the session.
			if sessions[i-1] == uuid.Nil {
				sessions[i-1] = id
			}
			return nil
		}

		n.Died = action != job.ActionLeave
		out, sessions = append(out, n), append(sessions, id)
		seen[n.Node] = len(out)
		return nil
	}, query, string(job.KindSession), int64(since), string(job.ActionReap), string(job.ActionLeave),
		string(job.ActionFence), goneMost)
	if err != nil || len(out) == 0 {
		return out, err
	}

	lost, err := lostRuns(r)
	for i, id := range sessions {
		out[i].Lost = lost[id]
	}
	return out, err
}

// lostRuns counts the latest lost runs by session.
func lostRuns(r sql.Reader) (map[uuid.UUID]int64, error) {
	const query = `
		SELECT l.session, COUNT(*)
		FROM (
			SELECT run_id
			FROM notable FORCE INDEX (PRIMARY)
			WHERE outcome = 'lost'
			ORDER BY due DESC, run_id DESC
			LIMIT ?) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.run_id
		STRAIGHT_JOIN life l FORCE INDEX (PRIMARY) ON l.id = r.session
		GROUP BY l.session`

	out := map[uuid.UUID]int64{}
	err := sql.Each(r, "count lost runs", func(rows *sql.Rows) error {
		var (
			session []byte
			n       int64
		)
		if err := rows.Scan(&session, &n); err != nil {
			return err
		}
		id, err := uuid.FromBytes(session)
		out[id] = n
		return err
	}, query, lostMost)
	return out, err
}
