package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

const lateColumns = "owner, due_now, hash, id, job_id, due, kind, attempt, state"

func scanLate(rows *sql.Rows) (l LateRun, err error) {
	err = rows.Scan(&l.Owner, &l.DueNow, &l.Hash, &l.ID, &l.JobID, &l.Due, &l.Kind, &l.Attempt, &l.State)
	return l, err
}

// Holders lists the possible owners of runs that have not begun. First comes no owner, then the
// sessions.
func (db Watch) Holders(ctx context.Context) ([]trip.Owner, error) {
	owners, err := trip.Owners(db.Reader(ctx))
	return append([]trip.Owner{trip.NoOwner}, owners...), err
}

// UnendedRuns lists the executing runs of one owner that were due before an instant. It begins
// after a position. The cluster's slots limit how many executing runs there are.
func (db Watch) UnendedRuns(ctx context.Context, after LatePlace, before job.Micros, limit int) ([]LateRun, error) {
	const query = `
		SELECT ` + lateColumns + `, COALESCE((SELECT node FROM life WHERE life.id = run.owner), '')
		FROM run FORCE INDEX (live)
		WHERE owner = ? AND due_now >= ? AND (due_now > ? OR hash > ? OR hash = ? AND id > ?)
			AND state = 'executing' AND due < ?
		ORDER BY due_now, hash, id
		LIMIT ?`

	scan := func(rows *sql.Rows) (l LateRun, err error) {
		err = rows.Scan(&l.Owner, &l.DueNow, &l.Hash, &l.ID, &l.JobID, &l.Due, &l.Kind, &l.Attempt, &l.State, &l.Node)
		return l, err
	}

	return sql.Select(db.Reader(ctx), "look for runs that end late", scan, query,
		int32(after.Owner), int64(after.DueNow), int64(after.DueNow), after.Hash, after.Hash, after.ID, int64(before),
		limit)
}

// liveMost bounds how many runs LiveRunsOf reads.
const liveMost = 20_000

// LiveRunsOf lists the runs of jobs that were due before an instant and have not ended. It leaves
// out runs of backfills. It reads no more than liveMost runs. all reports whether these were all
// runs.
func (db Watch) LiveRunsOf(ctx context.Context, jobs []int64, before job.Micros) (runs []LateRun, all bool, err error) {
	if len(jobs) == 0 {
		return nil, true, nil
	}

	owners, err := db.Holders(ctx)
	if err != nil {
		return nil, false, err
	}

	wanted := make(map[int64]bool, len(jobs))
	for _, id := range jobs {
		wanted[id] = true
	}

	left := liveMost
	for _, owner := range append(owners, trip.WaitingOwner) {
		// For a waiting run, due_now is a place in a queue, not a time.
		query := `
			SELECT ` + lateColumns + `
			FROM run FORCE INDEX (live)
			WHERE owner = ? AND due_now < ?
			LIMIT ?`

		bound := int64(before)
		if owner == trip.WaitingOwner {
			bound = 1<<63 - 1
		}

		found, err := sql.Select(db.Reader(ctx), "look for runs of jobs", scanLate, query, int32(owner), bound, left)
		if err != nil {
			return nil, false, err
		}

		for _, r := range found {
			if wanted[r.JobID] && r.Due < before && r.Kind != trip.Backfill {
				runs = append(runs, r)
			}
		}

		if left -= len(found); left == 0 {
			return runs, false, nil
		}
	}

	return runs, true, nil
}

// cursorsMost bounds how many cursors FirstCursor reads.
const cursorsMost = 10_000

// FirstCursor returns the earliest due time without a run. It leaves out the apps in leftOut. It
// reads only the cursorsMost earliest cursors. If it finds none among them, it returns zero.
func (db Watch) FirstCursor(ctx context.Context, leftOut []int32) (job.Micros, error) {
	others := ""
	if len(leftOut) > 0 {
		others = "WHERE app_id NOT IN " + list(leftOut)
	}

	query := fmt.Sprintf(`
		SELECT COALESCE(MIN(next_due), 0)
		FROM (
			SELECT next_due, app_id
			FROM job FORCE INDEX (claim)
			WHERE next_due IS NOT NULL
			ORDER BY next_due
			LIMIT %d) next
		%s`, cursorsMost, others)

	found, err := sql.Select(db.Reader(ctx), "look for the first cursor", scanID, query)
	if err != nil {
		return 0, err
	}
	return job.Micros(found[0]), nil
}

