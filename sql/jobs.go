package sql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"slices"
	"strings"

	"go-crontab/job"
)

// JobRow is a job as its row says. Its definition may be unreadable (a newer version wrote it, or a hand did):
// then SpecErr is set and one bad row harms nobody else.
type JobRow struct {
	job.Job
	SpecText string
	SpecErr  error
	Replan   bool // a calendar was changed, and no planner has been here since; NextDue is then, or before

	// Restored is when the database was restored from a backup that has this job; zero: never, or the job is younger. Whether
	// what was due before it was started nobody knows, so that it is not started again. A list does not read it.
	Restored job.Micros

	// Calendars are those that the definition names, once LearnCalendars has read them.
	Calendars    []*job.Calendar
	CalendarsErr error
}

const jobColumns = jobOwnColumns + ", " + coverColumns + ", (SELECT CAST(value AS SIGNED) FROM setting WHERE name = 'restored')"

// jobListColumns are jobColumns without the pauses, which a list reads once.
const jobListColumns = jobOwnColumns + ", NULL, NULL, NULL"

const jobOwnColumns = "id, app, name, living, hash, place, version, spec, paused, held, paused_at, paused_by, pause_reason, pause_until," +
	" replan, next_due, last_due, error, created, updated"

// scanJob reads a job, and what stands before its columns.
func scanJob(rows *stdsql.Rows, before ...any) (JobRow, error) {
	var row struct { // one piece of the heap
		JobRow
		app, name string
		living    int
		covers    [2]stdsql.NullString
	}
	j := &row.JobRow
	dest := [...]any{whole[int64]{&j.ID}, &row.app, &row.name, whole[int]{&row.living}, whole[int]{&j.Hash}, whole[int]{&j.Place}, whole[int64]{&j.Version}, &j.SpecText,
		(*flag)(&j.Paused), (*flag)(&j.Held), whole[job.Micros]{&j.PausedAt}, &j.PausedBy, &j.PauseReason, whole[job.Micros]{&j.PauseUntil}, (*flag)(&j.Replan),
		whole[job.Micros]{&j.NextDue}, whole[job.Micros]{&j.LastDue}, &j.Error, whole[job.Micros]{&j.Created}, whole[job.Micros]{&j.Updated}, &row.covers[0], &row.covers[1],
		whole[job.Micros]{&j.Restored}}
	var err error
	if len(before) == 0 {
		err = rows.Scan(dest[:]...)
	} else {
		err = rows.Scan(append(before, dest[:]...)...)
	}
	if err != nil {
		return *j, err
	}
	if j.Covers, err = decodeCovers(row.covers); err != nil {
		return *j, err
	}
	if j.Created >= j.Restored {
		j.Restored = 0
	}
	j.Deleted = row.living != 1
	if j.Spec, j.SpecErr = job.DecodeSpec(j.SpecText); j.SpecErr != nil {
		j.Spec.App, j.Spec.Name = row.app, row.name // so that people can tell which one it is
	}
	return *j, nil
}

func jobRows(out *[]JobRow) func(*stdsql.Rows) error {
	return func(rows *stdsql.Rows) error {
		j, err := scanJob(rows)
		*out = append(*out, j)
		return err
	}
}

// InsertJob writes a new job and returns its id. A living job of the same app and name is ErrExists.
func (tx *Tx) InsertJob(j *job.Job, spec string) (int64, error) {
	id, err := tx.insert("insert job", "INSERT INTO job (app, name, hash, place, version, spec, paused, held, paused_at, paused_by, pause_reason, pause_until,"+
		" next_due, last_due, error, created, updated, listed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, 0), ?, ?, ?, ?, 1)",
		j.Spec.App, j.Spec.Name, j.Hash, j.Place, j.Version, spec, j.Paused, j.Held, int64(j.PausedAt), cut(j.PausedBy, 128), j.PauseReason, int64(j.PauseUntil),
		int64(j.NextDue), int64(j.LastDue), j.Error, int64(j.Created), int64(j.Updated))
	if isDuplicate(err) {
		return 0, fmt.Errorf("job %s/%s: %w", j.Spec.App, j.Spec.Name, ErrExists)
	}
	if err != nil {
		return 0, err
	}
	if err := tx.list([]listing{listingOf(id, j.Spec.Name, &j.Spec)}); err != nil {
		return 0, err
	}
	return id, tx.keepVersion(id, j.Version, j.Updated, spec)
}

// maxSpecBytes bounds the definitions that one statement carries: see maxOutputBytes.
const maxSpecBytes = 2 << 20

