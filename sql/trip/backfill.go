package trip

import (
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
)

// BackfillRow is a range of due times of a job that are started in addition to its schedule. The
// backfill has its own cursor: whenever fewer than Parallel of its runs are alive, claims insert
// its next runs.
type BackfillRow struct {
	ID       int64 // of the request; its runs carry it
	JobID    int64
	First    job.Micros
	Last     job.Micros
	NextDue  job.Micros // the cursor; zero: no due time is left
	DoneTo   job.Micros // all due times up to here have ended
	Parallel int
	Given    string // what its runs are given, see job.Given; "": nothing
	Missing  bool   // leave out due times with a succeeded run
	Total    int64
	Planned  int64
	LeftOut  int64
	State    BackfillState
	Who      string
	Created  job.Micros
	Updated  job.Micros
}

// BackfillState is the state of a backfill, in the same words as in its row.
type BackfillState string

// States of a backfill.
const (
	Backfilling       BackfillState = "running"
	BackfillDone      BackfillState = "done"
	BackfillCancelled BackfillState = "cancelled"
)

const backfillColumns = "b.id, b.job_id, b.first, b.last, COALESCE(b.next_due, 0), b.done_to, b.parallel," +
	" b.missing <> 0, b.total, b.planned, b.left_out, b.state, b.who, b.created, b.updated, COALESCE(b.given, '')"

func (b *BackfillRow) fields() []any {
	return []any{&b.ID, &b.JobID, &b.First, &b.Last, &b.NextDue, &b.DoneTo, &b.Parallel, &b.Missing, &b.Total,
		&b.Planned, &b.LeftOut, &b.State, &b.Who, &b.Created, &b.Updated, &b.Given}
}

// InsertBackfill writes a new backfill. Its id is the id of its request.
func InsertBackfill(tx *sql.Tx, b *BackfillRow) error {
	const query = `
		INSERT INTO backfill (id, job_id, first, last, next_due, done_to, parallel, missing, total, state, who,
			created, updated, given)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULLIF(?, ''))`
	_, err := tx.Exec("insert backfill", query,
		b.ID, b.JobID, int64(b.First), int64(b.Last), int64(b.NextDue), int64(b.DoneTo), b.Parallel,
		b.Missing, b.Total, b.State, b.Who, int64(b.Created), int64(b.Updated), b.Given)
	return err
}

// BackfillOf reads a backfill. If there is none, the error is sql.ErrNotFound. It takes no lock.
func BackfillOf(r sql.Reader, id int64) (BackfillRow, error) {
	return oneBackfill(r, "", id)
}

// LockBackfill locks and reads a backfill. If there is none, the error is sql.ErrNotFound.
func LockBackfill(tx *sql.Tx, id int64) (BackfillRow, error) {
	return oneBackfill(tx, " FOR UPDATE", id)
}

func oneBackfill(r sql.Reader, lock string, id int64) (BackfillRow, error) {
	query := `
		SELECT ` + backfillColumns + `
		FROM backfill b FORCE INDEX (PRIMARY)
		WHERE b.id = ?` + lock
	scan := func(rows *sql.Rows) (b BackfillRow, err error) {
		err = rows.Scan(b.fields()...)
		return b, err
	}

	found, err := sql.Select(r, "read backfill", scan, query, id)
	if err == nil && len(found) == 0 {
		err = sql.ErrNotFound
	}
	if err != nil {
		return BackfillRow{}, err
	}

	return found[0], nil
}

// Hungry is a backfill that is not done, with the columns of its job that the insert of its next
// runs needs.
type Hungry struct {
	BackfillRow
	AppID   int32
	Hash    int
	Version int32
	Deleted bool // the job is deleted
}

// HungryBackfills lists backfills that are not done, without backfills of paused jobs. It begins
// after the id `after`. It takes no lock.
func HungryBackfills(r sql.Reader, after int64, limit int) ([]Hungry, error) {
	const query = `
		SELECT ` + backfillColumns + `, j.app_id, j.hash, j.version, j.living IS NULL
		FROM backfill b FORCE INDEX (state)
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = b.job_id
		WHERE b.state = 'running' AND b.id > ? AND j.paused = 0
		ORDER BY b.id
		LIMIT ?`
	scan := func(rows *sql.Rows) (h Hungry, err error) {
		err = rows.Scan(append(h.fields(), &h.AppID, &h.Hash, &h.Version, &h.Deleted)...)
		return h, err
	}
	return sql.Select(r, "list backfills", scan, query, after, limit)
}