// RunLook remembers how much of a job's runs was searched for a run that has begun. The search goes
// through the runs in order of due times.
type RunLook struct {
	// Began is the last due time whose run is known to have begun. The owner of the RunLook sets
	// it, too, when it learns of later ends.
	Began   job.Micros
	jobID   int64
	from    job.Micros // no run from here to the position below has begun, except runs up to Began
	due     job.Micros // position of the last run that was read
	request int64
	attempt int64
	end     bool // no run follows the position
}

const (
	lookRows    = 1000 // runs in one part
	lookParts   = 20   // parts in one call of NotRun
	looksAtOnce = 50   // jobs in one statement: for each of them the server opens the table
)

// begin restarts the search at the runs due at since or later.
func (l *RunLook) begin(since job.Micros) {
	l.from, l.due, l.request, l.attempt = since, since-1, 1<<62, 1<<62
}

// NotRun returns in found the jobs none of whose runs has begun, among the runs that were due at
// since or later. It leaves out jobs whose runs retention may have removed, finished jobs, jobs
// without a due time before since, jobs that begin later, and jobs resumed since.
//
// A job may have very many runs that never began. So NotRun reads them in parts: each call reads a
// few parts, and looks keeps the position in each job. For the jobs in open the answer is not known
// yet. Call NotRun again with these jobs.
func (db Watch) NotRun(
	ctx context.Context, looks map[int64]*RunLook, ids []int64, since job.Micros,
) (found, open []int64, err error) {
	rest, err := db.notYetBegun(ctx, looks, ids, since)
	if err != nil {
		return nil, nil, err
	}

	jobs, err := db.shouldRun(ctx, rest, since)
	if err != nil {
		return nil, nil, err
	}

	of := make([]*RunLook, len(jobs))
	for i, b := range jobs {
		l := looks[b.id]
		if l == nil {
			l = &RunLook{jobID: b.id}
			looks[b.id] = l
		}
		if l.end = false; since < l.from || l.due < since {
			l.begin(since)
		}
		of[i] = l
	}

	if err := db.lookThrough(ctx, of, since); err != nil {
		return nil, nil, err
	}

	for i, b := range jobs {
		switch l := of[i]; {
		case l.Began >= since:
		case !l.end:
			open = append(open, b.id)
		// In any other case, retention may have removed all runs of the job.
		case l.due >= since || b.lastDue < since:
			found = append(found, b.id)
		}
	}

	return found, open, nil
}

// notYetBegun picks the jobs whose first run since an instant has not begun. For most jobs that run
// has begun, and nothing more needs to be read.
func (db *DB) notYetBegun(
	ctx context.Context, looks map[int64]*RunLook, ids []int64, since job.Micros,
) (rest []int64, err error) {
	var first []*RunLook
	for _, id := range ids {
		if l := looks[id]; l == nil || l.Began < since {
			l = &RunLook{jobID: id}
			l.begin(since)
			first = append(first, l)
		}
	}

	if err := db.lookOn(ctx, first, 1); err != nil {
		return nil, err
	}

	for _, l := range first {
		if l.Began >= since {
			delete(looks, l.jobID)
		} else {
			rest = append(rest, l.jobID)
		}
	}

	return rest, nil
}

// lookThrough reads a few parts of the runs of jobs. It stops for a job when it finds a run that
// has begun, or when the job has no more runs.
func (db *DB) lookThrough(ctx context.Context, looks []*RunLook, since job.Micros) error {
	for range lookParts {
		var on []*RunLook
		for _, l := range looks {
			if !l.end && l.Began < since {
				on = append(on, l)
			}
		}

		if len(on) == 0 {
			return nil
		}
		if err := db.lookOn(ctx, on, max(1, lookRows/len(on))); err != nil {
			return err
		}
	}

	return nil
}

