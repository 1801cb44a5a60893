package read

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// NamedJob is a job about which the doctor has a finding.
type NamedJob struct {
	ID        int64
	App, Name string
	N         int64  // a count or an instant
	Text      string // an explanation
}

func (db *DB) namedJobs(ctx context.Context, what, query string, args ...any) ([]NamedJob, error) {
	scan := func(rows *sql.Rows) (j NamedJob, err error) {
		err = rows.Scan(&j.ID, &j.App, &j.Name, &j.N, &j.Text)
		return j, err
	}
	return sql.Select(db.Reader(ctx), what, scan, query, args...)
}

// BrokenJobs lists jobs whose due times cannot be computed, and why.
func (db Checks) BrokenJobs(ctx context.Context, limit int) ([]NamedJob, error) {
	const query = `
		SELECT j.id, a.name, j.name, 0, j.error
		FROM job j FORCE INDEX (broken)
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		WHERE j.error >= '!' AND j.living = 1
		LIMIT ?`
	return db.namedJobs(ctx, "list broken jobs", query, limit)
}

// JobsPausedBefore lists jobs that were paused before an instant and whose pause does not end by
// itself.
func (db Checks) JobsPausedBefore(ctx context.Context, at job.Micros, limit int) ([]NamedJob, error) {
	const query = `
		SELECT j.id, a.name, j.name, p.since, p.reason
		FROM job_pause p FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = p.job_id AND j.living = 1 AND j.paused = 1
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		WHERE p.until = 0 AND p.since < ?
		ORDER BY p.job_id
		LIMIT ?`
	return db.namedJobs(ctx, "list jobs paused for long", query, int64(at), limit)
}

// JobsDueBehind lists jobs whose next due time is after an instant.
func (db Checks) JobsDueBehind(ctx context.Context, at job.Micros, limit int) ([]NamedJob, error) {
	const query = `
		SELECT j.id, a.name, j.name, j.next_due, ''
		FROM job j FORCE INDEX (claim)
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		WHERE j.next_due > ? AND j.paused = 0
		ORDER BY j.next_due DESC
		LIMIT ?`
	return db.namedJobs(ctx, "list jobs due far ahead", query, int64(at), limit)
}

// Herd is an instant at which many jobs are due.
type Herd struct {
	At   job.Micros // start of the second
	Jobs int64
	Some []NamedJob
}

// Herds lists the seconds before an instant in which at least `least` jobs are due next. Seconds
// with the most jobs come first.
func (db Checks) Herds(ctx context.Context, before job.Micros, least, limit int) ([]Herd, error) {
	const query = `
		SELECT second * 1000000, jobs
		FROM (
			SELECT next_due DIV 1000000 second, COUNT(*) jobs
			FROM job FORCE INDEX (claim)
			WHERE next_due < ?
			GROUP BY next_due DIV 1000000) herd
		WHERE jobs >= ?
		ORDER BY jobs DESC, second
		LIMIT ?`
	const some = `
		SELECT j.id, a.name, j.name, 0, ''
		FROM job j FORCE INDEX (claim)
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		WHERE j.next_due >= ? AND j.next_due < ?
		ORDER BY j.next_due
		LIMIT 10`

	scan := func(rows *sql.Rows) (h Herd, err error) {
		err = rows.Scan(&h.At, &h.Jobs)
		return h, err
	}

	out, err := sql.Select(db.Reader(ctx), "find herds", scan, query, int64(before), least, limit)
	for i := range out {
		if err == nil {
			out[i].Some, err = db.namedJobs(ctx, "name jobs of a herd", some, int64(out[i].At),
				int64(out[i].At)+1_000_000)
		}
	}

	return out, err
}

// StuckRun is a run that does not move on as it should.
type StuckRun struct {
	NamedJob // N: since when it is stuck; Text: its node, or empty
	Run      int64
	Due      job.Micros
}

// stuckMost bounds each list of stuck runs.
const stuckMost = 20

func scanStuck(rows *sql.Rows) (s StuckRun, err error) {
	err = rows.Scan(&s.Run, &s.Due, &s.N, &s.ID, &s.App, &s.Name, &s.Text)
	return s, err
}

