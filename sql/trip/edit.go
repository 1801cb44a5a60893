package trip

import (
	"fmt"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// atOnce bounds the numbers in one list of a statement. From 1,000 numbers on, MariaDB turns the
// list into a subquery and changes the query plan.
const atOnce = 800

// JobRow is the row of a job as an edit reads and writes it.
type JobRow struct {
	ID      int64
	AppID   int32
	Name    string
	Hash    int
	Version int32
	Changes int32
	Paused  bool
	Deleted bool
	Crowded bool
	NextDue job.Micros // for a paused job: when its pause ends by itself; zero: none
	Parked  job.Micros // the cursor of a paused job; zero: none
	BegunTo job.Micros
	Resumed job.Micros
	Running int64
	Error   string

	Followed bool // see Job
}

// Cursor returns the first due time without a run; zero: none.
func (j *JobRow) Cursor() job.Micros {
	if j.Paused {
		return j.Parked
	}
	return j.NextDue
}

// SetCursor moves the cursor. A paused job stays paused.
func (j *JobRow) SetCursor(to job.Micros) {
	if j.Paused {
		j.Parked = to
	} else {
		j.NextDue = to
	}
}

// Seen is a job with its definition and its pause, as they were read without a lock.
type Seen struct {
	JobRow
	App       string
	Text      string // the definition
	Calendars string // see job_version.calendars
	Pause     Pause
}

// Pause says why a job is paused, for people. It is zero for a job that is not paused.
type Pause struct {
	JobID  int64
	Since  job.Micros
	Until  job.Micros
	Who    string
	Reason string
}

const jobColumns = "j.id, j.app_id, j.name, j.hash, j.version, j.changes, j.paused <> 0," +
	" j.living IS NULL, j.crowded <> 0, COALESCE(j.next_due, 0), COALESCE(j.parked, 0), j.begun_to," +
	" j.resumed, j.running, j.error, j.followed <> 0"

func (j *JobRow) fields() []any {
	return []any{&j.ID, &j.AppID, &j.Name, &j.Hash, &j.Version, &j.Changes, &j.Paused, &j.Deleted, &j.Crowded,
		&j.NextDue, &j.Parked, &j.BegunTo, &j.Resumed, &j.Running, &j.Error, &j.Followed}
}

// SeeJobs reads jobs with their definitions. It takes no lock.
func SeeJobs(r sql.Reader, ids []int64) (map[int64]*Seen, error) {
	out := make(map[int64]*Seen, len(ids))
	scan := func(rows *sql.Rows) (*Seen, error) {
		s := &Seen{}
		err := rows.Scan(append(s.fields(), &s.App, &s.Text, &s.Calendars,
			&s.Pause.Since, &s.Pause.Until, &s.Pause.Who, &s.Pause.Reason)...)
		return s, err
	}
	for part := range slices.Chunk(ids, atOnce) {
		query := `
			SELECT ` + jobColumns + `, a.name, COALESCE(v.definition, ''), COALESCE(v.calendars, ''),
				COALESCE(p.since, 0), COALESCE(p.until, 0), COALESCE(p.who, ''), COALESCE(p.reason, '')
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN app a ON a.id = j.app_id
			LEFT JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
			LEFT JOIN job_pause p ON p.job_id = j.id
			WHERE j.id IN ` + list(slices.Values(part))
		found, err := sql.Select(r, "read jobs", scan, query)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			s.Pause.JobID = s.ID
			out[s.ID] = s
		}
	}

	return out, nil
}

// LockToEdit locks the rows of jobs, and returns them by id. It skips rows that are locked already.
func LockToEdit(tx *sql.Tx, ids []int64) (map[int64]*JobRow, error) {
	return lockToEdit(tx, ids, "FOR UPDATE SKIP LOCKED")
}

// AwaitToEdit is like LockToEdit for one job, but waits for the lock. The wait is short: if a job
// is due many times a second, its row is nearly always locked, but never for long.
func AwaitToEdit(tx *sql.Tx, id int64) (map[int64]*JobRow, error) {
	return lockToEdit(tx, []int64{id}, "FOR UPDATE")
}

func lockToEdit(tx *sql.Tx, ids []int64, lock string) (map[int64]*JobRow, error) {
	out := make(map[int64]*JobRow, len(ids))
	scan := func(rows *sql.Rows) (*JobRow, error) {
		j := &JobRow{}
		return j, rows.Scan(j.fields()...)
	}
	for part := range slices.Chunk(ids, atOnce) {
		query := `
			SELECT ` + jobColumns + `
			FROM job j FORCE INDEX (PRIMARY)
			WHERE j.id IN ` + list(slices.Values(part)) + `
			ORDER BY j.id
			` + lock
		jobs, err := sql.Select(tx, "lock jobs to edit", scan, query)
		if err != nil {
			return nil, err
		}
		for _, j := range jobs {
			out[j.ID] = j
		}
	}

	return out, nil
}

