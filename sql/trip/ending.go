package trip

import (
	"go-crontab/job"
	"go-crontab/sql"
)

// Ending holds the columns of an executing run that are needed to end it.
type Ending struct {
	Launch
	JobID  int64
	Group  int32 // whose slot it holds; zero: none
	Kind   Kind
	Wished bool // a person asked for the kill: there is no retry

	Watched bool // the end has consequences
	Due     job.Micros
	Given   *job.Given // only of watched runs
}

// Endings reads runs that execute for a session at these launches. It takes no lock.
func Endings(r sql.Reader, session Owner, launches []Launch) ([]Ending, error) {
	return endings(r, session, launches, "")
}

// LockEndings is like Endings, and locks the rows. It skips rows that are locked already.
func LockEndings(tx *sql.Tx, session Owner, launches []Launch) ([]Ending, error) {
	return endings(tx, session, launches, `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`)
}

func endings(r sql.Reader, session Owner, launches []Launch, lock string) ([]Ending, error) {
	if len(launches) == 0 {
		return nil, nil
	}

	query := `
		SELECT id, claim, job_id, grp, kind, wish IS NOT NULL, awaited & 2 <> 0, due, IF(awaited & 2, COALESCE(given, ''), '')
		FROM run FORCE INDEX (PRIMARY)
		WHERE ` + at(session, Executing, launches) + lock

	scan := func(rows *sql.Rows) (e Ending, err error) {
		var given string
		err = rows.Scan(&e.Run, &e.Claim, &e.JobID, &e.Group, &e.Kind, &e.Wished, &e.Watched, &e.Due, &given)
		e.Given = job.ParseGiven(given)
		return e, err
	}
	return sql.Select(r, "read runs that end", scan, query)
}

// Again is the next attempt of a run that has ended.
type Again struct {
	After int64 // the run that has ended
	Run   int64 // the id of the next attempt
	At    job.Micros
}

// InsertAgain inserts the next attempts of runs as idle. An attempt that already exists stays
// unchanged.
func InsertAgain(tx *sql.Tx, attempts []Again) error {
	if len(attempts) == 0 {
		return nil
	}

	r := jsonRows(len(attempts))
	for _, a := range attempts {
		r.begin()
		r.number(a.After)
		r.number(a.Run)
		r.number(int64(a.At))
		r.end()
	}

	const query = `
		INSERT INTO run (id, job_id, app_id, version, due, kind, request, attempt, state, owner, claim, due_now,
			hash, given)
		SELECT n.id, r.job_id, r.app_id, r.version, r.due, r.kind, r.request, r.attempt + 1, 'idle', 0, 0, n.at,
			r.hash, r.given
		FROM JSON_TABLE(?, '$[*]' COLUMNS (
			after BIGINT PATH '$[0]', id BIGINT PATH '$[1]', at BIGINT PATH '$[2]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.after
		ON DUPLICATE KEY UPDATE id = run.id`
	_, err := tx.Exec("insert next attempts", query, r.json())
	return err
}
