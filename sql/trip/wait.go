package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Turns reads runs by id, without ended ones. It needs no lock. Executing, woken and waiting runs
// change in two ways only: under the lock of their job's row, which this transaction holds, or by
// their end.
func Turns(r sql.Reader, ids []int64) (map[int64]*Held, error) {
	out := map[int64]*Held{}
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (PRIMARY)
		WHERE state <> 'ended' AND id IN ` + list(slices.Values(ids))

	found, err := sql.Select(r, "read runs that exclude others", scanHeld, query)
	for i := range found {
		out[found[i].Launch.Run] = &found[i]
	}

	return out, err
}

// ExecutingOf lists the executing runs of jobs. It reads the rows of all prepared and executing
// runs of the cluster, so it is only for crowded jobs. In a crowded job several runs still
// execute, although an edit has made its runs exclude each other.
func ExecutingOf(r sql.Reader, owners []Owner, jobs []int64) ([]Held, error) {
	if len(jobs) == 0 || len(owners) == 0 {
		return nil, nil
	}
	query := `
		SELECT ` + heldColumns + `
		FROM run FORCE INDEX (live)
		WHERE owner IN ` + list(slices.Values(owners)) + ` AND state = 'executing'
			AND job_id IN ` + list(slices.Values(jobs)) + `
		ORDER BY id`

	return sql.Select(r, "list executing runs of jobs", scanHeld, query)
}

// LiveAmong returns the jobs that have a run that is not over, or a backfill that will make more
// runs. It reads the rows of all live runs of the cluster, because a single job may have very many
// runs that are over.
func LiveAmong(r sql.Reader, jobs []int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	if len(jobs) == 0 {
		return out, nil
	}

	ids := list(slices.Values(jobs))
	query := `
		SELECT DISTINCT job_id
		FROM run FORCE INDEX (live)
		WHERE owner > ? AND job_id IN ` + ids + `
		UNION
		SELECT job_id
		FROM backfill FORCE INDEX (state)
		WHERE state = 'running' AND job_id IN ` + ids

	found, err := sql.Select(r, "look for live runs of jobs", scanID, query, int32(EndedOwner))
	for _, id := range found {
		out[id] = true
	}
	return out, err
}

// MarkAwaited marks runs for whose ends other runs wait, and returns the marked runs. If a run is
// missing from the result, it has ended, or its row is locked and it may be ending.
func MarkAwaited(tx *sql.Tx, ids []int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT id
		FROM run FORCE INDEX (PRIMARY)
		WHERE state <> 'ended' AND id IN ` + list(slices.Values(ids)) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`

	found, err := sql.Select(tx, "lock awaited runs", scanID, query)
	if err != nil || len(found) == 0 {
		return out, err
	}

	for _, id := range found {
		out[id] = true
	}

	change := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET awaited = awaited & 7 | 1
		WHERE id IN ` + list(slices.Values(found))
	_, err = tx.Exec("mark awaited runs", change)
	return out, err
}

// Replace asks for executing runs to be killed, because later due times replace them. The
// transaction has already marked these runs as awaited, so their ends wake the later due times. A
// run that already has a kill request stays unchanged.
func Replace(tx *sql.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	query := `
		UPDATE run FORCE INDEX (PRIMARY)
		SET wish = 'replace'
		WHERE state = 'executing' AND wish IS NULL AND id IN ` + list(slices.Values(ids))
	_, err := tx.Exec("replace runs", query)
	return err
}

// Wish is a request to kill an executing run.
type Wish struct {
	Launch
	Replace bool // a later due time replaces the run; false: a person asked for the kill
}

// Wishes lists the executing runs of a session that must be killed. It takes no lock, and reads
// the rows of all runs of the session.
func Wishes(r sql.Reader, session Owner) ([]Wish, error) {
	const query = `
		SELECT id, claim, wish = 'replace'
		FROM run FORCE INDEX (live)
		WHERE owner = ? AND wish IS NOT NULL AND state = 'executing'`

	scan := func(rows *sql.Rows) (w Wish, err error) {
		err = rows.Scan(&w.Run, &w.Claim, &w.Replace)
		return w, err
	}
	return sql.Select(r, "list runs to kill", scan, query, int32(session))
}

// Waiter is a prepared run that must wait.
type Waiter struct {
	Launch
	Place job.Micros // see JobPlace and GroupPlace
}

// Wait makes prepared runs of a session wait, and returns their number. WaitingAmong returns the
// runs themselves.
func Wait(tx *sql.Tx, session Owner, waiters []Waiter) (int64, error) {
	if len(waiters) == 0 {
		return 0, nil
	}

	r := jsonRows(len(waiters))
	for _, w := range waiters {
		r.begin()
		r.number(w.Run)
		r.number(int64(w.Claim))
		r.number(int64(w.Place))
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]', place BIGINT PATH '$[2]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'waiting', r.owner = -1, r.due_now = n.place, r.grp = 0
		WHERE r.claim = n.claim AND r.owner = ? AND r.state = 'prepared'`

	return tx.Exec("let runs wait", query, r.json(), int32(session))
}

// WaitingAmong returns the launches whose runs wait. It locks the rows as StartedAmong does.
func WaitingAmong(tx *sql.Tx, launches []Launch) (map[Launch]bool, error) {
	return among(tx, WaitingOwner, Waiting, launches)
}

// Supersede ends runs that have not begun, because later due times replace them. The transaction
// has locked their jobs.
func Supersede(tx *sql.Tx, session Owner, refusals []Refusal, now job.Micros) error {
	if len(refusals) == 0 {
		return nil
	}

	r := jsonRows(len(refusals))
	for _, f := range refusals {
		r.begin()
		r.number(f.Run)
		r.number(int64(f.Claim))
		r.reason(f.Reason)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', claim INT PATH '$[1]',
			reason_code VARCHAR(32) PATH '$[2]', reason VARCHAR(512) PATH '$[3]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		SET r.state = 'ended', r.session = ?, r.owner = -2, r.due_now = r.due, r.grp = 0,
			r.outcome = 'superseded', r.final = 1, r.ended = ?,
			r.reason_code = n.reason_code, r.reason = n.reason
		WHERE r.claim = n.claim AND r.state IN ('waiting', 'idle')`

	changed, err := tx.Exec("supersede runs", query, r.json(), int32(session), int64(now))
	if err != nil {
		return err
	}

	superseded := slices.Clone(refusals)
	for i := range superseded {
		superseded[i].Outcome = job.Superseded
	}

	return noteRefused(tx, superseded, changed)
}

// WaitingByApp counts the waiting runs by the name of their app. It reads all waiting runs.
func WaitingByApp(r sql.Reader) (map[string]int64, error) {
	const query = `
		SELECT a.name, COUNT(*)
		FROM run r FORCE INDEX (live)
		STRAIGHT_JOIN app a ON a.id = r.app_id
		WHERE r.owner = -1
		GROUP BY a.name`

	counts := map[string]int64{}
	scan := func(rows *sql.Rows) (n int64, err error) {
		var app string
		err = rows.Scan(&app, &n)
		counts[app] = n
		return n, err
	}

	_, err := sql.Select(r, "count waiting runs", scan, query)
	return counts, err
}
