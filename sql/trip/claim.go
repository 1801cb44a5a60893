package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// Candidate is a job that may be claimed, read without a lock.
type Candidate struct {
	JobID   int64
	AppID   int32
	Hash    int
	Version int32
	NextDue job.Micros
	Paused  bool       // the job was paused until NextDue, and that time has come
	Parked  job.Micros // the cursor while the job is paused; zero: none
	Resumed job.Micros // when its last pause ended; zero: it was never paused
}

// Slice selects the rows of one query: due times in [From, Before), in a range of hashes.
type Slice struct {
	From, Before     job.Micros
	FromHash, ToHash int // FromHash ≤ hash < ToHash
	NotApps          []int32
}

// Candidates lists jobs whose cursor is in the slice, the earliest first. Jobs whose pause has
// ended by itself are among them. Candidates takes no lock.
func Candidates(r sql.Reader, s Slice, now job.Micros, limit int) ([]Candidate, error) {
	others := ""
	if len(s.NotApps) > 0 {
		others = " AND app_id NOT IN " + list(slices.Values(s.NotApps))
	}

	query := `
		SELECT id, app_id, hash, version, next_due, paused <> 0, COALESCE(parked, 0), resumed
		FROM job FORCE INDEX (claim)
		WHERE next_due >= ? AND next_due < ? AND hash >= ? AND hash < ? AND (paused = 0 OR next_due <= ?)` + others + `
		ORDER BY next_due
		LIMIT ?`

	scan := func(rows *sql.Rows) (c Candidate, err error) {
		err = rows.Scan(&c.JobID, &c.AppID, &c.Hash, &c.Version, &c.NextDue, &c.Paused, &c.Parked, &c.Resumed)
		return c, err
	}
	return sql.Select(r, "list jobs to claim", scan, query,
		int64(s.From), int64(s.Before), s.FromHash, s.ToHash, int64(now), limit)
}

// Cursor returns the first due time without a run; zero: none.
func (c *Candidate) Cursor() job.Micros {
	if c.Paused {
		return c.Parked
	}
	return c.NextDue
}

// ResumedAt returns the end of the last pause, including a pause that ends now.
func (c *Candidate) ResumedAt() job.Micros {
	if c.Paused {
		return c.NextDue
	}
	return c.Resumed
}

// Definition is one version of a job's definition, as JSON.
type Definition struct {
	JobID     int64
	Version   int32
	Text      string
	Calendars []*job.Calendar // that it names
	pinned    string          // see job_version.calendars
}

