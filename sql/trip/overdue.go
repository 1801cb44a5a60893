package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Held is a run with its owner and state, read without a lock.
type Held struct {
	Run
	Owner Owner
	State State
}

const heldColumns = "id, claim, job_id, app_id, version, kind, request, attempt, due, due_now, hash, grp," +
	" awaited & 1 <> 0, awaited & 4 <> 0, owner, state, COALESCE(given, '')"

func scanHeld(rows *sql.Rows) (h Held, err error) {
	var given string
	err = rows.Scan(&h.Launch.Run, &h.Claim, &h.JobID, &h.AppID, &h.Version, &h.Kind, &h.Request, &h.Attempt,
		&h.Due, &h.DueNow, &h.Hash, &h.Group, &h.Woken, &h.Gathered, &h.Owner, &h.State, &given)
	h.Given = job.ParseGiven(given)
	return h, err
}

// Owners lists the sessions that hold runs. It steps from owner to owner. Each step is one
// statement, and reads one entry of the index. A SELECT DISTINCT, or one query with all the steps,
// would read all entries while the server has no statistics of the table.
func Owners(r sql.Reader) ([]Owner, error) {
	const query = `
		SELECT owner
		FROM run FORCE INDEX (live)
		WHERE owner > ?
		ORDER BY owner
		LIMIT 1`

	scan := func(rows *sql.Rows) (o Owner, err error) {
		err = rows.Scan(&o)
		return o, err
	}

	var out []Owner
	for after := NoOwner; ; {
		next, err := sql.Select(r, "list owners of runs", scan, query, int32(after))
		if err != nil || len(next) == 0 {
			return out, err
		}
		after = next[0]
		out = append(out, after)
	}
}

// Startable lists runs of the owners in one state that should start before an instant. It begins
// after the given run, and lists the earliest first. It takes no lock.
func Startable(r sql.Reader, owners []Owner, state State, after Held, before job.Micros, limit int) ([]Held, error) {
	if len(owners) == 0 {
		return nil, nil
	}

	query := `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (live)
		WHERE owner IN ` + list(slices.Values(owners)) + ` AND due_now >= ? AND due_now < ? AND state = ?
			AND (due_now > ? OR hash > ? OR hash = ? AND id > ?)
		ORDER BY due_now, hash, id
		LIMIT ?`

	return sql.Select(r, "list runs to start", scanHeld, query, int64(after.DueNow), int64(before), state,
		int64(after.DueNow), after.Hash, after.Hash, after.Launch.Run, limit)
}

// IdleRuns lists idle runs in a slice (without From itself), the earliest first. It takes no lock.
func IdleRuns(r sql.Reader, s Slice, limit int) ([]Held, error) {
	const query = `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (live)
		WHERE owner = 0 AND due_now > ? AND due_now < ? AND hash >= ? AND hash < ?
		ORDER BY due_now
		LIMIT ?`

	return sql.Select(r, "list idle runs", scanHeld, query, int64(s.From), int64(s.Before), s.FromHash, s.ToHash, limit)
}

// Take turns runs of one owner into prepared runs of a session, and raises their claim counts. It
// skips runs that are locked or no longer at their launches. It returns the new launches of the
// taken runs.
func Take(tx *sql.Tx, session, from Owner, launches []Launch) (taken []Launch, err error) {
	if len(launches) == 0 {
		return nil, nil
	}

	state := Prepared
	if from == NoOwner {
		state = Idle
	}

	found, err := lockFree(tx, from, state, launches)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	change := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET state = 'prepared', owner = ?, claim = claim + 1
		WHERE ` + at(from, state, found)
	n, err := tx.Exec("take runs", change, int32(session))
	tx.Claimed(n)
	if err := expect("take runs", n, len(found), err); err != nil {
		return nil, err
	}

	for i := range found {
		found[i].Claim++
	}

	return found, nil
}

// ReleaseDead makes prepared runs of a dead session idle, and returns their number. It skips locked
// runs: another node is starting them.
func ReleaseDead(tx *sql.Tx, dead Owner, launches []Launch) (int64, error) {
	free, err := lockFree(tx, dead, Prepared, launches)
	if err != nil {
		return 0, err
	}
	return Release(tx, dead, Prepared, free)
}

// lockFree locks the runs at launches, and returns the launches that it locked. It skips rows that
// are locked already.
func lockFree(tx *sql.Tx, owner Owner, state State, launches []Launch) ([]Launch, error) {
	query := `
		SELECT id, claim
		FROM run FORCE INDEX (PRIMARY)
		WHERE ` + at(owner, state, launches) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`

	scan := func(rows *sql.Rows) (l Launch, err error) {
		err = rows.Scan(&l.Run, &l.Claim)
		return l, err
	}
	return sql.Select(tx, "lock runs to take", scan, query)
}