// InsertJobs writes new jobs as InsertJob does, in a few statements, and gives each its id. The names differ. If there is a
// living job of one of them it is ErrExists.
func (tx *Tx) InsertJobs(jobs []*job.Job, specs []string) error {
	if len(jobs) == 0 {
		return nil
	}
	size := 0
	for _, text := range specs {
		size += len(text)
	}
	if half := len(jobs) / 2; half > 0 && size > maxSpecBytes {
		if err := tx.InsertJobs(jobs[:half], specs[:half]); err != nil {
			return err
		}
		return tx.InsertJobs(jobs[half:], specs[half:])
	}
	const columns = 17
	args := make([]any, 0, len(jobs)*columns)
	byApp := map[string][]string{}
	for i, j := range jobs {
		args = append(args, j.Spec.App, j.Spec.Name, j.Hash, j.Place, j.Version, specs[i], j.Paused, j.Held, int64(j.PausedAt), cut(j.PausedBy, 128), j.PauseReason, int64(j.PauseUntil),
			stdsql.NullInt64{Int64: int64(j.NextDue), Valid: j.NextDue != 0}, int64(j.LastDue), j.Error, int64(j.Created), int64(j.Updated))
		byApp[j.Spec.App] = append(byApp[j.Spec.App], j.Spec.Name)
	}
	row := "(?" + strings.Repeat(",?", columns-1) + ",1)"
	_, err := tx.exec("insert jobs", "INSERT INTO job (app, name, hash, place, version, spec, paused, held, paused_at, paused_by, pause_reason, pause_until,"+
		" next_due, last_due, error, created, updated, listed) VALUES "+row+strings.Repeat(","+row, len(jobs)-1), args...)
	if isDuplicate(err) {
		return fmt.Errorf("%d jobs: one of them: %w", len(jobs), ErrExists)
	}
	if err != nil {
		return err
	}
	// Read back rather than counted: not every server gives the rows of one statement numbers that follow one another.
	ids := make(map[job.Name]int64, len(jobs))
	for app, names := range byApp {
		for part := range slices.Chunk(names, namesAtOnce) {
			list, args := in([]any{app}, part)
			err := tx.query("read ids of jobs", func(rows *stdsql.Rows) error {
				var id int64
				n := job.Name{App: app}
				err := rows.Scan(&id, &n.Name)
				ids[n] = id
				return err
			}, "SELECT id, name FROM job FORCE INDEX (name) WHERE app = ? AND name IN "+list+" AND living = 1", args...)
			if err != nil {
				return err
			}
		}
	}
	listed := make([]listing, len(jobs))
	for i, j := range jobs {
		id, there := ids[job.Name{App: j.Spec.App, Name: j.Spec.Name}]
		if !there {
			return fmt.Errorf("insert jobs: %s/%s: %w", j.Spec.App, j.Spec.Name, ErrMoved)
		}
		j.ID, listed[i] = id, listingOf(id, j.Spec.Name, &j.Spec)
	}
	if err := tx.list(listed); err != nil {
		return err
	}
	return tx.keepVersions(jobs, specs)
}

// UpdateJob writes a job whose row this transaction has locked. LastDue is only ever raised.
func (tx *Tx) UpdateJob(j *job.Job, spec string) error {
	was, err := tx.readStored(j.ID)
	if err != nil {
		return err
	}
	if was.spec != spec {
		if err := tx.keepFirst(j.ID); err != nil {
			return err
		}
	}
	n, err := tx.exec("update job", "UPDATE job SET app = ?, name = ?, living = IF(?, NULL, 1), place = ?, version = ?, spec = ?, paused = ?, held = ?, paused_at = ?,"+
		" paused_by = ?, pause_reason = ?, pause_until = ?, replan = 0, next_due = NULLIF(?, 0), last_due = GREATEST(last_due, ?), error = ?, updated = ?, finished = 0, listed = 1"+
		" WHERE id = ? AND version < ?",
		j.Spec.App, j.Spec.Name, j.Deleted, j.Place, j.Version, spec, j.Paused, j.Held, int64(j.PausedAt), cut(j.PausedBy, 128), j.PauseReason, int64(j.PauseUntil),
		int64(j.NextDue), int64(j.LastDue), cut(j.Error, 512), int64(j.Updated), j.ID, j.Version)
	if isDuplicate(err) {
		return fmt.Errorf("job %s/%s: %w", j.Spec.App, j.Spec.Name, ErrExists)
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("update job %d: %w", j.ID, ErrMoved)
	}
	if err != nil {
		return err
	}
	if was.spec != spec {
		if err := tx.keepVersion(j.ID, j.Version, j.Updated, spec); err != nil {
			return err
		}
	}
	return tx.relist(was, j, spec)
}

// LockJobs locks rows of jobs, in the order of their ids, and returns them by id.
func (tx *Tx) LockJobs(ids []int64) (map[int64]*JobRow, error) { return tx.lockJobs(ids, "") }