// Ahead is a scheduled run that is due after an edit.
type Ahead struct {
	Run     int64
	JobID   int64
	Due     job.Micros
	Attempt int
	State   State
	Ended   job.Micros // only of LastScheduled
}

// RunsAhead lists the scheduled runs that are due after an instant, by job and in the order of due
// times. The transaction has locked the rows of the jobs, so no run of theirs can be claimed or
// started.
func RunsAhead(tx *sql.Tx, jobs []int64, after job.Micros) (map[int64][]Ahead, error) {
	out := map[int64][]Ahead{}
	scan := func(rows *sql.Rows) (a Ahead, err error) {
		err = rows.Scan(&a.Run, &a.JobID, &a.Due, &a.Attempt, &a.State)
		return a, err
	}
	for part := range slices.Chunk(jobs, atOnce) {
		query := `
			SELECT id, job_id, due, attempt, state
			FROM run FORCE INDEX (attempt)
			WHERE job_id IN ` + list(slices.Values(part)) + ` AND due > ? AND request = 0
			ORDER BY job_id, due, attempt`
		runs, err := sql.Select(tx, "read runs ahead", scan, query, int64(after))
		if err != nil {
			return nil, err
		}
		for _, a := range runs {
			out[a.JobID] = append(out[a.JobID], a)
		}
	}

	return out, nil
}

// TakeBack deletes runs that have not begun. If a run has begun, it returns sql.ErrMoved.
func TakeBack(tx *sql.Tx, runs []int64) error {
	const query = `
		DELETE r
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN run r FORCE INDEX (PRIMARY) ON r.id = n.id
		WHERE r.state IN ('idle', 'prepared')`

	if len(runs) == 0 {
		return nil
	}
	n, err := tx.Exec("take back runs", query, singles(runs))
	return expect("take back runs", n, len(runs), err)
}

// singles writes numbers as JSON rows with a single cell.
func singles(numbers []int64) string {
	r := jsonRows(len(numbers))
	for _, n := range numbers {
		r.begin()
		r.number(n)
		r.end()
	}
	return r.json()
}

// Counted is an ended run that represents a range of due times without runs.
type Counted struct {
	Run         int64
	JobID       int64
	AppID       int32
	Version     int32
	Hash        int
	First, Last job.Micros
	Count       int64 // zero: unknown, because the schedule cannot be computed
	Outcome     job.Outcome
	Reason      job.Reason
}

// InsertCounted writes counted runs. Each is final.
func InsertCounted(tx *sql.Tx, counted []Counted, now job.Micros) error {
	if len(counted) == 0 {
		return nil
	}

	r := jsonRows(len(counted))
	for i := range counted {
		c := &counted[i]
		r.begin()
		r.number(c.Run)
		r.number(c.JobID)
		r.number(int64(c.AppID))
		r.number(int64(c.Version))
		r.number(int64(c.Hash))
		r.number(int64(c.First))
		r.number(int64(c.Last))
		r.number(c.Count)
		r.number(int64(c.Outcome))
		r.reason(c.Reason)
		r.end()
	}

	const query = `
		INSERT INTO run (id, job_id, app_id, version, hash, due, due_now, due_last, due_count, kind, state,
			owner, claim, outcome, final, ended, reason_code, reason)
		SELECT id, job_id, app_id, version, hash, due, due, due_last, NULLIF(due_count, 0), 'schedule', 'ended', -2, 0,
			outcome, 1, ?, reason_code, reason
		FROM JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', job_id BIGINT PATH '$[1]', app_id INT PATH '$[2]', version INT PATH '$[3]',
			hash INT PATH '$[4]', due BIGINT PATH '$[5]', due_last BIGINT PATH '$[6]', due_count BIGINT PATH '$[7]',
			outcome INT PATH '$[8]', reason_code VARCHAR(32) PATH '$[9]', reason VARCHAR(512) PATH '$[10]')) n`

	if _, err := tx.Exec("insert counted runs", query, int64(now), r.json()); err != nil {
		return err
	}

	notes := make([]Note, len(counted))
	for i := range counted {
		c := &counted[i]
		notes[i] = Note{Run: c.Run, JobID: c.JobID, Outcome: c.Outcome}
	}

	return noteEnds(tx, notes, int64(len(notes)))
}

