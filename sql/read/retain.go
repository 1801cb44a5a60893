package read

import (
	"context"
	"slices"

	"go-crontab/job"
	"go-crontab/sql"
	"go-crontab/sql/trip"
)

// Retention removes ended runs, job by job, the earliest due first. The trip of a run does not need
// ended runs: job.begun_to records which due times have run.

// KeptJob is a living or deleted job with the retention rule of its definition.
type KeptJob struct {
	ID      int64
	App     string
	Version int32
	Keep    job.Keep
	Oldest  job.Micros // the first due time that still has a run; zero: none
}

// Rule returns the retention rule for the runs of the job. The rule of the definition wins over the
// rule of its app, and that one over the rule of the cluster.
func (j *KeptJob) Rule(rules map[string]job.Retention) job.Retention {
	cluster := rules[""]
	return job.Retention{Keep: j.Keep.Over(rules[j.App].Keep).Over(cluster.Keep), Archive: cluster.Archive}
}

// KeptJobs lists jobs with higher ids. It reads one run per job.
func (db Retention) KeptJobs(ctx context.Context, after int64, limit int) ([]KeptJob, error) {
	const query = `
		SELECT j.id, a.name, j.version,
			IF(v.definition LIKE '%"keep"%' AND JSON_VALID(v.definition),
				COALESCE(JSON_EXTRACT(v.definition, '$.keep'), ''), ''),
			COALESCE((
				SELECT r.due
				FROM run r FORCE INDEX (attempt)
				WHERE r.job_id = j.id
				ORDER BY r.job_id, r.due
				LIMIT 1), 0)
		FROM job j FORCE INDEX (PRIMARY)
		STRAIGHT_JOIN app a FORCE INDEX (PRIMARY) ON a.id = j.app_id
		STRAIGHT_JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
		WHERE j.id > ?
		ORDER BY j.id
		LIMIT ?`

	scan := func(rows *sql.Rows) (j KeptJob, err error) {
		var keep string
		if err := rows.Scan(&j.ID, &j.App, &j.Version, &keep, &j.Oldest); err != nil || keep == "" {
			return j, err
		}

		r, err := job.DecodeRetention(keep)
		if err != nil {
			j.Oldest = 0 // the job's rule cannot be decoded: keep all its runs
		}

		j.Keep = r.Keep
		return j, nil
	}

	return sql.Select(db.Reader(ctx), "list jobs with their retention", scan, query, after, limit)
}

// finishedAt is the time since when a job without further due times counts as finished. It is the
// time at which its last run ended. If the job was changed or resumed later, it is that later time.
const finishedAt = `GREATEST(j.begun_to, j.resumed, v.created, COALESCE((
			SELECT r.ended
			FROM run r FORCE INDEX (attempt)
			WHERE r.job_id = j.id
			ORDER BY r.job_id DESC, r.due DESC, r.request DESC, r.attempt DESC
			LIMIT 1), 0))`

// FinishedJobs reads the next jobs that have a keep_job, and lists those that seem to be finished.
// last is the highest id among the jobs that it has read. It is zero if there are no more.
func (db Retention) FinishedJobs(ctx context.Context, after int64, limit int) (out []job.FinishedJob, last int64, err error) {
	const query = `
		SELECT t.job_id, IF(done, j.changes, 0), IF(done AND JSON_VALID(v.definition),
				COALESCE(JSON_EXTRACT(v.definition, '$.keep_job'), ''), ''), IF(done, ` + finishedAt + `, 0)
		FROM (
			SELECT t.job_id, j.living = 1 AND j.error = '' AND j.paused = 0 AND j.next_due IS NULL
				AND NOT ` + pausedApps + ` AS done
			FROM job_term t FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = t.job_id
			WHERE t.term = ? AND t.job_id > ?
			ORDER BY t.term, t.job_id
			LIMIT ?) t
		STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = t.job_id
		STRAIGHT_JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
		ORDER BY t.job_id`

	n := 0
	term := job.KeepJobTerm()
	err = sql.Each(db.Reader(ctx), "list finished jobs", func(rows *sql.Rows) error {
		var j job.FinishedJob
		var keep string
		if err := rows.Scan(&j.ID, &j.Changes, &keep, &j.At); err != nil {
			return err
		}

		n, last = n+1, j.ID
		// If the rule cannot be read, the job is kept.
		if keep != "" && j.Keep.UnmarshalJSON([]byte(keep)) == nil && j.Keep > 0 {
			out = append(out, j)
		}
		return nil
	}, query, term[:], after, limit)
	if n < limit {
		last = 0
	}
	return out, last, err
}