// lookOn reads the next runs of jobs, at most most per job.
func (db *DB) lookOn(ctx context.Context, looks []*RunLook, most int) error {
	for some := range slices.Chunk(looks, looksAtOnce) {
		if err := db.lookOnSome(ctx, some, most); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) lookOnSome(ctx context.Context, looks []*RunLook, most int) error {
	const one = `(
		SELECT ?, due, request, attempt, started > 0
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ?
			AND due >= ? AND (due > ? OR request > ? OR request = ? AND attempt > ?)
			AND state IN ('executing', 'ended')
		ORDER BY due, request, attempt
		LIMIT ?)`

	var parts []string
	var args []any
	for i, l := range looks {
		parts = append(parts, one)
		args = append(args, i, l.jobID, int64(l.due), int64(l.due), l.request, l.request, l.attempt, most)
	}

	type row struct {
		i     int
		at    RunLook
		begun bool
	}
	scan := func(rows *sql.Rows) (r row, err error) {
		err = rows.Scan(&r.i, &r.at.due, &r.at.request, &r.at.attempt, &r.begun)
		return r, err
	}

	found, err := sql.Select(db.Reader(ctx), "look for runs that have begun", scan, strings.Join(parts, " UNION ALL "),
		args...)
	if err != nil {
		return err
	}

	count := make([]int, len(looks))
	for _, r := range found {
		l, at := looks[r.i], r.at
		count[r.i]++
		later := cmp.Or(cmp.Compare(at.due, l.due), cmp.Compare(at.request, l.request),
			cmp.Compare(at.attempt, l.attempt)) > 0
		if later {
			l.due, l.request, l.attempt = at.due, at.request, at.attempt
		}
		if r.begun {
			l.Began = max(l.Began, at.due)
		}
	}

	for i, l := range looks {
		l.end = count[i] < most
	}

	return nil
}

// begun is a job, with the facts from which NotRun computes since when the job has due times.
type begun struct {
	id      int64
	app     string
	lastDue job.Micros
	spec    struct {
		Start, At *time.Time
	}
}

// shouldRun picks the jobs that should have begun a run since an instant and have no executing run.
func (db *DB) shouldRun(ctx context.Context, ids []int64, since job.Micros) ([]begun, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	r := db.Reader(ctx)
	executing, err := db.executingOf(ctx, ids)
	if err != nil {
		return nil, err
	}

	scan := func(rows *sql.Rows) (b begun, err error) {
		var text []byte
		err = rows.Scan(&b.id, &b.app, &b.lastDue, &text)
		_ = json.Unmarshal(text, &b.spec) // a definition that cannot be decoded has no start
		return b, err
	}

	var out []begun
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT j.id, a.name, j.begun_to, v.definition
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
			STRAIGHT_JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
			WHERE j.id IN ` + list(part) + ` AND j.resumed < ?
				AND (j.error <> '' OR j.next_due < ? OR ` + firstAhead + ` < ?
					OR j.begun_to > 0 AND (j.next_due IS NOT NULL OR ` + firstAhead + ` IS NOT NULL))
			ORDER BY j.id`

		found, err := sql.Select(r, "look for jobs that do not run", scan, query, int64(since), int64(since),
			int64(since))
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	out = slices.DeleteFunc(out, func(b begun) bool { return executing[b.id] })
	return db.begunBefore(ctx, out, since)
}

// executingOf returns all jobs that have an executing run, not only the given jobs.
func (db *DB) executingOf(ctx context.Context, jobs []int64) (map[int64]bool, error) {
	r := db.Reader(ctx)
	out := map[int64]bool{}
	owners, err := trip.Owners(r)
	if err != nil || len(owners) == 0 || len(jobs) == 0 {
		return out, err
	}

	query := `
		SELECT job_id
		FROM run FORCE INDEX (live)
		WHERE owner IN ` + list(owners) + ` AND due_now <= ` + begunBy + ` AND state = 'executing'`

	found, err := sql.Select(r, "list jobs that execute", scanID, query)
	for _, id := range found {
		out[id] = true
	}

	return out, err
}

// begunBefore picks the jobs that had due times before since. It leaves out a job if its app or the
// cluster was resumed after since.
func (db *DB) begunBefore(ctx context.Context, jobs []begun, since job.Micros) ([]begun, error) {
	if len(jobs) == 0 {
		return nil, nil
	}

	const query = `
		SELECT DISTINCT app
		FROM audit FORCE INDEX (ref)
		WHERE kind IN (?, ?) AND ref = 0 AND at >= ? AND action = ?`
	apps, err := sql.Select(db.Reader(ctx), "look for pauses that ended", scanText, query,
		job.KindApp, job.KindCluster, int64(since), job.ActionResume)
	return slices.DeleteFunc(jobs, func(b begun) bool {
		later := func(t *time.Time) bool { return t != nil && job.MicrosOf(*t) >= since }
		return later(b.spec.Start) || later(b.spec.At) || slices.Contains(apps, b.app) || slices.Contains(apps, "")
	}), err
}