func (db *DB) stuck(ctx context.Context, what, where, order string, args ...any) ([]StuckRun, error) {
	query := `
		SELECT r.id, r.due, IF(r.started > 0, r.started, r.due_now), r.job_id, COALESCE(a.name, ''),
			COALESCE(j.name, ''), COALESCE(l.node, '')
		FROM run r FORCE INDEX (live)
		LEFT JOIN job j FORCE INDEX (PRIMARY) ON j.id = r.job_id
		LEFT JOIN app a FORCE INDEX (PRIMARY) ON a.id = r.app_id
		LEFT JOIN life l FORCE INDEX (PRIMARY) ON l.id = r.owner
		WHERE ` + where + `
		ORDER BY ` + order + `
		LIMIT ?`

	return sql.Select(db.Reader(ctx), what, scanStuck, query, append(args, stuckMost)...)
}

// ownedBefore returns the condition that a run belongs to a session and should have begun before an
// instant.
func (db *DB) ownedBefore(ctx context.Context) (string, error) {
	owners, err := trip.Owners(db.Reader(ctx))
	if err != nil || len(owners) == 0 {
		return "FALSE AND r.due_now < ?", err
	}
	return "r.owner IN " + list(owners) + " AND r.due_now < ?", nil
}

// OrphanRuns lists runs of dead sessions that should have begun before an instant.
func (db Checks) OrphanRuns(ctx context.Context, before job.Micros) ([]StuckRun, error) {
	owned, err := db.ownedBefore(ctx)
	if err != nil {
		return nil, err
	}
	return db.stuck(ctx, "list orphans", owned+" AND r.started < ? AND (l.id IS NULL OR l.gone IS NOT NULL)",
		"r.due_now", int64(before), int64(before))
}

// UnbegunRuns lists runs that should have begun before an instant: idle runs that no node has
// claimed, and prepared runs that their node does not start.
func (db Checks) UnbegunRuns(ctx context.Context, before job.Micros) (idle, prepared []StuckRun, err error) {
	idle, err = db.stuck(ctx, "list late runs", "r.owner = 0 AND r.due_now < ?", "r.due_now", int64(before))
	if err != nil {
		return nil, nil, err
	}

	owned, err := db.ownedBefore(ctx)
	if err != nil {
		return nil, nil, err
	}

	prepared, err = db.stuck(ctx, "list runs that are not started",
		owned+" AND r.state = 'prepared' AND l.gone IS NULL", "r.due_now", int64(before))
	return idle, prepared, err
}

// LongRuns lists runs that began before an instant and still execute.
func (db Checks) LongRuns(ctx context.Context, before job.Micros) ([]StuckRun, error) {
	owned, err := db.ownedBefore(ctx)
	if err != nil {
		return nil, err
	}
	return db.stuck(ctx, "list long runs", owned+" AND r.state = 'executing' AND r.started < ? AND l.gone IS NULL",
		"r.started", int64(before), int64(before))
}

// Spell is a series of the latest due times of a job that all ended the same way.
type Spell struct {
	N int // number of due times
	// Unbegun: the due times were skipped or missed, and no pause caused this. If it is false,
	// their runs began and failed.
	Unbegun bool
}

// latestMost bounds how many latest runs of a job one query reads.
const latestMost = 50

// pauseReasons are the codes of due times that a pause stopped.
const pauseReasons = "'" + string(job.ReasonJobPaused) + "', '" + string(job.ReasonAppPaused) + "', '" +
	string(job.ReasonClusterPaused) + "'"

// latestEnds reads the ends of the latest due times of a job, last one first.
const latestEnds = `
	SELECT job_id, outcome, COALESCE(reason_code, '') IN (` + pauseReasons + `), outcome = 'skipped' AND started > 0
	FROM run FORCE INDEX (attempt)
	WHERE job_id = ? AND state = 'ended' AND final = 1
	ORDER BY due DESC, request DESC, attempt DESC
	LIMIT ?`

// end is the end of a due time.
type end struct {
	job     int64
	outcome string
	paused  bool // a pause kept it from beginning
	nothing bool // it began, and had nothing to do
}

func scanEnd(rows *sql.Rows) (e end, err error) {
	err = rows.Scan(&e.job, &e.outcome, &e.paused, &e.nothing)
	return e, err
}

// spellOf counts the due times that ended the same way, beginning with the last. It leaves out runs
// that had nothing to do.
func spellOf(ends []end) (s Spell) {
	ends = slices.DeleteFunc(ends, func(e end) bool { return e.nothing })
	for i, e := range ends {
		unbegun := (e.outcome == "skipped" || e.outcome == "missed") && !e.paused
		failed := e.outcome == "failed" || e.outcome == "timed_out" || e.outcome == "lost"
		if i == 0 {
			s.Unbegun = unbegun
		}
		if !unbegun && !failed || unbegun != s.Unbegun {
			break
		}
		s.N++
	}

	return s
}
