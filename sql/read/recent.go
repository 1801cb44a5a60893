package read

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// RecentRun is a run in the recent past of a job. It executes or has ended.
type RecentRun struct {
	ID        int64
	JobID     int64
	Due       job.Micros
	Count     int64 // due times that it covers
	Request   int64
	Attempt   int
	Kind      trip.Kind
	Executing bool
	Started   job.Micros
	Ended     job.Micros
	Outcome   job.Outcome
	Final     bool
}

// Recent is the recent past of a job.
type Recent struct {
	Runs []RecentRun // the latest due first
	More bool        // there are older runs

	// Executing is when the run with the job's turn began to execute. Without such a run it is
	// zero. This run may be older than Runs.
	Executing job.Micros
}

// recentAtOnce bounds the ranges of one statement.
const recentAtOnce = 200

// RecentRuns reads the latest n runs of each job in the given apps. A job that has moved to another
// app leaves its runs in the old app. nil means all apps. Two statements read a page of jobs: one
// finds where the range of each job begins, the other reads the ranges.
func (db *DB) RecentRuns(ctx context.Context, jobs []int64, n int, apps []string) (map[int64]*Recent, error) {
	out := make(map[int64]*Recent, len(jobs))
	in, none, err := inApps(db.Reader(ctx), apps)
	if err != nil || none {
		return out, err
	}

	for part := range slices.Chunk(jobs, recentAtOnce) {
		ranges, err := recentRanges(db.Reader(ctx), part, n, out)
		if err != nil {
			return nil, err
		}
		if err := recentRows(db.Reader(ctx), ranges, in, out); err != nil {
			return nil, err
		}
	}

	for _, r := range out {
		r.Runs = r.Runs[:min(len(r.Runs), n)]
	}
	return out, nil
}

// recentRanges returns the conditions for the latest n runs of jobs, and adds the jobs to out. Runs
// that are due later than now are left out, because they have not begun.
func recentRanges(r sql.Reader, jobs []int64, n int, out map[int64]*Recent) ([]string, error) {
	query := `
		SELECT j.id,
			COALESCE((
				SELECT r.due
				FROM run r FORCE INDEX (attempt)
				WHERE r.job_id = j.id AND r.due <= ` + begunBy + `
				ORDER BY r.job_id DESC, r.due DESC, r.request DESC, r.attempt DESC
				LIMIT 1 OFFSET ?), 0),
			COALESCE((
				SELECT r.started
				FROM run r FORCE INDEX (PRIMARY)
				WHERE r.id = j.running AND r.state = 'executing'), 0)
		FROM job j FORCE INDEX (PRIMARY)
		WHERE j.id IN ` + list(jobs)

	scan := func(rows *sql.Rows) (string, error) {
		var (
			id    int64
			first job.Micros
			of    Recent
		)
		err := rows.Scan(&id, &first, &of.Executing)
		of.More, out[id] = first != 0, &of
		return fmt.Sprintf("r.job_id = %d AND r.due >= %d", id, first), err
	}

	return sql.Select(r, "find recent runs", scan, query, n-1)
}

func recentRows(r sql.Reader, ranges []string, in string, out map[int64]*Recent) error {
	if len(ranges) == 0 {
		return nil
	}

	query := `
		SELECT r.id, r.job_id, r.due, COALESCE(r.due_count, 1), r.request, r.attempt, r.kind, r.state,
			GREATEST(r.started, IF(r.started > 0, r.due_now, 0)), r.ended, r.outcome, r.final <> 0
		FROM run r FORCE INDEX (attempt)
		WHERE (` + strings.Join(ranges, " OR ") + `)
			AND r.due <= ` + begunBy + ` AND r.state IN ('executing', 'ended')` + in + `
		ORDER BY r.job_id DESC, r.due DESC, r.request DESC, r.attempt DESC`

	scan := func(rows *sql.Rows) error {
		var (
			x       RecentRun
			state   trip.State
			outcome string
		)
		err := rows.Scan(&x.ID, &x.JobID, &x.Due, &x.Count, &x.Request, &x.Attempt, &x.Kind, &state,
			&x.Started, &x.Ended, &outcome, &x.Final)
		if err != nil {
			return err
		}

		if x.Executing = state == trip.Executing; !x.Executing {
			x.Outcome, _ = job.ParseOutcome(outcome)
		}
		if of := out[x.JobID]; of != nil {
			of.Runs = append(of.Runs, x)
		}
		return nil
	}

	return sql.Each(r, "read recent runs", scan, query)
}

// Failed is the latest failure of a job.
type Failed struct {
	JobID int64
	Due   job.Micros
}

// FailedJobs lists all jobs with a failure, as far as records are kept, and the due time of the
// latest failure. It reads one index entry per job and outcome.
func (db *DB) FailedJobs(ctx context.Context) ([]Failed, error) {
	const query = `
		SELECT job_id, outcome, MAX(due)
		FROM notable FORCE INDEX (by_job)
		GROUP BY job_id, outcome`

	latest := map[int64]job.Micros{}
	err := sql.Each(db.Reader(ctx), "list jobs that failed", func(rows *sql.Rows) error {
		var (
			id   int64
			text string
			due  job.Micros
		)
		if err := rows.Scan(&id, &text, &due); err != nil {
			return err
		}
		if o, err := job.ParseOutcome(text); err == nil && o.Wrong() {
			latest[id] = max(latest[id], due)
		}
		return nil
	}, query)

	out := make([]Failed, 0, len(latest))
	for id, due := range latest {
		out = append(out, Failed{id, due})
	}
	return out, err
}
