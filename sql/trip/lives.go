package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
	"slices"

	"github.com/google/uuid"
)

// NewLife gives a session its number, in the transaction that registers the session. The number is
// never used again.
func NewLife(tx *sql.Tx, session uuid.UUID, node string) (Owner, error) {
	const query = `
		INSERT INTO life (session, node, started)
		VALUES (?, ?, ` + serverNow + `)`
	id, err := tx.Insert("number a session", query, session[:], node)
	return Owner(id), err
}

// EndLife records the end of a session, in the transaction that removes its row.
func EndLife(tx *sql.Tx, session uuid.UUID) error {
	const query = `
		UPDATE life FORCE INDEX (session)
		SET gone = ` + serverNow + `
		WHERE session = ?`
	_, err := tx.Exec("end a session", query, session[:])
	return err
}

// serverNow is the clock of MySQL in microseconds.
const serverNow = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"

// Living lists the numbers of the sessions that have a row, with the names of their nodes.
func Living(r sql.Reader) (map[Owner]string, error) {
	const query = `
		SELECT l.id, l.node
		FROM session s
		JOIN life l FORCE INDEX (session) ON l.session = s.id`

	living := map[Owner]string{}
	scan := func(rows *sql.Rows) (o Owner, err error) {
		var node string
		err = rows.Scan(&o, &node)
		living[o] = node
		return o, err
	}

	_, err := sql.Select(r, "list living sessions", scan, query)
	return living, err
}

// NodeOf returns the name of a session's node; "": there is no such session.
func NodeOf(r sql.Reader, session Owner) (string, error) {
	const query = `
		SELECT node
		FROM life FORCE INDEX (PRIMARY)
		WHERE id = ?`
	scan := func(rows *sql.Rows) (node string, err error) { err = rows.Scan(&node); return node, err }
	found, err := sql.Select(r, "look for a node", scan, query, int32(session))
	if len(found) == 0 {
		return "", err
	}
	return found[0], err
}

// ExecutingRuns lists the runs that execute for an owner, after the given run, the earliest due
// first. It takes no lock.
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

// Release makes runs of a session idle at once, and returns their number. The caller guarantees
// that nothing was or will be spawned for these runs. For prepared runs Release only saves time:
// without it, they become overdue two seconds after they are due.
func Release(tx *sql.Tx, session Owner, state State, launches []Launch) (int64, error) {
	if len(launches) == 0 {
		return 0, nil
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'idle', owner = 0, started = 0, spawn_by = 0
		WHERE ` + at(session, state, launches)
	n, err := tx.Exec("release runs", query)
	tx.Freed(n)
	return n, err
}

// SpawnByOf returns the latest spawn_by of the executing runs of an app; app zero means all apps.
// It returns zero if no run executes. It takes no lock.
func SpawnByOf(r sql.Reader, app int32) (job.Micros, error) {
	owners, err := Owners(r)
	if err != nil || len(owners) == 0 {
		return 0, err
	}

	query := `
		SELECT COALESCE(MAX(spawn_by), 0)
		FROM run FORCE INDEX (live)
		WHERE owner IN ` + list(slices.Values(owners)) + ` AND state = 'executing' AND (? = 0 OR app_id = ?)`

	scan := func(rows *sql.Rows) (at job.Micros, err error) {
		err = rows.Scan(&at)
		return at, err
	}

	found, err := sql.Select(r, "read spawn windows", scan, query, app, app)
	if err != nil || len(found) == 0 {
		return 0, err
	}

	return found[0], nil
}