// FinishedAt returns since when jobs without due times count as finished.
func (db *DB) FinishedAt(ctx context.Context, ids []int64) (map[int64]job.Micros, error) {
	out := make(map[int64]job.Micros, len(ids))
	for part := range slices.Chunk(ids, idsAtOnce) {
		query := `
			SELECT j.id, ` + finishedAt + `
			FROM job j FORCE INDEX (PRIMARY)
			STRAIGHT_JOIN job_version v FORCE INDEX (PRIMARY) ON v.job_id = j.id AND v.version = j.version
			WHERE j.id IN ` + list(part)
		err := sql.Each(db.Reader(ctx), "read the ends of finished jobs", func(rows *sql.Rows) error {
			var id int64
			var at job.Micros
			err := rows.Scan(&id, &at)
			out[id] = at
			return err
		}, query)
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// LookMost bounds how many runs of a job one statement of retention reads. So the statement is
// short even if there are millions of runs.
const LookMost = 10_000

// LastDues returns the due time of the earliest of the latest ended runs of a job. runs is how many
// latest runs to take. If the job has fewer runs, it returns zero.
func (db Retention) LastDues(ctx context.Context, jobID int64, runs int64) (job.Micros, error) {
	const query = `
		SELECT due, request, attempt
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ? AND due <= ? AND (due < ? OR request < ? OR request = ? AND attempt < ?) AND state = 'ended'
		ORDER BY due DESC, request DESC, attempt DESC
		LIMIT 1 OFFSET ?`

	type place struct{ due, request, attempt int64 }
	scan := func(rows *sql.Rows) (p place, err error) {
		err = rows.Scan(&p.due, &p.request, &p.attempt)
		return p, err
	}

	at := place{due: 1 << 62}
	for runs > 0 {
		step := min(runs, LookMost)
		found, err := sql.Select(db.Reader(ctx), "count runs of a job", scan, query,
			jobID, at.due, at.due, at.request, at.request, at.attempt, step-1)
		if err != nil || len(found) == 0 {
			return 0, err
		}
		at, runs = found[0], runs-step
	}

	return job.Micros(at.due), nil
}

// LastBytes returns the due time from which on the runs of the job together keep at most `most`
// bytes of output. If all runs of the job together keep no more, it returns zero.
func (db Retention) LastBytes(ctx context.Context, jobID int64, most job.Size) (job.Micros, error) {
	const query = `
		SELECT due, SUM(output_kept)
		FROM (
			SELECT due, output_kept
			FROM run FORCE INDEX (attempt)
			WHERE job_id = ? AND due < ? AND state = 'ended'
			ORDER BY due DESC, request DESC, attempt DESC
			LIMIT 1000) latest
		GROUP BY due
		ORDER BY due DESC`

	scan := func(rows *sql.Rows) (p [2]int64, err error) {
		err = rows.Scan(&p[0], &p[1])
		return p, err
	}

	before, sum := int64(1)<<62, int64(0)
	for {
		found, err := sql.Select(db.Reader(ctx), "add up output", scan, query, jobID, before)
		if err != nil || len(found) == 0 {
			return 0, err
		}

		for _, p := range found {
			if sum += p[1]; sum > int64(most) {
				return job.Micros(p[0] + 1), nil // with this due time it is too much
			}
			before = p[0]
		}
	}
}

// Cut selects the runs of a job that are removed: runs due before Due that ended before Ended, and
// all runs due before Surely. A failed run must also have ended before Failed.
type Cut struct {
	JobID  int64
	From   job.Micros // earlier due times were handled already
	To     job.Micros // runs due later come in a later step, see LookAhead
	Due    job.Micros
	Ended  job.Micros
	Surely job.Micros
	Failed job.Micros
}

// LookAhead returns the due time up to which the next LookMost runs of a cut go. Many of these runs
// may stay, such as failures with a longer retention.
func (db Retention) LookAhead(ctx context.Context, c Cut) (job.Micros, error) {
	const query = `
		SELECT due
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ? AND due > ? AND due < ?
		ORDER BY due, request, attempt
		LIMIT 1 OFFSET ?`
	found, err := sql.Select(db.Reader(ctx), "look ahead of old runs", scanID, query, c.JobID, int64(c.From),
		int64(c.Due), LookMost)
	if err != nil || len(found) == 0 {
		return c.Due, err
	}

	return job.Micros(found[0]), nil
}

// OldRuns lists the runs to remove whose due time is between From and To, earliest due first.
func (db Retention) OldRuns(ctx context.Context, c Cut, limit int) ([]trip.OldRun, error) {
	const query = `
		SELECT id, due, outcome, output_kept > 0 OR exit_code >= 1000, output_kept > 65536
		FROM run FORCE INDEX (attempt)
		WHERE job_id = ? AND due >= ? AND due < ? AND state = 'ended' AND (ended < ? OR due < ?)
			AND (outcome NOT IN ('failed', 'timed_out', 'killed', 'lost', 'missed') OR ended < ?)
		ORDER BY due, request, attempt
		LIMIT ?`
	scan := func(rows *sql.Rows) (r trip.OldRun, err error) {
		var outcome string
		err = rows.Scan(&r.ID, &r.Due, &outcome, &r.Output, &r.Large)
		r.Outcome, _ = job.ParseOutcome(outcome)
		return r, err
	}

	return sql.Select(db.Reader(ctx), "list old runs", scan, query,
		c.JobID, int64(c.From), int64(c.To), int64(c.Ended), int64(c.Surely), int64(c.Failed), limit)
}

// RunsWithOutput reads runs with their kept output, by id.
func (db *DB) RunsWithOutput(ctx context.Context, ids []int64) ([]Run, error) {
	r := db.Reader(ctx)
	rows, err := runsByID(r, ids)
	if err != nil {
		return nil, err
	}
	if _, err := readOutputs(r, rows); err != nil {
		return nil, err
	}

	out := make([]Run, 0, len(rows))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if run := rows[id]; run != nil {
			out = append(out, *run)
		}
	}

	return out, nil
}