// Versions returns the current versions of jobs; a deleted job has none. It takes no lock.
func Versions(r sql.Reader, jobs []int64) (map[int64]int32, error) {
	out := make(map[int64]int32, len(jobs))
	scan := func(rows *sql.Rows) (id int64, err error) {
		var version int32
		err = rows.Scan(&id, &version)
		out[id] = version
		return id, err
	}
	for part := range slices.Chunk(jobs, atOnce) {
		query := `
			SELECT id, version
			FROM job FORCE INDEX (PRIMARY)
			WHERE living = 1 AND id IN ` + list(slices.Values(part))
		if _, err := sql.Select(r, "read versions of jobs", scan, query); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// Definitions reads the current definitions of jobs, with the calendars that they name. It takes
// no lock. If a calendar changes at this moment, the job has a new version, and the definition is
// left out. If a definition was deleted outside the program, its text is empty and cannot be used.
func Definitions(r sql.Reader, jobs []int64) ([]Definition, error) {
	if len(jobs) == 0 {
		return nil, nil
	}

	query := `
		SELECT j.id, j.version, COALESCE(v.definition, ''), COALESCE(v.calendars, '')
		FROM job j FORCE INDEX (PRIMARY)
		LEFT JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
		WHERE j.id IN ` + list(slices.Values(jobs))

	scan := func(rows *sql.Rows) (d Definition, err error) {
		err = rows.Scan(&d.JobID, &d.Version, &d.Text, &d.pinned)
		return d, err
	}

	found, err := sql.Select(r, "read definitions", scan, query)
	if err != nil {
		return nil, err
	}

	return withCalendars(r, found)
}

// LockJobs locks the rows of jobs, and returns them by id. If a job is missing from the result,
// another transaction has locked it, or it does not exist.
func LockJobs(tx *sql.Tx, ids []int64) (map[int64]*Job, error) {
	out := make(map[int64]*Job, len(ids))
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT id, version, paused <> 0, living IS NULL, crowded <> 0, COALESCE(next_due, 0), begun_to, running,
			followed <> 0
		FROM job FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(ids)) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`

	scan := func(rows *sql.Rows) (*Job, error) {
		j := &Job{}
		err := rows.Scan(&j.ID, &j.Version, &j.Paused, &j.Deleted, &j.Crowded, &j.NextDue, &j.BegunTo, &j.Running,
			&j.Followed)
		return j, err
	}

	jobs, err := sql.Select(tx, "lock jobs", scan, query)
	for _, j := range jobs {
		out[j.ID] = j
	}

	return out, err
}

// Existing returns the jobs that exist. It takes no lock and waits for none.
func Existing(tx *sql.Tx, ids []int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT id
		FROM job FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(ids))

	found, err := sql.Select(tx, "look for jobs", scanID, query)
	for _, id := range found {
		out[id] = true
	}

	return out, err
}

// Cursor is the change that a claim makes to the row of a job.
type Cursor struct {
	JobID   int64
	Next    job.Micros // zero: no further due time
	BegunTo job.Micros // the latest scheduled due time that begins or ends with the claim; zero: none
	Running int64      // the run that has the turn now; zero: unchanged
}

// MoveCursors moves the cursors of jobs whose rows the transaction has locked.
func MoveCursors(tx *sql.Tx, cursors []Cursor) error {
	var done, begun, plain []Cursor
	for _, c := range cursors {
		switch {
		case c.BegunTo != 0 || c.Running != 0:
			begun = append(begun, c)
		case c.Next == 0:
			done = append(done, c)
		default:
			plain = append(plain, c)
		}
	}
	if err := endCursors(tx, done); err != nil {
		return err
	}
	if err := setCursors(tx, plain); err != nil {
		return err
	}

	return beginCursors(tx, begun)
}

// setCursors moves the cursors of jobs for which the claim neither starts nor ends a run.
func setCursors(tx *sql.Tx, cursors []Cursor) error {
	if len(cursors) == 0 {
		return nil
	}

	r := jsonRows(len(cursors))
	for _, c := range cursors {
		r.begin()
		r.number(c.JobID)
		r.number(int64(c.Next))
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', next_due BIGINT PATH '$[1]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.next_due = n.next_due`

	n, err := tx.Exec("move cursors", query, r.json())
	return expect("move cursors", n, len(cursors), err)
}

// beginCursors moves the cursors of jobs for which the claim also starts or ends runs.
func beginCursors(tx *sql.Tx, cursors []Cursor) error {
	if len(cursors) == 0 {
		return nil
	}

	r := jsonRows(len(cursors))
	for _, c := range cursors {
		r.begin()
		r.number(c.JobID)
		r.numberOrNull(int64(c.Next))
		r.number(int64(c.BegunTo))
		r.number(c.Running)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', next_due BIGINT PATH '$[1]', begun_to BIGINT PATH '$[2]',
			running BIGINT PATH '$[3]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.next_due = n.next_due, j.begun_to = GREATEST(j.begun_to, n.begun_to),
			j.running = IF(n.running = 0, j.running, n.running)`

	n, err := tx.Exec("move cursors and mark jobs as begun", query, r.json())
	return expect("move cursors and mark jobs as begun", n, len(cursors), err)
}

// endCursors clears the cursors of jobs that have no further due time. The claim neither starts
// nor ends a run of these jobs.
func endCursors(tx *sql.Tx, cursors []Cursor) error {
	if len(cursors) == 0 {
		return nil
	}
	query := `
		UPDATE job FORCE INDEX (PRIMARY)
		SET next_due = NULL
		WHERE id IN ` + each(cursors, func(c *Cursor) int64 { return c.JobID })
	n, err := tx.Exec("end cursors", query)
	return expect("end cursors", n, len(cursors), err)
}

// Insert writes new runs: prepared for a session, or idle when the owner is NoOwner.
func Insert(tx *sql.Tx, owner Owner, runs []Run) error {
	state := Prepared
	if owner == NoOwner {
		state = Idle
	}
	return insertRuns(tx, owner, state, runs, "", nil)
}

// InsertStarted writes new runs that execute for a session, see Start.
func InsertStarted(tx *sql.Tx, session Owner, runs []Run, now job.Micros, window int64) error {
	tx.Started(int64(len(runs)))
	return insertRuns(tx, session, Executing, runs, ", session, started, spawn_by", func(r *rows, run *Run) {
		r.number(int64(session))
		r.number(int64(now))
		r.number(int64(max(run.DueNow, now)) + window)
	})
}

// insertRuns writes new runs, optionally with further columns.
func insertRuns(tx *sql.Tx, owner Owner, state State, runs []Run, columns string, further func(*rows, *Run)) error {
	if len(runs) == 0 {
		return nil
	}

	// Nearly all runs were given nothing and are not watched. Without such runs, the columns are
	// left out.
	given := slices.ContainsFunc(runs, func(run Run) bool { return run.Given != nil })
	var texts []any
	if given {
		columns += ", given"
	}
	watched := slices.ContainsFunc(runs, func(run Run) bool { return run.Watched })
	if watched {
		columns += ", awaited"
	}

	r := valueRows(len(runs))
	for i := range runs {
		run := &runs[i]
		r.begin()
		r.number(run.Run)
		r.number(run.JobID)
		r.number(int64(run.AppID))
		r.number(int64(run.Version))
		r.number(int64(run.Due))
		r.word("'" + string(run.Kind) + "'")
		r.number(run.Request)
		r.number(int64(run.Attempt))
		r.word("'" + string(state) + "'")
		r.number(int64(owner))
		r.number(int64(run.Claim))
		r.number(int64(run.DueNow))
		r.number(int64(run.Hash))
		if further != nil {
			further(r, run)
		}
		if given {
			r.word("NULLIF(?, '')")
			texts = append(texts, run.Given.Text())
		}
		if watched {
			r.number(int64(flag(run.Watched) * bitWatched))
		}
		r.end()
	}

	query := `
		INSERT INTO run (id, job_id, app_id, version, due, kind, request, attempt, state, owner, claim,
			due_now, hash` + columns + `)
		VALUES `
	_, err := tx.Exec("insert runs", query+r.values(), texts...)
	if owner != NoOwner {
		tx.Claimed(int64(len(runs)))
	}

	return err
}