// WriteJobs writes the rows of jobs, which the transaction has locked. If another living job
// already has the name of one of them, the error is sql.ErrExists.
func WriteJobs(tx *sql.Tx, jobs []JobRow) error {
	if len(jobs) == 0 {
		return nil
	}

	r := jsonRows(len(jobs))
	for i := range jobs {
		j := &jobs[i]
		r.begin()
		r.number(j.ID)
		r.number(int64(j.AppID))
		r.text(j.Name)
		r.numberOrNull(int64(1 - flag(j.Deleted)))
		r.number(int64(j.Version))
		r.number(int64(j.Changes))
		r.number(int64(flag(j.Paused)))
		r.number(int64(flag(j.Crowded)))
		r.numberOrNull(int64(j.NextDue))
		r.numberOrNull(int64(j.Parked))
		r.number(int64(j.BegunTo))
		r.number(int64(j.Resumed))
		r.text(j.Error)
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', app_id INT PATH '$[1]', name VARCHAR(128) PATH '$[2]', living INT PATH '$[3]',
			version INT PATH '$[4]', changes INT PATH '$[5]', paused INT PATH '$[6]', crowded INT PATH '$[7]',
			next_due BIGINT PATH '$[8]', parked BIGINT PATH '$[9]', begun_to BIGINT PATH '$[10]',
			resumed BIGINT PATH '$[11]', error VARCHAR(512) PATH '$[12]')) n
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id
		SET j.app_id = n.app_id, j.name = n.name, j.living = n.living, j.version = n.version, j.changes = n.changes,
			j.paused = n.paused, j.crowded = n.crowded, j.next_due = n.next_due, j.parked = n.parked,
			j.begun_to = n.begun_to, j.resumed = n.resumed, j.error = COALESCE(n.error, '')`

	n, err := tx.Exec("write jobs", query, r.json())
	if sql.IsDuplicate(err) {
		return fmt.Errorf("a job of that name: %w", sql.ErrExists)
	}

	return expect("write jobs", n, len(jobs), err)
}

// InsertJobs writes new jobs and sets their ids. If a living job already has the name of one of
// them, the error is sql.ErrExists.
func InsertJobs(tx *sql.Tx, jobs []*JobRow) error {
	if len(jobs) == 0 {
		return nil
	}

	r := jsonRows(len(jobs))
	apps := map[int32]bool{}
	for _, j := range jobs {
		apps[j.AppID] = true
		r.begin()
		r.number(int64(j.AppID))
		r.text(j.Name)
		r.number(int64(j.Hash))
		r.number(int64(flag(j.Paused)))
		r.numberOrNull(int64(j.NextDue))
		r.numberOrNull(int64(j.Parked))
		r.end()
	}

	const columns = `JSON_TABLE(?, '$[*]' COLUMNS (
			app_id INT PATH '$[0]', name VARCHAR(128) PATH '$[1]', hash INT PATH '$[2]', paused INT PATH '$[3]',
			next_due BIGINT PATH '$[4]', parked BIGINT PATH '$[5]')) n`
	const insert = `
		INSERT INTO job (app_id, name, hash, paused, next_due, parked)
		SELECT app_id, name, hash, paused, next_due, parked
		FROM ` + columns
	text := r.json()
	_, err := tx.Exec("insert jobs", insert, text)
	if sql.IsDuplicate(err) {
		return fmt.Errorf("a job of that name: %w", sql.ErrExists)
	}
	if err != nil {
		return err
	}

	// Read the ids back instead of counting up: not every server numbers the rows of a statement
	// consecutively.
	const read = `
		SELECT j.id, j.app_id, j.name
		FROM ` + columns + `
		STRAIGHT_JOIN job j FORCE INDEX (name)
			ON j.app_id = n.app_id AND j.name = n.name COLLATE utf8mb4_bin AND j.living = 1`
	scan := func(rows *sql.Rows) (j JobRow, err error) {
		err = rows.Scan(&j.ID, &j.AppID, &j.Name)
		return j, err
	}

	found, err := sql.Select(tx, "read ids of jobs", scan, read, text)
	if err != nil {
		return err
	}

	type name struct {
		app  int32
		name string
	}

	ids := make(map[name]int64, len(found))
	for i := range found {
		ids[name{found[i].AppID, found[i].Name}] = found[i].ID
	}

	for _, j := range jobs {
		j.ID = ids[name{j.AppID, j.Name}]
	}

	return expect("read ids of jobs", int64(len(ids)), len(jobs), nil)
}

// Version is a new version of a job's definition.
type Version struct {
	JobID     int64
	Number    int32
	Text      string
	Calendars string
	Who       string
}

// maxText bounds the definitions that one statement carries, in bytes.
const maxText = 2 << 20

// InsertVersions writes new versions of definitions.
func InsertVersions(tx *sql.Tx, versions []Version, now job.Micros) error {
	const columns = 6
	for len(versions) > 0 {
		var args []any
		size, n := 0, 0
		for ; n < len(versions) && n < atOnce && size < maxText; n++ {
			v := &versions[n]
			size += len(v.Text)
			args = append(args, v.JobID, v.Number, v.Text, v.Calendars, v.Who, int64(now))
		}
		query := `
			INSERT INTO job_version (job_id, version, definition, calendars, who, created)
			VALUES ` + sql.Values(n, columns)
		if _, err := tx.Exec("insert versions", query, args...); err != nil {
			return err
		}
		versions = versions[n:]
	}

	return nil
}

// Ref is a reference of a job to something by its name.
type Ref struct {
	Kind  RefKind
	Name  string
	JobID int64
}

// SetRefs replaces all references of the jobs by the given ones.
func SetRefs(tx *sql.Tx, jobs []int64, refs []Ref) error {
	if len(jobs) == 0 {
		return nil
	}

	const remove = `
		DELETE r
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN job_ref r FORCE INDEX (job) ON r.job_id = n.id`
	if _, err := tx.Exec("delete references", remove, singles(jobs)); err != nil {
		return err
	}

	for part := range slices.Chunk(refs, atOnce) {
		var args []any
		for _, r := range part {
			args = append(args, r.Kind, r.Name, r.JobID)
		}
		query := "INSERT INTO job_ref (kind, name, job_id) VALUES " + sql.Values(len(part), 3)
		if _, err := tx.Exec("insert references", query, args...); err != nil {
			return err
		}
	}

	return nil
}

// PutPauses writes why jobs are paused.
func PutPauses(tx *sql.Tx, pauses []Pause) error {
	for part := range slices.Chunk(pauses, atOnce) {
		var args []any
		for _, p := range part {
			args = append(args, p.JobID, int64(p.Since), int64(p.Until), p.Who, p.Reason)
		}
		query := "REPLACE INTO job_pause (job_id, since, until, who, reason) VALUES " + sql.Values(len(part), 5)
		if _, err := tx.Exec("write pauses", query, args...); err != nil {
			return err
		}
	}
	return nil
}

// DropPauses removes the pauses of jobs.
func DropPauses(tx *sql.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}
	const query = `
		DELETE p
		FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n
		STRAIGHT_JOIN job_pause p FORCE INDEX (PRIMARY) ON p.job_id = n.id`
	_, err := tx.Exec("drop pauses", query, singles(jobs))
	return err
}

// SpawnBy returns when the last spawn window of some jobs ends; zero: nothing can be spawned any
// more. running holds the run with the turn of each job. This run started last, so its window ends
// last. If it has not begun, it may have been woken just after another run started. SpawnBy cannot
// see the window of that other run, and takes `latest` instead, because the window ends at
// `latest` or before.
func SpawnBy(r sql.Reader, running []int64, latest job.Micros) (until job.Micros, err error) {
	scan := func(rows *sql.Rows) (by job.Micros, err error) {
		err = rows.Scan(&by)
		return by, err
	}
	for part := range slices.Chunk(running, atOnce) {
		query := `
			SELECT COALESCE(MAX(IF(state IN ('idle', 'prepared', 'waiting'), ?, spawn_by)), 0)
			FROM run FORCE INDEX (PRIMARY)
			WHERE id IN ` + list(slices.Values(part))
		found, err := sql.Select(r, "read spawn windows", scan, query, int64(latest))
		if err != nil {
			return 0, err
		}
		until = max(until, found[0])
	}

	return until, nil
}

// Apps returns the numbers of apps by name. Apps without a number are missing from the result.
func Apps(r sql.Reader, names []string) (map[string]int32, error) {
	out := make(map[string]int32, len(names))
	scan := func(rows *sql.Rows) (id int32, err error) {
		var name string
		err = rows.Scan(&id, &name)
		out[name] = id
		return id, err
	}
	for part := range slices.Chunk(names, atOnce) {
		query := "SELECT id, name FROM app WHERE name IN (" + sql.Values(1, len(part))[1:]
		if _, err := sql.Select(r, "read apps", scan, query, texts(part)...); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// NumberApps gives a number to each app without one. The number of an app that gets no job does no
// harm.
func NumberApps(tx *sql.Tx, names []string) error {
	for part := range slices.Chunk(names, atOnce) {
		query := "INSERT IGNORE INTO app (name) VALUES " + sql.Values(len(part), 1)
		if _, err := tx.Exec("insert apps", query, texts(part)...); err != nil {
			return err
		}
	}
	return nil
}

func texts(values []string) []any {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return args
}