func (tx *Tx) lockJobs(ids []int64, how string) (map[int64]*JobRow, error) {
	out := make(map[int64]*JobRow, len(ids))
	if len(ids) > idsInAll {
		ids = slices.Sorted(slices.Values(ids)) // the parts too are locked in order
	}
	for part := range slices.Chunk(ids, idsInAll) {
		which, args := oneOf("id", nil, part)
		var rows []JobRow
		err := tx.query("lock jobs", jobRows(&rows), "SELECT "+jobColumns+" FROM job FORCE INDEX (PRIMARY) WHERE "+which+" ORDER BY id FOR UPDATE"+how, args...)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			out[rows[i].ID] = &rows[i]
		}
	}
	return out, nil
}

// LockFreeJobs is LockJobs for those rows that nobody else has locked. It waits for none: a job that is being planned or
// edited must not hold up the others. Those that are locked are busy; those that are in neither answer do not exist.
func (tx *Tx) LockFreeJobs(ids []int64) (out map[int64]*JobRow, busy map[int64]bool, err error) {
	if out, err = tx.lockJobs(ids, " SKIP LOCKED"); err != nil || len(out) == len(ids) {
		return out, nil, err
	}
	var missing []int64
	for _, id := range ids {
		if out[id] == nil {
			missing = append(missing, id)
		}
	}
	busy, err = tx.existing("job", missing)
	return out, busy, err
}

// Mark says that a due time of a job was started or ended.
type Mark struct {
	JobID int64
	Due   job.Micros
}

// MarkOf is what the start or end of a task means for last_due: nothing, when somebody asked for the run.
func MarkOf(t job.Task) Mark {
	if t.Origin != 0 {
		return Mark{JobID: t.JobID}
	}
	return Mark{JobID: t.JobID, Due: t.Due}
}

// MarkStarted raises last_due of jobs and writes each row, so that two starts of one job exclude each other
// also where a lock that was only read does not count (multi-writer engines).
func (tx *Tx) MarkStarted(started []Mark) error {
	if len(started) == 0 {
		return nil
	}
	latest := map[int64]job.Micros{}
	for _, s := range started {
		latest[s.JobID] = max(latest[s.JobID], s.Due)
	}
	rows := make([][]int64, 0, len(latest))
	for id, due := range latest {
		rows = append(rows, []int64{id, int64(due)})
	}
	_, err := tx.exec("mark started", "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', due BIGINT PATH '$[1]')) n"+
		" STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id SET j.last_due = GREATEST(j.last_due, n.due), j.starts = j.starts + 1", table(rows))
	return err
}

// Cursor moves the planning cursor of one job from Seen to Next (zero: nothing left), if the job is still at
// the version that was read.
type Cursor struct {
	JobID, Version int64
	Seen, Next     job.Micros
	LastDue        job.Micros // raised to this
	Replan         bool       // was seen, and is done with this
}

// MoveCursors moves all cursors or returns ErrMoved. A stale planner, who would insert again what has been
// planned, started and ended meanwhile, fails here.
func (tx *Tx) MoveCursors(cursors []Cursor) error {
	if len(cursors) == 0 {
		return nil
	}
	rows := make([][]int64, len(cursors))
	for i, c := range cursors {
		rows[i] = []int64{c.JobID, c.Version, int64(c.Seen), int64(c.Next), int64(c.LastDue), 0}
		if c.Replan {
			rows[i][5] = 1
		}
	}
	n, err := tx.exec("move cursors", "UPDATE JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]', version BIGINT PATH '$[1]',"+
		" seen BIGINT PATH '$[2]', next BIGINT PATH '$[3]', last BIGINT PATH '$[4]', replan INT PATH '$[5]')) n STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = n.id"+
		" SET j.next_due = NULLIF(n.next, 0), j.last_due = GREATEST(j.last_due, n.last), j.replan = 0"+
		" WHERE j.next_due = n.seen AND j.version = n.version AND j.replan = n.replan AND j.paused = 0 AND j.living = 1", table(rows))
	if err == nil && n != int64(len(cursors)) {
		err = fmt.Errorf("move cursors: %d of %d rows: %w", n, len(cursors), ErrMoved)
	}
	return err
}

// BreakJob records why a job cannot be planned; nothing is planned for it until it is edited.
func (tx *Tx) BreakJob(id int64, why string) error {
	_, err := tx.exec("break job", "UPDATE job SET next_due = NULL, held = 0, error = ? WHERE id = ?", cut(why, 512), id)
	return err
}