// Alive counts the runs of a backfill that have not ended, and returns their earliest due time. It
// reads the runs of its job between DoneTo and the cursor.
func (b *BackfillRow) Alive(r sql.Reader) (alive int, oldest job.Micros, err error) {
	const query = `
		SELECT COUNT(*), COALESCE(MIN(due), 0)
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ? AND due > ? AND due <= ? AND request = ? AND state <> 'ended'`

	before := b.Last
	if b.NextDue != 0 {
		before = b.NextDue - 1
	}

	scan := func(rows *sql.Rows) (none struct{}, err error) { return none, rows.Scan(&alive, &oldest) }
	_, err = sql.Select(r, "count runs of a backfill", scan, query, b.JobID, int64(b.DoneTo), int64(before), b.ID)
	return alive, oldest, err
}

// Succeeded returns the due times of a job that have a succeeded run of any kind.
func Succeeded(r sql.Reader, jobID int64, dues []job.Micros) (map[job.Micros]bool, error) {
	out := map[job.Micros]bool{}
	scan := func(rows *sql.Rows) (due job.Micros, err error) {
		err = rows.Scan(&due)
		return due, err
	}
	for part := range slices.Chunk(dues, atOnce) {
		query := `
			SELECT DISTINCT due
			FROM run FORCE INDEX (attempt)
			WHERE job_id = ? AND due IN ` + list(slices.Values(part)) + ` AND outcome = 'succeeded'`
		found, err := sql.Select(r, "read due times that succeeded", scan, query, jobID)
		if err != nil {
			return nil, err
		}
		for _, due := range found {
			out[due] = true
		}
	}

	return out, nil
}

// CursorsOfBackfills locks the rows of running backfills, and returns their cursors by id. It skips
// rows that are locked already.
func CursorsOfBackfills(tx *sql.Tx, ids []int64) (map[int64]job.Micros, error) {
	out := map[int64]job.Micros{}
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT id, COALESCE(next_due, 0)
		FROM backfill FORCE INDEX (PRIMARY)
		WHERE state = 'running' AND id IN ` + list(slices.Values(ids)) + `
		ORDER BY id
		FOR UPDATE SKIP LOCKED`
	scan := func(rows *sql.Rows) (id int64, err error) {
		var next job.Micros
		err = rows.Scan(&id, &next)
		out[id] = next
		return id, err
	}

	_, err := sql.Select(tx, "lock backfills", scan, query)
	return out, err
}

// MoveBackfills writes the progress of backfills whose rows the transaction has locked.
func MoveBackfills(tx *sql.Tx, backfills []BackfillRow) error {
	if len(backfills) == 0 {
		return nil
	}

	r := jsonRows(len(backfills))
	for i := range backfills {
		b := &backfills[i]
		r.begin()
		r.number(b.ID)
		r.numberOrNull(int64(b.NextDue))
		r.number(int64(b.DoneTo))
		r.number(b.Planned)
		r.number(b.LeftOut)
		r.text(string(b.State))
		r.number(int64(b.Updated))
		r.end()
	}

	const query = `
		UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
			id BIGINT PATH '$[0]', next_due BIGINT PATH '$[1]', done_to BIGINT PATH '$[2]', planned BIGINT PATH '$[3]',
			left_out BIGINT PATH '$[4]', state VARCHAR(16) PATH '$[5]', updated BIGINT PATH '$[6]')) n
		STRAIGHT_JOIN backfill b FORCE INDEX (PRIMARY) ON b.id = n.id
		SET b.next_due = n.next_due, b.done_to = n.done_to, b.planned = n.planned, b.left_out = n.left_out,
			b.state = n.state, b.updated = n.updated`
	n, err := tx.Exec("move backfills", query, r.json())
	return expect("move backfills", n, len(backfills), err)
}

// BackfillStates returns the states of backfills. The transaction has locked the rows of their
// jobs. A cancellation locks these rows, too, so the states stay true until the commit. A request
// for reruns is not a backfill, although its runs have kind Backfill.
func BackfillStates(tx *sql.Tx, ids []int64) (map[int64]BackfillState, error) {
	out := map[int64]BackfillState{}
	if len(ids) == 0 {
		return out, nil
	}

	query := `
		SELECT id, state
		FROM backfill FORCE INDEX (PRIMARY)
		WHERE id IN ` + list(slices.Values(ids))
	return out, sql.Each(tx, "read states of backfills", func(rows *sql.Rows) error {
		var (
			id    int64
			state BackfillState
		)
		err := rows.Scan(&id, &state)
		out[id] = state
		return err
	}, query)
}
