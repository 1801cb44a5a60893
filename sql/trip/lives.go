package trip

import (
	"go-crontab/job"
	"go-crontab/sql"

	"github.com/google/uuid"
)

// NewLife numbers a session, in the transaction that registers it. The number is never used again.
func NewLife(tx *sql.Tx, session uuid.UUID, node string, now job.Micros) (Owner, error) {
	const query = `
		INSERT INTO life (session, node, started)
		VALUES (?, ?, ?)`
	id, err := tx.Insert("number a session", query, session[:], node, int64(now))
	return Owner(id), err
}

// ExecutingRuns lists the runs that execute for an owner, the earliest due first, after the given one in that order. It takes no
// lock.
func ExecutingRuns(r sql.Reader, owner Owner, after Held, limit int) ([]Held, error) {
	const query = `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (live)
		WHERE owner = ? AND state = 'executing' AND (due_now > ? OR due_now = ? AND (hash > ? OR hash = ? AND id > ?))
		ORDER BY due_now, hash, id
		LIMIT ?`

	return sql.Select(r, "list executing runs", scanHeld, query, int32(owner),
		int64(after.DueNow), int64(after.DueNow), after.Hash, after.Hash, after.Launch.Run, limit)
}

// Release makes runs of a session idle at once, and returns how many. The caller knows that nothing was spawned for them, and that
// nothing will be. Runs that are prepared need not be released: they become overdue two seconds later.
func Release(tx *sql.Tx, session Owner, state State, launches []Launch) (int64, error) {
	if len(launches) == 0 {
		return 0, nil
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'idle', owner = 0, started = 0, spawn_by = 0
		WHERE ` + at(session, state, launches)
	return tx.Exec("release runs", query)
}