// DueJobs lists ids of jobs whose cursor lies before an instant: mine (by hash ranges) before one, those of
// others only before an earlier one, when nobody seems to care for them. First is the earliest of their cursors.
func (db *DB) DueJobs(ctx context.Context, mine []Slice, others job.Micros, limit int) (ids []int64, first job.Micros, err error) {
	latest := others
	cond, args := "next_due < ?", []any{int64(others)}
	for _, s := range mine {
		cond += " OR (hash >= ? AND hash < ? AND next_due < ?)"
		args = append(args, s.FromHash, s.ToHash, int64(s.Before))
		latest = max(latest, s.Before)
	}
	args = append(append([]any{int64(latest)}, args...), limit)
	err = db.query(ctx, "scan due jobs", func(rows *stdsql.Rows) error {
		var id int64
		var due job.Micros
		err := rows.Scan(&id, &due)
		if len(ids) == 0 {
			first = due
		}
		ids = append(ids, id)
		return err
	}, "SELECT id, next_due FROM job FORCE INDEX (plan) WHERE next_due < ? AND ("+cond+") ORDER BY next_due LIMIT ?", args...)
	return ids, first, err
}

// Job returns one job, deleted ones included.
func (db *DB) Job(ctx context.Context, id int64) (JobRow, error) {
	return db.oneJob(ctx, "id = ?", id)
}

// JobNamed returns the living job of that name.
func (db *DB) JobNamed(ctx context.Context, app, name string) (JobRow, error) {
	return db.oneJob(ctx, "app = ? AND name = ? AND living = 1", app, name)
}

func (db *DB) oneJob(ctx context.Context, where string, args ...any) (JobRow, error) {
	var out []JobRow
	err := db.query(ctx, "read job", jobRows(&out), "SELECT "+jobColumns+" FROM job WHERE "+where, args...)
	return first(out, err)
}

// LockJobNamed locks and returns the living job of that name.
func (tx *Tx) LockJobNamed(app, name string) (JobRow, error) {
	var out []JobRow
	err := tx.query("read job", jobRows(&out), "SELECT "+jobColumns+" FROM job WHERE app = ? AND name = ? AND living = 1 FOR UPDATE", app, name)
	return first(out, err)
}

// LiveJobs tells which of the jobs have a scheduled task that did not end yet, and the earliest due of those
// that nobody has started.
func (db *DB) LiveJobs(ctx context.Context, ids []int64) (map[int64]job.Micros, error) {
	out := map[int64]job.Micros{}
	if len(ids) == 0 {
		return out, nil
	}
	rows := make([][]int64, len(ids))
	for i, id := range ids {
		rows[i] = []int64{id}
	}
	// One or two entries of an index for each job, however many tasks it has.
	err := db.query(ctx, "list live jobs", func(rows *stdsql.Rows) error {
		var (
			id  int64
			due stdsql.NullInt64
		)
		err := rows.Scan(&id, &due)
		if due.Valid {
			out[id] = job.Micros(due.Int64)
		}
		return err
	}, "SELECT n.id, COALESCE((SELECT t.due_now FROM task t FORCE INDEX (due) WHERE t.job_id = n.id AND t.origin = 0 AND t.state < 2 ORDER BY t.due LIMIT 1),"+
		" (SELECT 0 FROM task t FORCE INDEX (due) WHERE t.job_id = n.id AND t.origin = 0 LIMIT 1))"+
		" FROM JSON_TABLE(?, '$[*]' COLUMNS (id BIGINT PATH '$[0]')) n", table(rows))
	return out, err
}

// InsertRequest records that somebody asked for runs of a job. Its id is the origin of their tasks. key is the
// client's Idempotency-Key, or "". A key that was used before is ErrExists.
func (tx *Tx) InsertRequest(kind, key string, digest [32]byte, jobID int64, now job.Micros) (int64, error) {
	var k any
	if key != "" {
		k = []byte(key)
	}
	id, err := tx.insert("insert request", "INSERT INTO request (kind, idem_key, job_id, digest, created) VALUES (?, ?, ?, ?, ?)", kind, k, jobID, digest[:], int64(now))
	if isDuplicate(err) {
		return 0, fmt.Errorf("idempotency key %q: %w", key, ErrExists)
	}
	return id, err
}

// Request is somebody's wish for runs of a job.
type Request struct {
	ID, JobID int64
	Digest    [32]byte
	Created   job.Micros
}

// LockRequest locks and returns the request that carries a key, or ErrNotFound.
func (tx *Tx) LockRequest(key string) (Request, error) {
	var out []Request
	err := tx.query("read request", func(rows *stdsql.Rows) error {
		var (
			r      Request
			digest []byte
		)
		err := rows.Scan(&r.ID, &r.JobID, &digest, &r.Created)
		copy(r.Digest[:], digest)
		out = append(out, r)
		return err
	}, "SELECT id, job_id, digest, created FROM request WHERE idem_key = ? FOR UPDATE", []byte(key))
	return first(out, err)
}
